//! What leads from callers to the writer: its queue, its thread, and the desk where they may take it for themselves.

use std::sync::Arc;
use std::thread::JoinHandle;

use tokio::sync::mpsc;
use tokio::task::yield_now;

use super::{Access, Job, Message};
use crate::error::StoreError;
use crate::sqlite::desk::WriterDesk;

/// Shared by the handles on one store. Dropping it waits until everything queued is done.
pub(super) struct StoreLink {
    /// None only while it is being dropped.
    queue: Option<mpsc::Sender<Message>>,
    /// Where reads of rights go, if the database has readers beside the writer.
    rights: Option<mpsc::Sender<Box<dyn Job>>>,
    /// Where callers take the writer for themselves, if they may.
    desk: Option<Arc<WriterDesk>>,
    /// None only while it is being dropped.
    thread: Option<JoinHandle<()>>,
}

/// Wakes the thread for what is queued unless it was served, also when the caller is gone before its turn.
struct WakeUnserved<'a> {
    link: &'a StoreLink,
    is_served: bool,
}

impl StoreLink {
    pub(super) fn new(
        queue: mpsc::Sender<Message>,
        rights: Option<mpsc::Sender<Box<dyn Job>>>,
        desk: Option<Arc<WriterDesk>>,
        thread: JoinHandle<()>,
    ) -> Self {
        Self {
            queue: Some(queue),
            rights,
            desk,
            thread: Some(thread),
        }
    }

    pub(super) fn rights(&self) -> Option<&mpsc::Sender<Box<dyn Job>>> {
        self.rights.as_ref()
    }

    /// Queues a message; waits only while the queue is full. Nobody is woken for it yet.
    pub(super) async fn send(
        &self,
        message: Message,
        operation: &'static str,
    ) -> Result<(), StoreError> {
        let closed = StoreError::Closed { operation };
        let Some(queue) = &self.queue else {
            return Err(closed);
        };
        queue.send(message).await.map_err(|_| closed)
    }

    /// Queues a job that may be written soon. False when there is no room for it.
    pub(super) fn try_send(&self, job: Box<dyn Job>) -> bool {
        let queue = self.queue.as_ref();
        let is_queued = queue.is_some_and(|queue| queue.try_send(Message::Job(job)).is_ok());
        if is_queued {
            self.unserved().serve(Access::WriteSoon);
        }
        is_queued
    }

    /// Sees to it that a queued job of this `access` is done: here, or by the thread.
    pub(super) async fn serve(&self, access: Access) {
        let unserved = self.unserved();
        let is_shared = self.desk.as_ref().is_some_and(|desk| desk.is_shared());
        if access == Access::WriteBriefly && is_shared {
            // Callers that are ready now queue theirs first: one transaction holds them all.
            yield_now().await;
        }
        unserved.serve(access);
    }

    /// Wakes a thread that does not wait at its queue.
    pub(super) fn wake(&self) {
        if let (Some(_), Some(thread)) = (&self.desk, &self.thread) {
            thread.thread().unpark();
        }
    }

    fn unserved(&self) -> WakeUnserved<'_> {
        WakeUnserved {
            link: self,
            is_served: false,
        }
    }
}

impl WakeUnserved<'_> {
    fn serve(mut self, access: Access) {
        let desk = self.link.desk.as_ref();
        self.is_served = desk.is_none_or(|desk| desk.serve(access));
    }
}

impl Drop for WakeUnserved<'_> {
    fn drop(&mut self) {
        if !self.is_served {
            self.link.wake();
        }
    }
}

impl Drop for StoreLink {
    fn drop(&mut self) {
        drop(self.queue.take());
        drop(self.rights.take());
        self.wake();
        let Some(thread) = self.thread.take() else {
            return;
        };
        if thread.join().is_err() {
            tracing::error!("the writer thread of the store panicked");
        }
        tracing::debug!("the store is closed");
    }
}
