//! `find_path`: names of files and directories that match a glob. Changes nothing.

use std::io::ErrorKind;

use globset::{GlobBuilder, GlobMatcher};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use zeph_plugin::walk::{Entry, EntryKind, Options};
use zeph_plugin::{Output, ToolError};

use crate::area::Area;
use crate::refusal::{explain, missing};
use crate::sys::{Kind, Links, Walk, is_closed};
use crate::text::{ESCAPED_NAMES, closed, grouped, is_escaped, name};

/// The arguments of `find_path`.
#[derive(Debug, Deserialize, JsonSchema)]
pub struct Args {
    /// The glob, relative to `path`: `*.rs` matches names at any depth, `src/**/*.rs` whole paths. `*` and `?` stop at
    /// `/`, `**` does not; `{a,b}` and `[a-z]` work.
    pub pattern: String,
    /// The directory to search, absolute or relative to the working directory.
    #[serde(default = "path_default")]
    pub path: String,
    /// Most paths shown. All are counted.
    #[serde(default = "max_results_default")]
    #[schemars(range(min = 1, max = 10000))]
    pub max_results: usize,
    /// Also find hidden entries and those that .gitignore names. A pattern that itself names a hidden entry does so too.
    #[serde(default)]
    pub include_ignored: bool,
}

fn path_default() -> String {
    ".".to_owned()
}

fn max_results_default() -> usize {
    200
}

/// The structured result of `find_path`.
#[derive(Debug, Serialize, JsonSchema)]
pub struct Paths {
    /// The first paths, directories with a slash at the end.
    paths: Vec<String>,
    /// How many there are.
    total: u64,
}

/// Runs `find_path`.
///
/// Errors: the pattern is not valid, or the directory cannot be read.
pub fn run(area: &Area, args: &Args) -> Result<Output, ToolError> {
    let (base, pattern) = split_absolute(&args.path, &args.pattern);
    let glob = Glob::new(&pattern)?;
    let top = area.place(&base)?;
    match top.root().stat(top.relative(), Links::Follow) {
        Ok(stat) if stat.kind == Kind::Directory => {}
        Ok(_) => {
            let message = format!("`{}` is not a directory", top.shown());
            return Err(ToolError::permanent(message));
        }
        Err(error) if error.kind() == ErrorKind::NotFound => return Err(missing(&top)),
        Err(error) => return Err(explain(&top, "searched", &error)),
    }
    let failed = |error| explain(&top, "searched", &error);
    let include_ignored = args.include_ignored || names_hidden(&pattern);
    let mut walk = Walk::open(&top.absolute(), &options(include_ignored)).map_err(failed)?;
    let mut paths = Vec::new();
    let mut total = 0;
    let mut has_escaped = false;
    let mut n_closed = 0;
    loop {
        let batch = walk.next_batch().map_err(failed)?;
        if batch.is_empty() {
            break;
        }
        n_closed += batch.iter().filter(|entry| is_closed(entry)).count() as u64;
        let named = |entry: &&Entry| glob.matches(entry.path.trim_end_matches('/'));
        for entry in batch.iter().filter(named) {
            total += 1;
            if paths.len() < args.max_results.max(1) {
                let slash = if entry.kind == EntryKind::Directory {
                    "/"
                } else {
                    ""
                };
                has_escaped |= entry.kind == EntryKind::Other && is_escaped(&entry.path);
                let path = entry.path.trim_end_matches('/');
                paths.push(format!("{}{slash}", top.child(path).spelled()));
            }
        }
    }
    let mut text: Vec<String> = paths.iter().map(|path| name(path)).collect();
    let shown = paths.len() as u64;
    if total == 0 {
        let hint = match include_ignored {
            true => "",
            false => " (hidden and ignored entries only with `include_ignored`)",
        };
        text.push(format!("No files matching: {}{hint}", args.pattern));
    } else if total > shown {
        let (rest, shown, total) = (grouped(total - shown), grouped(shown), grouped(total));
        text.push(format!(
            "... and {rest} more (showing first {shown} of {total})"
        ));
    }
    if has_escaped {
        text.push(ESCAPED_NAMES.to_owned());
    }
    if n_closed > 0 {
        text.push(closed(n_closed));
    }
    Ok(Output::text(text.join("\n")).structured(&Paths { paths, total }))
}

fn options(include_ignored: bool) -> Options {
    Options {
        max_depth: None,
        only: Vec::new(),
        skip: vec![".git".to_owned()],
        standard_filters: !include_ignored,
        sizes: false,
    }
}

/// A glob over whole paths, or over names when it has no slash.
struct Glob {
    matcher: GlobMatcher,
    is_name: bool,
}

impl Glob {
    fn new(pattern: &str) -> Result<Self, ToolError> {
        // A slash anywhere makes it a pattern over paths: `./*.rs` are the files of the top alone.
        let is_name = !pattern.trim_end_matches('/').contains('/');
        let pattern = pattern.trim_end_matches('/').trim_start_matches("./");
        if pattern.is_empty() {
            return Err(ToolError::invalid_parameters("`pattern` is empty"));
        }
        if pattern.split('/').any(|part| part == "..") {
            let message =
                "`pattern` is relative to `path` and cannot contain `..`; change `path` instead";
            return Err(ToolError::invalid_parameters(message));
        }
        let glob = GlobBuilder::new(pattern)
            .literal_separator(true)
            .build()
            .map_err(|error| {
                ToolError::invalid_parameters(format!(
                    "`pattern` is not a valid glob: {}",
                    error.kind()
                ))
            })?;
        Ok(Self {
            matcher: glob.compile_matcher(),
            is_name,
        })
    }

    fn matches(&self, path: &str) -> bool {
        match self.is_name {
            true => self
                .matcher
                .is_match(path.rsplit('/').next().unwrap_or(path)),
            false => self.matcher.is_match(path),
        }
    }
}

/// Takes the directory out of a pattern that is an absolute path, as models sometimes write it.
fn split_absolute(path: &str, pattern: &str) -> (String, String) {
    if !pattern.starts_with('/') {
        return (path.to_owned(), pattern.to_owned());
    }
    let first_special = pattern
        .find(['*', '?', '[', '{', '\\'])
        .unwrap_or(pattern.len());
    let cut = pattern[..first_special].rfind('/').unwrap_or(0);
    let base = if cut == 0 { "/" } else { &pattern[..cut] };
    (base.to_owned(), format!(".{}", &pattern[cut..]))
}

/// Whether some part of the pattern starts with a dot, so that only hidden entries can match.
fn names_hidden(pattern: &str) -> bool {
    pattern
        .split('/')
        .any(|part| part.starts_with('.') && part != "." && part != "..")
}

#[cfg(test)]
mod tests;
