//! Whatever a command does to a tree, restoring gives the tree that was there.

use std::fs::{self, File, FileTimes, Permissions};
use std::io::Write as _;
use std::os::unix::fs::{FileExt as _, MetadataExt as _, PermissionsExt as _, symlink};
use std::path::Path;
use std::time::{Duration, SystemTime};

use rustix::fs::{CWD, Mode, XattrFlags, mkfifoat};

use super::{Bench, assert_same, inode, see};
use crate::transaction::Changes;

type Misdeed = fn(&Path);

/// What is done, and to how many names in the eyes of a restoration: restored, deleted.
const MISDEEDS: &[(&str, Misdeed, usize, usize)] = &[
    ("nothing", |_| {}, 0, 0),
    (
        "change a file",
        |root| fs::write(root.join("src/main.rs"), "x").unwrap(),
        1,
        0,
    ),
    (
        "change a large file by a byte",
        |root| {
            let file = File::options()
                .write(true)
                .open(root.join("big.bin"))
                .unwrap();
            file.write_all_at(b"!", 150_000).unwrap();
        },
        1,
        0,
    ),
    (
        "append",
        |root| {
            let mut file = File::options()
                .append(true)
                .open(root.join("script.sh"))
                .unwrap();
            file.write_all(b"rm -rf /\n").unwrap();
        },
        1,
        0,
    ),
    (
        "truncate",
        |root| drop(File::create(root.join(".git/HEAD")).unwrap()),
        1,
        0,
    ),
    (
        "change a file and forge its time",
        |root| {
            let path = root.join("src/main.rs");
            let written = fs::metadata(&path).unwrap().modified().unwrap();
            fs::write(&path, "fn evil() {}\n").unwrap();
            let file = File::options().write(true).open(&path).unwrap();
            file.set_times(FileTimes::new().set_modified(written))
                .unwrap();
        },
        1,
        0,
    ),
    (
        "touch",
        |root| {
            let file = File::options()
                .write(true)
                .open(root.join("empty"))
                .unwrap();
            let old = SystemTime::UNIX_EPOCH + Duration::from_secs(1_000_000);
            file.set_times(FileTimes::new().set_modified(old)).unwrap();
        },
        1,
        0,
    ),
    (
        "change permissions",
        |root| {
            fs::set_permissions(root.join("script.sh"), Permissions::from_mode(0o4777)).unwrap();
            fs::set_permissions(root.join("src"), Permissions::from_mode(0o500)).unwrap();
        },
        2,
        0,
    ),
    (
        "delete a file",
        |root| fs::remove_file(root.join("empty")).unwrap(),
        1,
        0,
    ),
    (
        "delete a tree",
        |root| fs::remove_dir_all(root.join("src")).unwrap(),
        5,
        0,
    ),
    (
        "delete everything",
        |root| {
            for entry in fs::read_dir(root).unwrap() {
                let path = entry.unwrap().path();
                if path.is_dir() && !path.is_symlink() {
                    fs::remove_dir_all(path).unwrap();
                } else {
                    fs::remove_file(path).unwrap();
                }
            }
        },
        18,
        0,
    ),
    (
        "make files",
        |root| {
            fs::create_dir_all(root.join("new/er")).unwrap();
            fs::write(root.join("new/er/file"), "x").unwrap();
            fs::write(root.join("src/new"), "x").unwrap();
            symlink("/etc/passwd", root.join("hollow/link")).unwrap();
        },
        0,
        5,
    ),
    (
        "rename a file",
        |root| fs::rename(root.join("empty"), root.join("void")).unwrap(),
        1,
        1,
    ),
    (
        "swap two directories",
        |root| {
            fs::rename(root.join("src"), root.join("x")).unwrap();
            fs::rename(root.join("target"), root.join("src")).unwrap();
            fs::rename(root.join("x"), root.join("target")).unwrap();
        },
        6,
        6,
    ),
    (
        "a file becomes a directory",
        |root| {
            fs::remove_file(root.join("empty")).unwrap();
            fs::create_dir_all(root.join("empty/a/b")).unwrap();
            fs::write(root.join("empty/a/b/c"), "x").unwrap();
        },
        1,
        4,
    ),
    (
        "a directory becomes a file",
        |root| {
            fs::remove_dir_all(root.join("src/deep")).unwrap();
            fs::write(root.join("src/deep"), "x").unwrap();
        },
        3,
        1,
    ),
    (
        "a file becomes a link",
        |root| {
            fs::remove_file(root.join("empty")).unwrap();
            symlink("../outside/canary", root.join("empty")).unwrap();
        },
        1,
        0,
    ),
    (
        "a directory becomes a link to the outside",
        |root| {
            fs::remove_dir_all(root.join("hollow")).unwrap();
            symlink("../outside", root.join("hollow")).unwrap();
        },
        1,
        1,
    ),
    (
        "a full directory becomes a link to the outside",
        |root| {
            fs::rename(root.join("src"), root.join("gone")).unwrap();
            symlink("../outside", root.join("src")).unwrap();
        },
        5,
        6,
    ),
    (
        "links are turned",
        |root| {
            for name in ["link", "dangling", "out"] {
                fs::remove_file(root.join(name)).unwrap();
            }
            symlink("/etc", root.join("link")).unwrap();
            fs::write(root.join("dangling"), "x").unwrap();
            fs::create_dir(root.join("out")).unwrap();
        },
        3,
        1,
    ),
    (
        "save as editors do",
        |root| {
            fs::write(root.join("src/.main.rs.swp"), "new").unwrap();
            fs::rename(root.join("src/.main.rs.swp"), root.join("src/main.rs")).unwrap();
        },
        1,
        0,
    ),
    (
        "special files appear",
        |root| {
            mkfifoat(CWD, root.join("fifo"), Mode::RWXU).unwrap();
            drop(std::os::unix::net::UnixListener::bind(root.join("socket")).unwrap());
        },
        0,
        2,
    ),
    (
        "a pipe takes a file's name",
        |root| {
            fs::remove_file(root.join("empty")).unwrap();
            mkfifoat(CWD, root.join("empty"), Mode::RWXU).unwrap();
        },
        1,
        0,
    ),
    (
        "directories that nobody may enter",
        |root| {
            fs::create_dir_all(root.join("shut/in")).unwrap();
            fs::write(root.join("shut/in/file"), "x").unwrap();
            fs::set_permissions(root.join("shut/in"), Permissions::from_mode(0o0)).unwrap();
            fs::set_permissions(root.join("shut"), Permissions::from_mode(0o0)).unwrap();
        },
        0,
        3,
    ),
];

