//! Checkpoints: what leaves the machine of the chain, signed, so that a truncation and a rewrite by a key holder show.
//!
//! A checkpoint is one line of JSON with the number and the code of the newest event, and of the newest line of the audit file, and a code
//! over its own bytes.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};
use std::time::Duration;

use serde::{Deserialize, Serialize};
use serde_json::Value;

use super::chain::{ChainHead, ChainReport};
use super::code::{CODE_BYTES, from_hex, hex};
use super::earlier::RemovalStatement;
use super::file::verify::FileReport;
use super::problem::{AuditPlace, AuditProblem, AuditProblemKind, Problems};
use crate::error::StoreError;
use crate::operations::Operations;
use crate::secrets::audit_keys::AuditKeys;
use crate::store::{Access, Store};

/// How a checkpoint begins, and what stands between what it says and its code.
const BEGINNING: &str = "{\"event\":\"checkpoint\",";
const BEFORE_CODE: &str = ",\"code\":\"";
const AFTER_CODE: &str = "\"}";

/// Bytes of a file with checkpoints at most.
const FILE_BYTES_MAX: u64 = 256 << 20;

/// How often checkpoints are taken.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum CheckpointEvery {
    /// After so many events.
    Records(u64),
    /// After so much time, when anything was recorded.
    Time(Duration),
}

/// Whether a checkpoint is due.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct CheckpointDue {
    /// Now, in Unix milliseconds.
    pub at_ms: i64,
    /// `None`: in any case.
    pub every: Option<CheckpointEvery>,
}

impl CheckpointDue {
    /// Whether one is due of `head`, when the last was of event `n` at `at_ms`.
    pub(crate) fn is_due(&self, head: &ChainHead, (n, at_ms): (i64, i64)) -> bool {
        let n_new = u64::try_from(head.count.saturating_sub(n)).unwrap_or(0);
        // One that was taken ahead of now was by a clock that was wrong: to wait for that moment could take years.
        let is_ahead = at_ms > self.at_ms;
        let passed_ms = u128::try_from(self.at_ms.saturating_sub(at_ms)).unwrap_or(0);
        match self.every {
            None => true,
            Some(CheckpointEvery::Records(every)) => n_new >= every.max(1),
            Some(CheckpointEvery::Time(every)) => {
                n_new > 0 && (is_ahead || passed_ms >= every.as_millis())
            }
        }
    }
}

/// The newest line of an audit file.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct FileHead {
    /// How many lines there have been, those that rotation removed among them.
    pub count: u64,
    /// The code of the last, as hexadecimal digits.
    pub head: String,
}

/// What a checkpoint says.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
struct CheckpointBody {
    event: String,
    /// Unix seconds.
    timestamp: String,
    origin: String,
    count: i64,
    head: String,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    file: Option<FileHead>,
    key: String,
}

/// The checkpoints of a file.
#[derive(Debug)]
pub struct Checkpoints {
    path: PathBuf,
    good: Vec<(u64, CheckpointBody)>,
    problems: Problems,
}

/// What the comparison with checkpoints found.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize)]
pub struct CheckpointReport {
    /// Checkpoints that the audit agrees with.
    pub n_good: u64,
    /// Checkpoints of what retention has removed since.
    pub n_older: u64,
    /// Checkpoints of logs that are not looked at, or not there.
    pub n_others: u64,
    /// What is wrong.
    #[serde(skip)]
    pub problems: Vec<AuditProblem>,
}

impl AuditKeys {
    /// A checkpoint as one line without its end, signed with the newest key.
    pub fn checkpoint(&self, chain: &ChainHead, file: Option<FileHead>, at_ms: i64) -> String {
        let Some(key) = self.newest() else {
            return String::new();
        };
        let body = CheckpointBody {
            event: "checkpoint".to_owned(),
            timestamp: at_ms.div_euclid(1000).to_string(),
            origin: chain.origin.clone(),
            count: chain.count,
            head: chain.head.clone(),
            file,
            key: key.id.clone(),
        };
        let mut line = serde_json::to_string(&body).unwrap_or_default();
        line.pop();
        let code = key.checkpoint.code(&[line.as_bytes()]);
        format!("{line}{BEFORE_CODE}{}{AFTER_CODE}", hex(&code))
    }
}

impl Store {
    /// The newest event, if a checkpoint of it is due; it counts as handed out from then on, for all hosts.
    ///
    /// Errors: what the database says.
    pub async fn take_checkpoint(
        &self,
        due: CheckpointDue,
    ) -> Result<Option<ChainHead>, StoreError> {
        let work = move |operations: &dyn Operations| operations.take_checkpoint(&due);
        self.run("take a checkpoint of the audit", Access::Write, work)
            .await
    }

