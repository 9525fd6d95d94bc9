//! What the patterns hide is as if it were not there.

use std::os::unix::ffi::OsStrExt as _;

use super::{FsPolicy, HostDescriptor, OpenFlags, READ, Tree, code};
use zeph_core::capability::FsRights;

const NO: &str = "not-permitted";
const GONE: &str = "no-entry";

fn tree() -> Tree {
    let tree = Tree::new();
    tree.file("ws/.env", "SECRET")
        .file("ws/sub/.env", "SECRET")
        .file("ws/sub/f", "text")
        .file("ws/keys/a.pem", "KEY")
        .file("ws/keys/b.txt", "note")
        .file("ws/vault/deep/x", "GOLD")
        .file("ws/vault/public/y", "open")
        .file("ws/f", "plain")
        .link("ws/to-env", ".env")
        .link("ws/to-vault", "vault")
        .link("ws/through", "vault/deep/x");
    tree
}

const DENY: [&str; 3] = [".env", "*.pem", "vault"];

#[test]
fn hidden_objects_are_absent_by_every_way() {
    let tree = tree();
    tree.link("ws/absolute", tree.at("ws/.env"));
    for mut guest in tree.guests_with(&[("ws", FsRights::ALL)], &DENY, &[]) {
        for path in [
            ".env",
            "./.env",
            "sub/.env",
            "sub/../.env",
            "to-env",
            "absolute",
            "keys/a.pem",
            "vault",
            "vault/",
            "vault/.",
            "vault/deep",
            "vault/deep/x",
            "vault/nothing",
            "vault/deep/x/nothing",
            "vault/../f",
            "vault/deep/../../f",
            "to-vault",
            "to-vault/deep/x",
            "to-vault/../f",
            "through",
            "through/x",
            ".env/x",
            ".env/",
            "to-env/x",
            "absolute/x",
        ] {
            for verb in ["read", "stat", "patch", "cut", "touch", "list"] {
                assert_eq!(guest.run(&format!("{verb} {path}")), GONE, "{verb} {path}");
            }
        }
        guest.check(&[
            ("readlink .env", GONE),
            ("lstat .env", GONE),
            ("hash .env", GONE),
            ("unlink .env", GONE),
            ("rmdir vault", GONE),
            ("rename .env x", GONE),
            ("rename vault v", GONE),
            ("link .env x", GONE),
            ("list .", "absolute f keys sub through to-env to-vault"),
            ("list sub", "f"),
            ("list keys", "b.txt"),
            ("read f", "plain"),
            ("readlink to-env", NO),
        ]);
    }
}

#[test]
fn absence_and_hiding_look_the_same() {
    let with = tree();
    let without = Tree::new();
    without
        .file("ws/f", "plain")
        .link("ws/to-env", ".env")
        .link("ws/to-vault", "vault")
        .link("ws/through", "vault/deep/x");
    let long = "n".repeat(300);
    let mut lines = Vec::new();
    for verb in [
        "read", "stat", "lstat", "list", "write", "create", "patch", "cut", "mkdir", "unlink",
        "rmdir", "readlink", "touch", "hash",
    ] {
        for path in [
            ".env",
            ".env/",
            ".env/x",
            "vault",
            "vault/new",
            "vault/../f",
            "through",
            "to-vault/deep",
            "to-env",
            "to-vault/../f",
            "through/../..",
        ] {
            lines.push(format!("{verb} {path}"));
        }
        lines.push(format!("{verb} vault/{long}"));
        lines.push(format!("{verb} to-vault/{long}"));
    }
    for line in [
        "rename .env x",
        "rename f .env",
        "rename f vault/x",
        "link f .env",
        "symlink f .env",
        "symlink vault/../f s",
        "read s",
        "symlink f vault/s",
    ] {
        lines.push(line.to_owned());
    }
    let mut first = with.guest_with(&[("ws", FsRights::ALL)], &DENY, &[]);
    let mut second = without.guest_with(&[("ws", FsRights::ALL)], &DENY, &[]);
    for line in lines
        .iter()
        .filter(|line| !line.ends_with("to-env") || !line.starts_with("unlink"))
    {
        assert_eq!(first.run(line), second.run(line), "`{line}`");
    }
}

#[test]
fn a_directory_does_not_tell_how_much_it_holds() {
    let tree = tree();
    let mut guest = tree.guest_with(&[("ws", FsRights::ALL)], &DENY, &[]);
    guest.check(&[("stat .", "Directory 0"), ("stat sub", "Directory 0")]);
    let root = guest.root(0);
    let stat = HostDescriptor::stat(&mut guest.view(), root).expect("stat");
    assert_eq!((stat.link_count, stat.size), (1, 0));
}

