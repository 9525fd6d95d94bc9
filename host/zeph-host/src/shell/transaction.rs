//! A snapshot before each command, put back when the command fails (`tools.shell.transactional`).

use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering};
use std::time::Duration;

use tokio::sync::{Semaphore, SemaphorePermit};
use zeph_config::Config;
use zeph_core::category::{ErrorCategory, ErrorPhase};
use zeph_core::failure::chain;
use zeph_core::failure::{ToolFailure, one_line};
use zeph_core::policy::AuthorizedCall;
use zeph_core::user::{ToolUser, run_as};
use zeph_engine::Cancel;
use zeph_shell::held_object::HeldObject;
use zeph_shell::shell::{Shell, ShellEnd, ShellWork};
use zeph_shell::transaction::{
    CommandEnd, Rollback, Snapshot, SnapshotError, SnapshotOptions, SnapshotScope,
};

use super::{Share, held};

/// Characters of a command that lists and notes show.
const COMMAND_CHARS_MAX: usize = 200;

/// Characters of why something failed, in a note.
const REASON_CHARS_MAX: usize = 300;

/// Paths that a note about a rollback names.
const PATHS_SHOWN_MAX: usize = 20;

/// How commands are kept undoable.
#[derive(Debug)]
pub(super) struct Transactions {
    /// Those of commands, held since the host started: what is led elsewhere is neither kept nor put back.
    roots: Arc<[HeldObject]>,
    /// Whose rights trees are kept and put back with; none is the host's own.
    user: Option<ToolUser>,
    options: SnapshotOptions,
    rollback: Rollback,
    is_required: bool,
    /// One permit: commands that are transactions run one after another.
    turnstile: Semaphore,
    beside: Arc<CallsBeside>,
}

/// Calls, and hooks, that change files and are no transactions.
#[derive(Debug, Default)]
struct CallsBeside {
    n_begun: AtomicU64,
    n_running: AtomicUsize,
}

/// One of them, until this is dropped.
#[derive(Debug)]
pub(crate) struct CallBeside(Arc<CallsBeside>);

/// Who changed files, up to one moment.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct OthersSeen {
    n_begun: u64,
    are_any: bool,
}

/// Ends a snapshot that is being taken when dropped; the flag of one that was taken is never set.
struct StopOnDrop(Option<Arc<AtomicBool>>);

/// The trees before a command; nothing when they could not be kept and need not be.
pub(super) struct TreeSnapshots {
    before: Vec<Arc<Snapshot>>,
    notes: Vec<String>,
    others: OthersSeen,
}

/// The command line of a call that a snapshot is taken for: a foreground `bash`.
pub(super) fn command_of(call: &AuthorizedCall<ShellWork>) -> Option<String> {
    let line = call
        .command()
        .filter(|_| call.work().is_foreground_command())?;
    Some(one_line(&line.text, COMMAND_CHARS_MAX))
}

impl Transactions {
    /// None when commands are not transactions.
    pub(super) fn new(config: &Config) -> Option<Self> {
        let settings = &config.shell.transaction;
        if !settings.enabled {
            return None;
        }
        let place = config.cache_of_tools()?.join("snapshots");
        let user = config.tool_user.clone();
        // What an earlier process left behind when it was killed.
        let clean = || zeph_shell::transaction::clean_leftovers(&place);
        run_as(user.as_ref(), clean).ok()?;
        let own = own_files(config);
        let scope = SnapshotScope::new(&settings.scope, &own)
            .unwrap_or_else(|_checked| SnapshotScope::everything());
        Some(Self {
            roots: held(&config.shell.allowed_paths, user.as_ref()),
            user,
            options: SnapshotOptions {
                bytes_max: match settings.snapshot_bytes_max {
                    u64::MAX => 0,
                    bytes_max => bytes_max,
                },
                scope,
                place,
                stop: Arc::new(AtomicBool::new(false)),
            },
            rollback: match settings.auto_rollback {
                true => Rollback::OnFailure {
                    exit_codes: settings
                        .rollback_exit_codes
                        .iter()
                        .map(|code| i32::from(*code))
                        .collect(),
                },
                false => Rollback::Never,
            },
            is_required: settings.snapshot_required,
            turnstile: Semaphore::new(1),
            beside: Arc::default(),
        })
    }

    /// Marks a call, or its hooks, that changes files and is no transaction.
    pub(super) fn beside(&self) -> CallBeside {
        self.beside.n_begun.fetch_add(1, Ordering::SeqCst);
        self.beside.n_running.fetch_add(1, Ordering::SeqCst);
        CallBeside(Arc::clone(&self.beside))
    }

