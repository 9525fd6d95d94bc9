//! Keeps the set of plugins in step with the folders: looks, checks, pins, swaps, and says what changed.
//!
//! One task owns all of it. Files are read and compiled beside it, so that a slow one holds up nothing; whatever changes,
//! a whole new [`PluginSet`] takes the place of the old one, and calls in flight go on with theirs.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use tokio::sync::watch;
use tokio::task::JoinSet;
use zeph_config::lock_of;
use zeph_core::failure::chain;
use zeph_core::id::PluginId;
use zeph_core::limit::CallLimits;
use zeph_engine::{Engine, Plugin};

use super::Clock;
use super::component::Component;
use super::event::{self, Tell};
use super::folder::{self, FileStamp, FolderEntry, QUIET};
use super::load::{self, LoadResult};
use super::lock::{Lock, LockFile, LockedPlugin, Provenance};
use super::owners::{NameClaim, Owners};
use super::record::{RecordVerdict, Records};
use super::set::{
    CandidateState, FolderLock, ManifestBy, PluginCandidate, PluginSet, ProgramParts, VettedPlugin,
};
use super::signature::{self, CheckedSignature, SignatureCheck, SignedPlugin};
use super::watcher::Watcher;

/// Characters of why a plugin of the program is missing.
const REASON_CHARS_MAX: usize = 500;

/// How often it is looked whether a signature has expired.
const EXPIRY_LOOK: Duration = Duration::from_hours(1);

/// What the keeper works with.
#[expect(missing_debug_implementations, reason = "it holds a listener")]
pub struct KeeperOptions {
    /// Compiles and asks.
    pub engine: Engine,
    /// What a component may use while it is asked for its tools.
    pub limits: CallLimits,
    /// Tells how old a file is, and when a plugin was accepted.
    pub clock: Clock,
    /// In the order in which names are given out.
    pub folders: Vec<PathBuf>,
    /// Where records of what was found are kept; `None` keeps none.
    pub cache_dir: Option<PathBuf>,
    /// What there is besides the folders.
    pub fixed: ProgramParts,
    /// Whether `fixed` holds every tool of the host, so that names can be given out for good.
    pub gives_names: bool,
    /// Plugins of the program that have to be compiled: nothing but its own tools can be called before that is done.
    pub uncompiled: Vec<Component>,
    /// Whether the folders are watched after the first look.
    pub watch: bool,
    /// Changes when another host says that the folders may have, which the system need not report: a folder of the network.
    pub hints: Option<watch::Receiver<i64>>,
    /// Checks the signatures of what lies in the folders; none accepts everything, signed or not.
    pub signatures: Option<Arc<dyn SignatureCheck>>,
    /// Receives events.
    pub tell: Option<Tell>,
}

/// The owner of the set.
#[expect(missing_debug_implementations, reason = "it holds a listener")]
pub struct Keeper {
    options: KeeperOptions,
    records: Records,
    sender: watch::Sender<Arc<PluginSet>>,
    files: BTreeMap<Key, WatchedFile>,
    /// What is wrong with a folder as a whole.
    problems: Vec<String>,
    /// Why a plugin of the program is missing.
    missing: Vec<String>,
    loads: JoinSet<(Key, FileStamp, LoadResult)>,
    /// A file was touched a moment ago and has to be looked at again.
    has_fresh: bool,
    /// Whether the plugins were reported already: at start, only problems are reported.
    has_told: bool,
    /// The locks as they were when the set was put together.
    locks: Vec<Option<FileStamp>>,
    /// The files of signatures as they were then.
    signatures: Vec<SignatureStamps>,
    /// When the first of the signatures stops counting, in Unix milliseconds.
    expires_at_ms: Option<i64>,
    /// Something differs from the active set.
    is_stale: bool,
}

/// The states of the files beside one component.
type SignatureStamps = [Option<FileStamp>; 3];

/// Folder and name.
type Key = (usize, PluginId);

/// A file as last seen, and the version of it that serves calls.
struct WatchedFile {
    candidate: PluginCandidate,
    /// The state of the file that is being loaded.
    loading: Option<FileStamp>,
}