    /// Makes a checkpoint due again that was taken of `head` and could not be handed over, for all hosts.
    ///
    /// Errors: what the database says.
    pub async fn give_back_checkpoint(&self, head: &ChainHead) -> Result<(), StoreError> {
        let n = head.count;
        let work = move |operations: &dyn Operations| operations.give_back_checkpoint(n);
        self.run("give back a checkpoint", Access::Write, work)
            .await
    }
}

impl Store {
    /// The newest line of the audit file; `None` when there is no file, or no line with a code.
    ///
    /// Errors: [`StoreError::AuditFile`].
    pub fn audit_file_head(&self) -> Result<Option<FileHead>, StoreError> {
        match &self.audit_file {
            Some(file) => file.head(),
            None => Ok(None),
        }
    }
}

impl Checkpoints {
    /// Reads the checkpoints in a file: one in each line, or what `journalctl -o json` or `-o cat` prints. Other lines are skipped.
    ///
    /// Errors: [`StoreError::Checkpoints`]; a file of more than 256 MiB is one.
    pub fn read(path: &Path, keys: &AuditKeys) -> Result<Self, StoreError> {
        let fault = |source| StoreError::Checkpoints {
            path: path.to_owned(),
            source,
        };
        let n_bytes = std::fs::metadata(path).map_err(fault)?.len();
        if n_bytes > FILE_BYTES_MAX {
            return Err(fault(std::io::ErrorKind::FileTooLarge.into()));
        }
        let text = std::fs::read(path).map_err(fault)?;
        let mut this = Self {
            path: path.to_owned(),
            good: Vec::new(),
            problems: Problems::default(),
        };
        for (number, line) in (1..).zip(text.split(|byte| *byte == b'\n')) {
            let line = String::from_utf8_lossy(line);
            if let Some(checkpoint) = found(&line) {
                this.add(number, &checkpoint, keys);
            }
        }
        Ok(this)
    }

    fn add(&mut self, line: u64, text: &str, keys: &AuditKeys) {
        let Some((body, code)) = split(text) else {
            return self.bad(line, AuditProblemKind::Changed, "it is not whole");
        };
        let parsed: Result<CheckpointBody, _> = serde_json::from_str(&format!("{body}}}"));
        let Ok(parsed) = parsed else {
            return self.bad(line, AuditProblemKind::Changed, "it makes no sense");
        };
        let Some(key) = keys.named(&parsed.key) else {
            return self.bad(
                line,
                AuditProblemKind::KeyMissing,
                "the key it was signed with is missing",
            );
        };
        if key.checkpoint.code(&[body.as_bytes()]) != code {
            let message = "its code is not that of what it says";
            return self.bad(line, AuditProblemKind::Changed, message);
        }
        self.good.push((line, parsed));
    }

    fn bad(&mut self, line: u64, kind: AuditProblemKind, message: &str) {
        let problem = self.problem(line, kind, format!("the checkpoint: {message}"));
        self.problems.add(problem);
    }

    fn problem(&self, line: u64, kind: AuditProblemKind, message: String) -> AuditProblem {
        AuditProblem {
            kind,
            place: AuditPlace::File {
                file: self.path.clone(),
                line,
            },
            call_id: None,
            message,
        }
    }

    /// The numbers of the events that are compared.
    pub fn events(&self) -> BTreeSet<i64> {
        self.good.iter().map(|(_, body)| body.count).collect()
    }

    /// The numbers of the lines of the audit file that are compared.
    pub fn lines(&self) -> BTreeSet<u64> {
        let files = self.good.iter().filter_map(|(_, body)| body.file.as_ref());
        files.map(|file| file.count).collect()
    }

