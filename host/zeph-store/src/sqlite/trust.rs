//! Trust and the windows over executions in SQL.

use rusqlite::{Connection, OptionalExtension as _, Row, params};
use zeph_core::anomaly::Window;
use zeph_core::policy::{TrustLevel, TrustSubject};

use super::audit::{parsed, unreadable};
use crate::trust::window::TrustTables;
use crate::trust::{BLOCKS_MAX, EVERYBODY, OutcomeNote, TrustRecord, TrustState, WINDOWS_MAX};

/// All of it.
pub(super) fn all(connection: &Connection) -> rusqlite::Result<TrustState> {
    const RECORDS: &str = "
        SELECT subject, caller, level, reason, is_automatic, at_ms FROM trust ORDER BY subject, caller";
    const WINDOWS: &str = "SELECT subject, caller FROM trust_windows";
    let version = version(connection)?;
    let mut records = connection.prepare_cached(RECORDS)?;
    let records = records.query_map([], record)?.collect::<Result<_, _>>()?;
    let mut windows = connection.prepare_cached(WINDOWS)?;
    let windows = windows.query_map([], |row| Ok((parsed(row, 0)?, row.get(1)?)))?;
    Ok(TrustState {
        version,
        records,
        windows: windows.collect::<Result<_, _>>()?,
    })
}

fn record(row: &Row<'_>) -> rusqlite::Result<TrustRecord> {
    let caller: String = row.get(1)?;
    Ok(TrustRecord {
        subject: parsed(row, 0)?,
        caller: Some(caller).filter(|caller| caller != EVERYBODY),
        level: parsed(row, 2)?,
        reason: row.get(3)?,
        is_automatic: row.get(4)?,
        at_ms: row.get(5)?,
    })
}

/// Which state of it this is.
pub(super) fn version(connection: &Connection) -> rusqlite::Result<i64> {
    connection
        .prepare_cached("SELECT version FROM trust_version")?
        .query_row([], |row| row.get(0))
}

/// Sets the trust of everybody in a subject.
pub(super) fn set(
    connection: &Connection,
    subject: &TrustSubject,
    level: TrustLevel,
    at_ms: i64,
) -> rusqlite::Result<()> {
    reset(connection, subject)?;
    connection.put(&TrustRecord::of_everybody(subject, level, at_ms))
}

/// Forgets a subject; says how many records that were.
pub(super) fn reset(connection: &Connection, subject: &TrustSubject) -> rusqlite::Result<usize> {
    // In the window of its owner the same failures are counted.
    let owner = subject.whole().map(|owner| owner.to_string());
    let subject = subject.to_string();
    let n_records = connection
        .prepare_cached("DELETE FROM trust WHERE subject = ?1")?
        .execute([&subject])?;
    let n_windows = connection
        .prepare_cached("DELETE FROM trust_windows WHERE subject = ?1 OR subject = ?2")?
        .execute(params![subject, owner])?;
    if n_records + n_windows > 0 {
        connection.bump()?;
    }
    Ok(n_records)
}

impl TrustTables for Connection {
    type Fault = rusqlite::Error;

    fn window(&self, subject: &TrustSubject, caller: &str) -> rusqlite::Result<Window> {
        const SQL: &str = "SELECT executions FROM trust_windows WHERE subject = ?1 AND caller = ?2";
        let text: Option<String> = self
            .prepare_cached(SQL)?
            .query_row([&subject.to_string(), caller], |row| row.get(0))
            .optional()?;
        let window = text.map(|text| serde_json::from_str(&text)).transpose();
        let window = window.map_err(|error| unreadable(0, error))?;
        Ok(window.unwrap_or_default())
    }

    fn save(
        &self,
        subject: &TrustSubject,
        note: &OutcomeNote,
        window: &Window,
    ) -> rusqlite::Result<()> {
        const PUT: &str = "
            INSERT OR REPLACE INTO trust_windows (subject, caller, executions, changed_at_ms) VALUES (?1, ?2, ?3, ?4)";
        const DROP: &str = "DELETE FROM trust_windows WHERE subject = ?1 AND caller = ?2";
        const TOO_MANY: &str = "
            DELETE FROM trust_windows WHERE (subject, caller) IN
            (SELECT subject, caller FROM trust_windows ORDER BY changed_at_ms DESC LIMIT -1 OFFSET ?1)";
        let subject = subject.to_string();
        if window.is_empty() {
            let row = params![subject, note.caller];
            return self.prepare_cached(DROP)?.execute(row).map(drop);
        }
        let text = serde_json::to_string(window)
            .map_err(|error| rusqlite::Error::ToSqlConversionFailure(Box::new(error)))?;
        let row = params![subject, note.caller, text, note.at_ms];
        self.prepare_cached(PUT)?.execute(row)?;
        let too_many = self.prepare_cached(TOO_MANY)?.execute([WINDOWS_MAX])?;
        if too_many > 0 {
            self.bump()?;
        }
        Ok(())
    }

    fn put(&self, record: &TrustRecord) -> rusqlite::Result<()> {
        const SQL: &str = "
            INSERT OR REPLACE INTO trust (subject, caller, level, reason, is_automatic, at_ms)
            VALUES (?1, ?2, ?3, ?4, ?5, ?6)";
        const TOO_MANY: &str = "
            DELETE FROM trust WHERE is_automatic AND (subject, caller) NOT IN
            (SELECT subject, caller FROM trust WHERE is_automatic ORDER BY at_ms DESC LIMIT ?1)";
        let row = params![
            record.subject.to_string(),
            record.caller.as_deref().unwrap_or(EVERYBODY),
            record.level.label(),
            record.reason,
            record.is_automatic,
            record.at_ms,
        ];
        self.prepare_cached(SQL)?.execute(row)?;
        self.prepare_cached(TOO_MANY)?.execute([BLOCKS_MAX])?;
        self.bump()
    }

    fn bump(&self) -> rusqlite::Result<()> {
        self.prepare_cached("UPDATE trust_version SET version = version + 1")?
            .execute([])
            .map(drop)
    }
}
