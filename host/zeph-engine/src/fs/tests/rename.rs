//! Renaming between places with different rights, and onto things.

use std::os::unix::ffi::OsStrExt as _;

use super::{Tree, rights};
use zeph_core::capability::FsRights;

const NO: &str = "not-permitted";

#[test]
fn a_move_never_opens_what_was_closed() {
    let cases = [
        ("rwcd", "rwcd", "ok"),
        ("rd", "rc", "ok"),
        ("rwd", "c", "ok"),
        ("d", "c", "ok"),
        ("d", "rc", NO),
        ("d", "wc", NO),
        ("rd", "rwc", NO),
        ("wd", "rwc", NO),
        ("rwc", "rwc", NO),
        ("rwd", "rw", NO),
    ];
    for (from, to, expected) in cases {
        let tree = Tree::new();
        tree.file("a/f", "text").dir("a/d").dir("b");
        let mut guest = tree.guest_with(&[("a", rights(from)), ("b", rights(to))], &[], &[]);
        assert_eq!(guest.run("rename f 1:f"), expected, "file {from} → {to}");
        assert_eq!(
            guest.run("rename d 1:d"),
            expected,
            "directory {from} → {to}"
        );
    }
}

#[test]
fn own_files_move_anywhere_but_directories_carry_no_strangers() {
    let tree = Tree::new();
    tree.file("a/theirs", "SECRET").dir("b");
    let mut guest = tree.guest_with(&[("a", rights("cd")), ("b", rights("rwc"))], &[], &[]);
    guest.check(&[
        ("create mine x", "ok"),
        ("rename mine 1:mine", "ok"),
        ("mkdir box", "ok"),
        ("rename theirs box/theirs", "ok"),
        ("rename box 1:box", NO),
        ("rename box/theirs 1:theirs", NO),
        ("link box/theirs 1:theirs", NO),
    ]);
}

#[test]
fn replacing_needs_the_right_for_what_is_replaced() {
    let cases = [
        ("rename new f", "rcd", NO),
        ("rename new f", "rwcd", "ok"),
        ("rename new l", "rcd", NO),
        ("rename new l", "rwcd", "ok"),
        ("rename nd ed", "rwcd", "ok"),
        ("rename nd full", "rwcd", "not-empty"),
        ("rename nd f", "rwcd", "not-directory"),
        ("rename new ed", "rwcd", "is-directory"),
        ("rename f f", "rwcd", "ok"),
        ("rename f f2", "rwcd", "ok"),
        ("rename gone f", "rwcd", "no-entry"),
        ("rename f gone/f", "rwcd", "no-entry"),
        ("rename nd nd/in", "rwcd", "invalid"),
    ];
    for (line, held, expected) in cases {
        let tree = Tree::new();
        tree.file("ws/new", "n")
            .file("ws/f", "f")
            .link("ws/l", "f")
            .dir("ws/nd")
            .dir("ws/ed")
            .file("ws/full/x", "x");
        tree.hard_link("ws/f", "ws/f2");
        let mut guest = tree.guest_with(&[("ws", rights(held))], &[], &[]);
        assert_eq!(guest.run(line), expected, "`{line}` with {held}");
    }
}

/// A name that is not UTF-8 is one that no guest can say; what lies below it is looked at all the same.
#[test]
fn names_that_are_not_utf8_move_along() {
    let tree = Tree::new();
    let odd = |path: &[u8]| tree.at("ws").join(std::ffi::OsStr::from_bytes(path));
    for (top, inner) in [("src", "f"), ("secret", ".env")] {
        let directory = [top.as_bytes(), b"/caf\xe9"].concat();
        std::fs::create_dir_all(odd(&directory)).expect("make directory");
        let file = [&directory, b"/".as_slice(), inner.as_bytes()].concat();
        std::fs::write(odd(&file), "").expect("write");
    }
    let mut guest = tree.guest_with(&[("ws", FsRights::ALL)], &[".env"], &[]);
    guest.check(&[("rename src dst", "ok"), ("rename secret open", NO)]);
    assert!(odd(b"dst/caf\xe9/f").exists());
}
