//! The rows of tables that say something of their own, by what stands below a heading: the one file system that is full.

use std::collections::HashMap;

use schemars::JsonSchema;
use serde::Deserialize;

use crate::text::is_blank;
use crate::{Automaton, LineSet, Lines, options};

/// Rows that are worth seeing.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(super) struct RowOptions {
    /// Headings of columns, as they stand in the line above the rows. A table ends at a blank line. Without headings, `pattern` is
    /// of whole lines.
    #[serde(default)]
    columns: Vec<String>,
    /// A regular expression of a value. Without it, a value is worth seeing that is not the most frequent one of its column, and
    /// neither all of something, such as `2/2`.
    #[serde(default)]
    pattern: Option<String>,
}

/// What makes rows worth seeing.
pub(super) struct Rows {
    choices: Vec<Choice>,
}

struct Choice {
    columns: Vec<String>,
    pattern: Option<Automaton>,
}

/// A column of one table.
struct Column<'a> {
    /// Words before it in each row.
    n_before: usize,
    choice: &'a Choice,
}

impl Rows {
    /// Errors: a pattern that cannot be used, or a choice with neither columns nor a pattern.
    pub(super) fn of(options: Vec<RowOptions>) -> Result<Self, String> {
        let choice = |RowOptions { columns, pattern }: RowOptions| {
            if columns.is_empty() && pattern.is_none() {
                return Err("one of `rows` has neither `columns` nor `pattern`".to_owned());
            }
            let pattern = pattern.as_deref().map(options::matcher).transpose()?;
            Ok(Choice { columns, pattern })
        };
        let choices = options.into_iter().map(choice).collect::<Result<_, _>>()?;
        Ok(Self { choices })
    }

    pub(super) fn is_empty(&self) -> bool {
        self.choices.is_empty()
    }

    /// The rows of all tables that are worth seeing.
    pub(super) fn find(&self, lines: &Lines<'_>) -> LineSet {
        let mut found = LineSet::default();
        let mut line_idx = 0;
        while line_idx < lines.len() {
            let columns = self.columns(lines.at(line_idx));
            line_idx += 1;
            if columns.is_empty() {
                continue;
            }
            let start = line_idx;
            while line_idx < lines.len() && !is_blank(lines.at(line_idx)) {
                line_idx += 1;
            }
            for column in &columns {
                let rows = start..line_idx;
                let value = |row_idx| lines.at(row_idx).split_whitespace().nth(column.n_before);
                let values = rows.filter_map(|row_idx| Some((row_idx, value(row_idx)?)));
                column.choice.find(values, &mut found);
            }
        }
        for choice in self
            .choices
            .iter()
            .filter(|choice| choice.columns.is_empty())
        {
            choice.find(lines.iter().enumerate(), &mut found);
        }
        found
    }

    /// The columns that a line is the heading of.
    fn columns(&self, line: &str) -> Vec<Column<'_>> {
        let words = line.split_whitespace().enumerate();
        let columns = words.flat_map(|(n_before, word)| {
            let of_word = move |choice: &&Choice| choice.columns.iter().any(|name| name == word);
            let choices = self.choices.iter().filter(of_word);
            choices.map(move |choice| Column { n_before, choice })
        });
        columns.collect()
    }
}

impl Choice {
    /// Adds the rows whose value is worth seeing.
    fn find<'a>(
        &self,
        values: impl Iterator<Item = (usize, &'a str)> + Clone,
        found: &mut LineSet,
    ) {
        let usual = match self.pattern {
            None => most_frequent(values.clone().map(|(_, value)| value)),
            Some(_) => None,
        };
        for (row_idx, value) in values {
            let is_wanted = match &self.pattern {
                Some(pattern) => pattern.is_match(value),
                None => Some(value) != usual && !is_all(value),
            };
            if is_wanted {
                found.insert(row_idx);
            }
        }
    }
}

/// Of values that are equally frequent, the first in the alphabet.
fn most_frequent<'a>(values: impl Iterator<Item = &'a str>) -> Option<&'a str> {
    let mut counts: HashMap<&str, usize> = HashMap::new();
    values.for_each(|value| *counts.entry(value).or_default() += 1);
    let most = counts
        .into_iter()
        .max_by(|(one, n), (other, m)| n.cmp(m).then(other.cmp(one)));
    most.map(|(value, _)| value)
}

/// `2/2`.
fn is_all(value: &str) -> bool {
    let parts = value.split_once('/');
    parts.is_some_and(|(part, all)| part == all && part.bytes().all(|byte| byte.is_ascii_digit()))
}
