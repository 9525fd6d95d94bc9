//! A server on loopback that answers byte for byte as a test says, and remembers what it was asked.

use std::net::SocketAddr;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::{TcpListener, TcpStream};
use tokio::task::JoinSet;

/// What was asked.
#[derive(Debug, Clone)]
pub(super) struct Request {
    pub(super) method: String,
    /// With its query.
    pub(super) path: String,
    /// The host and port of the server.
    pub(super) host: String,
    /// The value of `Authorization`; empty when there is none.
    pub(super) authorization: String,
    pub(super) body: Vec<u8>,
}

/// What is answered.
#[derive(Debug, Clone)]
pub(super) struct Reply {
    status: u16,
    fields: String,
    body: Vec<u8>,
    length: Length,
    end: End,
}

#[derive(Debug, Clone, Copy)]
enum Length {
    /// As announced.
    Announced(usize),
    /// Until the end of the connection.
    Unknown,
}

#[derive(Debug, Clone, Copy)]
enum End {
    /// The next request.
    Stay,
    /// The connection.
    Close,
    /// Nothing, for ever.
    Hang,
    /// The body again and again, with a pause before each.
    Repeat(Duration),
}

impl Reply {
    pub(super) fn whole(status: u16, body: &[u8]) -> Self {
        Self {
            status,
            fields: String::new(),
            body: body.to_vec(),
            length: Length::Announced(body.len()),
            end: End::Stay,
        }
    }

    pub(super) fn redirect(to: &str) -> Self {
        Self::whole(307, b"").field("location", to)
    }

    pub(super) fn field(mut self, name: &str, value: &str) -> Self {
        self.fields.push_str(&format!("{name}: {value}\r\n"));
        self
    }

    /// Announces another length than it has, and ends.
    pub(super) fn announcing(self, n_bytes: usize) -> Self {
        Self {
            length: Length::Announced(n_bytes),
            end: End::Close,
            ..self
        }
    }

    /// Announces no length.
    pub(super) fn unannounced(self) -> Self {
        Self {
            length: Length::Unknown,
            end: End::Close,
            ..self
        }
    }

    /// Says nothing more after its body.
    pub(super) fn hanging(self) -> Self {
        let end = End::Hang;
        Self { end, ..self }
    }

    /// Says its body again and again.
    pub(super) fn repeated(self, pause: Duration) -> Self {
        Self {
            length: Length::Unknown,
            end: End::Repeat(pause),
            ..self
        }
    }

    fn head(&self) -> String {
        let Self { status, fields, .. } = self;
        let length = match self.length {
            Length::Announced(n_bytes) => format!("content-length: {n_bytes}\r\n"),
            Length::Unknown => "connection: close\r\n".to_owned(),
        };
        format!("HTTP/1.1 {status} Said\r\n{fields}{length}\r\n")
    }
}

pub(super) struct Server {
    address: SocketAddr,
    n_connections: Arc<AtomicUsize>,
    requests: Arc<Mutex<Vec<Request>>>,
    _tasks: JoinSet<()>,
}

impl Server {
    pub(super) async fn start(reply: impl Fn(&Request) -> Reply + Send + Sync + 'static) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address = listener.local_addr().unwrap();
        let (n_connections, requests): (Arc<AtomicUsize>, Arc<Mutex<Vec<Request>>>) =
            Default::default();
        let (counter, log, reply) = (n_connections.clone(), requests.clone(), Arc::new(reply));
        let mut tasks = JoinSet::new();
        tasks.spawn(async move {
            let mut connections = JoinSet::new();
            while let Ok((stream, _)) = listener.accept().await {
                counter.fetch_add(1, Ordering::SeqCst);
                let (log, reply) = (log.clone(), reply.clone());
                connections.spawn(async move {
                    serve(stream, &log, reply.as_ref()).await;
                });
            }
        });
        Self {
            address,
            n_connections,
            requests,
            _tasks: tasks,
        }
    }

    pub(super) fn port(&self) -> u16 {
        self.address.port()
    }

    pub(super) fn url(&self, path: &str) -> String {
        format!("http://{}{path}", self.address)
    }

    pub(super) fn n_connections(&self) -> usize {
        self.n_connections.load(Ordering::SeqCst)
    }

    pub(super) fn requests(&self) -> Vec<Request> {
        self.requests.lock().unwrap().clone()
    }

    /// Method and path of each request.
    pub(super) fn asked(&self) -> Vec<String> {
        let requests = self.requests();
        let shown = requests.iter();
        shown
            .map(|Request { method, path, .. }| format!("{method} {path}"))
            .collect()
    }
}

async fn serve(
    mut stream: TcpStream,
    log: &Mutex<Vec<Request>>,
    reply: &(dyn Fn(&Request) -> Reply + Send + Sync),
) -> Option<()> {
    loop {
        let request = read(&mut stream).await?;
        log.lock().unwrap().push(request.clone());
        let answer = reply(&request);
        stream.write_all(answer.head().as_bytes()).await.ok()?;
        if request.method != "HEAD" {
            stream.write_all(&answer.body).await.ok()?;
        }
        match answer.end {
            End::Stay => {}
            End::Close => return Some(()),
            End::Hang => std::future::pending::<()>().await,
            End::Repeat(pause) => loop {
                tokio::time::sleep(pause).await;
                stream.write_all(&answer.body).await.ok()?;
            },
        }
    }
}

async fn read(stream: &mut TcpStream) -> Option<Request> {
    let mut bytes = Vec::new();
    while !bytes.ends_with(b"\r\n\r\n") {
        bytes.push(stream.read_u8().await.ok()?);
    }
    let head = String::from_utf8(bytes).unwrap();
    let field = |name: &str| {
        let mut lines = head.lines();
        lines.find_map(|line| line.strip_prefix(name)?.strip_prefix(": "))
    };
    let n_bytes = field("content-length").map_or(0, |length| length.parse().unwrap());
    let mut body = vec![0; n_bytes];
    stream.read_exact(&mut body).await.ok()?;
    let mut line = head.split(' ');
    Some(Request {
        method: line.next()?.to_owned(),
        path: line.next()?.to_owned(),
        host: field("host")?.to_owned(),
        authorization: field("authorization").unwrap_or_default().to_owned(),
        body,
    })
}
