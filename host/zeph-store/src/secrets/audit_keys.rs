//! The keys of the audit: in the keyring of the operating system where there is one, else in a file beside that of the secrets, which its
//! owner alone can read.
//!
//! A key is made once and never replaced. Another one takes over when the operator says so, or when the keyring that has it cannot be
//! reached; the older ones stay, so that what they vouch for can still be verified.

use std::fmt;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use serde::{Deserialize, Serialize};
use uuid::Uuid;

use super::file::{AUDIT_KEYS, FileContent, Folder};
use super::{Keyring, KeyringError, SecretsError};
use crate::audit::code::{CODE_BYTES, CodeDomain, Coder, from_hex, hex};

/// Keys in the file at most.
const KEYS_MAX: usize = 1_000;

/// Bytes of the code that names a key.
const ID_BYTES: usize = 8;

/// Where the keys of the audit come from.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum AuditKeySource {
    /// From a folder; a key is made when there is none.
    Folder(AuditKeyFolder),
    /// A key of this process alone, for a store in memory.
    Process,
}

/// The folder with the keys of the audit, which is that of the secrets. Nothing is opened until it is used.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct AuditKeyFolder {
    path: PathBuf,
    keyring: Option<Keyring>,
}

/// The keys of the audit that can be reached. New records are vouched for with the newest.
#[derive(Clone)]
pub struct AuditKeys {
    /// Oldest first.
    keys: Arc<[AuditKey]>,
    /// The names of those in a keyring that cannot be reached.
    out_of_reach: Arc<[String]>,
    /// Where they come from; none for those of a process.
    folder: Option<AuditKeyFolder>,
}

/// A key, as what makes its codes.
#[derive(Clone)]
pub(crate) struct AuditKey {
    /// Names it; 16 hexadecimal digits that say nothing about it.
    pub(crate) id: String,
    pub(crate) record: Coder,
    pub(crate) event: Coder,
    pub(crate) line: Coder,
    pub(crate) checkpoint: Coder,
}

/// The file, exactly.
#[derive(Default, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct KeysFile {
    version: u32,
    /// Oldest first.
    keys: Vec<RawKey>,
}

#[derive(Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct RawKey {
    id: String,
    /// 64 hexadecimal digits; none when the keyring has it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    key: Option<String>,
    created_at_ms: i64,
}

impl AuditKeys {
    /// A key that nobody else has and nobody keeps.
    pub fn of_process() -> Self {
        Self {
            keys: Arc::from([AuditKey::of(&random())]),
            out_of_reach: Arc::from([]),
            folder: None,
        }
    }

    /// Where they come from; none for those of a process.
    pub(crate) fn folder(&self) -> Option<&AuditKeyFolder> {
        self.folder.as_ref()
    }

    /// The key that new records are vouched for with.
    pub(crate) fn newest(&self) -> Option<&AuditKey> {
        self.keys.last()
    }

    /// The key of this name.
    pub(crate) fn named(&self, id: &str) -> Option<&AuditKey> {
        self.keys.iter().find(|key| key.id == id)
    }

    /// Whether the key of this name is in a keyring that cannot be reached.
    pub(crate) fn is_out_of_reach(&self, id: &str) -> bool {
        self.out_of_reach.iter().any(|known| known == id)
    }

    /// The keys as they are now, without those made after the one of this name.
    pub(crate) fn read_again(&self, id: &str) -> Option<Self> {
        self.folder.as_ref()?.read().ok()??.until(id)
    }

    /// These keys without those made after the one of this name.
    pub(crate) fn until(&self, id: &str) -> Option<Self> {
        let place = self.keys.iter().position(|key| key.id == id)?;
        Some(Self {
            keys: self.keys[..=place].into(),
            ..self.clone()
        })
    }
}

impl AuditKey {
    fn of(key: &[u8; CODE_BYTES]) -> Self {
        let coder = |domain| Coder::new(key, domain);
        Self {
            id: hex(&coder(CodeDomain::Key).code(&[])[..ID_BYTES]),
            record: coder(CodeDomain::Record),
            event: coder(CodeDomain::Event),
            line: coder(CodeDomain::Line),
            checkpoint: coder(CodeDomain::Checkpoint),
        }
    }
}

impl FileContent for KeysFile {
    const VERSION: u32 = 1;
    const BYTES_MAX: u64 = 1 << 20;

    fn version(&mut self) -> &mut u32 {
        &mut self.version
    }
}

impl AuditKeyFolder {
    /// The folder at `path`, which need not exist.
    pub fn new(path: impl Into<PathBuf>) -> Self {
        Self {
            path: path.into(),
            keyring: None,
        }
    }

    /// The same folder, with new keys in `keyring` where that can be reached.
    #[must_use]
    pub fn with_keyring(self, keyring: Keyring) -> Self {
        let keyring = Some(keyring);
        Self { keyring, ..self }
    }

