//! The sandbox of one server: what its operator granted it and nothing of what commands have.

use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError};

use zeph_config::{CommandServer, Config};
use zeph_core::execution::{HostUse, NetworkReport};
use zeph_core::id::ServerName;
use zeph_core::network::ExitHost;
use zeph_egress::Egress;
use zeph_egress::exit::{ExitLimits, ExitProxy, OpenExit, SecretValues, trusted_certificates};
use zeph_shell::jail::{
    EnvironmentPolicy, Jail, JailPolicy, Network, OpenOutlet, OutletDoor, Outlets, OwnDirectories,
};

use super::home::ServerHome;
use super::install::ReadyProgram;
use super::refusal::{Granted, Refusal};
use super::{LaunchError, LauncherState, home};
use crate::shell;

/// The sandbox of one server.
#[derive(Debug)]
pub(super) struct ServerJail {
    jail: Arc<Jail>,
    directory: PathBuf,
    granted: Granted,
    network: ServerNetwork,
}

/// The way out of one server, while it runs.
#[derive(Debug, Clone, Default)]
pub(super) struct ServerNetwork(Arc<Mutex<Option<OpenExit>>>);

/// Serves the way out of one server.
#[derive(Debug)]
struct ServerExit {
    proxy: ExitProxy,
    network: ServerNetwork,
}

impl ServerJail {
    /// The sandbox of a server with its home and what was installed for it. The directories it is granted are held from now on.
    ///
    /// Errors: the way out to its hosts cannot be made.
    pub(super) fn new(
        state: &LauncherState,
        name: &ServerName,
        server: &CommandServer,
        home: &ServerHome,
        program: &ReadyProgram,
    ) -> Result<Self, LaunchError> {
        let (config, secrets) = (&state.config, &state.secrets);
        let base = shell::jail_policy(config);
        let granted = Granted {
            read: server.read.clone(),
            write: server.write.clone(),
            hidden: base.hidden.clone(),
        };
        let own = OwnDirectories {
            read: program.directories.clone(),
            write: vec![home.path().to_owned()],
        };
        let policy = policy(base, server, own);
        let network = ServerNetwork::default();
        let key = format!("`mcp.servers.{name}.hosts`");
        let values = Arc::clone(secrets) as Arc<_>;
        let jail = with_exit(policy, &server.hosts, config, values, &key, &network)?;
        let watched = state.watch.clone();
        Ok(Self {
            directory: directory(config, server, home),
            jail: Arc::new(match watched {
                Some(watch) => jail.with_watch(watch),
                None => jail,
            }),
            granted,
            network,
        })
    }

    pub(super) fn jail(&self) -> Arc<Jail> {
        Arc::clone(&self.jail)
    }

    /// Why this machine can make no sandbox, if it never can. To be asked after a start: it looks at the machine the first time.
    pub(super) fn missing(&self) -> Option<String> {
        let missing = self.jail.label().err()?;
        (!missing.may_pass).then(|| missing.to_string())
    }

    /// Where the server starts.
    pub(super) fn directory(&self) -> &Path {
        &self.directory
    }

    /// What it was given.
    pub(super) fn granted(&self) -> &Granted {
        &self.granted
    }

    pub(super) fn network(&self) -> &ServerNetwork {
        &self.network
    }
}

/// What commands have as a bound of resources and as what is hidden; directories, hosts and variables are the server's own.
fn policy(base: JailPolicy, server: &CommandServer, own: OwnDirectories) -> JailPolicy {
    JailPolicy {
        roots: Vec::new(),
        spellings: server.spellings.clone(),
        allow_read: Some(server.read.clone()),
        allow_write: Some(server.write.clone()),
        network: network(&server.hosts),
        own,
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

pub(super) fn network(hosts: &[ExitHost]) -> Network {
    match hosts.is_empty() {
        true => Network::Loopback,
        false => Network::Hosts,
    }
}

/// The working directory: as configured, else that of the host where the server may read it, else its home.
fn directory(config: &Config, server: &CommandServer, home: &home::ServerHome) -> PathBuf {
    let can_read = |path: &&PathBuf| {
        let given = server.read.iter().chain(&server.write);
        given.into_iter().any(|root| path.starts_with(root))
    };
    let of_host = config.shell.allowed_paths.first().filter(can_read);
    let directory = server.directory.as_ref().or(of_host);
    directory.map_or_else(|| home.path().to_owned(), PathBuf::clone)
}

/// The jail of `policy`, whose programs reach `hosts`, which `key` lists.
///
/// Errors: the exit cannot be made.
pub(super) fn with_exit(
    policy: JailPolicy,
    hosts: &[ExitHost],
    config: &Config,
    secrets: Arc<dyn SecretValues>,
    key: &str,
    network: &ServerNetwork,
) -> Result<Jail, LaunchError> {
    let jail = Jail::new(policy);
    if hosts.is_empty() {
        return Ok(jail);
    }
    let dialer = Egress::new(&config.egress).dialer().clone();
    let trusted = || trusted_certificates(config.egress.ca_file.as_deref());
    let proxy = ExitProxy::new(
        hosts.to_vec(),
        dialer,
        ExitLimits::default(),
        trusted,
        secrets,
    );
    let proxy = proxy.map_err(|error| LaunchError::Exit(error.to_string()))?;
    Ok(jail.with_outlets(Arc::new(ServerExit {
        proxy: proxy.listed_in(key),
        network: network.clone(),
    })))
}

impl ServerNetwork {
    /// The hosts that were asked for in vain so far.
    pub(super) fn refused(&self) -> Vec<Refusal> {
        let open = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let hosts = open.as_ref().map(OpenExit::unlisted).unwrap_or_default();
        hosts.into_iter().map(Refusal::Host).collect()
    }

    /// What went through so far, by host.
    pub(super) fn hosts(&self) -> Vec<HostUse> {
        let open = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        open.as_ref().map(OpenExit::hosts).unwrap_or_default()
    }
}

impl Outlets for ServerExit {
    fn open(&self, door: OutletDoor) -> Box<dyn OpenOutlet> {
        let token = door.token.clone();
        let open = self.proxy.open(door.listener(), token);
        let mut place = self
            .network
            .0
            .lock()
            .unwrap_or_else(PoisonError::into_inner);
        *place = Some(open);
        Box::new(self.network.clone())
    }

    fn certificates(&self) -> Option<&[u8]> {
        self.proxy.certificates()
    }
}

impl OpenOutlet for ServerNetwork {
    fn close(self: Box<Self>) -> NetworkReport {
        let mut open = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        // What was refused is asked for afterwards, so the account stays.
        open.as_mut().map(OpenExit::end).unwrap_or_default()
    }
}
