//! A host with a backend of its own: the tickets of a program, as tools that are authorised, recorded and redacted like all others.
//! `cargo run -p zeph-host --features examples --example backend`
#![allow(clippy::print_stdout, dead_code, reason = "tests use it too")]

use std::collections::BTreeMap;
use std::error::Error;
use std::sync::{Mutex, PoisonError};

use serde_json::{Value, json};
use zeph_host::{
    ApprovalAnswer, ApprovalPrompt, CallOptions, CallReport, Caller, ErrorCategory, ErrorPhase,
    Host, HostBuilder, Lifetime, ToolCall, ToolDefinition, ToolExecutor, ToolFailure, ToolKind,
};

/// Tickets by their number; those that are closed are gone.
struct Tickets(Mutex<BTreeMap<u64, String>>);

impl Tickets {
    fn new() -> Self {
        let tickets = [(7, "The door squeaks."), (8, "The window is open.")];
        let tickets = tickets.map(|(number, text)| (number, text.to_owned()));
        Self(Mutex::new(BTreeMap::from(tickets)))
    }

    fn answer(&self, tool: &str, number: u64) -> Option<String> {
        let mut tickets = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        match tool {
            "close_ticket" => tickets
                .remove(&number)
                .map(|text| format!("Closed: {text}")),
            _ => tickets.get(&number).cloned(),
        }
    }
}

fn schema() -> Value {
    json!({"type": "object", "properties": {"number": {"type": "integer"}}, "required": ["number"]})
}

impl ToolExecutor for Tickets {
    fn definitions(&self) -> Vec<ToolDefinition> {
        vec![
            ToolDefinition::new("show_ticket", "Show a ticket.", schema())
                .reading_only()
                .of_kind(ToolKind::Read),
            ToolDefinition::new("close_ticket", "Close a ticket.", schema()),
        ]
    }

    async fn call(&self, call: ToolCall, _options: CallOptions) -> CallReport {
        // The arguments agree with the schema: the host has looked at them.
        let number = call.arguments["number"].as_u64().unwrap_or_default();
        match self.answer(&call.tool, number) {
            Some(text) => CallReport::text(text),
            None => CallReport::failed(ToolFailure::new(
                ErrorCategory::PermanentFailure,
                ErrorPhase::Execution,
                format!("there is no ticket {number}"),
            )),
        }
    }
}

/// What became of a call that reads, of one that changes something, and of the same one once a person agrees.
pub(crate) async fn run(builder: HostBuilder) -> Result<Vec<String>, Box<dyn Error>> {
    let host = builder.backend(Tickets::new()).build().await?;
    let tools = host.session(Caller::model().acting_for("ann")).await?;
    let close = ToolCall::new("close_ticket", json!({"number": 7}));
    let ask = ApprovalPrompt::through("tickets", Some("ann"), |question| async move {
        println!("{} {}", question.call.tool, question.call.arguments);
        Some(ApprovalAnswer::Approved(Lifetime::Once))
    });
    let asking = CallOptions {
        ask: Some(ask),
        ..CallOptions::default()
    };
    let show = ToolCall::new("show_ticket", json!({"number": 7}));
    let reports = [
        tools.call(show, CallOptions::default()).await,
        tools.call(close.clone(), CallOptions::default()).await,
        tools.call(close, asking).await,
    ];
    Ok(reports.iter().map(CallReport::for_model).collect())
}

#[tokio::main(flavor = "current_thread")]
async fn main() -> Result<(), Box<dyn Error>> {
    for text in run(Host::builder()).await? {
        println!("{text}\n");
    }
    Ok(())
}
