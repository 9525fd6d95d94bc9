//! `bash`: one command, in the foreground until it has ended, or in the background.

use std::collections::BTreeMap;
use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::{Duration, Instant};

use serde_json::json;
use tokio::sync::oneshot;
use uuid::Uuid;
use zeph_core::exit::CommandExit;
use zeph_core::failure::one_line;
use zeph_core::output::RawOutput;

use super::job::{CommandJob, CommandResult, JobFault, context_variables, tail};
use super::work::BashOptions;
use super::{RunControl, Shell, ShellEnd, ShellSession, ShellState, failure};
use crate::background::{BackgroundEnd, StartRefusal};
use crate::jail::{self, JailLabel, JailPolicy};
use crate::run::capture::CapturedOutput;
use crate::run::render::{Rendered, render};
use crate::run::{Cause, Reason, RunStop};
use crate::turn::{self, Turn, TurnRecord};

/// Characters of why there is no shared network.
const REASON_CHARS_MAX: usize = 200;

pub(super) async fn call(
    shell: &Shell,
    text: &str,
    options: BashOptions,
    session: &ShellSession,
    control: RunControl,
) -> ShellEnd {
    if options.background {
        return in_background(shell, text, options, (session, control.turn_state)).await;
    }
    let config = shell.config();
    let timeout = config.timeout_of(options.timeout);
    let turn = session.turn().clone();
    let before = turn.clone();
    let mut command = shell.command(text.to_owned(), turn, timeout, control.on_output);
    command.network = Arc::clone(&session.network);
    command.ahead = Some(Arc::clone(&session.ahead));
    command.running = Some(session.ahead.running());
    command.turn_state = shell.turn_state(control.turn_state);
    let finished = match shell.run(command, control.cancelled).await {
        Ok(Some(finished)) => finished,
        Ok(None) => return ShellEnd::failed(failure::cancelled()),
        Err(fault) => return ShellEnd::failed(failure::not_run(&fault)),
    };
    let end = foreground_end(shell, session, &before, text, finished, timeout);
    shell.directory_changed(session, end).await
}

impl Shell {
    /// A command of a turn.
    fn command(
        &self,
        text: String,
        turn: Turn,
        timeout: Duration,
        listener: Option<crate::run::OutputListener>,
    ) -> CommandJob {
        let exports = match self.0.config.enable_execution_context {
            true => context_variables(&turn.context),
            false => BTreeMap::new(),
        };
        CommandJob {
            text,
            turn,
            exports,
            timeout,
            listener,
            network: Arc::default(),
            ahead: None,
            running: None,
            turn_state: None,
        }
    }

    /// What a command is told of the outputs of its turn.
    fn turn_state(&self, state: Option<Arc<[u8]>>) -> Option<Arc<[u8]>> {
        state.filter(|_| self.0.config.enable_execution_context)
    }

    /// Runs a command until it has ended; nothing when it was cancelled before it began.
    pub(crate) async fn run(
        &self,
        command: CommandJob,
        mut cancelled: std::pin::Pin<Box<dyn Future<Output = ()> + Send>>,
    ) -> Result<Option<CommandResult>, JobFault> {
        let is_cancelled = std::future::poll_fn(|context| {
            std::task::Poll::Ready(cancelled.as_mut().poll(context).is_ready())
        });
        if is_cancelled.await {
            return Ok(None);
        }
        let stop = Arc::new(RunStop::new()?);
        // A caller that goes away without waiting ends the command too.
        let _ends_with_the_caller = StopOnDrop(Arc::clone(&stop));
        let (sender, mut end) = oneshot::channel();
        self.0.start(command, Arc::clone(&stop), move |finished| {
            // Nobody may be waiting any more.
            drop(sender.send(finished));
        })?;
        let ended = tokio::select! {
            biased;
            ended = &mut end => ended,
            () = cancelled => {
                stop.stop(Reason::Cancelled);
                end.await
            }
        };
        match ended {
            Ok(finished) => finished.map(Some),
            Err(_gone) => Err(JobFault::Start(std::io::Error::other(
                "the thread of a run failed",
            ))),
        }
    }
}

struct StopOnDrop(Arc<RunStop>);

impl Drop for StopOnDrop {
    fn drop(&mut self) {
        self.0.stop(Reason::Cancelled);
    }
}

