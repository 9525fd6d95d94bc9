//! The jail that waits for the next command of a session, so that the command need not wait for it.
//!
//! It is made after a command of a session that has run one before: a third will follow the second. Where a command is expected before
//! there is a session (a program that was started for it), it is made at once, for the first session. It is never made beside a command
//! that is waited for: bubblewrap makes the places of its mounts, and would bring back what that command removes. It serves one command,
//! of the same session, and is thrown away when that command would not get the very same jail (`jail::standing_jail`), and with its session.
//! Two commands at once do not share it. It sleeps: it costs memory and no processor. What waits in all sessions together is bounded.

use std::io;
use std::os::fd::OwnedFd;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::thread::{self, JoinHandle};
use std::time::Duration;

use rustix::process::{Signal, WaitId, WaitIdOptions};

use super::ShellState;
use super::job::STATE_FD;
use super::session::SharedNetwork;
use crate::jail::{Guard, Jail, JailLabel, Job, StandingJail};
use crate::platform;
use crate::spawn::{Child, Spawner};

/// Most jails of one shell that wait. Each is three sleeping processes, some 3 MB.
const WAITING_MAX: usize = 8;

/// How long a command waits for the jail that is being made. One of its own would take longer.
const PATIENCE: Duration = Duration::from_secs(2);

/// Commands of a session before a jail is made ahead.
const COMMANDS_BEFORE: usize = 2;

/// The place of a session for the jail of its next command.
#[derive(Debug, Default)]
pub(crate) struct Ahead {
    /// Protects the state, for the moment of changing it.
    state: Mutex<AheadState>,
    changed: Condvar,
    n_commands: AtomicUsize,
    /// Commands that are waited for.
    n_running: AtomicUsize,
}

/// A command that is waited for: while there is one, no jail is made.
#[derive(Debug)]
pub(crate) struct ForegroundCommand(Arc<Ahead>);

#[derive(Debug, Default)]
enum AheadState {
    #[default]
    Empty,
    InTheMaking,
    Waits(Box<SpareRun>),
    /// The session has ended.
    Closed,
}

/// A jail whose processes were started. Dropping it ends them.
#[derive(Debug)]
struct SpareRun {
    /// Nothing once a command has entered.
    jail: Option<StandingJail>,
    child: Option<Child>,
    /// Where the shell will tell its state.
    context: Option<OwnedFd>,
    /// Whether it is in the network of its session.
    in_network: bool,
    _seat: Seat,
}

/// A command that has begun in a jail made ahead.
#[derive(Debug)]
pub(crate) struct EnteredRun {
    pub(crate) child: Child,
    pub(crate) context: OwnedFd,
    pub(crate) guard: Guard,
}

/// The jail of a session that is yet to begin. Dropping it waits until what was begun is over, and takes the jail down.
#[derive(Debug)]
pub(crate) struct First {
    ahead: Arc<Ahead>,
    /// Makes the jail; none once it was waited for.
    making: Option<JoinHandle<()>>,
}

/// How many jails of a shell wait.
#[derive(Debug, Default)]
pub(crate) struct Seats(Arc<AtomicUsize>);

/// One of them; given back when it is dropped.
#[derive(Debug)]
struct Seat(Arc<AtomicUsize>);

impl Seats {
    fn take(&self) -> Option<Seat> {
        let more = |n_taken| (n_taken < WAITING_MAX).then_some(n_taken + 1);
        let taken = self
            .0
            .fetch_update(Ordering::Relaxed, Ordering::Relaxed, more);
        taken.ok().map(|_| Seat(Arc::clone(&self.0)))
    }
}

impl Drop for Seat {
    fn drop(&mut self) {
        self.0.fetch_sub(1, Ordering::Relaxed);
    }
}

impl ForegroundCommand {
    /// The command has ended. Has the next jail made when no other runs.
    pub(crate) fn end(self, shell: &Arc<ShellState>, network: &Arc<SharedNetwork>) {
        let ahead = Arc::clone(&self.0);
        drop(self);
        if ahead.n_running.load(Ordering::Relaxed) == 0 {
            ahead.begin(shell, network);
        }
    }
}

impl Drop for ForegroundCommand {
    fn drop(&mut self) {
        self.0.n_running.fetch_sub(1, Ordering::Relaxed);
    }
}

impl First {
    /// Has a jail made for the first command of the first session; nothing where that cannot be begun.
    pub(crate) fn begin(shell: &ShellState) -> Option<Self> {
        let ahead = Arc::new(Ahead::default());
        let making = ahead.begin_with(shell, Arc::default())?;
        let making = Some(making);
        Some(Self { ahead, making })
    }

    /// The place of the session.
    pub(crate) fn ahead(&self) -> &Arc<Ahead> {
        &self.ahead
    }
}

impl Drop for First {
    fn drop(&mut self) {
        self.ahead.close();
        let making = self.making.take().map(JoinHandle::join);
        if let Some(Err(_panic)) = making {
            tracing::error!("making a jail ahead failed");
        }
    }
}

impl Ahead {
    /// A command that is waited for begins.
    pub(crate) fn running(self: &Arc<Self>) -> ForegroundCommand {
        self.n_running.fetch_add(1, Ordering::Relaxed);
        ForegroundCommand(Arc::clone(self))
    }

