//! What a call used, object by object, and as rights below each root.

use std::path::Path;
use std::sync::Arc;

use zeph_core::capability::FsRights;
use zeph_core::policy::PrivatePaths;

use super::{Guest, Tree};
use crate::fs::{FileUse, FsCtx};

/// What was used since the guest began, as `path: what …` in the order of the paths.
fn used(guest: &mut Guest) -> Vec<String> {
    let files = guest.ctx.take_used();
    assert_eq!(files.n_omitted, 0);
    files.objects.iter().map(shown).collect()
}

fn shown(used: &FileUse) -> String {
    let uses = used.uses;
    let all = [
        (uses.look, "look"),
        (uses.read, "read"),
        (uses.write, "write"),
        (uses.create, "create"),
        (uses.delete, "delete"),
        (uses.list, "list"),
        (uses.temporary, "temporary"),
    ];
    let words: Vec<&str> = all
        .iter()
        .filter(|(is_used, _)| *is_used)
        .map(|(_, word)| *word)
        .collect();
    let slash = if used.is_directory { "/" } else { "" };
    format!("{}{slash}: {}", used.path.display(), words.join(" "))
}

fn recorded(tree: &Tree) -> Guest {
    let mut guest = tree.guest();
    let policy = std::sync::Arc::clone(&guest.ctx.policy);
    guest.ctx = FsCtx::new(policy).recorded();
    guest
}

#[test]
fn every_object_is_told_with_what_was_done() {
    let tree = Tree::new();
    tree.file("ws/a/read", "r")
        .file("ws/a/gone", "g")
        .file("ws/a/neighbour", "n")
        .file("ws/b/old", "o");
    let cases: [(&str, &[&str]); 8] = [
        ("read a/read", &["a/read: read"]),
        ("stat a/read", &["a/read: look"]),
        ("read a/absent", &["a/absent: look"]),
        ("unlink a/gone", &["a/gone: delete"]),
        ("create a/new new", &["a/new: create"]),
        ("mkdir c", &["c/: create"]),
        ("rename b/old b/new", &["b/new: create", "b/old: delete"]),
        ("list a", &["a/: list"]),
    ];
    for (line, expect) in cases {
        let mut guest = recorded(&tree);
        guest.run(line);
        assert_eq!(used(&mut guest), expect, "{line}");
    }
}

#[test]
fn what_a_call_makes_and_removes_needs_its_directory_alone() {
    let tree = Tree::new();
    tree.file("ws/a/f", "old");
    let mut guest = recorded(&tree);
    assert_eq!(guest.run("create a/temporary text"), "ok");
    assert_eq!(guest.run("rename a/temporary a/f"), "ok");
    assert_eq!(used(&mut guest), ["a/: temporary", "a/f: write create"]);
}

#[test]
fn rights_are_told_without_a_record_of_objects() {
    let tree = Tree::new();
    tree.file("ws/f", "f");
    let mut guest = tree.guest();
    guest.run("read f");
    let files = guest.ctx.take_used();
    assert!(files.objects.is_empty());
    assert_eq!(files.roots.len(), 1);
    assert_eq!(files.roots[0].rights, FsRights::READ);
}

#[test]
fn the_record_is_bounded() {
    let tree = Tree::new();
    let mut guest = recorded(&tree);
    for n in 0..2_100 {
        guest.run(&format!("stat absent{n}"));
    }
    let files = guest.ctx.take_used();
    assert_eq!((files.objects.len(), files.n_omitted), (2_000, 100));
}

#[test]
fn a_private_file_that_is_read_is_told_by_its_real_name() {
    let tree = Tree::new();
    tree.file("ws/a/.env", "key")
        .file("ws/keys/one", "key")
        .file("ws/notes", "n")
        .link("ws/link", "a/.env");
    let private = PrivatePaths::new(&["**/.env".to_owned(), "**/keys".to_owned()]);
    let private = Arc::new(private.unwrap());
    for (line, expect) in [
        ("read notes", None),
        ("stat a/.env", None),
        ("list a", None),
        ("unlink a/.env.absent", None),
        ("read a/.env", Some("a/.env")),
        ("read link", Some("a/.env")),
        ("read keys/one", Some("keys/one")),
    ] {
        let mut guest = tree.guest();
        let policy = Arc::clone(&guest.ctx.policy);
        guest.ctx = FsCtx::new(policy).marking(Arc::clone(&private));
        guest.run(line);
        let files = guest.ctx.take_used();
        let told = files
            .private
            .iter()
            .map(|path| path.strip_prefix(tree.at("ws")));
        let told: Vec<&Path> = told.map(Result::unwrap).collect();
        assert_eq!(told, Vec::from_iter(expect.map(Path::new)), "{line}");
        assert!(files.objects.is_empty(), "{line}");
    }
}
