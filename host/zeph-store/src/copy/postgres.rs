//! A server as one end of a copy.

use std::collections::{BTreeMap, BTreeSet};
use std::pin::pin;
use std::rc::Rc;
use std::sync::Arc;

use tokio_postgres::binary_copy::BinaryCopyInWriter;
use tokio_postgres::types::{ToSql, Type};
use tokio_postgres::{Error, Row};

use super::sqlite::{literal, quoted};
use super::{Cell, Columns, CopyEnd, HeldRows, NEWEST_MARK, TakeRows};
use crate::error::StoreError;
use crate::open::StoreOptions;
use crate::operations::{OperationFault, Outcome};
use crate::postgres::connection::{BEGIN, Connection, Server, Session};
use crate::postgres::schema;
use crate::postgres::url::ServerUrl;
use crate::postgres::value::storable;

const OPERATION: &str = "copy the store";

/// A connection in a transaction, which ends without a trace when this is dropped before the commit.
pub(super) struct PostgresEnd {
    session: Rc<Session>,
    connection: Connection,
}

impl PostgresEnd {
    /// The end that is copied from, which is only read; none when there is no store.
    pub(super) fn open_source(
        url: ServerUrl,
        options: &StoreOptions,
    ) -> Result<Option<Self>, StoreError> {
        let server = Server::new(url, options)?;
        if !schema::is_there(&server)? {
            return Ok(None);
        }
        let begin = "BEGIN ISOLATION LEVEL REPEATABLE READ READ ONLY";
        Self::begun(&server, begin).map(Some)
    }

    /// The end that is copied to.
    pub(super) fn open_target(url: ServerUrl, options: &StoreOptions) -> Result<Self, StoreError> {
        let server = Server::new(url, options)?;
        // One of an older program stays as it is.
        schema::is_there(&server)?;
        schema::migrate(&server)?;
        Self::begun(&server, BEGIN)
    }

    fn begun(server: &Arc<Server>, begin: &str) -> Result<Self, StoreError> {
        let connection = Connection::new(Arc::clone(server))?;
        let session = connection.session();
        let session = session.map_err(|fault| server.site.told(OPERATION, fault))?;
        if !session.is_direct {
            let problem = "it leads to a pooler of connections; a copy needs the server itself";
            return Err(StoreError::BadUrl {
                problem: problem.to_owned(),
            });
        }
        let end = Self {
            session,
            connection,
        };
        end.run(begin)?;
        Ok(end)
    }

    fn done<T>(&self, outcome: Outcome<T>) -> Result<T, StoreError> {
        let site = &self.connection.server.site;
        outcome.map_err(|fault| site.told(OPERATION, fault))
    }

    fn run(&self, sql: &str) -> Result<(), StoreError> {
        let done = self.session.client.batch_execute(sql);
        self.done(self.connection.answered(&self.session, done))
    }

    fn rows(&self, sql: &str) -> Result<Vec<Row>, StoreError> {
        let rows = self.session.client.query(sql, &[]);
        self.done(self.connection.answered(&self.session, rows))
    }

    /// The columns that give numbers out, by table.
    fn identities(&self) -> Result<BTreeMap<String, String>, StoreError> {
        const SQL: &str = "
            SELECT table_name::text, column_name::text FROM information_schema.columns
            WHERE table_schema = current_schema() AND is_identity = 'YES'";
        let rows = self.rows(SQL)?;
        Ok(rows.iter().map(|row| (row.get(0), row.get(1))).collect())
    }

    fn types(&self, table: &str, columns: &Columns) -> Result<Vec<Type>, StoreError> {
        let sql = format!("SELECT {} FROM {}", names(columns), quoted(table));
        let statement = self.session.client.prepare(&sql);
        let statement = self.done(self.connection.answered(&self.session, statement))?;
        let types = statement
            .columns()
            .iter()
            .map(|column| column.type_().clone());
        Ok(types.collect())
    }
}

