//! The native shell in the line: built from the configuration, with a share for each session and a snapshot around each command.
//!
//! `zeph-shell` runs commands and sandboxes them. Whether a call may run was decided before: an authorised call is the proof.

mod backend;
mod envelope;
pub(crate) mod exits;
mod programs;
mod settings;
mod share;
mod transaction;

use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use serde_json::Value;
use tokio::sync::SemaphorePermit;
use zeph_config::Config;
use zeph_core::execution::{CommandFacts, Execution, ExecutionFacts};
use zeph_core::exit::CommandExit;
use zeph_core::id::PluginId;
use zeph_core::policy::AuthorizedCall;
use zeph_core::tool::Tool;
use zeph_core::user::{ToolUser, run_as};
use zeph_engine::Cancel;
use zeph_plugins::rights::ProgramRights;
use zeph_shell::held_object::HeldObject;
use zeph_shell::hooks::HookReport;
use zeph_shell::jail::{Jail, JailLabel, JailPolicy, PathWatch};
use zeph_shell::run::OutputListener;
use zeph_shell::shell::{RunControl, Shell, ShellEnd, ShellWork};

use self::programs::ProgramJails;
use self::transaction::Transactions;
use crate::clock::now_ms;
use crate::file_changes;
use crate::known_secrets::KnownSecrets;
use crate::session::Session;
use crate::work::Work;

pub(crate) use self::backend::CommandBackend;
pub(crate) use self::share::Share;
pub(crate) use self::transaction::CallBeside;

/// The shell of this host.
#[derive(Debug)]
pub(crate) struct Native {
    shell: Shell,
    jail: Arc<Jail>,
    /// Learns in which directories commands use something, where calls are recorded.
    watch: Option<PathWatch>,
    /// Of what plugins run.
    program_jails: ProgramJails,
    transactions: Option<Transactions>,
    /// Characters of each stream in the envelope: those of the text a model is shown (`tools.overflow.threshold`).
    stream_chars_max: usize,
    /// Where tools change files, if hooks are run for that: the directories of the file tools and of commands, held since the host started.
    roots: Arc<[HeldObject]>,
    /// Whose rights files are looked at with; none is the host's own.
    user: Option<ToolUser>,
}

/// What stands around commands. Others start from it, and name what they give themselves.
pub(crate) fn jail_policy(config: &Config) -> JailPolicy {
    settings::jail(config)
}

/// The jail of commands, for reports. Nothing is probed yet.
pub(crate) fn jail(config: &Config) -> Jail {
    Jail::new(settings::jail(config))
}

impl Native {
    /// Builds the shell. Nothing runs and nothing is probed yet.
    ///
    /// Errors: the kernel refuses the thread that starts processes; the exit to hosts cannot be set up.
    pub(crate) fn new(
        config: &Config,
        secrets: &Arc<KnownSecrets>,
        is_recorded: bool,
    ) -> std::io::Result<Self> {
        let watch = is_recorded.then(PathWatch::of_used);
        let mut jail = exits::with_exits(jail(config), config, secrets)?;
        if let Some(watch) = &watch {
            jail = jail.with_watch(watch.clone());
        }
        let jail = Arc::new(jail);
        Ok(Self {
            shell: Shell::new(settings::shell(config), Arc::clone(&jail))?,
            jail,
            watch,
            program_jails: ProgramJails::default(),
            transactions: Transactions::new(config),
            stream_chars_max: config.overflow.threshold_chars,
            roots: match config.hooks.file_changed.is_empty() {
                true => Arc::default(),
                false => held(&roots(config), config.tool_user.as_ref()),
            },
            user: config.tool_user.clone(),
        })
    }

    /// Its tools, as a model sees them.
    pub(crate) fn tools() -> Vec<Tool> {
        zeph_shell::tools::tools()
    }

    /// Whether every command gets a `/tmp` of its own.
    pub(crate) fn has_private_tmp(&self) -> bool {
        self.jail.label() == Ok(JailLabel::Full)
    }

    /// Takes the directories in which commands used something, as far as that is known.
    pub(crate) fn take_used(&self) -> Vec<(PathBuf, bool)> {
        let watch = self.watch.as_ref();
        watch.map(PathWatch::take_used).unwrap_or_default()
    }

    /// The shell, for sessions.
    pub(crate) fn shell(&self) -> &Shell {
        &self.shell
    }

    /// The jail of the programs that a call of `plugin` may run.
    ///
    /// Errors: why there is none, in a sentence.
    pub(crate) fn program_jail(
        &self,
        plugin: &PluginId,
        rights: &ProgramRights,
    ) -> Result<Arc<Jail>, String> {
        self.program_jails.of(self.jail.policy(), plugin, rights)
    }

