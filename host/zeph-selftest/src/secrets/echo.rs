//! A server on this machine that repeats what it is sent.

use std::io;
use std::sync::{Arc, Mutex, PoisonError};

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use tokio::io::{AsyncRead, AsyncReadExt as _, AsyncWrite, AsyncWriteExt as _};
use tokio::net::TcpListener;
use tokio::task::JoinSet;
use tokio_rustls::TlsAcceptor;
use tokio_rustls::rustls::ServerConfig;
use tokio_rustls::rustls::crypto::ring;
use tokio_rustls::rustls::pki_types::{CertificateDer, PrivateKeyDer, PrivatePkcs8KeyDer};

/// Most bytes of the head of a request.
const HEAD_BYTES_MAX: usize = 64 * 1024;

/// The server. It ends when this is dropped.
pub(super) struct EchoServer {
    pub(super) port: u16,
    authority: Option<CertificateDer<'static>>,
    received: Arc<Mutex<String>>,
    _tasks: JoinSet<()>,
}

impl EchoServer {
    /// One that speaks plain HTTP.
    pub(super) async fn plain() -> io::Result<Self> {
        Self::start(None, None).await
    }

    /// One that speaks TLS, by the name `localhost`.
    pub(super) async fn tls() -> io::Result<Self> {
        let made = rcgen::generate_simple_self_signed(vec!["localhost".to_owned()]);
        let made = made.map_err(io::Error::other)?;
        let certificate = made.cert.der().clone();
        let key = PrivatePkcs8KeyDer::from(made.signing_key.serialize_der());
        let config = ServerConfig::builder_with_provider(Arc::new(ring::default_provider()))
            .with_safe_default_protocol_versions()
            .map_err(io::Error::other)?
            .with_no_client_auth()
            .with_single_cert(vec![certificate.clone()], PrivateKeyDer::from(key))
            .map_err(io::Error::other)?;
        let acceptor = TlsAcceptor::from(Arc::new(config));
        Self::start(Some(acceptor), Some(certificate)).await
    }

    async fn start(
        acceptor: Option<TlsAcceptor>,
        authority: Option<CertificateDer<'static>>,
    ) -> io::Result<Self> {
        let listener = TcpListener::bind("127.0.0.1:0").await?;
        let port = listener.local_addr()?.port();
        let received = Arc::<Mutex<String>>::default();
        let log = Arc::clone(&received);
        let mut tasks = JoinSet::new();
        tasks.spawn(async move {
            // One after the other is enough.
            while let Ok((stream, _)) = listener.accept().await {
                let answered = match &acceptor {
                    None => answer(stream, &log).await,
                    Some(acceptor) => match acceptor.accept(stream).await {
                        Ok(stream) => answer(stream, &log).await,
                        Err(error) => Err(error),
                    },
                };
                // What a client does with it is what is looked at.
                drop(answered);
            }
        });
        Ok(Self {
            port,
            authority,
            received,
            _tasks: tasks,
        })
    }

    /// Who signed its certificate.
    pub(super) fn authority(&self) -> Option<CertificateDer<'static>> {
        self.authority.clone()
    }

    /// The heads of all requests.
    pub(super) fn received(&self) -> String {
        let received = self.received.lock();
        received.unwrap_or_else(PoisonError::into_inner).clone()
    }
}

async fn answer(
    mut stream: impl AsyncRead + AsyncWrite + Unpin,
    received: &Mutex<String>,
) -> io::Result<()> {
    let mut head = Vec::new();
    while !head.ends_with(b"\r\n\r\n") && head.len() < HEAD_BYTES_MAX {
        head.push(stream.read_u8().await?);
    }
    let head = String::from_utf8_lossy(&head).into_owned();
    received
        .lock()
        .unwrap_or_else(PoisonError::into_inner)
        .push_str(&head);
    let credential = head.lines().find_map(|line| {
        let (name, value) = line.split_once(": ")?;
        name.eq_ignore_ascii_case("authorization").then_some(value)
    });
    let credential = credential.unwrap_or_default();
    let encoded = STANDARD.encode(credential);
    let body = format!("{head}\n{encoded}\n{}\n", credential.replace(' ', "%20"));
    let fields = format!("x-echo: {credential}\r\nx-encoded: {encoded}");
    let length = body.len();
    let answer = format!(
        "HTTP/1.1 200 OK\r\n{fields}\r\ncontent-length: {length}\r\nconnection: close\r\n\r\n{body}"
    );
    stream.write_all(answer.as_bytes()).await?;
    stream.shutdown().await
}
