//! Taking the output of a linter apart into findings.

use std::ops::Range;

use super::message::fit_note;
use crate::{Lines, Severity, has_control, severity};

/// One finding.
#[derive(Debug)]
pub(super) struct Finding<'a> {
    /// All of its lines.
    pub(super) lines: Range<usize>,
    /// Those that are shown: not the source printed around it.
    pub(super) shown: Vec<usize>,
    /// As the output has it.
    pub(super) place: &'a str,
    /// The place has the file; otherwise the file stands above.
    pub(super) has_path: bool,
    /// What it says, without the place.
    pub(super) texts: Vec<&'a str>,
    /// The name of the rule, where it stands apart.
    pub(super) rule: &'a str,
}

impl Finding<'_> {
    /// Whether a note can tell it.
    pub(super) fn fits_note(&self) -> bool {
        !has_control(self.place) && fit_note(self)
    }
}

/// What a line, or several, are.
#[derive(Debug)]
pub(super) enum Line<'a> {
    /// A file, with findings below it.
    File(usize),
    Finding(Finding<'a>),
    /// Source that nobody needs, or a blank line.
    Source,
    /// Anything else; it is shown.
    Other(usize),
}

impl<'a> Line<'a> {
    pub(super) fn finding(&self) -> Option<&Finding<'a>> {
        match self {
            Self::Finding(finding) => Some(finding),
            _ => None,
        }
    }
}

/// Takes an output apart.
pub(super) fn read<'a>(lines: &Lines<'a>) -> Vec<Line<'a>> {
    let mut read = Vec::new();
    let mut at = 0;
    while at < lines.len() {
        if let Some(finding) = finding(lines, at) {
            at = finding.lines.end;
            read.push(Line::Finding(finding));
            continue;
        }
        read.push(if is_file(lines, at) {
            Line::File(at)
        } else if lines.at(at).trim().is_empty() {
            Line::Source
        } else {
            Line::Other(at)
        });
        at += 1;
    }
    read
}

fn finding<'a>(lines: &Lines<'a>, at: usize) -> Option<Finding<'a>> {
    if let Some(finding) = with_arrow(lines, at) {
        return Some(finding);
    }
    if let Some((place, text)) = below_file(lines.at(at)) {
        let rule = text.rsplit("  ").next().unwrap_or_default().trim();
        return Some(Finding {
            lines: at..at + 1,
            shown: vec![at],
            place,
            has_path: false,
            texts: vec![text],
            rule: if rule.contains(' ') { "" } else { rule },
        });
    }
    let (place, text) = with_path(lines.at(at))?;
    let mut finding = Finding {
        lines: at..at + 1,
        shown: vec![at],
        place,
        has_path: true,
        texts: vec![text],
        rule: "",
    };
    take_more(lines, &mut finding);
    Some(finding)
}

/// `F401 [*] message`, and ` --> src/a.py:1:8` in the next line.
fn with_arrow<'a>(lines: &Lines<'a>, at: usize) -> Option<Finding<'a>> {
    let place = lines
        .get(at + 1)?
        .trim_start()
        .strip_prefix("--> ")?
        .trim_end();
    let is_head = has_code(lines.at(at)) && !place.contains(' ');
    is_head.then_some(())?;
    let mut shown = vec![at, at + 1];
    let mut texts = vec![lines.at(at)];
    let mut end = at + 2;
    while let Some(line) = lines.get(end).filter(|line| is_around(line)) {
        if line.starts_with("help: ") {
            shown.push(end);
            texts.push(line);
        }
        end += 1;
    }
    Some(Finding {
        lines: at..end,
        shown,
        place,
        has_path: true,
        texts,
        rule: "",
    })
}

/// `F401 …` or `invalid-syntax: …`.
fn has_code(line: &str) -> bool {
    let word = line.split(' ').next().unwrap_or_default();
    let digits = word.trim_start_matches(|c: char| c.is_ascii_uppercase());
    let is_numbered = digits.len() < word.len() && is_number(digits);
    let is_named = word
        .strip_suffix(':')
        .is_some_and(|name| name.contains('-'));
    is_numbered || is_named
}

/// Source with its numbers, what would change in it, and advice.
fn is_around(line: &str) -> bool {
    let text = line.trim_start();
    let rest = text.trim_start_matches(|c: char| c.is_ascii_digit());
    let is_numbered = rest.len() < text.len();
    let sign = rest.trim_start();
    sign.starts_with('|')
        || (is_numbered && (sign.is_empty() || sign.starts_with(['+', '-'])))
        || line.starts_with("help: ")
        || line.starts_with("note: ")
        || text == "..."
}

