//! The programs that a guest runs: whether each may, in which jail, and the record of it.
//!
//! The engine hands wishes over while the guest waits. A program is run when a grant allows exactly this command line, no rule of the
//! operator forbids it, the judge does not reject it, and the audit has it; it ends with the call.

use std::sync::Arc;

use serde_json::{Map, Value, json};
use tokio::sync::mpsc;
use zeph_agent::budget::CallMeter;
use zeph_core::argument::Arguments;
use zeph_core::call::{CallFrame, FileFacts, ResolvedCall};
use zeph_core::execution::PrivateFile;
use zeph_core::exit::CommandExit;
use zeph_core::policy::AuthorizedCall;
use zeph_core::program;
use zeph_core::tool::Tool;
use zeph_engine::{
    CallEnd, CallTerms, Cancel, GuestWork, Listener, Plugin, PrintedText, ProgramCompleted,
    ProgramEnd, ProgramError, ProgramRequest, ProgramRun,
};
use zeph_plugins::refusal::quoted_words;
use zeph_plugins::rights::ProgramRights;
use zeph_plugins::set::InForce;
use zeph_shell::analysis::analyse;
use zeph_shell::program::{self as shell, ProgramFault, ProgramJob, ProgramOutcome};
use zeph_shell::tools;

use crate::audit::{AsideSubject, Audit, ProgramEnding};
use crate::authorisation::Authoriser;
use crate::judging::{JudgeRoom, ProgramVerdict};
use crate::known_secrets::KnownSecrets;
use crate::shell::Native;

/// Most programs of one call that are told.
const PROGRAMS_MAX: usize = 256;

/// What programs of guests are run with.
#[derive(Debug, Clone, Copy)]
pub(crate) struct ProgramRoom<'a> {
    pub(crate) shell: &'a Native,
    pub(crate) audit: &'a Audit,
    pub(crate) authoriser: &'a Authoriser,
    pub(crate) secrets: &'a KnownSecrets,
    /// Judges them; none when nothing is judged.
    pub(crate) judge: Option<&'a JudgeRoom>,
}

/// What a judge is told with the programs of a call.
#[derive(Debug, Clone, Default)]
pub(crate) struct JudgeContext {
    /// What the user said last.
    pub(crate) said: Option<Arc<str>>,
    /// What the host may ask models for the call.
    pub(crate) meter: Option<CallMeter>,
}

/// The programs of one call.
pub(super) struct Programs<'a> {
    pub(super) room: ProgramRoom<'a>,
    pub(super) rights: &'a ProgramRights,
    pub(super) in_force: &'a InForce,
    pub(super) call: &'a CallFrame,
    pub(super) tool: &'a Tool,
    pub(super) judged: &'a JudgeContext,
}

/// The programs that a call ran.
#[derive(Debug, Default)]
pub(super) struct RanPrograms {
    /// Whether any did.
    pub(super) ran: bool,
    /// Those that ended, each with its arguments.
    pub(super) lines: Vec<Vec<String>>,
    /// A private file that was opened while one of them ran.
    pub(super) private_files: Vec<PrivateFile>,
}

