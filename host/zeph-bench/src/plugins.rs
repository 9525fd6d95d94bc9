//! The figures of plugins in a folder: what twenty of them cost at start, and what compiling a large one costs the others.

use std::fs;
use std::io::{BufRead as _, BufReader, Read};
use std::path::{Path, PathBuf};
use std::process::Stdio;
use std::sync::mpsc::Receiver;
use std::time::{Duration, Instant};

use anyhow::{Context as _, Result, bail};
use serde_json::json;

use crate::figures::{Bench, Row, shown, verdict};
use crate::program::profile_dir;
use crate::timing::{in_turns, median, percentile, wall};

/// Plugins in the folder.
const N_PLUGINS: usize = 20;

/// Runs of each side; an odd number, so that the median is one of them.
const N_RUNS: usize = 21;

/// Longest start with that many plugins and a warm cache.
const START_MAX: Duration = Duration::from_millis(60);

/// How much longer a start may take when the same plugins are larger. Source: "does not grow with their size", and the noise of
/// two medians.
const GROWTH_MAX: f64 = 1.15;

/// Bytes added to each plugin for that comparison, in a section nobody reads: what a Python component has.
const PADDING_BYTES: usize = 18 * 1024 * 1024;

/// The start with plugins that are known: small ones against the same ones made large.
pub(crate) fn start(bench: &Bench) -> Result<Vec<Row>> {
    let components = components()?;
    let kinds: Vec<String> = components
        .iter()
        .map(|(name, bytes)| format!("{name} {:.1} MB", megabytes(bytes.len())))
        .collect();
    let small = fill(&profile_dir("bench-plugins-small")?, &components, 0)?;
    let large = fill(
        &profile_dir("bench-plugins-large")?,
        &components,
        PADDING_BYTES,
    )?;
    let run = |config: &Path| {
        let mut command = bench.installed.command(&bench.corpus.tiny);
        let command = command
            .arg("--config")
            .arg(config)
            .args(["call", "read", "path=one.txt"]);
        Ok(wall(command)?.map(|(took, _)| took))
    };
    // The first look compiles everything; it belongs to no figure.
    for config in [&small, &large] {
        let mut command = bench.installed.command(&bench.corpus.tiny);
        wall(command.arg("--config").arg(config).args(["plugin", "list"]))?;
    }
    let pair = in_turns(
        N_RUNS,
        || Ok(run(&small)?.unwrap_or_default()),
        || run(&large),
    )?;
    let Some(with_large) = pair.peers else {
        bail!("bug: the program is installed")
    };
    let growth = with_large.as_secs_f64() / pair.ours.as_secs_f64();
    Ok(vec![
        Row {
            figure: format!(
                "`zeph-host call read` with {N_PLUGINS} plugins in the folder ({}), warm cache",
                kinds.join(", ")
            ),
            measured: shown(pair.ours),
            reach: format!("≤ {}", shown(START_MAX)),
            ratio: verdict("", pair.ours <= START_MAX),
        },
        Row {
            figure: format!(
                "the same, each plugin {} MB larger",
                PADDING_BYTES / (1024 * 1024)
            ),
            measured: format!("{} against {}", shown(with_large), shown(pair.ours)),
            reach: format!("≤ {GROWTH_MAX} ×"),
            ratio: verdict(&format!("{growth:.2}"), growth <= GROWTH_MAX),
        },
    ])
}

