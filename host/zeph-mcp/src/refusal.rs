//! The refusal of a message: the id that its sender knows it by, and what is sent.

use rmcp::model::RequestId;
use serde_json::{Value, json};

/// The id of a request as its client wrote it: a string, or a whole number of any size. Its client waits for an answer with this one, also
/// where the server can work with no such number.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct WrittenId(String);

impl WrittenId {
    /// The id that `json`, without blanks around it, is; `None` when it is none.
    pub(crate) fn read(json: &str) -> Option<Self> {
        let is_id = match json.starts_with('"') {
            true => serde_json::from_str::<String>(json).is_ok(),
            false => is_whole(json),
        };
        is_id.then(|| Self(json.to_owned()))
    }

    /// Whether the server can work with it: numbers have 64 bits.
    pub(crate) fn is_usable(&self) -> bool {
        self.0.starts_with('"') || self.0.parse::<i64>().is_ok()
    }
}

impl From<&RequestId> for WrittenId {
    fn from(id: &RequestId) -> Self {
        Self(match id {
            RequestId::Number(id) => id.to_string(),
            RequestId::String(id) => Value::from(&**id).to_string(),
        })
    }
}

/// Whether `json` is a number of digits alone.
fn is_whole(json: &str) -> bool {
    let digits = json.strip_prefix('-').unwrap_or(json);
    let is_digits = digits.bytes().all(|byte| byte.is_ascii_digit());
    is_digits && !digits.is_empty() && (!digits.starts_with('0') || json == "0")
}

/// The error of JSON-RPC that answers a message with this id. It has none where none could be read, as the protocol wants; its ids are never
/// null.
pub(crate) fn text(id: Option<&WrittenId>, code: i32, problem: &str) -> String {
    let error = json!({ "code": code, "message": problem });
    match id {
        Some(WrittenId(id)) => format!(r#"{{"jsonrpc":"2.0","id":{id},"error":{error}}}"#),
        None => format!(r#"{{"jsonrpc":"2.0","error":{error}}}"#),
    }
}

#[cfg(test)]
mod tests {
    use serde_json::Value;

    use super::{WrittenId, text};

    #[test]
    fn an_id_comes_back_as_it_was_written() {
        let large = "9".repeat(40);
        for (json, is_usable) in [
            ("0", true),
            ("-7", true),
            ("9223372036854775807", true),
            ("9223372036854775808", false),
            (large.as_str(), false),
            (r#""a\u0020\"b""#, true),
        ] {
            let id = WrittenId::read(json).expect(json);
            assert_eq!(id.is_usable(), is_usable, "{json}");
            let refusal = text(Some(&id), -32_600, "no \"reason\"");
            assert!(refusal.contains(&format!(r#""id":{json},"#)), "{refusal}");
            assert!(serde_json::from_str::<Value>(&refusal).is_ok());
        }
        for json in [
            "",
            "-",
            "-0",
            "07",
            "1.5",
            "1e2",
            "null",
            "[1]",
            r#""a"#,
            r#""\ud800""#,
        ] {
            assert_eq!(WrittenId::read(json), None, "{json}");
        }
        assert!(!text(None, -32_700, "no").contains("id"));
    }
}
