//! What `zeph-host wrap` adds to a native server, against the same server started directly.

use std::fs;
use std::path::PathBuf;
use std::process::Command;
use std::time::{Duration, Instant};

use anyhow::{Context as _, Result};
use serde_json::json;

use super::peer::Peer;
use crate::figures::{Bench, Row, shown, verdict};
use crate::program::{profile_dir, program};
use crate::timing::median;

/// The server.
const SERVER: &str = include_str!("wrap.py");

/// Calls of each side.
const N_CALLS: usize = 500;

/// Starts of each side.
const N_STARTS: usize = 11;

/// Servers that idle side by side.
const N_IDLE: u64 = 20;

/// What a call may cost more.
const CALL_MAX: Duration = Duration::from_millis(1);

/// What the memory of the host may be for each idle server.
const IDLE_BYTES_MAX: u64 = 5 << 20;

/// Every figure of wrapping.
pub(crate) fn wrap(bench: &Bench) -> Result<Vec<Row>> {
    let directory = profile_dir("bench-corpus")?.join("wrap");
    fs::create_dir_all(&directory)?;
    fs::write(directory.join("server.py"), SERVER)?;
    let server = NativeServer {
        bench,
        directory,
        python: interpreter()?,
    };
    Ok(vec![call(&server)?, start(&server)?, idle(&server)?])
}

/// The server, alone or wrapped.
struct NativeServer<'a> {
    bench: &'a Bench,
    directory: PathBuf,
    /// The program that interprets it.
    python: String,
}

impl NativeServer<'_> {
    fn bare(&self) -> Command {
        let mut command = program(PathBuf::from(&self.python));
        command.arg("server.py").current_dir(&self.directory);
        command
    }

    fn wrapped(&self) -> Command {
        let mut command = self.bench.installed.command(&self.directory);
        let (name, python) = ("bench", self.python.as_str());
        command.args(["wrap", "--name", name, "--", python, "server.py"]);
        command
    }
}

/// Where the interpreter itself is: what `python3` is on the search path may be a script that starts thirty programs to find it, and
/// then most of a start is neither ours nor the server's.
fn interpreter() -> Result<String> {
    let mut command = program(PathBuf::from("python3"));
    command.args(["-c", "import sys; print(sys.executable)"]);
    let said = command.output().context("cannot start `python3`")?;
    let path = String::from_utf8(said.stdout).context("`python3` has a path that is not text")?;
    Ok(path.trim_end().to_owned())
}

fn call(server: &NativeServer<'_>) -> Result<Row> {
    let mut ours = Peer::start(&mut server.wrapped())?;
    let mut native = Peer::start(&mut server.bare())?;
    let params = json!({"text": "hello"});
    let (mut with, mut without) = (Vec::new(), Vec::new());
    for _ in 0..N_CALLS {
        with.push(ours.call("echo", &params)?.1);
        without.push(native.call("echo", &params)?.1);
    }
    let (with, without) = (median(&mut with), median(&mut without));
    let added = with.saturating_sub(without);
    Ok(Row {
        figure: "a call of a wrapped native server, p50".to_owned(),
        measured: format!(
            "{} more than {} of the bare one",
            shown(added),
            shown(without)
        ),
        reach: format!("≤ {} more", shown(CALL_MAX)),
        ratio: verdict("", added <= CALL_MAX),
    })
}

/// From the start to the answer to the first `tools/list`.
fn start(server: &NativeServer<'_>) -> Result<Row> {
    let timed = |mut command: Command| -> Result<Duration> {
        let started = Instant::now();
        let mut peer = Peer::start(&mut command)?;
        peer.request("tools/list", json!({}))?;
        // How long it takes to end is another thing.
        Ok(started.elapsed())
    };
    let (mut with, mut without) = (Vec::new(), Vec::new());
    for _ in 0..N_STARTS {
        with.push(timed(server.wrapped())?);
        without.push(timed(server.bare())?);
    }
    let (with, without) = (median(&mut with), median(&mut without));
    let most = without.mul_f64(1.2) + Duration::from_millis(50);
    Ok(Row {
        figure: "from the start of a wrapped server to its first `tools/list` answer".to_owned(),
        measured: format!("p50 {}, bare {}", shown(with), shown(without)),
        reach: format!("≤ {} (1.2 × bare + 50 ms)", shown(most)),
        ratio: verdict("", with <= most),
    })
}

/// The memory that is the host's alone, of many that idle.
fn idle(server: &NativeServer<'_>) -> Result<Row> {
    let mut peers = Vec::new();
    for _ in 0..N_IDLE {
        let mut peer = Peer::start(&mut server.wrapped())?;
        peer.request("tools/list", json!({}))?;
        peers.push(peer);
    }
    // Longer than a client takes for its first requests: then a host gives back what its start took.
    std::thread::sleep(Duration::from_secs(3));
    let bytes: Result<Vec<u64>> = peers.iter().map(|peer| own_bytes(peer.id())).collect();
    let each = bytes?.iter().sum::<u64>() / N_IDLE;
    Ok(Row {
        figure: format!("memory of the host for each of {N_IDLE} idle wrapped servers"),
        measured: format!("{:.1} MB", each as f64 / 1e6),
        reach: "≤ 5 MB".to_owned(),
        ratio: verdict("", each <= IDLE_BYTES_MAX),
    })
}

/// Memory of a process in bytes, with its part of what it shares.
fn own_bytes(id: u32) -> Result<u64> {
    let path = format!("/proc/{id}/smaps_rollup");
    let text = fs::read_to_string(&path).with_context(|| format!("cannot read `{path}`"))?;
    let line = text.lines().find_map(|line| line.strip_prefix("Pss:"));
    let kib = line.and_then(|line| line.split_whitespace().next()?.parse::<u64>().ok());
    Ok(kib.context("the kernel does not tell the memory")? * 1024)
}
