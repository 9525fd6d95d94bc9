//! What a command works with: its surroundings, the configuration, and, when it makes calls, the host.

use std::collections::BTreeSet;
use std::future::Future;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, OnceLock, PoisonError};
use std::time::Duration;

use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};
use tokio::runtime::{Builder, Runtime};
use zeph_config::{Config, Flags, LoadedConfig, Surroundings};
use zeph_core::id::PluginId;
use zeph_core::policy::AllowRule;
use zeph_core::principal::{Operator, Principal};
use zeph_plugins::component::Component;
use zeph_plugins::event::{PluginEvent, Tell};
use zeph_plugins::folder;
use zeph_plugins::refusal::quoted;
use zeph_store::Store;

use super::args::Global;
use super::error::CliError;
use super::{log, out};
use crate::audit::checkpoints;
use crate::host::{self, Host, NativeOptions, StartOptions};
use crate::recording::Recorder;
use crate::replay::ReplayTerms;
use crate::telemetry;

/// Set up once for each command.
#[derive(Debug)]
pub(crate) struct Context {
    pub(crate) surroundings: Surroundings,
    pub(crate) flags: Flags,
    /// Whether notes and summaries are unwanted.
    pub(crate) quiet: bool,
    components: Vec<Component>,
    /// The person who typed the command.
    operator: Option<Operator>,
    /// The warnings about the configuration that were printed: a command may read it more than once.
    warned: Mutex<BTreeSet<String>>,
    /// Whether it was said that plugins lie here that are not used.
    has_mentioned: AtomicBool,
    /// Writes down what calls use, where that is wanted.
    recorder: OnceLock<Arc<Recorder>>,
}

/// How long the end of the process waits for threads that hang in the kernel.
const SHUTDOWN: Duration = Duration::from_millis(100);

/// How long the end of the process waits for commands, which are killed half a second after they were asked to end.
const RUNS_END: Duration = Duration::from_secs(5);

/// How long it waits for MCP servers, which are killed after the same time.
const SERVERS_END: Duration = Duration::from_secs(5);

/// Threads of the runtime of a command that makes many calls. They only pass messages on: guests have their own.
const SERVER_THREADS: usize = 2;

/// The stack of each. A call is polled in the task of its request, and a call that it makes in the same: unoptimised, both together need more
/// than the 2 MiB that a thread has by default. What is not used takes no memory.
const SERVER_STACK_BYTES: usize = 8 << 20;

impl Context {
    /// Reads the surroundings and starts logging.
    pub(crate) fn new(global: Global, components: Vec<Component>) -> Result<Self, CliError> {
        let surroundings = Surroundings::of_process()?;
        let filter = surroundings.env.get(log::LOG_VARIABLE);
        let filter = filter.map(|filter| filter.to_string_lossy());
        let problem = log::start(filter.as_deref(), global.verbose, global.quiet);
        let this = Self {
            surroundings,
            flags: Flags {
                config: global.config,
                set: global.set,
                roots: global.root,
                plugins: global.plugins,
                no_project: global.no_project,
            },
            quiet: global.quiet > 0,
            components,
            operator: None,
            warned: Mutex::default(),
            has_mentioned: AtomicBool::new(false),
            recorder: OnceLock::new(),
        };
        this.notes(problem.as_slice());
        Ok(this)
    }

    /// Makes the calls of the session those of `operator`, the person who typed the command.
    pub(crate) fn used_by(mut self, operator: Option<Operator>) -> Self {
        self.operator = operator;
        self
    }

    /// A command with other flags, as if it had been typed in `directory`.
    pub(crate) fn moved_to(&self, directory: PathBuf, flags: Flags) -> Self {
        let surroundings = Surroundings {
            working_directory: directory,
            typed_directory: None,
            ..self.surroundings.clone()
        };
        Self {
            surroundings,
            flags,
            quiet: self.quiet,
            components: self.components.clone(),
            operator: self.operator.clone(),
            warned: Mutex::default(),
            has_mentioned: AtomicBool::new(true),
            recorder: self.recorder.clone(),
        }
    }

    /// Forgets the variables `ZEPH_…`, but for `kept`.
    pub(crate) fn without_variables_but(mut self, kept: &[&str]) -> Self {
        let variables = &mut self.surroundings.env;
        variables.retain(|name, _| kept.contains(&name.as_str()));
        self
    }

    /// Has every host of this command append what calls use to `file`.
    ///
    /// Errors: the file cannot be written, or other users have access to it.
    pub(crate) fn record(&self, file: Option<&Path>) -> Result<(), CliError> {
        let Some(file) = file else { return Ok(()) };
        let path = self.surroundings.working_directory.join(file);
        let recorder = Recorder::open(&path).map_err(|error| {
            let problem = format!("calls cannot be recorded in `{}`", file.display());
            CliError::user(problem).because(error)
        })?;
        // A second one would be the same file.
        drop(self.recorder.set(Arc::new(recorder)));
        Ok(())
    }

