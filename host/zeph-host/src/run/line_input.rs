//! Lines from the person at the terminal on standard input: a line editor, or plain lines where the terminal knows no escape sequences.

use std::io::{self, BufRead as _, Write as _};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, PoisonError};

use ratatui::crossterm::event::Event;
use reedline::{
    EditCommand, EditMode, Emacs, HistoryItem, KeyCode, KeyModifiers, Keybindings, Prompt,
    PromptEditMode, Reedline, ReedlineEvent, ReedlineRawEvent, Signal, default_emacs_keybindings,
};
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::process::kill_current_process_group;

use super::lost::TerminalWatch;
use super::render::escape;
use super::repl::say;
use super::typed_ahead::{self, TypedAhead, TypedLine};

/// How often a plain line that is waited for looks whether it is interrupted.
const PERIOD: Timespec = Timespec {
    tv_sec: 0,
    tv_nsec: 100_000_000,
};

/// Whether the terminal knows no escape sequences.
pub(crate) fn is_dumb() -> bool {
    zeph_config::variable("TERM").is_some_and(|term| term == "dumb")
}

/// The keys of an editor: those of Emacs, and Ctrl-Z, which the terminal does not turn into a signal while an editor reads. Ctrl-_, which
/// undoes in its place, comes as Ctrl-7.
pub(crate) fn keys() -> Keybindings {
    let mut keys = default_emacs_keybindings();
    let suspend = ReedlineEvent::ExecuteHostCommand("suspend".to_owned());
    keys.add_binding(KeyModifiers::CONTROL, KeyCode::Char('z'), suspend);
    let undo = ReedlineEvent::Edit(vec![EditCommand::Undo]);
    keys.add_binding(KeyModifiers::CONTROL, KeyCode::Char('7'), undo);
    keys
}

/// What was typed behind Ctrl-C in one piece: an editor takes all that is there, and returns at Ctrl-C. None before that.
#[derive(Debug, Clone, Default)]
pub(crate) struct BehindInterrupt(Arc<Mutex<Option<Vec<Event>>>>);

impl BehindInterrupt {
    fn add(&self, event: &Event) {
        let mut behind = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        match &mut *behind {
            Some(events) => events.push(event.clone()),
            None if typed_ahead::is_interrupt(event) => *behind = Some(Vec::new()),
            None => {}
        }
    }

    fn take(&self) -> Vec<Event> {
        let mut behind = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        behind.take().unwrap_or_default()
    }
}

/// The keys of Emacs, of which what comes behind Ctrl-C is kept.
struct KeepingEmacs {
    keys: Emacs,
    behind: BehindInterrupt,
}

impl EditMode for KeepingEmacs {
    fn parse_event(&mut self, event: ReedlineRawEvent) -> ReedlineEvent {
        let event = Event::from(event);
        self.behind.add(&event);
        match ReedlineRawEvent::try_from(event) {
            Ok(event) => self.keys.parse_event(event),
            Err(()) => ReedlineEvent::None,
        }
    }

    fn edit_mode(&self) -> PromptEditMode {
        self.keys.edit_mode()
    }
}

/// How an editor reads `keys`.
pub(crate) fn edit_mode(keys: Keybindings, behind: &BehindInterrupt) -> Box<dyn EditMode> {
    Box::new(KeepingEmacs {
        keys: Emacs::new(keys),
        behind: behind.clone(),
    })
}

/// The terminal, as lines are read from it.
pub(crate) struct LineInput {
    /// None where the terminal knows no escape sequences.
    editor: Option<Reedline>,
    watch: TerminalWatch,
    breaks: Arc<AtomicBool>,
    is_whole: fn(&str) -> bool,
    ahead: TypedAhead,
    behind: BehindInterrupt,
}

impl LineInput {
    /// Reads with an editor, where the terminal knows escape sequences. `breaks` interrupts it. Lines are read on until they are whole.
    ///
    /// Shape: an editor whose [`edit_mode`] has what it is given keeps what is typed behind Ctrl-C.
    ///
    /// Errors: the terminal cannot be watched.
    pub(crate) fn open(
        editor: impl FnOnce(&BehindInterrupt) -> Reedline,
        breaks: Arc<AtomicBool>,
        is_whole: fn(&str) -> bool,
    ) -> io::Result<Self> {
        let watch = TerminalWatch::start(Arc::clone(&breaks))?;
        let of_editor = Arc::clone(&breaks);
        let behind = BehindInterrupt::default();
        Ok(Self {
            editor: (!is_dumb()).then(|| {
                let editor = editor(&behind).with_break_signal(of_editor);
                // What is pasted waits for Enter.
                editor.use_bracketed_paste(true)
            }),
            watch,
            breaks,
            is_whole,
            ahead: TypedAhead::default(),
            behind,
        })
    }

