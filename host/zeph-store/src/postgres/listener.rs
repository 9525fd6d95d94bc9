//! What other hosts announce, on a connection that does nothing else.

use std::future::Future;
use std::path::Path;
use std::sync::Arc;
use std::thread::{self, JoinHandle};
use std::time::Duration;

use tokio::runtime::Builder;
use tokio::sync::{mpsc, oneshot};
use tokio_postgres::Notification;
use uuid::Uuid;

use super::connection::{Heard, Purpose, Server, Session};
use super::fault::Away;
use crate::changes::{Announcer, Change};
use crate::error::{StoreError, file};

/// The channel of all hosts of a database; a payload is `SCHEMA:PROCESS:TOPIC`.
const LISTEN: &str = "LISTEN zeph_host";

/// Announcements that may wait to be told.
const WAITING_MAX: usize = 256;

/// How long no new connection is tried after one was lost: at first, and at most.
const PAUSE: (Duration, Duration) = (Duration::from_millis(100), Duration::from_secs(5));

/// How often the connection is tried: a server that is gone without a word is noticed by it.
const PROBE: Duration = Duration::from_secs(30);

/// The thread; it ends when this is dropped.
pub(super) struct Listener {
    /// None only while it is being dropped.
    stop: Option<oneshot::Sender<()>>,
    thread: Option<JoinHandle<()>>,
}

impl Listener {
    /// Tells `announcer` what others announce from now on.
    pub(super) fn start(server: Arc<Server>, announcer: Announcer) -> Result<Self, StoreError> {
        let (stop, stopped) = oneshot::channel();
        let place = server.site.server.clone();
        let runtime = Builder::new_current_thread().enable_all().build();
        let runtime = runtime.map_err(|error| server.site.away("listen to other hosts", error))?;
        let thread = thread::Builder::new()
            .name("zeph-store-listen".to_owned())
            .spawn(move || runtime.block_on(until(stopped, listen(&server, &announcer))))
            .map_err(file("start a thread for", Path::new(&place)))?;
        Ok(Self {
            stop: Some(stop),
            thread: Some(thread),
        })
    }
}

impl Drop for Listener {
    fn drop(&mut self) {
        drop(self.stop.take());
        if self
            .thread
            .take()
            .is_some_and(|thread| thread.join().is_err())
        {
            tracing::error!("the thread that listens to other hosts panicked");
        }
    }
}

/// Runs `work`, which never ends, until it is stopped.
async fn until(stopped: oneshot::Receiver<()>, work: impl Future<Output = ()>) {
    tokio::select! {
        _ = stopped => {}
        () = work => {}
    }
}

async fn listen(server: &Server, announcer: &Announcer) {
    let mut pause = PAUSE.0;
    loop {
        match listen_once(server, announcer, &mut pause).await {
            Ok(()) => return,
            Err(away) => tracing::debug!(%away, "other hosts are not heard for now"),
        }
        tokio::time::sleep(pause).await;
        pause = (2 * pause).min(PAUSE.1);
    }
}

/// Listens until the connection is lost; ends without a fault where nothing can be heard.
async fn listen_once(
    server: &Server,
    announcer: &Announcer,
    pause: &mut Duration,
) -> Result<(), Away> {
    let (sender, mut heard) = mpsc::channel(WAITING_MAX);
    let session = server
        .connect(Purpose::reading(PROBE), Some(sender))
        .await?;
    if !session.is_direct {
        tracing::debug!("there is a pooler before the server: other hosts are not heard");
        return Ok(());
    }
    session.run(LISTEN).await?;
    let schema = session.text("SELECT current_schema()").await?;
    *pause = PAUSE.0;
    // What was announced while nobody listened is not known.
    announcer.tell(Change::Look);
    loop {
        match tokio::time::timeout(PROBE, heard.recv()).await {
            Ok(Some(Heard::Said(said))) => tell(announcer, &said, &schema),
            Ok(Some(Heard::TooMuch)) => announcer.tell(Change::Look),
            Ok(None) => return Err(Away::new("the connection ended")),
            Err(_) => probe(&session).await?,
        }
    }
}

async fn probe(session: &Session) -> Result<(), Away> {
    session.run("").await
}

fn tell(announcer: &Announcer, said: &Notification, schema: &str) {
    let mut parts = said.payload().splitn(3, ':');
    let (Some(of_schema), Some(process), Some(topic)) = (parts.next(), parts.next(), parts.next())
    else {
        return;
    };
    let is_own = process.parse() == Ok::<Uuid, _>(announcer.process);
    if of_schema == schema && !is_own {
        announcer.tell(Change::Announced(topic.into()));
    }
}
