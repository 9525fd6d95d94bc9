//! Completion of tool names, commands, parameters and paths.
//!
//! What fits is found by pure functions over the line; only [`Completion`] looks at directories, with the rights of the
//! person who types.

use std::path::{Path, PathBuf};

use reedline::{Completer, CompletionResult, Span, Suggestion};
use serde_json::Value;
use zeph_core::call::PATH_ARGUMENTS;
use zeph_core::catalog::Catalog;
use zeph_core::tool::Tool;

use crate::host::Host;
use crate::run::prompt_input::COMMANDS;

/// Entries of one directory that are looked at.
const ENTRIES_MAX: usize = 10_000;

/// Suggestions that are shown.
const SUGGESTIONS_MAX: usize = 200;

/// Completes a line.
pub(super) struct Completion {
    host: Host,
    directory: PathBuf,
}

impl Completion {
    /// For the tools `host` has at the moment; relative paths start at `directory`.
    pub(super) fn new(host: Host, directory: PathBuf) -> Self {
        Self { host, directory }
    }
}

impl Completer for Completion {
    fn complete(&mut self, line: &str, pos: usize) -> CompletionResult {
        let before = line.get(..pos).unwrap_or(line);
        let list = |folder: &str| entries(&self.directory.join(folder));
        let suggestions: Vec<Suggestion> = candidates(before, &self.host.catalog(), &list)
            .into_iter()
            .take(SUGGESTIONS_MAX)
            .map(|candidate| Suggestion {
                span: Span::new(candidate.start, before.len()),
                append_whitespace: candidate.is_whole,
                value: candidate.text,
                description: candidate.what,
                ..Suggestion::default()
            })
            .collect();
        CompletionResult::fresh(suggestions)
    }
}

/// Something that could stand from `start` to the cursor.
#[derive(Debug, PartialEq, Eq)]
struct CompletionCandidate {
    start: usize,
    text: String,
    what: Option<String>,
    /// A space may follow.
    is_whole: bool,
}

/// A name in a directory.
#[derive(Debug, Clone, PartialEq, Eq)]
struct DirectoryName {
    name: String,
    is_directory: bool,
}

/// What fits at the end of `before`. `list` gives the entries of a folder.
fn candidates(
    before: &str,
    catalog: &Catalog,
    list: &dyn Fn(&str) -> Vec<DirectoryName>,
) -> Vec<CompletionCandidate> {
    let start = before.rfind(char::is_whitespace).map_or(0, |idx| idx + 1);
    let word = &before[start..];
    let mut words = before[..start].split_whitespace();
    match (words.next(), words.next()) {
        (None, _) if word.starts_with('/') => fitting(
            start,
            word,
            COMMANDS.iter().map(|name| ((*name).to_owned(), None)),
        ),
        (None, _) | (Some("/tool"), None) => fitting(start, word, tool_names(catalog)),
        (Some(name), _) => match catalog.resolve(name) {
            Ok(tool) if !before.contains('{') => arguments(before, start, tool, list),
            _ => Vec::new(),
        },
    }
}

fn tool_names(catalog: &Catalog) -> impl Iterator<Item = (String, Option<String>)> {
    catalog
        .tools()
        .map(|tool| (tool.name.to_string(), tool.title.clone()))
}

fn fitting(
    start: usize,
    word: &str,
    names: impl Iterator<Item = (String, Option<String>)>,
) -> Vec<CompletionCandidate> {
    names
        .filter(|(name, _)| name.starts_with(word))
        .map(|(text, what)| CompletionCandidate {
            start,
            text,
            what,
            is_whole: true,
        })
        .collect()
}

fn arguments(
    before: &str,
    start: usize,
    tool: &Tool,
    list: &dyn Fn(&str) -> Vec<DirectoryName>,
) -> Vec<CompletionCandidate> {
    let properties = tool
        .parameters
        .schema()
        .get("properties")
        .and_then(Value::as_object);
    // A path in quotes may hold spaces: its word began where the quote did.
    let start = match before.rfind("=\"") {
        Some(quote) if before[quote + 2..].matches('"').count() == 0 => before[..quote]
            .rfind(char::is_whitespace)
            .map_or(0, |idx| idx + 1),
        _ => start,
    };
    let word = &before[start..];
    let Some((key, value)) = word.split_once('=') else {
        let names = properties.into_iter().flat_map(serde_json::Map::keys);
        let unused = names.filter(|name| !before.contains(&format!(" {name}=")));
        return unused
            .filter(|name| name.starts_with(word))
            .map(|name| CompletionCandidate {
                start,
                text: format!("{name}="),
                what: None,
                is_whole: false,
            })
            .collect();
    };
    let start = start + key.len() + 1;
    let property = properties.and_then(|properties| properties.get(key));
    match property.map(values) {
        Some(values) if !values.is_empty() => {
            fitting(start, value, values.into_iter().map(|value| (value, None)))
        }
        _ if PATH_ARGUMENTS.contains(&key) => paths(start, value, list),
        _ => Vec::new(),
    }
}

/// The values a parameter can have, when they are few.
fn values(property: &Value) -> Vec<String> {
    if property.get("type").and_then(Value::as_str) == Some("boolean") {
        return vec!["false".to_owned(), "true".to_owned()];
    }
    let values = property.get("enum").and_then(Value::as_array);
    values
        .into_iter()
        .flatten()
        .filter_map(Value::as_str)
        .map(str::to_owned)
        .collect()
}

fn paths(
    start: usize,
    value: &str,
    list: &dyn Fn(&str) -> Vec<DirectoryName>,
) -> Vec<CompletionCandidate> {
    let path = value.strip_prefix('"').unwrap_or(value);
    let (folder, prefix) = match path.rfind('/') {
        Some(idx) => path.split_at(idx + 1),
        None => ("", path),
    };
    let is_wanted = |entry: &DirectoryName| {
        let is_hidden = entry.name.starts_with('.') && !prefix.starts_with('.');
        entry.name.starts_with(prefix) && !is_hidden
    };
    let mut entries: Vec<DirectoryName> = list(folder).into_iter().filter(is_wanted).collect();
    entries.sort_by(|a, b| a.name.cmp(&b.name));
    entries
        .into_iter()
        .map(|entry| {
            let slash = if entry.is_directory { "/" } else { "" };
            let path = format!("{folder}{}{slash}", entry.name);
            CompletionCandidate {
                start,
                text: quoted(&path, entry.is_directory),
                what: None,
                is_whole: !entry.is_directory,
            }
        })
        .collect()
}

/// A path as the editor understands it: in quotes when it holds what would end a bare word. A folder's quote stays open
/// for what follows.
fn quoted(path: &str, is_open: bool) -> String {
    let is_bare =
        !path.contains(|character: char| character.is_whitespace() || "\"'\\".contains(character));
    if is_bare {
        return path.to_owned();
    }
    let mut quoted = Value::String(path.to_owned()).to_string();
    if is_open {
        quoted.pop();
    }
    quoted
}

/// The entries of a folder; none when it cannot be read. Names that could drive the terminal are omitted.
fn entries(folder: &Path) -> Vec<DirectoryName> {
    let Ok(entries) = std::fs::read_dir(folder) else {
        return Vec::new();
    };
    entries
        .take(ENTRIES_MAX)
        .filter_map(|entry| {
            let entry = entry.ok()?;
            let name = entry.file_name().into_string().ok()?;
            let is_plain = !name.chars().any(char::is_control);
            is_plain.then(|| DirectoryName {
                is_directory: entry.path().is_dir(),
                name,
            })
        })
        .collect()
}

#[cfg(test)]
mod tests;