/// `  12:5  error  message  rule`, below the name of a file.
fn below_file(line: &str) -> Option<(&str, &str)> {
    let text = line.strip_prefix(' ')?.trim_start();
    let (place, rest) = text.split_once(char::is_whitespace)?;
    let (row, column) = place.split_once(':')?;
    (is_number(row) && is_number(column)).then_some((place, rest.trim()))
}

/// A line without findings, before the first finding of its file: `/home/dev/a.js`, `src/a.py:`.
fn is_file(lines: &Lines<'_>, at: usize) -> bool {
    let is_path = !lines.at(at).starts_with(' ') && !lines.at(at).trim().is_empty();
    let next = lines.get(at + 1).unwrap_or_default();
    is_path && below_file(next).is_some()
}

/// `path:1:2: message`, `path:1:2 - message`, `path(1,2): message`: the place and the message.
fn with_path(line: &str) -> Option<(&str, &str)> {
    let text = line.trim_start();
    let (word, rest) = text.split_once(' ')?;
    let is_dashed = rest.starts_with("- ");
    let is_ended = word.ends_with(':');
    let is_indented = text.len() < line.len();
    if !is_dashed && (is_indented || !is_ended) {
        return None;
    }
    let place = word.trim_end_matches(':');
    let is_place = match place.strip_suffix(')') {
        Some(inner) => {
            let (path, numbers) = inner.rsplit_once('(')?;
            is_file_name(path) && numbers.split(',').all(is_number)
        }
        None => {
            let numbers = place
                .split(':')
                .rev()
                .take_while(|part| is_number(part))
                .count();
            let path = place.splitn(numbers + 1, ':').next().unwrap_or_default();
            (1..=2).contains(&numbers)
                && is_file_name(path)
                && place.split(':').count() == numbers + 1
        }
    };
    is_place.then(|| (place, rest.trim_start_matches("- ").trim()))
}

fn is_file_name(path: &str) -> bool {
    let name = path.rsplit(['/', '\\']).next().unwrap_or(path);
    name.contains('.') || path.contains('/') || name == "Rakefile" || name == "Gemfile"
}

fn is_number(text: &str) -> bool {
    !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit())
}

/// The lines that belong to a finding: more of its message, remarks on it, and its source.
fn take_more<'a>(lines: &Lines<'a>, finding: &mut Finding<'a>) {
    take_wrapped(lines, finding);
    while let Some(line) = lines.get(finding.lines.end) {
        let end = finding.lines.end;
        let next = lines.get(end + 1).unwrap_or_default();
        if let Some((place, text)) = with_path(line).filter(|(_, text)| text.starts_with("note:")) {
            let is_same = place == finding.place;
            finding.texts.push(if is_same { text } else { line });
            finding.shown.push(end);
            finding.lines.end += 1;
        } else if let Some(n) = source(line, next, lines.get(end + 2).unwrap_or_default()) {
            finding.lines.end += n;
        } else if line.starts_with("  ") && with_path(line).is_none() && below_file(line).is_none()
        {
            finding.texts.push(line.trim());
            finding.shown.push(end);
            finding.lines.end += 1;
        } else {
            break;
        }
    }
}

/// How many lines of source begin here: a line with a pointer below it, a blank one before it or not.
fn source(line: &str, next: &str, third: &str) -> Option<usize> {
    if line.trim().is_empty() {
        let is_below = is_pointer(third) && !next.trim().is_empty() && may_be_source(next);
        return is_below.then_some(3);
    }
    (is_pointer(next) && may_be_source(line)).then_some(2)
}

fn may_be_source(line: &str) -> bool {
    with_path(line).is_none() && severity(line) != Some(Severity::Error)
}

fn is_pointer(line: &str) -> bool {
    let text = line.trim();
    !text.is_empty() && text.chars().all(|c| matches!(c, '^' | '~'))
}

/// mypy breaks a message that is longer than the terminal; its code in brackets ends it.
fn take_wrapped<'a>(lines: &Lines<'a>, finding: &mut Finding<'a>) {
    const LINES_MAX: usize = 4;
    let first = finding.lines.end;
    let text = finding.texts[0];
    if !text.starts_with("error: ") || text.ends_with(']') {
        return;
    }
    let more = lines.range(first..lines.len()).take(LINES_MAX);
    let is_plain = |line: &&str| !line.is_empty() && !line.starts_with(' ') && may_be_source(line);
    let more: Vec<&str> = more.take_while(is_plain).collect();
    let Some(last) = more.iter().position(|line| line.ends_with(']')) else {
        return;
    };
    for (line_idx, line) in (first..).zip(&more[..=last]) {
        finding.texts.push(line);
        finding.shown.push(line_idx);
        finding.lines.end += 1;
    }
}
