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

use std::sync::OnceLock;

use zeph_config::TelemetrySettings;
use zeph_egress::Egress;

use self::exporter::Exporter;
pub(crate) use self::span::CallSpan;

/// What sends the spans of this process. One process has one collector, whatever it does.
static EXPORTER: OnceLock<Exporter> = OnceLock::new();

/// Begins to send spans when the variables of the process say where. To be called within a runtime.
///
/// Returns what the operator should know, in a sentence.
pub(crate) fn start(egress: &Egress) -> Option<String> {
    if EXPORTER.get().is_some() {
        return None;
    }
    let made = match TelemetrySettings::of_process() {
        Ok(None) => return None,
        Ok(Some(settings)) => Exporter::start(egress, settings),
        Err(problem) => Err(problem),
    };
    match made {
        Ok(exporter) => {
            // Another host of this process may have been quicker: one is enough.
            drop(EXPORTER.set(exporter));
            None
        }
        Err(problem) => Some(format!("no spans are sent: {problem}")),
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
