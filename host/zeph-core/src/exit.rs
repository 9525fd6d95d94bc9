//! How a command ended, and the failure that results from it.

use serde::Serialize;

use crate::category::{ErrorCategory, ErrorPhase};
use crate::failure::ToolFailure;

#[cfg(test)]
mod tests;

/// How a command ended, as far as that can be known.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum CommandExit {
    /// The command exited with this code.
    Code(i32),
    /// This signal killed it.
    Signal(i32),
    /// The kernel did not report its end.
    Unknown,
}

impl CommandExit {
    /// Whether it exited with 0.
    pub fn is_success(self) -> bool {
        self == Self::Code(0)
    }

    /// The exit code for envelopes and the audit.
    ///
    /// Shape: `None` when a signal ended the command or its end is unknown.
    pub fn code(self) -> Option<i32> {
        match self {
            Self::Code(code) => Some(code),
            Self::Signal(_) | Self::Unknown => None,
        }
    }

    /// The exit code that a shell reports: 128 + the number of the signal for a command that a signal ended.
    pub fn shell_code(self) -> i32 {
        match self {
            Self::Code(code) => code,
            Self::Signal(signal) => 128 + signal,
            Self::Unknown => 1,
        }
    }

    /// The line below the output of a command; none after exit code 0.
    pub fn line(self) -> Option<String> {
        match self {
            Self::Code(0) => None,
            Self::Code(code) => Some(format!("[exit code {code}]")),
            Self::Signal(signal) => Some(format!("[killed by signal {}]", signal_name(signal))),
            Self::Unknown => Some("[it is not known how it ended]".to_owned()),
        }
    }

    /// The failure of a call whose command ended this way; none after exit code 0.
    ///
    /// Shape: always `permanent_failure`, because the same command on the same files ends the same way.
    pub fn failure(self) -> Option<ToolFailure> {
        let message = match self {
            Self::Code(0) => return None,
            Self::Code(126) => {
                "the command ended with exit code 126: a program in it cannot be executed"
                    .to_owned()
            }
            Self::Code(127) => {
                "the command ended with exit code 127: a program in it was not found".to_owned()
            }
            Self::Code(code) => format!("the command ended with exit code {code}"),
            Self::Signal(signal) => {
                format!("the command was killed by signal {}", signal_name(signal))
            }
            Self::Unknown => "it is not known how the command ended".to_owned(),
        };
        let category = ErrorCategory::PermanentFailure;
        let mut failure = ToolFailure::new(category, ErrorPhase::Execution, message);
        failure.exit = Some(self);
        Some(failure)
    }
}

/// The name of a signal, such as `SIGKILL`; its number when it has none.
///
/// Source: signal(7), the numbers of Linux on x86 and ARM.
fn signal_name(signal: i32) -> String {
    const NAMES: [&str; 31] = [
        "HUP", "INT", "QUIT", "ILL", "TRAP", "ABRT", "BUS", "FPE", "KILL", "USR1", "SEGV", "USR2",
        "PIPE", "ALRM", "TERM", "STKFLT", "CHLD", "CONT", "STOP", "TSTP", "TTIN", "TTOU", "URG",
        "XCPU", "XFSZ", "VTALRM", "PROF", "WINCH", "IO", "PWR", "SYS",
    ];
    let name = usize::try_from(signal - 1)
        .ok()
        .and_then(|idx| NAMES.get(idx));
    match name {
        Some(name) => format!("SIG{name}"),
        None => signal.to_string(),
    }
}
