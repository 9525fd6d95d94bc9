//! A server at the other end of two streams: one message a line.

use std::io;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use rmcp::RoleClient;
use rmcp::model::{ClientJsonRpcMessage, ServerJsonRpcMessage};
use rmcp::transport::Transport;
use tokio::io::{AsyncBufReadExt as _, AsyncRead, AsyncWrite, AsyncWriteExt as _, BufReader};
use tokio::sync::Mutex;
use tokio::time::timeout;

use super::complaint::Complaints;
use super::ending::{EndReason, Ending};
use super::error::McpError;
use super::guard::Link;
use super::message::{Ends, Incoming, read};

/// How long the server may leave a message unread.
const WRITE_PATIENCE: Duration = Duration::from_secs(30);

/// Most bytes of one line that is skipped because it is too long. A server that sends more never ends it.
const SKIPPED_BYTES_MAX: usize = 256 << 20;

/// Most bytes of lines that are no messages, between two messages.
const GARBAGE_BYTES_MAX: usize = 16 << 20;

/// What a line counts at least: short ones cost as much to read.
const LINE_BYTES_MIN: usize = 256;

/// What the server reads.
type Writer = Box<dyn AsyncWrite + Send + Unpin>;

/// The two streams.
pub(super) struct Pipes {
    reader: BufReader<Box<dyn AsyncRead + Send + Unpin>>,
    line: Vec<u8>,
    line_bytes_max: usize,
    /// Of the line that is being skipped.
    skipped: Option<Ends>,
    n_garbage_bytes: usize,
    writer: Arc<Mutex<Option<Writer>>>,
    /// Whether a message was begun and not finished, so that nothing can follow it.
    is_torn: Arc<AtomicBool>,
    complaints: Complaints,
    ending: Ending,
}

/// What was read.
enum Line {
    /// A line, in `Pipes::line`.
    Whole,
    /// One that was too long.
    Skipped(Ends),
    /// The end of the stream.
    End,
}

impl Pipes {
    pub(super) fn new(
        from_server: Box<dyn AsyncRead + Send + Unpin>,
        to_server: Writer,
        line_bytes_max: usize,
        complaints: Complaints,
        ending: Ending,
    ) -> Self {
        Self {
            reader: BufReader::with_capacity(64 * 1024, from_server),
            line: Vec::new(),
            line_bytes_max,
            skipped: None,
            n_garbage_bytes: 0,
            writer: Arc::new(Mutex::new(Some(to_server))),
            is_torn: Arc::default(),
            complaints,
            ending,
        }
    }

    /// The next line. Dropping the future loses nothing.
    async fn next_line(&mut self) -> io::Result<Line> {
        loop {
            let available = self.reader.fill_buf().await?;
            if available.is_empty() {
                return Ok(Line::End);
            }
            let end = newline(available);
            let n_bytes = end.map_or(available.len(), |end| end + 1);
            let piece = &available[..n_bytes];
            let is_too_long = self.line.len() + n_bytes > self.line_bytes_max.saturating_add(1);
            match &mut self.skipped {
                Some(ends) => ends.push(piece),
                None if is_too_long => {
                    let mut ends = Ends::default();
                    ends.push(&std::mem::take(&mut self.line));
                    ends.push(piece);
                    self.skipped = Some(ends);
                }
                None => self.line.extend_from_slice(piece),
            }
            self.reader.consume(n_bytes);
            let n_skipped = self.skipped.as_ref().map_or(0, Ends::n_bytes);
            if n_skipped > SKIPPED_BYTES_MAX {
                return Err(io::Error::other("the server sent a line without an end"));
            }
            if end.is_some() {
                return Ok(self.skipped.take().map_or(Line::Whole, Line::Skipped));
            }
        }
    }

    /// What the line comes to.
    fn message(&mut self, line: Line) -> Option<Incoming> {
        let (incoming, n_bytes) = match line {
            Line::End => return None,
            Line::Skipped(ends) => (ends.unusable(self.line_bytes_max), 0),
            Line::Whole => (read(&self.line), self.line.len()),
        };
        self.line.clear();
        // A single large message must not be paid for during the whole life of the connection.
        self.line.shrink_to(64 * 1024);
        self.n_garbage_bytes = match incoming {
            Incoming::Message(_) => 0,
            _ => self.n_garbage_bytes + n_bytes.max(LINE_BYTES_MIN),
        };
        Some(incoming)
    }

