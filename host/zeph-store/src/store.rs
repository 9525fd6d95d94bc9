//! The handle callers hold: it queues work for the writer thread and waits for the answer.

use std::fmt;
use std::sync::Arc;
use std::thread::{self, JoinHandle};

use rusqlite::Connection;
use tokio::sync::{mpsc, oneshot};

use crate::error::{StoreError, file};
use crate::writer::{self, Access, Database, Message, Task};

/// Most jobs that wait for the writer. Beyond it callers wait to queue, which bounds the memory that waits with them.
const QUEUE_JOBS_MAX: usize = 256;

/// A handle on the store; clones share one writer thread.
///
/// Every operation resolves after its commit. An operation whose future is dropped once queued still happens.
/// Commits survive the death of the process at any moment; a power failure may undo the last seconds but never damages
/// the file (`synchronous=NORMAL`). When the last handle is dropped, the drop waits until everything queued is
/// committed and the file is closed.
#[derive(Clone)]
pub struct Store {
    writer: Arc<Writer>,
}

struct Writer {
    /// None only while it is being dropped.
    queue: Option<mpsc::Sender<Message>>,
    /// None only while it is being dropped.
    thread: Option<JoinHandle<()>>,
}

impl Store {
    /// Starts the writer thread.
    pub(crate) fn start(database: Database) -> Result<Self, StoreError> {
        let (queue, receiver) = mpsc::channel(QUEUE_JOBS_MAX);
        let path = database.site.path.clone();
        let thread = thread::Builder::new()
            .name("zeph-store".to_owned())
            .spawn(move || writer::run(database, receiver))
            .map_err(file("start the writer thread of the store", &path))?;
        Ok(Self {
            writer: Arc::new(Writer {
                queue: Some(queue),
                thread: Some(thread),
            }),
        })
    }

    /// Finishes everything queued, by any clone, and closes the file; later operations fail.
    ///
    /// Errors: [`StoreError::Closed`] when it is closed already, and what SQLite says about closing.
    pub async fn close(self) -> Result<(), StoreError> {
        const OPERATION: &str = "close the store";
        let (reply, answer) = oneshot::channel();
        self.queue(Message::Close(reply), OPERATION).await?;
        answer.await.unwrap_or(Err(StoreError::Closed {
            operation: OPERATION,
        }))
    }

    /// Runs `work` on the writer thread. It may run twice when a transaction is lost, never in two that both count.
    pub(crate) async fn run<T, W>(
        &self,
        operation: &'static str,
        access: Access,
        work: W,
    ) -> Result<T, StoreError>
    where
        T: Send + 'static,
        W: FnMut(&Connection) -> rusqlite::Result<T> + Send + 'static,
    {
        let (reply, answer) = oneshot::channel();
        let task = Task {
            operation,
            access,
            work,
            result: None,
            reply,
        };
        self.queue(Message::Job(Box::new(task)), operation).await?;
        answer
            .await
            .unwrap_or(Err(StoreError::Closed { operation }))
    }

    /// Queues `work`, which writes, and goes on; nobody hears of its end. A full queue leaves it out: it was not worth waiting for.
    pub(crate) fn queue_and_go<W>(&self, operation: &'static str, work: W)
    where
        W: FnMut(&Connection) -> rusqlite::Result<()> + Send + 'static,
    {
        let (reply, _nobody) = oneshot::channel();
        let task = Task {
            operation,
            access: Access::Write,
            work,
            result: None,
            reply,
        };
        let queued = self
            .writer
            .queue
            .as_ref()
            .map(|queue| queue.try_send(Message::Job(Box::new(task))));
        if !matches!(queued, Some(Ok(()))) {
            tracing::debug!(
                operation,
                "omitted: the store has too much to do, or is closed"
            );
        }
    }

    async fn queue(&self, message: Message, operation: &'static str) -> Result<(), StoreError> {
        let closed = StoreError::Closed { operation };
        let Some(queue) = &self.writer.queue else {
            return Err(closed);
        };
        queue.send(message).await.map_err(|_| closed)
    }
}

impl fmt::Debug for Store {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Store").finish_non_exhaustive()
    }
}

impl Drop for Writer {
    fn drop(&mut self) {
        drop(self.queue.take());
        let Some(thread) = self.thread.take() else {
            return;
        };
        if thread.join().is_err() {
            tracing::error!("the writer thread of the store panicked");
        }
    }
}
