//! What is typed before it is asked for: kept where lines are read, and discarded where a question is answered.

use std::collections::VecDeque;
use std::io;
use std::os::fd::AsFd;
use std::time::Duration;

use ratatui::crossterm::event::{self, Event, KeyCode, KeyEvent, KeyEventKind, KeyModifiers};
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::termios::{QueueSelector, tcflush};

/// How long nothing must come before input counts as new. A paste comes in pieces that follow each other faster, a person who reads
/// a question is slower.
const QUIET: Timespec = Timespec {
    tv_sec: 0,
    tv_nsec: 100_000_000,
};

/// How often input that goes on is discarded: a key that is held down must not keep a question from being asked for ever.
const ROUNDS_MAX: usize = 50;

/// Bytes that are taken from the terminal at once: more than its kernel queue holds.
const BYTES_MAX: usize = 64 * 1024;

const NOW: Timespec = Timespec {
    tv_sec: 0,
    tv_nsec: 0,
};

/// Discards what was typed at a terminal until nothing has come for a moment, so that it does not answer the question that follows. Blocks.
///
/// Errors: the terminal cannot be used.
pub(crate) fn discard(terminal: impl AsFd) -> io::Result<()> {
    discard_with(terminal, || Ok(()))
}

/// Discards what was typed at standard input, also what a line editor has read of it and not used: an editor takes all that is there,
/// and leaves what follows the end of a line to the next one. Blocks.
///
/// Errors: the terminal cannot be used.
pub(crate) fn discard_for_editor() -> io::Result<()> {
    discard_with(rustix::stdio::stdin(), forget_events)
}

fn discard_with(terminal: impl AsFd, mut forget: impl FnMut() -> io::Result<()>) -> io::Result<()> {
    for _ in 0..ROUNDS_MAX {
        tcflush(&terminal, QueueSelector::IFlush)?;
        forget()?;
        if !is_readable(&terminal, &QUIET)? {
            break;
        }
    }
    // A line without its end is not readable.
    tcflush(&terminal, QueueSelector::IFlush)?;
    Ok(())
}

/// Forgets the events that were read and not used. The terminal must have nothing to read: it could be waited for.
fn forget_events() -> io::Result<()> {
    while event::poll(Duration::ZERO)? {
        event::read()?;
    }
    Ok(())
}

fn is_readable(terminal: impl AsFd, patience: &Timespec) -> io::Result<bool> {
    let terminal = terminal.as_fd();
    let mut watched = [PollFd::from_borrowed_fd(terminal, PollFlags::IN)];
    rustix::io::retry_on_intr(|| poll(&mut watched, Some(patience)))?;
    // A terminal that is gone is readable, too; its reader hears of that.
    let came = watched[0].revents();
    Ok(came.contains(PollFlags::IN) && !came.intersects(PollFlags::HUP | PollFlags::ERR))
}

/// Whether a key is Ctrl-C.
pub(crate) fn is_interrupt(event: &Event) -> bool {
    let key = KeyEvent::new(KeyCode::Char('c'), KeyModifiers::CONTROL);
    *event == Event::Key(key)
}

/// A line that was typed before it was asked for.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum TypedLine {
    Line(String),
    /// Ctrl-D.
    End,
}

/// Lines that were typed while nothing read them. The terminal ends them with a line feed then, which is no Enter to the line editor:
/// it takes all of them at once and keeps the first.
#[derive(Debug, Default)]
pub(crate) struct TypedAhead {
    lines: VecDeque<TypedLine>,
    /// What follows the last line.
    rest: String,
}

impl TypedAhead {
    /// Takes the next line that is whole; none when there is none. The terminal must be in its ordinary mode.
    ///
    /// Errors: the terminal cannot be used.
    pub(crate) fn next(&mut self, is_whole: fn(&str) -> bool) -> io::Result<Option<TypedLine>> {
        if self.lines.is_empty() {
            self.collect()?;
        }
        let mut text = String::new();
        while let Some(TypedLine::Line(line)) = self
            .lines
            .pop_front_if(|line| matches!(line, TypedLine::Line(_)))
        {
            text.push_str(&line);
            if is_whole(&text) {
                return Ok(Some(TypedLine::Line(text)));
            }
            text.push('\n');
        }
        self.rest.insert_str(0, &text);
        match self.rest.is_empty() {
            true => Ok(self.lines.pop_front()),
            false => Ok(None),
        }
    }

    /// Puts whole lines before those that are there.
    pub(crate) fn put(&mut self, lines: Vec<String>) {
        for line in lines.into_iter().rev() {
            self.lines.push_front(TypedLine::Line(line));
        }
    }

    /// Adds what a line editor read and did not use.
    pub(crate) fn add_events(&mut self, events: &[Event]) {
        events.iter().for_each(|event| self.add_event(event));
    }