    fn others(&self, shell: &Shell) -> OthersSeen {
        OthersSeen {
            n_begun: self.beside.n_begun.load(Ordering::SeqCst),
            are_any: self.beside.n_running.load(Ordering::SeqCst) > 0 || shell.has_background(),
        }
    }

    /// Waits until no other command is a transaction, and keeps the trees. There is one tree: what one command undoes must not be another's
    /// work.
    ///
    /// Errors: it is cancelled or takes longer than the command may; `policy_blocked` when they cannot be kept and must be.
    pub(super) async fn begin(
        &self,
        (shell, share): (&Shell, &Share),
        (cancel, patience): (&Cancel, Duration),
    ) -> Result<(Option<SemaphorePermit<'_>>, TreeSnapshots), ToolFailure> {
        let stop = Arc::new(AtomicBool::new(false));
        let mut stops = StopOnDrop(Some(Arc::clone(&stop)));
        let begun = async {
            let alone = self.alone().await;
            let others = self.others(shell);
            let kept = self.keep(share, others, stop).await;
            kept.map(|kept| (alone, kept))
        };
        let (category, message) = tokio::select! {
            begun = begun => {
                stops.0 = None;
                return begun;
            }
            () = cancel.cancelled() => {
                (ErrorCategory::Cancelled, "the call was cancelled before its command began".to_owned())
            }
            () = tokio::time::sleep(patience) => {
                let seconds = patience.as_secs();
                let why = "other commands took too long, or its snapshot";
                (ErrorCategory::Timeout, format!("the command did not begin within its {seconds} seconds: {why}"))
            }
        };
        Err(ToolFailure::new(category, ErrorPhase::Setup, message))
    }

    /// Waits until no other command is a transaction; none is while the permit is held.
    pub(super) async fn alone(&self) -> Option<SemaphorePermit<'_>> {
        // The turnstile is never closed.
        self.turnstile.acquire().await.ok()
    }

    /// Keeps the trees.
    ///
    /// Errors: `policy_blocked` when they cannot be kept and must be.
    async fn keep(
        &self,
        share: &Share,
        others: OthersSeen,
        stop: Arc<AtomicBool>,
    ) -> Result<TreeSnapshots, ToolFailure> {
        let options = SnapshotOptions {
            stop,
            ..self.options.clone()
        };
        let (roots, share) = (self.roots.clone(), share.clone());
        let user = self.user.clone();
        let taken = tokio::task::spawn_blocking(move || {
            run_as(user.as_ref(), || take(&roots, &options, &share))
        })
        .await;
        let problem = match taken {
            Ok(Ok(Ok(before))) => {
                let notes = before
                    .iter()
                    .flat_map(|snapshot| snapshot.notes().to_vec())
                    .collect();
                return Ok(TreeSnapshots {
                    before,
                    notes,
                    others,
                });
            }
            Ok(Ok(Err(error))) => chain(&error, REASON_CHARS_MAX),
            Ok(Err(error)) => chain(&error, REASON_CHARS_MAX),
            Err(_panic) => "the host failed while it took it".to_owned(),
        };
        if self.is_required {
            return Err(ToolFailure::new(
                ErrorCategory::PolicyBlocked,
                ErrorPhase::Setup,
                format!(
                    "the command did not run: no snapshot can be taken ({problem}), and \
                     `tools.shell.snapshot_required` is set"
                ),
            ));
        }
        Ok(TreeSnapshots {
            before: Vec::new(),
            notes: vec![format!(
                "no snapshot was taken, so this command cannot be undone: {problem}"
            )],
            others,
        })
    }

    /// Puts the trees back when the command failed and nobody else changed files meanwhile, else remembers them for `/undo`. Returns what
    /// the caller should know.
    pub(super) async fn finish(
        &self,
        (shell, share): (&Shell, &Share),
        command: String,
        kept: TreeSnapshots,
        end: &ShellEnd,
    ) -> Vec<String> {
        let TreeSnapshots {
            before,
            mut notes,
            others,
        } = kept;
        if before.is_empty() {
            return notes;
        }
        let has_failed = self.rollback.applies(command_end(end));
        let is_shared = others.are_any || self.others(shell) != others;
        if has_failed && is_shared {
            notes.push(NOT_ROLLED_BACK.to_owned());
        }
        let is_undone = has_failed && !is_shared;
        let share = share.clone();
        let user = self.user.clone();
        let settle = move || match is_undone {
            true => put_back(&before),
            false => {
                remember(&share, command, before);
                Vec::new()
            }
        };
        let settled = tokio::task::spawn_blocking(move || run_as(user.as_ref(), settle));
        match settled.await {
            Ok(Ok(more)) => notes.extend(more),
            Ok(Err(error)) => notes.push(format!(
                "the snapshot could not be looked at: {}",
                chain(&error, REASON_CHARS_MAX)
            )),
            Err(_panic) => notes.push("the host failed while it looked at the snapshot".to_owned()),
        }
        notes
    }
}

