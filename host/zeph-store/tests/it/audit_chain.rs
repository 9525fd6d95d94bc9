//! The chain over the lines of the audit file, and checkpoints.

use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};

use uuid::Uuid;
use zeph_core::id::{CallId, ConversationId};
use zeph_store::{
    AuditEvent, AuditFile, AuditKeyFolder, AuditKeys, AuditPlace, AuditProblemKind, BeginRecord,
    ChainHead, ChainReport, Checkpoints, FileReport, ForgottenChain, RemovalStatement, verify_file,
};

use crate::setup::{NOW_MS, begin, success};

struct Log {
    dir: tempfile::TempDir,
    keys: AuditKeys,
}

impl Log {
    fn new() -> Self {
        let dir = tempfile::tempdir().unwrap();
        let folder = AuditKeyFolder::new(dir.path().join("secrets"));
        let keys = folder.read_or_make(NOW_MS).unwrap();
        Self { dir, keys }
    }

    fn path(&self) -> PathBuf {
        self.dir.path().join("audit.jsonl")
    }

    fn open(&self, max_bytes: u64) -> AuditFile {
        let file = AuditFile::open(&self.path(), max_bytes).unwrap();
        file.chained(self.keys.clone())
    }

    fn verify(&self) -> FileReport {
        verify_file(&self.path(), &self.keys, &BTreeSet::new()).unwrap()
    }

    fn sound(&self) -> FileReport {
        let report = self.verify();
        assert_eq!(report.problems, []);
        report
    }

    /// The lines of the current file.
    fn lines(&self) -> Vec<String> {
        let text = fs::read_to_string(self.path()).unwrap();
        text.lines().map(str::to_owned).collect()
    }

    fn set_lines(&self, lines: &[String]) {
        fs::write(self.path(), lines.join("\n") + "\n").unwrap();
    }
}

fn numbered(n: usize) -> BeginRecord {
    BeginRecord {
        command: format!("{{\"n\":{n}}}"),
        ..begin("read", ConversationId::new(), NOW_MS)
    }
}

/// Appends the begins and ends of `n` calls.
fn write(file: &AuditFile, n: usize) -> Vec<CallId> {
    let mut calls = Vec::new();
    for n in 0..n {
        let begin = numbered(n);
        calls.push(begin.call_id);
        file.append(&AuditEvent::Begin(&begin)).unwrap();
        file.append(&AuditEvent::Finish(&success(begin.call_id, NOW_MS)))
            .unwrap();
    }
    calls
}

#[test]
fn lines_of_several_hosts_are_one_chain() {
    let log = Log::new();
    fs::write(log.path(), "{\"event\":\"begin\"}\n").unwrap();
    std::thread::scope(|scope| {
        for _ in 0..4 {
            scope.spawn(|| write(&log.open(0), 100));
        }
    });
    let report = log.sound();
    assert_eq!((report.n_before, report.n_lines), (1, 801));
    assert_eq!((report.first, report.count), (1, 801));
    for line in log.lines() {
        assert!(
            serde_json::from_str::<serde_json::Value>(&line).is_ok(),
            "{line}"
        );
    }
}

#[test]
fn a_rotation_goes_on_and_says_what_is_gone() {
    let log = Log::new();
    std::thread::scope(|scope| {
        for _ in 0..3 {
            scope.spawn(|| write(&log.open(20_000), 100));
        }
    });
    let report = log.sound();
    assert!(report.first > 1, "older lines went: {report:?}");
    assert_eq!(report.n_lines, report.count - report.first + 1);
    // Another host goes on where the last one stopped.
    write(&log.open(20_000), 3);
    assert!(log.sound().count >= report.count + 6);
    // The older file is missed.
    let older = log.dir.path().join("audit.jsonl.1");
    fs::remove_file(older).unwrap();
    let problems = log.verify().problems;
    assert_eq!(problems.len(), 1, "{problems:#?}");
    assert_eq!(problems[0].kind, AuditProblemKind::Removed);
}

