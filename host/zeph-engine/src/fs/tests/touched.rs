//! What a call was told, asked again: an answer that still holds is the one a fresh call gets.
//!
//! The oracle is a call that is made anew, under the same policy, after random changes by others.

use std::fs::{self, File};
use std::os::unix::fs::{PermissionsExt as _, symlink};
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use proptest::prelude::*;
use wasmtime::component::Resource;
use wasmtime_wasi::p2::bindings::sync::filesystem::types::{
    HostDescriptor as _, OpenFlags, PathFlags,
};
use zeph_core::capability::FsRights;

use super::{Guest, READ, Tree, code, walk};
use crate::bindings::zeph::plugin::walk::{HostWalker, Options};
use crate::fs::{FsCtx, FsPolicy, Touched};

/// Names that exist at times, as what they are at first, and some that do not.
const NAMES: [&str; 12] = [
    "a",
    "b",
    "d",
    "d/x",
    "d/y",
    "e",
    "e/x",
    "l",
    "hidden",
    ".gitignore",
    "d/.ignore",
    "new",
];

/// A change by another program, at one or two of the names.
#[derive(Debug, Clone, Copy)]
enum Change {
    /// The same length each time.
    Write(u8),
    /// With the time of the last change set back.
    WriteUnseen(u8),
    Cut,
    Remove,
    Rename,
    /// A link to the second name, in place of a link that is there, in one step.
    Link,
    HardLink,
    MakeDirectory,
    Mode,
}

const CALLS: [&str; 17] = [
    "read a",
    "read d/x",
    "read e/../d/x",
    "read l",
    "read l/x",
    "read hidden",
    "read new",
    "list .",
    "list d",
    "list l",
    "stat d/y",
    "lstat l",
    "readlink l",
    "below d",
    "walk .",
    "filtered d",
    "filtered .",
];

fn tree() -> Tree {
    let tree = Tree::new();
    tree.file("ws/a", "aaaa")
        .file("ws/b", "b/\n*")
        .file("ws/d/x", "xxxx")
        .file("ws/e/x", "XXXX")
        .file("ws/hidden", "no")
        .file("ws/.gitignore", "y\nb\n")
        .link("ws/l", "d");
    tree
}

fn policy(tree: &Tree) -> Arc<FsPolicy> {
    let grant = tree.grant(&[("ws", FsRights::READ)], &["**/hidden"], &[]);
    Arc::new(FsPolicy::new(&grant).expect("policy"))
}

/// What a watched call answers, and what it was told for that.
fn answer(policy: &Arc<FsPolicy>, call: &str) -> (String, Option<Touched>) {
    let mut guest = Guest::of(Arc::clone(policy));
    guest.ctx = FsCtx::new(Arc::clone(policy)).watched();
    let (verb, name) = call.split_once(' ').expect("verb and name");
    let answer = match verb {
        "below" => below(&mut guest, name),
        "walk" => spelled(&mut guest, name, false),
        "filtered" => spelled(&mut guest, name, true),
        _ => guest.run(call),
    };
    (answer, guest.ctx.take_touched())
}

/// Reads `x` and looks for what is not there, from the handle of a directory.
fn below(guest: &mut Guest, name: &str) -> String {
    let opened = match guest.open(name, OpenFlags::DIRECTORY, READ) {
        Ok(opened) => opened.rep(),
        Err(error) => return code(error),
    };
    let again = || Resource::new_own(opened);
    let absent = guest
        .view()
        .stat_at(again(), PathFlags::empty(), "none".to_owned());
    let absent = absent.map_or_else(code, |_| "there".to_owned());
    let follow = PathFlags::SYMLINK_FOLLOW;
    let file = guest
        .view()
        .open_at(again(), follow, "x".to_owned(), OpenFlags::empty(), READ);
    let read = file.and_then(|file| guest.view().read(file, 100, 0));
    let read = read.map_or_else(code, |(bytes, _)| format!("{bytes:?}"));
    format!("{absent} {read}")
}

