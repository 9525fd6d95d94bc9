//! Verifies the chain and every row it vouches for, with as many threads as there are processors, all of which see one state of the file.

mod suspects;

use std::collections::{BTreeMap, BTreeSet};
use std::num::NonZeroUsize;
use std::sync::Barrier;
use std::thread;

use rusqlite::{Connection, params};

use self::suspects::Suspect;
use super::check::{EVENT_COLUMNS, RowChecker, RowState, StoredEvent, call_text};
use super::{mark_before, newest_mark};
use crate::audit::chain::{ChainMark, ChainReport, EventKind};
use crate::audit::code::{Code, hex};
use crate::audit::problem::{AuditPlace, AuditProblem, AuditProblemKind, Problems};
use crate::error::StoreError;
use crate::open::{Location, StoreOptions};
use crate::secrets::audit_keys::{AuditKey, AuditKeys};
use crate::sqlite::open::{open_connection, site_of};
use crate::sqlite::writer::{execute, roll_back};
use crate::store::Store;

/// Threads at most, and events for each at least.
const THREADS_MAX: usize = 16;
const SPAN_MIN: i64 = 4_096;

/// The whole chain, before its events are looked at.
struct Extent {
    mark: ChainMark,
    /// Of the mark.
    newest: i64,
    code: Code,
    n_rows: u64,
    n_ended: u64,
    n_before: u64,
    codes: BTreeMap<i64, String>,
}

/// What is verified by one thread.
#[derive(Clone, Copy)]
struct Span {
    from: i64,
    to: i64,
}

/// What a thread found.
#[derive(Default)]
struct SpanReport {
    problems: Problems,
    suspects: Vec<Suspect>,
    n_events: u64,
    n_calls: u64,
    n_ends: u64,
    n_lost: u64,
}

impl Store {
    /// Verifies the audit table of the store at `location`, which may be in use: what was recorded when it began is what it looks at. Hosts
    /// that record calls wait for some milliseconds meanwhile.
    ///
    /// Without `keys` only that the chain has begun is known.
    /// Errors: what the database says. Limits: O(size of the table); the first 1,000 problems are told.
    pub fn verify_audit(
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
}

fn verify(
    main: &Connection,
    open: &(dyn Fn() -> rusqlite::Result<Connection> + Sync),
    keys: Option<&AuditKeys>,
    wanted: &BTreeSet<i64>,
) -> rusqlite::Result<ChainReport> {
    // While nobody else can write, all threads begin to read: so all of them see the same.
    execute(main, "BEGIN IMMEDIATE")?;
    let extent = Extent::read(main, wanted)?;
    let Some((extent, keys)) = extent.zip(keys) else {
        let report = unchained(main);
        roll_back(main);
        return report;
    };
    let spans = extent.spans();
    let together = Barrier::new(spans.len() + 1);
    let (extent_of_all, wait) = (&extent, &together);
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
                    SpanCheck::of(&connection?, extent_of_all, keys, *span)
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
    extent.report(main, reports)
}

/// The report on a table without a chain, or without keys.
fn unchained(connection: &Connection) -> rusqlite::Result<ChainReport> {
    let count = |sql: &str| connection.query_row(sql, [], |row| row.get::<_, u64>(0));
    Ok(ChainReport {
        n_before: count("SELECT count(*) FROM audit WHERE chain_n IS NULL")?,
        n_more: count("SELECT count(*) FROM audit WHERE chain_n IS NOT NULL")?,
        ..ChainReport::default()
    })
}

impl Extent {
    fn read(connection: &Connection, wanted: &BTreeSet<i64>) -> rusqlite::Result<Option<Self>> {
        let Some((_, mark)) = newest_mark(connection)? else {
            return Ok(None);
        };
        let newest = super::newest_event(connection)?;
        let count = |condition: &str| {
            let sql = format!("SELECT count(*) FROM audit WHERE seq {condition}");
            connection.query_row(&sql, [mark.before_seq], |row| row.get::<_, u64>(0))
        };
        Ok(Some(Self {
            newest: newest.n,
            code: newest.code,
            n_rows: count("> ?1")?,
            n_ended: count("> ?1 AND finished_at_ms IS NOT NULL")?,
            n_before: count("<= ?1")?,
            codes: codes(connection, &mark, wanted)?,
            mark,
        }))
    }

    fn spans(&self) -> Vec<Span> {
        let cores = thread::available_parallelism().map_or(1, NonZeroUsize::get);
        let n_events = (self.newest - self.mark.upto).max(0);
        let cores = i64::try_from(cores.min(THREADS_MAX)).unwrap_or(1);
        let each = (n_events / cores + 1).max(SPAN_MIN);
        let first = self.mark.upto + 1;
        let starts = (0..cores).map(|n| first + n * each);
        let spans = starts.map(|from| Span {
            from,
            to: self.newest.min(from + each - 1),
        });
        spans.filter(|span| span.from <= span.to).collect()
    }

