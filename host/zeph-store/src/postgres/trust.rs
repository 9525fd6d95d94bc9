//! Trust and the windows over executions.

use tokio_postgres::Row;
use zeph_core::anomaly::{Window, WindowItem};
use zeph_core::policy::{TrustLevel, TrustSubject};

use super::order;
use super::transaction::Transaction;
use super::value::{get, parsed, unreadable};
use crate::operations::Outcome;
use crate::trust::{BLOCKS_MAX, OutcomeNote, TrustAlert, TrustRecord, TrustState, WINDOWS_MAX};

/// The caller of what holds for everybody. No caller has an empty name.
const EVERYBODY: &str = "";

/// All of it. What changes between two statements has another version than the one that is read first: it is read again then.
pub(super) fn all(transaction: &Transaction) -> Outcome<TrustState> {
    // By bytes, as SQLite sorts.
    const RECORDS: &str = "
        SELECT subject, caller, level, reason, is_automatic, at_ms FROM trust
        ORDER BY subject COLLATE \"C\", caller COLLATE \"C\"";
    const WINDOWS: &str = "SELECT subject, caller FROM trust_windows";
    let version = version(transaction)?;
    let records = transaction.query(RECORDS, &[])?;
    let windows = transaction.query(WINDOWS, &[])?;
    let windows = windows
        .iter()
        .map(|row| Ok((parsed(row, 0)?, get(row, 1)?)));
    Ok(TrustState {
        version,
        records: records.iter().map(record).collect::<Outcome<_>>()?,
        windows: windows.collect::<Outcome<_>>()?,
    })
}

fn record(row: &Row) -> Outcome<TrustRecord> {
    let caller: String = get(row, 1)?;
    Ok(TrustRecord {
        subject: parsed(row, 0)?,
        caller: Some(caller).filter(|caller| caller != EVERYBODY),
        level: parsed(row, 2)?,
        reason: get(row, 3)?,
        is_automatic: get(row, 4)?,
        at_ms: get(row, 5)?,
    })
}

/// Gives the state of it.
pub(super) const VERSION: &str = "SELECT version FROM trust_version";

/// Which state of it this is.
pub(super) fn version(transaction: &Transaction) -> Outcome<i64> {
    let ahead = transaction.ahead.borrow().trust_version;
    match ahead {
        Some(version) => Ok(version),
        None => get(&transaction.query_one(VERSION, &[])?, 0),
    }
}

fn bump(transaction: &Transaction) -> Outcome<()> {
    transaction
        .execute("UPDATE trust_version SET version = version + 1", &[])
        .map(drop)
}

/// Sets the trust of everybody in a subject.
pub(super) fn set(
    transaction: &Transaction,
    subject: &TrustSubject,
    level: TrustLevel,
    at_ms: i64,
) -> Outcome<()> {
    reset(transaction, subject)?;
    let record = TrustRecord {
        subject: subject.clone(),
        caller: None,
        level,
        reason: String::new(),
        is_automatic: false,
        at_ms,
    };
    put(transaction, &record)
}

fn put(transaction: &Transaction, record: &TrustRecord) -> Outcome<()> {
    const SQL: &str = "
        INSERT INTO trust (subject, caller, level, reason, is_automatic, at_ms) VALUES ($1, $2, $3, $4, $5, $6)
        ON CONFLICT (subject, caller) DO UPDATE SET level = excluded.level, reason = excluded.reason,
            is_automatic = excluded.is_automatic, at_ms = excluded.at_ms";
    const TOO_MANY: &str = "
        DELETE FROM trust WHERE (subject, caller) IN
        (SELECT subject, caller FROM trust WHERE is_automatic ORDER BY at_ms DESC OFFSET $1)";
    transaction.execute(
        SQL,
        &[
            &record.subject.to_string(),
            &record.caller.as_deref().unwrap_or(EVERYBODY),
            &record.level.label(),
            &record.reason,
            &record.is_automatic,
            &record.at_ms,
        ],
    )?;
    transaction.execute(TOO_MANY, &[&i64::from(BLOCKS_MAX)])?;
    bump(transaction)
}

/// Forgets a subject; says how many records that were.
pub(super) fn reset(transaction: &Transaction, subject: &TrustSubject) -> Outcome<usize> {
    const WINDOWS: &str = "DELETE FROM trust_windows WHERE subject = $1 OR subject = $2";
    // In the window of its owner the same failures are counted.
    let owner = subject.whole().map(|owner| owner.to_string());
    let subject = subject.to_string();
    order::learned(transaction)?;
    let n_records = transaction.execute("DELETE FROM trust WHERE subject = $1", &[&subject])?;
    let n_windows = transaction.execute(WINDOWS, &[&subject, &owner])?;
    if n_records + n_windows > 0 {
        bump(transaction)?;
    }
    Ok(usize::try_from(n_records).unwrap_or(usize::MAX))
}

