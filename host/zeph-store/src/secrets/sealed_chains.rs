//! Which chain was last sealed in which store: beside the keys, where nobody reaches who can only write to a database.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use serde::{Deserialize, Serialize};
use uuid::Uuid;

use super::SecretsError;
use super::audit_keys::AuditKeyFolder;
use super::file::{AUDIT_CHAINS, FileContent, Folder};

/// Stores that are remembered, at most.
const STORES_MAX: usize = 1_000;

/// The file, exactly.
#[derive(Default, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct ChainsFile {
    version: u32,
    /// The names of the chains, by the place of their store.
    chains: BTreeMap<String, Uuid>,
}

impl FileContent for ChainsFile {
    const VERSION: u32 = 1;
    const BYTES_MAX: u64 = 8 << 20;

    fn version(&mut self) -> &mut u32 {
        &mut self.version
    }
}

impl AuditKeyFolder {
    /// The file that says which chains were sealed.
    pub(crate) fn chains_file(&self) -> PathBuf {
        self.folder().join(AUDIT_CHAINS.file)
    }

    /// The chain that was last sealed in the store at `place`, with a key of this folder.
    ///
    /// Errors: [`SecretsError`].
    pub(crate) fn sealed_chain(&self, place: &str) -> Result<Option<Uuid>, SecretsError> {
        let Some(folder) = Folder::open(self.folder(), AUDIT_CHAINS)? else {
            return Ok(None);
        };
        let file = folder.parsed::<ChainsFile>()?;
        Ok(file.chains.get(place).copied())
    }

    /// Remembers, durably, that the chain `origin` is sealed in the store at `place`.
    ///
    /// Errors: [`SecretsError`]; then what was remembered stays. Limits: 1,000 stores, of which files that are gone are forgotten where there is no
    /// room for another; blocks for up to 5 s when another process holds the lock.
    pub(crate) fn remember_chain(&self, place: &str, origin: Uuid) -> Result<(), SecretsError> {
        let folder = Folder::make(self.folder(), AUDIT_CHAINS)?;
        let _only_one = folder.hold()?;
        let mut file = folder.parsed::<ChainsFile>()?;
        if file.chains.len() >= STORES_MAX && !file.chains.contains_key(place) {
            // Places that are no absolute paths are on servers, which only look gone when they are away.
            let is_gone =
                |known: &str| Path::new(known).is_absolute() && !Path::new(known).exists();
            file.chains.retain(|known, _| !is_gone(known));
        }
        if file.chains.len() >= STORES_MAX && !file.chains.contains_key(place) {
            return Err(SecretsError::Chains {
                path: self.chains_file(),
                problem: format!("it has {STORES_MAX} stores, which is the limit"),
            });
        }
        file.chains.insert(place.to_owned(), origin);
        folder.write(&mut file)
    }
}

#[cfg(test)]
mod tests {
    use uuid::Uuid;

    use super::super::audit_keys::AuditKeyFolder;
    use super::STORES_MAX;

    #[test]
    fn the_newest_chain_of_each_store_is_remembered() {
        let dir = tempfile::tempdir().unwrap();
        let folder = AuditKeyFolder::new(dir.path().join("secrets"));
        assert_eq!(folder.sealed_chain("/a.db").unwrap(), None);
        let [first, second, other] = [(); 3].map(|()| Uuid::new_v4());
        folder.remember_chain("/a.db", first).unwrap();
        folder.remember_chain("/b.db", other).unwrap();
        folder.remember_chain("/a.db", second).unwrap();
        assert_eq!(folder.sealed_chain("/a.db").unwrap(), Some(second));
        assert_eq!(folder.sealed_chain("/b.db").unwrap(), Some(other));
    }

    #[test]
    fn stores_that_are_gone_make_room() {
        let dir = tempfile::tempdir().unwrap();
        let folder = AuditKeyFolder::new(dir.path().join("secrets"));
        let here = dir.path().join("here.db");
        std::fs::write(&here, "").unwrap();
        let here = here.to_str().unwrap();
        let origin = Uuid::new_v4();
        folder.remember_chain(here, origin).unwrap();
        let server = "postgres://ann@localhost:5432/calls  one";
        let gone = (2..STORES_MAX).map(|n| format!("/nosuch/{n}.db"));
        let places = gone.chain([here.to_owned(), server.to_owned()]);
        let chains: Vec<String> = places
            .map(|place| format!("\"{place}\": \"{origin}\""))
            .collect();
        let text = format!("{{\"version\": 1, \"chains\": {{{}}}}}", chains.join(","));
        std::fs::write(folder.chains_file(), text).unwrap();
        folder.remember_chain("/new.db", origin).unwrap();
        for known in [here, server, "/new.db"] {
            assert_eq!(folder.sealed_chain(known).unwrap(), Some(origin), "{known}");
        }
        assert_eq!(folder.sealed_chain("/nosuch/2.db").unwrap(), None);
    }

    #[test]
    fn a_full_memory_says_so_and_forgets_no_server() {
        let dir = tempfile::tempdir().unwrap();
        let folder = AuditKeyFolder::new(dir.path().join("secrets"));
        let origin = Uuid::new_v4();
        folder.remember_chain("postgres://0", origin).unwrap();
        let chains = (0..STORES_MAX).map(|n| format!("\"postgres://{n}\": \"{origin}\""));
        let chains = chains.collect::<Vec<_>>().join(",");
        let text = format!("{{\"version\": 1, \"chains\": {{{chains}}}}}");
        std::fs::write(folder.chains_file(), text).unwrap();
        let error = folder.remember_chain("/new.db", origin).unwrap_err();
        assert!(error.to_string().contains("limit"), "{error}");
        let newer = Uuid::new_v4();
        folder.remember_chain("postgres://1", newer).unwrap();
        assert_eq!(folder.sealed_chain("postgres://1").unwrap(), Some(newer));
        let known = folder.sealed_chain("postgres://0").unwrap();
        assert_eq!(known, Some(origin));
    }
}
