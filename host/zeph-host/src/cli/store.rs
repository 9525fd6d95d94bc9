//! `zeph-host store`: prepares the store, or copies it to another database.

use std::path::{Path, PathBuf};

use serde_json::json;
use zeph_config::{Config, StoreLocation};
use zeph_store::{CopyOptions, CopyReport, Location, Store};

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
            let options = CopyOptions {
                store: place_of_store(&config)?.1,
                directories: scheduler::copied(&config, &from, &to),
            };
            let is_quiet = context.quiet;
            let report = Store::copy(&from, &to, &options, &mut |table, n_rows| {
                if !is_quiet && n_rows > 0 {
                    out::remark(&format!("{table}: {n_rows}"));
                }
            })?;
            told(context, (&from, &to), &report, json.json)
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
    (from, to): (&Location, &Location),
    report: &CopyReport,
    is_json: bool,
) -> Result<Exit, CliError> {
    let n_rows: u64 = report.tables.iter().map(|(_, n_rows)| n_rows).sum();
    if is_json {
        let tables = report.tables.iter();
        let tables: Vec<_> = tables
            .map(|(table, rows)| json!({ "table": table, "rows": rows }))
            .collect();
        out::json(&json!({ "tables": tables, "unsealed_hosts": report.n_hosts_unsealed }))?;
    }
    if context.quiet {
        return Ok(Exit::Success);
    }
    let n_tables = report.tables.len();
    out::remark(&format!(
        "copied all rows ({n_rows}) of {n_tables} tables from `{from}` to `{to}`"
    ));
    if report.n_hosts_unsealed > 0 {
        out::note(&format!(
            "the audit records of {} hosts were copied without their seals; `zeph-host audit verify` says so until the first call there begins a log",
            report.n_hosts_unsealed
        ));
    }
    let data = context.surroundings.data_folder();
    let (old, new) = (keys_of(from, data.as_deref()), keys_of(to, data.as_deref()));
    if let (Some(old), Some(new)) = (old, new)
        && old != new
        && old.exists()
    {
        out::note(&format!(
            "secrets and the keys of the audit log are still in `{}`; the copy looks for them in `{}`",
            old.display(),
            new.display()
        ));
    }
    Ok(Exit::Success)
}

/// Where a host on that store has its secrets.
fn keys_of(location: &Location, data: Option<&Path>) -> Option<PathBuf> {
    match location {
        Location::Memory => None,
        Location::File(path) => StoreLocation::File(path.clone()).secrets(),
        Location::Server(_) => Some(data?.join("secrets")),
    }
}