    /// Begins `job` in the jail that waits, when there is one and it is the one the job would get. Blocks for a few milliseconds.
    pub(crate) fn enter(
        &self,
        jail: &Jail,
        network: &SharedNetwork,
        job: &Job<'_>,
    ) -> Option<EnteredRun> {
        let mut waiting = self.take()?;
        let entered = match waiting.jail.take() {
            Some(standing) if waiting.in_network == network.get().is_some() => {
                jail.enter(standing, job).map_err(|standing| *standing)
            }
            Some(standing) => Err(standing),
            None => return None,
        };
        match entered {
            Ok(guard) => waiting.entered(guard),
            Err(standing) => {
                waiting.jail = Some(standing);
                // Its end takes some milliseconds, which the command need not wait for.
                let end = thread::Builder::new().name("zeph-ahead".to_owned());
                drop(end.spawn(move || drop(waiting)));
                None
            }
        }
    }

    /// The jail that waits; the one that is being made, if that does not take long.
    fn take(&self) -> Option<SpareRun> {
        self.n_commands.fetch_add(1, Ordering::Relaxed);
        let is_made = |state: &mut AheadState| matches!(state, AheadState::InTheMaking);
        let waited = self
            .changed
            .wait_timeout_while(self.state(), PATIENCE, is_made);
        let (mut state, _) = waited.unwrap_or_else(PoisonError::into_inner);
        match std::mem::take(&mut *state) {
            AheadState::Waits(waiting) => Some(*waiting),
            other => {
                *state = other;
                None
            }
        }
    }

    /// Has the next jail made if it is time for one.
    fn begin(self: &Arc<Self>, shell: &ShellState, network: &Arc<SharedNetwork>) {
        let is_time = self.n_commands.load(Ordering::Relaxed) >= COMMANDS_BEFORE;
        if is_time && shell.jail.label() == Ok(JailLabel::Full) {
            drop(self.begin_with(shell, Arc::clone(network)));
        }
    }

    /// Has a jail made, on a thread of its own, if there is none and there may be one.
    fn begin_with(
        self: &Arc<Self>,
        shell: &ShellState,
        network: Arc<SharedNetwork>,
    ) -> Option<JoinHandle<()>> {
        let seat = self.begun(shell)?;
        let (jail, spawner) = (Arc::clone(&shell.jail), Arc::clone(&shell.spawner));
        let (ahead, of_end) = (Arc::clone(self), Arc::clone(self));
        let thread = thread::Builder::new().name("zeph-ahead".to_owned());
        let started = thread
            .stack_size(512 * 1024)
            .spawn(move || ahead.end(make(&jail, &spawner, &network, seat)));
        if started.is_err() {
            of_end.end(None);
        }
        started.ok()
    }

    fn begun(&self, shell: &ShellState) -> Option<Seat> {
        let mut state = self.state();
        let AheadState::Empty = *state else {
            return None;
        };
        let seat = shell.seats.take()?;
        *state = AheadState::InTheMaking;
        Some(seat)
    }

    fn end(&self, made: Option<SpareRun>) {
        let mut state = self.state();
        let left = match (&*state, made) {
            (AheadState::InTheMaking, Some(waiting)) => {
                *state = AheadState::Waits(Box::new(waiting));
                None
            }
            (AheadState::InTheMaking, None) => {
                *state = AheadState::Empty;
                None
            }
            (_, left) => left,
        };
        drop(state);
        self.changed.notify_all();
        drop(left);
    }

    /// Ends what waits, for good.
    pub(crate) fn close(&self) {
        let state = std::mem::replace(&mut *self.state(), AheadState::Closed);
        drop(state);
    }

    fn state(&self) -> MutexGuard<'_, AheadState> {
        // Nothing that holds it can panic half way through a change.
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Numbers of the processes that were started for the jail that waits.
    #[cfg(test)]
    pub(crate) fn process(&self) -> Option<i32> {
        match &*self.state() {
            AheadState::Waits(waiting) => Some(waiting.child.as_ref()?.pid.as_raw_pid()),
            _ => None,
        }
    }
}

/// Makes a jail and starts it; nothing when that fails: the command will tell why.
fn make(jail: &Jail, spawner: &Spawner, network: &SharedNetwork, seat: Seat) -> Option<SpareRun> {
    match try_to_make(jail, spawner, network, seat) {
        Ok(waiting) => waiting,
        Err(error) => {
            tracing::debug!(%error, "no jail is made ahead");
            None
        }
    }
}

fn try_to_make(
    jail: &Jail,
    spawner: &Spawner,
    network: &SharedNetwork,
    seat: Seat,
) -> io::Result<Option<SpareRun>> {
    let (context, writer) = platform::pipe()?;
    let made = jail.stand(vec![(writer, STATE_FD)]);
    let Some((mut launch, standing)) = made.map_err(io::Error::other)? else {
        return Ok(None);
    };
    let network = network.get();
    if let Some(Some(network)) = network {
        network.enter(&mut launch).map_err(io::Error::other)?;
    }
    Ok(Some(SpareRun {
        jail: Some(standing),
        child: Some(spawner.spawn(launch)?),
        context: Some(context),
        in_network: network.is_some(),
        _seat: seat,
    }))
}

impl SpareRun {
    fn entered(mut self, guard: Guard) -> Option<EnteredRun> {
        Some(EnteredRun {
            context: self.context.take()?,
            child: self.child.take()?,
            guard,
        })
    }
}

impl Drop for SpareRun {
    fn drop(&mut self) {
        if let Some(child) = self.child.take() {
            // The outer stage; the rest ends with it. It has not been waited for, so the number is still its own.
            let _ = child.process.signal(Signal::KILL);
            let _ = rustix::process::waitid(WaitId::Pid(child.pid), WaitIdOptions::EXITED);
        }
        drop(self.jail.take());
    }
}
