//! Matches, context, counts, and files that are omitted.

use serde_json::{Value, json};

use crate::fixture::{Fixture, args, context, structured};

fn told(fixture: &Fixture, arguments: Value) -> String {
    fixture.told(super::run(&fixture.area, &args(arguments), &context()))
}

fn check(files: &[(&str, &str)], arguments: Value, expected: &str) {
    assert_eq!(told(&Fixture::new(files), arguments), expected);
}

#[test]
fn lines_are_found_in_order() {
    let files = [
        ("b.rs", "fn one\nlet two\n"),
        ("a/c.rs", "xx fn\n"),
        (".hidden", "fn"),
    ];
    check(
        &files,
        json!({"pattern": r"\bfn\b"}),
        "a/c.rs:1: xx fn\nb.rs:1: fn one\n(2 matches in 2 files)",
    );
    check(
        &files,
        json!({"pattern": "FN", "case_sensitive": false, "path": "a"}),
        "a/c.rs:1: xx fn\n(1 match in 1 file)",
    );
    check(
        &files,
        json!({"pattern": "two", "path": "b.rs"}),
        "b.rs:2: let two\n(1 match in 1 file)",
    );
    check(
        &files,
        json!({"pattern": "fn", "glob": ["*.rs", "!a"]}),
        "b.rs:1: fn one\n(1 match in 1 file)",
    );
    check(
        &files,
        json!({"pattern": "nothing"}),
        "No matches for: nothing (2 files searched; hidden and ignored files only with `include_ignored`)",
    );
}

#[test]
fn globs_are_relative_to_the_searched_directory_however_they_are_spelled() {
    let fixture = Fixture::new(&[("src/app/a.ts", "foo\n"), ("src/#b", "foo\n")]);
    let here = fixture.area.place("src").unwrap().absolute();
    let ask = |glob: &str| {
        let arguments = json!({"pattern": "foo", "path": "src", "glob": [glob]});
        told(&fixture, arguments)
    };
    for glob in [
        "app/**",
        "./app/**",
        "/app/*.ts",
        &format!("{here}/app/**"),
        &format!("{here}/*/a.ts"),
    ] {
        assert_eq!(
            ask(glob),
            "src/app/a.ts:1: foo\n(1 match in 1 file)",
            "{glob}"
        );
    }
    assert_eq!(ask("#b"), "src/#b:1: foo\n(1 match in 1 file)");
    for (glob, expect) in [
        ("", "`glob`: `` is empty"),
        ("!", "`glob`: `` is empty"),
        (
            "../g/*",
            "`glob`: `../g/*` is relative to `path` and cannot contain `..`; change `path` instead",
        ),
        (
            "app/[a.ts",
            "`glob`: `app/[a.ts` is not a valid glob: unclosed character class; missing ']'",
        ),
    ] {
        assert_eq!(ask(glob), format!("invalid: {expect}"), "{glob}");
    }
    assert_eq!(
        ask("*.rs"),
        "No matches for: foo (0 files searched; no file fits `glob`; hidden and ignored files only with `include_ignored`)"
    );
}

#[test]
fn a_byte_order_mark_is_no_part_of_the_first_line() {
    check(
        &[("marked", "\u{feff}first\n"), ("plain", "first\n")],
        json!({"pattern": "^first"}),
        "marked:1: first\nplain:1: first\n(2 matches in 2 files)",
    );
}

/// In one piece and as a stream: as a tree and by its name.
#[test]
fn utf_16_is_searched_in_either_order() {
    type Order = fn(u16) -> [u8; 2];
    for (order, mark) in [
        (u16::to_le_bytes as Order, "little"),
        (u16::to_be_bytes as Order, "big"),
    ] {
        let fixture = Fixture::new(&[]);
        let wide = |text: &str| -> Vec<u8> { text.encode_utf16().flat_map(order).collect() };
        fixture.put("f", &wide("\u{feff}one\nh\u{e4}t needle\n"));
        for path in [".", "f"] {
            assert_eq!(
                told(&fixture, json!({"pattern": "needle", "path": path})),
                "f:2: h\u{e4}t needle\n(1 match in 1 file)",
                "{mark} {path}"
            );
        }
    }
}

