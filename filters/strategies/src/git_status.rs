//! `git_status`: the long format of `git status` without its hints, the paths of a kind in one line. Every path, section and
//! branch line stays.

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

impl Strategy for GitStatusOptions {
    fn apply(&self, input: &Input<'_>) -> Selection {
        let is_long_format =
            (input.lines.iter()).any(|line| BRANCH.iter().any(|start| line.starts_with(start)));
        if !is_long_format {
            return Selection::all(input, Confidence::Fallback);
        }
        let mut shown = Shown::default();
        for (line_idx, line) in input.lines.iter().enumerate() {
            match path(line) {
                Some((kind, path)) => shown.add(kind, line_idx, path),
                None if is_hint(line) => {}
                None => {
                    shown.close();
                    keep(&mut shown.pieces, line_idx);
                }
            }
        }
        shown.close();
        Selection {
            pieces: shown.pieces,
            confidence: Confidence::Full,
            told: shown.told,
        }
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
    let is_blank = line.trim().is_empty();
    (is_hint || is_blank) && severity(line).is_none()
}
