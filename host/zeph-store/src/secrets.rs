//! The values of secrets: in the keyring of the operating system where there is one, else in one file that its owner alone can read, in a
//! folder that is its owner's alone. The file also names the secrets whose values the keyring has.
//!
//! A change replaces the file as a whole while a lock is held, so concurrent changes lose nothing and a crash leaves the old or the new
//! file. Owner, rights and kind of folder and file are checked on what was opened, at every reading; links are refused.

pub(crate) mod audit_keys;
pub(crate) mod file;
mod keyring;
pub(crate) mod seal_keys;
mod sealed_chains;

use std::collections::BTreeMap;
use std::fmt;
use std::io;
use std::os::unix::fs::MetadataExt as _;
use std::path::{Path, PathBuf};

use serde::{Deserialize, Serialize};

use self::file::{FileContent, Folder, SECRETS};
pub use self::keyring::{Keyring, KeyringError};

/// Secrets at most.
const SECRETS_MAX: usize = 256;

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

/// Where a value is kept.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum SecretPlace {
    /// In the file.
    File,
    /// In the keyring of the operating system.
    Keyring,
}

/// A secret without its value.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SecretRecord {
    /// Its name.
    pub name: String,
    /// Where its value is kept.
    pub place: SecretPlace,
    /// When it was set, in Unix milliseconds.
    pub created_at_ms: i64,
}

/// What became of a secret that was set.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct SecretSet {
    /// Whether it replaced one of its name.
    pub has_replaced: bool,
    /// Where its value is kept.
    pub place: SecretPlace,
}

/// The secrets whose values can be had.
#[derive(Debug, Default)]
pub struct ReachableSecrets {
    /// They, by name.
    pub secrets: Vec<StoredSecret>,
    /// Why those in the keyring are not among them.
    pub problem: Option<SecretsError>,
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
    /// The keys of the audit log make no sense.
    #[error("`{}` is not a file of keys of the audit log: {problem}", path.display())]
    Keys {
        /// The file.
        path: PathBuf,
        /// What is wrong with it. No part of its content.
        problem: String,
    },
    /// What is remembered of sealed audit logs makes no sense.
    #[error("`{}` does not say which audit logs were sealed: {problem}", path.display())]
    Chains {
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
    /// A value is in the keyring of the operating system, or should be, and that does not do its part.
    #[error(transparent)]
    Keyring(#[from] KeyringError),
    /// There are too many.
    #[error("there are {SECRETS_MAX} secrets, which is the limit")]
    Full,
}

impl SecretsError {
    /// What to do about it.
    pub fn hint(&self) -> Option<String> {
        match self {
            Self::Exposed { path, problem } if *problem == file::NO_DIRECTORY => Some(format!(
                "move `{}` away: setting a secret makes the directory",
                path.display()
            )),
            Self::Exposed { path, .. } => Some(format!(
                "look who could read it; then `chmod -R go= '{}'`, or delete it and set the secrets anew",
                path.display()
            )),
            Self::Broken { path, .. } => Some(format!(
                "delete `{}` and set the secrets anew",
                path.display()
            )),
            Self::Keys { path, .. } => Some(format!(
                "restore `{}`, or move it away and run `zeph-host audit rekey`: earlier records can no longer be verified then",
                path.display()
            )),
            Self::Chains { path, .. } => Some(format!(
                "restore `{}`, or delete it if `zeph-host audit verify` finds nothing else: another is made, from what is in the store",
                path.display()
            )),
            Self::Keyring(error) => Some(error.hint().to_owned()),
            Self::File { .. } | Self::Held { .. } | Self::Full => None,
        }
    }
}

/// The folder of secrets. Nothing is opened until it is used.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SecretFolder {
    path: PathBuf,
    /// Where values are kept rather than in the file.
    keyring: Option<Keyring>,
}

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
    /// None when the keyring has it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    value: Option<String>,
    created_at_ms: i64,
}

impl FileContent for SecretsFile {
    const VERSION: u32 = 1;
    const BYTES_MAX: u64 = 4 << 20;

    fn version(&mut self) -> &mut u32 {
        &mut self.version
    }
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

impl RawSecret {
    fn place(&self) -> SecretPlace {
        match self.value {
            Some(_) => SecretPlace::File,
            None => SecretPlace::Keyring,
        }
    }
}

impl SecretFolder {
    /// The folder at `path`, which need not exist. Values are kept in its file.
    pub fn new(path: impl Into<PathBuf>) -> Self {
        Self {
            path: path.into(),
            keyring: None,
        }
    }

    /// The same folder, with values in `keyring` where that can be reached.
    #[must_use]
    pub fn with_keyring(self, keyring: Keyring) -> Self {
        let keyring = Some(keyring);
        Self { keyring, ..self }
    }

    /// The file with the values.
    pub fn file(&self) -> PathBuf {
        self.path.join(SECRETS.file)
    }

    /// The state of the file now; `None` when there is none. Nothing is checked. It changes whenever a secret is set or removed.
    pub fn stamp(&self) -> Option<SecretsStamp> {
        SecretsStamp::of(&self.file())
    }

