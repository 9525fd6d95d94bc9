//! The figures of the MCP server, each against a server of others that does the same: the Python library with one tool, and the
//! file server of npm. Both are those that `ZEPH_SLOW_TESTS=1 cargo xtask test mcp` installs.

mod load;
mod peer;
pub(crate) mod replicas;
pub(crate) mod wrap;

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::{Duration, Instant};

use anyhow::{Context as _, Result, bail};
use serde_json::{Value, json};

use self::peer::Peer;
use crate::corpus::LITERAL;
use crate::figures::{Bench, Row, compare, shown, verdict};
use crate::plugins;
use crate::program::{profile_dir, program};
use crate::timing::{in_turns, median, percentile};

/// Calls of the figure about one call.
const N_CALLS: usize = 1_000;

/// Runs of each side where a run is longer.
const N_RUNS: usize = 11;

/// A server with the same tools as ours: one returns the text of a file, the other counts words.
const PYTHON_SERVER: &str = r#"
from mcp.server.mcpserver import MCPServer

server = MCPServer("peer")


@server.tool()
def read(path: str) -> str:
    """Returns the text of a file."""
    with open(path) as file:
        return file.read()


@server.tool()
def count_rust_words(text: str) -> int:
    """Counts the words of a text."""
    return len(text.split())


server.run(transport="stdio")
"#;

/// Every figure of the server.
pub(crate) fn mcp(bench: &Bench) -> Result<Vec<Row>> {
    let mut rows = trivial_call(bench)?;
    rows.extend(read_call(bench)?);
    rows.extend(files(bench)?);
    rows.push(start(bench)?);
    rows.extend(load::load(bench)?);
    Ok(rows)
}

/// One warm call of a tool of a plugin that does next to nothing: it counts the words of a short text.
fn trivial_call(bench: &Bench) -> Result<Vec<Row>> {
    const TOOL: &str = "count_rust_words";
    let Some(component) = plugins::built("rust")? else {
        bail!(
            "there is no component with a trivial tool\n\nhint: `ZEPH_SLOW_TESTS=1 cargo xtask test` builds it"
        );
    };
    let place = profile_dir("bench-plugins-trivial")?;
    // What was accepted there may have been another component.
    if place.exists() {
        fs::remove_dir_all(&place)?;
    }
    let folder = place.join("plugins");
    fs::create_dir_all(&folder)?;
    fs::copy(component, folder.join("trivial.wasm"))?;
    let config = place.join("config.toml");
    fs::write(&config, "")?;
    let directory = &bench.corpus.tiny;
    let mut command = bench.installed.command(directory);
    command.arg("--config").arg(config).arg("serve");
    let params = json!({"text": "one two three"});
    warm_call(command, directory, ("a trivial wasm tool", TOOL, &params))
}

/// One warm call of the tool that people call most, on a file of one line.
fn read_call(bench: &Bench) -> Result<Vec<Row>> {
    let directory = &bench.corpus.tiny;
    let params = json!({"path": "one.txt"});
    let command = serve(bench, directory, &[]);
    warm_call(command, directory, ("`read`", "read", &params))
}

/// Warm calls of one tool of the server that `command` starts, against the tool of the same name in Python.
fn warm_call(
    mut command: Command,
    directory: &Path,
    (shown_as, tool, params): (&str, &str, &Value),
) -> Result<Vec<Row>> {
    let mut ours = Peer::start(&mut command)?;
    let mut python = python_server(directory)?
        .map(|mut command| Peer::start(&mut command))
        .transpose()?;
    let mut times = Vec::with_capacity(N_CALLS);
    let one = || {
        let took = ours.call(tool, params)?.1;
        times.push(took);
        Ok(took)
    };
    let pair = in_turns(N_CALLS, one, || {
        python
            .as_mut()
            .map(|peer| Ok(peer.call(tool, params)?.1))
            .transpose()
    })?;
    let (p50, p99) = (median(&mut times), percentile(&mut times, 99));
    let figure = format!("warm `tools/call` of {shown_as} over stdio, p50");
    Ok(vec![
        compare(
            &figure,
            "the same tool in a Python `mcp` server",
            0.5,
            &pair,
        ),
        Row {
            figure: "the same alone".to_owned(),
            measured: format!("p50 {}, p99 {}", shown(p50), shown(p99)),
            reach: "p50 ≤ 1 ms".to_owned(),
            ratio: verdict("", p50 <= Duration::from_millis(1)),
        },
    ])
}

