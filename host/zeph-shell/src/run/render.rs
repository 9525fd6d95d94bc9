//! A run that is over, as a model and a program read it.

use serde_json::{Value, json};

use super::Status;
use super::capture::Captured;

/// The output of a command and how it ended.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Rendered {
    /// What the model reads: the output in the order of arrival, then how the command ended when it did not end well.
    pub(crate) text: String,
    /// `{stdout, stderr, exit_code, truncated}`, and `sandbox` when that is not the full jail.
    pub(crate) envelope: Value,
}

/// How a command ended, as far as it is known from outside the jail.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Exit {
    /// With this code.
    Code(i32),
    /// Killed by this signal.
    Signal(i32),
    /// Nobody could find out.
    Unknown,
}

impl Exit {
    /// Makes sense of a status.
    ///
    /// The first process of a namespace turns a signal into 128 + its number. A shell that was killed has told nothing at its
    /// end; one that exited with such a code has.
    pub(crate) fn of(status: Status, is_namespace: bool, told_its_end: bool) -> Self {
        match status {
            Status::Signal(signal) => Self::Signal(signal),
            Status::Code(code @ 129..=192) if is_namespace && !told_its_end => {
                Self::Signal(code - 128)
            }
            Status::Code(code) => Self::Code(code),
            Status::Unknown => Self::Unknown,
        }
    }

    /// `null` when there is none.
    pub(crate) fn code(self) -> Option<i32> {
        match self {
            Self::Code(code) => Some(code),
            Self::Signal(_) | Self::Unknown => None,
        }
    }

    /// What a shell would say: 128 + the number of a signal.
    pub(crate) fn shell_code(self) -> i32 {
        match self {
            Self::Code(code) => code,
            Self::Signal(signal) => 128 + signal,
            Self::Unknown => 1,
        }
    }

    /// The line that tells of it; nothing when all went well.
    pub(crate) fn line(self) -> Option<String> {
        match self {
            Self::Code(0) => None,
            Self::Code(code) => Some(format!("[exit code {code}]")),
            Self::Signal(signal) => Some(format!("[killed by signal {}]", signal_name(signal))),
            Self::Unknown => Some("[it is not known how it ended]".to_owned()),
        }
    }
}

/// Puts it together. `lines` stand below the output, each on a line of its own; `sandbox` is named when it is not the full jail.
pub(crate) fn render(
    captured: Captured,
    exit: Exit,
    lines: impl IntoIterator<Item = String>,
    sandbox: Option<&str>,
) -> Rendered {
    let mut text = captured.text;
    let sandbox_line = sandbox.map(|label| format!("[sandbox: {label}]"));
    for line in lines.into_iter().chain(sandbox_line) {
        if !text.is_empty() && !text.ends_with('\n') {
            text.push('\n');
        }
        text.push_str(&line);
    }
    let mut envelope = json!({
        "exit_code": exit.code(),
        "truncated": captured.n_cut > 0,
    });
    // Moved: the macro would copy them, and they may be as long as all that is kept.
    envelope["stdout"] = Value::String(captured.stdout);
    envelope["stderr"] = Value::String(captured.stderr);
    if let Some(label) = sandbox {
        envelope["sandbox"] = json!(label);
    }
    Rendered { text, envelope }
}

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
