//! A recorded call that is made again: without network and programs, and without a way to change anything but a temporary copy.
//!
//! The call goes the whole line, so it is decided under the rules and grants of now; only what it would hold is cut down, here. A call that
//! changed nothing reads the files themselves. One that did gets a copy of the files in its record, of those that it may read now.

use std::fs;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use zeph_core::capability::{FsGrant, FsRoot};
use zeph_core::category::{ErrorCategory, ErrorPhase};
use zeph_core::failure::ToolFailure;
use zeph_engine::fs::FsPolicy;
use zeph_plugins::rights::{ProgramRights, Rights, ServiceRights};

use crate::recording::{CallRecord, FileUseName, OwnerKind, RecordedDecision, RecordedFile};

/// Most bytes that are copied for one call.
const COPY_BYTES_MAX: u64 = 256 * 1024 * 1024;

/// How a call is made again.
#[derive(Debug, Clone)]
pub(crate) struct ReplayTerms {
    /// The files in its record, when it changed something, and where their copies go.
    pub(crate) copy: Option<Arc<FileCopy>>,
}

/// The files of a call that changed something.
#[derive(Debug)]
pub(crate) struct FileCopy {
    /// An empty directory of this host's own; a canonical path.
    pub(crate) directory: PathBuf,
    /// The real paths of the files and directories, those that are not there among them.
    pub(crate) files: Vec<PathBuf>,
    /// Those that the call made anew: they were not there when it began.
    pub(crate) made: Vec<PathBuf>,
}

impl ReplayTerms {
    /// Of the call in `record`, with copies in `directory` if it needs them.
    pub(crate) fn of(record: &CallRecord, directory: PathBuf) -> Self {
        let changes = record.files.iter().any(changes);
        let copy = changes.then(|| {
            let made = record.files.iter().filter(|file| is_new(file));
            let made = made.filter_map(place).collect();
            let files = record.files.iter().filter_map(place);
            Arc::new(FileCopy {
                directory,
                files: files.collect(),
                made,
            })
        });
        Self { copy }
    }

    /// What a call that holds `rights` holds when it is made again.
    ///
    /// Blocks: it copies files. Errors: `server_error` when that fails.
    pub(crate) fn confined(&self, mut rights: Rights) -> Result<Rights, ToolFailure> {
        rights.hosts = Arc::default();
        rights.programs = ProgramRights {
            patterns: Vec::new(),
            ..rights.programs
        };
        rights.services = ServiceRights::default();
        rights.grant.fs = match &self.copy {
            None => Arc::new(rights.grant.fs.read_only()),
            Some(copy) => {
                let directories = &rights.programs.directories;
                let copied = copy.make(directories, &rights.grant.fs);
                Arc::new(copied.map_err(|error| {
                    tracing::error!(%error, "the files of a call cannot be copied");
                    let message = format!("the files of the call cannot be copied: {error}");
                    let (category, phase) = (ErrorCategory::ServerError, ErrorPhase::Setup);
                    ToolFailure::new(category, phase, message)
                })?)
            }
        };
        Ok(rights)
    }
}

impl FileCopy {
    /// Copies what a call under `policy` may read, and gives a policy over the copies, which a guest finds under the real paths.
    fn make(&self, directories: &[FsRoot], policy: &FsPolicy) -> std::io::Result<FsPolicy> {
        let mut grant = FsGrant::default();
        let mut left = COPY_BYTES_MAX;
        for root in directories {
            let top = self.copy_of(&root.path);
            fs::create_dir_all(&top)?;
            grant.roots.push(FsRoot {
                path: top.canonicalize()?,
                rights: root.rights,
            });
            grant.spelled.push((root.path.clone(), top.canonicalize()?));
            for file in self.files.iter().filter(|file| policy.sees(file)) {
                let Ok(below) = file.strip_prefix(&root.path) else {
                    continue;
                };
                let to = top.join(below);
                match self.made.contains(file) {
                    true => make_parent(file, &to)?,
                    false => copy(file, &to, &mut left)?,
                }
            }
        }
        FsPolicy::new(&grant).map_err(std::io::Error::other)
    }

