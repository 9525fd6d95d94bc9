//! How a running call tells its caller how it is getting on.

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
