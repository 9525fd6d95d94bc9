//! The body of a request: read within its limits, and looked at far enough to answer what is no message at all.

use std::borrow::Cow;
use std::time::Duration;

use axum::body::{Body, Bytes};
use axum::response::{IntoResponse as _, Response};
use http::header::{CONTENT_LENGTH, CONTENT_TYPE, EXPECT};
use http::{HeaderMap, StatusCode};
use http_body_util::BodyExt as _;
use serde::Deserialize;
use serde_json::value::RawValue;
use serde_json::{Value, json};
use tokio::time::timeout;

use super::room::BodyPlace;

/// How much of a refused body is read, so that its sender gets to read the answer.
const DRAINED_BYTES_MAX: usize = 256 << 20;

/// How long a refused body is read.
const DRAINED_MAX: Duration = Duration::from_secs(10);

/// Limits of a body.
#[derive(Debug, Clone, Copy)]
pub(super) struct BodyLimits {
    /// Most bytes.
    pub(super) bytes_max: usize,
    /// How long a part of it may take.
    pub(super) part_max: Duration,
    /// How long all of it may take.
    pub(super) whole_max: Duration,
}

/// Why a body is not read.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub(super) enum BadBody {
    #[error("the request exceeds `mcp.serve.max_body_bytes` ({0} bytes)")]
    TooLarge(usize),
    #[error("the request took too long to arrive")]
    TooSlow,
    #[error("the request ended before it was complete")]
    Broken,
    #[error("the server has no room for the request now, because other large requests take it")]
    NoRoom,
}

/// What a message is.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum MessageKind {
    /// A request of this method, with its id.
    Request { method: String, id: Value },
    /// A notification or an answer: nothing is sent back.
    OneWay,
}

/// What is wrong with a message, as JSON-RPC counts it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct BadMessage {
    code: i32,
    problem: String,
}

#[derive(Deserialize)]
struct Envelope<'m> {
    #[serde(borrow)]
    jsonrpc: Option<Cow<'m, str>>,
    #[serde(borrow)]
    method: Option<Cow<'m, str>>,
    #[serde(borrow)]
    id: Option<&'m RawValue>,
    #[serde(borrow)]
    result: Option<&'m RawValue>,
    #[serde(borrow)]
    error: Option<&'m RawValue>,
}

/// Reads a body into its `place`.
///
/// Errors: [`BadBody`], after enough of it was thrown away for its sender to look for the answer.
pub(super) async fn read(
    headers: &HeaderMap,
    body: Body,
    limits: &BodyLimits,
    place: &mut BodyPlace,
) -> Result<Bytes, BadBody> {
    let declared = headers.get(CONTENT_LENGTH);
    let declared = declared.and_then(|length| length.to_str().ok()?.parse::<usize>().ok());
    let too_large = BadBody::TooLarge(limits.bytes_max);
    if declared.is_some_and(|length| length > limits.bytes_max) {
        drain(headers, body).await;
        return Err(too_large);
    }
    match timeout(limits.whole_max, collect(body, limits, place)).await {
        Ok(Ok(bytes)) => Ok(bytes),
        Ok(Err((problem, rest))) => {
            if problem == too_large || problem == BadBody::NoRoom {
                drain(headers, rest).await;
            }
            Err(problem)
        }
        Err(_) => Err(BadBody::TooSlow),
    }
}

async fn collect(
    mut body: Body,
    limits: &BodyLimits,
    place: &mut BodyPlace,
) -> Result<Bytes, (BadBody, Body)> {
    let mut bytes = Vec::new();
    loop {
        let part = match timeout(limits.part_max, body.frame()).await {
            Err(_) => return Err((BadBody::TooSlow, body)),
            Ok(None) => return Ok(bytes.into()),
            Ok(Some(Err(_))) => return Err((BadBody::Broken, body)),
            Ok(Some(Ok(part))) => part,
        };
        let Ok(data) = part.into_data() else {
            continue;
        };
        if data.len() > limits.bytes_max - bytes.len() {
            return Err((BadBody::TooLarge(limits.bytes_max), body));
        }
        if !place.grow(data.len()) {
            return Err((BadBody::NoRoom, body));
        }
        bytes.extend_from_slice(&data);
    }
}

/// Reads what is left of a body that is refused, and throws it away. Many clients look for an answer only when they have sent it all.
pub(super) async fn drain(headers: &HeaderMap, mut body: Body) {
    // This one asks first.
    if headers.contains_key(EXPECT) {
        return;
    }
    let throw_away = async {
        let mut n_bytes = 0;
        while let Some(Ok(part)) = body.frame().await {
            n_bytes += part.data_ref().map_or(0, Bytes::len);
            if n_bytes > DRAINED_BYTES_MAX {
                return;
            }
        }
    };
    // What takes longer is cut off.
    drop(timeout(DRAINED_MAX, throw_away).await);
}

/// Whether a body says that it is JSON; what is not is refused by the protocol's service.
pub(super) fn is_json(headers: &HeaderMap) -> bool {
    let content_type = headers.get(CONTENT_TYPE);
    let content_type = content_type.and_then(|value| value.to_str().ok());
    content_type.is_some_and(|value| {
        let essence = value.split(';').next().unwrap_or_default();
        essence.trim().eq_ignore_ascii_case("application/json")
    })
}

