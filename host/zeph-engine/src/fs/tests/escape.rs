//! No path leads out of the roots, and none tells what is outside.

use super::{Tree, rights};
use zeph_core::capability::FsRights;

const NO: &str = "not-permitted";

fn tree() -> Tree {
    let tree = Tree::new();
    tree.file("ws/f", "text")
        .file("ws/d/x", "deep")
        .link("ws/in", "d/x")
        .link("ws/up", "../out/secret")
        .link("ws/abs", tree.at("out/secret"))
        .link("ws/absdir", tree.at("out"))
        .link("ws/gone", tree.at("out/nothing"))
        .link("ws/updir", "../out")
        .link("ws/d/back", "../f")
        .link("ws/d/top", "..")
        .link("ws/loop", "loop")
        .link("ws/self", tree.at("ws/d"))
        .link("ws/dangling", "nowhere")
        .link("ws/chain", "absdir/secret");
    tree
}

#[test]
fn paths_that_leave_are_refused_and_look_alike() {
    let tree = tree();
    for mut guest in tree.guests_with(&[("ws", FsRights::ALL)], &[], &[]) {
        for verb in [
            "read", "stat", "list", "write", "create", "patch", "cut", "touch", "hash", "mkdir",
            "unlink",
        ] {
            for path in [
                "..",
                "../out/secret",
                "d/../../out/secret",
                "/etc/passwd",
                "/",
                "../ws/f",
                "d/top/../../f",
            ] {
                assert_eq!(guest.run(&format!("{verb} {path}")), NO, "{verb} {path}");
            }
        }
        for verb in ["read", "stat", "patch", "cut", "touch", "list"] {
            for path in [
                "up",
                "abs",
                "gone",
                "updir/secret",
                "absdir/secret",
                "absdir/nothing",
                "chain",
                "absdir/",
                "updir",
            ] {
                assert_eq!(guest.run(&format!("{verb} {path}")), NO, "{verb} {path}");
            }
        }
        guest.check(&[
            ("write absdir/new x", NO),
            ("write gone x", NO),
            ("create updir/new x", NO),
            ("mkdir absdir/m", NO),
            ("unlink absdir/secret", NO),
            ("rename absdir/secret stolen", NO),
            ("rename f absdir/f", NO),
            ("link absdir/secret stolen", NO),
            ("link f absdir/f", NO),
            ("symlink f absdir/s", NO),
            ("read loop", "loop"),
            ("read in", "deep"),
            ("read d/back", "text"),
            ("read d/top/f", "text"),
            ("read self/x", "deep"),
            ("read d/../f", "text"),
            ("read ./d/.//x", "deep"),
            ("read dangling", "no-entry"),
        ]);
    }
    assert_eq!(tree.text("out/secret"), "OUTSIDE");
    assert_eq!(std::fs::read_dir(tree.at("out")).expect("list").count(), 1);
}

#[test]
fn links_that_are_not_followed_can_be_seen_and_removed() {
    let tree = tree();
    let mut guest = tree.guest();
    guest.check(&[
        ("readlink in", "d/x"),
        ("readlink abs", NO),
        ("readlink up", NO),
        ("readlink f", "invalid"),
        ("unlink abs", "ok"),
        ("unlink updir", "ok"),
    ]);
    assert!(guest.run("lstat up").starts_with("SymbolicLink"));
    assert_eq!(
        guest.run("readlink self"),
        tree.at("ws/d").to_str().expect("text")
    );
    assert_eq!(tree.text("out/secret"), "OUTSIDE");
}

#[test]
fn malformed_paths_have_clear_answers() {
    let tree = tree();
    for mut guest in tree.guests_with(&[("ws", FsRights::ALL)], &[], &[]) {
        let long = "a/".repeat(4000);
        let name = "n".repeat(256);
        guest.check(&[
            ("read ", "no-entry"),
            ("mkdir ", "no-entry"),
            ("read f\0", "invalid"),
            ("read f\0/../../out/secret", "invalid"),
            ("symlink a\0b s", "invalid"),
            ("read f/", "not-directory"),
            ("read f/x", "not-directory"),
            ("read f/.", "not-directory"),
            ("read .", "is-directory"),
            ("write d x", "is-directory"),
            ("write new/ x", "is-directory"),
            ("mkdir .", "exist"),
            ("mkdir d", "exist"),
            ("mkdir d/", "exist"),
            ("create f x", "exist"),
            ("unlink .", "invalid"),
            ("unlink d/..", "invalid"),
            ("rmdir .", "invalid"),
            ("rename . x", "invalid"),
            ("rename f .", "invalid"),
            ("opendir f", "not-directory"),
            ("opendir .", "ok"),
        ]);
        assert_eq!(guest.run(&format!("read {long}")), "name-too-long");
        assert_eq!(guest.run(&format!("read {name}")), "name-too-long");
        assert_eq!(guest.run(&format!("mkdir {name}")), "name-too-long");
    }
}

