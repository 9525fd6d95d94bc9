//! `zeph-host policy report`: what rules and grants on trial would have decided.

use serde_json::{Value, json};
use zeph_store::ObservedCount;

use crate::cli::context::{self, Context};
use crate::cli::error::CliError;
use crate::cli::exit::Exit;
use crate::cli::page::print_json;
use crate::cli::{out, time};
use crate::clock::now_ms;
use crate::run::table;

/// Runs the command.
pub(super) fn run(context: &Context, since: Option<&str>, as_json: bool) -> Result<Exit, CliError> {
    let since_ms = since.map(|text| time::read(text, now_ms()));
    let since_ms = since_ms.transpose().map_err(CliError::user)?;
    let config = context.config()?;
    let store = context.store_to_look(&config)?;
    let counts = context::block_on(async {
        Ok(store.observed_counts(since_ms.unwrap_or_default()).await?)
    })?;
    match as_json {
        true => print_json(&counts.iter().map(json).collect::<Value>())?,
        false => out::styled(&as_table(&counts))?,
    }
    if counts.is_empty() && !as_json && !context.quiet {
        out::remark("no rule with `mode = \"observe\"` would have decided anything else");
    }
    Ok(Exit::Success)
}

fn json(count: &ObservedCount) -> Value {
    json!({
        "rule": count.rule,
        "would": count.would,
        "decided": count.decided,
        "tool": count.tool,
        "calls": count.n_calls,
        "last": time::shown(count.last_at_ms),
    })
}

fn as_table(counts: &[ObservedCount]) -> String {
    let rows: Vec<[String; 6]> = counts.iter().map(row).collect();
    let head = ["CALLS", "WOULD", "DECIDED", "TOOL", "LAST", "RULE"];
    table::render(head, &rows, out::width())
}

fn row(count: &ObservedCount) -> [String; 6] {
    [
        count.n_calls.to_string(),
        count.would.clone(),
        count.decided.clone(),
        count.tool.clone(),
        time::shown(count.last_at_ms),
        count.rule.clone(),
    ]
}
