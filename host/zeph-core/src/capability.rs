//! Capabilities: what a guest may access.

use std::fmt;
use std::path::PathBuf;
use std::str::FromStr;

use serde::{Deserialize, Serialize};

use crate::limit::CallLimits;
use crate::network::{HostAccess, HostPattern};
use crate::secret::SecretUse;

/// The four separate rights on a directory tree.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct FsRights {
    /// Read contents, names and metadata.
    pub read: bool,
    /// Change existing files: contents, length, times.
    pub write: bool,
    /// Make new files, directories and links.
    pub create: bool,
    /// Remove or rename away.
    pub delete: bool,
}

impl FsRights {
    /// All four.
    pub const ALL: Self = Self {
        read: true,
        write: true,
        create: true,
        delete: true,
    };

    /// Reading only.
    pub const READ: Self = Self {
        read: true,
        write: false,
        create: false,
        delete: false,
    };

    /// The rights held by both.
    pub fn intersect(self, other: Self) -> Self {
        Self {
            read: self.read && other.read,
            write: self.write && other.write,
            create: self.create && other.create,
            delete: self.delete && other.delete,
        }
    }
}

impl FsRights {
    /// The rights held by either.
    pub fn union(self, other: Self) -> Self {
        Self {
            read: self.read || other.read,
            write: self.write || other.write,
            create: self.create || other.create,
            delete: self.delete || other.delete,
        }
    }

    /// The rights that `other` does not hold.
    pub fn without(self, other: Self) -> Self {
        Self {
            read: self.read && !other.read,
            write: self.write && !other.write,
            create: self.create && !other.create,
            delete: self.delete && !other.delete,
        }
    }
}

/// An invalid list of rights.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("`{0}` is not a right; write some of `read`, `write`, `create`, `delete`, joined by `+`")]
pub struct BadRights(String);

impl FromStr for FsRights {
    type Err = BadRights;

    /// Reads what [`Display`](fmt::Display) writes: `read+write`.
    fn from_str(text: &str) -> Result<Self, BadRights> {
        let mut rights = Self::default();
        for name in text.split('+') {
            match name {
                "read" => rights.read = true,
                "write" => rights.write = true,
                "create" => rights.create = true,
                "delete" => rights.delete = true,
                other => return Err(BadRights(other.to_owned())),
            }
        }
        Ok(rights)
    }
}

impl fmt::Display for FsRights {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let held = [
            (self.read, "read"),
            (self.write, "write"),
            (self.create, "create"),
            (self.delete, "delete"),
        ];
        let names: Vec<_> = held.iter().filter(|(on, _)| *on).map(|(_, n)| *n).collect();
        f.write_str(&names.join("+"))
    }
}

/// A granted directory tree.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct FsRoot {
    /// Absolute and canonical; the guest sees the tree under this same path.
    pub path: PathBuf,
    /// The rights on the tree.
    pub rights: FsRights,
}

/// The file access of a grant: directory trees, and names inside them that stay hidden.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize)]
pub struct FsGrant {
    /// The first root is the guest's working directory.
    pub roots: Vec<FsRoot>,
    /// Globs over absolute canonical paths that appear not to exist.
    pub deny_read: Vec<String>,
    /// Exceptions to `deny_read`.
    pub allow_read: Vec<String>,
    /// Other absolute paths of roots or their parents, through symbolic links: as written by the user, and their targets.
    /// Guests may use both.
    pub spelled: Vec<(PathBuf, PathBuf)>,
}

/// A capability that a plugin can request and be granted.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "kind", rename_all = "snake_case")]
pub enum Capability {
    /// A directory tree.
    Directory {
        /// In a manifest as written (`.`, `~/…`, absolute); in a grant absolute and canonical.
        path: String,
        /// The rights on the tree.
        rights: FsRights,
    },
    /// Hosts of the network, such as `api.example.com`, `*.example.com` or `api.example.com:8443`.
    Host(HostAccess),
    /// A program to start, with certain arguments.
    Program {
        /// The bare name, and what the arguments may be (`program`): `cargo check --message-format=json`. The name alone: any.
        name: String,
    },
    /// An environment variable of the host.
    Variable {
        /// Its name.
        name: String,
    },
    /// A limit above the default.
    Limit {
        /// The limit.
        name: LimitName,
        /// The value, in the unit of the limit.
        value: u64,
    },
    /// A secret of the operator, sent to one host in a header; the plugin never holds it.
    Secret(SecretUse),
    /// A provider of embeddings that texts may be sent to.
    Embedder {
        /// Its name in `llm.providers`; in a manifest also [`ANY_NAME`].
        name: String,
    },
    /// A tool of an MCP server that may be called.
    Tool {
        /// `SERVER/TOOL`, both as the operator and the server name them; in a manifest also [`ANY_NAME`].
        name: String,
    },
}

