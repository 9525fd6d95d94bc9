//! `git_diff`: as many whole hunks as fit, with the header of every file.
//!
//! Nothing is cut inside a hunk, and what is omitted is counted per file after its last hunk, so that what remains reads as
//! a patch.

use std::ops::Range;

use schemars::JsonSchema;
use serde::Deserialize;

use crate::selection::{count, keep};
use crate::{Confidence, Coverage, Definition, Input, Lines, Piece, Selection, Strategy, options};

/// The entry of the table.
pub const DEFINITION: Definition = Definition {
    name: "git_diff",
    description: "Limits a diff at hunk borders; every file header stays, omissions are counted per file.",
    coverage: Coverage::Recognised,
    schema: options::schema::<GitDiffOptions>,
    create,
};

/// What a rule may say.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct GitDiffOptions {
    /// Most lines of hunks; headers come on top.
    #[serde(default = "five_hundred")]
    max_diff_lines: usize,
}

fn five_hundred() -> usize {
    500
}

struct File {
    header: Range<usize>,
    hunks: Vec<Hunk>,
}

struct Hunk {
    lines: Range<usize>,
    is_shown: bool,
}

fn create(options: &str) -> Result<Box<dyn Strategy>, String> {
    Ok(Box::new(options::read::<GitDiffOptions>(options)?))
}

impl Strategy for GitDiffOptions {
    fn apply(&self, input: &Input<'_>) -> Selection {
        let mut files = files(input.lines);
        if !files.iter().any(|file| !file.hunks.is_empty()) {
            return Selection::all(input, Confidence::Fallback);
        }
        if input.lines.len() <= self.max_diff_lines {
            return Selection::all(input, Confidence::Full);
        }
        choose(&mut files, self.max_diff_lines);
        Selection::from_pieces(show(input.lines, &files), Confidence::Full)
    }
}

/// Takes a diff apart. Lines before the first file are the header of a file without hunks.
fn files(lines: &Lines<'_>) -> Vec<File> {
    let mut files = vec![File {
        header: 0..0,
        hunks: Vec::new(),
    }];
    let mut at = 0;
    while at < lines.len() {
        let line = lines.at(at);
        if let Some(end) = hunk_end(lines, at) {
            if let Some(file) = files.last_mut() {
                file.hunks.push(Hunk {
                    lines: at..end,
                    is_shown: false,
                });
            }
            at = end;
            continue;
        }
        let starts_file =
            line.starts_with("diff --") || files.last().is_some_and(|file| !file.hunks.is_empty());
        match files.last_mut() {
            Some(file) if !starts_file => file.header.end = at + 1,
            _ => files.push(File {
                header: at..at + 1,
                hunks: Vec::new(),
            }),
        }
        at += 1;
    }
    files
}

/// The end of the hunk that begins at `at`: all lines that its own counts, or its signs, say belong to it.
fn hunk_end(lines: &Lines<'_>, at: usize) -> Option<usize> {
    if !(lines.at(at).starts_with("@@ -") || lines.at(at).starts_with("@@@ -")) {
        return None;
    }
    let is_inside = |line: &&str| line.is_empty() || line.starts_with([' ', '+', '-', '\\']);
    let n_signed = lines
        .range(at + 1..lines.len())
        .take_while(|line| is_inside(line))
        .count();
    Some(at + 1 + n_signed.min(n_counted(lines, at).unwrap_or(usize::MAX)))
}

/// How many lines follow according to `@@ -a,b +c,d @@`; `None` for combined diffs, whose columns differ.
fn n_counted(lines: &Lines<'_>, at: usize) -> Option<usize> {
    let mut words = lines.at(at).strip_prefix("@@ ")?.split(' ');
    let mut n_old = span(words.next()?.strip_prefix('-')?)?;
    let mut n_new = span(words.next()?.strip_prefix('+')?)?;
    let mut n = 0;
    for line in lines.range(at + 1..lines.len()) {
        match line.as_bytes().first() {
            Some(b'\\') => {}
            _ if n_old == 0 && n_new == 0 => break,
            Some(b'+') => n_new = n_new.saturating_sub(1),
            Some(b'-') => n_old = n_old.saturating_sub(1),
            _ => {
                n_old = n_old.saturating_sub(1);
                n_new = n_new.saturating_sub(1);
            }
        }
        n += 1;
    }
    Some(n)
}

/// How many columns of signs stand before the lines of a hunk: a combined diff has one for each parent.
fn n_columns(header: &str) -> usize {
    let n_signs = header.bytes().take_while(|byte| *byte == b'@').count();
    n_signs.saturating_sub(1)
}

fn span(numbers: &str) -> Option<usize> {
    numbers
        .split_once(',')
        .map_or(Ok(1), |(_, n)| n.parse())
        .ok()
}

/// Picks the hunks that are shown: of every file the first, then of every file the second, as long as there is room.
fn choose(files: &mut [File], budget: usize) {
    let n_rounds = files.iter().map(|file| file.hunks.len()).max().unwrap_or(0);
    let mut left = budget;
    // Each round looks only at the files that still have a hunk, so that all rounds together look at each hunk once.
    let mut open: Vec<usize> = (0..files.len()).collect();
    for hunk_idx in 0..n_rounds {
        open.retain(|file_idx| hunk_idx < files[*file_idx].hunks.len());
        for file_idx in &open {
            let hunk = &mut files[*file_idx].hunks[hunk_idx];
            if hunk.lines.len() <= left {
                left -= hunk.lines.len();
                hunk.is_shown = true;
            }
        }
    }
}

fn show(lines: &Lines<'_>, files: &[File]) -> Vec<Piece> {
    let mut pieces = Vec::new();
    for file in files {
        file.header
            .clone()
            .for_each(|line_idx| keep(&mut pieces, line_idx));
        let (mut n_hunks, mut n_added, mut n_removed) = (0, 0, 0);
        for hunk in &file.hunks {
            let of_hunk = hunk.lines.clone();
            if hunk.is_shown {
                of_hunk.for_each(|line_idx| keep(&mut pieces, line_idx));
                continue;
            }
            let n_columns = n_columns(lines.at(hunk.lines.start));
            let n_signed = |sign| {
                let of_hunk = lines.range(hunk.lines.clone());
                let is_signed = |line: &&str| line.bytes().take(n_columns).any(|byte| byte == sign);
                of_hunk.filter(is_signed).count()
            };
            n_hunks += 1;
            n_added += n_signed(b'+');
            n_removed += n_signed(b'-');
        }
        if n_hunks > 0 {
            let note = format!(
                "{} of this file omitted: +{n_added} -{n_removed}",
                count(n_hunks, "hunk")
            );
            pieces.push(Piece::Note(note));
        }
    }
    pieces
}
