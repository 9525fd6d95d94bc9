//! Rows of the table `grants`, read and written.
//!
//! Reading never fails because of what a row holds: such a row is set apart, with its problem. Only SQLite's own errors end
//! the operation.

use rusqlite::types::ValueRef;
use rusqlite::{Connection, Error, Row, ToSql};
use zeph_core::capability::Capability;
use zeph_core::id::{ConversationId, Digest, Pin, PluginId};
use zeph_core::lifetime::GrantLifetime;
use zeph_core::policy::Mode;

use crate::grants::{GrantRecord, ListedGrants, UnreadableGrant, problem};

/// A lifetime as it stands in its three columns.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct LifetimeColumns {
    pub(super) label: &'static str,
    pub(super) conversation: Option<String>,
    pub(super) until_ms: Option<i64>,
}

/// In the order in which [`grant`] reads them.
const COLUMNS: &str =
    "id, plugin, wasm, tools, capability, lifetime, conversation_id, until_ms, granted_at_ms, mode";

/// The rows for which `condition` holds, by plugin and number; what cannot be read is logged.
pub(super) fn read(
    connection: &Connection,
    condition: &str,
    values: &[&dyn ToSql],
) -> rusqlite::Result<ListedGrants> {
    let sql = format!("SELECT {COLUMNS} FROM grants WHERE {condition} ORDER BY plugin, id");
    let mut statement = connection.prepare_cached(&sql)?;
    let mut rows = statement.query(values)?;
    let mut found = ListedGrants::default();
    while let Some(row) = rows.next()? {
        match grant(row) {
            Ok(grant) => found.grants.push(grant),
            Err(problem) => {
                let unreadable = UnreadableGrant {
                    id: row.get(0)?,
                    plugin: lossy(row.get_ref(1)?),
                    problem,
                };
                tracing::warn!(
                    id = unreadable.id,
                    plugin = unreadable.plugin,
                    problem = unreadable.problem,
                    "a grant cannot be read: it grants nothing"
                );
                found.unreadable.push(unreadable);
            }
        }
    }
    Ok(found)
}

/// The grants of exactly this plugin that no call holds.
pub(super) fn of_pin(
    connection: &Connection,
    plugin: &PluginId,
    pin: Pin,
) -> rusqlite::Result<Vec<GrantRecord>> {
    const CONDITION: &str = "plugin = ?1 AND wasm = ?2 AND tools = ?3 AND taken_at_ms IS NULL";
    let (wasm, tools) = (pin.wasm.to_string(), pin.tools.to_string());
    Ok(read(connection, CONDITION, &[&plugin.0, &wasm, &tools])?.grants)
}

/// Splits a lifetime into its columns.
pub(super) fn columns(lifetime: GrantLifetime) -> LifetimeColumns {
    let (label, conversation, until_ms) = match lifetime {
        GrantLifetime::Once => ("once", None, None),
        GrantLifetime::Session { conversation } => {
            ("session", Some(conversation.to_string()), None)
        }
        GrantLifetime::Until { at_ms } => ("until", None, Some(at_ms)),
        GrantLifetime::Always => ("always", None, None),
    };
    LifetimeColumns {
        label,
        conversation,
        until_ms,
    }
}

/// The capability as it stands in its column: JSON, the same text for the same capability.
pub(super) fn capability_text(capability: &Capability) -> rusqlite::Result<String> {
    serde_json::to_string(capability)
        .map_err(|error| Error::ToSqlConversionFailure(Box::new(error)))
}

fn grant(row: &Row<'_>) -> Result<GrantRecord, String> {
    let text = |column: usize, name: &str| {
        let value = row.get_ref(column).map_err(|error| error.to_string())?;
        value
            .as_str()
            .map_err(|error| format!("its `{name}` is no text: {error}"))
    };
    let digest = |column: usize, name: &str| {
        let read = text(column, name)?.parse::<Digest>();
        read.map_err(|error| format!("its `{name}` is no digest: {error}"))
    };
    let capability: Capability = serde_json::from_str(text(4, "capability")?)
        .map_err(|error| format!("its capability is none this program knows: {error}"))?;
    if let Some(problem) = problem(&capability) {
        return Err(format!(
            "its capability `{capability}` cannot be: {problem}"
        ));
    }
    let number = |column: usize| row.get::<_, i64>(column).map_err(|error| error.to_string());
    Ok(GrantRecord {
        id: number(0)?,
        plugin: PluginId(text(1, "plugin")?.to_owned()),
        pin: Pin {
            wasm: digest(2, "wasm")?,
            tools: digest(3, "tools")?,
        },
        capability,
        lifetime: lifetime(row, text(5, "lifetime")?)?,
        granted_at_ms: number(8)?,
        mode: mode(row)?,
    })
}

/// A mode this program does not know grants nothing.
fn mode(row: &Row<'_>) -> Result<Option<Mode>, String> {
    let label: Option<String> = row.get(9).map_err(|error| error.to_string())?;
    let label = label
        .map(|label| mode_from(&label).ok_or(label))
        .transpose();
    label.map_err(|label| format!("its mode `{label}` is none this program knows"))
}

/// The word of a mode in its column.
pub(super) fn mode_label(mode: Mode) -> &'static str {
    match mode {
        Mode::Observe => "observe",
        Mode::Ask => "ask",
        Mode::Deny => "deny",
    }
}

fn mode_from(label: &str) -> Option<Mode> {
    let mut modes = [Mode::Observe, Mode::Ask, Mode::Deny].into_iter();
    modes.find(|mode| mode_label(*mode) == label)
}

/// Puts a lifetime together again; columns that contradict each other are no lifetime.
fn lifetime(row: &Row<'_>, label: &str) -> Result<GrantLifetime, String> {
    let bad = |error: Error| format!("its lifetime cannot be read: {error}");
    let conversation: Option<String> = row.get(6).map_err(bad)?;
    let until_ms: Option<i64> = row.get(7).map_err(bad)?;
    match (label, conversation, until_ms) {
        ("once", None, None) => Ok(GrantLifetime::Once),
        ("always", None, None) => Ok(GrantLifetime::Always),
        ("until", None, Some(at_ms)) => Ok(GrantLifetime::Until { at_ms }),
        ("session", Some(conversation), None) => {
            let conversation: ConversationId = conversation
                .parse()
                .map_err(|error| format!("its conversation is none: {error}"))?;
            Ok(GrantLifetime::Session { conversation })
        }
        _ => Err(format!("its lifetime `{label}` makes no sense")),
    }
}

fn lossy(value: ValueRef<'_>) -> String {
    value
        .as_bytes()
        .map(|bytes| String::from_utf8_lossy(bytes).into_owned())
        .unwrap_or_default()
}
