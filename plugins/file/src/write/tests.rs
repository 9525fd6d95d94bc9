//! Whole files or nothing, and links that stay links.

use serde_json::{Value, json};

use crate::fixture::{Fixture, args, structured};

fn told(fixture: &Fixture, path: &str, content: &str) -> String {
    fixture.told(super::run(
        &fixture.area,
        &args(json!({"path": path, "content": content})),
    ))
}

#[test]
fn files_are_made_and_replaced() {
    let fixture = Fixture::new(&[("old", "1\n2\n")]);
    assert_eq!(
        told(&fixture, "a/b/new", "ä"),
        "Wrote 2 bytes to a/b/new (created)"
    );
    assert_eq!(
        told(&fixture, "old", "1\n3\n"),
        "Wrote 4 bytes to old (overwrote 4 bytes)"
    );
    assert_eq!(
        told(&fixture, "old", "1\n3\n"),
        "Wrote 4 bytes to old (unchanged)"
    );
    assert_eq!(fixture.content("old"), "1\n3\n");
    assert_eq!(fixture.tree(), ["a/", "a/b/", "a/b/new", "old"]);
}

#[test]
fn the_change_is_data() {
    let fixture = Fixture::new(&[("old", "1\n2\n")]);
    let written = structured(super::run(
        &fixture.area,
        &args(json!({"path": "old", "content": "1\n3\n"})),
    ));
    let diff = "--- a/old\n+++ b/old\n@@ -1,2 +1,2 @@\n 1\n-2\n+3";
    assert_eq!(
        written,
        json!({"path": "old", "bytes": 4, "created": false, "diff": diff})
    );
    let new = structured(super::run(
        &fixture.area,
        &args(json!({"path": "new", "content": ""})),
    ));
    assert_eq!(new["diff"], Value::Null);
}

#[cfg(unix)]
#[test]
fn a_link_stays_and_its_file_is_replaced() {
    let fixture = Fixture::new(&[("real/file", "old"), ("links/", "")]);
    fixture.link("../real/file", "links/one");
    fixture.link("one", "links/two");
    fixture.link("missing", "links/dangling");
    fixture.link("../../outside/file", "links/out");
    fixture.link("loop", "links/loop");
    assert_eq!(
        told(&fixture, "links/two", "new"),
        "Wrote 3 bytes to links/two (overwrote 3 bytes)"
    );
    assert_eq!(fixture.content("real/file"), "new");
    assert_eq!(
        told(&fixture, "links/dangling", "x"),
        "Wrote 1 byte to links/dangling (created)"
    );
    assert_eq!(
        told(&fixture, "links/out", "x"),
        "blocked: `links/out` is a symbolic link out of the allowed directories"
    );
    assert_eq!(
        told(&fixture, "links/loop", "x"),
        "permanent: `links/loop`: too many symbolic links"
    );
    assert_eq!(
        fixture.tree(),
        [
            "links/",
            "links/dangling@",
            "links/loop@",
            "links/missing",
            "links/one@",
            "links/out@",
            "links/two@",
            "real/",
            "real/file"
        ]
    );
}

#[test]
fn refusals_leave_nothing() {
    let fixture = Fixture::new(&[("file", "x"), ("d/", "")]);
    assert_eq!(told(&fixture, "d", "x"), "permanent: `d` is a directory");
    assert_eq!(told(&fixture, ".", "x"), "permanent: `.` is a directory");
    let below_file = told(&fixture, "file/below/new", "x");
    assert!(
        below_file.starts_with("permanent: `file/below"),
        "{below_file}"
    );
    let name = "n".repeat(300);
    let too_long = told(&fixture, &format!("fresh/{name}"), "x");
    assert!(too_long.starts_with("permanent: "), "{too_long}");
    assert_eq!(fixture.tree(), ["d/", "file"]);
}
