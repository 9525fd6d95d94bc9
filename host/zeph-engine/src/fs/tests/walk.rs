//! Walks: what they yield, in which order, and what they leave out.

use std::os::unix::ffi::OsStrExt as _;

use wasmtime::component::Resource;

use super::left_out::leave_out;
use super::{Guest, Tree, rights};
use crate::bindings::zeph::plugin::walk::{EntryKind, HostWalker, Options, WalkError};
use zeph_core::capability::FsRights;

type Set = fn(&mut Options);

pub(super) fn options() -> Options {
    Options {
        max_depth: None,
        only: Vec::new(),
        skip: Vec::new(),
        standard_filters: false,
        sizes: false,
    }
}

/// Walks `root` and spells the entries: `dir/`, `link@`, `other?`.
pub(super) fn walk(
    guest: &mut Guest,
    root: &str,
    set: impl FnOnce(&mut Options),
) -> Result<String, WalkError> {
    let mut options = options();
    set(&mut options);
    let walker = HostWalker::open(&mut guest.view(), root.to_owned(), options)
        .expect("no trap")?
        .rep();
    let mut names = Vec::new();
    loop {
        let batch = guest
            .view()
            .next(Resource::new_own(walker), 3)
            .expect("no trap")?;
        if batch.is_empty() {
            break;
        }
        names.extend(batch.into_iter().map(|entry| match entry.kind {
            EntryKind::File => entry.path,
            EntryKind::Directory => entry.path + "/",
            EntryKind::Symlink => entry.path + "@",
            EntryKind::Other => entry.path + "?",
        }));
    }
    HostWalker::drop(&mut guest.view(), Resource::new_own(walker)).expect("drop");
    Ok(names.join(" "))
}

fn tree() -> Tree {
    let tree = Tree::new();
    tree.file("ws/b.rs", "12345")
        .file("ws/a/z.txt", "")
        .file("ws/a/m/deep.rs", "")
        .file("ws/a.txt", "")
        .file("ws/.hidden/x", "")
        .file("ws/.env", "")
        .dir("ws/empty")
        .link("ws/link", "a")
        .link("ws/out", "../out");
    tree
}

/// What is written for a name that is not UTF-8 names nothing, not even a file that is called so.
#[test]
fn names_that_are_not_utf8_are_told_and_lead_nowhere() {
    let tree = Tree::new();
    let odd = |name: &[u8]| tree.at("ws").join(std::ffi::OsStr::from_bytes(name));
    tree.file("ws/a", "1");
    std::fs::create_dir(odd(b"d\xfe")).expect("make directory");
    std::fs::write(odd(b"f\xff.rs"), "").expect("write");
    tree.file("ws/f\\xFF.rs", "12345");
    for sizes in [false, true] {
        let mut guest = tree.guest();
        let found = walk(&mut guest, ".", |options| options.sizes = sizes);
        let mut names: Vec<String> = found
            .expect("a walk")
            .split(' ')
            .map(str::to_owned)
            .collect();
        names.sort();
        assert_eq!(names, ["a", "d\\xFE?", "f\\xFF.rs", "f\\xFF.rs?"]);
    }
    let mut guest = tree.guest_with(&[("ws", FsRights::ALL)], &["d*", "f*"], &[]);
    assert_eq!(walk(&mut guest, ".", |_| ()), Ok("a".to_owned()));
}

