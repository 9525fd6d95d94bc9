//! Verifies the lines of the audit file and of its older generation.

mod beginning;

use std::collections::{BTreeMap, BTreeSet};
use std::fs::File;
use std::io::{self, BufRead, BufReader, Read as _};
use std::path::{Path, PathBuf};
use zeph_core::text::counted;

use serde_json::Value;

use super::line::{ChainedLine, FileMark, MarkReason};
use super::tail::{FileLink, NO_LINK};
use crate::audit::code::{Code, hex};
use crate::audit::problem::{AuditPlace, AuditProblem, AuditProblemKind, Problems};
use crate::error::StoreError;
use crate::place::{FileId, with_suffix};
use crate::secrets::audit_keys::{AuditKey, AuditKeys};

/// Bytes of a line at most. A longer one is read in pieces, none of which has a code.
const LINE_BYTES_MAX: u64 = 4 << 20;

/// Lines out of order that are remembered, to find out where they were.
const STRAYS_MAX: usize = 1_000;

/// What the verification of the audit file found.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct FileReport {
    /// Lines that are as they were written.
    pub n_lines: u64,
    /// Lines from before the chain. Nothing vouches for them.
    pub n_before: u64,
    /// The number of the first line that is there, and of the last; 0 when none has a code.
    pub first: u64,
    /// The number of the last line.
    pub count: u64,
    /// Its code, as hexadecimal digits.
    pub head: String,
    /// The codes of the lines that were asked for, by number.
    pub codes: BTreeMap<u64, String>,
    /// Lines at the beginning that were made with a key which is missing, and after which another took over.
    pub taken_over: Option<TakenOver>,
    /// What the operator should know that is not wrong, one sentence each.
    pub notes: Vec<String>,
    /// What is wrong, the first 1,000.
    pub problems: Vec<AuditProblem>,
    /// How many more problems there are.
    pub n_more: u64,
}

/// Lines whose key is missing, up to the one with which another key took over.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TakenOver {
    /// The name of the key of the last of them.
    pub key: String,
    /// How many there are.
    pub n_lines: u64,
    /// Where a key is named that is missing; a problem is told of each.
    places: Vec<AuditPlace>,
}

/// A line that is not where its number says, or whose line before is gone.
struct Stray {
    place: AuditPlace,
    seq: u64,
    code: Code,
    body: Vec<u8>,
    key: Option<AuditKey>,
    /// Whether it stands where it belongs, behind a gap.
    is_behind_gap: bool,
}

/// Numbers that were not met where they belong.
struct Gap {
    from: u64,
    to: u64,
    place: AuditPlace,
}

/// The verification of both files, one after the other.
struct FileCheck<'a> {
    keys: &'a AuditKeys,
    wanted: &'a BTreeSet<u64>,
    key: Option<AuditKey>,
    /// The line with the highest number so far.
    newest: Option<FileLink>,
    /// How many bytes of its file stand before the line that is looked at.
    offset: u64,
    /// Lines without a code before the first one that has one, and the calls they are about; the first 1,000.
    loose: Vec<(AuditPlace, Option<String>)>,
    /// Codes of lines beside gaps, by number.
    codes: BTreeMap<u64, Code>,
    gaps: Vec<Gap>,
    strays: Vec<Stray>,
    problems: Problems,
    /// What is at the beginning, until another key takes over.
    missing: Option<TakenOver>,
    report: FileReport,
}

impl FileReport {
    /// Makes a note of lines that cannot be verified because the operator said that their key is lost, in place of a problem.
    ///
    /// Only what stands before anything that was verified: who has no key cannot put lines there without taking all of those away.
    pub fn accept_lost(&mut self, lost_keys: &[String]) {
        let Some(taken_over) = &self.taken_over else {
            return;
        };
        if !lost_keys.contains(&taken_over.key) {
            return;
        }
        let is_of_it = |problem: &AuditProblem| {
            problem.kind == AuditProblemKind::KeyMissing
                && taken_over.places.contains(&problem.place)
        };
        self.problems.retain(|problem| !is_of_it(problem));
        self.notes.push(format!(
            "{} of the audit file cannot be verified: their key was lost, and the operator continued with another",
            counted(taken_over.n_lines, "line", "lines")
        ));
    }
}

/// Verifies the audit file at `path` with its older generation, while hosts may write to it: what was there when it began is what it looks at.
///
/// `wanted`: the numbers of the lines whose codes are asked for.
/// Errors: [`StoreError::AuditFile`]. Limits: O(size of the files); the first 1,000 problems are told.
pub fn verify_file(
    path: &Path,
    keys: &AuditKeys,
    wanted: &BTreeSet<u64>,
) -> Result<FileReport, StoreError> {
    verify(path, keys, wanted).map_err(|source| super::fault("verify", path, source))
}

