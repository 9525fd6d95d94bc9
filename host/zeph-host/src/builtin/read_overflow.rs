//! `read_overflow`: reads back an output that was too long to show, in pages or by pattern.

use std::borrow::Cow;

use regex::{Regex, RegexBuilder};
use schemars::JsonSchema;
use serde::Deserialize;
use serde_json::{Map, Value, json};
use zeph_core::argument::Parameters;
use zeph_core::category::{ErrorCategory, ErrorPhase};
use zeph_core::failure::{ToolFailure, one_line};
use zeph_core::id::{ConversationId, OverflowId, ToolName};
use zeph_core::output::RawOutput;
use zeph_core::schema::Schema;
use zeph_core::text::counted;
use zeph_core::tool::{Annotations, Backend, Tool, ToolKind};

use crate::overflow::Overflow;

/// What a regular expression may cost to compile, in bytes.
const REGEX_BYTES_MAX: usize = 1024 * 1024;

/// Most characters that are shown of a line that matches.
const LINE_CHARS_MAX: usize = 500;

/// Most characters of the numbers before it, and the end of the line.
const NUMBERS_CHARS_MAX: usize = 60;

/// Most characters that are shown of a pattern.
const PATTERN_CHARS_MAX: usize = 200;

/// Of what is shown of a long line, this part stands before the match.
const BEFORE_SHARE: usize = 5;

/// The tool's name.
pub(super) const NAME: &str = "read_overflow";

/// The arguments of one call.
#[derive(Debug, Clone, Deserialize, JsonSchema)]
pub(crate) struct ReadOverflowArguments {
    /// The handle from the notice, with or without the prefix `overflow:`.
    id: String,
    /// First line to return, counted from 0.
    #[serde(default)]
    #[schemars(with = "u32")]
    offset: usize,
    /// How many lines to return at most, 1 or more. Without it, as many as fit.
    #[serde(default)]
    #[schemars(with = "u32")]
    limit: Option<usize>,
    /// Only lines that match this regular expression, each with its line number, counted from 0 as `offset` is; of a long line what stands around
    /// each match, with its `start_char`. Colors and other control sequences are not part of the text that is searched.
    #[serde(default)]
    #[schemars(with = "String")]
    pattern: Option<String>,
    /// Where to start inside the first line, in characters: for going on inside one very long line.
    #[serde(default)]
    #[schemars(with = "u32")]
    start_char: usize,
}

/// The tool as a model sees it.
pub(crate) fn tool() -> Tool {
    Tool {
        name: ToolName::new(NAME).expect("bug: the name is a valid one"),
        title: Some("Read stored output".to_owned()),
        description: "Read back the full output of an earlier call that was too long to show. Give the ID from the \
            notice; page with `offset` and `limit` (lines), or search it with `pattern`. Only outputs of this \
            conversation can be read."
            .to_owned(),
        parameters: Parameters::trusted(Schema::later(schema)),
        output: None,
        kind: ToolKind::Read,
        annotations: Annotations {
            read_only: true,
            destructive: false,
            idempotent: true,
            open_world: false,
        },
        backend: Backend::Builtin,
    }
}

/// The derived schema without the keywords some model providers refuse.
fn schema() -> Value {
    let mut schema = schemars::schema_for!(ReadOverflowArguments).to_value();
    for keyword in ["$schema", "title", "description"] {
        schema.as_object_mut().map(|object| object.remove(keyword));
    }
    let properties = schema.get_mut("properties").and_then(Value::as_object_mut);
    for property in properties.into_iter().flat_map(serde_json::Map::values_mut) {
        for keyword in ["format", "default"] {
            property
                .as_object_mut()
                .map(|object| object.remove(keyword));
        }
    }
    schema
}

/// Reads the arguments of a call.
///
/// Errors: `invalid_parameters`.
pub(super) fn read(arguments: &Map<String, Value>) -> Result<ReadOverflowArguments, ToolFailure> {
    serde_json::from_value(Value::Object(arguments.clone()))
        .map_err(|error| invalid(error.to_string()))
}

/// Runs it.
pub(crate) async fn call(
    overflow: &Overflow,
    conversation: ConversationId,
    arguments: &ReadOverflowArguments,
) -> Result<RawOutput, ToolFailure> {
    let id = parse_id(&arguments.id)?;
    if arguments.limit == Some(0) {
        return Err(invalid(
            "`limit` is 0; without it, as many lines as fit are returned".to_owned(),
        ));
    }
    let stored = overflow
        .store()
        .overflow(conversation, id)
        .await
        .map_err(|error| {
            tracing::error!(
                error = &error as &dyn std::error::Error,
                "a stored output cannot be read"
            );
            failure(
                ErrorCategory::ServerError,
                "the store cannot be read".to_owned(),
            )
        })?
        .ok_or_else(|| {
            failure(
                ErrorCategory::PermanentFailure,
                "overflow entry not found or expired".to_owned(),
            )
        })?;
    overflow.store().count_read_back(conversation, id);
    let text = String::from_utf8_lossy(&stored);
    // A page never needs to be stored again: it has room, notices included.
    let chars_max = overflow.page_chars();
    match &arguments.pattern {
        Some(pattern) => matching(&text, pattern, arguments, chars_max),
        None => page(&text, arguments, chars_max),
    }
}

