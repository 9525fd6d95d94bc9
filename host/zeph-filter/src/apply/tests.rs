use zeph_core::command::CommandLine;
use zeph_strategies::{Confidence, Input, Piece, Selection};

use crate::command::tests::line;
use crate::{BUILTIN, Filtered, Filters, Foreign, Loss, MARK, NoForeign, Output};

/// A strategy of a component that answers as a test wants.
struct Says<F>(F);

impl<F: Fn(&Input<'_>) -> Result<Selection, String>> Foreign for Says<F> {
    fn apply(&self, _: &str, _: &str, input: &Input<'_>) -> Result<Selection, String> {
        (self.0)(input)
    }
}

fn foreign_rule() -> Filters {
    let rule = "[[rules]]\nname = 'mine'\nmatch = { prefix = 'tool' }\nstrategy = { type = 'wasm:short' }\n";
    Filters::load(&[], Some(("f.toml", rule))).0
}

/// Forty lines with an error in the middle.
fn sample() -> String {
    let mut lines: Vec<String> = (0..40)
        .map(|n| format!("an ordinary line number {n} at src/a.rs:{n}"))
        .collect();
    lines[20] = "error: it broke".to_owned();
    lines.join("\n") + "\n"
}

fn apply<'a>(
    filters: &Filters,
    command: &CommandLine,
    exit_code: i32,
    raw: &'a str,
    foreign: &dyn Foreign,
) -> Filtered<'a> {
    filters.apply(
        &Output {
            command: Some(command),
            exit_code: Some(exit_code),
            raw: raw.as_bytes(),
        },
        foreign,
    )
}

