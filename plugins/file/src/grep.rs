//! `grep`: lines that match a regular expression, in a file or a tree. Changes nothing.
//!
//! The host lists the tree (and knows `.gitignore`), `search` looks into one file, `found` keeps and prints. Made for
//! large trees: a file costs one crossing to open and one to read, and a literal in the pattern is looked for before
//! the pattern itself.

use std::io::ErrorKind;

use schemars::JsonSchema;
use serde::Deserialize;
use zeph_plugin::walk::{Entry, EntryKind, Options};
use zeph_plugin::{Context, Output, ToolError, progress};

use crate::area::{Area, AreaPath};
use crate::deadline::Deadline;
use crate::refusal::{explain, missing, special};
use crate::sys::{Kind, Links, Walk, is_closed};
use crate::text::{closed, counted, grouped, is_escaped};

mod found;
mod glob;
mod prefilter;
mod search;

use found::{GrepLimits, GrepMatches};
pub use found::{Match, Matches};
use search::Search;

/// Files between two looks at the clock.
const CLOCK_EVERY: u64 = 64;

/// The arguments of `grep`.
#[derive(Debug, Deserialize, JsonSchema)]
pub struct Args {
    /// The regular expression (Rust syntax: no look-around, no back-references). It is matched within single lines.
    pub pattern: String,
    /// The file or directory to search, absolute or relative to the working directory.
    #[serde(default = "path_default")]
    pub path: String,
    /// Whether upper and lower case differ.
    #[serde(default = "yes")]
    pub case_sensitive: bool,
    /// Search only files that match one of these globs, written as in .gitignore relative to `path`, such as `*.rs` or
    /// `src/**/*.ts`. One that starts with `!` leaves files out.
    #[serde(default)]
    pub glob: Vec<String>,
    /// Also search hidden files and those that .gitignore names.
    #[serde(default)]
    pub include_ignored: bool,
    /// Lines shown before and after each match.
    #[serde(default)]
    #[schemars(range(max = 100))]
    pub context: usize,
    /// Lines shown before each match, instead of `context`.
    #[schemars(range(max = 100))]
    pub before: Option<usize>,
    /// Lines shown after each match, instead of `context`.
    #[schemars(range(max = 100))]
    pub after: Option<usize>,
    /// Most matching lines shown. All are counted.
    #[serde(default = "max_results_default")]
    #[schemars(range(min = 1, max = 2000))]
    pub max_results: usize,
}

fn path_default() -> String {
    ".".to_owned()
}

fn yes() -> bool {
    true
}

fn max_results_default() -> usize {
    100
}

/// Runs `grep` within the time of `context`.
///
/// Errors: the expression or a pattern is not valid, the path cannot be read, or the time is over.
pub fn run(area: &Area, args: &Args, context: &Context) -> Result<Output, ToolError> {
    let end = Deadline::of(context);
    let place = area.place(&args.path)?;
    let limits = GrepLimits::new(args);
    let mut search = Search::new(args, &limits)?;
    let mut found = GrepMatches::new(limits);
    let kind = match place.root().stat(place.relative(), Links::Follow) {
        Ok(stat) => stat.kind,
        Err(error) if error.kind() == ErrorKind::NotFound => return Err(missing(&place)),
        Err(error) => return Err(explain(&place, "read", &error)),
    };
    let stopped = match kind {
        Kind::Directory => tree(args, &place, &mut search, &mut found, end)?,
        Kind::File => {
            found.enter(place.clone());
            search
                .file(place.root(), place.relative(), 0, &mut found)
                .map_err(|error| explain(&place, "read", &error))?;
            false
        }
        Kind::Symlink => return Err(special(&place, "symbolic link")),
        Kind::Special(what) => return Err(special(&place, what)),
    };
    Ok(output(args, found, kind == Kind::Directory, stopped))
}

