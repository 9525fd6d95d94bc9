//! Transactions, through the border: a tree, what a command might do to it, and what is there after a restoration.

use std::collections::BTreeMap;
use std::fs::{self, Permissions};
use std::os::unix::fs::{MetadataExt, PermissionsExt, symlink};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::AtomicBool;

use tempfile::TempDir;

use super::{Snapshot, SnapshotOptions, SnapshotScope};

mod hostile;
mod limits;
mod plain_user;
mod random;
mod shared;
mod tree;
mod undo;

/// A tree to keep, a tree beside it that nothing may touch, and a place for copies.
struct Bench {
    top: TempDir,
    root: PathBuf,
    outside: PathBuf,
    options: SnapshotOptions,
}

/// One name as it is: kind, permissions, time of writing, bytes or target.
#[derive(Debug, Clone, PartialEq, Eq)]
struct Seen {
    kind: char,
    mode: u32,
    modified: (i64, i64),
    content: Vec<u8>,
}

impl Bench {
    /// A tree like a small repository, with a name of every awkward kind.
    fn new() -> Self {
        let bench = Self::empty();
        bench.write("src/main.rs", b"fn main() {}\n");
        bench.write("src/deep/er/mod.rs", b"mod x;\n");
        bench.write("script.sh", b"#!/bin/sh\n");
        bench.write("empty", b"");
        bench.write("big.bin", &vec![7; 300_000]);
        bench.write(".git/HEAD", b"ref: refs/heads/main\n");
        bench.write("target/debug/out", b"\x7fELF");
        bench.write("name with \n newline", b"odd");
        fs::set_permissions(bench.at("script.sh"), Permissions::from_mode(0o750)).unwrap();
        fs::create_dir(bench.at("hollow")).unwrap();
        symlink("src/main.rs", bench.at("link")).unwrap();
        symlink("nowhere", bench.at("dangling")).unwrap();
        symlink(&bench.outside, bench.at("out")).unwrap();
        fs::write(bench.outside.join("canary"), "untouched").unwrap();
        bench
    }

    fn empty() -> Self {
        let top = tempfile::tempdir().unwrap();
        let (root, outside) = (top.path().join("root"), top.path().join("outside"));
        fs::create_dir(&root).unwrap();
        fs::create_dir(&outside).unwrap();
        let options = SnapshotOptions {
            bytes_max: 0,
            scope: SnapshotScope::everything(),
            place: top.path().join("place"),
            stop: Arc::new(AtomicBool::new(false)),
        };
        Self {
            top,
            root,
            outside,
            options,
        }
    }

    fn at(&self, path: &str) -> PathBuf {
        self.root.join(path)
    }

    fn write(&self, path: &str, bytes: &[u8]) {
        let path = self.at(path);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(path, bytes).unwrap();
    }

    fn scope(&mut self, within: &[&str], without: &[&str]) -> &mut Self {
        let owned = |patterns: &[&str]| -> Vec<String> {
            patterns.iter().map(|&pattern| pattern.to_owned()).collect()
        };
        self.options.scope = SnapshotScope::new(&owned(within), &owned(without)).unwrap();
        self
    }

    fn take(&self) -> Snapshot {
        Snapshot::take(&self.root, &self.options).unwrap()
    }

    /// Everything outside the root but the copies.
    fn rest(&self) -> BTreeMap<PathBuf, Seen> {
        see(&self.outside)
    }

    /// Folders of copies that are there.
    fn n_vaults(&self) -> usize {
        fs::read_dir(&self.options.place).map_or(0, Iterator::count)
    }
}

/// Everything below `top`, `top` itself included.
fn see(top: &Path) -> BTreeMap<PathBuf, Seen> {
    let mut all = BTreeMap::new();
    let mut pending = vec![top.to_path_buf()];
    while let Some(path) = pending.pop() {
        let metadata = fs::symlink_metadata(&path).unwrap();
        let (kind, content) = if metadata.is_dir() {
            let entries = fs::read_dir(&path).unwrap();
            pending.extend(entries.map(|entry| entry.unwrap().path()));
            ('d', Vec::new())
        } else if metadata.is_symlink() {
            let target = fs::read_link(&path).unwrap();
            ('l', target.into_os_string().into_encoded_bytes())
        } else if metadata.is_file() {
            ('f', fs::read(&path).unwrap())
        } else {
            ('s', Vec::new())
        };
        let seen = Seen {
            kind,
            mode: metadata.mode() & 0o7777,
            modified: (metadata.mtime(), metadata.mtime_nsec()),
            content,
        };
        all.insert(path.strip_prefix(top).unwrap().to_path_buf(), seen);
    }
    all
}

/// Fails with the names that differ, not with the bytes of two whole trees.
#[track_caller]
fn assert_same(before: &BTreeMap<PathBuf, Seen>, after: &BTreeMap<PathBuf, Seen>) {
    let names = before.keys().chain(after.keys());
    for name in names {
        let (then, now) = (before.get(name), after.get(name));
        let short = |seen: Option<&Seen>| {
            seen.map(|seen| (seen.kind, seen.mode, seen.modified, seen.content.len()))
        };
        assert!(
            then == now,
            "{}: {:?} became {:?}",
            name.display(),
            short(then),
            short(now)
        );
    }
}

fn inode(path: impl AsRef<Path>) -> u64 {
    fs::symlink_metadata(path).unwrap().ino()
}