/// What becomes of the sample when a strategy answers so.
fn with(pieces: Vec<Piece>, exit_code: i32) -> (String, Vec<String>) {
    let sample = sample();
    let foreign =
        Says(|_: &Input<'_>| Ok(Selection::from_pieces(pieces.clone(), Confidence::Full)));
    let filtered = apply(
        &foreign_rule(),
        &line("tool x", &[]),
        exit_code,
        &sample,
        &foreign,
    );
    (filtered.text.into_owned(), filtered.notes)
}

fn check_skipped(pieces: Vec<Piece>, note: &str) {
    let (text, notes) = with(pieces, 0);
    assert_eq!(text, sample());
    assert!(notes[0].contains(note), "{notes:?}");
}

#[test]
fn an_answer_that_is_none_changes_nothing() {
    check_skipped(vec![Piece::Keep(0..41)], "of 40");
    check_skipped(vec![Piece::Keep(5..6), Piece::Keep(2..3)], "after line 6");
    check_skipped(vec![Piece::Keep(2..3), Piece::Keep(2..3)], "after line 3");
    #[expect(clippy::reversed_empty_ranges, reason = "the strategy lies")]
    check_skipped(vec![Piece::Keep(5..2)], "kept lines 5 to 2");
    check_skipped(vec![Piece::Keep(usize::MAX..usize::MAX)], "of 40");
    check_skipped(vec![Piece::Note("a\nb".to_owned())], "control characters");
    check_skipped(
        vec![Piece::Note("\u{1b}[2J".to_owned())],
        "control characters",
    );
    check_skipped(vec![Piece::Note(" ".to_owned())], "empty");
    check_skipped(vec![Piece::Note("x".repeat(70_000))], "70000 bytes");
    check_skipped(
        vec![Piece::Note("see src/b.rs:7".to_owned())],
        "`src/b.rs:7`",
    );
}

#[test]
fn a_strategy_that_fails_is_skipped_with_a_note() {
    let sample = sample();
    let command = line("tool", &[]);
    for (foreign, note) in [
        (
            &Says(|_: &Input<'_>| -> Result<Selection, String> { panic!("boom") }) as &dyn Foreign,
            "panicked",
        ),
        (
            &Says(|_: &Input<'_>| Err("it took too long".to_owned())),
            "too long",
        ),
        (&NoForeign, "no plugin offers"),
    ] {
        let filtered = apply(&foreign_rule(), &command, 0, &sample, foreign);
        assert_eq!(filtered.text, sample);
        assert_eq!(
            (filtered.loss, filtered.confidence),
            (Loss::None, Some(Confidence::Fallback))
        );
        assert!(
            filtered.notes[0].starts_with("rule `mine`: ") && filtered.notes[0].contains(note),
            "{:?}",
            filtered.notes
        );
    }
}

#[test]
fn errors_come_back_and_a_claim_carries_its_name() {
    let (text, _) = with(vec![Piece::Note("all is well at src/a.rs:3".to_owned())], 0);
    assert_eq!(
        text,
        "[zeph] short says: all is well at src/a.rs:3\nerror: it broke\n"
    );
}

#[test]
fn a_note_shows_all_that_it_has() {
    let hidden = "all\u{202e} is \u{e0041}\u{200b}well";
    let (text, _) = with(vec![Piece::Note(hidden.to_owned())], 0);
    assert_eq!(text, "[zeph] short says: all is well\nerror: it broke\n");
    let (text, notes) = with(vec![Piece::Note("at src/b.rs:\u{200b}3".to_owned())], 0);
    assert_eq!(text, sample());
    assert!(
        notes[0].contains("its note names `src/b.rs:3`"),
        "{notes:?}"
    );
    // What has nothing to see is no note.
    let (text, _) = with(vec![Piece::Note("\u{200b}".to_owned())], 0);
    assert_eq!(text, sample());
}

#[test]
fn what_would_be_longer_is_not_used() {
    let notes = (0..40)
        .map(|n| {
            Piece::Note(format!(
                "a note, the number {n} of the notes that are longer than the text"
            ))
        })
        .collect();
    assert_eq!(with(notes, 0).0, sample());
    assert_eq!(with(vec![Piece::Keep(0..39)], 0).0, sample());
}

#[test]
fn loss_is_typed() {
    let sample = sample();
    for (range, loss) in [
        (0..22, Loss::Tail),
        (19..40, Loss::Whole),
        (0..40, Loss::None),
    ] {
        let foreign = Says(|_: &Input<'_>| {
            Ok(Selection::from_pieces(
                vec![Piece::Keep(range.clone())],
                Confidence::Full,
            ))
        });
        let filtered = apply(&foreign_rule(), &line("tool", &[]), 0, &sample, &foreign);
        assert_eq!(filtered.loss, loss, "{range:?}");
    }
}

/// What a strategy found worth showing is shown of a failure, too, when no line says which error there was.
#[test]
fn a_failure_without_known_words_keeps_what_was_chosen() {
    let raw: String = (0..300)
        .map(|n| format!("all quiet on line {n}\n"))
        .collect();
    let foreign = Says(|_: &Input<'_>| {
        let pieces = vec![
            Piece::Keep(0..1),
            Piece::Note("one of them".to_owned()),
            Piece::Keep(100..101),
        ];
        Ok(Selection::from_pieces(pieces, Confidence::Full))
    });
    let command = line("tool", &[]);
    let text = apply(&foreign_rule(), &command, 3, &raw, &foreign).text;
    for part in [
        "all quiet on line 0\n[zeph] short says: one of them\nall quiet on line 1\n",
        "line 39\n[zeph] lines 41-180 omitted except for 1 line (offset=40)\nall quiet on line 100\n",
        "line 100\nall quiet on line 180\n",
        "line 299\n",
    ] {
        assert!(text.contains(part), "{part}: {text}");
    }
}

#[test]
fn a_failure_is_never_shown_without_its_reason() {
    let raw: String = (0..300)
        .map(|n| format!("all quiet on line {n}\n"))
        .collect();
    let foreign = Says(|_: &Input<'_>| {
        Ok(Selection::from_pieces(
            vec![Piece::Keep(0..1)],
            Confidence::Full,
        ))
    });
    let command = line("tool", &[]);
    let green = apply(&foreign_rule(), &command, 0, &raw, &foreign);
    assert_eq!(green.text.lines().count(), 2);
    let failed = apply(&foreign_rule(), &command, 3, &raw, &foreign);
    assert_eq!(failed.confidence, Some(Confidence::Fallback));
    assert!(
        failed
            .text
            .contains("[zeph] lines 41-180 omitted (offset=40)\n")
    );
    assert!(
        failed.text.contains("all quiet on line 39\n")
            && failed.text.ends_with("all quiet on line 299\n")
    );
    let killed = foreign_rule().apply(
        &Output {
            command: Some(&command),
            exit_code: None,
            raw: raw.as_bytes(),
        },
        &foreign,
    );
    assert_eq!(killed.text, failed.text);
    let short: String = raw
        .lines()
        .take(100)
        .map(|line| format!("{line}\n"))
        .collect();
    assert_eq!(
        apply(&foreign_rule(), &command, 3, &short, &foreign).text,
        short
    );
}

