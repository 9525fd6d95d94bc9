//! The protocol over two streams: one message a line.
//!
//! Takes the place of the library's transport, which drops in silence what it cannot read, answers two requests of one id once, and
//! lets a client that asks faster than it reads fill the memory. Here each line that is no message has its one answer, and the
//! next one works.

mod message;
mod writing;

use std::collections::{HashMap, VecDeque};
use std::future::Future;
use std::io;
use std::pin::Pin;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use rmcp::RoleServer;
use rmcp::model::{
    ClientJsonRpcMessage, ClientNotification, ClientRequest, ErrorData, GetMeta as _,
    JsonRpcMessage, JsonRpcRequest, ProtocolVersion, RequestId, ServerJsonRpcMessage, ServerResult,
};
use rmcp::transport::Transport;
use tokio::io::{AsyncBufReadExt as _, AsyncRead, AsyncWrite, AsyncWriteExt as _, BufReader};
use tokio::sync::{Mutex as AsyncMutex, Notify};
use tokio_util::sync::CancellationToken;

use self::message::{Bad, Read, read};
use self::writing::line;
use crate::passing::PassingMessage;
use crate::refusal::{self, WrittenId};

/// Most requests that were read and answers that were not written yet. A client that sends more is not read from until it reads answers.
const OPEN_MAX: usize = 512;

/// Most bytes of requests that are not answered yet; one more line may be read beyond. Each is in memory until its call ends.
const OPEN_BYTES_MAX: usize = 64 << 20;

/// Cancelled requests whose ids are remembered.
const CANCELLED_MAX: usize = 256;

/// How long the answers to cancelled requests may take once the stream has ended.
const END_PATIENCE: Duration = Duration::from_secs(10);

/// What the two sides of a connection tell each other about its end.
#[derive(Debug, Clone, Default)]
pub struct Connection {
    /// Cancelled by the transport: no more requests will come. The answerer of the open ones has to end them.
    pub ended: CancellationToken,
    /// Cancelled by either side: nobody reads the answers any more.
    pub gone: CancellationToken,
    /// Cancelled by the server: no more requests are wanted.
    pub closing: CancellationToken,
}

/// A transport over a reader and a writer.
pub struct Lines<R, W> {
    reader: BufReader<R>,
    line: Vec<u8>,
    line_bytes_max: usize,
    /// A line that is too long, while it goes by.
    passing: Option<PassingMessage>,
    /// The answer to a line that was no message, while it is being written.
    reply: Option<Pin<Box<dyn Future<Output = io::Result<()>> + Send>>>,
    shared: Arc<Shared<W>>,
    connection: Connection,
}

impl<R, W> std::fmt::Debug for Lines<R, W> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Lines").finish_non_exhaustive()
    }
}

struct Shared<W> {
    writer: AsyncMutex<Option<W>>,
    open: Mutex<Open>,
    /// Something of `open` has ended.
    one_ended: Notify,
    /// Whether the client has chosen a revision. What is no request before that would end the connection.
    has_begun: AtomicBool,
    gone: CancellationToken,
}

impl<R: AsyncRead + Unpin, W> Lines<R, W> {
    /// Reads lines of at most `line_bytes_max` bytes from `reader` and writes answers to `writer`.
    pub fn new(reader: R, writer: W, line_bytes_max: usize, connection: Connection) -> Self {
        Self {
            reader: BufReader::new(reader),
            line: Vec::new(),
            line_bytes_max,
            passing: None,
            reply: None,
            shared: Arc::new(Shared {
                writer: AsyncMutex::new(Some(writer)),
                open: Mutex::default(),
                one_ended: Notify::new(),
                has_begun: AtomicBool::new(false),
                gone: connection.gone.clone(),
            }),
            connection,
        }
    }

    /// The next line, in `self.line`. Dropping the future loses nothing.
    async fn next_line(&mut self) -> Result<Line, io::Error> {
        loop {
            let available = self.reader.fill_buf().await?;
            if available.is_empty() {
                // What an end cuts off is a line too.
                return Ok(match self.passing.take() {
                    Some(passing) => Line::TooLong(passing.request_id()),
                    None if self.line.is_empty() => Line::End,
                    None => Line::Whole,
                });
            }
            let end = available.iter().position(|byte| *byte == b'\n');
            let n_bytes = end.map_or(available.len(), |end| end + 1);
            let piece = &available[..n_bytes];
            match self.passing.as_mut() {
                Some(passing) => passing.push(piece),
                None if self.line.len() + n_bytes <= self.line_bytes_max.saturating_add(1) => {
                    self.line.extend_from_slice(piece);
                }
                None => {
                    let passing = self.passing.get_or_insert_default();
                    passing.push(&std::mem::take(&mut self.line));
                    passing.push(piece);
                }
            }
            self.reader.consume(n_bytes);
            if end.is_some() {
                return Ok(match self.passing.take() {
                    Some(passing) => Line::TooLong(passing.request_id()),
                    None => Line::Whole,
                });
            }
        }
    }
}

