//! What goes, what stays, and how much it was.

use serde_json::{Value, json};

use crate::fixture::{Fixture, args};

fn told(fixture: &Fixture, arguments: Value) -> String {
    fixture.told(super::run(&fixture.area, &args(arguments)))
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
