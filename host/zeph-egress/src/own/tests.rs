//! Requests of the host against a plain server on loopback that answers byte for byte as a test says.

use std::io;
use std::net::{IpAddr, SocketAddr};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use bytes::Bytes;
use http::{Method, Request};
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::{TcpListener, TcpStream};
use tokio::task::JoinSet;
use zeph_core::network::{Destination, EgressLimits, EgressSettings, Host, PrivateHost};

use super::{OwnClient, OwnError, OwnHost, OwnLimits, OwnPatience, OwnPhase};
use crate::dial::{DialError, Dialer};
use crate::{Connect, Egress, HostAccount, Pending, Resolve};

const LONG: Duration = Duration::from_secs(30);
const SHORT: Duration = Duration::from_millis(100);

/// What the server does after it has read a request.
#[derive(Clone)]
enum Reply {
    /// These bytes, then it waits for the next request.
    Stay(String),
    /// These bytes, then the end.
    Close(String),
    /// These bytes, then nothing for ever.
    Hang(String),
    /// These bytes, then the second ones again and again, that many times.
    Drip(String, &'static str, Duration, usize),
}

fn whole(status: &str, fields: &str, body: &str) -> Reply {
    let n_bytes = body.len();
    Reply::Stay(format!(
        "HTTP/1.1 {status}\r\ncontent-length: {n_bytes}\r\n{fields}\r\n{body}"
    ))
}

struct Server {
    address: SocketAddr,
    n_connections: Arc<AtomicUsize>,
    requests: Arc<Mutex<Vec<String>>>,
    _tasks: JoinSet<()>,
}

impl Server {
    async fn start(reply: impl Fn(&str) -> Reply + Send + Sync + 'static) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address = listener.local_addr().unwrap();
        let (n_connections, requests): (Arc<AtomicUsize>, Arc<Mutex<Vec<String>>>) =
            Default::default();
        let (counter, log, reply) = (n_connections.clone(), requests.clone(), Arc::new(reply));
        let mut tasks = JoinSet::new();
        tasks.spawn(async move {
            let mut connections = JoinSet::new();
            while let Ok((stream, _)) = listener.accept().await {
                counter.fetch_add(1, Ordering::SeqCst);
                let (log, reply) = (log.clone(), reply.clone());
                connections.spawn(async move { serve(stream, &log, reply.as_ref()).await });
            }
        });
        Self {
            address,
            n_connections,
            requests,
            _tasks: tasks,
        }
    }

    fn url(&self) -> String {
        format!("http://{}/api", self.address)
    }

    fn client(&self) -> OwnClient {
        OwnClient::new(&egress(), &[&self.url()], LIMITS).unwrap()
    }

