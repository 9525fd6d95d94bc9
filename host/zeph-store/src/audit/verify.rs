//! Comparing the chain with the rows it vouches for, span by span. Pure: a database hands over what is stored.

mod suspects;

use std::collections::BTreeMap;

use self::suspects::Suspect;
use super::chain::{ChainMark, ChainReport, EventKind};
use super::code::{Code, hex};
use super::earlier;
use super::event::{EventRows, RowState, StoredEvent, call_text};
use super::mark::{self, MarkState};
use super::problem::{AuditPlace, AuditProblem, AuditProblemKind, Problems};
use super::seal::NewestEvent;
use crate::secrets::audit_keys::{AuditKey, AuditKeys};

/// Threads at most, and events for each at least.
const THREADS_MAX: usize = 16;
const SPAN_MIN: i64 = 4_096;

/// The whole chain, before its events are looked at.
pub(crate) struct Extent {
    /// Of a store that several hosts share: whose chain it is.
    pub(crate) host: Option<String>,
    /// What the newest mark says, as far as it is believed; its number, and what is known of it.
    pub(crate) mark: ChainMark,
    pub(crate) mark_n: i64,
    pub(crate) mark_state: MarkState,
    /// Which host says that it removed what the mark is without, where nobody here can verify that.
    pub(crate) removed_by: Option<String>,
    pub(crate) newest: NewestEvent,
    /// Rows since the chain began, those of them with an end, and rows from before.
    pub(crate) n_rows: u64,
    pub(crate) n_ended: u64,
    pub(crate) n_before: u64,
    /// The codes that were asked for.
    pub(crate) codes: BTreeMap<i64, String>,
}

/// What is verified by one thread.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Span {
    pub(crate) from: i64,
    pub(crate) to: i64,
}

/// What a span begins with.
pub(crate) struct SpanStart {
    /// The code of the event before; none when that is not there.
    pub(crate) previous: Option<Code>,
    /// The name of the key.
    pub(crate) key: String,
    /// What the chain said of itself last; none where retention cut it.
    pub(crate) mark: Option<ChainMark>,
}

/// What was found in a span.
#[derive(Default)]
pub(crate) struct SpanReport {
    problems: Problems,
    suspects: Vec<Suspect>,
    n_events: u64,
    n_calls: u64,
    n_ends: u64,
    n_lost: u64,
}

/// A call that has something no event vouches for.
pub(crate) struct Unvouched {
    pub(crate) call: String,
    /// The event that its row names; 0 when it names none.
    pub(crate) record: i64,
}

/// What is not vouched for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Missing {
    /// The beginning.
    Begin,
    /// The end.
    End,
}

impl Extent {
    /// Splits the chain for as many threads as there are processors.
    pub(crate) fn spans(&self) -> Vec<Span> {
        let cores = std::thread::available_parallelism().map_or(1, usize::from);
        let n_events = (self.newest.n - self.mark.upto).max(0);
        let cores = i64::try_from(cores.min(THREADS_MAX)).unwrap_or(1);
        let each = (n_events / cores + 1).max(SPAN_MIN);
        let first = self.mark.upto + 1;
        let starts = (0..cores).map(|n| first + n * each);
        let spans = starts.map(|from| Span {
            from,
            to: self.newest.n.min(from + each - 1),
        });
        spans.filter(|span| span.from <= span.to).collect()
    }

    /// The code before a span and its key, when retention left them.
    pub(crate) fn cut_before(&self, span: Span) -> Option<SpanStart> {
        (span.from == self.mark.upto + 1).then(|| SpanStart {
            previous: self.mark.upto_code(),
            key: self.mark.upto_key.clone(),
            mark: None,
        })
    }