#[test]
fn a_restored_tree_is_the_tree_that_was() {
    for (what, misdeed, restored, deleted) in MISDEEDS {
        let bench = Bench::new();
        let (before, outside) = (see(&bench.root), bench.rest());
        let snapshot = bench.take();
        misdeed(&bench.root);
        let is_changed = !snapshot.changes(10).unwrap().is_empty();
        assert_eq!(is_changed, restored + deleted > 0, "{what}");

        let done = snapshot.restore().unwrap();
        assert_same(&before, &see(&bench.root));
        assert_eq!(bench.rest(), outside, "{what}");
        let seen = (done.restored, done.deleted, done.failed);
        assert_eq!(seen, (*restored, *deleted, 0), "{what}: {:?}", done.notes);
        assert_eq!(snapshot.changes(10).unwrap(), Changes::default(), "{what}");

        let again = snapshot.restore().unwrap();
        assert_eq!((again.restored, again.deleted), (0, 0), "{what}, once more");
    }
}

#[test]
fn what_is_unchanged_is_not_rewritten() {
    let bench = Bench::new();
    let snapshot = bench.take();
    let (same, touched) = (inode(bench.at("big.bin")), inode(bench.at("script.sh")));
    fs::set_permissions(bench.at("script.sh"), Permissions::from_mode(0o600)).unwrap();
    fs::write(bench.at("empty"), "x").unwrap();
    snapshot.restore().unwrap();
    assert_eq!(inode(bench.at("big.bin")), same);
    assert_eq!(
        inode(bench.at("script.sh")),
        touched,
        "its bytes were right"
    );
}

#[test]
fn changes_name_what_differs() {
    let bench = Bench::new();
    let snapshot = bench.take();
    fs::write(bench.at("src/main.rs"), "x").unwrap();
    fs::remove_dir_all(bench.at("target")).unwrap();
    bench.write("new/file", b"x");
    let changes = snapshot.changes(100).unwrap();
    let mut paths: Vec<&str> = changes
        .paths
        .iter()
        .filter_map(|path| path.to_str())
        .collect();
    paths.sort_unstable();
    assert_eq!(paths, ["new", "new/file", "src/main.rs", "target"]);
    assert_eq!((changes.changed, changes.new, changes.deleted), (1, 2, 3));
    let few = snapshot.changes(1).unwrap();
    assert_eq!((few.paths.len(), few.new), (1, 2));
}

#[test]
fn set_user_id_and_attributes_come_back() {
    let bench = Bench::new();
    let (script, name) = (bench.at("script.sh"), "user.note");
    fs::set_permissions(&script, Permissions::from_mode(0o4755)).unwrap();
    let has_attributes = rustix::fs::setxattr(&script, name, b"kept", XattrFlags::empty()).is_ok();
    let before = see(&bench.root);
    let snapshot = bench.take();
    fs::remove_file(&script).unwrap();
    snapshot.restore().unwrap();
    assert_same(&before, &see(&bench.root));
    let mut value = [0_u8; 16];
    if has_attributes {
        let length = rustix::fs::getxattr(&script, name, &mut value[..]).unwrap();
        assert_eq!(&value[..length], b"kept");
    }
}

