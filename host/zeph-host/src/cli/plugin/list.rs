//! `zeph-host plugin list`: one line for each plugin.

use std::path::PathBuf;

use serde_json::{Value, json};
use zeph_config::Config;
use zeph_plugins::manage::ManageError;
use zeph_plugins::manage::holdings::Holdings;
use zeph_plugins::set::{PluginSet, PluginStanding, Status};
use zeph_store::GrantRecord;

use super::display::{self, Page};
use crate::cli::args::Json;
use crate::cli::context::{self, Context};
use crate::cli::error::CliError;
use crate::cli::exit::Exit;
use crate::cli::out;
use crate::clock::now_ms;
use crate::host::Host;
use crate::run::table;

/// A plugin, and how much of what it wants it has.
struct Row<'a> {
    standing: &'a PluginStanding,
    n_granted: usize,
    n_wanted: usize,
}

/// Runs the command. `all`: with the plugins of the program, which the table always has.
pub(super) fn run(context: &Context, json: Json, all: bool) -> Result<Exit, CliError> {
    let config = context.config()?;
    context::block_on(async {
        if config.plugins.folders.is_empty() {
            context.notes(&[ManageError::Off.to_string()]);
        }
        let host = super::settled(context, config).await?;
        let grants = host.store().list_grants(None).await?;
        let set = host.plugins();
        context.notes(&unused_settings(&set, host.config()));
        let rows = rows(&set, &grants, host.config());
        let own = own(&host, &set).await?;
        match json.json {
            true => display::print_json(
                &rows
                    .iter()
                    .map(as_json)
                    .chain(own.iter().filter(|_| all).map(own_json))
                    .collect(),
            ),
            false if rows.is_empty() => empty(&host.config().plugins.folders),
            false => as_table(&rows),
        }?;
        if !json.json {
            print_own(&own)?;
        }
        Ok(Exit::Success)
    })
}

/// A plugin of the program, on a line.
struct Own {
    name: String,
    n_granted: usize,
    n_wanted: usize,
    has_defaults: bool,
    tools: Vec<String>,
}

async fn own(host: &Host, set: &PluginSet) -> Result<Vec<Own>, CliError> {
    let mut own = Vec::new();
    for good in set.of_program() {
        let (has_defaults, holdings) = super::own_holdings(host, good).await?;
        own.push(Own {
            name: good.plugin.id().to_string(),
            n_granted: holdings.n_granted(),
            n_wanted: holdings.wants.len(),
            has_defaults,
            tools: good
                .plugin
                .tools()
                .iter()
                .map(|tool| tool.name.to_string())
                .collect(),
        });
    }
    Ok(own)
}

/// Without file, folder and size: it has none of its own.
fn own_json(own: &Own) -> Value {
    json!({
        "name": own.name,
        "origin": "program",
        "status": "active",
        "tools": own.tools,
        "wanted": own.n_wanted,
        "granted": own.n_granted,
        "default_grants": own.has_defaults,
    })
}

/// The plugins of the program, below those of the folders.
fn print_own(own: &[Own]) -> Result<(), CliError> {
    let mut page = Page::new();
    page.head("PART OF THE HOST");
    for Own {
        name,
        n_granted,
        n_wanted,
        has_defaults,
        ..
    } in own
    {
        let grants = match has_defaults {
            true => "by default",
            false => "default grants revoked",
        };
        page.line(
            1,
            &format!("{name}  {n_granted}/{n_wanted} granted, {grants}"),
        );
    }
    page.print()
}

/// Settings that no plugin reads: a name may be mistyped.
fn unused_settings(set: &PluginSet, config: &Config) -> Vec<String> {
    let names = config.plugins.settings.keys();
    let is_own = |name: &str| set.of_program().any(|own| own.plugin.id().0 == name);
    let nobodys = names.filter(|name| set.standing(name).is_none() && !is_own(name));
    nobodys
        .map(|name| format!("`plugins.settings.{name}`: no plugin is named `{name}`"))
        .collect()
}

fn rows<'a>(set: &'a PluginSet, grants: &[GrantRecord], config: &Config) -> Vec<Row<'a>> {
    let mut standings: Vec<&PluginStanding> = set.standings.iter().collect();
    standings.sort_by_key(|standing| (&standing.name, standing.folder_idx));
    let row = |standing: &'a PluginStanding| {
        let Some(good) = &standing.good else {
            return Row {
                standing,
                n_granted: 0,
                n_wanted: 0,
            };
        };
        let own = grants.iter().filter(|grant| grant.plugin == standing.name);
        let own = own.cloned().collect();
        let holdings = Holdings::new(&good.manifest, good.pin, own, config, now_ms());
        Row {
            standing,
            n_granted: holdings.n_granted(),
            n_wanted: holdings.wants.len(),
        }
    };
    standings.into_iter().map(row).collect()
}

