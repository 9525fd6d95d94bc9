use super::{effective, missing};
use crate::capability::{Capability, FsGrant, FsRights, FsRoot, LimitName};

fn rights(text: &str) -> FsRights {
    text.parse().unwrap()
}

fn dir(path: &str, r: &str) -> Capability {
    Capability::Directory {
        path: path.to_owned(),
        rights: rights(r),
    }
}

fn policy(roots: &[(&str, &str)]) -> FsGrant {
    FsGrant {
        roots: roots
            .iter()
            .map(|(path, r)| FsRoot {
                path: path.into(),
                rights: rights(r),
            })
            .collect(),
        ..FsGrant::default()
    }
}

#[test]
fn directories_are_the_intersection_of_all_three() {
    let all = "read+write+create+delete";
    for (wanted, granted, policy_root, expect) in [
        (("/w", "read"), ("/w", "read"), ("/w", all), "/w:read"),
        (("/w", "read"), ("/w", "read+write"), ("/w", all), "/w:read"),
        (("/w", "read+write"), ("/w", "read"), ("/w", all), "/w:read"),
        (
            ("/w", "read+write"),
            ("/w", "read+write"),
            ("/w", "read"),
            "/w:read",
        ),
        (("/w", "read"), ("/w/a", "read"), ("/w", all), "/w/a:read"),
        (("/w/a", "read"), ("/w", "read"), ("/w", all), "/w/a:read"),
        (("/w", "read"), ("/w", "read"), ("/w/b", all), "/w/b:read"),
        (("/w/a", "read"), ("/w/b", "read"), ("/w", all), ""),
        (("/w", "read"), ("/w", "write"), ("/w", all), ""),
        (("/w", "read"), ("/wide", "read"), ("/", all), ""),
        (("/etc", "read"), ("/etc", "read"), ("/w", all), ""),
    ] {
        let got = effective(
            &[dir(wanted.0, wanted.1)],
            &[dir(granted.0, granted.1)],
            &policy(&[policy_root]),
        );
        let got: Vec<_> = got
            .directories
            .iter()
            .map(|root| format!("{}:{}", root.path.display(), root.rights))
            .collect();
        assert_eq!(
            got.join(" "),
            expect,
            "{wanted:?} {granted:?} {policy_root:?}"
        );
    }
}

#[test]
fn two_grants_of_one_directory_add_up() {
    let got = effective(
        &[dir("/w", "read+write")],
        &[dir("/w", "read"), dir("/w", "write")],
        &policy(&[("/w", "read+write")]),
    );
    assert_eq!(got.directories.len(), 1);
    assert_eq!(got.directories[0].rights, rights("read+write"));
    assert!(got.can_change_something());
}

#[test]
fn names_and_limits() {
    let host = |name: &str| Capability::Host(name.parse().unwrap());
    let limit = |value| Capability::Limit {
        name: LimitName::MemoryBytes,
        value,
    };
    let got = effective(
        &[host("a.b"), limit(100)],
        &[host("a.b"), host("c.d"), limit(200)],
        &FsGrant::default(),
    );
    assert_eq!(got.hosts, ["a.b".parse().unwrap()]);
    assert_eq!(got.limits, [(LimitName::MemoryBytes, 100)]);
    assert_eq!(
        missing(&[host("a.b"), limit(100)], &[limit(50)]),
        [host("a.b"), limit(100)]
    );
    assert_eq!(missing(&[limit(100)], &[limit(200)]), []);
}

#[test]
fn what_is_missing_of_a_directory() {
    assert_eq!(
        missing(&[dir("/w", "read+write")], &[dir("/w", "read")]),
        [dir("/w", "write")]
    );
    assert_eq!(
        missing(&[dir("/w/a", "read")], &[dir("/w", "read+write")]),
        []
    );
    assert_eq!(
        missing(&[dir("/w", "read")], &[dir("/w/a", "read")]),
        [dir("/w", "read")]
    );
}

#[test]
fn embedders_and_tools_are_granted_by_name_alone() {
    let embedder = |name: &str| Capability::Embedder {
        name: name.to_owned(),
    };
    let tool = |name: &str| Capability::Tool {
        name: name.to_owned(),
    };
    for (wanted, granted, expect) in [
        ("*", "local", "local"),
        ("local", "local", "local"),
        ("local", "remote", ""),
        // A manifest can ask for any; a grant names one.
        ("*", "*", ""),
        ("local", "*", ""),
    ] {
        let policy = FsGrant::default();
        let got = effective(&[embedder(wanted)], &[embedder(granted)], &policy);
        assert_eq!(got.embedders.join(" "), expect, "{wanted} {granted}");
        let got = effective(&[tool(wanted)], &[tool(granted)], &policy);
        assert_eq!(got.tools.join(" "), expect, "{wanted} {granted}");
        assert!(!got.can_change_something());
    }
    let crossed = effective(&[embedder("*")], &[tool("local")], &FsGrant::default());
    assert!(crossed.embedders.is_empty() && crossed.tools.is_empty());
    assert_eq!(missing(&[embedder("*")], &[]), [embedder("*")]);
    assert_eq!(missing(&[embedder("*")], &[embedder("local")]), []);
}