#[test]
fn holes_stay_holes() {
    let bench = Bench::empty();
    let size = 1 << 40;
    let file = File::create(bench.at("sparse")).unwrap();
    file.set_len(size).unwrap();
    file.write_all_at(b"island", 1 << 30).unwrap();
    let snapshot = bench.take();
    file.write_all_at(b"ISLAND", 1 << 30).unwrap();
    file.set_len(1 << 31).unwrap();
    assert_eq!(snapshot.restore().unwrap().restored, 1);
    let back = File::open(bench.at("sparse")).unwrap();
    let mut found = [0; 6];
    back.read_exact_at(&mut found, 1 << 30).unwrap();
    let metadata = back.metadata().unwrap();
    assert_eq!((&found, metadata.len()), (b"island", size));
    assert!(metadata.blocks() < 1000, "{} blocks", metadata.blocks());
}

#[test]
fn what_is_in_a_scope_is_kept_and_nothing_else() {
    // Patterns within, patterns without, names that come back.
    let cases: &[(&[&str], &[&str], &[&str])] = &[
        (&[], &[], &["a.rs", "lib/b.rs", "lib/c.txt", "out/d.rs"]),
        (&["*.rs"], &[], &["a.rs", "lib/b.rs", "out/d.rs"]),
        (&["lib/"], &[], &["lib/b.rs", "lib/c.txt"]),
        (&["./lib/**"], &["c.*"], &["lib/b.rs"]),
        (&["/*.rs"], &[], &["a.rs"]),
        (&[], &["out", "*.txt"], &["a.rs", "lib/b.rs"]),
        (&["nothing"], &[], &[]),
        (&["."], &["**/*.rs"], &["lib/c.txt"]),
    ];
    let all = ["a.rs", "lib/b.rs", "lib/c.txt", "out/d.rs"];
    for (within, without, kept) in cases {
        for is_deleted in [true, false] {
            let mut bench = Bench::empty();
            all.iter().for_each(|name| bench.write(name, b"old"));
            let snapshot = bench.scope(within, without).take();
            for name in all {
                if is_deleted {
                    fs::remove_file(bench.at(name)).unwrap();
                } else {
                    fs::write(bench.at(name), "new!").unwrap();
                }
            }
            snapshot.restore().unwrap();
            for name in all {
                let found = fs::read(bench.at(name)).ok();
                let left: Option<&[u8]> = (!is_deleted).then_some(b"new!");
                let wanted = if kept.contains(&name) {
                    Some(&b"old"[..])
                } else {
                    left
                };
                assert_eq!(found.as_deref(), wanted, "{within:?} {without:?} {name}");
            }
        }
    }
}

#[test]
fn new_files_out_of_scope_stay() {
    let mut bench = Bench::empty();
    bench.write("src/a.rs", b"a");
    let snapshot = bench.scope(&["*.rs", "gen"], &["keep.rs"]).take();
    for name in [
        "src/new.rs",
        "src/new.txt",
        "docs/x/new.rs",
        "docs/new.md",
        "gen/x/y",
        "gen/keep.rs",
    ] {
        bench.write(name, b"new");
    }
    let done = snapshot.restore().unwrap();
    let left: Vec<_> = see(&bench.root)
        .into_iter()
        .filter(|(_, seen)| seen.kind == 'f')
        .map(|(path, _)| path.into_os_string().into_string().unwrap())
        .collect();
    assert_eq!(
        left,
        ["docs/new.md", "gen/keep.rs", "src/a.rs", "src/new.txt"]
    );
    assert_eq!(done.failed, 0, "{:?}", done.notes);
}

#[test]
fn files_of_several_names_are_one_file_again() {
    type Change = (&'static str, fn(&Bench));
    let changes: [Change; 4] = [
        ("written through one", |bench| bench.write("a", b"changed")),
        ("one replaced", |bench| {
            fs::remove_file(bench.at("a")).unwrap();
            bench.write("a", b"another");
        }),
        ("both gone", |bench| {
            fs::remove_file(bench.at("a")).unwrap();
            fs::remove_dir_all(bench.at("d")).unwrap();
        }),
        ("one moved over the other's place", |bench| {
            fs::remove_file(bench.at("d/b")).unwrap();
            bench.write("d/b", b"same");
        }),
    ];
    for (what, change) in changes {
        let bench = Bench::empty();
        bench.write("a", b"same");
        fs::create_dir(bench.at("d")).unwrap();
        fs::hard_link(bench.at("a"), bench.at("d/b")).unwrap();
        let snapshot = bench.take();
        change(&bench);
        let restored = snapshot.restore().unwrap();
        assert_eq!(restored.failed, 0, "{what}: {restored:?}");
        assert_eq!(fs::read(bench.at("d/b")).unwrap(), b"same", "{what}");
        let inode = |path| fs::metadata(bench.at(path)).unwrap().ino();
        assert_eq!(inode("a"), inode("d/b"), "{what}");
    }
}

#[test]
fn a_name_outside_that_was_parted_is_told() {
    let bench = Bench::empty();
    bench.write("a", b"same");
    fs::hard_link(bench.at("a"), bench.outside.join("other")).unwrap();
    let snapshot = bench.take();
    bench.write("a", b"changed");
    let restored = snapshot.restore().unwrap();
    assert_eq!(fs::read(bench.at("a")).unwrap(), b"same");
    let notes = restored.notes.join("\n");
    assert!(notes.contains("another name outside the tree"), "{notes}");
}
