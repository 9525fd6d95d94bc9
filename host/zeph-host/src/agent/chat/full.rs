//! `run --tui`: the chat on the full screen, with a transcript, the tools and live counters.
//!
//! `model` is what is shown, `keys` changes it by what is typed, and `draw` is a pure function of it. `shown` is the terminal, which is
//! given back on every way out, and `suspension` does so for a while. Here they meet the chat: a thread reads keys and redraws, and the chat hears lines.

mod draw;
mod keys;
mod model;
mod shown;
mod suspension;

use std::io;
use std::path::Path;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::thread::{self, JoinHandle};
use std::time::{Duration, Instant};

use ratatui::crossterm::event::{self, Event};
use rustix::process::{Signal, getpid, kill_process};
use tokio::sync::mpsc;
use tokio::task::JoinSet;
use zeph_agent::Usage;
use zeph_agent::event::{AgentEvent, Observer};
use zeph_shell::run::OutputChunk;

use self::keys::KeyAction;
use self::model::FullModel;
use self::shown::ShownScreen;
use super::ChatOptions;
use super::input::Line;
use super::question;
use super::screen::{ChatScreen, remark};
use super::status::ChatStatus;
use crate::agent::approver::{UserAnswer, understood};
use crate::run::interrupt::{Interruption, Interrupts};
use crate::run::lost::TerminalWatch;
use crate::run::typed_ahead;

/// How often keys are looked for, and the clock is drawn.
const PERIOD: Duration = Duration::from_millis(40);

/// The shortest time between two drawings: what comes in between is drawn together.
const FRAME: Duration = Duration::from_millis(16);

/// Lines that were typed and not read yet.
const LINES_MAX: usize = 16;

/// The full screen, as a chat writes on it.
struct FullScreen {
    model: Mutex<FullModel>,
    shown: Mutex<ShownScreen>,
    /// Whether the model was changed after the last drawing.
    is_dirty: AtomicBool,
    error: Mutex<Option<io::Error>>,
    /// Whose the keys are. Held while they are waited for.
    keys: Mutex<KeyTurn>,
    /// Whether another wants [`keys`](Self::keys): their reader lets go.
    is_wanted: AtomicBool,
    is_free: Condvar,
}

/// Whose the keys are.
#[derive(Debug, Default, Clone, Copy, PartialEq, Eq)]
enum KeyTurn {
    #[default]
    Ours,
    /// A dialogue in lines wants them, or has them.
    Lines,
    /// Nobody reads them any more.
    Over,
}

/// The full screen, as lines are read from it.
pub(super) struct FullTerminal {
    screen: Arc<FullScreen>,
    typed: mpsc::Receiver<TypedInput>,
    keys: Option<JoinHandle<()>>,
    watch: TerminalWatch,
    /// Hears when the program goes on after it was stopped.
    _continued: JoinSet<()>,
}

/// What was typed.
#[derive(Debug)]
enum TypedInput {
    Line(String),
    /// Ctrl-D.
    Leave,
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

impl FullTerminal {
    /// Takes the screen.
    ///
    /// Errors: when the terminal cannot be used.
    pub(super) fn open(options: &ChatOptions, interrupts: &mut Interrupts) -> io::Result<Self> {
        let watch = TerminalWatch::start(Arc::default())?;
        interrupts.with_terminal(&watch);
        interrupts.with_hang_up()?;
        let screen = Arc::new(FullScreen {
            model: Mutex::new(FullModel::new(options.color)),
            shown: Mutex::new(ShownScreen::enter()?),
            is_dirty: AtomicBool::new(true),
            error: Mutex::default(),
            keys: Mutex::default(),
            is_wanted: AtomicBool::new(false),
            is_free: Condvar::new(),
        });
        let continued = suspension::watch(&screen)?;
        let (sender, typed) = mpsc::channel(LINES_MAX);
        let (of_thread, directory) = (Arc::clone(&screen), options.directory.clone());
        let keys = thread::Builder::new()
            .name("zeph-keys".to_owned())
            .spawn(move || of_thread.read_keys(&directory, &sender))?;
        Ok(Self {
            screen,
            typed,
            keys: Some(keys),
            watch,
            _continued: continued,
        })
    }

    pub(super) fn screen(&self) -> Arc<dyn ChatScreen> {
        Arc::clone(&self.screen) as Arc<dyn ChatScreen>
    }

