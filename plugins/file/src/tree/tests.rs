//! What a copy takes along and what a removal cannot remove.

use super::{copy_tree, remove_copied, stays_inside};
use crate::deadline::Deadline;
use crate::fixture::{Fixture, context};

/// What another program adds while a directory moves to another file system was not copied: it stays.
#[test]
fn what_was_not_copied_is_not_removed() {
    let fixture = Fixture::new(&[("d/a/b", "1"), ("d/c", "2"), ("d/e/", "")]);
    let (from, to) = ["d", "copy"]
        .map(|path| fixture.area.place(path).unwrap())
        .into();
    let copied = copy_tree(&from, &to, Deadline::of(&context())).unwrap();
    fixture.put("d/a/new", b"3");
    let removed = remove_copied(&from, &copied, Deadline::of(&context()));
    let failures: Vec<&str> = removed
        .failures
        .iter()
        .map(|(path, _)| path.as_str())
        .collect();
    assert_eq!(failures, ["d/a"]);
    assert_eq!(
        fixture.tree(),
        [
            "copy/", "copy/a/", "copy/a/b", "copy/c", "copy/e/", "d/", "d/a/", "d/a/new"
        ]
    );
}

#[test]
fn links_are_judged_by_their_names() {
    for (below, target, expected) in [
        ("l", "a", true),
        ("l", "a/../b", true),
        ("d/l", "../a", true),
        ("l", "../a", false),
        ("d/l", "../../a", false),
        ("d/l", "x/../../../a", false),
        ("l", "/a", false),
    ] {
        assert_eq!(stays_inside(below, target), expected, "{below} -> {target}");
    }
}

/// Another call may be about to give it a name of its own, or take it away.
#[test]
fn what_is_on_its_way_to_another_name_is_not_copied() {
    let on_its_way = "d/.zeph-0123456789abcdef.tmp";
    let fixture = Fixture::new(&[("d/a", "1"), (on_its_way, "2")]);
    let (from, to) = ["d", "copy"]
        .map(|path| fixture.area.place(path).unwrap())
        .into();
    let copied = copy_tree(&from, &to, Deadline::of(&context())).unwrap();
    assert_eq!(copied.summary(), "1 file, 1 directory, 1 byte");
    assert_eq!(fixture.tree(), ["copy/", "copy/a", "d/", on_its_way, "d/a"]);
}