/// What a body is.
///
/// Errors: [`BadMessage`], when it is not a single message of JSON-RPC 2.0.
pub(super) fn kind(body: &[u8]) -> Result<MessageKind, BadMessage> {
    if body.iter().find(|byte| !byte.is_ascii_whitespace()) == Some(&b'[') {
        return Err(BadMessage::invalid(
            "the protocol has no batches: send each message in a request of its own",
        ));
    }
    let envelope: Envelope<'_> = match serde_json::from_slice(body) {
        Ok(envelope) => envelope,
        Err(error) if error.is_data() => return Err(BadMessage::invalid(&error.to_string())),
        Err(error) => return Err(BadMessage::parse(&error.to_string())),
    };
    if envelope.jsonrpc.as_deref() != Some("2.0") {
        return Err(BadMessage::invalid("`jsonrpc` is not \"2.0\""));
    }
    let has_answer = envelope.result.is_some() || envelope.error.is_some();
    match (envelope.method, envelope.id) {
        (Some(_), _) if has_answer => Err(BadMessage::invalid(
            "it has a `method` and a `result` or `error`",
        )),
        (Some(method), Some(id)) => Ok(MessageKind::Request {
            method: method.into_owned(),
            id: request_id(id)?,
        }),
        (Some(_), None) => Ok(MessageKind::OneWay),
        (None, _) if has_answer => Ok(MessageKind::OneWay),
        (None, _) => Err(BadMessage::invalid("it has no `method`")),
    }
}

fn request_id(id: &RawValue) -> Result<Value, BadMessage> {
    let id: Value = serde_json::from_str(id.get()).unwrap_or_default();
    let is_good = id.is_string() || id.is_i64() || id.is_u64();
    let bad = || BadMessage::invalid("`id` is neither a string nor a whole number");
    is_good.then_some(id).ok_or_else(bad)
}

impl BadMessage {
    pub(super) fn invalid(problem: &str) -> Self {
        Self {
            code: -32_600,
            problem: format!("Invalid Request: {problem}"),
        }
    }

    fn parse(problem: &str) -> Self {
        Self {
            code: -32_700,
            problem: format!("Parse error: {problem}"),
        }
    }

    /// The answer to it.
    pub(super) fn response(&self) -> Response {
        error_response(
            StatusCode::BAD_REQUEST,
            &Value::Null,
            self.code,
            &self.problem,
        )
    }
}

impl BadBody {
    /// The answer to it.
    pub(super) fn response(self) -> Response {
        let (status, code) = match self {
            Self::TooLarge(_) => (StatusCode::PAYLOAD_TOO_LARGE, -32_600),
            Self::TooSlow => (StatusCode::REQUEST_TIMEOUT, -32_600),
            Self::Broken => (StatusCode::BAD_REQUEST, -32_700),
            Self::NoRoom => (StatusCode::SERVICE_UNAVAILABLE, -32_000),
        };
        error_response(status, &Value::Null, code, &self.to_string())
    }
}

/// An error of JSON-RPC with the status of HTTP that goes with it.
pub(super) fn error_response(status: StatusCode, id: &Value, code: i32, problem: &str) -> Response {
    let body = json!({ "jsonrpc": "2.0", "id": id, "error": { "code": code, "message": problem } });
    let json = [(CONTENT_TYPE, "application/json")];
    (status, json, body.to_string()).into_response()
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::{MessageKind, kind};

    #[test]
    fn only_single_messages_pass() {
        let request = |id| MessageKind::Request {
            method: "a/b".to_owned(),
            id,
        };
        let table = [
            (
                r#"{"jsonrpc":"2.0","id":1,"method":"a/b"}"#,
                Ok(request(json!(1))),
            ),
            (
                r#" {"jsonrpc":"2.0","id":"x","method":"a\/b","params":{"a":[1]}}"#,
                Ok(request(json!("x"))),
            ),
            (r#"{"jsonrpc":"2.0","method":"a"}"#, Ok(MessageKind::OneWay)),
            (
                r#"{"jsonrpc":"2.0","id":1,"result":{}}"#,
                Ok(MessageKind::OneWay),
            ),
            (
                r#"{"jsonrpc":"2.0","id":1,"error":{}}"#,
                Ok(MessageKind::OneWay),
            ),
            ("", Err(-32_700)),
            ("{", Err(-32_700)),
            ("\u{0}", Err(-32_700)),
            (r#"[{"jsonrpc":"2.0","id":1,"method":"a"}]"#, Err(-32_600)),
            (" []", Err(-32_600)),
            ("1", Err(-32_600)),
            ("null", Err(-32_600)),
            ("{}", Err(-32_600)),
            (r#"{"jsonrpc":"1.0","id":1,"method":"a"}"#, Err(-32_600)),
            (r#"{"jsonrpc":"2.0","id":1}"#, Err(-32_600)),
            (r#"{"jsonrpc":"2.0","id":1.5,"method":"a"}"#, Err(-32_600)),
            (r#"{"jsonrpc":"2.0","id":{},"method":"a"}"#, Err(-32_600)),
            (r#"{"jsonrpc":"2.0","id":1,"method":2}"#, Err(-32_600)),
            (
                r#"{"jsonrpc":"2.0","id":1,"method":"a","result":1}"#,
                Err(-32_600),
            ),
        ];
        for (body, expect) in table {
            assert_eq!(
                kind(body.as_bytes()).map_err(|bad| bad.code),
                expect,
                "{body}"
            );
        }
        let deep = format!(
            r#"{{"jsonrpc":"2.0","id":1,"method":"a","params":{}"#,
            "[".repeat(100_000)
        );
        assert!(kind(deep.as_bytes()).is_err());
    }
}
