//! What an operator grants to a plugin without a manifest becomes its manifest.

use zeph_core::capability::LimitName;
use zeph_core::manifest::Manifest;

use super::with;
use crate::manage::selection::RequestedItem;
use crate::manage::tests::World;

fn wanted(manifest: &Manifest) -> Vec<String> {
    let wants = manifest.wants.iter();
    wants.map(|want| want.capability.to_string()).collect()
}

#[test]
fn wishes_grow_by_what_is_granted() {
    let world = World::new();
    let mut manifest = Manifest::default();
    for (typed, expect) in [
        ("HOME/notes", &["directory HOME/notes:read"][..]),
        ("HOME/notes:create", &["directory HOME/notes:read+create"]),
        (
            "HOME:write",
            &["directory HOME/notes:read+create", "directory HOME:write"],
        ),
    ] {
        let asked = [RequestedItem::directory(&world.here(typed))];
        manifest = with(&manifest, &asked, world.base()).unwrap();
        let expect: Vec<String> = expect.iter().map(|text| world.here(text)).collect();
        assert_eq!(wanted(&manifest), expect, "{typed}");
    }
    let name = LimitName::MemoryBytes;
    let limit = |value| RequestedItem::Limit { name, value };
    let asked = [
        RequestedItem::Variable("LANG".to_owned()),
        limit(Some(1000)),
        limit(Some(500)),
    ];
    let manifest = with(&Manifest::default(), &asked, world.base()).unwrap();
    assert_eq!(
        wanted(&manifest),
        ["variable LANG", "limit memory_bytes=1000"]
    );
}

#[test]
fn what_no_manifest_can_say_is_no_wish() {
    let world = World::new();
    for (asked, words) in [
        (
            RequestedItem::directory("/nowhere/at/all"),
            "cannot be used",
        ),
        (
            RequestedItem::Variable("A=B".to_owned()),
            "a variable is a name",
        ),
        (RequestedItem::Program("/bin/sh".to_owned()), "a bare name"),
        (
            RequestedItem::Limit {
                name: LimitName::CpuSecs,
                value: None,
            },
            "takes a value here",
        ),
    ] {
        let refused = with(&Manifest::default(), &[asked], world.base());
        let error = refused.unwrap_err().to_string();
        assert!(error.contains(words), "{error}");
    }
}
