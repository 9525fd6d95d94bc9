//! Which grants a revocation means. Pure: what it says is done by the store.

use std::path::{Path, PathBuf};

use zeph_config::PathBase;
use zeph_core::capability::{Capability, FsRights, LimitName};
use zeph_core::id::PluginId;
use zeph_core::lifetime::GrantLifetime;
use zeph_core::network::HostAccess;
use zeph_core::program;
use zeph_core::secret::SecretUse;
use zeph_store::{GrantRecord, Revoke, Store, StoreError, UnreadableGrant};

use super::ManageError;
use super::selection::RequestedItem;

/// What is revoked.
#[derive(Debug, PartialEq, Eq)]
pub struct Plan {
    which: Revoke,
    /// Grants that go, as they were.
    pub revoked: Vec<GrantRecord>,
    /// Rows that grant nothing and go too.
    pub unreadable: Vec<i64>,
    /// What stays of directories of which only some rights go.
    pub kept: Vec<GrantRecord>,
}

/// What was named on the command line.
#[derive(Debug)]
pub enum RevocationTarget<'a> {
    /// Every grant.
    All,
    /// Some of them.
    These {
        /// What they grant.
        asked: &'a [RequestedItem],
        /// Their ids.
        ids: &'a [i64],
    },
}

/// Finds the grants that `named` means.
///
/// Shape:  a directory means the grants on it and below it; with rights, only these of them. `base` is what relative paths
///         and `~` stand for; a directory need not exist any more.
/// Errors: `NothingToRevoke` when no grant is meant, with those there are; `BadSelector`.
pub fn plan(
    plugin: &PluginId,
    grants: &[GrantRecord],
    unreadable: &[UnreadableGrant],
    named: &RevocationTarget<'_>,
    base: PathBase<'_>,
) -> Result<Plan, ManageError> {
    let mut plan = Plan {
        which: Revoke::All,
        revoked: Vec::new(),
        unreadable: Vec::new(),
        kept: Vec::new(),
    };
    match named {
        RevocationTarget::All => {
            plan.revoked = grants.to_vec();
            plan.unreadable = unreadable.iter().map(|row| row.id).collect();
        }
        RevocationTarget::These { asked, ids } => {
            plan.add(grants, asked, ids, base)?;
            let rows = unreadable.iter().map(|row| row.id);
            plan.unreadable = rows.filter(|id| ids.contains(id)).collect();
            let ids = plan.revoked.iter().map(|grant| grant.id);
            plan.which = Revoke::Ids(ids.chain(plan.unreadable.iter().copied()).collect());
        }
    }
    if plan.revoked.is_empty() && plan.unreadable.is_empty() {
        let grants = grants
            .iter()
            .map(|grant| format!("{}: {}", grant.id, grant.capability));
        let rows = unreadable
            .iter()
            .map(|row| format!("{}: unreadable", row.id));
        return Err(ManageError::NothingToRevoke {
            name: plugin.clone(),
            grants: grants.chain(rows).collect(),
        });
    }
    Ok(plan)
}

/// One selector, its path resolved.
enum Meant {
    Directory {
        path: PathBuf,
        rights: FsRights,
    },
    Hosts(HostAccess),
    Other(Capability),
    AnyLimit(LimitName),
    /// Every use of a secret.
    AnySecret(String),
    /// One use of a secret, whatever its methods.
    Secret(SecretUse),
}

impl Meant {
    fn of(asked: &RequestedItem, base: PathBase<'_>) -> Result<Self, ManageError> {
        Ok(match asked {
            RequestedItem::Directory { path, rights, .. } => {
                let path = base.absolute(path).map_err(ManageError::BadSelector)?;
                Self::Directory {
                    path: path.canonicalize().unwrap_or(path),
                    rights: rights.unwrap_or(FsRights::ALL),
                }
            }
            RequestedItem::Host(access) => Self::Hosts(access.clone()),
            RequestedItem::Program(name) => Self::Other(Capability::Program { name: name.clone() }),
            RequestedItem::Variable(name) => {
                Self::Other(Capability::Variable { name: name.clone() })
            }
            RequestedItem::Embedder(name) => {
                Self::Other(Capability::Embedder { name: name.clone() })
            }
            RequestedItem::Tool(name) => Self::Other(Capability::Tool { name: name.clone() }),
            RequestedItem::Secret { name, used: None } => Self::AnySecret(name.clone()),
            RequestedItem::Secret {
                used: Some(used), ..
            } => Self::Secret(used.clone()),
            RequestedItem::Limit { name, value: None } => Self::AnyLimit(*name),
            RequestedItem::Limit {
                name,
                value: Some(value),
            } => Self::Other(Capability::Limit {
                name: *name,
                value: *value,
            }),
        })
    }
}

/// What is left of a grant; `None` when nothing of it is meant.
fn left_of(granted: &Capability, asked: &[Meant]) -> Option<Option<Capability>> {
    let Capability::Directory { path, rights } = granted else {
        let is_meant = asked.iter().any(|meant| match meant {
            Meant::Other(Capability::Program { name: meant }) => {
                matches!(granted, Capability::Program { name } if program::covers(meant, name))
            }
            Meant::Other(capability) => capability == granted,
            Meant::AnyLimit(name) => {
                matches!(granted, Capability::Limit { name: of_grant, .. } if of_grant == name)
            }
            Meant::Hosts(access) => {
                matches!(granted, Capability::Host(granted) if access.covers(granted))
            }
            Meant::AnySecret(name) => {
                matches!(granted, Capability::Secret(of_grant) if of_grant.name == *name)
            }
            Meant::Secret(used) => {
                matches!(granted, Capability::Secret(of_grant) if of_grant.intersect(used).is_some())
            }
            Meant::Directory { .. } => false,
        });
        return is_meant.then_some(None);
    };
    let left = asked.iter().fold(*rights, |left, meant| match meant {
        Meant::Directory {
            path: meant,
            rights,
        } if Path::new(path).starts_with(meant) => left.without(*rights),
        _ => left,
    });
    if left == *rights {
        return None;
    }
    let path = path.clone();
    Some((left != FsRights::default()).then_some(Capability::Directory { path, rights: left }))
}

impl Plan {
    fn add(
        &mut self,
        grants: &[GrantRecord],
        asked: &[RequestedItem],
        ids: &[i64],
        base: PathBase<'_>,
    ) -> Result<(), ManageError> {
        let asked = asked.iter().map(|asked| Meant::of(asked, base));
        let asked = asked.collect::<Result<Vec<_>, _>>()?;
        for grant in grants {
            let left = match ids.contains(&grant.id) {
                true => Some(None),
                false => left_of(&grant.capability, &asked),
            };
            let Some(left) = left else { continue };
            self.revoked.push(grant.clone());
            self.kept.extend(left.map(|capability| GrantRecord {
                capability,
                ..grant.clone()
            }));
        }
        Ok(())
    }

    /// Does it in one step, and gives back what stays: nothing of a grant that was revoked meanwhile.
    ///
    /// Errors: [`StoreError`]; then nothing is revoked.
    pub async fn carry_out(
        self,
        plugin: &PluginId,
        store: &Store,
        now_ms: i64,
    ) -> Result<Vec<GrantRecord>, StoreError> {
        let has_ended = |kept: &GrantRecord| matches!(kept.lifetime, GrantLifetime::Until { at_ms } if at_ms <= now_ms);
        let kept = self.kept.into_iter().filter(|kept| !has_ended(kept));
        let narrowed = store.narrow_grants(plugin.clone(), self.which, kept.collect(), now_ms);
        narrowed.await
    }
}

#[cfg(test)]
mod tests;
