//! The tables and their history. A change of the schema is a new version at the end of the list, never an edit.

use std::sync::Arc;

use super::connection::Server;
use super::transaction::Transaction;
use super::value::get;
use crate::error::StoreError;
use crate::operations::{OperationFault, Outcome};

/// Every version ever released, in order; each of several parts, by area.
const HISTORY: &[&[&str]] = &[
    &[
        include_str!("schema/conversation.sql"),
        include_str!("schema/savings.sql"),
        include_str!("schema/session.sql"),
        include_str!("schema/goals.sql"),
        include_str!("schema/rights.sql"),
        include_str!("schema/audit.sql"),
        include_str!("schema/sharing.sql"),
        include_str!("schema/schedules.sql"),
        include_str!("schema/long_tasks.sql"),
        include_str!("schema/quota.sql"),
        include_str!("schema/sequences.sql"),
        include_str!("schema/trust.sql"),
        include_str!("schema/observed.sql"),
        include_str!("schema/vectors.sql"),
        include_str!("schema/indexes.sql"),
    ],
    &[include_str!("schema/asked.sql")],
    &[include_str!("schema/passages.sql")],
    &[include_str!("schema/releases.sql")],
    &[include_str!("schema/stamps.sql")],
    &[include_str!("schema/owners.sql")],
    &[include_str!("schema/askers.sql")],
    &[include_str!("schema/holders.sql")],
    &[include_str!("schema/long_texts.sql")],
];

/// The one row that says which version there is; of another application when it has another name.
const VERSION_TABLE: &str = "
    CREATE TABLE IF NOT EXISTS zeph_host_schema (
        id      INTEGER PRIMARY KEY CHECK (id = 1),
        version BIGINT NOT NULL
    )";

/// The newest schema version this program knows.
pub(crate) fn newest_version() -> i64 {
    i64::try_from(HISTORY.len()).unwrap_or(i64::MAX)
}

/// The encodings of a database that every text can be kept in: the second takes bytes as they are.
const ENCODINGS: [&str; 2] = ["UTF8", "SQL_ASCII"];

/// Brings the server to the newest version, in one transaction. Hosts that start at once take turns.
///
/// Errors: [`StoreError::Newer`], [`StoreError::Encoding`], [`StoreError::ServerAway`], [`StoreError::Busy`].
pub(crate) fn migrate(server: &Arc<Server>) -> Result<(), StoreError> {
    let transaction = Transaction::new(Arc::clone(server))?;
    let migrated = migrated(&transaction);
    transaction.roll_back();
    let path = server.site.server.clone().into();
    let known = newest_version();
    match migrated.map_err(|fault| server.site.told("open the store", fault))? {
        Found::Tables => Err(StoreError::Foreign { path }),
        Found::Version(found) if found > known => Err(StoreError::Newer { path, found, known }),
        Found::Nothing | Found::Version(_) => Ok(()),
    }
}

/// Whether a store of this version is there. Nothing is changed.
///
/// Errors: [`StoreError::Older`], [`StoreError::Newer`], [`StoreError::Foreign`], [`StoreError::ServerAway`], [`StoreError::Busy`].
pub(crate) fn is_there(server: &Arc<Server>) -> Result<bool, StoreError> {
    let transaction = Transaction::new(Arc::clone(server))?;
    let found = transaction.begin().and_then(|()| found(&transaction));
    transaction.roll_back();
    let place = server.site.server.clone();
    let known = newest_version();
    match found.map_err(|fault| server.site.told("open the store", fault))? {
        Found::Nothing => Ok(false),
        Found::Tables => Err(StoreError::Foreign { path: place.into() }),
        Found::Version(found) if found < known => Err(StoreError::Older {
            place,
            found,
            known,
        }),
        Found::Version(found) if found > known => Err(StoreError::Newer {
            path: place.into(),
            found,
            known,
        }),
        Found::Version(_) => Ok(true),
    }
}

/// What is there.
enum Found {
    Nothing,
    /// Those of another application.
    Tables,
    Version(i64),
}

fn found(transaction: &Transaction) -> Outcome<Found> {
    Ok(match version(transaction)? {
        Some(version) => Found::Version(version),
        None if has_table(transaction, "conversations")? => Found::Tables,
        None => Found::Nothing,
    })
}

/// What was there; tables of another application and those of a newer program are left as they are.
fn migrated(transaction: &Transaction) -> Outcome<Found> {
    transaction.begin()?;
    let known = newest_version();
    check_encoding(transaction)?;
    if version(transaction)? == Some(known) {
        return Ok(Found::Version(known));
    }
    // Waited for like for any other lock.
    transaction.lock("zeph-host schema")?;
    let found = found(transaction)?;
    let version = match found {
        Found::Nothing => 0,
        Found::Version(version) if version <= known => version,
        Found::Tables | Found::Version(_) => return Ok(found),
    };
    transaction.execute(VERSION_TABLE, &[])?;
    for parts in HISTORY.iter().skip(usize::try_from(version).unwrap_or(0)) {
        for part in *parts {
            transaction.script(part)?;
        }
    }
    let set = "
        INSERT INTO zeph_host_schema (id, version) VALUES (1, $1)
        ON CONFLICT (id) DO UPDATE SET version = excluded.version";
    transaction.execute(set, &[&known])?;
    transaction.commit()?;
    Ok(found)
}

/// Refuses a database in which not every text can be kept. A server that does not say what its encoding is, is believed.
fn check_encoding(transaction: &Transaction) -> Outcome<()> {
    let session = transaction.connection().session()?;
    match &session.encoding {
        Some(found) if !ENCODINGS.contains(&found.as_str()) => {
            Err(OperationFault::Told(StoreError::Encoding {
                server: transaction.site().server.clone(),
                found: found.clone(),
            }))
        }
        _ => Ok(()),
    }
}

/// Whether there is a table of this name. Asked of the catalog itself: what a name was resolved to before a lock may be remembered after it.
fn has_table(transaction: &Transaction, table: &str) -> Outcome<bool> {
    const SQL: &str = "
        SELECT EXISTS (SELECT 1 FROM pg_class
            WHERE relname = $1::text AND relnamespace = current_schema()::regnamespace)";
    get(&transaction.query_one(SQL, &[&table])?, 0)
}

/// The version of the schema; none where there is none yet.
fn version(transaction: &Transaction) -> Outcome<Option<i64>> {
    if !has_table(transaction, "zeph_host_schema")? {
        return Ok(None);
    }
    let row = transaction.query_opt("SELECT version FROM zeph_host_schema WHERE id = 1", &[])?;
    row.map(|row| get(&row, 0)).transpose()
}
