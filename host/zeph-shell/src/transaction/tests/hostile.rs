//! Trees made to lead the host astray.

use std::fs;
use std::os::unix::fs::symlink;
use std::path::Path;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;

use rustix::fs::{CWD, Mode, OFlags, RenameFlags, mkfifoat, openat, renameat_with};

use super::{Bench, Snapshot, assert_same, see};
use crate::transaction::SnapshotError;

#[test]
fn links_to_the_outside_are_kept_as_links() {
    let bench = Bench::new();
    let secret = bench.top.path().join("secret");
    fs::write(&secret, "secret".repeat(10)).unwrap();
    symlink(&secret, bench.at("steal")).unwrap();
    let snapshot = bench.take();
    let kept: u64 = see(&bench.root)
        .values()
        .filter(|seen| seen.kind == 'f')
        .map(|seen| seen.content.len() as u64)
        .sum();
    assert_eq!(snapshot.bytes(), kept);
    fs::remove_file(bench.at("steal")).unwrap();
    snapshot.restore().unwrap();
    assert_eq!(fs::read_link(bench.at("steal")).unwrap(), secret);
}

/// A root of commands that a command led elsewhere.
#[test]
fn a_root_that_was_swapped_is_neither_kept_nor_put_back() {
    let bench = Bench::new();
    let held = crate::held_object::HeldObject::open(&bench.root).unwrap();
    let kept = Snapshot::take_held(&held, &bench.options, None).unwrap();
    fs::rename(&bench.root, bench.top.path().join("away")).unwrap();
    symlink(&bench.outside, &bench.root).unwrap();
    let before = bench.rest();
    let taken = Snapshot::take_held(&held, &bench.options, Some(&kept));
    assert!(
        matches!(taken, Err(SnapshotError::RootReplaced)),
        "{taken:?}"
    );
    assert!(kept.restore().is_err());
    assert_eq!(bench.rest(), before);
}

#[test]
fn a_file_with_a_name_outside_is_not_written_through() {
    let bench = Bench::new();
    let (inside, outside) = (bench.at("shared"), bench.outside.join("shared"));
    fs::write(&outside, "before").unwrap();
    fs::hard_link(&outside, &inside).unwrap();
    let snapshot = bench.take();
    fs::write(&inside, "after!").unwrap();
    snapshot.restore().unwrap();
    assert_eq!(fs::read_to_string(&inside).unwrap(), "before");
    assert_eq!(
        fs::read_to_string(&outside).unwrap(),
        "after!",
        "what the command did outside is not undone, and nothing is added to it"
    );

    // A name that was lent to something outside while the bytes are the same.
    let file = bench.outside.join("lent");
    fs::write(&file, "before").unwrap();
    fs::remove_file(&inside).unwrap();
    fs::hard_link(&file, &inside).unwrap();
    let outside = bench.rest();
    snapshot.restore().unwrap();
    assert_eq!(bench.rest(), outside, "times and permissions stay, too");
}

#[test]
fn names_of_one_file_are_told_apart() {
    let bench = Bench::empty();
    bench.write("one", b"shared");
    fs::hard_link(bench.at("one"), bench.at("two")).unwrap();
    let before = see(&bench.root);
    let snapshot = bench.take();
    fs::write(bench.at("one"), "changed").unwrap();
    snapshot.restore().unwrap();
    assert_same(&before, &see(&bench.root));
}

#[test]
fn a_very_deep_and_a_very_wide_new_tree_are_deleted() {
    let bench = Bench::new();
    let before = see(&bench.root);
    let snapshot = bench.take();
    let mut handle = openat(CWD, &bench.root, OFlags::DIRECTORY, Mode::empty()).unwrap();
    for _ in 0..400 {
        rustix::fs::mkdirat(&handle, "a-long-name-for-a-directory", Mode::RWXU).unwrap();
        rustix::fs::mkdirat(&handle, "beside", Mode::RWXU).unwrap();
        handle = openat(
            &handle,
            "a-long-name-for-a-directory",
            OFlags::DIRECTORY,
            Mode::empty(),
        )
        .unwrap();
    }
    for name in 0..250 {
        drop(fs::File::create(bench.root.join(format!("n{name}"))).unwrap());
    }
    let done = snapshot.restore().unwrap();
    assert_eq!(
        (done.restored, done.deleted, done.failed),
        (0, 1_050, 0),
        "{:?}",
        done.notes
    );
    assert_same(&before, &see(&bench.root));
}