    /// Whether the terminal is gone.
    pub(super) fn is_lost(&self) -> bool {
        self.watch.is_lost()
    }

    /// Waits for a line.
    pub(super) async fn read(&mut self, interrupts: &mut Interrupts) -> Line {
        self.screen.change(|model| model.is_busy = false);
        loop {
            tokio::select! {
                typed = self.typed.recv() => return match typed {
                    Some(TypedInput::Line(line)) => {
                        self.screen.change(|model| model.echo(&line));
                        Line::Typed(line)
                    }
                    Some(TypedInput::Leave) => Line::Left,
                    None => Line::Lost(Interruption::HangUp),
                },
                signal = interrupts.next() => match signal {
                    // Nothing runs that it could end.
                    Interruption::Interrupt => {}
                    signal => return Line::Lost(signal),
                },
            }
        }
    }

    /// Puts a question and waits for the answer, or for a signal, which denies the call.
    pub(super) async fn approval(
        &mut self,
        shown: &str,
        interrupts: &mut Interrupts,
    ) -> (UserAnswer, Option<Interruption>) {
        // Nothing that was typed before the question was shown answers it.
        self.screen.discard_keys();
        while self.typed.try_recv().is_ok() {}
        self.screen
            .change(|model| model.ask(shown, question::LABEL));
        let answered = loop {
            tokio::select! {
                typed = self.typed.recv() => match typed {
                    Some(TypedInput::Line(line)) => match understood(&line) {
                        Some(answer) => break (answer, None),
                        None => self.screen.wrong(question::ANSWERS),
                    },
                    Some(TypedInput::Leave) => break (UserAnswer::Denied(None), None),
                    None => break (UserAnswer::Denied(None), Some(Interruption::HangUp)),
                },
                signal = interrupts.next() => break (UserAnswer::Denied(None), Some(signal)),
            }
        };
        self.screen.change(FullModel::answered);
        answered
    }

    /// Leaves the full screen for a dialogue in lines.
    ///
    /// Errors: when the terminal cannot be used.
    pub(super) fn lines(&self) -> io::Result<LineDialogue> {
        let screen = Arc::clone(&self.screen);
        screen.turn_keys(KeyTurn::Lines);
        lock(&screen.shown).leave();
        Ok(LineDialogue(screen))
    }
}

impl Drop for FullTerminal {
    fn drop(&mut self) {
        self.screen.turn_keys(KeyTurn::Over);
        if let Some(keys) = self.keys.take() {
            drop(keys.join());
        }
        lock(&self.screen.shown).leave();
    }
}

/// A dialogue in lines while the full screen is away; the full screen comes back when it is dropped.
pub(super) struct LineDialogue(Arc<FullScreen>);

impl Drop for LineDialogue {
    fn drop(&mut self) {
        let screen = &self.0;
        if let Err(error) = lock(&screen.shown).come_back() {
            lock(&screen.error).get_or_insert(error);
        }
        screen.turn_keys(KeyTurn::Ours);
        screen.draw();
    }
}

impl FullScreen {
    /// Changes what is shown; drawn at once, or with what follows within a moment.
    fn change(&self, change: impl FnOnce(&mut FullModel)) {
        change(&mut lock(&self.model));
        self.is_dirty.store(true, Ordering::Release);
        let is_due = lock(&self.shown).drawn.elapsed() >= FRAME;
        if is_due {
            self.draw();
        }
    }

    fn draw(&self) {
        let mut shown = lock(&self.shown);
        self.is_dirty.store(false, Ordering::Release);
        let model = lock(&self.model);
        if let Err(error) = shown.draw(|frame| draw::draw(frame, &model)) {
            lock(&self.error).get_or_insert(error);
        }
    }

    fn turn_keys(&self, turn: KeyTurn) {
        self.with_keys(|keys| *keys = turn);
    }

    /// Whether the keys are those of the full screen.
    fn has_keys(&self) -> bool {
        self.with_keys(|keys| *keys == KeyTurn::Ours)
    }

    /// Has the thread that waits for keys let go of their turn.
    fn with_keys<T>(&self, with: impl FnOnce(&mut KeyTurn) -> T) -> T {
        self.is_wanted.store(true, Ordering::Release);
        let mut keys = lock(&self.keys);
        let done = with(&mut keys);
        // While they are held: between its look at this and its wait, the thread would not be woken.
        self.is_wanted.store(false, Ordering::Release);
        self.is_free.notify_all();
        done
    }

