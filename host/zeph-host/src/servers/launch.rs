//! From the configuration of an MCP server to a running program in a sandbox of its own, or to the description of its requests.
//!
//! A server reads system directories, toolchains and what its operator granted, and nothing else; it reaches the hosts it was granted
//! by the exit that commands have; it has a private home that is kept, and its own secrets only. What has to be installed (`npx`,
//! `uvx`, `pipx run`, `bunx`) is installed first, in a separate step, and run from there read-only (`install`).
//!
//! A start has two steps: [`Launcher::prepare`] says what will run, which the caller compares with what was pinned;
//! [`Launcher::start`] runs it.

mod error;
mod home;
mod install;
mod jail;
mod refusal;
mod values;
mod walls;

use std::collections::{BTreeMap, BTreeSet};
use std::io;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use serde::{Deserialize, Serialize};
use zeph_config::{CommandServer, Config, HttpServer};
use zeph_core::execution::HostUse;
use zeph_core::id::ServerName;
use zeph_core::user::{ToolUser, run_as};
use zeph_shell::jail::{JailLabel, PathWatch};
use zeph_shell::service::{Service, ServiceJob, ServicePipes, Services};

use self::home::ServerHome;
use self::install::{Installer, ReadyProgram};
use self::jail::{ServerJail, ServerNetwork};
use crate::known_secrets::KnownSecrets;
use crate::user;

pub(crate) use self::error::LaunchError;
pub(crate) use self::install::InstallPin;
pub(crate) use self::refusal::Refusal;
pub(crate) use self::values::is_loader;

/// Starts the MCP servers of a host. Cheap to clone.
#[derive(Debug, Clone)]
pub(crate) struct Launcher(Arc<LauncherState>);

#[derive(Debug)]
struct LauncherState {
    services: Services,
    config: Config,
    secrets: Arc<KnownSecrets>,
    installer: Installer,
    progress: Progress,
    /// Learns which paths servers ask for in vain, where somebody wants to know.
    watch: Option<PathWatch>,
}

/// Hears what an installation does, one short sentence at a time; for the error stream.
#[derive(Clone)]
pub(crate) struct Progress {
    tell: Arc<dyn Fn(&str) + Send + Sync>,
    /// What is told once, and was.
    told: Arc<Mutex<BTreeSet<String>>>,
}

impl Progress {
    /// Told to `tell`, which must not block for long.
    pub(crate) fn new(tell: impl Fn(&str) + Send + Sync + 'static) -> Self {
        Self {
            tell: Arc::new(tell),
            told: Arc::default(),
        }
    }

    fn tell(&self, text: &str) {
        (self.tell)(text);
    }

    /// Tells it unless it was told before: an installation that fails is tried again and again.
    fn tell_once(&self, text: String) {
        let mut told = self.told.lock().unwrap_or_else(PoisonError::into_inner);
        if !told.contains(&text) {
            self.tell(&text);
            told.insert(text);
        }
    }
}

impl std::fmt::Debug for Progress {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("Progress")
    }
}

/// What of a launch is pinned in `zeph.lock`: another value needs the approval of the operator.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct LaunchPin {
    /// The program and its arguments, as they are configured.
    pub(crate) argv: Vec<String>,
    /// What was installed for it; none for a program that is there.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) installed: Option<InstallPin>,
}

/// A server that can be started, installed where it has to be.
#[derive(Debug)]
pub(crate) struct Prepared {
    name: ServerName,
    server: CommandServer,
    pin: LaunchPin,
    program: ReadyProgram,
}

/// A server that was started. Dropping it ends the server, with all it started.
#[derive(Debug)]
pub(crate) struct Launched {
    /// Its process.
    pub(crate) service: Service,
    /// Its streams; taken by the connection.
    pub(crate) pipes: Option<ServicePipes>,
    /// The layers of the sandbox that are not around it, one sentence each; empty when all are.
    pub(crate) missing_layers: Vec<String>,
    name: ServerName,
    /// As it was started: a bare name or an absolute path.
    program: String,
    jail: ServerJail,
    secrets: Arc<KnownSecrets>,
    /// Kept until the server has ended.
    _home: ServerHome,
}