    /// Ends the connection over what is no message, or complains of it.
    fn garbage(&self, why: &str, was_skipped: bool) -> bool {
        if was_skipped {
            let why = format!("the server sent a message that cannot be used: {why}");
            self.ending.end(EndReason::Misbehaved(why));
        } else if self.n_garbage_bytes > GARBAGE_BYTES_MAX {
            let why = format!(
                "the server printed more than {GARBAGE_BYTES_MAX} bytes that are not messages to its standard output"
            );
            self.ending.end(EndReason::Misbehaved(why));
        } else {
            self.complaints.add(format!(
                "the server printed a line to its standard output that is not a message ({why}); servers log to standard error"
            ));
            return true;
        }
        false
    }
}

fn newline(bytes: &[u8]) -> Option<usize> {
    bytes.iter().position(|byte| *byte == b'\n')
}

impl Transport<RoleClient> for Pipes {
    type Error = McpError;

    fn send(
        &mut self,
        item: ClientJsonRpcMessage,
    ) -> impl Future<Output = Result<(), McpError>> + Send + 'static {
        let writer = Arc::clone(&self.writer);
        let (is_torn, ending) = (Arc::clone(&self.is_torn), self.ending.clone());
        async move {
            let mut bytes = serde_json::to_vec(&item)
                .map_err(|error| McpError::InvalidInput(error.to_string()))?;
            bytes.push(b'\n');
            let mut writer = writer.lock().await;
            let torn = is_torn.swap(true, Ordering::Relaxed);
            let written = match writer.as_mut() {
                Some(writer) if !torn => timeout(WRITE_PATIENCE, write(writer, &bytes)).await,
                _ => {
                    return Err(McpError::Ended(
                        ending.reason().unwrap_or(EndReason::Closed),
                    ));
                }
            };
            let reason = match written {
                Ok(Ok(())) => {
                    is_torn.store(false, Ordering::Relaxed);
                    return Ok(());
                }
                Ok(Err(error)) if error.kind() == io::ErrorKind::BrokenPipe => EndReason::Exited,
                Ok(Err(error)) => {
                    EndReason::Broken(format!("the server's input cannot be written: {error}"))
                }
                Err(_) => EndReason::Misbehaved(format!(
                    "the server has not read its input for {} s",
                    WRITE_PATIENCE.as_secs()
                )),
            };
            ending.end(reason.clone());
            Err(McpError::Ended(reason))
        }
    }

    async fn receive(&mut self) -> Option<ServerJsonRpcMessage> {
        loop {
            let line = match self.next_line().await {
                Ok(line) => line,
                Err(error) => {
                    self.ending.end(EndReason::Broken(error.to_string()));
                    return None;
                }
            };
            let was_skipped = matches!(line, Line::Skipped(_));
            match self.message(line) {
                Some(Incoming::Message(message)) => return Some(*message),
                Some(Incoming::Nothing) if self.n_garbage_bytes <= GARBAGE_BYTES_MAX => {}
                Some(Incoming::Nothing) => {
                    let _is_held = self.garbage("empty", false);
                    return None;
                }
                Some(Incoming::Garbage(why)) if self.garbage(&why, was_skipped) => {}
                Some(Incoming::Garbage(_)) | None => return None,
            }
        }
    }

    async fn close(&mut self) -> Result<(), McpError> {
        // A writer that hangs holds the lock; it is dropped with its task.
        let closing = async { drop(self.writer.lock().await.take()) };
        let _was_in_time = timeout(Duration::from_millis(100), closing).await.is_ok();
        Ok(())
    }
}

impl Link for Pipes {
    fn explain(error: McpError) -> McpError {
        error
    }

    fn end_of_stream() -> EndReason {
        EndReason::Exited
    }
}

async fn write(writer: &mut Writer, bytes: &[u8]) -> io::Result<()> {
    writer.write_all(bytes).await?;
    writer.flush().await
}