fn verify(path: &Path, keys: &AuditKeys, wanted: &BTreeSet<u64>) -> io::Result<FileReport> {
    let files = open_both(&super::place_of(path)?)?;
    let mut check = FileCheck {
        keys,
        wanted,
        // Until a line names another.
        key: keys.newest().cloned(),
        newest: None,
        offset: 0,
        loose: Vec::new(),
        codes: BTreeMap::new(),
        gaps: Vec::new(),
        strays: Vec::new(),
        problems: Problems::default(),
        missing: None,
        report: FileReport::default(),
    };
    for (path, len, file) in files {
        check.file(&path, &file, len)?;
    }
    Ok(check.end())
}

/// The older file and the current one with their lengths, at one moment.
fn open_both(path: &Path) -> io::Result<Vec<(PathBuf, u64, File)>> {
    const TRIES_MAX: u32 = 100;
    for _ in 0..TRIES_MAX {
        let Some(current) = opened(path)? else {
            let older = with_suffix(path, ".1");
            return Ok(match opened(&older)? {
                Some(file) => vec![(older, file.metadata()?.len(), file)],
                None => Vec::new(),
            });
        };
        current.lock_shared()?;
        let id = FileId::of(&current.metadata()?);
        if FileId::of_path(path).is_ok_and(|now| now == id) {
            let older = with_suffix(path, ".1");
            let mut files = Vec::new();
            if let Some(file) = opened(&older)? {
                let len = file.metadata()?.len();
                files.push((older, len, file));
            }
            let len = current.metadata()?.len();
            current.unlock()?;
            files.push((path.to_owned(), len, current));
            return Ok(files);
        }
    }
    Err(io::Error::other("it is replaced again and again"))
}

fn opened(path: &Path) -> io::Result<Option<File>> {
    match File::open(path) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(None),
        other => other.map(Some),
    }
}