    /// Compares them with what was found in the store and in the audit file. `left_out`: the chains that are in the store and not to be looked
    /// at.
    ///
    /// A log that has a checkpoint and is not there is a problem: when a whole store is removed, its host begins another log.
    pub fn compare(
        self,
        (chains, left_out): (&[ChainReport], &[ChainReport]),
        file: Option<&FileReport>,
    ) -> CheckpointReport {
        let all = chains.iter().chain(left_out);
        let said: Vec<&RemovalStatement> = all.flat_map(|chain| &chain.forgotten).collect();
        let mut gone = BTreeSet::new();
        let mut report = CheckpointReport::default();
        let mut problems = self.problems.clone();
        for (line, body) in &self.good {
            let Some(chain) = chains.iter().find(|chain| chain.origin == body.origin) else {
                report.n_others += 1;
                let is_left_out = left_out.iter().any(|chain| chain.origin == body.origin);
                if !is_left_out
                    && let Some((kind, message)) = missed(body, &said)
                    && gone.insert(&body.origin)
                {
                    problems.add(self.problem(*line, kind, message));
                }
                continue;
            };
            let in_store = of_chain(body, chain);
            let in_file = body
                .file
                .as_ref()
                .zip(file)
                .map_or(Agreement::Older, |(head, file)| of_file(head, file));
            for (agreement, what) in [(&in_store, "the store"), (&in_file, "the audit file")] {
                if let Agreement::Wrong(kind, message) = agreement {
                    problems.add(self.problem(*line, *kind, format!("{what}: {message}")));
                }
            }
            match (in_store, in_file) {
                (Agreement::Wrong(..), _) | (_, Agreement::Wrong(..)) => {}
                (Agreement::Older, Agreement::Older) => report.n_older += 1,
                _ => report.n_good += 1,
            }
        }
        if self.good.is_empty() {
            let message = "no line is a checkpoint of this audit log".to_owned();
            problems.add(self.problem(0, AuditProblemKind::Removed, message));
        }
        report.problems = problems.list;
        report
    }
}

/// What is wrong with a log that has a checkpoint and is not there, unless a host that can be believed removed it.
fn missed(body: &CheckpointBody, said: &[&RemovalStatement]) -> Option<(AuditProblemKind, String)> {
    let origin = &body.origin;
    let of_it = said
        .iter()
        .filter(|statement| statement.covers(origin, (body.count, &body.head)));
    let (kind, why) = match of_it.max_by_key(|statement| statement.is_verified) {
        Some(statement) if statement.is_verified => return None,
        Some(_) => (
            AuditProblemKind::KeyMissing,
            "another host says that it removed it, and the key of that host is not here",
        ),
        None => (
            AuditProblemKind::Removed,
            "that was removed or replaced, or is another store with the same key",
        ),
    };
    let message = format!("the log it is of is not in this store: {why} (log {origin})");
    Some((kind, message))
}

/// What the audit says to a checkpoint.
enum Agreement {
    Same,
    /// It is of what is not kept any more.
    Older,
    Wrong(AuditProblemKind, String),
}

fn of_chain(body: &CheckpointBody, chain: &ChainReport) -> Agreement {
    let (count, head) = (body.count, &body.head);
    compared(
        (count, head),
        (chain.count, chain.n_removed_events),
        chain.codes.get(&count),
    )
}

fn of_file(head: &FileHead, file: &FileReport) -> Agreement {
    let number = |n: u64| i64::try_from(n).unwrap_or(i64::MAX);
    compared(
        (number(head.count), &head.head),
        (number(file.count), number(file.first) - 1),
        file.codes.get(&head.count),
    )
}

fn compared(
    (count, head): (i64, &String),
    (newest, removed): (i64, i64),
    code: Option<&String>,
) -> Agreement {
    match code {
        Some(code) if code == head => Agreement::Same,
        Some(_) => Agreement::Wrong(
            AuditProblemKind::Rewritten,
            format!("record {count} is not what it was at the checkpoint"),
        ),
        None if count > newest => Agreement::Wrong(
            AuditProblemKind::Truncated,
            format!("there were {count} records at the checkpoint; the last one now is {newest}"),
        ),
        None if count <= removed => Agreement::Older,
        None => Agreement::Wrong(
            AuditProblemKind::Removed,
            format!("record {count} is not there"),
        ),
    }
}

/// The checkpoint in a line, by itself or as the message of an entry of the journal.
fn found(line: &str) -> Option<String> {
    if let Some(start) = line.find(BEGINNING) {
        return Some(line[start..].trim_end().to_owned());
    }
    let entry: Value = serde_json::from_str(line).ok()?;
    let message = entry.get("MESSAGE")?.as_str()?;
    message.starts_with(BEGINNING).then(|| message.to_owned())
}

/// What a checkpoint says, and its code.
fn split(text: &str) -> Option<(&str, [u8; CODE_BYTES])> {
    let text = text.strip_suffix(AFTER_CODE)?;
    let place = text.len().checked_sub(CODE_BYTES * 2)?;
    let (rest, digits) = text.split_at_checked(place)?;
    let body = rest.strip_suffix(BEFORE_CODE)?;
    Some((body, from_hex(digits.as_bytes())?))
}