/// What a server over HTTP is sent with every request.
#[derive(Debug, Clone)]
pub(crate) struct RemoteServer {
    /// Where it is.
    pub(crate) url: String,
    /// Headers, names in lower case, with the values of secrets.
    pub(crate) headers: BTreeMap<String, String>,
}

impl Launcher {
    /// Starts the thread that starts servers; nothing else happens yet. To be called within a runtime.
    ///
    /// Errors: the kernel refuses another thread; servers are to run as a user that this host cannot become.
    pub(crate) fn new(
        config: &Config,
        secrets: &Arc<KnownSecrets>,
        progress: Progress,
        watch: Option<PathWatch>,
    ) -> io::Result<Self> {
        let config = user::found(config.clone()).map_err(io::Error::other)?;
        Ok(Self(Arc::new(LauncherState {
            services: Services::new(config.tool_user.as_ref())?,
            installer: Installer::new(&config),
            secrets: Arc::clone(secrets),
            config,
            progress,
            watch,
        })))
    }

    /// Ends every server and installation, and waits until nothing of them is left; what is started later ends at once. Blocks.
    pub(crate) fn end_all(&self, patience: Duration) -> bool {
        self.0.services.end_all(patience)
    }

    /// What the requests to a server over HTTP carry.
    ///
    /// Errors: a secret is not stored.
    pub(crate) fn remote(
        &self,
        name: &ServerName,
        server: &HttpServer,
    ) -> Result<RemoteServer, LaunchError> {
        Ok(RemoteServer {
            url: server.url.clone(),
            headers: values::of(&self.0.secrets, name, &server.headers)?,
        })
    }

    /// Finds out what will run, and installs it if it has to be and is not yet: that can take minutes, told by `Progress`. The version
    /// of `pinned` is installed where the configuration leaves it open.
    ///
    /// Errors: [`LaunchError`]; nothing was installed then.
    pub(crate) async fn prepare(
        &self,
        name: &ServerName,
        server: &CommandServer,
        pinned: Option<&LaunchPin>,
    ) -> Result<Prepared, LaunchError> {
        let argv = std::iter::once(&server.program).chain(&server.arguments);
        let argv: Vec<String> = argv.cloned().collect();
        let pinned = pinned.filter(|pin| pin.argv == argv);
        let version = pinned.and_then(|pin| pin.installed.as_ref());
        let state = &self.0;
        let ready = state.installer.ready(state, name, server, version);
        let program = ready.await?;
        Ok(Prepared {
            name: name.clone(),
            server: server.clone(),
            pin: LaunchPin {
                argv,
                installed: program.pin.clone(),
            },
            program,
        })
    }

    /// Installs the newest version of a server's packages that its command allows, beside the one that is used, and says what it is.
    ///
    /// Errors: [`LaunchError`]: nothing is installed for its command; the installation failed.
    pub(crate) async fn newest(
        &self,
        name: &ServerName,
        server: &CommandServer,
    ) -> Result<InstallPin, LaunchError> {
        let state = &self.0;
        state.installer.newest(state, name, server).await
    }

