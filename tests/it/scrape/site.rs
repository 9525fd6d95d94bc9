//! A web site on loopback: HTTP/1.1 over TLS with a certificate of its own, each connection on a thread.

use std::io::{self, Read as _, Write};
use std::net::{TcpListener, TcpStream};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use tokio_rustls::rustls::pki_types::PrivatePkcs8KeyDer;
use tokio_rustls::rustls::{ServerConfig, ServerConnection, StreamOwned};

use crate::product::Product;

/// Bytes of a request's head.
const HEAD_BYTES_MAX: usize = 64 * 1024;
/// How long a server that says nothing more holds the connection, at most.
const SILENCE: Duration = Duration::from_secs(60);

type Stream = StreamOwned<ServerConnection, TcpStream>;

/// What a path is answered with.
pub(crate) struct Reply {
    status: u16,
    headers: Vec<(String, String)>,
    body: Vec<u8>,
    /// The body is repeated for as long as the client takes it.
    is_endless: bool,
    /// The connection stays open after the body, which is announced longer than it is.
    is_silent: bool,
}

impl Reply {
    pub(crate) fn status(status: u16) -> Self {
        Self {
            status,
            headers: Vec::new(),
            body: Vec::new(),
            is_endless: false,
            is_silent: false,
        }
    }

    pub(crate) fn of(media: &str, body: Vec<u8>) -> Self {
        Self {
            body,
            ..Self::status(200).header("content-type", media)
        }
    }

    pub(crate) fn html(body: impl AsRef<[u8]>) -> Self {
        Self::of("text/html; charset=utf-8", body.as_ref().to_vec())
    }

    pub(crate) fn endless(piece: Vec<u8>) -> Self {
        Self {
            is_endless: true,
            ..Self::of("text/html", piece)
        }
    }

    pub(crate) fn header(mut self, name: &str, value: &str) -> Self {
        self.headers.push((name.to_owned(), value.to_owned()));
        self
    }

    pub(crate) fn text(self, body: impl Into<Vec<u8>>) -> Self {
        Self {
            body: body.into(),
            ..self.header("content-type", "text/plain; charset=utf-8")
        }
    }

    pub(crate) fn then_silence(self) -> Self {
        Self {
            is_silent: true,
            ..self
        }
    }

    fn write(&self, stream: &mut Stream) -> io::Result<()> {
        let mut head = format!("HTTP/1.1 {} -\r\nconnection: close\r\n", self.status);
        for (name, value) in &self.headers {
            head.push_str(&format!("{name}: {value}\r\n"));
        }
        let has_length = self
            .headers
            .iter()
            .any(|(name, _)| name == "content-length")
            || matches!(self.status, 204 | 304);
        if self.is_endless {
            head.push_str("transfer-encoding: chunked\r\n");
        } else if !has_length {
            let len = self.body.len() + usize::from(self.is_silent);
            head.push_str(&format!("content-length: {len}\r\n"));
        }
        stream.write_all(head.as_bytes())?;
        stream.write_all(b"\r\n")?;
        if self.is_endless {
            loop {
                write!(stream, "{:x}\r\n", self.body.len())?;
                stream.write_all(&self.body)?;
                stream.write_all(b"\r\n")?;
            }
        }
        stream.write_all(&self.body)?;
        stream.flush()?;
        if self.is_silent {
            // Ends when the client does.
            stream.sock.set_read_timeout(Some(SILENCE))?;
            drop(stream.read(&mut [0]));
        }
        stream.conn.send_close_notify();
        stream.flush()
    }
}

/// A site that runs until the test ends.
pub(crate) struct Site {
    port: u16,
    certificate: String,
    asked: Arc<Mutex<Vec<String>>>,
}

impl Site {
    /// Starts a site that answers each path as `answer` says.
    pub(crate) fn start(answer: impl Fn(&str) -> Reply + Send + Sync + 'static) -> Self {
        let made = rcgen::generate_simple_self_signed(vec!["localhost".to_owned()]).unwrap();
        let key = PrivatePkcs8KeyDer::from(made.signing_key.serialize_der());
        let provider = Arc::new(tokio_rustls::rustls::crypto::ring::default_provider());
        let config = ServerConfig::builder_with_provider(provider)
            .with_safe_default_protocol_versions()
            .unwrap()
            .with_no_client_auth()
            .with_single_cert(vec![made.cert.der().clone()], key.into())
            .unwrap();
        let (config, answer) = (Arc::new(config), Arc::new(answer));
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let port = listener.local_addr().unwrap().port();
        let asked = Arc::new(Mutex::new(Vec::new()));
        let requests = Arc::clone(&asked);
        std::thread::spawn(move || {
            for socket in listener.incoming().flatten() {
                let (config, answer, requests) = (
                    Arc::clone(&config),
                    Arc::clone(&answer),
                    Arc::clone(&requests),
                );
                // A client that goes away is what some tests are about.
                std::thread::spawn(move || drop(serve(socket, config, &*answer, &requests)));
            }
        });
        Self {
            port,
            certificate: made.cert.pem(),
            asked,
        }
    }

    pub(crate) fn authority(&self) -> String {
        format!("localhost:{}", self.port)
    }

    pub(crate) fn url(&self, path: &str) -> String {
        format!("https://{}{path}", self.authority())
    }

    /// The heads of the requests so far.
    pub(crate) fn asked(&self) -> Vec<String> {
        self.asked.lock().unwrap().clone()
    }

    /// Writes the operator's configuration: the site is opened and its certificate trusted, and `more` tables follow.
    pub(crate) fn open_in(&self, product: &Product, more: &str) {
        let file = product.home.join("site.pem");
        std::fs::write(&file, &self.certificate).unwrap();
        let egress = format!("ca_file = \"{}\"", file.display());
        self.configure(product, &egress, more);
    }

    /// The same without the certificate.
    pub(crate) fn open_untrusted(&self, product: &Product) {
        self.configure(product, "", "");
    }

    fn configure(&self, product: &Product, egress: &str, more: &str) {
        let folder = product.home.join(".config/zeph-host");
        std::fs::create_dir_all(&folder).unwrap();
        let port = self.port;
        let private = format!("[[tools.egress.private]]\nhost = \"localhost\"\nports = [{port}]");
        let text = format!("[tools.egress]\n{egress}\n{private}\n{more}\n");
        std::fs::write(folder.join("config.toml"), text).unwrap();
    }
}

fn serve(
    socket: TcpStream,
    config: Arc<ServerConfig>,
    answer: &dyn Fn(&str) -> Reply,
    asked: &Mutex<Vec<String>>,
) -> io::Result<()> {
    let connection = ServerConnection::new(config).map_err(io::Error::other)?;
    let mut stream = StreamOwned::new(connection, socket);
    let mut head = Vec::new();
    let mut byte = [0];
    while !head.ends_with(b"\r\n\r\n") && head.len() < HEAD_BYTES_MAX {
        match stream.read(&mut byte)? {
            0 => return Ok(()),
            _ => head.push(byte[0]),
        }
    }
    let head = String::from_utf8_lossy(&head).into_owned();
    let path = head.split(' ').nth(1).unwrap_or_default().to_owned();
    asked.lock().unwrap().push(head);
    answer(&path).write(&mut stream)
}

/// The checksum at the end of gzip data.
pub(crate) fn crc32(bytes: &[u8]) -> u32 {
    !bytes.iter().fold(!0_u32, |crc, byte| {
        (0..8).fold(crc ^ u32::from(*byte), |crc, _| {
            (crc >> 1) ^ (0xedb8_8320 & (crc & 1).wrapping_neg())
        })
    })
}
