//! The tables and their history. A change of the schema is a new version at the end of the list, never an edit.

use std::sync::Arc;

use super::connection::Server;
use super::transaction::Transaction;
use crate::error::StoreError;
use crate::operations::Outcome;

/// Every version ever released, in order; each of several parts, by area.
const HISTORY: &[&[&str]] = &[&[
    include_str!("schema/conversation.sql"),
    include_str!("schema/savings.sql"),
    include_str!("schema/session.sql"),
    include_str!("schema/goals.sql"),
]];

/// The one row that says which version there is; of another application when it has another name.
const VERSION_TABLE: &str = "
    CREATE TABLE IF NOT EXISTS zeph_host_schema (
        id      INTEGER PRIMARY KEY CHECK (id = 1),
        version BIGINT NOT NULL
    )";

/// The newest schema version this program knows.
pub(super) fn newest_version() -> i64 {
    i64::try_from(HISTORY.len()).unwrap_or(i64::MAX)
}

/// Brings the server to the newest version, in one transaction. Hosts that start at once take turns.
///
/// Errors: [`StoreError::Newer`], [`StoreError::ServerAway`], [`StoreError::Busy`].
pub(super) fn migrate(server: &Arc<Server>) -> Result<(), StoreError> {
    let transaction = Transaction::new(Arc::clone(server))?;
    let migrated = migrated(&transaction);
    transaction.roll_back();
    let found = migrated.map_err(|fault| server.site.told("open the store", fault))?;
    let known = newest_version();
    if found > known {
        return Err(StoreError::Newer {
            path: server.site.server.clone().into(),
            found,
            known,
        });
    }
    Ok(())
}

/// The version that was found, when it was newer; else the newest.
fn migrated(transaction: &Transaction) -> Outcome<i64> {
    transaction.begin()?;
    let known = newest_version();
    if version(transaction)? == Some(known) {
        return Ok(known);
    }
    // Waited for like for any other lock.
    transaction.lock("zeph-host schema")?;
    transaction.execute(VERSION_TABLE, &[])?;
    let found = version(transaction)?.unwrap_or(0);
    if found > known {
        return Ok(found);
    }
    for parts in HISTORY.iter().skip(usize::try_from(found).unwrap_or(0)) {
        for part in *parts {
            transaction.script(part)?;
        }
    }
    let set = "
        INSERT INTO zeph_host_schema (id, version) VALUES (1, $1)
        ON CONFLICT (id) DO UPDATE SET version = excluded.version";
    transaction.execute(set, &[&known])?;
    transaction.commit()?;
    Ok(known)
}

/// The version of the schema; none where there is none yet.
fn version(transaction: &Transaction) -> Outcome<Option<i64>> {
    let is_there = "SELECT to_regclass('zeph_host_schema') IS NOT NULL";
    if !transaction.query_one(is_there, &[])?.get::<_, bool>(0) {
        return Ok(None);
    }
    let row = transaction.query_opt("SELECT version FROM zeph_host_schema WHERE id = 1", &[])?;
    Ok(row.map(|row| row.get(0)))
}