    /// Runs a call, its envelope bounded like the text. `heard`: who hears what it prints, and what it is told of its turn.
    pub(crate) async fn call(
        &self,
        call: AuthorizedCall<ShellWork>,
        session: &Session,
        cancel: Cancel,
        heard: (Option<OutputListener>, Option<Arc<[u8]>>),
    ) -> Execution {
        let mut end = self.run(call, session, cancel, heard).await;
        let raw = end.result.as_mut().ok().or(end.partial.as_mut());
        if let Some(envelope) = raw.and_then(|raw| raw.structured.as_mut()) {
            envelope::bound(envelope, self.stream_chars_max);
        }
        end
    }

    /// Runs a call. A command that is cut short is over when this returns, with everything it started.
    async fn run(
        &self,
        call: AuthorizedCall<ShellWork>,
        session: &Session,
        cancel: Cancel,
        (on_output, turn_state): (Option<OutputListener>, Option<Arc<[u8]>>),
    ) -> Execution {
        let share = session.shell();
        let (of_begin, patience) = (cancel.clone(), self.timeout(&call));
        let control = RunControl {
            cancelled: Box::pin(async move { cancel.cancelled().await }),
            on_output,
            turn_state,
        };
        let kept_for = self
            .transactions
            .as_ref()
            .zip(transaction::command_of(&call));
        let Some((transactions, command)) = kept_for else {
            return execution(self.shell.call(call, share.commands(), control).await);
        };
        let begun = transactions.begin((&self.shell, share), (&of_begin, patience));
        let (_alone, kept) = match begun.await {
            Ok(begun) => begun,
            Err(failure) => return Execution::failed(failure),
        };
        let mut end: ShellEnd = self.shell.call(call, share.commands(), control).await;
        let finished = transactions.finish((&self.shell, share), command, kept, &end);
        end.notes.extend(finished.await);
        execution(end)
    }

    /// How long a command may take.
    fn timeout(&self, call: &AuthorizedCall<ShellWork>) -> Duration {
        let asked = call.arguments().get("timeout").and_then(Value::as_u64);
        self.shell.config().timeout_of(asked)
    }
}

impl Native {
    /// Marks a call that changes files beside the commands that are transactions: they do not undo its work.
    pub(crate) fn beside(&self, call: &AuthorizedCall<Work>) -> Option<CallBeside> {
        let is_transaction =
            matches!(call.work(), Work::Shell(work) if work.is_foreground_command());
        let transactions = self.transactions.as_ref().filter(|_| !is_transaction)?;
        Some(transactions.beside())
    }

    /// Waits until no command is a transaction; none begins while what comes back is held.
    pub(crate) async fn alone(&self) -> Option<SemaphorePermit<'_>> {
        self.transactions.as_ref()?.alone().await
    }
}

impl Native {
    /// The time from which on changes of files are `call`'s, when there are hooks for them and it can change any.
    pub(crate) fn hooks_for<W>(&self, call: &AuthorizedCall<W>) -> Option<i64> {
        (self.has_file_hooks() && !call.tool().annotations.read_only).then(now_ms)
    }

    /// Whether there are hooks for changes of files.
    pub(crate) fn has_file_hooks(&self) -> bool {
        !self.shell.config().hooks.file_changed.is_empty()
    }

    /// Runs the hooks for the files that changed since `since_ms`.
    pub(crate) async fn files_changed(&self, session: &Session, since_ms: i64) -> HookReport {
        // The hooks of a command that was a transaction are none: another one may have begun.
        let _beside = self.transactions.as_ref().map(Transactions::beside);
        let roots = Arc::clone(&self.roots);
        let user = self.user.clone();
        let mut picks = self.shell.file_picks();
        let look = move || file_changes::since(&roots, since_ms, |path| picks.takes(path));
        let found = tokio::task::spawn_blocking(move || run_as(user.as_ref(), look)).await;
        let changed = found.ok().and_then(Result::ok);
        let changed = changed.unwrap_or_else(file_changes::unknown);
        self.shell
            .files_changed(session.shell().commands(), &changed)
            .await
    }
}

/// The directories that are there.
fn held(paths: &[PathBuf], user: Option<&ToolUser>) -> Arc<[HeldObject]> {
    let open = || {
        let held = paths.iter().map(|path| HeldObject::open(path));
        held.filter_map(Result::ok).collect()
    };
    run_as(user, open).unwrap_or_default()
}

fn roots(config: &Config) -> Vec<PathBuf> {
    let of_files = config.file.roots.iter().map(|root| root.path.clone());
    let mut roots: Vec<PathBuf> = of_files.chain(config.shell.allowed_paths.clone()).collect();
    roots.sort();
    roots.dedup();
    roots
}

/// The end of a call of the shell, as the line takes it.
fn execution(end: ShellEnd) -> Execution {
    let exit_code = end.exit.and_then(CommandExit::code);
    let command = end.label.map(|label| CommandFacts {
        exit_code,
        truncated: end.truncated,
        environment: label.as_str(),
    });
    Execution {
        result: end.result,
        partial: end.partial,
        facts: ExecutionFacts {
            command,
            hosts: end.hosts,
            private_files: end.private_files,
            ..ExecutionFacts::default()
        },
        notes: end.notes,
    }
}
