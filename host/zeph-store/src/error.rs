//! Everything that can go wrong with the store, in words for the operator.
//!
//! Each variant names the operation and its subject; the cause is the source and is not repeated in the text. What to
//! do about it is a separate sentence, [`StoreError::hint`].

use std::io;
use std::path::{Path, PathBuf};
use std::time::Duration;

use zeph_core::id::{CallId, PluginId};

use crate::secrets::SecretsError;

/// The cause of an error, printed by walking the chain.
pub type ErrorSource = Box<dyn std::error::Error + Send + Sync>;

/// An operation on the store that did not happen.
#[derive(Debug, thiserror::Error)]
pub enum StoreError {
    /// A file or folder of the store could not be used.
    #[error("cannot {operation} `{}`", path.display())]
    File {
        /// What was tried, to be followed by the path.
        operation: &'static str,
        /// The file or folder.
        path: PathBuf,
        /// What the operating system said.
        source: io::Error,
    },
    /// The identity of this host could not be read, or made where there was none.
    #[error("cannot keep the identity of this host in `{}`", path.display())]
    HostId {
        /// The file.
        path: PathBuf,
        /// What the operating system said, or what is wrong with the file.
        source: io::Error,
    },
    /// The path of the store names something that is not a regular file.
    #[error("the store `{}` is a {kind}, not a file", path.display())]
    NotAFile {
        /// The path.
        path: PathBuf,
        /// What is there.
        kind: &'static str,
    },
    /// The path of the store is a symbolic link to a file that is not there.
    #[error("the store `{}` is a link to `{}`, which is not there", path.display(), target.display())]
    DanglingLink {
        /// The path.
        path: PathBuf,
        /// What the link says.
        target: PathBuf,
    },
    /// The store, or the folder it is in, cannot be written.
    #[error("cannot {operation}: the store `{}` or its folder is read-only", path.display())]
    ReadOnly {
        /// What was tried.
        operation: &'static str,
        /// The database file.
        path: PathBuf,
        /// What SQLite said.
        source: ErrorSource,
    },
    /// There is no room left on the disk.
    #[error("cannot {operation}: no room left for the store `{}`", path.display())]
    DiskFull {
        /// What was tried.
        operation: &'static str,
        /// The database file.
        path: PathBuf,
        /// What SQLite said.
        source: ErrorSource,
    },
    /// Another process held the store for longer than the time limit.
    #[error("cannot {operation}: the store `{}` was held by another process for more than {} ms", path.display(), waited.as_millis())]
    Busy {
        /// What was tried.
        operation: &'static str,
        /// The database file.
        path: PathBuf,
        /// The time limit.
        waited: Duration,
        /// What SQLite or the operating system said.
        source: ErrorSource,
    },
    /// The content of the database file makes no sense.
    #[error("cannot {operation}: the store `{}` is damaged", path.display())]
    Corrupt {
        /// What was tried.
        operation: &'static str,
        /// The database file.
        path: PathBuf,
        /// What SQLite said.
        source: ErrorSource,
    },
    /// The database was made by a newer program; it was left untouched.
    #[error("the store `{}` has schema version {found}; this program knows versions up to {known}", path.display())]
    Newer {
        /// The database file.
        path: PathBuf,
        /// The version in the file.
        found: i64,
        /// The newest version this program knows.
        known: i64,
    },
    /// What was to be copied, or written to, is of an older program; it was left untouched.
    #[error("the store `{place}` has schema version {found}; a copy needs version {known}")]
    Older {
        /// Where it is.
        place: String,
        /// The version it has.
        found: i64,
        /// The version of this program.
        known: i64,
    },
    /// The file or the database belongs to another application; it was left untouched.
    #[error("`{}` is a file or database of another application", path.display())]
    Foreign {
        /// Where it is.
        path: PathBuf,
    },
    /// The database file was removed or replaced while it was in use.
    #[error("cannot {operation}: the store `{}` was removed or replaced while in use", path.display())]
    Moved {
        /// What was tried.
        operation: &'static str,
        /// The database file.
        path: PathBuf,
    },
    /// A call began twice, or ended without a begin.
    #[error("the audit row of call `{call}` {problem}")]
    AuditOrder {
        /// The call.
        call: CallId,
        /// What is wrong with its row.
        problem: &'static str,
    },
    /// A grant that could never be in force.
    #[error("cannot grant `{capability}` to `{plugin}`: {problem}")]
    BadGrant {
        /// Who should have got it.
        plugin: PluginId,
        /// What it was.
        capability: String,
        /// What is wrong with it.
        problem: &'static str,
    },
    /// SQLite refused for another reason.
    #[error("cannot {operation} in the store `{}`", path.display())]
    Database {
        /// What was tried.
        operation: &'static str,
        /// The database file.
        path: PathBuf,
        /// What SQLite said.
        source: ErrorSource,
    },
    /// The server of the store cannot be reached, or is gone.
    #[error("cannot {operation}: the server of the store `{server}` does not answer")]
    ServerAway {
        /// What was tried.
        operation: &'static str,
        /// The server, without its password.
        server: String,
        /// What the operating system or the server said.
        source: ErrorSource,
    },
    /// The server of the store answers, and does not let this host in.
    #[error("cannot {operation}: the server of the store `{server}` refuses the connection")]
    ServerRefused {
        /// What was tried.
        operation: &'static str,
        /// The server, without its password.
        server: String,
        /// What the server said.
        source: ErrorSource,
    },
    /// The server of the store has no connection left for this host.
    #[error("cannot {operation}: the server of the store `{server}` has no connection left")]
    ServerFull {
        /// What was tried.
        operation: &'static str,
        /// The server, without its password.
        server: String,
        /// What the server said.
        source: ErrorSource,
    },
    /// The encoding of the database cannot keep every text.
    #[error("the database of the store `{server}` has the encoding {found}; it must be UTF8")]
    Encoding {
        /// The server, without its password.
        server: String,
        /// The encoding it has.
        found: String,
    },
    /// The server of the store does not take changes.
    #[error("cannot {operation}: the server of the store `{server}` only reads")]
    ServerReadOnly {
        /// What was tried.
        operation: &'static str,
        /// The server, without its password.
        server: String,
        /// What the server said.
        source: ErrorSource,
    },
    /// There is no store to copy, or none that would last.
    #[error("there is no store `{place}`")]
    NotThere {
        /// Where it should be.
        place: String,
    },
    /// A store cannot be read where it lies, to be copied from there.
    #[error("the store `{}` cannot be read where it is", path.display())]
    UnreadableSource {
        /// The database file.
        path: PathBuf,
        /// What SQLite said.
        source: ErrorSource,
    },
    /// A store should be copied to itself.
    #[error("the store `{place}` cannot be copied to itself")]
    CopyToItself {
        /// Where it is.
        place: String,
    },
    /// What a store should be copied to is not empty; it was left untouched.
    #[error("the store `{place}` is not empty: {table} has rows")]
    Occupied {
        /// The target.
        place: String,
        /// What holds something.
        table: String,
    },
    /// A copy is not what was to be copied; nothing of it was kept.
    #[error(
        "the copy in `{place}` differs: the table `{table}` has {found} rows in place of {expected}"
    )]
    CopyDiffers {
        /// The target.
        place: String,
        /// The table.
        table: String,
        /// Rows of the source.
        expected: u64,
        /// Rows of the target.
        found: u64,
    },
    /// A table is not the same in both databases.
    #[error("the table `{table}` has no place in the store `{place}`")]
    CopyUnknown {
        /// The target.
        place: String,
        /// The table.
        table: String,
    },
    /// The URL of the store cannot be used.
    #[error("the URL of the store cannot be used: {problem}")]
    BadUrl {
        /// What is wrong with it; never a part that could be a password.
        problem: String,
    },
    /// The store was closed before the operation.
    #[error("cannot {operation}: the store is closed")]
    Closed {
        /// What was tried.
        operation: &'static str,
    },
    /// The keys of the audit log cannot be had.
    #[error("the keys of the audit log cannot be read")]
    AuditKeys {
        /// What is wrong with them.
        source: SecretsError,
    },
    /// The key that vouches for the records of the store is missing.
    #[error("the audit log is sealed with the key `{key}`, which is not in `{}`", path.display())]
    AuditKeyMissing {
        /// The name of the key.
        key: String,
        /// The file of the keys.
        path: PathBuf,
    },
    /// Another key took over while the host was running.
    #[error("the key of the audit log was changed while this host was running")]
    AuditKeyChanged,
    /// A file with checkpoints of the audit log cannot be read.
    #[error("cannot read the checkpoints in `{}`", path.display())]
    Checkpoints {
        /// The file.
        path: PathBuf,
        /// What the operating system said.
        source: io::Error,
    },
    /// The audit file could not be opened, written or rotated.
    #[error("cannot {operation} the audit file `{}`", path.display())]
    AuditFile {
        /// What was tried, to be followed by the path.
        operation: &'static str,
        /// The audit file.
        path: PathBuf,
        /// What the operating system said.
        source: io::Error,
    },
}

