//! What follows a key, a tool or a colon: candidates for a word of which a part is typed.

use std::collections::BTreeSet;
use std::ffi::OsStr;
use std::fs;

use clap::ArgMatches;
use clap_complete::engine::{CompletionCandidate, PathCompleter, ValueCompleter as _};
use serde_json::Value;
use zeph_config::Config;

use super::shells::is_printable;
use super::{candidates, config, known_tools, tools, typed};

/// `KEY=VALUE` of the tool that was typed: its keys, and after one of them what it can be, or a path.
pub(super) fn arguments(current: &OsStr) -> Vec<CompletionCandidate> {
    let (Some(current), Some((_, config))) = (current.to_str(), config()) else {
        return Vec::new();
    };
    let line = typed();
    let line = line.as_ref().and_then(ArgMatches::subcommand);
    let name = line.and_then(|(_, line)| line.get_one::<String>("tool"));
    let tools = known_tools(&config);
    let tool = tools.iter().find(|(known, _)| Some(known) == name);
    let schema = tool.map_or(&Value::Null, |(_, tool)| tool.parameters.schema());
    match current.split_once('=') {
        Some((key, rest)) => values(&config, (key, rest), &schema["properties"][key]),
        None => keys(current, schema),
    }
}

/// The keys of a schema that begin with `current`, ready for a value.
fn keys(current: &str, schema: &Value) -> Vec<CompletionCandidate> {
    let properties = schema["properties"].as_object();
    let keys = properties.into_iter().flatten();
    let keys = keys.filter(|(key, _)| key.starts_with(current));
    candidates(keys.map(|(key, schema)| {
        let help = schema["description"].as_str().unwrap_or_default();
        (format!("{key}="), help.to_owned())
    }))
}

/// What `key` can be: one of a few values where its schema says so, else a path where it is text or nothing is known.
fn values(config: &Config, (key, rest): (&str, &str), schema: &Value) -> Vec<CompletionCandidate> {
    let known: Vec<String> = match (&schema["enum"], &schema["type"]) {
        (Value::Array(values), _) => values.iter().map(shown).collect(),
        (_, Value::String(kind)) if kind == "boolean" => {
            ["true", "false"].map(str::to_owned).into()
        }
        (_, kind) if kind.is_null() || has_text(kind) => {
            return paths(config, &format!("{key}="), rest);
        }
        _ => Vec::new(),
    };
    let known = known.into_iter().filter(|value| value.starts_with(rest));
    candidates(known.map(|value| (format!("{key}={value}"), String::new())))
}

fn shown(value: &Value) -> String {
    match value {
        Value::String(text) => text.clone(),
        other => other.to_string(),
    }
}

fn has_text(kind: &Value) -> bool {
    match kind {
        Value::Array(kinds) => kinds.iter().any(has_text),
        kind => kind == "string",
    }
}

/// `TOOL[:PATTERN]`: a tool, or a path as the beginning of a pattern.
pub(super) fn allow(current: &OsStr) -> Vec<CompletionCandidate> {
    let Some(current) = current.to_str() else {
        return Vec::new();
    };
    match current.split_once(':') {
        // Its patterns are command lines.
        Some(("bash", _)) => Vec::new(),
        Some((tool, rest)) => config()
            .map(|(_, config)| paths(&config, &format!("{tool}:"), rest))
            .unwrap_or_default(),
        None => starting_with(tools(), current),
    }
}

/// `KEY=VALUE` of the configuration: its keys with what they are now, and `true` or `false` where that is one of both.
pub(super) fn settings(current: &OsStr) -> Vec<CompletionCandidate> {
    let Some(current) = current.to_str() else {
        return Vec::new();
    };
    // The one that is typed is not whole yet.
    let loaded =
        super::context(|global| global.set.clear()).and_then(|context| context.load().ok());
    let settings = loaded.map_or_else(Vec::new, |loaded| loaded.origins);
    let named = match current.split_once('=') {
        None => settings
            .into_iter()
            .map(|setting| (format!("{}=", setting.key), setting.value.to_string()))
            .collect(),
        Some((key, _)) => {
            let setting = settings.iter().find(|setting| setting.key == key);
            let is_switch = setting.is_some_and(|setting| setting.value.is_bool());
            let values: &[&str] = if is_switch { &["true", "false"] } else { &[] };
            let values = values.iter();
            let values = values.map(|value| (format!("{key}={value}"), String::new()));
            values.collect::<Vec<_>>()
        }
    };
    starting_with(candidates(named), current)
}

/// A command line behind `--`: its program, of those on the search path, then paths.
pub(super) fn command_line(current: &OsStr) -> Vec<CompletionCandidate> {
    let line = std::env::args_os().skip_while(|word| word != "--").skip(1);
    let n_words = line.skip_while(|word| word != "--").skip(1).count();
    let start = current.to_string_lossy();
    match n_words > 1 || start.contains('/') {
        true => printable(PathCompleter::any().complete(current)).collect(),
        false => candidates(
            programs(&start)
                .into_iter()
                .map(|name| (name, String::new())),
        ),
    }
}

/// The names of programs on the search path that begin with `start`.
fn programs(start: &str) -> BTreeSet<String> {
    use std::os::unix::fs::PermissionsExt as _;

    let search_path = zeph_config::variable("PATH").unwrap_or_default();
    let folders = std::env::split_paths(&search_path).collect::<Vec<_>>();
    let entries = folders
        .iter()
        .filter_map(|folder| fs::read_dir(folder).ok());
    let named = entries.flatten().flatten().filter_map(|entry| {
        let name = entry.file_name().into_string().ok()?;
        // Links are followed.
        let about = || fs::metadata(entry.path()).ok();
        let runs = |about: fs::Metadata| about.is_file() && about.permissions().mode() & 0o111 != 0;
        (name.starts_with(start) && about().is_some_and(runs)).then_some(name)
    });
    named.collect()
}

/// A prompt: a file that it attaches, behind `@`.
pub(super) fn prompt(current: &OsStr) -> Vec<CompletionCandidate> {
    let file = current.to_str().and_then(|word| word.strip_prefix('@'));
    let (Some(file), Some((_, config))) = (file, config()) else {
        return Vec::new();
    };
    paths(&config, "@", file)
}

fn starting_with(mut all: Vec<CompletionCandidate>, start: &str) -> Vec<CompletionCandidate> {
    all.retain(|one| one.get_value().to_string_lossy().starts_with(start));
    all
}

/// Paths that begin with `rest`, where relative paths of calls start, each behind `before`.
fn paths(config: &Config, before: &str, rest: &str) -> Vec<CompletionCandidate> {
    let mut completer = PathCompleter::any();
    if let Some(root) = config.file.roots.first() {
        completer = completer.current_dir(&root.path);
    }
    let paths = printable(completer.complete(OsStr::new(rest)));
    paths.map(|path| path.add_prefix(before)).collect()
}

/// Those that can stand on a line.
fn printable(paths: Vec<CompletionCandidate>) -> impl Iterator<Item = CompletionCandidate> {
    let paths = paths.into_iter();
    paths.filter(|path| path.get_value().to_str().is_some_and(is_printable))
}
