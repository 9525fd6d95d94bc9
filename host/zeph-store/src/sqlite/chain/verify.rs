//! Verifies the chain and every row it vouches for, with as many threads as there are processors, all of which see one state of the file.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Barrier;
use std::thread;

use rusqlite::{Connection, ToSql, params};

use super::check::{self, EVENT_COLUMNS, RowChecker};
use super::{mark_before, newest_mark};
use crate::audit::chain::{ChainMark, ChainReport, EventKind};
use crate::audit::code::hex;
use crate::audit::problem::PROBLEMS_MAX;
use crate::audit::verify::{Extent, Missing, Span, SpanCheck, SpanReport, SpanStart, Unvouched};
use crate::error::StoreError;
use crate::open::{Location, StoreOptions};
use crate::secrets::audit_keys::AuditKeys;
use crate::sqlite::open::{open_connection, site_of};
use crate::sqlite::writer::{execute, roll_back};

/// Verifies the table of the store at `location`, which is a file or memory.
pub(crate) fn verify_file(
    location: &Location,
    options: &StoreOptions,
    keys: Option<&AuditKeys>,
    wanted: &BTreeSet<i64>,
) -> Result<ChainReport, StoreError> {
    let Some(site) = site_of(location, options)? else {
        return Ok(ChainReport::default());
    };
    let open = || open_connection(&site);
    let verified = open().and_then(|main| verify(&main, &open, keys, wanted));
    verified.map_err(|source| site.error("verify the audit table", source))
}

fn verify(
    main: &Connection,
    open: &(dyn Fn() -> rusqlite::Result<Connection> + Sync),
    keys: Option<&AuditKeys>,
    wanted: &BTreeSet<i64>,
) -> rusqlite::Result<ChainReport> {
    // While nobody else can write, all threads begin to read: so all of them see the same.
    execute(main, "BEGIN IMMEDIATE")?;
    // Without keys, no key of the chain is here.
    let keys = keys.cloned().unwrap_or_else(AuditKeys::of_process);
    let Some(extent) = extent(main, &keys, wanted)? else {
        let report = unchained(main);
        roll_back(main);
        return report;
    };
    let spans = extent.spans();
    let together = Barrier::new(spans.len() + 1);
    let (extent_of_all, keys, wait) = (&extent, &keys, &together);
    let reports = thread::scope(|scope| {
        let threads: Vec<_> = spans
            .iter()
            .map(|span| {
                scope.spawn(move || {
                    let connection = open().and_then(|connection| {
                        execute(&connection, "BEGIN")?;
                        newest_mark(&connection)?;
                        Ok(connection)
                    });
                    wait.wait();
                    verify_span(&connection?, extent_of_all, keys, *span)
                })
            })
            .collect();
        together.wait();
        roll_back(main);
        let ended = threads.into_iter().map(|thread| {
            let panicked = |_| rusqlite::Error::InvalidQuery;
            thread.join().map_err(panicked).flatten()
        });
        ended.collect::<rusqlite::Result<Vec<_>>>()
    })?;
    let mark = extent.mark.clone();
    extent.report(reports, &mut |missing| unvouched(main, &mark, missing))
}

/// The report on a table without a chain.
fn unchained(connection: &Connection) -> rusqlite::Result<ChainReport> {
    let count = |sql: &str| connection.query_row(sql, [], |row| row.get::<_, u64>(0));
    Ok(ChainReport {
        n_before: count("SELECT count(*) FROM audit WHERE chain_n IS NULL")?,
        n_more: count("SELECT count(*) FROM audit WHERE chain_n IS NOT NULL")?,
        ..ChainReport::default()
    })
}

/// Whether a row is not from before the chain. A file may use a number again.
const SINCE: &str = "(seq > ?1 OR chain_n IS NOT NULL)";

fn extent(
    connection: &Connection,
    keys: &AuditKeys,
    wanted: &BTreeSet<i64>,
) -> rusqlite::Result<Option<Extent>> {
    let Some(stored) = newest_mark(connection)? else {
        return Ok(None);
    };
    let state = stored.state(keys);
    let mark = stored.believed(state, super::first_event(connection)?);
    let count = |condition: &str| {
        let sql = format!("SELECT count(*) FROM audit WHERE {condition}");
        connection.query_row(&sql, [mark.before_seq], |row| row.get::<_, u64>(0))
    };
    Ok(Some(Extent {
        host: None,
        newest: super::newest_event(connection)?,
        n_rows: count(SINCE)?,
        n_ended: count(&format!("{SINCE} AND finished_at_ms IS NOT NULL"))?,
        n_before: count(&format!("NOT {SINCE}"))?,
        codes: codes(connection, &mark, wanted)?,
        mark,
        mark_n: stored.n(),
        mark_state: state,
        removed_by: None,
    }))
}

