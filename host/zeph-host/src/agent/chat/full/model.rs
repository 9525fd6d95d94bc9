//! What the full screen shows, as values. Pure.

mod scrollback;

use std::collections::VecDeque;
use std::time::Duration;

use zeph_agent::event::AgentEvent;
use zeph_agent::message::ToolCall;
use zeph_agent::tool_host::{CallEnd, CallEndKind};

pub(super) use self::scrollback::Scrollback;
use super::super::screen::{LiveLines, compacted, remark, retry};
use super::super::status::ChatStatus;
use crate::agent::card;
use crate::agent::markdown::MarkdownStream;
use crate::run::render::{BOLD, escape};

/// Calls that are listed.
const TOOLS_MAX: usize = 200;

/// Lines of the output of one call that are kept.
const LIVE_LINES_MAX: usize = 50;

/// Prompts that can be found again.
const HISTORY_MAX: usize = 200;

/// What is shown.
#[derive(Debug, Default)]
pub(super) struct FullModel {
    /// What was said.
    pub(super) transcript: Scrollback,
    /// The calls, the newest last.
    pub(super) tools: VecDeque<ToolRow>,
    /// The counters.
    pub(super) status: ChatStatus,
    /// Whether a turn runs.
    pub(super) is_busy: bool,
    /// How long it has been running.
    pub(super) busy_seconds: u64,
    /// What is being typed.
    pub(super) input: InputLine,
    /// What stands before it while a question waits for an answer.
    pub(super) question: Option<String>,
    /// What a word can become.
    pub(super) hint: String,
    /// Rows between the end of the transcript and what is shown of it.
    pub(super) scroll: usize,
    history: Vec<String>,
    history_at: Option<usize>,
    /// What was being typed when an earlier prompt was shown.
    draft: InputLine,
    /// What was being typed when a question came.
    stash: InputLine,
    markdown: MarkdownStream,
    live: LiveLines,
}

/// A call.
#[derive(Debug)]
pub(super) struct ToolRow {
    id: String,
    /// Its tool and what counts of its arguments; nothing of it drives a terminal.
    pub(super) title: String,
    /// How it ended; none while it runs.
    pub(super) end: Option<(CallEndKind, Duration)>,
    /// The end of what it printed.
    pub(super) output: VecDeque<String>,
}

/// A line that is being typed.
#[derive(Debug, Default, Clone, PartialEq, Eq)]
pub(super) struct InputLine {
    /// The text.
    pub(super) text: String,
    /// The byte before which the next character goes.
    pub(super) cursor: usize,
}

impl FullModel {
    pub(super) fn new(has_color: bool) -> Self {
        Self {
            markdown: MarkdownStream::new(has_color),
            ..Self::default()
        }
    }

    /// Adds text with styles of ours.
    pub(super) fn append(&mut self, text: &str) {
        self.settle();
        self.transcript.push(text);
    }

    /// Ends a line of text that is not ended.
    pub(super) fn settle(&mut self) {
        let rest = self.markdown.finish();
        self.transcript.push(&rest);
        self.transcript.end_line();
    }

    /// Shows a line that was typed.
    pub(super) fn echo(&mut self, line: &str) {
        self.append(&format!("{BOLD}> {}{BOLD:#}\n", escape(line)));
        self.scroll = 0;
    }

    /// Shows a question and what stands before its answer.
    pub(super) fn ask(&mut self, question: &str, label: &str) {
        self.append(question);
        self.scroll = 0;
        self.question = Some(label.to_owned());
        self.stash = std::mem::take(&mut self.input);
    }

    /// The question has its answer.
    pub(super) fn answered(&mut self) {
        self.question = None;
        self.input = std::mem::take(&mut self.stash);
    }

    /// A piece of what the running command prints.
    pub(super) fn live(&mut self, text: &str) {
        for line in self.live.push(text) {
            self.live_line(line);
        }
    }

    fn live_line(&mut self, line: String) {
        let mut rows = self.tools.iter_mut().rev();
        if let Some(row) = rows.find(|row| row.end.is_none()) {
            if row.output.len() == LIVE_LINES_MAX {
                row.output.pop_front();
            }
            row.output.push_back(escape(&line));
        }
    }

    /// Something happened in the turn.
    pub(super) fn on(&mut self, event: &AgentEvent<'_>) {
        match event {
            AgentEvent::Text(text) => {
                let shown = self.markdown.push(text);
                self.transcript.push(&shown);
            }
            AgentEvent::Answered => self.settle(),
            AgentEvent::Retry {
                why,
                after,
                discards,
            } => self.append(&retry(why, *after, *discards)),
            AgentEvent::CallStarted(call) => self.call_started(call),
            AgentEvent::CallEnded {
                call,
                end,
                duration,
            } => self.call_ended(call, end, *duration),
            AgentEvent::Spent {
                usage,
                cost,
                context_tokens,
                ..
            } => {
                self.status.usage += **usage;
                if let Some(cost) = *cost {
                    let before = self.status.cost.unwrap_or_default();
                    self.status.cost = Some(before + cost);
                }
                self.status.last = Some(**usage);
                self.status.context_tokens = *context_tokens;
            }
            AgentEvent::Message(text) => {
                self.append(&remark(text.lines().next().unwrap_or_default()));
            }
            AgentEvent::Notice(text) => self.append(&remark(text)),
            AgentEvent::Compacted { before, after } => self.append(&compacted(*before, *after)),
            AgentEvent::Waiting | AgentEvent::Thinking(_) => {}
        }
    }

