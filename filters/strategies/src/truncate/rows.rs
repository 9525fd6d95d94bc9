//! The rows of tables that say something of their own, by what stands below a heading: the one file system that is full.

use std::collections::{BTreeMap, HashMap};
use std::ops::Range;

use schemars::JsonSchema;
use serde::Deserialize;

use crate::text::is_blank;
use crate::{Automaton, LineSet, Lines, has_control, options};

/// Most rows that are shown, beside those that are errors or warnings.
const ROWS_MAX: usize = 200;

/// Most rows that are shown of those that say the same; the others are counted.
const ALIKE_MAX: usize = 20;

/// Most kinds of rows of which is said how many are not shown.
const KINDS_MAX: usize = 5;

/// Characters of what rows say alike, as far as it is repeated. States have some twenty.
const SAID_CHARS_MAX: usize = 60;

/// Rows that are worth seeing: `pattern`, `usual` or `same_as` says which.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(super) struct RowOptions {
    /// WordPlaces of columns, single words as they stand in the line above the rows. A table ends at a blank line. Without headings,
    /// `pattern` is of whole lines.
    #[serde(default)]
    columns: Vec<String>,
    /// A regular expression of the values that are worth seeing.
    #[serde(default)]
    pattern: Option<String>,
    /// A regular expression of the values that are as they should be. Every other one is worth seeing, but all of something, such as
    /// `2/2`. Rows that say the same are counted beyond the first ones.
    #[serde(default)]
    usual: Option<String>,
    /// The heading of the column that says what the value should be; of `2/3` there, the second number. Every other one is worth seeing.
    #[serde(default)]
    same_as: Option<String>,
}

/// What makes rows worth seeing.
pub(super) struct Rows {
    choices: Vec<Choice>,
}

struct Choice {
    columns: Vec<String>,
    test: ValueTest,
}

/// Which values are worth seeing.
enum ValueTest {
    Like(Automaton),
    Unlike(Automaton),
    OtherThan(String),
}

/// A column of one table.
struct Column<'a> {
    heading: Heading,
    tests: Vec<ColumnTest<'a>>,
}

/// Which values of a column are worth seeing.
enum ColumnTest<'a> {
    Like(&'a Automaton),
    Unlike(&'a Automaton),
    OtherThan(Heading),
}

/// A word above a table.
#[derive(Debug, Clone)]
struct Heading {
    place: WordPlace,
    /// The characters of the line that are neither of the word before it nor of the one behind it.
    room: Range<usize>,
}

/// Where a word stands in a line.
#[derive(Debug, Clone)]
struct WordPlace {
    /// Words before it.
    n_before: usize,
    /// Its characters among those of the line.
    chars: Range<usize>,
}

/// The rows of tables that are worth seeing.
#[derive(Debug, Default)]
pub(super) struct NotableRows {
    lines: LineSet,
    /// What those say in which something is not as it should be, by their lines.
    said: HashMap<usize, String>,
}

/// Counts the rows that are shown, and those that are not.
pub(super) struct RowBudget<'a> {
    rows: &'a NotableRows,
    n_shown: usize,
    alike: BTreeMap<&'a str, AlikeRows>,
}

#[derive(Debug, Default)]
struct AlikeRows {
    n_shown: usize,
    n_more: usize,
}

impl Rows {
    /// Errors: a pattern that cannot be used, or a choice that says nothing or too much.
    pub(super) fn of(options: Vec<RowOptions>) -> Result<Self, String> {
        let choices = options.into_iter().map(Choice::of);
        Ok(Self {
            choices: choices.collect::<Result<_, _>>()?,
        })
    }

    pub(super) fn is_empty(&self) -> bool {
        self.choices.is_empty()
    }

    /// The rows of all tables that are worth seeing.
    pub(super) fn find(&self, lines: &Lines<'_>) -> NotableRows {
        let mut found = NotableRows::default();
        let mut line_idx = 0;
        while line_idx < lines.len() {
            let columns = self.columns(lines.at(line_idx));
            line_idx += 1;
            if columns.is_empty() {
                continue;
            }
            while line_idx < lines.len() && !is_blank(lines.at(line_idx)) {
                found.look(line_idx, lines.at(line_idx), &columns);
                line_idx += 1;
            }
        }
        for choice in self
            .choices
            .iter()
            .filter(|choice| choice.columns.is_empty())
        {
            if let ValueTest::Like(pattern) = &choice.test {
                let wanted = lines.iter().enumerate();
                let wanted = wanted.filter(|(_, line)| pattern.is_match(line));
                wanted.for_each(|(line_idx, _)| found.lines.insert(line_idx));
            }
        }
        found
    }

