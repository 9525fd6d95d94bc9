//! The lines of a log that belong together: a line with what is indented below it, a trace, a value over several lines.
//!
//! It is told line by line, behind what `docker compose` and `journald` put before each line. Where sources interleave, the parts of a
//! record are not put together.

use crate::text::{is_number, trim_start};

/// Bytes of a line within which the name and the number of a process end.
const NAME_BYTES_MAX: usize = 160;

/// A line, taken apart once.
#[derive(Debug, Clone, Copy)]
pub(super) struct Line<'a> {
    pub(super) whole: &'a str,
    /// Who wrote it: `web-1  | text`, `May  1 10:00:00 host shop[812]: text`; empty for other lines.
    source: &'a str,
    /// What it wrote, without the blanks before it.
    said: &'a str,
    /// How many of these there are.
    depth: usize,
}

impl<'a> Line<'a> {
    pub(super) fn of(whole: &'a str) -> Self {
        let found = service(whole).or_else(|| process(whole));
        let (source, text) = found.unwrap_or(("", whole));
        let said = trim_start(text);
        Self {
            whole,
            source,
            said,
            depth: text.len() - said.len(),
        }
    }
}

/// A record, of which the lines so far are known.
#[derive(Debug)]
pub(super) struct Record<'a> {
    source: &'a str,
    kind: RecordKind,
    /// How far in its first line stands.
    depth: usize,
    n_lines: usize,
    /// The last line stands further in than the first.
    is_inside: bool,
}

/// What its first line says of those below it.
#[derive(Debug, PartialEq, Eq)]
enum RecordKind {
    /// What stands further in belongs to it.
    Indented,
    /// As above, and the message below its frames does, too.
    Traceback,
    /// All up to a blank line.
    Goroutine,
}

impl<'a> Record<'a> {
    pub(super) fn of(line: Line<'a>) -> Self {
        let said = line.said;
        let kind = if said.starts_with("Traceback (most recent call last)") {
            RecordKind::Traceback
        } else if said.starts_with("goroutine ") {
            RecordKind::Goroutine
        } else {
            RecordKind::Indented
        };
        Self {
            source: line.source,
            kind,
            depth: line.depth,
            n_lines: 1,
            is_inside: false,
        }
    }

    /// Whether it is a part of a record that another source parted from its beginning.
    pub(super) fn is_part(&self) -> bool {
        !self.source.is_empty() && self.depth > 0
    }

    /// Whether the next line belongs to it.
    pub(super) fn takes(&self, next: Line<'_>) -> bool {
        let Line {
            whole,
            source,
            said,
            depth,
        } = next;
        // Nearly all lines of most logs.
        let may_be = self.kind != RecordKind::Indented || self.n_lines > 1;
        if self.source.is_empty() && !may_be && !whole.starts_with([' ', '\t', 'C', 'S']) {
            return false;
        }
        if source != self.source || said.is_empty() {
            return false;
        }
        let is_more = || said.starts_with("Caused by: ") || said.starts_with("Suppressed: ");
        let is_end = || said.starts_with(['}', ']', ')']) && depth == self.depth;
        let is_message = self.kind == RecordKind::Traceback && depth == self.depth;
        depth > self.depth
            || is_more()
            || self.kind == RecordKind::Goroutine
            || (self.is_inside && (is_end() || is_message))
    }

    /// Adds the next line.
    pub(super) fn add(&mut self, next: Line<'_>) {
        self.n_lines += 1;
        self.is_inside = next.depth > self.depth;
    }
}

fn service(line: &str) -> Option<(&str, &str)> {
    // By bytes: nearly no line has a bar there.
    let end = memchr::memchr(b' ', line.as_bytes())?;
    let (name, rest) = line.split_at(end);
    let rest = rest.trim_start_matches(' ').strip_prefix('|')?;
    (!name.is_empty()).then(|| (name, rest.strip_prefix(' ').unwrap_or(rest)))
}

fn process(line: &str) -> Option<(&str, &str)> {
    let head = &line.as_bytes()[..line.len().min(NAME_BYTES_MAX)];
    let end = memchr::memchr(b']', head)?;
    let text = line.get(end + 1..)?.strip_prefix(": ")?;
    let name = line.get(..end)?;
    let (_, number) = name.rsplit_once('[')?;
    is_number(number).then(|| (name.rsplit(' ').next().unwrap_or(name), text))
}
