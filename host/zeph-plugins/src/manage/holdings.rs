//! What a plugin has of what it wants: pure over manifest, grants and configuration.

use zeph_config::Config;
use zeph_core::capability::{Capability, FsRights, LimitName};
use zeph_core::grant::{Effective, effective, missing};
use zeph_core::id::Pin;
use zeph_core::lifetime::GrantLifetime;
use zeph_core::manifest::{Manifest, Want};
use zeph_store::GrantRecord;

use crate::rights;

/// Everything a plugin wants, and every grant of it.
#[derive(Debug)]
pub struct Holdings {
    /// In the author's order.
    pub wants: Vec<Holding>,
    /// Grants that give nothing, each with the reason.
    pub idle: Vec<(GrantRecord, &'static str)>,
}

/// A requested capability and its grants.
#[derive(Debug)]
pub struct Holding {
    /// As its manifest says it.
    pub want: Want,
    /// The same on this machine: a directory `.` stands for each that the host was given.
    pub here: Vec<Capability>,
    /// The active grants that cover a part of it.
    pub grants: Vec<GrantRecord>,
    /// What calls get of it: after manifest and policy.
    pub effective: Vec<Capability>,
    /// What grants withhold of it, whatever else gives it.
    pub withheld: Vec<Capability>,
    /// What was not granted of it.
    pub missing: Vec<Capability>,
}

impl Holding {
    /// Whether all of it was granted.
    pub fn is_granted(&self) -> bool {
        !self.here.is_empty() && self.missing.is_empty() && self.withheld.is_empty()
    }

    /// Granted directories of which the policy leaves nothing.
    pub fn is_outside_policy(&self) -> bool {
        let is_directory = matches!(self.want.capability, Capability::Directory { .. });
        let is_held = !self.grants.is_empty() && self.withheld.is_empty();
        is_directory && is_held && self.effective.is_empty()
    }
}

impl Holdings {
    /// Puts together what `grants` give to a plugin with this manifest and pin.
    pub fn new(
        manifest: &Manifest,
        pin: Pin,
        grants: Vec<GrantRecord>,
        config: &Config,
        now_ms: i64,
    ) -> Self {
        let (in_force, mut idle) = in_force(pin, grants, now_ms);
        let wants: Vec<Holding> = manifest
            .wants
            .iter()
            .map(|want| held(want, &in_force, config))
            .collect();
        for grant in in_force {
            if !manifest
                .wants
                .iter()
                .any(|want| is_wanted(&grant.capability, want, config))
            {
                idle.push((grant, "it is not wanted any more"));
            }
        }
        Self { wants, idle }
    }

    /// The number of requests that are fully granted.
    pub fn n_granted(&self) -> usize {
        self.wants.iter().filter(|held| held.is_granted()).count()
    }

    /// Everything that was not granted.
    pub fn missing(&self) -> Vec<Capability> {
        let missing = self.wants.iter().flat_map(|held| &held.missing);
        missing.cloned().collect()
    }

    /// The limits that are higher for it.
    pub fn limits(&self) -> Vec<(LimitName, u64)> {
        let capabilities = self.wants.iter().flat_map(|held| &held.effective);
        capabilities
            .filter_map(|capability| match capability {
                Capability::Limit { name, value } => Some((*name, *value)),
                _ => None,
            })
            .collect()
    }
}

/// The grants that count for this pin now, and the others.
fn in_force(
    pin: Pin,
    grants: Vec<GrantRecord>,
    now_ms: i64,
) -> (Vec<GrantRecord>, Vec<(GrantRecord, &'static str)>) {
    let mut in_force = Vec::new();
    let mut idle = Vec::new();
    for grant in grants {
        match grant.lifetime {
            GrantLifetime::Until { at_ms } if at_ms <= now_ms => {
                idle.push((grant, "it has expired"));
            }
            _ if grant.pin != pin => idle.push((grant, "it was given to another version")),
            _ => in_force.push(grant),
        }
    }
    (in_force, idle)
}

fn held(want: &Want, grants: &[GrantRecord], config: &Config) -> Holding {
    let alone = Manifest {
        wants: vec![want.clone()],
    };
    let here = rights::wanted(&alone, config).into_iter();
    let here: Vec<Capability> = here.map(within_ceiling).collect();
    let grants: Vec<GrantRecord> = grants
        .iter()
        .filter(|grant| is_wanted(&grant.capability, want, config))
        .cloned()
        .collect();
    let (withheld, held) = rights::without_withheld(grants.clone());
    let capabilities = |grants: Vec<GrantRecord>| -> Vec<Capability> {
        grants.into_iter().map(|grant| grant.capability).collect()
    };
    let granted = capabilities(held);
    Holding {
        withheld: capabilities(withheld),
        want: want.clone(),
        effective: flat(effective(&here, &granted, &config.file)),
        missing: missing(&here, &granted),
        here,
        grants,
    }
}

/// More than the engine can give of a limit is never missing.
fn within_ceiling(wanted: Capability) -> Capability {
    match wanted {
        Capability::Limit { name, value } => Capability::Limit {
            name,
            value: value.min(zeph_engine::ceiling(name)),
        },
        other => other,
    }
}

/// Whether a grant covers a part of a request. A request for `.` is one for the directories that a host is started for, in other places
/// too.
fn is_wanted(granted: &Capability, want: &Want, config: &Config) -> bool {
    if let (
        Capability::Directory {
            path,
            rights: wanted,
        },
        Capability::Directory { rights, .. },
    ) = (&want.capability, granted)
        && path == "."
    {
        return rights.intersect(*wanted) != FsRights::default();
    }
    let alone = Manifest {
        wants: vec![want.clone()],
    };
    let here = rights::wanted(&alone, config);
    here.iter().any(|want| want.intersect(granted).is_some())
}

fn flat(effective: Effective) -> Vec<Capability> {
    let Effective {
        directories,
        hosts,
        programs,
        variables,
        limits,
        secrets,
        embedders,
        tools,
    } = effective;
    let directories = directories.into_iter().map(|root| Capability::Directory {
        path: root.path.to_string_lossy().into_owned(),
        rights: root.rights,
    });
    let directories = directories.filter(|directory| match directory {
        Capability::Directory { rights, .. } => *rights != FsRights::default(),
        _ => true,
    });
    directories
        .chain(hosts.into_iter().map(Capability::Host))
        .chain(
            programs
                .into_iter()
                .map(|name| Capability::Program { name }),
        )
        .chain(
            variables
                .into_iter()
                .map(|name| Capability::Variable { name }),
        )
        .chain(
            limits
                .into_iter()
                .map(|(name, value)| Capability::Limit { name, value }),
        )
        .chain(secrets.into_iter().map(Capability::Secret))
        .chain(
            embedders
                .into_iter()
                .map(|name| Capability::Embedder { name }),
        )
        .chain(tools.into_iter().map(|name| Capability::Tool { name }))
        .collect()
}

#[cfg(test)]
mod tests;
