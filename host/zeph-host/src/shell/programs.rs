//! The jails of programs that plugins run: the shell's, narrowed to what the call of the plugin holds.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError};

use zeph_core::capability::{FsRights, FsRoot};
use zeph_core::id::PluginId;
use zeph_plugins::rights::ProgramRights;
use zeph_shell::jail::{EnvironmentPolicy, Jail, JailLabel, JailPolicy, Network};

/// Where tools put what they make besides their output when the directories may not be changed: variables, and folders of the private
/// cache.
const CACHES: [(&str, &str); 4] = [
    ("CARGO_TARGET_DIR", "target"),
    ("MYPY_CACHE_DIR", "mypy"),
    ("PYTHONPYCACHEPREFIX", "pycache"),
    ("RUFF_CACHE_DIR", "ruff"),
];

/// Most jails that are kept: one for each plugin and what it holds.
const JAILS_MAX: usize = 64;

/// The jails made so far. A directory is the object it was when its jail was made.
#[derive(Debug, Default)]
pub(super) struct ProgramJails(Mutex<BTreeMap<JailKey, Arc<Jail>>>);

#[derive(Debug, PartialEq, Eq, PartialOrd, Ord)]
struct JailKey {
    plugin: String,
    read: Vec<PathBuf>,
    write: Vec<PathBuf>,
    /// What is withheld of these as a whole.
    hidden: Vec<PathBuf>,
    /// What may be read there and not changed.
    protected: Vec<PathBuf>,
    only_reads: bool,
}

impl ProgramJails {
    /// The jail of the programs of `plugin` that holds `rights`, inside of what `base` gives to commands.
    ///
    /// Errors: why there is none, in a sentence.
    pub(super) fn of(
        &self,
        base: &JailPolicy,
        plugin: &PluginId,
        rights: &ProgramRights,
    ) -> Result<Arc<Jail>, String> {
        let key = JailKey::new(base, plugin, rights);
        if key.read.is_empty() && key.write.is_empty() {
            return Err(
                "no directory that was granted to the plugin is one that commands may read (`tools.sandbox.allow_read`)"
                    .to_owned(),
            );
        }
        let mut jails = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if jails.len() >= JAILS_MAX && !jails.contains_key(&key) {
            jails.clear();
        }
        let jail = match jails.get(&key) {
            Some(jail) => Arc::clone(jail),
            None => {
                let jail = Arc::new(Jail::new(policy(base, &key)));
                jails.insert(key, Arc::clone(&jail));
                jail
            }
        };
        drop(jails);
        match jail.label() {
            // Nothing would keep what a plugin runs to what the plugin was granted.
            Ok(JailLabel::None) => Err(
                "plugins run programs in the sandbox only, and `tools.sandbox.disabled` switches it off".to_owned(),
            ),
            Ok(_) => Ok(jail),
            Err(missing) => Err(format!(
                "this machine cannot jail programs ({missing}); `zeph-host doctor` tells how to get it"
            )),
        }
    }
}

impl JailKey {
    fn new(base: &JailPolicy, plugin: &PluginId, rights: &ProgramRights) -> Self {
        let readable = base.allow_read.as_ref().unwrap_or(&base.roots);
        let writable = base.allow_write.as_ref().unwrap_or(&base.roots);
        let readable: Vec<&PathBuf> = readable.iter().chain(writable).collect();
        let granted = |wanted: FsRights| {
            let has = move |root: &&FsRoot| root.rights.intersect(wanted) == wanted;
            rights
                .directories
                .iter()
                .filter(has)
                .map(|root| root.path.as_path())
        };
        let write = match rights.only_reads {
            true => Vec::new(),
            false => inside(granted(FsRights::ALL), &writable.iter().collect::<Vec<_>>()),
        };
        let hidden = withheld(rights, |denied| denied.read);
        let protected = withheld(rights, |denied| !denied.read);
        let apart_from = |paths: Vec<PathBuf>, parts: &[&[PathBuf]]| {
            let is_in = |path: &PathBuf| parts.concat().iter().any(|part| path.starts_with(part));
            paths.into_iter().filter(|path| !is_in(path)).collect()
        };
        Self {
            plugin: plugin.to_string(),
            // Of what commands may see, some may lie in a withheld part.
            read: apart_from(inside(granted(FsRights::READ), &readable), &[&hidden]),
            write: apart_from(write, &[&hidden, &protected]),
            hidden,
            protected,
            only_reads: rights.only_reads,
        }
    }
}

/// The withheld parts of what programs see, of which `lacks` is so. The sandbox hides a part that may not be read, and protects one that may
/// not be written to in one way or another.
fn withheld(rights: &ProgramRights, lacks: impl Fn(FsRights) -> bool) -> Vec<PathBuf> {
    let parts = rights.denied.iter().filter(|one| {
        let mut directories = rights.directories.iter();
        lacks(one.rights) && directories.any(|root| one.path.starts_with(&root.path))
    });
    parts.map(|one| one.path.clone()).collect()
}

/// What lies both in one of `granted` and in one of `given`.
fn inside<'a>(granted: impl Iterator<Item = &'a Path>, given: &[&PathBuf]) -> Vec<PathBuf> {
    let mut both = Vec::new();
    for path in granted {
        for given in given {
            let inner = match (path.starts_with(given), given.starts_with(path)) {
                (true, _) => path,
                (false, true) => given.as_path(),
                (false, false) => continue,
            };
            if !both.iter().any(|known| known == inner) {
                both.push(inner.to_owned());
            }
        }
    }
    both
}

fn policy(base: &JailPolicy, key: &JailKey) -> JailPolicy {
    let cache = base.cache.as_ref().and_then(|cache| {
        let name = cache.file_name()?.to_str()?;
        Some(cache.with_file_name(format!("{name}-{}", key.plugin)))
    });
    let caches = CACHES.map(|(name, folder)| (name.to_owned(), folder.to_owned()));
    JailPolicy {
        roots: key.read.clone(),
        allow_read: Some(key.read.clone()),
        allow_write: Some(key.write.clone()),
        network: match key.only_reads {
            true => Network::Loopback,
            false => base.network,
        },
        environment: EnvironmentPolicy {
            caches: match key.write.is_empty() {
                true => caches.to_vec(),
                false => Vec::new(),
            },
            ..base.environment.clone()
        },
        cache,
        hidden: [base.hidden.as_slice(), &key.hidden].concat(),
        protected: [base.protected.as_slice(), &key.protected].concat(),
        ..base.clone()
    }
}
