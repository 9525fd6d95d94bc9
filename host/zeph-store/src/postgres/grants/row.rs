//! Rows of the table `grants`, read.
//!
//! Reading never fails because of what a row holds: such a row is set apart, with its problem.

use tokio_postgres::Row;
use tokio_postgres::types::ToSql;
use zeph_core::capability::Capability;
use zeph_core::id::{Pin, PluginId};

use crate::grants::columns::{GrantColumns, LifetimeColumns, grant_columns};
use crate::grants::{GrantRecord, ListedGrants, UnreadableGrant};
use crate::operations::{OperationFault, Outcome};
use crate::postgres::defaults;
use crate::postgres::transaction::Transaction;
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

/// The grants of exactly this plugin that no call holds, and whether its default grants count: one statement, for every call asks. Where there
/// is no grant, its one row has no number.
pub(super) fn of_pin(
    transaction: &Transaction,
    plugin: &PluginId,
    pin: Pin,
) -> Outcome<(bool, Vec<GrantRecord>)> {
    const SQL: &str = concat!(
        "SELECT ",
        grant_columns!(),
        ", counts FROM (",
        defaults::count!(),
        ") AS defaults (counts)
         LEFT JOIN grants ON plugin = $1 AND wasm = $2 AND tools = $3 AND taken_at_ms IS NULL ORDER BY id"
    );
    /// The column after those of a grant.
    const COUNTS: usize = 10;
    let (wasm, tools) = (pin.wasm.to_string(), pin.tools.to_string());
    let mut rows = transaction.query(SQL, &[&plugin.0, &wasm, &tools])?;
    let first = rows.first();
    let first = first.ok_or_else(|| OperationFault::Database("a row is missing".into()))?;
    let has_defaults = get(first, COUNTS)?;
    let is_grant = get::<Option<i64>>(first, 0)?.is_some();
    if !is_grant {
        rows.clear();
    }
    Ok((has_defaults, listed(rows)?.grants))
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
