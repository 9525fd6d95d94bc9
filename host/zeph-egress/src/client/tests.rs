//! Requests against a real TLS server on loopback. What a name resolves to and where an address leads is the world's.

mod bodies;
mod proxied;
mod redirects;
mod requests;
mod secrets;
mod server;

use std::collections::{HashMap, VecDeque};
use std::io;
use std::net::{IpAddr, SocketAddr};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use bytes::Bytes;
use http::{Method, Request};
use http_body_util::{BodyExt as _, Empty, Full};
use tokio::net::TcpStream;
use zeph_core::network::{EgressLimits, EgressSettings, Host, HostAccess, PrivateHost};

use self::server::{Reply, Server};
use super::{CallExit, Egress, Patience};
use crate::secret::CallSecrets;
use crate::{Connect, Dialer, EgressError, Pending, RequestBody, Resolve};

/// A public address; whatever is there is the server.
const PUBLIC: &str = "93.184.216.34";

/// Names to the answers they give, one after the other; the last one stays.
#[derive(Debug, Default)]
struct Names(Mutex<HashMap<String, VecDeque<Vec<IpAddr>>>>);

impl Resolve for Names {
    fn resolve<'a>(&'a self, host: &'a Host) -> Pending<'a, io::Result<Vec<IpAddr>>> {
        Box::pin(async move {
            let Some(name) = host.name() else {
                return Ok(host.address().into_iter().collect());
            };
            let mut names = self.0.lock().unwrap();
            let Some(answers) = names.get_mut(name) else {
                return Ok(vec![PUBLIC.parse().unwrap()]);
            };
            Ok(match answers.len() {
                1 => answers[0].clone(),
                _ => answers.pop_front().unwrap(),
            })
        })
    }
}

/// Every address leads to the server; which were dialled is kept.
#[derive(Debug)]
struct Roads {
    to: SocketAddr,
    dialled: Mutex<Vec<SocketAddr>>,
}

impl Connect for Roads {
    fn connect(&self, address: SocketAddr) -> Pending<'_, io::Result<TcpStream>> {
        self.dialled.lock().unwrap().push(address);
        Box::pin(TcpStream::connect(self.to))
    }
}

struct World {
    egress: Egress,
    roads: Arc<Roads>,
    names: Arc<Names>,
    server: Server,
}

fn limits() -> EgressLimits {
    EgressLimits {
        connect: Duration::from_secs(5),
        header: Duration::from_secs(5),
        idle: Duration::from_secs(5),
        total: Duration::from_secs(10),
        header_bytes: 64 * 1024,
        body_bytes: 1024 * 1024,
        redirects: 3,
        requests: 50,
        connections: 4,
    }
}

impl World {
    /// A server that answers by `reply`, and an egress that trusts it.
    async fn new(reply: impl Fn(&str) -> Reply + Send + Sync + 'static) -> Self {
        Self::with(limits(), &[], reply).await
    }

    async fn with(
        limits: EgressLimits,
        private: &[PrivateHost],
        reply: impl Fn(&str) -> Reply + Send + Sync + 'static,
    ) -> Self {
        Self::dialling(limits, private, reply, |dialer, _| dialer).await
    }

    /// One whose egress dials as `change` says of a dialer and the address of the server.
    async fn dialling(
        limits: EgressLimits,
        private: &[PrivateHost],
        reply: impl Fn(&str) -> Reply + Send + Sync + 'static,
        change: impl FnOnce(Dialer, SocketAddr) -> Dialer,
    ) -> Self {
        let server = Server::start(reply).await;
        let roads = Arc::new(Roads {
            to: server.address,
            dialled: Mutex::default(),
        });
        let names = Arc::new(Names::default());
        let settings = EgressSettings {
            private: private.into(),
            proxy: None,
            ca_file: Some(server.ca_file.path().to_owned()),
            limits,
        };
        let dialer = Dialer::with(names.clone(), roads.clone(), private.into());
        Self {
            egress: Egress::with(change(dialer, server.address), &settings),
            roads,
            names,
            server,
        }
    }

    fn name(&self, name: &str, answers: &[&[&str]]) {
        let lists = answers.iter();
        let lists = lists.map(|list| list.iter().map(|text| text.parse().unwrap()).collect());
        let mut names = self.names.0.lock().unwrap();
        names.insert(name.to_owned(), lists.collect());
    }

    fn call(&self, hosts: &[&str]) -> CallExit {
        let hosts: Vec<_> = hosts.iter().map(|text| text.parse().unwrap()).collect();
        self.call_with(&hosts, CallSecrets::default())
    }

    fn call_with(&self, hosts: &[HostAccess], secrets: CallSecrets) -> CallExit {
        self.egress.of_call("plugin".into(), hosts.into(), secrets)
    }

    fn dialled(&self) -> Vec<String> {
        let dialled = self.roads.dialled.lock().unwrap();
        dialled.iter().map(ToString::to_string).collect()
    }
}

fn request(method: Method, url: &str, body: &'static str) -> Request<RequestBody> {
    let body = match body {
        "" => Empty::<Bytes>::new()
            .map_err(|never| match never {})
            .boxed_unsync(),
        body => Full::new(Bytes::from(body))
            .map_err(|never| match never {})
            .boxed_unsync(),
    };
    let request = Request::builder().method(method).uri(url);
    request.body(body).unwrap()
}

/// What came of a request.
#[derive(Debug)]
struct Got {
    status: u16,
    headers: http::HeaderMap,
    body: Result<Vec<u8>, EgressError>,
    url: Option<String>,
}

impl Got {
    fn text(&self) -> String {
        String::from_utf8(self.body.as_ref().unwrap().clone()).unwrap()
    }
}

async fn send(call: &CallExit, request: Request<RequestBody>) -> Result<Got, EgressError> {
    let answer = call.prepare(request, Patience::default())?.send().await?;
    let (parts, body) = answer.response.into_parts();
    let body = body.collect().await;
    Ok(Got {
        status: parts.status.as_u16(),
        headers: parts.headers,
        body: body.map(|body| body.to_bytes().to_vec()),
        url: answer.redirected_to,
    })
}

async fn get(call: &CallExit, url: &str) -> Result<Got, EgressError> {
    send(call, request(Method::GET, url, "")).await
}
