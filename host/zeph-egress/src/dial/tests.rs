use std::collections::VecDeque;
use std::io;
use std::net::{IpAddr, SocketAddr};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use tokio::net::{TcpListener, TcpStream};
use zeph_core::network::{Destination, Host, PrivateHost};

use super::{DialError, Dialer};
use crate::{Connect, ForbiddenAddress, Pending, Resolve};

/// Answers with the next list each time, and with the last one ever after.
#[derive(Debug)]
struct Answers(Mutex<VecDeque<Vec<IpAddr>>>);

impl Resolve for Answers {
    fn resolve<'a>(&'a self, host: &'a Host) -> Pending<'a, io::Result<Vec<IpAddr>>> {
        Box::pin(async move {
            if let Some(address) = host.address() {
                return Ok(vec![address]);
            }
            let mut answers = self.0.lock().unwrap();
            Ok(match answers.len() {
                1 => answers[0].clone(),
                _ => answers.pop_front().unwrap(),
            })
        })
    }
}

/// What happens to a connection, by the last byte of the address.
#[derive(Debug)]
struct Ways {
    to: SocketAddr,
    tried: Mutex<Vec<IpAddr>>,
}

impl Connect for Ways {
    fn connect(&self, address: SocketAddr) -> Pending<'_, io::Result<TcpStream>> {
        self.tried.lock().unwrap().push(address.ip());
        Box::pin(async move {
            match address.ip().to_string().chars().last() {
                Some('9') => Err(io::ErrorKind::ConnectionRefused.into()),
                Some('8') => std::future::pending().await,
                _ => TcpStream::connect(self.to).await,
            }
        })
    }
}

struct World {
    dialer: Dialer,
    ways: Arc<Ways>,
    _listener: TcpListener,
}

async fn world(answers: &[&[&str]], private: &[PrivateHost]) -> World {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let ways = Arc::new(Ways {
        to: listener.local_addr().unwrap(),
        tried: Mutex::default(),
    });
    let lists = answers
        .iter()
        .map(|list| list.iter().map(|text| text.parse().unwrap()).collect());
    let resolver = Arc::new(Answers(Mutex::new(lists.collect())));
    World {
        dialer: Dialer::with(resolver, ways.clone(), private.into()),
        ways,
        _listener: listener,
    }
}

fn destination(text: &str) -> Destination {
    Destination::parse(text, 443).unwrap()
}

fn tried(world: &World) -> Vec<String> {
    world
        .ways
        .tried
        .lock()
        .unwrap()
        .iter()
        .map(ToString::to_string)
        .collect()
}

#[tokio::test]
async fn one_forbidden_answer_refuses_all() {
    for answers in [
        &["10.0.0.1"][..],
        &["93.184.216.34", "10.0.0.1"],
        &["10.0.0.1", "93.184.216.34"],
        &["2606:4700::1", "::ffff:10.0.0.1"],
        &["93.184.216.34", "::1"],
        &["93.184.216.34", "0.0.0.0"],
    ] {
        let world = world(&[answers], &[]).await;
        let error = world
            .dialer
            .dial(&destination("example.org"))
            .await
            .unwrap_err();
        assert!(
            matches!(error, DialError::Forbidden { .. }),
            "{answers:?} {error}"
        );
        let message = error.to_string();
        assert!(message.contains("[[tools.egress.private]]"), "{message}");
        assert!(
            answers.iter().all(|answer| !message.contains(answer)),
            "{message}"
        );
        assert!(tried(&world).is_empty(), "{answers:?}");
    }
}

#[tokio::test]
async fn literals_are_checked_like_names() {
    for text in [
        "127.0.0.1",
        "0x7f.1",
        "[::1]",
        "[::ffff:8.8.8.8]",
        "169.254.169.254",
        "[64:ff9b::7f00:1]",
    ] {
        let world = world(&[&[]], &[]).await;
        let error = world.dialer.dial(&destination(text)).await.unwrap_err();
        assert!(
            matches!(error, DialError::Forbidden { .. }),
            "{text} {error}"
        );
        assert!(tried(&world).is_empty());
    }
}

#[tokio::test]
async fn a_name_that_is_rebound_is_refused() {
    let world = world(&[&["93.184.216.34"], &["127.0.0.1"]], &[]).await;
    let checked = world
        .dialer
        .check(&destination("example.org"))
        .await
        .unwrap();
    // The connection goes where the check looked, whatever the name says by then.
    let dialed = world.dialer.connect(&checked).await.unwrap();
    assert_eq!(dialed.address, "93.184.216.34:443".parse().unwrap());
    let error = world
        .dialer
        .dial(&destination("example.org"))
        .await
        .unwrap_err();
    let DialError::Forbidden { why, .. } = error else {
        panic!("{error}");
    };
    assert_eq!(why, ForbiddenAddress::Loopback);
    assert_eq!(tried(&world), ["93.184.216.34"]);
}

#[tokio::test]
async fn what_the_operator_opened_is_reached() {
    let private = PrivateHost {
        host: "git.corp".parse().unwrap(),
        ports: vec![8443],
        plain_http: false,
    };
    let world = world(&[&["10.0.0.1"]], &[private]).await;
    world
        .dialer
        .dial(&destination("git.corp:8443"))
        .await
        .unwrap();
    for other in ["git.corp", "10.0.0.1:8443", "a.git.corp:8443"] {
        let error = world.dialer.dial(&destination(other)).await.unwrap_err();
        assert!(matches!(error, DialError::Forbidden { .. }), "{other}");
    }
    assert_eq!(tried(&world), ["10.0.0.1"]);
}

#[tokio::test]
async fn addresses_race_and_only_checked_ones() {
    let world = world(&[&["2606::8", "2606::9", "93.184.216.34"]], &[]).await;
    let dialed = world
        .dialer
        .dial(&destination("example.org"))
        .await
        .unwrap();
    assert_eq!(dialed.address, "93.184.216.34:443".parse().unwrap());
    // The first connection is never made: the second is tried beside it.
    assert_eq!(tried(&world), ["2606::8", "93.184.216.34"]);
}

#[tokio::test]
async fn no_connection_is_waited_for_longer_than_the_limit() {
    let silent = world(&[&["93.184.216.8"]], &[]).await;
    let error = silent
        .dialer
        .within(Duration::from_millis(50))
        .dial(&destination("example.org"))
        .await
        .unwrap_err();
    assert!(matches!(error, DialError::TimedOut { .. }), "{error}");
    let refused = world(&[&["93.184.216.9", "2606::9"]], &[]).await;
    let error = refused
        .dialer
        .dial(&destination("example.org"))
        .await
        .unwrap_err();
    assert!(matches!(error, DialError::Connect { .. }), "{error}");
    let nobody = world(&[&[]], &[]).await;
    let error = nobody
        .dialer
        .dial(&destination("example.org"))
        .await
        .unwrap_err();
    assert!(matches!(error, DialError::NoAddress(_)), "{error}");
}
