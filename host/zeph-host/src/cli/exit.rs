//! The exit codes. They are a public interface and stand in `zeph-host --help`.

use std::process::ExitCode;

use zeph_core::category::{ErrorCategory, ErrorPhase};
use zeph_core::failure::ToolFailure;
use zeph_core::output::Outcome;

use crate::run::interrupt::Interruption;

/// How the process ends.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Exit {
    /// Everything asked for was done.
    Success,
    /// The tool failed, or the command could not be completed.
    Failure,
    /// The command line asks for something that does not exist.
    Usage,
    /// The configuration is wrong, or the host cannot start.
    Start,
    /// A rule or a grant forbids the call.
    Refused,
    /// A person has to agree first.
    Confirm,
    /// A time limit passed; as timeout(1) reports it.
    Timeout,
    /// A signal asked the process to end; 128 and its number, as shells report it.
    Interrupted(Interruption),
    /// What the command exited with; 128 and the number of the signal that ended it.
    OfCommand(u8),
    /// Standard output was closed; what a shell reports for a program that `SIGPIPE` ended.
    BrokenPipe,
}

impl Exit {
    /// The code.
    pub(crate) fn code(self) -> u8 {
        match self {
            Self::Success => 0,
            Self::Failure => 1,
            Self::Usage => 2,
            Self::Start => 3,
            Self::Refused => 4,
            Self::Confirm => 5,
            Self::Timeout => 124,
            Self::OfCommand(code) => code,
            Self::Interrupted(Interruption::HangUp) => 129,
            Self::Interrupted(Interruption::Interrupt) => 130,
            Self::Interrupted(Interruption::Terminate) => 143,
            Self::BrokenPipe => 141,
        }
    }

    /// How a process ends that made one call with this outcome.
    pub(crate) fn of(outcome: &Outcome) -> Self {
        match outcome {
            Outcome::Done => Self::Success,
            Outcome::Failed(failure) => Self::of_failure(failure),
        }
    }

    fn of_failure(failure: &ToolFailure) -> Self {
        if let Some(exit) = failure.exit {
            return Self::OfCommand(u8::try_from(exit.shell_code()).unwrap_or(u8::MAX));
        }
        // The same categories can come out of a running tool; then the request itself was in order.
        let was_read = !matches!(failure.phase, ErrorPhase::Setup | ErrorPhase::ParamHandling);
        match failure.category {
            ErrorCategory::ToolNotFound => Self::Usage,
            ErrorCategory::InvalidParameters | ErrorCategory::TypeMismatch if !was_read => {
                Self::Usage
            }
            ErrorCategory::PolicyBlocked => Self::Refused,
            ErrorCategory::ConfirmationRequired => Self::Confirm,
            ErrorCategory::Timeout => Self::Timeout,
            ErrorCategory::Cancelled => Self::Interrupted(Interruption::Interrupt),
            ErrorCategory::InvalidParameters
            | ErrorCategory::TypeMismatch
            | ErrorCategory::PermanentFailure
            | ErrorCategory::RateLimited
            | ErrorCategory::ServerError
            | ErrorCategory::NetworkError => Self::Failure,
        }
    }
}

impl From<Exit> for ExitCode {
    fn from(exit: Exit) -> Self {
        Self::from(exit.code())
    }
}
