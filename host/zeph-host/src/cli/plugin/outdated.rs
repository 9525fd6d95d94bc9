//! `zeph-host plugin outdated`: which plugins have newer versions, and which were withdrawn.

use std::path::Path;

use serde_json::{Value, json};
use zeph_plugins::lock::{Lock, LockedPlugin};
use zeph_plugins::manage::ManageError;
use zeph_plugins::manage::sync::SyncFolder;

use super::display::{self, Page};
use super::indexes::{IndexReader, OpenedIndex, yanked};
use super::registry::Transfer;
use super::releases::{self, PinnedRelease, Release};
use super::update;
use super::vouching::Voucher;
use crate::cli::args::Json;
use crate::cli::context::{self, Context};
use crate::cli::error::CliError;
use crate::cli::exit::Exit;
use crate::cli::out;

/// What there is to say about a plugin.
struct Row {
    locked: LockedPlugin,
    newest: Option<Release>,
    /// Whether the tag it was had by, which is no version, stands for something else now.
    has_moved: bool,
    yanked: Option<String>,
    /// What is wrong with the signatures it is installed with.
    unsigned: Option<CliError>,
    problem: Option<CliError>,
}

/// Runs the command.
pub(super) fn run(context: &Context, json: Json) -> Result<Exit, CliError> {
    let config = context.config()?;
    super::must_be_on(&config)?;
    context::block_on(async {
        let transfer = Transfer::new(context.quiet);
        let reader = IndexReader::new(context, &config, &transfer)?;
        let voucher = Voucher::new(context, &config)?;
        let (indexes, mut problems) = reader.all().await;
        let mut rows = Vec::new();
        for path in config.plugins.folders.iter().filter(|path| path.exists()) {
            match pinned_in(path) {
                Ok((folder, lock)) => {
                    let place = (&reader, &folder, &voucher);
                    for locked in lock.plugins() {
                        rows.push(row(context, place, locked, &indexes).await);
                    }
                }
                Err(error) => problems.push(error.into()),
            }
        }
        match json.json {
            true => print_json(&rows),
            false => print(&rows),
        }?;
        problems.extend(rows.into_iter().filter_map(|row| row.problem));
        problems
            .iter()
            .for_each(|problem| out::error(problem, false));
        Ok(match problems.is_empty() {
            true => Exit::Success,
            false => Exit::Failure,
        })
    })
}

/// A folder with its lock.
fn pinned_in(path: &Path) -> Result<(SyncFolder, Lock), ManageError> {
    let folder = SyncFolder::open(path)?;
    let lock = folder.lock()?;
    Ok((folder, lock))
}

async fn row(
    context: &Context,
    (reader, folder, voucher): (&IndexReader<'_>, &SyncFolder, &Voucher<'_>),
    locked: &LockedPlugin,
    indexes: &[OpenedIndex],
) -> Row {
    let mut row = Row {
        newest: None,
        has_moved: false,
        yanked: yanked(indexes, locked, None),
        unsigned: voucher.problem_of_installed(folder, locked).await,
        problem: None,
        locked: locked.clone(),
    };
    match offered(reader, folder, locked, indexes).await {
        Ok((releases, pinned)) => {
            let registries = &reader.registries;
            row.newest = releases::newest(registries, indexes, &releases, &pinned).await;
            if row.newest.is_none() {
                context.notes(releases::passed_over(&releases, &pinned).as_slice());
            }
            if row.yanked.is_none() {
                row.yanked = yanked(indexes, locked, pinned.version());
            }
        }
        Err(error) => row.problem = Some(of_plugin(locked, error)),
    }
    if row.newest.is_none() && row.problem.is_none() {
        match update::moved(&reader.registries, locked).await {
            Ok(moved) => row.has_moved = moved.is_some(),
            Err(error) => row.problem = Some(of_plugin(locked, error)),
        }
    }
    row
}

/// What its source offers, and how what is pinned counts among it.
async fn offered<'a>(
    reader: &IndexReader<'_>,
    folder: &SyncFolder,
    locked: &'a LockedPlugin,
    indexes: &[OpenedIndex],
) -> Result<(Vec<Release>, PinnedRelease<'a>), CliError> {
    let releases = releases::all(&reader.registries, locked, indexes).await?;
    let pinned = PinnedRelease::of(&reader.registries, folder, locked, &releases).await?;
    Ok((releases, pinned))
}

/// An error with the plugin it is about.
fn of_plugin(locked: &LockedPlugin, error: CliError) -> CliError {
    let problems = error.problems.iter();
    CliError {
        problems: problems
            .map(|problem| format!("plugin `{}`: {problem}", locked.name))
            .collect(),
        ..error
    }
}

fn print(rows: &[Row]) -> Result<(), CliError> {
    let mut page = Page::new();
    let is_news = |row: &&Row| {
        let is_told = row.yanked.is_some() || row.unsigned.is_some();
        row.newest.is_some() || row.has_moved || is_told
    };
    let news: Vec<&Row> = rows.iter().filter(is_news).collect();
    if news.is_empty() {
        page.line(0, "no plugin has a newer version");
    }
    for row in news {
        let name = &row.locked.name;
        page.name(0, &name.0, &told(row));
        if let Some(reason) = &row.yanked {
            page.line(1, &zeph_plugins::diff::yanked_warning(reason));
        }
        if let Some(problem) = &row.unsigned {
            page.line(1, &problem.problems.join("; "));
        }
        if row.newest.is_some() || row.has_moved || row.unsigned.is_some() {
            page.dim(1, &format!("zeph-host plugin update {name}"));
        }
    }
    page.print()
}

fn told(row: &Row) -> String {
    let current = row.locked.version().map(ToString::to_string);
    let current = current.unwrap_or_else(|| "an unknown version".to_owned());
    let newest = row
        .newest
        .as_ref()
        .and_then(|newest| newest.version.as_ref());
    match (newest, row.has_moved) {
        (Some(newest), _) => format!("{current} → {newest}"),
        (None, true) => format!("{current}; its tag stands for something else now"),
        (None, false) => current,
    }
}

fn print_json(rows: &[Row]) -> Result<(), CliError> {
    let rows: Vec<Value> = rows
        .iter()
        .map(|row| {
            let newest = row.newest.as_ref();
            json!({
                "name": row.locked.name,
                "source": row.locked.source(),
                "version": row.locked.version(),
                "newest": newest.map(|newest| &newest.version),
                "newest_source": newest.map(|newest| newest.source.to_string()),
                "moved": row.has_moved,
                "yanked": row.yanked,
                "signature_problem": row.unsigned.as_ref().map(|problem| problem.problems.join("; ")),
                "problem": row.problem.as_ref().map(|problem| problem.problems.join("; ")),
            })
        })
        .collect();
    display::print_json(&Value::Array(rows))
}
