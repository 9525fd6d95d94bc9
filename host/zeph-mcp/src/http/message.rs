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
use tokio::time::timeout;

use super::room::BodyPlace;
use super::sound::Sound;
use crate::passing::PassingMessage;
use crate::refusal::{self, WrittenId};

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
    Request { method: String, id: WrittenId },
    /// A notification or an answer: nothing is sent back.
    OneWay,
}

/// What is wrong with a message, as JSON-RPC counts it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct BadMessage {
    /// The id of the request that it is, if it has one.
    id: Option<WrittenId>,
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
/// Errors: [`BadBody`] with the id of the request that came of it, after enough of it was thrown away for its sender to look for the answer.
pub(super) async fn read(
    headers: &HeaderMap,
    mut body: Body,
    limits: &BodyLimits,
    place: &mut BodyPlace,
) -> Result<Bytes, (BadBody, Option<WrittenId>)> {
    let declared = headers.get(CONTENT_LENGTH);
    let declared = declared.and_then(|length| length.to_str().ok()?.parse::<usize>().ok());
    let too_large = BadBody::TooLarge(limits.bytes_max);
    let mut bytes = Vec::new();
    let (problem, last) = if declared.is_some_and(|length| length > limits.bytes_max) {
        (too_large, Bytes::new())
    } else {
        let collected = collect(&mut body, &mut bytes, limits, place);
        match timeout(limits.whole_max, collected).await {
            Ok(Ok(())) => return Ok(bytes.into()),
            Ok(Err(refused)) => refused,
            Err(_) => (BadBody::TooSlow, Bytes::new()),
        }
    };
    let mut seen = PassingMessage::of(&bytes);
    seen.push(&last);
    drop((bytes, last));
    if problem == too_large || problem == BadBody::NoRoom {
        drain(headers, body, |data| seen.push(data)).await;
    }
    Err((problem, seen.request_id()))
}

/// Reads a body to its end.
///
/// Errors: [`BadBody`], with what was read last and not taken.
async fn collect(
    body: &mut Body,
    bytes: &mut Vec<u8>,
    limits: &BodyLimits,
    place: &mut BodyPlace,
) -> Result<(), (BadBody, Bytes)> {
    loop {
        let part = match timeout(limits.part_max, body.frame()).await {
            Err(_) => return Err((BadBody::TooSlow, Bytes::new())),
            Ok(None) => return Ok(()),
            Ok(Some(Err(_))) => return Err((BadBody::Broken, Bytes::new())),
            Ok(Some(Ok(part))) => part,
        };
        let Ok(data) = part.into_data() else {
            continue;
        };
        if data.len() > limits.bytes_max - bytes.len() {
            return Err((BadBody::TooLarge(limits.bytes_max), data));
        }
        if !place.grow(data.len()) {
            return Err((BadBody::NoRoom, data));
        }
        bytes.extend_from_slice(&data);
    }
}

