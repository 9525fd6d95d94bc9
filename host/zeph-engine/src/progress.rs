//! How a running call tells its caller how it is getting on: `zeph:plugin/progress`.

use std::fmt;
use std::sync::Arc;

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
#[derive(Clone)]
pub struct Listener {
    sender: tokio::sync::mpsc::Sender<Progress>,
    edit: Option<Edit>,
}

/// What is done to a message before it is cut to a line.
type Edit = Arc<dyn Fn(String) -> String + Send + Sync>;

impl Listener {
    /// Sends progress to `sender`.
    pub fn new(sender: tokio::sync::mpsc::Sender<Progress>) -> Self {
        Self { sender, edit: None }
    }

    /// This listener, with every message passed through `edit` before it is cut to a line.
    #[must_use]
    pub fn edited(self, edit: impl Fn(String) -> String + Send + Sync + 'static) -> Self {
        Self {
            edit: Some(Arc::new(edit)),
            ..self
        }
    }

    /// Tells how the call is getting on: a line for people, and how much of how much is done.
    pub fn report(&self, message: String, (completed, total): (Option<u64>, Option<u64>)) {
        let message = match &self.edit {
            Some(edit) => edit(message),
            None => message,
        };
        let progress = Progress {
            message: one_line(&message, MESSAGE_CHARS_MAX),
            completed,
            total,
        };
        // A full or closed channel means nobody is keeping up: the next report will do.
        drop(self.sender.try_send(progress));
    }
}

impl fmt::Debug for Listener {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Listener")
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
            listener.report(message, (completed, total));
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::{Listener, MESSAGE_CHARS_MAX};

    #[test]
    fn a_message_is_edited_while_it_is_whole() {
        let (sender, mut receiver) = tokio::sync::mpsc::channel(1);
        let listener = Listener::new(sender).edited(|message| message.replace("secret", "[gone]"));
        // Cut first, a part of the secret would stay.
        let before = "x".repeat(MESSAGE_CHARS_MAX - 5);
        listener.report(format!("{before} secret"), (Some(1), None));
        let told = receiver.try_recv().expect("a report");
        assert!(!told.message.contains("se"), "{}", told.message);
        assert_eq!(told.completed, Some(1));
    }
}