    /// Warns when tools can change the file in which calls are recorded.
    fn mention_record(&self, config: &Config) {
        let Some(recorder) = self.recorder.get() else {
            return;
        };
        let path = recorder.path();
        let mut roots = config.file.roots.iter();
        if roots.any(|root| path.starts_with(&root.path)) {
            self.notes(&[format!(
                "`{}` lies in a directory that tools may access; record outside of it, so that no tool can change the records",
                path.display()
            )]);
        }
    }

    /// The person who typed the command, to open a session for.
    ///
    /// Errors: something else in the process has claimed to be the operator.
    pub(crate) fn operator(&self) -> Result<Principal, CliError> {
        let operator = self.operator.clone().map(Principal::Operator);
        operator.ok_or_else(|| {
            CliError::internal(
                "the command line is not the first in this process to claim the operator",
            )
        })
    }

    /// The checked configuration; remarks about it become notes.
    pub(crate) fn config(&self) -> Result<Config, CliError> {
        Ok(self.load()?.config)
    }

    /// The configuration with the origin of each value.
    pub(crate) fn load(&self) -> Result<LoadedConfig, CliError> {
        let loaded = Config::load(&self.surroundings, &self.flags)?;
        let new: Vec<String> = {
            let mut warned = self.warned.lock().unwrap_or_else(PoisonError::into_inner);
            let all = loaded.warnings.iter();
            all.filter(|warning| warned.insert((*warning).clone()))
                .cloned()
                .collect()
        };
        self.notes(&new);
        Ok(loaded)
    }

    /// Starts a host for many calls, or to look at what there is.
    pub(crate) async fn start(
        &self,
        config: Config,
        is_server: bool,
        allow: Vec<AllowRule>,
        tell: Option<Tell>,
    ) -> Result<Host, CliError> {
        if is_server {
            raise_open_files();
        }
        self.mention_unused(&config);
        let options = StartOptions {
            is_server,
            only_looks: !is_server,
            allow,
            program: self.program(),
            tell: tell.or_else(|| self.tell_on_stderr()),
            ..StartOptions::default()
        };
        self.start_with(config, options).await
    }

    /// Starts a host that makes no call.
    pub(crate) async fn start_to_explain(
        &self,
        config: Config,
        allow: Vec<AllowRule>,
    ) -> Result<Host, CliError> {
        self.mention_unused(&config);
        let options = StartOptions {
            allow,
            program: self.program(),
            only_explains: true,
            tell: self.tell_on_stderr(),
            ..StartOptions::default()
        };
        self.start_with(config, options).await
    }

    /// Starts a host for one call of this tool; `only_looks` where that call is made to see what there is.
    pub(crate) async fn start_for(
        &self,
        config: Config,
        tool: &str,
        only_looks: bool,
    ) -> Result<Host, CliError> {
        self.mention_unused(&config);
        // What a call needs before it can be a tool of any plugin.
        let is_alone = config.shaping.dependencies.is_none();
        let options = StartOptions {
            only_looks,
            program: self.program(),
            expected_tool: is_alone.then(|| tool.to_owned()),
            tell: self.tell_on_stderr(),
            ..StartOptions::default()
        };
        self.start_with(config, options).await
    }

    /// Starts a host for one call, which calls itself `program` in what it says.
    pub(crate) async fn start_as(&self, program: String, config: Config) -> Result<Host, CliError> {
        let options = StartOptions {
            program,
            tell: self.tell_on_stderr(),
            ..StartOptions::default()
        };
        self.start_with(config, options).await
    }

    /// Starts a host that makes one recorded call again, and records it.
    pub(crate) async fn start_to_replay(
        &self,
        config: Config,
        replay: ReplayTerms,
        recorder: Arc<Recorder>,
    ) -> Result<Host, CliError> {
        let options = StartOptions {
            program: self.program(),
            tell: self.tell_on_stderr(),
            replay: Some(replay),
            recorder: Some(recorder),
            ..StartOptions::default()
        };
        self.start_with(config, options).await
    }

    /// Starts a host that serves one native server.
    pub(crate) async fn start_native(
        &self,
        config: Config,
        native: NativeOptions,
    ) -> Result<Host, CliError> {
        let options = StartOptions {
            program: self.program(),
            tell: self.tell_on_stderr(),
            native: Some(native),
            ..StartOptions::default()
        };
        self.start_with(config, options).await
    }

    async fn start_with(&self, config: Config, options: StartOptions) -> Result<Host, CliError> {
        self.mention_record(&config);
        let components = self.components.clone();
        let options = StartOptions {
            components,
            recorder: options.recorder.or_else(|| self.recorder.get().cloned()),
            ..options
        };
        let (host, notices) = Host::start(config, options).await?;
        self.notes(&notices);
        Ok(host)
    }

    /// Starts a host to look at what there is; its notices are omitted.
    pub(crate) async fn start_silently(
        &self,
        config: Config,
        tell: Tell,
    ) -> Result<Host, CliError> {
        let options = StartOptions {
            components: self.components.clone(),
            program: self.program(),
            only_looks: true,
            tell: Some(tell),
            ..StartOptions::default()
        };
        let (host, _) = Host::start(config, options).await?;
        Ok(host)
    }

