//! Pages, their ends, and what is refused.

use serde_json::{Value, json};

use crate::fixture::{Fixture, args, structured};

fn told(fixture: &Fixture, arguments: Value) -> String {
    fixture.told(super::run(&fixture.area, &args(arguments)))
}

fn check(content: &[u8], arguments: Value, expected: &str) {
    let fixture = Fixture::new(&[]);
    fixture.put("f", content);
    let mut with_path = json!({"path": "f"});
    with_path
        .as_object_mut()
        .unwrap()
        .extend(arguments.as_object().unwrap().clone());
    assert_eq!(told(&fixture, with_path), expected);
}

#[test]
fn lines_are_numbered_and_paged() {
    check(b"a\nb\nc\n", json!({}), "   1\ta\n   2\tb\n   3\tc");
    check(b"a\nb\nc", json!({"offset": 2}), "   3\tc");
    check(
        b"a\nb\nc",
        json!({"limit": 1}),
        "   1\ta\n… 2 more lines; continue with offset=1",
    );
    check(
        b"a\n\nc\n",
        json!({"offset": 1, "limit": 1}),
        "   2\t\n… 1 more line; continue with offset=2",
    );
    check(b"", json!({}), "`f` is empty");
    check(b"\n", json!({}), "   1\t");
}

#[test]
fn numbers_stand_to_the_right_of_four_places() {
    let check = |number, expected: &str| {
        let mut text = String::new();
        super::push_number(&mut text, number);
        assert_eq!(text, expected);
        assert_eq!(text, format!("{number:>4}"));
    };
    check(0, "   0");
    check(7, "   7");
    check(9_999, "9999");
    check(12_345, "12345");
    check(u64::MAX, "18446744073709551615");
}

#[test]
fn beyond_the_end_names_the_end() {
    check(
        b"a\nb",
        json!({"offset": 2}),
        "invalid: `offset` 2 is beyond the end: `f` has 2 lines",
    );
    check(
        b"",
        json!({"offset": 1}),
        "invalid: `offset` 1 is beyond the end: `f` has 0 lines",
    );
    check(
        b"a\n",
        json!({"limit": 0}),
        "invalid: `limit` must be at least 1",
    );
}

#[test]
fn encodings_stay_readable() {
    check(
        b"\xef\xbb\xbfa\r\nb\r\n",
        json!({}),
        "   1\ta\n   2\tb\n[lines end in CRLF]",
    );
    check(
        b"caf\xe9\n",
        json!({}),
        "   1\tcaf\u{fffd}\n[not UTF-8: unreadable bytes are shown as \u{fffd}]",
    );
    check(
        b"\x89PNG\r\n\x1a\n\0",
        json!({}),
        "permanent: `f` is not text: PNG image, 9 bytes",
    );
}

/// An edit has to find a text with the ends that it has.
#[test]
fn mixed_line_ends_are_told() {
    check(
        b"a\r\nb\nc\r\n",
        json!({}),
        "   1\ta\n   2\tb\n   3\tc\n[line ends are mixed: CRLF, but LF in line 2]",
    );
    check(
        b"a\nb\nc\r\nd\ne",
        json!({"offset": 1}),
        "   2\tb\n   3\tc\n   4\td\n   5\te\n[line ends are mixed: LF, but CRLF in line 3]",
    );
    // The last line has none.
    check(
        b"a\r\nb",
        json!({}),
        "   1\ta\n   2\tb\n[lines end in CRLF]",
    );
    let many = format!("{}{}", "a\r\n".repeat(8), "b\n".repeat(7));
    let fixture = Fixture::new(&[("f", &many)]);
    let told = told(&fixture, json!({"path": "f"}));
    let note = "[line ends are mixed: CRLF, but LF in lines 9, 10, 11, 12, 13 and 2 more]";
    assert!(told.ends_with(note), "{told}");
}

#[test]
fn long_lines_and_long_files_stay_small() {
    let long = "x".repeat(3_000_000);
    check(
        format!("{long}\nend\n").as_bytes(),
        json!({}),
        &format!(
            "   1\t{}… (cut, 2,998,000 bytes more)\n   2\tend",
            "x".repeat(2_000)
        ),
    );
    let many = "0123456789\n".repeat(500_000);
    let fixture = Fixture::new(&[("f", &many)]);
    let page = structured(super::run(
        &fixture.area,
        &args(json!({"path": "f", "offset": 400_000})),
    ));
    assert_eq!(page["lines"], 2_000);
    assert_eq!(page["next_offset"], 402_000);
    assert_eq!(page["total_lines"], 500_000);
    let page = structured(super::run(
        &fixture.area,
        &args(json!({"path": "f", "limit": 500_000})),
    ));
    assert!(
        page["lines"].as_u64().unwrap() < 150_000,
        "the page is bounded in bytes"
    );
}

#[test]
fn what_is_no_file_is_refused() {
    let fixture = Fixture::new(&[("src/main.rs", ""), ("d/", "")]);
    let read = |path: &str| told(&fixture, json!({"path": path}));
    assert_eq!(
        read("d"),
        "permanent: `d` is a directory; `list_directory` shows what it holds"
    );
    assert_eq!(
        read("src/mian.rs"),
        "permanent: `src/mian.rs` does not exist; did you mean `src/main.rs`?"
    );
    #[cfg(unix)]
    {
        // Where a link leads to what is hidden, the tool sees what it sees of one that leads nowhere.
        fixture.link("nothing", "main.rs");
        assert_eq!(read("main.rs"), "permanent: `main.rs` does not exist");
    }
    assert_eq!(
        read("nothing/like/it"),
        "permanent: `nothing/like/it` does not exist"
    );
    assert_eq!(
        read("/etc/passwd"),
        "blocked: `/etc/passwd` is outside the allowed directories: `ROOT`"
    );
}
