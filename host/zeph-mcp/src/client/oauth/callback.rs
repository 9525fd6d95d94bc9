//! The listener on this machine that the browser is sent back to.
//!
//! Any page of a browser and any program of this machine can reach it, so it answers one path under its own address, takes only the
//! redirect with the `state` of its login, and is gone after that.

use std::net::{Ipv4Addr, SocketAddr};
use std::time::Duration;

use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::{TcpListener, TcpStream};
use tokio::task::JoinSet;
use url::Url;

use super::redirect::REDIRECT_BYTES_MAX;
use super::{LoginError, Redirect};

/// The one path.
const PATH: &str = "/callback";

/// Connections that are read at one time. Browsers open some in advance.
const CONNECTIONS_MAX: usize = 8;

/// How long a connection may take to send its request.
const REQUEST_TIME_MAX: Duration = Duration::from_secs(5);

/// Bytes of the head of a request at most.
const HEAD_BYTES_MAX: usize = REDIRECT_BYTES_MAX + 8 * 1024;

/// Listens on a free port of this machine.
#[derive(Debug)]
pub struct CallbackListener {
    listener: TcpListener,
    url: Url,
}

/// What a redirect must be to end the login.
#[derive(Debug, Clone)]
struct Expected {
    url: Url,
    state: String,
}

impl CallbackListener {
    /// Begins to listen on a free port of 127.0.0.1.
    ///
    /// Errors: `Network` when no port is free.
    pub async fn bind() -> Result<Self, LoginError> {
        let failed =
            |why: String| LoginError::Network(format!("cannot listen on 127.0.0.1: {why}"));
        let address = SocketAddr::from((Ipv4Addr::LOCALHOST, 0));
        let listener = TcpListener::bind(address).await;
        let listener = listener.map_err(|error| failed(error.to_string()))?;
        let address = listener
            .local_addr()
            .map_err(|error| failed(error.to_string()))?;
        let url = Url::parse(&format!("http://{address}{PATH}"));
        let url = url.map_err(|error| failed(error.to_string()))?;
        Ok(Self { listener, url })
    }

    /// Where the browser is to be sent back to.
    pub fn url(&self) -> &Url {
        &self.url
    }

    /// Waits until the browser brings the answer to the login with `state`. What else arrives is refused and not waited for.
    ///
    /// Errors: `Refused` with what the authorization server reports; `Timeout` after `patience`.
    pub async fn wait(self, state: &str, patience: Duration) -> Result<Redirect, LoginError> {
        let expected = Expected {
            url: self.url,
            state: state.to_owned(),
        };
        let answer = first_answer(&self.listener, &expected);
        let answer = tokio::time::timeout(patience, answer).await;
        answer.unwrap_or(Err(LoginError::Timeout(patience.as_secs())))
    }
}

async fn first_answer(listener: &TcpListener, expected: &Expected) -> Result<Redirect, LoginError> {
    let mut reading = JoinSet::new();
    loop {
        let has_place = reading.len() < CONNECTIONS_MAX;
        tokio::select! {
            accepted = listener.accept(), if has_place => {
                if let Ok((stream, _)) = accepted {
                    let expected = expected.clone();
                    reading.spawn(async move { answer(stream, &expected).await });
                }
            }
            Some(ended) = reading.join_next() => {
                if let Ok(Some(answer)) = ended {
                    return answer;
                }
            }
        }
    }
}

/// Reads one request and answers it; `None` when it does not end the login.
async fn answer(
    mut stream: TcpStream,
    expected: &Expected,
) -> Option<Result<Redirect, LoginError>> {
    let head = tokio::time::timeout(REQUEST_TIME_MAX, head(&mut stream)).await;
    let head = head.ok()??;
    let read = read(&head, expected);
    let (status, text) = match &read {
        Ok(_) => (
            "200 OK",
            "The login is finished in the browser. Return to the terminal; this page can be closed.",
        ),
        Err(LoginError::Refused(_)) => (
            "200 OK",
            "The authorization server refused the login. The terminal shows why.",
        ),
        Err(_) => ("404 Not Found", "There is nothing here."),
    };
    let page = page(status, text);
    let sent = stream.write_all(page.as_bytes());
    drop(tokio::time::timeout(REQUEST_TIME_MAX, sent).await);
    drop(stream.shutdown().await);
    match read {
        Err(LoginError::Redirect(_)) => None,
        ends => Some(ends),
    }
}

/// The head of a request; `None` when it is none, or too long.
async fn head(stream: &mut TcpStream) -> Option<String> {
    let mut bytes = Vec::new();
    while !bytes.windows(4).any(|end| end == b"\r\n\r\n") {
        if bytes.len() > HEAD_BYTES_MAX {
            return None;
        }
        let mut piece = [0; 2048];
        let n_bytes = stream.read(&mut piece).await.ok().filter(|n| *n > 0)?;
        bytes.extend_from_slice(piece.get(..n_bytes)?);
    }
    String::from_utf8(bytes).ok()
}

/// The answer in a request that asks for our own address by its own name.
fn read(head: &str, expected: &Expected) -> Result<Redirect, LoginError> {
    let other = || LoginError::Redirect("it is another request");
    let (first, fields) = head.split_once("\r\n").ok_or_else(other)?;
    let target = first
        .strip_prefix("GET ")
        .and_then(|rest| rest.strip_suffix(" HTTP/1.1"));
    let target = target
        .filter(|target| target.starts_with('/'))
        .ok_or_else(other)?;
    let place = expected.url.authority();
    let mut hosts = fields.split("\r\n").filter_map(|field| {
        let (name, value) = field.split_once(':')?;
        name.eq_ignore_ascii_case("host").then(|| value.trim())
    });
    if hosts.next() != Some(place) || hosts.next().is_some() {
        return Err(other());
    }
    Redirect::read(
        &format!("http://{place}{target}"),
        &expected.url,
        &expected.state,
    )
}

fn page(status: &str, text: &str) -> String {
    format!(
        "HTTP/1.1 {status}\r\ncontent-type: text/plain; charset=utf-8\r\ncontent-length: {}\r\ncache-control: no-store\r\nreferrer-policy: no-referrer\r\nconnection: close\r\n\r\n{text}",
        text.len()
    )
}
