//! Which grants calls use, reported to the store now and then: what `zeph-host grants --unused` reads.
//!
//! Of a directory it is known when a right on it was exercised, of a host when a request was let out to it, of a program when it ran. A
//! variable and a raised limit are simply there for every call, so each call counts as a use of them.

use std::collections::HashMap;
use std::path::Path;
use std::sync::{Mutex, PoisonError};

use zeph_core::capability::{Capability, FsRights};
use zeph_core::id::PluginId;
use zeph_core::network::HostAccess;
use zeph_core::program;
use zeph_store::{GrantRecord, Store};

use crate::guest::GuestUses;

/// A use of a grant is reported again after this long, so that a busy host writes a few rows an hour.
const REPORTED_MS: i64 = 600_000;

/// Most capabilities whose last report is remembered; after that they are reported again.
const REMEMBERED_MAX: usize = 10_000;

/// When each use was reported last. Protects the map for the moment of a look.
#[derive(Debug, Default)]
pub(crate) struct GrantUsage(Mutex<HashMap<(PluginId, String), i64>>);

impl GrantUsage {
    /// A call of `plugin` that held `granted` has ended.
    pub(crate) fn note(
        &self,
        store: &Store,
        plugin: &PluginId,
        (granted, uses): (&[GrantRecord], &GuestUses),
        at_ms: i64,
    ) {
        let used = granted
            .iter()
            .filter(|grant| is_used(&grant.capability, uses));
        let capabilities = self.due(plugin, used, at_ms);
        if !capabilities.is_empty() {
            store.note_grant_uses(plugin.clone(), capabilities, at_ms);
        }
    }

    /// Those of `used` that were not reported lately; they are now.
    fn due<'g>(
        &self,
        plugin: &PluginId,
        used: impl Iterator<Item = &'g GrantRecord>,
        at_ms: i64,
    ) -> Vec<String> {
        let mut reported = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if reported.len() >= REMEMBERED_MAX {
            reported.clear();
        }
        let mut due = Vec::new();
        for grant in used {
            let capability = grant.capability.to_string();
            let last = reported.entry((plugin.clone(), capability.clone()));
            let last = last.or_insert(i64::MIN);
            if at_ms.saturating_sub(*last) >= REPORTED_MS {
                *last = at_ms;
                due.push(capability);
            }
        }
        due
    }
}

/// Whether a call that used `uses` used what was granted as `capability`.
fn is_used(capability: &Capability, uses: &GuestUses) -> bool {
    match capability {
        Capability::Directory { path, rights } => {
            let mut roots = uses.files.roots.iter();
            roots.any(|root| {
                let is_of_it =
                    root.path.starts_with(path) || Path::new(path).starts_with(&root.path);
                is_of_it && root.rights.intersect(*rights) != FsRights::default()
            })
        }
        Capability::Host(granted) => requests(uses).any(|sent| granted.covers(&sent)),
        Capability::Secret(secret) => requests(uses).any(|sent| secret.host.covers(&sent.name)),
        Capability::Program { name } => uses.programs.iter().any(|words| {
            let words = words.split_first();
            words.is_some_and(|(program, arguments)| program::allows(name, program, arguments))
        }),
        Capability::Embedder { name } => uses.embedders.contains(name),
        Capability::Tool { name } => uses.tools.contains(name),
        Capability::Variable { .. } | Capability::Limit { .. } => true,
    }
}

fn requests(uses: &GuestUses) -> impl Iterator<Item = HostAccess> + '_ {
    uses.requests.iter().filter_map(access)
}

/// What has to be granted for a request.
pub(crate) fn access(sent: &zeph_engine::SentRequest) -> Option<HostAccess> {
    let scheme = if sent.plain_http { "http://" } else { "" };
    format!("{scheme}{}:{}", sent.host, sent.method)
        .parse()
        .ok()
}

#[cfg(test)]
mod tests {
    use zeph_core::capability::{Capability, FsRights, FsRoot};
    use zeph_engine::SentRequest;

    use super::is_used;
    use crate::guest::GuestUses;

    #[test]
    fn a_grant_is_used_by_what_needs_it() {
        let mut uses = GuestUses::default();
        uses.files.roots.push(FsRoot {
            path: "/w/src".into(),
            rights: FsRights::READ,
        });
        uses.programs
            .push(vec!["cargo".to_owned(), "check".to_owned()]);
        uses.requests.push(SentRequest {
            host: "api.example:443".to_owned(),
            method: "GET".to_owned(),
            plain_http: false,
        });
        let directory = |path: &str, rights: &str| Capability::Directory {
            path: path.to_owned(),
            rights: rights.parse().unwrap(),
        };
        let host = |text: &str| Capability::Host(text.parse().unwrap());
        let program = |name: &str| Capability::Program {
            name: name.to_owned(),
        };
        for (capability, expect) in [
            (directory("/w", "read+write"), true),
            (directory("/w", "write"), false),
            (directory("/other", "read"), false),
            (host("api.example"), true),
            (host("api.example:POST"), false),
            (host("http://api.example:443"), false),
            (host("other.example"), false),
            (program("cargo"), true),
            (program("cargo check"), true),
            (program("cargo test"), false),
        ] {
            assert_eq!(is_used(&capability, &uses), expect, "{capability}");
        }
    }
}