#[test]
fn order_depth_and_globs() {
    let tree = tree();
    let mut guest = tree.guest();
    let all = ".env .hidden/ .hidden/x a/ a/m/ a/m/deep.rs a/z.txt a.txt b.rs empty/ link@ out@";
    assert_eq!(walk(&mut guest, "", |_| {}).expect("walk"), all);
    assert_eq!(walk(&mut guest, ".", |_| {}).expect("walk"), all);
    assert_eq!(
        walk(&mut guest, tree.at("ws").to_str().expect("text"), |_| {}).expect("walk"),
        all
    );
    let cases: [(Set, &str); 10] = [
        (
            |o| o.max_depth = Some(1),
            ".env .hidden/ a/ a.txt b.rs empty/ link@ out@",
        ),
        (|o| o.max_depth = Some(0), ""),
        (
            |o| o.standard_filters = true,
            "a/ a/m/ a/m/deep.rs a/z.txt a.txt b.rs empty/ link@ out@",
        ),
        (|o| o.only = vec!["*.rs".into()], "a/m/deep.rs b.rs"),
        (|o| o.only = vec!["/*.rs".into()], "b.rs"),
        (|o| o.only = vec!["a/".into()], "a/m/deep.rs a/z.txt"),
        (
            |o| o.only = vec!["a/".into(), "!*.txt".into()],
            "a/m/deep.rs",
        ),
        (
            |o| o.skip = vec!["a".into(), ".*".into()],
            "a.txt b.rs empty/ link@ out@",
        ),
        (
            |o| o.skip = vec!["a/m/*.rs".into(), "/.hidden".into()],
            ".env a/ a/m/ a/z.txt a.txt b.rs empty/ link@ out@",
        ),
        (|o| o.only = vec!["nothing".into()], ""),
    ];
    for (set, expected) in cases {
        assert_eq!(walk(&mut guest, "", set).expect("walk"), expected);
    }
    assert_eq!(
        walk(&mut guest, "a", |_| {}).expect("walk"),
        "m/ m/deep.rs z.txt"
    );
    assert_eq!(
        walk(&mut guest, "link", |_| {}).expect("walk"),
        "m/ m/deep.rs z.txt"
    );
}

#[test]
fn sizes_and_times_are_filled_in_on_demand() {
    let tree = tree();
    let mut guest = tree.guest();
    let mut first = |sizes| {
        let options = Options {
            sizes,
            only: vec!["b.rs".into()],
            ..options()
        };
        let walker = HostWalker::open(&mut guest.view(), String::new(), options)
            .expect("no trap")
            .expect("walk");
        guest
            .view()
            .next(walker, 10)
            .expect("no trap")
            .expect("batch")
            .remove(0)
    };
    let (with, without) = (first(true), first(false));
    assert_eq!((with.size, without.size, without.modified_ms), (5, 0, None));
    assert!(with.modified_ms.is_some_and(|ms| ms > 1_600_000_000_000));
}

#[test]
fn roots_that_cannot_be_walked() {
    let tree = tree();
    tree.dir("private").file("ws/vault/x", "");
    let grant = [("ws", FsRights::ALL), ("private", rights("w"))];
    let mut guest = tree.guest_with(&grant, &["vault"], &[]);
    let private = tree.at("private");
    let cases = [
        ("nothing", WalkError::NotFound),
        ("b.rs", WalkError::NotADirectory),
        ("b.rs/x", WalkError::NotADirectory),
        ("..", WalkError::Denied),
        ("../out", WalkError::Denied),
        ("out", WalkError::Denied),
        ("/", WalkError::Denied),
        ("/etc", WalkError::Denied),
        ("/no/such/place", WalkError::Denied),
        ("vault", WalkError::Denied),
        ("vault/none", WalkError::Denied),
        ("x\0y", WalkError::Denied),
        (private.to_str().expect("text"), WalkError::Denied),
    ];
    for (root, expected) in cases {
        let answer = walk(&mut guest, root, |_| {}).expect_err(root);
        assert_eq!(format!("{answer:?}"), format!("{expected:?}"), "{root}");
    }
    let bad = walk(&mut guest, "", |o| o.only = vec!["{a".into()]).expect_err("glob");
    assert!(matches!(bad, WalkError::InvalidGlob), "{bad:?}");
    let many = walk(&mut guest, "", |o| o.skip = vec!["x".into(); 2000]).expect_err("globs");
    assert!(matches!(many, WalkError::Limit), "{many:?}");
}

