//! One program of an installation: in a sandbox that holds the folder of the installation and the way to the registries.

use std::collections::BTreeMap;
use std::convert::Infallible;
use std::sync::Arc;
use std::time::{Duration, Instant};

use tokio::io::AsyncReadExt as _;
use zeph_core::execution::SecretValue;
use zeph_core::exit::CommandExit;
use zeph_core::network::{ExitHost, HTTP_PORT, HTTPS_PORT, HostPattern, Inspection, Passage};
use zeph_core::secret::SecretUse;
use zeph_egress::exit::{NamedValues, SecretValues};
use zeph_egress::secret::{CallSecrets, GrantedSecret};
use zeph_shell::jail::{EnvironmentPolicy, Jail, JailLabel, JailPolicy, Network, OwnDirectories};
use zeph_shell::program::ProgramFault;
use zeph_shell::service::{Service, ServiceEnd, ServiceJob, ServicePipes};

use super::Installation;
use super::apart::ToolApart;
use crate::known_secrets::KnownSecrets;
use crate::registries::RegistryLogin;
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

/// What installers print when a registry wants to know who asks.
const LOGIN_WORDS: [&str; 5] = ["E401", "ENEEDAUTH", "401 ", "Unauthorized", "unauthorized"];

/// Said then.
const NO_LOGIN: &str = "; the registry asks for a login, and none is configured that can be used here: `//HOST/:_authToken`, `:_auth`, or `:username` and \
                        `:_password` in ~/.npmrc, and a user and a password in the address of a Python index; logins in a keyring or in ~/.netrc cannot";

/// How long an installer that has ended may take to be gone.
const END: Duration = Duration::from_secs(10);

/// Runs the programs of one installation.
#[derive(Debug)]
pub(super) struct StepRunner<'a> {
    installation: &'a Installation<'a>,
    jail: Arc<Jail>,
    network: ServerNetwork,
    apart: Option<ToolApart>,
    /// Variables that say where packages come from.
    variables: Vec<(String, String)>,
    /// Whether a registry is sent credentials.
    has_login: bool,
}

/// The credentials for registries, which the host adds to requests; the installer sees none.
#[derive(Debug)]
struct RegistrySecrets {
    known: Arc<KnownSecrets>,
    /// By the name that the uses of them have.
    logins: Vec<(SecretUse, RegistryLogin)>,
}

impl RegistrySecrets {
    /// Removes what it holds from everything that is shown from now on.
    fn new(known: &Arc<KnownSecrets>, logins: Vec<RegistryLogin>) -> Self {
        let logins = logins.into_iter().enumerate();
        let logins: Vec<(SecretUse, RegistryLogin)> = logins
            .filter_map(|(n, login)| {
                let name = format!("registry-{n}");
                let used = SecretUse::new(&name, &login.host, "authorization", None);
                Some((used.ok()?, login))
            })
            .collect();
        let secret = |(used, login): &(SecretUse, RegistryLogin)| {
            let values = login.secrets.clone().into_iter();
            let name = used.name.clone();
            values.map(move |value| SecretValue {
                name: name.clone(),
                value,
            })
        };
        known.learn(logins.iter().flat_map(secret).collect());
        Self {
            known: Arc::clone(known),
            logins,
        }
    }

    /// The registry, with its credentials if it has some.
    fn exit_host(&self, host: &str) -> Option<ExitHost> {
        let bare = exit_host(host)?;
        let login = self.logins.iter().find(|(_, login)| login.host == host);
        Some(match login {
            Some((used, _)) => ExitHost {
                passage: Passage::Inspected(Inspection {
                    secrets: vec![used.clone()],
                    ..Inspection::default()
                }),
                ..bare
            },
            None => bare,
        })
    }
}

impl SecretValues for RegistrySecrets {
    fn of_request(&self, uses: &[SecretUse], _: &[String]) -> (CallSecrets, NamedValues) {
        let granted = uses.iter().filter_map(|used| {
            let (_, login) = self.logins.iter().find(|(own, _)| own == used)?;
            Some(GrantedSecret {
                granted: used.clone(),
                value: login.authorization.clone(),
            })
        });
        let call = CallSecrets {
            granted: granted.collect(),
            known: self.known.redactor(),
            ..CallSecrets::default()
        };
        (call, NamedValues::new())
    }
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
        let registries = registries::of_program(manager, &home);
        if let Some(address) = registries.unusable.first() {
            let problem = format!(
                "{manager} is configured to use a registry at the address {address}, and registries are reached by name; give it a name"
            );
            return Err(installation.failed(problem, String::new()));
        }
        let secrets = &installation.state.secrets;
        let secrets = RegistrySecrets::new(secrets, registries.logins);
        let hosts = registries.hosts.iter();
        let hosts: Vec<ExitHost> = hosts.filter_map(|host| secrets.exit_host(host)).collect();
        let has_login = !secrets.logins.is_empty();
        let network = ServerNetwork::default();
        let apart = installation.command.apart(config);
        let prefix = apart.iter().flat_map(ToolApart::directories).collect();
        let own = OwnDirectories {
            read: prefix,
            write: vec![installation.folder.path().to_owned()],
        };
        let policy = policy(shell::jail_policy(config), own);
        let key = format!("the registries that {manager} is configured to use");
        let jail = with_exit(policy, &hosts, config, Arc::new(secrets), &key, &network)?;
        Ok(Self {
            installation,
            jail: Arc::new(jail),
            network,
            apart,
            variables: registries.variables,
            has_login,
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
        let registries = self.variables.iter().cloned();
        settings.into_iter().chain(registries).chain(path).collect()
    }

    fn not_started(&self, fault: &ProgramFault, missing: &str) -> LaunchError {
        let label = self.jail.label();
        if let Err(missing) = &label
            && !missing.may_pass
        {
            let missing = missing.to_string();
            return LaunchError::NoSandbox { missing };
        }
        let is_apart = matches!(label, Err(_) | Ok(JailLabel::Full | JailLabel::None));
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
        let asks = !self.has_login && LOGIN_WORDS.iter().any(|word| end.stderr.contains(word));
        let of_login = if asks { NO_LOGIN } else { "" };
        let problem = format!("{program} {how}{of_hosts}{other}{of_login}");
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
        private: Arc::default(),
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