fn parse_id(given: &str) -> Result<OverflowId, ToolFailure> {
    let uuid = given.trim();
    let uuid = uuid.strip_prefix("overflow:").unwrap_or(uuid);
    uuid.parse()
        .map_err(|_| invalid("`id` must be a valid UUID".to_owned()))
}

/// The lines of a text with what ends them but `\n`: a `\r` before it is one of the bytes that were stored.
fn lines_of(text: &str) -> impl Iterator<Item = &str> {
    let lines = text.split_inclusive('\n');
    lines.map(|line| line.strip_suffix('\n').unwrap_or(line))
}

/// The lines from `offset` on, as many as fit. The pages of a text, read one after the other, give each of its bytes once.
fn page(
    text: &str,
    arguments: &ReadOverflowArguments,
    chars_max: usize,
) -> Result<RawOutput, ToolFailure> {
    let n_lines = lines_of(text).count();
    if arguments.offset >= n_lines.max(1) {
        return Err(invalid(format!(
            "`offset` is {}, but the text has {}",
            arguments.offset,
            counted(n_lines, "line", "lines")
        )));
    }
    let limit = arguments.limit.unwrap_or(usize::MAX);
    let mut page = String::new();
    let mut chars_left = chars_max;
    let mut next = (arguments.offset, 0);
    let lines = lines_of(text).enumerate();
    for (line_idx, line) in lines.skip(arguments.offset).take(limit) {
        let skipped = if line_idx == arguments.offset {
            arguments.start_char
        } else {
            0
        };
        let n_chars = line.chars().count().saturating_sub(skipped);
        if n_chars >= chars_left && !page.is_empty() {
            break;
        }
        let n_shown = n_chars.min(chars_left);
        page.extend(line.chars().skip(skipped).take(n_shown));
        page.push('\n');
        if n_shown < n_chars {
            next = (line_idx, skipped + n_shown);
            break;
        }
        // A line that fills the page leaves no room for its end, which is given all the same.
        chars_left = chars_left.saturating_sub(n_chars + 1);
        next = (line_idx + 1, 0);
    }
    let (next_line, next_char) = next;
    if (next_line, next_char) == (n_lines, 0) && !text.ends_with('\n') {
        page.pop();
    }
    if next_char > 0 {
        page.push_str(&format!(
            "[line {next_line} goes on: continue with offset={next_line}, start_char={next_char}]"
        ));
    } else if next_line < n_lines {
        let n_left = n_lines - next_line;
        let lines = if n_left == 1 { "line" } else { "lines" };
        page.push_str(&format!(
            "[{n_left} more {lines}: continue with offset={next_line}]"
        ));
    }
    Ok(RawOutput {
        structured: Some(
            json!({ "lines_total": n_lines, "next_offset": (next_line < n_lines).then_some(next_line) }),
        ),
        ..RawOutput::text(page)
    })
}

/// The text of a line as it was shown: without control sequences, and with line ends where a `\r` or a NUL stands in it.
fn seen(line: &str) -> Cow<'_, str> {
    match zeph_filter::strip(line) {
        seen if seen.contains('\r') => Cow::Owned(seen.replace('\r', "\n")),
        seen => seen,
    }
}

/// The lines that match, each as `number: text`, counted from 0 as `offset` is. Of a long line every place that matches is shown, with
/// the `start_char` of what is shown of it.
fn matching(
    text: &str,
    pattern: &str,
    arguments: &ReadOverflowArguments,
    chars_max: usize,
) -> Result<RawOutput, ToolFailure> {
    let regex = RegexBuilder::new(pattern)
        .multi_line(true)
        .size_limit(REGEX_BYTES_MAX)
        .build()
        .map_err(|error| invalid(format!("`pattern`: {}", one_line(&error.to_string(), 300))))?;
    let line_chars_max = LINE_CHARS_MAX.min(chars_max.saturating_sub(NUMBERS_CHARS_MAX));
    let limit = arguments.limit.unwrap_or(usize::MAX);
    let (mut shown, mut chars_left, mut n_shown) = (String::new(), chars_max, 0);
    let (mut n_matching, mut n_begun, mut next) = (0, 0, None);
    for (line_idx, line) in text.lines().enumerate().skip(arguments.offset) {
        let seen = seen(line);
        if next.is_some() {
            n_matching += usize::from(regex.is_match(&seen));
            continue;
        }
        let skipped = match line_idx == arguments.offset {
            true => arguments.start_char,
            false => 0,
        };
        let chars = SeenChars { line, seen: &seen };
        let mut n_places = 0;
        for mut place in places(&seen, chars.seen_char(skipped), &regex, line_chars_max) {
            if !place.is_whole {
                place.start_char = chars.stored_char(place.start_char);
                place.match_char = chars.stored_char(place.match_char);
            }
            let entry = place.entry(line_idx, line_chars_max);
            let n_chars = entry.chars().count();
            if n_shown == limit || n_chars > chars_left {
                let at = match n_places {
                    0 => skipped,
                    _ => place.match_char,
                };
                next = Some((line_idx, at));
                break;
            }
            shown.push_str(&entry);
            chars_left -= n_chars;
            n_shown += 1;
            n_places += 1;
        }
        n_begun += usize::from(n_places > 0);
        n_matching += usize::from(n_places > 0 || next.is_some());
    }
    if n_matching == 0 {
        shown = format!("No lines match: {}", one_line(pattern, PATTERN_CHARS_MAX));
    }
    match next {
        Some((line, 0)) => shown.push_str(&format!(
            "[showing {n_begun} of {n_matching} matching lines: continue with offset={line}]"
        )),
        Some((line, start_char)) => shown.push_str(&format!(
            "[showing {n_begun} of {n_matching} matching lines; line {line} has more matches: continue with offset={line}, start_char={start_char}]"
        )),
        None => {}
    }
    Ok(RawOutput {
        structured: Some(
            json!({ "matches_total": n_matching, "matches_shown": n_begun, "next_offset": next.map(|(line, _)| line) }),
        ),
        ..RawOutput::text(shown)
    })
}