    /// The folder.
    pub(super) fn folder(&self) -> &Path {
        &self.path
    }

    /// The file that has the keys, or names those that the keyring has.
    pub fn file(&self) -> PathBuf {
        self.path.join(AUDIT_KEYS.file)
    }

    /// The keys; `None` when none was made yet. Those in a keyring that cannot be reached are only known by name.
    ///
    /// Errors: [`SecretsError`]; then none can be trusted.
    /// Limits: some 20 s where a key is in a keyring that does not answer.
    pub fn read(&self) -> Result<Option<AuditKeys>, SecretsError> {
        match Folder::open(&self.path, AUDIT_KEYS)? {
            Some(folder) => self.keys(&folder.parsed::<KeysFile>()?),
            None => Ok(None),
        }
    }

    /// Whether a key of this name is here or in the keyring, as far as that can be read. The keyring is not asked.
    pub(crate) fn names(&self, id: &str) -> bool {
        let folder = Folder::open(&self.path, AUDIT_KEYS).ok().flatten();
        let file = folder.and_then(|folder| folder.parsed::<KeysFile>().ok());
        file.is_some_and(|file| file.keys.iter().any(|key| key.id == id))
    }

    /// The keys; one is made, durably, when there is none that can be reached. Several that ask at once get the same.
    ///
    /// Errors: [`SecretsError`]. Limits: blocks for up to 5 s when another process holds the lock; those of [`Self::read`].
    pub fn read_or_make(&self, now_ms: i64) -> Result<AuditKeys, SecretsError> {
        match self.read()? {
            Some(keys) if keys.newest().is_some() => Ok(keys),
            _ => self.make(now_ms, |keys| {
                keys.is_none_or(|keys| keys.newest().is_none())
            }),
        }
    }

    /// Makes another key, durably, which takes over from those there are.
    ///
    /// Errors: [`SecretsError`]. Limits: 1,000 keys; those of [`Self::read_or_make`].
    pub fn add(&self, now_ms: i64) -> Result<AuditKeys, SecretsError> {
        self.make(now_ms, |_| true)
    }

    fn make(
        &self,
        now_ms: i64,
        is_wanted: impl FnOnce(Option<AuditKeys>) -> bool,
    ) -> Result<AuditKeys, SecretsError> {
        let folder = Folder::make(&self.path, AUDIT_KEYS)?;
        let _only_one = folder.hold()?;
        let mut file = folder.parsed::<KeysFile>()?;
        if is_wanted(self.keys(&file)?) {
            if file.keys.len() >= KEYS_MAX {
                return Err(self.broken(format!("there are {KEYS_MAX} keys, which is the limit")));
            }
            file.keys.push(self.new_key(now_ms));
            folder.write(&mut file)?;
        }
        let none = || self.broken("it has no key".to_owned());
        self.keys(&file)?.ok_or_else(none)
    }

    /// A new key, in the keyring if that takes it.
    fn new_key(&self, now_ms: i64) -> RawKey {
        let bytes = random();
        let (id, digits) = (AuditKey::of(&bytes).id, hex(&bytes));
        let is_kept = self
            .keyring
            .as_ref()
            .is_some_and(|keyring| keyring.set(&self.path, &item(&id), &digits).is_ok());
        RawKey {
            id,
            key: (!is_kept).then_some(digits),
            created_at_ms: now_ms,
        }
    }

    fn keys(&self, file: &KeysFile) -> Result<Option<AuditKeys>, SecretsError> {
        let (mut keys, mut out_of_reach) = (Vec::new(), Vec::new());
        for raw in &file.keys {
            match self.key(raw)? {
                Some(key) => keys.push(key),
                None => out_of_reach.push(raw.id.clone()),
            }
        }
        Ok((!file.keys.is_empty()).then(|| AuditKeys {
            keys: keys.into(),
            out_of_reach: out_of_reach.into(),
            folder: Some(self.clone()),
        }))
    }

    /// A key of the file; none when the keyring that has it cannot be reached.
    fn key(&self, raw: &RawKey) -> Result<Option<AuditKey>, SecretsError> {
        let digits = match &raw.key {
            Some(digits) => digits.clone(),
            None => match self.in_keyring(&raw.id) {
                Ok(digits) => digits,
                Err(error) => {
                    tracing::debug!(%error, id = raw.id, "a key of the audit log cannot be reached");
                    return Ok(None);
                }
            },
        };
        let key = from_hex(digits.as_bytes()).map(|bytes| AuditKey::of(&bytes));
        let key = key.filter(|key| key.id == raw.id);
        let key = key.ok_or_else(|| self.broken(format!("the key `{}` is not whole", raw.id)));
        key.map(Some)
    }