#[test]
fn hidden_things_and_unreadable_roots_are_left_out() {
    let tree = tree();
    tree.file("ws/vault/open/y", "").file("ws/inner/f", "");
    let grant = [("ws", FsRights::ALL), ("ws/inner", rights("wc"))];
    let mut guest = tree.guest_with(
        &grant,
        &[".env", "vault", "*.txt"],
        &["a/z.txt", "vault/open"],
    );
    let seen = walk(&mut guest, "", |_| {}).expect("walk");
    assert_eq!(
        seen,
        ".hidden/ .hidden/x a/ a/m/ a/m/deep.rs a/z.txt b.rs empty/ inner/ link@ out@"
    );
    assert_eq!(walk(&mut guest, "vault/open", |_| {}).expect("walk"), "y");
}

#[test]
fn ignore_files_have_the_precedence_of_ripgrep() {
    let tree = Tree::new();
    tree.dir("ws/.git/info")
        .file("ws/.git/info/exclude", "excluded\n*.both\n")
        .file("ws/.gitignore", "target/\n*.log\n/top\n!keep.both\n");
    tree.file("ws/.ignore", "!important.log\nno-rg\n");
    for path in [
        "target/x",
        "a.log",
        "important.log",
        "no-rg",
        "top",
        "sub/top",
        "excluded",
        "x.both",
        "keep.both",
        "src/f",
        ".github/ci",
    ] {
        tree.file(&format!("ws/{path}"), "");
    }
    tree.file(
        "ws/sub/.gitignore",
        "\u{feff}# comment\n!b.log\ndeep/*.rs\n",
    )
    .file("ws/sub/b.log", "")
    .file("ws/sub/c.log", "");
    tree.file("ws/sub/deep/x.rs", "")
        .file("ws/sub/deep/x.txt", "")
        .file("ws/sub/deep/er/x.rs", "");
    tree.file("ws/dot/.ignore", "!.shown\n")
        .file("ws/dot/.shown", "")
        .file("ws/dot/.not", "");
    tree.file("ws/module/.git", "gitdir: elsewhere")
        .file("ws/module/m.log", "");
    let mut guest = tree.guest();
    let seen = walk(&mut guest, "", |o| o.standard_filters = true).expect("walk");
    let expected = "dot/ dot/.shown important.log keep.both module/ module/m.log src/ src/f \
                    sub/ sub/b.log sub/deep/ sub/deep/er/ sub/deep/er/x.rs sub/deep/x.txt sub/top";
    assert_eq!(seen, expected);
    // The files of the directories above count too.
    assert_eq!(
        walk(&mut guest, "sub", |o| o.standard_filters = true).expect("walk"),
        "b.log deep/ deep/er/ deep/er/x.rs deep/x.txt top"
    );
    assert_eq!(
        walk(&mut guest, "sub/deep", |o| o.standard_filters = true).expect("walk"),
        "er/ er/x.rs x.txt"
    );
    // What is named is walked, even when it is ignored itself.
    assert_eq!(
        walk(&mut guest, "target", |o| o.standard_filters = true).expect("walk"),
        "x"
    );
}

