//! Keeps the set of plugins in step with the folders: looks, checks, pins, swaps, and says what changed.
//!
//! One task owns all of it. Files are read and compiled beside it, so that a slow one holds up nothing; whatever changes,
//! a whole new [`PluginSet`] takes the place of the old one, and calls in flight go on with theirs.

mod look;
mod pin;

use std::collections::BTreeMap;
use std::fs::File;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use tokio::sync::watch;
use tokio::task::JoinSet;
use zeph_config::lock_of;
use zeph_core::catalog::DuplicateTool;
use zeph_core::id::PluginId;
use zeph_core::limit::CallLimits;
use zeph_engine::Engine;

use super::Clock;
use super::event::{self, Tell};
use super::folder::{FileStamp, QUIET};
use super::load::LoadResult;
use super::manage::sync::undisturbed;
use super::record::Records;
use super::set::{FolderLock, PluginCandidate, PluginSet, ProgramParts};
use super::signature::{self, SignatureCheck};
use super::watcher::Watcher;

pub use self::pin::locked;

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
    /// How many of them, the last, were typed for this run.
    pub n_typed: usize,
    /// Where records of what was found are kept; `None` keeps none.
    pub cache_dir: Option<PathBuf>,
    /// What there is besides the folders.
    pub fixed: ProgramParts,
    /// Whether `fixed` holds every tool of the host, so that names can be given out for good.
    pub gives_names: bool,
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
    ///
    /// Errors: two tools of the host itself with one name.
    pub fn start(
        options: KeeperOptions,
    ) -> Result<(Self, watch::Receiver<Arc<PluginSet>>), DuplicateTool> {
        let (sender, receiver) = watch::channel(Arc::new(PluginSet::default()));
        let mut keeper = Self {
            records: Records::new(options.cache_dir.as_deref()),
            options,
            sender,
            files: BTreeMap::new(),
            problems: Vec::new(),
            loads: JoinSet::new(),
            has_fresh: false,
            has_told: false,
            locks: Vec::new(),
            signatures: Vec::new(),
            expires_at_ms: None,
            is_stale: true,
        };
        keeper.look();
        keeper.publish()?;
        Ok((keeper, receiver))
    }

    /// Loads what has to be loaded, and follows the folders when they are watched. Ends when there is nothing more to do.
    pub async fn run(mut self) {
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
                self.publish_again();
            }
        }
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

    fn publish_again(&mut self) {
        if let Err(error) = self.publish() {
            // The host's own tools are the same as at start, when they did fit together.
            tracing::error!(%error, "the plugins cannot be put together");
        }
    }

    /// The locks as they are now, with what is met for the first time.
    fn read_locks(&mut self) -> Vec<FolderLock> {
        // Before the locks are read: a change that comes meanwhile shows as a difference at the next look.
        self.locks = self.lock_stamps();
        self.signatures = self.signature_stamps();
        self.expires_at_ms = None;
        self.is_stale = false;
        (0..self.options.folders.len())
            .map(|folder_idx| self.pin_newcomers(folder_idx))
            .collect()
    }

    /// Puts a new set in the place of the old one, if anything is different, and tells what is.
    ///
    /// Errors: two tools of the host itself with one name.
    fn publish(&mut self) -> Result<(), DuplicateTool> {
        let mut locks = self.read_locks();
        if self.is_at_odds(&locks) {
            // A command that exchanges a plugin moves one file after the other: what counts is how it leaves them.
            let folders = self.options.folders.iter();
            let _undisturbed: Vec<File> = folders.filter_map(|one| undisturbed(one)).collect();
            self.look();
            locks = self.read_locks();
        }
        self.write_names(&mut locks);
        let files = self.files.values();
        let candidates = files.map(|file| file.candidate.clone());
        let locks = (&locks[..], self.options.n_typed);
        let mut set = PluginSet::assemble(&self.options.fixed, candidates.collect(), locks)?;
        set.problems.clone_from(&self.problems);
        set.is_settled &= !self.has_fresh && self.loads.is_empty();
        set.generation = self.sender.borrow().generation + 1;
        let set = Arc::new(set);
        let old = self.sender.send_replace(Arc::clone(&set));
        // Not before: a listener that hears of it finds it so.
        if let Some(tell) = &self.options.tell {
            event::between(&old, &set)
                .iter()
                .filter(|event| self.has_told || event.is_problem())
                .for_each(|event| tell(event));
            self.has_told = true;
        }
        Ok(())
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
