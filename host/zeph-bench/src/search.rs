//! The figures of code search: a tree that is read for the first time, and questions to its index.

use std::fs;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use anyhow::{Context as _, Result, bail};
use serde_json::{Value, json};
use zeph_plugin_search::index::file_of;
use zeph_plugin_search::tool::Ground;

use crate::figures::{Bench, Row, shown, verdict};
use crate::timing::{in_turns, median, percentile, wall};

/// Times that the tree is read anew.
const N_READS: usize = 3;

/// Questions of each kind.
const N_QUERIES: usize = 100;

/// Lines of the tree that is read.
const N_LINES: usize = 100_000;

/// Longest first reading of them.
const READ_MAX: Duration = Duration::from_secs(10);

/// How much longer the first reading may take in the guest than the same code takes natively.
const GUEST_MAX: f64 = 3.0;

/// Longest that the native reading may take.
const NATIVE_TIME: Duration = Duration::from_secs(600);

/// Longest answer to a question, whatever it is.
const QUERY_MAX: Duration = Duration::from_millis(50);

/// A name, words, a part of a name, and words that are nowhere.
const QUERIES: [&str; 4] = [
    "AuthorizedCall",
    "read only grant",
    "search",
    "parse_http_url_of_nothing",
];

/// Real code: the first 100,000 lines of this repository.
pub(crate) fn search(bench: &Bench) -> Result<Vec<Row>> {
    let folder = tempfile::tempdir()?;
    let tree = folder.path().canonicalize()?;
    let n_lines = code(&tree)?;
    let (mut n_files, mut n_native) = (0_u64, 0_u64);
    let mut reads = Vec::new();
    let both = in_turns(
        N_READS,
        || {
            let (took, files) = first_read(bench, &tree)?;
            n_files = files;
            reads.push(took);
            Ok(took)
        },
        || {
            let (took, files) = native_read(&tree)?;
            n_native = files;
            Ok(Some(took))
        },
    )?;
    if n_files != n_native {
        bail!(
            "{n_files} files were read in the guest and {n_native} natively: they cannot be compared"
        );
    }
    let native = both.peers.unwrap_or_default();
    let ratio = both.ratio().unwrap_or(f64::NAN);
    let mut times = queries(bench, &tree)?;
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
            figure: format!("the same {n_files} files, against the same code native"),
            measured: format!("{} against {}", shown(both.ours), shown(native)),
            reach: format!("≤ {GUEST_MAX} ×"),
            ratio: verdict(&format!("{ratio:.2}"), ratio <= GUEST_MAX),
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

/// How long each query takes, one after the other.
fn queries(bench: &Bench, tree: &Path) -> Result<Vec<Duration>> {
    let mut host = bench.installed.run(tree, &[])?;
    let mut times = Vec::new();
    for query in QUERIES.iter().cycle().take(N_QUERIES * QUERIES.len()) {
        let params = json!({"query": query, "refresh": false});
        let (answer, _) = host.call("search_code", &params)?;
        let took_ms = answer["duration_ms"].as_f64().unwrap_or(f64::NAN);
        times.push(Duration::try_from_secs_f64(took_ms / 1e3)?);
    }
    Ok(times)
}

/// Reads the tree in this process, without the guard and without the guest: the time, and the files.
fn native_read(tree: &Path) -> Result<(Duration, u64)> {
    let cache = tempfile::tempdir()?;
    let ground = Ground {
        file: Some(file_of(cache.path(), tree)),
        top: tree.to_owned(),
        below: String::new(),
        time: Some(NATIVE_TIME),
    };
    let began = Instant::now();
    let read = ground.index(".");
    let took = began.elapsed();
    match read {
        Ok((_, state)) if state.pending == 0 => Ok((took, state.files as u64)),
        read => bail!(
            "the tree was not read natively: {:?}",
            read.map(|(_, state)| state)
        ),
    }
}

/// Reads the tree without what was kept of it: the time, and the files.
fn first_read(bench: &Bench, tree: &Path) -> Result<(Duration, u64)> {
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
    let files = state["files"].as_u64().unwrap_or_default();
    Ok((took, files))
}

/// Copies the Rust of this repository in the order of its paths, until the lines are enough; says how many they are.
fn code(tree: &Path) -> Result<usize> {
    let top = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
    let mut open: Vec<PathBuf> = ["filters", "host", "plugins"].map(PathBuf::from).into();
    let mut files = Vec::new();
    while let Some(path) = open.pop() {
        let place = top.join(&path);
        if place.is_dir() {
            for entry in fs::read_dir(&place)? {
                open.push(path.join(entry?.file_name()));
            }
        } else if path.extension().is_some_and(|extension| extension == "rs") {
            files.push(path);
        }
    }
    files.sort();
    let mut n_lines = 0;
    for path in files {
        if n_lines >= N_LINES {
            break;
        }
        let text = fs::read(top.join(&path))?;
        n_lines += text.iter().filter(|byte| **byte == b'\n').count();
        let copy = tree.join(&path);
        fs::create_dir_all(copy.parent().context("bug: a file lies in a directory")?)?;
        fs::write(copy, text)?;
    }
    Ok(n_lines)
}
