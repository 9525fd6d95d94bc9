//! `group_by_rule`: one block per lint rule instead of one per finding.
//!
//! Errors stay whole. Of the warnings of one rule the first is shown with its message and place, the others as a list of
//! places, each with the words of its message that the first does not have: no place and no name is ever omitted. What is no diagnostic stays as it is. Linters that have a line for each
//! finding are read by `lint`.

mod lint;

use std::collections::HashMap;
use std::ops::Range;
use std::sync::LazyLock;

use regex::Regex;
use schemars::JsonSchema;
use serde::Deserialize;

use crate::selection::keep;
use crate::{
    Confidence, Coverage, Definition, Input, Lines, Piece, Selection, Severity, Strategy,
    has_control, options,
};

/// The entry of the table.
pub const DEFINITION: Definition = Definition {
    name: "group_by_rule",
    description: "Groups warnings by lint rule: the first in full, places and names of all others; errors stay whole.",
    coverage: Coverage::Recognised,
    schema: options::schema::<GroupByRuleOptions>,
    create,
};

/// What a rule may say.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct GroupByRuleOptions {
    /// How findings are written: `rustc` for blocks, `lint` for a line each, with or without source.
    #[serde(default)]
    format: Format,
    /// Finds the place of a finding; the first group is the place.
    #[serde(default = "rustc_location")]
    location_pattern: String,
    /// Finds the name of the rule; the first group that takes part is the name.
    #[serde(default = "rustc_rule")]
    rule_pattern: String,
}

#[derive(Debug, Default, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
enum Format {
    #[default]
    Rustc,
    Lint,
}

/// Linters with a line for each finding.
struct Lint;

impl Strategy for Lint {
    fn apply(&self, input: &Input<'_>) -> Selection {
        lint::apply(input)
    }
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
    /// The name of the lint as the output has it, if it does.
    lint: Option<String>,
}

fn create(options: &str) -> Result<Box<dyn Strategy>, String> {
    let GroupByRuleOptions {
        format,
        location_pattern,
        rule_pattern,
    } = options::read(options)?;
    if let Format::Lint = format {
        return Ok(Box::new(Lint));
    }
    let location = options::one(&location_pattern)?;
    let rule = options::one(&rule_pattern)?;
    if location.captures_len() < 2 || rule.captures_len() < 2 {
        return Err("`location_pattern` and `rule_pattern` need a group each".to_owned());
    }
    Ok(Box::new(GroupByRule { location, rule }))
}

impl Strategy for GroupByRule {
    fn apply(&self, input: &Input<'_>) -> Selection {
        let (findings, errors) = self.findings(input.lines);
        if findings.is_empty() {
            return Selection::all(input, Confidence::Fallback);
        }
        let pieces = show(&findings, &errors, input.lines);
        Selection::from_pieces(pieces, Confidence::Full)
    }
}

impl GroupByRule {
    /// The warnings, and the blocks of errors with a place.
    fn findings(&self, lines: &Lines<'_>) -> (Vec<Finding>, Vec<Range<usize>>) {
        let (mut findings, mut errors) = (Vec::new(), Vec::new());
        let mut rule_of_message = HashMap::new();
        let mut at = 0;
        while at < lines.len() {
            let Some(end) = self.block_end(lines, at) else {
                at += 1;
                continue;
            };
            if is_warning(lines, at)
                && let Some(finding) = self.finding(lines, at..end, &mut rule_of_message)
            {
                findings.push(finding);
            } else if !is_warning(lines, at)
                && (at..end).any(|line_idx| self.location.is_match(lines.at(line_idx)))
            {
                errors.push(at..end);
            }
            at = end;
        }
        (findings, errors)
    }

    /// The end of the diagnostic that begins at `at`, or `None` when none does.
    fn block_end(&self, lines: &Lines<'_>, at: usize) -> Option<usize> {
        let mut rest = lines.range(at + 1..lines.len());
        let n_rest = lines.len() - at - 1;
        let length = if is_head(lines.at(at)) {
            let end = rest.position(|line| line.is_empty() || is_head(line));
            end.map_or(n_rest, |n| {
                // The blank line belongs to the block before it.
                n + usize::from(lines.at(at + 1 + n).is_empty())
            })
        } else if lines.severity(at).is_some() && self.location.is_match(lines.at(at)) {
            let end = rest.position(|line| !line.starts_with([' ', '\t']));
            end.unwrap_or(n_rest)
        } else {
            return None;
        };
        Some(at + 1 + length)
    }

    fn finding(
        &self,
        lines: &Lines<'_>,
        block: Range<usize>,
        rule_of_message: &mut HashMap<String, String>,
    ) -> Option<Finding> {
        let (location_line, location) = block
            .clone()
            .find_map(|line_idx| Some((line_idx, group(&self.location, lines.at(line_idx))?)))
            // It may come to stand in a note, which holds no control characters.
            .filter(|(_, location)| !has_control(location))?;
        let named = block
            .clone()
            .find_map(|line_idx| group(&self.rule, lines.at(line_idx)));
        let lint = named.as_ref().map(|rule| {
            let full = format!("clippy::{rule}");
            let mut block = lines.range(block.clone());
            let has_full = block.any(|line| line.contains(&full));
            if has_full { full } else { rule.clone() }
        });
        let message = QUOTED.replace_all(lines.at(block.start), "_").into_owned();
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
            .any(|line_idx| lines.severity(line_idx) == Some(Severity::Error));
        is_plain.then_some(Finding {
            lines: block,
            location_line,
            location,
            rule,
            lint: lint.filter(|lint| !has_control(lint)),
        })
    }
}

