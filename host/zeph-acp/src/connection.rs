//! A connection with requests in both directions.
//!
//! [`Connection`] sends, [`Inbox`] receives, and [`Connection::write_to`] is the task that writes. What the other side answers to our
//! requests is handed to the task that waits for it; what is no message is answered here. Nothing waits for a slow reader but the writer.

use std::collections::HashMap;
use std::future::Future;
use std::io;
use std::sync::atomic::{AtomicI64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use serde::Serialize;
use serde::de::DeserializeOwned;
use serde_json::Value;
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::sync::oneshot;
use tokio_util::sync::CancellationToken;

use crate::line::{Line, LineReader};
use crate::outbox::Outbox;
use crate::rpc::{self, BadMessage, Message, Notification, Request, RequestId, RpcError};

/// Bytes that may still wait for a client that has caught up.
const CAUGHT_UP_BYTES: usize = 1 << 20;

/// The sending half. Clones are handles to one.
#[derive(Debug, Clone)]
pub struct Connection(Arc<Shared>);

#[derive(Debug)]
struct Shared {
    outbox: Outbox,
    next_id: AtomicI64,
    /// Who waits for which answer. Locked for a moment only.
    waiting: Mutex<HashMap<RequestId, oneshot::Sender<Result<Value, RpcError>>>>,
    gone: CancellationToken,
    /// Cancelled when no more answers will come.
    deaf: CancellationToken,
}

/// Why a request of ours has no result.
#[derive(Debug, Clone, PartialEq, thiserror::Error)]
pub enum RequestError {
    /// The client is gone.
    #[error("the client is gone")]
    Gone,
    /// The client refused.
    #[error("the client refused: {0}")]
    Refused(RpcError),
    /// What it answered is no answer to this request.
    #[error("the client's answer cannot be read: {0}")]
    Unreadable(String),
}

/// A message for the agent.
#[derive(Debug, Clone, PartialEq)]
pub enum Incoming {
    /// It wants an answer, by [`Connection::answer`].
    Request(Request),
    /// It wants none.
    Notification(Notification),
}

impl Default for Connection {
    fn default() -> Self {
        let gone = CancellationToken::new();
        Self(Arc::new(Shared {
            outbox: Outbox::new(gone.clone()),
            next_id: AtomicI64::new(0),
            waiting: Mutex::default(),
            gone,
            deaf: CancellationToken::new(),
        }))
    }
}

impl Connection {
    /// Writes what is sent, until [`close`](Self::close) or until nobody reads it.
    ///
    /// Limits: a client that reads nothing for 20 seconds, or lets 64 MiB come together, is given up.
    pub fn write_to<W: AsyncWrite + Unpin + Send>(
        &self,
        writer: W,
    ) -> impl Future<Output = ()> + Send + use<W> {
        let shared = Arc::clone(&self.0);
        async move { shared.outbox.write_to(writer).await }
    }

    /// Sends no more than what was sent until now.
    pub fn close(&self) {
        self.0.outbox.close();
    }

    /// Waits until the client has read most of what was sent, or is gone: for senders of much at once.
    pub async fn caught_up(&self) {
        self.0.outbox.has_less_than(CAUGHT_UP_BYTES).await;
    }

    /// Cancelled when the client is gone.
    pub fn gone(&self) -> &CancellationToken {
        &self.0.gone
    }

    /// Answers a request.
    pub fn answer(&self, id: &RequestId, result: Result<Value, RpcError>) {
        self.send(&rpc::answer(id, result));
    }

    /// Tells the client something.
    pub fn notify(&self, method: &str, params: &impl Serialize) {
        match rpc::notification(method, params) {
            Ok(line) => self.send(&line),
            Err(error) => tracing::error!(%error, method, "a notification cannot be written"),
        }
    }

    /// Asks the client, and waits for its answer. Dropping the future forgets the question.
    ///
    /// Errors: [`RequestError`].
    pub async fn request<T: DeserializeOwned>(
        &self,
        method: &str,
        params: &impl Serialize,
    ) -> Result<T, RequestError> {
        let id = RequestId::Number(self.0.next_id.fetch_add(1, Ordering::Relaxed));
        let line = rpc::request(&id, method, params)
            .map_err(|error| RequestError::Unreadable(error.to_string()))?;
        let (sender, receiver) = oneshot::channel();
        self.waiting().insert(id.clone(), sender);
        let _forgotten = Forgotten(self, &id);
        self.send(&line);
        let answer = tokio::select! {
            biased;
            answer = receiver => answer.map_err(|_| RequestError::Gone)?,
            () = self.0.gone.cancelled() => return Err(RequestError::Gone),
            () = self.0.deaf.cancelled() => return Err(RequestError::Gone),
        };
        let value = answer.map_err(RequestError::Refused)?;
        serde_json::from_value(value).map_err(|error| RequestError::Unreadable(error.to_string()))
    }

    fn send(&self, line: &Value) {
        self.0.outbox.push(line.to_string().into_bytes());
    }

    fn waiting(
        &self,
    ) -> MutexGuard<'_, HashMap<RequestId, oneshot::Sender<Result<Value, RpcError>>>> {
        self.0
            .waiting
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
    }

    fn answered(&self, id: &RequestId, result: Result<Value, RpcError>) {
        match self.waiting().remove(id) {
            // The task that asked may have stopped waiting.
            Some(sender) => drop(sender.send(result)),
            None => tracing::debug!(%id, "an answer nobody waits for"),
        }
    }
}

/// Takes a question away that nobody waits for any more.
struct Forgotten<'a>(&'a Connection, &'a RequestId);

impl Drop for Forgotten<'_> {
    fn drop(&mut self) {
        self.0.waiting().remove(self.1);
    }
}

/// The receiving half.
#[derive(Debug)]
pub struct Inbox<R> {
    lines: LineReader<R>,
    bytes_max: usize,
    connection: Connection,
}

impl<R: AsyncRead + Unpin> Inbox<R> {
    /// Receives messages of at most `bytes_max` bytes.
    pub fn new(reader: R, bytes_max: usize, connection: &Connection) -> Self {
        Self {
            lines: LineReader::new(reader, bytes_max),
            bytes_max,
            connection: connection.clone(),
        }
    }

    /// The next message for the agent; `None` when there will be none. Dropping the future loses nothing.
    ///
    /// Errors: those of the stream.
    pub async fn next(&mut self) -> io::Result<Option<Incoming>> {
        let next = self.message().await;
        if !matches!(next, Ok(Some(_))) {
            // No task waits for an answer any longer.
            self.connection.0.deaf.cancel();
        }
        next
    }

    async fn message(&mut self) -> io::Result<Option<Incoming>> {
        loop {
            let read = match self.lines.next().await? {
                Line::End => return Ok(None),
                Line::Whole(line) if line.trim_ascii().is_empty() => continue,
                Line::Whole(line) => rpc::read(&line),
                Line::TooLong(beginning) => {
                    let message = format!("the message is longer than {} bytes", self.bytes_max);
                    Err(BadMessage {
                        id: rpc::request_id(&beginning),
                        error: RpcError::request(message),
                    })
                }
            };
            match read {
                Ok(Message::Request(request)) => return Ok(Some(Incoming::Request(request))),
                Ok(Message::Notification(told)) => return Ok(Some(Incoming::Notification(told))),
                Ok(Message::Answer { id, result }) => self.connection.answered(&id, result),
                Err(bad) => self.connection.answer(&bad.id, Err(bad.error)),
            }
        }
    }
}

#[cfg(test)]
mod tests;
