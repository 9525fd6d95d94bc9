//! Grants of plugins: what the operator allowed, bound to the exact plugin he allowed it to.
//!
//! A grant counts only for calls of its pin. A row that cannot be read grants nothing; it is told and can be revoked. What
//! a grant is worth after manifest and policy is decided elsewhere (`zeph_core::grant`).

use serde::Serialize;
use zeph_core::capability::{Capability, FsRights};
use zeph_core::id::{ConversationId, Pin, PluginId};
use zeph_core::lifetime::GrantLifetime;
use zeph_core::policy::Mode;

use crate::error::StoreError;
use crate::operations::NewGrants;
use crate::store::{Access, Store};

pub(crate) mod columns;
pub(crate) mod room;

/// How long a call may hold a `Once` grant before a sweep takes it for lost: a day, longer than any call runs.
pub(crate) const TAKEN_MS_MAX: i64 = 86_400_000;

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
    pub lifetime: GrantLifetime,
    /// When, in Unix milliseconds.
    pub granted_at_ms: i64,
    /// What it does when it does not simply allow: it allows on trial, a person has to agree, or it takes the capability away.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub mode: Option<Mode>,
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
    /// Those that count for exactly this plugin, and not for others that have or had its name.
    Pin(Pin),
}

/// What becomes of grants that are to count for another pin.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum OldGrants {
    /// They count for that one alone.
    Go,
    /// They count for what they were given to as well: somebody else may use it. One for a single call goes all the same, and stays one.
    Stay,
}

impl OldGrants {
    /// Whether `grant` stays.
    pub(crate) fn stays(self, grant: &GrantRecord) -> bool {
        self == Self::Stay && !grant.is_once()
    }
}

/// The grants of one query, and the rows among them that cannot be read.
#[derive(Debug, Default)]
pub(crate) struct ListedGrants {
    pub(crate) grants: Vec<GrantRecord>,
    pub(crate) unreadable: Vec<UnreadableGrant>,
}