#[test]
fn every_kind_of_tampering_is_named() {
    use AuditProblemKind::{Changed, Inserted, Removed, Reordered};
    type Tampering = fn(&mut Vec<String>);
    // Line 11 (from 1) is the end of the fifth call.
    let tries: [(&str, Tampering, AuditProblemKind, u64); 7] = [
        (
            "changed",
            |lines| lines[10] = lines[10].replace("success", "failure"),
            Changed,
            11,
        ),
        (
            "number",
            |lines| lines[10] = lines[10].replace("\"seq\":11", "\"seq\":12"),
            Removed,
            11,
        ),
        ("removed", |lines| drop(lines.remove(10)), Removed, 11),
        ("swapped", |lines| lines.swap(10, 11), Reordered, 12),
        (
            "inserted",
            |lines| lines.insert(10, "{\"event\":\"begin\"}".to_owned()),
            Inserted,
            11,
        ),
        (
            "repeated",
            |lines| {
                let line = lines[4].clone();
                lines.insert(10, line);
            },
            Inserted,
            11,
        ),
        (
            "beginning",
            |lines| {
                lines.remove(0);
                lines.remove(0);
            },
            Removed,
            1,
        ),
    ];
    for (what, tamper, kind, line) in tries {
        let log = Log::new();
        let calls = write(&log.open(0), 10);
        log.sound();
        let mut lines = log.lines();
        tamper(&mut lines);
        log.set_lines(&lines);
        let problems = log.verify().problems;
        let place = AuditPlace::File {
            file: log.path(),
            line,
        };
        let found = problems
            .iter()
            .find(|problem| problem.kind == kind && problem.place == place);
        let found = found.unwrap_or_else(|| panic!("{what}: {problems:#?}"));
        if what == "changed" {
            assert_eq!(found.call_id, Some(calls[4].to_string()));
        }
        assert!(problems.len() <= 3, "{what}: {problems:#?}");
    }
}

#[test]
fn a_torn_line_is_taken_out_and_told() {
    let log = Log::new();
    write(&log.open(0), 3);
    let whole = fs::read(log.path()).unwrap();
    for n_torn in [1, 40, 200] {
        fs::write(log.path(), &whole[..whole.len() - n_torn]).unwrap();
        let before = log.verify();
        assert_eq!(
            (before.problems.len(), before.notes.len()),
            (0, 1),
            "{before:?}"
        );
        write(&log.open(0), 2);
        let after = log.sound();
        assert_eq!(after.notes.len(), 1, "{after:?}");
        assert!(after.notes[0].contains("not whole"), "{after:?}");
        for line in log.lines() {
            assert!(
                serde_json::from_str::<serde_json::Value>(&line).is_ok(),
                "{line}"
            );
        }
    }
}

/// The host can be made to write a line of the chain itself, such as by a torn end; the log cannot begin there.
#[test]
fn a_log_begins_only_where_the_host_began_it() {
    use AuditProblemKind::{Inserted, Removed};
    let forged = || "{\"event\":\"begin\",\"call_id\":\"forged\"}".to_owned();
    let repaired = |before: &str| {
        let log = Log::new();
        fs::write(log.path(), before).unwrap();
        write(&log.open(0), 5);
        let torn = fs::read_to_string(log.path()).unwrap() + "{\"torn";
        fs::write(log.path(), torn).unwrap();
        write(&log.open(0), 2);
        log.sound();
        log
    };
    for before in ["", "old line\n", "old line, torn"] {
        let log = repaired(before);
        let whole = log.lines();
        let repair = whole.iter().position(|line| line.contains("\"repair\""));
        log.set_lines(&whole[repair.unwrap()..]);
        assert_eq!(log.verify().problems[0].kind, Removed, "{before:?}");
        let mut more = whole.clone();
        more.insert(0, forged());
        log.set_lines(&more);
        assert_eq!(log.verify().problems[0].kind, Inserted, "{before:?}");
        if !before.is_empty() {
            log.set_lines(&whole[1..]);
            assert_eq!(log.verify().problems[0].kind, Removed, "{before:?}");
        }
    }
    let log = Log::new();
    write(&log.open(4_000), 40);
    log.sound();
    let older = log.dir.path().join("audit.jsonl.1");
    let text = fs::read_to_string(&older).unwrap();
    fs::write(&older, forged() + "\n" + &text).unwrap();
    let problems = log.verify().problems;
    assert_eq!(problems[0].kind, Inserted, "{problems:#?}");
    assert_eq!(problems[0].call_id.as_deref(), Some("forged"));
}

