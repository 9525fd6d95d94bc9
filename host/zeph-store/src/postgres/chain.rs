//! The chains over the audit table, one for each host: a transaction adds an event for each begin and end of a call.
//!
//! The order of events is that of the transactions of a host, which its processes take turns with.

pub(super) mod checkpoint;
pub(super) mod forget;
mod rows;
pub(super) mod sweep;
pub(crate) mod verify;

use tokio_postgres::Row;
use tokio_postgres::types::ToSql;
use uuid::Uuid;

use super::transaction::{Ahead, LOCK, Statement, Transaction};
use super::trust;
use super::value::{get, unreadable};
use crate::audit::chain::{ChainHead, EventHead, ForgottenChain};
use crate::audit::code::{Code, hex};
use crate::audit::earlier::{ChainRemoval, RemovalStatement};
use crate::audit::event::StoredEvent;
use crate::audit::mark::StoredMark;
use crate::audit::seal::{NewestEvent, Seal, SealedAudit, call_of};
use crate::operations::Outcome;
use crate::secrets::audit_keys::AuditKeys;

/// The columns that [`event`] reads, for a query.
macro_rules! event_columns {
    () => {
        "n, kind, seq, call, begun, body, tag, code"
    };
}

use event_columns;

impl SealedAudit for Transaction {
    fn seal(&self) -> &Seal {
        &self.seal
    }

    /// It reads what is asked for next, too: each statement sees what was committed when it runs.
    fn hold_chain(&self) -> Outcome<()> {
        if self.ahead.borrow().holds_chain {
            return Ok(());
        }
        let host = self.host();
        let object = object(host);
        let asked: [Statement<'_>; 3] = [
            (LOCK, &[&object]),
            (NEWEST, &[&host]),
            (trust::VERSION, &[]),
        ];
        let answers = self.query_all(&asked)?;
        let row = |n: usize| answers.get(n).and_then(|rows| rows.first());
        *self.ahead.borrow_mut() = Ahead {
            holds_chain: true,
            newest: Some(newest_of(row(1))?),
            trust_version: row(2).map(|row| get(row, 0)).transpose()?,
        };
        Ok(())
    }

    fn newest_event(&self) -> Outcome<NewestEvent> {
        let ahead = self.ahead.borrow().newest;
        if let Some(newest) = ahead.filter(|_| self.new_events.borrow().is_empty()) {
            return Ok(newest);
        }
        add_new(self)?;
        newest_event(self, self.host())
    }

    fn mark_before(&self, n: i64) -> Outcome<Option<StoredMark>> {
        add_new(self)?;
        mark_before(self, self.host(), n)
    }

    fn first_event(&self) -> Outcome<i64> {
        add_new(self)?;
        first_event(self, self.host())
    }

    fn insert_event(
        &self,
        head: &EventHead,
        (body, tag): (Option<&str>, Option<&Code>),
        code: &Code,
    ) -> Outcome<()> {
        self.new_events.borrow_mut().push(StoredEvent {
            head: *head,
            body: body.map(str::to_owned),
            tag: tag.copied(),
            code: *code,
        });
        Ok(())
    }

    fn rows_before(&self) -> Outcome<(i64, i64)> {
        const SQL: &str = "
            SELECT coalesce(max(seq), 0), count(*) FILTER (WHERE chain_n IS NULL) FROM audit WHERE host = $1";
        let row = self.query_one(SQL, &[&self.host()])?;
        Ok((get(&row, 0)?, get(&row, 1)?))
    }

    fn has_before(&self, seq: i64) -> Outcome<bool> {
        const SQL: &str = "
            SELECT EXISTS (SELECT FROM audit WHERE host = $1 AND seq <= $2 AND chain_n IS NULL)";
        get(&self.query_one(SQL, &[&self.host(), &seq])?, 0)
    }

    fn removal_of(&self, keys: &AuditKeys, origin: Uuid) -> Outcome<Option<ChainRemoval>> {
        let said = forget::statements(self, &hosts(self)?, keys)?;
        Ok(RemovalStatement::find(&said, self.host(), origin))
    }

