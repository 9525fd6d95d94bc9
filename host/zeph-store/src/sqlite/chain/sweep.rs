//! Retention of rows that are chained: the oldest events go with their rows, and an event says up to where.
//!
//! Events go without a gap. A row that is not to go yet, because its call still runs or its clock was ahead, gets a new event at the end.
//! What goes is verified once more, and what was not sound is counted for ever.

use rusqlite::{Connection, params};

use super::check::{EVENT_COLUMNS, RowChecker, RowFacts, RowState, StoredEvent};
use super::{ChainedConnection, FIRST_OF_END, NewEvent, newest_mark, put_row};
use crate::audit::chain::{ChainMark, EventKind};
use crate::audit::code::{Code, hex};
use crate::operations::Outcome;
use crate::secrets::audit_keys::AuditKeys;
use crate::sqlite::audit::{BEGIN_COLUMNS, END_COLUMNS, N_BEGIN, N_END};
use crate::sweep::Past;

/// Events that are looked at for each row that may go: a begin, an end, and some of the chain itself.
const EVENTS_PER_ROW: u32 = 4;

/// What a step did.
#[derive(Debug, Clone, Copy, Default)]
pub(in crate::sqlite) struct ChainSweep {
    pub(in crate::sqlite) n_removed: usize,
    pub(in crate::sqlite) n_carried: usize,
}

/// What is past its time.
struct Limits {
    now_ms: i64,
    running_ms: i64,
    before_ms: Option<i64>,
    upto_seq: Option<i64>,
}

/// A step over the oldest events.
struct Walk<'c> {
    connection: &'c ChainedConnection,
    keys: AuditKeys,
    limits: Limits,
    mark: ChainMark,
    previous: Option<Code>,
    done: ChainSweep,
}

/// Removes up to `n_max` chained rows that are past their time.
pub(in crate::sqlite) fn sweep(
    connection: &ChainedConnection,
    past: &Past,
    running_ms: i64,
    n_max: u32,
) -> Outcome<ChainSweep> {
    let Some(keys) = connection.keys() else {
        return Ok(ChainSweep::default());
    };
    let limits = Limits::new(connection, past, running_ms)?;
    if !limits.has_any(connection)? {
        return Ok(ChainSweep::default());
    }
    let Some((_, mark)) = newest_mark(connection)? else {
        return Ok(ChainSweep::default());
    };
    let walk = Walk {
        connection,
        keys,
        limits,
        previous: mark.upto_code(),
        mark,
        done: ChainSweep::default(),
    };
    walk.run(n_max)
}

impl Limits {
    fn new(connection: &Connection, past: &Past, running_ms: i64) -> rusqlite::Result<Self> {
        let newest = "SELECT coalesce(max(seq), 0) FROM audit";
        let newest: i64 = connection
            .prepare_cached(newest)?
            .query_row([], |row| row.get(0))?;
        let upto_seq = past.audit_rows_max.map(|max| newest.saturating_sub(max));
        Ok(Self {
            now_ms: past.at_ms,
            running_ms,
            before_ms: past.audit_ms,
            upto_seq: upto_seq.filter(|seq| *seq > 0),
        })
    }

    /// Whether any chained row may go.
    fn has_any(&self, connection: &Connection) -> rusqlite::Result<bool> {
        const OLD: &str = "
            SELECT EXISTS (SELECT 1 FROM audit WHERE begun_at_ms < ?1
            AND (finished_at_ms IS NOT NULL OR begun_at_ms < ?2) AND chain_n IS NOT NULL)";
        const MANY: &str = "
            SELECT EXISTS (SELECT 1 FROM audit WHERE seq <= ?1
            AND (finished_at_ms IS NOT NULL OR begun_at_ms < ?2) AND chain_n IS NOT NULL)";
        for (sql, limit) in [(OLD, self.before_ms), (MANY, self.upto_seq)] {
            let Some(limit) = limit else { continue };
            let mut statement = connection.prepare_cached(sql)?;
            if statement.query_row(params![limit, self.running_ms], |row| row.get(0))? {
                return Ok(true);
            }
        }
        Ok(false)
    }

    fn is_running(&self, row: RowFacts) -> bool {
        !row.has_ended && row.begun_at_ms >= self.running_ms
    }

    fn is_past(&self, row: RowFacts, seq: i64) -> bool {
        let is_old = self.before_ms.is_some_and(|limit| row.begun_at_ms < limit);
        is_old || self.upto_seq.is_some_and(|limit| seq <= limit)
    }
}

