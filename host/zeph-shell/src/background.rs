//! Commands in the background of a session: their IDs, their number, and how they ended.
//!
//! How a command is run is the matter of `shell`; here is the table. What ended waits for the next turn of the session.

use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::io;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use tokio::sync::Notify;
use uuid::Uuid;
use zeph_core::call::TurnContext;
use zeph_core::category::{ErrorCategory, ErrorPhase};
use zeph_core::execution::{HostUse, PrivateFile};
use zeph_core::exit::CommandExit;
use zeph_core::failure::ToolFailure;
use zeph_core::output::RawOutput;

use crate::jail::JailLabel;
use crate::run::{Reason, RunStop};

/// How long a run may take to end: its grace period, and a margin for a busy machine.
const END_WAIT: Duration = Duration::from_secs(8);

/// Bytes of text of all that ended and was not asked for yet. Older ones lose their text first; their end is always reported.
const COMPLETED_BYTES_MAX: usize = 64 * 1024 * 1024;

/// Most of them. A session that starts thousands and begins no turn loses the oldest.
const COMPLETED_MAX: usize = 256;

/// A command that ended in the background.
#[derive(Debug, Clone, PartialEq)]
pub struct BackgroundEnd {
    /// As `bash` returned it.
    pub run_id: Uuid,
    /// The turn it was started in; nothing before its end is in the table.
    pub turn: Option<TurnContext>,
    /// What was run, as it was given; nothing where the output is the host's own words.
    pub command: Option<String>,
    /// How it ended; nothing when the host ended it.
    pub exit: Option<CommandExit>,
    /// Its exit code for the announcement and the audit: 124 when its time was over, nothing when it has none.
    pub exit_code: Option<i32>,
    /// Why it counts as failed; nothing when it exited with 0.
    pub failure: Option<ToolFailure>,
    /// Whether output was omitted, because there was too much.
    pub truncated: bool,
    /// The jail it ran in; nothing when it could not be started.
    pub label: Option<JailLabel>,
    /// Text and envelope, as those of a foreground command.
    pub output: RawOutput,
    /// What the caller should know, one sentence each.
    pub notes: Vec<String>,
    /// From start to end.
    pub duration: Duration,
    /// When it ended.
    pub ended: Instant,
    /// The hosts it reached.
    pub hosts: Vec<HostUse>,
    /// The private files that were opened while it ran, by it or by another program.
    pub private_files: Vec<PrivateFile>,
}

impl BackgroundEnd {
    /// The line that announces it to a model. The output comes after it.
    ///
    /// Shape: `[background complete] run_id=… exit_code=…`; the code is `null` when it has none.
    pub fn header(&self) -> String {
        let code = self.exit_code.map(|code| code.to_string());
        format!(
            "[background complete] run_id={} exit_code={}",
            self.run_id,
            code.as_deref().unwrap_or("null")
        )
    }

    /// A run of which nothing ran, for this reason.
    pub(crate) fn not_run(run_id: Uuid, failure: ToolFailure) -> Self {
        Self {
            run_id,
            turn: None,
            command: None,
            exit: None,
            exit_code: None,
            truncated: false,
            label: None,
            output: RawOutput::text(format!("[{}]", failure.message)),
            notes: Vec::new(),
            duration: Duration::ZERO,
            ended: Instant::now(),
            hosts: Vec::new(),
            private_files: Vec::new(),
            failure: Some(failure),
        }
    }

    /// The line and the whole output, as a model reads them.
    pub fn message(&self) -> String {
        format!("{}\n{}", self.header(), self.output.to_text())
    }
}

/// A command that runs.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct RunListing {
    pub(crate) run_id: Uuid,
    pub(crate) command: String,
    pub(crate) running_for: Duration,
}

/// Why none is started.
#[derive(Debug)]
pub(crate) enum StartRefusal {
    /// As many run as may.
    TooMany,
    /// The session ends.
    Closed,
    /// The kernel refuses.
    System(io::Error),
}

