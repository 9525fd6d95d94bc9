//! One message of a server, out of its bytes. Pure.
//!
//! What a line holds is looked at before anything is made of it: JSON takes twenty times its bytes in memory when it is made of nothing
//! but small values.

use std::collections::VecDeque;

use rmcp::model::{
    ContentBlock, ErrorCode, ErrorData, MetaObject, Prompt, RequestId, Resource, ResourceTemplate,
    ServerJsonRpcMessage, Tool,
};
use serde::de::DeserializeOwned;
use serde_json::{Map, Value, json};
use zeph_core::failure::one_line;

use crate::readable;

/// Most values in one message, keys of objects not counted.
const VALUES_MAX: usize = 400_000;

/// The `data` of an error that stands for an answer of the server that cannot be used.
const UNUSABLE: &str = "zeph-host: unusable answer";

/// Bytes at both ends of a message that is too long, among which its id is looked for.
pub(super) const ENDS_BYTES: usize = 512;

/// What a line of a server is.
#[derive(Debug)]
pub(super) enum Incoming {
    /// A message, or an error that stands for an answer that cannot be used.
    Message(Box<ServerJsonRpcMessage>),
    /// An empty line.
    Nothing,
    /// No message: why, in a few words.
    Garbage(String),
}

/// Reads one message.
pub(super) fn read(bytes: &[u8]) -> Incoming {
    let bytes = bytes.strip_prefix(b"\xEF\xBB\xBF").unwrap_or(bytes);
    let bytes = bytes.trim_ascii();
    match bytes.first() {
        None => return Incoming::Nothing,
        Some(b'{') => {}
        Some(_) => return Incoming::Garbage("not a JSON object".to_owned()),
    }
    if has_too_many_values(bytes) {
        return unusable(
            id_of_ends(bytes),
            &format!("it holds more than {VALUES_MAX} values"),
        );
    }
    match parsed(bytes) {
        Ok((Value::Object(object), n_replaced)) => message(object, n_replaced),
        Ok(_) => Incoming::Garbage("not a JSON object".to_owned()),
        Err(error) => {
            let why = format!("not JSON: {}", one_line(&error.to_string(), 100));
            // Its caller need not wait any longer.
            let id = is_like_answer(bytes).then(|| id_of_ends(bytes)).flatten();
            unusable(id, &why)
        }
    }
}

/// The value, and how many of its texts and values were replaced so that it can be read.
fn parsed(bytes: &[u8]) -> Result<(Value, usize), serde_json::Error> {
    serde_json::from_slice(bytes)
        .map(|value| (value, 0))
        .or_else(|error| {
            let (made, n_replaced) = readable::made(bytes);
            let value = serde_json::from_slice(&made).map_err(|_| error)?;
            Ok((value, n_replaced))
        })
}

/// Whether what cannot be parsed, such as numbers out of range or too many brackets, begins like an answer.
fn is_like_answer(bytes: &[u8]) -> bool {
    let first = &bytes[..bytes.len().min(ENDS_BYTES)];
    let holds = |key: &[u8]| first.windows(key.len()).any(|window| window == key);
    holds(b"\"jsonrpc\"") && (holds(b"\"result\"") || holds(b"\"error\""))
}

/// The id of a message that is not parsed, from its ends.
fn id_of_ends(bytes: &[u8]) -> Option<RequestId> {
    let first = id_in(&bytes[..bytes.len().min(ENDS_BYTES)]);
    first.or_else(|| id_in(&bytes[bytes.len().saturating_sub(ENDS_BYTES)..]))
}

fn message(mut object: Map<String, Value>, n_replaced: usize) -> Incoming {
    let id = id_of(object.get("id"));
    let is_answer = object.contains_key("result") || object.contains_key("error");
    if let Some(Value::Object(result)) = object.get_mut("result") {
        note(result, REPLACED_KEY, n_replaced);
        omit_malformed(result);
        mark_tasks(result);
    }
    match serde_json::from_value(Value::Object(object)) {
        Ok(message) => Incoming::Message(Box::new(message)),
        Err(error) if is_answer => unusable(id, &one_line(&error.to_string(), 200)),
        Err(error) => Incoming::Garbage(format!(
            "not a message of the protocol: {}",
            one_line(&error.to_string(), 100)
        )),
    }
}

/// An answer that cannot be used, to the request of that id.
pub(super) fn unusable(id: Option<RequestId>, why: &str) -> Incoming {
    let Some(id) = id else {
        return Incoming::Garbage(why.to_owned());
    };
    let error = ErrorData::new(
        ErrorCode::INTERNAL_ERROR,
        why.to_owned(),
        Some(json!(UNUSABLE)),
    );
    Incoming::Message(Box::new(ServerJsonRpcMessage::error(error, Some(id))))
}

/// Whether `error` is one of [`unusable`].
pub(super) fn is_unusable(error: &ErrorData) -> bool {
    error.data.as_ref().and_then(Value::as_str) == Some(UNUSABLE)
}

