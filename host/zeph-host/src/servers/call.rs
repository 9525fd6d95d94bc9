//! Stage 4 of the line for a tool of a server.

use std::sync::Arc;
use std::time::Duration;

use serde_json::{Map, Value};
use tokio_util::sync::CancellationToken;
use zeph_config::{ServerConfig, ServerTransport};
use zeph_core::category::{ErrorCategory, ErrorPhase};
use zeph_core::execution::Execution;
use zeph_core::failure::{ToolFailure, one_line};
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

/// Most characters of what a tool says of its failure in the message; the whole of it is shown beside.
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
    let mut answer = answered.map_err(|error| error.failure(tool.server.as_str()))?;
    let cleaned = visible::output(&mut answer.output);
    let execution = match answer.is_error {
        false => Execution::ended(Ok(answer.output)),
        true => {
            let said = one_line(&answer.output.to_text(), FAILURE_CHARS_MAX);
            Execution::ended(Ok(answer.output)).failed_by(failed(tool, &said))
        }
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

/// A tool that says it failed: the same call would fail again, as far as anybody knows.
fn failed(tool: &ServerTool, said: &str) -> ToolFailure {
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
    Arc::new(move |progress: Progress| {
        // A part of one would always be nothing.
        let scale = match progress.total {
            Some(total) if total <= 1.0 => 1_000.0,
            _ => 1.0,
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
