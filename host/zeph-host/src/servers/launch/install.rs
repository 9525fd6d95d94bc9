//! Programs that have to be installed before they run: in a separate step, which reaches the registries that their tool is configured to
//! use and nothing else, runs no scripts of packages unless the operator wants it, and writes to one folder of the cache. The server
//! then reads that folder, and can change nothing in it.
//!
//! A folder is named after what was asked for. It counts once its record lies beside it, which is written last: what was killed half way
//! is removed by the next one. Hosts that install the same take turns.

mod apart;
mod command;
mod folder;
mod node;
mod python;
mod step;

use std::path::PathBuf;
use std::sync::Arc;
use std::time::{Duration, Instant};

use serde::{Deserialize, Serialize};
use zeph_config::{CommandServer, Config};
use zeph_core::id::ServerName;
use zeph_core::user::ToolUser;

use self::apart::ToolApart;
use self::command::{InstallCommand, PackageSpec, Tool};
use self::folder::{InstallFolder, InstallRecord};
use self::step::StepRunner;
use super::{LaunchError, LauncherState, private_directory};

/// How long one installation may take, with the time it waits for another one.
const TIMEOUT: Duration = Duration::from_mins(10);

/// What was installed for a server: pinned, so that other bytes need the approval of the operator.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct InstallPin {
    /// The package that has the program, as its registry calls it.
    pub(crate) package: String,
    /// The version that was chosen.
    pub(crate) version: String,
    /// A digest over all that was installed, with its dependencies, as `sha256:` and 64 hexadecimal digits.
    pub(crate) integrity: String,
}

/// A program that is ready to run.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct ReadyProgram {
    /// A bare name or an absolute path.
    pub(super) program: String,
    /// Its arguments.
    pub(super) arguments: Vec<String>,
    /// What was installed for it, to be read.
    pub(super) directories: Vec<PathBuf>,
    /// What is pinned of that; none where nothing had to be installed.
    pub(super) pin: Option<InstallPin>,
    /// Its search path, where the usual one does not lead to what runs it.
    pub(super) search_path: Option<String>,
}

/// Installs programs.
#[derive(Debug)]
pub(super) struct Installer {
    /// Where; none when there is no cache.
    root: Option<PathBuf>,
    /// Whose folders they are; none is the host's own.
    user: Option<ToolUser>,
}

/// One installation.
#[derive(Debug)]
struct Installation<'a> {
    state: &'a LauncherState,
    server: &'a ServerName,
    command: &'a InstallCommand,
    /// What is installed, the version of the first as narrow as it is known.
    packages: Vec<PackageSpec>,
    /// Whether packages may run code while they are installed.
    runs_scripts: bool,
    folder: InstallFolder,
    deadline: Instant,
}

impl Installer {
    /// Installs into the cache of `config`.
    pub(super) fn new(config: &Config) -> Self {
        let cache = config.cache_of_tools();
        Self {
            user: config.tool_user.clone(),
            root: cache.map(|cache| cache.join("servers")),
        }
    }

    /// The program of a server, installed if it has to be, in the version of `pinned` where the configuration leaves it open.
    ///
    /// Errors: [`LaunchError`]; nothing was installed then.
    /// Limits: returns after at most [`TIMEOUT`].
    pub(super) async fn ready(
        &self,
        state: &LauncherState,
        name: &ServerName,
        server: &CommandServer,
        pinned: Option<&InstallPin>,
    ) -> Result<ReadyProgram, LaunchError> {
        let refused = |problem: String| LaunchError::Command {
            server: name.clone(),
            problem,
        };
        let read = InstallCommand::read(&server.program, &server.arguments).map_err(refused)?;
        if server.hosts.is_empty()
            && let Some(problem) = command::adds_packages(&server.program, &server.arguments)
        {
            return Err(refused(problem));
        }
        let Some(command) = read else {
            return Ok(ReadyProgram {
                program: server.program.clone(),
                arguments: server.arguments.clone(),
                directories: Vec::new(),
                pin: None,
                search_path: None,
            });
        };
        let (folder, record) = self
            .installed(state, name, server, (&command, pinned))
            .await?;
        let program = folder.path().join(&record.program);
        let apart = command.apart(&state.config);
        let prefix = apart.iter().flat_map(ToolApart::directories);
        Ok(ReadyProgram {
            program: program.to_string_lossy().into_owned(),
            directories: prefix.chain([folder.path().to_owned()]).collect(),
            pin: Some(record.pin),
            search_path: apart.as_ref().map(ToolApart::search_path),
            arguments: command.arguments,
        })
    }

    /// Installs the newest version that the command of a server allows, and says what it is. What is there stays.
    ///
    /// Errors: [`LaunchError`]: nothing is installed for the command.
    pub(super) async fn newest(
        &self,
        state: &LauncherState,
        name: &ServerName,
        server: &CommandServer,
    ) -> Result<InstallPin, LaunchError> {
        let refused = |problem: String| LaunchError::Command {
            server: name.clone(),
            problem,
        };
        let command = InstallCommand::read(&server.program, &server.arguments).map_err(refused)?;
        let command =
            command.ok_or_else(|| refused("nothing is installed for its command".to_owned()))?;
        let root = self.root(name)?;
        // Which version is the newest is known when it is installed, and an environment of Python cannot be moved: so it is installed in
        // passing first, then where starts look for it.
        let passing = Installation {
            state,
            server: name,
            command: &command,
            packages: command.packages.clone(),
            runs_scripts: server.install_scripts,
            folder: InstallFolder::of(&root, &command, &command.packages, server.install_scripts)
                .in_passing(),
            deadline: Instant::now() + TIMEOUT,
        };
        let (folder, record) = passing.run().await?;
        folder.remove();
        let (_, record) = self
            .installed(state, name, server, (&command, Some(&record.pin)))
            .await?;
        Ok(record.pin)
    }

