//! Checkpoints of the audit: signed, and handed to where the operator said, so that they lie where who changes the log cannot change them.
//!
//! One host of a store takes each, whichever notices first that it is due. What could not be handed over is due again, for every host, with
//! what was recorded since.

use std::fs::OpenOptions;
use std::io::{self, Read as _, Seek as _, SeekFrom, Write as _};
use std::os::unix::fs::OpenOptionsExt as _;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, AtomicI64, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use bytes::Bytes;
use http::Request;
use http::header::CONTENT_TYPE;
use tokio::time::{sleep, timeout};
use zeph_config::{AuditConfig, CheckpointInterval, CheckpointTarget};
use zeph_egress::{Egress, JOURNAL_SOCKET, OwnClient, OwnLimits, OwnPatience, send_to_journal};
use zeph_store::{AuditKeys, CheckpointDue, CheckpointEvery, Store, StoreError};

use crate::clock::now_ms;

/// How often a host looks whether a checkpoint is due. It reads one row.
const TICK: Duration = Duration::from_secs(1);

/// How long a target may take, and how long the end of the process waits for one.
const PATIENCE: Duration = Duration::from_secs(10);
const FLUSH_MAX: Duration = Duration::from_secs(5);

/// Bytes of an answer; nothing is read from it.
const ANSWER_BYTES_MAX: usize = 64 * 1024;

/// Of this process, for its end, which lets go of it: the store is closed when nobody holds it any more.
static OF_PROCESS: Mutex<Option<Arc<Checkpointer>>> = Mutex::new(None);

/// Takes checkpoints.
#[derive(Debug)]
pub(crate) struct Checkpointer {
    store: Store,
    keys: AuditKeys,
    target: Target,
    every: Option<CheckpointEvery>,
    /// The newest event at the last look.
    seen: AtomicI64,
    /// Whether the last one could not be handed over.
    has_failed: AtomicBool,
}

/// Where they go.
#[derive(Debug)]
enum Target {
    Journal(PathBuf),
    File(PathBuf),
    Server(String, Box<OwnClient>),
}

/// Why there is no checkpoint, in a sentence.
#[derive(Debug, thiserror::Error)]
pub(crate) enum CheckpointError {
    /// It cannot be read what it is to be of.
    #[error(transparent)]
    Store(#[from] StoreError),
    /// Nothing was recorded.
    #[error("nothing was recorded yet")]
    Nothing,
    /// It could not be handed over.
    #[error("the checkpoint cannot be handed to {to}: {why}")]
    Target {
        /// Where it should have gone.
        to: String,
        /// What went wrong.
        why: String,
    },
}

impl Checkpointer {
    /// What takes the checkpoints of `config`; none when they go nowhere.
    ///
    /// Errors: a sentence; the URL is not one.
    pub(crate) fn new(
        config: &AuditConfig,
        (store, keys): (&Store, &AuditKeys),
        egress: &Egress,
    ) -> Result<Option<Self>, String> {
        let Some(target) = &config.checkpoint_target else {
            return Ok(None);
        };
        Ok(Some(Self {
            store: store.clone(),
            keys: keys.clone(),
            target: Target::new(target, egress)?,
            every: config.checkpoint_every.map(|every| match every {
                CheckpointInterval::Records(n) => CheckpointEvery::Records(n),
                CheckpointInterval::Time(time) => CheckpointEvery::Time(time),
            }),
            seen: AtomicI64::new(-1),
            has_failed: AtomicBool::new(false),
        }))
    }

    /// Whether it takes any by itself.
    pub(crate) fn is_periodic(&self) -> bool {
        self.every.is_some()
    }

    /// Takes one now and hands it over; the checkpoint.
    pub(crate) async fn take(&self) -> Result<String, CheckpointError> {
        let taken = self.take_due(None, PATIENCE).await?;
        taken.ok_or(CheckpointError::Nothing)
    }

    async fn take_due(
        &self,
        every: Option<CheckpointEvery>,
        patience: Duration,
    ) -> Result<Option<String>, CheckpointError> {
        let at_ms = now_ms();
        let due = CheckpointDue { at_ms, every };
        let Some(head) = self.store.take_checkpoint(due).await? else {
            return Ok(None);
        };
        let line = signed(&self.store, &self.keys, &head, at_ms)?;
        let handed = timeout(patience, self.target.hand_over(&line));
        let why = match handed.await {
            Ok(Ok(())) => return Ok(Some(line)),
            Ok(Err(why)) => why,
            Err(_) => format!("it takes longer than {} s", patience.as_secs()),
        };
        // The next look takes it again, in this process or in another.
        self.store.give_back_checkpoint(&head).await?;
        Err(CheckpointError::Target {
            to: self.target.shown(),
            why,
        })
    }

    /// Takes a last one when the process ends, with [`flush`].
    pub(crate) fn flush_at_end(self: &Arc<Self>) {
        let mut of_process = OF_PROCESS.lock().unwrap_or_else(PoisonError::into_inner);
        *of_process = Some(Arc::clone(self));
    }

    /// Takes them until the host ends.
    pub(crate) async fn run(self: Arc<Self>) {
        loop {
            sleep(TICK).await;
            self.look(PATIENCE).await;
        }
    }

