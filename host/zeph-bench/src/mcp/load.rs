//! Many callers at once over HTTP, each on a connection of its own.

use std::io::{BufRead as _, BufReader, Read as _, Write as _};
use std::net::TcpStream;
use std::path::Path;
use std::process::{Child, Stdio};
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::{Duration, Instant};

use anyhow::{Context as _, Result, bail, ensure};
use serde_json::{Value, json};

use super::succeeded;
use crate::figures::{Bench, Row, shown, verdict};
use crate::host::resident_bytes;
use crate::timing::{median, percentile};

pub(super) const N_CALLERS: usize = 64;

const DURATION: Duration = Duration::from_secs(60);

/// When the memory is taken that it must not exceed later.
const SETTLED: Duration = Duration::from_secs(10);

/// What memory may grow after that, by the measure of the allocator's own.
const GROWTH_MAX: f64 = 1.1;

/// Longest wait for one answer.
const ANSWER_MAX: Duration = Duration::from_secs(30);

/// Where results and requests name their conversation, in `_meta`.
const CONVERSATION_KEY: &str = "zeph.host/conversation";

const VERSION: &str = "2026-07-28";

/// Calls of every caller, one after the other, for a minute.
pub(super) fn load(bench: &Bench) -> Result<Vec<Row>> {
    let server = Server::start(bench)?;
    let is_over = AtomicBool::new(false);
    let (mut settled, mut last) = (0, 0);
    let results = thread::scope(|scope| -> Result<Vec<Result<Vec<Duration>>>> {
        let caller = || Caller::connect(&server.address)?.until(&is_over);
        let callers: Vec<_> = (0..N_CALLERS).map(|_| scope.spawn(caller)).collect();
        thread::sleep(SETTLED);
        settled = resident_bytes(&server.child)?;
        thread::sleep(DURATION - SETTLED);
        last = resident_bytes(&server.child)?;
        is_over.store(true, Ordering::Relaxed);
        let ended = callers.into_iter().map(|caller| caller.join());
        Ok(ended
            .map(|result| result.expect("bug: a caller does not panic"))
            .collect())
    })?;
    let errors: Vec<_> = results
        .iter()
        .filter_map(|result| result.as_ref().err())
        .collect();
    let error = errors
        .first()
        .map(|error| format!(" ({error:#})"))
        .unwrap_or_default();
    let n_errors = errors.len();
    let mut times: Vec<Duration> = results
        .into_iter()
        .filter_map(Result::ok)
        .flatten()
        .collect();
    ensure!(!times.is_empty(), "no call succeeded{error}");
    let n_calls = times.len();
    let (p50, p99) = (median(&mut times), percentile(&mut times, 99));
    let spread = p99.as_secs_f64() / p50.as_secs_f64();
    let growth = last as f64 / settled as f64;
    Ok(vec![
        Row {
            figure: format!("HTTP, {N_CALLERS} callers for {} s", DURATION.as_secs()),
            measured: format!(
                "{n_calls} calls, {n_errors} errors{error}, p50 {}, p99 {}",
                shown(p50),
                shown(p99)
            ),
            reach: "no error, p99 ≤ 20 × p50".to_owned(),
            ratio: verdict(&format!("{spread:.1}"), n_errors == 0 && spread <= 20.0),
        },
        Row {
            figure: "its memory, from 10 s to 60 s".to_owned(),
            measured: format!("{} MB, then {} MB", settled / 1_000_000, last / 1_000_000),
            reach: format!("≤ {GROWTH_MAX} ×"),
            ratio: verdict(&format!("{growth:.2}"), growth <= GROWTH_MAX),
        },
    ])
}

/// Our server over HTTP; ended when dropped.
pub(super) struct Server {
    child: Child,
    /// Host and port.
    pub(super) address: String,
}

impl Server {
    fn start(bench: &Bench) -> Result<Self> {
        Self::start_with(bench, &[], None)
    }

    /// Starts it with more arguments; what it keeps of its own, but for its cache, is below `home` then.
    pub(super) fn start_with(bench: &Bench, args: &[&str], home: Option<&Path>) -> Result<Self> {
        let mut command = bench.installed.command(&bench.corpus.tiny);
        if let Some(home) = home {
            command.env("XDG_DATA_HOME", home.join("data"));
            command.env("XDG_STATE_HOME", home.join("state"));
        }
        command.args(["serve", "--http", "127.0.0.1:0"]).args(args);
        command
            .stdin(Stdio::null())
            .stdout(Stdio::null())
            .stderr(Stdio::piped());
        let mut child = command.spawn().context("cannot start the server")?;
        let said = child
            .stderr
            .take()
            .context("bug: standard error is a pipe")?;
        let mut lines = BufReader::new(said).lines();
        for line in lines.by_ref() {
            let line = line.context("cannot read what the server says")?;
            if let Some((_, rest)) = line.split_once("http://") {
                let end =
                    rest.find(|letter: char| !letter.is_ascii_digit() && !".:".contains(letter));
                let address = rest[..end.unwrap_or(rest.len())].to_owned();
                // Read on: a server whose standard error is full would wait.
                thread::spawn(move || lines.for_each(drop));
                return Ok(Self { child, address });
            }
        }
        bail!("the server ended without saying where it listens")
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        drop(self.child.kill());
        drop(self.child.wait());
    }
}

