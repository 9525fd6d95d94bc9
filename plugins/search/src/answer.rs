//! The answer: hits with their code, as many whole blocks as the limits allow, in the order of their rank.

use std::path::Path;

use schemars::JsonSchema;
use serde::Serialize;

use zeph_plugin::{Output, counted};

use crate::passages::Coverage;
use crate::rank::Hit;
use crate::refresh::Freshness;
use crate::sys;

/// Longest block, in lines; the rest of a long definition is for `read`. The same whatever the limits are.
const BLOCK_LINES: usize = 40;
/// Longest line, in characters.
const LINE_CHARS: usize = 240;
/// Bytes of code that come to one token, more or less.
const TOKEN_BYTES: usize = 4;

/// What `search_code` found.
#[derive(Debug, Serialize, JsonSchema)]
pub struct Answer {
    /// Best first.
    pub results: Vec<Found>,
    /// How many more there are that the limits leave out.
    pub omitted: usize,
    /// How the index stands to the files.
    pub index: IndexState,
    /// Why a layer is missing, one sentence each.
    pub notes: Vec<String>,
}

/// One result.
#[derive(Debug, Serialize, JsonSchema)]
pub struct Found {
    /// What found it: `definition`, `reference`, `text`, `pattern`, `lsp` or `semantic`.
    pub layer: &'static str,
    /// Its file, relative to the working directory where it lies below it.
    pub file: String,
    /// The first line, from 1.
    pub start_line: u32,
    /// The last line.
    pub end_line: u32,
    /// Higher is better, 1 for the best of this query.
    pub score: f64,
    /// The code.
    pub snippet: String,
}

/// How the index stands to the files.
#[derive(Debug, Serialize, JsonSchema)]
pub struct IndexState {
    /// Files that were searched.
    pub files: usize,
    /// Files that had changed and were read anew.
    pub updated: usize,
    /// Files that changed or came and are not searched yet.
    pub pending: usize,
    /// Files that are too large.
    pub skipped: usize,
    /// Whether files beyond the first 50,000 were left out.
    pub truncated: bool,
    /// How its parts stand to their vectors; absent when no embedder is granted.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub semantic: Option<SemanticState>,
}

/// How the parts of an index stand to their vectors.
#[derive(Debug, Serialize, JsonSchema)]
pub struct SemanticState {
    /// The provider and the model.
    pub embedder: String,
    /// Parts of files that are found by their meaning.
    pub embedded: usize,
    /// Parts that have no vector yet.
    pub pending: usize,
    /// Whether parts beyond the first 50,000 were left out.
    pub truncated: bool,
}

impl From<Coverage> for SemanticState {
    fn from(coverage: Coverage) -> Self {
        Self {
            embedder: coverage.embedder,
            embedded: coverage.embedded,
            pending: coverage.pending,
            truncated: coverage.has_more,
        }
    }
}

/// What is known of the search besides its hits.
#[derive(Debug, Default)]
pub struct SearchState {
    /// How the index stands to the files.
    pub files: Freshness,
    /// How its parts stand to their vectors.
    pub coverage: Option<Coverage>,
    /// Why a layer is missing.
    pub notes: Vec<String>,
}

impl From<(Freshness, Option<Coverage>)> for IndexState {
    fn from((state, coverage): (Freshness, Option<Coverage>)) -> Self {
        Self {
            semantic: coverage.map(SemanticState::from),
            files: state.files,
            updated: state.read,
            pending: state.pending,
            skipped: state.skipped,
            truncated: state.has_more,
        }
    }
}

/// How much may be shown.
#[derive(Debug, Clone, Copy)]
pub struct Bounds {
    /// Results.
    pub results: usize,
    /// Tokens of the whole answer.
    pub tokens: usize,
}

/// Where paths start.
#[derive(Debug, Clone, Copy)]
pub struct Places<'a> {
    /// The top of the tree that was searched.
    pub top: &'a Path,
    /// The working directory.
    pub working: &'a Path,
}

