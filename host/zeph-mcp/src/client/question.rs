//! What a server asks its user, made fit to be shown: a person answers what he reads, so the form that is read is the form that counts.

use rmcp::model::{ElicitRequestParams, ElicitationSchema};
use serde_json::Value;
use zeph_core::text::is_deceptive;

use super::cleaning::{Problem, schema, text};

/// Most bytes of a question, and of each explanation in its form.
const TEXT_BYTES_MAX: usize = 8 * 1024;

/// Most bytes of a form.
const FORM_BYTES_MAX: usize = 64 * 1024;

/// Most bytes of an address.
const URL_BYTES_MAX: usize = 2048;

/// `question` without deceptive characters in its texts.
///
/// Errors: why it is not put to anybody: its form is too large or would be read as another one; its address is not one of the web.
pub(super) fn cleaned(question: ElicitRequestParams) -> Result<ElicitRequestParams, Problem> {
    let said = |message: &str| text(message, TEXT_BYTES_MAX, &mut 0);
    match question {
        ElicitRequestParams::FormElicitationParams {
            meta,
            message,
            requested_schema,
        } => Ok(ElicitRequestParams::FormElicitationParams {
            meta,
            message: said(&message),
            requested_schema: form(requested_schema)?,
        }),
        ElicitRequestParams::UrlElicitationParams {
            meta,
            message,
            url,
            elicitation_id,
        } => Ok(ElicitRequestParams::UrlElicitationParams {
            meta,
            message: said(&message),
            url: address(url)?,
            elicitation_id,
        }),
        _ => Err("it is of an unknown kind"),
    }
}

/// One that has nothing to clean keeps the order of its fields.
fn form(form: ElicitationSchema) -> Result<ElicitationSchema, Problem> {
    const UNUSABLE: Problem = "its form is not a schema";
    let Ok(Value::Object(sent)) = serde_json::to_value(&form) else {
        return Err(UNUSABLE);
    };
    let clean = schema(&sent, TEXT_BYTES_MAX, &mut 0)?;
    if Value::Object(sent.clone()).to_string().len() > FORM_BYTES_MAX {
        return Err("its form is too large");
    }
    match clean == sent {
        true => Ok(form),
        false => serde_json::from_value(Value::Object(clean)).map_err(|_| UNUSABLE),
    }
}

fn address(url: String) -> Result<String, Problem> {
    let is_of_web = url.starts_with("https://") || url.starts_with("http://");
    let is_plain = !url.contains(is_deceptive) && !url.contains(char::is_whitespace);
    match is_of_web && is_plain && url.len() <= URL_BYTES_MAX {
        true => Ok(url),
        false => Err("its address is not a plain one of the web"),
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn check(question: Value) -> Result<Value, Problem> {
        let question = serde_json::from_value(question).unwrap();
        cleaned(question).map(|question| serde_json::to_value(question).unwrap())
    }

    fn form_of(field: &str, about: &Value) -> Value {
        json!({
            "mode": "form",
            "message": "Your\u{202e} name?\u{1b}[2J",
            "requestedSchema": { "type": "object", "properties": { field: about } },
        })
    }

    #[test]
    fn a_person_reads_the_question_that_counts() {
        let asked = form_of(
            "name",
            &json!({ "type": "string", "title": "Na\u{200b}me" }),
        );
        let shown = check(asked).unwrap();
        assert_eq!(shown["message"], "Your name?[2J");
        let name = &shown["requestedSchema"]["properties"]["name"];
        assert_eq!(name["title"], "Name");
        for (field, about) in [
            ("na\u{200b}me", json!({ "type": "string" })),
            (
                "role",
                json!({ "type": "string", "enum": ["user", "us\u{202e}re"] }),
            ),
            (
                "long",
                json!({ "type": "string", "enum": ["x".repeat(FORM_BYTES_MAX)] }),
            ),
        ] {
            assert!(check(form_of(field, &about)).is_err(), "{field}");
        }
    }

    #[test]
    fn an_address_is_one_of_the_web() {
        let of = |url: &str| {
            let question = json!({
                "mode": "url", "message": "Log in", "url": url, "elicitationId": "1",
            });
            check(question).map(|shown| shown["url"].as_str().map(str::to_owned))
        };
        let good = "https://example.com/login?x=1";
        assert_eq!(of(good).unwrap().as_deref(), Some(good));
        for bad in [
            "javascript:alert(1)",
            "file:///etc/passwd",
            "https://example.com/\u{202e}moc.live",
            "https://example.com/ https://other",
            "",
        ] {
            assert!(of(bad).is_err(), "{bad:?}");
        }
    }
}
