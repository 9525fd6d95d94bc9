//! What ended in the background, as the line shows and records it: a command is the same in the background.

use std::time::Duration;

use zeph_core::call::TurnContext;
use zeph_core::execution::{CommandFacts, Execution, ExecutionFacts};
use zeph_core::exit::CommandExit;
use zeph_shell::analysis::analyse;
use zeph_shell::background::BackgroundEnd;

use crate::clock::now_ms;
use crate::filtering::OutputSubject;

/// A run that ended, in the terms of the line.
pub(crate) struct BackgroundResult {
    /// The line that begins the message.
    pub(crate) header: String,
    pub(crate) run_id: String,
    /// The turn it was started in.
    pub(crate) turn: Option<TurnContext>,
    pub(crate) duration: Duration,
    /// When it began, in Unix milliseconds, where hooks are to be run for the files it changed.
    pub(crate) hooks_since_ms: Option<i64>,
    pub(crate) subject: OutputSubject,
    /// As filters are told it.
    pub(crate) exit_code: Option<i32>,
    pub(crate) execution: Execution,
}

impl From<BackgroundEnd> for BackgroundResult {
    fn from(completed: BackgroundEnd) -> Self {
        let header = completed.header();
        let command = completed.label.map(|label| CommandFacts {
            exit_code: completed.exit_code,
            truncated: completed.truncated,
            environment: label.as_str(),
        });
        let facts = ExecutionFacts {
            command,
            hosts: completed.hosts,
            private_files: completed.private_files,
            ..ExecutionFacts::default()
        };
        let ended = Execution::ended(Ok(completed.output));
        let ended = match completed.failure {
            Some(failure) => ended.failed_by(failure),
            None => ended,
        };
        Self {
            header,
            run_id: completed.run_id.to_string(),
            turn: completed.turn,
            duration: completed.duration,
            hooks_since_ms: Some(now_ms() - ms(completed.ended.elapsed() + completed.duration)),
            subject: match &completed.command {
                Some(command) => OutputSubject::Command(Box::new(analyse(command))),
                None => OutputSubject::Other,
            },
            exit_code: completed.exit.and_then(CommandExit::code),
            execution: Execution { facts, ..ended }.with_notes(completed.notes),
        }
    }
}

fn ms(duration: Duration) -> i64 {
    i64::try_from(duration.as_millis()).unwrap_or(i64::MAX)
}
