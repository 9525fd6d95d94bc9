//! Filtering one output.
//!
//! Strategies choose; this file decides what may come of it. A line is the command's own or carries our mark, an error is
//! never lost, a failure never looks like a success, and the result is shorter or it is the text itself.

mod check;
mod gap;
mod guard;
mod shown;

use std::borrow::Cow;
use std::panic::{AssertUnwindSafe, catch_unwind};

use zeph_core::command::CommandLine;
use zeph_strategies::{
    Confidence, Input, LineSet, Lines, Selection, TEXT_BYTES_MAX, create, n_line_ends,
};

use crate::choose::Chosen;
use crate::command::writer;
use crate::load::Filters;
use crate::mark::is_marked;
use crate::rule::{Action, Rule};
use crate::sanitize::{Clean, Writer, clean_of, clean_whole, folded, plain};
use crate::secret::{Suspect, suspects_of};
pub(crate) use shown::{Shown, ShownIndex, Text};

/// Shorter outputs pass as they are, in bytes: what there is to gain is less than what a reader needs to understand a gap.
pub(crate) const TEXT_BYTES_MIN: usize = 400;

/// What the line about an overflow row and the line of savings come to, in bytes. A result that is not shorter by this much
/// would in the end be longer.
const NOTICE_BYTES: usize = 160;

/// One finished command.
#[derive(Debug, Clone, Copy)]
pub struct Output<'c, 'a> {
    /// What was run; `None` for the output of something that is no command.
    pub command: Option<&'c CommandLine>,
    /// `None` when a signal ended it.
    pub exit_code: Option<i32>,
    /// What it printed, bytes as they came.
    pub raw: &'a [u8],
}

/// Strategies that components offer, warm for one session.
pub trait Foreign {
    /// Why the strategy `name` cannot be made from `options` (JSON), in one plain sentence; `None` when it can. A rule that
    /// names it is then as good as absent.
    fn problem(&self, _name: &str, _options: &str) -> Option<String> {
        None
    }

    /// Lets the strategy `name`, made from `options` (JSON), select from one output.
    ///
    /// Errors: one plain sentence: there is none of this name, the options are wrong, it trapped or took too long.
    fn apply(&self, name: &str, options: &str, input: &Input<'_>) -> Result<Selection, String>;

    /// Lets the program's own strategy `name` select where it runs in a component; `None` runs the same code here.
    ///
    /// Errors: as above.
    fn standard(
        &self,
        _name: &str,
        _options: &str,
        _input: &Input<'_>,
    ) -> Option<Result<Selection, String>> {
        None
    }
}

/// For where no component offers strategies.
#[derive(Debug, Clone, Copy)]
pub struct NoForeign;

impl Foreign for NoForeign {
    fn problem(&self, name: &str, _: &str) -> Option<String> {
        Some(format!("no plugin offers a strategy `{name}`"))
    }

    fn apply(&self, name: &str, options: &str, _: &Input<'_>) -> Result<Selection, String> {
        Err(self.problem(name, options).unwrap_or_default())
    }
}

/// What was omitted.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Loss {
    /// Nothing but control sequences.
    None,
    /// The end: the text is the beginning of the output.
    Tail,
    /// Parts of it.
    Whole,
}

/// What a model is shown.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Filtered<'a> {
    /// The text.
    pub text: Cow<'a, str>,
    /// What it lacks. When this is not `None`, the raw bytes must be kept where the model can read them, or the [whole](Self::whole) be
    /// shown.
    pub loss: Loss,
    /// The rules whose work is in the text, in order.
    pub rules: Vec<String>,
    /// The rules for this command that were tried, in order, whatever came of it.
    pub tried: Vec<String>,
    /// The worst confidence of all rules that were tried; `None` when there was none.
    pub confidence: Option<Confidence>,
    /// What went wrong with strategies, for the operator.
    pub notes: Vec<String>,
    /// Size before and after.
    pub size: Size,
    /// The raw output, where it is text without control sequences: [`Secrets`](crate::Secrets) need not find that out again.
    pub plain: Option<&'a str>,
    /// Lines of it that may hold credentials, where they were looked for with the severities.
    pub(crate) suspects: Option<Vec<Suspect>>,
}

/// Sizes before and after.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Size {
    /// Lines of the raw output.
    pub lines_before: usize,
    /// Lines of the text.
    pub lines_after: usize,
    /// Bytes of the raw output.
    pub bytes_before: usize,
    /// Bytes of the text.
    pub bytes_after: usize,
}

