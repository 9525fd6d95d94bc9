//! What `zeph-host wrap` adds to a native server, against the same server started directly.

use std::fs;
use std::path::{Path, PathBuf};
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
    Ok(vec![
        call(bench, &directory)?,
        start(bench, &directory)?,
        idle(bench, &directory)?,
    ])
}

fn bare(directory: &Path) -> Command {
    let mut command = program(PathBuf::from("python3"));
    command.arg("server.py").current_dir(directory);
    command
}

fn wrapped(bench: &Bench, directory: &Path) -> Command {
    let mut command = bench.installed.command(directory);
    command.args(["wrap", "--name", "bench", "--", "python3", "server.py"]);
    command
}

fn call(bench: &Bench, directory: &Path) -> Result<Row> {
    let mut ours = Peer::start(&mut wrapped(bench, directory))?;
    let mut native = Peer::start(&mut bare(directory))?;
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
fn start(bench: &Bench, directory: &Path) -> Result<Row> {
    let timed = |mut command: Command| -> Result<Duration> {
        let started = Instant::now();
        let mut peer = Peer::start(&mut command)?;
        peer.request("tools/list", json!({}))?;
        // How long it takes to end is another thing.
        Ok(started.elapsed())
    };
    let (mut with, mut without) = (Vec::new(), Vec::new());
    for _ in 0..N_STARTS {
        with.push(timed(wrapped(bench, directory))?);
        without.push(timed(bare(directory))?);
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
fn idle(bench: &Bench, directory: &Path) -> Result<Row> {
    let mut peers = Vec::new();
    for _ in 0..N_IDLE {
        let mut peer = Peer::start(&mut wrapped(bench, directory))?;
        peer.request("tools/list", json!({}))?;
        peers.push(peer);
    }
    // Long enough for what follows a start to be over.
    std::thread::sleep(Duration::from_millis(500));
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
