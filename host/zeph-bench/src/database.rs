//! The whole line with its store on a server, against the store that is a file.

use std::time::Duration;

use anyhow::Result;
use serde_json::json;

use crate::figures::{Bench, Row, compare, recorded};
use crate::host::Host;
use crate::postgres::Server;
use crate::timing::in_turns;

/// Calls of each side.
const N_CALLS: usize = 1_000;

/// What the server may cost.
const REACH: f64 = 3.0;

/// A `read` by the host's own clock, which ends when it is recorded.
pub(crate) fn line(bench: &Bench) -> Result<Vec<Row>> {
    let figure = "`read` of one line, with the store on PostgreSQL over loopback";
    let Some(server) = Server::of_run() else {
        return Ok(vec![Row {
            figure: figure.to_owned(),
            measured: "PostgreSQL is not installed".to_owned(),
            reach: String::new(),
            ratio: "–".to_owned(),
        }]);
    };
    let schema = server.schema();
    let url = format!("store.url=\"{}\"", schema.url());
    let directory = &bench.corpus.tiny;
    let mut on_server = bench.installed.run(directory, &["--set", &url])?;
    let mut in_file = bench.installed.run(directory, &[])?;
    let ours = || read(&mut on_server);
    let pair = in_turns(N_CALLS, ours, || read(&mut in_file).map(Some))?;
    Ok(vec![compare(figure, "SQLite, p50", REACH, &pair)])
}

fn read(host: &mut Host) -> Result<Duration> {
    recorded(&host.call("read", &json!({"path": "one.txt"}))?.0)
}
