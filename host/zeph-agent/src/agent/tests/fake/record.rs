//! A journal in memory, and an observer that can cancel.

use std::sync::Mutex;
use std::sync::atomic::{AtomicUsize, Ordering};

use tokio_util::sync::CancellationToken;

use crate::event::{AgentEvent, Journal, Observer};
use crate::transcript::TranscriptEntry;

/// Keeps entries in memory, as JSON, as a store does.
#[derive(Debug, Default)]
pub(in super::super) struct Memory(Mutex<Vec<String>>);

impl Memory {
    pub(in super::super) fn entries(&self) -> Vec<TranscriptEntry> {
        let lines = self.0.lock().unwrap();
        let read = lines.iter().map(|line| serde_json::from_str(line).unwrap());
        read.collect()
    }
}

impl Journal for Memory {
    async fn append(&self, entries: &[TranscriptEntry]) -> Result<(), String> {
        let lines = entries
            .iter()
            .map(|entry| serde_json::to_string(entry).unwrap());
        self.0.lock().unwrap().extend(lines);
        Ok(())
    }
}

/// Counts events, and cancels at one of them.
#[derive(Debug)]
pub(in super::super) struct Watcher {
    seen: AtomicUsize,
    at: AtomicUsize,
    pub(in super::super) cancel: Mutex<CancellationToken>,
    pub(in super::super) notices: Mutex<Vec<String>>,
}

impl Default for Watcher {
    fn default() -> Self {
        Self {
            seen: AtomicUsize::new(0),
            at: AtomicUsize::new(usize::MAX),
            cancel: Mutex::default(),
            notices: Mutex::default(),
        }
    }
}

impl Watcher {
    pub(in super::super) fn cancel_at(&self, at: usize) {
        self.seen.store(0, Ordering::Relaxed);
        self.at.store(at, Ordering::Relaxed);
    }
}

impl Observer for Watcher {
    fn on(&self, event: AgentEvent<'_>) {
        match event {
            AgentEvent::Notice(text) | AgentEvent::Message(text) => {
                self.notices.lock().unwrap().push(text.to_owned());
            }
            AgentEvent::Compacted { .. } => {
                self.notices.lock().unwrap().push("compacted".to_owned());
            }
            _ => {}
        }
        if self.seen.fetch_add(1, Ordering::Relaxed) == self.at.load(Ordering::Relaxed) {
            self.cancel.lock().unwrap().cancel();
        }
    }
}
