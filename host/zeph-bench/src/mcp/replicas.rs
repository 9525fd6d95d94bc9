//! Servers over one PostgreSQL store, against the same with SQLite stores of their own: the throughput of two, and a call of one.
//!
//! The database writes to its disk as it does unless it is told otherwise.

use std::fs;
use std::path::PathBuf;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::Duration;

use anyhow::{Result, anyhow};

use super::load::{Caller, N_CALLERS, Server};
use crate::figures::{Bench, Row, shown, verdict};
use crate::postgres;
use crate::program::profile_dir;
use crate::timing::median;

/// How long each side is called, and how often.
const DURATION: Duration = Duration::from_secs(15);
const N_TURNS: usize = 3;

/// What the replicas have to reach of the others.
const REACH: f64 = 0.8;

/// Settings of a server whose data counts.
const DATABASE: &str = "fsync = on\nfull_page_writes = on\n";

/// Calls of the figure about one call, and what it has to reach.
const N_CALLS: usize = 2_000;
const P50_REACH: f64 = 3.0;

/// What the two servers of a side are called.
const NAMES: [&str; 2] = ["one", "two"];

/// The stores of both sides, as settings, and where the servers keep what is their own.
struct Stores {
    shared: String,
    own: [String; 2],
    homes: [PathBuf; 2],
}

impl Stores {
    /// Fresh ones; none where PostgreSQL is not installed.
    fn fresh() -> Result<Option<Self>> {
        if postgres::programs().is_none() {
            return Ok(None);
        }
        let folder = profile_dir("bench-replicas")?;
        if folder.exists() {
            fs::remove_dir_all(&folder)?;
        }
        fs::create_dir_all(&folder)?;
        // Its user has to reach it, so it is not below the folder of this user.
        let data = std::env::temp_dir().join(format!("zeph-bench-{}", std::process::id()));
        let database = postgres::Server::of_test(&data, DATABASE);
        let own = NAMES.map(|name| {
            let file = folder.join(format!("{name}.db"));
            format!("store.path=\"{}\"", file.display())
        });
        Ok(Some(Self {
            shared: format!("store.url=\"{}\"", database.schema().url()),
            own,
            homes: NAMES.map(|name| folder.join(name)),
        }))
    }
}

/// The throughput of both sides and the time of a call, measured in turns.
pub(crate) fn replicas(bench: &Bench) -> Result<Vec<Row>> {
    let Some(stores) = Stores::fresh()? else {
        return Ok(vec![Row {
            figure: "replicas on PostgreSQL".to_owned(),
            measured: "PostgreSQL is not installed".to_owned(),
            reach: String::new(),
            ratio: "–".to_owned(),
        }]);
    };
    Ok(vec![one_call(bench, &stores)?, throughput(bench, &stores)?])
}

/// A call of a server that has nothing else to do.
fn one_call(bench: &Bench, stores: &Stores) -> Result<Row> {
    let [home, other] = &stores.homes;
    let start =
        |store: &str, home: &PathBuf| Server::start_with(bench, &["--set", store], Some(home));
    let servers = [start(&stores.shared, home)?, start(&stores.own[0], other)?];
    let mut callers = Vec::new();
    for server in &servers {
        callers.push(Caller::connect(&server.address)?);
    }
    let mut times = [Vec::new(), Vec::new()];
    for _ in 0..N_CALLS {
        for (caller, times) in callers.iter_mut().zip(&mut times) {
            times.push(caller.call()?);
        }
    }
    let [shared, own] = times.each_mut().map(|times| median(times));
    let ratio = shared.as_secs_f64() / own.as_secs_f64();
    Ok(Row {
        figure: "a call over HTTP with a store on PostgreSQL, p50".to_owned(),
        measured: format!("{} against {}", shown(shared), shown(own)),
        reach: format!("≤ {P50_REACH} × with SQLite"),
        ratio: verdict(&format!("{ratio:.2}"), ratio <= P50_REACH),
    })
}

/// The calls that two servers answer for many callers.
fn throughput(bench: &Bench, stores: &Stores) -> Result<Row> {
    // As `host/REPLICAS.md` sets them up: each has a name, and an identity of its own, as on a machine of its own.
    let named = NAMES.map(|name| format!("mcp.serve.replica=\"{name}\""));
    let [one, two] = &named;
    let shared_store = &stores.shared;
    let replicas = [
        vec!["--set", shared_store, "--set", one],
        vec!["--set", shared_store, "--set", two],
    ];
    let hosts = stores.own.each_ref().map(|own| vec!["--set", own]);
    let (mut shared, mut apart) = (0, 0);
    for _ in 0..N_TURNS {
        shared += calls(bench, &replicas, &stores.homes)?;
        apart += calls(bench, &hosts, &stores.homes)?;
    }
    let seconds = DURATION.as_secs_f64() * N_TURNS as f64;
    let ratio = shared as f64 / apart as f64;
    Ok(Row {
        figure: format!("two replicas on PostgreSQL, {N_CALLERS} callers over HTTP"),
        measured: format!(
            "{:.0} calls/s against {:.0}",
            shared as f64 / seconds,
            apart as f64 / seconds
        ),
        reach: format!("≥ {REACH} × two hosts with SQLite stores of their own"),
        ratio: verdict(&format!("{ratio:.2}"), ratio >= REACH),
    })
}

/// The calls that two servers with these arguments answer, half of the callers at each.
fn calls(bench: &Bench, args: &[Vec<&str>; 2], homes: &[PathBuf; 2]) -> Result<usize> {
    let start = |n: usize| Server::start_with(bench, &args[n], Some(&homes[n]));
    let servers = [start(0)?, start(1)?];
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
