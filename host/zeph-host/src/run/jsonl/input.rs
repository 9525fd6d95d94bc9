//! Requests from a pipe, read where they are served, and from anything else that may block, read on a thread of their own.

use std::fs::File;
use std::io::{self, BufRead, BufReader};

use tokio::io::AsyncBufReadExt as _;
use tokio::net::unix::pipe;
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

/// Where requests come from.
#[derive(Debug)]
pub(crate) enum JsonLinesInput {
    Stdin,
    File(File),
}

/// The requests of an input.
pub(super) enum Requests {
    Pipe(PipeRequests),
    Thread(mpsc::Receiver<io::Result<InputItem>>),
}

/// Lines that the thread reads before anybody asks for them.
const READ_AHEAD_LINES: usize = 1;

/// The pipe that standard input is, opened anew: whoever shares the other description of it does not find it non-blocking.
const STDIN: &str = "/proc/self/fd/0";

impl Requests {
    /// Begins to read. Where it takes a thread, that one is not waited for: a read from a terminal cannot be called off, and ends with the
    /// process.
    ///
    /// Errors: a thread cannot be started.
    pub(super) fn of(input: JsonLinesInput, request_bytes_max: usize) -> io::Result<Self> {
        match input {
            JsonLinesInput::Stdin => match pipe::OpenOptions::new().open_receiver(STDIN) {
                Ok(pipe) => Ok(Self::Pipe(PipeRequests {
                    reader: tokio::io::BufReader::new(pipe),
                    lines: InputLines::new(request_bytes_max),
                    request_bytes_max,
                    is_over: false,
                })),
                // No pipe, or a system where it has no such path.
                Err(_) => spawn(BufReader::new(io::stdin()), request_bytes_max).map(Self::Thread),
            },
            JsonLinesInput::File(file) => {
                spawn(BufReader::new(file), request_bytes_max).map(Self::Thread)
            }
        }
    }

    /// The next request; None at the end. An error of the reader is the last item. Dropping the future loses nothing.
    pub(super) async fn next(&mut self) -> Option<io::Result<InputItem>> {
        match self {
            Self::Pipe(requests) => requests.next().await,
            Self::Thread(requests) => requests.recv().await,
        }
    }
}

/// Requests from a pipe.
pub(super) struct PipeRequests {
    reader: tokio::io::BufReader<pipe::Receiver>,
    lines: InputLines,
    request_bytes_max: usize,
    is_over: bool,
}

impl PipeRequests {
    async fn next(&mut self) -> Option<io::Result<InputItem>> {
        while !self.is_over {
            let line = match self.reader.fill_buf().await {
                Ok([]) => {
                    self.is_over = true;
                    self.lines.end()
                }
                Ok(chunk) => {
                    let (n_used, line) = self.lines.push(chunk);
                    self.reader.consume(n_used);
                    line
                }
                Err(error) => {
                    self.is_over = true;
                    return Some(Err(error));
                }
            };
            if let Some(line) = line {
                return Some(Ok(item(line, self.request_bytes_max)));
            }
        }
        None
    }
}

/// Reads requests on a thread until the input ends or the receiver is dropped.
fn spawn(
    mut reader: impl BufRead + Send + 'static,
    request_bytes_max: usize,
) -> io::Result<mpsc::Receiver<io::Result<InputItem>>> {
    let (sender, receiver) = mpsc::channel(READ_AHEAD_LINES);
    let read = move || {
        let mut lines = InputLines::new(request_bytes_max);
        loop {
            let (line, is_last) = match reader.fill_buf() {
                Ok([]) => (lines.end().map(Ok), true),
                Ok(chunk) => {
                    let (n_used, line) = lines.push(chunk);
                    reader.consume(n_used);
                    (line.map(Ok), false)
                }
                Err(error) if error.kind() == io::ErrorKind::Interrupted => continue,
                Err(error) => (Some(Err(error)), true),
            };
            let item = line.map(|line| line.map(|line| item(line, request_bytes_max)));
            let is_received = item.is_none_or(|item| sender.blocking_send(item).is_ok());
            if is_last || !is_received {
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
