//! Programs that the operator granted, run in the sandbox of the host's commands.
//!
//! There is no shell: arguments arrive as they are. Each list of arguments has to be in the plugin's manifest (`[[program]]`, `args`)
//! and granted. Does not run natively.
//!
//! ```no_run
//! use zeph_plugin::process::Program;
//!
//! # fn log() -> Result<String, zeph_plugin::ToolError> {
//! let completed = Program::new("git").args(["log", "--oneline"]).run()?;
//! # Ok(completed.stdout.text)
//! # }
//! ```

use std::time::Duration;

use crate::ToolError;
use crate::bindings::zeph::plugin::process as host;
pub use crate::bindings::zeph::plugin::process::{
    Completed, End, Options, Printed, RunError, RunErrorKind,
};

/// A program to run.
#[derive(Debug, Clone)]
pub struct Program {
    name: String,
    arguments: Vec<String>,
    options: Options,
}

impl Program {
    /// The program with this bare name, without arguments, in the first granted directory.
    pub fn new(name: impl Into<String>) -> Self {
        Self {
            name: name.into(),
            arguments: Vec::new(),
            options: Options {
                directory: None,
                input: Vec::new(),
                timeout_ms: None,
            },
        }
    }

    /// With these arguments behind those it has.
    #[must_use]
    pub fn args<A: Into<String>>(mut self, arguments: impl IntoIterator<Item = A>) -> Self {
        self.arguments.extend(arguments.into_iter().map(Into::into));
        self
    }

    /// In this directory, beneath a granted one.
    #[must_use]
    pub fn directory(mut self, directory: impl Into<String>) -> Self {
        self.options.directory = Some(directory.into());
        self
    }

    /// With this on its standard input.
    #[must_use]
    pub fn input(mut self, input: impl Into<Vec<u8>>) -> Self {
        self.options.input = input.into();
        self
    }

    /// For at most this time. It never gets more than the call has left.
    #[must_use]
    pub fn timeout(mut self, timeout: Duration) -> Self {
        self.options.timeout_ms = u64::try_from(timeout.as_millis()).ok();
        self
    }

    /// Runs it until it has ended.
    ///
    /// Errors: why it did not run. A program that ran and failed is no error.
    pub fn run(&self) -> Result<Completed, RunError> {
        match cfg!(target_family = "wasm") {
            true => host::run(&self.name, &self.arguments, &self.options),
            false => Err(RunError {
                kind: RunErrorKind::Unavailable,
                message: "programs run in a host only".to_owned(),
            }),
        }
    }
}

impl Completed {
    /// Whether it ended by itself and with code 0.
    pub fn is_success(&self) -> bool {
        matches!(self.end, End::Exited(0))
    }
}

impl From<RunError> for ToolError {
    fn from(error: RunError) -> Self {
        match error.kind {
            RunErrorKind::Denied => Self::denied(error.message),
            RunErrorKind::Invalid => Self::invalid_parameters(error.message),
            RunErrorKind::NotFound | RunErrorKind::Unavailable => Self::permanent(error.message),
        }
    }
}