impl CopyEnd for PostgresEnd {
    fn tables(&self) -> Result<BTreeMap<String, Columns>, StoreError> {
        const SQL: &str = "
            SELECT table_name::text, array_agg(column_name::text ORDER BY ordinal_position)
            FROM information_schema.columns JOIN information_schema.tables USING (table_schema, table_name)
            WHERE table_schema = current_schema() AND table_type = 'BASE TABLE' GROUP BY table_name";
        let rows = self.rows(SQL)?;
        Ok(rows.iter().map(|row| (row.get(0), row.get(1))).collect())
    }

    fn references(&self) -> Result<BTreeSet<(String, String)>, StoreError> {
        const SQL: &str = "
            SELECT c.relname::text, p.relname::text FROM pg_constraint
            JOIN pg_class c ON c.oid = conrelid JOIN pg_class p ON p.oid = confrelid
            WHERE contype = 'f' AND connamespace = current_schema()::regnamespace";
        let rows = self.rows(SQL)?;
        Ok(rows.iter().map(|row| (row.get(0), row.get(1))).collect())
    }

    fn count(&self, table: &str) -> Result<u64, StoreError> {
        let rows = self.rows(&format!("SELECT count(*) FROM {}", quoted(table)))?;
        let n_rows = rows.first().map_or(0, |row| row.get::<_, i64>(0));
        Ok(n_rows.unsigned_abs())
    }

    fn hosts(&self, table: &str) -> Result<BTreeSet<String>, StoreError> {
        let rows = self.rows(&format!("SELECT DISTINCT host FROM {}", quoted(table)))?;
        Ok(rows.iter().map(|row| row.get(0)).collect())
    }

    fn read(
        &self,
        table: &str,
        columns: &Columns,
        take: &mut TakeRows<'_>,
    ) -> Result<(), StoreError> {
        let types = self.types(table, columns)?;
        // Few long rows, or many short ones.
        let n_rows = if types.contains(&Type::BYTEA) {
            16
        } else {
            1_000
        };
        let (names, table) = (names(columns), quoted(table));
        self.run(&format!(
            "DECLARE copied NO SCROLL CURSOR FOR SELECT {names} FROM {table}"
        ))?;
        let fetch = format!("FETCH {n_rows} FROM copied");
        let mut held = HeldRows::default();
        loop {
            let rows = self.rows(&fetch)?;
            if rows.is_empty() {
                break;
            }
            for row in &rows {
                let cells = types.iter().enumerate();
                let cells = cells.map(|(column, of_column)| cell(row, column, of_column));
                let cells = cells.collect::<Result<_, Error>>();
                let cells = self.done(cells.map_err(OperationFault::from))?;
                if let Some(rows) = held.add(cells) {
                    take(rows)?;
                }
            }
        }
        self.run("CLOSE copied")?;
        take(held.take())
    }

    fn clear(&self, table: &str) -> Result<(), StoreError> {
        self.run(&format!("DELETE FROM {}", quoted(table)))
    }

    fn write(
        &self,
        table: &str,
        columns: &Columns,
        rows: Vec<Vec<Cell>>,
    ) -> Result<(), StoreError> {
        let types = self.types(table, columns)?;
        let sql = format!(
            "COPY {} ({}) FROM STDIN BINARY",
            quoted(table),
            names(columns)
        );
        let written = async {
            let sink = self.session.client.copy_in(&sql).await?;
            let mut writer = pin!(BinaryCopyInWriter::new(sink, &types));
            for row in &rows {
                let values = row.iter().zip(&types);
                let values: Vec<_> = values
                    .map(|(cell, of_column)| value(cell, of_column))
                    .collect();
                let values: Vec<_> = values.iter().map(AsRef::as_ref).collect();
                writer.as_mut().write(&values).await?;
            }
            writer.finish().await
        };
        self.done(self.connection.answered(&self.session, written))
            .map(drop)
    }

