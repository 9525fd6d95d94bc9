//! Stage 4 of the line for a tool of a server.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use serde_json::{Map, Value};
use tokio_util::sync::CancellationToken;
use zeph_config::{ServerConfig, ServerTransport};
use zeph_core::category::{ErrorCategory, ErrorPhase};
use zeph_core::execution::Execution;
use zeph_core::failure::{ToolFailure, one_line};
use zeph_core::output::{Content, RawOutput};
use zeph_core::policy::AuthorizedCall;
use zeph_core::server::ServerTool;
use zeph_engine::{Cancel, Listener};
use zeph_mcp::client::{self, Progress, ProgressSink};

use super::Servers;
use super::offered::OfferedTool;
use super::traffic::Traffic;
use super::visible;
use crate::calls::CallControl;

/// The longest a call waits for a server that is being started, which is no part of its own time.
const START_PATIENCE: Duration = Duration::from_secs(30);

/// Most characters of what a tool says of its failure in the message.
const FAILURE_CHARS_MAX: usize = 300;

/// What one call of a server's tool is made with.
#[derive(Debug, Clone)]
pub(crate) struct ServerWork {
    /// The tool, by the server's name for it.
    tool: ServerTool,
    /// As the server gets them.
    arguments: Map<String, Value>,
    /// The whole of it.
    timeout: Duration,
    /// Whether it can change files of the host.
    pub(crate) can_change: bool,
    /// Whether its server is a program of this machine.
    pub(crate) is_of_this_machine: bool,
}

impl ServerWork {
    /// A call of `offered` with `arguments`, which agree with what models see of its schema.
    ///
    /// Errors: `policy_blocked` when the operator's rules for arguments forbid it.
    pub(crate) fn new(
        tool: &ServerTool,
        offered: &OfferedTool,
        config: &ServerConfig,
        arguments: &Map<String, Value>,
    ) -> Result<Self, ToolFailure> {
        Ok(Self {
            tool: tool.clone(),
            arguments: offered.sent(config, arguments)?,
            timeout: config.tool_timeout,
            can_change: !offered.tool.annotations.read_only,
            is_of_this_machine: matches!(config.transport, ServerTransport::Command(_)),
        })
    }
}

/// Makes a call. Whatever the server does, the call ends within its time.
pub(crate) async fn call(
    servers: &Servers,
    call: AuthorizedCall<ServerWork>,
    control: CallControl,
) -> Execution {
    let work = call.work();
    let before = Traffic::of(servers, &work.tool.server);
    let made = made(servers, work, control).await;
    let mut execution = made.unwrap_or_else(Execution::failed);
    let now = Traffic::of(servers, &work.tool.server);
    execution.facts.hosts = before.until(now);
    execution
}

async fn made(
    servers: &Servers,
    work: &ServerWork,
    control: CallControl,
) -> Result<Execution, ToolFailure> {
    let ServerWork {
        tool,
        arguments,
        timeout,
        ..
    } = work;
    servers.take_call(&tool.server)?;
    let connection = servers
        .connection(&tool.server, START_PATIENCE, &control.cancel)
        .await;
    if control.cancel.is_cancelled() {
        return Err(cancelled());
    }
    let token = CancellationToken::new();
    let progress = control.listener.clone().map(sink);
    let asked = client::CallControl {
        timeout: Some(*timeout),
        cancel: token.clone(),
        progress,
    };
    let connection = connection?;
    let answered = connection.call(&tool.tool, arguments.clone(), asked);
    let answered = cancelling(answered, &control.cancel, &token);
    let answered = servers.watched(&tool.server, answered).await;
    let mut answer =
        answered.map_err(|error| error.failure(tool.server.as_str(), servers.program()))?;
    let cleaned = visible::output(&mut answer.output);
    let execution = match answer.is_error {
        false => Execution::ended(Ok(answer.output)),
        true => failed(tool, answer.output),
    };
    Ok(execution.with_notes(answer.notes.into_iter().chain(cleaned)))
}

/// Waits for `answer`, and lets go of it when the caller does: the connection tells the server, and ends the wait.
async fn cancelling<T>(
    answer: impl Future<Output = T>,
    cancel: &Cancel,
    token: &CancellationToken,
) -> T {
    tokio::pin!(answer);
    tokio::select! {
        answer = &mut answer => return answer,
        () = cancel.cancelled() => token.cancel(),
    }
    answer.await
}

