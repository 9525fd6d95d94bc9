//! `read`: a page of a text file with line numbers.
//!
//! Streams: a file larger than the guest's memory is paged like any other. Changes nothing.

use std::borrow::Cow;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use zeph_plugin::{Output, ToolError};

use crate::area::{Area, AreaPath};
use crate::magic;
use crate::refusal::{existing_file, explain};
use crate::text::{LINE_CHARS_MAX, bytes, counted, grouped, line};

mod lines;

use lines::{PageLine, PageLines, Rest};

/// Bytes of one page: more than nearly every text that people write, since each page costs a call that reads the file from its start. How
/// much of it a model is shown at once is the host's decision (`tools.overflow.threshold`).
const PAGE_BYTES_MAX: usize = 2 * 1024 * 1024;
/// Bytes of a line, to make room for a page before it is read.
const LINE_BYTES: u64 = 128;
/// Bytes scanned behind a page to say how many lines are left. More would make paging through huge files slow.
const COUNT_BYTES_MAX: u64 = 256 * 1024 * 1024;

/// The arguments of `read`.
#[derive(Debug, Deserialize, JsonSchema)]
pub struct Args {
    /// The file, absolute or relative to the working directory.
    pub path: String,
    /// Lines to skip: 0 starts at the first line.
    #[serde(default)]
    pub offset: u64,
    /// Most lines to return.
    #[serde(default = "limit_default")]
    #[schemars(range(min = 1))]
    pub limit: u64,
}

fn limit_default() -> u64 {
    2_000
}

/// The structured result of `read`.
#[derive(Debug, Serialize, JsonSchema)]
pub struct Page {
    /// The file.
    path: String,
    /// Its size in bytes.
    size: u64,
    /// Lines skipped before this page.
    offset: u64,
    /// Lines in this page.
    lines: u64,
    /// The offset of the next page, if there is more.
    #[serde(skip_serializing_if = "Option::is_none")]
    next_offset: Option<u64>,
    /// Lines in the file, if they were all counted.
    #[serde(skip_serializing_if = "Option::is_none")]
    total_lines: Option<u64>,
}

/// Runs `read`.
///
/// Errors: the path is no file of text that can be read, or the page begins behind its end.
pub fn run(area: &Area, args: &Args) -> Result<Output, ToolError> {
    if args.limit == 0 {
        return Err(ToolError::invalid_parameters("`limit` must be at least 1"));
    }
    let place = area.place(&args.path)?;
    let size = existing_file(&place, "read")?.size;
    let failed = |error| explain(&place, "read", &error);
    let file = place.root().open(place.relative()).map_err(failed)?;
    let mut source = PageLines::new(file, size);
    if let Some(kind) = magic::binary_kind(source.peek().map_err(failed)?) {
        let (path, size) = (place.shown(), bytes(size));
        return Err(ToolError::permanent(format!(
            "`{path}` is not text: {kind}, {size}"
        )));
    }

    let n_skipped = source.skip(args.offset).map_err(failed)?;
    let room = size.min(args.limit.saturating_mul(LINE_BYTES));
    let mut body = PageBody::with_room(usize::try_from(room).unwrap_or(usize::MAX));
    while body.n_lines < args.limit && body.text.len() < PAGE_BYTES_MAX {
        let Some(found) = source.take().map_err(failed)? else {
            break;
        };
        body.push(n_skipped + body.n_lines, &found);
    }
    if body.n_lines == 0 && args.offset > 0 {
        return Err(beyond_the_end(&place, args.offset, n_skipped));
    }
    let rest = source.rest(COUNT_BYTES_MAX).map_err(failed)?;
    let ended = matches!(rest, Rest::Exactly(_));
    body.shrunk = ended && source.position() < size;
    Ok(output(&place, size, n_skipped, body, rest))
}

/// Most lines that are named for their ends.
const LINES_NAMED_MAX: usize = 5;

/// How the lines of a page end. A line that is kept in part does not count: its end is not known.
#[derive(Debug, Default)]
struct LineEnds {
    crlf: LinesOfEnd,
    lf: LinesOfEnd,
}

/// The lines with one kind of end.
#[derive(Debug, Default)]
struct LinesOfEnd {
    n: u64,
    first: Vec<u64>,
}

impl LinesOfEnd {
    fn add(&mut self, number: u64) {
        self.n += 1;
        if self.first.len() < LINES_NAMED_MAX {
            self.first.push(number);
        }
    }

    fn named(&self) -> String {
        let numbers: Vec<String> = self.first.iter().map(|number| grouped(*number)).collect();
        let noun = if self.n == 1 { "line" } else { "lines" };
        let more = match self.n - numbers.len() as u64 {
            0 => String::new(),
            n_more => format!(" and {} more", grouped(n_more)),
        };
        format!("{noun} {}{more}", numbers.join(", "))
    }
}