    fn copy_of(&self, directory: &Path) -> PathBuf {
        let below = directory.strip_prefix("/").unwrap_or(directory);
        self.directory.join(below)
    }

    /// The real path of what has the path `copied`; that path itself where it is no copy.
    pub(crate) fn real(&self, copied: &str) -> String {
        match Path::new(copied).strip_prefix(&self.directory) {
            Ok(below) => format!("/{}", below.display()),
            Err(_) => copied.to_owned(),
        }
    }
}

/// Copies a file or makes a directory, if it has this very path: no link is followed.
fn copy(file: &Path, to: &Path, left: &mut u64) -> std::io::Result<()> {
    let parent = match file.canonicalize() {
        Ok(real) if real == file => to.parent(),
        // It is not there, or is a link now: the call finds nothing either, but for its directory.
        _ => return make_parent(file, to),
    };
    if file.is_dir() {
        return fs::create_dir_all(to);
    }
    let about = fs::symlink_metadata(file)?;
    if !about.is_file() {
        return Ok(());
    }
    *left = left.checked_sub(about.len()).ok_or_else(|| {
        std::io::Error::other(format!("they have more than {COPY_BYTES_MAX} bytes"))
    })?;
    if let Some(parent) = parent {
        fs::create_dir_all(parent)?;
    }
    fs::copy(file, to).map(drop)
}

fn make_parent(file: &Path, to: &Path) -> std::io::Result<()> {
    match (file.parent(), to.parent()) {
        (Some(there), Some(parent)) if there.is_dir() => fs::create_dir_all(parent),
        _ => Ok(()),
    }
}

/// Whether the call made it, and did not replace anything.
fn is_new(file: &RecordedFile) -> bool {
    file.uses.contains(&FileUseName::Create) && !file.uses.contains(&FileUseName::Write)
}

/// A file that the call removed and that is not there now: what it held is not recorded.
fn lost(record: &CallRecord) -> Option<PathBuf> {
    let removed = record.files.iter();
    let removed = removed.filter(|file| file.uses.contains(&FileUseName::Delete));
    removed.filter_map(place).find(|path| !path.exists())
}

fn changes(file: &RecordedFile) -> bool {
    let reads = |used: &FileUseName| {
        matches!(
            used,
            FileUseName::Look | FileUseName::Read | FileUseName::List
        )
    };
    !file.uses.iter().all(reads)
}

fn place(file: &RecordedFile) -> Option<PathBuf> {
    crate::suggestion::grants::place(file)
}

/// Why the call in `record` cannot be made again, in a sentence; none when it can.
pub(crate) fn obstacle(record: &CallRecord) -> Option<String> {
    if record.decision != RecordedDecision::Allow {
        return Some("it did not run".to_owned());
    }
    let kind = record.owner.as_ref().map(|owner| owner.kind);
    let of_kind = match kind {
        Some(OwnerKind::Plugin) => None,
        Some(OwnerKind::Command) => Some("it ran a command, whose effects a record does not hold"),
        Some(OwnerKind::Server) => {
            Some("an MCP server answered it, which the host cannot repeat offline")
        }
        Some(OwnerKind::Builtin) => {
            Some("a tool of the host itself answered it, from the state of its conversation")
        }
        Some(OwnerKind::Executor) => Some("an executor of the program that embeds the host ran it"),
        None => Some("the record does not say who ran it"),
    };
    let uses = if record.hosts.iter().any(|host| host.requests > 0) {
        Some("it used the network")
    } else if !record.programs.is_empty() {
        Some("it ran programs")
    } else if record.omitted > 0 && record.files.iter().any(changes) {
        Some("it changed more files than its record names")
    } else if record.arguments_sha256.is_none() {
        Some("its arguments hold a secret, which is not recorded")
    } else {
        None
    };
    let lost = lost(record).map(|path| {
        format!(
            "it removed `{}`, and what that held is not recorded",
            path.display()
        )
    });
    of_kind.or(uses).map(str::to_owned).or(lost)
}