/// A walk with sizes and times; with the usual filters when `standard`.
fn spelled(guest: &mut Guest, root: &str, standard: bool) -> String {
    let options = Options {
        standard_filters: standard,
        sizes: !standard,
        ..walk::options()
    };
    let opened = HostWalker::open(&mut guest.view(), root.to_owned(), options).expect("no trap");
    let walker = match opened {
        Ok(walker) => walker.rep(),
        Err(error) => return format!("{error:?}"),
    };
    let mut spelled = String::new();
    loop {
        let batch = guest.view().next(Resource::new_own(walker), 4);
        let batch = batch.expect("no trap").expect("entries");
        if batch.is_empty() {
            return spelled;
        }
        for entry in batch {
            spelled += &format!("{entry:?}\n");
        }
    }
}

/// Makes the change as far as it can be made.
fn change(top: &Path, (change, at, other): (Change, usize, usize)) {
    let (at, other) = (top.join(NAMES[at]), NAMES[other]);
    let there = top.join(other);
    let done = match change {
        Change::Write(byte) => fs::write(&at, [byte; 4]),
        Change::WriteUnseen(byte) => write_unseen(&at, byte),
        Change::Cut => File::options()
            .write(true)
            .truncate(true)
            .open(&at)
            .map(drop),
        Change::Remove => fs::remove_file(&at).or_else(|_| fs::remove_dir_all(&at)),
        Change::Rename => fs::rename(&at, &there),
        Change::Link => {
            let new = top.join("new link");
            symlink(other, &new).and_then(|()| fs::rename(&new, &at))
        }
        Change::HardLink => fs::hard_link(&at, &there),
        Change::MakeDirectory => fs::create_dir(&at),
        Change::Mode => fs::set_permissions(&at, fs::Permissions::from_mode(0o755)),
    };
    // Many cannot be made at the moment; then nothing has changed.
    drop(done);
    drop(fs::remove_file(top.join("new link")));
}

fn write_unseen(at: &Path, byte: u8) -> std::io::Result<()> {
    let modified = fs::metadata(at)?.modified()?;
    fs::write(at, [byte; 4])?;
    File::options().write(true).open(at)?.set_modified(modified)
}

/// Lets the clock of the file system pass by all that has changed.
fn settle() {
    std::thread::sleep(Duration::from_millis(25));
}

/// Answers of earlier calls must be those of fresh ones for as long as they hold. Returns how often one held.
fn check(changes: &[(Change, usize, usize)], is_patient: bool) -> usize {
    let tree = tree();
    let policy = policy(&tree);
    let mut kept: [Option<(String, Touched)>; CALLS.len()] = std::array::from_fn(|_| None);
    let mut n_held = 0;
    for step in changes {
        if is_patient {
            settle();
        }
        for (call, kept) in CALLS.iter().zip(&mut kept) {
            let held = kept.take().filter(|(_, touched)| touched.holds(&policy));
            let (fresh, touched) = answer(&policy, call);
            if let Some((earlier, _)) = &held {
                assert_eq!(*earlier, fresh, "`{call}` after {changes:?}");
                n_held += 1;
            }
            *kept = held.or_else(|| Some((fresh, touched?)));
        }
        change(&tree.at("ws"), *step);
    }
    n_held
}

fn changes(n: usize) -> impl Strategy<Value = Vec<(Change, usize, usize)>> {
    let kind = prop_oneof![
        (b'a'..=b'z').prop_map(Change::Write),
        (b'a'..=b'z').prop_map(Change::WriteUnseen),
        Just(Change::Cut),
        Just(Change::Remove),
        Just(Change::Rename),
        Just(Change::Link),
        Just(Change::HardLink),
        Just(Change::MakeDirectory),
        Just(Change::Mode),
    ];
    let change = (kind, 0..NAMES.len(), 0..NAMES.len());
    proptest::collection::vec(change, 1..n)
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 16, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn an_answer_that_holds_is_the_fresh_one(changes in changes(12)) {
        check(&changes, true);
    }

    // Faster than the clock of the file system: what changed just now is not trusted.
    #[test]
    fn changes_within_one_tick_are_not_overlooked(changes in changes(120)) {
        check(&changes, false);
    }
}

