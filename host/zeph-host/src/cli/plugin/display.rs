//! How capabilities, grants and texts of plugins look: to people and in JSON.

use std::path::Path;

use serde_json::{Map, Value, json};
use zeph_core::capability::Capability;
use zeph_core::lifetime::GrantLifetime;
use zeph_core::policy::Mode;
use zeph_store::{GrantRecord, UnreadableGrant};

pub(super) use crate::cli::page::print_json;
pub(super) use zeph_plugins::event::size;
use zeph_plugins::refusal::quoted;
use zeph_plugins::set::Status;

use crate::cli::time;
pub(super) use crate::run::page::Page;

/// How a plugin stands, in the words of the listing.
pub(super) fn status(status: &Status) -> &'static str {
    match status {
        Status::Active => "active",
        Status::Loading => "loading…",
        Status::Changed => "changed: approve",
        Status::Disabled => "off",
        Status::Quarantined(_) => "quarantined",
    }
}

/// The status, and the reason when there is one, as members of an object.
pub(super) fn status_json(status: &Status) -> Map<String, Value> {
    members(json!(status))
}

/// `always`, `once`, `until 2026-12-31T23:59:59Z`.
pub(in crate::cli) fn lifetime(lifetime: GrantLifetime) -> String {
    match lifetime {
        GrantLifetime::Until { at_ms } => format!("until {}", time::shown(at_ms)),
        other => other.to_string(),
    }
}

/// A grant on one line: its number, what, how long.
pub(in crate::cli) fn grant(grant: &GrantRecord) -> String {
    if grant.id == 0 {
        return format!("by default: {}", grant.capability);
    }
    let mode = match grant.mode {
        Some(Mode::Observe) => ", on trial",
        Some(Mode::Ask) => ", asks",
        Some(Mode::Deny) => ", withheld",
        None => "",
    };
    format!(
        "{}: {} ({}{mode})",
        grant.id,
        grant.capability,
        lifetime(grant.lifetime)
    )
}

/// `{"id", "kind", …, "lifetime", "granted_at"}`, with `until` or `conversation` where the lifetime has one. A default grant has the ID 0, and
/// nobody granted it at any time.
pub(in crate::cli) fn grant_json(grant: &GrantRecord) -> Value {
    let mut members = members(json!(grant.capability));
    members.insert("id".to_owned(), json!(grant.id));
    let (label, detail) = match grant.lifetime {
        GrantLifetime::Once => ("once", None),
        GrantLifetime::Always => ("always", None),
        GrantLifetime::Session { conversation } => {
            ("session", Some(("conversation", json!(conversation))))
        }
        GrantLifetime::Until { at_ms } => ("until", Some(("until", json!(time::shown(at_ms))))),
    };
    members.insert("lifetime".to_owned(), json!(label));
    members.extend(grant.mode.map(|mode| ("mode".to_owned(), json!(mode))));
    members.extend(detail.map(|(key, value)| (key.to_owned(), value)));
    let granted_at = (grant.id != 0).then(|| time::shown(grant.granted_at_ms));
    members.insert("granted_at".to_owned(), json!(granted_at));
    Value::Object(members)
}

/// `{"id", "problem"}`
pub(super) fn unreadable_json(row: &UnreadableGrant) -> Value {
    json!({ "id": row.id, "problem": row.problem })
}

/// Functions that are no tools: `[{"name", "reason"}]`
pub(super) fn skipped_json(skipped: &[(String, String)]) -> Value {
    let skipped = skipped.iter();
    skipped
        .map(|(name, reason)| json!({ "name": name, "reason": reason }))
        .collect()
}

/// The members of an object.
pub(in crate::cli) fn members(value: Value) -> Map<String, Value> {
    match value {
        Value::Object(members) => members,
        _ => Map::new(),
    }
}

/// Capabilities in one line of text.
pub(in crate::cli) fn capabilities(capabilities: &[Capability]) -> String {
    let texts: Vec<String> = capabilities.iter().map(ToString::to_string).collect();
    texts.join(", ")
}

/// A path as a word for a shell.
pub(super) fn path(path: &Path) -> String {
    quoted(&path.to_string_lossy())
}

#[cfg(test)]
mod tests {
    use zeph_core::capability::Capability;
    use zeph_core::id::{Digest, Pin, PluginId};
    use zeph_core::lifetime::GrantLifetime;
    use zeph_store::GrantRecord;

    use super::grant_json;

    #[test]
    fn nobody_granted_a_default_grant_at_any_time() {
        let digest = Digest::new([1; 32]);
        for (id, granted_at_ms, is_dated) in [(0, 0, false), (7, 1_790_000_000_000, true)] {
            let grant = GrantRecord {
                id,
                plugin: PluginId("search".to_owned()),
                pin: Pin {
                    wasm: digest,
                    tools: digest,
                },
                capability: Capability::Program {
                    name: "rg".to_owned(),
                },
                lifetime: GrantLifetime::Always,
                granted_at_ms,
                mode: None,
            };
            let shown = grant_json(&grant);
            assert_eq!(shown["granted_at"].is_string(), is_dated, "{shown}");
            assert!(shown.get("granted_at").is_some(), "{shown}");
        }
    }
}