    fn post(&self, body: &str) -> Request<Bytes> {
        let request = Request::post(self.url()).header("x-key", "k");
        request
            .body(Bytes::copy_from_slice(body.as_bytes()))
            .unwrap()
    }
}

async fn serve(
    mut stream: TcpStream,
    log: &Mutex<Vec<String>>,
    reply: &(dyn Fn(&str) -> Reply + Send + Sync),
) -> Option<()> {
    loop {
        let mut bytes = Vec::new();
        while !bytes.ends_with(b"\r\n\r\n") {
            bytes.push(stream.read_u8().await.ok()?);
        }
        let head = String::from_utf8(bytes).unwrap();
        let length = head
            .lines()
            .find_map(|line| line.strip_prefix("content-length: "));
        let mut body = vec![0; length.map_or(0, |length| length.parse().unwrap())];
        stream.read_exact(&mut body).await.ok()?;
        let request = head + &String::from_utf8(body).unwrap();
        log.lock().unwrap().push(request.clone());
        match reply(&request) {
            Reply::Stay(bytes) => stream.write_all(bytes.as_bytes()).await.ok()?,
            Reply::Close(bytes) => return stream.write_all(bytes.as_bytes()).await.ok(),
            Reply::Hang(bytes) => {
                stream.write_all(bytes.as_bytes()).await.ok()?;
                std::future::pending::<()>().await;
            }
            Reply::Drip(bytes, again, pause, times) => {
                stream.write_all(bytes.as_bytes()).await.ok()?;
                for _ in 0..times {
                    tokio::time::sleep(pause).await;
                    stream.write_all(again.as_bytes()).await.ok()?;
                }
            }
        }
    }
}

const LIMITS: OwnLimits = OwnLimits {
    time: LONG,
    bytes: 1024,
};

fn patience() -> OwnPatience {
    OwnPatience {
        headers: LONG,
        idle: LONG,
        total: LONG,
    }
}

fn settings() -> EgressSettings {
    EgressSettings {
        private: Arc::default(),
        proxy: None,
        ca_file: None,
        limits: EgressLimits {
            connect: LONG,
            header: LONG,
            idle: LONG,
            total: LONG,
            header_bytes: 65_536,
            body_bytes: 65_536,
            redirects: 0,
            requests: 1,
            connections: 1,
        },
    }
}

fn egress() -> Egress {
    Egress::new(&settings())
}

#[tokio::test]
async fn a_request_is_sent_as_it_is_and_its_answer_is_streamed() {
    let head = "HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\n5\r\nfirst\r\n".to_owned();
    let server =
        Server::start(move |_| Reply::Drip(head.clone(), "6\r\nsecond\r\n0\r\n\r\n", SHORT, 1))
            .await;
    let answer = server.client().send(server.post("{}"), patience()).await;
    let mut answer = answer.unwrap();
    assert_eq!(answer.status, 200);
    assert_eq!(answer.body.next().await.unwrap().unwrap(), "first");
    assert_eq!(answer.body.next().await.unwrap().unwrap(), "second");
    assert!(answer.body.next().await.unwrap().is_none());
    let requests = server.requests.lock().unwrap();
    assert!(
        requests[0].starts_with("POST /api HTTP/1.1\r\n"),
        "{requests:?}"
    );
    assert!(requests[0].contains("x-key: k\r\n"), "{requests:?}");
    assert!(requests[0].ends_with("\r\n\r\n{}"), "{requests:?}");
}

#[tokio::test]
async fn redirects_and_errors_are_answers() {
    let server = Server::start(|request| match request.starts_with("POST") {
        true => whole("307 Temporary Redirect", "location: http://other/\r\n", ""),
        false => whole("503 Service Unavailable", "retry-after: 7\r\n", "busy"),
    })
    .await;
    let client = server.client();
    let answer = client.send(server.post(""), patience()).await.unwrap();
    assert_eq!(
        (answer.status.as_u16(), &answer.headers["location"]),
        (307, &"http://other/".parse().unwrap())
    );
    let mut request = server.post("");
    *request.method_mut() = Method::DELETE;
    let answer = client.send(request, patience()).await.unwrap();
    assert_eq!(answer.headers["retry-after"], "7");
    assert_eq!(answer.beginning(2).await, "bu");
    let refused = client.get(&server.url()).await.unwrap_err();
    assert!(matches!(refused, OwnError::Status(503)), "{refused}");
}

#[tokio::test]
async fn a_connection_is_used_again_unless_a_fresh_one_is_asked_for() {
    let server = Server::start(|_| whole("200 OK", "", "good")).await;
    let client = server.client();
    for _ in 0..3 {
        let answer = client.send(server.post("x"), patience()).await.unwrap();
        assert_eq!(answer.bytes(10).await.unwrap(), "good");
    }
    assert_eq!(server.n_connections.load(Ordering::SeqCst), 1);
    let answer = client
        .send_fresh(server.post("x"), patience())
        .await
        .unwrap();
    assert_eq!(answer.bytes(10).await.unwrap(), "good");
    assert_eq!(server.n_connections.load(Ordering::SeqCst), 2);
}

#[tokio::test]
async fn a_connection_that_the_server_closed_is_not_used() {
    let reply = "HTTP/1.1 200 OK\r\ncontent-length: 4\r\n\r\ngood".to_owned();
    let server = Server::start(move |_| Reply::Close(reply.clone())).await;
    let client = server.client();
    for _ in 0..3 {
        let answer = client.send(server.post("x"), patience()).await.unwrap();
        assert_eq!(answer.bytes(10).await.unwrap(), "good");
    }
    assert_eq!(server.requests.lock().unwrap().len(), 3);
}

#[tokio::test]
async fn requests_and_bytes_are_counted_by_host_in_the_account_of_the_client() {
    let server = Server::start(|_| whole("200 OK", "", "good")).await;
    let (mine, other) = (HostAccount::default(), HostAccount::default());
    let client = server.client().counted_in(mine.clone());
    for _ in 0..2 {
        let answer = client.send(server.post("hello"), patience()).await.unwrap();
        answer.bytes(10).await.unwrap();
    }
    let counted = mine.hosts();
    let [host] = counted.as_slice() else {
        panic!("{counted:?}");
    };
    assert_eq!(host.host, server.address.to_string());
    assert_eq!((host.n_connections, host.n_refused), (2, 0));
    assert!(
        host.sent_bytes > 100 && host.received_bytes > 80,
        "{host:?}"
    );
    let next = server.client().counted_in(other.clone());
    let answer = next.send(server.post(""), patience()).await.unwrap();
    answer.bytes(10).await.unwrap();
    assert_eq!((mine.hosts(), other.hosts()[0].n_connections), (counted, 1));
    let elsewhere = OwnClient::new(&egress(), &["https://example.org/v1"], LIMITS).unwrap();
    let refusing = elsewhere
        .also(&[&server.url()])
        .unwrap()
        .counted_in(HostAccount::default());
    refusing
        .send(server.post(""), patience())
        .await
        .unwrap_err();
    assert_eq!(refusing.account().hosts()[0].n_refused, 1);
}

/// How a request ends when the server answers like this, and one limit of time is short.
async fn late(reply: Reply, shorten: impl Fn(&mut OwnPatience)) -> OwnPhase {
    let server = Server::start(move |_| reply.clone()).await;
    let mut patience = patience();
    shorten(&mut patience);
    let answer = server.client().send(server.post(""), patience).await;
    let ended = match answer {
        Ok(answer) => answer.bytes(usize::MAX).await.unwrap_err(),
        Err(error) => error,
    };
    match ended {
        OwnError::TimedOut { phase, .. } => phase,
        other => panic!("{other}"),
    }
}

#[tokio::test]
async fn each_limit_of_time_counts_by_itself() {
    let head = "HTTP/1.1 200 OK\r\n\r\nping".to_owned();
    let silent = late(Reply::Hang(String::new()), |limits| limits.headers = SHORT);
    assert_eq!(silent.await, OwnPhase::Headers);
    let paused = late(Reply::Hang(head.clone()), |limits| limits.idle = SHORT);
    assert_eq!(paused.await, OwnPhase::Idle);
    let endless = Reply::Drip(head, "p", Duration::from_millis(20), usize::MAX);
    let endless = late(endless, |limits| limits.total = 4 * SHORT);
    assert_eq!(endless.await, OwnPhase::Total);
}

#[tokio::test]
async fn any_byte_ends_a_pause() {
    let head = "HTTP/1.1 200 OK\r\nconnection: close\r\ncontent-length: 50\r\n\r\n".to_owned();
    let drip = Reply::Drip(head, "p", Duration::from_millis(30), 50);
    let server = Server::start(move |_| drip.clone()).await;
    let patience = OwnPatience {
        idle: Duration::from_secs(1),
        headers: Duration::MAX,
        total: Duration::MAX,
    };
    let answer = server.client().send(server.post(""), patience).await;
    assert_eq!(answer.unwrap().bytes(100).await.unwrap().len(), 50);
}

#[tokio::test]
async fn a_body_is_bounded_and_its_early_end_is_an_error() {
    let server = Server::start(|request| match request.contains("long") {
        true => whole("200 OK", "", &"x".repeat(2_000)),
        false => Reply::Close("HTTP/1.1 200 OK\r\ncontent-length: 9\r\n\r\nhalf".to_owned()),
    })
    .await;
    let answer = server.client().send(server.post("long"), patience()).await;
    let error = answer.unwrap().bytes(usize::MAX).await.unwrap_err();
    assert!(matches!(error, OwnError::TooLarge(1024)), "{error}");
    let answer = server.client().send(server.post("short"), patience()).await;
    let error = answer.unwrap().bytes(usize::MAX).await.unwrap_err();
    assert!(
        matches!(error, OwnError::Protocol(_)) && error.may_have_arrived(),
        "{error}"
    );
}

#[tokio::test]
async fn only_what_was_named_is_reached_and_private_hosts_only_when_the_operator_named_them() {
    let server = Server::start(|_| whole("200 OK", "", "")).await;
    let elsewhere = OwnClient::new(&egress(), &["https://example.org/v1"], LIMITS).unwrap();
    let refused = elsewhere
        .send(server.post(""), patience())
        .await
        .unwrap_err();
    assert!(matches!(refused, OwnError::Url { .. }), "{refused}");
    let discovered = elsewhere.also(&[&server.url()]).unwrap();
    let refused = discovered
        .send(server.post(""), patience())
        .await
        .unwrap_err();
    assert!(
        matches!(refused, OwnError::Dial(DialError::Forbidden { .. })),
        "{refused}"
    );
    assert!(!refused.may_have_arrived());
    assert_eq!(server.n_connections.load(Ordering::SeqCst), 0);
}

/// Every name is at this address.
#[derive(Debug)]
struct At(IpAddr);

impl Resolve for At {
    fn resolve<'a>(&'a self, _host: &'a Host) -> Pending<'a, io::Result<Vec<IpAddr>>> {
        Box::pin(async { Ok(vec![self.0]) })
    }
}

/// Every address leads to the server.
#[derive(Debug)]
struct To(SocketAddr);

impl Connect for To {
    fn connect(&self, _address: SocketAddr) -> Pending<'_, io::Result<TcpStream>> {
        Box::pin(TcpStream::connect(self.0))
    }
}