#[test]
fn a_directory_that_becomes_hidden_while_open_closes() {
    let tree = tree();
    let mut guest = tree.guest_with(&[("ws", FsRights::ALL)], &["hid"], &[]);
    let dir = guest.open("sub", OpenFlags::DIRECTORY, READ).expect("open");
    guest.roots.push(dir.rep());
    std::fs::rename(tree.at("ws/sub"), tree.at("ws/hid")).expect("rename");
    guest.check(&[
        ("list 1:.", GONE),
        ("read 1:f", GONE),
        ("stat 1:f", GONE),
        ("create 1:new x", NO),
        ("unlink 1:f", GONE),
        ("rename 1:f g", GONE),
    ]);
    let root = guest.root(1);
    let listed = guest.view().read_directory(root).expect_err("hidden");
    assert_eq!(code(listed), GONE);
}

#[test]
fn nothing_is_made_or_moved_onto_a_hidden_name() {
    let tree = tree();
    let mut guest = tree.guest_with(&[("ws", FsRights::ALL)], &DENY, &[]);
    guest.check(&[
        ("write .env x", NO),
        ("create .env x", NO),
        ("create sub/deeper.pem x", NO),
        ("write to-env x", NO),
        ("mkdir vault", NO),
        ("mkdir sub/vault", NO),
        ("create vault/new x", GONE),
        ("mkdir vault/new", GONE),
        ("symlink f .env", NO),
        ("link f .env", NO),
        ("rename f .env", NO),
        ("rename f g.pem", NO),
        ("rename f vault/f", GONE),
        ("rename sub vault", NO),
    ]);
    assert_eq!(tree.text("ws/.env"), "SECRET");
}

#[test]
fn hidden_things_do_not_move_with_their_directory() {
    let tree = tree();
    tree.file("ws/conf/secret.toml", "S")
        .file("ws/free/f", "x")
        .file("ws/nest/conf/other", "x");
    let deny = [".env", "*.pem", "vault", "conf/secret.toml", "moved/f"];
    let mut guest = tree.guest_with(&[("ws", FsRights::ALL)], &deny, &[]);
    guest.check(&[
        ("rename sub sub2", NO),
        ("rename keys keys2", NO),
        ("rename conf conf2", NO),
        ("rename free moved", NO),
        ("rename free moved2", "ok"),
        ("rename nest n2", "ok"),
        ("unlink sub/f", "ok"),
        ("rmdir sub", NO),
        ("read conf/secret.toml", GONE),
        ("list conf", ""),
    ]);
    assert_eq!(tree.text("ws/conf/secret.toml"), "S");
}

#[test]
fn a_tree_that_cannot_be_looked_through_stays_where_it_is() {
    let tree = tree();
    for n in 0..1100 {
        tree.file(&format!("ws/large/{n}"), "");
    }
    tree.dir("ws/small");
    let odd = std::ffi::OsStr::from_bytes(b"odd\xff");
    for parent in ["ws/odd", "ws/odder"] {
        std::fs::create_dir_all(tree.at(parent).join(odd)).expect("make directory");
    }
    std::fs::write(tree.at("ws/odder").join(odd).join(".env"), "SECRET").expect("write");
    let mut guest = tree.guest_with(&[("ws", FsRights::ALL)], &DENY, &[]);
    guest.check(&[
        ("rename large l", NO),
        ("rename odd o", "ok"),
        ("rename odder o2", NO),
        ("rename small s", "ok"),
    ]);
    tree.guest()
        .check(&[("rename large l", "ok"), ("rename odder o2", "ok")]);
}

#[test]
fn exceptions_show_what_lies_below_them() {
    let tree = tree();
    let mut guest = tree.guest_with(
        &[("ws", FsRights::ALL)],
        &["vault", ".env"],
        &["vault/public", "sub/**"],
    );
    guest.check(&[
        ("read vault/public/y", "open"),
        ("list vault/public", "y"),
        ("read vault/deep/x", GONE),
        ("list vault", GONE),
        ("read sub/.env", "SECRET"),
        ("read .env", GONE),
        ("create vault/public/new x", "ok"),
    ]);
    tree.guest_with(&[("ws/sub", FsRights::ALL)], &[".env"], &["$/out/**"])
        .check(&[("read ../../out/secret", NO)]);
}