/// The granted directory is a part of a repository: what that says above it counts, and nothing beyond the top of it.
#[test]
fn ignore_files_above_the_root_count_within_the_repository() {
    let tree = Tree::new();
    tree.file(".gitignore", "kept\n")
        .dir("ws/.git")
        .file(
            "ws/.gitignore",
            "node_modules\n/pkg/app/built\n*.log\nsecret\n",
        )
        .file("ws/pkg/.gitignore", "!important.log\n")
        .file("ws/pkg/.ignore", "app/other\n");
    for path in [
        "node_modules/x",
        "built",
        "in/built",
        "a.log",
        "important.log",
        "other",
        "kept",
        "in/own.txt",
    ] {
        tree.file(&format!("ws/pkg/app/{path}"), "");
    }
    tree.file("ws/pkg/app/in/.gitignore", "own.txt\n");
    let walked = |root: &str, deny: &[&str], below: &str| {
        let mut guest = tree.guest_with(&[(root, FsRights::ALL)], deny, &[]);
        walk(&mut guest, below, |o| o.standard_filters = true).expect("walk")
    };
    assert_eq!(
        walked("ws/pkg/app", &[], ""),
        "important.log in/ in/built kept"
    );
    assert_eq!(walked("ws/pkg/app", &[], "in"), "built");
    assert_eq!(walked("ws", &[], "pkg/app/in"), "built");
    // A pattern hides it.
    assert_eq!(
        walked("ws/pkg/app", &["$/ws/.gitignore"], ""),
        "a.log built important.log in/ in/built kept node_modules/ node_modules/x"
    );
    // A repository of its own.
    tree.file("ws/pkg/app/.git", "gitdir: elsewhere");
    assert_eq!(
        walked("ws/pkg/app", &[], ""),
        "a.log built important.log in/ in/built kept node_modules/ node_modules/x other"
    );
}

/// It is told whatever kinds of entries are asked for, and the rest is walked.
#[test]
fn directories_that_may_not_be_listed_are_told() {
    use std::os::unix::fs::PermissionsExt as _;

    if rustix::process::geteuid().is_root() {
        return leave_out("root may list every directory");
    }
    let tree = Tree::new();
    tree.file("ws/a/f", "")
        .file("ws/closed/f", "")
        .file("ws/z", "");
    let close = |mode| {
        let mode = std::fs::Permissions::from_mode(mode);
        std::fs::set_permissions(tree.at("ws/closed"), mode).expect("change");
    };
    close(0o000);
    let mut guest = tree.guest();
    assert_eq!(
        walk(&mut guest, "", |_| {}).expect("walk"),
        "a/ a/f closed// z"
    );
    let files = walk(&mut guest, "", |o| o.only = vec!["f".into()]);
    assert_eq!(files.expect("walk"), "a/f closed//");
    let flat = walk(&mut guest, "", |o| o.max_depth = Some(1));
    assert_eq!(flat.expect("walk"), "a/ closed/ z");
    close(0o700);
}

#[test]
fn ignore_files_that_are_links_or_hidden_or_huge_do_no_harm() {
    let tree = Tree::new();
    tree.file("out/rules", "f\n")
        .link("ws/.gitignore", tree.at("out/rules"))
        .file("ws/f", "")
        .file("ws/d/.ignore", "g\n")
        .file("ws/d/g", "");
    tree.file("ws/e/.ignore", &"x\n".repeat(1 << 20))
        .file("ws/e/h", "")
        .file("ws/bad/.ignore", "[\nk\n")
        .file("ws/bad/k", "");
    let mut guest = tree.guest_with(&[("ws", FsRights::ALL)], &["d/.ignore"], &[]);
    let seen = walk(&mut guest, "", |o| o.standard_filters = true).expect("walk");
    assert_eq!(seen, "bad/ d/ d/g e/ e/h f");
}

#[test]
fn a_deep_tree_is_walked_to_the_bottom_and_back() {
    let tree = Tree::new();
    tree.dir(&format!("ws/a/{}", "d/".repeat(600)));
    for above in ["a", "a/d", "a/d/d/d/d/d/d/d/d"] {
        tree.file(&format!("ws/{above}/e/f"), "")
            .file(&format!("ws/{above}/z"), "");
    }
    tree.file("ws/last", "");
    let mut guest = tree.guest();
    let seen = walk(&mut guest, "", |o| o.sizes = true).expect("walk");
    let seen: Vec<&str> = seen.split(' ').collect();
    assert_eq!(seen.len(), 1 + 600 + 3 * 3 + 1);
    assert_eq!(seen.iter().filter(|name| name.ends_with("/z")).count(), 3);
    assert_eq!(seen.iter().filter(|name| name.ends_with("/e/f")).count(), 3);
    assert_eq!(seen.last(), Some(&"last"));
    let shallow = walk(&mut guest, "", |o| o.max_depth = Some(256)).expect("walk");
    assert_eq!(shallow.split(' ').count(), 256 + 3 * 3 + 1);
}

