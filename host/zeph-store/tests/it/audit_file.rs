//! The audit file: private, whole lines from several writers, rotation.

use std::collections::BTreeSet;
use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};

use serde_json::Value;
use zeph_core::id::ConversationId;
use zeph_store::{AuditEvent, AuditFile, BeginRecord, StoreError};

use crate::setup::{NOW_MS, begin, success, told};

fn numbered(number: usize, padding: usize) -> BeginRecord {
    let command = format!("{number}\n\r\u{2028}\t\"{}", "x".repeat(padding));
    BeginRecord {
        command,
        ..begin("read", ConversationId::new(), NOW_MS)
    }
}

/// The number in each line of a file; a line that is not a JSON object fails the test.
fn numbers(path: &Path) -> Vec<usize> {
    let text = fs::read_to_string(path).unwrap();
    assert!(text.is_empty() || text.ends_with('\n'));
    let number = |line: &str| {
        let line: Value = serde_json::from_str(line).unwrap();
        line["command"]
            .as_str()
            .unwrap()
            .lines()
            .next()
            .unwrap()
            .parse()
            .unwrap()
    };
    text.lines().map(number).collect()
}

fn older(path: &Path) -> PathBuf {
    let mut name = path.as_os_str().to_owned();
    name.push(".1");
    PathBuf::from(name)
}

#[test]
fn it_is_private_and_has_one_line_per_event() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("new/folder/audit.jsonl");
    let file = AuditFile::open(&path, 0).unwrap();
    let begin = numbered(1, 0);
    file.append(&AuditEvent::Begin(&begin)).unwrap();
    file.append(&AuditEvent::Finish(&success(begin.call_id, NOW_MS)))
        .unwrap();
    let text = fs::read_to_string(&path).unwrap();
    let events: Vec<Value> = text
        .lines()
        .map(|line| serde_json::from_str(line).unwrap())
        .collect();
    assert_eq!(events.len(), 2);
    assert_eq!(
        (&events[0]["event"], &events[1]["event"]),
        (&"begin".into(), &"finish".into())
    );
    assert_eq!(events[0]["call_id"], events[1]["call_id"]);
    let mode = |path: &Path| fs::metadata(path).unwrap().permissions().mode() & 0o777;
    assert_eq!(mode(&path), 0o600);
    assert_eq!(mode(path.parent().unwrap()), 0o700);
}

/// Several writers, each with its own open file, at once; gives back the numbers in the older and the current file.
fn write_from_many(
    path: &Path,
    n_writers: usize,
    n_each: usize,
    padding: usize,
    max_bytes: u64,
) -> Vec<usize> {
    std::thread::scope(|scope| {
        for writer in 0..n_writers {
            scope.spawn(move || {
                let file = AuditFile::open(path, max_bytes).unwrap();
                for n in 0..n_each {
                    file.append(&AuditEvent::Begin(&numbered(writer * n_each + n, padding)))
                        .unwrap();
                }
            });
        }
    });
    let mut all = if older(path).exists() {
        numbers(&older(path))
    } else {
        Vec::new()
    };
    all.extend(numbers(path));
    all
}

#[test]
fn lines_of_several_writers_stay_whole() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("audit.jsonl");
    let written = write_from_many(&path, 4, 200, 20_000, 0);
    assert_eq!(written.len(), 800);
    assert_eq!(
        written.into_iter().collect::<BTreeSet<_>>(),
        (0..800).collect()
    );
}

#[test]
fn a_rotation_between_several_writers_loses_no_line() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("audit.jsonl");
    // Room for all lines in two files, not in one: exactly one rotation, so nothing may be missing.
    let line_bytes = serde_json::to_vec(&AuditEvent::Begin(&numbered(100, 1_000)))
        .unwrap()
        .len()
        + 1;
    let max_bytes = u64::try_from(line_bytes * 250).unwrap();
    let written = write_from_many(&path, 4, 100, 1_000, max_bytes);
    assert!(older(&path).exists());
    assert!(fs::metadata(older(&path)).unwrap().len() <= max_bytes);
    assert_eq!(
        written.into_iter().collect::<BTreeSet<_>>(),
        (0..400).collect()
    );
}