    /// Discards keys that were not read yet. Blocks for a moment, and the thread that waits for keys meanwhile ends what it does.
    fn discard_keys(&self) {
        let discard = || self.with_keys(|_| typed_ahead::discard_for_editor());
        if let Err(error) = tokio::task::block_in_place(discard) {
            lock(&self.error).get_or_insert(error);
        }
    }

    /// Waits for the next event for a moment; none when there is none, an error when no more will come.
    fn event(&self) -> io::Result<Option<Event>> {
        let mut turn = lock(&self.keys);
        while *turn == KeyTurn::Lines || self.is_wanted.load(Ordering::Acquire) {
            turn = (self.is_free.wait(turn)).unwrap_or_else(PoisonError::into_inner);
        }
        if *turn == KeyTurn::Over {
            return Err(io::ErrorKind::Interrupted.into());
        }
        match event::poll(PERIOD)? {
            true => event::read().map(Some),
            false => Ok(None),
        }
    }

    /// Reads keys until the screen is given up. Blocks.
    fn read_keys(&self, directory: &Path, typed: &mpsc::Sender<TypedInput>) {
        let mut busy_since = None;
        loop {
            match self.event() {
                Ok(Some(event)) => {
                    let action = keys::apply(&mut lock(&self.model), &event, directory);
                    self.act(action, typed);
                    self.draw();
                }
                Ok(None) => self.tick(&mut busy_since),
                Err(error) => {
                    lock(&self.error).get_or_insert(error);
                    return;
                }
            }
        }
    }

    fn act(&self, action: Option<KeyAction>, typed: &mpsc::Sender<TypedInput>) {
        match action {
            None => {}
            Some(KeyAction::Submit(line)) => drop(typed.try_send(TypedInput::Line(line))),
            Some(KeyAction::Leave) => drop(typed.try_send(TypedInput::Leave)),
            // The chat hears it as it hears Ctrl-C on any terminal.
            Some(KeyAction::Interrupt) => {
                if let Err(error) = kill_process(getpid(), Signal::INT) {
                    tracing::warn!(%error, "the turn cannot be interrupted");
                }
            }
            Some(KeyAction::Redraw) => lock(&self.shown).forget(),
            Some(KeyAction::Suspend) => self.suspend(),
        }
    }

    /// Draws what waits for it, and the clock.
    fn tick(&self, busy_since: &mut Option<Instant>) {
        let notes = lock(&self.shown).take_notes();
        {
            let mut model = lock(&self.model);
            for note in &notes {
                model.append(&remark(note));
            }
            let since = match model.is_busy {
                true => Some(busy_since.get_or_insert_with(Instant::now)),
                false => {
                    *busy_since = None;
                    None
                }
            };
            let seconds = since.map_or(0, |since| since.elapsed().as_secs());
            if std::mem::replace(&mut model.busy_seconds, seconds) == seconds
                && notes.is_empty()
                && !self.is_dirty.load(Ordering::Acquire)
            {
                return;
            }
        }
        self.draw();
    }
}

impl ChatScreen for FullScreen {
    fn page(&self, text: &str) -> io::Result<()> {
        self.say(text);
        Ok(())
    }

    fn say(&self, text: &str) {
        self.change(|model| model.append(text));
    }

    fn live(&self, chunk: &OutputChunk) {
        self.change(|model| model.live(&chunk.text));
    }

    fn settle(&self) {
        self.change(FullModel::settle);
    }

    fn take_error(&self) -> Option<io::Error> {
        lock(&self.error).take()
    }

    fn last_usage(&self) -> Option<Usage> {
        lock(&self.model).status.last
    }

    fn status(&self, status: &ChatStatus) {
        self.change(|model| model.status = status.clone());
    }

    fn begin_turn(&self, status: &ChatStatus) {
        self.change(|model| {
            model.status = status.clone();
            model.is_busy = true;
        });
    }

    fn end_turn(&self, status: &ChatStatus) {
        self.change(|model| {
            model.status = status.clone();
            model.is_busy = false;
        });
    }

    fn width(&self) -> Option<usize> {
        let (columns, _) = ratatui::crossterm::terminal::size().ok()?;
        Some(draw::transcript_width(columns)).filter(|width| *width > 0)
    }
}

impl Observer for FullScreen {
    fn on(&self, event: AgentEvent<'_>) {
        self.change(|model| model.on(&event));
    }
}
