//! What came of running a call, whichever backend ran it: the value that passes from stage 4 of the line to the stages that show it.

use serde::{Deserialize, Serialize};

use crate::failure::ToolFailure;
use crate::output::RawOutput;

/// What came of running a call, or of refusing to.
#[derive(Debug)]
pub struct Execution {
    /// What it gave, or why it gave nothing.
    pub result: Result<RawOutput, ToolFailure>,
    /// What there was when it failed.
    pub partial: Option<RawOutput>,
    /// What is recorded of it besides, and what later stages have to know.
    pub facts: ExecutionFacts,
    /// What the caller should know, one sentence each.
    pub notes: Vec<String>,
}

/// What is known of a call that ran.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct ExecutionFacts {
    /// How a command ended; none of any other tool.
    pub command: Option<CommandFacts>,
    /// Whether it used what was granted to it: a grant for one call is used up then.
    pub used_grants: bool,
    /// The hosts it reached over the network, or was refused.
    pub hosts: Vec<HostUse>,
    /// The hosts that an earlier call reached, whose answer it was given.
    pub earlier_hosts: Vec<HostUse>,
    /// The private files that were opened for it, each once; at most one more than [`PRIVATE_FILES_MAX`].
    pub private_files: Vec<PrivateFile>,
    /// How often it was made, when it was made again after a failure.
    pub attempts: Option<u32>,
    /// The earlier call that it was answered from, instead of running.
    pub cached: Option<CachedFacts>,
    /// The labels of what it gave, such as `private` or `untrusted`.
    pub labels: Vec<String>,
}

/// Most private files of one call that are told apart. One more stands for all further ones.
pub const PRIVATE_FILES_MAX: usize = 64;

/// A private file that was opened while a call ran.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum PrivateFile {
    /// This one.
    Opened(String),
    /// Perhaps one of this directory, not all of which could be watched.
    Unknown(String),
}

impl PrivateFile {
    /// Adds this to what a call opened, unless it is there or there are enough.
    pub fn add_to(self, files: &mut Vec<Self>) {
        if files.len() <= PRIVATE_FILES_MAX && !files.contains(&self) {
            files.push(self);
        }
    }
}

/// An answer that an earlier call gave.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct CachedFacts {
    /// How long ago that call ended, in milliseconds.
    pub age_ms: u64,
    /// Bytes of what it gave.
    pub bytes: u64,
}

/// What went over the network on behalf of a call, and what did not.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct NetworkReport {
    /// The hosts that were reached.
    pub hosts: Vec<HostUse>,
    /// What was refused, one sentence each.
    pub notes: Vec<String>,
}

/// What went between a call and one host.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct HostUse {
    /// The host with its port, such as `example.org:443`.
    pub host: String,
    /// Connections, or requests where those are told apart.
    pub n_connections: u64,
    /// Bytes to the host.
    pub sent_bytes: u64,
    /// Bytes from the host.
    pub received_bytes: u64,
    /// Connections or requests that were refused.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub n_refused: u64,
}

fn is_zero(n: &u64) -> bool {
    *n == 0
}

/// How a command ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct CommandFacts {
    /// None when a signal ended it.
    pub exit_code: Option<i32>,
    /// Whether output was omitted.
    pub truncated: bool,
    /// How much of the jail stood around it, in a word.
    pub environment: &'static str,
}

/// A value that nobody may read in what a call gives.
#[derive(Clone, PartialEq, Eq)]
pub struct SecretValue {
    /// What it is called, such as the name of a variable. Shown in its place.
    pub name: String,
    /// The value itself. Never empty.
    pub value: String,
}

impl Execution {
    /// Of a call that ran and ended with `result`.
    pub fn ended(result: Result<RawOutput, ToolFailure>) -> Self {
        Self {
            result,
            partial: None,
            facts: ExecutionFacts::default(),
            notes: Vec::new(),
        }
    }

    /// Of a call that did not run, or of which nothing is known but how it failed.
    pub fn failed(failure: ToolFailure) -> Self {
        Self::ended(Err(failure))
    }

    /// The same with what else the caller should know.
    #[must_use]
    pub fn with_notes(mut self, notes: impl IntoIterator<Item = String>) -> Self {
        self.notes.extend(notes);
        self
    }

    /// The same with what the caller should know first.
    #[must_use]
    pub fn after_notes(mut self, mut notes: Vec<String>) -> Self {
        notes.append(&mut self.notes);
        self.notes = notes;
        self
    }

    /// The same as a failure: what it gave becomes what there was when it failed.
    #[must_use]
    pub fn failed_by(mut self, failure: ToolFailure) -> Self {
        self.partial = match std::mem::replace(&mut self.result, Err(failure)) {
            Ok(raw) => Some(raw),
            Err(_) => self.partial,
        };
        self
    }

    /// The exit code that filters are told: that of a command, `0` of any other tool, none when a signal ended it.
    pub fn exit_code(&self) -> Option<i32> {
        let command = self.facts.command;
        command.map_or(Some(0), |command| command.exit_code)
    }
}

impl std::fmt::Debug for SecretValue {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "SecretValue({})", self.name)
    }
}