    fn call_started(&mut self, call: &ToolCall) {
        self.status.calls += 1;
        self.append(&card::begin(call));
        if self.tools.len() == TOOLS_MAX {
            self.tools.pop_front();
        }
        self.tools.push_back(ToolRow {
            id: call.id.clone(),
            title: card::title(call),
            end: None,
            output: VecDeque::new(),
        });
    }

    fn call_ended(&mut self, call: &ToolCall, end: &CallEnd, took: Duration) {
        if let Some(rest) = self.live.finish() {
            self.live_line(rest);
        }
        self.append(&card::finish(call, end, took));
        let mut rows = self.tools.iter_mut().rev();
        if let Some(row) = rows.find(|row| row.id == call.id && row.end.is_none()) {
            row.end = Some((end.kind, took));
        }
    }

    /// Takes what was typed; it can be found again unless it answers a question.
    pub(super) fn submit(&mut self) -> String {
        let line = std::mem::take(&mut self.input).text;
        self.history_at = None;
        self.draft = InputLine::default();
        let is_new = self.history.last() != Some(&line);
        if self.question.is_none() && is_new && !line.starts_with(' ') && !line.is_empty() {
            self.history.push(line.clone());
            let n_old = self.history.len().saturating_sub(HISTORY_MAX);
            self.history.drain(..n_old);
        }
        line
    }

    /// Goes up a line of what is typed; from the first one to the prompt before.
    pub(super) fn up(&mut self) {
        if self.input.up() || self.question.is_some() {
            return;
        }
        let at = self.history_at.unwrap_or(self.history.len());
        let Some(at) = at.checked_sub(1) else {
            return;
        };
        if self.history_at.is_none() {
            self.draft = std::mem::take(&mut self.input);
        }
        self.recall(at);
    }

    /// Goes down a line of what is typed; from the last one to the prompt after, and at last to what was being typed.
    pub(super) fn down(&mut self) {
        if self.input.down() || self.question.is_some() {
            return;
        }
        if let Some(at) = self.history_at {
            self.recall(at + 1);
        }
    }

    fn recall(&mut self, at: usize) {
        let recalled = self.history.get(at);
        self.history_at = recalled.map(|_| at);
        self.input = match recalled {
            Some(text) => InputLine {
                cursor: text.len(),
                text: text.clone(),
            },
            None => std::mem::take(&mut self.draft),
        };
    }
}

impl InputLine {
    /// Adds text at the cursor.
    pub(super) fn insert(&mut self, text: &str) {
        self.text.insert_str(self.cursor, text);
        self.cursor += text.len();
    }

    /// The place before the character at the left of the cursor.
    pub(super) fn left(&self) -> usize {
        let before = self.text[..self.cursor].chars().next_back();
        self.cursor - before.map_or(0, char::len_utf8)
    }

    /// The place behind the character at the cursor.
    pub(super) fn right(&self) -> usize {
        let after = self.text[self.cursor..].chars().next();
        self.cursor + after.map_or(0, char::len_utf8)
    }

    /// The beginning of the word at the left of the cursor.
    pub(super) fn word(&self) -> usize {
        let before = self.text[..self.cursor].trim_end();
        let mut letters = before.char_indices().rev();
        let blank = letters.find(|(_, letter)| letter.is_whitespace());
        blank.map_or(0, |(idx, letter)| idx + letter.len_utf8())
    }

    /// The end of the word at the right of the cursor.
    pub(super) fn word_end(&self) -> usize {
        let after = &self.text[self.cursor..];
        let n_blank = after.len() - after.trim_start().len();
        let word = &after[n_blank..];
        let n_word = word.find(char::is_whitespace).unwrap_or(word.len());
        self.cursor + n_blank + n_word
    }

    /// Goes up a line; false on the first.
    fn up(&mut self) -> bool {
        let Some(end) = self.text[..self.cursor].rfind('\n') else {
            return false;
        };
        let start = self.text[..end].rfind('\n').map_or(0, |at| at + 1);
        self.cursor = self.column_in(start, end, end + 1);
        true
    }

    /// Goes down a line; false on the last.
    fn down(&mut self) -> bool {
        let Some(n_rest) = self.text[self.cursor..].find('\n') else {
            return false;
        };
        let line = self.text[..self.cursor].rfind('\n').map_or(0, |at| at + 1);
        let start = self.cursor + n_rest + 1;
        let end = self.text[start..].find('\n');
        let end = end.map_or(self.text.len(), |n_bytes| start + n_bytes);
        self.cursor = self.column_in(start, end, line);
        true
    }

    /// The place in a line that is as far from its beginning as the cursor is from that of `line`, its own.
    fn column_in(&self, start: usize, end: usize, line: usize) -> usize {
        let column = self.text[line..self.cursor].chars().count();
        let mut letters = self.text[start..end].char_indices();
        letters.nth(column).map_or(end, |(idx, _)| start + idx)
    }

    /// Removes what is between a place and the cursor.
    pub(super) fn remove_to(&mut self, place: usize) {
        let (start, end) = (place.min(self.cursor), place.max(self.cursor));
        self.text.replace_range(start..end, "");
        self.cursor = start;
    }
}
