//! Trust and the windows over executions in SQL.

use rusqlite::{Connection, OptionalExtension as _, Row, params};
use zeph_core::anomaly::{Window, WindowItem};
use zeph_core::policy::{TrustLevel, TrustSubject};

use super::audit::{parsed, unreadable};
use crate::trust::{BLOCKS_MAX, OutcomeNote, TrustAlert, TrustRecord, TrustState, WINDOWS_MAX};

/// The caller of what holds for everybody. No caller has an empty name.
const EVERYBODY: &str = "";

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

fn bump(connection: &Connection) -> rusqlite::Result<()> {
    connection
        .prepare_cached("UPDATE trust_version SET version = version + 1")?
        .execute([])
        .map(drop)
}

/// Sets the trust of everybody in a subject.
pub(super) fn set(
    connection: &Connection,
    subject: &TrustSubject,
    level: TrustLevel,
    at_ms: i64,
) -> rusqlite::Result<()> {
    reset(connection, subject)?;
    let record = TrustRecord {
        subject: subject.clone(),
        caller: None,
        level,
        reason: String::new(),
        is_automatic: false,
        at_ms,
    };
    put(connection, &record)
}

fn put(connection: &Connection, record: &TrustRecord) -> rusqlite::Result<()> {
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
    connection.prepare_cached(SQL)?.execute(row)?;
    connection.prepare_cached(TOO_MANY)?.execute([BLOCKS_MAX])?;
    bump(connection)
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
        bump(connection)?;
    }
    Ok(n_records)
}

/// Counts an execution of a tool, for the tool and for its owner. The failures that a tool is blocked for are not held against the owner.
pub(super) fn note(
    connection: &Connection,
    note: &OutcomeNote,
) -> rusqlite::Result<Vec<TrustAlert>> {
    let owner = note.subject.whole();
    let of_tool = count(connection, note, &note.subject, "")?;
    if let Some(alert) = of_tool.as_ref().filter(|alert| alert.is_blocked) {
        block(connection, note, alert)?;
        if let Some(owner) = &owner {
            save(connection, (owner, note), &Window::default())?;
        }
        return Ok(of_tool.into_iter().collect());
    }
    let of_owner = match &owner {
        Some(owner) => {
            let tool = note.subject.tool.as_deref().unwrap_or_default();
            count(connection, note, owner, tool)?
        }
        None => None,
    };
    if let Some(alert) = of_owner.as_ref().filter(|alert| alert.is_blocked) {
        block(connection, note, alert)?;
    }
    Ok(of_tool.into_iter().chain(of_owner).collect())
}

/// Blocks what an alert is about.
fn block(connection: &Connection, note: &OutcomeNote, alert: &TrustAlert) -> rusqlite::Result<()> {
    // It starts anew when the block is lifted.
    save(connection, (&alert.subject, note), &Window::default())?;
    put(connection, &alert.record(note))
}

/// Adds to one window; gives back the alert when its rate has become critical by that.
fn count(
    connection: &Connection,
    note: &OutcomeNote,
    subject: &TrustSubject,
    tool: &str,
) -> rusqlite::Result<Option<TrustAlert>> {
    let settings = &note.settings;
    let critical = |window: &Window| {
        let is_of_one = !tool.is_empty() && !window.has_several();
        window.critical(settings).filter(|_| !is_of_one)
    };
    let mut window = window(connection, subject, &note.caller)?;
    let (was_empty, was_critical) = (window.is_empty(), critical(&window).is_some());
    let item = WindowItem {
        outcome: note.outcome,
        tool: tool.to_owned(),
    };
    window.push(item, settings.window_size);
    if was_empty && window.is_empty() {
        return Ok(None);
    }
    save(connection, (subject, note), &window)?;
    if was_empty != window.is_empty() {
        bump(connection)?;
    }
    let rate = critical(&window).filter(|_| !was_critical);
    Ok(rate.map(|rate| TrustAlert {
        subject: subject.clone(),
        rate,
        is_blocked: settings.auto_block,
    }))
}

fn window(
    connection: &Connection,
    subject: &TrustSubject,
    caller: &str,
) -> rusqlite::Result<Window> {
    const SQL: &str = "SELECT executions FROM trust_windows WHERE subject = ?1 AND caller = ?2";
    let text: Option<String> = connection
        .prepare_cached(SQL)?
        .query_row([&subject.to_string(), caller], |row| row.get(0))
        .optional()?;
    let window = text.map(|text| serde_json::from_str(&text)).transpose();
    let window = window.map_err(|error| unreadable(0, error))?;
    Ok(window.unwrap_or_default())
}

/// Keeps a window, or lets go of it when nothing has failed in it.
fn save(
    connection: &Connection,
    (subject, note): (&TrustSubject, &OutcomeNote),
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
        return connection.prepare_cached(DROP)?.execute(row).map(drop);
    }
    let text = serde_json::to_string(window)
        .map_err(|error| rusqlite::Error::ToSqlConversionFailure(Box::new(error)))?;
    let row = params![subject, note.caller, text, note.at_ms];
    connection.prepare_cached(PUT)?.execute(row)?;
    let too_many = connection
        .prepare_cached(TOO_MANY)?
        .execute([WINDOWS_MAX])?;
    if too_many > 0 {
        bump(connection)?;
    }
    Ok(())
}
