//! Rows of the table `grants`, read.
//!
//! Reading never fails because of what a row holds: such a row is set apart, with its problem.

use tokio_postgres::Row;
use tokio_postgres::types::ToSql;
use zeph_core::capability::Capability;
use zeph_core::id::{Pin, PluginId};

use crate::grants::columns::{GrantColumns, LifetimeColumns};
use crate::grants::{GrantRecord, ListedGrants, UnreadableGrant};
use crate::operations::{OperationFault, Outcome};
use crate::postgres::defaults;
use crate::postgres::transaction::{Statement, Transaction};
use crate::postgres::value::get;

/// The statement that reads the rows for which a condition holds, by plugin and number, for [`read`].
macro_rules! grants {
    ($condition:literal) => {
        concat!(
            "SELECT ",
            $crate::grants::columns::grant_columns!(),
            " FROM grants WHERE ",
            $condition,
            " ORDER BY plugin, id"
        )
    };
}

pub(super) use grants;

/// What a statement gives; what cannot be read is logged.
pub(super) fn read(
    transaction: &Transaction,
    sql: &'static str,
    values: &[&(dyn ToSql + Sync)],
) -> Outcome<ListedGrants> {
    listed(transaction.query(sql, values)?)
}

fn listed(rows: Vec<Row>) -> Outcome<ListedGrants> {
    let mut found = ListedGrants::default();
    for row in rows {
        match columns(&row)?.grant() {
            Ok(grant) => found.grants.push(grant),
            Err(problem) => found.set_apart(UnreadableGrant {
                id: get(&row, 0)?,
                plugin: get(&row, 1)?,
                problem,
            }),
        }
    }
    Ok(found)
}

/// The grants of exactly this plugin that no call holds, and whether its default grants count.
pub(super) fn of_pin(
    transaction: &Transaction,
    plugin: &PluginId,
    pin: Pin,
) -> Outcome<(bool, Vec<GrantRecord>)> {
    const SQL: &str = grants!("plugin = $1 AND wasm = $2 AND tools = $3 AND taken_at_ms IS NULL");
    let (wasm, tools) = (pin.wasm.to_string(), pin.tools.to_string());
    let asked: [Statement<'_>; 2] = [
        (defaults::COUNT, &[&plugin.0]),
        (SQL, &[&plugin.0, &wasm, &tools]),
    ];
    let mut answers = transaction.query_all(&asked)?;
    let grants = listed(answers.pop().unwrap_or_default())?.grants;
    let defaults = answers.pop().unwrap_or_default();
    Ok((defaults::of(defaults.first())?, grants))
}

/// The capability as it stands in its column: JSON, the same text for the same capability.
pub(super) fn capability_text(capability: &Capability) -> Outcome<String> {
    serde_json::to_string(capability).map_err(|error| OperationFault::Database(Box::new(error)))
}

fn columns(row: &Row) -> Outcome<GrantColumns<'_>> {
    Ok(GrantColumns {
        id: get(row, 0)?,
        plugin: get(row, 1)?,
        wasm: get(row, 2)?,
        tools: get(row, 3)?,
        capability: get(row, 4)?,
        lifetime: LifetimeColumns {
            label: get(row, 5)?,
            conversation: get(row, 6)?,
            until_ms: get(row, 7)?,
        },
        granted_at_ms: get(row, 8)?,
        mode: get(row, 9)?,
    })
}