/// What runs, and what ran, for one session. Dropping it ends all that runs.
#[derive(Debug)]
pub(crate) struct Background {
    shared: Arc<BackgroundState>,
    runs_max: usize,
}

#[derive(Debug, Default)]
struct BackgroundState {
    /// Protects the table, for the moment of reading or changing it.
    table: Mutex<Table>,
    /// Notified when a run ends.
    one_ended: Notify,
}

#[derive(Debug, Default)]
struct Table {
    running: BTreeMap<Uuid, BackgroundRun>,
    completed: VecDeque<BackgroundEnd>,
    /// Runs whose end a caller waits for: it is reported to that caller alone.
    awaited: BTreeSet<Uuid>,
    is_closed: bool,
}

#[derive(Debug)]
struct BackgroundRun {
    command: String,
    turn: TurnContext,
    started: Instant,
    stop: Arc<RunStop>,
}

/// Reports the end of a run. A run whose end is never reported counts as ended.
#[derive(Debug)]
pub(crate) struct EndReport {
    shared: Arc<BackgroundState>,
    run_id: Uuid,
    is_told: bool,
}

impl Background {
    pub(crate) fn new(runs_max: usize) -> Self {
        Self {
            shared: Arc::default(),
            runs_max,
        }
    }

    /// Starts one of `turn` by `begin`, if another may run.
    pub(crate) fn start(
        &self,
        command: String,
        turn: TurnContext,
        begin: impl FnOnce(Arc<RunStop>, Uuid, EndReport) -> io::Result<()>,
    ) -> Result<Uuid, StartRefusal> {
        let run_id = Uuid::new_v4();
        let stop = Arc::new(RunStop::new().map_err(StartRefusal::System)?);
        {
            // Counted before it is started: two calls at one time cannot take the last place both.
            let mut table = self.shared.table();
            if table.is_closed {
                return Err(StartRefusal::Closed);
            }
            if table.running.len() >= self.runs_max {
                return Err(StartRefusal::TooMany);
            }
            let running = BackgroundRun {
                command,
                turn,
                started: Instant::now(),
                stop: Arc::clone(&stop),
            };
            table.running.insert(run_id, running);
        }
        let done = EndReport {
            shared: Arc::clone(&self.shared),
            run_id,
            is_told: false,
        };
        match begin(stop, run_id, done) {
            Ok(()) => Ok(run_id),
            Err(error) => {
                // It never was: nothing is to be told of it.
                let mut table = self.shared.table();
                table.running.remove(&run_id);
                table
                    .completed
                    .retain(|completed| completed.run_id != run_id);
                Err(StartRefusal::System(error))
            }
        }
    }

    /// Whether any runs.
    pub(crate) fn is_running(&self) -> bool {
        !self.shared.table().running.is_empty()
    }

    pub(crate) fn list(&self) -> Vec<RunListing> {
        let table = self.shared.table();
        let mut runs: Vec<RunListing> = table
            .running
            .iter()
            .map(|(run_id, running)| RunListing {
                run_id: *run_id,
                command: running.command.clone(),
                running_for: running.started.elapsed(),
            })
            .collect();
        runs.sort_by_key(|run| std::cmp::Reverse(run.running_for));
        runs
    }

    /// Ends one and waits until it is gone. Says whether it was running.
    pub(crate) async fn kill(&self, run_id: Uuid) -> bool {
        let stop = match self.shared.table().running.get(&run_id) {
            Some(running) => Arc::clone(&running.stop),
            None => return false,
        };
        stop.stop(Reason::Killed);
        self.wait_until(|table| !table.running.contains_key(&run_id))
            .await;
        true
    }

    /// Ends all and refuses more.
    pub(crate) async fn shutdown(&self) {
        self.stop_all();
        self.wait_until(|table| table.running.is_empty()).await;
    }

    pub(crate) fn take_completed(&self) -> Vec<BackgroundEnd> {
        let mut table = self.shared.table();
        let all = std::mem::take(&mut table.completed);
        let (kept, taken) = all
            .into_iter()
            .partition(|completed| table.awaited.contains(&completed.run_id));
        table.completed = kept;
        Vec::from(taken)
    }

