//! New, there already, or in the way.

use serde_json::json;

use crate::fixture::{Fixture, args};

#[test]
fn directories_are_made_with_those_above() {
    let fixture = Fixture::new(&[("file", "")]);
    let told = |path: &str| fixture.told(super::run(&fixture.area, &args(json!({"path": path}))));
    assert_eq!(told("a/b/"), "Created directory: a/b");
    assert_eq!(told("a/b"), "Directory exists already: a/b");
    assert_eq!(told("."), "Directory exists already: .");
    assert_eq!(
        told("file"),
        "permanent: `file` exists and is not a directory"
    );
    let below_file = told("file/x");
    assert!(below_file.starts_with("permanent: `file"), "{below_file}");
    assert_eq!(fixture.tree(), ["a/", "a/b/", "file"]);
}