/// Nothing leads anywhere.
#[derive(Debug)]
struct Nowhere;

impl Connect for Nowhere {
    fn connect(&self, _address: SocketAddr) -> Pending<'_, io::Result<TcpStream>> {
        Box::pin(async { Err(io::Error::other("no road")) })
    }
}

#[tokio::test]
async fn a_public_host_is_reached_through_the_proxy_and_a_private_one_directly() {
    for (address, direct, proxied) in [("93.184.216.34", false, true), ("10.0.0.7", true, false)] {
        let server = Server::start(|_| whole("200 OK", "", "")).await;
        let road = |leads: bool| -> Arc<dyn Connect> {
            match leads {
                true => Arc::new(To(server.address)),
                false => Arc::new(Nowhere),
            }
        };
        let names = Arc::new(At(address.parse().unwrap()));
        let dialer = Dialer::with(names, road(direct), Arc::default()).through(road(proxied));
        let egress = Egress::with(dialer, &settings());
        let url = "http://models.example/v1";
        let client = OwnClient::new(&egress, &[url], LIMITS).unwrap();
        let request = Request::get(url).body(Bytes::new()).unwrap();
        assert_eq!(client.send(request, patience()).await.unwrap().status, 200);
        // Keys of signatures do not come over plain HTTP from elsewhere.
        assert!(matches!(client.get(url).await, Err(OwnError::Url { .. })));
    }
}

