//! Transactions: statements, waited for on the thread that owns the connection.
//!
//! What is known to follow goes with what comes before it: the begin of a transaction with its first statement, its commit with the last.

use std::cell::{Cell, RefCell};
use std::collections::HashMap;
use std::rc::Rc;
use std::sync::Arc;

use tokio_postgres::Row;
use tokio_postgres::types::ToSql;
use zeph_core::id::{Pin, PluginId};

use super::audit::pending::{self, PendingCalls};
use super::chain;
use super::chain::sweep::FirstOfRows;
use super::connection::{Connection, Server, Session};
use super::fault::{Away, Site, Trouble, trouble};
use super::overflow::pending::{self as outputs, PendingOutputs};
use super::pipeline::in_order;
use super::value::{Storable, typed};
use crate::audit::event::StoredEvent;
use crate::audit::seal::{NewestEvent, Seal};
use crate::error::StoreError;
use crate::grants::GrantRecord;
use crate::operations::{OperationFault, Outcome};
use crate::tokens::TokenRecord;

/// One transaction of a connection, on the thread that owns it.
pub(super) struct Transaction {
    connection: Connection,
    /// What adds to the audit chain of this host.
    pub(super) seal: Seal,
    /// Events of that chain which are added at the end, or when somebody looks.
    pub(super) new_events: RefCell<Vec<StoredEvent>>,
    /// Begins and ends of calls that are written at the end, or before any other statement.
    pub(super) pending: RefCell<PendingCalls>,
    /// Outputs that are written at the end, or before any other statement.
    pub(super) pending_outputs: RefCell<PendingOutputs>,
    /// What was read ahead.
    pub(super) ahead: RefCell<Ahead>,
    /// What was read for the reads that are answered together.
    pub(super) group: RefCell<Option<RightsGroup>>,
    /// The number below which a sweep found no row of this host: what was removed stays in the index until the server has cleaned it up, and is
    /// not passed again and again. A sweep that finds nothing to remove looks at all next time.
    pub(super) oldest_row: Cell<i64>,
    /// Of the rows of this host that the last sweep looked at when it found none to remove: while they are not past their time, no other
    /// looks at them again.
    pub(super) first_left: Cell<Option<FirstOfRows>>,
    /// Where the open transaction is; none where each statement is one.
    open: RefCell<Option<Rc<Session>>>,
    /// What begins it, until that is sent.
    opening: RefCell<Option<String>>,
    is_together: Cell<bool>,
    /// Whether it has to survive a crash of the server.
    has_to_last: Cell<bool>,
    /// What the worst of its statements came to.
    trouble: Cell<Option<Trouble>>,
}

