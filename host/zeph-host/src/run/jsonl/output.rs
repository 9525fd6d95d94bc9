//! Answers to standard output. A short one is written at once where a pipe takes it without waiting; every other is written on a thread of
//! its own, so that a consumer that reads slowly, or not at all, never keeps the front end from receiving signals.

use std::io::{self, Write};
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use rustix::event::{PollFd, PollFlags, poll};
use rustix::pipe::PIPE_BUF;
use tokio::net::unix::pipe;
use tokio::sync::mpsc::Permit;
use tokio::sync::{Notify, mpsc, oneshot};

/// Answers in the channel, besides those that wait for it.
const WRITE_AHEAD_LINES: usize = 1;

const STDOUT: &str = "/proc/self/fd/1";

/// Standard output.
#[derive(Debug)]
pub(crate) struct JsonLinesOutput {
    /// Takes whole lines. Closed once writing has failed.
    lines: mpsc::Sender<String>,
    /// Lines that the thread has not written yet.
    unwritten: Arc<AtomicUsize>,
    /// The pipe that standard output is, opened anew: whoever shares the other description of it does not find it non-blocking.
    pipe: Option<pipe::Sender>,
    end: oneshot::Receiver<io::Result<()>>,
    gone: Arc<Notify>,
}

/// Room for one line.
#[derive(Debug)]
pub(crate) struct OutputRoom<'a> {
    output: &'a JsonLinesOutput,
    permit: Permit<'a, String>,
}

impl JsonLinesOutput {
    /// Starts the thread that writes and the one that watches.
    pub(crate) fn spawn() -> io::Result<Self> {
        let (lines, receiver) = mpsc::channel(WRITE_AHEAD_LINES);
        let (ended, end) = oneshot::channel();
        let unwritten = Arc::<AtomicUsize>::default();
        let left = Arc::clone(&unwritten);
        std::thread::Builder::new()
            .name("zeph-answers".to_owned())
            .spawn(move || drop(ended.send(write(receiver, &left))))?;
        let gone = consumer_gone()?;
        Ok(Self {
            lines,
            unwritten,
            // Anything else, and a system where it has no such path, has the thread.
            pipe: pipe::OpenOptions::new().open_sender(STDOUT).ok(),
            end,
            gone,
        })
    }

    /// Waits for room. `None` once writing has failed. Dropping the future loses nothing.
    pub(crate) async fn room(&self) -> Option<OutputRoom<'_>> {
        let permit = self.lines.reserve().await.ok()?;
        Some(OutputRoom {
            output: self,
            permit,
        })
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

    /// Writes a line if all before it are written and a pipe has room for the whole of it: it takes up to `PIPE_BUF` bytes whole or not at all
    /// (pipe(7)). What is wrong with it is found by the thread, which then writes the line.
    fn write_now(&self, line: &str) -> bool {
        let is_next = self.unwritten.load(Ordering::Acquire) == 0;
        let pipe = self.pipe.as_ref();
        let pipe = pipe.filter(|_| is_next && line.len() <= PIPE_BUF);
        pipe.is_some_and(|pipe| pipe.try_write(line.as_bytes()).is_ok())
    }
}

impl OutputRoom<'_> {
    /// Writes a line, which comes without its line feed, or hands it to the thread that does.
    pub(crate) fn put(self, mut line: String) {
        line.push('\n');
        if !self.output.write_now(&line) {
            self.output.unwritten.fetch_add(1, Ordering::AcqRel);
            self.permit.send(line);
        }
    }
}

fn write(mut lines: mpsc::Receiver<String>, unwritten: &AtomicUsize) -> io::Result<()> {
    let mut stdout = io::stdout();
    while let Some(line) = lines.blocking_recv() {
        stdout.write_all(line.as_bytes())?;
        stdout.flush()?;
        unwritten.fetch_sub(1, Ordering::AcqRel);
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