    /// Waits for the end of one and takes it; `None` when it was told before, or is none of these. Until then it is told to nobody
    /// else; dropping the future leaves it to the others.
    pub(crate) async fn ended(&self, run_id: Uuid) -> Option<BackgroundEnd> {
        let _awaited = Awaited::new(&self.shared, run_id);
        loop {
            let one_ended = self.shared.one_ended.notified();
            tokio::pin!(one_ended);
            // Registered before the table is read: an end in between is not missed.
            one_ended.as_mut().enable();
            {
                let mut table = self.shared.table();
                let is_it = |completed: &BackgroundEnd| completed.run_id == run_id;
                let place = table.completed.iter().position(is_it);
                if let Some(place) = place {
                    return table.completed.remove(place);
                }
                if !table.running.contains_key(&run_id) {
                    return None;
                }
            }
            one_ended.await;
        }
    }

    fn stop_all(&self) {
        let mut table = self.shared.table();
        table.is_closed = true;
        for running in table.running.values() {
            running.stop.stop(Reason::Shutdown);
        }
    }

    /// Waits until the table is as wanted, at most [`END_WAIT`].
    async fn wait_until(&self, is_so: impl Fn(&Table) -> bool) {
        let wait = async {
            loop {
                // Registered before the table is read: an end in between is not missed.
                let one_ended = self.shared.one_ended.notified();
                tokio::pin!(one_ended);
                one_ended.as_mut().enable();
                if is_so(&self.shared.table()) {
                    return;
                }
                one_ended.await;
            }
        };
        if tokio::time::timeout(END_WAIT, wait).await.is_err() {
            tracing::warn!("a background run did not end in time");
        }
    }
}

/// Keeps the end of a run for the one who waits for it.
struct Awaited<'a> {
    shared: &'a BackgroundState,
    run_id: Uuid,
}

impl<'a> Awaited<'a> {
    fn new(shared: &'a BackgroundState, run_id: Uuid) -> Self {
        shared.table().awaited.insert(run_id);
        Self { shared, run_id }
    }
}

impl Drop for Awaited<'_> {
    fn drop(&mut self) {
        self.shared.table().awaited.remove(&self.run_id);
    }
}

impl Drop for Background {
    fn drop(&mut self) {
        self.stop_all();
    }
}

impl EndReport {
    /// Tells that it ended, and how.
    pub(crate) fn tell(mut self, completed: BackgroundEnd) {
        self.is_told = true;
        self.shared.ended(completed);
    }
}

impl Drop for EndReport {
    fn drop(&mut self) {
        if !self.is_told {
            let failure = ToolFailure::new(
                ErrorCategory::ServerError,
                ErrorPhase::Execution,
                "the run failed in the host",
            );
            self.shared
                .ended(BackgroundEnd::not_run(self.run_id, failure));
        }
    }
}

impl BackgroundState {
    fn table(&self) -> MutexGuard<'_, Table> {
        // Nothing that holds it can panic half way through a change.
        self.table.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn ended(&self, mut completed: BackgroundEnd) {
        {
            let mut table = self.table();
            let run = table.running.remove(&completed.run_id);
            completed.turn = run.map(|run| run.turn);
            table.completed.push_back(completed);
            table.forget();
        }
        self.one_ended.notify_waiters();
    }
}

impl Table {
    /// Keeps what waits to be asked for within its bounds.
    fn forget(&mut self) {
        if self.completed.len() > COMPLETED_MAX {
            self.completed.pop_front();
        }
        let mut n_bytes: usize = self.completed.iter().map(text_bytes).sum();
        for completed in &mut self.completed {
            if n_bytes <= COMPLETED_BYTES_MAX {
                return;
            }
            n_bytes -= text_bytes(completed);
            completed.command = None;
            completed.output = RawOutput::text("[its output was dropped: too much of it waited]");
        }
    }
}

/// The envelope holds the text once more.
fn text_bytes(completed: &BackgroundEnd) -> usize {
    2 * completed.output.to_text().len()
}

#[cfg(test)]
mod tests;
