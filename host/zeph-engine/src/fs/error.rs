//! Errors of the guard: the one code a guest may see, and what goes wrong while a grant is compiled.
//!
//! A guest learns a WASI error code and nothing else: no host path, no text of the operating system.

use std::path::PathBuf;

use rustix::io::Errno;
use wasmtime_wasi::p2::bindings::filesystem::types::ErrorCode;

use super::obeyed::ObeyedObject;
use super::refusal::MissingRights;

/// What a file operation ends in when it fails.
pub(super) type Code = ErrorCode;

/// The result of a file operation before it crosses the border.
pub(super) type FsOutcome<T> = Result<T, Fail>;

/// A failed file operation: a code for the guest, or a fault that ends the call.
#[derive(Debug)]
pub(super) enum Fail {
    /// The guest sees this code and goes on.
    Code(Code),
    /// A right is missing: the guest sees not-permitted and goes on, and the refusal is noted.
    Refused(Box<MissingRights>),
    /// The object is obeyed by programs, and the call has no leave to change it: not-permitted, and noted.
    Obeyed(Box<ObeyedObject>),
    /// The call was stopped, or the guest used a resource that is not there: the instance ends.
    Trap(wasmtime::Error),
}

impl Fail {
    /// Whether the guest gets "no such entry".
    pub(super) fn is_absent(&self) -> bool {
        matches!(self, Self::Code(Code::NoEntry))
    }
}

impl From<Code> for Fail {
    fn from(code: Code) -> Self {
        Self::Code(code)
    }
}

impl From<Errno> for Fail {
    fn from(errno: Errno) -> Self {
        Self::Code(code_of(errno))
    }
}

impl From<wasmtime::component::ResourceTableError> for Fail {
    fn from(error: wasmtime::component::ResourceTableError) -> Self {
        Self::Trap(error.into())
    }
}

/// Translates an error of the operating system.
///
/// Too many open files has no code in WASI; `quota` is the nearest that does not mean a fault of the disk.
pub(super) fn code_of(errno: Errno) -> Code {
    match errno {
        Errno::ACCESS => Code::Access,
        Errno::AGAIN => Code::WouldBlock,
        Errno::ALREADY => Code::Already,
        Errno::BADF => Code::BadDescriptor,
        Errno::BUSY => Code::Busy,
        Errno::DEADLK => Code::Deadlock,
        Errno::DQUOT | Errno::MFILE | Errno::NFILE => Code::Quota,
        Errno::EXIST => Code::Exist,
        Errno::FBIG => Code::FileTooLarge,
        Errno::ILSEQ => Code::IllegalByteSequence,
        Errno::INTR => Code::Interrupted,
        Errno::INVAL => Code::Invalid,
        Errno::ISDIR => Code::IsDirectory,
        Errno::LOOP => Code::Loop,
        Errno::MLINK => Code::TooManyLinks,
        Errno::NAMETOOLONG => Code::NameTooLong,
        Errno::NODEV | Errno::NXIO => Code::NoDevice,
        Errno::NOENT => Code::NoEntry,
        Errno::NOMEM => Code::InsufficientMemory,
        Errno::NOSPC => Code::InsufficientSpace,
        Errno::NOTDIR => Code::NotDirectory,
        Errno::NOTEMPTY => Code::NotEmpty,
        Errno::NOSYS | Errno::NOTSUP => Code::Unsupported,
        Errno::OVERFLOW => Code::Overflow,
        Errno::PERM => Code::NotPermitted,
        Errno::PIPE => Code::Pipe,
        Errno::ROFS => Code::ReadOnly,
        Errno::SPIPE => Code::InvalidSeek,
        Errno::TXTBSY => Code::TextFileBusy,
        Errno::XDEV => Code::CrossDevice,
        _ => Code::Io,
    }
}

/// Why a file grant cannot be used. Any of these leaves the plugin without files rather than with too many.
#[derive(Debug, thiserror::Error)]
pub enum FsPolicyError {
    /// Nothing can be done with the rights of the user that tools work as.
    #[error("files cannot be reached as the user of `tools.scope.run_as_user`")]
    User {
        /// What the system said.
        source: std::io::Error,
    },
    /// A root is not absolute or its name is not UTF-8, so a guest could not name it.
    #[error("granted directory `{}` is not an absolute UTF-8 path; name another one with `--root`", path.display())]
    RootName {
        /// The root as granted.
        path: PathBuf,
    },
    /// A root is missing, is not a directory, or cannot be opened.
    #[error("cannot open granted directory `{}`", path.display())]
    OpenRoot {
        /// The root as granted.
        path: PathBuf,
        /// What the operating system said.
        source: std::io::Error,
    },
    /// The path of a root leads through a symbolic link, so names below it would not match the patterns.
    #[error("granted directory `{}` is not canonical", path.display())]
    RootNotCanonical {
        /// The root as granted.
        path: PathBuf,
    },
    /// Another directory stands where a plugin was given one.
    #[error(
        "`{}` is not the directory it was when a plugin first used it, so plugins do not get it; restart the host if the new one is meant",
        path.display()
    )]
    RootReplaced {
        /// The root as granted.
        path: PathBuf,
    },
    /// A root is on a kernel file system such as `/proc`, where files have side effects instead of data.
    #[error("granted directory `{}` lies on a kernel file system", path.display())]
    KernelFileSystem {
        /// The root as granted.
        path: PathBuf,
    },
    /// A pattern is not a valid glob.
    #[error("pattern `{pattern}` does not compile")]
    Pattern {
        /// The pattern as configured.
        pattern: String,
        /// What is wrong with it.
        source: globset::Error,
    },
    /// A pattern can never match a real path, so it would silently protect nothing.
    #[error("pattern `{pattern}` can never match: {reason}")]
    DeadPattern {
        /// The pattern as configured.
        pattern: String,
        /// Why it is dead.
        reason: &'static str,
    },
    /// The kernel's view of open files is missing, so nothing could be checked after opening.
    #[error("cannot name open files{}", if is_missing(source) { ": `/proc` is not mounted" } else { "" })]
    NoNames {
        /// What the operating system said.
        source: std::io::Error,
    },
}

fn is_missing(source: &std::io::Error) -> bool {
    source.kind() == std::io::ErrorKind::NotFound
}
