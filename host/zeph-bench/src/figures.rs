//! The figures of whole processes, each against the program people use for the same work.

use std::path::Path;
use std::time::Duration;

use anyhow::{Result, bail};
use serde_json::{Value, json};

use crate::corpus::{Corpus, LITERAL, REGEX};
use crate::host::{Host, InstalledHost};
use crate::program::program;
use crate::timing::{Pair, in_turns, median, of_children, percentile, wall};
use crate::{acp, agent, database, filters, installation, mcp, plugins, scrape, search, shell};

/// Runs of each side; an odd number, so that the median is one of them.
const N_RUNS: usize = 11;

/// Calls of the figure about many calls.
const N_CALLS: usize = 1_000;

/// One line of the table.
pub(crate) struct Row {
    pub(crate) figure: String,
    pub(crate) measured: String,
    pub(crate) reach: String,
    pub(crate) ratio: String,
}

impl Row {
    /// Names the bound that held before.
    pub(crate) fn after(mut self, before: f64) -> Self {
        self.reach.push_str(&format!(" (≤ {before} × before)"));
        self
    }
}

/// What the figures are measured on.
pub(crate) struct Bench {
    pub(crate) installed: InstalledHost,
    pub(crate) corpus: Corpus,
}

/// A name to pick it by, and how to measure it.
pub(crate) type Figure = (&'static str, fn(&Bench) -> Result<Vec<Row>>);

/// Every figure, in the order of the table.
pub(crate) const FIGURES: [Figure; 19] = [
    ("line", line),
    ("call", call),
    ("grep", grep),
    ("list", list),
    ("memory", memory),
    ("parallel", parallel),
    ("plugins", plugins::start),
    ("compile", plugins::compile),
    ("shell", shell::shell),
    ("filter", filters::cost::program_rows),
    ("mcp", mcp::mcp),
    ("acp", acp::acp),
    ("agent", agent::agent),
    ("wrap", mcp::wrap::wrap),
    ("scrape", scrape::scrape),
    ("search", search::search),
    ("postgres", database::line),
    ("replicas", mcp::replicas::replicas),
    ("install", installation::install),
];

/// The whole line, by the host's own clock: from the request to the recorded result.
fn line(bench: &Bench) -> Result<Vec<Row>> {
    let mut host = bench
        .installed
        .run(&bench.corpus.tiny, &["--allow", "bash"])?;
    // The filters' component is compiled in the background at the first start; this output waits for it.
    host.call("bash", &json!({"command": "ls /usr/bin"}))?;
    let mut times = reads(&mut host, false)?;
    let (p50, p99) = (median(&mut times), percentile(&mut times, 99));
    let mut cached = reads(&mut bench.installed.run_cached(&bench.corpus.tiny)?, true)?;
    let pair = Pair {
        ours: median(&mut cached),
        peers: Some(p50),
    };
    let answered = compare(
        "the same `read`, answered from its result",
        "the same that runs",
        0.5,
        &pair,
    );
    let running = Row {
        figure: "`read` of one line in a running host, 2,000 times".to_owned(),
        measured: format!("p50 {}, p99 {}", shown(p50), shown(p99)),
        reach: "p99 ≤ 2 ms".to_owned(),
        ratio: verdict("", p99 <= Duration::from_millis(2)),
    };
    Ok(vec![running, answered])
}

/// The times of 2,000 calls of `read`, by the host's own clock; fails unless they are answered from a result as they should be.
fn reads(host: &mut Host, is_cached: bool) -> Result<Vec<Duration>> {
    let params = json!({"path": "one.txt"});
    // The first one runs.
    host.call("read", &params)?;
    let mut times = Vec::with_capacity(2_000);
    for _ in 0..2_000 {
        let (answer, _) = host.call("read", &params)?;
        let note = answer["notes"][0].as_str().unwrap_or_default();
        if note.starts_with("cached") != is_cached {
            bail!("a `read` was answered otherwise than it should be: {answer}");
        }
        times.push(recorded(&answer)?);
    }
    Ok(times)
}

/// How long a call took by the host's own clock, as its answer says.
pub(crate) fn recorded(answer: &Value) -> Result<Duration> {
    let took_ms = answer["duration_ms"].as_f64().unwrap_or(f64::NAN);
    Ok(Duration::try_from_secs_f64(took_ms / 1e3)?)
}

/// Calls from a shell: a tool in wasm, and a command in the jail.
fn call(bench: &Bench) -> Result<Vec<Row>> {
    let called = |arguments: &[&str]| {
        let mut command = bench.installed.command(&bench.corpus.tiny);
        let ran = wall(command.arg("call").args(arguments))?;
        Ok(ran.map_or(Duration::ZERO, |(took, _)| took))
    };
    let read = || called(&["read", "path=one.txt"]);
    let node = || Ok(wall(program("node").args(["-e", "0"]))?.map(|(took, _)| took));
    let reading = in_turns(2 * N_RUNS + 1, read, node)?;
    let bash = || called(&["bash", "command=true"]);
    let bare = || Ok(wall(program("bwrap").args(shell::BARE).arg("true"))?.map(|(took, _)| took));
    let running = in_turns(2 * N_RUNS + 1, bash, bare)?;
    Ok(vec![
        compare(
            "`zeph-host call read`, warm cache",
            "`node -e 0`",
            0.12,
            &reading,
        )
        .after(1.5),
        processor_time(read)?,
        compare(
            "`zeph-host call bash command=true`, warm cache",
            "`bwrap --unshare-all --ro-bind / / … true`",
            4.0,
            &running,
        )
        .after(8.5),
        size(bench)?,
    ])
}

/// Processor time of a call from a shell, over many: the system counts it in steps.
fn processor_time(read: impl Fn() -> Result<Duration>) -> Result<Row> {
    const N_CALLS: u32 = 100;
    const REACH: Duration = Duration::from_millis(9);
    let before = of_children()?;
    for _ in 0..N_CALLS {
        read()?;
    }
    let used = of_children()?.saturating_sub(before) / N_CALLS;
    Ok(Row {
        figure: "processor time of such a `call read`".to_owned(),
        measured: shown(used),
        reach: format!("≤ {} (16 ms before)", shown(REACH)),
        ratio: verdict("", used <= REACH),
    })
}

fn size(bench: &Bench) -> Result<Row> {
    const REACH_BYTES: u64 = 32_000_000;
    let bytes = bench.installed.bytes()?;
    Ok(Row {
        figure: "the program's file (`--profile dist`)".to_owned(),
        measured: format!("{:.1} MB", bytes as f64 / 1e6),
        reach: "≤ 32 MB".to_owned(),
        ratio: verdict("", bytes <= REACH_BYTES),
    })
}

fn grep(bench: &Bench) -> Result<Vec<Row>> {
    let source = &bench.corpus.source;
    let mut host = bench.installed.run(source, &[])?;
    let cases = [
        ("literal", LITERAL, "-s", 3.0),
        ("regex", REGEX, "-s", 3.0),
        ("case ignored,", LITERAL, "-i", 1.5),
    ];
    cases
        .map(|(kind, pattern, case, reach)| {
            let params = json!({"pattern": pattern, "path": ".", "case_sensitive": case == "-s"});
            let peer_args = ["-n", case, "--", pattern, "."];
            same_count(&mut host, "grep", &params, source, &peer_args)?;
            let ours = || Ok(host.call("grep", &params)?.1);
            let pair = in_turns(N_RUNS, ours, || ripgrep(source, &peer_args))?;
            // A bar would end the cell of the table.
            let shown = pattern.replace('|', r"\|");
            Ok(compare(
                &format!("`grep`, 100 MB, {kind} `{shown}`"),
                "`rg -j1`",
                reach,
                &pair,
            ))
        })
        .into_iter()
        .collect()
}

fn list(bench: &Bench) -> Result<Vec<Row>> {
    let cases = [
        (
            "find_path",
            json!({"pattern": "*.rs", "path": "."}),
            &bench.corpus.tree,
            "10,000 files in 200 directories",
            4.0,
        ),
        (
            "list_directory",
            json!({"path": "."}),
            &bench.corpus.flat,
            "10,000 files in one",
            1.3,
        ),
    ];
    cases
        .map(|(tool, params, directory, what, reach)| {
            let mut host = bench.installed.run(directory, &[])?;
            let ours = || Ok(host.call(tool, &params)?.1);
            let pair = in_turns(2 * N_RUNS - 1, ours, || ripgrep(directory, &["--files"]))?;
            Ok(compare(
                &format!("`{tool}`, {what}"),
                "`rg --files -j1`",
                reach,
                &pair,
            ))
        })
        .into_iter()
        .collect()
}

fn memory(bench: &Bench) -> Result<Vec<Row>> {
    const N_CALLS: usize = 20_000;
    let mut host = bench.installed.run(&bench.corpus.tiny, &[])?;
    // Long enough for what follows a call (the record, the return of pages) to be over.
    let rest = || std::thread::sleep(Duration::from_millis(500));
    rest();
    let idle = host.resident_bytes()?;
    host.call_many(N_CALLS, "read", &json!({"path": "one.txt"}))?;
    rest();
    let after = host.resident_bytes()?;
    Ok(vec![
        resident("idle, file plugin loaded", idle, 60_000_000),
        resident("after 20,000 calls", after, 80_000_000),
    ])
}

fn resident(when: &str, bytes: u64, bytes_max: u64) -> Row {
    Row {
        figure: format!("resident memory, {when}"),
        measured: format!("{} MB", bytes / 1_000_000),
        reach: format!("≤ {} MB", bytes_max / 1_000_000),
        ratio: verdict("", bytes <= bytes_max),
    }
}

fn parallel(bench: &Bench) -> Result<Vec<Row>> {
    const REACH: f64 = 1.6;
    let params = json!({"pattern": LITERAL, "path": "."});
    let mut singly = bench.installed.run(&bench.corpus.small, &["--jobs", "1"])?;
    let mut together = bench
        .installed
        .run(&bench.corpus.small, &["--jobs", "16"])?;
    let pair = in_turns(
        3,
        || together.call_many(N_CALLS, "grep", &params),
        || singly.call_many(N_CALLS, "grep", &params).map(Some),
    )?;
    let Some(one_by_one) = pair.peers else {
        bail!("bug: the peer is always there")
    };
    let speed_up = one_by_one.as_secs_f64() / pair.ours.as_secs_f64();
    let cores = std::thread::available_parallelism()?;
    Ok(vec![Row {
        figure: format!("1,000 `grep` calls, 16 at a time, {cores} cores"),
        measured: format!(
            "{} against {} one at a time, no failure",
            shown(pair.ours),
            shown(one_by_one)
        ),
        reach: format!("≥ {REACH} × the throughput"),
        ratio: verdict(&format!("{speed_up:.2}"), speed_up >= REACH),
    }])
}

/// Fails unless the tool and ripgrep find the same number of lines: a figure for a wrong answer is worth nothing.
fn same_count(
    host: &mut Host,
    tool: &str,
    params: &Value,
    directory: &Path,
    peer_args: &[&str],
) -> Result<()> {
    let (answer, _) = host.call(tool, params)?;
    let found = answer["structured"]["total_matches"].as_u64();
    let Some((_, printed)) = wall(&mut ripgrep_command(directory, peer_args))? else {
        return Ok(());
    };
    let expected = printed
        .split(|byte| *byte == b'\n')
        .filter(|line| !line.is_empty())
        .count();
    if found != u64::try_from(expected).ok() {
        bail!("`{tool}` found {found:?} lines, ripgrep {expected}");
    }
    Ok(())
}

fn ripgrep(directory: &Path, args: &[&str]) -> Result<Option<Duration>> {
    Ok(wall(&mut ripgrep_command(directory, args))?.map(|(took, _)| took))
}

fn ripgrep_command(directory: &Path, args: &[&str]) -> std::process::Command {
    let mut command = program("rg");
    command
        .args(["--no-config", "--no-ignore-parent", "-j1"])
        .args(args)
        .current_dir(directory);
    command
}

pub(crate) fn compare(figure: &str, peer: &str, reach: f64, pair: &Pair) -> Row {
    let measured = match pair.peers {
        Some(peers) => format!("{} against {}", shown(pair.ours), shown(peers)),
        None => format!("{}; {peer} is not installed", shown(pair.ours)),
    };
    Row {
        figure: figure.to_owned(),
        measured,
        reach: format!("≤ {reach} × {peer}"),
        ratio: pair.ratio().map_or_else(
            || "—".to_owned(),
            |ratio| verdict(&format!("{ratio:.2}"), ratio <= reach),
        ),
    }
}

pub(crate) fn verdict(number: &str, is_met: bool) -> String {
    let word = if is_met { "met" } else { "missed" };
    format!("{number} {word}").trim_start().to_owned()
}

pub(crate) fn shown(time: Duration) -> String {
    let ms = time.as_secs_f64() * 1e3;
    match ms {
        0.0..10.0 => format!("{ms:.2} ms"),
        10.0..1000.0 => format!("{ms:.0} ms"),
        _ => format!("{:.2} s", ms / 1e3),
    }
}
