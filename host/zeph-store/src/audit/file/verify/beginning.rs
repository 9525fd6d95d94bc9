//! What stands before the first line of the chain: it may begin where the host began it, and nowhere else.

use super::{FileCheck, Gap, STRAYS_MAX, call_of};
use crate::audit::code::from_hex;
use crate::audit::file::line::{ChainedLine, FileMark, MarkReason};
use crate::audit::file::tail::{FileLink, NO_LINK};
use crate::audit::problem::{AuditPlace, AuditProblem, AuditProblemKind};

impl FileCheck<'_> {
    /// A line without a code, before any that has one.
    pub(super) fn before_all(&mut self, line: &[u8], place: AuditPlace) {
        self.report.n_before += 1;
        if self.loose.len() < STRAYS_MAX {
            self.loose.push((place, call_of(line)));
        }
    }

    /// The line that should stand before this one.
    pub(super) fn before(
        &mut self,
        mark: Option<&FileMark>,
        line: &ChainedLine<'_>,
        place: &AuditPlace,
    ) -> FileLink {
        if let Some(newest) = self.newest {
            return newest;
        }
        self.report.first = line.seq;
        let loose = std::mem::take(&mut self.loose);
        let Some(mark) = mark else {
            return NO_LINK;
        };
        match mark.reason {
            MarkReason::Start => return self.started(mark, place),
            // They stand in the middle of a file: what was before them was removed.
            MarkReason::Key | MarkReason::Repair => return NO_LINK,
            MarkReason::Rotation => self.rotated(mark, line, place),
            MarkReason::Replaced => self.replaced(mark, place),
        }
        self.inserted(loose);
        // The first line says what was before it, and has a code over that.
        FileLink {
            seq: line.seq.saturating_sub(1),
            code: from_hex(mark.previous.as_bytes()).unwrap_or_default(),
        }
    }

    /// A chain that begins says how many bytes were there before it; a line that was not whole was ended.
    fn started(&mut self, mark: &FileMark, place: &AuditPlace) -> FileLink {
        let is_as_found = mark.before_bytes..=mark.before_bytes.saturating_add(1);
        if !is_as_found.contains(&self.offset) {
            let message = format!(
                "{} bytes stand before the beginning of the chain, where {} were when it began",
                self.offset, mark.before_bytes
            );
            let kind = match self.offset > mark.before_bytes {
                true => AuditProblemKind::Inserted,
                false => AuditProblemKind::Removed,
            };
            self.problem(kind, place.clone(), b"", message);
        }
        NO_LINK
    }

    fn rotated(&mut self, mark: &FileMark, line: &ChainedLine<'_>, place: &AuditPlace) {
        let seq = line.seq.saturating_sub(1);
        let is_older = matches!(place, AuditPlace::File { file, .. } if file.extension().is_some_and(|end| end == "1"));
        // What should be in the older file.
        if mark.removed < seq && !is_older {
            self.gaps.push(Gap {
                from: mark.removed + 1,
                to: seq,
                place: place.clone(),
            });
        }
    }

    /// A file that was moved away by another program.
    fn replaced(&mut self, mark: &FileMark, place: &AuditPlace) {
        let message = format!(
            "the lines up to {} were moved away or removed by another program than the host",
            mark.removed
        );
        self.problem(AuditProblemKind::Removed, place.clone(), b"", message);
    }

    /// A file that goes on with a chain has nothing before its first line.
    fn inserted(&mut self, loose: Vec<(AuditPlace, Option<String>)>) {
        self.report.n_before = 0;
        for (place, call_id) in loose {
            self.problems.add(AuditProblem {
                kind: AuditProblemKind::Inserted,
                place,
                call_id,
                message: "it has no code: no host wrote it that has the key".to_owned(),
            });
        }
    }
}