#[tokio::test]
async fn a_host_of_the_operator_is_reached_as_they_said() {
    let server = Server::start(|_| whole("200 OK", "", "")).await;
    let destination = |address: SocketAddr| Destination {
        host: address.ip().into(),
        port: address.port(),
    };
    let host = |plain_http, private| OwnHost {
        destination: destination(server.address),
        plain_http,
        private,
    };
    // What is opened for tools opens nothing here.
    let opened = Egress::new(&EgressSettings {
        private: Arc::from([PrivateHost {
            host: server.address.ip().into(),
            ports: vec![server.address.port()],
            plain_http: true,
        }]),
        ..settings()
    });
    let client = |hosts: &[OwnHost]| OwnClient::of_hosts(&opened, hosts, LIMITS);
    let sent = client(&[host(true, true)])
        .send(server.post(""), patience())
        .await;
    assert_eq!(sent.unwrap().status, 200);
    let public_only = client(&[host(true, false)]);
    let named_by_others = client(&[]).also(&[&server.url()]).unwrap();
    for client in [public_only, named_by_others] {
        let refused = client.send(server.post(""), patience()).await.unwrap_err();
        assert!(
            matches!(refused, OwnError::Dial(DialError::Forbidden { .. })),
            "{refused}"
        );
    }
    // Also where something else names the host, and where its address is public.
    let tls_only = client(&[host(false, true)]);
    let named_besides = tls_only.also(&[&server.url()]).unwrap();
    let public = client(&[host(false, false)]);
    for client in [tls_only, named_besides, public] {
        let refused = client.send(server.post(""), patience()).await.unwrap_err();
        let OwnError::Plain { destination, .. } = &refused else {
            panic!("{refused}");
        };
        assert_eq!(destination.port, server.address.port());
        assert!(!refused.may_have_arrived());
    }
    // Named without a port, as most are.
    let without_port = OwnHost {
        destination: Destination {
            port: 443,
            ..destination(server.address)
        },
        ..host(false, true)
    };
    let url = format!("http://{}/", server.address.ip());
    let client = client(&[without_port]).also(&[&url]).unwrap();
    let request = Request::post(url).body(Bytes::new()).unwrap();
    let refused = client.send(request, patience()).await.unwrap_err();
    assert!(matches!(refused, OwnError::Plain { .. }), "{refused}");
}
