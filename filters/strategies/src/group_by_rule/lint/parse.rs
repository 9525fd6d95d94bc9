//! Taking the output of a linter apart into findings.

use std::ops::Range;

use crate::text::{is_blank, is_number, trim, trim_end, trim_start};
use crate::{Lines, Severity, severity};

/// One finding. Small: a long output has one in nearly every line.
#[derive(Debug)]
pub(super) struct Finding<'a> {
    /// Its first line, which is shown.
    first: u32,
    /// Twice as many as it has, and one more when the place has the file; otherwise the file stands above.
    n_lines: u32,
    place: Part,
    /// What it says, without the place.
    text: Part,
    more: Option<Box<More<'a>>>,
}

/// A part of the output: half of what a `&str` takes.
#[derive(Debug, Clone, Copy)]
struct Part {
    start: u32,
    n_bytes: u32,
}

impl Part {
    /// Where `part` stands in the output that it is a part of.
    fn of(output: &str, part: &str) -> Option<Self> {
        let start = part.as_ptr().addr().checked_sub(output.as_ptr().addr())?;
        Some(Self {
            start: u32::try_from(start).ok()?,
            n_bytes: u32::try_from(part.len()).ok()?,
        })
    }

    fn text(self, output: &str) -> &str {
        let start = self.start as usize;
        let text = output.get(start..start + self.n_bytes as usize);
        text.unwrap_or_default()
    }
}

/// What few findings have.
#[derive(Debug, Default)]
struct More<'a> {
    /// More lines that are shown: not the source printed around it.
    shown: Vec<usize>,
    /// More of what it says.
    texts: Vec<&'a str>,
}

/// The words of a finding of one line, and whether its place has the file.
pub(super) type Message<'a> = (&'a str, bool);

impl<'a> Finding<'a> {
    /// A finding of one line.
    fn of(
        lines: &Lines<'a>,
        line_idx: usize,
        place: &str,
        has_path: bool,
        text: &str,
    ) -> Option<Self> {
        Some(Self {
            first: u32::try_from(line_idx).ok()?,
            n_lines: 2 + u32::from(has_path),
            place: Part::of(lines.text(), place)?,
            text: Part::of(lines.text(), text)?,
            more: None,
        })
    }

    /// Its place, as the output has it.
    pub(super) fn place(&self, output: &'a str) -> &'a str {
        self.place.text(output)
    }

    /// Whether the place has the file.
    pub(super) fn has_path(&self) -> bool {
        self.n_lines & 1 == 1
    }

    /// All of its lines.
    pub(super) fn lines(&self) -> Range<usize> {
        self.first as usize..self.end()
    }

    /// The line after its last one.
    fn end(&self) -> usize {
        self.first as usize + (self.n_lines >> 1) as usize
    }

    /// Adds lines that are not shown.
    fn skip(&mut self, n_lines: usize) {
        self.n_lines += u32::try_from(2 * n_lines).unwrap_or_default();
    }

    /// Adds a line that is shown.
    fn add(&mut self, text: Option<&'a str>) {
        let line_idx = self.end();
        let more = self.more.get_or_insert_default();
        more.shown.push(line_idx);
        more.texts.extend(text);
        self.skip(1);
    }

    /// The lines that are shown.
    pub(super) fn shown(&self) -> impl Iterator<Item = usize> {
        let more = self.more.iter().flat_map(|more| &more.shown);
        std::iter::once(self.first as usize).chain(more.copied())
    }

    /// What it says, without the place.
    pub(super) fn texts(&self, output: &'a str) -> impl Iterator<Item = &'a str> {
        let more = self.more.iter().flat_map(|more| &more.texts);
        std::iter::once(self.text.text(output)).chain(more.copied())
    }

    /// What it says and whether its place has the file, where it is of one line: two findings of which that is the same differ in their
    /// places alone.
    pub(super) fn message(&self, output: &'a str) -> Option<Message<'a>> {
        let is_one = self.more.is_none();
        is_one.then(|| (self.text.text(output), self.has_path()))
    }

    /// The name of the rule, where it stands apart.
    pub(super) fn rule(&self, output: &'a str) -> &'a str {
        let last = self
            .text
            .text(output)
            .rsplit("  ")
            .next()
            .unwrap_or_default();
        let rule = trim(last);
        let is_apart = !self.has_path() && !rule.contains(' ');
        if is_apart { rule } else { "" }
    }
}

/// Bytes of output for each finding, roughly and rather too few.
const FINDING_BYTES: usize = 48;

/// The findings of an output. Nothing is noted of other lines: a long output may have very many.
pub(super) fn read<'a>(lines: &Lines<'a>) -> Vec<Finding<'a>> {
    // Growing step by step would take twice as much.
    let n_likely = lines.len().min(lines.text().len() / FINDING_BYTES);
    let mut read = Vec::with_capacity(n_likely);
    let mut at = 0;
    while at < lines.len() {
        match finding(lines, at) {
            Some(finding) => {
                at = finding.lines().end;
                read.push(finding);
            }
            None => at += 1,
        }
    }
    read
}

fn finding<'a>(lines: &Lines<'a>, at: usize) -> Option<Finding<'a>> {
    if let Some(finding) = with_arrow(lines, at) {
        return Some(finding);
    }
    let line = lines.at(at);
    if let Some((place, text)) = below_file(line) {
        return Finding::of(lines, at, place, false, text);
    }
    let (place, text) = with_path(line)?;
    let mut finding = Finding::of(lines, at, place, true, text)?;
    take_more(lines, &mut finding);
    Some(finding)
}

