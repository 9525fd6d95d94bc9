//! A second name of a file opens nothing the first one does not.

use super::{Tree, rights};
use zeph_core::capability::FsRights;

const NO: &str = "not-permitted";

#[test]
fn a_hidden_file_is_hidden_under_every_name() {
    let tree = Tree::new();
    tree.file("ws/.env", "SECRET")
        .hard_link("ws/.env", "ws/innocent")
        .file("ws/a", "plain")
        .hard_link("ws/a", "ws/b");
    tree.file("ws/keys/deep/k", "KEY")
        .hard_link("ws/keys/deep/k", "ws/k2");
    tree.hard_link("out/secret", "ws/o");
    let cases: [(&str, &[(&str, &str)]); 5] = [
        (
            ".env",
            &[
                ("read innocent", "no-entry"),
                ("read b", "plain"),
                ("read k2", "KEY"),
                ("link innocent x", "no-entry"),
            ],
        ),
        (
            "keys/",
            &[("read k2", "no-entry"), ("read innocent", "SECRET")],
        ),
        (
            "$/out/*",
            &[("read o", "no-entry"), ("read innocent", "SECRET")],
        ),
        (
            "$/o*t/**/secret",
            &[("read o", "no-entry"), ("read b", "plain")],
        ),
        ("$/out", &[("read o", "no-entry")]),
    ];
    for (pattern, probes) in cases {
        tree.guest_with(&[("ws", FsRights::ALL)], &[pattern], &[])
            .check(probes);
    }
    tree.guest_with(&[("ws", FsRights::ALL)], &["keys"], &["keys/deep"])
        .check(&[("read k2", "KEY")]);
    tree.guest()
        .check(&[("read o", "OUTSIDE"), ("read innocent", "SECRET")]);
}

#[test]
fn when_hidden_files_cannot_all_be_found_shared_files_are_closed() {
    let tree = Tree::new();
    tree.file("ws/a", "plain")
        .hard_link("ws/a", "ws/b")
        .file("ws/single", "x");
    for n in 0..1_000 {
        std::fs::write(tree.at("ws").join(n.to_string()), "").expect("write");
    }
    let mut guest = tree.guest_with(&[("ws", FsRights::ALL)], &[".env"], &[]);
    guest.check(&[
        ("read a", "too-many-links"),
        ("link a c", "too-many-links"),
        ("read single", "x"),
    ]);
}

#[test]
fn a_link_needs_the_rights_it_could_pass_on() {
    let tree = Tree::new();
    tree.file("a/f", "text").dir("b");
    let cases = [
        ("rw", "rwc", "ok"),
        ("rw", "rc", "ok"),
        ("rw", "c", "ok"),
        ("r", "rwc", NO),
        ("r", "rc", NO),
        ("w", "rc", NO),
        ("w", "c", NO),
        ("rwcd", "rw", NO),
    ];
    for (from, to, expected) in cases {
        let mut guest = tree.guest_with(&[("a", rights(from)), ("b", rights(to))], &[], &[]);
        assert_eq!(guest.run("link f 1:f"), expected, "{from} → {to}");
        std::fs::remove_file(tree.at("b/f")).ok();
    }
}

#[test]
fn a_shared_file_can_be_read_but_not_changed() {
    let tree = Tree::new();
    tree.file("ws/f", "text");
    let mut guest = tree.guest();
    guest.check(&[
        ("link f g", "ok"),
        ("read g", "text"),
        ("patch g X", NO),
        ("cut f", NO),
        ("create mine x", "ok"),
        ("link mine mine2", "ok"),
        ("patch mine2 y", "ok"),
        ("read mine", "y"),
        ("unlink g", "ok"),
        ("patch f T", "ok"),
    ]);
}
