//! Trust and the windows over executions.

use tokio_postgres::Row;
use zeph_core::anomaly::Window;
use zeph_core::policy::{TrustLevel, TrustSubject};

use super::order;
use super::transaction::Transaction;
use super::value::{get, parsed, unreadable};
use crate::operations::{OperationFault, Outcome};
use crate::trust::window::{self, TrustTables};
use crate::trust::{
    BLOCKS_MAX, EVERYBODY, OutcomeNote, TrustAlert, TrustRecord, TrustState, WINDOWS_MAX,
};

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

/// Sets the trust of everybody in a subject.
pub(super) fn set(
    transaction: &Transaction,
    subject: &TrustSubject,
    level: TrustLevel,
    at_ms: i64,
) -> Outcome<()> {
    reset(transaction, subject)?;
    transaction.put(&TrustRecord::of_everybody(subject, level, at_ms))
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
        transaction.bump()?;
    }
    Ok(usize::try_from(n_records).unwrap_or(usize::MAX))
}

/// Counts an execution, while no other host counts one.
pub(super) fn note(transaction: &Transaction, note: &OutcomeNote) -> Outcome<Vec<TrustAlert>> {
    order::learned(transaction)?;
    window::note(transaction, note)
}

impl TrustTables for Transaction {
    type Fault = OperationFault;

    fn window(&self, subject: &TrustSubject, caller: &str) -> Outcome<Window> {
        const SQL: &str = "SELECT executions FROM trust_windows WHERE subject = $1 AND caller = $2";
        let row = self.query_opt(SQL, &[&subject.to_string(), &caller])?;
        let Some(row) = row else {
            return Ok(Window::default());
        };
        serde_json::from_str(get(&row, 0)?).map_err(|error| unreadable(0, error))
    }

    fn save(&self, subject: &TrustSubject, note: &OutcomeNote, window: &Window) -> Outcome<()> {
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
            let dropped = self.execute(DROP, &[&subject, &note.caller]);
            return dropped.map(drop);
        }
        let text = serde_json::to_string(window).map_err(|error| unreadable(2, error))?;
        self.execute(PUT, &[&subject, &note.caller, &text, &note.at_ms])?;
        if self.execute(TOO_MANY, &[&i64::from(WINDOWS_MAX)])? > 0 {
            self.bump()?;
        }
        Ok(())
    }

    fn put(&self, record: &TrustRecord) -> Outcome<()> {
        const SQL: &str = "
            INSERT INTO trust (subject, caller, level, reason, is_automatic, at_ms) VALUES ($1, $2, $3, $4, $5, $6)
            ON CONFLICT (subject, caller) DO UPDATE SET level = excluded.level, reason = excluded.reason,
                is_automatic = excluded.is_automatic, at_ms = excluded.at_ms";
        const TOO_MANY: &str = "
            DELETE FROM trust WHERE (subject, caller) IN
            (SELECT subject, caller FROM trust WHERE is_automatic ORDER BY at_ms DESC OFFSET $1)";
        self.execute(
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
        self.execute(TOO_MANY, &[&i64::from(BLOCKS_MAX)])?;
        self.bump()
    }

    fn bump(&self) -> Outcome<()> {
        self.execute("UPDATE trust_version SET version = version + 1", &[])
            .map(drop)
    }
}
