//! Notes of hosts that are gone, and those of this one. Nothing is run.

use std::fs::{self, File};
use std::path::{Path, PathBuf};

use rustix::fs::{FlockOperation, flock};
use serde_json::json;

use super::FOLDER;
use crate::jail::tests::harness::Room;

fn room() -> (Room, PathBuf) {
    let mut room = Room::new();
    let records = room.outside.join("records");
    let folder = records.join(FOLDER);
    fs::create_dir_all(&folder).unwrap();
    room.policy.records = Some(records);
    (room, folder)
}

fn note(folder: &Path, begin_ns: i64, roots: &[&Path]) -> PathBuf {
    let path = folder.join("left");
    fs::write(
        &path,
        json!({"begin_ns": begin_ns, "roots": roots}).to_string(),
    )
    .unwrap();
    path
}

/// What the first command of another host is told.
fn told(room: &Room) -> Option<String> {
    let mut mark = room.jail().note_command().unwrap();
    Some(mark.found.take()?.text)
}

#[test]
fn what_a_killed_host_left_is_told_once_and_stays() {
    let (room, folder) = room();
    room.host(
        "echo x > .envrc; mkdir -p .vscode sub lib node_modules/p .ssh; echo x > .vscode/tasks.json; git init -q sub; \
         echo true > sub/.git/hooks/pre-push; echo x > lib/plain.txt; echo x > node_modules/p/.npmrc; echo x > .bashrc",
    );
    let left = note(&folder, 0, &[&room.work]);
    let text = told(&room).unwrap();
    for name in [
        ".envrc",
        ".vscode",
        ".bashrc",
        ".ssh",
        "sub/.git/hooks/pre-push",
    ] {
        let path = room.work.join(name);
        assert!(
            text.contains(&format!("`{}`", path.display())),
            "{name}: {text}"
        );
        assert!(path.exists(), "{name}");
    }
    assert!(
        !text.contains("plain") && !text.contains("node_modules") && !text.contains("more"),
        "{text}"
    );
    assert!(!left.exists());
    assert_eq!(told(&room), None);
}

#[test]
fn a_note_is_told_where_it_belongs_alone() {
    let (room, folder) = room();
    fs::write(room.work.join(".envrc"), "x").unwrap();
    let later = i64::MAX;
    let outside = room.outside.as_path();
    let gone = room.outside.join("gone");
    // When its commands began, what they could change, and whether it is told and stays.
    for (begin_ns, roots, is_told, stays) in [
        (later, vec![room.work.as_path()], false, false),
        (0, vec![room.work.as_path(), outside], false, true),
        (0, vec![gone.as_path()], false, false),
        (0, vec![room.work.as_path()], true, false),
    ] {
        let left = note(&folder, begin_ns, &roots);
        assert_eq!(told(&room).is_some(), is_told, "{begin_ns} {roots:?}");
        assert_eq!(left.exists(), stays, "{begin_ns} {roots:?}");
    }
    // Its host lives.
    let left = note(&folder, 0, &[&room.work]);
    let lock = File::open(&left).unwrap();
    flock(&lock, FlockOperation::LockExclusive).unwrap();
    assert_eq!(told(&room), None);
    assert!(left.exists());
    drop(lock);
    // What says nothing.
    fs::write(&left, "").unwrap();
    assert_eq!(told(&room), None);
    assert!(!left.exists());
}

#[test]
fn a_note_speaks_while_commands_run_and_goes_with_the_host() {
    let (mut room, folder) = room();
    let jail = room.jail();
    let own = || -> Vec<(String, bool)> {
        let entries = fs::read_dir(&folder).unwrap().flatten();
        let entries = entries.map(|entry| {
            let file = File::open(entry.path()).unwrap();
            let is_locked = flock(&file, FlockOperation::NonBlockingLockExclusive).is_err();
            (fs::read_to_string(entry.path()).unwrap(), is_locked)
        });
        entries.collect()
    };
    let marks = [jail.note_command(), jail.note_command()].map(Option::unwrap);
    for mark in marks {
        let notes = own();
        let [(text, true)] = &notes[..] else {
            panic!("{notes:?}");
        };
        assert!(text.contains(room.work.to_str().unwrap()), "{text}");
        drop(mark);
    }
    assert_eq!(own(), [(String::new(), true)]);
    drop(jail);
    assert_eq!(own(), []);
    // No place for it.
    room.policy.records = Some(PathBuf::from("/proc/nowhere"));
    assert!(room.jail().note_command().unwrap().found.is_none());
    room.policy.records = None;
    assert!(room.jail().note_command().is_none());
}
