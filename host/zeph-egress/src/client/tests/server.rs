//! A TLS server that says exactly what a test wants it to say, byte for byte.

use std::net::SocketAddr;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use tempfile::NamedTempFile;
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::{TcpListener, TcpStream};
use tokio::task::JoinSet;
use tokio_rustls::TlsAcceptor;
use tokio_rustls::rustls::ServerConfig;
use tokio_rustls::rustls::crypto::ring;
use tokio_rustls::rustls::pki_types::PrivatePkcs8KeyDer;

/// The names the certificate is for.
const NAMES: [&str; 6] = [
    "example.org",
    "www.example.org",
    "other.example",
    "xn--bcher-kva.example",
    "git.corp",
    "93.184.216.34",
];

/// What is said in answer to a request.
#[derive(Debug, Default)]
pub(super) struct Reply {
    bytes: Vec<u8>,
    /// Said again and again afterwards, with this pause, until nobody listens.
    repeats: Option<(Vec<u8>, Duration)>,
    /// Whether the connection stays open for another request.
    stays: bool,
}

impl Reply {
    /// Exactly these bytes, then the end of the connection.
    pub(super) fn raw(bytes: impl Into<Vec<u8>>) -> Self {
        Self {
            bytes: bytes.into(),
            ..Self::default()
        }
    }

    /// A whole response with fields, each line ended, and a body.
    pub(super) fn of(status: &str, fields: &str, body: impl AsRef<[u8]>) -> Self {
        let body = body.as_ref();
        let head = format!(
            "HTTP/1.1 {status}\r\ncontent-length: {}\r\n{fields}\r\n",
            body.len()
        );
        Self {
            bytes: [head.as_bytes(), body].concat(),
            stays: true,
            ..Self::default()
        }
    }

    pub(super) fn text(body: &str) -> Self {
        Self::of("200 OK", "", body)
    }

    pub(super) fn to(location: &str) -> Self {
        Self::of("302 Found", &format!("location: {location}\r\n"), "moved")
    }

    pub(super) fn then_for_ever(mut self, bytes: &str, pause: Duration) -> Self {
        self.repeats = Some((bytes.as_bytes().to_vec(), pause));
        self
    }
}

type Answering = dyn Fn(&str) -> Reply + Send + Sync;

pub(super) struct Server {
    pub(super) address: SocketAddr,
    /// The certificate of the authority.
    pub(super) ca_file: NamedTempFile,
    requests: Arc<Mutex<Vec<String>>>,
    _tasks: JoinSet<()>,
}

impl Server {
    /// Answers each request by its first line, such as `GET /a`. On plain connections it speaks HTTP without TLS.
    pub(super) async fn start(reply: impl Fn(&str) -> Reply + Send + Sync + 'static) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address = listener.local_addr().unwrap();
        let names = NAMES.map(str::to_owned).to_vec();
        let made = rcgen::generate_simple_self_signed(names).unwrap();
        let ca_file = NamedTempFile::new().unwrap();
        std::fs::write(ca_file.path(), made.cert.pem()).unwrap();
        let key = PrivatePkcs8KeyDer::from(made.signing_key.serialize_der());
        let config = ServerConfig::builder_with_provider(Arc::new(ring::default_provider()))
            .with_safe_default_protocol_versions()
            .unwrap()
            .with_no_client_auth()
            .with_single_cert(vec![made.cert.der().clone()], key.into())
            .unwrap();
        let acceptor = TlsAcceptor::from(Arc::new(config));
        let requests = Arc::new(Mutex::default());
        let (log, reply): (_, Arc<Answering>) = (Arc::clone(&requests), Arc::new(reply));
        let mut tasks = JoinSet::new();
        tasks.spawn(async move {
            let mut connections = JoinSet::new();
            while let Ok((stream, _)) = listener.accept().await {
                let (acceptor, log, reply) =
                    (acceptor.clone(), Arc::clone(&log), Arc::clone(&reply));
                connections.spawn(async move { connection(stream, acceptor, log, reply).await });
            }
        });
        Self {
            address,
            ca_file,
            requests,
            _tasks: tasks,
        }
    }

    /// The requests so far, whole, as they came.
    pub(super) fn requests(&self) -> Vec<String> {
        self.requests.lock().unwrap().clone()
    }
}

async fn connection(
    stream: TcpStream,
    acceptor: TlsAcceptor,
    log: Arc<Mutex<Vec<String>>>,
    reply: Arc<Answering>,
) {
    let mut first = [0];
    let is_tls = stream.peek(&mut first).await.is_ok() && first[0] == 0x16;
    if !is_tls {
        return serve(stream, log, reply).await;
    }
    if let Ok(stream) = acceptor.accept(stream).await {
        serve(stream, log, reply).await;
    }
}

async fn serve<S: tokio::io::AsyncRead + tokio::io::AsyncWrite + Unpin>(
    mut stream: S,
    log: Arc<Mutex<Vec<String>>>,
    reply: Arc<Answering>,
) {
    while let Some(request) = read_request(&mut stream).await {
        let line = request.lines().next().unwrap_or_default();
        let line = line.trim_end_matches(" HTTP/1.1").to_owned();
        log.lock().unwrap().push(request);
        let Reply {
            bytes,
            repeats,
            stays,
        } = reply(&line);
        if stream.write_all(&bytes).await.is_err() || stream.flush().await.is_err() {
            return;
        }
        if let Some((bytes, pause)) = repeats {
            while stream.write_all(&bytes).await.is_ok() && stream.flush().await.is_ok() {
                tokio::time::sleep(pause).await;
            }
        }
        if !stays {
            let _shut = stream.shutdown().await;
            return;
        }
    }
}

/// Reads a header, and as much of a body as it announces.
async fn read_request<S: tokio::io::AsyncRead + Unpin>(stream: &mut S) -> Option<String> {
    let mut bytes = Vec::new();
    while !bytes.ends_with(b"\r\n\r\n") {
        bytes.push(stream.read_u8().await.ok()?);
    }
    let head = String::from_utf8(bytes).ok()?;
    let length = head
        .lines()
        .find_map(|line| line.strip_prefix("content-length: "));
    let mut body = vec![0; length.map_or(0, |length| length.parse().unwrap())];
    stream.read_exact(&mut body).await.ok()?;
    Some(head + &String::from_utf8_lossy(&body))
}