    /// Takes what follows the last line.
    pub(crate) fn rest(&mut self) -> String {
        std::mem::take(&mut self.rest)
    }

    /// What stands in the queue of the line editor is left to it unless lines follow.
    fn collect(&mut self) -> io::Result<()> {
        let stdin = rustix::stdio::stdin();
        let (mut bytes, mut is_at_end) = (Vec::new(), false);
        while bytes.len() < BYTES_MAX && !is_at_end && is_readable(stdin, &NOW)? {
            let mut piece = [0; 4096];
            let n_bytes = rustix::io::retry_on_intr(|| rustix::io::read(stdin, &mut piece))?;
            bytes.extend_from_slice(&piece[..n_bytes]);
            is_at_end = n_bytes == 0;
        }
        if bytes.is_empty() && !is_at_end {
            return Ok(());
        }
        while event::poll(Duration::ZERO)? {
            self.add_event(&event::read()?);
        }
        self.add_bytes(&bytes);
        if is_at_end {
            self.lines.push_back(TypedLine::End);
        }
        Ok(())
    }

    fn add_event(&mut self, event: &Event) {
        match event {
            Event::Paste(text) => {
                let text = text.replace("\r\n", "\n").replace('\r', "\n");
                self.rest.push_str(&text);
            }
            Event::Key(key) if key.kind != KeyEventKind::Release => self.add_key(*key),
            _ => {}
        }
    }

    fn add_key(&mut self, key: KeyEvent) {
        match (key.code, key.modifiers) {
            (KeyCode::Enter, _) | (KeyCode::Char('j'), KeyModifiers::CONTROL) => self.end_line(),
            (KeyCode::Char('c' | 'u'), KeyModifiers::CONTROL) => self.rest.clear(),
            (KeyCode::Char('d'), KeyModifiers::CONTROL) if self.rest.is_empty() => {
                self.lines.push_back(TypedLine::End);
            }
            (KeyCode::Char(letter), KeyModifiers::NONE | KeyModifiers::SHIFT) => {
                self.rest.push(letter);
            }
            (KeyCode::Backspace, _) => drop(self.rest.pop()),
            _ => {}
        }
    }

    fn add_bytes(&mut self, bytes: &[u8]) {
        let text = String::from_utf8_lossy(bytes).replace('\r', "\n");
        let text = anstream::adapter::strip_str(&text).to_string();
        for letter in text.chars() {
            match letter {
                '\n' => self.end_line(),
                letter if letter.is_control() => {}
                letter => self.rest.push(letter),
            }
        }
    }

    fn end_line(&mut self) {
        let line = std::mem::take(&mut self.rest);
        self.lines.push_back(TypedLine::Line(line));
    }
}

#[cfg(test)]
mod tests {
    use ratatui::crossterm::event::{Event, KeyCode, KeyEvent, KeyModifiers};

    use super::{TypedAhead, TypedLine};

    #[test]
    fn lines_of_editor_and_terminal_are_put_together() {
        let mut ahead = TypedAhead::default();
        let key = |code, modifiers| Event::Key(KeyEvent::new(code, modifiers));
        ahead.add_event(&key(KeyCode::Char('X'), KeyModifiers::CONTROL));
        ahead.add_event(&Event::Paste("a\r\nb".to_owned()));
        ahead.add_event(&key(KeyCode::Enter, KeyModifiers::NONE));
        for letter in "rex".chars() {
            ahead.add_event(&key(KeyCode::Char(letter), KeyModifiers::NONE));
        }
        ahead.add_event(&key(KeyCode::Backspace, KeyModifiers::NONE));
        ahead.add_bytes("ad \u{e4}\x1b[A\x07\r\nlast\nha".as_bytes());
        let lines: Vec<TypedLine> = ahead.lines.drain(..).collect();
        let expect = ["a\nb", "read \u{e4}", "", "last"];
        assert_eq!(lines, expect.map(|line| TypedLine::Line(line.to_owned())));
        assert_eq!(ahead.rest(), "ha");
    }

    #[test]
    fn what_follows_an_interrupt_is_kept() {
        let mut ahead = TypedAhead::default();
        let key = |letter, modifiers| Event::Key(KeyEvent::new(KeyCode::Char(letter), modifiers));
        ahead.add_events(&[
            key('a', KeyModifiers::NONE),
            key('d', KeyModifiers::CONTROL),
            key('c', KeyModifiers::CONTROL),
            key('d', KeyModifiers::CONTROL),
        ]);
        ahead.put(vec!["one".to_owned(), "two".to_owned()]);
        let lines: Vec<TypedLine> = ahead.lines.drain(..).collect();
        let [one, two] = ["one", "two"].map(|line| TypedLine::Line(line.to_owned()));
        assert_eq!(lines, [one, two, TypedLine::End]);
        assert_eq!(ahead.rest(), "");
    }
}
