//! The exit for commands: a proxy on the loopback of a jail, and for its commands the only way to any host.
//!
//! A run of a command has an exit of its own: a listening socket in its network, a password, an account of what went through. What
//! arrives is a request of an HTTP proxy (`front`) or of SOCKS 5 (`socks`). Its target is a name that the operator's list must allow
//! (`rules`) and the dialer must find at an address that may be reached. Then, before anything is sent to the host, the first
//! message of TLS must ask for that very server (`hello`, `tunnel`). Where the operator wants it, TLS ends here, and every request
//! is looked at (`inspect`). Everything of an exit ends when it is dropped.

use std::collections::BTreeMap;
use std::fmt::Debug;
use std::io;
use std::net::TcpListener as StdListener;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use tokio::net::{TcpListener, TcpStream};
use tokio::runtime::Handle;
use tokio::sync::Semaphore;
use tokio::task::JoinSet;
use tokio_rustls::rustls::pki_types::CertificateDer;
use zeph_core::execution::{HostUse, NetworkReport};
use zeph_core::network::{ExitHost, Passage};
use zeph_core::secret::SecretUse;

use crate::Dialer;
use crate::secret::CallSecrets;

mod authority;
mod forward;
mod front;
mod hello;
mod inspect;
mod meter;
mod placeholders;
mod retry;
mod rules;
mod run;
mod socks;
mod tunnel;

pub use self::authority::{AuthorityError, trusted_certificates};

use self::authority::{Authority, bundle_of};
use self::meter::Allowance;
use self::placeholders::Placeholders;
use self::rules::ExitRules;
use self::run::{Opening, Run, Upstream};
use crate::ledger::Ledger;

/// The name that goes with the password of a run.
const USER: &str = "zeph";

/// Bounds of one exit.
#[derive(Debug, Clone, Copy)]
pub struct ExitLimits {
    /// Connections at one time; more wait until one has ended.
    pub connections_max: usize,
    /// From the beginning of a connection until it is known what it asks for; and until TLS with an inspected host has begun.
    pub request_timeout: Duration,
    /// From there until the first message of TLS is whole.
    pub hello_timeout: Duration,
    /// How long nothing may move on a connection.
    pub idle_timeout: Duration,
    /// Bytes of all connections together, both ways.
    pub bytes_max: u64,
}

impl Default for ExitLimits {
    /// Package managers open some fifty connections at once; a server may think for minutes before it answers; the tools of a large
    /// project come to some gigabytes.
    fn default() -> Self {
        Self {
            connections_max: 128,
            request_timeout: Duration::from_secs(10),
            hello_timeout: Duration::from_secs(5),
            idle_timeout: Duration::from_secs(300),
            bytes_max: 64 << 30,
        }
    }
}

/// Gives the values of secrets for the requests of commands (`secrets` of an inspected host), and what no response may hold.
pub trait SecretValues: Debug + Send + Sync {
    /// What a request gets now by `uses`, and those of `names` that have a value. All of it is of one moment: what no response may hold has
    /// every value that is given.
    fn of_request(&self, uses: &[SecretUse], names: &[String]) -> (CallSecrets, NamedValues);
}

/// The values of secrets, by name.
pub type NamedValues = BTreeMap<String, String>;

/// The exits of the commands of one configuration.
#[derive(Debug)]
pub struct ExitProxy {
    settings: Arc<ExitState>,
    handle: Handle,
}

/// What all exits share.
#[derive(Debug)]
struct ExitState {
    rules: ExitRules,
    dialer: Dialer,
    limits: ExitLimits,
    /// Where TLS ends here; none where no host wants it.
    authority: Option<Authority>,
    /// What commands trust where TLS ends nowhere here; none where that is what the machine trusts.
    bundle: Option<Vec<u8>>,
    secrets: Arc<dyn SecretValues>,
    placeholders: Placeholders,
}

/// The exit of one run. Dropping it closes it with every connection.
#[derive(Debug)]
pub struct OpenExit {
    ledger: Arc<Ledger>,
    tasks: JoinSet<()>,
}

impl ExitProxy {
    /// The exits to `hosts`. `trusted` are the certificates by which servers are believed where TLS ends here; it is not asked for them
    /// where it ends nowhere. To be called within a runtime, which serves the exits.
    ///
    /// Errors: the authority that signs for inspected hosts cannot be made, or of `trusted`.
    pub fn new(
        hosts: Vec<ExitHost>,
        dialer: Dialer,
        limits: ExitLimits,
        trusted: impl FnOnce() -> Result<Vec<CertificateDer<'static>>, AuthorityError>,
        secrets: Arc<dyn SecretValues>,
    ) -> Result<Self, AuthorityError> {
        let inspects = |host: &ExitHost| matches!(host.passage, Passage::Inspected(_));
        let authority = match hosts.iter().any(inspects) {
            true => Some(Authority::new(&trusted()?)?),
            false => None,
        };
        let placeholders = Placeholders::new(&hosts).map_err(|_| AuthorityError::Random)?;
        let settings = ExitState {
            rules: ExitRules::new(hosts),
            dialer,
            limits,
            authority,
            bundle: None,
            secrets,
            placeholders,
        };
        Ok(Self {
            settings: Arc::new(settings),
            handle: Handle::current(),
        })
    }

    /// The same, whose messages name `key` as what lists the hosts. To be called before anything is served.
    #[must_use]
    pub fn listed_in(mut self, key: &str) -> Self {
        if let Some(settings) = Arc::get_mut(&mut self.settings) {
            settings.rules.set_key(key.to_owned());
        }
        self
    }