impl Keeper {
    /// Looks at the directories for the first time. Plugins known from an earlier start are active immediately; the rest is loaded by
    /// [`run`](Self::run).
    pub fn start(options: KeeperOptions) -> (Self, watch::Receiver<Arc<PluginSet>>) {
        let (sender, receiver) = watch::channel(Arc::new(PluginSet::default()));
        let mut keeper = Self {
            records: Records::new(options.cache_dir.as_deref()),
            options,
            sender,
            files: BTreeMap::new(),
            problems: Vec::new(),
            missing: Vec::new(),
            loads: JoinSet::new(),
            has_fresh: false,
            has_told: false,
            locks: Vec::new(),
            signatures: Vec::new(),
            expires_at_ms: None,
            is_stale: true,
        };
        keeper.look();
        keeper.publish();
        (keeper, receiver)
    }

    /// Loads what has to be loaded, and follows the folders when they are watched. Ends when there is nothing more to do.
    pub async fn run(mut self) {
        self.compile().await;
        let folders = &self.options.folders;
        let mut watcher = self.options.watch.then(|| Watcher::start(folders));
        let mut hints = self.options.hints.clone();
        loop {
            let (until_expiry, follows_expiry) = (self.until_expiry(), self.follows_expiry());
            tokio::select! {
                Some(ended) = self.loads.join_next(), if !self.loads.is_empty() => match ended {
                    Ok((key, stamp, loaded)) => self.loaded(&key, &stamp, loaded),
                    Err(error) => tracing::error!(%error, "loading a plugin failed in the host"),
                },
                () = tokio::time::sleep(QUIET), if self.has_fresh => self.look(),
                () = changes(&mut watcher) => self.look(),
                () = hinted(&mut hints) => self.look(),
                () = tokio::time::sleep(until_expiry), if follows_expiry => {
                    self.is_stale = true;
                }
                else => return,
            }
            if self.is_stale {
                self.publish();
            }
        }
    }

    /// Compiles the plugins of the program that are not in the cache.
    async fn compile(&mut self) {
        if self.options.uncompiled.is_empty() {
            return;
        }
        for component in std::mem::take(&mut self.options.uncompiled) {
            let Component { name, bytes, .. } = component;
            let id = PluginId(name.to_owned());
            let loaded = Plugin::load(&self.options.engine, id, bytes(), self.options.limits).await;
            let loaded = match loaded {
                Ok(plugin) => component.with(plugin).map_err(|error| error.to_string()),
                Err(error) => Err(chain(&error, REASON_CHARS_MAX)),
            };
            match loaded {
                Ok(own) => self.options.fixed.plugins.push(own),
                Err(reason) => {
                    tracing::error!(
                        reason,
                        plugin = name,
                        "a plugin of the host cannot be loaded"
                    );
                    self.missing.push(format!(
                        "the host's own plugin `{name}` is missing: {reason}"
                    ));
                }
            }
        }
        self.publish();
    }

    /// Compares the folders with what is known of them.
    fn look(&mut self) {
        let had_fresh = std::mem::take(&mut self.has_fresh);
        let problems = std::mem::take(&mut self.problems);
        let mut seen = BTreeMap::new();
        for (folder_idx, folder) in self.options.folders.iter().enumerate() {
            match folder::scan(folder) {
                Ok(found) => seen.extend(
                    found
                        .into_iter()
                        .map(|found| ((folder_idx, found.name.clone()), found)),
                ),
                Err(problem) => self.problems.push(format!(
                    "the plugins in `{}` are not used: {problem}",
                    folder.display()
                )),
            }
        }
        let n_before = self.files.len();
        self.files.retain(|key, _| seen.contains_key(key));
        self.is_stale |= self.files.len() != n_before
            || self.problems != problems
            || self.locks != self.lock_stamps()
            || self.signatures != self.signature_stamps();
        for (key, found) in seen {
            self.look_at(key, found);
        }
        self.is_stale |= had_fresh != self.has_fresh;
    }