    /// Puts together what was found. `unvouched` reads the calls of which something is vouched for by no event.
    pub(crate) fn report<E>(
        self,
        reports: Vec<SpanReport>,
        unvouched: &mut dyn FnMut(Missing) -> Result<Vec<Unvouched>, E>,
    ) -> Result<ChainReport, E> {
        let mut all = SpanReport::default();
        for report in reports {
            all.problems.append(report.problems);
            all.suspects.extend(report.suspects);
            all.n_events += report.n_events;
            all.n_calls += report.n_calls;
            all.n_ends += report.n_ends;
            all.n_lost += report.n_lost;
        }
        suspects::told(&all.suspects, self.host.as_deref(), &mut all.problems);
        self.judge_mark(&mut all);
        self.compare(&mut all, unvouched)?;
        let mark = &self.mark;
        Ok(ChainReport {
            host: self.host.clone(),
            origin: mark.origin.to_string(),
            earlier: mark.earlier.clone(),
            n_calls: all.n_calls,
            n_events: all.n_events,
            count: self.newest.n,
            head: hex(&self.newest.code),
            n_before: self.n_before,
            n_removed_events: mark.upto,
            n_removed_calls: mark.n_removed,
            n_unverified: mark.n_unverified,
            n_lost: all.n_lost,
            lost_keys: mark.lost_keys.clone(),
            codes: self.codes,
            problems: all.problems.list,
            n_more: all.problems.n_more,
            ..ChainReport::default()
        })
    }

    /// Tells of a newest mark that cannot be believed, unless its events tell it.
    fn judge_mark(&self, all: &mut SpanReport) {
        if let Some(host) = &self.removed_by {
            let upto = self.mark.upto;
            let what = format!("this one up to record {upto}, which was past its time");
            let message = earlier::unverified(host, &what);
            self.at_start(all, AuditProblemKind::KeyMissing, message);
        }
        let place = self.place(self.mark_n);
        let (kind, message) = match self.mark_state {
            MarkState::Sound => return,
            MarkState::KeyMissing => (
                AuditProblemKind::KeyMissing,
                format!(
                    "the key `{}` is missing, so what the log says of itself cannot be verified",
                    self.mark.key
                ),
            ),
            MarkState::Changed => (
                AuditProblemKind::Changed,
                "what the log says of itself is not what was recorded".to_owned(),
            ),
        };
        let is_told = |problem: &AuditProblem| {
            problem.kind == kind && (kind == AuditProblemKind::KeyMissing || problem.place == place)
        };
        if !all.problems.list.iter().any(is_told) {
            all.problems.add(AuditProblem {
                kind,
                place,
                call_id: None,
                message,
            });
        }
    }

    /// Compares what events vouch for with what there is.
    fn compare<E>(
        &self,
        all: &mut SpanReport,
        unvouched: &mut dyn FnMut(Missing) -> Result<Vec<Unvouched>, E>,
    ) -> Result<(), E> {
        if self.mark.n_unsound > 0 {
            let message = match self.mark.n_unsound {
                1 => "1 record was not sound when retention removed it or the log went on from it"
                    .to_owned(),
                n => format!(
                    "{n} records were not sound when retention removed them or the log went on from them"
                ),
            };
            self.at_start(all, AuditProblemKind::Changed, message);
        }
        if i64::try_from(self.n_before).unwrap_or(i64::MAX) > self.mark.before_rows {
            let message = format!(
                "there are {} calls from before the chain, and there can be no more than {}",
                self.n_before, self.mark.before_rows
            );
            self.at_start(all, AuditProblemKind::Inserted, message);
        }
        // Events that cannot be verified are not counted: there each row is asked for its own.
        if all.n_lost > 0 || self.n_rows > all.n_calls {
            let message = "no record of the chain is of this call";
            self.inserted(all, unvouched(Missing::Begin)?, message);
        }
        if all.n_lost > 0 || self.n_ended > all.n_ends {
            let message = "no record of the chain is of the end of this call";
            self.inserted(all, unvouched(Missing::End)?, message);
        }
        Ok(())
    }

    fn at_start(&self, all: &mut SpanReport, kind: AuditProblemKind, message: String) {
        all.problems.add(AuditProblem {
            kind,
            place: self.place(self.mark.upto),
            call_id: None,
            message,
        });
    }

    fn inserted(&self, all: &mut SpanReport, calls: Vec<Unvouched>, message: &str) {
        for Unvouched { call, record } in calls {
            all.problems.add(AuditProblem {
                kind: AuditProblemKind::Inserted,
                place: self.place(record),
                call_id: Some(call),
                message: message.to_owned(),
            });
        }
    }

    fn place(&self, record: i64) -> AuditPlace {
        AuditPlace::Store {
            host: self.host.clone(),
            record,
        }
    }
}

