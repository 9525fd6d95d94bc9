//! The values of secrets: one file that its owner alone can read, in a folder that is its owner's alone.
//!
//! A change replaces the file as a whole while a lock is held, so concurrent changes lose nothing and a crash leaves the old or the new
//! file. Owner, rights and kind of folder and file are checked on what was opened, at every reading; links are refused.

pub(crate) mod file;

use std::collections::BTreeMap;
use std::fmt;
use std::io;
use std::os::unix::fs::MetadataExt as _;
use std::path::{Path, PathBuf};

use serde::{Deserialize, Serialize};

use self::file::{Folder, SECRETS};

/// Bytes of the file at most.
const FILE_BYTES_MAX: u64 = 4 << 20;

/// Secrets at most.
const SECRETS_MAX: usize = 256;

/// The version of the file.
const VERSION: u32 = 1;

/// A secret with its value.
#[derive(Clone, PartialEq, Eq)]
pub struct StoredSecret {
    /// Its name.
    pub name: String,
    /// Its value.
    pub value: String,
    /// When it was set, in Unix milliseconds.
    pub created_at_ms: i64,
}

/// Which state of the file was read; another state differs.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SecretsStamp(u64, u64, u64, i64, i64);

/// Why secrets cannot be read or changed.
#[derive(Debug, thiserror::Error)]
pub enum SecretsError {
    /// A file or folder could not be used.
    #[error("cannot {operation} `{}`", path.display())]
    File {
        /// What was tried, to be followed by the path.
        operation: &'static str,
        /// The file or folder.
        path: PathBuf,
        /// What the operating system said.
        source: io::Error,
    },
    /// Others than the owner may have read or changed it.
    #[error("`{}` is not used: {problem}", path.display())]
    Exposed {
        /// The file or folder.
        path: PathBuf,
        /// What is wrong with it.
        problem: &'static str,
    },
    /// The file makes no sense.
    #[error("`{}` is not a file of secrets: {problem}", path.display())]
    Broken {
        /// The file.
        path: PathBuf,
        /// What is wrong with it. No part of its content.
        problem: String,
    },
    /// Another process holds the lock.
    #[error("`{}` is held by another process for more than 5 s", path.display())]
    Held {
        /// The lock file.
        path: PathBuf,
    },
    /// There are too many.
    #[error("there are {SECRETS_MAX} secrets, which is the limit")]
    Full,
}

impl SecretsError {
    /// What to do about it.
    pub fn hint(&self) -> Option<String> {
        match self {
            Self::Exposed { path, .. } => Some(format!(
                "look who could read it; then `chmod -R go= '{}'`, or delete it and set the secrets anew",
                path.display()
            )),
            Self::Broken { path, .. } => Some(format!(
                "delete `{}` and set the secrets anew",
                path.display()
            )),
            Self::File { .. } | Self::Held { .. } | Self::Full => None,
        }
    }
}

/// The folder of secrets. Nothing is opened until it is used.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SecretFolder(PathBuf);

/// The file, exactly.
#[derive(Default, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct SecretsFile {
    version: u32,
    secrets: BTreeMap<String, RawSecret>,
}

#[derive(Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct RawSecret {
    value: String,
    created_at_ms: i64,
}

impl SecretsStamp {
    /// Of the file at `path`; `None` when there is none.
    pub(crate) fn of(path: &Path) -> Option<Self> {
        let metadata = std::fs::symlink_metadata(path).ok()?;
        let changed = metadata.ctime() * 1_000_000_000 + metadata.ctime_nsec();
        let written = metadata.mtime() * 1_000_000_000 + metadata.mtime_nsec();
        let size = metadata.size();
        Some(Self(metadata.dev(), metadata.ino(), size, written, changed))
    }
}

impl SecretFolder {
    /// The folder at `path`, which need not exist.
    pub fn new(path: impl Into<PathBuf>) -> Self {
        Self(path.into())
    }

    /// The file with the values.
    pub fn file(&self) -> PathBuf {
        self.0.join(SECRETS.file)
    }

    /// The state of the file now; `None` when there is none. Nothing is checked.
    pub fn stamp(&self) -> Option<SecretsStamp> {
        SecretsStamp::of(&self.file())
    }

    /// All secrets, by name. None when there is no folder or file.
    ///
    /// Errors: [`SecretsError`]; then none can be trusted.
    pub fn read(&self) -> Result<Vec<StoredSecret>, SecretsError> {
        let Some(folder) = Folder::open(&self.0, SECRETS)? else {
            return Ok(Vec::new());
        };
        let secrets = self.parsed(&folder)?.secrets.into_iter();
        let secrets = secrets.map(|(name, raw)| StoredSecret {
            name,
            value: raw.value,
            created_at_ms: raw.created_at_ms,
        });
        Ok(secrets.collect())
    }

    /// Sets a secret, durably. Returns whether it replaced one of that name.
    ///
    /// Errors: [`SecretsError`]; then nothing is changed. Limits: 256 secrets; blocks for up to 5 s when another process holds the lock.
    pub fn set(&self, name: &str, value: &str, now_ms: i64) -> Result<bool, SecretsError> {
        let folder = Folder::make(&self.0, SECRETS)?;
        let _only_one = folder.hold()?;
        let mut file = self.parsed(&folder)?;
        let raw = RawSecret {
            value: value.to_owned(),
            created_at_ms: now_ms,
        };
        let has_replaced = file.secrets.insert(name.to_owned(), raw).is_some();
        if file.secrets.len() > SECRETS_MAX {
            return Err(SecretsError::Full);
        }
        self.write(&folder, file)?;
        Ok(has_replaced)
    }

    /// Removes a secret, durably. Returns whether there was one of that name.
    ///
    /// Errors: [`SecretsError`]; then nothing is changed.
    pub fn remove(&self, name: &str) -> Result<bool, SecretsError> {
        let Some(folder) = Folder::open(&self.0, SECRETS)? else {
            return Ok(false);
        };
        let _only_one = folder.hold()?;
        let mut file = self.parsed(&folder)?;
        if file.secrets.remove(name).is_none() {
            return Ok(false);
        }
        self.write(&folder, file)?;
        Ok(true)
    }

    fn parsed(&self, folder: &Folder) -> Result<SecretsFile, SecretsError> {
        let Some(text) = folder.read(FILE_BYTES_MAX)? else {
            return Ok(SecretsFile::default());
        };
        let broken = |problem: String| SecretsError::Broken {
            path: self.file(),
            problem,
        };
        // What the parser says may quote the content.
        let file: SecretsFile = serde_json::from_slice(&text).map_err(|error| {
            let (line, column) = (error.line(), error.column());
            broken(format!("line {line}, column {column} makes no sense"))
        })?;
        match file.version {
            VERSION => Ok(file),
            version => Err(broken(format!("it has version {version}, not {VERSION}"))),
        }
    }

    fn write(&self, folder: &Folder, mut file: SecretsFile) -> Result<(), SecretsError> {
        file.version = VERSION;
        let text = serde_json::to_vec_pretty(&file).map_err(|error| SecretsError::Broken {
            path: self.file(),
            problem: error.to_string(),
        })?;
        folder.replace(&text)
    }
}

impl fmt::Debug for StoredSecret {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "StoredSecret({})", self.name)
    }
}

fn fault(operation: &'static str, path: &Path) -> impl FnOnce(rustix::io::Errno) -> SecretsError {
    let path = path.to_owned();
    move |error| SecretsError::File {
        operation,
        path,
        source: error.into(),
    }
}

#[cfg(test)]
mod tests;
