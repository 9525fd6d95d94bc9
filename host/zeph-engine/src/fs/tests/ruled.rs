//! What the rules of a policy hide from one call, by every way a guest has.

use std::sync::Arc;

use zeph_core::capability::FsRights;
use zeph_core::policy::PathLayer;

use super::walk::walk;
use super::{FsPolicy, Guest, Tree};
use crate::fs::Rulings;

const GONE: &str = "no-entry";

fn tree() -> Tree {
    let tree = Tree::new();
    tree.file("ws/Secret/key", "KEY")
        .file("ws/Secret/deep/key", "KEY")
        .file("ws/Secret/open/a", "open")
        .file("ws/src/a", "text")
        .file("ws/src/.env", "ENV")
        .link("ws/way", "Secret/key");
    tree
}

/// `-GLOB` hides, `+GLOB` does not; relative to the top of the tree unless it begins with `*`.
fn ruled(tree: &Tree, lists: &[&[&str]]) -> Guest {
    let layer = |text: &&str| {
        let (sign, glob) = text.split_at(1);
        let top = tree.top.to_string_lossy();
        let glob = match glob.starts_with('*') {
            true => glob.to_owned(),
            false => format!("{top}/{glob}"),
        };
        PathLayer {
            hides: sign == "-",
            globs: vec![glob.to_lowercase()],
        }
    };
    let lists: Vec<Vec<PathLayer>> = lists
        .iter()
        .map(|layers| layers.iter().map(layer).collect())
        .collect();
    let policy = FsPolicy::new(&tree.grant(&[("ws", FsRights::ALL)], &[], &[])).unwrap();
    let rulings = Arc::new(Rulings::new(&lists).unwrap());
    Guest::new(policy.hiding(&rulings))
}

#[test]
fn what_a_rule_denies_is_absent_from_above() {
    let tree = tree();
    let mut guest = ruled(&tree, &[&["-ws/secret/**"]]);
    guest.check(&[
        ("read Secret/key", GONE),
        ("read Secret/deep/key", GONE),
        ("read way", GONE),
        ("list Secret", ""),
        ("read src/a", "text"),
        ("unlink Secret/key", GONE),
        ("rename Secret/key k", GONE),
    ]);
    let found = walk(&mut guest, "", |_| {}).unwrap();
    assert!(!found.contains("key") && found.contains("src/a"), "{found}");
}

#[test]
fn the_first_layer_that_holds_a_path_decides() {
    let tree = tree();
    let mut guest = ruled(&tree, &[&["+ws/secret/open/**", "-ws/secret/**"]]);
    guest.check(&[("read Secret/open/a", "open"), ("read Secret/key", GONE)]);
    let mut guest = ruled(&tree, &[&["-ws/secret/**", "+ws/secret/open/**"]]);
    guest.check(&[("read Secret/open/a", GONE)]);
    let mut guest = ruled(&tree, &[&["+ws/src/**", "-*"]]);
    guest.check(&[("read src/a", "text"), ("read Secret/key", GONE)]);
    let mut guest = ruled(&tree, &[&["+*/a", "-ws/secret/**"], &["-*.env"]]);
    guest.check(&[
        ("read Secret/open/a", "open"),
        ("read src/.env", GONE),
        ("read Secret/key", GONE),
    ]);
}

#[test]
fn a_hard_link_gives_a_denied_file_no_second_name() {
    let tree = tree();
    tree.hard_link("ws/Secret/key", "ws/src/b");
    let mut guest = ruled(&tree, &[&["-ws/secret/**"]]);
    guest.check(&[("read src/b", GONE), ("read src/a", "text")]);
}