#[test]
fn a_slash_at_the_end_dodges_nothing() {
    let tree = tree();
    tree.link("ws/dl", "d")
        .dir("ws/empty")
        .link("ws/el", "empty");
    let mut guest = tree.guest();
    guest.check(&[
        ("unlink f/", "not-directory"),
        ("unlink abs/", "not-directory"),
        ("unlink absdir/", "not-directory"),
        ("unlink d/", "is-directory"),
        ("rmdir dl/", "not-directory"),
        ("rmdir el/", "not-directory"),
        ("rmdir absdir/", "not-directory"),
        ("rename f/ g", "not-directory"),
        ("rename f g/", "not-directory"),
        ("rename dl/ x", "not-directory"),
        ("rename absdir/ x", "not-directory"),
        ("symlink f s/", "not-directory"),
        ("link f h/", "not-directory"),
        ("link f/ h", "not-directory"),
        ("link abs/ h", NO),
        ("lstat absdir/", NO),
        ("rename d/ e/", "ok"),
        ("mkdir m/", "ok"),
        ("rmdir m/", "ok"),
        ("rmdir empty/", "ok"),
    ]);
    assert!(
        tree.has("out/secret") && tree.has("ws/f") && tree.has("ws/dl") && tree.has("ws/absdir")
    );
}

#[test]
fn new_links_stay_in_the_root() {
    let tree = tree();
    let mut guest = tree.guest();
    guest.check(&[
        ("symlink /etc/passwd s", NO),
        ("symlink ../out/secret s", NO),
        ("symlink .. s", NO),
        ("symlink ../../out d/s", NO),
        ("symlink d/../../out s", NO),
        ("symlink ../f d/s", "ok"),
        ("read d/s", "text"),
        ("symlink .. d/t", "ok"),
        // Moved up, the same text would leave.
        ("rename d/t t", NO),
        ("rename d/s s", NO),
        ("symlink x d/near", "ok"),
        ("rename d/near near", "ok"),
        ("link up h", NO),
        ("link in h", NO),
    ]);
    let absolute = tree.at("ws/f");
    assert_eq!(guest.run(&format!("symlink {} s2", absolute.display())), NO);
}

#[test]
fn a_directory_is_a_place_to_start_not_a_cage_for_links() {
    let tree = tree();
    let mut guest = tree.guest();
    let dir = guest
        .open("d", super::OpenFlags::DIRECTORY, super::READ)
        .expect("open")
        .rep();
    guest.roots.push(dir);
    guest.check(&[
        ("read 1:x", "deep"),
        ("read 1:back", "text"),
        ("read 1:top/f", "text"),
        ("read 1:../f", NO),
        ("read 1:../../out/secret", NO),
        ("rename 1:x 0:y", "ok"),
        ("read y", "deep"),
    ]);
}

#[test]
fn kernel_files_are_out_of_reach_even_below_a_root() {
    let tree = Tree::new();
    let mut guest = tree.guest_with(&[("/", rights("rwcd"))], &[], &[]);
    for path in [
        "proc/self/mem",
        "proc/self/environ",
        "proc/self/cwd/Cargo.toml",
        "proc/1/root",
        "sys/kernel",
        "proc",
    ] {
        for verb in ["read", "stat", "list", "patch"] {
            let answer = guest.run(&format!("{verb} {path}"));
            assert!(
                [NO, "loop", "access", "is-directory"].contains(&answer.as_str()),
                "{verb} {path}: {answer}"
            );
        }
    }
    assert_eq!(guest.run("list proc"), NO);
    for path in ["/proc", "/proc/self", "/sys"] {
        super::FsPolicy::new(&tree.grant(&[(path, rights("r"))], &[], &[]))
            .expect_err("no root on a kernel file system");
    }
}