/// Calls of other tools while a large component is compiled for the first time.
pub(crate) fn compile(bench: &Bench) -> Result<Vec<Row>> {
    let components = components()?;
    let Some((name, bytes)) = components.iter().max_by_key(|(_, bytes)| bytes.len()) else {
        bail!("bug: there is at least one component");
    };
    let config = fill(&profile_dir("bench-plugins-one")?, &[], 0)?;
    let folder = config.with_file_name("plugins");
    let mut command = bench.installed.command(&bench.corpus.tiny);
    command
        .arg("--config")
        .arg(&config)
        .arg("run")
        .stderr(Stdio::piped());
    let mut host = bench.installed.start(command)?;
    let notes = host.notes().context("bug: standard error is a pipe")?;
    let params = json!({"path": "one.txt"});
    let mut before = Vec::new();
    for _ in 0..500 {
        before.push(host.call("read", &params)?.1);
    }
    let receiver = lines(notes);
    let started = Instant::now();
    fs::write(
        folder.join("large.part"),
        stamped(bytes, started.elapsed().subsec_nanos(), 0),
    )?;
    fs::rename(folder.join("large.part"), folder.join("large.wasm"))?;
    let mut during = Vec::new();
    let mut said = Vec::new();
    while !said
        .iter()
        .any(|line: &String| line.contains("plugin `large`:"))
    {
        during.push(host.call("read", &params)?.1);
        said.extend(receiver.try_iter());
        if started.elapsed() > Duration::from_secs(180) {
            bail!("`{name}` is not compiled after three minutes: {said:?}");
        }
    }
    let took = started.elapsed();
    let n_compiled = said
        .iter()
        .filter(|line| line.contains("compiling plugin"))
        .count();
    let (quiet, busy) = (percentile(&mut before, 99), percentile(&mut during, 99));
    Ok(vec![Row {
        figure: format!(
            "`read` while {name} ({:.1} MB) is compiled for the first time ({}), p50 and p99",
            megabytes(bytes.len()),
            shown(took)
        ),
        measured: format!(
            "{} and {} against {} and {} before",
            shown(median(&mut during)),
            shown(busy),
            shown(median(&mut before)),
            shown(quiet)
        ),
        reach: "p99 ≤ 100 ms, compiled once, announced".to_owned(),
        ratio: verdict("", busy <= Duration::from_millis(100) && n_compiled == 1),
    }])
}

/// The lines that a program prints, as they come.
fn lines(output: impl Read + Send + 'static) -> Receiver<String> {
    let (sender, receiver) = std::sync::mpsc::channel();
    std::thread::spawn(move || {
        for line in BufReader::new(output).lines().map_while(Result::ok) {
            drop(sender.send(line));
        }
    });
    receiver
}

/// One component of each language there is: those of the templates once their tests have run, else the one of the tests.
fn components() -> Result<Vec<(String, Vec<u8>)>> {
    let mut found = Vec::new();
    for language in ["rust", "c", "js", "python"] {
        if let Some(path) = built(language)? {
            found.push((language.to_owned(), fs::read(path)?));
        }
    }
    if found.is_empty() {
        bail!(
            "there is no component to measure with\n\nhint: `ZEPH_SLOW_TESTS=1 cargo xtask test` builds them"
        );
    }
    Ok(found)
}

/// The newest component of a language's template.
pub(crate) fn built(language: &str) -> Result<Option<PathBuf>> {
    let folder = profile_dir("toolchains")?.join("built");
    let Ok(entries) = fs::read_dir(&folder) else {
        return Ok(None);
    };
    let mut newest = None;
    for entry in entries {
        let path = entry?.path();
        let name = path.file_name().unwrap_or_default().to_string_lossy();
        // Beside it lies what was built of other templates: `count_rust_filter-…`.
        if name.starts_with(&format!("count_{language}-")) && name.ends_with(".wasm") {
            let modified = fs::metadata(&path)?.modified()?;
            newest = newest.max(Some((modified, path)));
        }
    }
    Ok(newest.map(|(_, path)| path))
}

/// A folder with [`N_PLUGINS`] different plugins beside a configuration file, whose path is returned.
fn fill(place: &Path, components: &[(String, Vec<u8>)], padding: usize) -> Result<PathBuf> {
    let folder = place.join("plugins");
    fs::create_dir_all(&folder)?;
    for (idx, (name, bytes)) in components.iter().cycle().take(N_PLUGINS).enumerate() {
        let path = folder.join(format!("{name}-{idx}.wasm"));
        if !path.exists() {
            let number = u32::try_from(idx)?;
            fs::write(path, stamped(bytes, number, padding))?;
        }
    }
    let config = place.join("config.toml");
    fs::write(&config, "")?;
    Ok(config)
}

/// The same component with a section of its own at the end: another file, with the same code.
fn stamped(component: &[u8], number: u32, padding: usize) -> Vec<u8> {
    let mut body = vec![5];
    body.extend(b"bench");
    body.extend(number.to_le_bytes());
    body.resize(body.len() + padding, 0);
    let mut bytes = component.to_vec();
    bytes.push(0);
    let mut rest = body.len();
    while rest >= 128 {
        bytes.push(u8::try_from(rest & 127).unwrap_or_default() | 128);
        rest >>= 7;
    }
    bytes.push(u8::try_from(rest).unwrap_or_default());
    bytes.extend(body);
    bytes
}

#[expect(clippy::cast_precision_loss, reason = "a size for people")]
fn megabytes(n_bytes: usize) -> f64 {
    n_bytes as f64 / 1e6
}