impl ListedGrants {
    /// Adds a row that cannot be read, and logs it.
    pub(crate) fn set_apart(&mut self, unreadable: UnreadableGrant) {
        tracing::warn!(
            id = unreadable.id,
            plugin = unreadable.plugin,
            problem = unreadable.problem,
            "a grant cannot be read: it grants nothing"
        );
        self.unreadable.push(unreadable);
    }
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
        lifetime: GrantLifetime,
        at_ms: i64,
    ) -> Result<Vec<GrantRecord>, StoreError> {
        let terms = (lifetime, None);
        self.add_grants_in_mode(plugin, pin, capabilities, terms, at_ms)
            .await
    }

    /// As [`Store::add_grants`], with what the grants do. Of two modes for one capability the newer counts: it takes the place of the other.
    ///
    /// Errors: [`StoreError::BadGrant`] when a capability could never be in force.
    pub async fn add_grants_in_mode(
        &self,
        plugin: PluginId,
        pin: Pin,
        capabilities: Vec<Capability>,
        (lifetime, mode): (GrantLifetime, Option<Mode>),
        at_ms: i64,
    ) -> Result<Vec<GrantRecord>, StoreError> {
        let grants = NewGrants {
            plugin,
            pin,
            capabilities,
            lifetime,
            mode,
        };
        check(&grants, at_ms)?;
        self.run("add grants", Access::Write, move |operations| {
            operations.add_grants(&grants, at_ms)
        })
        .await
    }

    /// Revokes grants of `plugin`, and lets a part of some of them stay, in one step; says which grants now stand for those parts.
    ///
    /// Shape:  each of `kept` has the number of the grant that it is a part of. Of one that was revoked meanwhile nothing stays.
    /// Errors: [`StoreError::BadGrant`] when a part could never be in force; then nothing is revoked.
    pub async fn narrow_grants(
        &self,
        plugin: PluginId,
        which: Revoke,
        kept: Vec<GrantRecord>,
        at_ms: i64,
    ) -> Result<Vec<GrantRecord>, StoreError> {
        let kept = kept.into_iter().map(|kept| {
            let grants = NewGrants {
                plugin: plugin.clone(),
                pin: kept.pin,
                capabilities: vec![kept.capability],
                lifetime: kept.lifetime,
                mode: kept.mode,
            };
            check(&grants, at_ms).map(|()| (kept.id, grants))
        });
        let kept = kept.collect::<Result<Vec<_>, _>>()?;
        self.run("narrow grants", Access::Write, move |operations| {
            let mut added = Vec::new();
            for (id, part) in &kept {
                let n_revoked = operations.revoke_grants(&plugin, &Revoke::Ids(vec![*id]))?;
                added.extend((n_revoked > 0).then_some(part));
            }
            operations.revoke_grants(&plugin, &which)?;
            let mut left = Vec::new();
            for part in added {
                left.extend(operations.add_grants(part, at_ms)?);
            }
            Ok(left)
        })
        .await
    }

    /// The grants of one plugin or of all, by plugin and number.
    ///
    /// Shape: those that have expired are among them until a sweep; those a running call holds are not.
    /// Errors: what the database says.
    pub async fn list_grants(
        &self,
        plugin: Option<PluginId>,
    ) -> Result<Vec<GrantRecord>, StoreError> {
        self.run("list the grants", Access::Read, move |operations| {
            Ok(operations.grants(plugin.as_ref())?.grants)
        })
        .await
    }

    /// The rows that grant nothing because they cannot be read, by plugin and number.
    ///
    /// Errors: what the database says.
    pub async fn unreadable_grants(&self) -> Result<Vec<UnreadableGrant>, StoreError> {
        self.run("list the unreadable grants", Access::Read, |operations| {
            Ok(operations.grants(None)?.unreadable)
        })
        .await
    }

    /// What `plugin` may use in one call of `conversation` that begins at `now_ms`. Changes nothing.
    ///
    /// `Once` grants are among them until a call takes them with [`Store::begin_call`].
    /// Errors: what the database says.
    pub async fn grants_of_call(
        &self,
        plugin: PluginId,
        pin: Pin,
        conversation: ConversationId,
        now_ms: i64,
    ) -> Result<Vec<GrantRecord>, StoreError> {
        self.run(
            "read the grants of a call",
            Access::ReadRights,
            move |operations| operations.grants_of_call(&plugin, pin, conversation, now_ms),
        )
        .await
    }

    /// Revokes grants of `plugin`, those a running call holds included; says how many.
    ///
    /// A call that runs keeps what it was given.
    /// Errors: what the database says.
    pub async fn revoke_grants(
        &self,
        plugin: PluginId,
        which: Revoke,
    ) -> Result<usize, StoreError> {
        self.run("revoke grants", Access::Write, move |operations| {
            operations.revoke_grants(&plugin, &which)
        })
        .await
    }

    /// Lets the grants `plugin` had as `from` (`None`: as whatever it was) count for `to`; says how many those were.
    ///
    /// Rows that cannot be read stay where they are, where they grant nothing.
    /// Errors: what the database says.
    pub async fn rebind_grants(
        &self,
        plugin: PluginId,
        from: Option<Pin>,
        to: Pin,
        old: OldGrants,
    ) -> Result<usize, StoreError> {
        self.run("rebind grants", Access::Write, move |operations| {
            operations.rebind_grants(&plugin, from, to, old)
        })
        .await
    }

    /// Deletes everything the store keeps about `plugin`; says how many grants that were.
    ///
    /// Errors: what the database says.
    pub async fn forget_plugin(&self, plugin: PluginId) -> Result<usize, StoreError> {
        self.revoke_grants(plugin, Revoke::All).await
    }
}

/// That grants can be in force.
///
/// Errors: [`StoreError::BadGrant`].
fn check(grants: &NewGrants, at_ms: i64) -> Result<(), StoreError> {
    for capability in &grants.capabilities {
        if let Some(problem) = problem(capability).or(problem_of_end(grants.lifetime, at_ms)) {
            return Err(StoreError::BadGrant {
                plugin: grants.plugin.clone(),
                capability: capability.to_string(),
                problem,
            });
        }
    }
    Ok(())
}

/// Why a capability could never be in force, whatever the manifest says.
pub(crate) fn problem(capability: &Capability) -> Option<&'static str> {
    let Capability::Directory { path, rights } = capability else {
        return capability.problem();
    };
    let is_plain = path.starts_with('/') && !path.split('/').any(|name| name == "..");
    if !is_plain {
        return Some("a granted directory is absolute, without `..`");
    }
    (*rights == FsRights::default()).then_some("it names no right")
}

fn problem_of_end(lifetime: GrantLifetime, at_ms: i64) -> Option<&'static str> {
    match lifetime {
        GrantLifetime::Until { at_ms: end_ms } if end_ms <= at_ms => {
            Some("the moment it should last until has passed")
        }
        _ => None,
    }
}

impl GrantRecord {
    /// Whether the call that uses it uses it up.
    pub fn is_once(&self) -> bool {
        self.lifetime == GrantLifetime::Once
    }
}
