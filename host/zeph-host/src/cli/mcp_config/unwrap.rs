//! `mcp-config CLIENT --unwrap`: a client's file as it was before its servers were wrapped.

use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};
use std::time::SystemTime;

use zeph_core::id::ServerName;
use zeph_mcp::clients::{Client, ServerStart, Unwrapped, UnwrappedFile};
use zeph_store::SecretFolder;

use super::file::{Backup, ConfigFile};
use super::wrap::{END, MARK, backup_of};
use super::{open, refused};
use crate::cli::args::McpConfig;
use crate::cli::context::Context;
use crate::cli::error::CliError;
use crate::cli::exit::Exit;
use crate::cli::secret;
use crate::known_secrets;
use crate::servers::reserved;

/// Most copies that are read, the newest first.
const COPIES_MAX: usize = 100;

/// Runs the command.
pub(super) fn run(
    context: &Context,
    client: &Client,
    options: &McpConfig,
) -> Result<Exit, CliError> {
    let file = open(context, client, options.file.as_deref())?;
    let bad = |error| refused(&error, &file.path, "");
    if !client.has_wrapped(&file.text).map_err(bad)? {
        context.notes(&[file.unchanged("no server is wrapped")]);
        return Ok(Exit::Success);
    }
    // Nobody has touched the file since: what it was is known to the byte.
    let copies = exact(&file);
    if let Some((_, text)) = copies.last()
        && !client.has_wrapped(text).map_err(bad)?
    {
        file.replace(text, Backup::Omitted)?;
        copies
            .iter()
            .for_each(|(path, _)| drop(fs::remove_file(path)));
        release(context, client, (&file.text, text))?;
        let note = format!("`{}` is as it was before", file.path.display());
        context.notes(&[format!("{}: {note}", client.title)]);
        return Ok(Exit::Success);
    }
    let folder = known_secrets::folder(&context.config()?);
    let stored = folder.as_ref().map(SecretFolder::read).transpose();
    let stored = stored.map_err(secret::failed)?.unwrap_or_default();
    let value = |name: &str| {
        let found = stored.iter().find(|secret| secret.name == name);
        found.map(|secret| secret.value.clone())
    };
    let unwrapped = client.unwrap(&file.text, &copies_of(&file.path), &value);
    write(context, client, &file, &unwrapped.map_err(bad)?)
}

/// Gives the names back that servers had before and have no longer: an entry that is edited and wrapped again keeps its name.
fn release(
    context: &Context,
    client: &Client,
    (before, now): (&str, &str),
) -> Result<(), CliError> {
    let config = context.config()?;
    let left: BTreeSet<ServerName> = names(client, now).collect();
    for name in names(client, before).filter(|name| !left.contains(name)) {
        if let Err(why) = reserved::release(&config, &name) {
            context.notes(&[format!("the name `{name}` stays taken: {why}")]);
        }
    }
    Ok(())
}

/// The names of the wrapped servers of a file.
fn names(client: &Client, text: &str) -> impl Iterator<Item = ServerName> {
    let started = client.started(text).unwrap_or_default();
    started.into_iter().filter_map(|server| match server.start {
        ServerStart::Wrapped { name, .. } => ServerName::new(name?).ok(),
        ServerStart::Host | ServerStart::Bare | ServerStart::Remote => None,
    })
}

/// The copy of the file that became this text, the copy of the file that became that one, and so on.
fn exact(file: &ConfigFile) -> Vec<(PathBuf, String)> {
    let mut copies: Vec<(PathBuf, String)> = Vec::new();
    while copies.len() < COPIES_MAX {
        let text = copies.last().map_or(&file.text, |(_, text)| text);
        let path = backup_of(&file.path, text);
        let Some(copy) = copy(&path) else {
            break;
        };
        copies.push((path, copy));
    }
    copies
}

fn copy(path: &Path) -> Option<String> {
    ConfigFile::open(path)
        .ok()
        .map(|file| file.text)
        .filter(|text| !text.is_empty())
}

/// The copies of all wrapped files, the newest first.
fn copies_of(path: &Path) -> Vec<String> {
    let folder = path.parent().unwrap_or(Path::new("/"));
    let name = path.file_name().unwrap_or_default().to_string_lossy();
    let begin = format!("{name}{MARK}");
    let entries = fs::read_dir(folder).into_iter().flatten().flatten();
    let copies = entries.filter(|entry| {
        let name = entry.file_name();
        let name = name.to_string_lossy();
        name.starts_with(&begin) && name.ends_with(END)
    });
    let changed = |path: &PathBuf| {
        let changed = path.metadata().and_then(|found| found.modified());
        changed.unwrap_or(SystemTime::UNIX_EPOCH)
    };
    let mut copies: Vec<PathBuf> = copies.map(|entry| entry.path()).collect();
    copies.sort_by_cached_key(|path| std::cmp::Reverse(changed(path)));
    let newest = copies.into_iter().take(COPIES_MAX);
    newest.filter_map(|path| copy(&path)).collect()
}

fn write(
    context: &Context,
    client: &Client,
    file: &ConfigFile,
    unwrapped: &UnwrappedFile,
) -> Result<Exit, CliError> {
    file.replace(&unwrapped.text, Backup::Numbered)?;
    release(context, client, (&file.text, &unwrapped.text))?;
    let mut exit = Exit::Success;
    for (name, unwrapped) in &unwrapped.servers {
        let note = match unwrapped {
            Unwrapped::AsBefore => format!("`{name}` is as it was before"),
            Unwrapped::FromArguments => {
                format!("`{name}` was edited since it was wrapped; it starts what was behind `--`")
            }
            Unwrapped::NoSecret(secret) => {
                exit = Exit::Failure;
                format!("`{name}` stays wrapped: there is no secret `{secret}`")
            }
        };
        context.notes(&[note]);
    }
    let note = format!("{}: `{}`", client.title, file.path.display());
    let note = format!("{note} was edited since its servers were wrapped; the edits are kept");
    context.notes(&[note]);
    Ok(exit)
}
