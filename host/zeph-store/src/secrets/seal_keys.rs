//! The keys of seals that several hosts share: a file of the operator, which every host reads and none writes.
//!
//! A line is a key of 64 hexadecimal digits; empty lines and lines that begin with `#` are not. The first key seals, every one opens: another key
//! takes over in three steps, none of which refuses a seal (as the last line everywhere, as the first, and without the old one).

use std::fs::{File, Metadata};
use std::io::{self, Read as _};
use std::os::unix::fs::MetadataExt as _;
use std::path::{Path, PathBuf};

use crate::audit::code::from_hex;

/// Bytes of a key.
pub const SEAL_KEY_BYTES: usize = 32;

/// Bytes of the file, and keys in it, at most.
const FILE_BYTES_MAX: u64 = 16 << 10;
const KEYS_MAX: usize = 16;

/// A file of keys. Nothing is opened until it is read.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SealKeyFile {
    path: PathBuf,
    setting: &'static str,
}

/// Tells one state of the file from another.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct SealKeyStamp {
    inode: (u64, u64),
    bytes: u64,
    changed: (i64, i64),
}

/// Why there are no keys.
#[derive(Debug, thiserror::Error)]
pub enum SealKeyError {
    /// The file cannot be read.
    #[error("cannot read the keys of `{setting}`, `{}`", path.display())]
    File {
        /// The key of the configuration that names the file.
        setting: &'static str,
        /// The file.
        path: PathBuf,
        /// What the operating system said.
        source: io::Error,
    },
    /// Others may have read or changed it.
    #[error("the keys of `{setting}`, `{}`, are not used: {problem}", path.display())]
    Exposed {
        /// The key of the configuration that names the file.
        setting: &'static str,
        /// The file.
        path: PathBuf,
        /// What is wrong with it.
        problem: &'static str,
    },
    /// It has no keys.
    #[error("`{}` (`{setting}`) is not a file of keys: {problem}", path.display())]
    Broken {
        /// The key of the configuration that names the file.
        setting: &'static str,
        /// The file.
        path: PathBuf,
        /// What is wrong with it. No part of its content.
        problem: String,
    },
}

impl SealKeyError {
    /// What to do about it.
    pub fn hint(&self) -> Option<String> {
        match self {
            Self::File { source, .. } if source.kind() != io::ErrorKind::NotFound => None,
            Self::Exposed { path, .. } => Some(format!(
                "`chmod 600 '{}'`, and make new keys if others could read it",
                path.display()
            )),
            Self::File { path, .. } | Self::Broken { path, .. } => Some(format!(
                "`(umask 077; openssl rand -hex 32 >'{}')` makes a file with one key; every replica needs the same",
                path.display()
            )),
        }
    }
}

impl SealKeyFile {
    /// The file at `path`, which the configuration names with the key `setting`. Symbolic links are followed: secrets are mounted that way.
    pub fn new(path: impl Into<PathBuf>, setting: &'static str) -> Self {
        Self {
            path: path.into(),
            setting,
        }
    }

    /// Where it is.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// Which state it is in; `None` when it cannot be looked at.
    pub fn stamp(&self) -> Option<SealKeyStamp> {
        let metadata = std::fs::metadata(&self.path).ok()?;
        Some(SealKeyStamp::of(&metadata))
    }

    /// The keys, the one that seals first.
    ///
    /// Errors: [`SealKeyError`]. Limits: 16 keys.
    pub fn read(&self) -> Result<Vec<[u8; SEAL_KEY_BYTES]>, SealKeyError> {
        let (setting, path) = (self.setting, || self.path.clone());
        let fault = |source| SealKeyError::File {
            setting,
            path: path(),
            source,
        };
        // A pipe in its place is not waited on.
        let flags =
            rustix::fs::OFlags::RDONLY | rustix::fs::OFlags::NONBLOCK | rustix::fs::OFlags::CLOEXEC;
        let opened = rustix::fs::open(&self.path, flags, rustix::fs::Mode::empty());
        let file = File::from(opened.map_err(|error| fault(error.into()))?);
        let metadata = file.metadata().map_err(fault)?;
        if let Some(problem) = exposure(&metadata) {
            return Err(SealKeyError::Exposed {
                setting,
                path: path(),
                problem,
            });
        }
        let mut text = String::new();
        file.take(FILE_BYTES_MAX)
            .read_to_string(&mut text)
            .map_err(fault)?;
        keys(&text).map_err(|problem| SealKeyError::Broken {
            setting,
            path: path(),
            problem,
        })
    }
}

