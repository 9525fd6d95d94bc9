//! Why a command did not run, or did not end by itself, in words for a model.

use std::time::Duration;

use zeph_core::category::{ErrorCategory, ErrorPhase};
use zeph_core::failure::{ToolFailure, one_line};
use zeph_core::text::counted;

use super::job::JobFault;
use crate::jail::JailError;

pub(super) fn no_such_tool(name: &str) -> ToolFailure {
    new(
        ErrorCategory::ToolNotFound,
        ErrorPhase::Setup,
        format!("the shell has no tool `{name}`"),
    )
}

pub(super) fn invalid(message: impl Into<String>) -> ToolFailure {
    new(
        ErrorCategory::InvalidParameters,
        ErrorPhase::ParamHandling,
        message,
    )
}

pub(super) fn cancelled() -> ToolFailure {
    new(
        ErrorCategory::Cancelled,
        ErrorPhase::Execution,
        "the command was cancelled; it and everything it started has been ended",
    )
}

/// `longest` is what the call could have asked for.
pub(super) fn timed_out(timeout: Duration, longest: Duration) -> ToolFailure {
    let advice = if timeout < longest {
        format!(
            "give `timeout` up to {} s, or set `background` for what takes longer",
            longest.as_secs()
        )
    } else {
        "set `background` for what takes longer".to_owned()
    };
    new(
        ErrorCategory::Timeout,
        ErrorPhase::Execution,
        format!(
            "the command took longer than {} s and was ended with everything it started; {advice}",
            timeout.as_secs_f64()
        ),
    )
}

pub(super) fn background_timed_out(timeout: Duration) -> ToolFailure {
    new(
        ErrorCategory::Timeout,
        ErrorPhase::Execution,
        format!(
            "the command ran longer than {} s in the background and was ended with everything it started \
             (`tools.shell.background_timeout_secs`)",
            timeout.as_secs_f64()
        ),
    )
}

pub(super) fn flooded(bytes_max: u64) -> ToolFailure {
    new(
        ErrorCategory::PermanentFailure,
        ErrorPhase::Execution,
        format!(
            "the command printed more than {bytes_max} bytes and was ended; write to a file, or print less"
        ),
    )
}

/// The chain of causes goes to the log; a model gets what helps it.
pub(super) fn not_run(fault: &JobFault) -> ToolFailure {
    let (category, message) = match fault {
        JobFault::Jail(JailError::System { .. }) | JobFault::Start(_) => {
            tracing::error!(
                error = fault as &dyn std::error::Error,
                "a command cannot be started"
            );
            let message = "the command could not be started; the host's log tells why";
            (ErrorCategory::ServerError, message.to_owned())
        }
        JobFault::Jail(error @ JailError::NotTried { .. }) => {
            (ErrorCategory::ServerError, error.to_string())
        }
        JobFault::Jail(error) => (ErrorCategory::PermanentFailure, error.to_string()),
        JobFault::NotClosed(reason) => (
            ErrorCategory::PermanentFailure,
            format!(
                "the jail could not be closed, so the command did not run: {}; `zeph-host doctor` tells more",
                one_line(reason, 300)
            ),
        ),
    };
    new(category, ErrorPhase::Setup, message)
}

pub(super) fn no_run(run_id: &str) -> ToolFailure {
    new(
        ErrorCategory::PermanentFailure,
        ErrorPhase::Execution,
        format!(
            "no command with run_id `{}` is running in the background; `list_runs` shows those that are",
            one_line(run_id, 60)
        ),
    )
}

pub(super) fn too_many_runs(runs_max: usize) -> ToolFailure {
    // Waiting would not help: none is ever there to end.
    if runs_max == 0 {
        let message = "commands do not run in the background here (`tools.shell.max_background_runs` is 0); run it without `background`";
        return new(ErrorCategory::PermanentFailure, ErrorPhase::Setup, message);
    }
    new(
        ErrorCategory::RateLimited,
        ErrorPhase::Setup,
        format!(
            "{} in the background already, the most there may be (tools.shell.max_background_runs); \
             wait for one to end, or end one with `kill_run`",
            counted(runs_max, "command runs", "commands run")
        ),
    )
}

pub(super) fn closed() -> ToolFailure {
    new(
        ErrorCategory::Cancelled,
        ErrorPhase::Setup,
        "the session is ending: nothing more is started in the background",
    )
}

fn new(category: ErrorCategory, phase: ErrorPhase, message: impl Into<String>) -> ToolFailure {
    ToolFailure::new(category, phase, message)
}

#[cfg(test)]
mod tests {
    use zeph_core::category::ErrorCategory;

    use super::{JobFault, not_run, too_many_runs};
    use crate::jail::{JailError, NoJail};

    /// A machine that was too busy to tell how much of a jail it has may tell at the next call.
    #[test]
    fn a_jail_that_could_not_be_tried_may_be_asked_for_again() {
        for (may_pass, category) in [
            (true, ErrorCategory::ServerError),
            (false, ErrorCategory::PermanentFailure),
        ] {
            let none = NoJail {
                reason: "`bwrap` did not end in time".to_owned(),
                may_pass,
            };
            let failure = not_run(&JobFault::Jail(JailError::from(none)));
            assert_eq!(failure.category, category);
            let message = failure.message;
            assert!(message.contains("did not end in time"), "{message}");
            assert_eq!(message.contains("try again"), may_pass, "{message}");
        }
    }

    #[test]
    fn where_no_command_runs_in_the_background_waiting_is_not_advised() {
        for (runs_max, is_retryable) in [(0, false), (1, true), (8, true)] {
            let failure = too_many_runs(runs_max);
            assert_eq!(failure.category.is_retryable(), is_retryable, "{runs_max}");
            let says_wait = failure.message.contains("wait for one to end");
            assert_eq!(says_wait, is_retryable, "{}", failure.message);
            assert!(failure.message.contains("tools.shell.max_background_runs"));
        }
    }
}
