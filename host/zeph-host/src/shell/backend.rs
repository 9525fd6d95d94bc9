//! What runs the commands of a session. The door that opens it chooses.

use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use serde_json::Value;
use tokio::sync::SemaphorePermit;
use zeph_core::execution::Execution;
use zeph_core::policy::AuthorizedCall;
use zeph_shell::hooks::HookReport;
use zeph_shell::shell::ShellWork;
use zeph_store::BoundCall;

use super::{CallBeside, Native};
use crate::approval::ApprovalQuestion;
use crate::calls::CallControl;
use crate::serve::acp::terminal::ShownCommand;
use crate::session::Session;
use crate::work::Work;

/// The backend of `bash` and of the hooks of one session.
#[derive(Debug, Clone)]
pub(crate) enum CommandBackend {
    /// The shell of this machine, in its jail.
    Native(Arc<Native>),
}

impl CommandBackend {
    /// Runs a call. A command that is cut short is over when this returns, with everything it started.
    pub(crate) async fn call(
        &self,
        call: AuthorizedCall<ShellWork>,
        session: &Session,
        control: CallControl,
    ) -> Execution {
        let CallControl {
            cancel,
            on_output,
            turn_state,
            ask,
            editor,
            ..
        } = control;
        let Self::Native(shell) = self;
        let heard = (on_output, turn_state);
        let shown = editor
            .terminal
            .and_then(|terminal| Some((terminal, shown(shell, &call, session)?)));
        let Some((terminal, shown)) = shown else {
            return shell.call(call, session, cancel, heard).await;
        };
        let (text, directory) = (shown.text.clone(), shown.directory.clone());
        let command = ShownCommand {
            text: &text,
            directory: &directory,
            timeout: shown.timeout,
            question: shown.question,
        };
        let jailed = Box::pin(shell.call(call, session, cancel.clone(), heard));
        terminal.run(command, jailed, (&cancel, ask.as_ref())).await
    }

    /// Whether every command gets a `/tmp` of its own.
    pub(crate) fn has_private_tmp(&self) -> bool {
        match self {
            Self::Native(shell) => shell.has_private_tmp(),
        }
    }

    /// Marks a call that changes files beside commands that are transactions.
    pub(crate) fn beside(&self, call: &AuthorizedCall<Work>) -> Option<CallBeside> {
        match self {
            Self::Native(shell) => shell.beside(call),
        }
    }

    /// Waits until no command is a transaction; none begins while what comes back is held.
    pub(crate) async fn alone(&self) -> Option<SemaphorePermit<'_>> {
        match self {
            Self::Native(shell) => shell.alone().await,
        }
    }

    /// The time from which on changes of files are `call`'s, when there are hooks for them and it can change any.
    pub(crate) fn hooks_for<W>(&self, call: &AuthorizedCall<W>) -> Option<i64> {
        match self {
            Self::Native(shell) => shell.hooks_for(call),
        }
    }

    /// Runs the hooks for the files that changed since `since_ms`; one that fails closed fails the call.
    pub(crate) async fn hooked(
        &self,
        session: &Session,
        since_ms: i64,
        execution: Execution,
    ) -> Execution {
        let report = match self {
            Self::Native(shell) => shell.files_changed(session, since_ms).await,
        };
        after_hooks(execution, report)
    }

    /// Runs them for a command that began in the background at `since_ms` and has ended. It was answered then: what is told of its end
    /// has notes, and no failure.
    pub(crate) async fn hooked_late(
        &self,
        session: &Session,
        since_ms: i64,
        execution: Execution,
    ) -> Execution {
        let Self::Native(shell) = self;
        if !shell.has_file_hooks() {
            return execution;
        }
        let mut report = shell.files_changed(session, since_ms).await;
        let failed = report.failure.iter().map(|failure| failure.message.clone());
        report.notes.extend(failed);
        after_hooks(execution, report)
    }
}

fn after_hooks(execution: Execution, report: HookReport) -> Execution {
    let execution = execution.with_notes(report.notes);
    match report.failure {
        Some(failure) => execution.failed_by(failure),
        None => execution,
    }
}

/// A command of the foreground, as a terminal shows it.
struct ForegroundCommand {
    text: String,
    directory: PathBuf,
    timeout: Duration,
    question: ApprovalQuestion,
}

/// The command of a call; none when it runs in the background, or when the call runs no command.
fn shown(
    shell: &Native,
    call: &AuthorizedCall<ShellWork>,
    session: &Session,
) -> Option<ForegroundCommand> {
    let text = call.command()?.text.clone();
    let argument = |name: &str| call.arguments().get(name);
    if argument("background").and_then(Value::as_bool) == Some(true) {
        return None;
    }
    let directory = session.shell().commands().directory();
    let bound = BoundCall::new(call.tool(), None, call.arguments(), Some(&directory));
    Some(ForegroundCommand {
        text,
        directory,
        timeout: shell.timeout(call),
        question: ApprovalQuestion {
            call: bound.shown().clone(),
            reason: String::new(),
            rules: Vec::new(),
            trace: Vec::new(),
            is_once: false,
        },
    })
}
