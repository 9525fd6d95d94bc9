//! The exit against real servers on this machine's loopback, which a resolver and a connector of the tests let look like public hosts.

use std::collections::HashMap;
use std::net::{IpAddr, SocketAddr};
use std::sync::atomic::{AtomicUsize, Ordering};

use rcgen::{BasicConstraints, CertificateParams, CertifiedIssuer, IsCa, KeyPair};
use tokio::io::{AsyncRead, AsyncReadExt as _, AsyncWrite, AsyncWriteExt as _};
use tokio_rustls::rustls::crypto::ring;
use tokio_rustls::rustls::pki_types::{CertificateDer, PrivateKeyDer};
use tokio_rustls::rustls::{ClientConfig, RootCertStore, ServerConfig};
use tokio_rustls::{TlsAcceptor, TlsConnector};
use zeph_core::execution::SecretValue;
use zeph_core::network::{Host, Inspection, PrivateHost};
use zeph_core::redact::Redactor;

use super::*;
use crate::secret::GrantedSecret;
use crate::{Connect, Pending, Resolve};

mod by_socks;
mod inspected;
mod plain;
mod tunnels;

/// A public address; nothing is ever sent there.
const PUBLIC: [u8; 4] = [93, 184, 215, 14];

const TOKEN: &str = "0123456789abcdef";

/// Names, and where their servers really are.
#[derive(Debug, Default, Clone)]
struct World {
    /// Where a name lies.
    addresses: HashMap<String, IpAddr>,
    /// The port on the loopback that stands for one of a public address.
    ports: HashMap<u16, u16>,
    n_dialled: Arc<AtomicUsize>,
}

impl Resolve for World {
    fn resolve<'a>(&'a self, host: &'a Host) -> Pending<'a, io::Result<Vec<IpAddr>>> {
        let found = host
            .name()
            .and_then(|name| self.addresses.get(name).copied());
        Box::pin(async move { Ok(found.into_iter().collect()) })
    }
}

impl Connect for World {
    fn connect(&self, address: SocketAddr) -> Pending<'_, io::Result<TcpStream>> {
        self.n_dialled.fetch_add(1, Ordering::Relaxed);
        let port = self.ports.get(&address.port()).copied();
        Box::pin(async move {
            let port = port.ok_or(io::ErrorKind::ConnectionRefused)?;
            TcpStream::connect(("127.0.0.1", port)).await
        })
    }
}

/// One secret, `KEY`, with a value.
#[derive(Debug)]
struct Kept;

const VALUE: &str = "Bearer the-value-of-the-secret";

impl SecretValues for Kept {
    fn of_request(&self, uses: &[SecretUse], names: &[String]) -> (CallSecrets, NamedValues) {
        let granted = uses.iter().cloned().map(|granted| GrantedSecret {
            granted,
            value: VALUE.to_owned(),
        });
        let call = CallSecrets {
            granted: granted.collect(),
            unset: [].into(),
            known: Redactor::new(&[SecretValue {
                name: "KEY".to_owned(),
                value: VALUE.to_owned(),
            }]),
        };
        let stored = names.iter().filter(|name| *name == "KEY");
        let stored = stored.map(|name| (name.clone(), VALUE.to_owned()));
        (call, stored.collect())
    }
}

/// Servers, an exit to them, and who asks.
struct Lab {
    authority: Vec<CertificateDer<'static>>,
    world: World,
    proxy: ExitProxy,
    exit: Option<OpenExit>,
    address: SocketAddr,
    _servers: JoinSet<()>,
}

/// An authority that clients here trust, and the server side of `names`. The first guess of a client at how keys are agreed on does not
/// suit it where it `asks_again`.
fn certified(names: &[&str], asks_again: bool) -> (CertificateDer<'static>, ServerConfig) {
    let mut params = CertificateParams::default();
    params.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
    let issuer = CertifiedIssuer::self_signed(params, KeyPair::generate().unwrap()).unwrap();
    let key = KeyPair::generate().unwrap();
    let names: Vec<String> = names.iter().map(|&name| name.to_owned()).collect();
    let leaf = CertificateParams::new(names).unwrap();
    let leaf = leaf.signed_by(&key, &issuer).unwrap();
    let key = PrivateKeyDer::Pkcs8(key.serialize_der().into());
    let mut provider = ring::default_provider();
    if asks_again {
        provider.kx_groups = vec![ring::kx_group::SECP384R1];
    }
    let server = ServerConfig::builder_with_provider(Arc::new(provider))
        .with_safe_default_protocol_versions()
        .unwrap()
        .with_no_client_auth()
        .with_single_cert(vec![leaf.der().clone()], key)
        .unwrap();
    (issuer.der().clone(), server)
}

