//! Spans of calls for OpenTelemetry, with the conventions for tools of models and for MCP.
//!
//! A span is made where every call passes, at the two ends of the line (`pipeline.rs`); what it holds has passed the same redactor as
//! the result. Spans wait in a bounded queue and go out over `zeph-egress`, so a collector that does not answer never delays a call.
//! Nothing is sent unless the standard variables name a collector.
//!
//! Encoding and queue are our own: OTLP over HTTP is one small document of JSON, and the crates of the project would be thirteen more,
//! four of them second versions.

mod context;
mod exporter;
mod otlp;
mod span;

use std::sync::{Arc, OnceLock};

use zeph_config::TelemetrySettings;
use zeph_egress::Egress;

use self::exporter::Exporter;
pub(crate) use self::span::CallSpan;

/// What sends the spans of the program, for its end. Hosts that are a part of another program are not in it.
static EXPORTER: OnceLock<Arc<Exporter>> = OnceLock::new();

/// What sends the spans of a host; none where nothing is sent.
#[derive(Debug, Clone, Default)]
pub(crate) struct Telemetry(Option<Arc<Exporter>>);

impl Telemetry {
    /// Sends what waits.
    ///
    /// Limits: 5 s; what is not sent by then is lost.
    pub(crate) async fn flush(&self) {
        if let Some(exporter) = &self.0 {
            exporter.flush().await;
        }
    }
}

/// Begins to send spans when the variables of the process say where. To be called within a runtime.
///
/// Returns what sends them, and what the operator should know, in a sentence.
pub(crate) fn start(egress: &Egress) -> (Telemetry, Option<String>) {
    if let Some(exporter) = EXPORTER.get() {
        return (Telemetry(Some(Arc::clone(exporter))), None);
    }
    let made = match TelemetrySettings::of_process() {
        Ok(None) => return (Telemetry::default(), None),
        Ok(Some(settings)) => Exporter::start(egress, settings),
        Err(problem) => Err(problem),
    };
    match made {
        Ok(exporter) => {
            // Another host of the program may have been quicker: one is enough.
            let exporter = EXPORTER.get_or_init(|| Arc::new(exporter));
            (Telemetry(Some(Arc::clone(exporter))), None)
        }
        Err(problem) => {
            let notice = format!("no spans are sent: {problem}");
            (Telemetry::default(), Some(notice))
        }
    }
}

/// Sends what waits, before the process ends.
///
/// Limits: 5 s; what is not sent by then is lost.
pub(crate) async fn flush() {
    if let Some(exporter) = EXPORTER.get() {
        exporter.flush().await;
    }
}

/// A request of a client of MCP, and how it came.
#[derive(Debug, Clone)]
pub(crate) struct RemoteRequest {
    /// The method, such as `tools/call`.
    pub method: &'static str,
    /// The revision of the protocol.
    pub protocol_version: Option<String>,
    /// The id of the request.
    pub id: String,
    /// `pipe` or `tcp`.
    pub transport: &'static str,
    /// `traceparent` of its `_meta`.
    pub trace_parent: Option<String>,
    /// `tracestate` of its `_meta`.
    pub trace_state: Option<String>,
}