/// One malformed definition must not cost its whole list, nor one block its result. How many were omitted is noted in the `_meta` of the result.
fn omit_malformed(result: &mut Map<String, Value>) {
    let n_omitted = keep::<ContentBlock>(result, "content")
        + keep::<Tool>(result, "tools")
        + keep::<Prompt>(result, "prompts")
        + keep::<Resource>(result, "resources")
        + keep::<ResourceTemplate>(result, "resourceTemplates");
    note(result, OMITTED_KEY, n_omitted);
}

/// Notes in the `_meta` of `result` how many there are of something, if there are any.
fn note(result: &mut Map<String, Value>, key: &str, n: usize) {
    if n == 0 {
        return;
    }
    let meta = result.entry("_meta").or_insert_with(|| json!({}));
    if let Value::Object(meta) = meta {
        meta.insert(key.to_owned(), json!(n));
    }
}

/// Where the number of malformed definitions stands.
pub(super) const OMITTED_KEY: &str = "zeph-host/omitted";

/// Where the number of texts and values that could not be read stands.
pub(super) const REPLACED_KEY: &str = "zeph-host/replaced";

/// What a reader of a result or a list should know of what was replaced in it; `None` when nothing was.
pub(super) fn replaced(meta: Option<&MetaObject>) -> Option<String> {
    let n = meta?.get(REPLACED_KEY)?.as_u64()?;
    let what = zeph_core::text::counted(n, "character or value", "characters or values");
    Some(format!(
        "{what} that JSON readers refuse (half of a character, a number out of range, too many levels) came from the server, and \
         U+FFFD or null is in the place of each"
    ))
}

/// The `_meta` key that marks a tool that is run as a task alone: the library does not read the field of the protocol.
pub(super) const TASK_KEY: &str = "zeph-host/needs-task";

fn mark_tasks(result: &mut Map<String, Value>) {
    let tools = result.get_mut("tools").and_then(Value::as_array_mut);
    for tool in tools.into_iter().flatten() {
        if tool.pointer("/execution/taskSupport") == Some(&json!("required")) {
            match &mut tool["_meta"] {
                Value::Object(meta) => drop(meta.insert(TASK_KEY.to_owned(), json!(true))),
                meta => *meta = json!({ TASK_KEY: true }),
            }
        }
    }
}

fn keep<T: DeserializeOwned>(result: &mut Map<String, Value>, key: &str) -> usize {
    let Some(Value::Array(items)) = result.get_mut(key) else {
        return 0;
    };
    let n_before = items.len();
    items.retain(|item| T::deserialize(item).is_ok());
    n_before - items.len()
}

fn has_too_many_values(bytes: &[u8]) -> bool {
    let (mut n_values, mut in_text, mut is_escaped) = (0_usize, false, false);
    for byte in bytes {
        match byte {
            _ if is_escaped => is_escaped = false,
            b'\\' => is_escaped = in_text,
            b'"' => in_text = !in_text,
            b',' | b'[' | b'{' if !in_text => n_values += 1,
            _ => {}
        }
    }
    n_values > VALUES_MAX
}

fn id_of(id: Option<&Value>) -> Option<RequestId> {
    match id? {
        Value::Number(id) => id.as_i64().map(RequestId::Number),
        Value::String(id) => Some(RequestId::String(id.as_str().into())),
        _ => None,
    }
}

/// The id in the ends of a message that was not kept. What it finds is the server's own claim: it decides which of its calls fails.
pub(super) fn id_in(part: &[u8]) -> Option<RequestId> {
    const KEY: &[u8] = b"\"id\"";
    let at = part.windows(KEY.len()).position(|window| window == KEY)?;
    let rest = part[at + KEY.len()..].trim_ascii_start();
    let rest = rest.strip_prefix(b":")?.trim_ascii_start();
    let is_in_id = |byte: &&u8| byte.is_ascii_alphanumeric() || matches!(byte, b'"' | b'-' | b'_');
    let n_bytes = rest.iter().take_while(is_in_id).count();
    id_of(serde_json::from_slice(&rest[..n_bytes]).ok().as_ref())
}

/// The two ends of a message that is too long to be kept.
#[derive(Debug, Default)]
pub(super) struct Ends {
    first: Vec<u8>,
    last: VecDeque<u8>,
    n_bytes: usize,
}

impl Ends {
    /// Takes the next bytes.
    pub(super) fn push(&mut self, bytes: &[u8]) {
        self.n_bytes += bytes.len();
        let n_first = ENDS_BYTES.saturating_sub(self.first.len()).min(bytes.len());
        self.first.extend_from_slice(&bytes[..n_first]);
        self.last
            .extend(&bytes[bytes.len().saturating_sub(ENDS_BYTES)..]);
        let n_beyond = self.last.len().saturating_sub(ENDS_BYTES);
        self.last.drain(..n_beyond);
    }

    /// Bytes so far.
    pub(super) fn n_bytes(&self) -> usize {
        self.n_bytes
    }

    /// The message, as one that cannot be used.
    pub(super) fn unusable(mut self, bytes_max: usize) -> Incoming {
        let id = id_in(&self.first).or_else(|| id_in(self.last.make_contiguous()));
        let why = format!("it has {} bytes; the limit is {bytes_max}", self.n_bytes);
        unusable(id, &why)
    }
}

#[cfg(test)]
mod tests;