    fn removed_of(
        &self,
        keys: &AuditKeys,
        origin: Uuid,
        only_verified: bool,
    ) -> Outcome<Option<(ForgottenChain, i64)>> {
        const SQL: &str = "
            SELECT code, (SELECT count(*) FROM audit_chain WHERE host = $1 AND n <= $2 AND kind IN (2, 4))
            FROM audit_chain WHERE host = $1 AND n = $2";
        let own = self.host();
        let others = others_that_name(self, origin)?;
        let said = forget::statements(self, &others, keys)?.into_iter();
        let said = said.filter(|said| said.is_verified || !only_verified);
        let of_it = said.map(|said| said.chain);
        let of_it = of_it.filter(|chain| chain.host == own && chain.origin == origin);
        let Some(most) = of_it.max_by_key(|chain| chain.upto) else {
            return Ok(None);
        };
        let Some(last) = self.query_opt(SQL, &[&own, &most.upto])? else {
            return Ok(None);
        };
        let is_there = hex(&code_of(&last, 0)?) == most.upto_code;
        let n_calls = get(&last, 1)?;
        Ok(is_there.then_some((most, n_calls)))
    }
}

/// Adds events: many with one statement.
pub(super) const ADD: &str = "
    INSERT INTO audit_chain (host, n, kind, seq, call, begun, body, tag, code)
    SELECT $1::text, * FROM unnest($2::bigint[], $3::bigint[], $4::bigint[], $5::bytea[], $6::bigint[], $7::text[],
                                   $8::bytea[], $9::bytea[])";

/// The events of a transaction that are not in the table yet, column by column.
#[derive(Default)]
pub(super) struct NewRows {
    n: Vec<i64>,
    kind: Vec<i64>,
    seq: Vec<Option<i64>>,
    call: Vec<Option<Vec<u8>>>,
    begun: Vec<Option<i64>>,
    body: Vec<Option<String>>,
    tag: Vec<Option<Vec<u8>>>,
    code: Vec<Vec<u8>>,
}

impl NewRows {
    pub(super) fn take(transaction: &Transaction) -> Self {
        let mut rows = Self::default();
        for StoredEvent {
            head,
            body,
            tag,
            code,
        } in transaction.new_events.take()
        {
            rows.n.push(head.n);
            rows.kind.push(head.kind);
            rows.seq.push(head.seq);
            let call = head.call.map(|call| call.as_uuid().as_bytes().to_vec());
            rows.call.push(call);
            rows.begun.push(head.begun);
            rows.body.push(body);
            rows.tag.push(tag.map(|tag| tag.to_vec()));
            rows.code.push(code.to_vec());
        }
        rows
    }

    pub(super) fn is_empty(&self) -> bool {
        self.n.is_empty()
    }

    /// The values of [`ADD`].
    pub(super) fn values<'a>(&'a self, host: &'a &'a str) -> [&'a (dyn ToSql + Sync); 9] {
        [
            host,
            &self.n,
            &self.kind,
            &self.seq,
            &self.call,
            &self.begun,
            &self.body,
            &self.tag,
            &self.code,
        ]
    }
}

/// Adds the events of the transaction that are not in the table yet.
fn add_new(transaction: &Transaction) -> Outcome<()> {
    let events = NewRows::take(transaction);
    if events.is_empty() {
        return Ok(());
    }
    let host = transaction.host();
    transaction.execute(ADD, &events.values(&host)).map(drop)
}

/// Waits until nobody else adds events to the chain of `host`, and keeps others from it until the transaction ends.
fn hold(transaction: &Transaction, host: &str) -> Outcome<()> {
    transaction.lock(&object(host))
}

/// What is locked for the chain of a host.
pub(super) fn object(host: &str) -> String {
    format!("audit chain of {host}")
}

/// The newest event of a host.
pub(super) const NEWEST: &str =
    "SELECT n, code FROM audit_chain WHERE host = $1 ORDER BY n DESC LIMIT 1";

fn newest_event(transaction: &Transaction, host: &str) -> Outcome<NewestEvent> {
    newest_of(transaction.query_opt(NEWEST, &[&host])?.as_ref())
}

pub(super) fn newest_of(row: Option<&Row>) -> Outcome<NewestEvent> {
    let Some(row) = row else {
        return Ok(NewestEvent::NONE);
    };
    Ok(NewestEvent {
        n: get(row, 0)?,
        code: code_of(row, 1)?,
    })
}

/// The number of the oldest event of a host; 1 when there is none.
fn first_event(transaction: &Transaction, host: &str) -> Outcome<i64> {
    const SQL: &str = "SELECT coalesce(min(n), 1) FROM audit_chain WHERE host = $1";
    get(&transaction.query_one(SQL, &[&host])?, 0)
}

fn newest_mark(transaction: &Transaction, host: &str) -> Outcome<Option<StoredMark>> {
    mark_before(transaction, host, i64::MAX)
}