    fn in_keyring(&self, id: &str) -> Result<String, KeyringError> {
        let Some(keyring) = &self.keyring else {
            return Err(KeyringError::Absent("`store.keyring` is off".to_owned()));
        };
        let found = keyring.get(&self.path, &[&item(id)])?;
        let gone = || KeyringError::Absent(format!("the key `{id}` of the audit log is not in it"));
        found.into_iter().next().flatten().ok_or_else(gone)
    }

    fn broken(&self, problem: String) -> SecretsError {
        SecretsError::Keys {
            path: self.file(),
            problem,
        }
    }
}

impl fmt::Debug for AuditKeys {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let ids = self.keys.iter().map(|key| &key.id);
        f.debug_list().entries(ids).finish()
    }
}

/// What a key is called in a keyring.
fn item(id: &str) -> String {
    format!("audit key {id}")
}

/// 244 random bits.
fn random() -> [u8; CODE_BYTES] {
    let mut key = [0; CODE_BYTES];
    for half in key.chunks_mut(16) {
        half.copy_from_slice(Uuid::new_v4().as_bytes());
    }
    key
}

#[cfg(test)]
mod tests {
    use std::fs;
    use std::os::unix::fs::PermissionsExt as _;
    use std::sync::Barrier;
    use std::thread;

    use super::AuditKeyFolder;
    use crate::secrets::SecretsError;

    fn id(folder: &AuditKeyFolder) -> String {
        let keys = folder.read_or_make(1).unwrap();
        keys.newest().unwrap().id.clone()
    }

    #[test]
    fn hosts_that_start_at_once_agree_on_one_key() {
        let dir = tempfile::tempdir().unwrap();
        let folder = AuditKeyFolder::new(dir.path().join("secrets"));
        assert!(folder.read().unwrap().is_none());
        let together = Barrier::new(8);
        let ids = thread::scope(|scope| {
            let start = || {
                together.wait();
                id(&folder)
            };
            let hosts: Vec<_> = (0..8).map(|_| scope.spawn(start)).collect();
            let ids = hosts.into_iter().map(|host| host.join().unwrap());
            ids.collect::<std::collections::BTreeSet<_>>()
        });
        assert_eq!(ids.len(), 1);
        let mode = fs::metadata(folder.file()).unwrap().permissions().mode();
        assert_eq!(mode & 0o777, 0o600);
    }

    #[test]
    fn an_added_key_takes_over_and_the_others_stay() {
        let dir = tempfile::tempdir().unwrap();
        let folder = AuditKeyFolder::new(dir.path().join("secrets"));
        let first = id(&folder);
        let keys = folder.add(2).unwrap();
        assert_ne!(keys.newest().unwrap().id, first);
        assert!(keys.named(&first).is_some());
        assert_eq!(keys.until(&first).unwrap().newest().unwrap().id, first);
        assert!(!format!("{keys:?}").contains("Coder"));
    }

    #[test]
    fn what_is_not_a_key_is_refused() {
        let dir = tempfile::tempdir().unwrap();
        let folder = AuditKeyFolder::new(dir.path().join("secrets"));
        id(&folder);
        let good = fs::read_to_string(folder.file()).unwrap();
        let key = good.split("\"key\": \"").nth(1).unwrap()[..64].to_owned();
        for bad in [
            String::new(),
            good.replace("\"version\": 1", "\"version\": 2"),
            good.replace(&key, &"0".repeat(64)),
            good.replace(&key, "short"),
            good.replace("\"keys\"", "\"other\""),
        ] {
            fs::write(folder.file(), &bad).unwrap();
            let error = folder.read_or_make(2).unwrap_err();
            assert!(matches!(error, SecretsError::Keys { .. }), "{error}: {bad}");
            assert!(!error.to_string().contains(&key), "{error}");
        }
        fs::write(folder.file(), &good).unwrap();
        fs::set_permissions(folder.file(), fs::Permissions::from_mode(0o644)).unwrap();
        let error = folder.read().unwrap_err();
        assert!(matches!(error, SecretsError::Exposed { .. }), "{error}");
    }

    #[test]
    fn another_key_serves_while_a_keyring_is_out_of_reach() {
        let dir = tempfile::tempdir().unwrap();
        let folder = AuditKeyFolder::new(dir.path().join("secrets"));
        let first = id(&folder);
        let text = format!(r#"{{"version":1,"keys":[{{"id":"{first}","created_at_ms":1}}]}}"#);
        fs::write(folder.file(), text).unwrap();
        let keys = folder.read().unwrap().unwrap();
        assert!(keys.newest().is_none() && keys.is_out_of_reach(&first));
        let second = id(&folder);
        assert_ne!(second, first);
        assert_eq!(id(&folder), second);
        let text = fs::read_to_string(folder.file()).unwrap();
        assert!(text.contains(&first), "it is still known: {text}");
    }
}