fn foreground_end(
    shell: &Shell,
    session: &ShellSession,
    before: &Turn,
    command: &str,
    finished: CommandResult,
    timeout: Duration,
) -> ShellEnd {
    let config = shell.config();
    let (mut notes, changed_directory) = carry_on(shell, session, before, command, &finished);
    notes.extend(finished.findings.iter().cloned());
    notes.extend(explanation(shell.0.jail.policy(), &finished));
    let CommandResult {
        cause,
        exit,
        label,
        captured,
        hosts,
        private_files,
        ..
    } = finished;
    let truncated = captured.n_cut > 0;
    let failure = match cause {
        Cause::Exited => exit.failure(),
        Cause::TimedOut => Some(failure::timed_out(timeout, config.timeout_max)),
        Cause::Stopped(_) => Some(failure::cancelled()),
        Cause::Flooded => Some(failure::flooded(config.flood_bytes_max)),
    };
    let raw = raw_output(captured, exit, label, cause);
    let (result, partial) = match failure {
        None => (Ok(raw), None),
        Some(failure) => (Err(failure), Some(raw)),
    };
    let exit = (cause == Cause::Exited).then_some(exit);
    ShellEnd {
        result,
        partial,
        exit,
        truncated,
        label: Some(label),
        notes,
        changed_directory,
        hosts,
        private_files,
        run_id: None,
    }
}

/// Hands the state of the command's shell on to the turn, if it is still the turn the command began in.
fn carry_on(
    shell: &Shell,
    session: &ShellSession,
    before: &Turn,
    command: &str,
    finished: &CommandResult,
) -> (Vec<String>, Option<(PathBuf, PathBuf)>) {
    let mut turn = session.turn();
    if turn.context.turn_id != before.context.turn_id {
        return (Vec::new(), None);
    }
    turn.remember(command);
    let is_told = |record: &&TurnRecord| record.end.is_some();
    let Some(record) = finished.record.as_ref().filter(is_told) else {
        let is_over = finished.cause == Cause::Exited;
        let lost = (is_over && turn::may_change_state(command)).then(|| {
            format!(
                "the shell did not report its directory and variables at its end (a trap on EXIT, `exec` and the like keep it from that): the next \
                 command starts in `{}`, without what this one exported",
                turn.directory.display()
            )
        });
        return (lost.into_iter().collect(), None);
    };
    let roots = match finished.label {
        // Nothing is made anew.
        JailLabel::None => vec!["/".into()],
        _ => shell.0.roots(),
    };
    let change = turn.take_over(&before.directory, record, &roots);
    (change.notes, change.directory)
}

/// What of the jail a command ran into that failed, or that ended well without what the jail keeps as it is.
fn explanation(policy: &JailPolicy, finished: &CommandResult) -> Option<String> {
    let captured = &finished.captured;
    if finished.label == JailLabel::None {
        return None;
    }
    let streams = [&captured.stderr, &captured.stdout];
    let sanitizer = streams
        .iter()
        .find_map(|stream| jail::explain_sanitizer(tail(stream)));
    if sanitizer.is_some() {
        return sanitizer;
    }
    if finished.exit.is_success() {
        return jail::explain_kept(tail(&captured.stderr), policy, &finished.walls);
    }
    jail::explain(tail(&captured.stderr), policy, &finished.walls)
        .or_else(|| jail::explain_offline(tail(&captured.stdout), policy))
}

fn raw_output(
    captured: CapturedOutput,
    exit: CommandExit,
    label: JailLabel,
    cause: Cause,
) -> RawOutput {
    let line = match cause {
        Cause::Exited => exit.line(),
        Cause::TimedOut => Some("[ended: it took too long]".to_owned()),
        Cause::Flooded => Some("[ended: it printed too much]".to_owned()),
        Cause::Stopped(Reason::Cancelled) => Some("[cancelled]".to_owned()),
        Cause::Stopped(Reason::Killed) => Some("[ended on request]".to_owned()),
        Cause::Stopped(Reason::Shutdown) => Some("[terminated by shutdown]".to_owned()),
    };
    let sandbox = (label != JailLabel::Full).then_some(label.as_str());
    let exit = match cause {
        Cause::Exited => exit,
        _ => CommandExit::Unknown,
    };
    let Rendered { text, envelope } = render(captured, exit, line, sandbox);
    RawOutput {
        structured: Some(envelope),
        ..RawOutput::text(text)
    }
}

/// A command in the background, until its end is known.
struct BackgroundMark(Arc<ShellState>);

impl BackgroundMark {
    fn begin(shell: &Arc<ShellState>) -> Self {
        shell.n_background.fetch_add(1, Ordering::SeqCst);
        Self(Arc::clone(shell))
    }
}