    /// Has commands trust exactly these certificates, even if no host is inspected. Must be called before anything is served.
    #[must_use]
    pub fn trusting(mut self, certificates: &[CertificateDer<'static>]) -> Self {
        if let Some(settings) = Arc::get_mut(&mut self.settings) {
            settings.bundle = Some(bundle_of(certificates).into_bytes());
        }
        self
    }

    /// The certificates that commands must trust, as the content of a PEM file: those that are trusted here, and that of the authority where hosts
    /// are inspected. None where they are those of the machine.
    pub fn certificates(&self) -> Option<&[u8]> {
        let authority = self.settings.authority.as_ref().map(Authority::bundle);
        authority.or(self.settings.bundle.as_deref())
    }

    /// What commands hold in the place of secrets: names of variables, and their values.
    pub fn variables(&self) -> Vec<(String, String)> {
        let all = self.settings.placeholders.all();
        all.map(|(name, text)| (name.to_owned(), text.to_owned()))
            .collect()
    }

    /// Serves the exit of one run, whose password is `token`, on the socket that `listener` gives. Never blocks.
    pub fn open(
        &self,
        listener: impl Future<Output = io::Result<StdListener>> + Send + 'static,
        token: String,
    ) -> OpenExit {
        let ledger = Arc::new(Ledger::default());
        let credentials = STANDARD.encode(format!("{USER}:{token}"));
        let run = Arc::new(Run {
            shared: Arc::clone(&self.settings),
            credentials: format!("Basic {credentials}"),
            token,
            ledger: Arc::clone(&ledger),
            allowance: Arc::new(Allowance::new(self.settings.limits.bytes_max)),
            upstreams: Mutex::default(),
        });
        let mut tasks = JoinSet::new();
        let serving = async move {
            let served = serve(run, listener).await;
            if let Err(error) = served {
                tracing::debug!(%error, "the exit of a command is not served");
            }
        };
        tasks.spawn_on(serving, &self.handle);
        OpenExit { ledger, tasks }
    }
}

impl OpenExit {
    /// Closes every connection and opens none any more, and says what went through. [`Self::unlisted`] can still be asked.
    pub fn end(&mut self) -> NetworkReport {
        self.tasks.abort_all();
        self.ledger.report()
    }

    /// What went through so far, by host.
    pub fn hosts(&self) -> Vec<HostUse> {
        self.ledger.report().hosts
    }

    /// The hosts that were asked for and are not listed, as the operator would list them. Bounded; sorted.
    pub fn unlisted(&self) -> Vec<String> {
        self.ledger.unlisted()
    }

    /// Closes it, and says what went through.
    pub fn close(self) -> NetworkReport {
        self.ledger.report()
    }
}

async fn serve(
    run: Arc<Run>,
    listener: impl Future<Output = io::Result<StdListener>>,
) -> io::Result<()> {
    let listener = TcpListener::from_std(listener.await?)?;
    let seats = Arc::new(Semaphore::new(run.shared.limits.connections_max));
    let mut connections = JoinSet::new();
    loop {
        let Ok(seat) = Arc::clone(&seats).acquire_owned().await else {
            return Ok(());
        };
        let accepted = tokio::select! {
            accepted = listener.accept() => accepted,
            Some(_) = connections.join_next() => continue,
        };
        let Ok((stream, _)) = accepted else {
            // What is missing, such as a free descriptor, is not there again at once.
            tokio::time::sleep(Duration::from_millis(20)).await;
            continue;
        };
        let run = Arc::clone(&run);
        connections.spawn(async move {
            let _seat = seat;
            if let Err(error) = connection(&run, stream).await {
                tracing::debug!(%error, "a connection of a command to its exit failed");
            }
        });
    }
}

/// One connection: its first byte says what it speaks.
async fn connection(run: &Arc<Run>, stream: TcpStream) -> io::Result<()> {
    stream.set_nodelay(true)?;
    let mut first = [0];
    let patience = run.shared.limits.request_timeout;
    tokio::time::timeout(patience, stream.peek(&mut first)).await??;
    match first {
        [socks::VERSION] => by_socks(run, stream).await,
        _ => front::serve(run, stream).await,
    }
}

async fn by_socks(run: &Arc<Run>, mut stream: TcpStream) -> io::Result<()> {
    use socks::{Reply, SocksRequest};
    let patience = run.shared.limits.request_timeout;
    let reading = socks::read(&mut stream, USER, &run.token);
    let request = tokio::time::timeout(patience, reading).await??;
    let refusal = match request {
        SocksRequest::Stranger => return Ok(()),
        SocksRequest::OtherCommand => Reply::NoSuchCommand,
        SocksRequest::ByAddress => {
            run.ledger.note(BY_ADDRESS);
            Reply::NoSuchAddress
        }
        SocksRequest::Connect(authority) => match run.opening(&authority).await {
            Ok(opening) => {
                socks::answer(&mut stream, Reply::Granted).await?;
                return tunnel::run(run, stream, opening).await;
            }
            Err(_told) => Reply::NotAllowed,
        },
    };
    socks::answer(&mut stream, refusal).await
}

/// Said of a SOCKS client that resolves names itself.
const BY_ADDRESS: &str = "a connection by address was refused: hosts are reached by name, for SOCKS with `socks5h://`, so that the host's \
                          resolver finds their addresses";

#[cfg(test)]
mod tests;