fn trusting(authorities: &[CertificateDer<'static>]) -> Arc<ClientConfig> {
    let mut roots = RootCertStore::empty();
    for one in authorities {
        roots.add(one.clone()).unwrap();
    }
    let config = ClientConfig::builder()
        .with_root_certificates(roots)
        .with_no_client_auth();
    Arc::new(config)
}

fn exit_host(pattern: &str, passage: Passage) -> ExitHost {
    ExitHost {
        pattern: pattern.parse().unwrap(),
        passage,
    }
}

/// Hosts reached by TLS.
fn tls(patterns: &[&str]) -> Vec<ExitHost> {
    let hosts = patterns.iter();
    hosts
        .map(|pattern| exit_host(pattern, Passage::Tls))
        .collect()
}

/// Answers a request of HTTP with its own head as the body, and with its `authorization` behind the status, whatever it is; what is no
/// request with itself.
async fn echo<S: AsyncRead + AsyncWrite + Unpin>(mut stream: S) -> io::Result<()> {
    let mut seen = Vec::new();
    let mut buffer = [0; 4096];
    while !seen.ends_with(b"\r\n\r\n") {
        let n_bytes = stream.read(&mut buffer).await?;
        if n_bytes == 0 {
            return Ok(());
        }
        seen.extend_from_slice(&buffer[..n_bytes]);
    }
    let text = String::from_utf8_lossy(&seen);
    let sent = text.split("\r\n");
    let mut reason = sent.filter_map(|line| line.strip_prefix("authorization: "));
    let head = format!(
        "HTTP/1.1 200 {}\r\ncontent-length: {}\r\nconnection: close\r\n\r\n",
        reason.next().unwrap_or("OK"),
        seen.len()
    );
    stream.write_all(head.as_bytes()).await?;
    stream.write_all(&seen).await?;
    stream.shutdown().await
}

impl Lab {
    async fn new(hosts: Vec<ExitHost>) -> Self {
        Self::with(hosts, ExitLimits::default()).await
    }

    async fn with(hosts: Vec<ExitHost>, limits: ExitLimits) -> Self {
        Self::serving(hosts, limits, false).await
    }

    /// Names below `example.org` and `example.net` have a public address, where a TLS server stands for 443 and 8443, and a plain
    /// one for 80 and 22; `inner.example.org` lies on the loopback.
    async fn serving(hosts: Vec<ExitHost>, limits: ExitLimits, asks_again: bool) -> Self {
        let names = ["example.org", "*.example.org", "example.net"];
        let (authority, server) = certified(&names, asks_again);
        let acceptor = TlsAcceptor::from(Arc::new(server));
        let secure = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let plain = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let port = |listener: &TcpListener| listener.local_addr().unwrap().port();
        let ports = HashMap::from([
            (443, port(&secure)),
            (8443, port(&secure)),
            (80, port(&plain)),
            (22, port(&plain)),
        ]);
        let mut world = World {
            ports,
            ..World::default()
        };
        for name in ["example.org", "a.example.org", "example.net"] {
            world.addresses.insert(name.to_owned(), PUBLIC.into());
        }
        let inner = IpAddr::from([127, 0, 0, 1]);
        world
            .addresses
            .insert("inner.example.org".to_owned(), inner);
        let mut servers = JoinSet::new();
        servers.spawn(async move {
            let mut connections = JoinSet::new();
            loop {
                tokio::select! {
                    accepted = secure.accept() => {
                        let (stream, acceptor) = (accepted.unwrap().0, acceptor.clone());
                        connections.spawn(async move { echo(acceptor.accept(stream).await?).await });
                    }
                    accepted = plain.accept() => {
                        connections.spawn(echo(accepted.unwrap().0));
                    }
                }
            }
        });
        let dialer = Dialer::with(Arc::new(world.clone()), Arc::new(world.clone()), [].into());
        let authority = vec![authority];
        let proxy = ExitProxy::new(
            hosts,
            dialer,
            limits,
            || Ok(authority.clone()),
            Arc::new(Kept),
        )
        .unwrap();
        let (exit, address) = open(&proxy, TOKEN);
        Self {
            authority,
            world,
            proxy,
            exit: Some(exit),
            address,
            _servers: servers,
        }
    }

    /// The same world behind another exit.
    fn reopen(
        &mut self,
        hosts: Vec<ExitHost>,
        private: &[PrivateHost],
        trusted: CertificateDer<'static>,
    ) {
        let world = Arc::new(self.world.clone());
        let dialer = Dialer::with(Arc::clone(&world) as _, world, private.into());
        let limits = ExitLimits::default();
        self.proxy =
            ExitProxy::new(hosts, dialer, limits, || Ok(vec![trusted]), Arc::new(Kept)).unwrap();
        let (exit, address) = open(&self.proxy, TOKEN);
        (self.exit, self.address) = (Some(exit), address);
    }

    async fn stream(&self) -> TcpStream {
        TcpStream::connect(self.address).await.unwrap()
    }

    /// Asks for a tunnel; gives the connection and the head of the answer with its body, if it is refused.
    async fn connect(&self, authority: &str) -> (TcpStream, String) {
        let mut stream = self.stream().await;
        let request = format!(
            "CONNECT {authority} HTTP/1.1\r\nhost: {authority}\r\nproxy-authorization: {}\r\n\r\n",
            basic(TOKEN)
        );
        stream.write_all(request.as_bytes()).await.unwrap();
        let answer = answer(&mut stream).await;
        (stream, answer)
    }

    /// The account until now.
    fn report(&self) -> NetworkReport {
        self.exit.as_ref().unwrap().ledger.report()
    }

    fn n_dialled(&self) -> usize {
        self.world.n_dialled.load(Ordering::Relaxed)
    }

    /// A request through a tunnel to `authority`, by TLS that asks for `name`.
    async fn fetch(&self, authority: &str, name: &str) -> io::Result<String> {
        let (stream, head) = self.connect(authority).await;
        assert!(head.starts_with("HTTP/1.1 200"), "{head}");
        self.fetch_over(stream, name, &get(name)).await
    }

    async fn fetch_over(&self, stream: TcpStream, name: &str, request: &str) -> io::Result<String> {
        let mut trusted = self.authority.clone();
        if let Some(own) = &self.proxy.settings.authority {
            trusted.push(own.certificate());
        }
        let connector = TlsConnector::from(trusting(&trusted));
        let mut stream = connector
            .connect(name.to_owned().try_into().unwrap(), stream)
            .await?;
        stream.write_all(request.as_bytes()).await?;
        let mut text = String::new();
        stream.read_to_string(&mut text).await?;
        Ok(text)
    }
}

fn get(host: &str) -> String {
    format!("GET /x HTTP/1.1\r\nhost: {host}\r\n\r\n")
}

fn basic(token: &str) -> String {
    format!("Basic {}", STANDARD.encode(format!("{USER}:{token}")))
}

fn open(proxy: &ExitProxy, token: &str) -> (OpenExit, SocketAddr) {
    let listener = StdListener::bind("127.0.0.1:0").unwrap();
    listener.set_nonblocking(true).unwrap();
    let address = listener.local_addr().unwrap();
    let exit = proxy.open(async move { Ok(listener) }, token.to_owned());
    (exit, address)
}

/// A head of HTTP, and the body its length speaks of.
async fn answer(stream: &mut TcpStream) -> String {
    let mut text = Vec::new();
    let mut wanted = usize::MAX;
    let mut byte = [0];
    while text.len() < wanted && stream.read(&mut byte).await.unwrap_or(0) == 1 {
        text.push(byte[0]);
        if wanted == usize::MAX && text.ends_with(b"\r\n\r\n") {
            let head = String::from_utf8_lossy(&text).to_ascii_lowercase();
            let length = head.split("content-length: ").nth(1);
            let length = length.and_then(|rest| rest.split('\r').next()?.parse::<usize>().ok());
            wanted = text.len() + length.unwrap_or(0);
        }
    }
    String::from_utf8_lossy(&text).into_owned()
}

/// What a connection gives until its end.
async fn rest(stream: &mut TcpStream) -> Vec<u8> {
    let mut bytes = Vec::new();
    drop(stream.read_to_end(&mut bytes).await);
    bytes
}