    fn report(
        self,
        connection: &Connection,
        reports: Vec<SpanReport>,
    ) -> rusqlite::Result<ChainReport> {
        let mut all = SpanReport::default();
        for report in reports {
            all.problems.append(report.problems);
            all.suspects.extend(report.suspects);
            all.n_events += report.n_events;
            all.n_calls += report.n_calls;
            all.n_ends += report.n_ends;
            all.n_lost += report.n_lost;
        }
        suspects::told(&all.suspects, &mut all.problems);
        self.compare(connection, &mut all)?;
        let mark = &self.mark;
        Ok(ChainReport {
            origin: mark.origin.to_string(),
            n_calls: all.n_calls,
            n_events: all.n_events,
            count: self.newest,
            head: hex(&self.code),
            n_before: self.n_before,
            n_removed_events: mark.upto,
            n_removed_calls: mark.n_removed,
            n_lost: all.n_lost,
            codes: self.codes,
            problems: all.problems.list,
            n_more: all.problems.n_more,
        })
    }

    /// Compares what events vouch for with what there is.
    fn compare(&self, connection: &Connection, all: &mut SpanReport) -> rusqlite::Result<()> {
        let at_start = AuditPlace::Store {
            record: self.mark.upto,
        };
        if self.mark.n_unsound > 0 {
            all.problems.add(AuditProblem {
                kind: AuditProblemKind::Changed,
                place: at_start.clone(),
                call_id: None,
                message: format!(
                    "{} records were not sound when retention removed them",
                    self.mark.n_unsound
                ),
            });
        }
        if i64::try_from(self.n_before).unwrap_or(i64::MAX) > self.mark.before_rows {
            all.problems.add(AuditProblem {
                kind: AuditProblemKind::Inserted,
                place: at_start,
                call_id: None,
                message: format!(
                    "there are {} calls from before the chain; there were {} when it began",
                    self.n_before, self.mark.before_rows
                ),
            });
        }
        // Rows whose events cannot be verified are not counted.
        if all.n_lost == 0 && self.n_rows > all.n_calls {
            suspects::unvouched(connection, &self.mark, &mut all.problems)?;
        }
        if all.n_lost == 0 && self.n_ended > all.n_ends {
            suspects::unended(connection, &self.mark, &mut all.problems)?;
        }
        Ok(())
    }
}

/// The verification of a span.
struct SpanCheck<'a> {
    extent: &'a Extent,
    keys: &'a AuditKeys,
    key: Option<&'a AuditKey>,
    /// The name of the key that was told to be missing.
    missing: Option<String>,
    /// The event before; its code is not known after a gap.
    previous: (i64, Option<Code>),
    report: SpanReport,
}

impl<'a> SpanCheck<'a> {
    fn of(
        connection: &Connection,
        extent: &'a Extent,
        keys: &'a AuditKeys,
        span: Span,
    ) -> rusqlite::Result<SpanReport> {
        let mut check = Self {
            extent,
            keys,
            key: None,
            missing: None,
            previous: before(connection, extent, span)?,
            report: SpanReport::default(),
        };
        check.set_key(&key_at(connection, extent, span)?, span.from);
        let sql =
            format!("SELECT {EVENT_COLUMNS} FROM audit_chain WHERE n BETWEEN ?1 AND ?2 ORDER BY n");
        let mut statement = connection.prepare_cached(&sql)?;
        let mut rows = statement.query(params![span.from, span.to])?;
        let mut checker = RowChecker::new(connection)?;
        while let Some(row) = rows.next()? {
            let event = StoredEvent::read(row)?;
            check.event(&event, &mut checker)?;
        }
        check.gap(span.to + 1);
        Ok(check.report)
    }

    fn event(&mut self, event: &StoredEvent, checker: &mut RowChecker<'_>) -> rusqlite::Result<()> {
        self.gap(event.head.n);
        if event.head.n <= self.extent.mark.lost_upto {
            self.report.n_lost += 1;
            self.previous = (event.head.n, Some(event.code));
            return Ok(());
        }
        if let (Some(EventKind::Key | EventKind::Start), Some(body)) = (event.kind(), &event.body)
            && let Ok(mark) = serde_json::from_str::<ChainMark>(body)
        {
            self.set_key(&mark.key, event.head.n);
        }
        if let Some(key) = self.key {
            self.code(event, key);
            self.row(event, key, checker)?;
            self.report.n_events += 1;
        }
        self.previous = (event.head.n, Some(event.code));
        Ok(())
    }