#[test]
fn patterns_mean_what_they_say() {
    let tree = tree();
    tree.file("ws/a/b/c", "x").link("alias", "ws");
    let cases: [(&str, &str, &str); 21] = [
        (".env", "sub/.env", GONE),
        ("./.env", ".env", GONE),
        ("./.env", "sub/.env", "SECRET"),
        ("sub/.env", "sub/.env", GONE),
        ("sub/.env", ".env", "SECRET"),
        ("/.env", ".env", "SECRET"),
        ("$/ws/.env", ".env", GONE),
        ("$/ws//./.env/", ".env", GONE),
        ("$/alias/.env", ".env", GONE),
        ("$/alias/*/f", "sub/f", GONE),
        ("$/ws/*", "sub/f", GONE),
        ("$/w?/a", "a/b/c", GONE),
        ("$", "f", GONE),
        ("a/*", "a/b/c", GONE),
        ("a/*/d", "a/b/c", "x"),
        ("*/c", "a/b/c", "x"),
        ("a/**/c", "a/b/c", GONE),
        ("**/b/c", "a/b/c", GONE),
        ("{a,z}/b", "a/b/c", GONE),
        ("[ab]", "a/b/c", GONE),
        ("b/", "a/b/c", GONE),
    ];
    for (pattern, path, expected) in cases {
        let mut guest = tree.guest_with(&[("ws", FsRights::ALL)], &[pattern], &[]);
        assert_eq!(
            guest.run(&format!("read {path}")),
            expected,
            "{pattern} on {path}"
        );
    }
}

#[test]
fn a_pattern_that_could_not_protect_is_an_error() {
    let tree = tree();
    for pattern in [
        "", "/", "~/.ssh", "~", "a/../b", "[", "{a", "{/etc,b}", "./",
    ] {
        let grant = tree.grant(&[("ws", FsRights::ALL)], &[pattern], &[]);
        FsPolicy::new(&grant).expect_err(pattern);
        let grant = tree.grant(&[("ws", FsRights::ALL)], &[], &[pattern]);
        FsPolicy::new(&grant).expect_err(pattern);
    }
}

#[test]
fn a_file_that_lost_its_name_is_not_read_under_a_stale_one() {
    let tree = tree();
    tree.file("ws/x (deleted)", "real")
        .file("ws/.env (deleted)", "other");
    let mut guest = tree.guest_with(&[("ws", FsRights::ALL)], &DENY, &[]);
    let path = |text| super::super::path::GuestPath::parse(text).expect("path");
    let root =
        super::super::handle::DirHandle::top(guest.ctx.policy.roots().next().expect("root").0);
    let handle = guest
        .ctx
        .policy
        .kernel()
        .open_beneath(root.fd(&guest.ctx.policy).expect("granted"), ".env", false)
        .expect("handle");
    std::fs::remove_file(tree.at("ws/.env")).expect("remove");
    // The kernel now calls it `.env (deleted)`, a name that exists and no pattern matches.
    let named = guest
        .ctx
        .policy
        .identify(handle, root.root, FsRights::READ)
        .expect("no fault");
    assert!(named.is_none(), "it is not what a path leads to");
    guest
        .ctx
        .policy
        .reach(root.asking(FsRights::READ), path("f"), true)
        .expect("still there");
    assert_eq!(guest.run("read f"), "plain");
    let spaced = guest
        .ctx
        .policy
        .reach(root.asking(FsRights::READ), path("x (deleted)"), true)
        .expect("a file that is really called so");
    assert!(spaced.meta.is_file());
}

/// Emptying it first would delete the visible files and leave the hidden ones.
#[test]
fn a_directory_that_holds_something_hidden_is_not_removed() {
    let tree = tree();
    tree.file("ws/plain/f", "").file("ws/above/sub/.env", "");
    for mut guest in tree.guests_with(&[("ws", FsRights::ALL)], &DENY, &[]) {
        guest.check(&[
            ("rmdir sub", NO),
            ("rmdir above", NO),
            ("rmdir above/sub", NO),
            ("rmdir plain", "not-empty"),
            ("mkdir own", "ok"),
            ("create own/f x", "ok"),
            ("rmdir own", "not-empty"),
            ("unlink own/f", "ok"),
            ("rmdir own", "ok"),
        ]);
    }
    let mut guest = tree.guest();
    guest.check(&[("rmdir sub", "not-empty")]);
    // Too much to be looked through is no reason to keep it.
    for n in 0..1_000 {
        tree.file(&format!("ws/plain/{n}"), "");
    }
    let mut guest = tree.guest_with(&[("ws", FsRights::ALL)], &DENY, &[]);
    guest.check(&[("rmdir plain", "not-empty")]);
}
