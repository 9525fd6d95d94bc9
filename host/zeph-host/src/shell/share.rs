//! One session's share of the shell: its turn, what runs for it in the background, and what can be undone.

use std::path::Path;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use zeph_core::call::TurnContext;
use zeph_core::user::{ToolUser, run_as};
use zeph_shell::background::BackgroundEnd;
use zeph_shell::shell::{Shell, ShellSession};
use zeph_shell::transaction::{Snapshot, UndoEnd, UndoStack};

/// What a session keeps between its commands. Clones are handles to one; what runs for it ends with the last.
#[derive(Debug, Clone)]
pub(crate) struct Share(Arc<SessionState>);

#[derive(Debug)]
struct SessionState {
    commands: ShellSession,
    /// Whose rights commands have; none is the host's own.
    user: Option<ToolUser>,
    /// Protects the snapshots of the last commands, also for as long as one of them is put back: there is one tree.
    undo: Mutex<UndoStack>,
    /// The snapshots before the last command, which changed nothing: the next ones copy only what differs from them. Protects the
    /// list for the moment of exchanging it.
    unchanged: Mutex<Vec<Arc<Snapshot>>>,
    /// When the end of background runs is reported.
    telling: Mutex<ReportTime>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum ReportTime {
    /// The front end does not name turns: before each call.
    EachCall,
    /// A turn has begun: now.
    Due,
    /// At the begin of the next turn.
    Later,
}

impl Share {
    /// A share whose first turn is `context`.
    pub(crate) fn new(shell: &Shell, context: TurnContext, undo_max: usize) -> Self {
        Self(Arc::new(SessionState {
            commands: ShellSession::new(shell, context),
            user: shell.user().cloned(),
            undo: Mutex::new(UndoStack::new(undo_max)),
            unchanged: Mutex::default(),
            telling: Mutex::new(ReportTime::EachCall),
        }))
    }

    /// The session, for `zeph-shell`.
    pub(crate) fn commands(&self) -> &ShellSession {
        &self.0.commands
    }

    /// Takes a step in the snapshots, with the rights that commands have. Blocks: for threads that may.
    ///
    /// Errors: the system refuses these rights; then nothing was done.
    pub(crate) fn step(
        &self,
        step: impl FnOnce(&mut UndoStack) -> UndoEnd + Send,
    ) -> std::io::Result<UndoEnd> {
        run_as(self.0.user.as_ref(), || step(&mut self.undo()))
    }

    /// The snapshots. Held while the tree is put back, which may take seconds: for threads that may block.
    pub(crate) fn undo(&self) -> MutexGuard<'_, UndoStack> {
        // The list is changed only after a step has succeeded, so a panic leaves it usable.
        self.0.undo.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The newest snapshot of `root`, to take the next one after.
    pub(crate) fn newest(&self, root: &Path) -> Option<Arc<Snapshot>> {
        let unchanged = self
            .unchanged()
            .iter()
            .find(|snapshot| snapshot.root() == root)
            .cloned();
        unchanged.or_else(|| self.undo().newest(root).cloned())
    }

    /// Keeps the snapshots before a command that changed nothing; none when it changed something.
    pub(crate) fn keep_unchanged(&self, before: Vec<Arc<Snapshot>>) {
        *self.unchanged() = before;
    }

    fn unchanged(&self) -> MutexGuard<'_, Vec<Arc<Snapshot>>> {
        self.0
            .unchanged
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
    }

    /// Starts a turn that the front end names. From now on, ended runs are reported at the start of a turn only.
    pub(crate) fn begin_turn(&self, context: TurnContext) {
        self.0.commands.begin_turn(context);
        *self.telling() = ReportTime::Due;
    }

    /// Has ended runs reported once more in the turn that goes on.
    pub(crate) fn tells_ended_runs(&self) {
        *self.telling() = ReportTime::Due;
    }

    /// The ended background runs to report now.
    pub(crate) fn take_completed(&self) -> Vec<BackgroundEnd> {
        let mut telling = self.telling();
        match *telling {
            ReportTime::Later => return Vec::new(),
            ReportTime::Due => *telling = ReportTime::Later,
            ReportTime::EachCall => {}
        }
        self.0.commands.take_completed()
    }

    fn telling(&self) -> MutexGuard<'_, ReportTime> {
        self.0
            .telling
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
    }
}
