//! What runs the commands of a session. The door that opens it chooses.

use std::sync::Arc;

use zeph_core::execution::Execution;
use zeph_core::policy::AuthorizedCall;
use zeph_shell::shell::ShellWork;

use super::Native;
use crate::calls::CallControl;
use crate::session::Session;

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
            ..
        } = control;
        let heard = (on_output, turn_state);
        match self {
            Self::Native(shell) => shell.call(call, session, cancel, heard).await,
        }
    }

    /// Whether every command gets a `/tmp` of its own.
    pub(crate) fn has_private_tmp(&self) -> bool {
        match self {
            Self::Native(shell) => shell.has_private_tmp(),
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
        let execution = execution.with_notes(report.notes);
        match report.failure {
            Some(failure) => execution.failed_by(failure),
            None => execution,
        }
    }
}
