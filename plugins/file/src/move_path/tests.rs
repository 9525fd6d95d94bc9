//! New names, and nothing overwritten.

use serde_json::json;

use crate::fixture::{Fixture, args, context};

fn told(fixture: &Fixture, source: &str, destination: &str) -> String {
    let arguments = json!({"source": source, "destination": destination});
    fixture.told(super::run(&fixture.area, &args(arguments), &context()))
}

#[test]
fn names_change() {
    let fixture = Fixture::new(&[("d/a", "1"), ("f", "2")]);
    assert_eq!(told(&fixture, "f", "new/g"), "Moved: f -> new/g");
    assert_eq!(told(&fixture, "d", "new/d"), "Moved: d -> new/d");
    assert_eq!(fixture.tree(), ["new/", "new/d/", "new/d/a", "new/g"]);
}

#[cfg(unix)]
#[test]
fn a_link_moves_itself() {
    let fixture = Fixture::new(&[("f", "")]);
    fixture.link("f", "l");
    assert_eq!(told(&fixture, "l", "m"), "Moved: l -> m");
    assert_eq!(fixture.tree(), ["f", "m@"]);
}

#[test]
fn refusals_change_nothing() {
    let fixture = Fixture::new(&[("d/a", ""), ("f", "")]);
    let exists = told(&fixture, "f", "d/a");
    assert_eq!(
        exists,
        "invalid: `d/a` exists already; delete it first or choose another name"
    );
    assert_eq!(
        told(&fixture, "d", "d/x"),
        "invalid: `d` cannot be moved into itself, to `d/x`"
    );
    assert_eq!(
        told(&fixture, "nothing", "x"),
        "permanent: `nothing` does not exist"
    );
    let root = told(&fixture, ".", "x");
    assert_eq!(
        root,
        "blocked: `.` may not be moved: it is an allowed directory or holds one"
    );
    assert!(told(&fixture, "f", "/etc/x").starts_with("blocked: `/etc/x` is outside"));
    assert_eq!(fixture.tree(), ["d/", "d/a", "f"]);
}
