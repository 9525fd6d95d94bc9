//! From a command to a run: the jail makes it ready, and a thread of its own runs it.

use std::collections::BTreeMap;
use std::ffi::OsString;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use uuid::Uuid;
use zeph_core::call::TurnContext;
use zeph_core::execution::{HostUse, PrivateFile};
use zeph_core::exit::CommandExit;

use super::ahead::{Ahead, ForegroundCommand};
use super::session::SharedNetwork;
use super::{ShellState, bare, turn_file};
use crate::jail::{Guard, Jail, JailError, JailLabel, Job, Mode, RunWalls};
use crate::platform;
use crate::run::capture::CapturedOutput;
use crate::run::exit::Evidence;
use crate::run::{self, Cause, OutputListener, Plan, RunEnd, RunLimits, RunStart, RunStop, Tree};
use crate::spawn::Launch;
use crate::turn::rc::{self, Leftovers};
use crate::turn::{Turn, TurnRecord};

/// The shell, as it is seen inside the jail.
const BASH: &str = "/bin/bash";

/// The descriptor on which a shell tells its state. Commands use low ones themselves, and the shell the highest below 64.
pub(super) const STATE_FD: i32 = 59;

/// The variable by which what belongs to a run is found where there is no namespace around it.
pub(crate) const MARK: &str = "ZEPH_RUN";

/// From being asked to end to being killed.
const GRACE: Duration = Duration::from_secs(2);

/// Bytes at the end of an error stream that are searched for the reasons of a failure.
const TAIL_BYTES: usize = 16 * 1024;

/// Processes that were left running, of which a note shows the command line.
const LEFT_SHOWN_MAX: usize = 3;

/// One command to run.
#[derive(Debug)]
pub(crate) struct CommandJob {
    pub(crate) text: String,
    /// The state it starts with.
    pub(crate) turn: Turn,
    /// Variables that are not of the turn.
    pub(crate) exports: BTreeMap<String, String>,
    pub(crate) timeout: Duration,
    pub(crate) listener: Option<OutputListener>,
    /// That of its session, which it enters if it has been made.
    pub(crate) network: Arc<SharedNetwork>,
    /// The jails of its session that are made ahead; none for what does not belong to one.
    pub(crate) ahead: Option<Arc<Ahead>>,
    /// Says that it is waited for, until it has ended.
    pub(crate) running: Option<ForegroundCommand>,
    /// What it finds in its file about the turn (`turn_file`); without it there is none.
    pub(crate) turn_state: Option<Arc<[u8]>>,
}

/// A command that was run.
#[derive(Debug)]
pub(crate) struct CommandResult {
    pub(crate) cause: Cause,
    pub(crate) exit: CommandExit,
    pub(crate) label: JailLabel,
    pub(crate) captured: CapturedOutput,
    /// The state that the shell reported, if it was readable.
    pub(crate) record: Option<TurnRecord>,
    /// What the jail found afterwards, one sentence each.
    pub(crate) findings: Vec<String>,
    /// The hosts it reached.
    pub(crate) hosts: Vec<HostUse>,
    /// The private files that were opened while it ran.
    pub(crate) private_files: Vec<PrivateFile>,
    /// What stood in its way.
    pub(crate) walls: RunWalls,
    pub(crate) duration: Duration,
}

