//! What a server was refused, and the smallest grant that would allow it.

use std::path::{Path, PathBuf};

use zeph_core::failure::one_line;
use zeph_core::id::ServerName;

/// Most refusals that are told.
const REFUSALS_MAX: usize = 20;

/// Words of messages about files that cannot be used, in lower case.
const SIGNS: [&str; 16] = [
    "eacces",
    "enoent",
    "eperm",
    "erofs",
    "permission denied",
    "no such file",
    "not permitted",
    "read-only file system",
    "permissionerror",
    "filenotfounderror",
    "does not exist",
    "cannot access",
    "cannot find",
    "cannot open",
    "could not open",
    "not found",
];

/// Words of messages about files that could not be changed, in lower case.
const SIGNS_OF_WRITING: [&str; 8] = [
    "erofs",
    "read-only",
    "mkdir",
    "unlink",
    "rename",
    "write",
    "copyfile",
    "symlink",
];

/// What a server tried in vain.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Refusal {
    /// A host that is not among `hosts`, as it would be listed there.
    Host(String),
    /// A file or directory that exists, as far as the server's messages tell.
    Path {
        /// Where.
        path: PathBuf,
        /// Whether it was to be changed.
        write: bool,
    },
}

/// What a server was given.
#[derive(Debug, Clone, Default)]
pub(super) struct Granted {
    /// To be read.
    pub(super) read: Vec<PathBuf>,
    /// To be read and changed.
    pub(super) write: Vec<PathBuf>,
    /// What it could not be given.
    pub(super) hidden: Vec<PathBuf>,
}

impl Refusal {
    /// The key of the server's table that would allow it.
    pub(crate) fn field(&self) -> &'static str {
        match self {
            Self::Host(_) => "hosts",
            Self::Path { write: true, .. } => "allow_write",
            Self::Path { write: false, .. } => "allow_read",
        }
    }

    /// What that key would have to list.
    pub(crate) fn value(&self) -> String {
        match self {
            Self::Host(host) => host.clone(),
            Self::Path { path, .. } => path.to_string_lossy().into_owned(),
        }
    }

    /// One sentence with the key that would allow it.
    pub(crate) fn sentence(&self, server: &ServerName) -> String {
        let what = match self {
            Self::Host(host) => format!("the server was not connected to {host}"),
            Self::Path { path, write } => {
                let verb = if *write { "change" } else { "read" };
                let shown = one_line(&path.to_string_lossy(), 200);
                format!("the server could not {verb} {shown}")
            }
        };
        let (field, value) = (self.field(), one_line(&self.value(), 200));
        format!("{what}; add \"{value}\" to `mcp.servers.{server}.{field}` to allow it")
    }
}

/// The paths that `stderr` speaks of as not usable, which are there and were not granted. Each once.
///
/// What a server prints is its own word: this proposes grants to the operator and decides nothing.
pub(super) fn paths(stderr: &str, granted: &Granted) -> Vec<Refusal> {
    let mut refusals: Vec<Refusal> = Vec::new();
    for line in stderr.lines() {
        let lower = line.to_lowercase();
        if !SIGNS.iter().any(|sign| lower.contains(sign)) {
            continue;
        }
        let write = SIGNS_OF_WRITING.iter().any(|sign| lower.contains(sign));
        for path in named(line) {
            let refusal = granted.refusal(path, write);
            refusals.extend(refusal.filter(|refusal| !refusals.contains(refusal)));
        }
        if refusals.len() >= REFUSALS_MAX {
            break;
        }
    }
    refusals
}

impl Granted {
    fn refusal(&self, path: &Path, write: bool) -> Option<Refusal> {
        let path: PathBuf = path.components().collect();
        let within = |all: &[PathBuf]| all.iter().any(|root| path.starts_with(root));
        if within(&self.write) || within(&self.hidden) {
            return None;
        }
        let write = match (write, within(&self.read)) {
            (false, true) => return None,
            (write, _) => write,
        };
        // What is to be made is proposed by where it would be.
        let there = match (path.symlink_metadata().is_ok(), write) {
            (true, _) => path.as_path(),
            (false, true) => path.parent().filter(|parent| parent.is_dir())?,
            (false, false) => return None,
        };
        let is_wide = there.components().count() <= 2;
        (!is_wide).then(|| Refusal::Path {
            path: there.to_owned(),
            write,
        })
    }
}

/// The absolute paths in a line: up to a quote that began before them, else up to a blank or a closing sign.
fn named(line: &str) -> impl Iterator<Item = &Path> {
    let starts = line.char_indices().filter(|(at, c)| {
        let before = line[..*at].chars().next_back();
        *c == '/'
            && before.is_none_or(|before| before.is_whitespace() || "'\"`(=[:".contains(before))
    });
    starts.filter_map(|(at, _)| {
        let quote = line[..at].chars().next_back();
        let quote = quote.filter(|quote| "'\"`".contains(*quote));
        let ends = |c: char| match quote {
            Some(quote) => c == quote,
            None => c.is_whitespace() || "'\"`)],;:".contains(c),
        };
        let rest = &line[at..];
        let path = &rest[..rest.find(ends).unwrap_or(rest.len())];
        (path.len() > 1 && !path.contains("/../")).then(|| Path::new(path.trim_end_matches('.')))
    })
}

#[cfg(test)]
mod tests;