    /// The columns that a line is the heading of.
    fn columns(&self, line: &str) -> Vec<Column<'_>> {
        let is_heading = |word: &str| self.choices.iter().any(|choice| choice.names(word));
        if !line.split_whitespace().any(is_heading) {
            return Vec::new();
        }
        let headings = headings(line);
        let columns = headings.iter().map(|(heading, word)| {
            let choices = self.choices.iter().filter(|choice| choice.names(word));
            let tests = choices.filter_map(|choice| choice.test.among(&headings));
            Column {
                heading: heading.clone(),
                tests: tests.collect(),
            }
        });
        columns.filter(|column| !column.tests.is_empty()).collect()
    }
}

impl Choice {
    fn of(options: RowOptions) -> Result<Self, String> {
        let RowOptions {
            columns,
            pattern,
            usual,
            same_as,
        } = options;
        let test = match (pattern, usual, same_as) {
            (Some(pattern), None, None) => ValueTest::Like(options::matcher(&pattern)?),
            (None, Some(usual), None) => ValueTest::Unlike(options::matcher(&usual)?),
            (None, None, Some(heading)) => ValueTest::OtherThan(heading),
            _ => {
                return Err("each of `rows` has one of `pattern`, `usual` and `same_as`".to_owned());
            }
        };
        if columns.is_empty() && !matches!(test, ValueTest::Like(_)) {
            return Err("one of `rows` with `usual` or `same_as` has no `columns`".to_owned());
        }
        Ok(Self { columns, test })
    }

    /// Whether a word is the heading of one of its columns.
    fn names(&self, word: &str) -> bool {
        self.columns.iter().any(|name| name == word)
    }
}

impl ValueTest {
    /// The test in a table with these headings; nothing where one is missing.
    fn among<'a>(&'a self, headings: &[(Heading, &str)]) -> Option<ColumnTest<'a>> {
        Some(match self {
            Self::Like(pattern) => ColumnTest::Like(pattern),
            Self::Unlike(usual) => ColumnTest::Unlike(usual),
            Self::OtherThan(name) => {
                let (heading, _) = headings.iter().find(|(_, word)| word == name)?;
                ColumnTest::OtherThan(heading.clone())
            }
        })
    }
}

impl ColumnTest<'_> {
    /// Whether a value of a row is worth seeing.
    fn is_met(&self, value: &str, row: &str) -> bool {
        match self {
            Self::Like(pattern) => pattern.is_match(value),
            Self::Unlike(usual) => !is_all(value) && !usual.is_match(value),
            Self::OtherThan(heading) => {
                let wanted = heading.value(row);
                let wanted = wanted.map(|wanted| wanted.rsplit('/').next().unwrap_or(wanted));
                wanted != Some(value)
            }
        }
    }
}

impl Heading {
    /// What stands below it in a row. Values may be missing or have blanks, and long ones push others from their places: the word with as
    /// many before it counts if it stands below the heading, then one that begins or ends where the heading does and below no other.
    fn value<'a>(&self, row: &'a str) -> Option<&'a str> {
        let Self { place, room } = self;
        let (mut nth, mut aligned) = (None, None);
        for (WordPlace { n_before, chars }, word) in words(row) {
            if n_before == place.n_before {
                if chars.start < place.chars.end && place.chars.start < chars.end {
                    return Some(word);
                }
                nth = Some(word);
            }
            let is_aligned = chars.start == place.chars.start || chars.end == place.chars.end;
            if is_aligned && room.start <= chars.start && chars.end <= room.end {
                aligned = aligned.or(Some(word));
            }
            if n_before >= place.n_before && chars.start >= place.chars.end {
                break;
            }
        }
        aligned.or(nth)
    }
}

impl NotableRows {
    fn look(&mut self, line_idx: usize, row: &str, columns: &[Column<'_>]) {
        let (mut is_notable, mut is_unusual) = (false, false);
        let mut said = Vec::new();
        for column in columns {
            let Some(value) = column.heading.value(row) else {
                continue;
            };
            let is_like = |test: &ColumnTest<'_>| matches!(test, ColumnTest::Like(_));
            let has_usual = !column.tests.iter().all(is_like);
            let is_met = column.tests.iter().any(|test| test.is_met(value, row));
            is_notable |= is_met;
            is_unusual |= is_met && has_usual;
            said.extend(has_usual.then_some(value));
        }
        if is_notable {
            self.lines.insert(line_idx);
        }
        if is_unusual {
            self.said.insert(line_idx, said.join(" "));
        }
    }

    /// Whether a line is one of them.
    pub(super) fn contains(&self, line_idx: usize) -> bool {
        self.lines.contains(line_idx)
    }
}

impl<'a> RowBudget<'a> {
    pub(super) fn of(rows: &'a NotableRows) -> Self {
        Self {
            rows,
            n_shown: 0,
            alike: BTreeMap::new(),
        }
    }

