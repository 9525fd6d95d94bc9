//! One program of an installation: in a sandbox that holds the folder of the installation and the way to the registries.

use std::collections::BTreeMap;
use std::convert::Infallible;
use std::sync::Arc;
use std::time::{Duration, Instant};

use tokio::io::AsyncReadExt as _;
use zeph_core::exit::CommandExit;
use zeph_core::network::{ExitHost, HTTP_PORT, HTTPS_PORT, HostPattern, Passage};
use zeph_shell::jail::{EnvironmentPolicy, Jail, JailLabel, JailPolicy, Network, OwnDirectories};
use zeph_shell::program::ProgramFault;
use zeph_shell::service::{Service, ServiceEnd, ServiceJob, ServicePipes};

use super::Installation;
use super::apart::ToolApart;
use crate::servers::launch::jail::{ServerNetwork, with_exit};
use crate::servers::launch::{LaunchError, Refusal};
use crate::{registries, shell};

/// Settings of all steps: nothing is fetched but packages, nothing asks.
const SETTINGS: [(&str, &str); 6] = [
    ("NO_UPDATE_NOTIFIER", "1"),
    ("PIP_NO_INPUT", "1"),
    ("PYTHONDONTWRITEBYTECODE", "1"),
    ("UV_NO_PROGRESS", "1"),
    ("UV_LINK_MODE", "copy"),
    ("UV_PYTHON_DOWNLOADS", "never"),
];

/// Said where nothing would keep an installer to the registries.
const NO_NAMESPACE: &str = "an installation reaches the registries and nothing else, which needs a network namespace, and there is none here; \
                            `zeph-host doctor` tells what is missing, or install the package yourself and write its program as `command`";

/// How long an installer that has ended may take to be gone.
const END: Duration = Duration::from_secs(10);

/// Runs the programs of one installation.
#[derive(Debug)]
pub(super) struct StepRunner<'a> {
    installation: &'a Installation<'a>,
    jail: Arc<Jail>,
    network: ServerNetwork,
    apart: Option<ToolApart>,
}

impl<'a> StepRunner<'a> {
    /// A sandbox with the way to the registries of `manager`, as the user configured it.
    ///
    /// Errors: it has none that can be reached by name; the way there cannot be made.
    pub(super) fn new(
        installation: &'a Installation<'a>,
        manager: &str,
    ) -> Result<Self, LaunchError> {
        let config = &installation.state.config;
        let home = config.plugins.home.clone().unwrap_or_default();
        let (hosts, unusable) = registries::of_program(manager, &home);
        if let Some(address) = unusable.first() {
            let problem = format!(
                "{manager} is configured to use a registry at the address {address}, and registries are reached by name; give it a name"
            );
            return Err(installation.failed(problem, String::new()));
        }
        let hosts: Vec<ExitHost> = hosts.iter().filter_map(|host| exit_host(host)).collect();
        let network = ServerNetwork::default();
        let apart = installation.command.apart(config);
        let prefix = apart.iter().map(|tool| tool.prefix.clone()).collect();
        let own = OwnDirectories {
            read: prefix,
            write: vec![installation.folder.path().to_owned()],
        };
        let policy = policy(shell::jail_policy(config), own);
        let key = format!("the registries that {manager} is configured to use");
        let secrets = &installation.state.secrets;
        let jail = with_exit(policy, &hosts, config, secrets, &key, &network)?;
        Ok(Self {
            installation,
            jail: Arc::new(jail),
            network,
            apart,
        })
    }

    /// Runs a program until it has ended.
    ///
    /// Errors: it cannot be started, fails, or takes too long; `missing` is what to do when there is no such program.
    pub(super) async fn run(
        &self,
        program: &str,
        arguments: &[&str],
        missing: &str,
    ) -> Result<(), LaunchError> {
        let job = ServiceJob {
            program: self.located(program),
            arguments: arguments.iter().map(|&one| one.to_owned()).collect(),
            directory: self.installation.folder.path().to_owned(),
            variables: self.variables(),
        };
        let services = &self.installation.state.services;
        let started = services.start(Arc::clone(&self.jail), job).await;
        let (service, pipes) = started.map_err(|fault| self.not_started(&fault, missing))?;
        let left = self
            .installation
            .deadline
            .saturating_duration_since(Instant::now());
        let ended = tokio::time::timeout(left, until_ended(&service, pipes)).await;
        match ended {
            Ok(end) if end.fault.is_none() && end.exit == CommandExit::Code(0) => Ok(()),
            Ok(end) => Err(self.ended(program, &end)),
            Err(_elapsed) => {
                service.stop();
                drop(tokio::time::timeout(END, service.ended()).await);
                let problem = format!("{program} did not finish within ten minutes");
                Err(self.installation.failed(problem, service.stderr_tail()))
            }
        }
    }