/// Reads what is left of a body that is refused, and throws it away when it was `seen`. Many clients look for an answer only when they have
/// sent it all.
pub(super) async fn drain(headers: &HeaderMap, mut body: Body, mut seen: impl FnMut(&[u8])) {
    // This one asks first.
    if headers.contains_key(EXPECT) {
        return;
    }
    let throw_away = async {
        let mut n_bytes = 0;
        while let Some(Ok(part)) = body.frame().await {
            let data = part.data_ref().map_or(&[] as &[u8], |data| &data[..]);
            seen(data);
            n_bytes += data.len();
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
    whole_kind(body).map_err(|bad| BadMessage {
        id: bad.id.or_else(|| PassingMessage::of(body).request_id()),
        ..bad
    })
}

fn whole_kind(body: &[u8]) -> Result<MessageKind, BadMessage> {
    if body.iter().find(|byte| !byte.is_ascii_whitespace()) == Some(&b'[') {
        return Err(BadMessage::invalid(
            "the protocol has no batches: send each message in a request of its own",
        ));
    }
    serde_json::from_slice::<Sound>(body).map_err(|error| BadMessage::parse(&error.to_string()))?;
    let envelope: Envelope<'_> =
        serde_json::from_slice(body).map_err(|error| BadMessage::invalid(&error.to_string()))?;
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
        (None, id) => {
            let bad = BadMessage::invalid("it has no `method`");
            Err(bad.of(id.and_then(|id| WrittenId::read(id.get()))))
        }
    }
}

fn request_id(id: &RawValue) -> Result<WrittenId, BadMessage> {
    let id = WrittenId::read(id.get())
        .ok_or_else(|| BadMessage::invalid("`id` is neither a string nor a whole number"))?;
    match id.is_usable() {
        true => Ok(id),
        false => Err(BadMessage::invalid("`id` has more than 64 bits").of(Some(id))),
    }
}

impl BadMessage {
    pub(super) fn invalid(problem: &str) -> Self {
        Self {
            id: None,
            code: -32_600,
            problem: format!("Invalid Request: {problem}"),
        }
    }

    /// A message whose fields are not those of its method. What has no id is no request, so no parameters of one are wrong.
    pub(super) fn fields(id: Option<WrittenId>) -> Self {
        let problem = "its fields are not those of its method";
        match id {
            None => Self::invalid(problem),
            id => Self {
                id,
                code: -32_602,
                problem: format!("Invalid params: {problem}"),
            },
        }
    }

    /// What is no JSON, or cannot be read as such.
    fn parse(problem: &str) -> Self {
        Self {
            id: None,
            code: -32_700,
            problem: format!("Parse error: {problem}"),
        }
    }

    /// Sets the id of the refused request.
    pub(super) fn of(self, id: Option<WrittenId>) -> Self {
        Self { id, ..self }
    }

    /// The answer to it.
    pub(super) fn response(&self) -> Response {
        let id = self.id.as_ref();
        error_response(StatusCode::BAD_REQUEST, id, self.code, &self.problem)
    }
}

impl BadBody {
    /// The answer to it, for the request with this id.
    pub(super) fn response(self, id: Option<&WrittenId>) -> Response {
        let (status, code) = match self {
            Self::TooLarge(_) => (StatusCode::PAYLOAD_TOO_LARGE, -32_600),
            Self::TooSlow => (StatusCode::REQUEST_TIMEOUT, -32_600),
            Self::Broken => (StatusCode::BAD_REQUEST, -32_700),
            Self::NoRoom => (StatusCode::SERVICE_UNAVAILABLE, -32_000),
        };
        error_response(status, id, code, &self.to_string())
    }
}

/// An error of JSON-RPC with the status of HTTP that goes with it.
pub(super) fn error_response(
    status: StatusCode,
    id: Option<&WrittenId>,
    code: i32,
    problem: &str,
) -> Response {
    let json = [(CONTENT_TYPE, "application/json")];
    (status, json, refusal::text(id, code, problem)).into_response()
}

#[cfg(test)]
mod tests {
    use super::{MessageKind, kind};
    use crate::refusal::WrittenId;

    #[test]
    fn only_single_messages_pass() {
        let request = |id| MessageKind::Request {
            method: "a/b".to_owned(),
            id: WrittenId::read(id).unwrap(),
        };
        let table = [
            (
                r#"{"jsonrpc":"2.0","id":1,"method":"a/b"}"#,
                Ok(request("1")),
            ),
            (
                r#" {"jsonrpc":"2.0","id":"x","method":"a\/b","params":{"a":[1]}}"#,
                Ok(request(r#""x""#)),
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
    }

    #[test]
    fn a_request_that_is_refused_is_named_by_its_id() {
        let deep = |n: usize| {
            let (open, close) = ("[".repeat(n), "]".repeat(n));
            format!(r#"{{"params":{open}{close},"jsonrpc":"2.0","id":1,"method":"a"}}"#)
        };
        let (deepest, too_deep, endless) = (deep(126), deep(127), deep(100_000));
        assert!(kind(deepest.as_bytes()).is_ok());
        let table: [(&[u8], i32, Option<&str>); 11] = [
            (too_deep.as_bytes(), -32_700, Some("1")),
            (endless.as_bytes(), -32_700, Some("1")),
            (
                b"{\"jsonrpc\":\"2.0\",\"id\":\"x\",\"method\":\"a\",\"params\":{\"a\":\"\xff\"}}",
                -32_700,
                Some(r#""x""#),
            ),
            (
                br#"{"jsonrpc":"2.0","id":2,"method":"a","params":{"a":1e999}}"#,
                -32_700,
                Some("2"),
            ),
            (
                br#"{"jsonrpc":"2.0","id":9223372036854775808,"method":"a"}"#,
                -32_600,
                Some("9223372036854775808"),
            ),
            (
                br#"{"jsonrpc":"2.0","id":-99999999999999999999,"method":"a"}"#,
                -32_600,
                Some("-99999999999999999999"),
            ),
            (
                br#"{"jsonrpc":"1.0","id":3,"method":"a"}"#,
                -32_600,
                Some("3"),
            ),
            (
                br#"{"jsonrpc":"2.0","id":4,"method":2}"#,
                -32_600,
                Some("4"),
            ),
            (br#"{"jsonrpc":"2.0","id":5}"#, -32_600, Some("5")),
            // Of one among many, and of none.
            (br#"[{"jsonrpc":"2.0","id":6,"method":"a"}]"#, -32_600, None),
            (br#"{"jsonrpc":"2.0","id":1.5,"method":"a"}"#, -32_600, None),
        ];
        for (body, code, id) in table {
            let bad = kind(body).expect_err("it is no message");
            let shown = String::from_utf8_lossy(body);
            assert_eq!(bad.code, code, "{shown}");
            assert_eq!(bad.id, id.and_then(WrittenId::read), "{shown}");
        }
    }
}
