//! Verifies the chains of all hosts and every row they vouch for, with as many threads as there are processors, all of which see one state of
//! the database. Nobody waits for it.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use std::thread;

use tokio_postgres::types::ToSql;

use super::forget::statements;
use super::rows::FetchedRows;
use super::{
    code_of, event, event_columns, first_event, hosts, mark_before, newest_event, newest_mark,
};
use crate::audit::chain::{ChainMark, ChainReport, EventKind};
use crate::audit::code::hex;
use crate::audit::earlier::RemovalStatement;
use crate::audit::event::StoredEvent;
use crate::audit::mark::MarkState;
use crate::audit::problem::PROBLEMS_MAX;
use crate::audit::verify::{Extent, Missing, Span, SpanCheck, SpanReport, SpanStart, Unvouched};
use crate::error::StoreError;
use crate::open::StoreOptions;
use crate::operations::{OperationFault, Outcome};
use crate::postgres::connection::Server;
use crate::postgres::transaction::Transaction;
use crate::postgres::url::ServerUrl;
use crate::postgres::value::get;
use crate::secrets::audit_keys::AuditKeys;

/// Events that are fetched at a time, with their rows.
const EVENTS_AT_ONCE: i64 = 2_000;

/// A transaction that sees what was committed when it began, however long it takes.
const ONE_STATE: &str = "
    SET TRANSACTION ISOLATION LEVEL REPEATABLE READ, READ ONLY;
    SET LOCAL idle_in_transaction_session_timeout = 0";

/// What threads need to see the same state.
struct Snapshot<'a> {
    server: &'a Arc<Server>,
    id: String,
}

/// Verifies the chains of the server, each by itself.
pub(crate) fn verify(
    url: ServerUrl,
    options: &StoreOptions,
    keys: Option<&AuditKeys>,
    wanted: &BTreeSet<i64>,
) -> Result<Vec<ChainReport>, StoreError> {
    let server = Server::new(url, options)?;
    // The caller may be a thread of a runtime, which must not wait.
    let verified = thread::scope(|scope| {
        let thread = scope.spawn(|| {
            let main = Transaction::new(Arc::clone(&server)).map_err(OperationFault::Told)?;
            let verified = of_server(&server, &main, keys, wanted);
            main.roll_back();
            verified
        });
        thread.join().unwrap_or_else(|_| Err(panicked()))
    });
    verified.map_err(|fault| server.site.told("verify the audit table", fault))
}

fn panicked() -> OperationFault {
    OperationFault::Database("a thread panicked".into())
}

fn of_server(
    server: &Arc<Server>,
    main: &Transaction,
    keys: Option<&AuditKeys>,
    wanted: &BTreeSet<i64>,
) -> Outcome<Vec<ChainReport>> {
    main.begin()?;
    main.script(ONE_STATE)?;
    if !get::<bool>(&main.query_one(IS_MADE, &[])?, 0)? {
        return Ok(Vec::new());
    }
    let snapshot = Snapshot {
        server,
        id: get(&main.query_one("SELECT pg_export_snapshot()", &[])?, 0)?,
    };
    let hosts = hosts(main)?;
    // Without keys, no key of a chain is here.
    let keys = keys.cloned().unwrap_or_else(AuditKeys::of_process);
    let said = statements(main, &hosts, &keys)?;
    let mut reports = Vec::new();
    for host in hosts {
        let of_host = said.iter().filter(|statement| statement.by == host);
        let forgotten = of_host.cloned().collect();
        let report = match extent(main, &host, (&keys, &said), wanted)? {
            Some(extent) => snapshot.chain(main, extent, &keys)?,
            None => unchained(main, host)?,
        };
        reports.push(ChainReport {
            forgotten,
            ..report
        });
    }
    Ok(reports)
}

const IS_MADE: &str = "SELECT to_regclass('audit_chain') IS NOT NULL";

/// The report on a host without a chain.
fn unchained(main: &Transaction, host: String) -> Outcome<ChainReport> {
    const SQL: &str = "
        SELECT count(*) FILTER (WHERE chain_n IS NULL), count(*) FILTER (WHERE chain_n IS NOT NULL)
        FROM audit WHERE host = $1";
    let row = main.query_one(SQL, &[&host])?;
    Ok(ChainReport {
        host: Some(host),
        n_before: count(get(&row, 0)?),
        n_more: count(get(&row, 1)?),
        ..ChainReport::default()
    })
}

