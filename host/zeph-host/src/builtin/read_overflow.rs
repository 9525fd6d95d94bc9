//! `read_overflow`: reads back an output that was too long to show, in pages or by pattern.

use regex::RegexBuilder;
use schemars::JsonSchema;
use serde::Deserialize;
use serde_json::{Map, Value, json};
use zeph_core::argument::Parameters;
use zeph_core::category::{ErrorCategory, ErrorPhase};
use zeph_core::failure::{ToolFailure, one_line};
use zeph_core::id::{ConversationId, OverflowId, ToolName};
use zeph_core::output::RawOutput;
use zeph_core::schema::Schema;
use zeph_core::tool::{Annotations, Backend, Tool, ToolKind};

use crate::overflow::Overflow;

/// What a regular expression may cost to compile, in bytes.
const REGEX_BYTES_MAX: usize = 1024 * 1024;

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
    /// How many lines to return at most. Without it, as many as fit.
    #[serde(default)]
    #[schemars(with = "u32")]
    limit: Option<usize>,
    /// Only lines that match this regular expression, each with its line number.
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
    // A page never needs to be stored again: it stays below the threshold, notices included.
    let chars_max = overflow.threshold_chars().saturating_sub(300).max(200);
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
            "`offset` is {}, but there are {n_lines} lines",
            arguments.offset
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
    if next_char > 0 {
        page.push_str(&format!(
            "[line {next_line} goes on: continue with offset={next_line}, start_char={next_char}]"
        ));
    } else if next_line < n_lines {
        let n_left = n_lines - next_line;
        page.push_str(&format!(
            "[{n_left} more lines: continue with offset={next_line}]"
        ));
    }
    Ok(RawOutput {
        structured: Some(
            json!({ "lines_total": n_lines, "next_offset": (next_line < n_lines).then_some(next_line) }),
        ),
        ..RawOutput::text(page)
    })
}

/// The lines that match, each as `number: text`, counted from 0 as `offset` is.
fn matching(
    text: &str,
    pattern: &str,
    arguments: &ReadOverflowArguments,
    chars_max: usize,
) -> Result<RawOutput, ToolFailure> {
    let regex = RegexBuilder::new(pattern)
        .size_limit(REGEX_BYTES_MAX)
        .build()
        .map_err(|error| invalid(format!("`pattern`: {}", one_line(&error.to_string(), 300))))?;
    let limit = arguments.limit.unwrap_or(usize::MAX);
    let (mut found, mut n_shown, mut n_matches) = (String::new(), 0, 0);
    let mut chars_left = chars_max;
    let lines = text.lines().enumerate().skip(arguments.offset);
    for (line_idx, line) in lines.filter(|(_, line)| regex.is_match(line)) {
        n_matches += 1;
        let shown = format!("{line_idx}: {}\n", one_line(line, 500));
        let n_chars = shown.chars().count();
        let is_full = n_shown == limit || n_chars > chars_left || n_shown + 1 < n_matches;
        if !is_full {
            found.push_str(&shown);
            chars_left -= n_chars;
            n_shown += 1;
        }
    }
    if n_matches == 0 {
        found = format!("No lines match: {pattern}");
    } else if n_shown < n_matches {
        found.push_str(&format!(
            "[showing {n_shown} of {n_matches} matching lines]"
        ));
    }
    Ok(RawOutput {
        structured: Some(json!({ "matches_total": n_matches, "matches_shown": n_shown })),
        ..RawOutput::text(found)
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
