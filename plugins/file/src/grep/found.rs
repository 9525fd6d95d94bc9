//! What a search has found: the first matches as printed text and as data, the rest as numbers.

use std::cell::OnceCell;
use std::io;

use grep_matcher::Matcher;
use grep_searcher::{Searcher, Sink, SinkContext, SinkMatch};
use schemars::JsonSchema;
use serde::Serialize;
use zeph_plugin::Output;

use super::Args;
use super::prefilter::Prefiltered;
use crate::area::AreaPath;
use crate::text::{line, name};

/// Characters shown of one line.
const LINE_CHARS_MAX: usize = 500;
/// Characters shown before the match in a line that is too long to be shown whole.
const LEAD_CHARS: usize = 100;
/// Bytes of text after which nothing more is shown, whatever the number of results.
const TEXT_BYTES_MAX: usize = 256 * 1024;

/// How much is shown.
#[derive(Debug, Clone, Copy)]
pub(super) struct GrepLimits {
    pub(super) results: usize,
    pub(super) before: usize,
    pub(super) after: usize,
}

/// The structured result of `grep`.
#[derive(Debug, Default, Serialize, JsonSchema)]
pub struct Matches {
    /// The first matching lines.
    matches: Vec<Match>,
    /// How many lines match.
    total_matches: u64,
    /// How many files hold them.
    total_files: u64,
    /// How many files were searched.
    files_searched: u64,
}

/// One matching line.
#[derive(Debug, Serialize, JsonSchema)]
pub struct Match {
    path: String,
    line: u64,
    text: String,
}

/// The state of a search.
#[derive(Debug)]
pub(super) struct GrepMatches<'a> {
    limits: GrepLimits,
    /// The file being searched.
    file: Option<SearchedFile<'a>>,
    text: String,
    matches: Vec<Match>,
    /// The first match of each file shown.
    locations: Vec<(String, u64)>,
    pub(super) total: u64,
    pub(super) n_files: u64,
    pub(super) n_searched: u64,
    pub(super) n_unread: u64,
    /// Directories that could not be entered.
    pub(super) n_closed: u64,
    pub(super) n_binary: u64,
}

/// A file, which gets its names once something of it is shown: most files hold no match.
#[derive(Debug)]
struct SearchedFile<'a> {
    place: AreaPath<'a>,
    names: OnceCell<FileNames>,
}

/// The names of a file.
#[derive(Debug)]
struct FileNames {
    /// For programs.
    path: String,
    /// For text.
    shown: String,
    /// The whole path.
    absolute: String,
}

/// Where the state stood before a file, in case the file turns out to be binary.
#[derive(Debug)]
pub(super) struct MatchMark {
    text: usize,
    matches: usize,
    locations: usize,
    total: u64,
}

/// Writes the matches of one file down.
#[derive(Debug)]
pub(super) struct Writer<'a, 'p> {
    pub(super) found: &'a mut GrepMatches<'p>,
    pub(super) matcher: &'a Prefiltered,
    pub(super) is_binary: bool,
}

impl GrepLimits {
    pub(super) fn new(args: &Args) -> Self {
        Self {
            results: args.max_results.max(1),
            before: args.before.unwrap_or(args.context),
            after: args.after.unwrap_or(args.context),
        }
    }
}

impl SearchedFile<'_> {
    fn names(&self) -> &FileNames {
        self.names.get_or_init(|| {
            let path = self.place.spelled();
            FileNames {
                shown: name(&path),
                absolute: self.place.absolute(),
                path,
            }
        })
    }
}

impl<'a> GrepMatches<'a> {
    pub(super) fn new(limits: GrepLimits) -> Self {
        Self {
            limits,
            file: None,
            text: String::new(),
            matches: Vec::new(),
            locations: Vec::new(),
            total: 0,
            n_files: 0,
            n_searched: 0,
            n_unread: 0,
            n_closed: 0,
            n_binary: 0,
        }
    }

    /// Begins with the next file.
    pub(super) fn enter(&mut self, place: AreaPath<'a>) {
        self.file = Some(SearchedFile {
            place,
            names: OnceCell::new(),
        });
        self.n_searched += 1;
    }

    /// Whether further matches are only counted.
    pub(super) fn is_full(&self) -> bool {
        self.matches.len() >= self.limits.results || self.text.len() >= TEXT_BYTES_MAX
    }

    pub(super) fn n_shown(&self) -> u64 {
        self.matches.len() as u64
    }