impl Filters {
    /// Filters one output. Never fails: what cannot be filtered is shown as it is.
    ///
    /// Shape:  any bytes → UTF-8 with `\n` line ends; the same input gives the same text, and filtering the text again changes
    ///         nothing.
    /// Limits: linear in the output; takes up to one copy of it.
    pub fn apply<'a>(&self, output: &Output<'_, 'a>, foreign: &dyn Foreign) -> Filtered<'a> {
        let mut filtered = unfiltered(output.raw);
        filtered.plain = plain(output.raw);
        let clean = match filtered.plain {
            Some(text) => Clean::of_plain(text),
            None => clean_of(output.raw, output.command.map_or(Writer::Command, writer)),
        };
        filtered.size.lines_before = n_lines(clean.text.as_bytes()) + clean.n_overwritten;
        if clean.is_lossy() {
            filtered.loss = Loss::Whole;
        }
        let shorter = self.shorten(output, &clean, foreign, &mut filtered);
        sized(filtered, shorter.map_or(clean.text, Cow::Owned))
    }

    /// What the rules for a command make of its clean output; `None` when that is to be shown itself. Blank lines that follow blank ones
    /// go with what the rules leave out, but not from content, where they count, nor from what other commands print beside it.
    fn shorten(
        &self,
        output: &Output<'_, '_>,
        clean: &Clean<'_>,
        foreign: &dyn Foreign,
        filtered: &mut Filtered<'_>,
    ) -> Option<String> {
        let text = clean.text.as_ref();
        let is_of_size = size_problem(text).is_none();
        let is_done = || is_marked(text);
        let line = output.command.filter(|_| is_of_size && !is_done())?;
        let chosen = self.choose(line, foreign).ok()?;
        if !chosen.is_for_command() {
            return None;
        }
        filtered.take(&chosen);
        let run = Run {
            exit_code: output.exit_code,
            command: &chosen.spoken.plain,
            is_mixed: chosen.spoken.is_one_of_several,
        };
        let is_content = chosen.rules.iter().any(|rule| rule.shows_content());
        let copy;
        let mut lines = Lines::of(text);
        let keeps_blanks = is_content || run.is_mixed;
        let has_runs = !keeps_blanks && lines.has_blank_run();
        let is_copied = has_runs && !lines.fold();
        if is_copied {
            copy = folded(text);
            lines = Lines::of(&copy);
        }
        if filtered.plain.is_some() && !is_copied {
            filtered.suspects = suspects_of(&lines);
        }
        let source = Text {
            lines: &lines,
            is_content,
            keeps_blanks,
            is_numbered: clean.has_same_lines && !is_copied,
        };
        let Some((shorter, loss)) = run.through(&chosen.rules, &source, foreign, filtered) else {
            filtered.rules.clear();
            return None;
        };
        filtered.loss = match filtered.loss {
            Loss::None => loss,
            _ => Loss::Whole,
        };
        Some(shorter)
    }
}

/// Why no rule is tried for an output of this length; `None` when that is no reason.
pub(crate) fn size_problem(text: &str) -> Option<String> {
    let bound = match text.len() {
        ..TEXT_BYTES_MIN => format!("below {TEXT_BYTES_MIN}"),
        TEXT_BYTES_MIN..=TEXT_BYTES_MAX => return None,
        _ => format!("above {TEXT_BYTES_MAX}"),
    };
    Some(format!(
        "the output has {} bytes; {bound} nothing is filtered",
        text.len()
    ))
}

impl<'a> Filtered<'a> {
    /// The same where nothing is left out of `raw`, the output, but control sequences: for one of which too little goes to say so.
    #[must_use]
    pub fn whole(self, raw: &'a [u8]) -> Self {
        let text = clean_whole(raw).text;
        let size = Size {
            lines_before: n_lines(text.as_bytes()),
            ..self.size
        };
        let whole = Self {
            loss: Loss::None,
            rules: Vec::new(),
            size,
            ..self
        };
        sized(whole, text)
    }

    /// Notes which rules are tried, and which cannot be.
    fn take(&mut self, chosen: &Chosen<'_>) {
        let names = chosen.rules.iter().map(|rule| rule.name.clone());
        self.tried.extend(names);
        for (rule, problem) in &chosen.unable {
            self.notes.push(format!("rule `{}`: {problem}", rule.name));
            if chosen.rules.is_empty() {
                self.tried.push(rule.name.clone());
                self.confidence = Some(Confidence::Fallback);
            }
        }
    }
}

fn unfiltered<'a>(raw: &[u8]) -> Filtered<'a> {
    let size = Size {
        bytes_before: raw.len(),
        ..Size::default()
    };
    Filtered {
        text: Cow::Borrowed(""),
        loss: Loss::None,
        rules: Vec::new(),
        tried: Vec::new(),
        confidence: None,
        notes: Vec::new(),
        size,
        plain: None,
        suspects: None,
    }
}

