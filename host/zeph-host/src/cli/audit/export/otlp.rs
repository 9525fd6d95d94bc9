//! Calls as log records of OpenTelemetry, in OTLP/JSON.
//!
//! Source: OpenTelemetry Protocol 1.9, `ExportLogsServiceRequest`. 64-bit numbers are texts.

use serde_json::{Value, json};
use zeph_store::{AuditRecord, AuditResult};

/// `SEVERITY_NUMBER_INFO` and `SEVERITY_NUMBER_WARN`.
const INFO: u32 = 9;
const WARN: u32 = 13;

/// The body of a request with these calls.
pub(super) fn request(records: &[AuditRecord]) -> Result<Value, serde_json::Error> {
    let records = records.iter().map(log_record);
    let records = records.collect::<Result<Vec<_>, _>>()?;
    let service = attribute("service.name", &json!("zeph-host"));
    Ok(json!({ "resourceLogs": [{
        "resource": { "attributes": [service] },
        "scopeLogs": [{
            "scope": { "name": "zeph-host audit", "version": env!("CARGO_PKG_VERSION") },
            "logRecords": records,
        }],
    }] }))
}

fn log_record(record: &AuditRecord) -> Result<Value, serde_json::Error> {
    let value = serde_json::to_value(record)?;
    let result = record.ending.as_ref().map(|ending| &ending.result);
    let (number, text) = match result {
        None | Some(AuditResult::Success) => (INFO, "INFO"),
        Some(_) => (WARN, "WARN"),
    };
    let nanos = |ms: i64| (i128::from(ms) * 1_000_000).to_string();
    let fields = value.as_object().into_iter().flatten();
    let attributes = fields
        .filter(|(name, _)| !matches!(name.as_str(), "timestamp" | "command"))
        .map(|(name, value)| attribute(&format!("zeph.{name}"), value));
    Ok(json!({
        "timeUnixNano": nanos(record.begin.at_ms),
        "observedTimeUnixNano": nanos(record.finished_at_ms.unwrap_or(record.begin.at_ms)),
        "severityNumber": number,
        "severityText": text,
        "eventName": "zeph.audit.call",
        "body": { "stringValue": record.begin.command },
        "attributes": attributes.collect::<Vec<_>>(),
    }))
}

fn attribute(key: &str, value: &Value) -> Value {
    json!({ "key": key, "value": any_value(value) })
}

fn any_value(value: &Value) -> Value {
    match value {
        Value::Null => json!({}),
        Value::Bool(value) => json!({ "boolValue": value }),
        Value::Number(number) => match number.as_i64() {
            Some(number) => json!({ "intValue": number.to_string() }),
            None => json!({ "doubleValue": number }),
        },
        Value::String(text) => json!({ "stringValue": text }),
        Value::Array(values) => {
            let values: Vec<Value> = values.iter().map(any_value).collect();
            json!({ "arrayValue": { "values": values } })
        }
        Value::Object(fields) => {
            let fields = fields.iter().map(|(key, value)| attribute(key, value));
            json!({ "kvlistValue": { "values": fields.collect::<Vec<_>>() } })
        }
    }
}
