//! What a command works with: its surroundings, the configuration, and, when it makes calls, the host.

use std::future::Future;
use std::path::PathBuf;
use std::time::Duration;

use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};
use tokio::runtime::{Builder, Runtime};
use zeph_core::policy::{AllowRule, Policy};
use zeph_engine::{CompileEvent, CompileListener};
use zeph_store::{Opened, Store};

use super::args::Global;
use super::error::CliError;
use super::{log, out};
use crate::config::{Config, Flags, Loaded, Surroundings};
use crate::host::{self, Component, Host, StartOptions};

/// Set up once for each command.
#[derive(Debug)]
pub(crate) struct Context {
    pub(crate) surroundings: Surroundings,
    pub(crate) flags: Flags,
    /// Whether notes and summaries are unwanted.
    pub(crate) quiet: bool,
    components: Vec<Component>,
}

/// How long the end of the process waits for threads that hang in the kernel.
const SHUTDOWN: Duration = Duration::from_millis(100);

/// Threads of the runtime of a command that makes many calls. They only pass messages on: guests have their own.
const SERVER_THREADS: usize = 2;

impl Context {
    /// Reads the surroundings and starts logging.
    pub(crate) fn new(global: Global, components: Vec<Component>) -> Result<Self, CliError> {
        let surroundings = Surroundings::of_process()?;
        let filter = surroundings.env.get(log::LOG_VARIABLE).map(String::as_str);
        let problem = log::start(filter, global.verbose, global.quiet);
        let this = Self {
            surroundings,
            flags: Flags {
                config: global.config,
                set: global.set,
                roots: global.root,
                no_project: global.no_project,
            },
            quiet: global.quiet > 0,
            components,
        };
        this.notes(problem.as_slice());
        Ok(this)
    }

    /// The checked configuration; remarks about it become notes.
    pub(crate) fn config(&self) -> Result<Config, CliError> {
        Ok(self.load()?.config)
    }

    /// The configuration with the origin of each value.
    pub(crate) fn load(&self) -> Result<Loaded, CliError> {
        let loaded = Config::load(&self.surroundings, &self.flags)?;
        self.notes(&loaded.warnings);
        Ok(loaded)
    }

    /// Starts a host for one call or for many.
    pub(crate) async fn start(
        &self,
        config: Config,
        is_server: bool,
        policy: Policy,
    ) -> Result<Host, CliError> {
        if is_server {
            raise_open_files();
        }
        let options = StartOptions {
            is_server,
            policy,
            components: self.components.clone(),
            on_compile: (!self.quiet).then(|| CompileListener::new(note_compiling)),
        };
        let (host, notices) = Host::start(config, options).await?;
        self.notes(&notices);
        Ok(host)
    }

    /// Opens only the store, for listings.
    pub(crate) fn store(&self, config: &Config) -> Result<Store, CliError> {
        let Opened { store, notices } = host::open_store(config)?;
        self.notes(&notices);
        Ok(store)
    }

    /// Reads the rules of `--allow`; relative patterns start where relative paths of a call do.
    pub(crate) fn policy(&self, allow: &[String], config: &Config) -> Result<Policy, CliError> {
        let directory = self.directory(config);
        // Rules are matched against resolved paths, so the directory they start from is resolved too.
        let directory = directory.canonicalize().unwrap_or(directory);
        let directory = directory.to_string_lossy();
        let rules = allow.iter().map(|text| AllowRule::parse(text, &directory));
        Ok(Policy {
            allow: rules.collect::<Result<_, _>>()?,
        })
    }

    /// Where relative paths of a call start: the first granted directory.
    pub(crate) fn directory(&self, config: &Config) -> PathBuf {
        let root = config.file.roots.first().map(|root| &root.path);
        root.unwrap_or(&self.surroundings.working_directory).clone()
    }

    /// Prints notes, unless they are unwanted.
    pub(crate) fn notes(&self, notes: &[String]) {
        if !self.quiet {
            notes.iter().for_each(|note| out::note(note));
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

/// Compiling is the one thing at start that takes long; it happens once for each version of a plugin.
#[expect(clippy::cast_precision_loss, reason = "a size for people")]
fn note_compiling(event: CompileEvent) {
    let note = match event {
        CompileEvent::Started { plugin, n_bytes } => {
            let mebibytes = n_bytes as f64 / (1024.0 * 1024.0);
            format!("compiling `{plugin}`, {mebibytes:.1} MiB, for the first time")
        }
        CompileEvent::Finished { plugin, duration } => {
            format!("compiled `{plugin}` in {:.1} s", duration.as_secs_f64())
        }
        // Whoever wanted the plugin reports what was wrong with it.
        CompileEvent::Failed { .. } => return,
    };
    out::note(&note);
}

/// Runs a command that makes at most one call.
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
    builder.worker_threads(SERVER_THREADS);
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
    let result = runtime.block_on(future);
    runtime.shutdown_timeout(SHUTDOWN);
    result
}
