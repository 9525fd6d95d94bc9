//! Upgrades: a store of every older version, as this history makes it, becomes one of the newest with all its rows. And downgrades: a program of
//! an older version leaves a newer store alone.

use std::path::Path;
use std::time::Duration;

use rusqlite::Connection;
use rusqlite::types::Value;

use super::{HISTORY, MIGRATIONS, newest_version};
use crate::{Location, Store, StoreError, StoreOptions};

const OPTIONS: StoreOptions = StoreOptions {
    at_ms: 1_753_900_000_123,
    busy_timeout: Duration::from_secs(5),
};

/// A row in every table that takes one of plain values; how many there are, by table.
fn fill(connection: &Connection) -> Vec<(String, i64)> {
    connection
        .pragma_update(None, "foreign_keys", false)
        .unwrap();
    let mut filled = Vec::new();
    for table in tables(connection) {
        let sql = format!("SELECT name, type FROM pragma_table_info('{table}')");
        let mut columns = connection.prepare(&sql).unwrap();
        let columns = columns.query_map([], |row| Ok((row.get(0)?, row.get(1)?)));
        let columns: Vec<(String, String)> = columns.unwrap().map(Result::unwrap).collect();
        let values = columns.iter().map(|(_, kind)| match kind.as_str() {
            "INTEGER" => Value::Integer(1),
            "BLOB" => Value::Blob(vec![1]),
            "REAL" => Value::Real(1.0),
            _ => Value::Text("01890000-0000-7000-8000-000000000000".to_owned()),
        });
        let marks = vec!["?"; columns.len()].join(", ");
        let insert = format!("INSERT INTO {table} VALUES ({marks})");
        if connection
            .execute(&insert, rusqlite::params_from_iter(values))
            .is_ok()
        {
            filled.push((table.clone(), count(connection, &table)));
        }
    }
    filled
}

fn tables(connection: &Connection) -> Vec<String> {
    let sql = "SELECT name FROM sqlite_schema WHERE type = 'table' AND name NOT LIKE 'sqlite_%' ORDER BY name";
    let mut tables = connection.prepare(sql).unwrap();
    let names = tables.query_map([], |row| row.get(0)).unwrap();
    names.map(Result::unwrap).collect()
}

fn count(connection: &Connection, table: &str) -> i64 {
    let sql = format!("SELECT count(*) FROM {table}");
    connection.query_row(&sql, [], |row| row.get(0)).unwrap()
}

fn schema(path: &Path) -> Vec<String> {
    let connection = Connection::open(path).unwrap();
    let mut objects = connection
        .prepare(
            "SELECT type || ' ' || name || ': ' || coalesce(sql, '') FROM sqlite_schema ORDER BY 1",
        )
        .unwrap();
    let objects = objects.query_map([], |row| row.get(0)).unwrap();
    objects.map(Result::unwrap).collect()
}

#[test]
fn a_store_of_every_older_version_is_migrated_with_its_rows() {
    let folder = tempfile::tempdir().unwrap();
    let fresh = folder.path().join("fresh.db");
    drop(Store::open(Location::File(fresh.clone()), OPTIONS).unwrap());
    for version in 1..HISTORY.len() {
        let path = folder.path().join(format!("{version}.db"));
        let mut connection = Connection::open(&path).unwrap();
        MIGRATIONS.to_version(&mut connection, version).unwrap();
        let filled = fill(&connection);
        assert!(
            filled.iter().any(|(table, _)| table == "audit"),
            "version {version}: {filled:?}"
        );
        drop(connection);

        drop(Store::open(Location::File(path.clone()), OPTIONS).unwrap());
        assert_eq!(schema(&path), schema(&fresh), "version {version}");
        let connection = Connection::open(&path).unwrap();
        let kept: Vec<(String, i64)> = filled
            .iter()
            .map(|(table, _)| (table.clone(), count(&connection, table)))
            .collect();
        assert_eq!(kept, filled, "version {version}");
    }
}

#[test]
fn an_older_program_refuses_a_newer_store_and_leaves_it() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("zeph.db");
    drop(Store::open(Location::File(path.clone()), OPTIONS).unwrap());
    let newer = newest_version() + 1;
    let connection = Connection::open(&path).unwrap();
    connection
        .pragma_update(None, "user_version", newer)
        .unwrap();
    connection
        .execute_batch("CREATE TABLE of_a_newer_program (a TEXT)")
        .unwrap();
    drop(connection);
    let before = std::fs::read(&path).unwrap();
    let Err(error) = Store::open(Location::File(path.clone()), OPTIONS) else {
        panic!("it was opened");
    };
    assert!(
        matches!(error, StoreError::Newer { found, .. } if found == newer),
        "{error}"
    );
    let said = error.to_string();
    assert!(said.contains(&format!("schema version {newer}")), "{said}");
    let hint = error.hint().unwrap_or_default();
    assert!(
        hint.contains("newer program") && hint.contains("backup"),
        "{hint}"
    );
    assert_eq!(std::fs::read(&path).unwrap(), before);
}

#[test]
fn a_schedule_of_an_older_store_goes_to_the_token_it_was_made_with_or_to_none() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("zeph.db");
    let mut connection = Connection::open(&path).unwrap();
    // The version before schedules knew tokens.
    MIGRATIONS.to_version(&mut connection, 34).unwrap();
    let (before, after) = (
        "01890000-0000-7000-8000-00000000000",
        "01990000-0000-7000-8000-00000000000",
    );
    let made_ms = i64::from_str_radix("018a00000000", 16).unwrap();
    let digest = format!("sha256:{}", "ab".repeat(32));
    connection
        .execute(
            "INSERT INTO tokens (name, digest, created_at_ms) VALUES ('ann', ?1, ?2)",
            rusqlite::params![digest, made_ms],
        )
        .unwrap();
    let bound = format!("+ann\n{}", "ab".repeat(32));
    let gone = |name: &str| format!("+{name}\n{}", "0".repeat(64));
    let cases = [
        (after, "@ann", true, bound),
        (before, "@ann", true, gone("ann")),
        (after, "@bob", true, gone("bob")),
        (after, "@ann", false, "@ann".to_owned()),
        (
            after,
            "@oauth:https://a|b",
            true,
            "@oauth:https://a|b".to_owned(),
        ),
        (after, "", true, String::new()),
    ];
    for (n, (id, caller, is_model, _)) in cases.iter().enumerate() {
        connection
            .execute(
                "INSERT INTO schedules (id, revision, directory, caller, name, conversation_id, is_model, work, times, at_ms)
                 VALUES (?1, 1, '/', ?2, ?3, 'c', ?4, '{}', '{}', 0)",
                rusqlite::params![format!("{id}{n}"), caller, format!("{n}"), is_model],
            )
            .unwrap();
    }
    super::migrate(&mut connection).unwrap();
    for (n, (_, caller, _, expected)) in cases.iter().enumerate() {
        let sql = "SELECT caller FROM schedules WHERE name = ?1";
        let name = format!("{n}");
        let found: String = connection.query_row(sql, [name], |row| row.get(0)).unwrap();
        assert_eq!(&found, expected, "{n} {caller}");
    }
}
