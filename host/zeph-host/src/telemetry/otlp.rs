//! Spans as a collector takes them: OTLP over HTTP, in JSON.
//!
//! Source: OpenTelemetry Protocol 1.9, `ExportTraceServiceRequest`. Ids are in hexadecimal digits, 64-bit numbers are texts.

use std::time::Duration;

use serde_json::{Value, json};

use super::context::SpanContext;

/// On which side of a request a span lies.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum SpanKind {
    /// On none.
    Internal,
    /// It answers one.
    Server,
}

/// A span that has ended. Nothing in it is secret.
#[derive(Debug)]
pub(super) struct SpanRecord {
    pub(super) name: String,
    pub(super) context: SpanContext,
    pub(super) kind: SpanKind,
    pub(super) started_ms: i64,
    pub(super) duration: Duration,
    pub(super) attributes: Vec<(&'static str, String)>,
    /// Why the call failed, in words or without any.
    pub(super) error: Option<String>,
}

impl SpanRecord {
    /// The span as JSON.
    pub(super) fn json(&self) -> Value {
        let started = i128::from(self.started_ms) * 1_000_000;
        let nanos = i128::try_from(self.duration.as_nanos()).unwrap_or(0);
        let attributes = self.attributes.iter();
        let attributes = attributes.map(|(key, value)| attribute(key, value));
        let mut span = json!({
            "traceId": format!("{:032x}", self.context.trace),
            "spanId": format!("{:016x}", self.context.span),
            "name": self.name,
            "kind": match self.kind {
                SpanKind::Internal => 1,
                SpanKind::Server => 2,
            },
            "startTimeUnixNano": started.to_string(),
            "endTimeUnixNano": (started + nanos).to_string(),
            "attributes": attributes.collect::<Vec<_>>(),
        });
        if let Some(parent) = self.context.parent {
            span["parentSpanId"] = json!(format!("{parent:016x}"));
        }
        if let Some(state) = &self.context.state {
            span["traceState"] = json!(state);
        }
        if let Some(message) = &self.error {
            span["status"] = json!({ "code": 2, "message": message });
        }
        span
    }
}

/// The body of a request with `spans`, each as JSON.
pub(super) fn request(resource: &[(String, String)], spans: &[String]) -> String {
    let attributes = resource.iter().map(|(key, value)| attribute(key, value));
    let resource = json!({ "attributes": attributes.collect::<Vec<_>>() });
    let scope = json!({ "name": "zeph-host", "version": env!("CARGO_PKG_VERSION") });
    let spans = spans.join(",");
    format!(
        "{{\"resourceSpans\":[{{\"resource\":{resource},\"scopeSpans\":[{{\"scope\":{scope},\"spans\":[{spans}]}}]}}]}}"
    )
}

fn attribute(key: &str, value: &str) -> Value {
    json!({ "key": key, "value": { "stringValue": value } })
}