/// A call whose tool says that it failed. What it says stands in the message; what does not fit there whole is shown beside.
fn failed(tool: &ServerTool, output: RawOutput) -> Execution {
    let text = output.to_text();
    let said = one_line(&text, FAILURE_CHARS_MAX);
    let failure = failure(tool, &said);
    let is_said = matches!(output.content.as_slice(), [Content::Text(_)] if text.trim() == said);
    match is_said && output.structured.is_none() {
        true => Execution::failed(failure),
        false => Execution::ended(Ok(output)).failed_by(failure),
    }
}

/// The same call would fail again, as far as anybody knows.
fn failure(tool: &ServerTool, said: &str) -> ToolFailure {
    let message = match said.is_empty() {
        true => format!("`{}` of MCP server `{}` failed", tool.tool, tool.server),
        false => format!(
            "`{}` of MCP server `{}` failed: {said}",
            tool.tool, tool.server
        ),
    };
    ToolFailure::new(
        ErrorCategory::PermanentFailure,
        ErrorPhase::Execution,
        message,
    )
    .arguable()
}

fn cancelled() -> ToolFailure {
    ToolFailure::new(
        ErrorCategory::Cancelled,
        ErrorPhase::Execution,
        "the call was cancelled",
    )
}

fn sink(listener: Listener) -> ProgressSink {
    let has_parts = AtomicBool::new(false);
    Arc::new(move |progress: Progress| {
        // A part of one would always be nothing. What was told in thousandths once goes on in them, so that it only grows.
        let is_part = progress.progress.fract() != 0.0;
        if is_part || progress.total.is_some_and(|total| total <= 1.0) {
            has_parts.store(true, Ordering::Relaxed);
        }
        let scale = match has_parts.load(Ordering::Relaxed) {
            true => 1_000.0,
            false => 1.0,
        };
        #[expect(
            clippy::cast_possible_truncation,
            clippy::cast_sign_loss,
            reason = "a count of steps, for people; what is no such number becomes one at the edge"
        )]
        let whole = |steps: f64| (steps * scale) as u64;
        let steps = (Some(whole(progress.progress)), progress.total.map(whole));
        listener.report(progress.message.unwrap_or_default(), steps);
    })
}

#[cfg(test)]
mod tests {
    use serde_json::json;
    use tokio::sync::mpsc;
    use zeph_core::output::RawOutput;
    use zeph_core::server::ServerTool;
    use zeph_engine::Listener;
    use zeph_mcp::client::Progress;

    use super::{failed, sink};

    /// What is told of reports with this progress and total.
    fn check(reports: &[(f64, Option<f64>)], told: &[u64]) {
        let (sender, mut heard) = mpsc::channel(reports.len());
        let sink = sink(Listener::new(sender));
        for (progress, total) in reports {
            sink(Progress {
                progress: *progress,
                total: *total,
                message: None,
            });
        }
        let all = std::iter::from_fn(|| heard.try_recv().ok());
        let all: Vec<_> = all.filter_map(|report| report.completed).collect();
        assert_eq!(all, told, "{reports:?}");
    }

    #[test]
    fn parts_are_told_in_thousandths_and_only_grow() {
        check(&[(1.0, None), (2.0, None)], &[1, 2]);
        check(&[(0.1, None), (0.2, None), (0.5, None)], &[100, 200, 500]);
        check(&[(1.0, None), (1.5, None), (2.0, None)], &[1, 1_500, 2_000]);
        check(&[(0.0, Some(1.0)), (1.0, Some(1.0))], &[0, 1_000]);
        check(&[(3.0, Some(7.0)), (3.5, Some(7.0))], &[3, 3_500]);
    }

    #[test]
    fn what_a_failing_tool_says_stands_once() {
        let tool = ServerTool::new("native".parse().unwrap(), "fail");
        let short = failed(&tool, RawOutput::text("no such city"));
        assert!(short.result.is_err() && short.partial.is_none());
        for output in [
            RawOutput::text("no such city\nbut others"),
            RawOutput::text("x".repeat(400)),
            RawOutput {
                structured: Some(json!({"code": 7})),
                ..RawOutput::text("no")
            },
        ] {
            let long = failed(&tool, output.clone());
            assert!(long.result.is_err(), "{output:?}");
            assert!(long.partial.is_some(), "{output:?}");
        }
    }
}
