//! Requests from a reader that may block, read on a thread of their own.

use std::io::{self, BufRead};

use tokio::sync::mpsc;
use zeph_core::failure::one_line;

use super::lines::{InputLine, InputLines};
use super::request::{Invalid, LineRequest, decode};

/// What one line holds.
#[derive(Debug)]
pub(crate) struct InputItem {
    /// Counted from 1.
    pub(crate) line: u64,
    /// How much memory it stands for, in bytes of the line.
    pub(crate) n_bytes: usize,
    /// What it asks for, or what is wrong with it.
    pub(crate) request: Result<LineRequest, Invalid>,
}

/// Lines that are read before anybody asks for them.
const READ_AHEAD_LINES: usize = 1;

/// Reads requests until the input ends or the receiver is dropped. An error of the reader is the last item.
///
/// The thread is not waited for: a read from a terminal or a pipe cannot be called off, and ends with the process.
pub(crate) fn spawn(
    reader: Box<dyn BufRead + Send>,
    request_bytes_max: usize,
) -> io::Result<mpsc::Receiver<io::Result<InputItem>>> {
    let (sender, receiver) = mpsc::channel(READ_AHEAD_LINES);
    let read = move || {
        let mut lines = InputLines::new(reader, request_bytes_max);
        while let Some(line) = lines.next_line().transpose() {
            let is_last = line.is_err();
            let item = line.map(|line| item(line, request_bytes_max));
            if sender.blocking_send(item).is_err() || is_last {
                break;
            }
        }
    };
    std::thread::Builder::new()
        .name("zeph-requests".to_owned())
        .spawn(read)?;
    Ok(receiver)
}

fn item(line: InputLine, request_bytes_max: usize) -> InputItem {
    let (n_bytes, request) = match line.content {
        Ok(bytes) => (bytes.len(), decode(&bytes)),
        Err(too_long) => {
            let message = format!(
                "the line has {} bytes; at most {request_bytes_max} are read (`run.request_bytes`)",
                too_long.n_bytes
            );
            (0, Err(Invalid { id: None, message }))
        }
    };
    InputItem {
        line: line.number,
        n_bytes,
        request: request.map_err(|invalid| Invalid {
            message: one_line(&invalid.message, 1000),
            ..invalid
        }),
    }
}