    fn counters(&self) -> Result<BTreeMap<String, i64>, StoreError> {
        let mut counters = BTreeMap::new();
        for (table, column) in self.identities()? {
            let sql = format!(
                "SELECT pg_sequence_last_value(pg_get_serial_sequence({}, {})::regclass)",
                literal(&quoted(&table)),
                literal(&column)
            );
            let last = self.rows(&sql)?.first().and_then(|row| row.get(0));
            counters.extend(last.map(|last| (table, last)));
        }
        Ok(counters)
    }

    fn set_counters(
        &self,
        counters: &BTreeMap<String, i64>,
        copied: &[(String, u64)],
    ) -> Result<(), StoreError> {
        let mut identities = self.identities()?;
        identities.retain(|table, _| copied.iter().any(|(copied, _)| copied == table));
        for (table, column) in identities {
            // A file that counts by its highest row has no counter of its own.
            let known = counters.get(&table).copied().unwrap_or(0);
            let (sequence, table) = (literal(&quoted(&table)), quoted(&table));
            let (of_column, column) = (literal(&column), quoted(&column));
            self.run(&format!(
                "SELECT setval(pg_get_serial_sequence({sequence}, {of_column}), last) FROM
                    (SELECT greatest({known}, coalesce(max({column}), 0)) AS last FROM {table}) counted
                 WHERE last > 0"
            ))?;
        }
        Ok(())
    }

    fn newest_mark(&self) -> Result<Option<String>, StoreError> {
        let rows = self.rows(NEWEST_MARK)?;
        Ok(rows.first().map(|row| row.get(0)))
    }

    fn host(&self) -> Option<&str> {
        Some(&self.connection.server.host)
    }

    fn keeps_zeros(&self) -> bool {
        false
    }

    fn commit(&self) -> Result<(), StoreError> {
        self.run("COMMIT")
    }
}

fn names(columns: &Columns) -> String {
    let names: Vec<String> = columns.iter().map(|column| quoted(column)).collect();
    names.join(", ")
}

fn cell(row: &Row, column: usize, of_column: &Type) -> Result<Cell, Error> {
    let cell = match *of_column {
        Type::BOOL => row
            .try_get::<_, Option<bool>>(column)?
            .map(|flag| Cell::Integer(flag.into())),
        Type::INT4 => row
            .try_get::<_, Option<i32>>(column)?
            .map(|number| Cell::Integer(number.into())),
        Type::INT8 => row.try_get::<_, Option<i64>>(column)?.map(Cell::Integer),
        Type::FLOAT8 => row.try_get::<_, Option<f64>>(column)?.map(Cell::Real),
        Type::BYTEA => row.try_get::<_, Option<Vec<u8>>>(column)?.map(Cell::Bytes),
        _ => row.try_get::<_, Option<String>>(column)?.map(Cell::Text),
    };
    Ok(cell.unwrap_or(Cell::Null))
}

/// A value for a column of that type; one that does not fit is refused by what writes it.
fn value(cell: &Cell, of_column: &Type) -> Box<dyn ToSql + Sync> {
    match (cell, of_column) {
        (Cell::Null, &Type::BOOL) => Box::new(None::<bool>),
        (Cell::Null, &Type::INT4) => Box::new(None::<i32>),
        (Cell::Null, &Type::INT8) => Box::new(None::<i64>),
        (Cell::Null, &Type::FLOAT8) => Box::new(None::<f64>),
        (Cell::Null, &Type::BYTEA) => Box::new(None::<Vec<u8>>),
        (Cell::Null, _) => Box::new(None::<String>),
        (Cell::Integer(number), &Type::BOOL) => Box::new(*number != 0),
        (Cell::Integer(number), &Type::INT4) => Box::new(i32::try_from(*number).ok()),
        (Cell::Integer(number), _) => Box::new(*number),
        (Cell::Real(number), _) => Box::new(*number),
        (Cell::Text(text), _) => Box::new(storable(text).into_owned()),
        (Cell::Bytes(bytes), _) => Box::new(bytes.clone()),
    }
}
