//! A command in the terminal of an editor that cannot start our program: without a jail, and only when its user agrees to that.

use std::path::Path;
use std::time::Duration;

use zeph_acp::client::{
    Acknowledged, TERMINAL_KILL, TERMINAL_OUTPUT, TERMINAL_WAIT, TerminalExit,
    TerminalOutputResponse,
};
use zeph_core::category::{ErrorCategory, ErrorPhase};
use zeph_core::execution::{CommandFacts, Execution, ExecutionFacts, PrivateFile};
use zeph_core::exit::CommandExit;
use zeph_core::failure::ToolFailure;
use zeph_core::output::RawOutput;
use zeph_engine::Cancel;

use super::{EditorTerminal, NotShown, PATIENCE, ShownCommand, cancelled};
use crate::approval::{ApprovalAnswer, ApprovalPrompt, ApprovalQuestion};

/// How often it is looked at whether it has ended.
const POLL_PERIOD: Duration = Duration::from_millis(200);

/// What stands around it.
const NO_JAIL: &str = "none (editor)";

impl EditorTerminal {
    /// Asks whether the command may run without its jail, and has the editor run it.
    pub(super) async fn without_jail(
        &self,
        command: &ShownCommand<'_>,
        why: &str,
        (cancel, ask): (&Cancel, Option<&ApprovalPrompt>),
    ) -> Execution {
        let reason = format!(
            "the jail is missing: the editor cannot start zeph-host in its terminal ({why}), so the command would run there \
             without a sandbox, with all rights of the editor"
        );
        let question = ApprovalQuestion {
            reason: reason.clone(),
            is_once: true,
            ..command.question.clone()
        };
        let answer = match ask {
            Some(ask) => ask.ask(question, cancel).await,
            None => None,
        };
        match answer {
            Some(ApprovalAnswer::Approved(_)) => {}
            _ if cancel.is_cancelled() => return Execution::failed(cancelled()),
            Some(ApprovalAnswer::Denied) => {
                let message = format!("the user did not approve it ({reason})");
                return refused(ErrorCategory::PolicyBlocked, message);
            }
            None => return refused(ErrorCategory::ConfirmationRequired, reason),
        }
        let args = vec!["-c".to_owned(), command.text.to_owned()];
        let made = self.create("sh".to_owned(), args, (command.directory, cancel));
        match made.await {
            Ok(terminal) => self.bare(&terminal, command, cancel).await,
            Err(NotShown::Cancelled) => Execution::failed(cancelled()),
            Err(NotShown::CannotStart(why)) => refused(
                ErrorCategory::PermanentFailure,
                format!("the editor cannot run the command: {why}"),
            ),
        }
    }

    /// Awaits a command that the editor runs.
    async fn bare(&self, terminal: &str, command: &ShownCommand<'_>, cancel: &Cancel) -> Execution {
        let deadline = tokio::time::sleep(command.timeout);
        let ended = tokio::select! {
            biased;
            () = cancel.cancelled() => Err(cancelled()),
            exit = self.exit(terminal) => Ok(exit),
            () = deadline => Err(timed_out(command.timeout)),
        };
        if ended.is_err() {
            let killed = self.ask::<Acknowledged>(TERMINAL_KILL, terminal);
            drop(tokio::time::timeout(PATIENCE, killed).await);
        }
        let output = self.ask::<TerminalOutputResponse>(TERMINAL_OUTPUT, terminal);
        let output = tokio::time::timeout(PATIENCE, output).await.ok();
        self.give_up(terminal, false).await;
        let output = output.and_then(Result::ok);
        let is_lost = output.is_none();
        let output = output.unwrap_or_else(nothing);
        let mut execution = bare_execution(ended, output, command.directory);
        if is_lost {
            let note = "the editor did not give the output of the command, which may have had some";
            execution.notes.push(note.to_owned());
        }
        execution
    }

    /// Waits for the end of a command that the editor runs; an editor that does not tell it by itself is asked again and again.
    async fn exit(&self, terminal: &str) -> CommandExit {
        let told = async {
            match self.ask::<TerminalExit>(TERMINAL_WAIT, terminal).await {
                Ok(exit) => command_exit(&exit),
                Err(_refused) => std::future::pending().await,
            }
        };
        let looked = async {
            loop {
                tokio::time::sleep(POLL_PERIOD).await;
                let output = self.ask::<TerminalOutputResponse>(TERMINAL_OUTPUT, terminal);
                match output.await.map(|output| output.exit_status) {
                    Ok(Some(exit)) => return command_exit(&exit),
                    Ok(None) => {}
                    Err(_refused) => return CommandExit::Unknown,
                }
            }
        };
        tokio::select! {
            exit = told => exit,
            exit = looked => exit,
        }
    }
}

fn timed_out(timeout: Duration) -> ToolFailure {
    ToolFailure::new(
        ErrorCategory::Timeout,
        ErrorPhase::Execution,
        format!(
            "the command took longer than {} s and was ended in the editor's terminal",
            timeout.as_secs_f64()
        ),
    )
}

fn refused(category: ErrorCategory, message: String) -> Execution {
    Execution::failed(ToolFailure::new(category, ErrorPhase::Setup, message))
}

fn command_exit(exit: &TerminalExit) -> CommandExit {
    match exit.exit_code.map(i32::try_from) {
        Some(Ok(code)) => CommandExit::Code(code),
        Some(Err(_)) | None => CommandExit::Unknown,
    }
}

fn nothing() -> TerminalOutputResponse {
    TerminalOutputResponse {
        output: String::new(),
        truncated: true,
        exit_status: None,
    }
}

/// What came of a command that the editor ran.
fn bare_execution(
    ended: Result<CommandExit, ToolFailure>,
    output: TerminalOutputResponse,
    directory: &Path,
) -> Execution {
    let exit = ended.as_ref().ok().copied();
    let exit_code = exit.and_then(CommandExit::code);
    let mut raw = RawOutput::text(&*output.output);
    raw.structured = Some(serde_json::json!({
        "stdout": output.output, "stderr": "", "exit_code": exit_code,
        "truncated": output.truncated, "sandbox": NO_JAIL,
    }));
    let failure = match ended {
        Ok(exit) => exit.failure(),
        Err(failure) => Some(failure),
    };
    let (result, partial) = match failure {
        None => (Ok(raw), None),
        Some(failure) => (Err(failure), Some(raw)),
    };
    let command = CommandFacts {
        exit_code,
        truncated: output.truncated,
        environment: NO_JAIL,
    };
    Execution {
        result,
        partial,
        facts: ExecutionFacts {
            command: Some(command),
            // Nobody watched what it opened.
            private_files: vec![PrivateFile::Unknown(
                directory.to_string_lossy().into_owned(),
            )],
            ..ExecutionFacts::default()
        },
        notes: vec!["it ran in the editor's terminal, without a sandbox".to_owned()],
    }
}