    /// Beside the tool whose path was configured.
    fn located(&self, program: &str) -> String {
        let directory = self.installation.command.tool_directory.as_deref();
        let apart = self.apart.as_ref().map(|tool| tool.programs.as_path());
        let beside = apart.or(directory).map(|folder| folder.join(program));
        match beside.filter(|path| path.exists()) {
            Some(path) => path.to_string_lossy().into_owned(),
            None => program.to_owned(),
        }
    }

    fn variables(&self) -> BTreeMap<String, String> {
        let settings = SETTINGS.map(|(name, value)| (name.to_owned(), value.to_owned()));
        let path = self.apart.as_ref().map(ToolApart::search_path);
        let path = path.map(|path| ("PATH".to_owned(), path));
        settings.into_iter().chain(path).collect()
    }

    fn not_started(&self, fault: &ProgramFault, missing: &str) -> LaunchError {
        if let Err(missing) = self.jail.label() {
            let missing = missing.to_owned();
            return LaunchError::NoSandbox { missing };
        }
        let is_apart = matches!(self.jail.label(), Ok(JailLabel::Full | JailLabel::None));
        let problem = match fault {
            _ if !is_apart => NO_NAMESPACE.to_owned(),
            ProgramFault::NotFound(_) => missing.to_owned(),
            other => other.to_string(),
        };
        self.installation.failed(problem, String::new())
    }

    fn ended(&self, program: &str, end: &ServiceEnd) -> LaunchError {
        let how = match (&end.fault, end.exit) {
            (Some(fault), _) => format!("could not be run in its sandbox: {fault}"),
            (None, CommandExit::Code(code)) => format!("ended with exit code {code}"),
            (None, _) => "was ended".to_owned(),
        };
        let refused = self.network.refused();
        let hosts = refused.iter().filter_map(|refusal| match refusal {
            Refusal::Host(host) => Some(host.as_str()),
            Refusal::Path { .. } => None,
        });
        let hosts: Vec<&str> = hosts.collect();
        let of_hosts = match hosts.is_empty() {
            true => String::new(),
            false => format!(
                "; it asked for {}, which is none of the registries it is configured to use",
                hosts.join(", ")
            ),
        };
        let other = end.network.notes.first().filter(|_| hosts.is_empty());
        let other = other.map_or_else(String::new, |note| format!("; {note}"));
        let problem = format!("{program} {how}{of_hosts}{other}");
        self.installation.failed(problem, end.stderr.clone())
    }
}

/// Reads what it prints, which nobody needs, until it has ended.
async fn until_ended(service: &Service, pipes: ServicePipes) -> Arc<ServiceEnd> {
    let ServicePipes { stdin, mut stdout } = pipes;
    drop(stdin);
    let mut buffer = vec![0; 16 * 1024];
    let read = async {
        while stdout
            .read(&mut buffer)
            .await
            .is_ok_and(|n_bytes| n_bytes > 0)
        {}
        std::future::pending::<Infallible>().await
    };
    tokio::select! {
        end = service.ended() => end,
        never = read => match never {},
    }
}

fn policy(base: JailPolicy, own: OwnDirectories) -> JailPolicy {
    JailPolicy {
        roots: Vec::new(),
        spellings: Vec::new(),
        allow_read: Some(Vec::new()),
        allow_write: Some(Vec::new()),
        own,
        network: Network::Hosts,
        environment: EnvironmentPolicy {
            allowed: Vec::new(),
            caches: Vec::new(),
            ..base.environment
        },
        cache: None,
        ..base
    }
}

/// A registry. At a port of its own it may speak plain HTTP.
fn exit_host(host: &str) -> Option<ExitHost> {
    let pattern: HostPattern = host.parse().ok()?;
    let port = host
        .rsplit_once(':')
        .map_or(HTTPS_PORT, |(_, port)| port.parse().unwrap_or(HTTPS_PORT));
    let passage = match port {
        HTTP_PORT | HTTPS_PORT => Passage::Tls,
        _ => Passage::Raw,
    };
    Some(ExitHost { pattern, passage })
}
