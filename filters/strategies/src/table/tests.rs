use proptest::prelude::*;

use crate::{Confidence, Input, Lines, Piece, STRATEGIES, create};

/// What a strategy makes of lines: the kept ones and `~ note`s.
fn select(name: &str, options: &str, lines: &Lines<'_>) -> (Vec<String>, Confidence) {
    let strategy = create(name, options).unwrap();
    let selection = strategy.apply(&Input {
        command: "tool",
        exit_code: Some(0),
        lines,
    });
    let mut shown = Vec::new();
    for piece in selection.pieces {
        match piece {
            Piece::Keep(range) => shown.extend(lines.range(range).map(str::to_owned)),
            Piece::Note(note) => shown.push(format!("~ {note}")),
        }
    }
    (shown, selection.confidence)
}

fn check(name: &str, options: &str, text: &str, expect: &str) {
    let lines = Lines::of(text);
    let (shown, confidence) = select(name, options, &lines);
    assert_eq!(shown.join("\n"), expect.trim_end(), "{name} {options}");
    assert_ne!(confidence, Confidence::Fallback, "{name} {options}");
}

fn check_unknown(name: &str, options: &str, text: &str) {
    let lines = Lines::of(text);
    let (shown, confidence) = select(name, options, &lines);
    assert_eq!(
        (shown, confidence),
        (
            lines.iter().map(str::to_owned).collect(),
            Confidence::Fallback
        ),
        "{name}"
    );
}

fn check_options(name: &str, options: &str, reason: &str) {
    let error = create(name, options).err().unwrap_or_default();
    assert!(error.contains(reason), "{name} {options}: {error}");
}

#[test]
fn strip_noise_removes_what_it_is_told() {
    let options = r#"{"patterns": ["^noise", "error"]}"#;
    check(
        "strip_noise",
        options,
        "noise\na\nnoise: error: b\nwarning: error\n",
        "a\nnoise: error: b\nwarning: error\n",
    );
    check_unknown("strip_noise", options, "a\nb\n");
    check_options("strip_noise", "{}", "missing field `patterns`");
    check_options(
        "strip_noise",
        r#"{"patterns": ["a{9999}{9999}"]}"#,
        "size limit",
    );
}

#[test]
fn strip_annotated_keeps_the_summary() {
    let options = r#"{"prefixes": ["note:", "help:"], "patterns": ["Compiling"], "summary_pattern": "Finished"}"#;
    check(
        "strip_annotated",
        options,
        "note: a\n  help: b\nCompiling c\nnote: Finished\nd\n",
        "note: Finished\nd\n",
    );
    check_options("strip_annotated", "{}", "neither");
}

#[test]
fn keep_matching_keeps_what_is_wrong_too() {
    let options = r#"{"patterns": ["->"]}"#;
    check(
        "keep_matching",
        options,
        "a\nb -> c\nerror: d\nwarning: e\nf\n",
        "b -> c\nerror: d\nwarning: e\n",
    );
    check_unknown("keep_matching", options, "a\nerror: d\n");
}

