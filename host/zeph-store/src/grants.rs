//! Grants of plugins: what the operator allowed, bound to the exact plugin he allowed it to.
//!
//! A grant counts only for calls of its pin. A row that cannot be read grants nothing; it is told and can be revoked. What
//! a grant is worth after manifest and policy is decided elsewhere (`zeph_core::grant`).

use rusqlite::{Connection, ToSql, params};
use serde::Serialize;
use zeph_core::capability::{Capability, FsRights};
use zeph_core::grant::Lifetime;
use zeph_core::id::{ConversationId, Pin, PluginId};

use crate::error::StoreError;
use crate::store::Store;
use crate::writer::Access;

mod add;
mod row;

/// How long a call may hold a `Once` grant before a sweep takes it for lost: a day, longer than any call runs.
const TAKEN_MS_MAX: i64 = 86_400_000;

/// A capability an operator gave to a plugin.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct GrantRecord {
    /// Its number: what an operator names to revoke it. Never used again for another grant.
    pub id: i64,
    /// The plugin.
    pub plugin: PluginId,
    /// What the plugin was when it was given.
    pub pin: Pin,
    /// What was given; a directory is absolute and canonical.
    pub capability: Capability,
    /// For how long.
    #[serde(flatten)]
    pub lifetime: Lifetime,
    /// When, in Unix milliseconds.
    pub granted_at_ms: i64,
}

/// A row that cannot be read, and so grants nothing.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct UnreadableGrant {
    /// Its number, to revoke it by.
    pub id: i64,
    /// The plugin it was meant for.
    pub plugin: String,
    /// What is wrong with it.
    pub problem: String,
}

/// Which grants of a plugin to revoke.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Revoke {
    /// All of them.
    All,
    /// Those with these numbers; numbers of other plugins' grants are passed over.
    Ids(Vec<i64>),
}

impl Store {
    /// Gives `capabilities` to `plugin`, all or none of them; says which grant now stands for each, in the same order.
    ///
    /// Of one capability the longer lifetime stays: `Always` replaces every other, a later `Until` an earlier one, and
    /// everything replaces `Once`. A `Session` and an `Until` stand beside each other, and so do the sessions of several
    /// conversations. What would add nothing is not added, and the grant that stands for it is given back. A
    /// conversation the store does not know is begun.
    ///
    /// Errors: [`StoreError::BadGrant`] when a capability could never be in force.
    pub async fn add_grants(
        &self,
        plugin: PluginId,
        pin: Pin,
        capabilities: Vec<Capability>,
        lifetime: Lifetime,
        at_ms: i64,
    ) -> Result<Vec<GrantRecord>, StoreError> {
        for capability in &capabilities {
            if let Some(problem) = problem(capability).or(problem_of_end(lifetime, at_ms)) {
                return Err(StoreError::BadGrant {
                    plugin,
                    capability: capability.to_string(),
                    problem,
                });
            }
        }
        let work = move |connection: &Connection| {
            let add = |capability: &Capability| {
                let grant = add::Grant {
                    plugin: &plugin,
                    pin,
                    capability,
                    lifetime,
                };
                add::add(connection, &grant, at_ms)
            };
            capabilities.iter().map(add).collect()
        };
        self.run("add grants", Access::Write, work).await
    }

    /// The grants of one plugin or of all, by plugin and number.
    ///
    /// Shape: those that have expired are among them until a sweep; those a running call holds are not.
    pub async fn list_grants(
        &self,
        plugin: Option<PluginId>,
    ) -> Result<Vec<GrantRecord>, StoreError> {
        let work = move |connection: &Connection| Ok(listed(connection, plugin.as_ref())?.grants);
        self.run("list the grants", Access::Read, work).await
    }

    /// The rows that grant nothing because they cannot be read, by plugin and number.
    pub async fn unreadable_grants(&self) -> Result<Vec<UnreadableGrant>, StoreError> {
        let work = |connection: &Connection| Ok(listed(connection, None)?.unreadable);
        self.run("list the unreadable grants", Access::Read, work)
            .await
    }

    /// What `plugin` may use in one call of `conversation` that begins at `now_ms`. Changes nothing.
    ///
    /// `Once` grants are among them until a call takes them with [`Store::begin_call`].
    pub async fn grants_of_call(
        &self,
        plugin: PluginId,
        pin: Pin,
        conversation: ConversationId,
        now_ms: i64,
    ) -> Result<Vec<GrantRecord>, StoreError> {
        let work =
            move |connection: &Connection| in_force(connection, &plugin, pin, conversation, now_ms);
        self.run("read the grants of a call", Access::Read, work)
            .await
    }

    /// Revokes grants of `plugin`, those a running call holds included; says how many.
    ///
    /// A call that runs keeps what it was given.
    pub async fn revoke_grants(
        &self,
        plugin: PluginId,
        which: Revoke,
    ) -> Result<usize, StoreError> {
        let work = move |connection: &Connection| match &which {
            Revoke::All => connection
                .prepare_cached("DELETE FROM grants WHERE plugin = ?1")?
                .execute([&plugin.0]),
            Revoke::Ids(ids) => {
                let mut statement = connection
                    .prepare_cached("DELETE FROM grants WHERE plugin = ?1 AND id = ?2")?;
                ids.iter()
                    .map(|id| statement.execute(params![plugin.0, id]))
                    .sum()
            }
        };
        self.run("revoke grants", Access::Write, work).await
    }

    /// Lets the grants `plugin` had as `from` (`None`: as whatever it was) count for `to`; says how many moved.
    ///
    /// Rows that cannot be read stay where they are, where they grant nothing.
    pub async fn rebind_grants(
        &self,
        plugin: PluginId,
        from: Option<Pin>,
        to: Pin,
    ) -> Result<usize, StoreError> {
        let work = move |connection: &Connection| rebind(connection, &plugin, from, to);
        self.run("rebind grants", Access::Write, work).await
    }