#[test]
fn a_flood_of_errors_is_shown_in_part_and_counted() {
    let raw: String = (0..1000)
        .map(|n| format!("error: number {n} went wrong\nnothing to see\nnothing to see\n"))
        .collect();
    let foreign = Says(|_: &Input<'_>| Ok(Selection::from_pieces(vec![], Confidence::Full)));
    let filtered = apply(&foreign_rule(), &line("tool", &[]), 1, &raw, &foreign);
    assert_eq!(
        filtered
            .text
            .lines()
            .filter(|line| line.starts_with("error: "))
            .count(),
        200
    );
    assert!(
        filtered
            .text
            .contains("[zeph] 800 more error lines omitted")
    );
}

#[test]
fn small_marked_and_foreign_outputs_pass() {
    let (filters, _) = Filters::load(BUILTIN, None);
    let command = line("cargo test", &[]);
    let small = "running 1 test\ntest a ... ok\n\ntest result: ok. 1 passed\n";
    let filtered = apply(&filters, &command, 0, small, &NoForeign);
    assert_eq!(
        (filtered.text.as_ref(), filtered.loss, filtered.confidence),
        (small, Loss::None, None)
    );
    let pass = "test a_rather_long_name_of_a_test ... ok\n".repeat(50)
        + "test result: ok. 50 passed; 0 failed\n";
    let marked = format!("{MARK}12 lines omitted\n{pass}");
    assert_eq!(
        apply(&filters, &command, 0, &marked, &NoForeign).text,
        marked
    );
    assert!(apply(&filters, &command, 0, &pass, &NoForeign).text.len() < 200);
    assert_eq!(
        apply(
            &filters,
            &line("cargo test", &["grep"]),
            0,
            &pass,
            &NoForeign
        )
        .text,
        pass
    );
    assert_eq!(
        apply(
            &filters,
            &line("cargo test -- --format json", &[]),
            0,
            &pass,
            &NoForeign
        )
        .text,
        pass
    );
    let unknown = filters.apply(
        &Output {
            command: None,
            exit_code: None,
            raw: b"\x1b[1mx\xff\r\ny",
        },
        &NoForeign,
    );
    assert_eq!(unknown.text, "x\u{fffd}\ny");
}

#[test]
fn other_commands_output_survives_beside_a_test_run() {
    let (filters, _) = Filters::load(BUILTIN, None);
    let mut command = line("cargo test", &[]);
    if let Some(last) = &mut command.last {
        last.is_one_of_several = true;
    }
    let raw = format!(
        "the answer is 42\n{}test result: ok. 50 passed; 0 failed\n",
        "test a_rather_long_name_of_a_test ... ok\n".repeat(50)
    );
    let filtered = apply(&filters, &command, 0, &raw, &NoForeign);
    assert!(filtered.text.starts_with("the answer is 42\n"));
    assert_eq!(
        filtered.confidence,
        Some(Confidence::Partial).max(filtered.confidence)
    );
    let mut command = line("find .", &[]);
    if let Some(last) = &mut command.last {
        last.is_one_of_several = true;
    }
    let raw = "./a/path/of/some/file\n".repeat(500);
    assert_eq!(apply(&filters, &command, 0, &raw, &NoForeign).text, raw);
}

/// Blank lines of another command's output count: a diff without them is no patch.
#[test]
fn blank_lines_of_other_commands_stay() {
    let (filters, _) = Filters::load(BUILTIN, None);
    let hunk = "diff --git a/x b/x\n@@ -1,5 +1,5 @@\n a\n \n \n-b\n+B\n \n";
    let status = format!(
        "On branch a\n\nChanges to be committed:\n{}\n",
        "  (use \"git restore --staged <file>...\" to unstage)\n".repeat(9)
    );
    let install = "Progress: resolved 9, reused 0, downloaded 9, added 0\n\n".repeat(20)
        + "\nadded 1 package\n";
    for (command, raw) in [
        ("git status", hunk.to_owned() + &status),
        ("npm install", hunk.to_owned() + &install),
    ] {
        let mut command = line(command, &[]);
        if let Some(last) = &mut command.last {
            last.is_one_of_several = true;
        }
        let text = apply(&filters, &command, 0, &raw, &NoForeign).text;
        assert!(text.starts_with(hunk), "{text}");
        assert!(text.len() < raw.len(), "{text}");
    }
}

/// Of files that differ in a date each counts, whatever log is shown beside them.
#[test]
fn lines_of_other_commands_are_not_folded() {
    let (filters, _) = Filters::load(BUILTIN, None);
    let mut command = line("cat app.log", &[]);
    if let Some(last) = &mut command.last {
        last.is_one_of_several = true;
    }
    let raw: String = (10..30)
        .map(|n| format!("2026-01-{n}.tar.gz of the backup\n"))
        .collect();
    assert_eq!(apply(&filters, &command, 0, &raw, &NoForeign).text, raw);
}

/// Which rows are worth seeing cannot be told without their heading.
#[test]
fn a_table_without_its_heading_is_shown_whole() {
    let (filters, _) = Filters::load(BUILTIN, None);
    let pods: String = (0..90)
        .map(|n| {
            format!(
                "web-{n}   {}   0   3d\n",
                if n == 40 {
                    "0/1   Pending"
                } else {
                    "1/1   Running"
                }
            )
        })
        .collect();
    let processes: String = (0..90)
        .map(|n| {
            format!(
                "root  {n}  {}  0.1  123  456 ?  S  10:00  0:00 worker\n",
                if n == 40 { "99.0" } else { "0.0" }
            )
        })
        .collect();
    let directories: String = (0..90)
        .map(|n| format!("4.0K\t./a/rather/long/name/part-{n}\n"))
        .collect();
    for (command, heading, rows, odd) in [
        (
            "kubectl get pods",
            "NAME   READY   STATUS   RESTARTS   AGE\n",
            &pods,
            "Pending",
        ),
        (
            "ps aux",
            "USER  PID  %CPU  %MEM  VSZ  RSS TTY  STAT START  TIME COMMAND\n",
            &processes,
            "99.0",
        ),
        ("du -h", "", &directories, ""),
    ] {
        let shown = |raw: &str| {
            apply(&filters, &line(command, &[]), 0, raw, &NoForeign)
                .text
                .into_owned()
        };
        let with = shown(&format!("{heading}{rows}"));
        assert!(with.len() < rows.len() && with.contains(odd), "{with}");
        if !heading.is_empty() {
            assert_eq!(shown(rows), *rows);
        }
    }
}

#[test]
fn progress_that_was_folded_can_be_read_back() {
    let raw = (0..100)
        .map(|n| format!("downloading {n}%\r"))
        .collect::<String>()
        + "done\n"
        + &"line\n".repeat(100);
    let (filters, _) = Filters::load(&[], None);
    let filtered = apply(&filters, &line("tool", &[]), 0, &raw, &NoForeign);
    assert_eq!(filtered.loss, Loss::Whole);
    assert!(filtered.text.starts_with("done\nline\n"));
}

#[test]
fn errors_stand_before_warnings() {
    let warning = |n: u32| {
        format!(
            "warning: unused variable: `v{n}`\n --> src/a.rs:{n}:1\n  |\n  = note: `#[warn(unused_variables)]` on by default\n\n"
        )
    };
    let error = "error[E0308]: mismatched types\n --> src/b.rs:3:5\n  |\n3 |     x\n\n";
    let last = "error: could not compile `a` (lib) due to 1 previous error; 20 warnings emitted\n";
    let warnings: String = (1..=20).map(warning).collect();
    let raw = [&warnings, "error: put in\n\n", &warning(21), error, last].concat();
    let filters = Filters::load(BUILTIN, None).0;
    let text = apply(&filters, &line("cargo clippy", &[]), 101, &raw, &NoForeign).text;
    assert!(
        text.starts_with("error[E0308]: mismatched types\n --> src/b.rs:3:5\n"),
        "{text}"
    );
    assert!(text.ends_with(last), "{text}");
    let put_in = text.find("error: put in").expect("no error is lost");
    assert!(
        text.find("unused_variables").is_some_and(|at| at < put_in),
        "{text}"
    );
    for n in 1..=21 {
        assert!(text.contains(&format!("src/a.rs:{n}:1")), "{n}: {text}");
    }
}

#[test]
fn a_strategy_of_others_keeps_the_order() {
    check_skipped(
        vec![Piece::Keep(5..9), Piece::Keep(0..2)],
        "it kept lines 0 to 2 of 40 after line 9",
    );
}

#[test]
fn what_a_commit_says_of_errors_is_content() {
    let commit = |n: u32| {
        format!(
            "commit {n:07x}\nAuthor: A <a@example.com>\n\n    subject {n}\n\n    error: of {n}\n\n"
        )
    };
    let raw: String = (0..40).map(commit).collect();
    let filters = Filters::load(BUILTIN, None).0;
    let text = apply(&filters, &line("git log", &[]), 0, &raw, &NoForeign).text;
    let n_subjects = text.matches("    subject ").count();
    assert_eq!(n_subjects, text.matches("commit 0").count(), "{text}");
    assert!(
        text.contains(&format!("{} more commits follow", 40 - n_subjects)),
        "{text}"
    );
}

/// Neither a rule of its own nor one in the place of a built-in one keeps the built-in ones from their work when it cannot act.
#[test]
fn a_rule_that_cannot_act_leaves_the_command_to_the_builtin_ones() {
    let command = line("cargo test", &[]);
    let pass = "test a_rather_long_name_of_a_test ... ok\n".repeat(50)
        + "test result: ok. 50 passed; 0 failed\n";
    let plain = Filters::load(BUILTIN, None).0;
    let expected = apply(&plain, &command, 0, &pass, &NoForeign);
    for name in ["mine", "cargo-test"] {
        let rule = format!(
            "[[rules]]\nname = '{name}'\nmatch = {{ prefix = 'cargo test' }}\nstrategy = {{ type = 'wasm:short' }}\n"
        );
        let filters = Filters::load(BUILTIN, Some(("f.toml", rule.as_str()))).0;
        let filtered = apply(&filters, &command, 0, &pass, &NoForeign);
        assert_eq!(filtered.text, expected.text, "{name}");
        assert_eq!(filtered.rules, ["cargo-test"], "{name}");
        let note = format!("rule `{name}`: no plugin offers a strategy `short`");
        assert_eq!(filtered.notes, [note], "{name}");
        // One that can act does, and is the only one.
        let keeps = Says(|input: &Input<'_>| Ok(Selection::all(input, Confidence::Full)));
        let filtered = apply(&filters, &command, 0, &pass, &keeps);
        assert_eq!(
            (filtered.text.as_ref(), filtered.notes.len()),
            (pass.as_str(), 0),
            "{name}"
        );
        let why = filters.why_with(&command, &NoForeign);
        assert_eq!(why.unable.len(), 1, "{why}");
        assert_eq!(
            why.to_string()
                .matches(&format!("rule `{name}` cannot act: "))
                .count(),
            1,
            "{why}"
        );
        assert!(
            why.acting.iter().any(|acting| acting == "cargo-test"),
            "{why}"
        );
    }
}

/// Blank lines of a patch are lines of files, and those of a file without a rule are its own.
#[test]
fn blank_lines_of_content_stay() {
    let filters = Filters::load(BUILTIN, None).0;
    let hunk = |n: u32| {
        let lines = format!(
            "@@ -{n},5 +{n},6 @@\n one\n \n \n \n+two {n}\n three, a line of the usual length\n"
        );
        format!("diff --git a/f{n} b/f{n}\n--- a/f{n}\n+++ b/f{n}\n{lines}")
    };
    let raw: String = (1..=9).map(hunk).collect();
    for command in ["git diff", "cat x.patch"] {
        let filtered = apply(&filters, &line(command, &[]), 0, &raw, &NoForeign);
        assert_eq!(
            (filtered.text.as_ref(), filtered.loss),
            (raw.as_str(), Loss::None),
            "{command}"
        );
    }
    let long: String = (1..=99).map(hunk).collect();
    let shorter = apply(&filters, &line("git diff", &[]), 0, &long, &NoForeign).text;
    assert!(shorter.len() < long.len());
    assert!(shorter.starts_with(&hunk(1)), "{shorter}");
}

/// What is missing besides control sequences is a loss, however short the output is and whether or not a rule is for it.
#[test]
fn what_clean_up_takes_away_is_kept() {
    let filters = Filters::load(BUILTIN, None).0;
    let records: String = (0..3_000).map(|n| format!("{n},name {n}\r")).collect();
    let progress: String = (0..40).map(|n| format!("{n}% of it\r")).collect();
    for (raw, n_lines, loss) in [
        (records, 3_000, Loss::None),
        (progress + "done\n", 1, Loss::Whole),
        ("1%\r2%\rdone\n".to_owned(), 3, Loss::None),
        ("17\u{8}8\n".to_owned(), 1, Loss::Whole),
        ("a.rs\0b.rs\0".to_owned(), 2, Loss::None),
    ] {
        let filtered = apply(&filters, &line("tool", &[]), 0, &raw, &NoForeign);
        assert_eq!(filtered.text.lines().count(), n_lines, "{raw:?}");
        assert_eq!(filtered.loss, loss, "{raw:?}");
    }
}

/// The lines that a note tells of are those of the stored output, whatever was left out before.
#[test]
fn gaps_are_those_of_the_output() {
    let rules = "[[rules]]\nname = 'a'\nmatch = { prefix = 'tool' }\nstrategy = { type = 'strip_noise', patterns = ['^noise'] }\n[[rules]]\nname = 'b'\nmatch = { prefix = 'tool' }\nstrategy = { type = 'truncate', head = 2, tail = 2 }\n";
    let filters = Filters::load(&[], Some(("f.toml", rules))).0;
    // Twelve lines for each: seven are left out before the second rule.
    let part = |n: u32| {
        format!(
            "{}line {n:02} with some words\n\n\n\nnext\n\n\n",
            "noise, of which there is much more\n".repeat(5)
        )
    };
    let raw: String = (0..20).map(part).collect();
    let text = apply(&filters, &line("tool", &[]), 0, &raw, &NoForeign).text;
    // The second line that stays is the seventh, the last two are those of the last part.
    let notes: Vec<&str> = text.lines().filter(|line| line.starts_with(MARK)).collect();
    let [note] = notes[..] else {
        panic!("{text}");
    };
    let numbers: Vec<usize> = note
        .split(|c: char| !c.is_ascii_digit())
        .filter_map(|number| number.parse().ok())
        .collect();
    let lines: Vec<&str> = raw.lines().collect();
    let [first, last, offset] = numbers[..] else {
        panic!("{note}");
    };
    let shown: Vec<&str> = text
        .lines()
        .filter(|line| !line.starts_with(MARK))
        .collect();
    assert_eq!(offset, first - 1, "{text}");
    assert_eq!(
        (lines[first - 2], lines[last]),
        (shown[1], shown[2]),
        "{text}"
    );
    // If overwritten states were split into lines, the note gives no line numbers.
    let other = raw.replacen("line 01", "line 01 in two\rline 01", 1);
    let text = apply(&filters, &line("tool", &[]), 0, &other, &NoForeign).text;
    assert!(text.contains("[zeph] lines omitted\n"), "{text}");
    let noise = "x\n\n\n".to_owned() + &"noise, of which there is much more\n".repeat(90);
    let noise = apply(&filters, &line("tool", &[]), 0, &noise, &NoForeign).text;
    assert!(noise.ends_with("[zeph] 91 lines omitted\n"), "{noise}");
}