impl Walk<'_> {
    fn run(mut self, n_max: u32) -> Outcome<ChainSweep> {
        let events = self.events(n_max.saturating_mul(EVENTS_PER_ROW))?;
        let mut checker = RowChecker::new(self.connection)?;
        let mut upto = None;
        for event in events {
            let n_rows = self.done.n_removed + self.done.n_carried;
            if n_rows >= usize::try_from(n_max).unwrap_or(usize::MAX)
                || !self.pass(&event, &mut checker)?
            {
                break;
            }
            self.mark.upto = event.head.n;
            upto = Some(event);
        }
        drop(checker);
        if let Some(last) = upto {
            self.cut(&last)?;
        }
        Ok(self.done)
    }

    fn events(&self, n_max: u32) -> rusqlite::Result<Vec<StoredEvent>> {
        let sql =
            format!("SELECT {EVENT_COLUMNS} FROM audit_chain WHERE n > ?1 ORDER BY n LIMIT ?2");
        let mut statement = self.connection.prepare_cached(&sql)?;
        let events = statement.query_map(params![self.mark.upto, n_max], StoredEvent::read)?;
        events.collect()
    }

    /// Goes past an event; false when it has to stay.
    fn pass(&mut self, event: &StoredEvent, checker: &mut RowChecker<'_>) -> Outcome<bool> {
        let kind = event.kind();
        if let (Some(EventKind::Key | EventKind::Start), Some(body)) = (kind, &event.body)
            && let Ok(mark) = serde_json::from_str::<ChainMark>(body)
        {
            self.mark.upto_key = mark.key;
        }
        let key = self.keys.named(&self.mark.upto_key).cloned();
        let row = match (kind, &key) {
            (Some(EventKind::Begin | EventKind::Carried), Some(key)) => {
                Some(checker.begin(event, key)?)
            }
            _ => None,
        };
        let stays = match &row {
            Some(RowState::Sound(facts) | RowState::Changed(facts)) => !self.take(event, *facts)?,
            _ => false,
        };
        if stays {
            return Ok(false);
        }
        let is_next = event.head.n == self.mark.upto + 1;
        let code = key.as_ref().and_then(|key| {
            let previous = self.previous.as_ref()?;
            event.code_as(event.head.n, key, previous)
        });
        let is_sound =
            is_next && code == Some(event.code) && matches!(row, None | Some(RowState::Sound(_)));
        // What nobody can verify any more is no finding of now.
        if !is_sound && key.is_some() && event.head.n > self.mark.lost_upto {
            self.mark.n_unsound += 1;
        }
        self.previous = Some(event.code);
        Ok(true)
    }

    /// Removes a row, or carries it; false when it has to stay where it is.
    fn take(&mut self, event: &StoredEvent, facts: RowFacts) -> Outcome<bool> {
        let Some(seq) = event.head.seq else {
            return Ok(true);
        };
        let is_ahead = facts.begun_at_ms > self.limits.now_ms;
        if self.limits.is_past(facts, seq) && !self.limits.is_running(facts) {
            const DELETE: &str = "DELETE FROM audit WHERE seq = ?1";
            self.connection.prepare_cached(DELETE)?.execute([seq])?;
            self.done.n_removed += 1;
            self.mark.n_removed += 1;
            return Ok(true);
        }
        if self.limits.is_running(facts) || is_ahead {
            carry(self.connection, event, facts)?;
            self.done.n_carried += 1;
            return Ok(true);
        }
        Ok(false)
    }

    fn cut(&mut self, last: &StoredEvent) -> Outcome<()> {
        const SQL: &str = "DELETE FROM audit_chain WHERE n <= ?1";
        self.mark.upto_code = hex(&last.code);
        self.mark.at_ms = self.limits.now_ms;
        self.connection
            .prepare_cached(SQL)?
            .execute([last.head.n])?;
        self.connection.append_mark(EventKind::Cut, &self.mark)
    }
}

/// Vouches for a row anew, as it is.
fn carry(connection: &ChainedConnection, event: &StoredEvent, facts: RowFacts) -> Outcome<()> {
    let (Some(seq), Some(call)) = (event.head.seq, event.head.call) else {
        return Ok(());
    };
    let carried = connection.append(&NewEvent {
        kind: EventKind::Carried,
        call,
        seq,
        begun: None,
        record: &row_bytes(connection, seq, (0, BEGIN_COLUMNS, N_BEGIN))?,
    })?;
    if facts.has_ended {
        connection.append(&NewEvent {
            kind: EventKind::Finish,
            call,
            seq,
            begun: carried,
            record: &row_bytes(connection, seq, (FIRST_OF_END, END_COLUMNS, N_END))?,
        })?;
    }
    const SQL: &str = "UPDATE audit SET chain_n = ?2 WHERE seq = ?1";
    connection
        .prepare_cached(SQL)?
        .execute(params![seq, carried])?;
    Ok(())
}

fn row_bytes(
    connection: &Connection,
    seq: i64,
    (first, columns, n): (u8, &str, usize),
) -> rusqlite::Result<Vec<u8>> {
    let sql = format!("SELECT {columns} FROM audit WHERE seq = ?1");
    let mut bytes = Vec::with_capacity(1024);
    connection
        .prepare_cached(&sql)?
        .query_row([seq], |row| put_row(&mut bytes, first, row, (0, n)))?;
    Ok(bytes)
}
