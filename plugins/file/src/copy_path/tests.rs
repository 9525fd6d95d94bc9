//! Whole copies, under the name given, or none.

use serde_json::json;

use crate::deadline::Deadline;
use crate::fixture::{Fixture, args, context};

fn told(fixture: &Fixture, source: &str, destination: &str) -> String {
    let arguments = json!({"source": source, "destination": destination});
    fixture.told(super::run(&fixture.area, &args(arguments), &context()))
}

#[test]
fn files_and_trees_are_copied() {
    let fixture = Fixture::new(&[("d/a/b", "12"), ("d/c", "3"), ("d/e/", "")]);
    assert_eq!(
        told(&fixture, "d/c", "x/y"),
        "Copied: d/c -> x/y (1 file, 1 byte)"
    );
    assert_eq!(
        told(&fixture, "d", "copy"),
        "Copied: d -> copy (2 files, 3 directories, 3 bytes)"
    );
    assert_eq!(fixture.content("copy/a/b"), "12");
    assert_eq!(
        fixture.tree(),
        [
            "copy/", "copy/a/", "copy/a/b", "copy/c", "copy/e/", "d/", "d/a/", "d/a/b", "d/c",
            "d/e/", "x/", "x/y"
        ]
    );
}

#[cfg(unix)]
#[test]
fn links_stay_inside_or_are_left_out() {
    let fixture = Fixture::new(&[("d/a/b", "1"), ("other", "2")]);
    fixture.link("a/b", "d/inside");
    fixture.link("../b", "d/a/across");
    fixture.link("../other", "d/out");
    fixture.link("other", "file");
    assert_eq!(
        told(&fixture, "d", "copy"),
        "Copied: d -> copy (1 file, 2 directories, 1 symbolic link, 1 byte)\n\
         [2 entries skipped: links out of the directory, special files, or names that are not UTF-8]"
            .replace("1 symbolic link", "2 symbolic links")
            .replace("2 entries", "1 entry")
    );
    assert_eq!(
        told(&fixture, "file", "real"),
        "Copied: file -> real (1 file, 1 byte)"
    );
    assert_eq!(fixture.content("real"), "2");
    assert_eq!(
        fixture.tree(),
        [
            "copy/",
            "copy/a/",
            "copy/a/across@",
            "copy/a/b",
            "copy/inside@",
            "d/",
            "d/a/",
            "d/a/across@",
            "d/a/b",
            "d/inside@",
            "d/out@",
            "file@",
            "other",
            "real"
        ]
    );
}

#[test]
fn refusals_leave_nothing() {
    let fixture = Fixture::new(&[("d/a", ""), ("f", "")]);
    let exists = told(&fixture, "f", "d/a");
    assert_eq!(
        exists,
        "invalid: `d/a` exists already; delete it first or choose another name"
    );
    let exists = told(&fixture, "f", "d");
    assert_eq!(
        exists,
        "invalid: `d` exists already; name a new path inside it, or delete it first"
    );
    assert_eq!(
        told(&fixture, "d", "d/x/y"),
        "invalid: `d` cannot be copied into itself, to `d/x/y`"
    );
    assert_eq!(
        told(&fixture, "nothing", "x"),
        "permanent: `nothing` does not exist"
    );
    let too_long = told(&fixture, "d", &format!("new/{}", "n".repeat(300)));
    assert!(too_long.starts_with("permanent: "), "{too_long}");
    assert_eq!(fixture.tree(), ["d/", "d/a", "f"]);
}

/// What a call has no time to take back is named, so that somebody can.
#[test]
fn what_is_left_of_a_copy_is_named() {
    let fixture = Fixture::new(&[("copy/a", "1"), ("copy/b/c", "2")]);
    let copy = fixture.area.place("copy").unwrap();
    let at = |remaining_ms| {
        let context = zeph_plugin::Context {
            remaining_ms,
            ..context()
        };
        super::take_back(&copy, Deadline::of(&context))
    };
    assert_eq!(at(0), "; a part of the copy is left at `copy`: delete it");
    assert_eq!(at(60_000), "");
    assert_eq!(fixture.tree(), [""; 0]);
    assert_eq!(at(60_000), "");
}

#[test]
fn without_time_nothing_is_left_behind() {
    let fixture = Fixture::new(&[("d/a", "1")]);
    let arguments = args(json!({"source": "d", "destination": "x/copy"}));
    let late = zeph_plugin::Context {
        remaining_ms: 0,
        ..context()
    };
    let error = super::run(&fixture.area, &arguments, &late).unwrap_err();
    assert_eq!(error.category, zeph_plugin::Category::Timeout);
    assert_eq!(fixture.tree(), ["d/", "d/a"]);
}
