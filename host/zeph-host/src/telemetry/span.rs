//! The span of one call: what it is called, how long it took, how it ended. Arguments and result only where the operator wants them.
//!
//! Source: the conventions of OpenTelemetry for generative AI (`execute_tool`) and for MCP, both in development.

use std::time::Duration;

use serde_json::Value;
use zeph_core::call::{CallFrame, ToolRequest};
use zeph_core::failure::one_line;
use zeph_core::output::{Outcome, ToolOutput};
use zeph_core::redact::Redactor;
use zeph_core::tool::Tool;

use super::context::{SpanContext, TraceParent};
use super::otlp::{SpanKind, SpanRecord};
use super::{RemoteRequest, Telemetry};

/// Most characters of a name, and of other texts; of arguments and of a result.
const NAME_CHARS_MAX: usize = 128;
const TEXT_CHARS_MAX: usize = 1_000;
const CONTENT_CHARS_MAX: usize = 16_000;

/// The span of a call that runs; none where nothing is sent.
#[derive(Debug)]
pub(crate) struct CallSpan(Option<Box<OpenSpan>>);

#[derive(Debug)]
struct OpenSpan {
    exporter: Telemetry,
    context: SpanContext,
    kind: SpanKind,
    started_ms: i64,
    tool: String,
    description: Option<String>,
    /// Texts of others, which are redacted at the end.
    attributes: Vec<(&'static str, String)>,
    arguments: Option<Value>,
}

impl CallSpan {
    /// The span of a call that was just asked for, by a client of MCP if `remote` says so.
    pub(crate) fn begun(
        telemetry: &Telemetry,
        frame: &CallFrame,
        request: &ToolRequest,
        remote: Option<&RemoteRequest>,
    ) -> Self {
        let Some(exporter) = &telemetry.0 else {
            return Self(None);
        };
        let settings = exporter.settings();
        let parent = remote.and_then(|remote| TraceParent::parse(remote.trace_parent.as_deref()?));
        let state = remote.and_then(|remote| remote.trace_state.as_deref());
        let Some(context) = SpanContext::new(parent, state, settings.sampler) else {
            return Self(None);
        };
        let mut attributes = vec![
            ("gen_ai.operation.name", "execute_tool".to_owned()),
            ("gen_ai.tool.call.id", frame.id.to_string()),
            ("gen_ai.tool.type", "function".to_owned()),
            ("gen_ai.conversation.id", frame.conversation.to_string()),
        ];
        attributes.extend(remote.into_iter().flat_map(of_remote));
        Self(Some(Box::new(OpenSpan {
            exporter: telemetry.clone(),
            context,
            kind: remote.map_or(SpanKind::Internal, |_| SpanKind::Server),
            started_ms: frame.started_ms,
            tool: request.tool.clone(),
            description: None,
            attributes,
            arguments: settings.captures_content.then(|| request.arguments.clone()),
        })))
    }

    /// Says which tool it was.
    pub(crate) fn of_tool(&mut self, tool: Option<&Tool>) {
        if let (Some(span), Some(tool)) = (&mut self.0, tool) {
            span.tool = tool.name.to_string();
            span.description = Some(tool.description.clone());
        }
    }

    /// Sends it, without any secret that `redactor` knows.
    pub(crate) fn ended(self, output: &ToolOutput, duration: Duration, redactor: &Redactor) {
        let Some(mut span) = self.0 else {
            return;
        };
        if let Some(exporter) = span.exporter.0.take() {
            exporter.send(&span.record(output, duration, redactor));
        }
    }
}

fn of_remote(remote: &RemoteRequest) -> Vec<(&'static str, String)> {
    let mut attributes = vec![
        ("mcp.method.name", remote.method.to_owned()),
        ("jsonrpc.request.id", remote.id.clone()),
        ("network.transport", remote.transport.to_owned()),
    ];
    let version = remote.protocol_version.clone();
    attributes.extend(version.map(|version| ("mcp.protocol.version", version)));
    attributes
}

impl OpenSpan {
    fn record(self, output: &ToolOutput, duration: Duration, redactor: &Redactor) -> SpanRecord {
        let clean = |text: &str, max: usize| one_line(&redactor.text(text), max);
        let tool = clean(&self.tool, NAME_CHARS_MAX);
        let mut attributes: Vec<(&'static str, String)> = self
            .attributes
            .iter()
            .map(|(key, value)| (*key, clean(value, NAME_CHARS_MAX)))
            .collect();
        attributes.push(("gen_ai.tool.name", tool.clone()));
        let description = self.description.as_deref();
        attributes.extend(
            description.map(|text| ("gen_ai.tool.description", clean(text, TEXT_CHARS_MAX))),
        );
        let failure = match &output.outcome {
            Outcome::Done => None,
            Outcome::Failed(failure) => Some(failure),
        };
        if let Some(failure) = failure {
            let category = failure.category.label();
            // To a client of MCP every failure of a tool is one kind of error.
            let kind = match self.kind {
                SpanKind::Server => "tool_error",
                SpanKind::Internal => category,
            };
            attributes.push(("error.type", kind.to_owned()));
            attributes.push(("zeph.error.category", category.to_owned()));
        }
        let has_content = self.arguments.is_some();
        if let Some(mut arguments) = self.arguments {
            redactor.clean_json(&mut arguments);
            let text = head(&arguments.to_string());
            attributes.push(("gen_ai.tool.call.arguments", text));
            let result = redactor.text(output.produced());
            attributes.push(("gen_ai.tool.call.result", head(&result)));
        }
        // What failed may be quoted in the reason.
        let message = failure.filter(|_| has_content);
        SpanRecord {
            name: format!("execute_tool {tool}"),
            context: self.context,
            kind: self.kind,
            started_ms: self.started_ms,
            duration,
            attributes,
            error: failure.map(|_| {
                let message = message.map(|failure| clean(&failure.message, TEXT_CHARS_MAX));
                message.unwrap_or_default()
            }),
        }
    }
}

/// The first characters of a long text.
fn head(text: &str) -> String {
    match text.char_indices().nth(CONTENT_CHARS_MAX) {
        None => text.to_owned(),
        Some((end, _)) => format!("{}…", &text[..end]),
    }
}
