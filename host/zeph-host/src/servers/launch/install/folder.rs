//! The folder of one installation, its record and its lock.

use std::fs::{self, File, OpenOptions};
use std::io::{self, Write as _};
use std::os::unix::fs::OpenOptionsExt as _;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use rustix::fs::FlockOperation;
use serde::{Deserialize, Serialize};
use sha2::{Digest as _, Sha256};
use tempfile::NamedTempFile;
use zeph_core::user::ToolUser;

use super::InstallPin;
use super::command::{InstallCommand, PackageSpec, Tool};
use crate::servers::launch::private_directory;

/// Between two looks whether another process has finished.
const PAUSE: Duration = Duration::from_millis(100);

/// Tries to remove what is left, a pause between two.
const REMOVALS_MAX: u32 = 50;

/// Most bytes of a record.
const RECORD_BYTES_MAX: u64 = 64 * 1024;

/// Where one installation lies.
#[derive(Debug, Clone)]
pub(super) struct InstallFolder {
    path: PathBuf,
}

/// What is known of a finished installation.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct InstallRecord {
    /// What is pinned.
    pub(super) pin: InstallPin,
    /// The program, relative to the folder.
    pub(super) program: PathBuf,
}

impl InstallFolder {
    /// The folder for what is asked for; nothing is made yet.
    pub(super) fn of(
        root: &Path,
        command: &InstallCommand,
        packages: &[PackageSpec],
        runs_scripts: bool,
    ) -> Self {
        let texts: Vec<String> = packages.iter().map(PackageSpec::text).collect();
        let asked = format!(
            "{}\n{:?}\n{:?}\n{:?}\n{:?}\n{runs_scripts}\n{texts:?}",
            format_of(command.tool),
            command.tool,
            command.tool_directory,
            command.program,
            command.python
        );
        let digest = Sha256::digest(asked.as_bytes());
        let name: String = digest[..16]
            .iter()
            .map(|byte| format!("{byte:02x}"))
            .collect();
        Self {
            path: root.join(name),
        }
    }

    /// Another one for the same, which is removed as soon as it is known what is in it.
    pub(super) fn in_passing(&self) -> Self {
        let mut name = self.path.file_name().unwrap_or_default().to_owned();
        name.push("-newest");
        Self {
            path: self.path.with_file_name(name),
        }
    }

    pub(super) fn path(&self) -> &Path {
        &self.path
    }

    /// What is there, if it is whole.
    pub(super) fn record(&self) -> Option<InstallRecord> {
        let path = self.beside("json");
        let is_short = fs::metadata(&path).ok()?.len() <= RECORD_BYTES_MAX;
        let text = fs::read_to_string(&path).ok().filter(|_| is_short)?;
        let record: InstallRecord = serde_json::from_str(&text).ok()?;
        let is_there = record.program.is_relative() && self.path.join(&record.program).exists();
        is_there.then_some(record)
    }

    /// Waits until no other process installs here, and keeps others from it as long as what comes back lives. `waiting` is called when it
    /// has to wait.
    ///
    /// Errors: in words; the deadline has passed.
    pub(super) async fn lock(
        &self,
        deadline: Instant,
        waiting: impl FnOnce(),
    ) -> Result<File, String> {
        let path = self.beside("lock");
        let file = OpenOptions::new()
            .create(true)
            .truncate(false)
            .write(true)
            .mode(0o600)
            .open(&path)
            .map_err(|error| failed("opened", &path, &error))?;
        let mut waiting = Some(waiting);
        loop {
            match rustix::fs::flock(&file, FlockOperation::NonBlockingLockExclusive) {
                Ok(()) => return Ok(file),
                Err(rustix::io::Errno::WOULDBLOCK | rustix::io::Errno::INTR) => {}
                Err(error) => return Err(failed("locked", &path, &error.into())),
            }
            if Instant::now() >= deadline {
                return Err("another process has been installing it for ten minutes".to_owned());
            }
            if let Some(waiting) = waiting.take() {
                waiting();
            }
            tokio::time::sleep(PAUSE).await;
        }
    }

    /// Makes the folder anew for `user`, without what is left of an installation that was killed.
    ///
    /// Errors: in words.
    pub(super) async fn begin(&self, user: Option<&ToolUser>) -> Result<(), String> {
        let is_there = || self.path.symlink_metadata().is_ok();
        self.remove();
        for _ in 0..REMOVALS_MAX {
            if !is_there() {
                break;
            }
            // An installer that is being ended may still write here.
            tokio::time::sleep(PAUSE).await;
            self.remove();
        }
        if is_there() {
            return Err(format!(
                "{} is left of an installation that did not finish, and cannot be removed; remove it",
                self.path.display()
            ));
        }
        private_directory(&self.path, user)
            .map_err(|error| failed("made", &self.path, &error))
            .map(drop)
    }

    /// Writes the record: from now on the installation counts.
    ///
    /// Errors: in words.
    pub(super) fn finish(&self, record: &InstallRecord) -> Result<(), String> {
        let path = self.beside("json");
        let write = || -> io::Result<()> {
            let folder = path.parent().unwrap_or(Path::new("/"));
            let mut file = NamedTempFile::new_in(folder)?;
            file.write_all(&serde_json::to_vec(record)?)?;
            file.as_file().sync_all()?;
            file.persist(&path).map(drop).map_err(|error| error.error)
        };
        write().map_err(|error| failed("written", &path, &error))
    }

    /// Removes it; first the record, so that it does not count while it is taken apart.
    pub(super) fn remove(&self) {
        drop(fs::remove_file(self.beside("json")));
        drop(fs::remove_dir_all(&self.path));
    }

    fn beside(&self, ending: &str) -> PathBuf {
        self.path.with_extension(ending)
    }
}

/// Changes when a tool makes installations in another way than before: what was made then does not count any more.
fn format_of(tool: Tool) -> u32 {
    match tool {
        Tool::Npm | Tool::Bun => 1,
        // Compiled to bytecode.
        Tool::Uv | Tool::Pip => 2,
    }
}

fn failed(what: &str, path: &Path, error: &io::Error) -> String {
    format!("{} cannot be {what}: {error}", path.display())
}

#[cfg(test)]
mod tests;
