//! Every message of the command line itself: what is wrong, why, and what to do.
//!
//! All conversions from the errors of other rooms stand here. Printed by [`super::out`].

use std::error::Error;
use std::io;

use zeph_artifact::reference::BadReference;
use zeph_artifact::registry::RegistryError;
use zeph_config::ConfigErrors;
use zeph_core::policy::BadRule;
use zeph_mcp::http::EndpointError;
use zeph_plugins::manage::ManageError;
use zeph_store::StoreError;

use super::exit::Exit;
use crate::host::StartError;

/// Whose fault it is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum CliErrorKind {
    /// What was typed.
    User,
    /// What the configuration says.
    Config,
    /// The host cannot start.
    Start,
    /// Something below failed.
    Internal,
    /// Nobody reads what is printed any more: nothing is said about it.
    BrokenPipe,
}

/// A command that could not be carried out.
#[derive(Debug)]
pub(crate) struct CliError {
    pub(crate) kind: CliErrorKind,
    /// One line each; more than one only for a configuration with several mistakes.
    pub(crate) problems: Vec<String>,
    pub(crate) source: Option<Box<dyn Error + Send + Sync>>,
    /// One sentence each.
    pub(crate) hints: Vec<String>,
}

impl CliError {
    fn new(kind: CliErrorKind, problem: impl Into<String>) -> Self {
        Self {
            kind,
            problems: vec![problem.into()],
            source: None,
            hints: Vec::new(),
        }
    }

    /// A mistake in what was typed.
    pub(crate) fn user(problem: impl Into<String>) -> Self {
        Self::new(CliErrorKind::User, problem)
    }

    /// Something that has to be set up before the host can start.
    pub(crate) fn start(problem: impl Into<String>) -> Self {
        Self::new(CliErrorKind::Start, problem)
    }

    /// A failure below.
    pub(crate) fn internal(problem: impl Into<String>) -> Self {
        Self::new(CliErrorKind::Internal, problem)
    }

    /// Adds the cause.
    pub(crate) fn because(mut self, source: impl Error + Send + Sync + 'static) -> Self {
        self.source = Some(Box::new(source));
        self
    }

    /// What a crate that handles plugins says, with its hints.
    fn of_plugins(
        error: impl Error + Send + Sync + 'static,
        is_usage: bool,
        hints: Vec<String>,
    ) -> Self {
        let problem = error.to_string();
        let mut this = match is_usage {
            true => Self::user(problem),
            false => Self::internal(problem),
        };
        this.hints.extend(hints);
        this.because(error)
    }

    /// Adds a hint.
    pub(crate) fn hint(mut self, hint: impl Into<String>) -> Self {
        self.hints.push(hint.into());
        self
    }

    /// An error of writing to standard output.
    pub(crate) fn stdout(error: io::Error) -> Self {
        match error.kind() {
            io::ErrorKind::BrokenPipe => {
                Self::new(CliErrorKind::BrokenPipe, "standard output was closed")
            }
            _ => Self::internal("standard output cannot be written").because(error),
        }
    }

    /// An error of the line editor: of the terminal, or of standard output.
    pub(crate) fn terminal(error: io::Error) -> Self {
        match error.kind() {
            io::ErrorKind::BrokenPipe => Self::stdout(error),
            _ => Self::internal("the terminal cannot be used")
                .because(error)
                .hint("`zeph-host run --jsonl` needs no terminal"),
        }
    }

    /// How the process ends.
    pub(crate) fn exit(&self) -> Exit {
        match self.kind {
            CliErrorKind::User => Exit::Usage,
            CliErrorKind::Config | CliErrorKind::Start => Exit::Start,
            CliErrorKind::Internal => Exit::Failure,
            CliErrorKind::BrokenPipe => Exit::BrokenPipe,
        }
    }

    /// The causes, outermost first, without those that only repeat what was said.
    pub(crate) fn causes(&self) -> Vec<String> {
        let mut said = self.problems.last().cloned().unwrap_or_default();
        let mut causes = Vec::new();
        let mut next = self.source.as_deref().map(|source| source as &dyn Error);
        while let Some(error) = next {
            let text = error.to_string();
            if !said.contains(&text) {
                causes.push(text.clone());
                said = text;
            }
            next = error.source();
        }
        causes
    }
}

impl From<ConfigErrors> for CliError {
    fn from(errors: ConfigErrors) -> Self {
        let problems = errors.problems.iter().map(ToString::to_string).collect();
        Self {
            problems,
            ..Self::new(CliErrorKind::Config, "")
        }
    }
}

impl From<StartError> for CliError {
    fn from(error: StartError) -> Self {
        let hint = match &error {
            StartError::Store(error) => error.hint(),
            StartError::Judge(_, hint) => Some(hint.as_str()),
            StartError::Seals(_, hint) => hint.as_deref(),
            _ => None,
        };
        let mut this = Self::new(CliErrorKind::Start, error.to_string());
        this.hints.extend(hint.map(str::to_owned));
        this.because(error)
    }
}

impl From<StoreError> for CliError {
    fn from(error: StoreError) -> Self {
        let mut this = match error {
            // Named on the command line.
            StoreError::Checkpoints { .. } => Self::user(error.to_string()),
            _ => Self::internal(error.to_string()),
        };
        this.hints.extend(error.hint().map(str::to_owned));
        this.because(error)
    }
}

impl From<EndpointError> for CliError {
    fn from(error: EndpointError) -> Self {
        let mut this = Self::new(CliErrorKind::Start, error.to_string());
        this.hints.extend(error.hint());
        this.because(error)
    }
}

impl From<ManageError> for CliError {
    fn from(error: ManageError) -> Self {
        let (is_usage, hints) = (error.is_usage(), error.hints());
        Self::of_plugins(error, is_usage, hints)
    }
}

impl From<RegistryError> for CliError {
    fn from(error: RegistryError) -> Self {
        let (is_usage, hints) = (error.is_usage(), error.hints());
        Self::of_plugins(error, is_usage, hints)
    }
}

impl From<BadReference> for CliError {
    fn from(error: BadReference) -> Self {
        Self::user(error.to_string()).hint(
            "write `HOST/REPOSITORY:TAG` or `HOST/REPOSITORY@sha256:…`; for a file of this name, `./` before it",
        )
    }
}

impl From<BadRule> for CliError {
    fn from(error: BadRule) -> Self {
        Self::user(error.to_string()).hint(
            "write `--allow TOOL` or `--allow 'TOOL:PATTERN'`, such as `--allow 'write:src/**'`",
        )
    }
}
