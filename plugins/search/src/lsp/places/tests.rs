use super::{Told, path_of, told, uri_of};

fn places(answer: &str) -> Vec<String> {
    let place = |told: &Told| format!("{}:{}-{}", told.file, told.start, told.end);
    told(None, answer).iter().map(place).collect()
}

#[test]
fn places_are_read_in_whatever_form_they_come() {
    for (answer, expect) in [
        (
            r#"[{"uri":"file:///w/a.rs","range":{"start":{"line":3,"character":0},"end":{"line":5,"character":1}}}]"#,
            vec!["file:///w/a.rs:3-5"],
        ),
        (
            r#"{"symbols":[{"name":"x","location":{"uri":"file:///w/a.rs","range":{"start":{"line":3}}}},{"file":"b.rs","line":7}]}"#,
            vec!["file:///w/a.rs:3-3", "b.rs:7-7"],
        ),
        (
            r#"{"targetUri":"file:///w/a.rs","targetRange":{"start":{"line":1},"end":{"line":0}}}"#,
            vec!["file:///w/a.rs:1-1"],
        ),
        (
            r#"{"path":"a.rs","startLine":2,"endLine":4}"#,
            vec!["a.rs:2-4"],
        ),
        (r#"{"path":"a.rs","line":-1}"#, vec![]),
        (r#"{"path":"a.rs","line":99999999999}"#, vec![]),
        (
            "a.rs:12:4 fn x\n- b.rs:3\nnothing: here\n",
            vec!["a.rs:12-12", "b.rs:3-3"],
        ),
        (
            "Found 2 symbols matching \"x\":\n\n• x (Function) at /w/a b.rs:12:4\n• y.z (Variable) at file:///w/c.rs:3:1\nfn x in d.rs:7",
            vec!["/w/a b.rs:12-12", "file:///w/c.rs:3-3", "d.rs:7-7"],
        ),
        (
            "Results for x (function) at src/a.rs:12:4:\n(/w/b.rs:1)",
            vec!["src/a.rs:12-12", "/w/b.rs:1-1"],
        ),
        ("null", vec![]),
        ("", vec![]),
    ] {
        assert_eq!(places(answer), expect, "{answer}");
    }
}

#[test]
fn answers_without_end_are_cut() {
    let deep = "[".repeat(100) + &"]".repeat(100);
    assert_eq!(places(&deep), Vec::<String>::new());
    let many = vec![r#"{"path":"a.rs","line":1}"#; 10_000].join(",");
    assert_eq!(told(None, &format!("[{many}]")).len(), super::PLACES_MAX);
    assert_eq!(
        told(None, &"a.rs:1\n".repeat(10_000)).len(),
        super::PLACES_MAX
    );
}

#[test]
fn uris_name_files_of_this_machine_only() {
    for (text, expect) in [
        ("file:///w/a%20b.rs", Some("/w/a b.rs")),
        ("file://localhost/w/a.rs", Some("/w/a.rs")),
        ("file://elsewhere/w/a.rs", None),
        ("https://example.com/a.rs", None),
        ("file:///w/%zz", None),
        ("file:///w/%2", None),
        ("src/a.rs", Some("src/a.rs")),
    ] {
        let path = path_of(text);
        assert_eq!(
            path.as_deref().and_then(|path| path.to_str()),
            expect,
            "{text}"
        );
    }
    assert_eq!(uri_of("/w/ä b.rs".as_ref()), "file:///w/%C3%A4%20b.rs");
}
