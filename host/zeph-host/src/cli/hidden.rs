//! One line from the person at the terminal that is not shown.

use std::io;

use rustix::termios::{self, LocalModes, OptionalActions, SpecialCodeIndex, Termios};

use super::out;
use crate::run::render::escape;

/// Bytes of a line at most: one more than a secret can have.
const BYTES_MAX: usize = zeph_core::secret::VALUE_BYTES_MAX + 1;

const INTERRUPT: u8 = 3;
const END_OF_INPUT: u8 = 4;
const BACKSPACE: u8 = 8;
const CLEAR_LINE: u8 = 21;
const DELETE: u8 = 127;

/// What came of asking.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum HiddenLine {
    /// A line, perhaps empty.
    Typed(String),
    /// Ctrl-C, or the end of input.
    GivenUp,
}

/// The terminal without echo; with it again when this is dropped.
struct Hush(Termios);

impl Hush {
    /// Keys that end a process are read too: a process that ends here would leave the terminal mute.
    fn new() -> io::Result<Self> {
        let before = termios::tcgetattr(rustix::stdio::stdin())?;
        let mut mute = before.clone();
        let modes = LocalModes::ECHO | LocalModes::ECHONL | LocalModes::ICANON | LocalModes::ISIG;
        mute.local_modes.remove(modes);
        mute.special_codes[SpecialCodeIndex::VMIN] = 1;
        mute.special_codes[SpecialCodeIndex::VTIME] = 0;
        // What was typed before the question is no answer.
        termios::tcsetattr(rustix::stdio::stdin(), OptionalActions::Flush, &mute)?;
        Ok(Self(before))
    }
}

impl Drop for Hush {
    fn drop(&mut self) {
        let stdin = rustix::stdio::stdin();
        // There is nothing else to try.
        let _ = termios::tcsetattr(stdin, OptionalActions::Now, &self.0);
    }
}

/// Asks on standard error, and reads a line from the terminal that standard input is.
///
/// Errors: the terminal cannot be used.
pub(super) fn ask(question: &str) -> io::Result<HiddenLine> {
    let hush = Hush::new()?;
    out::stderr(&escape(question));
    let line = read();
    drop(hush);
    out::stderr("\n");
    line
}

fn read() -> io::Result<HiddenLine> {
    let mut line = Vec::new();
    loop {
        let mut byte = [0];
        let n_read =
            rustix::io::retry_on_intr(|| rustix::io::read(rustix::stdio::stdin(), &mut byte))?;
        match byte[0] {
            _ if n_read == 0 => return Ok(HiddenLine::GivenUp),
            INTERRUPT => return Ok(HiddenLine::GivenUp),
            END_OF_INPUT if line.is_empty() => return Ok(HiddenLine::GivenUp),
            b'\n' | b'\r' | END_OF_INPUT => {
                let text = String::from_utf8_lossy(&line).into_owned();
                return Ok(HiddenLine::Typed(text));
            }
            BACKSPACE | DELETE => drop(line.pop()),
            CLEAR_LINE => line.clear(),
            byte if line.len() < BYTES_MAX => line.push(byte),
            _ => {}
        }
    }
}
