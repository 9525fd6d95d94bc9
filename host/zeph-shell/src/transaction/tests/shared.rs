//! Snapshots taken one after another share copies, and each is whole.

use std::fs;
use std::sync::Arc;
use std::time::Duration;

use super::{Bench, assert_same, see};
use crate::transaction::Snapshot;

/// Makes every stamp in the tree older than the doubt about fresh ones. The doubt itself is tested by all other tests.
fn settle() {
    std::thread::sleep(Duration::from_millis(150));
}

#[test]
fn only_what_changed_is_copied_again() {
    let bench = Bench::new();
    settle();
    let first = bench.take();
    assert_eq!(first.bytes_copied(), first.bytes());
    bench.write("src/main.rs", b"changed");
    settle();
    let before_second = see(&bench.root);
    let second = Snapshot::take_after(&first, &bench.root, &bench.options).unwrap();
    assert_eq!(
        (second.bytes_copied(), second.n_files()),
        (7, first.n_files())
    );
    let third = Snapshot::take_after(&second, &bench.root, &bench.options).unwrap();
    assert_eq!(
        bench.n_vaults(),
        2,
        "a vault that holds nothing is gone at once"
    );

    drop(first);
    drop(second);
    for entry in fs::read_dir(&bench.root).unwrap() {
        let path = entry.unwrap().path();
        drop(fs::remove_dir_all(&path).or_else(|_| fs::remove_file(&path)));
    }
    assert_eq!(third.restore().unwrap().failed, 0);
    assert_same(&before_second, &see(&bench.root));
    drop(third);
    assert_eq!(bench.n_vaults(), 0);
}

#[test]
fn fresh_files_are_copied_again_since_their_stamps_may_lie() {
    let bench = Bench::new();
    let first = bench.take();
    bench.write("src/main.rs", b"fn evil() {}\n");
    let before = see(&bench.root);
    let second = Snapshot::take_after(&first, &bench.root, &bench.options).unwrap();
    bench.write("src/main.rs", b"fn void() {}\n");
    second.restore().unwrap();
    assert_same(&before, &see(&bench.root));
}

#[test]
fn an_earlier_snapshot_of_another_root_is_of_no_use() {
    let (one, other) = (Bench::new(), Bench::new());
    settle();
    let first = Arc::new(one.take());
    let second = Snapshot::take_after(&first, &other.root, &other.options).unwrap();
    assert_eq!(second.bytes_copied(), second.bytes());
}