    /// Takes one if it is due; its target has `patience` for it.
    async fn look(&self, patience: Duration) {
        let Ok(Some(head)) = self.store.chain_head().await else {
            return;
        };
        let is_again = self.has_failed.load(Ordering::Relaxed);
        if self.seen.swap(head.count, Ordering::Relaxed) == head.count && !is_again {
            // Time alone makes one due only when it was refused for too little of it.
            if !matches!(self.every, Some(CheckpointEvery::Time(_))) {
                return;
            }
        }
        let taken = self.take_due(self.every, patience).await;
        let has_failed = matches!(taken, Err(CheckpointError::Target { .. }));
        let is_news = self.has_failed.swap(has_failed, Ordering::Relaxed) != has_failed;
        if let (Err(error), true) = (taken, is_news) {
            tracing::error!(%error, "no checkpoint of the audit log");
        }
    }
}

/// Takes the checkpoint that is due, before the process ends. One that is not taken in time is due for the next process.
///
/// Limits: 5 s for the target, 6 s in all.
pub(crate) async fn flush() {
    let of_process = OF_PROCESS
        .lock()
        .unwrap_or_else(PoisonError::into_inner)
        .take();
    let Some(checkpointer) = of_process else {
        return;
    };
    let looking = checkpointer.look(FLUSH_MAX);
    if timeout(FLUSH_MAX + TICK, looking).await.is_err() {
        tracing::warn!("a checkpoint of the audit log was not handed over in time");
    }
}

/// A checkpoint of `head` and of the newest line of the audit file.
pub(crate) fn signed(
    store: &Store,
    keys: &AuditKeys,
    head: &zeph_store::ChainHead,
    at_ms: i64,
) -> Result<String, StoreError> {
    let file = store.audit_file_head()?;
    Ok(keys.checkpoint(head, file, at_ms))
}

impl Target {
    fn new(target: &CheckpointTarget, egress: &Egress) -> Result<Self, String> {
        Ok(match target {
            CheckpointTarget::Journald => Self::Journal(PathBuf::from(JOURNAL_SOCKET)),
            CheckpointTarget::File(path) => Self::File(path.clone()),
            CheckpointTarget::Url(url) => {
                let limits = OwnLimits {
                    time: PATIENCE,
                    bytes: ANSWER_BYTES_MAX,
                };
                let client = OwnClient::new(egress, &[url.as_str()], limits);
                let client = client.map_err(|error| error.to_string())?;
                Self::Server(url.clone(), Box::new(client))
            }
        })
    }

    fn shown(&self) -> String {
        match self {
            Self::Journal(_) => "the journal of the system".to_owned(),
            Self::File(path) => format!("`{}`", path.display()),
            Self::Server(url, _) => format!("`{url}`"),
        }
    }

    async fn hand_over(&self, line: &str) -> Result<(), String> {
        let line = line.to_owned();
        match self {
            Self::Journal(socket) => {
                let socket = socket.clone();
                blocking(move || to_journal(&socket, &line)).await
            }
            Self::File(path) => {
                let path = path.clone();
                blocking(move || to_file(&path, &line)).await
            }
            Self::Server(url, client) => post(client, url, line.into(), Vec::new()).await,
        }
    }
}

/// Runs what may block elsewhere.
async fn blocking(work: impl FnOnce() -> io::Result<()> + Send + 'static) -> Result<(), String> {
    let done = tokio::task::spawn_blocking(work).await;
    let done = done.map_err(|error| error.to_string())?;
    done.map_err(|error| error.to_string())
}

fn to_journal(socket: &Path, line: &str) -> io::Result<()> {
    let fields = [
        ("MESSAGE", line),
        ("PRIORITY", "5"),
        ("SYSLOG_IDENTIFIER", "zeph-host"),
    ];
    send_to_journal(socket, &fields)
}

/// Appends a line, on a line of its own even when the last one is not whole.
fn to_file(path: &Path, line: &str) -> io::Result<()> {
    let mut options = OpenOptions::new();
    let options = options.append(true).read(true).create(true).mode(0o600);
    let mut file = options.open(path)?;
    let mut text = format!("{line}\n");
    if file.seek(SeekFrom::End(-1)).is_ok() {
        let mut last = [b'\n'];
        file.read_exact(&mut last)?;
        if last != *b"\n" {
            text.insert(0, '\n');
        }
    }
    file.write_all(text.as_bytes())
}

/// Sends JSON to a server.
pub(crate) async fn post(
    client: &OwnClient,
    url: &str,
    body: Bytes,
    headers: Vec<(http::HeaderName, http::HeaderValue)>,
) -> Result<(), String> {
    let request = Request::post(url).header(CONTENT_TYPE, "application/json");
    let mut request = request.body(body).map_err(|error| error.to_string())?;
    request.headers_mut().extend(headers);
    let patience = OwnPatience {
        headers: PATIENCE,
        idle: PATIENCE,
        total: PATIENCE,
    };
    let sent = client.send(request, patience).await;
    let answer = sent.map_err(|error| error.to_string())?;
    match answer.status.is_success() {
        true => Ok(()),
        false => Err(format!("it answers with {}", answer.status)),
    }
}

#[cfg(test)]
mod tests;