/// One caller on one connection.
pub(super) struct Caller {
    stream: BufReader<TcpStream>,
    address: String,
    /// What the server named the conversation; none before the first answer.
    conversation: Option<String>,
    /// The request that every call in it sends.
    request: Option<Vec<u8>>,
}

impl Caller {
    pub(super) fn connect(address: &str) -> Result<Self> {
        let stream = TcpStream::connect(address).context("cannot connect")?;
        stream.set_read_timeout(Some(ANSWER_MAX))?;
        stream.set_nodelay(true)?;
        Ok(Self {
            stream: BufReader::new(stream),
            address: address.to_owned(),
            conversation: None,
            request: None,
        })
    }

    /// A call in the conversation, or the one that begins it.
    fn request(&self) -> Vec<u8> {
        let mut meta = json!({
            "io.modelcontextprotocol/protocolVersion": VERSION,
            "io.modelcontextprotocol/clientCapabilities": {},
            "io.modelcontextprotocol/clientInfo": {"name": "zeph-bench", "version": "0"},
        });
        if let Some(conversation) = &self.conversation {
            meta[CONVERSATION_KEY] = json!(conversation);
        }
        let params = json!({"name": "read", "arguments": {"path": "one.txt"}, "_meta": meta});
        let body = json!({"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": params})
            .to_string();
        let (address, length) = (&self.address, body.len());
        let request = format!(
            "POST /mcp HTTP/1.1\r\nHost: {address}\r\nContent-Type: application/json\r\n\
             Accept: application/json, text/event-stream\r\nMCP-Protocol-Version: {VERSION}\r\n\
             Mcp-Method: tools/call\r\nMcp-Name: read\r\nContent-Length: {length}\r\n\r\n{body}"
        );
        request.into_bytes()
    }

    /// Calls until it is over; the time of each call.
    pub(super) fn until(mut self, is_over: &AtomicBool) -> Result<Vec<Duration>> {
        let mut times = Vec::new();
        while !is_over.load(Ordering::Relaxed) {
            times.push(self.call()?);
        }
        Ok(times)
    }

    /// One call; how long it took.
    pub(super) fn call(&mut self) -> Result<Duration> {
        let request = match self.request.take() {
            Some(request) => request,
            None => self.request(),
        };
        let started = Instant::now();
        self.stream
            .get_mut()
            .write_all(&request)
            .context("cannot write a request")?;
        let body = self.answer()?;
        let took = started.elapsed();
        let result = check(&body)?;
        if self.conversation.is_none() {
            let handle = result["_meta"][CONVERSATION_KEY].as_str();
            self.conversation = Some(handle.context("no conversation was begun")?.to_owned());
        } else {
            self.request = Some(request);
        }
        Ok(took)
    }

    /// The body of one answer.
    fn answer(&mut self) -> Result<Vec<u8>> {
        let status = self.line()?;
        let (mut length, mut is_chunked) = (0, false);
        loop {
            let line = self.line()?.to_ascii_lowercase();
            match line.split_once(':') {
                None => break,
                Some(("content-length", value)) => length = value.trim().parse()?,
                Some(("transfer-encoding", value)) => is_chunked = value.trim() == "chunked",
                Some(_) => {}
            }
        }
        let body = match is_chunked {
            true => self.chunks()?,
            false => self.bytes(length)?,
        };
        ensure!(
            status.contains(" 200 "),
            "{status}: {}",
            String::from_utf8_lossy(&body)
        );
        Ok(body)
    }

    fn chunks(&mut self) -> Result<Vec<u8>> {
        let mut body = Vec::new();
        loop {
            let length = usize::from_str_radix(self.line()?.trim(), 16)?;
            body.extend(self.bytes(length)?);
            self.line()?;
            if length == 0 {
                return Ok(body);
            }
        }
    }

    fn bytes(&mut self, length: usize) -> Result<Vec<u8>> {
        let mut bytes = vec![0; length];
        self.stream
            .read_exact(&mut bytes)
            .context("cannot read an answer")?;
        Ok(bytes)
    }

    fn line(&mut self) -> Result<String> {
        let mut line = String::new();
        let n_bytes = self
            .stream
            .read_line(&mut line)
            .context("cannot read an answer")?;
        ensure!(n_bytes > 0, "the server closed the connection");
        Ok(line.trim_end().to_owned())
    }
}

/// The answer is JSON, or the last event of a stream of events is.
fn check(body: &[u8]) -> Result<Value> {
    let text = std::str::from_utf8(body).context("an answer is not text")?;
    let mut events = text.lines().filter_map(|line| line.strip_prefix("data:"));
    let answer = events.rfind(|data| !data.trim().is_empty());
    let answer: Value = serde_json::from_str(answer.unwrap_or(text))
        .with_context(|| format!("an answer is not JSON: {text}"))?;
    succeeded(&answer).cloned()
}