    /// Says once that plugins lie where people drop them and no host looks.
    fn mention_unused(&self, config: &Config) {
        let here = &self.surroundings.working_directory;
        let is_on = !config.plugins.folders.is_empty() && config.tools_enabled;
        if is_on && !self.has_mentioned.swap(true, Ordering::Relaxed) {
            let note = folder::unused(here, &config.plugins.folders);
            self.notes(note.as_slice());
        }
    }

    /// What happens to plugins, as notes; nothing when notes are unwanted.
    fn tell_on_stderr(&self) -> Option<Tell> {
        (!self.quiet).then(|| Arc::new(|event: &PluginEvent| out::note(&event.to_string())) as Tell)
    }

    /// The program with its global options, for commands in messages: they must use the same configuration.
    pub(crate) fn program(&self) -> String {
        let here = &self.surroundings.working_directory;
        let config = self.flags.config.iter().map(|file| ("--config", file));
        let folders = self
            .flags
            .plugins
            .iter()
            .map(|folder| ("--plugins", folder));
        let mut program = "zeph-host".to_owned();
        for (flag, path) in config.chain(folders) {
            let path = here.join(path);
            program.push_str(&format!(" {flag} {}", quoted(&path.to_string_lossy())));
        }
        program
    }

    /// The names of the plugins that are part of the program.
    pub(crate) fn first_party(&self) -> Vec<PluginId> {
        let names = self.components.iter();
        names
            .map(|component| PluginId(component.name.to_owned()))
            .collect()
    }

    /// Opens only the store, to change a few rows.
    pub(crate) fn store(&self, config: &Config) -> Result<Store, CliError> {
        let opened = host::open_store(config)?;
        self.notes(&opened.notices);
        Ok(opened.store)
    }

    /// Opens the store for a command that only reads it: a read-only directory is enough.
    pub(crate) fn store_to_look(&self, config: &Config) -> Result<Store, CliError> {
        let opened = host::open_store_to_look(config)?;
        self.notes(&opened.notices);
        Ok(opened.store)
    }

    /// Reads the rules of `--allow`; relative patterns start where relative paths of a call do.
    pub(crate) fn allow(
        &self,
        allow: &[String],
        config: &Config,
    ) -> Result<Vec<AllowRule>, CliError> {
        let directory = self.directory(config);
        // Rules are matched against resolved paths, so the directory they start from is resolved too.
        let directory = directory.canonicalize().unwrap_or(directory);
        let directory = directory.to_string_lossy();
        let rules = allow.iter().map(|text| AllowRule::parse(text, &directory));
        Ok(rules.collect::<Result<_, _>>()?)
    }

    /// Where relative paths of a call start: the first granted directory.
    pub(crate) fn directory(&self, config: &Config) -> PathBuf {
        let root = config.file.roots.first().map(|root| &root.path);
        root.unwrap_or(&self.surroundings.working_directory).clone()
    }

    /// Prints notes, unless they are unwanted. Each is one line: a line feed is that of a path or another name.
    pub(crate) fn notes(&self, notes: &[String]) {
        if !self.quiet {
            let notes = notes.iter().map(|note| note.replace('\n', "\\n"));
            notes.for_each(|note| out::note(&note));
        }
    }
}

/// Lets the process open as many files as it may: each guest may hold `limits.handles` of them, and the usual soft limit
/// of 1,024 is there for programs that use `select`.
fn raise_open_files() {
    let limit = getrlimit(Resource::Nofile);
    let raised = Rlimit {
        current: limit.maximum,
        ..limit
    };
    if let Err(error) = setrlimit(Resource::Nofile, raised) {
        tracing::debug!(%error, "the limit of open files stays as it is");
    }
}

/// Runs a command on this thread: one that makes at most one call, or serves one client.
pub(crate) fn block_on<T>(
    future: impl Future<Output = Result<T, CliError>>,
) -> Result<T, CliError> {
    run(Builder::new_current_thread(), future)
}

/// Runs a command that makes many calls.
pub(crate) fn block_on_threads<T>(
    future: impl Future<Output = Result<T, CliError>>,
) -> Result<T, CliError> {
    let mut builder = Builder::new_multi_thread();
    builder
        .worker_threads(SERVER_THREADS)
        .thread_stack_size(SERVER_STACK_BYTES);
    run(builder, future)
}

fn run<T>(
    mut builder: Builder,
    future: impl Future<Output = Result<T, CliError>>,
) -> Result<T, CliError> {
    let runtime: Runtime = builder
        .enable_all()
        .build()
        .map_err(|error| CliError::internal("the runtime cannot start").because(error))?;
    let result = runtime.block_on(async {
        let result = future.await;
        checkpoints::flush().await;
        telemetry::flush().await;
        result
    });
    runtime.shutdown_timeout(SHUTDOWN);
    if !zeph_shell::run::end_all(RUNS_END) {
        tracing::warn!(
            "a command has not ended; what it left in protected places was not looked at"
        );
    }
    if !zeph_shell::service::end_all(SERVERS_END) {
        tracing::warn!(
            "an MCP server has not ended; what it left in protected places was not looked at"
        );
    }
    result
}