#[test]
fn a_rotation_keeps_the_newest_lines() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("audit.jsonl");
    let written = write_from_many(&path, 1, 1_000, 100, 20_000);
    assert!(fs::metadata(&path).unwrap().len() <= 20_000);
    let n_kept = written.len();
    assert_eq!(written, (1_000 - n_kept..1_000).collect::<Vec<_>>());
    // A line larger than the limit has a file of its own.
    let file = AuditFile::open(&path, 20_000).unwrap();
    file.append(&AuditEvent::Begin(&numbered(1_000, 50_000)))
        .unwrap();
    file.append(&AuditEvent::Begin(&numbered(1_001, 0)))
        .unwrap();
    assert_eq!(
        (numbers(&older(&path)), numbers(&path)),
        (vec![1_000], vec![1_001])
    );
}

/// Of every name of it: one that leads to it does not become the older file.
#[test]
fn a_rotation_leaves_links_to_the_file() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("disk/audit.jsonl");
    let link = dir.path().join("audit.jsonl");
    fs::create_dir(dir.path().join("disk")).unwrap();
    std::os::unix::fs::symlink("disk/audit.jsonl", &link).unwrap();
    let by_link = AuditFile::open(&link, 1).unwrap();
    let by_name = AuditFile::open(&path, 1).unwrap();
    for number in 0..6 {
        let file = if number % 2 == 0 { &by_link } else { &by_name };
        file.append(&AuditEvent::Begin(&numbered(number, 0)))
            .unwrap();
    }
    assert!(link.is_symlink() && !older(&link).exists());
    assert_eq!((numbers(&older(&path)), numbers(&path)), (vec![4], vec![5]));
}

#[test]
fn a_file_that_was_moved_or_removed_is_started_again() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("audit.jsonl");
    let file = AuditFile::open(&path, 0).unwrap();
    file.append(&AuditEvent::Begin(&numbered(1, 0))).unwrap();
    fs::rename(&path, dir.path().join("kept.jsonl")).unwrap();
    file.append(&AuditEvent::Begin(&numbered(2, 0))).unwrap();
    fs::remove_file(&path).unwrap();
    file.append(&AuditEvent::Begin(&numbered(3, 0))).unwrap();
    assert_eq!(numbers(&dir.path().join("kept.jsonl")), [1]);
    assert_eq!(numbers(&path), [3]);
}

#[test]
fn what_cannot_be_written_says_so() {
    let dir = tempfile::tempdir().unwrap();
    let plain = dir.path().join("plain");
    fs::write(&plain, "").unwrap();
    let dangling = dir.path().join("link");
    std::os::unix::fs::symlink("nowhere/audit.jsonl", &dangling).unwrap();
    let to_dangling = dir.path().join("to-link");
    std::os::unix::fs::symlink("link", &to_dangling).unwrap();
    let circle = dir.path().join("circle");
    std::os::unix::fs::symlink("circle", &circle).unwrap();
    let directory = dir.path().to_owned();
    for path in [
        plain.join("audit.jsonl"),
        directory,
        dangling,
        to_dangling,
        circle,
    ] {
        assert!(AuditFile::check_place(&path).is_err(), "{}", path.display());
        let error = AuditFile::open(&path, 0).unwrap_err();
        assert!(matches!(error, StoreError::AuditFile { .. }), "{error:?}");
        let told = told(&error);
        assert!(
            told.starts_with(&format!(
                "cannot open the audit file `{}`: ",
                path.display()
            )),
            "{told}"
        );
        assert!(told.contains("`tools.audit.file`"), "{told}");
    }
    // What a link leads to in a folder that is there is made.
    let link = dir.path().join("other");
    std::os::unix::fs::symlink("kept.jsonl", &link).unwrap();
    // Of a bare name, the folder is the one that a process is in.
    AuditFile::check_place(Path::new("audit.jsonl")).unwrap();
    drop(AuditFile::open(&link, 0).unwrap());
    assert!(dir.path().join("kept.jsonl").is_file());
    let full = AuditFile::open(Path::new("/dev/full"), 0).unwrap();
    let error = full
        .append(&AuditEvent::Begin(&numbered(1, 0)))
        .unwrap_err();
    assert!(
        told(&error).starts_with("cannot write the audit file `/dev/full`: No space left"),
        "{}",
        told(&error)
    );
}
