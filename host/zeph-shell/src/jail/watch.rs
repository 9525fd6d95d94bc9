//! What the programs of a jail ask for in vain, so that a person can grant it: learning, never loosening.
//!
//! Where it is wanted, the inner stage of the jail puts on one more filter, which refuses nothing and has the kernel tell the host of every
//! call that takes a path (`listener`). The process stands still meanwhile: the host reads the path from its memory (`process`), looks
//! whether the call will fail because of the jail and what could be granted (`judge`), and lets the call continue. A process may change the
//! path behind the host's back; then the host learns nonsense, and nothing else happens.

#[cfg(target_os = "linux")]
mod judge;
#[cfg(target_os = "linux")]
mod listener;
#[cfg(target_os = "linux")]
mod process;

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

#[cfg(target_os = "linux")]
pub(super) use self::judge::Judge;
#[cfg(target_os = "linux")]
pub(super) use self::listener::begin;

/// Most paths that are kept.
const PATHS_MAX: usize = 1_000;

/// What the programs of one or more jails asked for in vain so far. Clones share it.
#[derive(Debug, Clone, Default)]
pub struct PathWatch(Arc<Mutex<Watched>>);

#[derive(Debug, Default)]
struct Watched {
    denied: BTreeMap<(PathBuf, bool), Detail>,
    n_omitted: u64,
    problem: Option<String>,
    /// The granted directories in which something was used, and whether it was changed; none where that is not kept.
    used: Option<BTreeMap<PathBuf, bool>>,
}

#[derive(Debug, Clone)]
struct Detail {
    wanted: PathBuf,
    is_looked_at: bool,
    obstacle: Option<&'static str>,
}

/// A file or directory that programs asked for in vain.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct DeniedPath {
    /// What would have to be granted: it exists, and has no symbolic link in it.
    pub path: PathBuf,
    /// Whether to change it, or what is in it.
    pub write: bool,
    /// What was asked for: it, or what was to be made or removed below it, the first of several.
    pub wanted: PathBuf,
    /// Whether it was only looked at, neither read nor changed: a directory of which something is granted is there without a grant of its own.
    pub is_looked_at: bool,
    /// Why no grant is to be proposed, in a sentence; none where one may be.
    pub obstacle: Option<&'static str>,
}

impl PathWatch {
    /// One that also keeps in which granted directories the programs used something.
    pub fn of_used() -> Self {
        Self(Arc::new(Mutex::new(Watched {
            used: Some(BTreeMap::new()),
            ..Watched::default()
        })))
    }

    /// Takes the granted directories in which something was used since it was last asked, each with whether it was changed. Where several
    /// programs run at once, what one of them used may be told after another.
    ///
    /// Limits: 1,000 directories.
    pub fn take_used(&self) -> Vec<(PathBuf, bool)> {
        let mut watched = self.watched();
        let used = watched.used.as_mut().map(std::mem::take);
        used.into_iter().flatten().collect()
    }

    #[cfg(target_os = "linux")]
    fn keeps_used(&self) -> bool {
        self.watched().used.is_some()
    }

    #[cfg(target_os = "linux")]
    fn used(&self, directory: &Path, write: bool) {
        let mut watched = self.watched();
        let Some(used) = &mut watched.used else {
            return;
        };
        if let Some(known) = used.get_mut(directory) {
            *known |= write;
        } else if used.len() < PATHS_MAX {
            used.insert(directory.to_owned(), write);
        }
    }

    /// What was asked for, each once, in the order of the paths.
    ///
    /// Limits: the first 1,000; see [`Self::n_omitted`].
    pub fn denied(&self) -> Vec<DeniedPath> {
        let watched = self.watched();
        let denied = watched.denied.iter();
        denied
            .map(|((path, write), detail)| DeniedPath {
                path: path.clone(),
                write: *write,
                wanted: detail.wanted.clone(),
                is_looked_at: detail.is_looked_at,
                obstacle: detail.obstacle,
            })
            .collect()
    }

    /// How many paths were asked for in vain and not kept.
    pub fn n_omitted(&self) -> u64 {
        self.watched().n_omitted
    }

    /// Why paths could not be watched, or not all of them, in one line; none when they were.
    pub fn problem(&self) -> Option<String> {
        self.watched().problem.clone()
    }

    fn watched(&self) -> MutexGuard<'_, Watched> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Keeps the first reason.
    pub(super) fn fail(&self, problem: String) {
        self.watched().problem.get_or_insert(problem);
    }

    #[cfg(target_os = "linux")]
    fn add(&self, denied: DeniedPath) {
        let mut watched = self.watched();
        let is_full = watched.denied.len() >= PATHS_MAX;
        let key = (denied.path, denied.write);
        if let Some(known) = watched.denied.get_mut(&key) {
            known.is_looked_at &= denied.is_looked_at;
            return;
        }
        if is_full {
            watched.n_omitted += 1;
            return;
        }
        let detail = Detail {
            wanted: denied.wanted,
            is_looked_at: denied.is_looked_at,
            obstacle: denied.obstacle,
        };
        watched.denied.insert(key, detail);
    }
}

/// Places of credentials, relative to the home directory. A grant of one is for a person to think of, not for a program to propose.
const CREDENTIALS: [&str; 16] = [
    ".aws",
    ".azure",
    ".config/gcloud",
    ".config/gh",
    ".config/hub",
    ".docker/config.json",
    ".git-credentials",
    ".gnupg",
    ".kube",
    ".netrc",
    ".npmrc",
    ".password-store",
    ".pgpass",
    ".pypirc",
    ".ssh",
    ".vault-token",
];

/// Files of the system with credentials.
const SYSTEM_CREDENTIALS: [&str; 4] = ["/etc/gshadow", "/etc/shadow", "/etc/ssh", "/etc/sudoers"];

/// Whether credentials lie there.
fn holds_credentials(path: &Path, home: Option<&Path>) -> bool {
    let below_home = home.and_then(|home| path.strip_prefix(home).ok());
    let is_own = below_home.is_some_and(|below| {
        let mut places = CREDENTIALS.iter().map(Path::new);
        places.any(|place| below.starts_with(place))
    });
    is_own
        || SYSTEM_CREDENTIALS
            .iter()
            .any(|place| path.starts_with(place))
}

/// Whether a directory holds what a program must not propose to open as a whole: the home directory, parts of the system, credentials.
pub fn is_private(directory: &Path, home: Option<&Path>) -> bool {
    let holds = |place: PathBuf| place.starts_with(directory);
    let own = home.into_iter().flat_map(|home| {
        let places = CREDENTIALS.iter();
        places.map(|place| home.join(place))
    });
    let of_system = SYSTEM_CREDENTIALS.iter().map(PathBuf::from);
    super::roots::refuse_secret(directory, home).is_err()
        || holds_credentials(directory, home)
        || own.chain(of_system).any(holds)
}
