//! A double of a host, for tests of what calls tools: it says what a script says, and keeps what it was asked.
//! `cargo run -p zeph-host --features examples --example test_double`
#![allow(clippy::print_stdout, dead_code, reason = "tests use it too")]

#[path = "agent.rs"]
pub(crate) mod agent;

use std::collections::VecDeque;
use std::sync::{Mutex, PoisonError};

use zeph_host::{
    CallOptions, CallReport, ErrorCategory, ErrorPhase, ToolCall, ToolDefinition, ToolExecutor,
    ToolFailure,
};

/// Answers calls in order, whatever they ask for; the calls beyond fail.
#[derive(Default)]
pub(crate) struct TestDouble {
    tools: Vec<ToolDefinition>,
    script: Mutex<VecDeque<CallReport>>,
    calls: Mutex<Vec<ToolCall>>,
}

impl TestDouble {
    /// Answers with these reports.
    pub(crate) fn new(
        tools: Vec<ToolDefinition>,
        script: impl IntoIterator<Item = CallReport>,
    ) -> Self {
        Self {
            tools,
            script: Mutex::new(script.into_iter().collect()),
            calls: Mutex::default(),
        }
    }

    /// The calls so far, one line each.
    pub(crate) fn calls(&self) -> Vec<String> {
        let calls = self.calls.lock().unwrap_or_else(PoisonError::into_inner);
        let lines = calls
            .iter()
            .map(|call| format!("{} {}", call.tool, call.arguments));
        lines.collect()
    }
}

impl ToolExecutor for TestDouble {
    fn definitions(&self) -> Vec<ToolDefinition> {
        self.tools.clone()
    }

    async fn call(&self, call: ToolCall, options: CallOptions) -> CallReport {
        let mut calls = self.calls.lock().unwrap_or_else(PoisonError::into_inner);
        calls.push(call);
        let mut script = self.script.lock().unwrap_or_else(PoisonError::into_inner);
        let failed = |category, message| {
            CallReport::failed(ToolFailure::new(category, ErrorPhase::Execution, message))
        };
        match script.pop_front() {
            _ if options.cancel.is_cancelled() => failed(ErrorCategory::Cancelled, "cancelled"),
            Some(report) => report,
            None => failed(ErrorCategory::ServerError, "the script is over"),
        }
    }
}

#[tokio::main(flavor = "current_thread")]
async fn main() {
    let double = TestDouble::new(
        Vec::new(),
        ["a.md", "a.md:1: # Doors"].map(CallReport::text),
    );
    println!(
        "{}",
        agent::work(&double, "What are the documents here about?").await
    );
    println!("it called:\n{}", double.calls().join("\n"));
}
