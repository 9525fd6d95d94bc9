//! Hunks, their line numbers, and the ends of files.

use super::{counts, unified};

/// The diff without its file header.
fn check(old: &str, new: &str, expected: &str) {
    let diff = unified("f", old.as_bytes(), new.as_bytes()).unwrap();
    let body = diff.text.strip_prefix("--- a/f\n+++ b/f\n").unwrap();
    assert_eq!(body, expected);
}

/// Lines `1` to `n`, with some of them replaced.
fn numbers(n: usize, changed: &[(usize, &str)]) -> String {
    let line = |number| match changed.iter().find(|(at, _)| *at == number) {
        Some((_, text)) => (*text).to_owned(),
        None => format!("{number}\n"),
    };
    (1..=n).map(line).collect()
}

#[test]
fn small_changes() {
    check("a\n", "b\n", "@@ -1 +1 @@\n-a\n+b");
    check("", "a\n", "@@ -0,0 +1 @@\n+a");
    check("a\n", "", "@@ -1 +0,0 @@\n-a");
    check(
        "a\nb",
        "a\nb\n",
        "@@ -1,2 +1,2 @@\n a\n-b\n\\ No newline at end of file\n+b",
    );
    check("a\na\na\n", "a\na\n", "@@ -1,3 +1,2 @@\n a\n a\n-a");
}

#[test]
fn numbers_count_from_the_start_of_the_file() {
    check(
        &numbers(100, &[]),
        &numbers(100, &[(50, "x\n")]),
        "@@ -47,7 +47,7 @@\n 47\n 48\n 49\n-50\n+x\n 51\n 52\n 53",
    );
    check(
        &numbers(100, &[]),
        &numbers(100, &[(20, ""), (80, "80\nnew\n")]),
        "@@ -17,7 +17,6 @@\n 17\n 18\n 19\n-20\n 21\n 22\n 23\n@@ -78,6 +77,7 @@\n 78\n 79\n 80\n+new\n 81\n 82\n 83",
    );
    check(
        &numbers(9, &[]),
        &numbers(9, &[(9, "")]),
        "@@ -6,4 +6,3 @@\n 6\n 7\n 8\n-9",
    );
}

#[test]
fn lines_are_counted_where_no_diff_is_made() {
    for (old, new, expect) in [
        ("a\nb\nc\n", "a\nx\ny\nc\n", (2, 1)),
        ("a\nc\n", "a\nb\nc\n", (1, 0)),
        ("a\nb\nc\n", "a\nc\n", (0, 1)),
        ("a\nb", "a\nb\nc", (2, 1)),
        ("one two\n", "one 2\n", (1, 1)),
        ("", "a\n", (1, 0)),
        ("a\n", "", (0, 1)),
        ("b\n", "ab\n", (1, 1)),
        ("ab\n", "b\n", (1, 1)),
        ("x\nb\nc\n", "x\nab\nc\n", (1, 1)),
    ] {
        assert_eq!(
            counts(old.as_bytes(), new.as_bytes()),
            expect,
            "{old:?} {new:?}"
        );
    }
}

#[test]
fn counts_and_limits() {
    let diff = unified("f", b"a\nb\nc\n", b"a\nx\ny\nc\n").unwrap();
    assert_eq!((diff.added, diff.removed), (2, 1));
    assert_eq!(unified("f", b"a", b"a"), None);
    assert_eq!(unified("f", b"a\0", b"b"), None);
    assert_eq!(unified("f", &[b'a'; 700_000], &[b'b'; 700_000]), None);
    let long = unified("f", b"", "x\n".repeat(1_000).as_bytes()).unwrap();
    assert!(
        long.text.ends_with("… 603 more lines of this diff"),
        "{}",
        &long.text[long.text.len() - 60..]
    );
    assert_eq!(long.added, 1_000);
}