    fn lock_stamps(&self) -> Vec<Option<FileStamp>> {
        let folders = self.options.folders.iter();
        folders
            .map(|folder| FileStamp::at(&lock_of(folder)))
            .collect()
    }

    fn signature_stamps(&self) -> Vec<SignatureStamps> {
        let files = self.files.values();
        match self.options.signatures {
            Some(_) => files
                .map(|file| signature::stamps(&file.candidate.path))
                .collect(),
            None => Vec::new(),
        }
    }

    fn follows_expiry(&self) -> bool {
        self.options.watch && self.expires_at_ms.is_some()
    }

    /// How long the signatures count as they did. Looked at again before that, too: clocks are set, and machines sleep.
    fn until_expiry(&self) -> Duration {
        let now_ms = (self.options.clock)();
        let left_ms = self
            .expires_at_ms
            .map_or(i64::MAX, |at_ms| at_ms.saturating_sub(now_ms));
        let left = Duration::from_millis(u64::try_from(left_ms).unwrap_or_default());
        left.min(EXPIRY_LOOK)
    }

    fn look_at(&mut self, key: Key, found: FolderEntry) {
        let stamp = match found.stamp {
            Ok(stamp) => stamp,
            Err(reason) => {
                let known = self.files.get(&key).map(|file| &file.candidate.state);
                if !matches!(known, Some(CandidateState::Bad(known)) if *known == reason) {
                    self.settle(&key, found.path, None, CandidateState::Bad(reason));
                }
                return;
            }
        };
        let known = self.files.get(&key);
        let is_known = known.is_some_and(|file| {
            file.candidate.stamp.as_ref() == Some(&stamp) || file.loading.as_ref() == Some(&stamp)
        });
        if is_known {
            return;
        }
        if self.options.watch && stamp.is_fresh((self.options.clock)()) {
            self.has_fresh = true;
            self.await_load(key, found.path, None);
            return;
        }
        match self.records.recall(&found.path, &stamp) {
            Some(verdict) => {
                let state = load::recalled(&self.options.engine, &key.1, &found.path, verdict);
                self.settle(&key, found.path, Some(stamp), state);
            }
            None => {
                self.await_load(key.clone(), found.path.clone(), Some(stamp.clone()));
                self.load(key, found.path, stamp);
            }
        }
    }

    fn load(&mut self, key: Key, path: PathBuf, stamp: FileStamp) {
        let (engine, limits) = (self.options.engine.clone(), self.options.limits);
        self.loads.spawn(async move {
            let loaded = load::load(&engine, &key.1, &path, &stamp, limits).await;
            (key, stamp, loaded)
        });
    }

    fn loaded(&mut self, key: &Key, stamp: &FileStamp, loaded: LoadResult) {
        // Whatever came of it, there is one load less: the set may be settled now.
        self.is_stale = true;
        let Some(file) = self.files.get_mut(key) else {
            return;
        };
        if file.loading.as_ref() != Some(stamp) {
            // It changed again meanwhile; the newer state is being loaded.
            return;
        }
        file.loading = None;
        let path = file.candidate.path.clone();
        match loaded {
            LoadResult::Again => {
                self.has_fresh = true;
                if !self.options.watch {
                    let reason = "it changed while it was read".to_owned();
                    self.settle(key, path, Some(stamp.clone()), CandidateState::Bad(reason));
                }
            }
            LoadResult::Good(good, verdict) => {
                self.records.keep(&path, stamp, &verdict);
                self.settle(key, path, Some(stamp.clone()), CandidateState::Good(good));
            }
            LoadResult::Bad(reason) => {
                self.records
                    .keep(&path, stamp, &RecordVerdict::Bad(reason.clone()));
                self.settle(key, path, Some(stamp.clone()), CandidateState::Bad(reason));
            }
        }
    }