/// The verification of a span.
pub(crate) struct SpanCheck<'a> {
    extent: &'a Extent,
    keys: &'a AuditKeys,
    key: Option<&'a AuditKey>,
    /// The name of the key that was told to be missing.
    missing: Option<String>,
    /// What the chain said of itself last.
    mark: Option<ChainMark>,
    /// The event before; its code is not known after a gap.
    previous: (i64, Option<Code>),
    report: SpanReport,
}

impl<'a> SpanCheck<'a> {
    pub(crate) fn new(
        extent: &'a Extent,
        keys: &'a AuditKeys,
        span: Span,
        start: SpanStart,
    ) -> Self {
        let mut check = Self {
            extent,
            keys,
            key: None,
            missing: None,
            mark: start.mark,
            previous: (span.from - 1, start.previous),
            report: SpanReport::default(),
        };
        check.set_key(&start.key, span.from);
        check
    }

    /// The report, once all events up to the end of the span were handed over.
    pub(crate) fn end(mut self, span: Span) -> SpanReport {
        self.gap(span.to + 1);
        self.report
    }

    /// Verifies the next event, and its row.
    pub(crate) fn event<R: EventRows>(
        &mut self,
        event: &StoredEvent,
        rows: &mut R,
    ) -> Result<(), R::Fault> {
        self.gap(event.head.n);
        if event.head.n <= self.extent.mark.lost_upto {
            self.report.n_lost += 1;
            self.previous = (event.head.n, Some(event.code));
            return Ok(());
        }
        if let Ok((mark, is_anew)) = mark::read(event) {
            if let Some(EventKind::Key | EventKind::Start) = event.kind() {
                self.set_key(&mark.key, event.head.n);
            }
            if is_anew {
                self.mark = None;
            }
            self.mark(event, mark);
        }
        if let Some(key) = self.key {
            self.code(event, key);
            self.row(event, key, rows)?;
            self.report.n_events += 1;
        }
        self.previous = (event.head.n, Some(event.code));
        Ok(())
    }

    /// Compares what the chain says of itself with what it said last.
    fn mark(&mut self, event: &StoredEvent, mark: ChainMark) {
        let before = self.mark.replace(mark);
        let is_sound = match (&before, &self.mark) {
            (Some(before), Some(mark)) => mark.follows(before, event),
            _ => true,
        };
        if !is_sound {
            let message = "what the log says of itself contradicts what it said before".to_owned();
            self.problem(AuditProblemKind::Changed, event.head.n, None, message);
        }
    }

    /// Goes on with the key of this name.
    fn set_key(&mut self, id: &str, n: i64) {
        self.key = self.keys.named(id);
        let is_told = self.missing.as_deref() == Some(id);
        if self.key.is_none() && !is_told && n > self.extent.mark.lost_upto {
            self.missing = Some(id.to_owned());
            self.report.problems.add(AuditProblem {
                kind: AuditProblemKind::KeyMissing,
                place: self.extent.place(n),
                call_id: None,
                message: match &self.extent.host {
                    None => format!(
                        "the key `{id}` is missing, so this and what follows cannot be verified"
                    ),
                    Some(host) => format!(
                        "the key `{id}` is not on this machine, so this and what follows cannot be verified here; \
                         `zeph-host audit verify --host {host}` on the machine of that host can"
                    ),
                },
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

    fn row<R: EventRows>(
        &mut self,
        event: &StoredEvent,
        key: &AuditKey,
        rows: &mut R,
    ) -> Result<(), R::Fault> {
        let n = event.head.n;
        let call = call_text(event.head.call);
        match event.kind() {
            Some(EventKind::Begin | EventKind::Carried) => match rows.begin(event, key)? {
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
            Some(EventKind::Finish) => self.row_end(event, key, rows)?,
            _ => {}
        }
        Ok(())
    }

    fn row_end<R: EventRows>(
        &mut self,
        event: &StoredEvent,
        key: &AuditKey,
        rows: &mut R,
    ) -> Result<(), R::Fault> {
        // Its row went with its beginning, or is vouched for anew.
        let begun = event.head.begun.unwrap_or(0);
        if begun <= self.extent.mark.upto {
            return Ok(());
        }
        match rows.end(event, key)? {
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
            place: self.extent.place(record),
            call_id,
            message,
        });
    }
}