    /// All secrets without their values, by name. None when there is no folder or file.
    ///
    /// Errors: [`SecretsError`]; then none can be trusted.
    pub fn list(&self) -> Result<Vec<SecretRecord>, SecretsError> {
        let secrets = self.raw()?.into_iter().map(|(name, raw)| SecretRecord {
            place: raw.place(),
            name,
            created_at_ms: raw.created_at_ms,
        });
        Ok(secrets.collect())
    }

    /// All secrets, by name. None when there is no folder or file.
    ///
    /// Errors: [`SecretsError`]; then none can be trusted, or some cannot be reached.
    pub fn read(&self) -> Result<Vec<StoredSecret>, SecretsError> {
        let ReachableSecrets { secrets, problem } = self.read_reachable()?;
        match problem {
            Some(problem) => Err(problem),
            None => Ok(secrets),
        }
    }

    /// The secrets whose values can be had, by name. One that its user removed from the keyring is not among them.
    ///
    /// Errors: [`SecretsError`]; then none can be trusted.
    /// Limits: some 20 s where a value is in a keyring that does not answer.
    pub fn read_reachable(&self) -> Result<ReachableSecrets, SecretsError> {
        let mut raw = self.raw()?;
        let problem = self.fill(&mut raw).err().map(SecretsError::Keyring);
        let secrets = raw.into_iter().filter_map(|(name, raw)| {
            Some(StoredSecret {
                name,
                value: raw.value?,
                created_at_ms: raw.created_at_ms,
            })
        });
        let secrets = secrets.collect();
        Ok(ReachableSecrets { secrets, problem })
    }

    /// Adds the values that the keyring has.
    fn fill(&self, raw: &mut BTreeMap<String, RawSecret>) -> Result<(), KeyringError> {
        let mut missing: Vec<_> = raw
            .iter_mut()
            .filter(|(_, raw)| raw.value.is_none())
            .collect();
        if missing.is_empty() {
            return Ok(());
        }
        let names: Vec<&str> = missing.iter().map(|(name, _)| name.as_str()).collect();
        let values = self.keyring()?.get(&self.path, &names)?;
        for ((_, raw), value) in missing.iter_mut().zip(values) {
            raw.value = value;
        }
        Ok(())
    }

    fn keyring(&self) -> Result<&Keyring, KeyringError> {
        let off = || KeyringError::Absent("`store.keyring` is off".to_owned());
        self.keyring.as_ref().ok_or_else(off)
    }

    fn raw(&self) -> Result<BTreeMap<String, RawSecret>, SecretsError> {
        match Folder::open(&self.path, SECRETS)? {
            Some(folder) => Ok(folder.parsed::<SecretsFile>()?.secrets),
            None => Ok(BTreeMap::new()),
        }
    }

    /// Sets a secret, durably: in the keyring, or in the file where there is none.
    ///
    /// Errors: [`SecretsError`]; then the secret is as it was. Limits: 256 secrets; blocks for up to 5 s when another process holds the
    /// lock, and for some 20 s when a keyring does not answer.
    pub fn set(&self, name: &str, value: &str, now_ms: i64) -> Result<SecretSet, SecretsError> {
        let folder = Folder::make(&self.path, SECRETS)?;
        let _only_one = folder.hold()?;
        let mut file = folder.parsed::<SecretsFile>()?;
        let has_replaced = file.secrets.contains_key(name);
        if !has_replaced && file.secrets.len() >= SECRETS_MAX {
            return Err(SecretsError::Full);
        }
        let place = self.put(name, value)?;
        let raw = RawSecret {
            value: (place == SecretPlace::File).then(|| value.to_owned()),
            created_at_ms: now_ms,
        };
        file.secrets.insert(name.to_owned(), raw);
        folder.write(&mut file)?;
        Ok(SecretSet {
            has_replaced,
            place,
        })
    }

    /// Puts a value into the keyring, where there is one.
    fn put(&self, name: &str, value: &str) -> Result<SecretPlace, KeyringError> {
        let Some(keyring) = &self.keyring else {
            return Ok(SecretPlace::File);
        };
        match keyring.set(&self.path, name, value) {
            Ok(()) => Ok(SecretPlace::Keyring),
            Err(KeyringError::Absent(_)) => Ok(SecretPlace::File),
            Err(error) => Err(error),
        }
    }

    /// Removes a secret, durably. Returns whether there was one of that name.
    ///
    /// Errors: [`SecretsError`]; then nothing is changed.
    pub fn remove(&self, name: &str) -> Result<bool, SecretsError> {
        let Some(folder) = Folder::open(&self.path, SECRETS)? else {
            return Ok(false);
        };
        let _only_one = folder.hold()?;
        let mut file = folder.parsed::<SecretsFile>()?;
        let Some(removed) = file.secrets.remove(name) else {
            return Ok(false);
        };
        if removed.place() == SecretPlace::Keyring {
            self.keyring()?.remove(&self.path, name)?;
        }
        folder.write(&mut file)?;
        Ok(true)
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
