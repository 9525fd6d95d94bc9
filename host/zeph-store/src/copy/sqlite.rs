//! A file of SQLite as one end of a copy.

use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;

use rusqlite::types::{ToSqlOutput, Value, ValueRef};
use rusqlite::{Connection, ToSql, params_from_iter};

use super::{Cell, Columns, CopyEnd, HeldRows, NEWEST_MARK, ORDER, TakeRows};
use crate::error::StoreError;
use crate::open::{StoreOptions, WhenDamaged};
use crate::sqlite::open::{open_file, open_to_read};
use crate::sqlite::writer::Database;

/// An open file in a transaction, which ends without a trace when this is dropped before the commit.
pub(super) struct SqliteEnd {
    database: Database,
}

impl SqliteEnd {
    /// The end that is copied from: nothing in its file changes.
    pub(super) fn open_source(path: &Path, options: &StoreOptions) -> Result<Self, StoreError> {
        let opened = open_to_read(path, options).map_err(|error| match error {
            StoreError::ReadOnly { path, source, .. } => {
                StoreError::UnreadableSource { path, source }
            }
            other => other,
        });
        Self::begun(opened?, "BEGIN")
    }

    /// The end that is copied to. A file that is there has to be of this version, or empty.
    pub(super) fn open_target(path: &Path, options: &StoreOptions) -> Result<Self, StoreError> {
        if path.exists() {
            drop(open_to_read(path, options)?);
        }
        let (database, _) = open_file(path.to_owned(), options, WhenDamaged::Refuse)?;
        Self::begun(database, "BEGIN IMMEDIATE")
    }

    fn begun(database: Database, begin: &str) -> Result<Self, StoreError> {
        let end = Self { database };
        end.done(end.connection().execute_batch(begin))?;
        Ok(end)
    }

    fn connection(&self) -> &Connection {
        &self.database.connection
    }

    fn done<T>(&self, result: rusqlite::Result<T>) -> Result<T, StoreError> {
        result.map_err(|error| self.database.site.error("copy the store", error))
    }

    fn texts(&self, sql: &str) -> Result<Vec<String>, StoreError> {
        self.done(self.connection().prepare(sql).and_then(|mut statement| {
            let rows = statement.query_map([], |row| row.get(0))?;
            rows.collect()
        }))
    }

    /// What a column is called here: rows without an order of their own have that of the file.
    fn name(column: &str, own: &Columns) -> String {
        match column == ORDER && !own.iter().any(|own| own == column) {
            true => "rowid".to_owned(),
            false => quoted(column),
        }
    }

    fn columns(&self, table: &str) -> Result<Columns, StoreError> {
        self.texts(&format!(
            "SELECT name FROM pragma_table_info({}) ORDER BY cid",
            literal(table)
        ))
    }
}

impl CopyEnd for SqliteEnd {
    fn tables(&self) -> Result<BTreeMap<String, Columns>, StoreError> {
        const TABLES: &str = "
            SELECT name FROM sqlite_schema WHERE type = 'table' AND name NOT LIKE 'sqlite_%'";
        let tables = self.texts(TABLES)?.into_iter();
        tables
            .map(|table| Ok((table.clone(), self.columns(&table)?)))
            .collect()
    }

    fn references(&self) -> Result<BTreeSet<(String, String)>, StoreError> {
        let mut references = BTreeSet::new();
        for table in self.tables()?.into_keys() {
            let sql = format!(
                "SELECT \"table\" FROM pragma_foreign_key_list({})",
                literal(&table)
            );
            let parents = self.texts(&sql)?.into_iter();
            references.extend(parents.map(|parent| (table.clone(), parent)));
        }
        Ok(references)
    }

    fn count(&self, table: &str) -> Result<u64, StoreError> {
        let sql = format!("SELECT count(*) FROM {}", quoted(table));
        self.done(self.connection().query_row(&sql, [], |row| row.get(0)))
    }

    fn hosts(&self, _: &str) -> Result<BTreeSet<String>, StoreError> {
        // All who use a file are one host.
        Ok(BTreeSet::new())
    }