/// In a manifest: whichever embedder or tool the operator grants by its name.
pub const ANY_NAME: &str = "*";

/// The subject of a capability, without its extent.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub enum CapabilitySubject<'a> {
    /// A directory.
    Directory(&'a str),
    /// A pattern of hosts, and whether plain HTTP is spoken there.
    Host(&'a HostPattern, bool),
    /// A program.
    Program(&'a str),
    /// A variable.
    Variable(&'a str),
    /// A limit.
    Limit(LimitName),
    /// A secret, its host and its header.
    Secret(&'a str, &'a HostPattern, &'a str),
    /// An embedder.
    Embedder(&'a str),
    /// A tool of an MCP server.
    Tool(&'a str),
}

impl Capability {
    /// The subject of the capability. A manifest may request each subject once.
    pub fn subject(&self) -> CapabilitySubject<'_> {
        match self {
            Self::Directory { path, .. } => CapabilitySubject::Directory(path),
            Self::Host(access) => CapabilitySubject::Host(&access.name, access.plain_http),
            Self::Program { name } => CapabilitySubject::Program(name),
            Self::Variable { name } => CapabilitySubject::Variable(name),
            Self::Limit { name, .. } => CapabilitySubject::Limit(*name),
            Self::Secret(SecretUse {
                name, host, header, ..
            }) => CapabilitySubject::Secret(name, host, header),
            Self::Embedder { name } => CapabilitySubject::Embedder(name),
            Self::Tool { name } => CapabilitySubject::Tool(name),
        }
    }
}

impl fmt::Display for Capability {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Directory { path, rights } => write!(f, "directory {path}:{rights}"),
            Self::Host(access) => write!(f, "host {access}"),
            Self::Program { name } => write!(f, "program {name}"),
            Self::Variable { name } => write!(f, "variable {name}"),
            Self::Limit { name, value } => write!(f, "limit {name}={value}"),
            Self::Secret(secret) => write!(f, "secret {secret}"),
            Self::Embedder { name } => write!(f, "embedder {name}"),
            Self::Tool { name } => write!(f, "tool {name}"),
        }
    }
}

/// The limits a plugin can ask to have raised, named as the keys of `[limits]`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
#[expect(missing_docs, reason = "each is the key of the same name")]
pub enum LimitName {
    WallClockSecs,
    CpuSecs,
    MemoryBytes,
    TableElements,
    OutputBytes,
    LogBytes,
    HostCalls,
    Handles,
}

impl LimitName {
    /// Every name.
    pub const ALL: [Self; 8] = [
        Self::WallClockSecs,
        Self::CpuSecs,
        Self::MemoryBytes,
        Self::TableElements,
        Self::OutputBytes,
        Self::LogBytes,
        Self::HostCalls,
        Self::Handles,
    ];

    /// The key's name.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::WallClockSecs => "wall_clock_secs",
            Self::CpuSecs => "cpu_secs",
            Self::MemoryBytes => "memory_bytes",
            Self::TableElements => "table_elements",
            Self::OutputBytes => "output_bytes",
            Self::LogBytes => "log_bytes",
            Self::HostCalls => "host_calls",
            Self::Handles => "handles",
        }
    }

    /// Raises this limit of `limits` to `value`; a lower value changes nothing.
    pub fn raise(self, limits: &mut CallLimits, value: u64) {
        let raise = |limit: &mut u64| *limit = value.max(*limit);
        let raise_secs = |limit: &mut std::time::Duration| {
            *limit = std::time::Duration::from_secs(value).max(*limit);
        };
        match self {
            Self::WallClockSecs => raise_secs(&mut limits.wall_clock),
            Self::CpuSecs => raise_secs(&mut limits.cpu),
            Self::MemoryBytes => raise(&mut limits.memory_bytes),
            Self::TableElements => raise(&mut limits.table_elements),
            Self::OutputBytes => raise(&mut limits.output_bytes),
            Self::LogBytes => raise(&mut limits.log_bytes),
            Self::HostCalls => raise(&mut limits.host_calls),
            Self::Handles => {
                let value = u32::try_from(value).unwrap_or(u32::MAX);
                limits.handles = value.max(limits.handles);
            }
        }
    }
}

impl fmt::Display for LimitName {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

impl FromStr for LimitName {
    type Err = BadLimitName;

    fn from_str(text: &str) -> Result<Self, BadLimitName> {
        let named = Self::ALL.into_iter().find(|name| name.as_str() == text);
        named.ok_or_else(|| BadLimitName(text.to_owned()))
    }
}

/// An unknown name of a limit.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("`{0}` is not a limit; the limits are the keys of `[limits]`")]
pub struct BadLimitName(String);
