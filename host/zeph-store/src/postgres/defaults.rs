//! Revoked default grants.

use tokio_postgres::Row;
use zeph_core::id::PluginId;

use super::transaction::Transaction;
use super::value::get;
use crate::operations::{OperationFault, Outcome};

/// Says whether the default grants of a plugin count.
pub(super) const COUNT: &str =
    "SELECT NOT EXISTS (SELECT 1 FROM revoked_defaults WHERE plugin = $1)";

/// Whether the default grants of a plugin count.
pub(super) fn counts(transaction: &Transaction, plugin: &PluginId) -> Outcome<bool> {
    of(transaction.query_opt(COUNT, &[&plugin.0])?.as_ref())
}

/// The answer to [`COUNT`].
pub(super) fn of(row: Option<&Row>) -> Outcome<bool> {
    let row = row.ok_or_else(|| OperationFault::Database("a row is missing".into()))?;
    get(row, 0)
}

/// Revokes the default grants of a plugin; says whether they counted.
pub(super) fn revoke(transaction: &Transaction, plugin: &PluginId, at_ms: i64) -> Outcome<bool> {
    const SQL: &str = "
        INSERT INTO revoked_defaults (plugin, at_ms) VALUES ($1, $2) ON CONFLICT (plugin) DO NOTHING";
    Ok(transaction.execute(SQL, &[&plugin.0, &at_ms])? > 0)
}

/// Lets the default grants of a plugin count again; says whether they did not.
pub(super) fn restore(transaction: &Transaction, plugin: &PluginId) -> Outcome<bool> {
    const SQL: &str = "DELETE FROM revoked_defaults WHERE plugin = $1";
    Ok(transaction.execute(SQL, &[&plugin.0])? > 0)
}
