use proptest::prelude::*;

use super::{line_ends, lines, n_line_ends};

fn check(text: &str) {
    assert_eq!(lines(text), text.lines().collect::<Vec<_>>(), "{text:?}");
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
    fn lines_of_anything_are_those_of_the_standard_library(text in "(\n|\r|\u{b}|\t|a|é|\u{8a}|\u{a0a}){0,60}") {
        check(&text);
    }
}