    /// Starts a server in a sandbox of its own.
    ///
    /// Errors: [`LaunchError`]; nothing runs then. A server that ends soon after has started: [`Launched::complaints`] says why.
    pub(crate) async fn start(&self, prepared: &Prepared) -> Result<Launched, LaunchError> {
        let Prepared {
            name,
            server,
            program,
            ..
        } = prepared;
        let state = &self.0;
        let home = ServerHome::open(&state.config, name)?;
        let mut variables = values::environment(&state.secrets, name, server)?;
        home.point_to(&mut variables);
        if let Some(path) = &program.search_path {
            let known = variables.entry("PATH".to_owned());
            known.or_insert_with(|| path.clone());
        }
        let jail = ServerJail::new(state, name, server, &home, program)?;
        let job = ServiceJob {
            program: program.program.clone(),
            arguments: program.arguments.clone(),
            directory: jail.directory().to_owned(),
            variables,
        };
        let started = state.services.start(jail.jail(), job).await;
        let (service, pipes) = started.map_err(|fault| match jail.missing() {
            Some(missing) => LaunchError::NoSandbox { missing },
            None => LaunchError::of_program(name, server, &fault),
        })?;
        Ok(Launched {
            missing_layers: walls::missing(service.label(), jail.jail().policy()),
            service,
            pipes: Some(pipes),
            name: name.clone(),
            program: program.program.clone(),
            jail,
            secrets: Arc::clone(&state.secrets),
            _home: home,
        })
    }
}

impl Prepared {
    /// What is pinned of it.
    pub(crate) fn pin(&self) -> &LaunchPin {
        &self.pin
    }
}

impl Launched {
    /// How much of a sandbox is around it.
    pub(crate) fn label(&self) -> JailLabel {
        self.service.label()
    }

    /// The end of what it printed to its error stream so far, without known secrets.
    pub(crate) fn error_output(&self) -> String {
        let text = self.service.stderr_tail();
        self.secrets.redactor().text(&text).into_owned()
    }

    /// Why it does not work, as far as the host knows, one sentence each with what would help: it was never run, or was refused something.
    pub(crate) fn complaints(&self) -> Vec<String> {
        let end = self.service.end();
        let fault = end.as_ref().and_then(|end| end.fault.as_deref());
        let fault = fault.map(|fault| error::of_fault(&self.name, fault));
        let refusals = self.refusals();
        let refusals = refusals.iter().map(|refusal| refusal.sentence(&self.name));
        fault.into_iter().chain(refusals).collect()
    }

    /// What it was refused so far: hosts it asked for, and paths that the end of its error stream speaks of.
    pub(crate) fn refusals(&self) -> Vec<Refusal> {
        let mut refusals = self.network().refused();
        refusals.extend(self.refused_program());
        refusals.extend(self.refusals_in(&self.service.stderr_tail()));
        refusals
    }

    /// The program itself, where it is there and the sandbox does not show it.
    fn refused_program(&self) -> Option<Refusal> {
        let end = self.service.end()?;
        let path = PathBuf::from(&self.program);
        let never_ran = error::is_not_started(end.fault.as_deref()?);
        let is_missing = path.is_absolute() && path.is_file() && !self.jail.jail().shows(&path);
        (never_ran && is_missing).then_some(Refusal::Path { path, write: false })
    }

    /// The paths that `said` speaks of as not usable, which are there and were not granted.
    pub(crate) fn refusals_in(&self, said: &str) -> Vec<Refusal> {
        let mut refusals = refusal::paths(said, self.jail.granted());
        let jail = self.jail.jail();
        // Programs name themselves when they complain of something else.
        refusals.retain(|refusal| match refusal {
            Refusal::Path { path, write: false } => !jail.shows(path),
            Refusal::Path { write: true, .. } | Refusal::Host(_) => true,
        });
        refusals
    }

    /// What went between it and each host so far.
    pub(crate) fn hosts(&self) -> Vec<HostUse> {
        self.jail.network().hosts()
    }

    fn network(&self) -> &ServerNetwork {
        self.jail.network()
    }
}

/// A private directory of this program, or of the user that tools work as, made when missing.
fn private_directory(path: &Path, user: Option<&ToolUser>) -> io::Result<PathBuf> {
    run_as(user, || made_private(path)).flatten()
}

fn made_private(path: &Path) -> io::Result<PathBuf> {
    use std::os::unix::fs::DirBuilderExt as _;
    std::fs::DirBuilder::new()
        .recursive(true)
        .mode(0o700)
        .create(path)?;
    path.canonicalize()
}

#[cfg(test)]
mod tests;