fn count(n: i64) -> u64 {
    u64::try_from(n).unwrap_or(0)
}

fn extent(
    main: &Transaction,
    host: &str,
    (keys, said): (&AuditKeys, &[RemovalStatement]),
    wanted: &BTreeSet<i64>,
) -> Outcome<Option<Extent>> {
    // What another host removes goes in the order of rows, then of events: what is left of it counts as gone.
    const ROWS: &str = "
        SELECT count(*) FILTER (WHERE seq > $2 OR chain_n IS NOT NULL),
               count(*) FILTER (WHERE (seq > $2 OR chain_n IS NOT NULL) AND finished_at_ms IS NOT NULL),
               count(*) FILTER (WHERE seq <= $2 AND chain_n IS NULL)
        FROM audit WHERE host = $1 AND coalesce(chain_n > $3, TRUE)";
    let Some(stored) = newest_mark(main, host)? else {
        return Ok(None);
    };
    let mut state = stored.state(keys);
    let cuts = said
        .iter()
        .filter(|cut| cut.chain.is_of(host, &stored.mark) && cut.chain.upto > stored.mark.upto);
    let cut = cuts.max_by_key(|cut| cut.chain.upto);
    // What stood before a mark that is to go may be gone: earlier versions did not leave it.
    if let Some(cut) = cut.filter(|cut| cut.chain.upto >= stored.n()) {
        state = match (cut.is_verified, state) {
            (true, _) => MarkState::Sound,
            (false, MarkState::Changed) => MarkState::KeyMissing,
            (false, state) => state,
        };
    }
    let mut mark = stored.believed(state, first_event(main, host)?);
    if let Some(RemovalStatement { chain, .. }) = cut {
        mark = mark.without(chain, 0);
    }
    let unverified = cut.filter(|cut| !cut.is_verified);
    let left_upto = match mark.left_upto {
        0 => i64::MIN,
        upto => upto,
    };
    let rows = main.query_one(ROWS, &[&host, &mark.before_seq, &left_upto])?;
    Ok(Some(Extent {
        host: Some(host.to_owned()),
        newest: newest_event(main, host)?,
        n_rows: count(get(&rows, 0)?),
        n_ended: count(get(&rows, 1)?),
        n_before: count(get(&rows, 2)?),
        codes: codes(main, host, &mark, wanted)?,
        mark,
        mark_n: stored.n(),
        mark_state: match unverified {
            // What is told of the removal tells that, too.
            Some(_) if state == MarkState::KeyMissing => MarkState::Sound,
            _ => state,
        },
        removed_by: unverified.map(|cut| cut.by.clone()),
    }))
}

/// The codes of these events, the last one that retention removed among them.
fn codes(
    main: &Transaction,
    host: &str,
    mark: &ChainMark,
    wanted: &BTreeSet<i64>,
) -> Outcome<BTreeMap<i64, String>> {
    const SQL: &str = "SELECT n, code FROM audit_chain WHERE host = $1 AND n = ANY($2::bigint[])";
    let mut codes = BTreeMap::new();
    if wanted.contains(&mark.upto) {
        codes.insert(mark.upto, mark.upto_code.clone());
    }
    let wanted: Vec<i64> = wanted.iter().copied().collect();
    for row in main.query(SQL, &[&host, &wanted])? {
        codes.insert(get(&row, 0)?, hex(&code_of(&row, 1)?));
    }
    Ok(codes)
}

impl Snapshot<'_> {
    /// Verifies one chain.
    fn chain(&self, main: &Transaction, extent: Extent, keys: &AuditKeys) -> Outcome<ChainReport> {
        let spans = extent.spans();
        let reports = thread::scope(|scope| {
            let threads: Vec<_> = spans
                .iter()
                .map(|span| {
                    let extent = &extent;
                    scope.spawn(move || self.span(extent, keys, *span))
                })
                .collect();
            let ended = threads
                .into_iter()
                .map(|thread| thread.join().unwrap_or_else(|_| Err(panicked())));
            ended.collect::<Outcome<Vec<_>>>()
        })?;
        let (host, mark) = (extent.host.clone().unwrap_or_default(), extent.mark.clone());
        extent.report(reports, &mut |missing| match missing {
            Missing::Begin => unbegun(main, &host, &mark),
            Missing::End => unended(main, &host, &mark),
        })
    }

    fn span(&self, extent: &Extent, keys: &AuditKeys, span: Span) -> Outcome<SpanReport> {
        let transaction =
            Transaction::new(Arc::clone(self.server)).map_err(OperationFault::Told)?;
        transaction.begin()?;
        transaction.script(&format!(
            "{ONE_STATE}; SET TRANSACTION SNAPSHOT '{}'",
            self.id
        ))?;
        let report = verify_span(&transaction, extent, keys, span);
        transaction.roll_back();
        report
    }
}