/// The values of a statement.
type Values<'a> = &'a [&'a (dyn ToSql + Sync)];

/// A statement with its values.
pub(super) type Statement<'a> = (&'static str, Values<'a>);

/// What was read together with the lock of the audit chain. It is true until the transaction changes something.
#[derive(Debug, Default)]
pub(super) struct Ahead {
    /// Whether the chain is held, which lasts as long as the transaction.
    pub(super) holds_chain: bool,
    pub(super) newest: Option<NewestEvent>,
    pub(super) trust_version: Option<i64>,
}

/// What is read once for reads that are answered together, all of which were asked before the first was answered.
#[derive(Default)]
pub(super) struct RightsGroup {
    /// Of a plugin: whether its default grants count, and its grants.
    pub(super) grants: HashMap<(PluginId, Pin), (bool, Vec<GrantRecord>)>,
    pub(super) tokens: Option<Vec<TokenRecord>>,
}

impl Transaction {
    /// On a connection of its own, which is made with the first statement.
    pub(super) fn new(server: Arc<Server>) -> Result<Self, StoreError> {
        Ok(Self::on(Connection::new(server)?))
    }

    /// The same for the thread that writes: no statement that calls wait for may run for long.
    pub(super) fn of_writer(server: Arc<Server>) -> Result<Self, StoreError> {
        Ok(Self::on(Connection::of_writer(server)?))
    }

    /// The same for the thread that reads what every call waits for.
    pub(super) fn of_rights(server: Arc<Server>) -> Result<Self, StoreError> {
        Ok(Self::on(Connection::of_rights(server)?))
    }

    fn on(connection: Connection) -> Self {
        Self {
            connection,
            seal: Seal::default(),
            new_events: RefCell::default(),
            pending: RefCell::default(),
            pending_outputs: RefCell::default(),
            ahead: RefCell::default(),
            group: RefCell::default(),
            oldest_row: Cell::new(i64::MIN),
            first_left: Cell::new(None),
            open: RefCell::new(None),
            opening: RefCell::new(None),
            is_together: Cell::new(false),
            has_to_last: Cell::new(true),
            trouble: Cell::new(None),
        }
    }

    /// The connection, to wait with.
    pub(super) fn connection(&self) -> &Connection {
        &self.connection
    }

    /// Where the server is, for messages.
    pub(super) fn site(&self) -> &Site {
        &self.connection.server.site
    }

    /// The host this store belongs to: its rows of the audit chain.
    pub(super) fn host(&self) -> &str {
        &self.connection.server.host
    }

    /// Whether several jobs share the transaction: what is recorded of calls is written for all of them.
    pub(super) fn is_together(&self) -> bool {
        self.is_together.get()
    }

    /// Changes rows; says how many. Statements are prepared once for each connection.
    ///
    /// A text with zero bytes cannot be kept by the server: each is written as the control character SUBSTITUTE, see [`storable`].
    pub(super) fn execute(&self, sql: &'static str, values: Values<'_>) -> Outcome<u64> {
        self.settle()?;
        self.sent((sql, values), async |session, values| {
            if session.is_direct {
                let statement = session.statement(sql).await?;
                return session.client.execute(&statement, values).await;
            }
            session.client.execute_typed(sql, &typed(values)).await
        })
    }

    /// The rows that a statement gives, in order.
    pub(super) fn query(&self, sql: &'static str, values: Values<'_>) -> Outcome<Vec<Row>> {
        self.settle()?;
        self.sent((sql, values), async |session, values| {
            session.rows(sql, values).await
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

    /// The rows that each of several statements gives, with one journey. What is pending is not written before them.
    pub(super) fn query_all(&self, statements: &[Statement<'_>]) -> Outcome<Vec<Vec<Row>>> {
        let storable = statements.iter().map(|(_, values)| storables(values));
        let storable: Vec<Vec<Storable<'_>>> = storable.collect();
        let values: Vec<_> = storable.iter().map(|values| as_values(values)).collect();
        self.with_session(|session| {
            self.connection.answered(session, async {
                // On their way together, one that is to be prepared would be overtaken.
                for (sql, _) in statements.iter().filter(|_| session.is_direct) {
                    session.statement(sql).await?;
                }
                let opening = self.opening.take();
                let opening = opening.as_deref().map(|begin| session.begun(begin));
                let each = statements.iter().zip(&values);
                let each = each.map(|((sql, _), values)| session.sent(sql, values));
                let answers = in_order(opening.into_iter().chain(each)).await;
                let mut answers: Vec<_> = answers.into_iter().collect::<Result<_, _>>()?;
                Ok(answers.split_off(answers.len() - statements.len()))
            })
        })
    }

    /// Runs several statements that give nothing.
    pub(super) fn script(&self, sql: &str) -> Outcome<()> {
        self.settle()?;
        self.sent(("", &[]), async |session, _| {
            session.client.batch_execute(sql).await
        })
    }

    /// Orders what reads and then changes an object among all hosts, until the transaction ends.
    pub(super) fn lock(&self, object: &str) -> Outcome<()> {
        self.query(LOCK, &[&object]).map(drop)
    }

    /// Begins a transaction, with its first statement.
    pub(super) fn begin(&self) -> Outcome<()> {
        self.begin_for(false, true)
    }

    /// Begins one of several jobs, or one that a crash of the server may undo as long as it undoes all that followed, too.
    pub(super) fn begin_for(&self, is_together: bool, has_to_last: bool) -> Outcome<()> {
        self.trouble.set(None);
        self.forget();
        self.is_together.set(is_together);
        self.has_to_last.set(has_to_last);
        let session = self.connection.session().inspect_err(|_| {
            self.trouble.set(Some(Trouble::Lost));
        })?;
        if self.connection.is_made_anew() {
            self.seal.look_again();
        }
        *self.opening.borrow_mut() = Some(self.connection.begin(&session));
        *self.open.borrow_mut() = Some(session);
        Ok(())
    }

    /// Makes what was done last.
    ///
    /// A transaction in which a statement failed cannot last: the server would undo it and say nothing.
    pub(super) fn commit(&self) -> Outcome<()> {
        if self.trouble.get().is_none() {
            self.settle()?;
        }
        if self.trouble.get().is_some() {
            let text = "a statement of the transaction had failed";
            return Err(OperationFault::Database(text.into()));
        }
        if self.opening.take().is_some() {
            // Nothing was asked of the server.
            self.open.borrow_mut().take();
            return Ok(());
        }
        let committed = self.with_session(|session| self.committed(session));
        match (&committed, self.trouble.get()) {
            (Err(_), Some(Trouble::Lost)) => {
                // Nobody knows whether it lasts: it must not run a second time.
                self.trouble.set(Some(Trouble::Final));
                self.connection.drop_session();
                self.open.borrow_mut().take();
                Err(Away::new(UNKNOWN).into())
            }
            _ => {
                self.open.borrow_mut().take();
                committed
            }
        }
    }

    /// Adds the events that are not in the table yet and commits, with one journey: where the first fails, the server undoes all of it.
    fn committed(&self, session: &Session) -> Outcome<()> {
        let events = chain::NewRows::take(self);
        let host = self.host();
        let values = events.values(&host);
        let commit = match self.has_to_last.get() || !self.connection.server.may_lag {
            true => "COMMIT",
            false => "SET LOCAL synchronous_commit TO OFF; COMMIT",
        };
        self.connection.answered(session, async {
            if !events.is_empty() && session.is_direct {
                session.statement(chain::ADD).await?;
            }
            let added = (!events.is_empty()).then(|| session.sent(chain::ADD, &values));
            let each = added.into_iter().chain([session.begun(commit)]);
            let answers: Result<Vec<_>, _> = in_order(each).await.into_iter().collect();
            answers.map(drop)
        })
    }

    /// Ends a transaction that is still open, and the connection too when it is of no use any more.
    pub(super) fn roll_back(&self) {
        self.forget();
        let open = self.open.borrow_mut().take();
        if self.trouble.get() == Some(Trouble::Lost) {
            self.connection.drop_session();
            return;
        }
        let was_begun = self.opening.take().is_none();
        let Some(session) = open.filter(|_| was_begun) else {
            return;
        };
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

    /// Reads rights once from now on, until the next group of reads begins.
    pub(super) fn begin_group(&self) {
        *self.group.borrow_mut() = Some(RightsGroup::default());
    }

    /// Forgets what a transaction knows and has not written.
    fn forget(&self) {
        self.seal.forget_head();
        self.new_events.take();
        self.pending.take();
        self.pending_outputs.take();
        self.ahead.take();
    }

    /// Writes what is pending, before another statement that may see or change it; what was read ahead may not be true after that.
    pub(super) fn settle(&self) -> Outcome<()> {
        let are_all = pending::write(self)?;
        let mut ahead = self.ahead.borrow_mut();
        (ahead.newest, ahead.trust_version) = (None, None);
        drop(ahead);
        if are_all {
            return outputs::write(self);
        }
        self.run_apart();
        let text = "a call was recorded already, or is not recorded: each job has to run alone";
        Err(OperationFault::Database(text.into()))
    }

    /// Has each job run in a transaction of its own.
    pub(super) fn run_apart(&self) {
        self.trouble.set(Some(Trouble::Apart));
    }

    /// Sends one statement, after what begins the transaction if it is the first.
    fn sent<T>(
        &self,
        (sql, values): Statement<'_>,
        work: impl AsyncFnOnce(&Session, Values<'_>) -> Result<T, tokio_postgres::Error>,
    ) -> Outcome<T> {
        let storable = storables(values);
        let values = as_values(&storable);
        self.with_session(|session| {
            self.connection.answered(session, async {
                let Some(begin) = self.opening.take() else {
                    return work(session, &values).await;
                };
                if session.is_direct && !sql.is_empty() {
                    session.statement(sql).await?;
                }
                let (begun, done) = tokio::join!(
                    biased;
                    session.client.batch_execute(&begin),
                    work(session, &values)
                );
                begun?;
                done
            })
        })
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

/// Waits for a lock that lasts as long as the transaction.
pub(super) const LOCK: &str = "
    SELECT pg_advisory_xact_lock(hashtextextended(current_schema() || ':' || $1::text, 0))";

fn storables<'a>(values: Values<'a>) -> Vec<Storable<'a>> {
    values.iter().map(|value| Storable(*value)).collect()
}

fn as_values<'a>(storables: &'a [Storable<'_>]) -> Vec<&'a (dyn ToSql + Sync)> {
    storables.iter().map(|value| value as _).collect()
}

const UNKNOWN: &str =
    "the connection was lost while the change was committed: whether it lasts is not known";

/// What a fault means.
pub(super) fn trouble_of(fault: &OperationFault) -> Trouble {
    let OperationFault::Database(source) = fault else {
        return Trouble::Final;
    };
    match source.downcast_ref::<tokio_postgres::Error>() {
        Some(error) => trouble(error),
        None if source.is::<Away>() => Trouble::Lost,
        None => Trouble::Final,
    }
}
