//! Answers to standard output, written on a thread of their own: a consumer that reads slowly, or not at all, never
//! keeps the front end from receiving signals.

use std::io::{self, Write};
use std::sync::Arc;

use rustix::event::{PollFd, PollFlags, poll};
use tokio::sync::{Notify, mpsc, oneshot};

/// Answers in the channel, besides those that wait for it.
const WRITE_AHEAD_LINES: usize = 1;

/// Standard output.
#[derive(Debug)]
pub(crate) struct JsonLinesOutput {
    /// Takes whole lines without their line feed. Closed once writing has failed.
    pub(crate) lines: mpsc::Sender<String>,
    end: oneshot::Receiver<io::Result<()>>,
    gone: Arc<Notify>,
}

impl JsonLinesOutput {
    /// Starts the thread that writes and the one that watches.
    pub(crate) fn spawn() -> io::Result<Self> {
        let (lines, receiver) = mpsc::channel(WRITE_AHEAD_LINES);
        let (ended, end) = oneshot::channel();
        std::thread::Builder::new()
            .name("zeph-answers".to_owned())
            .spawn(move || drop(ended.send(write(receiver))))?;
        let gone = consumer_gone()?;
        Ok(Self { lines, end, gone })
    }

    /// Returns once nobody can read standard output any more, even when nothing is being written. Dropping the future
    /// loses nothing.
    pub(crate) async fn gone(&self) {
        self.gone.notified().await;
    }

    /// Waits until everything is written; an error is what stopped it.
    pub(crate) async fn finish(self) -> io::Result<()> {
        drop(self.lines);
        self.end.await.unwrap_or_else(|_| {
            Err(io::Error::other(
                "the thread that writes the answers panicked",
            ))
        })
    }
}

fn write(mut lines: mpsc::Receiver<String>) -> io::Result<()> {
    let mut stdout = io::stdout();
    while let Some(mut line) = lines.blocking_recv() {
        line.push('\n');
        stdout.write_all(line.as_bytes())?;
        stdout.flush()?;
    }
    Ok(())
}

/// Notifies once when nobody can read standard output any more, even when nothing is being written.
///
/// Errors: the thread that watches cannot be started.
pub(crate) fn consumer_gone() -> io::Result<Arc<Notify>> {
    let gone = Arc::new(Notify::new());
    let seen = Arc::clone(&gone);
    std::thread::Builder::new()
        .name("zeph-consumer".to_owned())
        .spawn(move || watch(&seen))?;
    Ok(gone)
}

/// Waits for the other end of a pipe to be closed. For a file that never happens.
fn watch(gone: &Notify) {
    let stdout = io::stdout();
    let mut watched = [PollFd::new(&stdout, PollFlags::empty())];
    loop {
        match poll(&mut watched, None) {
            Err(rustix::io::Errno::INTR) => {}
            Err(_) => return,
            Ok(_) => break,
        }
    }
    // Only these three can be reported when nothing is asked for; an invalid descriptor swallows what is written to it.
    if watched[0]
        .revents()
        .intersects(PollFlags::ERR | PollFlags::HUP)
    {
        gone.notify_one();
    }
}
