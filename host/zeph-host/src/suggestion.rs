//! From records of calls to the smallest grant and the smallest rules that let the same calls run again.
//!
//! A record is a claim: it can be tampered with, and a call can have been made by a model that was led astray. So nothing is suggested beyond
//! what is granted now and what the manifest requests; calls that a rule refused count for nothing; and calls of a conversation that had read
//! from the network are left out, unless the operator says otherwise. Nothing is ever applied: what is suggested is text.

pub(crate) mod grants;
pub(crate) mod rules;
pub(crate) mod siblings;

use std::path::Path;
use zeph_core::text::counted;

use crate::recording::{CallRecord, RecordError, RecordLine, RecordLines, RecordedDecision};

/// How records were read.
#[derive(Debug, Default, serde::Serialize)]
pub(crate) struct ReadRecords {
    /// Calls that count.
    pub(crate) calls: u64,
    /// Calls that were left out because their conversation had read from the network.
    pub(crate) untrusted: u64,
    /// Calls that did not run.
    pub(crate) refused: u64,
    /// Calls of the plugin as it was at another digest.
    pub(crate) other_digest: u64,
    /// Calls of which not all was recorded.
    pub(crate) incomplete: u64,
    /// Lines that are no records.
    pub(crate) bad: u64,
    /// The first of those, and what is wrong with it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) first_bad: Option<(u64, String)>,
}

/// Hands every call of `path` that ran, and may count, to `take`, one after the other, whatever their number.
///
/// Errors: the file cannot be read, or has another version.
pub(crate) fn read(
    path: &Path,
    include_untrusted: bool,
    mut take: impl FnMut(CallRecord, &mut ReadRecords),
) -> Result<ReadRecords, RecordError> {
    let mut lines = RecordLines::open(path)?;
    let mut read = ReadRecords::default();
    while let Some(line) = lines.next()? {
        let record = match line {
            RecordLine::Call(record) => record,
            RecordLine::Bad(problem) => {
                read.bad += 1;
                read.first_bad.get_or_insert((lines.number(), problem));
                continue;
            }
        };
        if record.decision != RecordedDecision::Allow {
            read.refused += 1;
        } else if record.untrusted && !include_untrusted {
            read.untrusted += 1;
        } else {
            take(*record, &mut read);
        }
    }
    Ok(read)
}

impl ReadRecords {
    /// What the operator should know, one sentence each.
    pub(crate) fn notes(&self) -> Vec<String> {
        let mut notes = Vec::new();
        let mut add = |n: u64, text: &str| {
            if n > 0 {
                notes.push(format!(
                    "{n} {} {text}",
                    if n == 1 { "call" } else { "calls" }
                ));
            }
        };
        add(
            self.untrusted,
            "omitted: the conversation had read from the network (`--include-untrusted` counts them)",
        );
        add(self.refused, "omitted: not executed");
        add(
            self.other_digest,
            "omitted: made by another version of the plugin (other digest)",
        );
        add(
            self.incomplete,
            "used more names than a record holds: the suggestion may lack some",
        );
        if let Some((line, problem)) = &self.first_bad {
            notes.push(format!(
                "{} of the file skipped; the first is line {line}: {}",
                counted(self.bad, "line", "lines"),
                zeph_core::failure::one_line(problem, 200)
            ));
        }
        notes
    }
}
