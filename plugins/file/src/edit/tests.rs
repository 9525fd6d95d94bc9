//! One place or none, and the rest of the file untouched.

use serde_json::json;

use crate::fixture::{Fixture, args};

fn edit(fixture: &Fixture, old: &str, new: &str) -> String {
    let arguments = json!({"path": "f", "old_string": old, "new_string": new});
    fixture.told(super::run(&fixture.area, &args(arguments)))
}

fn check(before: &[u8], (old, new): (&str, &str), after: &[u8]) {
    let fixture = Fixture::new(&[]);
    fixture.put("f", before);
    let told = edit(&fixture, old, new);
    assert!(told.starts_with("Edited f (line "), "{told}");
    assert_eq!(std::fs::read(fixture.at("f")).unwrap(), after);
    assert_eq!(fixture.tree(), ["f"]);
}

fn refused(before: &[u8], (old, new): (&str, &str), expected: &str) {
    let fixture = Fixture::new(&[]);
    fixture.put("f", before);
    assert_eq!(edit(&fixture, old, new), expected);
    assert_eq!(std::fs::read(fixture.at("f")).unwrap(), before);
}

#[test]
fn one_place_is_replaced() {
    check(b"one two three", ("two", "2"), b"one 2 three");
    check(b"one two three", (" two", ""), b"one three");
    check(b"caf\xe9 au lait", ("lait", "the"), b"caf\xe9 au the");
}

#[test]
fn line_ends_and_marks_stay() {
    check(
        b"\xef\xbb\xbfa\r\nb\r\nc\r\n",
        ("a\nb", "x\ny\nz"),
        b"\xef\xbb\xbfx\r\ny\r\nz\r\nc\r\n",
    );
    check(b"a\r\nb\r\n", ("b", "b\nc"), b"a\r\nb\r\nc\r\n");
    check(b"a\r\nb\r\n", ("a\r\nb", "x\r\ny"), b"x\r\ny\r\n");
    check(b"a\nb\r\nc\n", ("c", "x\ny"), b"a\nb\r\nx\ny\n");
}

#[test]
fn the_change_is_shown() {
    let fixture = Fixture::new(&[("f", "a\nb\nc\n")]);
    let expected =
        "Edited f (line 2, +1 -1 lines)\n\n--- a/f\n+++ b/f\n@@ -1,3 +1,3 @@\n a\n-b\n+x\n c";
    assert_eq!(edit(&fixture, "b", "x"), expected);
}

#[test]
fn anything_but_one_place_is_refused() {
    refused(
        b"a\nb\na\n",
        ("a", "x"),
        "invalid: `old_string` occurs 2 times in `f`, at lines 1, 3; make it longer so that it occurs once",
    );
    refused(
        b"aaa",
        ("aa", "x"),
        "invalid: `old_string` occurs 2 times in `f`, at lines 1, 1; make it longer so that it occurs once",
    );
    refused(
        b"abc",
        ("x", "y"),
        "permanent: `old_string` not found in `f`; it must match the file exactly",
    );
    refused(
        b"fn a() {\n    b();\n}\n",
        ("fn a() {\n\tb();\n}", "x"),
        "permanent: `old_string` not found in `f`; the text at line 1 differs only in white space",
    );
    for (text, old) in [
        (&b"a\nlet\tx = 1;\n"[..], "let x = 1;"),
        (b"a\r\n  one  two\nthree\r\nfour\n", "ne two\nthree\nfo"),
    ] {
        refused(
            text,
            (old, "y"),
            "permanent: `old_string` not found in `f`; the text at line 2 differs only in white space",
        );
    }
    refused(
        b"a",
        ("", "x"),
        "invalid: `old_string` is empty; `write` makes a new file",
    );
    refused(
        b"a",
        ("a", "a"),
        "invalid: `old_string` and `new_string` are the same",
    );
    refused(
        b"a\0b",
        ("a", "x"),
        "permanent: `f` is not text: binary data, 3 bytes",
    );
}

#[cfg(unix)]
#[test]
fn a_link_stays_a_link() {
    let fixture = Fixture::new(&[("real", "old")]);
    fixture.link("real", "f");
    assert!(edit(&fixture, "old", "new").starts_with("Edited f"));
    assert_eq!(fixture.content("real"), "new");
    assert_eq!(fixture.tree(), ["f@", "real"]);
}

#[test]
fn a_change_too_large_for_a_diff_is_counted() {
    let fixture = Fixture::new(&[("f", "head\nx\ntail\n")]);
    let told = edit(&fixture, "x\n", &"new line\n".repeat(130_000));
    assert_eq!(told, "Edited f (line 2, +130000 -1 lines)");
}

#[cfg(unix)]
#[test]
fn a_file_with_other_names_is_parted_from_them() {
    let fixture = Fixture::new(&[("f", "old")]);
    std::fs::hard_link(fixture.at("f"), fixture.at("g")).unwrap();
    let told = edit(&fixture, "old", "new");
    assert!(told.contains("1 other name (hard links)"), "{told}");
    assert_eq!(fixture.content("g"), "old");
    assert!(!edit(&fixture, "new", "old").contains("hard links"));
}