impl SealKeyStamp {
    fn of(metadata: &Metadata) -> Self {
        Self {
            inode: (metadata.dev(), metadata.ino()),
            bytes: metadata.len(),
            changed: (metadata.ctime(), metadata.ctime_nsec()),
        }
    }
}

/// What is wrong with the file of a key: it may be its group's to read, as mounted secrets are, and nobody else's.
fn exposure(metadata: &Metadata) -> Option<&'static str> {
    let own = rustix::process::geteuid().as_raw();
    if !metadata.is_file() {
        return Some("it is not a regular file");
    }
    if metadata.uid() != own && metadata.uid() != 0 {
        return Some("it belongs to another user");
    }
    match metadata.mode() & 0o037 {
        0 => None,
        _ => Some("others than its owner can change it, or others than its group read it"),
    }
}

fn keys(text: &str) -> Result<Vec<[u8; SEAL_KEY_BYTES]>, String> {
    let mut keys = Vec::new();
    for (number, line) in text.lines().enumerate() {
        let line = line.trim();
        if line.is_empty() || line.starts_with('#') {
            continue;
        }
        let key = from_hex(line.to_ascii_lowercase().as_bytes());
        let key = key.ok_or_else(|| format!("line {} is not 64 hexadecimal digits", number + 1))?;
        if !keys.contains(&key) {
            keys.push(key);
        }
    }
    match keys.len() {
        0 => Err("it has no key".to_owned()),
        n_keys if n_keys > KEYS_MAX => Err(format!("it has more than {KEYS_MAX} keys")),
        _ => Ok(keys),
    }
}

#[cfg(test)]
mod tests {
    use std::fs::{self, Permissions};
    use std::os::unix::fs::{PermissionsExt as _, symlink};

    use super::{SealKeyError, SealKeyFile, keys};

    const ONE: &str = "00000000000000000000000000000000000000000000000000000000000000aB";
    const TWO: &str = "1111111111111111111111111111111111111111111111111111111111111111";

    #[test]
    fn lines_are_keys_in_their_order() {
        let text = format!("# made 2026-11\n\n{ONE}\r\n  {TWO}\n{ONE}\n");
        let read = keys(&text).unwrap();
        assert_eq!((read[0][31], read[1][0], read.len()), (0xab, 0x11, 2));
        for bad in [
            "",
            "# none\n",
            "00",
            &format!("{ONE}00"),
            &ONE.replace('0', "g"),
        ] {
            keys(bad).unwrap_err();
        }
        let many: Vec<String> = (0..17).map(|n| format!("{n:064x}")).collect();
        keys(&many.join("\n")).unwrap_err();
        let problem = keys(&format!("{ONE}\nsecret words")).unwrap_err();
        assert_eq!(problem, "line 2 is not 64 hexadecimal digits");
    }

    #[test]
    fn a_file_that_others_can_use_is_not_used() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("keys");
        let file = SealKeyFile::new(&path, "a.key");
        let missing = file.read().unwrap_err();
        assert!(matches!(missing, SealKeyError::File { .. }));
        assert!(missing.hint().is_some_and(|hint| hint.contains("openssl")));
        assert!(file.stamp().is_none());
        fs::write(&path, ONE).unwrap();
        for (mode, is_used) in [
            (0o600, true),
            (0o400, true),
            (0o440, true),
            (0o644, false),
            (0o460, false),
            (0o602, false),
        ] {
            fs::set_permissions(&path, Permissions::from_mode(mode)).unwrap();
            assert_eq!(file.read().is_ok(), is_used, "{mode:o}");
        }
        fs::set_permissions(&path, Permissions::from_mode(0o600)).unwrap();
        let link = folder.path().join("link");
        symlink(&path, &link).unwrap();
        assert_eq!(SealKeyFile::new(&link, "a.key").read().unwrap().len(), 1);
        let before = file.stamp();
        fs::write(&path, format!("{TWO}\n{ONE}")).unwrap();
        assert_ne!(file.stamp(), before);
        assert_eq!(file.read().unwrap().len(), 2);
        assert!(SealKeyFile::new(folder.path(), "a.key").read().is_err());
    }
}
