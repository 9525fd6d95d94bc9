//! Two servers at once: as replicas over one PostgreSQL store, and each with a SQLite store of its own.

use std::fs;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::Duration;

use anyhow::{Result, anyhow};

use super::load::{Caller, N_CALLERS, Server};
use crate::figures::{Bench, Row, verdict};
use crate::postgres;
use crate::program::profile_dir;

/// How long each side is called, and how often.
const DURATION: Duration = Duration::from_secs(15);
const N_TURNS: usize = 3;

/// What the replicas have to reach of the others.
const REACH: f64 = 0.8;

/// The throughput of both sides, measured in turns.
pub(crate) fn replicas(bench: &Bench) -> Result<Vec<Row>> {
    let figure = format!("two replicas on PostgreSQL, {N_CALLERS} callers over HTTP");
    let reach = format!("≥ {REACH} × two hosts with SQLite stores of their own");
    let Some(database) = postgres::Server::of_run() else {
        return Ok(vec![Row {
            figure,
            measured: "PostgreSQL is not installed".to_owned(),
            reach,
            ratio: "–".to_owned(),
        }]);
    };
    let url = format!("store.url=\"{}\"", database.schema().url());
    let folder = profile_dir("bench-replicas")?;
    fs::create_dir_all(&folder)?;
    let stores = ["one", "two"].map(|name| {
        let file = folder.join(format!("{name}.db"));
        format!("store.path=\"{}\"", file.display())
    });
    let (mut shared, mut apart) = (0, 0);
    for _ in 0..N_TURNS {
        shared += calls(bench, [&url, &url])?;
        apart += calls(bench, [&stores[0], &stores[1]])?;
    }
    let seconds = DURATION.as_secs_f64() * N_TURNS as f64;
    let ratio = shared as f64 / apart as f64;
    Ok(vec![Row {
        figure,
        measured: format!(
            "{:.0} calls/s against {:.0}",
            shared as f64 / seconds,
            apart as f64 / seconds
        ),
        reach,
        ratio: verdict(&format!("{ratio:.2}"), ratio >= REACH),
    }])
}

/// The calls that two servers with these stores answer, half of the callers at each.
fn calls(bench: &Bench, stores: [&str; 2]) -> Result<usize> {
    let servers = stores.map(|store| Server::start_with(bench, &["--set", store]));
    let [one, two] = servers;
    let servers = [one?, two?];
    let is_over = AtomicBool::new(false);
    let counts = thread::scope(|scope| {
        let caller = |idx: usize| {
            let (server, is_over) = (&servers[idx % 2], &is_over);
            scope.spawn(move || Ok(Caller::connect(&server.address)?.until(is_over)?.len()))
        };
        let callers: Vec<_> = (0..N_CALLERS).map(caller).collect();
        thread::sleep(DURATION);
        is_over.store(true, Ordering::Relaxed);
        let ended = callers.into_iter().map(|caller| {
            let ended: Result<usize> = caller.join().map_err(|_| anyhow!("a caller failed"))?;
            ended
        });
        ended.collect::<Result<Vec<usize>>>()
    })?;
    Ok(counts.iter().sum())
}
