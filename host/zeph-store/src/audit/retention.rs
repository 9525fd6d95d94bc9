//! Which of the oldest events go with their rows, and which rows are vouched for anew. Pure.
//!
//! Events go without a gap. A row that is not to go yet, because its call still runs or its clock was ahead, gets a new event at the end.
//! What goes is verified once more, and what was not sound is counted for ever. What cannot be verified now, because its key is out of reach, waits
//! until it can, but for rows that are too many; it is counted, too, and so is what nobody can verify any more.

use std::collections::HashMap;

use super::chain::{ChainMark, EventKind};
use super::code::{Code, hex};
use super::event::{EventRows, RowFacts, RowState, StoredEvent};
use crate::secrets::audit_keys::{AuditKey, AuditKeys};
use crate::sweep::Past;

/// How long the row of a call without an end is kept at least, in milliseconds: longer than any call runs.
const UNFINISHED_MS: i64 = 86_400_000;

/// Events that are looked at for each row that may go: a begin, an end, and some of the chain itself.
const EVENTS_PER_ROW: u32 = 4;

/// What a step did.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct ChainSweep {
    pub(crate) n_removed: usize,
    pub(crate) n_carried: usize,
}

/// What is past its time.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Limits {
    now_ms: i64,
    /// Calls without an end that began before this moment do not run any more.
    pub(crate) running_ms: i64,
    /// Rows of calls that began before this moment are past their time.
    pub(crate) before_ms: Option<i64>,
    /// Rows up to this number are too many.
    pub(crate) upto_seq: Option<i64>,
}

/// What is to be done with the oldest events.
#[derive(Debug)]
pub(crate) struct RetentionPlan {
    /// Rows to remove, by number.
    pub(crate) remove: Vec<i64>,
    /// Rows to vouch for anew.
    pub(crate) carry: Vec<(StoredEvent, RowFacts)>,
    /// Up to where events are removed; none when nothing is.
    pub(crate) cut: Option<ChainMark>,
}

/// A step over the oldest events.
struct Walk<'a> {
    keys: &'a AuditKeys,
    limits: Limits,
    mark: ChainMark,
    previous: Option<Code>,
    /// The ends of calls among the events, by the event of their begin, with their keys.
    ends: HashMap<i64, (StoredEvent, Option<&'a AuditKey>)>,
    /// Whether any of the events is of a row that is too many.
    has_too_many: bool,
    plan: RetentionPlan,
}

impl Limits {
    /// For a table whose newest row has the number `newest`.
    pub(crate) fn new(past: &Past, newest: i64) -> Self {
        let upto_seq = past.audit_rows_max.map(|max| newest.saturating_sub(max));
        Self {
            now_ms: past.now_ms,
            running_ms: running_ms(past),
            before_ms: past.audit_ms,
            upto_seq: upto_seq.filter(|seq| *seq > 0),
        }
    }

    fn is_running(&self, row: RowFacts) -> bool {
        !row.has_ended && row.begun_at_ms >= self.running_ms
    }

    fn is_past(&self, row: RowFacts, seq: i64) -> bool {
        let is_old = self.before_ms.is_some_and(|limit| row.begun_at_ms < limit);
        is_old || self.is_too_many(seq)
    }

    fn is_too_many(&self, seq: i64) -> bool {
        self.upto_seq.is_some_and(|limit| seq <= limit)
    }
}

/// The moment before which calls without an end do not run any more.
pub(crate) fn running_ms(past: &Past) -> i64 {
    past.at_ms.saturating_sub(UNFINISHED_MS)
}

/// How many events a step that removes up to `n_max` rows looks at.
pub(crate) fn n_events(n_max: u32) -> u32 {
    n_max.saturating_mul(EVENTS_PER_ROW)
}

/// What to do with the oldest `events`, of a chain whose newest mark is `mark`, to remove up to `n_max` rows.
pub(crate) fn plan<R: EventRows>(
    events: Vec<StoredEvent>,
    rows: &mut R,
    (keys, mark): (&AuditKeys, ChainMark),
    limits: Limits,
    n_max: u32,
) -> Result<RetentionPlan, R::Fault> {
    let walk = Walk {
        keys,
        limits,
        previous: mark.upto_code(),
        ends: ends(&events, keys, &mark.upto_key),
        has_too_many: events
            .iter()
            .any(|event| event.head.seq.is_some_and(|seq| limits.is_too_many(seq))),
        mark,
        plan: RetentionPlan {
            remove: Vec::new(),
            carry: Vec::new(),
            cut: None,
        },
    };
    walk.run(events, rows, usize::try_from(n_max).unwrap_or(usize::MAX))
}