impl Programs<'_> {
    /// Makes the call. It has ended when this returns, with every program of it.
    pub(super) async fn around(
        &self,
        call: Arc<AuthorizedCall<GuestWork>>,
        (cancel, listener): (Cancel, Option<Listener>),
        terms: CallTerms,
    ) -> (CallEnd, RanPrograms) {
        if self.rights.patterns.is_empty() {
            let end = Plugin::attempt(call, cancel, listener, terms).await;
            return (end, RanPrograms::default());
        }
        let (queue, wishes) = mpsc::channel(1);
        let over = Cancel::new();
        let terms = CallTerms {
            programs: Some(queue),
            ..terms
        };
        let ended = async {
            let end = Plugin::attempt(call, cancel, listener, terms).await;
            over.cancel();
            end
        };
        tokio::join!(ended, self.serve(wishes, &over))
    }

    /// Runs what the guest wishes, one after the other, until the call is `over` or the guest gone. Returns once nothing runs any
    /// more.
    async fn serve(
        &self,
        mut wishes: mpsc::Receiver<ProgramRequest>,
        over: &Cancel,
    ) -> RanPrograms {
        let mut programs = RanPrograms::default();
        loop {
            let wish = tokio::select! {
                biased;
                () = over.cancelled() => None,
                wish = wishes.recv() => wish,
            };
            let Some(mut wish) = wish else {
                return programs;
            };
            let run = std::mem::take(&mut wish.run);
            let words = std::iter::once(&run.program).chain(&run.arguments);
            let line: Vec<String> = words.cloned().collect();
            let result = self.run(run, wish.abandoned()).await;
            // What was not found may be there the next time: it counts as well.
            programs.ran |= !matches!(result, Err(ProgramError::NotGranted));
            let result = result.map(|outcome| {
                let opened = outcome.private_files.iter().cloned();
                opened.for_each(|file| file.add_to(&mut programs.private_files));
                completed(outcome)
            });
            if result.is_ok() && programs.lines.len() < PROGRAMS_MAX {
                programs.lines.push(line);
            }
            wish.answer(result);
        }
    }

    async fn run(
        &self,
        run: ProgramRun,
        abandoned: impl Future<Output = ()>,
    ) -> Result<ProgramOutcome, ProgramError> {
        let allows = |pattern: &&String| program::allows(pattern, &run.program, &run.arguments);
        let Some(pattern) = self.rights.patterns.iter().find(allows) else {
            return Err(ProgramError::NotGranted);
        };
        if let Some(reason) = self.forbidden(&run) {
            return Err(ProgramError::Forbidden(reason));
        }
        let plugin = self.in_force.plugin().id();
        let jail = self.room.shell.program_jail(plugin, self.rights);
        let jail = jail.map_err(ProgramError::Unavailable)?;
        let first = jail.policy().roots.first().cloned().unwrap_or_default();
        let directory = match &run.directory {
            Some(directory) => first.join(directory),
            None => first,
        };
        let line =
            json!({ "program": run.program, "arguments": run.arguments, "directory": directory });
        let mut abandoned = std::pin::pin!(abandoned);
        let verdict = self.verdict(&line, abandoned.as_mut()).await;
        let rejected = verdict.as_ref().and_then(ProgramVerdict::refusal);
        let verdict = verdict.map(|verdict| verdict.verdict);
        let redactor = self.room.secrets.redactor();
        let granted = format!("program {pattern}");
        let subject = AsideSubject {
            tool: self.tool,
            provider: self.in_force,
            granted: &granted,
            verdict,
            runs_program: true,
        };
        let audit = self.room.audit;
        let record = audit.aside_begins(self.call, subject, (line, &redactor));
        let record = record.await.map_err(ProgramError::Unavailable)?;
        if let Some(rejected) = rejected {
            let ending = ProgramEnding::not_run(rejected.to_owned());
            record.program_ends(ending).await;
            return Err(ProgramError::Forbidden(rejected.to_owned()));
        }
        let job = ProgramJob {
            program: run.program,
            arguments: run.arguments,
            directory,
            input: run.input,
            timeout: run.timeout,
        };
        let ended = self
            .room
            .shell
            .shell()
            .run_program(jail, job, abandoned)
            .await;
        let ending = match &ended {
            Ok(outcome) => ending(outcome),
            Err(fault) => ProgramEnding::not_run(fault.to_string()),
        };
        record.program_ends(ending).await;
        ended.map_err(refused)
    }

    /// What the judge says, where there is one and it judges calls of this tool.
    async fn verdict(
        &self,
        line: &Value,
        abandoned: impl Future<Output = ()>,
    ) -> Option<ProgramVerdict> {
        let context = (self.judged.said.as_deref(), self.judged.meter.as_ref());
        let judge = self.room.judge?;
        judge
            .ask_about_program(self.tool, line, context, abandoned)
            .await
    }

    /// The rule that forbids the same line to `bash`.
    fn forbidden(&self, run: &ProgramRun) -> Option<String> {
        let words = std::iter::once(&run.program).chain(&run.arguments);
        let line = quoted_words(words.map(|word| word.as_str().into()));
        let bash = tools::tools()
            .into_iter()
            .find(|tool| tool.name.as_str() == tools::BASH)?;
        let values = Map::from_iter([("command".to_owned(), Value::from(line.as_str()))]);
        let call = ResolvedCall {
            frame: self.call.clone(),
            tool: bash.into(),
            arguments: Arguments {
                values,
                notes: Vec::new(),
            },
            paths: Vec::new(),
            command: Some(analyse(&line)),
            can_change: true,
            files: FileFacts::default(),
        };
        let authoriser = self.room.authoriser;
        let facts = authoriser.facts(0, None);
        let reason = authoriser.policy.forbids(&facts, &call)?;
        Some(format!("`{line}` may not run: {reason}"))
    }
}

fn ending(outcome: &ProgramOutcome) -> ProgramEnding {
    let exit = match outcome.end {
        shell::ProgramEnd::Exited(exit) => exit.code(),
        _ => None,
    };
    ProgramEnding {
        problem: match outcome.end {
            shell::ProgramEnd::Exited(_) => None,
            shell::ProgramEnd::TimedOut => Some("it took too long".to_owned()),
            shell::ProgramEnd::Flooded => Some("it printed without end".to_owned()),
            shell::ProgramEnd::Stopped => Some("the call ended before it".to_owned()),
        },
        exit_code: exit,
        truncated: outcome.captured.n_cut > 0,
        environment: Some(outcome.label.as_str()),
        duration: outcome.duration,
    }
}

fn completed(outcome: ProgramOutcome) -> ProgramCompleted {
    let captured = outcome.captured;
    let [stdout, stderr] = captured.n_cut_of;
    ProgramCompleted {
        end: match outcome.end {
            shell::ProgramEnd::Exited(CommandExit::Code(code)) => ProgramEnd::Exited(code),
            shell::ProgramEnd::Exited(CommandExit::Signal(signal)) => ProgramEnd::Killed(signal),
            shell::ProgramEnd::Exited(CommandExit::Unknown) | shell::ProgramEnd::Stopped => {
                ProgramEnd::Killed(0)
            }
            shell::ProgramEnd::TimedOut => ProgramEnd::TimedOut,
            shell::ProgramEnd::Flooded => ProgramEnd::Flooded,
        },
        stdout: PrintedText {
            text: captured.stdout,
            n_omitted: stdout,
        },
        stderr: PrintedText {
            text: captured.stderr,
            n_omitted: stderr,
        },
    }
}

fn refused(fault: ProgramFault) -> ProgramError {
    let message = fault.to_string();
    match fault {
        ProgramFault::NotFound(_) | ProgramFault::NotInJail(_) => ProgramError::NotFound(message),
        ProgramFault::Directory(_) => ProgramError::Invalid(message),
        ProgramFault::Jail(_) => ProgramError::Unavailable(message),
    }
}
