//! A host that is not root: rights that are missing, owners that cannot be given back.

use std::fs::{self, Permissions};
use std::os::unix::fs::{MetadataExt as _, PermissionsExt as _, chown};
use std::thread;

use rustix::process::Uid;
use rustix::process::geteuid;
use rustix::thread::set_thread_res_uid;

use crate::left_out::leave_out;

use super::{Bench, assert_same, see};

/// A user who owns nothing here.
const NOBODY: u32 = 65_534;

/// Runs `work` on a thread of an ordinary user. Credentials are a thread's own; it ends with them.
fn as_plain_user(work: impl FnOnce() + Send + 'static) {
    let run = move || {
        if geteuid().is_root() {
            let nobody = Uid::from_raw(NOBODY);
            set_thread_res_uid(nobody, nobody, nobody).unwrap();
        }
        work();
    };
    thread::spawn(run).join().unwrap();
}

#[test]
fn directories_without_rights_are_restored() {
    as_plain_user(|| {
        let bench = Bench::new();
        for name in ["src/deep", "src", "hollow"] {
            fs::set_permissions(bench.at(name), Permissions::from_mode(0o555)).unwrap();
        }
        let before = see(&bench.root);
        let snapshot = bench.take();
        for name in ["src", "src/deep"] {
            fs::set_permissions(bench.at(name), Permissions::from_mode(0o755)).unwrap();
        }
        fs::remove_file(bench.at("src/main.rs")).unwrap();
        bench.write("src/deep/new/file", b"x");
        for name in ["src/deep/new", "src/deep", "src", "hollow"] {
            fs::set_permissions(bench.at(name), Permissions::from_mode(0o0)).unwrap();
        }
        let done = snapshot.restore().unwrap();
        assert_eq!(done.failed, 0, "{:?}", done.notes);
        assert_same(&before, &see(&bench.root));
        for name in ["src", "src/deep", "hollow"] {
            fs::set_permissions(bench.at(name), Permissions::from_mode(0o755)).unwrap();
        }
    });
}

#[test]
fn what_cannot_be_read_is_told_and_left_alone() {
    as_plain_user(|| {
        let bench = Bench::new();
        for name in ["script.sh", "target"] {
            fs::set_permissions(bench.at(name), Permissions::from_mode(0o0)).unwrap();
        }
        let snapshot = bench.take();
        let notes = snapshot.notes().join("\n");
        assert!(
            notes.contains("`script.sh` is a file the host may not read"),
            "{notes}"
        );
        assert!(
            notes.contains("`target` is a directory the host may not read"),
            "{notes}"
        );
        fs::set_permissions(bench.at("target"), Permissions::from_mode(0o755)).unwrap();
        bench.write("target/new", b"x");
        assert_eq!(snapshot.restore().unwrap().failed, 0);
        assert!(
            bench.at("target/new").exists(),
            "what was not looked at is not judged"
        );
        fs::remove_file(bench.at("script.sh")).unwrap();
        assert_eq!(snapshot.restore().unwrap().failed, 1);
    });
}

#[test]
fn a_right_of_the_owner_is_not_lent_by_another() {
    if !geteuid().is_root() {
        return leave_out("only root can make another user's file");
    }
    let bench = Bench::new();
    let script = bench.at("script.sh");
    chown(&script, Some(1), Some(1)).unwrap();
    fs::set_permissions(&script, Permissions::from_mode(0o6755)).unwrap();
    for path in [bench.top.path(), &bench.root] {
        chown(path, Some(NOBODY), None).unwrap();
    }
    as_plain_user(move || {
        let snapshot = bench.take();
        fs::remove_file(&script).unwrap();
        let done = snapshot.restore().unwrap();
        let found = fs::metadata(&script).unwrap();
        assert_eq!((found.uid(), found.mode() & 0o7777), (NOBODY, 0o755));
        assert!(
            done.notes[0].contains("its owner could not be restored"),
            "{:?}",
            done.notes
        );
    });
}
