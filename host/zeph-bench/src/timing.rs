//! Measuring two things in turns, so that a busy moment of the machine touches both.

use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use anyhow::{Context as _, Result, bail};

/// Medians of the same number of runs.
pub(crate) struct Pair {
    pub(crate) ours: Duration,
    /// None when the peer is not installed.
    pub(crate) peers: Option<Duration>,
}

impl Pair {
    /// Ours by the peer's.
    pub(crate) fn ratio(&self) -> Option<f64> {
        self.peers
            .map(|peers| self.ours.as_secs_f64() / peers.as_secs_f64())
    }
}

/// Runs both once to warm up, then `n_runs` times in turns.
pub(crate) fn in_turns(
    n_runs: usize,
    mut ours: impl FnMut() -> Result<Duration>,
    mut peers: impl FnMut() -> Result<Option<Duration>>,
) -> Result<Pair> {
    ours()?;
    peers()?;
    let (mut our_times, mut peer_times) = (Vec::new(), Vec::new());
    for _ in 0..n_runs {
        our_times.push(ours()?);
        peer_times.extend(peers()?);
    }
    let peers = if peer_times.is_empty() {
        None
    } else {
        Some(median(&mut peer_times))
    };
    Ok(Pair {
        ours: median(&mut our_times),
        peers,
    })
}

/// The wall time of a program from its start to its end, with all it printed. None when it is not installed.
pub(crate) fn wall(command: &mut Command) -> Result<Option<(Duration, Vec<u8>)>> {
    wall_of(command.stdin(Stdio::null()))
}

/// The same, of a program that has its standard input already.
pub(crate) fn wall_of(command: &mut Command) -> Result<Option<(Duration, Vec<u8>)>> {
    let started = Instant::now();
    let output = match command.output() {
        Ok(output) => output,
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => return Ok(None),
        Err(error) => {
            return Err(error)
                .with_context(|| format!("cannot start `{}`", command.get_program().display()));
        }
    };
    let took = started.elapsed();
    if !output.status.success() {
        let said = String::from_utf8_lossy(&output.stderr);
        bail!(
            "`{}` failed: {}",
            command.get_program().display(),
            said.trim()
        );
    }
    Ok(Some((took, output.stdout)))
}

/// The processor time, user and system, that ended children of this process have used.
pub(crate) fn of_children() -> Result<Duration> {
    const TICKS_PER_SECOND: u64 = 100;
    let text = std::fs::read_to_string("/proc/self/stat").context("no `/proc` is mounted")?;
    let (_, fields) = text
        .rsplit_once(')')
        .context("`/proc/self/stat` is of another shape")?;
    // After the name; `proc(5)` counts from 1.
    let ticks = fields.split_whitespace().skip(13).take(2);
    let ticks: u64 = ticks.filter_map(|field| field.parse::<u64>().ok()).sum();
    Ok(Duration::from_millis(ticks * 1_000 / TICKS_PER_SECOND))
}

/// The middle of `times`.
pub(crate) fn median(times: &mut [Duration]) -> Duration {
    percentile(times, 50)
}

/// The smallest time that `percent` of `times` do not exceed.
pub(crate) fn percentile(times: &mut [Duration], percent: usize) -> Duration {
    times.sort_unstable();
    times[(times.len() * percent / 100).min(times.len() - 1)]
}
