//! The figures of code search: a tree that is read for the first time, and questions to its index.

use std::fs;
use std::path::{Path, PathBuf};
use std::time::Duration;

use anyhow::{Context as _, Result, bail};
use serde_json::{Value, json};

use crate::figures::{Bench, Row, shown, verdict};
use crate::timing::{median, percentile, wall};

/// Times that the tree is read anew.
const N_READS: usize = 3;

/// Questions of each kind.
const N_QUERIES: usize = 100;

/// Longest first reading of 100,000 lines.
const READ_MAX: Duration = Duration::from_secs(10);

/// Longest answer to a question, whatever it is.
const QUERY_MAX: Duration = Duration::from_millis(50);

/// A name, words, a part of a name, and words that are nowhere.
const QUERIES: [&str; 4] = [
    "AuthorizedCall",
    "read only grant",
    "search",
    "parse_http_url_of_nothing",
];

/// This repository: real code, some 100,000 lines of it.
pub(crate) fn search(bench: &Bench) -> Result<Vec<Row>> {
    let tree = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
    let tree = tree.canonicalize().context("the repository is gone")?;
    let n_lines = lines(&tree)?;
    let mut reads = Vec::new();
    for _ in 0..N_READS {
        reads.push(first_read(bench, &tree)?);
    }
    let mut host = bench.installed.run(&tree, &[])?;
    let mut times = Vec::new();
    for query in QUERIES.iter().cycle().take(N_QUERIES * QUERIES.len()) {
        let params = json!({"query": query, "refresh": false});
        let (answer, _) = host.call("search_code", &params)?;
        let took_ms = answer["duration_ms"].as_f64().unwrap_or(f64::NAN);
        times.push(Duration::try_from_secs_f64(took_ms / 1e3)?);
    }
    let best = reads.iter().min().copied().unwrap_or_default();
    let (p50, p99) = (median(&mut times), percentile(&mut times, 99));
    Ok(vec![
        Row {
            figure: format!("`zeph-host index`, {n_lines} lines read for the first time"),
            measured: shown(best),
            reach: format!("≤ {}", shown(READ_MAX)),
            ratio: verdict("", best <= READ_MAX),
        },
        Row {
            figure: format!(
                "`search_code` on that index, {} times, files listed and results read through the guard",
                times.len()
            ),
            measured: format!("p50 {}, p99 {}", shown(p50), shown(p99)),
            reach: format!("p50 ≤ {}", shown(QUERY_MAX)),
            ratio: verdict("", p50 <= QUERY_MAX),
        },
    ])
}

/// Reads the tree without what was kept of it.
fn first_read(bench: &Bench, tree: &Path) -> Result<Duration> {
    let kept = bench.installed.cache().join("search");
    if kept.exists() {
        fs::remove_dir_all(&kept).with_context(|| format!("cannot remove `{}`", kept.display()))?;
    }
    let mut command = bench.installed.command(tree);
    let ran = wall(command.args(["index", "--json"]))?;
    let (took, printed) = ran.context("bug: the program is installed")?;
    let state: Value = serde_json::from_slice(&printed).context("`index` printed no JSON")?;
    if state["updated"] != state["files"] || state["pending"] != 0 {
        bail!("the tree was not read anew, or not all of it: {state}");
    }
    Ok(took)
}

/// Lines of the Rust in the tree.
fn lines(top: &Path) -> Result<usize> {
    let mut open: Vec<PathBuf> = ["host", "plugins", "filters", "tests"]
        .map(|name| top.join(name))
        .into();
    let mut n_lines = 0;
    while let Some(place) = open.pop() {
        if place.is_dir() {
            for entry in fs::read_dir(&place)? {
                open.push(entry?.path());
            }
        } else if place.extension().is_some_and(|extension| extension == "rs") {
            let text = fs::read(&place)?;
            n_lines += text.iter().filter(|byte| **byte == b'\n').count();
        }
    }
    Ok(n_lines)
}