#[test]
fn pipes_and_sockets_are_known_and_not_kept() {
    let bench = Bench::new();
    mkfifoat(CWD, bench.at("fifo"), Mode::RWXU).unwrap();
    let snapshot = bench.take();
    assert!(
        snapshot.notes()[0].starts_with("`fifo` is a FIFO"),
        "{:?}",
        snapshot.notes()
    );
    assert_eq!(snapshot.restore().unwrap().failed, 0, "it is there");
    fs::remove_file(bench.at("fifo")).unwrap();
    fs::write(bench.at("fifo"), "x").unwrap();
    let done = snapshot.restore().unwrap();
    assert_eq!((done.failed, done.deleted), (1, 0));
    assert!(
        done.notes[0].contains("`fifo` could not be restored"),
        "{:?}",
        done.notes
    );
    assert_eq!(
        fs::read(bench.at("fifo")).unwrap(),
        b"x",
        "what took its place is left alone"
    );
}

#[test]
fn names_are_shown_without_their_tricks() {
    let bench = Bench::empty();
    mkfifoat(CWD, bench.at("a\n[tool_error]\u{1b}[2J"), Mode::RWXU).unwrap();
    let note = bench.take().notes()[0].clone();
    assert!(!note.contains(['\n', '\u{1b}']), "{note:?}");
}

#[test]
fn the_hosts_own_copies_below_the_root_are_not_entered() {
    let mut bench = Bench::new();
    bench.options.place = bench.root.join(".state/snapshots");
    let snapshot = bench.take();
    drop(bench.take());
    bench.write("new", b"x");
    let done = snapshot.restore().unwrap();
    assert_eq!(
        (done.restored, done.deleted, done.failed),
        (0, 1, 0),
        "{:?}",
        done.notes
    );
    // Moved to where only new things are: it stays nevertheless.
    fs::create_dir(bench.at("elsewhere")).unwrap();
    fs::rename(bench.at(".state/snapshots"), bench.at("elsewhere/moved")).unwrap();
    snapshot.restore().unwrap();
    assert!(bench.at("elsewhere/moved").is_dir());
}

#[test]
fn another_directory_at_the_roots_path_is_refused() {
    let bench = Bench::new();
    let snapshot = bench.take();
    fs::rename(&bench.root, bench.top.path().join("moved")).unwrap();
    let outside = bench.rest();
    for replace in [
        (|bench: &Bench| symlink(&bench.outside, &bench.root).unwrap()) as fn(&Bench),
        |bench| fs::create_dir(&bench.root).unwrap(),
    ] {
        replace(&bench);
        let text = snapshot.restore().unwrap_err().to_string();
        assert_eq!(text, "the directory is not the one that was kept");
        assert_eq!(bench.rest(), outside);
        drop(fs::remove_file(&bench.root));
    }
}

/// While a program swaps a directory for a link to the outside as fast as it can, and back.
fn while_swapping(bench: &Bench, mut work: impl FnMut()) {
    symlink(&bench.outside, bench.at("swap")).unwrap();
    bench.write("victim/inner/canary", b"inside");
    bench.write("victim/canary", b"inside");
    fs::create_dir(bench.outside.join("inner")).unwrap();
    fs::write(bench.outside.join("inner/canary"), "untouched").unwrap();
    let (one, other) = (bench.at("victim"), bench.at("swap"));
    let is_over = AtomicBool::new(false);
    thread::scope(|scope| {
        scope.spawn(|| {
            while !is_over.load(Ordering::Relaxed) {
                let _ = renameat_with(CWD, &one, CWD, &other, RenameFlags::EXCHANGE);
            }
        });
        work();
        is_over.store(true, Ordering::Relaxed);
    });
}

#[test]
fn a_directory_swapped_for_a_link_leads_nowhere() {
    let bench = Bench::new();
    let holds_canary = |path: &Path| fs::read(path).is_ok_and(|bytes| bytes == b"untouched");
    let mut outside = None;
    while_swapping(&bench, || {
        outside.get_or_insert_with(|| bench.rest());
        for round in 0..150 {
            let Ok(snapshot) = super::Snapshot::take(&bench.root, &bench.options) else {
                continue;
            };
            bench.write("noise", format!("{round}").as_bytes());
            drop(fs::remove_dir_all(bench.at("src")));
            // A name that is a directory one moment and a link the next cannot always be put back; the rest can.
            snapshot.restore().unwrap();
            assert!(bench.at("src/main.rs").is_file());
        }
    });
    assert_eq!(
        Some(bench.rest()),
        outside,
        "nothing outside was written or deleted"
    );
    for place in ["victim", "swap"] {
        let is_link = bench.at(place).is_symlink();
        assert!(
            is_link || !holds_canary(&bench.at(place).join("canary")),
            "no bytes from outside came in"
        );
    }
}
