//! The statements of one connection: prepared once where the same process answers all of them, and sent as soon as they are polled.

use std::pin::Pin;

use tokio_postgres::types::ToSql;
use tokio_postgres::{Row, Statement};

use super::Session;
use crate::postgres::value::typed;

/// A statement that is on its way to the server as soon as it is polled.
pub(in crate::postgres) type SentStatement<'a> =
    Pin<Box<dyn Future<Output = Result<Vec<Row>, tokio_postgres::Error>> + 'a>>;

impl Session {
    /// The statement, prepared once.
    pub(crate) async fn statement(
        &self,
        sql: &'static str,
    ) -> Result<Statement, tokio_postgres::Error> {
        let known = self.statements.borrow().get(sql).cloned();
        if let Some(statement) = known {
            return Ok(statement);
        }
        let statement = self.client.prepare(sql).await?;
        self.statements.borrow_mut().insert(sql, statement.clone());
        Ok(statement)
    }

    /// The rows of a statement among others.
    pub(crate) fn sent<'a>(
        &'a self,
        sql: &'static str,
        values: &'a [&'a (dyn ToSql + Sync)],
    ) -> SentStatement<'a> {
        Box::pin(self.rows(sql, values))
    }

    /// The rows that a statement gives.
    pub(crate) async fn rows(
        &self,
        sql: &'static str,
        values: &[&(dyn ToSql + Sync)],
    ) -> Result<Vec<Row>, tokio_postgres::Error> {
        if self.is_direct {
            let statement = self.statement(sql).await?;
            return self.client.query(&statement, values).await;
        }
        self.client.query_typed(sql, &typed(values)).await
    }

    /// Runs what begins or ends a transaction, among statements that give rows.
    pub(crate) fn begun<'a>(&'a self, sql: &'a str) -> SentStatement<'a> {
        Box::pin(async {
            let done = self.client.batch_execute(sql).await;
            done.map(|()| Vec::new())
        })
    }

    /// Forgets what was prepared.
    pub(crate) fn forget_statements(&self) {
        self.statements.borrow_mut().clear();
    }
}