#[test]
fn what_no_path_can_name_is_passed_over() {
    let tree = Tree::new();
    let name = "n".repeat(200);
    let mut at = std::fs::File::open(tree.at("ws")).expect("open");
    for _ in 0..30 {
        rustix::fs::mkdirat(&at, name.as_str(), 0o777.into()).expect("make directory");
        let flags = rustix::fs::OFlags::RDONLY | rustix::fs::OFlags::DIRECTORY;
        let inner = rustix::fs::openat(&at, name.as_str(), flags, 0.into()).expect("open");
        at = inner.into();
    }
    tree.file("ws/z", "");
    let seen = walk(&mut tree.guest(), "", |_| {}).expect("walk");
    assert!(seen.ends_with(" z"), "{}", seen.len());
    assert_eq!(seen.split(' ').count(), 22);
}

#[test]
fn all_walks_of_a_call_share_what_it_may_hold() {
    let tree = Tree::new();
    tree.dir("ws/wide").dir("ws/small");
    for n in 0..800 {
        tree.file(&format!("ws/wide/{n}"), "");
    }
    let mut guest = tree.guest();
    let open = |guest: &mut Guest, root: &str, options| {
        let opened = HostWalker::open(&mut guest.view(), root.to_owned(), options);
        opened.expect("no trap").map(|walker| walker.rep())
    };
    let close = |guest: &mut Guest, walker| {
        HostWalker::drop(&mut guest.view(), Resource::new_own(walker)).expect("drop");
    };
    let wide: Vec<u32> = (0..3)
        .map(|_| open(&mut guest, "wide", options()).expect("room"))
        .collect();
    let fourth = open(&mut guest, "wide", options());
    assert!(matches!(fourth, Err(WalkError::Limit)), "{fourth:?}");
    open(&mut guest, "small", options()).expect("a small one");
    close(&mut guest, wide[0]);
    open(&mut guest, "wide", options()).expect("room again");

    let glob = |letter: &str| Options {
        skip: vec![letter.repeat(50_000)],
        ..options()
    };
    let first = open(&mut guest, "small", glob("a")).expect("room");
    open(&mut guest, "small", glob("b")).expect("room");
    let third = open(&mut guest, "small", glob("c"));
    assert!(matches!(third, Err(WalkError::Limit)), "{third:?}");
    close(&mut guest, first);
    open(&mut guest, "small", glob("c")).expect("room again");
}

#[test]
fn ignore_files_beyond_the_allowance_are_passed_over() {
    let tree = Tree::new();
    let mut deep = "ws".to_owned();
    for _ in 0..4 {
        deep.push_str("/d");
        let rules = format!("{}\nx\n", "#".repeat(50_000));
        tree.file(&format!("{deep}/.ignore"), &rules)
            .file(&format!("{deep}/x"), "");
    }
    let mut guest = tree.guest();
    for _ in 0..3 {
        // Those of the first two levels fit; their rules hold below, too.
        let seen = walk(&mut guest, "", |o| o.standard_filters = true).expect("walk");
        assert_eq!(seen, "d/ d/d/ d/d/d/ d/d/d/d/");
    }
    let seen = walk(&mut guest, "d/d/d", |o| o.standard_filters = true).expect("walk");
    assert_eq!(seen, "d/");
}

#[test]
fn a_thrown_stop_ends_a_walk() {
    let tree = tree();
    let mut guest = tree.guest();
    guest.ctx.stop().throw();
    let opened = HostWalker::open(&mut guest.view(), String::new(), options());
    assert!(opened.is_err());
}