impl FileCheck<'_> {
    fn file(&mut self, path: &Path, file: &File, len: u64) -> io::Result<()> {
        let mut reader = BufReader::with_capacity(1 << 18, file.take(len));
        let mut line = Vec::new();
        let mut number = 0;
        self.offset = 0;
        loop {
            self.offset += line.len() as u64;
            line.clear();
            let n_read = reader
                .by_ref()
                .take(LINE_BYTES_MAX)
                .read_until(b'\n', &mut line)?;
            if n_read == 0 {
                return Ok(());
            }
            number += 1;
            let place = AuditPlace::File {
                file: path.to_owned(),
                line: number,
            };
            match line.strip_suffix(b"\n") {
                Some(line) => self.line(line, place),
                None => self.torn(&line, &place),
            }
        }
    }

    /// The end of a file without a line end.
    fn torn(&mut self, line: &[u8], place: &AuditPlace) {
        self.report.notes.push(format!(
            "{place}: the last line is not whole ({} bytes): a host died while it wrote it, or still writes. The next host takes it out and says so",
            line.len()
        ));
    }

    fn line(&mut self, line: &[u8], place: AuditPlace) {
        let Some(chained) = ChainedLine::parse(line) else {
            match self.newest {
                // Before the chain nothing is vouched for.
                None => self.before_all(line, place),
                Some(_) => {
                    let message = "it has no code: no host wrote it that has the key";
                    self.problem(AuditProblemKind::Inserted, place, line, message.to_owned());
                }
            }
            return;
        };
        let mark = chained.mark();
        if let Some(mark) = &mark {
            self.set_key(mark, &place);
        }
        let before = self.before(mark.as_ref(), &chained, &place);
        if chained.seq == before.seq + 1 {
            self.in_order(&chained, &before, place, line);
        } else if chained.seq > before.seq + 1 {
            self.behind_gap(&chained, &before, place);
        } else {
            self.stray(&chained, place, false);
            return;
        }
        self.newest = Some(FileLink {
            seq: chained.seq,
            code: chained.code,
        });
    }

    fn set_key(&mut self, mark: &FileMark, place: &AuditPlace) {
        let is_same = self.key.as_ref().is_some_and(|key| key.id == mark.key);
        self.key = self.keys.named(&mark.key).cloned();
        if self.key.is_none() && !is_same {
            self.note_missing(mark, place);
            self.problems.add(AuditProblem {
                kind: AuditProblemKind::KeyMissing,
                place: place.clone(),
                call_id: None,
                message: format!(
                    "the key `{}` is missing, so this and what follows cannot be verified",
                    mark.key
                ),
            });
        }
        if mark.reason == MarkReason::Repair {
            self.report.notes.push(format!(
                "{place}: a line of {} bytes that was not whole was taken out here: a host had died while it wrote it",
                mark.torn_bytes
            ));
        }
    }

    /// Notes that a key is missing before anything could be verified.
    fn note_missing(&mut self, mark: &FileMark, place: &AuditPlace) {
        if self.report.n_lines > 0 {
            return;
        }
        let missing = self.missing.get_or_insert_with(|| TakenOver {
            key: String::new(),
            n_lines: 0,
            places: Vec::new(),
        });
        missing.key.clone_from(&mark.key);
        missing.places.push(place.clone());
    }

    fn in_order(
        &mut self,
        line: &ChainedLine<'_>,
        before: &FileLink,
        place: AuditPlace,
        whole: &[u8],
    ) {
        self.want(line);
        let Some(key) = &self.key else {
            if let Some(missing) = &mut self.missing {
                missing.n_lines += 1;
            }
            return;
        };
        match line.follows(&before.code, key) {
            true => {
                self.report.n_lines += 1;
                let missing = self.missing.take();
                self.report.taken_over = self.report.taken_over.take().or(missing);
            }
            false => {
                let message = "its code is not that of what it says".to_owned();
                self.problem(AuditProblemKind::Changed, place, whole, message);
            }
        }
    }

    fn behind_gap(&mut self, line: &ChainedLine<'_>, before: &FileLink, place: AuditPlace) {
        self.want(line);
        self.gaps.push(Gap {
            from: before.seq + 1,
            to: line.seq - 1,
            place: place.clone(),
        });
        self.codes.insert(before.seq, before.code);
        self.stray(line, place, true);
    }

    fn stray(&mut self, line: &ChainedLine<'_>, place: AuditPlace, is_behind_gap: bool) {
        if self.strays.len() >= STRAYS_MAX {
            let message = "it is out of order".to_owned();
            return self.problem(AuditProblemKind::Reordered, place, line.body, message);
        }
        self.codes.insert(line.seq, line.code);
        self.strays.push(Stray {
            place,
            seq: line.seq,
            code: line.code,
            body: line.body.to_owned(),
            key: self.key.clone(),
            is_behind_gap,
        });
    }

    fn want(&mut self, line: &ChainedLine<'_>) {
        if self.wanted.contains(&line.seq) {
            self.report.codes.insert(line.seq, hex(&line.code));
        }
    }

    fn problem(&mut self, kind: AuditProblemKind, place: AuditPlace, line: &[u8], message: String) {
        self.problems.add(AuditProblem {
            kind,
            place,
            call_id: call_of(line),
            message,
        });
    }

    fn end(mut self) -> FileReport {
        let strays = std::mem::take(&mut self.strays);
        let mut found = BTreeSet::new();
        for stray in &strays {
            self.tell(stray, &mut found);
        }
        for gap in std::mem::take(&mut self.gaps) {
            let n_gone = (gap.from..=gap.to)
                .filter(|seq| !found.contains(seq))
                .take(1_000_000)
                .count();
            if n_gone > 0 {
                let (from, to) = (gap.from, gap.to);
                let message = match from == to {
                    true => format!(
                        "line {from} of the log, which should stand before this one, is not there"
                    ),
                    false => format!(
                        "of the lines {from} to {to} of the log, which should stand before this one, {n_gone} are not there"
                    ),
                };
                self.problem(AuditProblemKind::Removed, gap.place, b"", message);
            }
        }
        let newest = self.newest.unwrap_or(NO_LINK);
        self.report.count = newest.seq;
        self.report.head = hex(&newest.code);
        self.problems.list.sort_by(|a, b| a.place.cmp(&b.place));
        self.report.problems = self.problems.list;
        self.report.n_more = self.problems.n_more;
        self.report
    }

    /// Says of a line what it is: moved, changed, or none of ours.
    fn tell(&mut self, stray: &Stray, found: &mut BTreeSet<u64>) {
        let before = stray
            .seq
            .checked_sub(1)
            .and_then(|seq| self.codes.get(&seq));
        let body = [&stray.body[..], b"}"].concat();
        let line = ChainedLine {
            seq: stray.seq,
            code: stray.code,
            body: &stray.body,
        };
        let is_good = before
            .zip(stray.key.as_ref())
            .map(|(before, key)| line.follows(before, key));
        let is_gap = |gap: &Gap| (gap.from..=gap.to).contains(&stray.seq);
        let is_missed = self.gaps.iter().any(is_gap);
        match (stray.is_behind_gap, is_good) {
            (true, Some(true)) => self.report.n_lines += 1,
            // The line before it is gone, so nobody can say.
            (true, None) => {}
            (false, _) if is_missed && found.insert(stray.seq) && is_good != Some(false) => {
                let message = format!("it was line {} of the log", stray.seq);
                self.problem(
                    AuditProblemKind::Reordered,
                    stray.place.clone(),
                    &body,
                    message,
                );
            }
            (false, _) => {
                let message = format!("it has the number {}, which is another line's", stray.seq);
                self.problem(
                    AuditProblemKind::Inserted,
                    stray.place.clone(),
                    &body,
                    message,
                );
            }
            (true, Some(false)) => {
                let message = "its code is not that of what it says".to_owned();
                self.problem(
                    AuditProblemKind::Changed,
                    stray.place.clone(),
                    &body,
                    message,
                );
            }
        }
    }
}

/// The call a line is about.
fn call_of(line: &[u8]) -> Option<String> {
    let value: Value = serde_json::from_slice(line).ok()?;
    Some(value.get("call_id")?.as_str()?.to_owned())
}
