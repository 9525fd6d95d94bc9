//! What logins to remote servers left: one file beside that of the secrets, which its owner alone can read.
//!
//! A login is the text that the caller gives, with the values in it that are secrets. The file is replaced as a whole while a lock is held. A
//! second kind of lock, one for each server, is for renewing tokens: a renewal takes as long as the server does, and only one may happen.

use std::collections::BTreeMap;
use std::fmt;
use std::os::fd::OwnedFd;
use std::path::PathBuf;

use serde::{Deserialize, Serialize};

use crate::secrets::file::{FileContent, Folder, LOGINS};
use crate::secrets::{SecretsError, SecretsStamp};

/// Logins at most.
const LOGINS_MAX: usize = 256;

/// The login to one server.
#[derive(Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct StoredLogin {
    /// All of it, as its user wrote it.
    pub record: String,
    /// The values in it that nobody may read.
    pub secrets: Vec<String>,
}

impl fmt::Debug for StoredLogin {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("StoredLogin(…)")
    }
}

/// Keeps other renewals of the same login away until it is dropped.
#[derive(Debug)]
pub struct LoginHold {
    _lock: OwnedFd,
}

/// The logins, in the folder of the secrets. Nothing is opened until it is used.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct LoginFolder(PathBuf);

/// The file, exactly.
#[derive(Default, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct LoginsFile {
    version: u32,
    logins: BTreeMap<String, StoredLogin>,
}

impl FileContent for LoginsFile {
    const VERSION: u32 = 1;
    const BYTES_MAX: u64 = 4 << 20;

    fn version(&mut self) -> &mut u32 {
        &mut self.version
    }
}

impl LoginFolder {
    /// The folder at `path`, which need not exist.
    pub fn new(path: impl Into<PathBuf>) -> Self {
        Self(path.into())
    }

    /// The file.
    pub fn file(&self) -> PathBuf {
        self.0.join(LOGINS.file)
    }

    /// The state of the file now; `None` when there is none. Nothing is checked.
    pub fn stamp(&self) -> Option<SecretsStamp> {
        SecretsStamp::of(&self.file())
    }

    /// All logins, by the names of their servers. None when there is no folder or file.
    ///
    /// Errors: [`SecretsError`]; then none can be trusted.
    pub fn read(&self) -> Result<BTreeMap<String, StoredLogin>, SecretsError> {
        match Folder::open(&self.0, LOGINS)? {
            Some(folder) => Ok(folder.parsed::<LoginsFile>()?.logins),
            None => Ok(BTreeMap::new()),
        }
    }

    /// Sets the login to `server`, durably.
    ///
    /// Errors: [`SecretsError`]; then nothing is changed. Limits: 256 logins; blocks for up to 5 s when another process holds the lock.
    pub fn set(&self, server: &str, login: StoredLogin) -> Result<(), SecretsError> {
        let folder = Folder::make(&self.0, LOGINS)?;
        let _only_one = folder.hold()?;
        let mut file = folder.parsed::<LoginsFile>()?;
        file.logins.insert(server.to_owned(), login);
        if file.logins.len() > LOGINS_MAX {
            return Err(SecretsError::Full);
        }
        folder.write(&mut file)
    }

    /// Removes the login to `server`, durably. Returns it if there was one.
    ///
    /// Errors: [`SecretsError`]; then nothing is changed.
    pub fn remove(&self, server: &str) -> Result<Option<StoredLogin>, SecretsError> {
        let Some(folder) = Folder::open(&self.0, LOGINS)? else {
            return Ok(None);
        };
        let _only_one = folder.hold()?;
        let mut file = folder.parsed::<LoginsFile>()?;
        let Some(login) = file.logins.remove(server) else {
            return Ok(None);
        };
        folder.write(&mut file)?;
        Ok(Some(login))
    }

    /// The lock on renewals of the login to `server`, a name of letters, digits, `-` and `_`; `None` while another process or task has it.
    ///
    /// Errors: [`SecretsError`].
    pub fn try_hold(&self, server: &str) -> Result<Option<LoginHold>, SecretsError> {
        let folder = Folder::make(&self.0, LOGINS)?;
        let lock = folder.try_hold(&format!("login-{server}.lock"))?;
        Ok(lock.map(|lock| LoginHold { _lock: lock }))
    }
}

#[cfg(test)]
mod tests {
    use super::{LoginFolder, StoredLogin};

    fn login(token: &str) -> StoredLogin {
        StoredLogin {
            record: format!("{{\"token\":\"{token}\"}}"),
            secrets: vec![token.to_owned()],
        }
    }

    #[test]
    fn a_login_is_set_replaced_and_removed() {
        let dir = tempfile::tempdir().unwrap();
        let folder = LoginFolder::new(dir.path().join("secrets"));
        assert!(folder.read().unwrap().is_empty());
        folder.set("one", login("first-token")).unwrap();
        let first = folder.stamp();
        folder.set("one", login("second-token")).unwrap();
        folder.set("two", login("other-token")).unwrap();
        assert_ne!(folder.stamp(), first);
        let read = folder.read().unwrap();
        assert_eq!((read.len(), &read["one"]), (2, &login("second-token")));
        assert!(!format!("{read:?}").contains("token"));
        assert_eq!(folder.remove("one").unwrap(), Some(login("second-token")));
        assert_eq!(folder.remove("one").unwrap(), None);
    }

    #[test]
    fn one_renewal_at_a_time_for_each_server() {
        let dir = tempfile::tempdir().unwrap();
        let folder = LoginFolder::new(dir.path().join("secrets"));
        let held = folder.try_hold("one").unwrap();
        assert!(held.is_some());
        assert!(folder.try_hold("one").unwrap().is_none());
        assert!(folder.try_hold("two").unwrap().is_some());
        // The file can be changed meanwhile.
        folder.set("one", login("token")).unwrap();
        drop(held);
        assert!(folder.try_hold("one").unwrap().is_some());
    }
}
