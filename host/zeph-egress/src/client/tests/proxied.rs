//! Requests through the operator's HTTP proxy (`tools.egress.proxy`): a real one on loopback, which takes CONNECT.

use std::io;
use std::net::SocketAddr;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::{TcpListener, TcpStream};
use tokio::task::JoinSet;
use zeph_core::network::{Destination, PrivateHost};

use super::server::Reply;
use super::{PUBLIC, World, get, limits};
use crate::{DialError, EgressError, ProxyConnector};

/// What the proxy answers to every CONNECT.
#[derive(Debug, Clone, Copy)]
enum Manner {
    /// It connects to the server, with these bytes as its answer.
    Tunnels(&'static str),
    /// It answers with these bytes, and ends.
    Refuses(&'static str),
    /// It goes on with its header for ever.
    NeverEnds,
    /// It says nothing.
    IsSilent,
}

/// A proxy, and the heads of what it was asked.
struct Proxy {
    address: SocketAddr,
    asked: Arc<Mutex<Vec<String>>>,
    _tasks: JoinSet<()>,
}

impl Proxy {
    /// `server` is filled in before the first request.
    async fn start(manner: Manner, server: Arc<Mutex<Option<SocketAddr>>>) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address = listener.local_addr().unwrap();
        let asked = Arc::<Mutex<Vec<String>>>::default();
        let heads = Arc::clone(&asked);
        let mut tasks = JoinSet::new();
        tasks.spawn(async move {
            let mut connections = JoinSet::new();
            while let Ok((stream, _)) = listener.accept().await {
                let (heads, server) = (Arc::clone(&heads), *server.lock().unwrap());
                // A client that goes away is what some tests are about.
                connections.spawn(async move { drop(serve(stream, manner, server, &heads).await) });
            }
        });
        Self {
            address,
            asked,
            _tasks: tasks,
        }
    }

    fn asked(&self) -> Vec<String> {
        self.asked.lock().unwrap().clone()
    }
}

async fn serve(
    mut stream: TcpStream,
    manner: Manner,
    server: Option<SocketAddr>,
    heads: &Mutex<Vec<String>>,
) -> io::Result<()> {
    let mut head = Vec::new();
    while !head.ends_with(b"\r\n\r\n") {
        head.push(stream.read_u8().await?);
    }
    let head = String::from_utf8_lossy(&head).into_owned();
    heads.lock().unwrap().push(head);
    match manner {
        Manner::Tunnels(answer) => {
            let mut server = TcpStream::connect(server.unwrap()).await?;
            stream.write_all(answer.as_bytes()).await?;
            tokio::io::copy_bidirectional(&mut stream, &mut server).await?;
        }
        Manner::Refuses(answer) => stream.write_all(answer.as_bytes()).await?,
        Manner::NeverEnds => {
            stream.write_all(b"HTTP/1.1 200 OK\r\n").await?;
            while stream.write_all(b"x: y\r\n").await.is_ok() {}
        }
        Manner::IsSilent => drop(stream.read_u8().await?),
    }
    Ok(())
}

fn connector(address: SocketAddr) -> ProxyConnector {
    let proxy = Destination::parse(&address.to_string(), 80);
    ProxyConnector::new(proxy.unwrap())
}

/// A world whose public hosts lie behind the proxy.
async fn world(manner: Manner, private: &[PrivateHost]) -> (World, Proxy) {
    let server = Arc::default();
    let proxy = Proxy::start(manner, Arc::clone(&server)).await;
    let connector = connector(proxy.address);
    let mut limits = limits();
    if matches!(manner, Manner::IsSilent) {
        limits.connect = Duration::from_millis(500);
    }
    let reply = |_: &str| Reply::text("hello");
    let world = World::dialling(limits, private, reply, |dialer, address| {
        *server.lock().unwrap() = Some(address);
        dialer.through(Arc::new(connector))
    });
    (world.await, proxy)
}

#[tokio::test]
async fn the_proxy_is_asked_for_checked_addresses_and_tls_goes_through_it() {
    for answer in [
        "HTTP/1.1 200 Connection established\r\n\r\n",
        "HTTP/1.0 200 OK\r\nProxy-Agent: tests\r\nX: y\r\n\r\n",
    ] {
        let (world, proxy) = world(Manner::Tunnels(answer), &[]).await;
        let call = world.call(&["example.org"]);
        for _ in 0..2 {
            let got = get(&call, "https://example.org/a").await.unwrap();
            assert_eq!((got.status, got.text().as_str()), (200, "hello"));
        }
        // One tunnel is enough for both, and nothing is dialled beside it.
        let target = format!("{PUBLIC}:443");
        let expected = format!("CONNECT {target} HTTP/1.1\r\nHost: {target}\r\n\r\n");
        assert_eq!(proxy.asked(), [expected]);
        assert!(world.dialled().is_empty());
    }
}

#[tokio::test]
async fn what_is_forbidden_is_not_asked_of_the_proxy() {
    let (world, proxy) = world(Manner::Tunnels("HTTP/1.1 200 OK\r\n\r\n"), &[]).await;
    for answers in [
        &["10.0.0.1"][..],
        &["169.254.169.254"],
        &["::ffff:127.0.0.1"],
        &[PUBLIC, "192.168.0.1"],
    ] {
        world.name("example.org", &[answers]);
        let error = get(&world.call(&["example.org"]), "https://example.org/").await;
        assert!(
            matches!(error, Err(EgressError::Dial(DialError::Forbidden { .. }))),
            "{answers:?}: {error:?}"
        );
    }
    assert!(proxy.asked().is_empty(), "{:?}", proxy.asked());
    assert!(world.dialled().is_empty());
}

#[tokio::test]
async fn private_hosts_are_reached_without_it() {
    let opened = PrivateHost {
        host: "git.corp".parse().unwrap(),
        ports: vec![443],
        plain_http: false,
    };
    let (world, proxy) = world(Manner::Refuses("HTTP/1.1 403 no\r\n\r\n"), &[opened]).await;
    world.name("git.corp", &[&["10.1.2.3"]]);
    let got = get(&world.call(&["git.corp"]), "https://git.corp/").await;
    assert_eq!(got.unwrap().text(), "hello");
    assert_eq!(world.dialled(), ["10.1.2.3:443"]);
    assert!(proxy.asked().is_empty());
}

#[tokio::test]
async fn a_proxy_that_does_not_connect_is_named_with_its_key_in_time() {
    for (manner, words) in [
        (
            Manner::Refuses("HTTP/1.1 407 Proxy Authentication Required\r\n\r\n"),
            "(`tools.egress.proxy`) answers with 407",
        ),
        (
            Manner::Refuses("HTTP/1.1 302 Found\r\nlocation: https://example.org\r\n\r\n"),
            "answers with 302",
        ),
        (
            Manner::Refuses("SSH-2.0-server\r\n\r\n"),
            "(`tools.egress.proxy`) does not speak HTTP",
        ),
        (
            Manner::Refuses("HTTP/1.1 200 cut off"),
            "(`tools.egress.proxy`) closed the connection",
        ),
        (Manner::NeverEnds, "has no end"),
        (Manner::IsSilent, "example.org"),
    ] {
        let (world, proxy) = world(manner, &[]).await;
        let error = get(&world.call(&["example.org"]), "https://example.org/").await;
        let error = error.unwrap_err();
        assert!(error.to_string().contains(words), "{manner:?}: {error}");
        assert_eq!(proxy.asked().len(), 1, "{manner:?}");
        assert!(world.server.requests().is_empty(), "{manner:?}");
    }
    // Nobody listens where the proxy should be.
    let gone = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let address = gone.local_addr().unwrap();
    drop(gone);
    let connector = connector(address);
    let reply = |_: &str| Reply::text("hello");
    let world = World::dialling(limits(), &[], reply, |dialer, _| {
        dialer.through(Arc::new(connector))
    });
    let error = get(&world.await.call(&["example.org"]), "https://example.org/").await;
    let error = error.unwrap_err().to_string();
    assert!(
        error.contains("(`tools.egress.proxy`) cannot be reached"),
        "{error}"
    );
}