fn as_json(row: &Row<'_>) -> Value {
    let standing = row.standing;
    let about = standing.good.as_ref().map(|good| &good.about);
    let signature = standing.signature.as_ref();
    let signer = signature.and_then(|signature| signature.verdict.signed_by());
    let mut members = display::members(json!({
        "name": standing.name,
        "origin": "folder",
        "file": standing.path,
        "folder": standing.path.parent(),
        "bytes": standing.n_bytes,
        "version": about.and_then(|about| about.version.as_ref()),
        "tools": standing.tools,
        "strategies": standing.strategies,
        "wanted": row.n_wanted,
        "granted": row.n_granted,
        "signer": signer.map(|by| &by.signer),
        "changed": standing.has_changed,
    }));
    members.extend(display::status_json(&standing.status));
    Value::Object(members)
}

fn as_table(rows: &[Row<'_>]) -> Result<(), CliError> {
    let (bad, good): (Vec<&Row<'_>>, Vec<_>) = rows
        .iter()
        .partition(|row| matches!(row.standing.status, Status::Quarantined(_)));
    let mut page = Page::new();
    if !good.is_empty() {
        let cells: Vec<[String; 6]> = good.iter().map(|row| cells(row)).collect();
        let head = ["NAME", "STATUS", "WANTS", "VERSION", "SIZE", "OFFERS"];
        let is_checked = good.iter().any(|row| row.standing.signature.is_some());
        let signed: Vec<[String; 7]> = good.iter().map(|row| signed_cells(row)).collect();
        let table = match is_checked {
            true => table::render(SIGNED_HEAD, &signed, out::width()),
            false => table::render(head, &cells, out::width()),
        };
        page.push(&table);
    }
    for row in bad {
        let Status::Quarantined(reason) = &row.standing.status else {
            continue;
        };
        page.head(&row.standing.name.0);
        page.dim(1, &row.standing.path.to_string_lossy());
        page.line(1, &format!("not used: {reason}"));
    }
    page.print()
}

/// The columns where signatures are checked.
const SIGNED_HEAD: [&str; 7] = [
    "NAME",
    "STATUS",
    "SIGNED BY",
    "WANTS",
    "VERSION",
    "SIZE",
    "OFFERS",
];

/// The same with the signer.
fn signed_cells(row: &Row<'_>) -> [String; 7] {
    let signature = row.standing.signature.as_ref();
    let signer = signature.map(|signature| match signature.verdict.signed_by() {
        Some(by) => by.signer.clone(),
        None => "nobody".to_owned(),
    });
    let [name, status, wants, version, size, offers] = cells(row);
    let signer = signer.unwrap_or_default();
    [name, status, signer, wants, version, size, offers]
}

fn cells(row: &Row<'_>) -> [String; 6] {
    let standing = row.standing;
    let about = standing.good.as_ref().map(|good| &good.about);
    let version = about.and_then(|about| about.version.clone());
    let tools = standing.tools.iter().map(ToString::to_string);
    let strategies = standing.strategies.iter();
    // As rules name them.
    let offers: Vec<String> = tools
        .chain(strategies.map(|name| format!("wasm:{name}")))
        .collect();
    [
        standing.name.to_string(),
        status(standing),
        format!("{}/{}", row.n_granted, row.n_wanted),
        zeph_plugins::visible::visible_line(&version.unwrap_or_default()),
        display::size(standing.n_bytes),
        offers.join(", "),
    ]
}

/// What is switched off and is not what was accepted, is both.
fn status(standing: &PluginStanding) -> String {
    let status = display::status(&standing.status);
    match standing.status == Status::Disabled && standing.has_changed {
        true => format!("{status}, changed"),
        false => status.to_owned(),
    }
}

/// Where plugins go.
fn empty(folders: &[PathBuf]) -> Result<(), CliError> {
    if folders.is_empty() {
        return Ok(());
    }
    let mut page = Page::new();
    page.line(0, "there are no plugins; put components (`*.wasm`) into");
    for folder in folders {
        page.line(1, &folder.to_string_lossy());
    }
    page.line(0, "or let `zeph-host plugin add FILE` do it");
    page.print()
}