    /// A version that serves goes on serving until the next one is ready.
    fn await_load(&mut self, key: Key, path: PathBuf, loading: Option<FileStamp>) {
        let file = self
            .files
            .entry(key)
            .or_insert_with_key(|(folder_idx, name)| WatchedFile {
                candidate: PluginCandidate {
                    name: name.clone(),
                    path,
                    folder_idx: *folder_idx,
                    stamp: None,
                    state: CandidateState::Loading,
                    signature: None,
                },
                loading: None,
            });
        file.loading = loading;
        self.is_stale = true;
        if matches!(file.candidate.state, CandidateState::Bad(_)) {
            file.candidate.state = CandidateState::Loading;
        }
    }

    fn settle(
        &mut self,
        key: &Key,
        path: PathBuf,
        stamp: Option<FileStamp>,
        state: CandidateState,
    ) {
        let (folder_idx, name) = key.clone();
        let candidate = PluginCandidate {
            name,
            path,
            folder_idx,
            stamp,
            state,
            signature: None,
        };
        let file = WatchedFile {
            candidate,
            loading: None,
        };
        self.files.insert(key.clone(), file);
        self.is_stale = true;
    }

    /// Puts a new set in the place of the old one, if anything is different, and tells what is.
    fn publish(&mut self) {
        // Before the locks are read: a change that comes meanwhile shows as a difference at the next look.
        self.locks = self.lock_stamps();
        self.signatures = self.signature_stamps();
        self.expires_at_ms = None;
        self.is_stale = false;
        let mut locks: Vec<FolderLock> = (0..self.options.folders.len())
            .map(|folder_idx| self.pin_newcomers(folder_idx))
            .collect();
        let is_waiting = !self.options.uncompiled.is_empty();
        // Names go first to the host's own plugins.
        if !is_waiting {
            self.write_names(&mut locks);
        }
        let files = self.files.values().filter(|_| !is_waiting);
        let candidates = files.map(|file| file.candidate.clone());
        let mut set = match PluginSet::assemble(&self.options.fixed, candidates.collect(), &locks) {
            Ok(set) => set,
            Err(error) => {
                // The host's own tools are the same as at start, when they did fit together.
                tracing::error!(%error, "the plugins cannot be put together");
                return;
            }
        };
        set.problems = [self.missing.as_slice(), &self.problems].concat();
        set.has_own = !is_waiting;
        set.is_settled &= !is_waiting && !self.has_fresh && self.loads.is_empty();
        set.generation = self.sender.borrow().generation + 1;
        let set = Arc::new(set);
        let old = self.sender.send_replace(Arc::clone(&set));
        // Not before: a listener that hears of it finds it so.
        if let Some(tell) = self.options.tell.as_ref().filter(|_| !is_waiting) {
            event::between(&old, &set)
                .iter()
                .filter(|event| self.has_told || event.is_problem())
                .for_each(|event| tell(event));
            self.has_told = true;
        }
    }

    /// The lock of a folder, with every plugin in it that was not known before, where it can be changed.
    fn pin_newcomers(&mut self, folder_idx: usize) -> FolderLock {
        let path = lock_of(&self.options.folders[folder_idx]);
        let lock = Lock::read(&path).map_err(|error| error.told())?;
        let now_ms = (self.options.clock)();
        self.check_signatures(folder_idx, &lock, now_ms);
        let newcomers: Vec<LockedPlugin> = self
            .files
            .range((folder_idx, PluginId(String::new()))..)
            .take_while(|((idx, _), _)| *idx == folder_idx)
            .filter_map(|(_, file)| newcomer(&file.candidate, &lock, now_ms))
            .collect();
        if newcomers.is_empty() {
            return Ok(lock);
        }
        let pinned = LockFile::edit(&path, |lock| {
            for newcomer in newcomers {
                // Another host may have pinned it in the meantime: then that is what counts.
                if lock.get(&newcomer.name).is_none() {
                    lock.put(newcomer);
                }
            }
            Ok::<_, super::lock::LockError>(lock.clone())
        });
        match pinned {
            // What was accepted before is as good as ever where nothing can be written.
            Err(error) if !error.is_of_content() => Ok(lock.closed(&error)),
            pinned => pinned.map_err(|error| error.told()),
        }
    }