impl LineEnds {
    /// What cannot be seen of them: an edit has to find a text with the ends that it has.
    fn note(&self) -> Option<String> {
        let (usual, other, rare) = match (self.crlf.n, self.lf.n) {
            (0, _) => return None,
            (_, 0) => return Some("lines end in CRLF".to_owned()),
            (n_crlf, n_lf) if n_crlf < n_lf => ("LF", "CRLF", &self.crlf),
            _ => ("CRLF", "LF", &self.lf),
        };
        Some(format!(
            "line ends are mixed: {usual}, but {other} in {}",
            rare.named()
        ))
    }
}

/// The lines of a page as they are printed, and what was special about them.
#[derive(Debug, Default)]
struct PageBody {
    text: String,
    n_lines: u64,
    not_utf8: bool,
    ends: LineEnds,
    shrunk: bool,
}

impl PageBody {
    fn with_room(n_bytes: usize) -> Self {
        Self {
            text: String::with_capacity(n_bytes.min(PAGE_BYTES_MAX)),
            ..Self::default()
        }
    }

    fn push(&mut self, idx: u64, found: &PageLine<'_>) {
        let mut head = &*found.head;
        let mut len = found.len;
        if idx == 0 && head.starts_with(b"\xef\xbb\xbf") {
            (head, len) = (&head[3..], len - 3);
        }
        // Only a whole line that has an end can end in CRLF: one kept in part ends in the middle of itself, and the last may have no end.
        let is_whole = head.len() as u64 == len && found.is_ended;
        if is_whole && head.ends_with(b"\r") {
            (head, len) = (&head[..head.len() - 1], len - 1);
            self.ends.crlf.add(idx + 1);
        } else if is_whole {
            self.ends.lf.add(idx + 1);
        }
        let shown = line(head, len, LINE_CHARS_MAX);
        // What is shown as it stands is UTF-8. Bytes are not compared: here, that takes as long as reading the line.
        let is_same = matches!(shown, Cow::Borrowed(text) if text.len() == head.len());
        self.not_utf8 |= !is_same && head.len() as u64 == len && std::str::from_utf8(head).is_err();
        self.n_lines += 1;
        push_number(&mut self.text, idx + 1);
        self.text.push('\t');
        self.text.push_str(&shown);
        self.text.push('\n');
    }

    fn notes(&self) -> Vec<String> {
        let not_utf8 = "not UTF-8: unreadable bytes are shown as \u{fffd}";
        let shrunk = "the file became shorter while it was read";
        let notes = [
            self.not_utf8.then(|| not_utf8.to_owned()),
            self.ends.note(),
            self.shrunk.then(|| shrunk.to_owned()),
        ];
        notes.into_iter().flatten().collect()
    }
}

/// Writes `number` to the right of four places. The general way of formatting takes longer than all else that is done with a line.
fn push_number(text: &mut String, mut number: u64) {
    const PLACES: usize = 4;
    let mut digits = [b' '; 20];
    let mut start = digits.len();
    while number > 0 || start == digits.len() {
        start -= 1;
        digits[start] = b'0' + u8::try_from(number % 10).unwrap_or_default();
        number /= 10;
    }
    let start = start.min(digits.len() - PLACES);
    text.push_str(std::str::from_utf8(&digits[start..]).unwrap_or_default());
}

fn beyond_the_end(place: &AreaPath<'_>, offset: u64, n_lines: u64) -> ToolError {
    ToolError::invalid_parameters(format!(
        "`offset` {} is beyond the end: `{}` has {}",
        grouped(offset),
        place.shown(),
        counted(n_lines, "line", "lines")
    ))
}

fn output(place: &AreaPath<'_>, size: u64, offset: u64, body: PageBody, rest: Rest) -> Output {
    let end = offset + body.n_lines;
    let notes = body.notes();
    // The page is moved, not copied.
    let mut text = body.text;
    match body.n_lines {
        0 => text = format!("`{}` is empty", place.shown()),
        _ => text.truncate(text.trim_end_matches('\n').len()),
    }
    let left = match rest {
        Rest::Exactly(0) => None,
        Rest::Exactly(left) => Some(counted(left, "more line", "more lines")),
        Rest::MoreThan(left) => Some(format!("more than {} more lines", grouped(left))),
    };
    if let Some(left) = &left {
        text.push_str(&format!("\n… {left}; continue with offset={end}"));
    }
    for note in notes {
        text.push_str(&format!("\n[{note}]"));
    }
    let page = Page {
        path: place.spelled(),
        size,
        offset,
        lines: body.n_lines,
        next_offset: left.map(|_| end),
        total_lines: match rest {
            Rest::Exactly(left) => Some(end + left),
            Rest::MoreThan(_) => None,
        },
    };
    Output::text(text)
        .structured(&page)
        .location(place.absolute(), u32::try_from(offset + 1).ok())
}

#[cfg(test)]
mod tests;
