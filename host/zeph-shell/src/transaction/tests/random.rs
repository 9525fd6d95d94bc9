//! Random trees and random mischief: restoring gives the tree that was there, and nothing beside it changes.

use std::fs::{self, FileTimes, Permissions};
use std::os::unix::fs::{PermissionsExt as _, symlink};
use std::path::{Path, PathBuf};
use std::time::{Duration, SystemTime};

use proptest::prelude::*;
use rustix::fs::{CWD, Mode, RenameFlags, mkfifoat, renameat_with};

use super::{Bench, assert_same, see};
use crate::transaction::Snapshot;

/// One step; names are drawn from few, so that steps meet each other.
#[derive(Debug, Clone)]
enum Step {
    Write(String, usize),
    WriteInPlace(String, u8),
    Directory(String),
    Link(String, String),
    HardLink(String, String),
    Remove(String),
    Rename(String, String),
    Exchange(String, String),
    Mode(String, u32),
    Touch(String, u64),
    Fifo(String),
}

fn path() -> impl Strategy<Value = String> {
    proptest::collection::vec(prop::sample::select(vec!["a", "b", "c", "é\n"]), 1..4)
        .prop_map(|parts| parts.join("/"))
}

fn target() -> impl Strategy<Value = String> {
    prop_oneof![
        path(),
        Just("../outside".to_owned()),
        Just("../../outside/canary".to_owned()),
        Just("/".to_owned())
    ]
}

fn step() -> impl Strategy<Value = Step> {
    prop_oneof![
        4 => (path(), prop::sample::select(vec![0_usize, 1, 70, 70_000, 200_000]))
            .prop_map(|(path, size)| Step::Write(path, size)),
        2 => (path(), any::<u8>()).prop_map(|(path, byte)| Step::WriteInPlace(path, byte)),
        3 => path().prop_map(Step::Directory),
        2 => (path(), target()).prop_map(|(path, target)| Step::Link(path, target)),
        1 => (path(), path()).prop_map(|(old, new)| Step::HardLink(old, new)),
        3 => path().prop_map(Step::Remove),
        2 => (path(), path()).prop_map(|(old, new)| Step::Rename(old, new)),
        1 => (path(), path()).prop_map(|(old, new)| Step::Exchange(old, new)),
        1 => (path(), 0_u32..0o10000).prop_map(|(path, mode)| Step::Mode(path, mode)),
        1 => (path(), 0_u64..2_000_000_000).prop_map(|(path, time)| Step::Touch(path, time)),
        1 => path().prop_map(Step::Fifo),
    ]
}

/// Does what the step says where it can be done without following a link: a command is kept inside by the jail, not by this.
fn play(root: &Path, step: &Step) {
    let at = |path: &String| Some(root.join(path)).filter(|path| is_straight(root, path));
    let done: Option<()> = (|| match step {
        Step::Write(path, size) => {
            // Never a pipe, which would wait for a reader.
            let is_free = |path: &PathBuf| path.is_file() || path.symlink_metadata().is_err();
            let path = at(path).filter(|path| !path.is_symlink() && is_free(path))?;
            fs::write(path, vec![b'x'; *size]).ok()
        }
        Step::WriteInPlace(path, byte) => {
            use std::os::unix::fs::FileExt as _;
            let path = at(path).filter(|path| !path.is_symlink() && path.is_file())?;
            let file = fs::File::options().write(true).open(path).ok()?;
            file.write_all_at(&[*byte], 0).ok()
        }
        Step::Directory(path) => fs::create_dir(at(path)?).ok(),
        Step::Link(path, target) => symlink(target, at(path)?).ok(),
        Step::HardLink(old, new) => fs::hard_link(at(old)?, at(new)?).ok(),
        Step::Remove(path) => {
            let path = at(path)?;
            fs::remove_file(&path)
                .or_else(|_| fs::remove_dir_all(&path))
                .ok()
        }
        Step::Rename(old, new) => fs::rename(at(old)?, at(new)?).ok(),
        Step::Exchange(old, new) => {
            renameat_with(CWD, at(old)?, CWD, at(new)?, RenameFlags::EXCHANGE).ok()
        }
        Step::Mode(path, mode) => {
            let path = at(path).filter(|path| !path.is_symlink())?;
            fs::set_permissions(path, Permissions::from_mode(*mode)).ok()
        }
        Step::Touch(path, seconds) => {
            let path = at(path).filter(|path| !path.is_symlink() && path.is_file())?;
            let time = SystemTime::UNIX_EPOCH + Duration::from_secs(*seconds);
            let file = fs::File::open(path).ok()?;
            file.set_times(FileTimes::new().set_modified(time)).ok()
        }
        Step::Fifo(path) => mkfifoat(CWD, at(path)?, Mode::RWXU).ok(),
    })();
    let _ = done;
}

fn is_straight(root: &Path, path: &Path) -> bool {
    let parents = path
        .ancestors()
        .skip(1)
        .take_while(|parent| *parent != root);
    parents.into_iter().all(|parent| !parent.is_symlink())
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 100, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn a_restored_tree_is_the_tree_that_was(
        before in proptest::collection::vec(step(), 0..25),
        between in proptest::collection::vec(step(), 0..6),
        after in proptest::collection::vec(step(), 0..25),
    ) {
        let bench = Bench::empty();
        fs::write(bench.outside.join("canary"), "untouched").unwrap();
        // A pipe that was there is not kept; everything else is.
        let plain = |step: &&Step| !matches!(step, Step::Fifo(_));
        before.iter().filter(plain).for_each(|step| play(&bench.root, step));
        let first = bench.take();
        between.iter().filter(plain).for_each(|step| play(&bench.root, step));
        let (then, outside) = (see(&bench.root), bench.rest());
        let second = Snapshot::take_after(&first, &bench.root, &bench.options).unwrap();
        drop(first);

        after.iter().for_each(|step| play(&bench.root, step));
        let done = second.restore().unwrap();
        prop_assert_eq!(done.failed, 0, "{:?}", done.notes);
        assert_same(&then, &see(&bench.root));
        prop_assert_eq!(bench.rest(), outside);
        prop_assert!(second.changes(10).unwrap().is_empty());
    }
}
