//! Grants.
//!
//! What reads the grants of a plugin and then changes them stands behind a lock of that plugin. A call takes a grant without it: it locks the
//! row, and what is held is changed by nobody else.

use zeph_core::id::{ConversationId, Pin, PluginId};

use self::add::{add, bind_to};
use super::transaction::{RightsGroup, Transaction};
use super::value::{get, parsed};
use crate::defaults::OwnGrants;
use crate::grants::room::{NewGrant, counting};
use crate::grants::{GrantRecord, ListedGrants, OldGrants, Revoke, TAKEN_MS_MAX};
use crate::operations::{NewGrants, Outcome};

mod add;
mod row;

/// Adds grants beside those that are there.
pub(super) fn add_all(
    transaction: &Transaction,
    grants: &NewGrants,
    at_ms: i64,
) -> Outcome<Vec<GrantRecord>> {
    hold_plugin(transaction, &grants.plugin)?;
    let added = grants.capabilities.iter().map(|capability| {
        let grant = NewGrant {
            plugin: &grants.plugin,
            pin: grants.pin,
            capability,
            lifetime: grants.lifetime,
            mode: grants.mode,
        };
        add(transaction, &grant, at_ms)
    });
    added.collect()
}

/// Revokes grants of a plugin.
pub(super) fn revoke(
    transaction: &Transaction,
    plugin: &PluginId,
    which: &Revoke,
) -> Outcome<usize> {
    hold_plugin(transaction, plugin)?;
    let n_rows = match which {
        Revoke::All => transaction.execute("DELETE FROM grants WHERE plugin = $1", &[&plugin.0])?,
        Revoke::Ids(ids) => transaction.execute(
            "DELETE FROM grants WHERE plugin = $1 AND id = ANY($2::bigint[])",
            &[&plugin.0, ids],
        )?,
        Revoke::Pin(Pin { wasm, tools }) => transaction.execute(
            "DELETE FROM grants WHERE plugin = $1 AND wasm = $2 AND tools = $3",
            &[&plugin.0, &wasm.to_string(), &tools.to_string()],
        )?,
    };
    Ok(usize::try_from(n_rows).unwrap_or(usize::MAX))
}

/// Deletes grants that have ended, and `Once` grants of calls that never came back; says how many.
pub(super) fn sweep(transaction: &Transaction, at_ms: i64, n_max: u32) -> Outcome<usize> {
    const SQL: &str = "
        DELETE FROM grants WHERE id IN
        (SELECT id FROM grants WHERE until_ms <= $1 OR taken_at_ms < $2 LIMIT $3 FOR UPDATE SKIP LOCKED)";
    let lost_ms = at_ms.saturating_sub(TAKEN_MS_MAX);
    let n_rows = transaction.execute(SQL, &[&at_ms, &lost_ms, &i64::from(n_max)])?;
    Ok(usize::try_from(n_rows).unwrap_or(usize::MAX))
}

/// The grants that no call holds.
pub(super) fn listed(
    transaction: &Transaction,
    plugin: Option<&PluginId>,
) -> Outcome<ListedGrants> {
    const SQL: &str = row::grants!("taken_at_ms IS NULL AND ($1::text IS NULL OR plugin = $1)");
    let plugin = plugin.map(|plugin| plugin.0.as_str());
    row::read(transaction, SQL, &[&plugin])
}

/// The grants for a call of `conversation` that begins at `now_ms`. What cannot be read is not among them.
pub(super) fn in_force(
    transaction: &Transaction,
    plugin: &PluginId,
    pin: Pin,
    conversation: ConversationId,
    now_ms: i64,
) -> Outcome<Vec<GrantRecord>> {
    let (_, grants) = of_pin(transaction, plugin, pin)?;
    Ok(counting(grants, conversation, now_ms))
}

/// The same with whether the default grants of the plugin count.
pub(super) fn own(
    transaction: &Transaction,
    plugin: &PluginId,
    pin: Pin,
    (conversation, now_ms): (ConversationId, i64),
) -> Outcome<OwnGrants> {
    let (has_defaults, grants) = of_pin(transaction, plugin, pin)?;
    Ok(OwnGrants {
        has_defaults,
        granted: counting(grants, conversation, now_ms),
    })
}

