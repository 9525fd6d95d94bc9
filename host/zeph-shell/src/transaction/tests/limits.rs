//! Every limit, with what is left behind when it is hit: nothing.

use std::fs::{self, Permissions};
use std::os::unix::fs::PermissionsExt as _;
use std::sync::atomic::Ordering;

use super::Bench;
use crate::transaction::{CommandEnd, Rollback, Snapshot, SnapshotScope, clean_leftovers};

#[track_caller]
fn refused(bench: &Bench, text: &str) {
    let error = Snapshot::take(&bench.root, &bench.options).unwrap_err();
    assert!(error.to_string().contains(text), "{error}");
    assert_eq!(bench.n_vaults(), 0, "nothing is left behind");
}

#[test]
fn bytes() {
    let mut bench = Bench::empty();
    bench.write("a", &[1; 600]);
    bench.write("b", &[1; 400]);
    bench.options.bytes_max = 1000;
    assert_eq!(bench.take().bytes(), 1000);
    bench.options.bytes_max = 999;
    refused(&bench, "above the 999 of `tools.shell.max_snapshot_bytes`");
    bench.scope(&[], &["b"]);
    assert_eq!(bench.take().bytes(), 600, "only what is in scope counts");
}

#[test]
fn a_file_of_many_bytes_is_refused_before_it_is_read() {
    let mut bench = Bench::empty();
    let file = fs::File::create(bench.at("huge")).unwrap();
    file.set_len(1 << 42).unwrap();
    bench.options.bytes_max = 1 << 30;
    refused(&bench, "max_snapshot_bytes");
}

#[test]
fn depth() {
    let bench = Bench::empty();
    let path = "d/".repeat(128);
    fs::create_dir_all(bench.at(&path)).unwrap();
    drop(bench.take());
    fs::create_dir(bench.at(&path).join("e")).unwrap();
    refused(&bench, "deeper than 128 levels");
}

#[test]
fn stop() {
    let bench = Bench::new();
    bench.options.stop.store(true, Ordering::Relaxed);
    refused(&bench, "stopped");
}

#[test]
fn a_place_that_others_can_write() {
    let bench = Bench::new();
    fs::create_dir(&bench.options.place).unwrap();
    fs::set_permissions(&bench.options.place, Permissions::from_mode(0o777)).unwrap();
    refused(&bench, "can be changed by other users");
}

#[test]
fn a_root_that_is_none() {
    let mut bench = Bench::new();
    bench.root = bench.at("script.sh");
    assert!(Snapshot::take(&bench.root, &bench.options).is_err());
    bench.root = bench.at("nowhere");
    assert!(Snapshot::take(&bench.root, &bench.options).is_err());
}

#[test]
fn copies_are_private_and_go_with_the_snapshot() {
    let bench = Bench::new();
    let snapshot = bench.take();
    let folder = fs::read_dir(&bench.options.place)
        .unwrap()
        .next()
        .unwrap()
        .unwrap();
    let mode = folder.metadata().unwrap().permissions().mode() & 0o777;
    assert_eq!(mode, 0o700);
    for copy in fs::read_dir(folder.path()).unwrap() {
        let mode = copy.unwrap().metadata().unwrap().permissions().mode() & 0o777;
        assert_eq!(mode, 0o600);
    }
    assert_eq!(clean_leftovers(&bench.options.place), 0, "it is in use");
    snapshot.restore().unwrap();
    drop(snapshot);
    assert_eq!(bench.n_vaults(), 0);
}

#[test]
fn what_a_dead_host_left_is_removed() {
    let bench = Bench::new();
    let snapshot = bench.take();
    let dead = bench.options.place.join("snapshot-dead");
    fs::create_dir(&dead).unwrap();
    fs::write(dead.join("pack"), "x").unwrap();
    fs::write(bench.options.place.join("other"), "not ours").unwrap();
    assert_eq!(clean_leftovers(&bench.options.place), 1);
    assert_eq!(bench.n_vaults(), 2, "the living one and the stranger");
    drop(snapshot);
}

#[test]
fn bad_patterns_are_named() {
    let error = SnapshotScope::new(&["src".to_owned(), "a[".to_owned()], &[]).unwrap_err();
    assert_eq!(error.to_string(), "bad pattern `a[`");
}

#[test]
fn rollback_follows_its_rule() {
    let usual = Rollback::OnFailure { exit_codes: vec![] };
    let listed = Rollback::OnFailure {
        exit_codes: vec![1, 7],
    };
    let cases = [
        (&usual, CommandEnd::Exited(0), false),
        (&usual, CommandEnd::Exited(1), false),
        (&usual, CommandEnd::Exited(2), true),
        (&usual, CommandEnd::Exited(127), true),
        (&usual, CommandEnd::Signalled, true),
        (&usual, CommandEnd::TimedOut, true),
        (&usual, CommandEnd::Cancelled, true),
        (&listed, CommandEnd::Exited(1), true),
        (&listed, CommandEnd::Exited(2), false),
        (&listed, CommandEnd::Signalled, true),
        (&Rollback::Never, CommandEnd::Exited(2), false),
        (&Rollback::Never, CommandEnd::TimedOut, false),
    ];
    for (rule, end, wanted) in cases {
        assert_eq!(rule.applies(end), wanted, "{rule:?} {end:?}");
    }
}
