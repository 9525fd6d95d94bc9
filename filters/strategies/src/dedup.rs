//! `dedup`: folds lines that differ in nothing but when they were written, and says how many there were.
//!
//! Of such lines the first and the last are shown as they are, wherever they stand: sources that write into one log interleave.
//! A line and what belongs to it, as the frames below an exception, are folded as one or not at all.
//! In lines that are no diagnostics, UUIDs, durations of one magnitude and identifiers of requests, threads and the like are ignored too; two
//! different diagnostics stay two, and so do two orders. A diagnostic that comes again is folded only when all that stands between came before: otherwise it is about
//! something else, another job for one.

mod normal;
mod record;

use std::collections::HashMap;
use std::ops::Range;

use foldhash::fast::RandomState;
use schemars::JsonSchema;
use serde::Deserialize;

use crate::selection::keep;
use crate::{
    Confidence, Coverage, Definition, Input, LineSet, Lines, Piece, Selection, Strategy, options,
};
pub use normal::normalise;
use normal::normalise_loosely;
use record::{Line, Record};

/// The entry of the table.
pub const DEFINITION: Definition = Definition {
    name: "dedup",
    description: "Folds lines that differ in timestamps and identifiers of requests only, with a count.",
    // What another command prints is no log: of a list of files that differ in their dates, each counts.
    coverage: Coverage::Unrecognised,
    schema: options::schema::<DedupOptions>,
    create,
};

/// Fewer equal lines are shown: a note would not be shorter.
const RUN_MIN: usize = 4;

/// There is nothing to set.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct DedupOptions {}

fn create(options: &str) -> Result<Box<dyn Strategy>, String> {
    Ok(Box::new(options::read::<DedupOptions>(options)?))
}

impl Strategy for DedupOptions {
    fn apply(&self, input: &Input<'_>) -> Selection {
        let groups = Groups::of(input.lines);
        let mut shown = Shown::default();
        let mut at = 0;
        for line_idx in groups.kept.within(0..input.lines.len()) {
            if at < line_idx {
                shown.told.push(at..line_idx);
            }
            at = line_idx + 1;
            shown.add(groups.folded_at(line_idx), line_idx);
        }
        shown.close();
        let confidence = if shown.told.is_empty() {
            Confidence::Fallback
        } else {
            Confidence::Full
        };
        Selection {
            pieces: shown.pieces,
            confidence,
            told: shown.told,
        }
    }
}

/// Most groups of equal lines. Beyond them lines that are new are shown and not remembered: a log of so many is not folded
/// anyway, and to remember them all takes more than they do.
const GROUPS_MAX: usize = 100_000;

/// Most bytes of lines that are remembered, for the same reason.
const GROUPS_BYTES_MAX: usize = 8 << 20;

/// Records that are equal, by the first line of each.
#[derive(Debug, Clone, Copy)]
struct Group {
    first: usize,
    last: usize,
    n: usize,
    /// Lines of each record.
    n_lines: usize,
}

impl Group {
    fn of(record: &Range<usize>) -> Self {
        Self {
            first: record.start,
            last: record.start,
            n: 1,
            n_lines: record.len(),
        }
    }

    /// The group of the lines with this place in each record.
    fn nth(self, n: usize) -> Self {
        Self {
            first: self.first + n,
            last: self.last + n,
            ..self
        }
    }
}

/// The groups of all lines.
struct Groups {
    /// What is shown: all but the lines between the first and the last of a group that is folded.
    kept: LineSet,
    /// The groups that are folded, by their first line; of records of several lines one for each.
    folded: Vec<Group>,
}