/// `F401 [*] message`, and ` --> src/a.py:1:8` in the next line.
fn with_arrow<'a>(lines: &Lines<'a>, at: usize) -> Option<Finding<'a>> {
    // Nearly all: findings that have their place in their own line.
    if lines.at(at).starts_with(' ') {
        return None;
    }
    let place = trim_end(trim_start(lines.get(at + 1)?).strip_prefix("--> ")?);
    let is_head = has_code(lines.at(at)) && !place.contains(' ');
    is_head.then_some(())?;
    let mut finding = Finding::of(lines, at, place, true, lines.at(at))?;
    finding.add(None);
    let mut is_helped = false;
    while let Some(line) = lines
        .get(finding.end())
        .filter(|line| is_around(line) || (is_helped && is_removed(line)))
    {
        let is_help = line.starts_with("help: ");
        match is_help {
            true => finding.add(Some(line)),
            false => finding.skip(1),
        }
        is_helped |= is_help;
    }
    Some(finding)
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
    let text = trim_start(line);
    let rest = text.trim_start_matches(|c: char| c.is_ascii_digit());
    let is_numbered = rest.len() < text.len();
    let sign = trim_start(rest);
    sign.starts_with('|')
        || (is_numbered && (sign.is_empty() || sign.starts_with(['+', '-'])))
        || line.starts_with("help: ")
        || line.starts_with("note: ")
        || text == "..."
}

/// `  - import os`, below advice: a line that would go has no number.
fn is_removed(line: &str) -> bool {
    let text = trim_start(line);
    text.len() < line.len() && (text == "-" || text.starts_with("- "))
}

/// `  12:5  error  message  rule`, below the name of a file.
fn below_file(line: &str) -> Option<(&str, &str)> {
    let text = trim_start(line.strip_prefix(' ')?);
    let row = n_digits(text);
    let column = n_digits(text[row..].strip_prefix(':')?);
    let (place, rest) = text.split_at(row + 1 + column);
    let is_place = row > 0 && column > 0 && rest.starts_with(char::is_whitespace);
    is_place.then(|| (place, trim(rest)))
}

/// A line without findings, before the first finding of its file: `/home/dev/a.js`, `src/a.py:`.
pub(super) fn is_file(lines: &Lines<'_>, at: usize) -> bool {
    let is_path = !lines.at(at).starts_with(' ') && !is_blank(lines.at(at));
    let next = lines.get(at + 1).unwrap_or_default();
    is_path && below_file(next).is_some()
}

/// `path:1:2: message`, `path:1:2 - message`, `path(1,2): message`: the place and the message.
fn with_path(line: &str) -> Option<(&str, &str)> {
    let text = trim_start(line);
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

fn n_digits(text: &str) -> usize {
    text.bytes().take_while(u8::is_ascii_digit).count()
}

/// The lines that belong to a finding: more of its message, remarks on it, and its source.
fn take_more<'a>(lines: &Lines<'a>, finding: &mut Finding<'a>) {
    take_wrapped(lines, finding);
    while let Some(line) = lines.get(finding.end()) {
        let end = finding.end();
        let next = lines.get(end + 1).unwrap_or_default();
        if let Some((place, text)) = with_path(line).filter(|(_, text)| text.starts_with("note:")) {
            let is_same = place == finding.place(lines.text());
            finding.add(Some(if is_same { text } else { line }));
        } else if let Some(n) = source(line, next, lines.get(end + 2).unwrap_or_default()) {
            finding.skip(n);
        } else if line.starts_with("  ") && with_path(line).is_none() && below_file(line).is_none()
        {
            finding.add(Some(trim(line)));
        } else {
            break;
        }
    }
}

/// How many lines of source begin here: a line with a pointer below it, a blank one before it or not.
fn source(line: &str, next: &str, third: &str) -> Option<usize> {
    if is_blank(line) {
        let is_below = is_pointer(third) && !is_blank(next) && may_be_source(next);
        return is_below.then_some(3);
    }
    (is_pointer(next) && may_be_source(line)).then_some(2)
}

fn may_be_source(line: &str) -> bool {
    with_path(line).is_none() && severity(line) != Some(Severity::Error)
}

fn is_pointer(line: &str) -> bool {
    let text = trim(line);
    !text.is_empty() && text.chars().all(|c| matches!(c, '^' | '~'))
}

/// mypy breaks a message that is longer than the terminal; its code in brackets ends it.
fn take_wrapped<'a>(lines: &Lines<'a>, finding: &mut Finding<'a>) {
    const LINES_MAX: usize = 4;
    let first = finding.end();
    let text = finding.text.text(lines.text());
    if !text.starts_with("error: ") || text.ends_with(']') {
        return;
    }
    let more = lines.range(first..lines.len()).take(LINES_MAX);
    let is_plain = |line: &&str| !line.is_empty() && !line.starts_with(' ') && may_be_source(line);
    let more: Vec<&str> = more.take_while(is_plain).collect();
    let Some(last) = more.iter().position(|line| line.ends_with(']')) else {
        return;
    };
    for line in &more[..=last] {
        finding.add(Some(line));
    }
}