    /// Reads the answers to questions. `breaks` interrupts it.
    ///
    /// Errors: the terminal cannot be watched.
    pub(crate) fn of_answers(breaks: Arc<AtomicBool>) -> io::Result<Self> {
        let editor =
            |_: &BehindInterrupt| Reedline::create().with_edit_mode(Box::new(Emacs::new(keys())));
        Self::open(editor, breaks, |_| true)
    }

    /// What notices that the terminal is lost.
    pub(crate) fn watch(&self) -> &TerminalWatch {
        &self.watch
    }

    /// Whether the terminal is gone.
    pub(crate) fn is_lost(&self) -> bool {
        self.watch.is_lost()
    }

    /// Discards what was typed before now: it answers no question that is shown next. Blocks.
    ///
    /// Errors: the terminal cannot be used.
    pub(crate) fn discard(&mut self) -> io::Result<()> {
        self.forget();
        match self.editor {
            Some(_) => typed_ahead::discard_for_editor(),
            None => typed_ahead::discard(rustix::stdio::stdin()),
        }
    }

    /// Forgets the lines that were typed ahead, as the terminal does at Ctrl-C.
    pub(crate) fn forget(&mut self) {
        self.ahead = TypedAhead::default();
    }

    /// Has these lines be the next ones, as if they had been typed ahead.
    pub(crate) fn put(&mut self, lines: Vec<String>) {
        self.ahead.put(lines);
    }

    /// Waits for a line; one that was typed while nothing read is the next. Blocks.
    ///
    /// Errors: the terminal cannot be used.
    pub(crate) fn read(&mut self, prompt: &dyn Prompt) -> io::Result<Signal> {
        let Some(editor) = &mut self.editor else {
            return self.plain(prompt);
        };
        match self.ahead.next(self.is_whole)? {
            Some(TypedLine::End) => return Ok(Signal::CtrlD),
            Some(TypedLine::Line(line)) => {
                say(&format!("{}{}\n", before(prompt), escape(&line)));
                if !line.starts_with(' ') {
                    let kept = HistoryItem::from_command_line(&line);
                    editor.history_mut().save(kept).map_err(io::Error::other)?;
                }
                return Ok(Signal::Success(line));
            }
            None => {}
        }
        let rest = self.ahead.rest();
        if !rest.is_empty() {
            editor.run_edit_commands(&[EditCommand::InsertString(rest)]);
        }
        loop {
            let read = self.watch.reading(|| editor.read_line(prompt));
            match read.map_err(io::Error::other)? {
                // It returns when the program goes on; at once, where no shell could have it go on.
                Signal::HostCommand(_) => {
                    kill_current_process_group(rustix::process::Signal::TSTP)?;
                }
                signal => {
                    self.ahead.add_events(&self.behind.take());
                    return Ok(signal);
                }
            }
        }
    }

    /// A line without an editor.
    fn plain(&self, prompt: &dyn Prompt) -> io::Result<Signal> {
        let mut text = String::new();
        let mut before = before(prompt);
        loop {
            let mut stderr = io::stderr().lock();
            stderr.write_all(before.as_bytes())?;
            stderr.flush()?;
            drop(stderr);
            if !self.watch.reading(|| is_there(&self.breaks))? {
                return Ok(Signal::ExternalBreak(text));
            }
            if io::stdin().lock().read_line(&mut text)? == 0 {
                return Ok(Signal::CtrlD);
            }
            let line = text.strip_suffix('\n').unwrap_or(&text);
            if (self.is_whole)(line) {
                return Ok(Signal::Success(line.to_owned()));
            }
            before = prompt.render_prompt_multiline_indicator().into_owned();
        }
    }
}

/// What stands before a line.
fn before(prompt: &dyn Prompt) -> String {
    let left = prompt.render_prompt_left();
    format!(
        "{left}{}",
        prompt.render_prompt_indicator(PromptEditMode::Default)
    )
}

/// Waits for something to read; false when it is interrupted first.
fn is_there(breaks: &AtomicBool) -> io::Result<bool> {
    loop {
        if breaks.swap(false, Ordering::AcqRel) {
            return Ok(false);
        }
        let stdin = rustix::stdio::stdin();
        let mut watched = [PollFd::from_borrowed_fd(stdin, PollFlags::IN)];
        match poll(&mut watched, Some(&PERIOD)) {
            Ok(0) | Err(rustix::io::Errno::INTR) => {}
            Ok(_) => return Ok(true),
            Err(error) => return Err(error.into()),
        }
    }
}