impl Groups {
    fn of(lines: &Lines<'_>) -> Self {
        let mut by_text: HashMap<Box<str>, u32, RandomState> = HashMap::default();
        let mut groups: Vec<(Group, [usize; RUN_MIN - 2])> = Vec::new();
        let mut kept = LineSet::default();
        let (mut normal, mut of_line) = (String::new(), String::new());
        let mut n_bytes = 0;
        // The last record that is like none before it.
        let mut last_new = 0;
        let mut ahead = lines.iter().map(Line::of).enumerate().peekable();
        while let Some((line_idx, first)) = ahead.next() {
            let line = first.whole;
            let mut record = Record::of(first);
            let mut is_diagnostic = lines.severity(line_idx).is_some();
            let mut places = line_idx..line_idx + 1;
            let is_single = !(ahead.peek()).is_some_and(|(_, next)| record.takes(*next));
            if is_single && !is_diagnostic && !line.starts_with([' ', '\t']) {
                normalise_loosely(line, &mut normal);
            } else {
                normalise(line, &mut normal);
            }
            while let Some((next_idx, next)) = ahead.next_if(|(_, next)| record.takes(*next)) {
                record.add(next);
                places.end = next_idx + 1;
                is_diagnostic |= lines.severity(next_idx).is_some();
                normalise(next.whole, &mut of_line);
                normal.push('\n');
                normal.push_str(&of_line);
            }
            if record.is_part() {
                kept.insert_all(places);
                continue;
            }
            let begin = |groups: &mut Vec<_>| {
                let group_idx = u32::try_from(groups.len()).ok();
                let group_idx = group_idx.filter(|_| groups.len() < GROUPS_MAX)?;
                groups.push((Group::of(&places), [0; RUN_MIN - 2]));
                Some(group_idx)
            };
            if let Some(group_idx) = by_text.get_mut(normal.as_str()) {
                let is_elsewhere = groups[*group_idx as usize].0.last < last_new;
                if is_elsewhere && is_diagnostic {
                    kept.insert_all(places.clone());
                    *group_idx = begin(&mut groups).unwrap_or(*group_idx);
                    continue;
                }
                let (group, early) = &mut groups[*group_idx as usize];
                if let Some(place) = early.get_mut(group.n - 1) {
                    *place = line_idx;
                }
                group.last = line_idx;
                group.n += 1;
                continue;
            }
            kept.insert_all(places.clone());
            last_new = line_idx;
            n_bytes += normal.len();
            if n_bytes <= GROUPS_BYTES_MAX
                && let Some(group_idx) = begin(&mut groups)
            {
                by_text.insert(normal.as_str().into(), group_idx);
            }
        }
        let mut folded = Vec::new();
        for (group, early) in groups {
            let lines_at = |line_idx: usize| line_idx..line_idx + group.n_lines;
            kept.insert_all(lines_at(group.last));
            if group.n >= RUN_MIN {
                folded.extend((0..group.n_lines).map(|n| group.nth(n)));
            } else {
                let again = early.iter().take(group.n - 1);
                again.for_each(|line_idx| kept.insert_all(lines_at(*line_idx)));
            }
        }
        Self { kept, folded }
    }

    /// The group that is folded and begins with a line.
    fn folded_at(&self, line_idx: usize) -> Option<Group> {
        let found = self
            .folded
            .binary_search_by_key(&line_idx, |group| group.first);
        found.ok().map(|group_idx| self.folded[group_idx])
    }
}

/// What is shown so far.
#[derive(Default)]
struct Shown {
    pieces: Vec<Piece>,
    told: Vec<Range<usize>>,
    /// Lines at the end that are the first of their group: how many lines, how often again, and where the next one would stand.
    open: Option<(usize, Group)>,
}

impl Shown {
    /// Adds a line; `group` is the one that is folded and begins with it.
    fn add(&mut self, group: Option<Group>, line_idx: usize) {
        if let Some((n, open)) = &mut self.open
            && group.is_some_and(|group| open.n == group.n && open.last + *n == group.last)
        {
            *n += 1;
            keep(&mut self.pieces, line_idx);
            return;
        }
        self.close();
        keep(&mut self.pieces, line_idx);
        self.open = group.map(|group| (1, group));
    }

    /// Says how often the lines came again that were shown last.
    fn close(&mut self) {
        let Some((n_lines, group)) = self.open.take() else {
            return;
        };
        let n = group.n - 1;
        self.pieces.push(Piece::Note(match n_lines {
            1 => format!("{n} more like it, the last below"),
            _ => format!("these {n_lines} lines {n} more times, the last below"),
        }));
    }
}
