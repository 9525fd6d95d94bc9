//! Uses of grants.

use zeph_core::id::PluginId;

use super::digest::digest;
use super::transaction::Transaction;
use super::value::get;
use crate::grant_uses::{GrantUse, GrantUses};
use crate::operations::Outcome;

/// Keeps the latest use of each capability.
pub(super) fn note(
    transaction: &Transaction,
    plugin: &PluginId,
    capabilities: &[String],
    at_ms: i64,
) -> Outcome<()> {
    // In one order, so that no two hosts wait for each other.
    const SQL: &str = concat!(
        "INSERT INTO grant_uses AS known (plugin, capability, used_at_ms)
        SELECT $1::text, capability, $3::bigint
        FROM (SELECT DISTINCT unnest($2::text[]) AS capability) AS used ORDER BY capability
        ON CONFLICT (plugin, ",
        digest!("capability"),
        ") DO UPDATE SET used_at_ms = greatest(known.used_at_ms, excluded.used_at_ms)"
    );
    let capabilities: Vec<&str> = capabilities.iter().map(String::as_str).collect();
    let noted = transaction.execute(SQL, &[&plugin.0, &capabilities, &at_ms]);
    noted.map(drop)
}

/// All of them, and since when they are kept.
pub(super) fn listed(transaction: &Transaction) -> Outcome<GrantUses> {
    const SQL: &str =
        "SELECT plugin, capability, used_at_ms FROM grant_uses ORDER BY plugin, capability";
    let since = transaction.query_one("SELECT at_ms FROM grant_uses_since", &[])?;
    let rows = transaction.query(SQL, &[])?;
    let uses = rows.iter().map(|row| {
        Ok(GrantUse {
            plugin: PluginId(get(row, 0)?),
            capability: get(row, 1)?,
            used_at_ms: get(row, 2)?,
        })
    });
    Ok(GrantUses {
        since_ms: get(&since, 0)?,
        uses: uses.collect::<Outcome<_>>()?,
    })
}