fn verify_span(
    transaction: &Transaction,
    extent: &Extent,
    keys: &AuditKeys,
    span: Span,
) -> Outcome<SpanReport> {
    let host = extent.host.as_deref().unwrap_or_default();
    let start = start_of(transaction, host, extent, span)?;
    let mut check = SpanCheck::new(extent, keys, span, start);
    let mut from = span.from;
    loop {
        let events = events(transaction, host, from, span.to)?;
        let Some(last) = events.last() else { break };
        from = last.head.n + 1;
        let mut rows = FetchedRows::fetch(transaction, host, &events)?;
        for event in &events {
            check.event(event, &mut rows)?;
        }
    }
    Ok(check.end(span))
}

fn events(transaction: &Transaction, host: &str, from: i64, to: i64) -> Outcome<Vec<StoredEvent>> {
    const SQL: &str = concat!(
        "SELECT ",
        event_columns!(),
        " FROM audit_chain WHERE host = $1 AND n BETWEEN $2 AND $3 ORDER BY n LIMIT $4"
    );
    let rows = transaction.query(SQL, &[&host, &from, &to, &EVENTS_AT_ONCE])?;
    rows.iter().map(event).collect()
}

/// What stands before a span.
fn start_of(
    transaction: &Transaction,
    host: &str,
    extent: &Extent,
    span: Span,
) -> Outcome<SpanStart> {
    const SQL: &str = "SELECT code FROM audit_chain WHERE host = $1 AND n = $2";
    if let Some(start) = extent.cut_before(span) {
        return Ok(start);
    }
    let previous = transaction.query_opt(SQL, &[&host, &(span.from - 1)])?;
    let mark = mark_before(transaction, host, span.from)?.map(|stored| stored.mark);
    let key = mark
        .as_ref()
        .map_or(&extent.mark.upto_key, |mark| &mark.key);
    Ok(SpanStart {
        previous: previous.map(|row| code_of(&row, 0)).transpose()?,
        key: key.clone(),
        mark,
    })
}

/// The calls whose begin no event vouches for.
fn unbegun(main: &Transaction, host: &str, mark: &ChainMark) -> Outcome<Vec<Unvouched>> {
    const SQL: &str = "
        SELECT a.call_id, coalesce(a.chain_n, 0) FROM audit a
        LEFT JOIN audit_chain c ON c.host = a.host AND c.n = a.chain_n AND c.seq = a.seq AND c.kind IN (2, 4)
        WHERE a.host = $1 AND (a.seq > $2 OR a.chain_n IS NOT NULL) AND c.n IS NULL LIMIT $3";
    calls_of(main, SQL, &[&host, &mark.before_seq, &LIMIT])
}

/// The calls whose end no event vouches for.
fn unended(main: &Transaction, host: &str, mark: &ChainMark) -> Outcome<Vec<Unvouched>> {
    const SQL: &str = "
        SELECT a.call_id, coalesce(a.chain_n, 0) FROM audit a
        WHERE a.host = $1 AND (a.seq > $2 OR a.chain_n IS NOT NULL) AND a.finished_at_ms IS NOT NULL
            AND NOT EXISTS (SELECT FROM audit_chain c WHERE c.host = $1 AND c.kind = $4 AND c.seq = a.seq
                AND coalesce(c.begun, 0) = coalesce(a.chain_n, 0))
        LIMIT $3";
    let finish = EventKind::Finish.number();
    calls_of(main, SQL, &[&host, &mark.before_seq, &LIMIT, &finish])
}

/// Calls that are listed, at most: no report has more of them.
const LIMIT: i64 = PROBLEMS_MAX as i64;

fn calls_of(
    main: &Transaction,
    sql: &'static str,
    values: &[&(dyn ToSql + Sync)],
) -> Outcome<Vec<Unvouched>> {
    let rows = main.query(sql, values)?;
    let found = rows.iter().map(|row| {
        Ok(Unvouched {
            call: get(row, 0)?,
            record: get(row, 1)?,
        })
    });
    found.collect()
}