    /// Counts a row that is worth seeing; says whether it is shown.
    pub(super) fn takes(&mut self, line_idx: usize) -> bool {
        let mut is_shown = self.n_shown < ROWS_MAX;
        if let Some(said) = self.rows.said.get(&line_idx) {
            let alike = self.alike.entry(said).or_default();
            is_shown &= alike.n_shown < ALIKE_MAX;
            match is_shown {
                true => alike.n_shown += 1,
                false => alike.n_more += 1,
            }
        }
        self.n_shown += usize::from(is_shown);
        is_shown
    }

    /// How many rows of which kinds are not shown: `; 40 more say 0/1 Pending`. The most come first.
    pub(super) fn more(&self) -> String {
        let is_named = |said: &str| !has_control(said) && said.chars().count() <= SAID_CHARS_MAX;
        let kinds = self.alike.iter().filter(|(_, rows)| rows.n_more > 0);
        let mut kinds: Vec<(usize, &str)> =
            kinds.map(|(said, rows)| (rows.n_more, *said)).collect();
        kinds.sort_by_key(|(n, said)| (!is_named(said), std::cmp::Reverse(*n)));
        let n_named = kinds.iter().take_while(|(_, said)| is_named(said)).count();
        let (named, others) = kinds.split_at(n_named.min(KINDS_MAX));
        let named = named
            .iter()
            .map(|(n, said)| format!("; {n} more say {said}"));
        let mut text: String = named.collect();
        let n_others: usize = others.iter().map(|(n, _)| n).sum();
        if n_others > 0 {
            text += &format!("; {n_others} more say something else");
        }
        text
    }
}

/// The words above a table.
fn headings(line: &str) -> Vec<(Heading, &str)> {
    let words: Vec<(WordPlace, &str)> = words(line).collect();
    let end_of = |idx: usize| words.get(idx).map(|(place, _)| place.chars.end);
    let start_of = |idx: usize| words.get(idx).map(|(place, _)| place.chars.start);
    let headings = words.iter().enumerate().map(|(idx, (place, word))| {
        let before = idx.checked_sub(1).and_then(end_of).unwrap_or(0);
        let room = before..start_of(idx + 1).unwrap_or(usize::MAX);
        let place = place.clone();
        (Heading { place, room }, *word)
    });
    headings.collect()
}

/// The words of a line, each with its place.
fn words(line: &str) -> impl Iterator<Item = (WordPlace, &str)> {
    let (mut rest, mut at) = (line, 0);
    let words = std::iter::from_fn(move || {
        let blanks = rest.find(|c: char| !c.is_whitespace())?;
        let start = at + rest[..blanks].chars().count();
        rest = &rest[blanks..];
        let (word, behind) = rest.split_at(rest.find(char::is_whitespace).unwrap_or(rest.len()));
        (rest, at) = (behind, start + word.chars().count());
        Some((start..at, word))
    });
    words
        .enumerate()
        .map(|(n_before, (chars, word))| (WordPlace { n_before, chars }, word))
}

/// `2/2`.
fn is_all(value: &str) -> bool {
    let parts = value.split_once('/');
    parts.is_some_and(|(part, all)| part == all && part.bytes().all(|byte| byte.is_ascii_digit()))
}

#[cfg(test)]
mod tests {
    use super::headings;

    #[test]
    fn values_stand_below_their_headings() {
        for (table, heading, expect) in [
            // WordPlaces with blanks.
            (
                "NAME   ACCESS MODES   RECLAIM POLICY   STATUS     CLAIM\npv-1   RWO            Retain           Released   web/data",
                "STATUS",
                "Released",
            ),
            // A value with blanks, right-aligned numbers.
            (
                "Filesystem        Size Use% Mounted on\n//srv/My Big Files 9T  97% /mnt/files",
                "Use%",
                "97%",
            ),
            // A value that is missing.
            (
                "NAME   CLASS   READY   AGE\ndb     gp2     2/2     3d\nweb            0/2     3d",
                "READY",
                "0/2",
            ),
            // One too long for its column.
            (
                "USER   PID %CPU STAT COMMAND\nnobody-at-all 123456  0.0 Z    old",
                "STAT",
                "Z",
            ),
            ("ÄÖÜ  STATUS\näöü  Bound", "STATUS", "Bound"),
            ("A  STATUS\na", "STATUS", ""),
        ] {
            let mut lines = table.lines();
            let above = headings(lines.next().unwrap());
            let (heading, _) = above.iter().find(|(_, word)| *word == heading).unwrap();
            let value = heading.value(lines.last().unwrap());
            assert_eq!(value.unwrap_or_default(), expect, "{table}");
        }
    }
}
