//! The terminal under the full screen: raw, on the alternate screen, with standard error led aside. It is given back on every way out, a
//! panic included.

use std::io::{self, BufRead as _, BufReader, PipeReader, Stdout};
use std::mem::ManuallyDrop;
use std::os::fd::OwnedFd;
use std::sync::{Mutex, Once, PoisonError, mpsc};
use std::thread;
use std::time::{Duration, Instant};

use ratatui::backend::CrosstermBackend;
use ratatui::crossterm::cursor::Show;
use ratatui::crossterm::event::{DisableBracketedPaste, EnableBracketedPaste};
use ratatui::crossterm::execute;
use ratatui::crossterm::terminal::{
    EnterAlternateScreen, LeaveAlternateScreen, disable_raw_mode, enable_raw_mode,
};
use ratatui::{Frame, Terminal};

/// Lines of standard error that wait to be shown.
const NOTES_MAX: usize = 64;

/// What has to be given back; none while the terminal is as it was. A panic gives it back too, from whichever thread.
static TAKEN: Mutex<Option<TakenTerminal>> = Mutex::new(None);

/// The terminal as it was.
struct TakenTerminal {
    stderr: OwnedFd,
}

/// The full screen.
pub(super) struct ShownScreen {
    /// Never dropped: that would show the cursor, as `give_back` does, and panic where the terminal is lost.
    terminal: ManuallyDrop<Terminal<CrosstermBackend<Stdout>>>,
    notes: mpsc::Receiver<String>,
    /// When it was drawn last.
    pub(super) drawn: Instant,
}

impl ShownScreen {
    /// Takes the terminal.
    ///
    /// Errors: when it cannot be used; then it is as it was.
    pub(super) fn enter() -> io::Result<Self> {
        give_back_on_panic();
        let notes = take()?;
        let terminal = Terminal::new(CrosstermBackend::new(io::stdout()));
        Ok(Self {
            terminal: ManuallyDrop::new(terminal.inspect_err(|_| give_back())?),
            notes,
            drawn: Instant::now()
                .checked_sub(Duration::from_secs(1))
                .unwrap_or_else(Instant::now),
        })
    }

    /// Gives the terminal back.
    pub(super) fn leave(&self) {
        give_back();
    }

    /// Takes it again.
    ///
    /// Errors: as for [`enter`](Self::enter).
    pub(super) fn come_back(&mut self) -> io::Result<()> {
        self.notes = take()?;
        self.terminal.clear()
    }

    /// Draws, unless the terminal was given back.
    ///
    /// Errors: when it cannot be written.
    pub(super) fn draw(&mut self, draw: impl FnOnce(&mut Frame<'_>)) -> io::Result<()> {
        if !is_taken() {
            return Ok(());
        }
        self.drawn = Instant::now();
        self.terminal.draw(draw).map(drop)
    }

    /// The next drawing begins anew.
    pub(super) fn forget(&mut self) {
        // What goes wrong goes wrong at the next drawing too.
        drop(self.terminal.clear());
    }

    /// What was written to standard error.
    pub(super) fn take_notes(&self) -> Vec<String> {
        self.notes.try_iter().collect()
    }
}

fn is_taken() -> bool {
    let taken = TAKEN.lock().unwrap_or_else(PoisonError::into_inner);
    taken.is_some()
}

/// Takes the terminal; the lines that are written to standard error from now on.
fn take() -> io::Result<mpsc::Receiver<String>> {
    let (reader, writer) = io::pipe()?;
    let (sender, notes) = mpsc::sync_channel(NOTES_MAX);
    // It ends when standard error is what it was, which closes the pipe.
    thread::Builder::new()
        .name("zeph-notes".to_owned())
        .spawn(move || read_notes(reader, &sender))?;
    enable_raw_mode()?;
    let stderr = rustix::io::fcntl_dupfd_cloexec(rustix::stdio::stderr(), 3);
    let taken = stderr.and_then(|stderr| {
        rustix::stdio::dup2_stderr(&writer)?;
        Ok(TakenTerminal { stderr })
    });
    match taken {
        Ok(taken) => *TAKEN.lock().unwrap_or_else(PoisonError::into_inner) = Some(taken),
        Err(error) => {
            disable_raw_mode()?;
            return Err(error.into());
        }
    }
    execute!(io::stdout(), EnterAlternateScreen, EnableBracketedPaste)
        .inspect_err(|_| give_back())?;
    Ok(notes)
}

/// More than a screenful is dropped: a log belongs in a file.
fn read_notes(reader: PipeReader, notes: &mpsc::SyncSender<String>) {
    for line in BufReader::new(reader).lines() {
        match line {
            Ok(line) => drop(notes.try_send(line)),
            Err(error) if error.kind() == io::ErrorKind::InvalidData => {}
            Err(_) => return,
        }
    }
}

/// Gives the terminal back, when it was taken.
fn give_back() {
    let taken = TAKEN.lock().unwrap_or_else(PoisonError::into_inner).take();
    let Some(TakenTerminal { stderr }) = taken else {
        return;
    };
    let left = execute!(
        io::stdout(),
        DisableBracketedPaste,
        LeaveAlternateScreen,
        Show
    );
    let raw = disable_raw_mode();
    let restored = rustix::stdio::dup2_stderr(&stderr);
    let errors = [left.err(), raw.err(), restored.err().map(io::Error::from)];
    for error in errors.into_iter().flatten() {
        tracing::warn!(%error, "the terminal is not as it was");
    }
}

/// Gives the terminal back before a panic is reported.
fn give_back_on_panic() {
    static HOOK: Once = Once::new();
    HOOK.call_once(|| {
        let report = std::panic::take_hook();
        std::panic::set_hook(Box::new(move |info| {
            give_back();
            report(info);
        }));
    });
}

#[cfg(test)]
mod tests {
    use std::io::{Read as _, Write as _};
    use std::os::fd::OwnedFd;
    use std::sync::mpsc;

