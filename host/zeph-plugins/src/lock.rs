//! `zeph.lock`: what was accepted of each plugin and of each MCP server, in a file for people and for version control.
//!
//! It makes no decisions: its readers compare. It holds the definitions as they were, so that a change can be shown with
//! both sides, and no grants: those are in the store.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use zeph_core::id::{Pin, PluginId, ServerName, ToolName};

use super::definitions::Definitions;
use super::server::LockedServer;

mod file;
mod provenance;
mod read;
mod write;

pub(crate) use file::LockFile;
pub use provenance::{NextVersion, PinnedSigner, PluginSource, Provenance, version_of_tag};

/// Version of the format. A file is written as the first that can say what is in it, which older programs read.
const VERSION: i64 = 4;

/// Most bytes of the file. Enough for a hundred plugins that use up what each may have.
const LOCK_BYTES_MAX: u64 = 64 * 1024 * 1024;

/// Everything that was accepted, in the order first accepted.
#[derive(Debug, Clone, Default)]
pub struct Lock {
    plugins: Vec<LockedPlugin>,
    /// Names of tools, without the plugin before them, and the plugin each was given to. It keeps them when it is off, changed or
    /// removed: rules and habits are bound to them.
    names: BTreeMap<ToolName, PluginId>,
    /// MCP servers, in the order first accepted.
    servers: Vec<LockedServer>,
    /// Why nothing can be added to the file, when that was found out.
    closed: Option<String>,
}

/// A plugin as it was accepted.
#[derive(Debug, Clone)]
pub struct LockedPlugin {
    /// Its name.
    pub name: PluginId,
    /// The name of its file, without folders.
    pub file: String,
    /// What exactly was accepted.
    pub pin: Pin,
    /// When, in Unix milliseconds; kept to the second.
    pub accepted_at_ms: i64,
    /// Switched off by the operator.
    pub disabled: bool,
    /// Whether what it wants was written by the operator, for an author who did not.
    pub operator_wants: bool,
    /// Where it was had from and who signed it; `None` for a file that was put into the folder.
    pub provenance: Option<Provenance>,
    /// What is known of the component that was put in its place and waits for approval.
    pub next: Option<NextVersion>,
    /// What it said about itself then.
    pub definitions: Definitions,
}

/// A lock file that cannot be used. No plugin of its directory is active.
#[derive(Debug, thiserror::Error)]
pub enum LockError {
    /// The operating system refused.
    #[error("cannot {operation} `{}`", path.display())]
    File {
        /// What was tried, to be followed by the path.
        operation: &'static str,
        /// The file.
        path: PathBuf,
        /// What the operating system said.
        source: std::io::Error,
    },
    /// Something else is in its place.
    #[error("`{}` is not a regular file", path.display())]
    NotAFile {
        /// The path.
        path: PathBuf,
    },
    /// More bytes than it may have.
    #[error("`{}` has {n_bytes} bytes; the limit is {LOCK_BYTES_MAX}", path.display())]
    TooLong {
        /// The file.
        path: PathBuf,
        /// How many it has, or would have.
        n_bytes: u64,
    },
    /// Its content makes no sense.
    #[error("`{}`, line {line}: {problem}", path.display())]
    Broken {
        /// The file.
        path: PathBuf,
        /// Counted from 1.
        line: usize,
        /// What is wrong there.
        problem: String,
    },
    /// Written by a newer program; it was left as it is.
    #[error("`{}` has version {found}; this program knows version {VERSION}", path.display())]
    Newer {
        /// The file.
        path: PathBuf,
        /// The version in it.
        found: i64,
    },
    /// What was to be written says something that no lock file can say. The file was left as it is.
    #[error("`{}` was not changed: it could not be read afterwards", path.display())]
    Unreadable {
        /// The file.
        path: PathBuf,
        /// What is wrong with what was to be written.
        source: Box<LockError>,
    },
    /// Another process edits it and does not finish.
    #[error("`{}` was being changed by another process for more than {waited_ms} ms", path.display())]
    Held {
        /// The file.
        path: PathBuf,
        /// The time limit.
        waited_ms: u128,
    },
}

impl Lock {
    /// Reads a lock file; one that is not there is empty.
    ///
    /// Errors: [`LockError`]; nothing is guessed of a file that is not entirely right.
    /// Limits: the file has at most 64 MiB. It blocks for the file operations.
    pub fn read(path: &Path) -> Result<Self, LockError> {
        match file::text(path)? {
            Some(text) => read::lock(&text, path),
            None => Ok(Self::default()),
        }
    }

    /// Reads the text of a lock file that lies elsewhere, such as in a bundle; `path` is for messages.
    ///
    /// Errors: [`LockError::Broken`], [`LockError::Newer`], [`LockError::TooLong`].
    pub fn parse(text: &str, path: &Path) -> Result<Self, LockError> {
        let n_bytes = text.len() as u64;
        if n_bytes > LOCK_BYTES_MAX {
            let path = path.to_owned();
            return Err(LockError::TooLong { path, n_bytes });
        }
        read::lock(text, path)
    }

