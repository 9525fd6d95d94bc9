//! Messages of JSON-RPC 2.0: requests, notifications, answers, errors. Pure.

mod beginning;

use std::fmt;

use serde::{Deserialize, Serialize};
use serde_json::{Map, Value, json};

pub use self::beginning::request_id;

/// A line that is not JSON.
pub const PARSE_ERROR: i32 = -32_700;
/// A message that is no request, or comes at the wrong time.
pub const INVALID_REQUEST: i32 = -32_600;
/// A method that is not there.
pub const METHOD_NOT_FOUND: i32 = -32_601;
/// Parameters that do not fit the method.
pub const INVALID_PARAMS: i32 = -32_602;
/// A failure of the agent.
pub const INTERNAL_ERROR: i32 = -32_603;

/// Characters of a text of the other side that are repeated in a message.
const QUOTED_CHARS_MAX: usize = 80;

/// What identifies a request, chosen by its sender.
#[derive(Debug, Clone, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(untagged)]
pub enum RequestId {
    /// A whole number.
    Number(i64),
    /// A text.
    Text(String),
    /// `null`, which the specification discourages and allows.
    Null,
}

/// Why a request is not done.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, thiserror::Error)]
#[error("{message} ({code})")]
pub struct RpcError {
    /// One of the codes of this module, or one of the other side's.
    pub code: i32,
    /// One sentence.
    pub message: String,
    /// More about it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub data: Option<Value>,
}

impl RpcError {
    /// An error with this code.
    pub fn new(code: i32, message: impl Into<String>) -> Self {
        Self {
            code,
            message: message.into(),
            data: None,
        }
    }

    /// Parameters that do not fit.
    pub fn params(message: impl Into<String>) -> Self {
        Self::new(INVALID_PARAMS, message)
    }

    /// A request at the wrong time.
    pub fn request(message: impl Into<String>) -> Self {
        Self::new(INVALID_REQUEST, message)
    }

    /// A failure of the agent.
    pub fn internal(message: impl Into<String>) -> Self {
        Self::new(INTERNAL_ERROR, message)
    }

    /// There is no such method.
    pub fn no_method(method: &str) -> Self {
        let method: String = method.chars().take(QUOTED_CHARS_MAX).collect();
        Self::new(
            METHOD_NOT_FOUND,
            format!("there is no method {method:?} here"),
        )
    }
}

/// A request of the other side.
#[derive(Debug, Clone, PartialEq)]
pub struct Request {
    /// Its id, which its answer repeats.
    pub id: RequestId,
    /// What is asked.
    pub method: String,
    /// An object; empty when there are none.
    pub params: Value,
}

/// Something the other side tells.
#[derive(Debug, Clone, PartialEq)]
pub struct Notification {
    /// What is told.
    pub method: String,
    /// An object; empty when there are none.
    pub params: Value,
}

/// A message of the other side.
#[derive(Debug, Clone, PartialEq)]
pub enum Message {
    /// It wants an answer.
    Request(Request),
    /// It wants none.
    Notification(Notification),
    /// It is the answer to a request of ours.
    Answer {
        /// That of our request.
        id: RequestId,
        /// What came of it.
        result: Result<Value, RpcError>,
    },
}

/// A line that is no message, and what its sender is told.
#[derive(Debug, Clone, PartialEq)]
pub struct BadMessage {
    /// Its id, as far as it has one.
    pub id: RequestId,
    /// What is wrong.
    pub error: RpcError,
}

impl BadMessage {
    /// One without an id.
    pub fn new(error: RpcError) -> Self {
        let id = RequestId::Null;
        Self { id, error }
    }
}

/// Reads a line.
///
/// Errors: [`BadMessage`], to be sent back.
pub fn read(line: &[u8]) -> Result<Message, BadMessage> {
    let value: Value = serde_json::from_slice(line).map_err(|error| {
        BadMessage::new(RpcError::new(PARSE_ERROR, format!("not JSON: {error}")))
    })?;
    let Value::Object(mut object) = value else {
        let message = "a message is one JSON object on one line";
        return Err(BadMessage::new(RpcError::request(message)));
    };
    let id = object.remove("id").map(id).transpose()?;
    match object.remove("method") {
        Some(Value::String(method)) => asked(id, method, object.remove("params")),
        Some(_) => Err(bad(id, "`method` is not a string")),
        None => answered(id, object),
    }
}

fn id(value: Value) -> Result<RequestId, BadMessage> {
    serde_json::from_value(value).map_err(|_| {
        let message = "`id` is neither a whole number nor a string";
        BadMessage::new(RpcError::request(message))
    })
}

fn bad(id: Option<RequestId>, message: &str) -> BadMessage {
    BadMessage {
        id: id.unwrap_or(RequestId::Null),
        error: RpcError::request(message),
    }
}