    /// Deletes the grants that have ended, and the `Once` grants of calls that never came back; says how many.
    pub(crate) async fn sweep_grants(&self, at_ms: i64) -> Result<usize, StoreError> {
        const SQL: &str = "DELETE FROM grants WHERE until_ms <= ?1 OR taken_at_ms < ?2";
        let lost_ms = at_ms.saturating_sub(TAKEN_MS_MAX);
        let work = move |connection: &Connection| {
            connection.prepare_cached(SQL)?.execute([at_ms, lost_ms])
        };
        self.run("sweep ended grants", Access::Write, work).await
    }

    /// Deletes everything the store keeps about `plugin`; says how many grants that were.
    pub async fn forget_plugin(&self, plugin: PluginId) -> Result<usize, StoreError> {
        self.revoke_grants(plugin, Revoke::All).await
    }
}

/// Why a capability could never be in force, whatever the manifest says.
fn problem(capability: &Capability) -> Option<&'static str> {
    let Capability::Directory { path, rights } = capability else {
        return capability.problem();
    };
    let is_plain = path.starts_with('/') && !path.split('/').any(|name| name == "..");
    if !is_plain {
        return Some("a granted directory is absolute, without `..`");
    }
    (*rights == FsRights::default()).then_some("it names no right")
}

fn problem_of_end(lifetime: Lifetime, at_ms: i64) -> Option<&'static str> {
    match lifetime {
        Lifetime::Until { at_ms: end_ms } if end_ms <= at_ms => {
            Some("the moment it should last until has passed")
        }
        _ => None,
    }
}

impl GrantRecord {
    /// Whether the call that uses it uses it up.
    pub fn is_once(&self) -> bool {
        self.lifetime == Lifetime::Once
    }
}

fn listed(connection: &Connection, plugin: Option<&PluginId>) -> rusqlite::Result<row::Read> {
    let named: Option<&dyn ToSql> = plugin.map(|plugin| &plugin.0 as &dyn ToSql);
    let condition = match named {
        Some(_) => "taken_at_ms IS NULL AND plugin = ?1",
        None => "taken_at_ms IS NULL",
    };
    row::read(connection, condition, named.as_slice())
}

/// The grants for a call of `conversation` that begins at `now_ms`. What cannot be read is not among them.
pub(crate) fn in_force(
    connection: &Connection,
    plugin: &PluginId,
    pin: Pin,
    conversation: ConversationId,
    now_ms: i64,
) -> rusqlite::Result<Vec<GrantRecord>> {
    let mut grants = row::of_pin(connection, plugin, pin)?;
    grants.retain(|grant| match grant.lifetime {
        Lifetime::Once | Lifetime::Always => true,
        Lifetime::Session { conversation: own } => own == conversation,
        Lifetime::Until { at_ms } => now_ms < at_ms,
    });
    let (once, mut lasting): (Vec<_>, Vec<_>) = grants.into_iter().partition(GrantRecord::is_once);
    for grant in once {
        // What is granted for longer anyway need not be used up.
        if !lasting
            .iter()
            .any(|other| other.capability == grant.capability)
        {
            lasting.push(grant);
        }
    }
    Ok(lasting)
}

/// Whether a `Once` grant is there, for this pin, and no call holds it.
pub(crate) fn is_free(connection: &Connection, grant: &GrantRecord) -> rusqlite::Result<bool> {
    const SQL: &str = "
        SELECT EXISTS (SELECT 1 FROM grants WHERE id = ?1 AND wasm = ?2 AND tools = ?3
                       AND lifetime = 'once' AND taken_at_ms IS NULL)";
    let Pin { wasm, tools } = grant.pin;
    let row = params![grant.id, wasm.to_string(), tools.to_string()];
    connection
        .prepare_cached(SQL)?
        .query_row(row, |row| row.get(0))
}

/// Marks a grant as held by a call: it counts for no other.
pub(crate) fn hold(connection: &Connection, id: i64, at_ms: i64) -> rusqlite::Result<()> {
    connection
        .prepare_cached("UPDATE grants SET taken_at_ms = ?2 WHERE id = ?1")?
        .execute([id, at_ms])
        .map(drop)
}

/// Makes a held grant count again, unless a grant that replaces it was added later: every later one of the same capability
/// does. One that was revoked stays revoked.
pub(crate) fn release(connection: &Connection, id: i64) -> rusqlite::Result<()> {
    const REPLACED: &str = "
        DELETE FROM grants WHERE id = ?1 AND taken_at_ms IS NOT NULL AND EXISTS
            (SELECT 1 FROM grants AS other
             WHERE other.id > grants.id AND other.taken_at_ms IS NULL AND other.plugin = grants.plugin
               AND other.wasm = grants.wasm AND other.tools = grants.tools AND other.capability = grants.capability)";
    connection.prepare_cached(REPLACED)?.execute([id])?;
    connection
        .prepare_cached("UPDATE grants SET taken_at_ms = NULL WHERE id = ?1")?
        .execute([id])
        .map(drop)
}

fn rebind(
    connection: &Connection,
    plugin: &PluginId,
    from: Option<Pin>,
    to: Pin,
) -> rusqlite::Result<usize> {
    let moves = |grant: &GrantRecord| grant.pin != to && from.is_none_or(|pin| pin == grant.pin);
    let held = row::read(connection, "plugin = ?1", &[&plugin.0])?;
    let mut n_moved = 0;
    for grant in held.grants.iter().filter(|grant| moves(grant)) {
        add::move_to(connection, grant, to)?;
        n_moved += 1;
    }
    Ok(n_moved)
}