/// What is not over yet. Locked for a moment only.
#[derive(Default)]
struct Open {
    /// Requests without an answer, and how long each is.
    requests: HashMap<RequestId, usize>,
    n_bytes: usize,
    /// Requests that were cancelled last. Their calls may still be ending, and what they come to must not pass for another answer.
    cancelled: VecDeque<RequestId>,
    /// Answers that are being written. Their ids are free: the client may use them as soon as it has read the last byte.
    n_unwritten: usize,
}

impl Open {
    fn len(&self) -> usize {
        self.requests.len() + self.n_unwritten
    }

    fn has_room(&self) -> bool {
        self.len() < OPEN_MAX && self.n_bytes < OPEN_BYTES_MAX
    }

    /// Adds a request; false when there is one of its id.
    fn add(&mut self, id: &RequestId, n_bytes: usize) -> bool {
        let is_new = !self.requests.contains_key(id) && !self.cancelled.contains(id);
        if is_new {
            self.requests.insert(id.clone(), n_bytes);
            self.n_bytes += n_bytes;
        }
        is_new
    }

    fn remove(&mut self, id: &RequestId) {
        self.n_bytes -= self.requests.remove(id).unwrap_or_default();
    }

    fn cancel(&mut self, id: &RequestId) {
        if self.requests.contains_key(id) {
            self.remove(id);
            self.cancelled.truncate(CANCELLED_MAX - 1);
            self.cancelled.push_front(id.clone());
        }
    }
}

enum Line {
    Whole,
    /// One that was not kept, with the id of the request that it was.
    TooLong(Option<WrittenId>),
    End,
}

impl<W> Shared<W> {
    fn open(&self) -> MutexGuard<'_, Open> {
        self.open.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Gives up a request that gets no answer.
    fn cancel(&self, id: &RequestId) {
        self.open().cancel(id);
        self.one_ended.notify_waiters();
    }

    /// An answer is about to be written.
    fn answers(&self, id: Option<&RequestId>) {
        let mut open = self.open();
        open.n_unwritten += 1;
        if let Some(id) = id {
            open.remove(id);
        }
    }

    /// An answer was written, or cannot be.
    fn answered(&self) {
        self.open().n_unwritten -= 1;
        self.one_ended.notify_waiters();
    }

    /// Waits until what is open is as wanted.
    async fn wait_until(&self, is_so: impl Fn(&Open) -> bool) {
        loop {
            let ended = self.one_ended.notified();
            tokio::pin!(ended);
            // Registered before it is looked at: an end in between is not missed.
            ended.as_mut().enable();
            if is_so(&self.open()) {
                return;
            }
            ended.await;
        }
    }
}

impl<W: AsyncWrite + Unpin> Shared<W> {
    async fn write(&self, line: Vec<u8>) -> io::Result<()> {
        let mut writer = self.writer.lock().await;
        let Some(writer) = writer.as_mut() else {
            return Err(io::ErrorKind::NotConnected.into());
        };
        let written = async {
            writer.write_all(&line).await?;
            writer.flush().await
        };
        tokio::select! {
            biased;
            written = written => written.inspect_err(|_| self.gone.cancel()),
            () = self.gone.cancelled() => Err(io::ErrorKind::BrokenPipe.into()),
        }
    }
}