impl Drop for BackgroundMark {
    fn drop(&mut self) {
        self.0.n_background.fetch_sub(1, Ordering::SeqCst);
    }
}

async fn in_background(
    shell: &Shell,
    text: &str,
    options: BashOptions,
    (session, turn_state): (&ShellSession, Option<Arc<[u8]>>),
) -> ShellEnd {
    let config = shell.config();
    let timeout = options
        .timeout
        .map_or(config.background_timeout, Duration::from_secs)
        .min(config.background_timeout);
    let turn = session.turn().clone();
    let context = turn.context.clone();
    let mut command = shell.command(text.to_owned(), turn, timeout, None);
    command.turn_state = shell.turn_state(turn_state);
    // Before the call is answered: a server is reached by whatever comes after that.
    let apart = share_network(shell, session).await;
    command.network = Arc::clone(&session.network);
    command.ahead = Some(Arc::clone(&session.ahead));
    session.turn().remember(text);
    let of_end_text = text.to_owned();
    let inner = Arc::clone(&shell.0);
    let mark = BackgroundMark::begin(&shell.0);
    let started = session
        .background
        .start(text.to_owned(), context, |stop, run_id, done| {
            inner.start(command, stop, move |finished| {
                let completed = completed(&mark.0, timeout, run_id, of_end_text, finished);
                drop(mark);
                done.tell(completed);
            })
        });
    match started {
        Ok(run_id) => ShellEnd {
            run_id: Some(run_id),
            notes: apart.into_iter().collect(),
            ..ShellEnd::plain(Ok(RawOutput {
                structured: Some(json!({ "run_id": run_id })),
                ..RawOutput::text(format!("[background] started run_id={run_id}"))
            }))
        },
        Err(StartRefusal::TooMany) => {
            ShellEnd::failed(failure::too_many_runs(config.background_runs_max))
        }
        Err(StartRefusal::Closed) => ShellEnd::failed(failure::closed()),
        Err(StartRefusal::System(error)) => {
            ShellEnd::failed(failure::not_run(&JobFault::Start(error)))
        }
    }
}

/// Makes the network of the session, if it is not there. Returns what the caller should know when it cannot be made; the next command in the
/// background tries again.
async fn share_network(shell: &Shell, session: &ShellSession) -> Option<String> {
    let (jail, network) = (Arc::clone(&shell.0.jail), Arc::clone(&session.network));
    let made = tokio::task::spawn_blocking(move || {
        if network.get().is_none() {
            let made = jail.make_network()?;
            // Another command may have been faster.
            network.get_or_init(|| made);
        }
        Ok(())
    });
    let made: Result<(), String> = made
        .await
        .unwrap_or_else(|_panic| Err("the host failed".to_owned()));
    let reason = made.err()?;
    tracing::warn!(reason, "commands of a session do not share a network");
    Some(format!(
        "a server in this run cannot be reached by other commands, because a shared network cannot be made: {}",
        one_line(&reason, REASON_CHARS_MAX)
    ))
}

/// Exit code of a run that took too long, as the documents have it; that of `timeout(1)`.
const TIMED_OUT: i32 = 124;

fn completed(
    shell: &ShellState,
    timeout: Duration,
    run_id: Uuid,
    command: String,
    finished: Result<CommandResult, JobFault>,
) -> BackgroundEnd {
    let mut finished = match finished {
        Ok(finished) => finished,
        Err(fault) => {
            return BackgroundEnd::not_run(run_id, failure::not_run(&fault));
        }
    };
    let explained = explanation(shell.jail.policy(), &finished);
    finished.findings.extend(explained);
    let CommandResult {
        cause,
        exit,
        label,
        captured,
        findings,
        hosts,
        private_files,
        duration,
        ..
    } = finished;
    BackgroundEnd {
        run_id,
        turn: None,
        command: Some(command),
        exit: (cause == Cause::Exited).then_some(exit),
        exit_code: match cause {
            Cause::TimedOut => Some(TIMED_OUT),
            Cause::Exited => exit.code(),
            Cause::Stopped(_) | Cause::Flooded => None,
        },
        failure: match cause {
            Cause::Exited => exit.failure(),
            Cause::TimedOut => Some(failure::background_timed_out(timeout)),
            Cause::Stopped(_) => Some(failure::cancelled()),
            Cause::Flooded => Some(failure::flooded(shell.config.flood_bytes_max)),
        },
        truncated: captured.n_cut > 0,
        label: Some(label),
        output: raw_output(captured, exit, label, cause),
        notes: findings,
        hosts,
        private_files,
        duration,
        ended: Instant::now(),
    }
}
