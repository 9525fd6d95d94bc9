//! `git_status`: the long format of `git status` without its hints, the paths of a kind in one line. Every path, section and
//! branch line stays, and what is no part of a status is left alone: another command's output, or the diff of `git status -v`.

use std::ops::Range;

use schemars::JsonSchema;
use serde::Deserialize;

use crate::selection::{keep, push_line};
use crate::{
    Confidence, Coverage, Definition, Input, Piece, Selection, Strategy, options, severity,
};

/// The entry of the table.
pub const DEFINITION: Definition = Definition {
    name: "git_status",
    description: "Drops the hints of `git status`; branch, sections and every path stay.",
    coverage: Coverage::Recognised,
    schema: options::schema::<GitStatusOptions>,
    create,
};

/// There is nothing to set.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct GitStatusOptions {}

fn create(options: &str) -> Result<Box<dyn Strategy>, String> {
    Ok(Box::new(options::read::<GitStatusOptions>(options)?))
}

/// What the long format begins with.
const BRANCH: [&str; 5] = [
    "On branch ",
    "HEAD detached ",
    "Not currently on any branch",
    "interactive rebase in progress",
    "rebase in progress",
];

/// What other lines of it begin with, hints aside.
const STATUS: [&str; 21] = [
    "Your branch ",
    "Your stash ",
    "and have ",
    "No commits yet",
    "Initial commit",
    "Last command",
    "No command",
    "Next command",
    "   ",
    "You are currently ",
    "You are in ",
    "You have unmerged ",
    "All conflicts fixed",
    "Cherry-pick currently",
    "Revert currently",
    "nothing to commit",
    "nothing added to commit",
    "no changes added ",
    "It took ",
    "  (",
    "(",
];

/// What the sections begin with: paths follow.
const SECTIONS: [&str; 5] = [
    "Changes",
    "Unmerged paths:",
    "Untracked files",
    "Ignored files:",
    "Submodule",
];

impl Strategy for GitStatusOptions {
    fn apply(&self, input: &Input<'_>) -> Selection {
        let mut status = Status::default();
        for (line_idx, line) in input.lines.iter().enumerate() {
            status.add(line_idx, line);
        }
        let Some(shown) = status.shown() else {
            return Selection::all(input, Confidence::Fallback);
        };
        Selection {
            pieces: shown.pieces,
            confidence: Confidence::Full,
            told: shown.told,
        }
    }
}

/// Where in an output a status is.
#[derive(Default)]
struct Status<'a> {
    shown: Shown<'a>,
    is_found: bool,
    /// A status has begun, and nothing came since that is no part of it.
    is_inside: bool,
    /// The line before is a section's, or a path below it.
    is_section: bool,
    /// Blank lines before this one, which may be no part of the status.
    blanks: Range<usize>,
}

impl<'a> Status<'a> {
    fn add(&mut self, line_idx: usize, line: &'a str) {
        let begins = |starts: &[&str]| starts.iter().any(|start| line.starts_with(start));
        if line.trim().is_empty() && self.is_inside {
            if self.blanks.is_empty() {
                self.blanks = line_idx..line_idx;
            }
            self.blanks.end += 1;
            self.is_section = false;
            return;
        }
        let is_branch = begins(&BRANCH);
        self.is_found |= is_branch;
        let is_path = self.is_section && line.starts_with('\t');
        let is_said = || begins(&SECTIONS) || begins(&STATUS) || severity(line).is_some();
        let was_inside = self.is_inside;
        self.is_inside = is_branch || (was_inside && (is_path || is_said()));
        let blanks = std::mem::take(&mut self.blanks);
        if !self.is_inside {
            self.shown.close();
            blanks.for_each(|blank| keep(&mut self.shown.pieces, blank));
        }
        match path(line).filter(|_| is_path) {
            Some((kind, path)) => self.shown.add(kind, line_idx, path),
            None if self.is_inside && is_hint(line) => {}
            None => {
                self.is_section = self.is_inside && (is_path || begins(&SECTIONS));
                self.shown.close();
                keep(&mut self.shown.pieces, line_idx);
            }
        }
    }

    /// What is shown; `None` where there is no status.
    fn shown(mut self) -> Option<Shown<'a>> {
        self.shown.close();
        self.is_found.then_some(self.shown)
    }
}

/// Fewer paths of a kind keep their lines: a note would hardly be shorter.
const PATHS_MIN: usize = 4;

/// Longest note with paths, in bytes.
const NOTE_BYTES: usize = 8 * 1024;

/// What is shown so far, and the paths of one kind that follow each other.
#[derive(Default)]
struct Shown<'a> {
    pieces: Vec<Piece>,
    told: Vec<Range<usize>>,
    kind: &'a str,
    paths: Vec<(usize, &'a str)>,
}

impl<'a> Shown<'a> {
    fn add(&mut self, kind: &'a str, line_idx: usize, path: &'a str) {
        if kind != self.kind {
            self.close();
        }
        self.kind = kind;
        self.paths.push((line_idx, path));
    }

    fn close(&mut self) {
        let paths = std::mem::take(&mut self.paths);
        if paths.len() < PATHS_MIN {
            for (line_idx, _) in paths {
                keep(&mut self.pieces, line_idx);
            }
            return;
        }
        for (line_idx, _) in &paths {
            push_line(&mut self.told, *line_idx);
        }
        let mut note = self.kind.to_owned();
        for (_, path) in paths {
            if note.len() + path.len() > NOTE_BYTES && note.len() > self.kind.len() {
                let full = std::mem::replace(&mut note, self.kind.to_owned());
                self.pieces.push(Piece::Note(full));
            }
            if !note.is_empty() {
                note.push(' ');
            }
            note.push_str(path);
        }
        self.pieces.push(Piece::Note(note));
    }
}

/// `\tmodified:   src/a.rs`, and `\tsrc/a.rs` among the untracked: the kind, and a path that cannot be misread among others.
fn path(line: &str) -> Option<(&str, &str)> {
    let text = line.strip_prefix('\t')?;
    let kind_end = text.find(": ").map_or(0, |at| at + 1);
    let (kind, path) = text.split_at(kind_end);
    let path = path.trim_start();
    let is_plain = |c: char| c.is_alphanumeric() || "/._-+@=%#,~$".contains(c);
    let is_kind = kind
        .chars()
        .all(|c| c.is_alphabetic() || c == ' ' || c == ':');
    (is_kind && !path.is_empty() && path.chars().all(is_plain)).then_some((kind, path))
}

/// Hints stand in parentheses: `  (use "git add <file>..." to update what will be committed)`. A path in parentheses is indented
/// by a tab or ends otherwise.
fn is_hint(line: &str) -> bool {
    let hint = line
        .strip_prefix("  (")
        .or_else(|| line.strip_prefix('('))
        .or_else(|| line.strip_prefix("    ("));
    let is_hint = hint.is_some_and(|hint| hint.starts_with("use \"git") && hint.ends_with(')'));
    is_hint && severity(line).is_none()
}
