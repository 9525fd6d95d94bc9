//! Where the writer stands while nobody works with it. The thread of the store takes it for whatever is queued; a caller takes it for itself
//! when nobody else has it and all that is asked for takes microseconds, which spares waking two threads for each call.
//!
//! A caller never waits there: not for another caller, another host, or a lock on a file; for the disk only when SQLite begins its log anew, once
//! in some hundred calls. What cannot be done at once is left to the thread, and so is whatever goes wrong: nothing has happened then.

use std::sync::atomic::{AtomicBool, AtomicU8, Ordering};
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::thread;
use std::time::{Duration, Instant};

use super::writer::Writer;
use crate::store::Access;

/// How long what may wait does. The end of a call shares the transaction of the next begin where calls follow each other without a pause;
/// after one, it is written by then, and the next call does not wait for it. Source: measured; to write it costs the begin a third more.
pub(super) const SOON: Duration = Duration::from_micros(500);

/// The writer of one database, or the place for it.
#[derive(Default)]
pub(crate) struct WriterDesk {
    /// None before the database is open, and once it is closed. Held for the work of a batch.
    writer: Mutex<Option<Writer>>,
    /// Whether the thread looks for what may wait without being woken for it: one of the three below.
    looking: AtomicU8,
    /// Whether several callers wanted it at once when it was last seen.
    is_shared: AtomicBool,
}

/// The thread has to be woken for what may wait.
const ASLEEP: u8 = 0;

/// It looks within the time that such a job may wait.
const LOOKING: u8 = 1;

/// The same, and such a job has come since it looked last: more are likely to, and the next one finds it looking as well.
const EXPECTING: u8 = 2;

/// When the thread has to look again.
pub(super) enum Turn {
    /// When it is woken.
    Woken,
    /// At this moment at the latest.
    At(Instant),
    /// Never: nothing more comes.
    Over,
}

impl Turn {
    /// The same, but not later than after `time`.
    fn within(self, time: Duration) -> Self {
        let latest = Instant::now() + time;
        match self {
            Self::Woken => Self::At(latest),
            Self::At(at) => Self::At(at.min(latest)),
            Self::Over => Self::Over,
        }
    }
}

impl WriterDesk {
    /// Does what is queued, after a job of this `access` was. False: the thread has to be woken for it.
    pub(crate) fn serve(&self, access: Access) -> bool {
        match access {
            Access::Read | Access::Write => false,
            Access::WriteSoon => self.looking.swap(EXPECTING, Ordering::AcqRel) != ASLEEP,
            Access::ReadRights | Access::WriteBriefly => match self.writer.try_lock() {
                Ok(mut writer) => {
                    let is_done = writer.as_mut().is_some_and(Writer::run_briefly);
                    self.note_callers(writer.as_mut());
                    is_done
                }
                Err(_) => {
                    self.is_shared.store(true, Ordering::Relaxed);
                    false
                }
            },
        }
    }

    /// Whether it is worth a caller's while to let others that are ready queue theirs first.
    pub(crate) fn is_shared(&self) -> bool {
        self.is_shared.load(Ordering::Relaxed)
    }

    /// The life of the thread, until nothing more comes; `writer` is what callers may take meanwhile.
    pub(super) fn attend(&self, writer: Writer) {
        *self.lock() = Some(writer);
        let closing = ClosedOnDrop(self);
        loop {
            match self.turn() {
                Turn::Woken => thread::park(),
                Turn::At(at) => thread::park_timeout(at.saturating_duration_since(Instant::now())),
                Turn::Over => break,
            }
        }
        drop(closing);
    }

    /// Does what is queued and due.
    fn turn(&self) -> Turn {
        // What is queued before this is seen below; who queues after it wakes the thread.
        let has_come = self.looking.swap(ASLEEP, Ordering::AcqRel) == EXPECTING;
        let Ok(mut writer) = self.writer.lock() else {
            tracing::error!("a caller panicked with the writer of the store");
            return Turn::Over;
        };
        let turn = writer.as_mut().map_or(Turn::Over, Writer::turn);
        self.note_callers(writer.as_mut());
        let turn = if has_come { turn.within(SOON) } else { turn };
        let is_waiting = writer.as_ref().is_some_and(Writer::has_waiting);
        if has_come || is_waiting {
            self.looking.fetch_max(LOOKING, Ordering::AcqRel);
        }
        turn
    }

    fn note_callers(&self, writer: Option<&mut Writer>) {
        if let Some(is_shared) = writer.and_then(Writer::take_is_shared) {
            self.is_shared.store(is_shared, Ordering::Relaxed);
        }
    }

    fn lock(&self) -> MutexGuard<'_, Option<Writer>> {
        self.writer.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Takes the writer away when the thread ends, whatever ended it: nobody waits for answers that cannot come.
struct ClosedOnDrop<'a>(&'a WriterDesk);

impl Drop for ClosedOnDrop<'_> {
    fn drop(&mut self) {
        let is_whole = !self.0.writer.is_poisoned();
        let writer = self.0.lock().take();
        if let Some(writer) = writer.filter(|_| is_whole) {
            writer.end();
        }
    }
}

#[cfg(test)]
mod tests {
    use std::future;
    use std::sync::atomic::Ordering;
    use std::sync::{Arc, mpsc};
    use std::time::Duration;

    use super::WriterDesk;
    use crate::open::StoreOptions;
    use crate::operations::Operations;
    use crate::sqlite::open;
    use crate::store::Access;

    /// Longer than a thread is woken in, however busy the machine is.
    const LONG: Duration = Duration::from_secs(60);

    #[tokio::test]
    async fn a_caller_that_goes_before_its_turn_leaves_its_job_to_the_thread() {
        let options = StoreOptions {
            at_ms: 0,
            busy_timeout: LONG,
        };
        let desk = Arc::new(WriterDesk::default());
        let database = open::open_memory(&options).unwrap();
        let store = open::start_at(database, &desk).unwrap();
        desk.is_shared.store(true, Ordering::Relaxed);
        let (tell, told) = mpsc::channel();
        let job = store.run("tell", Access::WriteBriefly, move |_: &dyn Operations| {
            tell.send(()).unwrap();
            Ok(())
        });
        tokio::select! {
            biased;
            done = job => panic!("it let no other caller go first: {done:?}"),
            () = future::ready(()) => {}
        }
        told.recv_timeout(LONG).unwrap();
    }
}