#[test]
fn truncate_names_the_lines_it_leaves_out() {
    let options = r#"{"max_lines": 5, "head": 1, "tail": 1}"#;
    check("truncate", options, "1\n2\n3\n4\n5\n", "1\n2\n3\n4\n5\n");
    check(
        "truncate",
        options,
        "1\n2\n3\n4\n5\n6\n",
        "1\n~ lines 2-5 omitted\n6\n",
    );
    let told = "1\n2\nerror: x\n  --> a.rs:1:2\n5\n6\nwarning: y\n8\n";
    check(
        "truncate",
        options,
        told,
        "1\n~ lines 2-7 omitted except for 3 diagnostic lines\nerror: x\n  --> a.rs:1:2\nwarning: y\n8\n",
    );
    check(
        "truncate",
        r#"{"max_lines": 0, "head": 0, "tail": 0}"#,
        "1\n2\n",
        "~ lines 1-2 omitted\n",
    );
    check("truncate", "{}", &"x\n".repeat(40), &"x\n".repeat(40));
    check_options("truncate", r#"{"head": -1}"#, "invalid value");
}

#[test]
fn truncate_has_a_budget_for_errors_and_one_for_warnings() {
    let text: String = (0..900)
        .map(|n| {
            if n % 2 == 0 {
                format!("error: {n}\n")
            } else {
                format!("warning: {n}\n")
            }
        })
        .collect();
    let lines = Lines::of(&text);
    let (shown, confidence) = select("truncate", "{}", &lines);
    assert_eq!(confidence, Confidence::Partial);
    assert_eq!(
        shown
            .iter()
            .filter(|line| line.starts_with("error"))
            .count(),
        200 + 20
    );
    assert_eq!(
        shown
            .iter()
            .filter(|line| line.starts_with("warning"))
            .count(),
        200 + 20
    );
}

#[test]
fn group_by_rule_keeps_every_place_and_every_error() {
    let warning = |name: &str, place: &str| {
        format!(
            "warning: unused variable: `{name}`\n --> {place}\n  |\n1 | let {name};\n  |\n  = note: detail\n\n"
        )
    };
    let error = "error[E1]: no\n --> d.rs:9:9\n  |\n  = help: index.html#x\n\n";
    let text = [
        &warning("a", "a.rs:1:1"),
        error,
        &warning("b", "b.rs:2:2"),
        "done\n",
        &warning("c", "c.rs:3:3"),
    ]
    .concat();
    check(
        "group_by_rule",
        "{}",
        &text,
        "error[E1]: no\n --> d.rs:9:9\n  |\n  = help: index.html#x\n\nwarning: unused variable: `a`\n --> a.rs:1:1\n~ 2 more of this: b.rs:2:2 b, c.rs:3:3 c\ndone\n",
    );
    let options = r#"{"location_pattern": "^(\\S+?:\\d+:\\d+): warning", "rule_pattern": "\\[-W([^\\]]+)\\]"}"#;
    let gcc = "a.c:1:2: warning: unused 'x' [-Wunused]\n    1 | int x;\n      |     ^\nb.c:3:4: warning: unused 'y' [-Wunused]\n    3 | int y;\nld done\n";
    check(
        "group_by_rule",
        options,
        gcc,
        "a.c:1:2: warning: unused 'x' [-Wunused]\n~ 1 more of unused: b.c:3:4 y\nld done\n",
    );
    check_unknown("group_by_rule", "{}", "nothing\nto see\n");
    check_options(
        "group_by_rule",
        r#"{"location_pattern": "x"}"#,
        "need a group",
    );
}

/// What is advised for the first is not advised for the others.
#[test]
fn group_by_rule_tells_what_each_says() {
    let old = |name: &str, new: &str, n: u32| {
        format!(
            "warning: use of deprecated method `Db::{name}`: use `{new}`\n  --> src/main.rs:{n}:7\n   |\n   = note: `#[warn(deprecated)]` on by default\n\n"
        )
    };
    let long = "a b c d e f g h i j k l m n";
    let text = [
        old("open", "open_tls", 1),
        old("select", "query", 2),
        old("open", "open_tls", 3),
        old("read", long, 4),
    ];
    check(
        "group_by_rule",
        "{}",
        &text.concat(),
        &format!(
            "warning: use of deprecated method `Db::open`: use `open_tls`\n  --> src/main.rs:1:7\n~ 2 more of deprecated: src/main.rs:2:7 Db::select query, src/main.rs:3:7\nwarning: use of deprecated method `Db::read`: use `{long}`\n  --> src/main.rs:4:7\n"
        ),
    );
}

#[test]
fn group_by_rule_puts_no_control_character_into_a_note() {
    let text = "warning: a\n --> x\ty.rs:1:2\n\nwarning: a\n --> x\ty.rs:2:2\n\n";
    check_unknown("group_by_rule", "{}", text);
}

#[test]
fn git_status_drops_hints_only() {
    check(
        "git_status",
        "{}",
        "On branch a\n\nChanges:\n  (use \"git add <file>...\" to stage)\n\tmodified:   (use \"git b)\n",
        "On branch a\nChanges:\n\tmodified:   (use \"git b)\n",
    );
    check_unknown("git_status", "{}", " M a\n?? b\n");
}

/// What others print beside it is no status: neither its blank lines nor what it indents.
#[test]
fn git_status_ends_where_something_else_begins() {
    let hunk = "diff --git a/x b/x\n@@ -1,4 +1,4 @@\n a\n \n-b\n+B\n \n";
    let code = "const (\n\tRed\n\tGreen\n\n\tBlue\n\tBlack\n)\n";
    let status = "On branch a\nChanges to be committed:\n  (use \"git restore\" to unstage)\n\tnew file:   a\n\tnew file:   b\n\tnew file:   c\n\tnew file:   d\n\n";
    let shown = "On branch a\nChanges to be committed:\n~ new file: a b c d\n";
    check(
        "git_status",
        "{}",
        &[hunk, code, status, hunk, status].concat(),
        &[hunk, code, shown, "\n", hunk, shown].concat(),
    );
    // A file of tabs behind a status has no section above it.
    let tabs = "\tone\n\ttwo\n\tthree\n\tfour\n";
    check(
        "git_status",
        "{}",
        &[status, tabs].concat(),
        &[shown, "\n", tabs].concat(),
    );
}

#[test]
fn git_diff_cuts_at_hunks_and_counts() {
    let file = |name: &str| {
        format!(
            "diff --git a/{name} b/{name}\n--- a/{name}\n+++ b/{name}\n@@ -1,2 +1,2 @@\n-a\n+b\n c\n@@ -9,1 +9,1 @@\n-d\n+e\n"
        )
    };
    let text = file("x") + &file("y");
    let options = r#"{"max_diff_lines": 9}"#;
    let shown = |name: &str| {
        format!(
            "diff --git a/{name} b/{name}\n--- a/{name}\n+++ b/{name}\n@@ -1,2 +1,2 @@\n-a\n+b\n c\n~ 1 hunk of this file omitted: +1 -1\n"
        )
    };
    check("git_diff", options, &text, &(shown("x") + &shown("y")));
    check("git_diff", "{}", &text, &text);
    check_unknown("git_diff", options, "no diff\n");
    // A combined diff has a column of signs for each parent.
    let header = "diff --cc x\n--- a/x\n+++ b/x\n";
    let hunk = "@@@ -1,2 -1,2 +1,3 @@@\n- a\n -b\n++c\n +d\n  e\n";
    check(
        "git_diff",
        r#"{"max_diff_lines": 5}"#,
        &format!("{header}{hunk}"),
        &format!("{header}~ 1 hunk of this file omitted: +2 -2\n"),
    );
    // Text after a hunk that looks like a part of it belongs to nobody and stays.
    let odd = "@@ -1,1 +1,1 @@\n-a\n+b\n+++ not of the hunk\n@@ -3 +3 @@\n-x\n+y\n";
    check(
        "git_diff",
        r#"{"max_diff_lines": 3}"#,
        odd,
        "@@ -1,1 +1,1 @@\n-a\n+b\n+++ not of the hunk\n~ 1 hunk of this file omitted: +1 -1\n",
    );
}

#[test]
fn dedup_folds_what_differs_in_time_only() {
    let text = "2026-01-02T03:04:05Z a\n2026-01-02T03:04:06.5Z a\n2026-01-02T03:04:07Z a\n2026-01-02T03:04:08+01:00 a\nb\n";
    check(
        "dedup",
        "{}",
        text,
        "2026-01-02T03:04:05Z a\n~ 3 more like it, the last below\n2026-01-02T03:04:08+01:00 a\nb\n",
    );
    check_unknown("dedup", "{}", "x 1\nx 2\nx 3\nx 4\nx 5\n");
    check_unknown("dedup", "{}", "x\nx\nx\n");
}

/// A log of records that differ in one line: none of the others goes.
#[test]
fn dedup_folds_a_record_as_a_whole() {
    let trace = |n: u32, last: u32| {
        format!(
            "10:00:0{n}Z ERROR failed\njava.io.IOException: full\n\tat a.B.c(B.java:{last})\n\tat a.B.main(B.java:9)\nCaused by: x.Y: no\n\tat x.Y.z(Y.java:2)\n"
        )
    };
    let traces: String = (0..6).map(|n| trace(n, n)).collect();
    let (shown, _) = select("dedup", "{}", &Lines::of(&traces));
    for line in traces
        .lines()
        .filter(|line| !line.ends_with("ERROR failed"))
    {
        let n_shown = shown.iter().filter(|shown| *shown == line).count();
        let n_raw = traces.lines().filter(|raw| *raw == line).count();
        assert_eq!(n_shown, n_raw, "{line}: {shown:?}");
    }
    let ready = |n: u32| {
        let state = ["false", "true", "true"][n as usize % 3];
        format!("10:00:0{n}Z health of service-{n}\n  replicas: 3\n  ready: {state}\n")
    };
    check_unknown("dedup", "{}", &(0..9).map(ready).collect::<String>());
    let python = |n: u32| {
        let prefix = format!("May  1 10:00:0{n} host shop[812]: ");
        [
            "Traceback (most recent call last):",
            "  File \"a.py\", line 7, in f",
            &format!("KeyError: {n}"),
        ]
        .map(|line| format!("{prefix}{line}\n"))
        .concat()
    };
    check_unknown("dedup", "{}", &(0..6).map(python).collect::<String>());
    let json = |n: u32| format!("{{\n  \"order\": {n},\n  \"state\": \"refunded\"\n}}\n");
    check_unknown("dedup", "{}", &(0..6).map(json).collect::<String>());
    check(
        "dedup",
        "{}",
        &(json(1).repeat(5) + "done\n"),
        "{\n  \"order\": 1,\n  \"state\": \"refunded\"\n}\n~ these 4 lines 4 more times, the last below\n{\n  \"order\": 1,\n  \"state\": \"refunded\"\n}\ndone\n",
    );
}

/// What failed is told by what stands before: a job's failure is not that of the job before it.
#[test]
fn dedup_folds_a_diagnostic_only_with_what_stands_between() {
    let job = |n: u32| format!("job {n} started\ncheckout done\nERROR: exit code 1\n");
    let jobs: String = (1..=6).map(job).collect();
    let (shown, _) = select("dedup", "{}", &Lines::of(&jobs));
    let n_errors = shown
        .iter()
        .filter(|line| line.starts_with("ERROR"))
        .count();
    assert_eq!(n_errors, 6, "{shown:?}");
    let block = "retrying\nERROR: connection reset\nWARN: slow\n".repeat(9) + "done\n";
    check(
        "dedup",
        "{}",
        &block,
        "retrying\n~ 8 more like it, the last below\nERROR: connection reset\nWARN: slow\n~ 8 more like it, the last below\nERROR: connection reset\n~ 7 more like it, the last below\nretrying\nERROR: connection reset\nWARN: slow\ndone\n",
    );
    check(
        "dedup",
        "{}",
        &("ERROR: connection reset\n".repeat(5) + "done\n"),
        "ERROR: connection reset\n~ 4 more like it, the last below\nERROR: connection reset\ndone\n",
    );
    let order = |n: u32| format!("shipped order {} to customer 88120\n", 10_430 + n);
    check_unknown("dedup", "{}", &(0..30).map(order).collect::<String>());
}

#[test]
fn moments_are_told_from_other_numbers() {
    let normal = |line: &str| {
        let mut normal = String::new();
        crate::dedup::normalise(line, &mut normal);
        normal.replace('\u{1}', "T")
    };
    for (line, expect) in [
        ("2026-01-02 03:04:05,678 x", "T x"),
        ("[2026-01-02T03:04:05.678901Z] x", "[T] x"),
        ("02/Jan/2026:03:04:05 +0000 x", "T x"),
        ("Jan  2 03:04:05 host x", "T host x"),
        ("[ 1234.567890] x", "T x"),
        (
            "order 5f1e0b7a-3c1d-4e7a-9b61-0123456789ab.",
            "order 5f1e0b7a-3c1d-4e7a-9b61-0123456789ab.",
        ),
        (
            "request_id=5f1e0b7a-3c1d-4e7a-9b61-0123456789ab.",
            "request_id=T.",
        ),
        (
            "2026-02-01 00:00:01 no data of 2026-01-05",
            "T no data of 2026-01-05",
        ),
        ("no data of 2026-01-05", "no data of 2026-01-05"),
        ("00:00:01 took 09:47:30", "T took 09:47:30"),
        ("backup took 09:47:30", "backup took 09:47:30"),
        (
            "May  1 10:00:00 host shop[7]: 2026-05-01 10:00:00,123 x",
            "T host shop[7]: T x",
        ),
        (
            "May  1 10:00:00 host kernel: [ 12.345678] x",
            "T host kernel: T x",
        ),
        ("web-1  | 2026-05-01T10:00:00Z 10:00:00 x", "web-1  | T T x"),
        (
            "1.2.3.4 - - [02/Jan/2026:03:04:05 +0000] x",
            "1.2.3.4 - - [T] x",
        ),
        ("2026/01/02 x", "T x"),
        ("a.rs:12:34: x", "a.rs:12:34: x"),
        (
            "port 2026-01 v1.2.3 10.0.0.1:8080",
            "port 2026-01 v1.2.3 10.0.0.1:8080",
        ),
        ("x2026-01-02", "x2026-01-02"),
        ("März 12:00:00", "März T"),
    ] {
        assert_eq!(normal(line), expect, "{line}");
    }
}

#[test]
fn test_summary_keeps_a_go_test_without_a_verdict() {
    check(
        "test_summary",
        "",
        "=== RUN   TestA\n--- PASS: TestA (0.00s)\n=== RUN   TestLeaves\nFAIL\tx\t0.1s\n",
        "=== RUN   TestLeaves\nFAIL\tx\t0.1s\n",
    );
}

#[test]
fn test_summary_reads_the_workers_of_pytest() {
    check(
        "test_summary",
        "",
        "=== test session starts ===\na.py::test_a \na.py::test_b \na.py::test_dies \n[gw0] [ 50%] PASSED a.py::test_a \n[gw1] [100%] FAILED a.py::test_b \n=== 1 failed, 1 passed in 0.1s ===\n",
        "a.py::test_dies \n[gw1] [100%] FAILED a.py::test_b \n=== 1 failed, 1 passed in 0.1s ===\n",
    );
}

#[test]
fn test_summary_puts_no_control_character_into_a_note() {
    check(
        "test_summary",
        "",
        "=== FAILURES ===\n___ test_a[\t] ___\nE   assert 0\n___ test_b ___\nE   assert 0\n=== 2 failed in 0.1s ===\n",
        "~ FAILURES:\n___ test_a[\t] ___\nE   assert 0\n~ test_b\nE   assert 0\n=== 2 failed in 0.1s ===\n",
    );
}

#[test]
fn test_summary_knows_no_other_output() {
    check_unknown("test_summary", "{}", "hello\nworld\n");
    check_options("test_summary", r#"{"max": 1}"#, "unknown field `max`");
}

#[test]
fn names_are_unique_and_schemas_are_json() {
    for (idx, definition) in STRATEGIES.iter().enumerate() {
        assert!(
            STRATEGIES[idx + 1..]
                .iter()
                .all(|other| other.name != definition.name)
        );
        let schema: serde_json::Value = serde_json::from_str(&(definition.schema)()).unwrap();
        assert_eq!(schema["additionalProperties"], false, "{}", definition.name);
        check_options(definition.name, "[", "EOF");
    }
    check_options("nonsense", "{}", "no strategy `nonsense`");
}

proptest! {
    #[test]
    fn a_selection_is_always_in_order(lines in prop::collection::vec(r"[ -~é]{0,30}", 0..60), strategy_idx in 0..9_usize) {
        let definition = &STRATEGIES[strategy_idx];
        let options = match definition.name {
            "strip_noise" | "keep_matching" | "strip_annotated" => r#"{"patterns": ["[a-m]"]}"#,
            "truncate" => r#"{"head": 3, "tail": 3}"#,
            "git_diff" => r#"{"max_diff_lines": 3}"#,
            _ => "{}",
        };
        let text = lines.join("\n");
        let lines = Lines::of(&text);
        let selection = create(definition.name, options).unwrap().apply(&Input { command: "x", exit_code: None, lines: &lines });
        let mut at = 0;
        for piece in &selection.pieces {
            if let Piece::Keep(range) = piece {
                prop_assert!(range.start >= at && range.end > range.start && range.end <= lines.len() || lines.is_empty());
                at = range.end;
            }
        }
        prop_assert!(selection.told.is_sorted_by(|one, other| one.end < other.start));
    }
}

#[test]
fn a_failure_is_named_with_its_file() {
    let rows = "=== test session starts ===\na.py F.  [ 50%]\nb.py F  [100%]\n";
    let blocks = "=== FAILURES ===\n___ test_x ___\nclosed\n___ test_x ___\n[XPASS(strict)] \n___ T.test_y[a - b] ___\nno\n";
    let list = "=== short test summary info ===\nFAILED a.py::test_x - closed\nFAILED b.py::test_x\nFAILED b.py::T::test_y[a - b] - no\n";
    let total = "=== 3 failed in 0.1s ===\n";
    check(
        "test_summary",
        "{}",
        &[rows, blocks, list, total].concat(),
        "~ FAILURES:\n~ a.py::test_x\nclosed\n~ b.py::test_x\n[XPASS(strict)] \n~ b.py::T::test_y[a - b]\nno\n=== 3 failed in 0.1s ===\n",
    );
    // Without the list the rows of signs are what names the file.
    check(
        "test_summary",
        "{}",
        &[rows, blocks, total].concat(),
        "a.py F.  [ 50%]\nb.py F  [100%]\n~ FAILURES:\n~ test_x\nclosed\n~ test_x\n[XPASS(strict)] \n~ T.test_y[a - b]\nno\n=== 3 failed in 0.1s ===\n",
    );
}

#[test]
fn a_list_that_lacks_failures_names_none_of_them() {
    let text = "=== FAILURES ===\n___ test_x ___\none\n___ test_x ___\ntwo\n=== short test summary info ===\nFAILED b.py::test_x - two\n=== 2 failed in 0.1s ===\n";
    check(
        "test_summary",
        "{}",
        text,
        "~ FAILURES:\n~ test_x\none\n~ test_x\ntwo\n=== short test summary info ===\nFAILED b.py::test_x - two\n=== 2 failed in 0.1s ===\n",
    );
}

#[test]
fn truncate_shows_the_report_of_tests_whole() {
    let steps = "cc -c x.c\n".repeat(9);
    let report = "=== test session starts ===\n=== FAILURES ===\n___ test_x ___\nhelp.py:3: in f\nmain.py:4: Error\n=== short test summary info ===\nFAILED a.py::test_x - no\n=== 1 failed in 0.1s ===\n";
    check(
        "truncate",
        r#"{"head": 1, "tail": 1, "reports": true}"#,
        &[&steps, report, "make: *** [test] Error 1\n"].concat(),
        "cc -c x.c\n~ lines 2-8 omitted\ncc -c x.c\n~ FAILURES:\n~ a.py::test_x\nhelp.py:3: in f\nmain.py:4: Error\n=== 1 failed in 0.1s ===\nmake: *** [test] Error 1\n",
    );
}

#[test]
fn truncate_cuts_between_records_and_counts_them() {
    let commit = |n: u32| format!("commit {n}abcdef\n\n    subject {n}\n    error: of {n}\n");
    let text = [commit(1), commit(2), commit(3), commit(4)].concat();
    let options =
        r#"{"head": 9, "tail": 0, "record": "^commit [0-9a-f]{7,}", "record_name": "commit"}"#;
    let expect = [
        &commit(1),
        &commit(2),
        "~ 2 more commits follow: lines 9-16 omitted\n",
    ];
    check(
        "truncate",
        options,
        &text,
        &expect.map(str::to_owned).concat(),
    );
}

#[test]
fn truncate_shows_rows_that_are_not_as_the_others() {
    let pods = |n: u32, row: &str| format!("web-{n}  {row}  3d\n");
    let running =
        |from: u32, to: u32| -> String { (from..to).map(|n| pods(n, "2/2  Running")).collect() };
    let odd = pods(5, "0/1  Pending") + &pods(6, "1/2  Running") + &pods(7, "3/3  Running");
    let text = [
        "NAME  READY  STATUS  AGE\n".to_owned(),
        running(0, 5),
        odd.clone(),
        running(8, 30),
        "\nNAME  STATUS  READY\nnode-1  Ready  1/1\nnode-2  NotReady  1/1\nnode-3  Ready  1/1\n\n"
            .to_owned(),
        running(30, 35),
    ]
    .concat();
    let options = r#"{"head": 2, "tail": 2, "rows": [{"columns": ["READY", "STATUS"], "usual": "^(?:Running|Ready)$"}]}"#;
    let kept = [pods(5, "0/1  Pending"), pods(6, "1/2  Running")].concat();
    let expect = [
        "NAME  READY  STATUS  AGE\n",
        &running(0, 1),
        "~ lines 3-40 omitted except for 3 notable rows\n",
        &kept,
        "node-2  NotReady  1/1\n",
        &running(33, 35),
    ];
    check("truncate", options, &text, &expect.concat());
}

#[test]
fn truncate_counts_rows_that_say_the_same() {
    let pods = |kind: &str, n: u32, said: &str| -> String {
        (0..n).map(|n| format!("{kind}-{n}  {said}\n")).collect()
    };
    let text = [
        "NAME  READY  STATUS\n".to_owned(),
        pods("well", 30, "1/1  Running"),
        pods("new", 60, "0/1  Pending"),
        pods("old", 22, "0/1  Error"),
        pods("last", 30, "1/1  Running"),
    ]
    .concat();
    let options = r#"{"head": 1, "tail": 1, "rows": [{"columns": ["READY", "STATUS"], "usual": "^Running$"}]}"#;
    let expect = [
        "NAME  READY  STATUS\n~ lines 2-142 omitted except for 40 notable rows; 40 more say 0/1 Pending; 2 more say 0/1 Error\n",
        &pods("new", 20, "0/1  Pending"),
        &pods("old", 20, "0/1  Error"),
        "last-29  1/1  Running\n",
    ];
    check("truncate", options, &text, &expect.concat());
}

#[test]
fn truncate_shows_rows_by_their_values() {
    let mut text = "Filesystem  Use%  Mounted on\n".to_owned();
    for n in 0..20 {
        let used = if n % 10 == 4 { 100 } else { 25 };
        text += &format!("/dev/sd{n}  {used}%  /mnt/95% {n}\n");
    }
    text += "/dev/sdx  1%  /old <gone>\n/dev/sdy  1%  /mnt\n";
    let options = r#"{"head": 2, "tail": 1, "rows": [{"columns": ["Use%"], "pattern": "^(?:9[0-9]|[0-9]{3})%$"}, {"pattern": "<gone>$"}]}"#;
    let expect = "\
Filesystem  Use%  Mounted on
/dev/sd0  25%  /mnt/95% 0
~ lines 3-22 omitted except for 3 notable rows
/dev/sd4  100%  /mnt/95% 4
/dev/sd14  100%  /mnt/95% 14
/dev/sdx  1%  /old <gone>
/dev/sdy  1%  /mnt
";
    check("truncate", options, &text, expect);
    for rows in [
        r#"{}"#,
        r#"{"columns": ["A"]}"#,
        r#"{"columns": ["A"], "pattern": "a", "usual": "b"}"#,
    ] {
        let options = format!(r#"{{"rows": [{rows}]}}"#);
        check_options("truncate", &options, "one of `pattern`, `usual` and");
    }
    check_options("truncate", r#"{"rows": [{"usual": "a"}]}"#, "no `columns`");
    check_options(
        "truncate",
        r#"{"rows": [{"pattern": "("}]}"#,
        "unclosed group",
    );
}

#[test]
fn findings_that_say_the_same_are_one_with_every_place() {
    let options = r#"{"format": "lint"}"#;
    check(
        "group_by_rule",
        options,
        "a.py:1:2: F821 undefined name 'x'\na.py:3:2: F821 undefined name 'y'\na.py:4:1: E1 other\nb.py:9:2: F821 undefined name 'x'\nFound 4\n",
        "a.py:1:2: F821 undefined name 'x'\n~ 2 more: a.py:3:2 y, b.py:9:2 x\na.py:4:1: E1 other\nFound 4\n",
    );
    check(
        "group_by_rule",
        options,
        "/a.js\n  1:2  error  No var  no-var\n  3:2  error  No var  no-var\n\n/b.js\n  5:6  error  No var  no-var\n",
        "/a.js\n  1:2  error  No var  no-var\n~ no-var: 3:2\n/b.js\n~ no-var: 5:6\n",
    );
    // What is not the same is shown, and an error between findings is none of them.
    check(
        "group_by_rule",
        options,
        "a.ts(1,2): error TS1: No.\nerror: it broke\n   ~~~\na.ts(3,2): error TS1: Yes.\n",
        "a.ts(1,2): error TS1: No.\nerror: it broke\n   ~~~\na.ts(3,2): error TS1: Yes.\n",
    );
}

#[test]
fn a_log_is_folded_by_source_and_template() {
    let line = |n: u32| format!("web | 10:00:0{n}Z GET / {n}ms\ndb  | 10:00:0{n}Z wrote\n");
    let text = [
        line(1),
        line(2),
        line(3),
        line(4),
        "web | 10:00:05Z GET / 4000ms\n".to_owned(),
    ]
    .concat();
    check(
        "dedup",
        "{}",
        &text,
        "web | 10:00:01Z GET / 1ms\ndb  | 10:00:01Z wrote\n~ these 2 lines 3 more times, the last below\nweb | 10:00:04Z GET / 4ms\ndb  | 10:00:04Z wrote\nweb | 10:00:05Z GET / 4000ms\n",
    );
    // Of errors nothing but the time may differ.
    let error = |n: u32| format!("10:00:0{n}Z ERROR request deadbeef0{n} took {n}ms\n");
    check_unknown("dedup", "{}", &(1..=6).map(error).collect::<String>());
}

#[test]
fn omitted_lines_are_named() {
    let options =
        r#"{"patterns": ["(?:^|[ ])(?:target|\\.git)/?$"], "name_pattern": "([^ ]+)/?$"}"#;
    check(
        "strip_annotated",
        options,
        "src\ntarget\n.git\nREADME\n",
        "src\nREADME\n~ omitted: target .git\n",
    );
    check(
        "strip_annotated",
        options,
        ".\n├── target\n│   └── debug\n└── src\n    └── lib.rs\n",
        ".\n└── src\n    └── lib.rs\n~ omitted: target with 1 line\n",
    );
    check(
        "strip_annotated",
        options,
        ".\n|-- target\n|   |-- a\n|   `-- b\n`-- src\n",
        ".\n`-- src\n~ omitted: target with 2 lines\n",
    );
    // Modes and names of files are no branches.
    check(
        "strip_annotated",
        options,
        "drwxr-xr-x 2 dev dev 4096 target\n-rw-r--r-- 1 dev dev 9 a\n-rw-r--r-- 1 dev dev 9 b\n",
        "-rw-r--r-- 1 dev dev 9 a\n-rw-r--r-- 1 dev dev 9 b\n~ omitted: target\n",
    );
}

#[test]
fn a_list_is_noise_below_its_heading_only() {
    let options =
        r#"{"patterns": ["^noise"], "lists": [{"heading": "^New packages:$", "item": "^  "}]}"#;
    check(
        "strip_noise",
        options,
        "  a\nNew packages:\n  b\n  error: c\n  d\nFailed suites:\n  e\n",
        "  a\n  error: c\n  d\nFailed suites:\n  e\n",
    );
    check_options(
        "strip_noise",
        r#"{"patterns": ["a"], "lists": [{"heading": "b", "item": "("}]}"#,
        "unclosed group",
    );
}

#[test]
fn truncate_knows_diagnostics_in_whatever_language() {
    let options = r#"{"max_lines": 2, "head": 1, "tail": 1}"#;
    let told = [
        "m40.c:1:16: fel: x",
        "src/m40.c:40:5: błąd: x",
        "a.c:3: varning: x",
        "a.cc:3:1: schwerwiegender Fehler: x",
        "a.c:3:1: erreur\u{a0}: x",
    ];
    let other = [
        "a.c:1:16: note: x",
        "a.c:1:    name: value",
        "a.c:1:name: value",
        "12:30:01: fel: x",
        "10.0.0.1:80: fel: x",
        "a.c:1: x = y ? 1 : 2",
        "a.c:1: a word of many: x",
        "a b.c:1: fel: x",
    ];
    // Below a diagnostic its place is looked for.
    let between = ["-"; 3];
    let text = ["first"].into_iter().chain(told).chain(between);
    let text = text.chain(other).chain(["last"]);
    let text: String = text.map(|line| format!("{line}\n")).collect();
    let expect = format!(
        "first\n~ lines 2-17 omitted except for 5 diagnostic lines\n{}\nlast\n",
        told.join("\n")
    );
    check("truncate", options, &text, &expect);
}