/// The name of the key from an event on, where it says that.
fn key_from(event: &StoredEvent) -> Option<String> {
    let Some(EventKind::Key | EventKind::Start) = event.kind() else {
        return None;
    };
    let mark = serde_json::from_str::<ChainMark>(event.body.as_ref()?);
    Some(mark.ok()?.key)
}

/// The ends of calls, the first of which has the key of this name.
fn ends<'a>(
    events: &[StoredEvent],
    keys: &'a AuditKeys,
    key: &str,
) -> HashMap<i64, (StoredEvent, Option<&'a AuditKey>)> {
    let mut key = keys.named(key);
    let mut ends = HashMap::new();
    for event in events {
        if let Some(id) = key_from(event) {
            key = keys.named(&id);
        }
        if let (Some(EventKind::Finish), Some(begun)) = (event.kind(), event.head.begun) {
            ends.insert(begun, (event.clone(), key));
        }
    }
    ends
}

impl Walk<'_> {
    fn run<R: EventRows>(
        mut self,
        events: Vec<StoredEvent>,
        rows: &mut R,
        n_max: usize,
    ) -> Result<RetentionPlan, R::Fault> {
        let mut last = None;
        for event in events {
            let n_rows = self.plan.remove.len() + self.plan.carry.len();
            if n_rows >= n_max || !self.pass(&event, rows)? {
                break;
            }
            self.mark.upto = event.head.n;
            last = Some(event.code);
        }
        if let Some(code) = last {
            self.mark.upto_code = hex(&code);
            self.mark.at_ms = self.limits.now_ms;
            self.plan.cut = Some(self.mark);
        }
        Ok(self.plan)
    }

    /// Goes past an event; false when it has to stay.
    fn pass<R: EventRows>(&mut self, event: &StoredEvent, rows: &mut R) -> Result<bool, R::Fault> {
        let key_id = key_from(event).unwrap_or_else(|| self.mark.upto_key.clone());
        let key = self.keys.named(&key_id);
        let is_lost = event.head.n <= self.mark.lost_upto;
        if key.is_none() && !is_lost && self.waits(event) {
            return Ok(false);
        }
        self.mark.upto_key = key_id;
        // Of an event that nobody can verify, the row goes or stays by its age alone.
        let row = match (event.kind(), key.or(self.keys.newest())) {
            (Some(EventKind::Begin | EventKind::Carried), Some(key)) => {
                Some(rows.begin(event, key)?)
            }
            _ => None,
        };
        if let Some(RowState::Sound(facts) | RowState::Changed(facts)) = &row
            && !self.take(event, *facts)
        {
            return Ok(false);
        }
        let is_next = event.head.n == self.mark.upto + 1;
        let code = key.and_then(|key| {
            let previous = self.previous.as_ref()?;
            event.code_as(event.head.n, key, previous)
        });
        let is_sound = is_next
            && code == Some(event.code)
            && matches!(row, None | Some(RowState::Sound(_)))
            && !self.has_changed_end(event, rows)?;
        match key.is_none() || is_lost {
            true => self.mark.n_unverified += 1,
            false => self.mark.n_unsound += i64::from(!is_sound),
        }
        self.previous = Some(event.code);
        Ok(true)
    }

    /// Whether an event that cannot be verified now stays: it goes only for rows that are too many.
    fn waits(&self, event: &StoredEvent) -> bool {
        match event.head.seq {
            Some(seq) => !self.limits.is_too_many(seq),
            None => !self.has_too_many,
        }
    }

    /// Whether the row that the event says began has another end than was recorded. Its event may be one that is not looked at yet: by then the row
    /// is gone.
    fn has_changed_end<R: EventRows>(
        &self,
        event: &StoredEvent,
        rows: &mut R,
    ) -> Result<bool, R::Fault> {
        let Some((end, Some(key))) = self.ends.get(&event.head.n) else {
            return Ok(false);
        };
        Ok(matches!(rows.end(end, key)?, RowState::Changed(_)))
    }

    /// Removes a row, or carries it; false when it has to stay where it is.
    fn take(&mut self, event: &StoredEvent, facts: RowFacts) -> bool {
        let Some(seq) = event.head.seq else {
            return true;
        };
        let is_ahead = facts.begun_at_ms > self.limits.now_ms;
        if self.limits.is_past(facts, seq) && !self.limits.is_running(facts) {
            self.plan.remove.push(seq);
            self.mark.n_removed += 1;
            return true;
        }
        if self.limits.is_running(facts) || is_ahead {
            self.plan.carry.push((event.clone(), facts));
            return true;
        }
        false
    }
}
