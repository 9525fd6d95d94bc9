use proptest::prelude::*;

use super::{Lines, line_ends, n_line_ends};

fn check(text: &str) {
    let lines = Lines::of(text);
    let expect: Vec<_> = text.lines().collect();
    assert_eq!(lines.iter().collect::<Vec<_>>(), expect, "{text:?}");
    assert_eq!(lines.len(), expect.len(), "{text:?}");
    for (line_idx, line) in expect.iter().enumerate() {
        assert_eq!(lines.get(line_idx), Some(*line), "{text:?}");
        let rest: Vec<_> = lines.range(line_idx..expect.len()).collect();
        assert_eq!(rest, expect[line_idx..], "{text:?}");
        let mut block = String::new();
        lines.push_block(line_idx..line_idx + 1, &mut block);
        let ends = ["\n", "\r\n"].map(|end| format!("{line}{end}"));
        assert!(ends.contains(&block), "{text:?}");
    }
    assert_eq!(lines.get(expect.len()), None, "{text:?}");
    let is_run = |pair: &[&str]| pair.iter().all(|line| line.trim().is_empty());
    let has_run = expect.windows(2).any(is_run);
    assert_eq!(lines.has_blank_run(), has_run, "{text:?}");
    let ends: Vec<usize> = text.match_indices('\n').map(|(at, _)| at).collect();
    assert_eq!(
        line_ends(text.as_bytes()).collect::<Vec<_>>(),
        ends,
        "{text:?}"
    );
    assert_eq!(n_line_ends(text.as_bytes()), ends.len(), "{text:?}");
}

/// What is folded in place is what a copy without these lines has.
fn check_folded(text: &str) {
    let mut expect = String::new();
    let mut was_blank = false;
    for line in text.split_inclusive('\n') {
        let is_blank = line.trim().is_empty();
        if !(std::mem::replace(&mut was_blank, is_blank) && is_blank) {
            expect.push_str(line);
        }
    }
    let mut lines = Lines::of(text);
    let n_lines = lines.len();
    if !lines.fold() {
        assert_eq!(lines.len(), n_lines, "{text:?}");
        return;
    }
    let copy = Lines::of(&expect);
    assert_eq!(lines.to_text(), expect, "{text:?}");
    assert_eq!(lines.n_bytes(), expect.len(), "{text:?}");
    assert_eq!(lines.is_ended(), expect.ends_with('\n'), "{text:?}");
    assert_eq!(lines.len(), copy.len(), "{text:?}");
    assert!(!lines.has_blank_run(), "{text:?}");
    assert!(lines.iter().eq(copy.iter()), "{text:?}");
    for start in 0..copy.len() {
        assert_eq!(lines.at(start), copy.at(start), "{text:?}");
        let place = lines.place(start);
        assert_eq!(
            text[place].trim_end_matches('\r'),
            copy.at(start).trim_end_matches('\r')
        );
        assert!(
            lines
                .range(start..copy.len())
                .eq(copy.range(start..copy.len())),
            "{text:?}"
        );
        for end in start..=copy.len() {
            let (mut ours, mut theirs) = (String::new(), String::new());
            lines.push_block(start..end, &mut ours);
            copy.push_block(start..end, &mut theirs);
            assert_eq!(ours, theirs, "{text:?}");
        }
    }
}

#[test]
fn runs_of_blank_lines_are_folded_in_place() {
    let long = "a line as long as a place in the table takes";
    for ends in ["", "\n", "\n\n", "\n\n\n", "\n \n\t", "\n\n  "] {
        check_folded(&format!("{long}{ends}"));
        check_folded(&format!("{ends}{long}\n\n \n{long}{ends}"));
        check_folded(&format!("{long}\n\n\n\n{long}\n\n{long}{ends}"));
    }
}

#[test]
fn lines_are_those_of_the_standard_library() {
    for text in [
        "",
        "\n",
        "a",
        "a\n",
        "a\r\nb\r",
        "\n\n\n\n\n\n\n\n\n\n\n",
        "\u{a0a}\u{b}\t\n\u{8a}x\n",
    ] {
        check(text);
    }
}

proptest! {
    #[test]
    fn lines_of_anything_are_those_of_the_standard_library(text in "(\n|\r|\u{b}|\t|a|é|\u{8a}|\u{a0a}|[a-z]{40}){0,60}") {
        check(&text);
    }

    #[test]
    fn runs_in_anything_are_folded_in_place(text in "(\n|\n\n|\n \n|\t|a|é|\u{a0a}|\u{a0}|[a-z]{40}){0,40}") {
        check_folded(&text);
        check_folded(&format!("{}{text}", "a".repeat(text.len() * 16)));
    }
}

/// Lines that are left out are as good as not there.
fn check_only(text: &str, is_kept: impl Fn(usize) -> bool) {
    let lines = Lines::of(text);
    let kept = || (0..lines.len()).filter(|line_idx| is_kept(*line_idx));
    let ranges = kept().map(|line_idx| line_idx..line_idx + 1);
    let copied: String = kept()
        .map(|line_idx| lines.at(line_idx).to_owned() + "\n")
        .collect();
    let copy = Lines::of(&copied);
    let Some(only) = lines.only(ranges) else {
        return;
    };
    assert_eq!(only.len(), copy.len(), "{text:?}");
    assert!(only.iter().eq(copy.iter()), "{text:?}");
    assert_eq!(
        only.to_text().lines().collect::<Vec<_>>(),
        copied.lines().collect::<Vec<_>>()
    );
    for line_idx in 0..copy.len() {
        assert_eq!(only.at(line_idx), copy.at(line_idx), "{text:?}");
        assert_eq!(only.severity(line_idx), copy.severity(line_idx), "{text:?}");
        let from_there = only.range(line_idx..only.len());
        assert!(from_there.eq(copy.range(line_idx..copy.len())), "{text:?}");
    }
}

#[test]
fn lines_without_others_are_those_of_a_copy() {
    let text = "warning: first of all\nE   it is an error\nan ordinary line of some length\n\nerror: broken\nFAILED a.py::test_b\n  12:5  error  'x' is not used\nthe end, which is ordinary";
    for kept in 0..1_usize << 8 {
        check_only(text, |line_idx| kept >> line_idx & 1 == 1);
        check_only(&format!("{text}\n"), |line_idx| kept >> line_idx & 1 == 1);
    }
}
