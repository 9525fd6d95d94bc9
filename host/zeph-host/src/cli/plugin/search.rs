//! `zeph-host plugin search`: plugins of the configured indexes.

use serde_json::{Value, json};
use zeph_artifact::index::{IndexedPlugin, IndexedVersion};

use super::display::{self, Page};
use super::indexes::{IndexReader, OpenedIndex};
use super::registry::Transfer;
use crate::cli::args::PluginSearch;
use crate::cli::context::{self, Context};
use crate::cli::error::CliError;
use crate::cli::exit::Exit;
use crate::cli::out;

/// Most plugins that are shown to people; `--json` has all.
const SHOWN_MAX: usize = 50;

/// Runs the command.
pub(super) fn run(context: &Context, options: &PluginSearch) -> Result<Exit, CliError> {
    let config = context.config()?;
    if config.plugins.indexes.is_empty() {
        return Err(CliError::user("no index of plugins is configured").hint(
            "name one in `plugins.index`, and its publisher in `[[plugins.trust.signers]]`",
        ));
    }
    context::block_on(async {
        let transfer = Transfer::new(context.quiet);
        let reader = IndexReader::new(context, &config, &transfer)?;
        let (indexes, problems) = reader.all().await;
        let found = found(&indexes, &options.words);
        match options.json.json {
            true => print_json(&found, &problems)?,
            false => print(&found, options)?,
        }
        problems
            .iter()
            .for_each(|problem| out::error(problem, false));
        Ok(match problems.is_empty() {
            true => Exit::Success,
            false => Exit::Failure,
        })
    })
}

/// A plugin, and the index it stands in.
type Found<'a> = (&'a OpenedIndex, &'a IndexedPlugin);

fn found<'a>(indexes: &'a [OpenedIndex], words: &'a [String]) -> Vec<Found<'a>> {
    let found = indexes.iter().flat_map(|opened| {
        let plugins = opened.index.search(words);
        plugins.map(move |plugin| (opened, plugin))
    });
    found.collect()
}

fn print(found: &[Found<'_>], options: &PluginSearch) -> Result<(), CliError> {
    let mut page = Page::new();
    if found.is_empty() {
        let words = options.words.join(" ");
        page.line(0, &format!("no plugin fits `{words}`"));
        return page.print();
    }
    for (_, plugin) in found.iter().take(SHOWN_MAX) {
        let newest = plugin.newest();
        let version = newest.map(|newest| newest.version.to_string());
        let version = version.unwrap_or_else(|| match plugin.versions.is_empty() {
            true => "no version is listed".to_owned(),
            false => "every version was withdrawn".to_owned(),
        });
        page.name(0, &plugin.name, &version);
        page.line(1, &plugin.description);
        if let Some(command) = newest.and_then(|newest| command(plugin, newest)) {
            page.dim(1, &command);
        }
    }
    if found.len() > SHOWN_MAX {
        let n_more = found.len() - SHOWN_MAX;
        page.line(0, &format!("{n_more} more; another word narrows it down"));
    }
    page.print()
}

/// What adds this version.
fn command(plugin: &IndexedPlugin, version: &IndexedVersion) -> Option<String> {
    match (&plugin.source, &version.url, version.component) {
        (_, Some(url), Some(component)) => Some(format!(
            "zeph-host plugin add {} --sha256 {}",
            zeph_plugins::refusal::quoted(url),
            component.hex()
        )),
        (Some(source), ..) => {
            let digest = version.manifest.map(|manifest| format!("@{manifest}"));
            Some(format!(
                "zeph-host plugin add {}:{}{}",
                zeph_plugins::refusal::quoted(source),
                tag(version),
                digest.unwrap_or_default()
            ))
        }
        _ => None,
    }
}

/// The tag of a version. A tag cannot hold the `+` before the metadata of a build; `_` stands for it, as charts have it.
pub(super) fn tag(version: &IndexedVersion) -> String {
    version.version.to_string().replace('+', "_")
}

fn print_json(found: &[Found<'_>], problems: &[CliError]) -> Result<(), CliError> {
    let plugins: Vec<Value> = found
        .iter()
        .map(|(opened, plugin)| {
            let newest = plugin.newest();
            let mut members = display::members(json!(plugin));
            members.insert("index".to_owned(), json!(opened.source));
            members.insert(
                "newest".to_owned(),
                json!(newest.map(|newest| &newest.version)),
            );
            members.insert(
                "add_command".to_owned(),
                json!(newest.and_then(|newest| command(plugin, newest))),
            );
            Value::Object(members)
        })
        .collect();
    let problems: Vec<&String> = problems.iter().flat_map(|error| &error.problems).collect();
    display::print_json(&json!({ "plugins": plugins, "problems": problems }))
}
