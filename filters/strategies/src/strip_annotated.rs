//! `strip_annotated`: leaves out lines that carry one of the given annotations (`note:`, `Compiling`), but for a summary.

use regex::Regex;
use schemars::JsonSchema;
use serde::Deserialize;

use crate::automaton::Search;
use crate::selection::{count, keep};
use crate::strip_noise::is_noise;
use crate::{
    Automaton, Confidence, Coverage, Definition, Input, LineSet, Lines, Piece, Selection, Strategy,
    has_control, options, severity,
};

/// The entry of the table.
pub const DEFINITION: Definition = Definition {
    name: "strip_annotated",
    description: "Removes lines that carry an annotation, but keeps those that match `summary_pattern`.",
    coverage: Coverage::Recognised,
    schema: options::schema::<StripAnnotatedOptions>,
    create,
};

/// What a rule may say.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct StripAnnotatedOptions {
    /// Regular expressions; a line that matches one is omitted.
    #[serde(default)]
    patterns: Vec<String>,
    /// Plain words; a line that begins with one, white space aside, is omitted.
    #[serde(default)]
    prefixes: Vec<String>,
    /// A line that matches this is kept whatever else it matches.
    #[serde(default)]
    summary_pattern: Option<String>,
    /// What a line that is omitted is called: the first group of this expression. A note lists the names; in a tree, what
    /// stands below such a line goes with it.
    #[serde(default)]
    name_pattern: Option<String>,
}

struct StripAnnotated {
    annotated: Automaton,
    summary: Option<Automaton>,
    name: Option<Regex>,
}

fn create(options: &str) -> Result<Box<dyn Strategy>, String> {
    let StripAnnotatedOptions {
        mut patterns,
        prefixes,
        summary_pattern,
        name_pattern,
    } = options::read(options)?;
    patterns.extend(
        prefixes
            .iter()
            .map(|prefix| format!(r"^\s*{}", regex::escape(prefix))),
    );
    if patterns.is_empty() {
        return Err("neither `patterns` nor `prefixes` is given".to_owned());
    }
    let summary = summary_pattern
        .as_deref()
        .map(options::matcher)
        .transpose()?;
    let name = name_pattern.as_deref().map(options::one).transpose()?;
    if name.as_ref().is_some_and(|name| name.captures_len() < 2) {
        return Err("`name_pattern` needs a group".to_owned());
    }
    Ok(Box::new(StripAnnotated {
        annotated: options::any_of(&patterns)?,
        summary,
        name,
    }))
}

impl Strategy for StripAnnotated {
    fn apply(&self, input: &Input<'_>) -> Selection {
        if let Some(name) = &self.name {
            return self.with_names(input.lines, name);
        }
        let lines = input.lines.iter().enumerate();
        let mut annotated = self.annotated.search();
        let mut kept = LineSet::default();
        for (line_idx, line) in lines {
            if !self.is_omitted(&mut annotated, input.lines, line_idx, line) {
                kept.insert(line_idx);
            }
        }
        Selection::of(&kept, Confidence::Full)
    }
}

impl StripAnnotated {
    /// Leaves lines out and names them at the end of their list, which a blank line ends.
    fn with_names(&self, lines: &Lines<'_>, name: &Regex) -> Selection {
        let mut pieces = Vec::new();
        let mut omitted: Vec<String> = Vec::new();
        let mut annotated = self.annotated.search();
        let mut at = 0;
        while at < lines.len() {
            let line = lines.at(at);
            if !self.is_omitted(&mut annotated, lines, at, line) {
                if line.trim().is_empty() {
                    close(&mut omitted, &mut pieces);
                }
                keep(&mut pieces, at);
                at += 1;
                continue;
            }
            let n_below = lines.range(at + 1..lines.len());
            let n_below = n_below.take_while(|below| is_below(line, below)).count();
            let found = name.captures(line).and_then(|found| found.get(1));
            let called = found.map_or(line.trim(), |found| found.as_str());
            omitted.push(match n_below {
                0 => called.to_owned(),
                n => format!("{called} with {}", count(n, "line")),
            });
            at += 1 + n_below;
        }
        close(&mut omitted, &mut pieces);
        Selection::from_pieces(pieces, Confidence::Full)
    }

    fn is_omitted(
        &self,
        annotated: &mut Search<'_>,
        lines: &Lines<'_>,
        line_idx: usize,
        line: &str,
    ) -> bool {
        let is_summary = |line| {
            let summary = self.summary.as_ref();
            summary.is_some_and(|summary| summary.is_match(line))
        };
        is_noise(annotated, lines, line_idx, line) && !is_summary(line)
    }
}

fn close(omitted: &mut Vec<String>, pieces: &mut Vec<Piece>) {
    omitted.retain(|name| !has_control(name));
    if !omitted.is_empty() {
        pieces.push(Piece::Note(format!("omitted: {}", omitted.join(" "))));
    }
    omitted.clear();
}

/// Whether a line of a tree stands below another one: `│   ├── a` below `├── node_modules`.
fn is_below(line: &str, below: &str) -> bool {
    let is_deeper = match (tree_depth(line), tree_depth(below)) {
        (Some(own), Some(depth)) => depth > own,
        _ => false,
    };
    is_deeper && severity(below).is_none()
}

/// How far in the branch of a tree's line stands; `None` for other lines.
fn tree_depth(line: &str) -> Option<usize> {
    let is_indent = |c: char| matches!(c, '│' | '|' | ' ' | '\u{a0}');
    let mut rest = line;
    let mut depth = 0;
    loop {
        if ["├── ", "└── ", "|-- ", "`-- "]
            .iter()
            .any(|branch| rest.starts_with(branch))
        {
            return Some(depth);
        }
        rest = rest.strip_prefix(is_indent)?;
        depth += 1;
    }
}
