//! Access tokens.

use tokio_postgres::Row;

use super::transaction::{RightsGroup, Transaction};
use super::value::{get, parsed, unreadable};
use crate::operations::Outcome;
use crate::tokens::TokenRecord;

/// Adds a token, unless there is one of this name.
pub(super) fn add(transaction: &Transaction, token: &TokenRecord) -> Outcome<bool> {
    const SQL: &str = "
        INSERT INTO tokens (name, digest, tools, rate, created_at_ms, expires_at_ms) VALUES ($1, $2, $3, $4, $5, $6)
        ON CONFLICT (name) DO NOTHING";
    let tools = token.tools.as_ref().map(|tools| serde_json::json!(tools));
    let n_rows = transaction.execute(
        SQL,
        &[
            &token.name,
            &token.digest.to_string(),
            &tools.map(|tools| tools.to_string()),
            &token.rate.map(i64::from),
            &token.created_at_ms,
            &token.expires_at_ms,
        ],
    )?;
    Ok(n_rows > 0)
}

/// All tokens by name: once for reads that are answered together.
pub(super) fn all(transaction: &Transaction) -> Outcome<Vec<TokenRecord>> {
    const SQL: &str = "
        SELECT name, digest, tools, rate, created_at_ms, expires_at_ms FROM tokens ORDER BY name";
    let known = |group: &RightsGroup| group.tokens.clone();
    if let Some(known) = transaction.group.borrow().as_ref().and_then(known) {
        return Ok(known);
    }
    let rows = transaction.query(SQL, &[])?;
    let read = rows.iter().map(token).collect::<Outcome<Vec<_>>>()?;
    if let Some(group) = transaction.group.borrow_mut().as_mut() {
        group.tokens = Some(read.clone());
    }
    Ok(read)
}

/// Deletes a token; says whether there was one.
pub(super) fn revoke(transaction: &Transaction, name: &str) -> Outcome<bool> {
    let n_rows = transaction.execute("DELETE FROM tokens WHERE name = $1", &[&name])?;
    Ok(n_rows > 0)
}

fn token(row: &Row) -> Outcome<TokenRecord> {
    let tools: Option<&str> = get(row, 2)?;
    let rate: Option<i64> = get(row, 3)?;
    let rate = rate.map(u32::try_from).transpose();
    Ok(TokenRecord {
        name: get(row, 0)?,
        digest: parsed(row, 1)?,
        tools: tools
            .map(serde_json::from_str)
            .transpose()
            .map_err(|error| unreadable(2, error))?,
        rate: rate.map_err(|error| unreadable(3, error))?,
        created_at_ms: get(row, 4)?,
        expires_at_ms: get(row, 5)?,
    })
}