    pub(super) fn mark(&self) -> MatchMark {
        MatchMark {
            text: self.text.len(),
            matches: self.matches.len(),
            locations: self.locations.len(),
            total: self.total,
        }
    }

    /// Whether something was found since then.
    pub(super) fn has_since(&self, mark: &MatchMark) -> bool {
        self.total > mark.total
    }

    /// Ends a file: counts it when it holds a match, forgets what it gave when it is binary.
    pub(super) fn leave(&mut self, mark: &MatchMark, is_binary: bool) {
        if is_binary {
            self.n_binary += 1;
            self.text.truncate(mark.text);
            self.matches.truncate(mark.matches);
            self.locations.truncate(mark.locations);
            self.total = mark.total;
        } else if self.has_since(mark) {
            self.n_files += 1;
        }
    }

    /// The result, with `notes` below the matches.
    pub(super) fn into_output(self, notes: Vec<String>) -> Output {
        let text = format!("{}{}", self.text, notes.join("\n"));
        let mut output = Output::text(text).structured(&Matches {
            matches: self.matches,
            total_matches: self.total,
            total_files: self.n_files,
            files_searched: self.n_searched,
        });
        for (path, line) in self.locations {
            output = output.location(path, u32::try_from(line).ok());
        }
        output
    }

    fn push(&mut self, matcher: &Prefiltered, number: u64, bytes: &[u8]) {
        let Some(file) = &self.file else { return };
        let FileNames {
            path,
            shown,
            absolute,
        } = file.names();
        let line = shown_line(matcher, bytes);
        self.text.push_str(&format!("{shown}:{number}: {line}\n"));
        if self
            .locations
            .last()
            .is_none_or(|(last, _)| last != absolute)
        {
            self.locations.push((absolute.clone(), number));
        }
        self.matches.push(Match {
            path: path.clone(),
            line: number,
            text: line,
        });
    }

    fn push_context(&mut self, number: u64, line: &str) {
        let Some(file) = &self.file else { return };
        let shown = &file.names().shown;
        self.text.push_str(&format!("{shown}-{number}- {line}\n"));
    }
}

impl Sink for Writer<'_, '_> {
    type Error = io::Error;

    fn matched(&mut self, _: &Searcher, found: &SinkMatch<'_>) -> io::Result<bool> {
        self.found.total += 1;
        if let (false, Some(number)) = (self.found.is_full(), found.line_number()) {
            self.found
                .push(self.matcher, number, without_end(found.bytes()));
        }
        Ok(true)
    }

    fn context(&mut self, _: &Searcher, context: &SinkContext<'_>) -> io::Result<bool> {
        // Lines behind the last match that is shown still belong to it; those of later ones do not.
        let belongs = self.found.total == self.found.matches.len() as u64
            && self.found.text.len() < TEXT_BYTES_MAX;
        let before_next = matches!(context.kind(), grep_searcher::SinkContextKind::Before)
            && self.found.is_full();
        if let (true, false, Some(number)) = (belongs, before_next, context.line_number()) {
            let bytes = without_end(context.bytes());
            let text = line(bytes, bytes.len() as u64, LINE_CHARS_MAX);
            self.found.push_context(number, &text);
        }
        Ok(true)
    }

    fn context_break(&mut self, _: &Searcher) -> io::Result<bool> {
        if !self.found.is_full() && !self.found.text.is_empty() {
            self.found.text.push_str("--\n");
        }
        Ok(true)
    }

    fn binary_data(&mut self, _: &Searcher, _: u64) -> io::Result<bool> {
        self.is_binary = true;
        Ok(false)
    }
}

fn without_end(line: &[u8]) -> &[u8] {
    let line = line.strip_suffix(b"\n").unwrap_or(line);
    line.strip_suffix(b"\r").unwrap_or(line)
}

/// A matching line; of a very long one the part around the match.
fn shown_line(matcher: &Prefiltered, bytes: &[u8]) -> String {
    if bytes.len() <= LINE_CHARS_MAX {
        return String::from_utf8_lossy(bytes).into_owned();
    }
    let at = matcher
        .find(bytes)
        .ok()
        .flatten()
        .map_or(0, |found| found.start());
    let start = match at {
        at if at < LINE_CHARS_MAX => 0,
        at => (at - LEAD_CHARS..at)
            .find(|idx| bytes[*idx] & 0xc0 != 0x80)
            .unwrap_or(at),
    };
    let lead = if start > 0 { "… " } else { "" };
    let rest = &bytes[start..];
    format!("{lead}{}", line(rest, rest.len() as u64, LINE_CHARS_MAX))
}