    /// Goes on with the key of this name.
    fn set_key(&mut self, id: &str, n: i64) {
        self.key = self.keys.named(id);
        let is_told = self.missing.as_deref() == Some(id);
        if self.key.is_none() && !is_told && n > self.extent.mark.lost_upto {
            self.missing = Some(id.to_owned());
            self.report.problems.add(AuditProblem {
                kind: AuditProblemKind::KeyMissing,
                place: AuditPlace::Store { record: n },
                call_id: None,
                message: format!(
                    "the key `{id}` is missing, so this and what follows cannot be verified"
                ),
            });
        }
    }

    /// Tells a gap before event `n`.
    fn gap(&mut self, n: i64) {
        let first = self.previous.0 + 1;
        if first >= n {
            return;
        }
        let message = match n - first {
            1 => format!("record {first} is not there"),
            n_gone => format!("{n_gone} records are not there, {first} to {}", n - 1),
        };
        self.problem(AuditProblemKind::Removed, first, None, message);
        self.previous = (n - 1, None);
    }

    fn code(&mut self, event: &StoredEvent, key: &AuditKey) {
        // What stands before it is gone, and so is what its code was made over.
        let (_, Some(previous)) = self.previous else {
            return;
        };
        let computed = event.code_as(event.head.n, key, &previous);
        if computed != Some(event.code) {
            self.report
                .suspects
                .push(Suspect::new(event, key, previous, computed));
        }
    }

    fn row(
        &mut self,
        event: &StoredEvent,
        key: &AuditKey,
        checker: &mut RowChecker<'_>,
    ) -> rusqlite::Result<()> {
        let n = event.head.n;
        let call = call_text(event.head.call);
        match event.kind() {
            Some(EventKind::Begin | EventKind::Carried) => match checker.begin(event, key)? {
                RowState::Sound(_) => self.report.n_calls += 1,
                RowState::Changed(_) => {
                    let message = "the beginning of the call was changed".to_owned();
                    self.report.n_calls += 1;
                    self.problem(AuditProblemKind::Changed, n, call, message);
                }
                RowState::Elsewhere(_) => {
                    let message = "the row of the call refers to another record".to_owned();
                    self.report.n_calls += 1;
                    self.problem(AuditProblemKind::Changed, n, call, message);
                }
                RowState::Other(other) => {
                    let message = format!("in the place of the call is the call {other}");
                    self.report.n_calls += 1;
                    self.problem(AuditProblemKind::Reordered, n, call, message);
                }
                RowState::Gone => {
                    let message = "the call is not there".to_owned();
                    self.problem(AuditProblemKind::Removed, n, call, message);
                }
            },
            Some(EventKind::Finish) => self.end(event, key, checker)?,
            _ => {}
        }
        Ok(())
    }

    fn end(
        &mut self,
        event: &StoredEvent,
        key: &AuditKey,
        checker: &mut RowChecker<'_>,
    ) -> rusqlite::Result<()> {
        // Its row went with its beginning, or is vouched for anew.
        let begun = event.head.begun.unwrap_or(0);
        if begun <= self.extent.mark.upto {
            return Ok(());
        }
        match checker.end(event, key)? {
            RowState::Sound(_) => self.report.n_ends += 1,
            RowState::Changed(_) => {
                let call = call_text(event.head.call);
                let message = "the end of the call was changed".to_owned();
                self.report.n_ends += 1;
                self.problem(AuditProblemKind::Changed, event.head.n, call, message);
            }
            // The event of the beginning tells it.
            RowState::Elsewhere(_) | RowState::Other(_) | RowState::Gone => {}
        }
        Ok(())
    }

    fn problem(
        &mut self,
        kind: AuditProblemKind,
        record: i64,
        call_id: Option<String>,
        message: String,
    ) {
        self.report.problems.add(AuditProblem {
            kind,
            place: AuditPlace::Store { record },
            call_id,
            message,
        });
    }
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

/// The event before a span.
fn before(
    connection: &Connection,
    extent: &Extent,
    span: Span,
) -> rusqlite::Result<(i64, Option<Code>)> {
    let n = span.from - 1;
    if n == extent.mark.upto {
        return Ok((n, extent.mark.upto_code()));
    }
    let mut statement = connection.prepare_cached("SELECT code FROM audit_chain WHERE n = ?1")?;
    let mut rows = statement.query([n])?;
    let code = rows.next()?.map(|row| super::code_of(row, 0)).transpose()?;
    Ok((n, code))
}

/// The name of the key at the beginning of a span.
fn key_at(connection: &Connection, extent: &Extent, span: Span) -> rusqlite::Result<String> {
    if span.from == extent.mark.upto + 1 {
        return Ok(extent.mark.upto_key.clone());
    }
    let mark = mark_before(connection, span.from)?;
    Ok(mark.map_or_else(|| extent.mark.upto_key.clone(), |(_, mark)| mark.key))
}
