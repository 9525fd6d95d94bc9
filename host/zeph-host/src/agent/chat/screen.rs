//! What happens in a turn, as it is appended to the terminal.

use std::io::{self, Write as _};
use std::sync::{Mutex, MutexGuard, PoisonError};

use zeph_agent::event::{AgentEvent, Observer};
use zeph_shell::run::OutputChunk;

use crate::agent::card;
use crate::agent::markdown::MarkdownStream;
use crate::run::render::{DIM, YELLOW, escape};

/// Lines of the output of one command that are shown while it runs.
const LIVE_LINES_MAX: usize = 40;

/// The terminal, as a turn writes on it.
pub(super) struct Screen {
    state: Mutex<ScreenState>,
}

struct ScreenState {
    markdown: MarkdownStream,
    /// Whether a line of text is not ended.
    is_open: bool,
    /// Lines of the running command that were shown.
    live_lines: usize,
    /// A line of the running command that is not ended.
    live: String,
    error: Option<io::Error>,
    usage_line: Option<(u64, u64)>,
}

impl Screen {
    pub(super) fn new(has_color: bool) -> Self {
        Self {
            state: Mutex::new(ScreenState {
                markdown: MarkdownStream::new(has_color),
                is_open: false,
                live_lines: 0,
                live: String::new(),
                error: None,
                usage_line: None,
            }),
        }
    }

    fn state(&self) -> MutexGuard<'_, ScreenState> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Shows a piece of what a command prints.
    pub(super) fn live(&self, chunk: &OutputChunk) {
        self.state().live(&chunk.text);
    }

    /// Ends what stands on an unfinished line.
    pub(super) fn settle(&self) {
        self.state().settle();
    }

    /// Why the terminal could not be written.
    pub(super) fn take_error(&self) -> Option<io::Error> {
        self.state().error.take()
    }

    /// Tokens of input read from a cache, and of all input, of the last request.
    pub(super) fn last_input(&self) -> Option<(u64, u64)> {
        self.state().usage_line
    }
}

impl ScreenState {
    fn write(&mut self, text: &str) {
        let mut stdout = anstream::stdout().lock();
        let written = stdout
            .write_all(text.as_bytes())
            .and_then(|()| stdout.flush());
        if let Err(error) = written {
            self.error.get_or_insert(error);
        }
    }

    fn text(&mut self, text: &str) {
        let shown = self.markdown.push(text);
        self.is_open = match text.chars().last() {
            Some(last) => last != '\n',
            None => self.is_open,
        };
        self.write(&shown);
    }

    fn settle(&mut self) {
        let rest = self.markdown.finish();
        self.write(&rest);
        if std::mem::take(&mut self.is_open) {
            self.write("\n");
        }
    }

    fn line(&mut self, text: &str) {
        self.settle();
        self.write(text);
    }

    fn live(&mut self, text: &str) {
        self.live.push_str(text);
        while let Some(end) = self.live.find('\n') {
            let line: String = self.live.drain(..=end).collect();
            self.live_line(line.trim_end_matches('\n'));
        }
        // A line without end is not kept for ever.
        if self.live.len() > 4_096 {
            let line = std::mem::take(&mut self.live);
            self.live_line(&line);
        }
    }

    fn live_line(&mut self, line: &str) {
        self.live_lines += 1;
        match self.live_lines.cmp(&LIVE_LINES_MAX) {
            std::cmp::Ordering::Less => {
                self.line(&format!("  {DIM}│{DIM:#} {}\n", escape(line)));
            }
            std::cmp::Ordering::Equal => self.line(&format!("  {DIM}│ …{DIM:#}\n")),
            std::cmp::Ordering::Greater => {}
        }
    }

    fn end_live(&mut self) {
        let rest = std::mem::take(&mut self.live);
        if !rest.is_empty() {
            self.live_line(&rest);
        }
        self.live_lines = 0;
    }

    fn remark(&mut self, text: &str) {
        self.line(&format!("{DIM}{}{DIM:#}\n", escape(text)));
    }
}

impl Observer for Screen {
    fn on(&self, event: AgentEvent<'_>) {
        let mut state = self.state();
        match event {
            AgentEvent::Text(text) => state.text(text),
            AgentEvent::Answered => state.settle(),
            AgentEvent::Retry {
                why,
                after,
                discards,
            } => {
                let void = if discards {
                    "the text above is void: "
                } else {
                    ""
                };
                let line = format!("{void}{why}; trying again in {:.1} s", after.as_secs_f64());
                state.line(&format!("{YELLOW}note:{YELLOW:#} {}\n", escape(&line)));
            }
            AgentEvent::CallStarted(call) => {
                let shown = card::begin(call);
                state.line(&shown);
            }
            AgentEvent::CallEnded {
                call,
                end,
                duration,
            } => {
                state.end_live();
                let shown = card::finish(call, end, duration);
                state.line(&shown);
            }
            AgentEvent::Spent { usage, .. } => {
                state.usage_line = Some((usage.cache_read, usage.prompt()));
            }
            AgentEvent::Message(text) => {
                let first = text.lines().next().unwrap_or_default().to_owned();
                state.remark(&first);
            }
            AgentEvent::Notice(text) => state.remark(text),
            AgentEvent::Compacted { before, after } => state.remark(&format!(
                "the conversation was compacted: about {before} tokens became {after}"
            )),
            AgentEvent::Waiting | AgentEvent::Thinking(_) => {}
        }
    }
}
