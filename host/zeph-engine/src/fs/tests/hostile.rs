//! Random hostile paths: whatever is asked, the canary outside stays as it is and its text is never returned.

use proptest::prelude::*;
use zeph_core::capability::FsRights;

use super::{Guest, Tree};

const VERBS: [&str; 16] = [
    "read", "write", "create", "patch", "cut", "list", "stat", "lstat", "mkdir", "rmdir", "unlink",
    "readlink", "touch", "rename", "link", "symlink",
];

const PIECES: [&str; 24] = [
    "a",
    "b",
    "f",
    "l",
    "abs",
    "up",
    "out",
    "secret",
    "ws",
    "..",
    ".",
    "",
    "...",
    "../..",
    "../out",
    "../out/secret",
    "\0",
    "\u{202e}",
    "é",
    "a\\b",
    "%2e%2e",
    "~",
    "proc/self/root",
    ".env",
];

fn path() -> impl Strategy<Value = String> {
    let pieces = prop::collection::vec(prop::sample::select(&PIECES[..]), 1..7);
    (
        pieces,
        prop::sample::select(&["", "/", "//", "./", "../"][..]),
        prop::bool::ANY,
    )
        .prop_map(|(pieces, lead, slash)| {
            format!("{lead}{}{}", pieces.join("/"), if slash { "/" } else { "" })
        })
}

fn line() -> impl Strategy<Value = String> {
    (prop::sample::select(&VERBS[..]), path(), path())
        .prop_map(|(verb, first, second)| format!("{verb} {first} {second}"))
}

fn tree() -> Tree {
    let tree = Tree::new();
    tree.file("ws/a/f", "x")
        .file("ws/b/f", "y")
        .file("ws/f", "z")
        .file("ws/.env", "HIDDEN")
        .dir("ws/out/secret");
    tree.link("ws/l", "a")
        .link("ws/abs", tree.at("out"))
        .link("ws/up", "../out")
        .link("ws/a/l", "../../out/secret");
    tree
}

fn snapshot(tree: &Tree) -> Vec<(String, String)> {
    let mut seen: Vec<_> = std::fs::read_dir(tree.at("out"))
        .expect("list")
        .map(|entry| entry.expect("entry").path())
        .map(|path| {
            (
                path.display().to_string(),
                std::fs::read_to_string(path).expect("read"),
            )
        })
        .collect();
    seen.sort();
    seen
}

fn probe(tree: &Tree, guest: &mut Guest, lines: &[String]) {
    let before = snapshot(tree);
    for line in lines {
        let answer = guest.run(line);
        assert!(
            !answer.contains("OUTSIDE") && !answer.contains("HIDDEN"),
            "{line:?} gave {answer}"
        );
        assert!(
            !answer.contains(&tree.top.display().to_string()),
            "{line:?} gave {answer}"
        );
    }
    assert_eq!(snapshot(tree), before, "{lines:?}");
    assert_eq!(tree.text("ws/.env"), "HIDDEN", "{lines:?}");
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 300, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn no_sequence_of_calls_touches_the_outside(lines in prop::collection::vec(line(), 1..25)) {
        let tree = tree();
        for mut guest in tree.guests_with(&[("ws", FsRights::ALL)], &[".env"], &[]) {
            probe(&tree, &mut guest, &lines);
        }
    }
}
