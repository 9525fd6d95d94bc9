//! What is seen of a message that is too long: its beginning alone is kept.

use std::fmt;

use serde::Deserializer as _;
use serde::de::{IgnoredAny, MapAccess, Visitor};

use super::RequestId;

/// The id of the request that begins like this; [`RequestId::Null`] for what is no request, or does not say so before it is cut off.
pub fn request_id(beginning: &[u8]) -> RequestId {
    let mut seen = SeenFields::default();
    let mut json = serde_json::Deserializer::from_slice(beginning);
    // It fails where the beginning ends: what was seen until then counts.
    let _is_cut_off = json.deserialize_map(&mut seen).is_err();
    let id = seen.id.filter(|_| seen.has_method);
    id.unwrap_or(RequestId::Null)
}

#[derive(Default)]
struct SeenFields {
    id: Option<RequestId>,
    has_method: bool,
}

impl<'de> Visitor<'de> for &mut SeenFields {
    type Value = ();

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a message")
    }

    fn visit_map<A: MapAccess<'de>>(self, mut fields: A) -> Result<(), A::Error> {
        while let Some(name) = fields.next_key::<String>()? {
            match name.as_str() {
                "id" => self.id = Some(fields.next_value()?),
                "method" => {
                    self.has_method = true;
                    fields.next_value::<IgnoredAny>()?;
                }
                _ => {
                    fields.next_value::<IgnoredAny>()?;
                }
            }
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::request_id;
    use crate::rpc::RequestId;

    #[test]
    fn a_request_is_known_by_its_beginning() {
        let text = |id: &str| RequestId::Text(id.to_owned());
        for (beginning, id) in [
            (
                r#"{"jsonrpc":"2.0","id":7,"method":"session/prompt","params":{"x":"yy"#,
                RequestId::Number(7),
            ),
            (r#"{"method":"a","id":"b","params":[[1,"#, text("b")),
            (
                r#"{"method":"a","params":{"id":3},"id":4,"more":""#,
                RequestId::Number(4),
            ),
            // Answers and notifications are answered by nobody's id.
            (
                r#"{"jsonrpc":"2.0","id":7,"result":{"content":"yy"#,
                RequestId::Null,
            ),
            (r#"{"method":"a","params":{"id":3,"x":"yy"#, RequestId::Null),
            (r#"{"id":{"a":1},"method":"a","params":"#, RequestId::Null),
            ("xxxx", RequestId::Null),
            ("[{\"id\":1", RequestId::Null),
        ] {
            assert_eq!(request_id(beginning.as_bytes()), id, "{beginning}");
        }
    }
}
