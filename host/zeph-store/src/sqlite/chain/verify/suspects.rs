//! Events whose codes do not fit: which of them were changed, and which only moved or follow one that was.

use std::collections::HashSet;

use rusqlite::Connection;

use crate::audit::chain::{ChainMark, EventKind};
use crate::audit::code::Code;
use crate::audit::problem::{AuditPlace, AuditProblem, AuditProblemKind, Problems};
use crate::secrets::audit_keys::AuditKey;
use crate::sqlite::chain::check::{StoredEvent, call_text};

/// Suspects that are compared with each other; of more, each is told as changed.
const COMPARED_MAX: usize = 24;

/// Rows that are told by name.
const ROWS_MAX: usize = 1_000;

/// An event whose code does not fit.
#[derive(Clone)]
pub(super) struct Suspect {
    event: StoredEvent,
    key: AuditKey,
    /// The code that stands before it.
    previous: Code,
    /// The code it should have there.
    computed: Option<Code>,
}

impl Suspect {
    pub(super) fn new(
        event: &StoredEvent,
        key: &AuditKey,
        previous: Code,
        computed: Option<Code>,
    ) -> Self {
        Self {
            event: event.clone(),
            key: key.clone(),
            previous,
            computed,
        }
    }

    fn fits(&self, n: i64, previous: &[Code]) -> bool {
        let fits = |code: &Code| self.event.code_as(n, &self.key, code) == Some(self.event.code);
        previous.iter().any(fits)
    }
}

/// Tells what is wrong with `suspects`.
pub(super) fn told(suspects: &[Suspect], problems: &mut Problems) {
    let is_few = suspects.len() <= COMPARED_MAX;
    let codes: Vec<Code> = suspects
        .iter()
        .flat_map(|suspect| {
            let stored = [suspect.previous, suspect.event.code];
            stored.into_iter().chain(suspect.computed)
        })
        .collect();
    for suspect in suspects {
        let n = suspect.event.head.n;
        // What stands before it was changed, it was not.
        if is_few && suspect.fits(n, &codes) {
            continue;
        }
        let mut others = suspects.iter().map(|other| other.event.head.n);
        let moved = others.find(|other| is_few && *other != n && suspect.fits(*other, &codes));
        let (kind, message) = match moved {
            Some(from) => (AuditProblemKind::Reordered, format!("it was record {from}")),
            None => (
                AuditProblemKind::Changed,
                "its code is not that of what it says".to_owned(),
            ),
        };
        problems.add(AuditProblem {
            kind,
            place: AuditPlace::Store { record: n },
            call_id: call_text(suspect.event.head.call),
            message,
        });
    }
}

/// Tells the rows that no event vouches for.
pub(super) fn unvouched(
    connection: &Connection,
    mark: &ChainMark,
    problems: &mut Problems,
) -> rusqlite::Result<()> {
    const SQL: &str = "
        SELECT a.call_id, coalesce(a.chain_n, 0) FROM audit a
        LEFT JOIN audit_chain c ON c.n = a.chain_n AND c.seq = a.seq AND c.kind IN (2, 4)
        WHERE a.seq > ?1 AND c.n IS NULL LIMIT ?2";
    let message = "no record of the chain is of this call";
    rows(connection, SQL, mark, message, problems)
}

/// Tells the calls that have an end no event vouches for.
pub(super) fn unended(
    connection: &Connection,
    mark: &ChainMark,
    problems: &mut Problems,
) -> rusqlite::Result<()> {
    let finish = EventKind::Finish.number();
    let mut ends = connection.prepare("SELECT seq FROM audit_chain WHERE kind = ?1")?;
    let ends = ends.query_map([finish], |row| row.get::<_, i64>(0))?;
    let ends = ends.collect::<rusqlite::Result<HashSet<_>>>()?;
    const SQL: &str = "
        SELECT seq, call_id, coalesce(chain_n, 0) FROM audit
        WHERE seq > ?1 AND finished_at_ms IS NOT NULL";
    let mut statement = connection.prepare(SQL)?;
    let mut rows = statement.query([mark.before_seq])?;
    while let Some(row) = rows.next()? {
        if !ends.contains(&row.get(0)?) {
            let message = "no record of the chain is of the end of this call".to_owned();
            problems.add(inserted(row.get(1)?, row.get(2)?, message));
        }
    }
    Ok(())
}

fn rows(
    connection: &Connection,
    sql: &str,
    mark: &ChainMark,
    message: &str,
    problems: &mut Problems,
) -> rusqlite::Result<()> {
    let mut statement = connection.prepare(sql)?;
    let limit = i64::try_from(ROWS_MAX).unwrap_or(i64::MAX);
    let found = statement.query_map([mark.before_seq, limit], |row| {
        Ok(inserted(row.get(0)?, row.get(1)?, message.to_owned()))
    })?;
    for problem in found {
        problems.add(problem?);
    }
    Ok(())
}

fn inserted(call: String, record: i64, message: String) -> AuditProblem {
    AuditProblem {
        kind: AuditProblemKind::Inserted,
        place: AuditPlace::Store { record },
        call_id: Some(call),
        message,
    }
}