    async fn installed(
        &self,
        state: &LauncherState,
        name: &ServerName,
        server: &CommandServer,
        (command, pinned): (&InstallCommand, Option<&InstallPin>),
    ) -> Result<(InstallFolder, InstallRecord), LaunchError> {
        let root = self.root(name)?;
        let pinned = pinned.filter(|pin| pin.package == command.packages[0].name);
        let folder_of = |packages: &[PackageSpec]| {
            InstallFolder::of(&root, command, packages, server.install_scripts)
        };
        let open = folder_of(&command.packages);
        let record = open.record();
        let fits = |record: &InstallRecord| pinned.is_none_or(|pin| *pin == record.pin);
        if let Some(record) = record.filter(fits) {
            return Ok((open, record));
        }
        let packages = exact(command, pinned);
        let folder = folder_of(&packages);
        let installation = Installation {
            state,
            server: name,
            command,
            packages,
            runs_scripts: server.install_scripts,
            folder,
            deadline: Instant::now() + TIMEOUT,
        };
        installation.run().await
    }

    fn root(&self, name: &ServerName) -> Result<PathBuf, LaunchError> {
        let Some(root) = &self.root else {
            return Err(LaunchError::Install {
                server: name.clone(),
                problem: "there is no cache directory to install it in; set `engine.cache_dir`"
                    .to_owned(),
                stderr: String::new(),
            });
        };
        private_directory(root, self.user.as_ref()).map_err(|error| LaunchError::Directory {
            what: "the directory of installed MCP servers",
            path: root.clone(),
            source: Arc::new(error),
        })
    }
}

impl InstallCommand {
    /// The tool, where it was configured by its path and lies apart from the system.
    fn apart(&self, config: &Config) -> Option<ToolApart> {
        let directory = self.tool_directory.as_ref()?;
        ToolApart::of(directory, config)
    }
}

/// The packages of a command, the first one in the version that is pinned.
fn exact(command: &InstallCommand, pinned: Option<&InstallPin>) -> Vec<PackageSpec> {
    let mut packages = command.packages.clone();
    if let (Some(pin), Some(first)) = (pinned, packages.first_mut()) {
        let extras = first.rest.split_inclusive(']').next();
        let extras = extras.filter(|extras| extras.starts_with('['));
        first.rest = match command.tool {
            Tool::Npm | Tool::Bun => format!("@{}", pin.version),
            Tool::Uv | Tool::Pip => format!("{}=={}", extras.unwrap_or_default(), pin.version),
        };
    }
    packages
}

impl Installation<'_> {
    /// Installs, unless another host did meanwhile.
    async fn run(self) -> Result<(InstallFolder, InstallRecord), LaunchError> {
        let told = |problem: String| self.failed(problem, String::new());
        if let Some(record) = self.folder.record() {
            return Ok((self.folder, record));
        }
        let tell = || {
            let server = self.server;
            let text =
                format!("another process installs the MCP server `{server}`; waiting for it");
            self.state.progress.tell(&text);
        };
        let lock = self.folder.lock(self.deadline, tell).await;
        let _lock = lock.map_err(told)?;
        if let Some(record) = self.folder.record() {
            return Ok((self.folder, record));
        }
        let begun = Instant::now();
        self.tell_begin();
        let user = self.state.config.tool_user.as_ref();
        self.folder.begin(user).await.map_err(told)?;
        let installed = match self.command.tool {
            Tool::Npm | Tool::Bun => node::install(&self).await,
            Tool::Uv | Tool::Pip => python::install(&self).await,
        };
        let record = match installed {
            Ok(record) => record,
            Err(error) => {
                self.folder.remove();
                return Err(error);
            }
        };
        self.folder.finish(&record).map_err(told)?;
        self.tell_end(&record.pin, begun.elapsed());
        Ok((self.folder, record))
    }

    fn runner(&self, program: &str) -> Result<StepRunner<'_>, LaunchError> {
        StepRunner::new(self, program)
    }

    fn tell_begin(&self) {
        let all: Vec<String> = self.packages.iter().map(PackageSpec::text).collect();
        self.state.progress.tell_once(format!(
            "installing {} for the MCP server `{}`; this happens once",
            all.join(" "),
            self.server
        ));
    }

    fn tell_end(&self, pin: &InstallPin, took: Duration) {
        self.state.progress.tell(&format!(
            "installed {} {} in {:.1} s",
            pin.package,
            pin.version,
            took.as_secs_f64()
        ));
    }

    fn failed(&self, problem: String, stderr: String) -> LaunchError {
        LaunchError::Install {
            server: self.server.clone(),
            problem,
            stderr,
        }
    }
}
