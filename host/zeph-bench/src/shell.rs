//! The figures of the native shell: what the jail costs, what the line adds, how fast output is drained, how soon a bomb is gone.

use std::path::Path;
use std::time::{Duration, Instant};

use anyhow::{Context as _, Result, bail};
use serde_json::json;

use crate::figures::{Bench, Row, compare, shown, verdict};
use crate::host::Host;
use crate::program::program;
use crate::timing::{Pair, in_turns, median, wall};

/// Runs of each side; an odd number, so that the median is one of them.
const N_RUNS: usize = 41;

/// Bytes of output of the figure about draining.
const FLOOD_BYTES: usize = 100_000_000;

/// Most memory such a flood may cost beyond what the host had before.
const FLOOD_MEMORY_MAX: u64 = 64 * 1024 * 1024;

/// Longest time until nothing of a bomb is left, its own time limit of one second not counted.
const KILL_MAX: Duration = Duration::from_secs(3);

/// The bare jail: all namespaces, the whole file system readable.
pub(crate) const BARE: [&str; 4] = ["--unshare-all", "--ro-bind", "/", "/"];

/// Every figure of the shell.
pub(crate) fn shell(bench: &Bench) -> Result<Vec<Row>> {
    let mut host = bench
        .installed
        .run(&bench.corpus.tiny, &["--allow", "bash"])?;
    let mut rows = start(&mut host)?;
    rows.extend(drain(&mut host, &bench.corpus.tiny)?);
    rows.extend(kill(&mut host)?);
    Ok(rows)
}

fn bare(script: &str) -> Result<Option<Duration>> {
    let mut bwrap = program("bwrap");
    let ran = wall(bwrap.args(BARE).args(["bash", "-c", script]))?;
    Ok(ran.map(|(took, _)| took))
}

/// `bash -c true` as a call of a running host, against the bare jail.
fn start(host: &mut Host) -> Result<Vec<Row>> {
    // The filters' component is compiled in the background; the first output that needs it waits for it.
    host.call("bash", &json!({"command": "ls /usr/bin"}))?;
    let params = json!({"command": "true"});
    let ours = || Ok(host.call("bash", &params)?.1);
    let pair = in_turns(N_RUNS, ours, || bare("true"))?;
    Ok(vec![
        compare(
            "`bash` with `true` through the whole line and the jail",
            "`bwrap --unshare-all --ro-bind / / bash -c true`",
            1.2,
            &pair,
        )
        .after(2.5),
    ])
}

/// 100 MB of output, against `cat` into a pipe that is only counted: how long the command takes to get rid of it, and how long it is
/// until the answer, with the output searched, its ends stored and cut.
fn drain(host: &mut Host, directory: &Path) -> Result<Vec<Row>> {
    let file = directory.join("flood.txt");
    std::fs::write(&file, vec![b'x'; FLOOD_BYTES])?;
    let before = host.resident_bytes()?;
    let params = json!({"command": "TIMEFORMAT=%R; time cat flood.txt"});
    let mut most = before;
    let mut answers = Vec::new();
    let ours = || {
        let (answer, took) = host.call("bash", &params)?;
        let structured = &answer["structured"];
        if structured["truncated"] != true {
            bail!("bug: {FLOOD_BYTES} bytes are more than is kept");
        }
        most = most.max(host.resident_bytes()?);
        answers.push(took);
        let seconds = structured["stderr"].as_str().unwrap_or_default().trim();
        let seconds: f64 = seconds
            .parse()
            .with_context(|| format!("the shell says `{seconds}`, not how long it took"))?;
        Ok(Duration::from_secs_f64(seconds))
    };
    let peers = || {
        let started = Instant::now();
        let mut cat = program("cat");
        cat.arg(&file).stdout(std::process::Stdio::piped());
        let mut child = cat.spawn()?;
        if let Some(mut pipe) = child.stdout.take() {
            std::io::copy(&mut pipe, &mut std::io::sink())?;
        }
        child.wait()?;
        Ok(Some(started.elapsed()))
    };
    let pair = in_turns(15, ours, peers)?;
    std::fs::remove_file(&file)?;
    let extra = most.saturating_sub(before);
    let until_answer = Pair {
        ours: median(&mut answers),
        ..pair
    };
    Ok(vec![
        compare("100 MB of output, drained", "`cat` into a pipe", 2.0, &pair),
        compare(
            "the same until the answer: searched, its ends stored",
            "`cat` into a pipe",
            4.0,
            &until_answer,
        ),
        Row {
            figure: "memory it costs the host".to_owned(),
            measured: format!("{} MB", extra / 1_000_000),
            reach: format!("≤ {} MB", FLOOD_MEMORY_MAX / 1_000_000),
            ratio: verdict("", extra <= FLOOD_MEMORY_MAX),
        },
    ])
}

/// Time from the time limit of one second until the answer, when nothing of the command is left.
fn kill(host: &mut Host) -> Result<Vec<Row>> {
    let bombs = [
        ("a fork bomb", "b() { b | b & }; b; sleep 60"),
        (
            "400 sleepers in sessions of their own",
            "for i in $(seq 400); do setsid sleep 60 & done; sleep 60",
        ),
    ];
    let mut rows = Vec::new();
    for (name, script) in bombs {
        let params = json!({"command": script, "timeout": 1});
        let took = host.call_failing("bash", &params)?;
        let after = took.saturating_sub(Duration::from_secs(1));
        rows.push(Row {
            figure: format!("{name}, ended at its time limit"),
            measured: shown(after),
            reach: format!("≤ {} after the limit", shown(KILL_MAX)),
            ratio: verdict("", after <= KILL_MAX),
        });
    }
    Ok(rows)
}