impl StoreError {
    /// What the operator can do about it: one sentence, to be printed after `hint:`.
    pub fn hint(&self) -> Option<&'static str> {
        match self {
            Self::File { .. } | Self::NotAFile { .. } | Self::ReadOnly { .. } => Some(
                "set `store.path` to a file in a folder you may write; or keep nothing, with `store.path = \":memory:\"` and `tools.audit.file = \"none\"`",
            ),
            Self::HostId { .. } => Some(
                "see that this folder has room and can be written, or name another with `XDG_DATA_HOME`; the identity is made once",
            ),
            Self::DiskFull { .. } => Some(
                "free some space, set `store.path` to another disk; or keep nothing, with `store.path = \":memory:\"` and `tools.audit.file = \"none\"`",
            ),
            Self::Busy { .. } => {
                Some("wait for the other process or end it, or give this one its own `store.path`")
            }
            Self::Corrupt { .. } => Some(
                "put a backup in its place, or start a host that makes calls again (such as `zeph-host run`, `serve`, `call` or `index`): it sets a damaged store aside, and starts a fresh one",
            ),
            Self::DanglingLink { .. } => Some(
                "put the file there, or set `store.path` to the place where the store is to be",
            ),
            Self::Older { place, .. } if is_server(place) => Some(
                "bring it to this version first, with `zeph-host --set store.url=URL store migrate`",
            ),
            Self::Older { .. } => Some(
                "bring it to this version first, with `zeph-host --set store.path=FILE store migrate`; of a backup, do so with a copy",
            ),
            Self::Newer { path, .. } if is_server(&path.to_string_lossy()) => Some(
                "use the newer program, or let `store.url` name a database or schema of its own",
            ),
            Self::Newer { .. } => Some(
                "use the newer program, put back a backup that this one made, or set `store.path` to another file",
            ),
            Self::Foreign { path } if is_server(&path.to_string_lossy()) => {
                Some("let `store.url` name a database or schema of its own")
            }
            Self::Foreign { .. } => Some("set `store.path` to a file of its own"),
            Self::Moved { .. } | Self::AuditKeyChanged => Some("start the host again"),
            Self::AuditKeys {
                source: SecretsError::File { source, .. },
            } if matches!(
                source.kind(),
                io::ErrorKind::PermissionDenied | io::ErrorKind::ReadOnlyFilesystem
            ) =>
            {
                Some(
                    "set `store.path` to a file in a folder you may write, where the keys are kept, too; or record nothing, with `tools.audit.file = \"none\"` and `store.path = \":memory:\"`",
                )
            }
            Self::AuditKeys {
                source: SecretsError::Held { .. },
            } => Some("wait for the other process, or end it"),
            Self::AuditKeys { .. } => Some(
                "make the key available again, or move the file away and run `zeph-host audit rekey`: earlier records can no longer be verified then",
            ),
            Self::AuditKeyMissing { .. } => Some(
                "restore the file, which may lie beside the store itself where `store.path` is a link, or run `zeph-host audit rekey` to go on with a new key: earlier records can no longer be verified then",
            ),
            Self::AuditFile { .. } => Some(
                "set `tools.audit.file` to a file in a folder you may write, or to `\"none\"` to keep only the table",
            ),
            Self::ServerAway { .. } => Some("see whether the server runs and `store.url` is right"),
            Self::ServerRefused { .. } => Some(
                "see whether the user, the password and the database in `store.url` are right, and what the log of the server says",
            ),
            Self::ServerFull { .. } => Some(
                "raise `max_connections` of the server, or the limit of the role or the database in `store.url`: each host uses up to seven connections, and needs one",
            ),
            Self::Encoding { .. } => Some(
                "let `store.url` name a database that was made with `ENCODING 'UTF8'`; `zeph-host store copy` copies a store to it",
            ),
            Self::Checkpoints { .. } => Some(
                "name a file that holds checkpoints, as `zeph-host audit checkpoint` prints them",
            ),
            Self::ServerReadOnly { .. } => Some(
                "let `store.url` name the server that takes changes, or all of them with `target_session_attrs=read-write`",
            ),
            Self::BadUrl { .. } => Some(
                "set `store.url` to `postgres://USER:PASSWORD@HOST:PORT/DATABASE?sslmode=verify-full`",
            ),
            Self::NotThere { .. } => Some("name a store that exists: `sqlite:PATH` or a URL"),
            Self::UnreadableSource { .. } => Some(
                "copy the file, with its `-wal` if there is one, to a folder you may write, and name that copy",
            ),
            Self::CopyToItself { .. } => Some("name another file, or a server"),
            Self::Occupied { .. } => Some("copy to a new file, or to an empty database or schema"),
            Self::CopyDiffers { .. } => Some("end the hosts that use it, and copy again"),
            Self::CopyUnknown { .. } => Some("copy with the program that made the store"),
            Self::AuditOrder { .. }
            | Self::BadGrant { .. }
            | Self::Database { .. }
            | Self::Closed { .. } => None,
        }
    }
}

/// Whether a place is a URL; those of files are absolute.
fn is_server(place: &str) -> bool {
    !place.starts_with('/') && place.contains("://")
}

/// Names the file operation that failed; for `map_err`.
pub(crate) fn file(operation: &'static str, path: &Path) -> impl FnOnce(io::Error) -> StoreError {
    let path = path.to_owned();
    move |source| StoreError::File {
        operation,
        path,
        source,
    }
}