/// A large file, and many files, against the file server of npm. It has no search in contents: our search reads every file while
/// its search looks at names only.
fn files(bench: &Bench) -> Result<Vec<Row>> {
    let directory = profile_dir("bench-corpus")?.join("large");
    fs::create_dir_all(&directory)?;
    fs::write(
        directory.join("large.txt"),
        "a line of sixty-four characters, the newline among them, as it is\n".repeat(16_384),
    )?;
    let mut ours = Peer::start(&mut serve(
        bench,
        &directory,
        &["--set", "tools.overflow.threshold=4000000"],
    ))?;
    let mut npm = npm_server(&directory)?
        .map(|mut command| Peer::start(&mut command))
        .transpose()?;
    let path = json!({"path": directory.join("large.txt")});
    let reading = in_turns(
        N_RUNS,
        || whole(&mut ours),
        || {
            npm.as_mut()
                .map(|peer| Ok(peer.call("read_text_file", &path)?.1))
                .transpose()
        },
    )?;

    let tree = &bench.corpus.tree;
    let mut ours = Peer::start(&mut serve(bench, tree, &[]))?;
    let mut npm = npm_server(tree)?
        .map(|mut command| Peer::start(&mut command))
        .transpose()?;
    let grep = json!({"pattern": LITERAL, "path": "."});
    let names = json!({"path": tree, "pattern": format!("**/*{LITERAL}*")});
    let searching = in_turns(
        N_RUNS,
        || Ok(ours.call("grep", &grep)?.1),
        || {
            npm.as_mut()
                .map(|peer| Ok(peer.call("search_files", &names)?.1))
                .transpose()
        },
    )?;
    let peer = "npm `server-filesystem`";
    Ok(vec![
        compare(
            "`read` of a whole file of 1 MB, page by page",
            peer,
            1.0,
            &reading,
        ),
        compare(
            "`grep` over 10,000 files (the other: over their names)",
            peer,
            1.0,
            &searching,
        ),
    ])
}

/// The time to read the whole file, however many pages that takes.
fn whole(peer: &mut Peer) -> Result<Duration> {
    let started = Instant::now();
    let mut offset = 0;
    loop {
        let params = json!({"path": "large.txt", "offset": offset, "limit": 1_000_000});
        let (result, _) = peer.call("read", &params)?;
        match result["structuredContent"]["next_offset"].as_u64() {
            Some(next) if next > offset => offset = next,
            Some(_) => bail!("the file does not end: {}", result["structuredContent"]),
            None => return Ok(started.elapsed()),
        }
    }
}

/// From the start of the program to the answer to the first `tools/list`, with everything compiled.
fn start(bench: &Bench) -> Result<Row> {
    const REACH: Duration = Duration::from_millis(60);
    let mut times = Vec::new();
    for _ in 0..=2 * N_RUNS {
        let started = Instant::now();
        let mut peer = Peer::start(&mut serve(bench, &bench.corpus.tiny, &[]))?;
        peer.request("tools/list", json!({}))?;
        times.push(started.elapsed());
    }
    let p50 = median(&mut times[1..]);
    Ok(Row {
        figure: "from the start to the first `tools/list` answer, warm cache".to_owned(),
        measured: format!("p50 {}", shown(p50)),
        reach: format!("≤ {}", shown(REACH)),
        ratio: verdict("", p50 <= REACH),
    })
}

/// Our server over stdio.
fn serve(bench: &Bench, directory: &Path, args: &[&str]) -> Command {
    let mut command = bench.installed.command(directory);
    command.arg("serve").args(args);
    command
}

fn python_server(directory: &Path) -> Result<Option<Command>> {
    let python = installed("venv/bin/python")?;
    Ok(python.map(|python| {
        let mut command = program(python);
        command.args(["-c", PYTHON_SERVER]).current_dir(directory);
        command
    }))
}

fn npm_server(directory: &Path) -> Result<Option<Command>> {
    const SCRIPT: &str = "node_modules/@modelcontextprotocol/server-filesystem/dist/index.js";
    let script = installed(SCRIPT)?;
    Ok(script.map(|script| {
        let mut command = program("node");
        command.arg(script).arg(directory);
        command
    }))
}

/// A file of the programs of others that the tests install.
fn installed(path: &str) -> Result<Option<PathBuf>> {
    let path = profile_dir("toolchains")?.join("mcp").join(path);
    Ok(path.exists().then_some(path))
}

/// The result of a tool call that has to succeed.
fn succeeded(answer: &Value) -> Result<&Value> {
    let result = answer
        .get("result")
        .with_context(|| format!("no result: {answer}"))?;
    match result["isError"].as_bool() {
        Some(true) => bail!("a call failed: {result}"),
        _ => Ok(result),
    }
}
