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
        let block = lines.block(line_idx..line_idx + 1);
        assert!([*line, &format!("{line}\r")].contains(&block), "{text:?}");
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
}