/// Characters of a line as it is stored and as it was seen, which are fewer. They are told apart one by one: where a control sequence has
/// the letter that follows it, a place may be a few characters before the true one.
struct SeenChars<'t> {
    line: &'t str,
    seen: &'t str,
}

impl SeenChars<'_> {
    /// Where the characters that were seen are stored.
    fn stored(&self) -> impl Iterator<Item = usize> {
        let mut seen = self.seen.chars().peekable();
        let is_seen = move |c: char| {
            let is_end = |next: char| next == '\n' && matches!(c, '\r' | '\0');
            seen.next_if(|next| *next == c || is_end(*next)).is_some()
        };
        let chars = self.line.chars().enumerate();
        chars
            .scan(is_seen, |is_seen, (at, c)| Some(is_seen(c).then_some(at)))
            .flatten()
    }

    fn is_same(&self) -> bool {
        self.line.len() == self.seen.len()
    }

    fn stored_char(&self, seen_char: usize) -> usize {
        match self.is_same() {
            true => seen_char,
            false => self.stored().nth(seen_char).unwrap_or(seen_char),
        }
    }

    fn seen_char(&self, stored_char: usize) -> usize {
        match self.is_same() || stored_char == 0 {
            true => stored_char,
            false => self.stored().take_while(|at| *at < stored_char).count(),
        }
    }
}

/// A part of a line that matches.
struct Place<'t> {
    text: &'t str,
    /// Whether that is the whole line.
    is_whole: bool,
    /// Where in the line it begins, in characters.
    start_char: usize,
    /// Where in the line the match begins, in characters.
    match_char: usize,
}

impl Place<'_> {
    fn entry(&self, line_idx: usize, chars_max: usize) -> String {
        let text = one_line(self.text, chars_max);
        match self.is_whole {
            true => format!("{line_idx}: {text}\n"),
            false => format!("{line_idx}, start_char={}: {text}\n", self.start_char),
        }
    }
}

/// The places of a line that match, from a character on: the line itself when it is short, else up to `chars_max` characters for each
/// match that begins in none of the places before.
fn places<'t>(
    line: &'t str,
    from_char: usize,
    regex: &Regex,
    chars_max: usize,
) -> impl Iterator<Item = Place<'t>> {
    let is_whole = from_char == 0 && line.chars().nth(chars_max).is_none();
    let mut at = match from_char {
        0 => Some(0),
        _ => line.char_indices().nth(from_char).map(|(at, _)| at),
    };
    std::iter::from_fn(move || {
        let found = regex.find_at(line, at?)?;
        let before = line[..found.start()].char_indices().rev();
        let before = before.take(chars_max / BEFORE_SHARE).last();
        let start = match is_whole {
            true => 0,
            false => before.map_or(found.start(), |(at, _)| at),
        };
        let end = line[start..].char_indices().nth(chars_max);
        let end = end.map_or(line.len(), |(n_bytes, _)| start + n_bytes);
        at = Some(end.max(found.end())).filter(|next| *next < line.len());
        Some(Place {
            text: &line[start..end],
            is_whole,
            start_char: line[..start].chars().count(),
            match_char: line[..found.start()].chars().count(),
        })
    })
}

fn invalid(message: String) -> ToolFailure {
    ToolFailure::new(
        ErrorCategory::InvalidParameters,
        ErrorPhase::ParamHandling,
        message,
    )
}

fn failure(category: ErrorCategory, message: String) -> ToolFailure {
    ToolFailure::new(category, ErrorPhase::Execution, message)
}

#[cfg(test)]
mod tests;