#[cfg(target_os = "linux")]
#[test]
fn an_answer_holds_until_what_it_depends_on_changes() {
    type Step = (Change, &'static str, &'static str);
    let steps: [(Step, &[&str]); 7] = [
        // Nothing that is there.
        ((Change::Cut, "new", "a"), &[]),
        ((Change::Write(b'q'), "a", "a"), &["read a", "walk ."]),
        (
            (Change::WriteUnseen(b'r'), "d/x", "a"),
            &["read d/x", "read e/../d/x", "read l/x", "below d", "walk ."],
        ),
        (
            (Change::Link, "l", "e"),
            &[
                "read l",
                "read l/x",
                "list .",
                "list l",
                "lstat l",
                "readlink l",
                "walk .",
                "filtered .",
            ],
        ),
        (
            (Change::Write(b'z'), "new", "a"),
            &["read new", "list .", "walk .", "filtered ."],
        ),
        (
            (Change::Write(b'\n'), ".gitignore", "a"),
            &["walk .", "filtered d", "filtered ."],
        ),
        (
            (Change::MakeDirectory, "d/y", "a"),
            &["list d", "stat d/y", "walk .", "filtered d", "filtered ."],
        ),
    ];
    let tree = tree();
    let policy = policy(&tree);
    let number = |name| {
        NAMES
            .iter()
            .position(|known| *known == name)
            .expect("a name")
    };
    for ((kind, at, other), ended) in steps {
        settle();
        let answers = CALLS.map(|call| (call, answer(&policy, call).1.expect(call)));
        change(&tree.at("ws"), (kind, number(at), number(other)));
        for (call, touched) in answers {
            let holds = touched.holds(&policy);
            assert_eq!(
                holds,
                !ended.contains(&call),
                "`{call}` after {kind:?} of {at}"
            );
        }
    }
}

#[cfg(target_os = "linux")]
#[test]
fn what_was_asked_twice_is_asked_again_once() {
    let tree = tree();
    settle();
    let policy = policy(&tree);
    let touched = |calls: &[&str]| {
        let mut guest = Guest::of(Arc::clone(&policy));
        guest.ctx = FsCtx::new(Arc::clone(&policy)).watched();
        for call in calls {
            guest.run(call);
        }
        guest.ctx.take_touched().expect("it is watched")
    };
    let once = touched(&["read d/x"]);
    let twice = touched(&["read d/x", "read d/x"]);
    assert_eq!(twice.bytes(), once.bytes());
    // Not when something else was asked in between, which may be another file by then.
    let apart = touched(&["read d/x", "read e/x", "read d/x"]);
    assert!(apart.bytes() > 2 * once.bytes());
    assert!(twice.holds(&policy) && apart.holds(&policy));
    tree.file("ws/d/x", "other");
    assert!(!twice.holds(&policy) && !apart.holds(&policy));
}

#[test]
fn what_cannot_be_asked_again_is_not_kept() {
    let tree = tree();
    tree.hard_link("ws/a", "ws/second");
    for n in 0..4_200 {
        tree.file(&format!("ws/many/{}/{n}", n % 3), "");
    }
    settle();
    let policy = policy(&tree);
    // A file with a second name, which may be hidden; more than is kept.
    for call in ["read a", "walk many"] {
        assert!(answer(&policy, call).1.is_none(), "{call}");
    }
    assert!(answer(&policy, "read d/x").1.is_some() || cfg!(not(target_os = "linux")));
    tree.file("ws/d/x", "just now");
    assert!(answer(&policy, "read d/x").1.is_none());
    // What only fails at what it finds tells of it, too.
    for call in ["unlink none", "mkdir d", "rename none d", "touch none"] {
        assert!(answer(&policy, call).1.is_none(), "{call}");
    }
    let mut unwatched = Guest::of(policy);
    assert_eq!(unwatched.run("read d/x"), "just now");
    assert!(unwatched.ctx.take_touched().is_none());
}
