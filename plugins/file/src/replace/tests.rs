//! Names of temporary files, and directories made on the way.

use super::{Parents, is_temporary, temporary};
use crate::fixture::Fixture;

#[test]
fn temporary_names_are_hidden_siblings() {
    let fixture = Fixture::new(&[]);
    let place = fixture.area.place("d/file").unwrap();
    let (one, two) = (temporary(&place), temporary(&place));
    for name in [one.shown(), two.shown()] {
        assert!(
            name.starts_with("d/.zeph-") && name.ends_with(".tmp"),
            "{name}"
        );
    }
    assert_ne!(one.shown(), two.shown());
    assert!(is_temporary(one.name()));
    for name in [
        ".zeph-x.tmp",
        ".zeph-0123456789abcdef",
        "zeph-0123456789abcdef.tmp",
    ] {
        assert!(!is_temporary(name), "{name}");
    }
}

#[test]
fn parents_are_made_and_taken_back() {
    let fixture = Fixture::new(&[("have/", "")]);
    let place = fixture.area.place("have/a/b/file").unwrap();
    let made = Parents::make(&place).unwrap();
    assert_eq!(made.n_made(), 2);
    assert_eq!(fixture.tree(), ["have/", "have/a/", "have/a/b/"]);
    made.take_back();
    assert_eq!(fixture.tree(), ["have/"]);
}