/// Searches a tree. Says whether it stopped because the time was up.
fn tree<'a>(
    args: &Args,
    top: &AreaPath<'a>,
    search: &mut Search,
    found: &mut GrepMatches<'a>,
    end: Deadline,
) -> Result<bool, ToolError> {
    let failed = |error: std::io::Error| match error.kind() {
        ErrorKind::InvalidInput => ToolError::invalid_parameters(format!(
            "`glob`: one of {:?} is not a valid glob",
            args.glob
        )),
        _ => explain(top, "searched", &error),
    };
    let mut walk = Walk::open(&top.absolute(), &options(args, top)?).map_err(failed)?;
    loop {
        let batch = walk.next_batch().map_err(failed)?;
        if batch.is_empty() {
            return Ok(false);
        }
        let is_unnamed = |entry: &&Entry| entry.kind == EntryKind::Other && is_escaped(&entry.path);
        found.n_unread += batch.iter().filter(is_unnamed).count() as u64;
        found.n_closed += batch.iter().filter(|entry| is_closed(entry)).count() as u64;
        for entry in batch.iter().filter(|entry| entry.kind == EntryKind::File) {
            if found.n_searched.is_multiple_of(CLOCK_EVERY) && end.is_over() {
                return Ok(true);
            }
            one_file(top, entry, search, found);
        }
        progress::count("searching", found.n_searched, None);
    }
}

/// A file that cannot be read does not end the search: it may have vanished, or be closed to this plugin.
fn one_file<'a>(
    top: &AreaPath<'a>,
    entry: &Entry,
    search: &mut Search,
    found: &mut GrepMatches<'a>,
) {
    let place = top.child(&entry.path);
    found.enter(place.clone());
    if search
        .file(top.root(), place.relative(), entry.size, found)
        .is_err()
    {
        found.n_unread += 1;
    }
}

/// What the host lists.
///
/// Errors: a glob of the caller is not valid.
fn options(args: &Args, top: &AreaPath<'_>) -> Result<Options, ToolError> {
    let (mut skip, mut only) = (Vec::new(), Vec::new());
    for glob in &args.glob {
        match glob.strip_prefix('!') {
            Some(left_out) => skip.push(glob::relative(left_out, top)?),
            None => only.push(glob::relative(glob, top)?),
        }
    }
    // The object store of git is no text; a call that means it names it as `path`.
    skip.push(".git".to_owned());
    Ok(Options {
        max_depth: None,
        only,
        skip,
        standard_filters: !args.include_ignored,
        sizes: true,
    })
}

fn output(args: &Args, found: GrepMatches<'_>, is_tree: bool, stopped: bool) -> Output {
    let mut notes = Vec::new();
    if stopped {
        let files = counted(found.n_searched, "file", "files");
        notes.push(format!(
            "[the time was up after {files}: there may be more; narrow `path` or `glob`]"
        ));
    }
    if found.n_unread > 0 {
        notes.push(format!(
            "[{} could not be read]",
            counted(found.n_unread, "file", "files")
        ));
    }
    if found.n_closed > 0 {
        notes.push(closed(found.n_closed));
    }
    if !is_tree && found.n_binary > 0 {
        notes.push("[this file is binary and was not searched]".to_owned());
    }
    let total = found.total;
    if total == 0 {
        let searched = counted(found.n_searched, "file", "files");
        let mut hint = String::new();
        if is_tree && found.n_searched == 0 && !args.glob.is_empty() {
            hint.push_str("; no file fits `glob`");
        }
        if is_tree && !args.include_ignored {
            hint.push_str("; hidden and ignored files only with `include_ignored`");
        }
        notes.insert(
            0,
            format!(
                "No matches for: {} ({searched} searched{hint})",
                args.pattern
            ),
        );
    } else {
        let matches = counted(total, "match", "matches");
        let files = counted(found.n_files, "file", "files");
        notes.insert(
            0,
            match found.n_shown() {
                shown if shown < total => {
                    format!("… showing first {} of {matches} in {files}", grouped(shown))
                }
                _ => format!("({matches} in {files})"),
            },
        );
    }
    found.into_output(notes)
}

#[cfg(test)]
mod tests;