#[test]
fn a_file_that_was_taken_away_is_missed() {
    let log = Log::new();
    let file = log.open(0);
    write(&file, 3);
    fs::rename(log.path(), log.dir.path().join("kept.jsonl")).unwrap();
    write(&file, 1);
    let problems = log.verify().problems;
    assert_eq!(problems.len(), 1, "{problems:#?}");
    assert_eq!(problems[0].kind, AuditProblemKind::Removed);
}

#[test]
fn another_key_takes_over() {
    let log = Log::new();
    write(&log.open(0), 2);
    let keys = AuditKeyFolder::new(log.dir.path().join("secrets"))
        .add(NOW_MS)
        .unwrap();
    let log = Log { keys, ..log };
    write(&log.open(0), 2);
    assert_eq!(log.sound().n_lines, 1 + 4 + 1 + 4);
    let stranger = AuditKeys::of_process();
    let report = verify_file(&log.path(), &stranger, &BTreeSet::new()).unwrap();
    assert_eq!(report.problems[0].kind, AuditProblemKind::KeyMissing);
}

#[test]
fn lines_of_a_lost_key_are_a_note_where_it_was_said_to_be_lost() {
    let log = Log::new();
    write(&log.open(0), 2);
    let start: serde_json::Value = serde_json::from_str(&log.lines()[0]).unwrap();
    let lost = start["key"].as_str().unwrap().to_owned();
    let log = Log {
        keys: AuditKeys::of_process(),
        ..log
    };
    write(&log.open(0), 2);
    let kinds = |report: &FileReport| -> Vec<AuditProblemKind> {
        report.problems.iter().map(|problem| problem.kind).collect()
    };
    let accepted = |lost: &str| {
        let mut report = log.verify();
        report.accept_lost(&[lost.to_owned()]);
        report
    };
    assert_eq!(kinds(&log.verify()), [AuditProblemKind::KeyMissing]);
    assert_eq!(kinds(&accepted("another")), [AuditProblemKind::KeyMissing]);
    let report = accepted(&lost);
    assert_eq!((kinds(&report), report.n_lines), (Vec::new(), 1 + 4));
    assert!(report.notes[0].starts_with("5 lines"), "{report:?}");
    // Lines of that key after some that were verified are nobody's.
    let mut lines = log.lines();
    let first = lines[..5].to_vec();
    lines.extend(first);
    log.set_lines(&lines);
    assert!(kinds(&accepted(&lost)).contains(&AuditProblemKind::KeyMissing));
}

fn head(count: i64, digit: char) -> ChainHead {
    ChainHead {
        origin: "one".to_owned(),
        count,
        head: digit.to_string().repeat(64),
    }
}

/// A log whose events 1 to 9 have the codes 1… to 9…; retention removed the first two.
fn report() -> ChainReport {
    ChainReport {
        origin: "one".to_owned(),
        count: 9,
        n_removed_events: 2,
        codes: (3..=9).map(|n| (n, n.to_string().repeat(64))).collect(),
        ..ChainReport::default()
    }
}

/// A log that is not in the store.
const FOUR: Uuid = Uuid::from_u128(4);

/// A log that is not looked at, whose host says that it removed the log `four` up to record 5.
fn of_other(is_verified: bool) -> ChainReport {
    let chain = ForgottenChain {
        host: "gone".to_owned(),
        origin: FOUR,
        upto: 5,
        upto_code: "5".repeat(64),
        upto_key: String::new(),
        at_ms: NOW_MS,
    };
    ChainReport {
        host: Some("other".to_owned()),
        origin: "two".to_owned(),
        forgotten: vec![RemovalStatement {
            by: "other".to_owned(),
            chain,
            is_verified,
        }],
        ..ChainReport::default()
    }
}

fn compared(dir: &Path, keys: &AuditKeys, lines: &[String]) -> zeph_store::CheckpointReport {
    let path = dir.join("checkpoints");
    fs::write(&path, lines.join("\n")).unwrap();
    Checkpoints::read(&path, keys)
        .unwrap()
        .compare((&[report()], &[of_other(true)]), None)
}