impl<R, W> Lines<R, W>
where
    R: AsyncRead + Unpin + Send,
    W: AsyncWrite + Unpin + Send + 'static,
{
    /// Begins to answer what was no message.
    fn refuse(&mut self, bad: Bad) {
        let Bad { id, error } = bad;
        let shared = Arc::clone(&self.shared);
        self.reply = Some(Box::pin(async move {
            let answer = refusal::text(id.as_ref(), error.code.0, &error.message);
            shared.write((answer + "\n").into_bytes()).await
        }));
    }

    /// What of a line goes on to the service.
    fn accept(
        &mut self,
        message: ClientJsonRpcMessage,
        n_bytes: usize,
    ) -> Option<ClientJsonRpcMessage> {
        match message {
            JsonRpcMessage::Request(request) => match self.accept_request(&request, n_bytes) {
                Ok(()) => Some(JsonRpcMessage::Request(request)),
                Err(bad) => {
                    self.refuse(bad);
                    None
                }
            },
            // Nothing was begun that they could be about.
            _ if !self.shared.has_begun.load(Ordering::Acquire) => None,
            JsonRpcMessage::Notification(notification) => {
                if let ClientNotification::CancelledNotification(cancelled) =
                    &notification.notification
                    && let Some(id) = &cancelled.params.request_id
                {
                    // It gets no answer.
                    self.shared.cancel(id);
                }
                Some(JsonRpcMessage::Notification(notification))
            }
            other => Some(other),
        }
    }

    fn accept_request(
        &self,
        request: &JsonRpcRequest<ClientRequest>,
        n_bytes: usize,
    ) -> Result<(), Bad> {
        if !self.shared.open().add(&request.id, n_bytes) {
            let message = "the id of the request is that of another one, which is in progress or was cancelled";
            return Err(Bad {
                id: Some(WrittenId::from(&request.id)),
                error: ErrorData::invalid_request(message, None),
            });
        }
        if begins(&request.request) {
            self.shared.has_begun.store(true, Ordering::Release);
        }
        Ok(())
    }

    /// The next message that the service has to see; `None` when there will be none.
    async fn next_message(&mut self) -> Option<ClientJsonRpcMessage> {
        loop {
            if let Some(reply) = self.reply.as_mut() {
                // An error has been noted as the loss of the client.
                drop(reply.await);
                self.reply = None;
            }
            self.shared.wait_until(Open::has_room).await;
            let bad = match self.next_line().await {
                Ok(Line::End) => return None,
                Ok(Line::TooLong(id)) => Bad::too_long(id, self.line_bytes_max),
                Ok(Line::Whole) => {
                    let line = std::mem::take(&mut self.line);
                    match read(&line) {
                        Ok(Read::Message(message)) => match self.accept(*message, line.len()) {
                            Some(message) => return Some(message),
                            None => continue,
                        },
                        Ok(Read::Nothing) => continue,
                        Err(bad) => bad,
                    }
                }
                Err(error) => {
                    tracing::warn!(%error, "the requests cannot be read");
                    return None;
                }
            };
            self.refuse(bad);
        }
    }
}

/// Whether the revision is settled by this request.
fn begins(request: &ClientRequest) -> bool {
    match request {
        ClientRequest::PingRequest(_)
        | ClientRequest::DiscoverRequest(_)
        | ClientRequest::InitializeRequest(_) => false,
        request => {
            let meta = request.get_meta();
            let missing = meta.missing_required_keys(&ProtocolVersion::V_2026_07_28);
            let version = meta.protocol_version();
            let is_known =
                version.is_some_and(|version| ProtocolVersion::KNOWN_VERSIONS.contains(&version));
            missing.is_empty() && is_known
        }
    }
}

impl<R, W> Transport<RoleServer> for Lines<R, W>
where
    R: AsyncRead + Unpin + Send,
    W: AsyncWrite + Unpin + Send + 'static,
{
    type Error = io::Error;

    fn send(
        &mut self,
        message: ServerJsonRpcMessage,
    ) -> impl Future<Output = io::Result<()>> + Send + 'static {
        let shared = Arc::clone(&self.shared);
        if let JsonRpcMessage::Response(response) = &message
            && matches!(response.result, ServerResult::InitializeResult(_))
        {
            shared.has_begun.store(true, Ordering::Release);
        }
        let answers = match &message {
            JsonRpcMessage::Response(response) => Some(Some(&response.id)),
            JsonRpcMessage::Error(error) => Some(error.id.as_ref()),
            _ => None,
        };
        let is_answer = answers.is_some();
        if let Some(id) = answers {
            shared.answers(id);
        }
        async move {
            let written = match line(message) {
                Ok(line) => shared.write(line).await,
                Err(error) => Err(error.into()),
            };
            if is_answer {
                shared.answered();
            }
            written
        }
    }

    async fn receive(&mut self) -> Option<ClientJsonRpcMessage> {
        let Connection {
            ended,
            gone,
            closing,
        } = self.connection.clone();
        if !ended.is_cancelled() {
            let message = tokio::select! {
                biased;
                () = gone.cancelled() => None,
                () = closing.cancelled() => None,
                message = self.next_message() => message,
            };
            if message.is_some() {
                return message;
            }
            ended.cancel();
        }
        tokio::select! {
            () = self.shared.wait_until(|open| open.len() == 0) => {}
            () = gone.cancelled() => {}
            () = tokio::time::sleep(END_PATIENCE) => {
                tracing::warn!("some requests were not answered in time");
            }
        }
        None
    }

    async fn close(&mut self) -> io::Result<()> {
        drop(self.shared.writer.lock().await.take());
        Ok(())
    }
}

#[cfg(test)]
mod tests;