#[test]
fn context_is_shown_around() {
    let text = "1\n2\nhit\n4\n5\n6\n7\nhit\n9\n";
    check(
        &[("f", text)],
        json!({"pattern": "hit", "context": 1}),
        "f-2- 2\nf:3: hit\nf-4- 4\n--\nf-7- 7\nf:8: hit\nf-9- 9\n(2 matches in 1 file)",
    );
    check(
        &[("f", text)],
        json!({"pattern": "hit", "context": 2, "before": 0, "max_results": 1}),
        "f:3: hit\nf-4- 4\nf-5- 5\n… showing first 1 of 2 matches in 1 file",
    );
}

#[test]
fn all_is_counted_and_little_shown() {
    let many = "x\n".repeat(700);
    let files = [("a", many.as_str()), ("b", many.as_str()), ("c", "y\n")];
    let fixture = Fixture::new(&files);
    let text = told(&fixture, json!({"pattern": "x"}));
    assert!(
        text.ends_with("a:100: x\n… showing first 100 of 1,400 matches in 2 files"),
        "{text}"
    );
    let found = structured(super::run(
        &fixture.area,
        &args(json!({"pattern": "x"})),
        &context(),
    ));
    assert_eq!(found["matches"].as_array().unwrap().len(), 100);
    assert_eq!(
        (&found["total_matches"], &found["total_files"]),
        (&json!(1_400), &json!(2))
    );
    assert_eq!(found["files_searched"], 3);
}

#[test]
fn binary_files_give_nothing() {
    let late = format!("hit\n{}\0", "filler\n".repeat(20_000));
    let files = [
        ("early", "hit\0"),
        ("late", late.as_str()),
        ("text", "hit\n"),
    ];
    check(
        &files,
        json!({"pattern": "hit"}),
        "text:1: hit\n(1 match in 1 file)",
    );
    check(
        &files,
        json!({"pattern": "hit", "path": "early"}),
        "No matches for: hit (1 file searched)\n[this file is binary and was not searched]",
    );
}

#[test]
fn line_ends_do_not_matter() {
    check(
        &[("f", "one;\r\ntwo\r\n")],
        json!({"pattern": ";$"}),
        "f:1: one;\n(1 match in 1 file)",
    );
    check(
        &[("f", "one;\ntwo")],
        json!({"pattern": "^two$"}),
        "f:2: two\n(1 match in 1 file)",
    );
}

#[test]
fn long_lines_show_the_match() {
    let text = format!("{}needle{}\n", "a".repeat(5_000), "b".repeat(5_000));
    let told = told(&Fixture::new(&[("f", &text)]), json!({"pattern": "needle"}));
    assert!(
        told.starts_with(&format!("f:1: … {}needlebbb", "a".repeat(100))),
        "{told}"
    );
    assert!(told.len() < 700);
}

#[test]
fn large_files_are_streamed() {
    let text = format!("{}hit\n", "0123456789abcde\n".repeat(800_000));
    check(
        &[("f", &text)],
        json!({"pattern": "hit"}),
        "f:800001: hit\n(1 match in 1 file)",
    );
}

#[test]
fn mistakes_are_one_line() {
    let files = [("f", "")];
    check(
        &files,
        json!({"pattern": ""}),
        "invalid: `pattern` is empty",
    );
    check(
        &files,
        json!({"pattern": "foo("}),
        "invalid: `pattern` \"foo(\" is not a valid regular expression: unclosed group; a `\\` before a special character \
         makes it literal",
    );
    let two_lines = told(&Fixture::new(&files), json!({"pattern": "a\nb"}));
    assert!(
        two_lines.starts_with("invalid: ") && !two_lines.contains('\n'),
        "{two_lines}"
    );
    check(
        &files,
        json!({"pattern": "x", "path": "g"}),
        "permanent: `g` does not exist",
    );
}
