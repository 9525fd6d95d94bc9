//! How a running call tells its caller how it is getting on: `zeph:plugin/progress`.

use zeph_core::failure::one_line;

use crate::bindings::zeph::plugin::progress;
use crate::state::GuestState;

/// Most characters of a message that are passed on: a line of a terminal, twice.
const MESSAGE_CHARS_MAX: usize = 200;

/// How a long call is getting on.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Progress {
    /// One line for people.
    pub message: String,
    /// In the plugin's own unit.
    pub completed: Option<u64>,
    /// In the same unit.
    pub total: Option<u64>,
}

/// Where progress goes. A report that finds the channel full is dropped: progress never slows a guest.
#[derive(Debug, Clone)]
pub struct Listener(tokio::sync::mpsc::Sender<Progress>);

impl Listener {
    /// Sends progress to `sender`.
    pub fn new(sender: tokio::sync::mpsc::Sender<Progress>) -> Self {
        Self(sender)
    }

    pub(crate) fn send(&self, progress: Progress) {
        // A full or closed channel means nobody is keeping up: the next report will do.
        drop(self.0.try_send(progress));
    }
}

impl progress::Host for GuestState {
    fn report(
        &mut self,
        message: String,
        completed: Option<u64>,
        total: Option<u64>,
    ) -> wasmtime::Result<()> {
        if let Some(listener) = &self.listener {
            listener.send(Progress {
                message: one_line(&message, MESSAGE_CHARS_MAX),
                completed,
                total,
            });
        }
        Ok(())
    }
}