fn asked(
    id: Option<RequestId>,
    method: String,
    params: Option<Value>,
) -> Result<Message, BadMessage> {
    let params = match params {
        None | Some(Value::Null) => Value::Object(Map::new()),
        Some(params) => params,
    };
    Ok(match id {
        Some(id) => Message::Request(Request { id, method, params }),
        None => Message::Notification(Notification { method, params }),
    })
}

fn answered(id: Option<RequestId>, mut object: Map<String, Value>) -> Result<Message, BadMessage> {
    let (result, error) = (object.remove("result"), object.remove("error"));
    let Some(id) = id else {
        return Err(bad(None, "the message has neither `method` nor `id`"));
    };
    let result = match (result, error) {
        (_, Some(error)) if !error.is_null() => {
            let error = serde_json::from_value(error)
                .unwrap_or_else(|_| RpcError::internal("an error that cannot be read"));
            Err(error)
        }
        (Some(result), _) => Ok(result),
        (None, _) => return Err(bad(Some(id), "the message has no `method`")),
    };
    Ok(Message::Answer { id, result })
}

/// The message of a request.
///
/// Errors: the parameters cannot be JSON.
pub fn request(id: &RequestId, method: &str, params: &impl Serialize) -> serde_json::Result<Value> {
    let params = serde_json::to_value(params)?;
    Ok(json!({"jsonrpc": "2.0", "id": id, "method": method, "params": params}))
}

/// The message of a notification.
///
/// Errors: the parameters cannot be JSON.
pub fn notification(method: &str, params: &impl Serialize) -> serde_json::Result<Value> {
    let params = serde_json::to_value(params)?;
    Ok(json!({"jsonrpc": "2.0", "method": method, "params": params}))
}

/// The message of an answer.
pub fn answer(id: &RequestId, result: Result<Value, RpcError>) -> Value {
    match result {
        Ok(result) => json!({"jsonrpc": "2.0", "id": id, "result": result}),
        Err(error) => json!({"jsonrpc": "2.0", "id": id, "error": error}),
    }
}

impl fmt::Display for RequestId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Number(number) => number.fmt(f),
            Self::Text(text) => text.fmt(f),
            Self::Null => f.write_str("null"),
        }
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::{
        INVALID_REQUEST, Message, PARSE_ERROR, Request, RequestId, RpcError, answer, read,
    };

    fn code(line: &str) -> (RequestId, i32) {
        let bad = read(line.as_bytes()).unwrap_err();
        (bad.id, bad.error.code)
    }

    #[test]
    fn lines_are_requests_notifications_and_answers() {
        let line = br#"{"jsonrpc":"2.0","id":"a","method":"x","params":{"y":1},"more":true}"#;
        let request = Request {
            id: RequestId::Text("a".to_owned()),
            method: "x".to_owned(),
            params: json!({"y": 1}),
        };
        assert_eq!(read(line), Ok(Message::Request(request)));
        assert!(matches!(
            read(br#"{"method":"x"}"#),
            Ok(Message::Notification(told)) if told.params == json!({})
        ));
        assert!(matches!(
            read(br#"{"id":3,"result":null}"#),
            Ok(Message::Answer { id: RequestId::Number(3), result: Ok(value) }) if value.is_null()
        ));
        assert!(matches!(
            read(br#"{"id":null,"error":{"code":-1,"message":"no"}}"#),
            Ok(Message::Answer { id: RequestId::Null, result: Err(error) }) if error == RpcError::new(-1, "no")
        ));
    }

    #[test]
    fn what_is_no_message_is_answered_under_its_id() {
        assert_eq!(code("{"), (RequestId::Null, PARSE_ERROR));
        assert_eq!(code("[]"), (RequestId::Null, INVALID_REQUEST));
        assert_eq!(code("{}"), (RequestId::Null, INVALID_REQUEST));
        assert_eq!(
            code(r#"{"id":7,"method":1}"#),
            (RequestId::Number(7), INVALID_REQUEST)
        );
        assert_eq!(
            code(r#"{"id":1.5,"method":"x"}"#),
            (RequestId::Null, INVALID_REQUEST)
        );
        assert_eq!(code(r#"{"id":8}"#), (RequestId::Number(8), INVALID_REQUEST));
    }

    #[test]
    fn an_answer_has_a_result_or_an_error() {
        let id = RequestId::Number(1);
        assert_eq!(
            answer(&id, Ok(json!({}))),
            json!({"jsonrpc": "2.0", "id": 1, "result": {}})
        );
        assert_eq!(
            answer(&id, Err(RpcError::params("no"))),
            json!({"jsonrpc": "2.0", "id": 1, "error": {"code": -32602, "message": "no"}})
        );
    }
}
