//! Revoked default grants.

use zeph_core::id::PluginId;

use super::transaction::Transaction;
use super::value::get;
use crate::operations::Outcome;

/// Says whether the default grants of a plugin count.
macro_rules! count {
    () => {
        "SELECT NOT EXISTS (SELECT 1 FROM revoked_defaults WHERE plugin = $1)"
    };
}

pub(super) use count;

/// Whether the default grants of a plugin count.
pub(super) fn counts(transaction: &Transaction, plugin: &PluginId) -> Outcome<bool> {
    get(&transaction.query_one(count!(), &[&plugin.0])?, 0)
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
