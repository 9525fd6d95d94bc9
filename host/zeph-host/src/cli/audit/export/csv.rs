//! Calls as comma-separated values (RFC 4180). Lists and objects are JSON in their field.

use serde_json::Value;
use zeph_store::AuditRecord;

/// The columns, by the names of the JSON; a dot leads into an object.
const COLUMNS: [&str; 40] = [
    "timestamp",
    "call_id",
    "conversation_id",
    "tool",
    "result.type",
    "result.reason",
    "result.message",
    "duration_ms",
    "error_category",
    "error_domain",
    "error_phase",
    "exit_code",
    "truncated",
    "command",
    "plugin",
    "plugin_digest",
    "mcp_server_id",
    "claim_source",
    "caller_id",
    "user",
    "scope",
    "trust",
    "labels",
    "result_labels",
    "observed",
    "turn_id",
    "goal_id",
    "skill_name",
    "tokens.input",
    "tokens.output",
    "policy_match",
    "agreement",
    "adversarial_verdict",
    "correlation_id",
    "resolved_cwd",
    "execution_env",
    "hosts",
    "attempts",
    "cache_age_ms",
    "overflow_id",
];

/// The first line.
pub(super) fn head() -> String {
    COLUMNS.join(",") + "\r\n"
}

/// The line of a call.
pub(super) fn row(record: &AuditRecord) -> Result<String, serde_json::Error> {
    let value = serde_json::to_value(record)?;
    let fields = COLUMNS.iter().map(|column| {
        let mut found = Some(&value);
        for part in column.split('.') {
            found = found.and_then(|value| value.get(part));
        }
        field(found)
    });
    Ok(fields.collect::<Vec<_>>().join(",") + "\r\n")
}

fn field(value: Option<&Value>) -> String {
    let text = match value {
        None | Some(Value::Null) => return String::new(),
        Some(Value::String(text)) => text.clone(),
        Some(other) => other.to_string(),
    };
    match text.contains([',', '"', '\r', '\n']) {
        true => format!("\"{}\"", text.replace('"', "\"\"")),
        false => text,
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::field;

    #[test]
    fn what_separates_is_quoted() {
        for (value, expected) in [
            (json!("plain"), "plain"),
            (json!("a,b"), "\"a,b\""),
            (json!("say \"a\"\r\n"), "\"say \"\"a\"\"\r\n\""),
            (json!(["private", "x"]), "\"[\"\"private\"\",\"\"x\"\"]\""),
            (json!(7), "7"),
            (json!(null), ""),
        ] {
            assert_eq!(field(Some(&value)), expected);
        }
    }
}
