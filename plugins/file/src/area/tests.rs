//! From a path as written to a place, and back to a path as shown.

use super::Area;
use crate::sys::Root;

fn area() -> Area {
    let roots = ["/w", "/w/deep/inner", "/other"].map(Root::new);
    Area::new(Some("/w/project".to_owned()), roots.into_iter().collect())
}

/// Root, path below it and shown path, or the message of the refusal.
fn check(path: &str, expected: Result<(&str, &str, &str), &str>) {
    let area = area();
    let found = area.place(path).map_err(|error| error.message);
    match (&found, expected) {
        (Ok(place), Ok(expected)) => {
            let shown = place.shown();
            assert_eq!(
                (place.root().path(), place.relative(), shown.as_str()),
                expected,
                "{path:?}"
            );
        }
        (Err(message), Err(expected)) => assert!(message.contains(expected), "{path:?}: {message}"),
        _ => panic!("{path:?}: {found:?}, expected {expected:?}"),
    }
}

#[test]
fn paths_become_places() {
    check("a.rs", Ok(("/w", "project/a.rs", "a.rs")));
    check("./src//a.rs/", Ok(("/w", "project/src/a.rs", "src/a.rs")));
    check(".", Ok(("/w", "project", ".")));
    check("/w", Ok(("/w", ".", "/w")));
    check("/w/projects", Ok(("/w", "projects", "/w/projects")));
    check("/other/b", Ok(("/other", "b", "/other/b")));
    check("~x", Ok(("/w", "project/~x", "~x")));
}

#[test]
fn a_root_is_known_by_every_path_that_leads_to_it() {
    let root = Root::new("/real/w").or("/link/w").or("/tmp/w2");
    let area = Area::new(None, vec![root]);
    for (path, relative) in [
        ("/link/w/a/b", "a/b"),
        ("/tmp/w2/./a", "a"),
        ("/link/w", "."),
        ("/link/x/../w/a", "a"),
    ] {
        let place = area.place(path).unwrap();
        assert_eq!(place.relative(), relative, "{path}");
        assert_eq!(place.root().path(), "/real/w");
    }
    assert!(area.place("/link/w2").is_err());
    assert!(area.place("/link/w/../x").is_err());
}

#[test]
fn the_innermost_root_counts() {
    check(
        "/w/deep/inner/x",
        Ok(("/w/deep/inner", "x", "/w/deep/inner/x")),
    );
    check(
        "/w/deep/innermost",
        Ok(("/w", "deep/innermost", "/w/deep/innermost")),
    );
}

#[test]
fn parents_are_left_to_the_file_system_where_it_can_know() {
    check("../x", Ok(("/w", "project/../x", "../x")));
    check("../../other/x", Ok(("/other", "x", "/other/x")));
    check("/other/../w/x", Ok(("/w", "x", "/w/x")));
}

#[test]
fn refusals_are_plain() {
    check("", Err("the path is empty"));
    check("a\0b", Err("NUL"));
    check("~/x", Err("`~` is not expanded"));
    check(
        "/etc/passwd",
        Err("`/etc/passwd` is outside the allowed directories: `/w/deep/inner`, `/other`, `/w`"),
    );
    check("../../x", Err("`../../x` is outside"));
}

#[test]
fn roots_are_known_from_above() {
    let area = area();
    let holds = |path| area.holds_root(&area.place(path).unwrap());
    assert!(holds("/w") && holds("/w/deep") && holds("/w/deep/inner") && holds("/w/deep/x/.."));
    assert!(!holds("/w/project") && !holds("/w/dee") && !holds("/w/deep/inner/x"));
}
