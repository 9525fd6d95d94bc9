//! One session's share of the shell: its turn, and what runs in the background for it.

use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError};

use uuid::Uuid;
use zeph_core::call::TurnContext;

use super::Shell;
use super::ahead::{Ahead, First};
use crate::background::{Background, BackgroundEnd};
use crate::jail::SessionNetwork;
use crate::turn::Turn;

/// What a session keeps between its commands. Dropping it ends all that runs for it.
#[derive(Debug)]
pub struct ShellSession {
    /// Protects the turn, for the moment of reading or changing it.
    turn: Mutex<Turn>,
    root: PathBuf,
    pub(super) background: Background,
    /// What commands reach each other through, since the first one in the background.
    pub(super) network: Arc<SharedNetwork>,
    /// The jail of the next command.
    pub(super) ahead: Arc<Ahead>,
    /// What was made before this session began; held for its end.
    _first: Option<First>,
}

impl Drop for ShellSession {
    fn drop(&mut self) {
        self.ahead.close();
    }
}

/// The network of a session once it is made, if its commands have one of their own.
pub(crate) type SharedNetwork = OnceLock<Option<SessionNetwork>>;

impl ShellSession {
    /// A session whose first turn is `context`. Its commands start in the first root of the jail.
    pub fn new(shell: &Shell, context: TurnContext) -> Self {
        let root = shell.0.root().to_path_buf();
        let first = shell.first().take();
        let ahead = first.as_ref().map(|first| Arc::clone(first.ahead()));
        Self {
            turn: Mutex::new(Turn::new(context, root.clone())),
            root,
            background: Background::new(shell.0.config.background_runs_max),
            network: Arc::default(),
            ahead: ahead.unwrap_or_default(),
            _first: first,
        }
    }

    /// Begins a new turn: directory, variables and history of the last one are forgotten. A command that still runs keeps
    /// what it began with and changes nothing any more.
    pub fn begin_turn(&self, context: TurnContext) {
        *self.turn() = Turn::new(context, self.root.clone());
    }

    /// Has the turn pursue another goal from now on, if it pursues `before`.
    pub fn set_goal(&self, before: Option<&str>, goal_id: Option<String>) {
        let mut turn = self.turn();
        if turn.context.goal_id.as_deref() == before {
            turn.context.goal_id = goal_id;
        }
    }

    /// Which turn it is.
    pub fn context(&self) -> TurnContext {
        self.turn().context.clone()
    }

    /// Where the next command starts.
    pub fn directory(&self) -> PathBuf {
        self.turn().directory.clone()
    }

    /// Has the next commands of this turn start in `directory`, an absolute path.
    pub fn set_directory(&self, directory: &Path) {
        self.turn().directory = directory.to_path_buf();
    }

    /// Whether a command runs in the background.
    pub fn has_background(&self) -> bool {
        self.background.is_running()
    }

    /// What ended in the background since this was last asked, in the order of ending. For the begin of a turn.
    pub fn take_completed(&self) -> Vec<BackgroundEnd> {
        self.background.take_completed()
    }

    /// Waits for the end of one run and takes it; `None` when it was taken before, or is no run of this session.
    ///
    /// Until then nobody else is told of it. Limits: as long as the run may take.
    pub async fn ended(&self, run_id: Uuid) -> Option<BackgroundEnd> {
        self.background.ended(run_id).await
    }

    /// Ends one run with everything it started; says whether it was running.
    ///
    /// Limits: returns within 8 seconds.
    pub async fn kill(&self, run_id: Uuid) -> bool {
        self.background.kill(run_id).await
    }

    /// Ends everything in the background and refuses more of it. What was ended is among [`Self::take_completed`] then.
    ///
    /// Limits: returns within 8 seconds.
    pub async fn shutdown(&self) {
        self.ahead.close();
        self.background.shutdown().await;
    }

    pub(super) fn turn(&self) -> MutexGuard<'_, Turn> {
        // Nothing that holds it can panic half way through a change.
        self.turn.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
