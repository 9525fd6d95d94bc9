//! When a command's traces are undone. Pure.

/// How a command ended, as far as a transaction asks.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum CommandEnd {
    /// It ended by itself with this code.
    Exited(i32),
    /// A signal ended it.
    Signalled,
    /// Its time was over.
    TimedOut,
    /// The call was cancelled.
    Cancelled,
}

/// The rule of `tools.shell.auto_rollback` and `tools.shell.auto_rollback_exit_codes`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Rollback {
    /// Nothing is put back unless a person asks for it.
    Never,
    /// The tree is put back when the command fails.
    OnFailure {
        /// The exit codes that mean failure. Empty: 2 and above, since `grep`, `diff` and `test` say 1 for "no".
        exit_codes: Vec<i32>,
    },
}

impl Rollback {
    /// Whether the tree is put back after a command that ended so. One that was cut short always is: it stopped halfway.
    #[must_use]
    pub fn applies(&self, end: CommandEnd) -> bool {
        match (self, end) {
            (Self::Never, _) => false,
            (Self::OnFailure { exit_codes }, CommandEnd::Exited(code)) if exit_codes.is_empty() => {
                code >= 2
            }
            (Self::OnFailure { exit_codes }, CommandEnd::Exited(code)) => {
                exit_codes.contains(&code)
            }
            (Self::OnFailure { .. }, _) => true,
        }
    }
}