/// The grants of exactly this plugin that no call holds, and whether its default grants count: once for reads that are answered together.
fn of_pin(
    transaction: &Transaction,
    plugin: &PluginId,
    pin: Pin,
) -> Outcome<(bool, Vec<GrantRecord>)> {
    let key = (plugin.clone(), pin);
    let known = |group: &RightsGroup| group.grants.get(&key).cloned();
    if let Some(known) = transaction.group.borrow().as_ref().and_then(known) {
        return Ok(known);
    }
    let read = row::of_pin(transaction, plugin, pin)?;
    if let Some(group) = transaction.group.borrow_mut().as_mut() {
        group.grants.insert(key, read.clone());
    }
    Ok(read)
}

/// Whether all of these `Once` grants are there, for their pins, and no call holds them. They stay as they are until the transaction ends.
pub(super) fn are_free(transaction: &Transaction, grants: &[GrantRecord]) -> Outcome<bool> {
    const SQL: &str = "
        SELECT id, wasm, tools FROM grants
        WHERE id = ANY($1::bigint[]) AND lifetime = 'once' AND taken_at_ms IS NULL ORDER BY id FOR UPDATE";
    if grants.is_empty() {
        return Ok(true);
    }
    let mut free = Vec::new();
    for row in transaction.query(SQL, &[&ids(grants)])? {
        let pin = Pin {
            wasm: parsed(&row, 1)?,
            tools: parsed(&row, 2)?,
        };
        free.push((get(&row, 0)?, pin));
    }
    let is_free = |grant: &GrantRecord| free.contains(&(grant.id, grant.pin));
    Ok(grants.iter().all(is_free))
}

/// Marks grants as held by a call: they count for no other.
pub(super) fn hold(transaction: &Transaction, grants: &[GrantRecord], at_ms: i64) -> Outcome<()> {
    const SQL: &str = "UPDATE grants SET taken_at_ms = $2 WHERE id = ANY($1::bigint[])";
    if grants.is_empty() {
        return Ok(());
    }
    transaction.execute(SQL, &[&ids(grants), &at_ms]).map(drop)
}

/// Makes held grants count again, unless a grant that replaces one was added later: every later one of the same capability
/// does. One that was revoked stays revoked.
pub(super) fn release(transaction: &Transaction, grants: &[GrantRecord]) -> Outcome<()> {
    const REPLACED: &str = "
        DELETE FROM grants WHERE id = ANY($1::bigint[]) AND taken_at_ms IS NOT NULL AND EXISTS
            (SELECT 1 FROM grants AS other
             WHERE other.id > grants.id AND other.taken_at_ms IS NULL AND other.plugin = grants.plugin
               AND other.wasm = grants.wasm AND other.tools = grants.tools AND other.capability = grants.capability)";
    const FREE: &str = "UPDATE grants SET taken_at_ms = NULL WHERE id = ANY($1::bigint[])";
    let mut plugins: Vec<&PluginId> = grants.iter().map(|grant| &grant.plugin).collect();
    plugins.sort_unstable_by(|one, other| one.0.cmp(&other.0));
    plugins.dedup();
    for plugin in plugins {
        hold_plugin(transaction, plugin)?;
    }
    // One by one: of two of the same capability the later stands for both.
    for grant in grants {
        let ids = vec![grant.id];
        transaction.execute(REPLACED, &[&ids])?;
        transaction.execute(FREE, &[&ids])?;
    }
    Ok(())
}

/// Lets grants of one pin, or of all, count for another.
pub(super) fn rebind(
    transaction: &Transaction,
    plugin: &PluginId,
    (from, to): (Option<Pin>, Pin),
    old: OldGrants,
) -> Outcome<usize> {
    const SQL: &str = row::grants!("plugin = $1");
    hold_plugin(transaction, plugin)?;
    let counts = |grant: &GrantRecord| grant.pin != to && from.is_none_or(|pin| pin == grant.pin);
    let held = row::read(transaction, SQL, &[&plugin.0])?;
    let mut n_bound = 0;
    for grant in held.grants.iter().filter(|grant| counts(grant)) {
        bind_to(transaction, grant, to, old)?;
        n_bound += 1;
    }
    Ok(n_bound)
}

/// Orders changes of the grants of one plugin.
fn hold_plugin(transaction: &Transaction, plugin: &PluginId) -> Outcome<()> {
    transaction.lock(&format!("grants of {}", plugin.0))
}

fn ids(grants: &[GrantRecord]) -> Vec<i64> {
    grants.iter().map(|grant| grant.id).collect()
}