/// Shows as many of `hits` as `bounds` allow. Each file is opened now: what this call may not read is not shown.
pub fn answer(hits: &[Hit], places: Places<'_>, bounds: Bounds, state: SearchState) -> Output {
    let best = hits.first().map_or(1.0, |hit| hit.score);
    let mut results = Vec::new();
    let (mut tokens, mut omitted) = (0, 0);
    let mut last: Option<(String, Vec<String>)> = None;
    for hit in hits {
        if results.len() >= bounds.results || tokens >= bounds.tokens {
            omitted += 1;
            continue;
        }
        if last.as_ref().is_none_or(|(file, _)| *file != hit.file) {
            last = lines(&places.top.join(&hit.file)).map(|lines| (hit.file.clone(), lines));
        }
        let Some((_, lines)) = last.as_ref().filter(|(file, _)| *file == hit.file) else {
            continue;
        };
        // A place behind the end is none: somebody else named it.
        if hit.start as usize >= lines.len() {
            continue;
        }
        let found = found(hit, lines, places, best);
        let size = (found.snippet.len() + found.file.len() + 40).div_ceil(TOKEN_BYTES);
        if tokens + size > bounds.tokens {
            omitted += 1;
            continue;
        }
        tokens += size;
        results.push(found);
    }
    shown(Answer {
        results,
        omitted,
        index: (state.files, state.coverage).into(),
        notes: state.notes,
    })
}

fn lines(path: &Path) -> Option<Vec<String>> {
    let (_, text) = sys::read(path).ok()??;
    Some(text.lines().map(str::to_owned).collect())
}

fn found(hit: &Hit, lines: &[String], places: Places<'_>, best: f64) -> Found {
    let path = places.top.join(&hit.file);
    let file = path.strip_prefix(places.working).unwrap_or(&path);
    let (start, end) = (hit.start as usize, hit.end as usize);
    let block = lines
        .get(start..lines.len().min(end + 1))
        .unwrap_or_default();
    let mut snippet: Vec<String> = block
        .iter()
        .take(BLOCK_LINES)
        .map(|line| cut(line))
        .collect();
    if block.len() > BLOCK_LINES {
        snippet.push(format!("… {} more lines", block.len() - BLOCK_LINES));
    }
    Found {
        layer: hit.layer.name(),
        file: file.to_string_lossy().into_owned(),
        start_line: hit.start + 1,
        end_line: hit.end + 1,
        score: (hit.score / best * 100.0).round() / 100.0,
        snippet: snippet.join("\n"),
    }
}

fn cut(line: &str) -> String {
    match line.char_indices().nth(LINE_CHARS) {
        Some((end, _)) => format!("{}…", &line[..end]),
        None => line.to_owned(),
    }
}

fn shown(answer: Answer) -> Output {
    let mut text = Vec::new();
    for (number, found) in (1..).zip(&answer.results) {
        let Found {
            file,
            start_line,
            end_line,
            snippet,
            layer,
            score,
        } = found;
        let snippet = snippet.replace('\n', "\n    ");
        text.push(format!(
            "[{number}] {file}:{start_line}-{end_line}\n    {snippet}\n    source: {layer}\n    score: {score:.2}"
        ));
    }
    if answer.results.is_empty() {
        text.push("No code matches found.".to_owned());
    }
    text.extend(remarks(&answer));
    let mut output = Output::text(text.join("\n\n")).structured(&answer);
    for found in &answer.results {
        output = output.location(found.file.clone(), Some(found.start_line));
    }
    output
}

/// What the reader should know of the search.
fn remarks(answer: &Answer) -> Vec<String> {
    let mut remarks = Vec::new();
    let IndexState {
        pending,
        skipped,
        truncated,
        ref semantic,
        ..
    } = answer.index;
    if answer.omitted > 0 {
        remarks.push(format!(
            "{}: raise `max_results` or `max_tokens`, or narrow `path`.",
            counted(answer.omitted, "more result", "more results")
        ));
    }
    if pending > 0 {
        remarks.push(format!(
            "The index is not up to date: {} not searched. Run the search again to index more, or run `zeph-host index`.",
            counted(pending, "file that changed or is new was", "files that changed or are new were")
        ));
    }
    if skipped > 0 {
        remarks.push(format!(
            "{} not searched.",
            counted(
                skipped,
                "file larger than 1 MiB was",
                "files larger than 1 MiB were"
            )
        ));
    }
    if let Some(semantic) = semantic.as_ref().filter(|semantic| semantic.pending > 0) {
        remarks.push(format!(
            "{} of {} parts of files were not searched by meaning: they have no vector yet. `zeph-host index` makes all of them.",
            semantic.pending,
            semantic.pending + semantic.embedded
        ));
    }
    remarks.extend(answer.notes.iter().cloned());
    if truncated {
        remarks.push("Only the first 50,000 files were searched: narrow `path`.".to_owned());
    }
    remarks
}