#[test]
fn a_log_with_a_checkpoint_was_removed_only_by_who_can_be_believed() {
    let log = Log::new();
    let path = log.dir.path().join("checkpoints");
    let removed = AuditProblemKind::Removed;
    for (n, digit, is_verified, expected) in [
        (4, '4', true, None),
        (5, '5', true, None),
        (5, '6', true, Some(removed)),
        (6, '6', true, Some(removed)),
        (4, '4', false, Some(AuditProblemKind::KeyMissing)),
        (6, '6', false, Some(removed)),
    ] {
        let head = ChainHead {
            origin: FOUR.to_string(),
            ..head(n, digit)
        };
        fs::write(&path, log.keys.checkpoint(&head, None, NOW_MS)).unwrap();
        let checkpoints = Checkpoints::read(&path, &log.keys).unwrap();
        let found = checkpoints.compare((&[report()], &[of_other(is_verified)]), None);
        let kinds: Vec<_> = found.problems.iter().map(|problem| problem.kind).collect();
        let expected: Vec<_> = expected.into_iter().collect();
        assert_eq!(kinds, expected, "{n} {digit} {is_verified}: {found:?}");
    }
}

#[test]
fn checkpoints_show_truncation_and_a_rewrite() {
    let log = Log::new();
    let line = |head: ChainHead| log.keys.checkpoint(&head, None, NOW_MS);
    let other = ChainHead {
        origin: "two".to_owned(),
        ..head(5, '5')
    };
    let entry = serde_json::json!({ "MESSAGE": line(head(8, '8')), "PRIORITY": "5" }).to_string();
    let good = [
        line(head(1, '1')),
        line(head(4, '4')),
        line(other),
        entry,
        "noise".to_owned(),
    ];
    let found = compared(log.dir.path(), &log.keys, &good);
    assert_eq!(
        (found.n_good, found.n_older, found.n_others),
        (2, 1, 1),
        "{found:?}"
    );
    assert_eq!(found.problems, []);
    for (line, kind) in [
        (line(head(12, 'c')), AuditProblemKind::Truncated),
        // Its store was removed as a whole.
        (
            line(ChainHead {
                origin: "three".to_owned(),
                ..head(2, '2')
            }),
            AuditProblemKind::Removed,
        ),
        (line(head(7, 'f')), AuditProblemKind::Rewritten),
        (
            line(head(7, '7')).replace("\"count\":7", "\"count\":6"),
            AuditProblemKind::Changed,
        ),
        (
            line(head(7, '7')).replace("\"code\"", "\"core\""),
            AuditProblemKind::Changed,
        ),
        (
            AuditKeys::of_process().checkpoint(&head(7, '7'), None, NOW_MS),
            AuditProblemKind::KeyMissing,
        ),
    ] {
        let found = compared(log.dir.path(), &log.keys, &[good[1].clone(), line]);
        assert_eq!(found.problems.len(), 1, "{found:?}");
        assert_eq!(found.problems[0].kind, kind);
    }
    let none = compared(log.dir.path(), &log.keys, &["noise".to_owned()]);
    assert_eq!(none.problems.len(), 1, "{none:?}");
}

#[test]
fn checkpoints_show_a_file_that_was_cut() {
    let log = Log::new();
    let file = log.open(0);
    write(&file, 5);
    let seen = file.head().unwrap().unwrap();
    assert_eq!(seen.count, 11);
    let line = log.keys.checkpoint(&head(8, '8'), Some(seen), NOW_MS);
    let path = log.dir.path().join("checkpoints");
    fs::write(&path, line).unwrap();
    let against = |log: &Log| {
        let checkpoints = Checkpoints::read(&path, &log.keys).unwrap();
        let lines = checkpoints.lines();
        let file = verify_file(&log.path(), &log.keys, &lines).unwrap();
        assert_eq!(file.problems, [], "at a line end nothing else shows it");
        let chains = [report()];
        checkpoints.compare((&chains, &[]), Some(&file)).problems
    };
    assert_eq!(against(&log), []);
    let mut lines = log.lines();
    lines.truncate(7);
    log.set_lines(&lines);
    let problems = against(&log);
    assert_eq!(problems.len(), 1, "{problems:#?}");
    assert_eq!(problems[0].kind, AuditProblemKind::Truncated);
}
