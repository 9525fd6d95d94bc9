//! `zeph-host store`: prepares the store, or copies it to another database.

use std::path::{Path, PathBuf};

use serde_json::json;
use zeph_config::{Config, StoreLocation};
use zeph_store::{CopyKeys, CopyOptions, CopyReport, Location, RecordsHost, Store};

use super::args::{StoreArgs, StoreCommand, StorePlace};
use super::context::Context;
use super::error::CliError;
use super::exit::Exit;
use super::out;
use crate::host::{host_of, place_of_store};
use crate::scheduler;

/// Runs the command.
pub(super) fn run(context: &Context, options: StoreArgs) -> Result<Exit, CliError> {
    let config = context.config()?;
    match options.command {
        StoreCommand::Migrate => migrate(context, &config),
        StoreCommand::Copy { from, to, json } => {
            let from = location(context, &config, from)?;
            let to = location(context, &config, to)?;
            let data = context.surroundings.data_folder();
            let options = CopyOptions {
                store: place_of_store(&config)?.1,
                directories: scheduler::copied(&config, &from, &to),
                keys: CopyKeys {
                    from: keys_of(&from, data.as_deref()),
                    to: keys_of(&to, data.as_deref()),
                },
            };
            let is_quiet = context.quiet;
            let report = Store::copy(&from, &to, &options, &mut |table, n_rows| {
                if !is_quiet && n_rows > 0 {
                    out::remark(&format!("{table}: {n_rows}"));
                }
            })?;
            told(context, ((&from, &to), &options.keys), &report, json.json)
        }
    }
}

fn migrate(context: &Context, config: &Config) -> Result<Exit, CliError> {
    let (location, _) = place_of_store(config)?;
    drop(context.store(config)?);
    if !context.quiet {
        out::remark(&format!("the store `{location}` is ready for this version"));
    }
    Ok(Exit::Success)
}

fn location(context: &Context, config: &Config, place: StorePlace) -> Result<Location, CliError> {
    Ok(match place {
        StorePlace::Configured if config.store == StoreLocation::Memory => {
            return Err(CliError::user(
                "the configured store is in memory, where there is nothing to copy",
            )
            .hint("set `store.path` to a file, or `store.url` to a server"));
        }
        StorePlace::Configured => place_of_store(config)?.0,
        StorePlace::File(path) => Location::File(context.surroundings.working_directory.join(path)),
        StorePlace::Server(url) => {
            let host = host_of(context.surroundings.data_folder().as_deref())?;
            Location::Server(Box::new(url.of_host(host)))
        }
    })
}

fn told(
    context: &Context,
    ((from, to), keys): ((&Location, &Location), &CopyKeys),
    report: &CopyReport,
    is_json: bool,
) -> Result<Exit, CliError> {
    let n_rows: u64 = report.tables.iter().map(|(_, n_rows)| n_rows).sum();
    if is_json {
        let tables = report.tables.iter();
        let tables: Vec<_> = tables
            .map(|(table, rows)| json!({ "table": table, "rows": rows }))
            .collect();
        out::json(&json!({
            "tables": tables,
            "unsealed_hosts": report.n_hosts_unsealed,
            "replaced_texts": report.n_replaced,
            "omitted_tables": report.passed_over,
        }))?;
    }
    if context.quiet {
        return Ok(Exit::Success);
    }
    let n_tables = report.tables.len();
    out::remark(&format!(
        "copied all rows ({n_rows}) of {n_tables} tables from `{from}` to `{to}`"
    ));
    notes(report, keys).iter().for_each(|note| out::note(note));
    Ok(Exit::Success)
}

/// What an operator should know of a copy, one sentence each.
fn notes(report: &CopyReport, keys: &CopyKeys) -> Vec<String> {
    let mut notes = Vec::new();
    if !report.passed_over.is_empty() {
        notes.push(format!(
            "tables that are not part of a store were not copied: `{}`",
            report.passed_over.join("`, `")
        ));
    }
    if report.n_replaced > 0 {
        notes.push(format!(
            "texts with zero bytes, which a server cannot hold, have U+001A in their place: {}",
            report.n_replaced
        ));
    }
    let unsealed = "without their seals; `zeph-host audit verify` says so until the first call there begins a log";
    match report.n_hosts_unsealed {
        0 => {}
        1 => notes.push(format!(
            "the audit records of another host, whose keys are not there, were copied {unsealed}"
        )),
        n_hosts => notes.push(format!(
            "the audit records of {n_hosts} hosts were copied {unsealed}"
        )),
    }
    notes.extend(note_on_keys(report, keys));
    notes
}

/// Whose the audit records are, and where the keys have to be.
fn note_on_keys(report: &CopyReport, keys: &CopyKeys) -> Option<String> {
    let CopyKeys { from, to } = keys;
    match (&report.records_host, to) {
        (Some(RecordsHost::Of(folder)), Some(to)) => Some(format!(
            "the audit records still belong to the host with the data directory `{}`; to go on with them under this user, move `host-id` and `secrets` from there to `{}`",
            folder.display(),
            to.parent().unwrap_or(to).display()
        )),
        (Some(RecordsHost::New(host)), _) => Some(format!(
            "the key of the audit records was not found, so they belong to a host of their own; the host that has it goes on with them when the file `host-id` in its data directory holds `{host}`"
        )),
        _ => {
            let (old, new) = (from.as_ref()?, to.as_ref()?);
            (old != new && old.exists()).then(|| {
                format!(
                    "secrets and the keys of the audit log are still in `{}`; the copy looks for them in `{}`",
                    old.display(),
                    new.display()
                )
            })
        }
    }
}

/// Where a host on that store has its secrets.
fn keys_of(location: &Location, data: Option<&Path>) -> Option<PathBuf> {
    match location {
        Location::Memory => None,
        Location::File(path) => StoreLocation::File(path.clone()).secrets(),
        Location::Server(_) => Some(data?.join("secrets")),
    }
}
