//! The lines of a log that belong together: a line with what is indented below it, a trace, a value over several lines.
//!
//! It is told line by line, behind what `docker compose` and `journald` put before each line. Where sources interleave, the parts of a
//! record are not put together.

use crate::text::{depth, is_blank, is_number, trim_start};

/// Bytes of a line within which the name and the number of a process end.
const NAME_BYTES_MAX: usize = 160;

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
    pub(super) fn of(line: &'a str) -> Self {
        let (source, text) = split(line);
        let said = trim_start(text);
        let kind = if said.starts_with("Traceback (most recent call last)") {
            RecordKind::Traceback
        } else if said.starts_with("goroutine ") {
            RecordKind::Goroutine
        } else {
            RecordKind::Indented
        };
        Self {
            source,
            kind,
            depth: text.len() - said.len(),
            n_lines: 1,
            is_inside: false,
        }
    }

    /// Whether it is a part of a record that another source parted from its beginning.
    pub(super) fn is_part(&self) -> bool {
        !self.source.is_empty() && self.depth > 0
    }

    /// Whether the next line belongs to it.
    pub(super) fn takes(&self, next: &str) -> bool {
        // Nearly all lines of most logs: no place for them is looked for.
        let may_be = self.kind != RecordKind::Indented || self.n_lines > 1;
        if self.source.is_empty() && !may_be && !next.starts_with([' ', '\t', 'C', 'S']) {
            return false;
        }
        let (source, text) = split(next);
        if source != self.source || is_blank(text) {
            return false;
        }
        let said = trim_start(text);
        let depth = text.len() - said.len();
        let is_more = ["Caused by: ", "Suppressed: "]
            .iter()
            .any(|start| said.starts_with(start));
        let is_end = || said.starts_with(['}', ']', ')']) && depth == self.depth;
        let is_message = self.kind == RecordKind::Traceback && depth == self.depth;
        depth > self.depth
            || is_more
            || self.kind == RecordKind::Goroutine
            || (self.is_inside && (is_end() || is_message))
    }

    /// Adds the next line.
    pub(super) fn add(&mut self, next: &str) {
        let (_, text) = split(next);
        self.n_lines += 1;
        self.is_inside = depth(text) > self.depth;
    }
}

/// The source of a line and what it wrote: `web-1  | text`, `May  1 10:00:00 host shop[812]: text`; without a source for other lines.
fn split(line: &str) -> (&str, &str) {
    let found = service(line).or_else(|| process(line));
    found.unwrap_or(("", line))
}

fn service(line: &str) -> Option<(&str, &str)> {
    let (name, rest) = line.split_once(' ')?;
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
