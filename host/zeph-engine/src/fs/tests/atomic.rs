//! "Write a new file beside the old one, then put it in its place": the way tools write, with as few rights as possible.

use std::fs;
use std::os::unix::fs::{MetadataExt, PermissionsExt};

use super::left_out::leave_out;
use super::{Tree, rights};

const NO: &str = "not-permitted";

fn mode(tree: &Tree, path: &str) -> u32 {
    fs::metadata(tree.at(path)).expect("metadata").mode() & 0o7777
}

#[test]
fn it_works_without_the_right_to_delete_and_keeps_the_mode() {
    for bits in [0o644, 0o755, 0o600, 0o444, 0o777] {
        let tree = Tree::new();
        tree.file("ws/f", "old");
        fs::set_permissions(tree.at("ws/f"), fs::Permissions::from_mode(bits)).expect("chmod");
        let mut guest = tree.guest_with(&[("ws", rights("rwc"))], &[], &[]);
        guest.check(&[
            ("create .tmp new", "ok"),
            ("rename .tmp f", "ok"),
            ("read f", "new"),
            ("list .", "f"),
        ]);
        assert_eq!(mode(&tree, "ws/f"), bits);
    }
}

#[test]
fn set_id_bits_are_not_carried_over() {
    let tree = Tree::new();
    tree.file("ws/f", "old");
    fs::set_permissions(tree.at("ws/f"), fs::Permissions::from_mode(0o6755)).expect("chmod");
    let mut guest = tree.guest();
    guest.check(&[("create tmp new", "ok"), ("rename tmp f", "ok")]);
    assert_eq!(mode(&tree, "ws/f"), 0o755);
}

#[test]
fn owner_and_group_are_kept_where_the_host_may() {
    let tree = Tree::new();
    tree.file("ws/f", "old");
    if std::os::unix::fs::chown(tree.at("ws/f"), Some(12345), Some(23456)).is_err() {
        return leave_out("only root can give a file to another user");
    }
    let mut guest = tree.guest();
    guest.check(&[("create tmp new", "ok"), ("rename tmp f", "ok")]);
    let meta = fs::metadata(tree.at("ws/f")).expect("metadata");
    assert_eq!((meta.uid(), meta.gid()), (12345, 23456));
}

#[test]
fn it_replaces_one_name_of_a_file_with_several() {
    let tree = Tree::new();
    tree.hard_link("out/secret", "ws/f");
    let mut guest = tree.guest_with(&[("ws", rights("rwc"))], &[], &[]);
    guest.check(&[
        ("patch f X", NO),
        ("write f X", NO),
        ("cut f", NO),
        ("touch f", NO),
        ("create tmp new", "ok"),
        ("rename tmp f", "ok"),
        ("read f", "new"),
        ("patch f NEW", "ok"),
    ]);
    assert_eq!(tree.text("out/secret"), "OUTSIDE");
}

#[test]
fn a_call_may_undo_its_own_work_and_nobody_elses() {
    let tree = Tree::new();
    tree.file("ws/theirs", "theirs").dir("ws/their-dir");
    let mut guest = tree.guest_with(&[("ws", rights("c"))], &[], &[]);
    guest.check(&[
        ("create mine x", "ok"),
        ("mkdir dir", "ok"),
        ("create dir/inner y", "ok"),
        ("symlink mine link", "ok"),
        ("read mine", "x"),
        ("patch mine z", "ok"),
        ("stat mine", "RegularFile 1"),
        ("rename mine dir/moved", "ok"),
        ("unlink theirs", NO),
        ("rmdir their-dir", NO),
        ("rename theirs x", NO),
        ("rename dir/moved theirs", NO),
        ("unlink dir/moved", "ok"),
        ("unlink dir/inner", "ok"),
        ("unlink link", "ok"),
        ("rmdir dir", "ok"),
        ("create again x", "ok"),
    ]);
    // The next call is a stranger to what this one made.
    guest.again().check(&[
        ("unlink again", NO),
        ("patch again y", NO),
        ("read again", NO),
    ]);
    assert_eq!(tree.text("ws/theirs"), "theirs");
}

#[test]
fn an_inode_number_used_again_gives_no_right() {
    let tree = Tree::new();
    let mut guest = tree.guest_with(&[("ws", rights("rc"))], &[], &[]);
    let mut reused = 0;
    for round in 0..200 {
        let (mine, theirs) = (format!("mine{round}"), format!("theirs{round}"));
        assert_eq!(guest.run(&format!("create {mine} x")), "ok");
        let number = fs::metadata(tree.at(&format!("ws/{mine}")))
            .expect("metadata")
            .ino();
        fs::remove_file(tree.at(&format!("ws/{mine}"))).expect("remove");
        tree.file(&format!("ws/{theirs}"), "theirs");
        let again = fs::metadata(tree.at(&format!("ws/{theirs}")))
            .expect("metadata")
            .ino();
        reused += usize::from(number == again);
        assert_eq!(guest.run(&format!("unlink {theirs}")), NO);
        assert_eq!(guest.run(&format!("patch {theirs} x")), NO);
    }
    println!("inode numbers used again: {reused} of 200");
}
