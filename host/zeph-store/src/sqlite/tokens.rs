//! Access tokens in SQL.

use rusqlite::{Connection, Row, params};

use super::audit::{parsed, unreadable};
use crate::tokens::TokenRecord;

/// Adds a token, unless there is one of this name.
pub(super) fn add(connection: &Connection, token: &TokenRecord) -> rusqlite::Result<bool> {
    const SQL: &str = "
        INSERT INTO tokens (name, digest, tools, rate, created_at_ms, expires_at_ms) VALUES (?1, ?2, ?3, ?4, ?5, ?6)
        ON CONFLICT (name) DO NOTHING";
    let tools = token.tools.as_ref().map(serde_json::to_string).transpose();
    let tools = tools.map_err(|error| rusqlite::Error::ToSqlConversionFailure(Box::new(error)))?;
    let digest = token.digest.to_string();
    let row = params![
        token.name,
        digest,
        tools,
        token.rate,
        token.created_at_ms,
        token.expires_at_ms
    ];
    Ok(connection.prepare_cached(SQL)?.execute(row)? > 0)
}

/// All tokens by name.
pub(super) fn all(connection: &Connection) -> rusqlite::Result<Vec<TokenRecord>> {
    const SQL: &str = "
        SELECT name, digest, tools, rate, created_at_ms, expires_at_ms FROM tokens ORDER BY name";
    connection
        .prepare_cached(SQL)?
        .query_map([], token)?
        .collect()
}

/// Deletes a token; says whether there was one.
pub(super) fn revoke(connection: &Connection, name: &str) -> rusqlite::Result<bool> {
    const SQL: &str = "DELETE FROM tokens WHERE name = ?1";
    Ok(connection.prepare_cached(SQL)?.execute([name])? > 0)
}

fn token(row: &Row<'_>) -> rusqlite::Result<TokenRecord> {
    let tools: Option<String> = row.get(2)?;
    let tools = tools.map(|text| serde_json::from_str(&text)).transpose();
    Ok(TokenRecord {
        name: row.get(0)?,
        digest: parsed(row, 1)?,
        tools: tools.map_err(|error| unreadable(2, error))?,
        rate: row.get(3)?,
        created_at_ms: row.get(4)?,
        expires_at_ms: row.get(5)?,
    })
}
