//! What other hosts on the same store announce, so that nobody has to ask for it all the time.
//!
//! An announcement is a hint: it may be late, come twice or be lost with a connection. So a caller that waits for one is also told to look from
//! time to time, and after every gap.

use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use tokio::sync::broadcast::{self, error::RecvError};
use tokio::time::{Instant, timeout_at};
use uuid::Uuid;

use crate::error::StoreError;
use crate::store::{Access, Message, Store};

/// Announcements that may wait for one listener. More of them are one reason to look.
const WAITING_MAX: usize = 256;

/// Longest topic in bytes; the rest of a longer one is cut off.
const TOPIC_BYTES_MAX: usize = 1_000;

/// Why to look at the store.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Change {
    /// A host, maybe this one, announced this topic.
    Announced(Arc<str>),
    /// Time has passed, or announcements were missed: anything may have changed.
    Look,
}

/// Announcements as they come, and reminders to look.
pub struct Changes {
    heard: broadcast::Receiver<Change>,
    every: Duration,
    look_at: Instant,
}

impl Changes {
    /// Waits for the next reason to look: at most as long as was said. It may be dropped while it waits; nothing is lost then.
    pub async fn next(&mut self) -> Change {
        let change = match timeout_at(self.look_at, self.heard.recv()).await {
            Ok(Ok(change)) => change,
            Ok(Err(RecvError::Lagged(_))) | Err(_) => Change::Look,
            // The store is closed; who still asks is reminded as before.
            Ok(Err(RecvError::Closed)) => {
                tokio::time::sleep_until(self.look_at).await;
                Change::Look
            }
        };
        if change == Change::Look {
            self.look_at = Instant::now() + self.every;
        }
        change
    }
}

impl fmt::Debug for Changes {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Changes").finish_non_exhaustive()
    }
}

/// Where the handles of a store tell each other what was announced.
#[derive(Debug, Clone)]
pub(crate) struct Announcer {
    /// Tells this process from others: it hears its own announcements without their going anywhere.
    pub(crate) process: Uuid,
    heard: broadcast::Sender<Change>,
}

impl Announcer {
    pub(crate) fn new() -> Self {
        let (heard, _) = broadcast::channel(WAITING_MAX);
        Self {
            process: Uuid::new_v4(),
            heard,
        }
    }

    /// Tells everybody in this process.
    pub(crate) fn tell(&self, change: Change) {
        // Nobody may be listening.
        drop(self.heard.send(change));
    }
}

impl Store {
    /// What is announced from now on by any host on this store, and a reminder to look at least `every` so often.
    ///
    /// In SQLite only this process is heard: others show when one looks. So it is on a server behind a pooler of connections.
    /// Errors: [`StoreError::Closed`].
    pub async fn changes(&self, every: Duration) -> Result<Changes, StoreError> {
        let heard = self.announcer.heard.subscribe();
        let listen = Message::Listen(self.announcer.clone());
        self.queue(listen, "listen to other hosts").await?;
        Ok(Changes {
            heard,
            every,
            look_at: Instant::now() + every,
        })
    }

    /// Tells every host that listens on this store that something changed; what was written before is there for them.
    ///
    /// Limits: a topic has at most 1,000 bytes; what is longer is cut off.
    /// Errors: what the database says.
    pub async fn announce(&self, topic: &str) -> Result<(), StoreError> {
        let topic: Arc<str> = topic[..topic.floor_char_boundary(TOPIC_BYTES_MAX)].into();
        let (process, sent) = (self.announcer.process, Arc::clone(&topic));
        self.run("tell other hosts", Access::Write, move |operations| {
            operations.announce(process, &sent)
        })
        .await?;
        self.announcer.tell(Change::Announced(topic));
        Ok(())
    }
}
