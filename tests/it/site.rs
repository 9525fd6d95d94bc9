//! A TLS server on loopback, whose certificate is for `localhost`.

use std::io::{BufRead as _, BufReader, Read as _, Write as _};
use std::net::{TcpListener, TcpStream};
use std::sync::{Arc, Mutex};
use std::thread;

use tokio_rustls::rustls::crypto::ring;
use tokio_rustls::rustls::pki_types::PrivatePkcs8KeyDer;
use tokio_rustls::rustls::{ServerConfig, ServerConnection, StreamOwned};

/// A TLS server on loopback, whose certificate is for `localhost`.
pub(crate) struct Site {
    pub(crate) port: u16,
    /// In PEM.
    pub(crate) certificate: String,
    requests: Arc<Mutex<Vec<String>>>,
}

impl Site {
    /// Answers a request for a path with status and fields, and with a body.
    pub(crate) fn start(
        answer: impl Fn(&str) -> (String, Vec<u8>) + Send + Sync + 'static,
    ) -> Self {
        Self::answering(move |request| answer(request.split(' ').nth(1).unwrap_or_default()))
    }

    /// Answers a whole request, head and body, with status and fields, and with a body.
    pub(crate) fn answering(
        answer: impl Fn(&str) -> (String, Vec<u8>) + Send + Sync + 'static,
    ) -> Self {
        let made = rcgen::generate_simple_self_signed(vec!["localhost".to_owned()]).unwrap();
        let key = PrivatePkcs8KeyDer::from(made.signing_key.serialize_der());
        let config = ServerConfig::builder_with_provider(Arc::new(ring::default_provider()))
            .with_safe_default_protocol_versions()
            .unwrap()
            .with_no_client_auth()
            .with_single_cert(vec![made.cert.der().clone()], key.into());
        let config = Arc::new(config.unwrap());
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let site = Self {
            port: listener.local_addr().unwrap().port(),
            certificate: made.cert.pem(),
            requests: Arc::default(),
        };
        let (requests, answer) = (Arc::clone(&site.requests), Arc::new(answer));
        thread::spawn(move || {
            for stream in listener.incoming().flatten() {
                let (config, requests, answer) = (
                    Arc::clone(&config),
                    Arc::clone(&requests),
                    Arc::clone(&answer),
                );
                thread::spawn(move || {
                    let connection = ServerConnection::new(config).unwrap();
                    serve(StreamOwned::new(connection, stream), &requests, &*answer);
                });
            }
        });
        site
    }

    pub(crate) fn url(&self, path: &str) -> String {
        format!("https://localhost:{}{path}", self.port)
    }

    pub(crate) fn requests(&self) -> Vec<String> {
        self.requests.lock().unwrap().clone()
    }
}

fn serve(
    stream: StreamOwned<ServerConnection, TcpStream>,
    requests: &Mutex<Vec<String>>,
    answer: &dyn Fn(&str) -> (String, Vec<u8>),
) {
    let mut stream = BufReader::new(stream);
    loop {
        let mut head = String::new();
        while !head.ends_with("\r\n\r\n") {
            if !matches!(stream.read_line(&mut head), Ok(n) if n > 0) {
                return;
            }
        }
        let chunked = head.contains("transfer-encoding: chunked");
        while chunked && !head.ends_with("\r\n0\r\n\r\n") {
            let mut byte = [0];
            if stream.read_exact(&mut byte).is_err() {
                return;
            }
            head.push(char::from(byte[0]));
        }
        let lower = head.to_ascii_lowercase();
        let length = lower.split_once("content-length: ").map(|(_, rest)| rest);
        let length = length.and_then(|rest| rest.split("\r\n").next()?.parse().ok());
        let mut body = vec![0; length.unwrap_or_default()];
        if stream.read_exact(&mut body).is_err() {
            return;
        }
        head.push_str(&String::from_utf8_lossy(&body));
        requests.lock().unwrap().push(head.clone());
        let (fields, body) = answer(&head);
        let head = format!(
            "HTTP/1.1 {fields}\r\ncontent-length: {}\r\n\r\n",
            body.len()
        );
        let stream = stream.get_mut();
        if stream
            .write_all(head.as_bytes())
            .and_then(|()| stream.write_all(&body))
            .is_err()
        {
            return;
        }
    }
}