    fn read(
        &self,
        table: &str,
        columns: &Columns,
        take: &mut TakeRows<'_>,
    ) -> Result<(), StoreError> {
        let own = self.columns(table)?;
        let names: Vec<String> = columns
            .iter()
            .map(|column| Self::name(column, &own))
            .collect();
        let sql = format!("SELECT {} FROM {}", names.join(", "), quoted(table));
        let mut statement = self.done(self.connection().prepare(&sql))?;
        let mut rows = self.done(statement.query([]))?;
        let mut held = HeldRows::default();
        while let Some(row) = self.done(rows.next())? {
            let cells = (0..columns.len()).map(|column| row.get_ref(column).map(cell));
            let cells = self.done(cells.collect::<rusqlite::Result<_>>())?;
            if let Some(rows) = held.add(cells) {
                take(rows)?;
            }
        }
        take(held.take())
    }

    fn clear(&self, table: &str) -> Result<(), StoreError> {
        let sql = format!("DELETE FROM {}", quoted(table));
        self.done(self.connection().execute(&sql, [])).map(drop)
    }

    fn write(
        &self,
        table: &str,
        columns: &Columns,
        rows: Vec<Vec<Cell>>,
    ) -> Result<(), StoreError> {
        let own = self.columns(table)?;
        let names: Vec<String> = columns
            .iter()
            .map(|column| Self::name(column, &own))
            .collect();
        let marks = vec!["?"; columns.len()].join(", ");
        let (names, table) = (names.join(", "), quoted(table));
        let sql = format!("INSERT INTO {table} ({names}) VALUES ({marks})");
        let mut statement = self.done(self.connection().prepare_cached(&sql))?;
        for row in rows {
            self.done(statement.execute(params_from_iter(row)))?;
        }
        Ok(())
    }

    fn counters(&self) -> Result<BTreeMap<String, i64>, StoreError> {
        let read = |connection: &Connection| {
            let mut statement = connection.prepare("SELECT name, seq FROM sqlite_sequence")?;
            let rows = statement.query_map([], |row| Ok((row.get(0)?, row.get(1)?)))?;
            rows.collect()
        };
        self.done(read(self.connection()))
    }

    fn set_counters(
        &self,
        counters: &BTreeMap<String, i64>,
        _: &[(String, u64)],
    ) -> Result<(), StoreError> {
        const SET: &str = "
            INSERT INTO sqlite_sequence (name, seq)
            SELECT ?1, ?2 WHERE EXISTS
                (SELECT 1 FROM sqlite_schema WHERE name = ?1 AND sql LIKE '%AUTOINCREMENT%')";
        for (table, last) in counters {
            let row = (table, last);
            let cleared = self
                .connection()
                .execute("DELETE FROM sqlite_sequence WHERE name = ?1", [table]);
            self.done(cleared)?;
            self.done(self.connection().execute(SET, row))?;
        }
        Ok(())
    }

    fn newest_mark(&self) -> Result<Option<String>, StoreError> {
        Ok(self.texts(NEWEST_MARK)?.into_iter().next())
    }

    fn host(&self) -> Option<&str> {
        None
    }

    fn keeps_zeros(&self) -> bool {
        true
    }

    fn commit(&self) -> Result<(), StoreError> {
        self.done(self.connection().execute_batch("COMMIT"))
    }
}

impl ToSql for Cell {
    fn to_sql(&self) -> rusqlite::Result<ToSqlOutput<'_>> {
        Ok(match self {
            Self::Null => ToSqlOutput::Owned(Value::Null),
            Self::Integer(number) => ToSqlOutput::Owned(Value::Integer(*number)),
            Self::Real(number) => ToSqlOutput::Owned(Value::Real(*number)),
            Self::Text(text) => ToSqlOutput::Borrowed(ValueRef::Text(text.as_bytes())),
            Self::Bytes(bytes) => ToSqlOutput::Borrowed(ValueRef::Blob(bytes)),
        })
    }
}

fn cell(value: ValueRef<'_>) -> Cell {
    match value {
        ValueRef::Null => Cell::Null,
        ValueRef::Integer(number) => Cell::Integer(number),
        ValueRef::Real(number) => Cell::Real(number),
        ValueRef::Text(text) => Cell::Text(String::from_utf8_lossy(text).into_owned()),
        ValueRef::Blob(bytes) => Cell::Bytes(bytes.to_owned()),
    }
}

/// A name in SQL.
pub(super) fn quoted(name: &str) -> String {
    format!("\"{}\"", name.replace('"', "\"\""))
}

/// A text in SQL.
pub(super) fn literal(text: &str) -> String {
    format!("'{}'", text.replace('\'', "''"))
}
