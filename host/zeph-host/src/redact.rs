//! Stage 6 of the line: what a call was given to know is not told in its output.
//!
//! Today that is the values of variables that a plugin was granted and that look like credentials. What only looks like a credential is
//! warned of by the stage before, and stays: it may be what the user asked for.

use serde_json::Value;
use zeph_core::execution::SecretValue;
use zeph_core::failure::ToolFailure;
use zeph_core::output::{Content, RawOutput, ResourceBody};
use zeph_engine::Listener;
use zeph_shell::environment::is_secret;

use crate::filtering::FilteredResult;

/// Shorter values are not taken for secrets: they occur by chance.
const SECRET_BYTES_MIN: usize = 8;

/// The variables among `variables` (name, value) whose values must not be told.
pub(crate) fn secrets(variables: &[(String, String)]) -> Vec<SecretValue> {
    let is_one = |(name, value): &&(String, String)| {
        value.len() >= SECRET_BYTES_MIN && is_secret(name, value)
    };
    let found = variables.iter().filter(is_one);
    found
        .map(|(name, value)| SecretValue {
            name: name.clone(),
            value: value.clone(),
        })
        .collect()
}

/// The output without the exact values of `secrets`, each of which is replaced by its name.
pub(crate) fn stage(mut shown: FilteredResult, secrets: &[SecretValue]) -> FilteredResult {
    if secrets.is_empty() {
        return shown;
    }
    raw(&mut shown.raw, secrets);
    if let Some(shorter) = &mut shown.shorter {
        text(&mut shorter.text, secrets);
        if let Some(original) = &mut shorter.original {
            text(original, secrets);
        }
    }
    shown
}

/// `listener`, which is told what a call reports while it runs, without the exact values of `secrets`.
pub(crate) fn listener(listener: Option<Listener>, secrets: &[SecretValue]) -> Option<Listener> {
    if secrets.is_empty() {
        return listener;
    }
    let secrets = secrets.to_vec();
    let edit = move |mut message: String| {
        text(&mut message, &secrets);
        message
    };
    listener.map(|listener| listener.edited(edit))
}

/// `failure` without the exact values of `secrets`.
pub(crate) fn failure(mut failure: ToolFailure, secrets: &[SecretValue]) -> ToolFailure {
    text(&mut failure.message, secrets);
    failure
}

fn raw(raw: &mut RawOutput, secrets: &[SecretValue]) {
    for content in &mut raw.content {
        match content {
            Content::Text(told)
            | Content::Resource {
                body: ResourceBody::Text(told),
                ..
            } => text(told, secrets),
            Content::Link { uri, name, .. } => {
                text(uri, secrets);
                text(name, secrets);
            }
            Content::Image(_) | Content::Audio(_) | Content::Resource { .. } => {}
        }
    }
    if let Some(structured) = &mut raw.structured {
        value(structured, secrets);
    }
    for location in &mut raw.locations {
        text(&mut location.path, secrets);
    }
}

fn value(told: &mut Value, secrets: &[SecretValue]) {
    match told {
        Value::String(told) => text(told, secrets),
        Value::Array(items) => items.iter_mut().for_each(|item| value(item, secrets)),
        Value::Object(fields) => {
            let told = std::mem::take(fields).into_iter();
            *fields = told
                .map(|(mut key, mut item)| {
                    text(&mut key, secrets);
                    value(&mut item, secrets);
                    (key, item)
                })
                .collect();
        }
        Value::Null | Value::Bool(_) | Value::Number(_) => {}
    }
}

fn text(told: &mut String, secrets: &[SecretValue]) {
    for secret in secrets {
        if told.contains(&secret.value) {
            *told = told.replace(&secret.value, &format!("[redacted: {}]", secret.name));
        }
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;
    use zeph_core::category::{ErrorCategory, ErrorPhase};
    use zeph_core::failure::ToolFailure;
    use zeph_core::output::RawOutput;

    use super::{failure, secrets, stage};
    use crate::filtering::{FilteredResult, Shorter};

    const VALUE: &str = "s3cr3t-value";

    fn granted() -> Vec<(String, String)> {
        let pairs = [
            ("API_TOKEN", VALUE),
            ("LANG", "en_GB.UTF-8"),
            ("SHORT_KEY", "1"),
        ];
        pairs
            .map(|(name, value)| (name.to_owned(), value.to_owned()))
            .to_vec()
    }

    #[test]
    fn only_what_looks_like_a_credential_is_a_secret() {
        let names: Vec<String> = secrets(&granted()).into_iter().map(|s| s.name).collect();
        assert_eq!(names, ["API_TOKEN"]);
    }

    #[test]
    fn no_part_of_an_output_tells_a_secret() {
        let told = format!("en_GB.UTF-8 1 {VALUE}{VALUE}");
        let shown = FilteredResult {
            raw: RawOutput {
                structured: Some(json!({ VALUE: [1, { "deep": told }] })),
                ..RawOutput::text(told.clone())
            },
            shorter: Some(Shorter {
                text: told.clone(),
                line: None,
                original: Some(told.clone()),
                rules: Vec::new(),
            }),
            ..FilteredResult::default()
        };
        let shown = stage(shown, &secrets(&granted()));
        assert!(!format!("{shown:?}").contains(VALUE), "{shown:?}");
        let text = shown.raw.to_text();
        assert_eq!(
            text,
            "en_GB.UTF-8 1 [redacted: API_TOKEN][redacted: API_TOKEN]"
        );
        let failed = ToolFailure::new(ErrorCategory::ServerError, ErrorPhase::Execution, told);
        let failed = failure(failed, &secrets(&granted()));
        assert!(!failed.message.contains(VALUE), "{failed:?}");
    }
}