/// What a caller is told whose command failed beside others.
const NOT_ROLLED_BACK: &str = "the command failed and was not rolled back, because other calls or commands in the background may have changed \
                               files meanwhile; a person can put back the whole tree with `/undo`";

impl Drop for CallBeside {
    fn drop(&mut self) {
        self.0.n_running.fetch_sub(1, Ordering::SeqCst);
    }
}

impl Drop for StopOnDrop {
    fn drop(&mut self) {
        if let Some(stop) = &self.0 {
            stop.store(true, Ordering::Relaxed);
        }
    }
}

/// The host's own files below the roots, as globs relative to them: putting back an older database would lose records.
fn own_files(config: &Config) -> Vec<String> {
    let roots = &config.shell.allowed_paths;
    let below = |hidden: &PathBuf| {
        let root = roots
            .iter()
            .find_map(|root| hidden.strip_prefix(root).ok())?;
        let path = root.to_str().filter(|path| !path.is_empty())?;
        let path = globset::escape(path);
        Some([path.clone(), format!("{path}/**")])
    };
    let hidden = config.sandbox.hide.iter().filter_map(below);
    hidden.flatten().collect()
}

fn take(
    roots: &[HeldObject],
    options: &SnapshotOptions,
    share: &Share,
) -> Result<Vec<Arc<Snapshot>>, SnapshotError> {
    let take = |root: &HeldObject| {
        let earlier = share.newest(root.path());
        Snapshot::take_held(root, options, earlier.as_deref())
    };
    roots.iter().map(|root| take(root).map(Arc::new)).collect()
}

fn put_back(before: &[Arc<Snapshot>]) -> Vec<String> {
    let mut notes = Vec::new();
    for snapshot in before {
        let changed = shown(snapshot);
        match snapshot.restore() {
            Ok(done) => {
                notes.push(format!(
                    "the command failed and was rolled back: {} restored, {} removed{changed}",
                    done.restored, done.deleted
                ));
                notes.extend(done.notes);
            }
            Err(error) => notes.push(format!(
                "the command failed and could not be rolled back: {}",
                chain(&error, REASON_CHARS_MAX)
            )),
        }
    }
    notes
}

/// What differs from a snapshot, the first paths of it.
fn shown(snapshot: &Snapshot) -> String {
    let Ok(changes) = snapshot.changes(PATHS_SHOWN_MAX) else {
        return String::new();
    };
    let paths = changes.paths.iter().map(|path| {
        let path = one_line(&path.display().to_string(), COMMAND_CHARS_MAX);
        format!("`{path}`")
    });
    let paths: Vec<String> = paths.collect();
    let n_all = changes.changed + changes.new + changes.deleted;
    match (paths.is_empty(), n_all > paths.len()) {
        (true, _) => String::new(),
        (false, true) => format!(" ({}, …)", paths.join(", ")),
        (false, false) => format!(" ({})", paths.join(", ")),
    }
}

/// A command that changed nothing leaves nothing to undo.
fn remember(share: &Share, command: String, before: Vec<Arc<Snapshot>>) {
    let is_unchanged =
        |snapshot: &Arc<Snapshot>| matches!(snapshot.changes(0), Ok(changes) if changes.is_empty());
    match before.iter().all(is_unchanged) {
        true => share.keep_unchanged(before),
        false => {
            share.keep_unchanged(Vec::new());
            share.undo().push(command, before);
        }
    }
}

fn command_end(end: &ShellEnd) -> CommandEnd {
    let category = end.result.as_ref().err().map(|failure| failure.category);
    match (end.exit, category) {
        (Some(exit), _) => exit
            .code()
            .map_or(CommandEnd::Signalled, CommandEnd::Exited),
        (None, Some(ErrorCategory::Cancelled)) => CommandEnd::Cancelled,
        (None, _) => CommandEnd::TimedOut,
    }
}