    /// The text of a lock with these plugins and nothing else: the same for the same plugins.
    pub fn text_of(plugins: &[LockedPlugin]) -> String {
        let lock = Self {
            plugins: plugins.to_vec(),
            ..Self::default()
        };
        write::text(&lock)
    }

    /// What was accepted, in the order first accepted.
    pub fn plugins(&self) -> &[LockedPlugin] {
        &self.plugins
    }

    /// The plugin of this name.
    pub fn get(&self, name: &PluginId) -> Option<&LockedPlugin> {
        self.plugins.iter().find(|plugin| plugin.name == *name)
    }

    /// The plugin of this name, to be changed. Its name stays.
    pub(crate) fn get_mut(&mut self, name: &PluginId) -> Option<&mut LockedPlugin> {
        self.plugins.iter_mut().find(|plugin| plugin.name == *name)
    }

    /// Puts `plugin` in the place of the one with its name, or behind all others.
    pub(crate) fn put(&mut self, plugin: LockedPlugin) {
        match self.get_mut(&plugin.name) {
            Some(known) => *known = plugin,
            None => self.plugins.push(plugin),
        }
    }

    /// The servers that were accepted, in the order first accepted.
    pub fn servers(&self) -> &[LockedServer] {
        &self.servers
    }

    /// The server of this name.
    pub fn server(&self, name: &ServerName) -> Option<&LockedServer> {
        self.servers.iter().find(|server| server.name == *name)
    }

    /// Puts `server` in the place of the one with its name, or behind all others.
    pub(crate) fn put_server(&mut self, server: LockedServer) {
        let mut known = self.servers.iter_mut();
        match known.find(|known| known.name == server.name) {
            Some(known) => *known = server,
            None => self.servers.push(server),
        }
    }

    /// The same, with why nothing can be added to the file.
    pub(crate) fn closed(self, why: &LockError) -> Self {
        let closed = Some(why.told());
        Self { closed, ..self }
    }

    /// Why a plugin that could be used is not pinned, in one sentence.
    pub(crate) fn why_unpinned(&self) -> String {
        match &self.closed {
            Some(why) => format!("it is new and cannot be pinned: {why}"),
            None => "it could not be pinned; see the log".to_owned(),
        }
    }

    /// Takes the server of this name out.
    pub(crate) fn remove_server(&mut self, name: &ServerName) -> Option<LockedServer> {
        let idx = self
            .servers
            .iter()
            .position(|server| server.name == *name)?;
        Some(self.servers.remove(idx))
    }

    /// Every name that was given to a plugin.
    pub fn names(&self) -> &BTreeMap<ToolName, PluginId> {
        &self.names
    }

    /// Gives `name` to `plugin`, unless it was given before.
    pub(crate) fn give(&mut self, name: ToolName, plugin: PluginId) {
        self.names.entry(name).or_insert(plugin);
    }

    /// Takes the plugin of this name out. The names of its tools stay its own.
    pub fn remove(&mut self, name: &PluginId) -> Option<LockedPlugin> {
        let idx = self
            .plugins
            .iter()
            .position(|plugin| plugin.name == *name)?;
        Some(self.plugins.remove(idx))
    }
}

impl LockError {
    /// Whether what stands in the file cannot be trusted, and not only not be changed.
    pub(crate) fn is_of_content(&self) -> bool {
        match self {
            Self::File { .. }
            | Self::TooLong { .. }
            | Self::Unreadable { .. }
            | Self::Held { .. } => false,
            Self::NotAFile { .. } | Self::Broken { .. } | Self::Newer { .. } => true,
        }
    }

    /// What the operator can do about it: one sentence, to be printed after `hint:`.
    pub fn hint(&self) -> &'static str {
        match self {
            Self::File { .. } => "make the file and its folder yours to read and write",
            Self::NotAFile { .. } => "move away what is there",
            Self::TooLong { .. } | Self::Broken { .. } => {
                "restore the file, from version control for one; or remove it, and every plugin and server is accepted as it is now"
            }
            Self::Newer { .. } => "use the newer program",
            Self::Unreadable { .. } => {
                "use a shorter URL or path for the plugin; else it is a fault of zeph-host, which its authors would like to hear of"
            }
            Self::Held { .. } => "wait for the other process, or end it",
        }
    }

    /// What is wrong, why, and what to do, on one line.
    pub fn told(&self) -> String {
        let hint = self.hint();
        match std::error::Error::source(self) {
            Some(cause) => format!("{self}: {cause}; {hint}"),
            None => format!("{self}; {hint}"),
        }
    }
}

#[cfg(test)]
mod tests;