fn sized<'a>(mut filtered: Filtered<'a>, text: Cow<'a, str>) -> Filtered<'a> {
    filtered.size.lines_after = n_lines(text.as_bytes());
    filtered.size.bytes_after = text.len();
    filtered.text = text;
    filtered
}

fn n_lines(bytes: &[u8]) -> usize {
    n_line_ends(bytes) + usize::from(bytes.last().is_some_and(|byte| *byte != b'\n'))
}

/// One way through the rules.
struct Run<'a> {
    exit_code: Option<i32>,
    command: &'a str,
    is_mixed: bool,
}

impl Run<'_> {
    /// The shorter text and what it lacks; `None` when the text itself is to be shown.
    fn through(
        &self,
        rules: &[&Rule],
        source: &Text<'_, '_>,
        foreign: &dyn Foreign,
        filtered: &mut Filtered<'_>,
    ) -> Option<(String, Loss)> {
        let mut shown = source.all();
        let mut told = LineSet::default();
        for rule in rules {
            let index = shown.index();
            let confidence = match self.step(rule, source, &index, foreign) {
                Ok((next, selection)) => {
                    let confidence = selection.confidence;
                    if let Action::Native { .. } = rule.action {
                        let of_rule = selection.told.iter();
                        let of_rule = of_rule.flat_map(|lines| index.raw(lines.clone()));
                        of_rule.for_each(|lines| told.insert_all(lines));
                    }
                    if next != shown {
                        shown = next;
                        filtered.rules.push(rule.name.clone());
                    }
                    if self.is_mixed {
                        confidence.max(Confidence::Partial)
                    } else {
                        confidence
                    }
                }
                Err(note) => {
                    filtered
                        .notes
                        .extend(note.map(|note| format!("rule `{}`: {note}", rule.name)));
                    Confidence::Fallback
                }
            };
            filtered.confidence = filtered.confidence.max(Some(confidence));
        }
        if filtered.rules.is_empty() {
            return None;
        }
        let is_failure = self.exit_code != Some(0);
        guard::restore(
            source,
            &mut shown,
            guard::Restore {
                told: &told,
                is_content: source.is_content,
                is_failure,
            },
        );
        if self.is_mixed {
            guard::restore_blanks(source, &mut shown);
        }
        if is_failure && guard::is_green(source, &shown) {
            shown = guard::with_ends(source, shown)?;
            filtered.confidence = Some(Confidence::Fallback);
        }
        let shorter = source.write(&shown);
        let loss = source.loss(&shown);
        let is_worth_it =
            loss != Loss::None && shorter.len() + NOTICE_BYTES <= source.lines.n_bytes();
        is_worth_it.then_some((shorter, loss))
    }

    /// What one rule makes of what is shown so far. `Err(None)` when it does not recognise the output, `Err(note)` when it misbehaves.
    fn step(
        &self,
        rule: &Rule,
        source: &Text<'_, '_>,
        index: &ShownIndex<'_>,
        foreign: &dyn Foreign,
    ) -> Result<(Shown, Selection), Option<String>> {
        let shown = index.shown();
        let text;
        let of_shown;
        let lines = if *shown == source.all() {
            source.lines
        } else {
            of_shown = match source.only(shown) {
                Some(lines) => lines,
                None => {
                    text = source.text_of(shown);
                    Lines::of(&text)
                }
            };
            &of_shown
        };
        let input = Input {
            command: self.command,
            exit_code: self.exit_code,
            lines,
        };
        let selection = catch_unwind(AssertUnwindSafe(|| select(rule, &input, foreign)));
        let mut selection = selection
            .unwrap_or_else(|_| Err("it panicked".to_owned()))
            .map_err(Some)?;
        if selection.confidence == Confidence::Fallback {
            return Err(None);
        }
        let speaker = match &rule.action {
            Action::Native { definition, .. } => {
                if definition.name == "truncate" {
                    gap::renumber(&mut selection.pieces, index, source);
                }
                None
            }
            Action::Foreign { name, .. } => Some(name.as_str()),
        };
        let next = check::check(&mut selection, index, lines, speaker).map_err(Some)?;
        Ok((next, selection))
    }
}

fn select(rule: &Rule, input: &Input<'_>, foreign: &dyn Foreign) -> Result<Selection, String> {
    match &rule.action {
        Action::Foreign { name, options } => foreign.apply(name, options, input),
        Action::Native {
            definition,
            options,
            made,
        } => {
            if let Some(selected) = foreign.standard(definition.name, options, input) {
                return selected;
            }
            let strategy = made.get_or_init(|| create(definition.name, options).ok());
            let strategy = strategy.as_ref().ok_or("its options are wrong")?;
            Ok(strategy.apply(input))
        }
    }
}

#[cfg(test)]
mod invariants;
#[cfg(test)]
mod recorded;
#[cfg(test)]
mod tests;
