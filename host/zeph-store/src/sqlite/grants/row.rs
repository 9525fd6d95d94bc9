//! Rows of the table `grants`, read and written.
//!
//! Reading never fails because of what a row holds: such a row is set apart, with its problem. Only SQLite's own errors end
//! the operation.

use rusqlite::types::ValueRef;
use rusqlite::{Connection, Error, Row, ToSql};
use zeph_core::capability::Capability;
use zeph_core::id::{Pin, PluginId};

use crate::grants::columns::{GrantColumns, LifetimeColumns, grant_columns};
use crate::grants::{GrantRecord, ListedGrants, UnreadableGrant};

/// The rows for which `condition` holds, by plugin and number; what cannot be read is logged.
pub(super) fn read(
    connection: &Connection,
    condition: &str,
    values: &[&dyn ToSql],
) -> rusqlite::Result<ListedGrants> {
    let columns = grant_columns!();
    let sql = format!("SELECT {columns} FROM grants WHERE {condition} ORDER BY plugin, id");
    let mut statement = connection.prepare_cached(&sql)?;
    let mut rows = statement.query(values)?;
    let mut found = ListedGrants::default();
    while let Some(row) = rows.next()? {
        match grant(row) {
            Ok(grant) => found.grants.push(grant),
            Err(problem) => found.set_apart(UnreadableGrant {
                id: row.get(0)?,
                plugin: lossy(row.get_ref(1)?),
                problem,
            }),
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
    let number = |column: usize| row.get::<_, i64>(column).map_err(|error| error.to_string());
    let bad = |error: Error| format!("its lifetime cannot be read: {error}");
    let columns = GrantColumns {
        id: number(0)?,
        plugin: text(1, "plugin")?,
        wasm: text(2, "wasm")?,
        tools: text(3, "tools")?,
        capability: text(4, "capability")?,
        lifetime: LifetimeColumns {
            label: text(5, "lifetime")?,
            conversation: row.get(6).map_err(bad)?,
            until_ms: row.get(7).map_err(bad)?,
        },
        granted_at_ms: number(8)?,
        mode: row.get(9).map_err(|error| error.to_string())?,
    };
    columns.grant()
}

fn lossy(value: ValueRef<'_>) -> String {
    value
        .as_bytes()
        .map(|bytes| String::from_utf8_lossy(bytes).into_owned())
        .unwrap_or_default()
}
