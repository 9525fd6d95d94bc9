//! `group_by_rule`: one block per lint rule instead of one per finding.
//!
//! Errors stay whole. Of the warnings of one rule the first is shown with its message and place, the others as a list of
//! places: nothing that names a place is ever left out. What is no diagnostic stays as it is.

use std::collections::HashMap;
use std::ops::Range;
use std::sync::LazyLock;

use regex::Regex;
use schemars::JsonSchema;
use serde::Deserialize;

use crate::selection::keep;
use crate::{
    Confidence, Coverage, Definition, Input, Piece, Selection, Severity, Strategy, options,
    severity,
};

/// The entry of the table.
pub const DEFINITION: Definition = Definition {
    name: "group_by_rule",
    description: "Groups warnings by lint rule: the first in full, the places of all others; errors stay whole.",
    coverage: Coverage::Recognised,
    schema: options::schema::<Options>,
    create,
};

/// What a rule may say.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct Options {
    /// Finds the place of a finding; the first group is the place.
    #[serde(default = "rustc_location")]
    location_pattern: String,
    /// Finds the name of the rule; the first group that takes part is the name.
    #[serde(default = "rustc_rule")]
    rule_pattern: String,
}

fn rustc_location() -> String {
    r"^\s*--> (.+?:\d+(?::\d+)?)$".to_owned()
}

/// rustc names a lint at its first finding only; clippy links to its page at each.
fn rustc_rule() -> String {
    r"index\.html#(\w+)|#\[warn\((?:clippy::)?([^)]+)\)\]".to_owned()
}

static HEAD: LazyLock<Regex> = LazyLock::new(|| {
    Regex::new(r"^(?:warning|error)(?:\[[^\]]+\])?: ").expect("bug: the expression is literal")
});

/// Names in a message differ from finding to finding; without them the messages of one rule are equal.
static QUOTED: LazyLock<Regex> = LazyLock::new(|| {
    Regex::new("`[^`]*`|'[^']*'|\"[^\"]*\"").expect("bug: the expression is literal")
});

struct GroupByRule {
    location: Regex,
    rule: Regex,
}

/// One warning with a place.
struct Finding {
    lines: Range<usize>,
    location_line: usize,
    location: String,
    rule: String,
}

fn create(options: &str) -> Result<Box<dyn Strategy>, String> {
    let Options {
        location_pattern,
        rule_pattern,
    } = options::read(options)?;
    let location = options::one(&location_pattern)?;
    let rule = options::one(&rule_pattern)?;
    if location.captures_len() < 2 || rule.captures_len() < 2 {
        return Err("`location_pattern` and `rule_pattern` need a group each".to_owned());
    }
    Ok(Box::new(GroupByRule { location, rule }))
}

impl Strategy for GroupByRule {
    fn apply(&self, input: &Input<'_>) -> Selection {
        let findings = self.findings(input.lines);
        if findings.is_empty() {
            return Selection::all(input, Confidence::Fallback);
        }
        Selection::from_pieces(show(&findings, input.lines.len()), Confidence::Full)
    }
}

impl GroupByRule {
    fn findings(&self, lines: &[&str]) -> Vec<Finding> {
        let mut findings = Vec::new();
        let mut rule_of_message = HashMap::new();
        let mut at = 0;
        while at < lines.len() {
            let Some(end) = self.block_end(lines, at) else {
                at += 1;
                continue;
            };
            if is_warning(lines[at])
                && let Some(finding) = self.finding(lines, at..end, &mut rule_of_message)
            {
                findings.push(finding);
            }
            at = end;
        }
        findings
    }

    /// The end of the diagnostic that begins at `at`, or `None` when none does.
    fn block_end(&self, lines: &[&str], at: usize) -> Option<usize> {
        let rest = &lines[at + 1..];
        let length = if is_head(lines[at]) {
            let end = rest
                .iter()
                .position(|line| line.is_empty() || is_head(line));
            // The blank line belongs to the block before it.
            end.map_or(rest.len(), |n| if rest[n].is_empty() { n + 1 } else { n })
        } else if severity(lines[at]).is_some() && self.location.is_match(lines[at]) {
            rest.iter()
                .position(|line| !line.starts_with([' ', '\t']))
                .unwrap_or(rest.len())
        } else {
            return None;
        };
        Some(at + 1 + length)
    }

    fn finding(
        &self,
        lines: &[&str],
        block: Range<usize>,
        rule_of_message: &mut HashMap<String, String>,
    ) -> Option<Finding> {
        let (location_line, location) = block
            .clone()
            .find_map(|line_idx| Some((line_idx, group(&self.location, lines[line_idx])?)))
            // It may come to stand in a note, which holds no control characters.
            .filter(|(_, location)| !location.contains(char::is_control))?;
        let named = block
            .clone()
            .find_map(|line_idx| group(&self.rule, lines[line_idx]));
        let message = QUOTED.replace_all(lines[block.start], "_").into_owned();
        let rule = match named {
            Some(rule) => rule_of_message
                .entry(message)
                .insert_entry(rule)
                .get()
                .clone(),
            None => rule_of_message
                .entry(message.clone())
                .or_insert(message)
                .clone(),
        };
        // An error told of inside the block (`-D warnings`) makes it one to show whole.
        let is_plain = !block
            .clone()
            .any(|line_idx| severity(lines[line_idx]) == Some(Severity::Error));
        is_plain.then_some(Finding {
            lines: block,
            location_line,
            location,
            rule,
        })
    }
}

fn is_head(line: &str) -> bool {
    // Far cheaper than the expression, and almost always the answer.
    line.starts_with(['w', 'e']) && HEAD.is_match(line)
}

fn is_warning(line: &str) -> bool {
    severity(line) == Some(Severity::Warning)
}

fn group(pattern: &Regex, line: &str) -> Option<String> {
    // Most lines do not match, and groups are costly.
    let captures = pattern.is_match(line).then(|| pattern.captures(line))??;
    let group = captures.iter().skip(1).flatten().next()?;
    Some(group.as_str().to_owned())
}

fn show(findings: &[Finding], n_lines: usize) -> Vec<Piece> {
    let mut others: HashMap<&str, Vec<&str>> = HashMap::new();
    let mut firsts = Vec::new();
    for finding in findings {
        match others.get_mut(finding.rule.as_str()) {
            Some(places) => places.push(&finding.location),
            None => {
                others.insert(&finding.rule, Vec::new());
                firsts.push(finding.lines.start);
            }
        }
    }
    let mut pieces = Vec::new();
    let mut at = 0;
    for finding in findings {
        (at..finding.lines.start).for_each(|line_idx| keep(&mut pieces, line_idx));
        at = finding.lines.end;
        if firsts.binary_search(&finding.lines.start).is_err() {
            continue;
        }
        keep(&mut pieces, finding.lines.start);
        if finding.location_line != finding.lines.start {
            keep(&mut pieces, finding.location_line);
        }
        let places = &others[finding.rule.as_str()];
        if !places.is_empty() {
            pieces.push(Piece::Note(format!(
                "{} more of this: {}",
                places.len(),
                places.join(" ")
            )));
        }
    }
    (at..n_lines).for_each(|line_idx| keep(&mut pieces, line_idx));
    pieces
}
