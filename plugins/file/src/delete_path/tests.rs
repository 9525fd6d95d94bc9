//! What goes, what stays, and how much it was.

use serde_json::{Value, json};

use crate::deadline::Deadline;
use crate::fixture::{Fixture, args, context};
use crate::tree;

fn told(fixture: &Fixture, arguments: Value) -> String {
    fixture.told(super::run(&fixture.area, &args(arguments), &context()))
}

#[cfg(unix)]
#[test]
fn files_links_and_trees() {
    let fixture = Fixture::new(&[
        ("f", ""),
        ("d/a/b", ""),
        ("d/c", ""),
        ("empty/", ""),
        ("kept/x", ""),
    ]);
    fixture.link("../kept", "d/link");
    fixture.link("kept", "top");
    assert_eq!(told(&fixture, json!({"path": "f"})), "Deleted: f (1 file)");
    assert_eq!(
        told(&fixture, json!({"path": "empty"})),
        "Deleted: empty (1 directory)"
    );
    assert_eq!(
        told(&fixture, json!({"path": "top", "recursive": true})),
        "Deleted: top (1 file)"
    );
    assert_eq!(
        told(&fixture, json!({"path": "d"})),
        "invalid: `d` is a directory that is not empty; `recursive` deletes it with all it holds"
    );
    assert_eq!(
        told(&fixture, json!({"path": "d", "recursive": true})),
        "Deleted: d (3 files, 2 directories)"
    );
    assert_eq!(fixture.tree(), ["kept/", "kept/x"]);
}

#[test]
fn what_takes_too_long_says_what_is_gone() {
    let late = zeph_plugin::Context {
        remaining_ms: 0,
        ..context()
    };
    let fixture = Fixture::new(&[("d/a", ""), ("d/b/c", "")]);
    let arguments = args(json!({"path": "d", "recursive": true}));
    let error = super::run(&fixture.area, &arguments, &late).unwrap_err();
    assert_eq!(error.category, zeph_plugin::Category::Timeout);
    assert_eq!(
        error.message,
        "`d` is not deleted, and nothing in it: the time of the call is used up"
    );
    assert_eq!(fixture.tree(), ["d/", "d/a", "d/b/", "d/b/c"]);

    // The time ends between two steps: what was found until then is what goes.
    let removed = tree::RemovalReport {
        files: 7,
        is_late: true,
        ..tree::RemovalReport::default()
    };
    let place = fixture.area.place("d").unwrap();
    let error = super::late(&place, &removed);
    assert_eq!(
        error.message,
        "`d` is deleted only in part: 7 files removed; the time of the call is used up, so delete it again for the rest"
    );
    let half = Deadline::of(&context()).half();
    assert!(!half.is_over());
}

#[test]
fn roots_stay() {
    let fixture = Fixture::new(&[("d/x", "")]);
    for path in [".", "d/.."] {
        let text = told(&fixture, json!({"path": path, "recursive": true}));
        assert!(
            text.ends_with("may not be deleted: it is an allowed directory or holds one"),
            "{text}"
        );
    }
    let text = told(&fixture, json!({"path": "d/e/..", "recursive": true}));
    assert_eq!(
        text,
        "invalid: `d/e/..` ends in `..`; name what is to be deleted itself"
    );
    assert_eq!(
        told(&fixture, json!({"path": "nothing"})),
        "permanent: `nothing` does not exist"
    );
    assert_eq!(fixture.tree(), ["d/", "d/x"]);
}