/// Why a command did not run.
#[derive(Debug, thiserror::Error)]
pub(crate) enum JobFault {
    #[error("the jail cannot be made")]
    Jail(#[from] JailError),
    #[error("the command cannot be started")]
    Start(#[from] io::Error),
    #[error("the jail could not be closed: {0}")]
    NotClosed(String),
}

impl ShellState {
    /// Where commands start.
    pub(crate) fn root(&self) -> &Path {
        self.jail
            .policy()
            .roots
            .first()
            .map_or(Path::new("/"), |root| root.as_path())
    }

    /// The directories that outlive a command.
    pub(crate) fn roots(&self) -> Vec<PathBuf> {
        let policy = self.jail.policy();
        let named = [&policy.allow_write, &policy.allow_read];
        let named = named.into_iter().flatten().flatten();
        policy.roots.iter().chain(named).cloned().collect()
    }

    /// Starts `command`; `done` is called with its end on the thread of the run.
    ///
    /// Errors: the kernel refuses another thread; then `done` is not called.
    pub(crate) fn start(
        self: &Arc<Self>,
        mut command: CommandJob,
        stop: Arc<RunStop>,
        done: impl FnOnce(Result<CommandResult, JobFault>) + Send + 'static,
    ) -> io::Result<()> {
        let limits = RunLimits {
            timeout: command.timeout,
            grace: GRACE,
            output_bytes_max: usize::try_from(self.config.output_bytes_max).unwrap_or(usize::MAX),
            flood_bytes_max: self.config.flood_bytes_max,
        };
        let inner = Arc::clone(self);
        let mark = Uuid::new_v4();
        let label = Arc::new(std::sync::OnceLock::new());
        let of_plan = Arc::clone(&label);
        let text = command.text.clone();
        let running = command.running.take();
        let (of_end, network) = (Arc::clone(self), Arc::clone(&command.network));
        run::start(
            Arc::clone(&self.spawner),
            limits,
            stop,
            move || {
                let (plan, label) = inner.plan(&command, mark)?;
                let _ = of_plan.set(label);
                Ok(plan)
            },
            move |ended: Result<RunEnd, JobFault>| {
                let label = label.get().copied().unwrap_or(JailLabel::None);
                done(ended.and_then(|ended| finish(ended, label, &text)));
                if let Some(running) = running {
                    running.end(&of_end, &network);
                }
            },
        )
    }

    fn plan(&self, command: &CommandJob, mark: Uuid) -> Result<(Plan, JailLabel), JobFault> {
        let note = self.jail.note_command();
        let leftovers = match self.jail.label() {
            Ok(JailLabel::Full) => Leftovers::Namespace,
            _ => Leftovers::Jobs,
        };
        let end = (STATE_FD, leftovers);
        let mut rc = rc::text(&command.turn, self.root(), &command.exports, end);
        let state = command.turn_state.as_deref();
        let has_place = turn_file::has_place(self.jail.label().ok(), &self.roots());
        if state.is_some() && !has_place {
            rc.splice(0..0, turn_file::text());
        }
        let mut job = Job {
            program: Path::new(BASH),
            arguments: &[OsString::from("-c"), OsString::from(&command.text)],
            directory: self.root(),
            variables: &BTreeMap::from([(MARK.to_owned(), mark.to_string())]),
            files: Vec::new(),
            rc: Some(&rc),
            made: state.filter(|_| has_place).map(turn_file::made),
        };
        // A jail made ahead has no descriptor for it.
        let ahead = command
            .ahead
            .as_ref()
            .filter(|_| has_place || state.is_none());
        let entered = ahead.and_then(|ahead| ahead.enter(&self.jail, &command.network, &job));
        if let Some(entered) = entered {
            let plan = Plan {
                begin: RunStart::Child(entered.child),
                tree: Tree::Namespace,
                context: Some(entered.context),
                listener: command.listener.clone(),
                stderr_end: None,
                guard: Some(entered.guard.noted(note)),
            };
            return Ok((plan, JailLabel::Full));
        }
        let (reader, writer) = platform::pipe()?;
        job.files.push((writer, STATE_FD));
        if let Some(state) = state.filter(|_| !has_place) {
            job.files.push((turn_file::held(state)?, turn_file::FD));
        }
        let (mut launch, label, guard) = (self.prepare)(&self.jail, job)?;
        if let Some(Some(network)) = command.network.get() {
            network.enter(&mut launch).map_err(JobFault::NotClosed)?;
        }
        let plan = Plan {
            begin: RunStart::Launch(launch),
            tree: tree(label, mark),
            context: Some(reader),
            listener: command.listener.clone(),
            stderr_end: None,
            guard: guard.map(|guard| guard.noted(note)),
        };
        Ok((plan, label))
    }
}

/// What belongs to a run, by the jail around it.
pub(crate) fn tree(label: JailLabel, mark: Uuid) -> Tree {
    let mark = format!("{MARK}={mark}");
    match label {
        JailLabel::Full => Tree::Namespace,
        JailLabel::LandlockOnly => Tree::Guarded { mark },
        JailLabel::Seatbelt | JailLabel::None => Tree::Session { mark },
    }
}

/// Makes a job ready to be started: how, how much of a jail stands around it, and what must be kept until it is over.
pub(crate) type Prepare =
    fn(&Jail, Job<'_>) -> Result<(Launch, JailLabel, Option<Guard>), JailError>;

/// The way every shell of the product has.
pub(crate) fn in_the_jail(
    jail: &Jail,
    mut job: Job<'_>,
) -> Result<(Launch, JailLabel, Option<Guard>), JailError> {
    // Where there is no inner stage that would give the command its descriptors.
    let is_plain = jail.policy().mode == Mode::Disabled || cfg!(target_vendor = "apple");
    let own = is_plain.then(|| (std::mem::take(&mut job.files), job.rc.take()));
    let prepared = jail.prepare(job)?;
    let mut launch = Launch {
        program: prepared.program,
        arguments: prepared.arguments,
        environment: prepared.environment,
        directory: prepared.directory,
        inherited: prepared.inherited,
        input: None,
    };
    if let Some((files, rc)) = own {
        bare::hand_on(&mut launch, files, rc.unwrap_or_default())
            .map_err(JailError::system("hand on the state of the turn"))?;
    }
    Ok((launch, prepared.label, Some(prepared.guard)))
}

/// Why the run of `guard` never began, in one line; `None` when it did. One that was ended while its jail was in the making was ended,
/// and nothing is wrong with the jail.
pub(crate) fn refusal(guard: &mut Guard, cause: Cause, stderr: &str) -> Option<String> {
    let refusal = guard.start().refusal(stderr);
    refusal.filter(|reason| cause == Cause::Exited || !reason.is_empty())
}

/// Asks the jail and the shell what really happened.
fn finish(ended: RunEnd, label: JailLabel, text: &str) -> Result<CommandResult, JobFault> {
    let record = ended.context.as_deref().and_then(TurnRecord::parse);
    let captured = ended.capture.finish();
    let mut findings = Vec::new();
    let mut hosts = Vec::new();
    let mut private_files = Vec::new();
    let mut walls = RunWalls::default();
    if let Some(mut guard) = ended.guard {
        let went = guard.close_outlet();
        if let Some(reason) = refusal(&mut guard, ended.cause, &captured.stderr) {
            return Err(JobFault::NotClosed(reason));
        }
        hosts = went.hosts;
        findings.extend(went.notes);
        private_files = guard.private_files();
        walls = guard.walls();
        findings.extend(guard.left_behind(text).map(|finding| finding.text));
        findings.extend(guard.finish().into_iter().map(|finding| finding.text));
    }
    let end = record.as_ref().and_then(|record| record.end.as_ref());
    if ended.cause == Cause::Exited {
        findings.extend(end.and_then(|end| left_running(&end.left_running)));
    }
    let evidence = Evidence {
        text,
        reported: end.map(|end| end.status),
        stderr: tail(&captured.stderr),
        is_namespace: label == JailLabel::Full,
    };
    let exit = run::exit::of(ended.status, evidence);
    Ok(CommandResult {
        cause: ended.cause,
        exit,
        label,
        captured,
        record,
        findings,
        hosts,
        private_files,
        walls,
        duration: ended.duration,
    })
}

/// Says what was ended because its command was over, for a caller that meant it to stay.
fn left_running(lines: &[String]) -> Option<String> {
    let shown: Vec<String> = lines
        .iter()
        .take(LEFT_SHOWN_MAX)
        .map(|line| format!("`{line}`"))
        .collect();
    let more = match lines.len() - shown.len() {
        0 => String::new(),
        n_more => format!(" and {n_more} more"),
    };
    (!shown.is_empty()).then(|| {
        format!(
            "still running at the end of the command, and ended with it: {}{more}; with `background` true a command goes on, and later \
             commands reach the servers it starts",
            shown.join(", ")
        )
    })
}

/// The end of an error stream, in which the reasons of a failure stand.
pub(crate) fn tail(stderr: &str) -> &str {
    let start = stderr.len().saturating_sub(TAIL_BYTES);
    let start = (start..=stderr.len()).find(|at| stderr.is_char_boundary(*at));
    &stderr[start.unwrap_or(0)..]
}

/// What commands and hooks see of the turn.
pub(crate) fn context_variables(context: &TurnContext) -> BTreeMap<String, String> {
    let all = [
        ("ZEPH_TURN_ID", Some(&context.turn_id)),
        ("ZEPH_GOAL_ID", context.goal_id.as_ref()),
        ("ZEPH_SKILL_NAME", context.skill_name.as_ref()),
    ];
    all.into_iter()
        .filter_map(|(name, value)| Some((name.to_owned(), value?.clone())))
        .collect()
}