    use rustix::pty::{OpenptFlags, grantpt, openpt, ptsname, unlockpt};
    use rustix::stdio::{dup2_stderr, dup2_stdin, dup2_stdout, stderr, stdin, stdout};
    use rustix::termios::{LocalModes, Winsize, tcgetattr, tcsetwinsize};

    use super::ShownScreen;

    /// Puts a terminal in the place of the three standard files for as long as `run` takes; all that is written to it.
    fn at_terminal(run: impl FnOnce(&OwnedFd)) -> String {
        let keep = |fd| rustix::io::fcntl_dupfd_cloexec(fd, 3).unwrap();
        let kept = (keep(stdin()), keep(stdout()), keep(stderr()));
        let ours = openpt(OpenptFlags::RDWR | OpenptFlags::NOCTTY).unwrap();
        grantpt(&ours).unwrap();
        unlockpt(&ours).unwrap();
        let name = ptsname(&ours, Vec::new()).unwrap();
        let flags = rustix::fs::OFlags::RDWR | rustix::fs::OFlags::NOCTTY;
        let theirs = rustix::fs::open(&*name, flags, rustix::fs::Mode::empty()).unwrap();
        let size = Winsize {
            ws_row: 24,
            ws_col: 80,
            ws_xpixel: 0,
            ws_ypixel: 0,
        };
        tcsetwinsize(&theirs, size).unwrap();
        dup2_stdin(&theirs).unwrap();
        dup2_stdout(&theirs).unwrap();
        dup2_stderr(&theirs).unwrap();
        run(&theirs);
        std::io::stdout().flush().unwrap();
        dup2_stdin(&kept.0).unwrap();
        dup2_stdout(&kept.1).unwrap();
        dup2_stderr(&kept.2).unwrap();
        drop(theirs);
        let mut written = Vec::new();
        // Without a writer the end of it is an error.
        drop(std::fs::File::from(ours).read_to_end(&mut written));
        String::from_utf8_lossy(&written).into_owned()
    }

    #[test]
    fn a_panic_of_any_thread_gives_the_terminal_back_before_it_is_told() {
        let (raw, restored) = (mpsc::channel(), mpsc::channel());
        let written = at_terminal(|terminal| {
            let is_raw = || {
                let modes = tcgetattr(terminal).unwrap().local_modes;
                !modes.contains(LocalModes::ICANON)
            };
            let shown = ShownScreen::enter().unwrap();
            raw.0.send(is_raw()).unwrap();
            let other = std::thread::spawn(|| panic!("the wings are off"));
            drop(other.join());
            restored.0.send(!is_raw()).unwrap();
            drop(shown);
        });
        assert!(raw.1.recv().unwrap() && restored.1.recv().unwrap());
        let left = written.find("\u{1b}[?1049l").unwrap();
        let told = written.find("the wings are off").unwrap();
        assert!(left < told, "{written:?}");
    }
}
