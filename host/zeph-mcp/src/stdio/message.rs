//! One line: a message, or what is wrong with it. Pure.

use rmcp::model::{
    CallToolRequest, ClientJsonRpcMessage, ClientRequest, ErrorData, JsonRpcMessage,
    JsonRpcRequest, RequestId,
};
use serde::Deserialize as _;
use serde_json::{Map, Value};
use zeph_core::failure::one_line;

use crate::passing::PassingMessage;
use crate::readable;
use crate::refusal::WrittenId;

/// A good line.
pub(super) enum Read {
    Message(Box<ClientJsonRpcMessage>),
    /// What asks for no answer and means nothing here.
    Nothing,
}

/// A line that is no message, and the answer to it.
#[derive(Debug)]
pub(super) struct Bad {
    /// The id of the request, when it has one.
    pub(super) id: Option<WrittenId>,
    pub(super) error: ErrorData,
}

impl Bad {
    pub(super) fn too_long(id: Option<WrittenId>, bytes_max: usize) -> Self {
        Self::request(
            id,
            format!("the message has more than {bytes_max} bytes (`mcp.serve.max_body_bytes`)"),
        )
    }

    fn request(id: Option<WrittenId>, message: impl Into<String>) -> Self {
        Self {
            id,
            error: ErrorData::invalid_request(message.into(), None),
        }
    }
}

/// Reads a line.
///
/// Errors: what a client is told about it.
pub(super) fn read(line: &[u8]) -> Result<Read, Bad> {
    let line = line.strip_prefix(b"\xEF\xBB\xBF").unwrap_or(line);
    if line.trim_ascii().is_empty() {
        return Ok(Read::Nothing);
    }
    let paired = readable::with_pairs(line);
    let line = paired.as_ref().map_or(line, |(line, _)| line);
    let value: Value = serde_json::from_slice(line).map_err(|error| Bad {
        id: PassingMessage::of(line).request_id(),
        error: ErrorData::parse_error(format!("the line cannot be read as JSON: {error}"), None),
    })?;
    match value {
        Value::Object(object) => message(object).map_err(|bad| Bad {
            id: bad.id.or_else(|| PassingMessage::of(line).request_id()),
            error: bad.error,
        }),
        Value::Array(_) => Err(Bad::request(
            None,
            "batches are not supported; send one message a line",
        )),
        _ => Err(Bad::request(None, "a message is a JSON object")),
    }
}

fn message(object: Map<String, Value>) -> Result<Read, Bad> {
    let id = id(&object)?;
    let written = id.as_ref().map(WrittenId::from);
    if object.get("jsonrpc").and_then(Value::as_str) != Some("2.0") {
        return Err(Bad::request(
            written,
            "a message has `\"jsonrpc\": \"2.0\"`",
        ));
    }
    let Some(method) = object.get("method") else {
        return answer(object, written);
    };
    let Some(method) = method.as_str().map(|method| one_line(method, 100)) else {
        return Err(Bad::request(written, "`method` must be a string"));
    };
    let has_params = object.get("params").is_none_or(Value::is_object);
    let parsed = match has_params {
        true => {
            parsed(&method, id.as_ref(), Value::Object(object)).map_err(|error| error.to_string())
        }
        false => Err("`params` must be an object".to_owned()),
    };
    match (parsed, written) {
        (Ok(message), _) => Ok(Read::Message(Box::new(message))),
        // A notification has no answer.
        (Err(_), None) => Ok(Read::Nothing),
        (Err(problem), Some(id)) => Err(Bad {
            id: Some(id),
            error: ErrorData::invalid_params(
                format!("`{method}`: {}", one_line(&problem, 300)),
                None,
            ),
        }),
    }
}

/// A message with a method.
fn parsed(
    method: &str,
    id: Option<&RequestId>,
    message: Value,
) -> serde_json::Result<ClientJsonRpcMessage> {
    // By far the most messages are calls. The general way tries one kind of request after the other, with a copy for each.
    if let ("tools/call", Some(id)) = (method, id)
        && let Ok(call) = CallToolRequest::deserialize(&message)
    {
        let request = ClientRequest::CallToolRequest(call);
        return Ok(JsonRpcMessage::Request(JsonRpcRequest::new(
            id.clone(),
            request,
        )));
    }
    serde_json::from_value(message)
}

/// An answer to a request of the server. One that is malformed answers nothing.
fn answer(object: Map<String, Value>, id: Option<WrittenId>) -> Result<Read, Bad> {
    if !object.contains_key("result") && !object.contains_key("error") {
        return Err(Bad::request(
            id,
            "a message has a `method`, a `result` or an `error`",
        ));
    }
    let parsed = serde_json::from_value(Value::Object(object));
    Ok(parsed.map_or(Read::Nothing, |message| Read::Message(Box::new(message))))
}

/// The id, when there is one.
fn id(object: &Map<String, Value>) -> Result<Option<RequestId>, Bad> {
    let id = match object.get("id") {
        None => return Ok(None),
        // An error that belongs to no request.
        Some(Value::Null) if object.contains_key("error") => return Ok(None),
        Some(id) => request_id(id),
    };
    let bad = || Bad::request(None, "`id` must be a string or an integer of 64 bits");
    id.map(Some).ok_or_else(bad)
}

/// The id that a value is; `None` when it is none.
fn request_id(value: &Value) -> Option<RequestId> {
    match value {
        Value::String(id) => Some(RequestId::String(id.as_str().into())),
        Value::Number(id) => id.as_i64().map(RequestId::Number),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use rmcp::model::ClientJsonRpcMessage;
    use serde_json::{Value, json};

    use super::{Read, read};

    /// A call is read as in the general way, or refused as there.
    fn check(params: Value) {
        for id in [json!(7), json!("seven")] {
            let line =
                json!({"jsonrpc": "2.0", "id": id, "method": "tools/call", "params": params});
            let line = line.to_string();
            let general = serde_json::from_str::<ClientJsonRpcMessage>(&line);
            match (read(line.as_bytes()), general) {
                (Ok(Read::Message(read)), Ok(general)) => {
                    assert_eq!(format!("{read:?}"), format!("{general:?}"), "{line}");
                    let (read, general) = (json!(*read), json!(general));
                    assert_eq!(read, general, "{line}");
                }
                (Err(bad), Err(_)) => assert!(bad.id.is_some(), "{line}"),
                (read, general) => panic!("{line}: {} and {general:?}", read.is_ok()),
            }
        }
    }

    #[test]
    fn a_call_is_read_as_any_other_request() {
        check(json!({"name": "read"}));
        check(json!({"name": "read", "arguments": {"path": "a", "deep": [{"x": null}]}}));
        check(json!({"name": "read", "arguments": {}, "_meta": {"progressToken": "p", "x/y": 1}}));
        check(json!({"name": "read", "_meta": {"progressToken": 3}, "requestState": "s"}));
        check(json!({"name": "read", "task": {"ttl": 60_000}, "other": [1]}));
        check(json!({"name": "read", "arguments": ["a"]}));
        check(json!({"name": 1}));
        check(json!({"arguments": {}}));
        check(json!({}));
    }
}