/// Counts an execution of a tool, for the tool and for its owner. The failures that a tool is blocked for are not held against the owner.
pub(super) fn note(transaction: &Transaction, note: &OutcomeNote) -> Outcome<Vec<TrustAlert>> {
    order::learned(transaction)?;
    let owner = note.subject.whole();
    let of_tool = count(transaction, note, &note.subject, "")?;
    if let Some(alert) = of_tool.as_ref().filter(|alert| alert.is_blocked) {
        block(transaction, note, alert)?;
        if let Some(owner) = &owner {
            save(transaction, (owner, note), &Window::default())?;
        }
        return Ok(of_tool.into_iter().collect());
    }
    let of_owner = match &owner {
        Some(owner) => {
            let tool = note.subject.tool.as_deref().unwrap_or_default();
            count(transaction, note, owner, tool)?
        }
        None => None,
    };
    if let Some(alert) = of_owner.as_ref().filter(|alert| alert.is_blocked) {
        block(transaction, note, alert)?;
    }
    Ok(of_tool.into_iter().chain(of_owner).collect())
}

/// Blocks what an alert is about.
fn block(transaction: &Transaction, note: &OutcomeNote, alert: &TrustAlert) -> Outcome<()> {
    // It starts anew when the block is lifted.
    save(transaction, (&alert.subject, note), &Window::default())?;
    put(transaction, &alert.record(note))
}

/// Adds to one window; gives back the alert when its rate has become critical by that.
fn count(
    transaction: &Transaction,
    note: &OutcomeNote,
    subject: &TrustSubject,
    tool: &str,
) -> Outcome<Option<TrustAlert>> {
    let settings = &note.settings;
    let critical = |window: &Window| {
        let is_of_one = !tool.is_empty() && !window.has_several();
        window.critical(settings).filter(|_| !is_of_one)
    };
    let mut window = window(transaction, subject, &note.caller)?;
    let (was_empty, was_critical) = (window.is_empty(), critical(&window).is_some());
    let item = WindowItem {
        outcome: note.outcome,
        tool: tool.to_owned(),
    };
    window.push(item, settings.window_size);
    if was_empty && window.is_empty() {
        return Ok(None);
    }
    save(transaction, (subject, note), &window)?;
    if was_empty != window.is_empty() {
        bump(transaction)?;
    }
    let rate = critical(&window).filter(|_| !was_critical);
    Ok(rate.map(|rate| TrustAlert {
        subject: subject.clone(),
        rate,
        is_blocked: settings.auto_block,
    }))
}

fn window(transaction: &Transaction, subject: &TrustSubject, caller: &str) -> Outcome<Window> {
    const SQL: &str = "SELECT executions FROM trust_windows WHERE subject = $1 AND caller = $2";
    let row = transaction.query_opt(SQL, &[&subject.to_string(), &caller])?;
    let Some(row) = row else {
        return Ok(Window::default());
    };
    serde_json::from_str(get(&row, 0)?).map_err(|error| unreadable(0, error))
}

/// Keeps a window, or lets go of it when nothing has failed in it.
fn save(
    transaction: &Transaction,
    (subject, note): (&TrustSubject, &OutcomeNote),
    window: &Window,
) -> Outcome<()> {
    const PUT: &str = "
        INSERT INTO trust_windows (subject, caller, executions, changed_at_ms) VALUES ($1, $2, $3, $4)
        ON CONFLICT (subject, caller) DO UPDATE
        SET executions = excluded.executions, changed_at_ms = excluded.changed_at_ms";
    const DROP: &str = "DELETE FROM trust_windows WHERE subject = $1 AND caller = $2";
    const TOO_MANY: &str = "
        DELETE FROM trust_windows WHERE (subject, caller) IN
        (SELECT subject, caller FROM trust_windows ORDER BY changed_at_ms DESC OFFSET $1)";
    let subject = subject.to_string();
    if window.is_empty() {
        let dropped = transaction.execute(DROP, &[&subject, &note.caller]);
        return dropped.map(drop);
    }
    let text = serde_json::to_string(window).map_err(|error| unreadable(2, error))?;
    transaction.execute(PUT, &[&subject, &note.caller, &text, &note.at_ms])?;
    if transaction.execute(TOO_MANY, &[&i64::from(WINDOWS_MAX)])? > 0 {
        bump(transaction)?;
    }
    Ok(())
}
