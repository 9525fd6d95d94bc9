//! Retention of rows that are chained, in SQL: the oldest events go with their rows, and an event says up to where.

use rusqlite::{Connection, params};

use super::check::{self, EVENT_COLUMNS, RowChecker};
use super::{ChainedConnection, put_row};
use crate::audit::chain::{ChainMark, EventKind};
use crate::audit::columns::{FIRST_OF_END, N_BEGIN, N_END, begin_columns, end_columns};
use crate::audit::event::{RowFacts, StoredEvent};
use crate::audit::mark::MarkState;
use crate::audit::retention::{self, ChainSweep, Limits};
use crate::audit::seal::{NewEvent, SealedAudit as _};
use crate::operations::Outcome;
use crate::sweep::Past;

/// Removes up to `n_max` chained rows that are past their time, and says so, and that rows were removed `alone`: without an event.
pub(in crate::sqlite) fn sweep(
    connection: &ChainedConnection,
    past: &Past,
    n_max: u32,
    alone: &[i64],
) -> Outcome<ChainSweep> {
    let Some(keys) = connection.seal().keys() else {
        return Ok(ChainSweep::default());
    };
    let limits = Limits::new(past, newest_row(connection)?);
    if alone.is_empty() && !has_any(connection, &limits)? {
        return Ok(ChainSweep::default());
    }
    // Nothing goes by what nobody can verify.
    let Some((mark, MarkState::Sound)) = connection.mark_to_follow(&keys)? else {
        return Ok(ChainSweep::default());
    };
    let mark = mark.without_rows(alone);
    let said = (!alone.is_empty()).then(|| mark.clone());
    let events = events(connection, &mark, n_max)?;
    let mut rows = RowChecker::new(connection)?;
    let plan = retention::plan(events, &mut rows, (&keys, mark), limits, n_max)?;
    drop(rows);
    for seq in &plan.remove {
        const DELETE: &str = "DELETE FROM audit WHERE seq = ?1";
        connection.prepare_cached(DELETE)?.execute([seq])?;
    }
    for (event, facts) in &plan.carry {
        carry(connection, event, *facts)?;
    }
    let swept = ChainSweep {
        n_removed: plan.remove.len(),
        n_carried: plan.carry.len(),
    };
    if let Some(mark) = plan.cut.or(said) {
        const CUT: &str = "DELETE FROM audit_chain WHERE n <= ?1";
        // The newest event is read before it goes, too: the chain goes on from it.
        connection.next_event()?;
        connection.prepare_cached(CUT)?.execute([mark.upto])?;
        connection.append_cut(mark)?;
    }
    Ok(swept)
}

fn newest_row(connection: &Connection) -> rusqlite::Result<i64> {
    const SQL: &str = "SELECT coalesce(max(seq), 0) FROM audit";
    connection
        .prepare_cached(SQL)?
        .query_row([], |row| row.get(0))
}

/// Whether any chained row may go.
fn has_any(connection: &Connection, limits: &Limits) -> rusqlite::Result<bool> {
    const OLD: &str = "
        SELECT EXISTS (SELECT 1 FROM audit WHERE begun_at_ms < ?1
        AND (finished_at_ms IS NOT NULL OR begun_at_ms < ?2) AND chain_n IS NOT NULL)";
    const MANY: &str = "
        SELECT EXISTS (SELECT 1 FROM audit WHERE seq <= ?1
        AND (finished_at_ms IS NOT NULL OR begun_at_ms < ?2) AND chain_n IS NOT NULL)";
    for (sql, limit) in [(OLD, limits.before_ms), (MANY, limits.upto_seq)] {
        let Some(limit) = limit else { continue };
        let mut statement = connection.prepare_cached(sql)?;
        if statement.query_row(params![limit, limits.running_ms], |row| row.get(0))? {
            return Ok(true);
        }
    }
    Ok(false)
}

fn events(
    connection: &Connection,
    mark: &ChainMark,
    n_max: u32,
) -> rusqlite::Result<Vec<StoredEvent>> {
    let sql = format!("SELECT {EVENT_COLUMNS} FROM audit_chain WHERE n > ?1 ORDER BY n LIMIT ?2");
    let mut statement = connection.prepare_cached(&sql)?;
    let row = params![mark.upto, retention::n_events(n_max)];
    let events = statement.query_map(row, check::event)?;
    events.collect()
}

/// Vouches for a row anew, as it is.
fn carry(connection: &ChainedConnection, event: &StoredEvent, facts: RowFacts) -> Outcome<()> {
    const BEGIN: &str = concat!("SELECT ", begin_columns!(), " FROM audit WHERE seq = ?1");
    const END: &str = concat!("SELECT ", end_columns!(), " FROM audit WHERE seq = ?1");
    let (Some(seq), Some(call)) = (event.head.seq, event.head.call) else {
        return Ok(());
    };
    let carried = connection.append(&NewEvent {
        kind: EventKind::Carried,
        call,
        seq,
        begun: None,
        record: &row_bytes(connection, seq, (0, BEGIN, N_BEGIN))?,
    })?;
    if facts.has_ended {
        connection.append(&NewEvent {
            kind: EventKind::Finish,
            call,
            seq,
            begun: carried,
            record: &row_bytes(connection, seq, (FIRST_OF_END, END, N_END))?,
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
    (first, sql, n): (u8, &str, usize),
) -> rusqlite::Result<Vec<u8>> {
    let mut bytes = Vec::with_capacity(1024);
    connection
        .prepare_cached(sql)?
        .query_row([seq], |row| put_row(&mut bytes, first, row, (0, n)))?;
    Ok(bytes)
}
