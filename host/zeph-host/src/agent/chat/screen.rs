//! What happens in a chat, as it is shown: appended to the terminal here, on the full screen in `full`.

use std::io::{self, Write as _};
use std::sync::{Mutex, MutexGuard, PoisonError};

use rustix::termios::tcgetwinsize;
use zeph_agent::Usage;
use zeph_agent::event::{AgentEvent, Observer};
use zeph_shell::run::OutputChunk;

use super::status::ChatStatus;
use crate::agent::card;
use crate::agent::markdown::MarkdownStream;
use crate::agent::wrap::WordWrap;
use crate::run::render::{DIM, RED, YELLOW, escape};
use crate::run::repl;

/// Lines of the output of one command that are shown while it runs.
const LIVE_LINES_MAX: usize = 40;

/// Bytes of a line of such an output that is not ended.
const LIVE_LINE_BYTES_MAX: usize = 4_096;

/// Where a chat is shown.
pub(super) trait ChatScreen: Observer {
    /// Shows what a command of the user asked for.
    ///
    /// Errors: when the terminal cannot be written.
    fn page(&self, text: &str) -> io::Result<()>;

    /// Shows a remark, which ends with a line feed.
    fn say(&self, text: &str);

    /// Shows a piece of what a command prints.
    fn live(&self, chunk: &OutputChunk);

    /// Ends what stands on an unfinished line.
    fn settle(&self);

    /// Why the terminal could not be written.
    fn take_error(&self) -> Option<io::Error>;

    /// The usage of the last request.
    fn last_usage(&self) -> Option<Usage>;

    /// Shows what was used up, where there is a place for it.
    fn status(&self, status: &ChatStatus);

    /// A turn begins.
    fn begin_turn(&self, status: &ChatStatus);

    /// A turn has ended.
    fn end_turn(&self, status: &ChatStatus);

    /// Columns of a line.
    fn width(&self) -> Option<usize>;

    /// One helpful line about what was typed.
    fn wrong(&self, problem: &str) {
        self.say(&format!("{RED}?{RED:#} {}\n", escape(problem)));
    }
}

/// The terminal, as a chat appends to it.
pub(super) struct LineScreen {
    state: Mutex<ScreenState>,
}

struct ScreenState {
    markdown: MarkdownStream,
    wrap: WordWrap,
    /// Whether a line of text is not ended.
    is_open: bool,
    live: LiveLines,
    /// Lines of the running command that were shown.
    live_lines: usize,
    error: Option<io::Error>,
    last_usage: Option<Usage>,
}

/// What a command prints, in lines.
#[derive(Debug, Default)]
pub(super) struct LiveLines {
    /// The line that is not ended.
    rest: String,
}

impl LiveLines {
    /// The lines that `text` ends.
    pub(super) fn push(&mut self, text: &str) -> Vec<String> {
        self.rest.push_str(text);
        let mut lines = Vec::new();
        while let Some(end) = self.rest.find('\n') {
            let line: String = self.rest.drain(..=end).collect();
            lines.push(line.trim_end_matches('\n').to_owned());
        }
        // A line without end is not kept for ever.
        if self.rest.len() > LIVE_LINE_BYTES_MAX {
            lines.push(std::mem::take(&mut self.rest));
        }
        lines
    }

    /// The last line, when it was not ended.
    pub(super) fn finish(&mut self) -> Option<String> {
        Some(std::mem::take(&mut self.rest)).filter(|rest| !rest.is_empty())
    }
}

/// What is said of an attempt that failed.
pub(super) fn retry(why: &str, after: std::time::Duration, discards: bool) -> String {
    let void = if discards {
        "the text above is void: "
    } else {
        ""
    };
    let line = format!("{void}{why}; trying again in {:.1} s", after.as_secs_f64());
    format!("{YELLOW}note:{YELLOW:#} {}\n", escape(&line))
}

/// A remark of the loop.
pub(super) fn remark(text: &str) -> String {
    format!("{DIM}{}{DIM:#}\n", escape(text))
}

/// What is said of a compaction.
pub(super) fn compacted(before: u64, after: u64) -> String {
    remark(&format!(
        "the conversation was compacted: about {before} tokens became {after}"
    ))
}

impl LineScreen {
    pub(super) fn new(has_color: bool) -> Self {
        Self {
            state: Mutex::new(ScreenState {
                markdown: MarkdownStream::new(has_color),
                wrap: WordWrap::of_width(terminal_width()),
                is_open: false,
                live: LiveLines::default(),
                live_lines: 0,
                error: None,
                last_usage: None,
            }),
        }
    }

    fn state(&self) -> MutexGuard<'_, ScreenState> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Columns of the terminal behind standard output.
fn terminal_width() -> Option<usize> {
    let size = tcgetwinsize(io::stdout()).ok()?;
    Some(usize::from(size.ws_col)).filter(|width| *width > 0)
}

impl ChatScreen for LineScreen {
    fn page(&self, text: &str) -> io::Result<()> {
        repl::print(text)
    }

    fn say(&self, text: &str) {
        repl::say(text);
    }

    fn live(&self, chunk: &OutputChunk) {
        self.state().live(&chunk.text);
    }

    fn settle(&self) {
        self.state().settle();
    }

    fn take_error(&self) -> Option<io::Error> {
        self.state().error.take()
    }

    fn last_usage(&self) -> Option<Usage> {
        self.state().last_usage
    }

    fn status(&self, _status: &ChatStatus) {}

    fn begin_turn(&self, _status: &ChatStatus) {
        // The window may have another size by now.
        self.state().wrap = WordWrap::of_width(terminal_width());
    }

    fn end_turn(&self, status: &ChatStatus) {
        self.say(&remark(&status.to_string()));
    }

    fn width(&self) -> Option<usize> {
        terminal_width()
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
        let shown = self.wrap.push(&shown);
        self.is_open = match text.chars().last() {
            Some(last) => last != '\n',
            None => self.is_open,
        };
        self.write(&shown);
    }

    fn settle(&mut self) {
        let rest = self.markdown.finish();
        let mut rest = self.wrap.push(&rest);
        rest.push_str(&self.wrap.finish());
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
        for line in self.live.push(text) {
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
        if let Some(rest) = self.live.finish() {
            self.live_line(&rest);
        }
        self.live_lines = 0;
    }
}

impl Observer for LineScreen {
    fn on(&self, event: AgentEvent<'_>) {
        let mut state = self.state();
        match event {
            AgentEvent::Text(text) => state.text(text),
            AgentEvent::Answered => state.settle(),
            AgentEvent::Retry {
                why,
                after,
                discards,
            } => state.line(&retry(why, after, discards)),
            AgentEvent::CallStarted(call) => state.line(&card::begin(call)),
            AgentEvent::CallEnded {
                call,
                end,
                duration,
            } => {
                state.end_live();
                state.line(&card::finish(call, end, duration));
            }
            AgentEvent::Spent { usage, .. } => state.last_usage = Some(*usage),
            AgentEvent::Message(text) => {
                state.line(&remark(text.lines().next().unwrap_or_default()));
            }
            AgentEvent::Notice(text) => state.line(&remark(text)),
            AgentEvent::Compacted { before, after } => state.line(&compacted(before, after)),
            AgentEvent::Waiting | AgentEvent::Thinking(_) => {}
        }
    }
}
