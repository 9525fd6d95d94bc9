//! Transactions: statements, each waited for on the thread that owns the connection.

use std::cell::{Cell, RefCell};
use std::rc::Rc;
use std::sync::Arc;

use tokio_postgres::Row;
use tokio_postgres::types::{ToSql, Type};

use super::chain;
use super::connection::{Connection, Server, Session};
use super::fault::{Away, Trouble, trouble};
use super::value::{Storable, type_of};
use crate::audit::event::StoredEvent;
use crate::audit::seal::Seal;
use crate::error::StoreError;
use crate::operations::{OperationFault, Outcome};

/// One transaction of a connection, on the thread that owns it.
pub(super) struct Transaction {
    connection: Connection,
    /// What adds to the audit chain of this host.
    pub(super) seal: Seal,
    /// Events of that chain which are added at the end, or when somebody looks.
    pub(super) new_events: RefCell<Vec<StoredEvent>>,
    /// Where the open transaction is; none where each statement is one.
    open: RefCell<Option<Rc<Session>>>,
    /// What the worst of its statements came to.
    trouble: Cell<Option<Trouble>>,
}

/// The values of a statement.
type Values<'a> = &'a [&'a (dyn ToSql + Sync)];

impl Transaction {
    /// On a connection of its own, which is made with the first statement.
    pub(super) fn new(server: Arc<Server>) -> Result<Self, StoreError> {
        Ok(Self {
            connection: Connection::new(server)?,
            seal: Seal::default(),
            new_events: RefCell::default(),
            open: RefCell::new(None),
            trouble: Cell::new(None),
        })
    }

    /// The same for the thread that writes: no statement that calls wait for may run for long.
    pub(super) fn of_writer(server: Arc<Server>) -> Result<Self, StoreError> {
        Ok(Self {
            connection: Connection::of_writer(server)?,
            seal: Seal::default(),
            new_events: RefCell::default(),
            open: RefCell::new(None),
            trouble: Cell::new(None),
        })
    }

    /// The connection, to wait with.
    pub(super) fn connection(&self) -> &Connection {
        &self.connection
    }

    /// The host this store belongs to: its rows of the audit chain.
    pub(super) fn host(&self) -> &str {
        &self.connection.server.host
    }

    /// Changes rows; says how many. Statements are prepared once for each connection.
    ///
    /// A text with zero bytes cannot be kept by the server: each is written as the control character SUBSTITUTE, see [`storable`].
    pub(super) fn execute(&self, sql: &'static str, values: Values<'_>) -> Outcome<u64> {
        let values: Vec<Storable<'_>> = values.iter().map(|value| Storable(*value)).collect();
        let values: Vec<&(dyn ToSql + Sync)> = values.iter().map(|value| value as _).collect();
        let values = values.as_slice();
        self.with_session(|session| {
            self.connection.answered(session, async {
                if session.is_direct {
                    let statement = session.statement(sql).await?;
                    return session.client.execute(&statement, values).await;
                }
                session.client.execute_typed(sql, &typed(values)).await
            })
        })
    }

    /// The rows that a statement gives, in order.
    pub(super) fn query(&self, sql: &'static str, values: Values<'_>) -> Outcome<Vec<Row>> {
        let values: Vec<Storable<'_>> = values.iter().map(|value| Storable(*value)).collect();
        let values: Vec<&(dyn ToSql + Sync)> = values.iter().map(|value| value as _).collect();
        let values = values.as_slice();
        self.with_session(|session| {
            self.connection.answered(session, async {
                if session.is_direct {
                    let statement = session.statement(sql).await?;
                    return session.client.query(&statement, values).await;
                }
                session.client.query_typed(sql, &typed(values)).await
            })
        })
    }

    /// The first row, if there is one.
    pub(super) fn query_opt(&self, sql: &'static str, values: Values<'_>) -> Outcome<Option<Row>> {
        Ok(self.query(sql, values)?.into_iter().next())
    }

    /// The first row of a statement that always gives one.
    pub(super) fn query_one(&self, sql: &'static str, values: Values<'_>) -> Outcome<Row> {
        let row = self.query_opt(sql, values)?;
        row.ok_or_else(|| OperationFault::Database("a row is missing".into()))
    }

    /// Runs several statements that give nothing.
    pub(super) fn script(&self, sql: &str) -> Outcome<()> {
        self.with_session(|session| {
            let done = session.client.batch_execute(sql);
            self.connection.answered(session, done)
        })
    }

    /// Orders what reads and then changes an object among all hosts, until the transaction ends.
    pub(super) fn lock(&self, object: &str) -> Outcome<()> {
        const SQL: &str = "
            SELECT pg_advisory_xact_lock(hashtextextended(current_schema() || ':' || $1::text, 0))";
        self.query(SQL, &[&object]).map(drop)
    }

    /// Begins a transaction.
    pub(super) fn begin(&self) -> Outcome<()> {
        self.trouble.set(None);
        self.seal.forget_head();
        self.new_events.take();
        let session = self.connection.session().inspect_err(|_| {
            self.trouble.set(Some(Trouble::Lost));
        })?;
        let begin = self.connection.begin(&session);
        *self.open.borrow_mut() = Some(session);
        self.with_session(|session| {
            let begun = session.client.batch_execute(&begin);
            self.connection.answered(session, begun)
        })
    }

    /// Makes what was done last.
    ///
    /// A transaction in which a statement failed cannot last: the server would undo it and say nothing.
    pub(super) fn commit(&self) -> Outcome<()> {
        if self.trouble.get().is_none() {
            chain::add_new(self)?;
        }
        if self.trouble.get().is_some() {
            let text = "a statement of the transaction had failed";
            return Err(OperationFault::Database(text.into()));
        }
        let committed = self.with_session(|session| {
            let committed = session.client.batch_execute("COMMIT");
            self.connection.answered(session, committed)
        });
        match (&committed, self.trouble.get()) {
            (Err(_), Some(Trouble::Lost)) => {
                // Nobody knows whether it lasts: it must not run a second time.
                self.trouble.set(Some(Trouble::Final));
                self.connection.drop_session();
                self.open.borrow_mut().take();
                Err(Away(UNKNOWN.to_owned()).into())
            }
            _ => {
                self.open.borrow_mut().take();
                committed
            }
        }
    }

    /// Ends a transaction that is still open, and the connection too when it is of no use any more.
    pub(super) fn roll_back(&self) {
        let open = self.open.borrow_mut().take();
        if self.trouble.get() == Some(Trouble::Lost) {
            self.connection.drop_session();
            return;
        }
        let Some(session) = open else { return };
        if self.trouble.get() == Some(Trouble::Passing) {
            session.forget_statements();
        }
        let ended = session.client.batch_execute("ROLLBACK");
        if self.connection.answered(&session, ended).is_err() {
            self.connection.drop_session();
        }
    }

    /// What the last transaction, or the last statement outside of one, came to when it failed.
    pub(super) fn trouble(&self) -> Option<Trouble> {
        self.trouble.get()
    }

    /// Lets the statements that come be transactions of their own.
    pub(super) fn read_on(&self) {
        self.trouble.set(None);
    }

    fn with_session<T>(&self, work: impl FnOnce(&Session) -> Outcome<T>) -> Outcome<T> {
        let open = self.open.borrow().clone();
        let session = match open {
            Some(session) => Ok(session),
            None => self.connection.session(),
        };
        let done = session.and_then(|session| work(&session));
        if let Err(fault) = &done {
            self.trouble.set(Some(trouble_of(fault)));
        }
        done
    }
}

const UNKNOWN: &str =
    "the connection was lost while the change was committed: whether it lasts is not known";

fn trouble_of(fault: &OperationFault) -> Trouble {
    let OperationFault::Database(source) = fault else {
        return Trouble::Final;
    };
    match source.downcast_ref::<tokio_postgres::Error>() {
        Some(error) => trouble(error),
        None if source.is::<Away>() => Trouble::Lost,
        None => Trouble::Final,
    }
}

/// The values with their types, for statements that are not prepared.
fn typed<'a>(values: Values<'a>) -> Vec<(&'a (dyn ToSql + Sync), Type)> {
    let typed = values.iter().map(|value| (*value, type_of(*value)));
    typed.collect()
}