    /// What the signatures of a folder's plugins come to now.
    fn check_signatures(&mut self, folder_idx: usize, lock: &Lock, now_ms: i64) {
        let Some(check) = self.options.signatures.clone() else {
            return;
        };
        for ((_, name), file) in self
            .files
            .iter_mut()
            .filter(|((idx, _), _)| *idx == folder_idx)
        {
            let CandidateState::Good(good) = &file.candidate.state else {
                continue;
            };
            let plugin = signed_plugin(name, good, lock);
            let checked = CheckedSignature::of(&*check, &plugin, &file.candidate.path, now_ms);
            let expires_at_ms = checked.verdict.signed_by().and_then(|by| by.expires_at_ms);
            self.expires_at_ms = self.expires_at_ms.into_iter().chain(expires_at_ms).min();
            file.candidate.signature = Some(checked);
        }
    }

    /// Writes down which plugin got which name. Where that fails the names are as given all the same, as long as the pins stay.
    fn write_names(&self, locks: &mut [FolderLock]) {
        if !self.options.gives_names {
            return;
        }
        let (_, given) = Owners::of(&self.options.fixed, locks);
        let news = given.into_iter().enumerate();
        for (folder_idx, given) in news.filter(|(_, given)| !given.is_empty()) {
            let path = lock_of(&self.options.folders[folder_idx]);
            let written = LockFile::edit(&path, |lock| {
                for NameClaim { name, plugin } in given {
                    lock.give(name, plugin);
                }
                Ok::<_, super::lock::LockError>(lock.clone())
            });
            match written {
                Ok(lock) => locks[folder_idx] = Ok(lock),
                Err(error) => {
                    tracing::warn!(problem = %error.told(), "the names of tools cannot be recorded");
                }
            }
        }
    }
}

/// What to pin of a new file. A plugin of the host keeps its name, so a file of that name is not used.
///
/// What may not be used is not pinned: the signature it gets later, or its operator, decides about it.
fn newcomer(candidate: &PluginCandidate, lock: &Lock, now_ms: i64) -> Option<LockedPlugin> {
    let signature = candidate.signature.as_ref();
    let refusal = signature.and_then(|signature| signature.refusal(&candidate.name, false));
    match &candidate.state {
        CandidateState::Good(good) if lock.get(&candidate.name).is_none() && refusal.is_none() => {
            let path = &candidate.path;
            Some(LockedPlugin {
                provenance: Provenance::checked(None, path, signature),
                ..locked(path, good, now_ms)
            })
        }
        _ => None,
    }
}

/// What the signatures of a plugin have to be over.
fn signed_plugin(name: &PluginId, good: &VettedPlugin, lock: &Lock) -> SignedPlugin {
    let locked = lock.get(name);
    let known = locked.and_then(|locked| locked.provenance_of(good.pin.wasm));
    SignedPlugin::of_source(name, known.map(|known| known.source).as_ref(), good)
}

/// A plugin as the lock keeps it, accepted at `now_ms`, in Unix milliseconds.
pub fn locked(path: &Path, good: &VettedPlugin, now_ms: i64) -> LockedPlugin {
    let file = path.file_name().unwrap_or_default();
    LockedPlugin {
        name: good.plugin.id().clone(),
        file: file.to_string_lossy().into_owned(),
        pin: good.pin,
        accepted_at_ms: now_ms,
        disabled: false,
        operator_wants: good.manifest_by == ManifestBy::Operator,
        provenance: None,
        next: None,
        definitions: good.definitions(),
    }
}

/// Waits for the next hint; for ever when nobody gives any.
async fn hinted(hints: &mut Option<watch::Receiver<i64>>) {
    let has_come = match hints {
        Some(hints) => hints.changed().await.is_ok(),
        None => false,
    };
    if !has_come {
        *hints = None;
        std::future::pending::<()>().await;
    }
}

/// Waits for the next change; for ever when nothing is watched.
async fn changes(watcher: &mut Option<Watcher>) {
    match watcher {
        Some(watcher) => watcher.changed().await,
        None => std::future::pending().await,
    }
}