fn verify_span(
    connection: &Connection,
    extent: &Extent,
    keys: &AuditKeys,
    span: Span,
) -> rusqlite::Result<SpanReport> {
    let start = start_of(connection, extent, span)?;
    let mut check = SpanCheck::new(extent, keys, span, start);
    let sql =
        format!("SELECT {EVENT_COLUMNS} FROM audit_chain WHERE n BETWEEN ?1 AND ?2 ORDER BY n");
    let mut statement = connection.prepare_cached(&sql)?;
    let mut events = statement.query(params![span.from, span.to])?;
    let mut rows = RowChecker::new(connection)?;
    while let Some(row) = events.next()? {
        check.event(&check::event(row)?, &mut rows)?;
    }
    Ok(check.end(span))
}

/// What stands before a span.
fn start_of(connection: &Connection, extent: &Extent, span: Span) -> rusqlite::Result<SpanStart> {
    if let Some(start) = extent.cut_before(span) {
        return Ok(start);
    }
    let mut statement = connection.prepare_cached("SELECT code FROM audit_chain WHERE n = ?1")?;
    let mut rows = statement.query([span.from - 1])?;
    let previous = rows.next()?.map(|row| super::code_of(row, 0)).transpose()?;
    let mark = mark_before(connection, span.from)?.map(|stored| stored.mark);
    let key = mark
        .as_ref()
        .map_or(&extent.mark.upto_key, |mark| &mark.key);
    Ok(SpanStart {
        previous,
        key: key.clone(),
        mark,
    })
}

/// The codes of these events, the last one that retention removed among them.
fn codes(
    connection: &Connection,
    mark: &ChainMark,
    wanted: &BTreeSet<i64>,
) -> rusqlite::Result<BTreeMap<i64, String>> {
    let mut codes = BTreeMap::new();
    if wanted.contains(&mark.upto) {
        codes.insert(mark.upto, mark.upto_code.clone());
    }
    let mut statement = connection.prepare("SELECT code FROM audit_chain WHERE n = ?1")?;
    for n in wanted {
        let mut rows = statement.query([n])?;
        if let Some(row) = rows.next()? {
            codes.insert(*n, hex(&super::code_of(row, 0)?));
        }
    }
    Ok(codes)
}

/// The calls of which something is vouched for by no event.
fn unvouched(
    connection: &Connection,
    mark: &ChainMark,
    missing: Missing,
) -> rusqlite::Result<Vec<Unvouched>> {
    match missing {
        Missing::Begin => unbegun(connection, mark),
        Missing::End => unended(connection, mark),
    }
}

fn unbegun(connection: &Connection, mark: &ChainMark) -> rusqlite::Result<Vec<Unvouched>> {
    const SQL: &str = "
        SELECT a.call_id, coalesce(a.chain_n, 0) FROM audit a
        LEFT JOIN audit_chain c ON c.n = a.chain_n AND c.seq = a.seq AND c.kind IN (2, 4)
        WHERE (a.seq > ?1 OR a.chain_n IS NOT NULL) AND c.n IS NULL LIMIT ?2";
    calls_of(connection, SQL, &[&mark.before_seq, &LIMIT])
}

fn unended(connection: &Connection, mark: &ChainMark) -> rusqlite::Result<Vec<Unvouched>> {
    const SQL: &str = "
        SELECT call_id, coalesce(chain_n, 0) FROM audit
        WHERE (seq > ?1 OR chain_n IS NOT NULL) AND finished_at_ms IS NOT NULL
            AND (seq, coalesce(chain_n, 0)) NOT IN
                (SELECT seq, coalesce(begun, 0) FROM audit_chain WHERE kind = ?3 AND seq IS NOT NULL)
        LIMIT ?2";
    let finish = EventKind::Finish.number();
    calls_of(connection, SQL, &[&mark.before_seq, &LIMIT, &finish])
}

/// Calls that are listed, at most: no report has more of them.
const LIMIT: i64 = PROBLEMS_MAX as i64;

fn calls_of(
    connection: &Connection,
    sql: &str,
    values: &[&dyn ToSql],
) -> rusqlite::Result<Vec<Unvouched>> {
    let mut statement = connection.prepare(sql)?;
    let found = statement.query_map(values, |row| {
        Ok(Unvouched {
            call: row.get(0)?,
            record: row.get(1)?,
        })
    })?;
    found.collect()
}