fn is_head(line: &str) -> bool {
    // Far cheaper than the expression, and almost always the answer.
    line.starts_with(['w', 'e']) && HEAD.is_match(line)
}

fn is_warning(lines: &Lines<'_>, line_idx: usize) -> bool {
    lines.severity(line_idx) == Some(Severity::Warning)
}

fn group(pattern: &Regex, line: &str) -> Option<String> {
    // Most lines do not match, and groups are costly.
    let captures = pattern.is_match(line).then(|| pattern.captures(line))??;
    let group = captures.iter().skip(1).flatten().next()?;
    Some(group.as_str().to_owned())
}

/// The first finding of each rule with the places of the others; errors before all of them.
fn show(findings: &[Finding], errors: &[Range<usize>], lines: &Lines<'_>) -> Vec<Piece> {
    let mut others: HashMap<&str, Others<'_>> = HashMap::new();
    let mut shown = Vec::new();
    for finding in findings {
        let head = lines.at(finding.lines.start);
        let is_told = match others.get_mut(finding.rule.as_str()) {
            Some(others) => others.add(finding, head),
            None => {
                others.insert(&finding.rule, Others::of(head));
                false
            }
        };
        if !is_told {
            shown.push(finding.lines.start);
        }
    }
    let is_behind = |error: &&Range<usize>| error.start > findings[0].lines.start;
    let first: Vec<&Range<usize>> = errors.iter().filter(is_behind).collect();
    let mut pieces: Vec<Piece> = first
        .iter()
        .map(|error| Piece::Keep((*error).clone()))
        .collect();
    let is_shown = |line_idx: usize| {
        let before = first.partition_point(|error| error.start <= line_idx);
        before > 0 && first[before - 1].contains(&line_idx)
    };
    let mut at = 0;
    let keep_rest = |lines: Range<usize>, pieces: &mut Vec<Piece>| {
        let rest = lines.filter(|line_idx| !is_shown(*line_idx));
        rest.for_each(|line_idx| keep(pieces, line_idx));
    };
    for finding in findings {
        keep_rest(at..finding.lines.start, &mut pieces);
        at = finding.lines.end;
        if shown.binary_search(&finding.lines.start).is_err() {
            continue;
        }
        keep(&mut pieces, finding.lines.start);
        if finding.location_line != finding.lines.start {
            keep(&mut pieces, finding.location_line);
        }
        let others = others.remove(finding.rule.as_str());
        let notes = others.map_or_else(Vec::new, |others| others.notes(finding));
        pieces.extend(notes.into_iter().map(Piece::Note));
    }
    keep_rest(at..lines.len(), &mut pieces);
    pieces
}

/// Most words of a message that are told beside its place; one with more of its own is shown itself.
const OWN_WORDS_MAX: usize = 12;

/// Bytes of a note with places behind which another one begins.
const NOTE_BYTES: usize = 16 * 1024;

/// The findings of a rule behind the first.
struct Others<'a> {
    first: Vec<&'a str>,
    /// Their places, and what each says that the first does not.
    said: Vec<(&'a str, Vec<&'a str>)>,
}

impl<'a> Others<'a> {
    /// `head` is the message of the first.
    fn of(head: &'a str) -> Self {
        Self {
            first: words(head).collect(),
            said: Vec::new(),
        }
    }

    /// Adds another one; `false` when it cannot be told in few words.
    fn add(&mut self, finding: &'a Finding, head: &'a str) -> bool {
        let mut own: Vec<&str> = Vec::new();
        let is_own =
            |word: &&str| !self.first.contains(word) && !word.starts_with(&finding.location);
        for word in words(head).filter(is_own) {
            if own.len() >= OWN_WORDS_MAX || has_control(word) || is_place(word) {
                return false;
            }
            if !own.contains(&word) {
                own.push(word);
            }
        }
        self.said.push((&finding.location, own));
        true
    }

    /// The name of the lint, and the other places, in as many notes as they need.
    fn notes(&self, first: &Finding) -> Vec<String> {
        let lint = first.lint.as_deref().unwrap_or("this");
        if self.said.is_empty() {
            return first.lint.iter().cloned().collect();
        }
        let has_own = self.said.iter().any(|(_, own)| !own.is_empty());
        let between = if has_own { ", " } else { " " };
        let mut notes = Vec::new();
        let mut note = format!("{} more of {lint}: ", self.said.len());
        for (place_idx, (place, own)) in self.said.iter().enumerate() {
            if note.len() > NOTE_BYTES {
                notes.push(std::mem::replace(&mut note, format!("{lint}: ")));
            } else if place_idx > 0 {
                note.push_str(between);
            }
            note.push_str(place);
            for word in own {
                note.push(' ');
                note.push_str(word);
            }
        }
        notes.push(note);
        notes
    }
}

/// Whether a word would be looked for in the output as a place.
fn is_place(word: &str) -> bool {
    let mut pairs = word.as_bytes().array_windows();
    pairs.any(|[colon, digit]| *colon == b':' && digit.is_ascii_digit())
}

/// The words of a message without quotes and punctuation around them.
fn words(message: &str) -> impl Iterator<Item = &str> {
    let is_around = |c: char| {
        matches!(
            c,
            '`' | '\'' | '"' | '‘' | '’' | '(' | ')' | ',' | ':' | ';' | '.'
        )
    };
    let words = message.split_whitespace();
    let words = words.map(move |word| word.trim_matches(is_around));
    words.filter(|word| !word.is_empty())
}