/// The newest event of the chain itself before event `n`.
fn mark_before(transaction: &Transaction, host: &str, n: i64) -> Outcome<Option<StoredMark>> {
    const SQL: &str = concat!(
        "SELECT ",
        event_columns!(),
        ", (SELECT code FROM audit_chain AS earlier WHERE earlier.host = audit_chain.host
            AND earlier.n = audit_chain.n - 1)
        FROM audit_chain WHERE host = $1 AND body IS NOT NULL AND n < $2 ORDER BY n DESC LIMIT 1"
    );
    let Some(row) = transaction.query_opt(SQL, &[&host, &n])? else {
        return Ok(None);
    };
    let event = event(&row)?;
    let previous: Option<&[u8]> = get(&row, 8)?;
    let previous = previous.is_some().then(|| code_of(&row, 8)).transpose()?;
    let stored = StoredMark::of(event, previous);
    stored.map(Some).map_err(|error| unreadable(5, error))
}

/// The name of the key that vouches for the newest records of this host.
pub(super) fn key(transaction: &Transaction) -> Outcome<Option<String>> {
    Ok(newest_mark(transaction, transaction.host())?.map(|stored| stored.mark.key))
}

/// The newest event of this host, for checkpoints.
pub(super) fn head(transaction: &Transaction) -> Outcome<Option<ChainHead>> {
    let Some(stored) = newest_mark(transaction, transaction.host())? else {
        return Ok(None);
    };
    let newest = newest_event(transaction, transaction.host())?;
    Ok(Some(ChainHead {
        origin: stored.mark.origin.to_string(),
        count: newest.n,
        head: hex(&newest.code),
    }))
}

/// The hosts that have a chain or rows, by name.
///
/// Limits: a few pages for each, whatever the size of the tables.
fn hosts(transaction: &Transaction) -> Outcome<Vec<String>> {
    const SQL: &str = "
        WITH RECURSIVE chained AS (
            SELECT min(host) AS host FROM audit_chain
            UNION ALL SELECT (SELECT min(host) FROM audit_chain WHERE host > chained.host) FROM chained
            WHERE chained.host IS NOT NULL),
        recorded AS (
            SELECT min(host) AS host FROM audit
            UNION ALL SELECT (SELECT min(host) FROM audit WHERE host > recorded.host) FROM recorded
            WHERE recorded.host IS NOT NULL)
        SELECT host FROM chained WHERE host IS NOT NULL UNION SELECT host FROM recorded WHERE host IS NOT NULL
        ORDER BY host";
    let rows = transaction.query(SQL, &[])?;
    rows.iter().map(|row| get(row, 0)).collect()
}

/// The hosts but this one whose chains name the chain `origin` in what they say of themselves. One journey, as it is asked at each start.
fn others_that_name(transaction: &Transaction, origin: Uuid) -> Outcome<Vec<String>> {
    const SQL: &str = "
        WITH RECURSIVE marked AS (
            SELECT min(host) AS host FROM audit_chain WHERE body IS NOT NULL
            UNION ALL SELECT (SELECT min(host) FROM audit_chain WHERE body IS NOT NULL AND host > marked.host) FROM marked
            WHERE marked.host IS NOT NULL)
        SELECT marked.host FROM marked CROSS JOIN LATERAL
            (SELECT body FROM audit_chain WHERE host = marked.host AND body IS NOT NULL ORDER BY n DESC LIMIT 1) AS newest
        WHERE marked.host <> $1 AND strpos(newest.body, $2) > 0";
    let rows = transaction.query(SQL, &[&transaction.host(), &origin.to_string()])?;
    rows.iter().map(|row| get(row, 0)).collect()
}

fn event(row: &Row) -> Outcome<StoredEvent> {
    let tag: Option<&[u8]> = get(row, 6)?;
    Ok(StoredEvent {
        head: EventHead {
            n: get(row, 0)?,
            kind: get(row, 1)?,
            seq: get(row, 2)?,
            call: call_of(get(row, 3)?).map_err(|error| unreadable(3, error))?,
            begun: get(row, 4)?,
        },
        body: get(row, 5)?,
        tag: tag.is_some().then(|| code_of(row, 6)).transpose()?,
        code: code_of(row, 7)?,
    })
}

/// A code that is stored.
pub(super) fn code_of(row: &Row, column: usize) -> Outcome<Code> {
    let bytes: &[u8] = get(row, column)?;
    Code::try_from(bytes).map_err(|error| unreadable(column, error))
}
