//! How a call gets on, for who makes it.

use std::fmt;
use std::sync::Arc;

use tokio::sync::mpsc;
use zeph_engine::Progress;
use zeph_shell::run::OutputChunk;

/// Something that happens while a call runs. Nothing of it is needed for the result, and all of it passed what removes secrets.
#[derive(Debug, Clone)]
#[non_exhaustive]
pub enum CallEvent {
    /// How far a tool is.
    Progress(Progress),
    /// What a command prints. The piece says how many bytes before it were omitted, because they came faster than they were heard.
    Output(OutputChunk),
}

/// Where events go. Clones lead to the same place.
#[derive(Clone)]
pub struct EventSink(Arc<dyn Fn(CallEvent) + Send + Sync>);

impl EventSink {
    /// Hands each event to `hear`, which must not block.
    pub fn new(hear: impl Fn(CallEvent) + Send + Sync + 'static) -> Self {
        Self(Arc::new(hear))
    }

    /// Tells an event.
    pub fn tell(&self, event: CallEvent) {
        (self.0)(event);
    }
}

/// An event that finds the channel full is dropped: listening never slows a call.
impl From<mpsc::Sender<CallEvent>> for EventSink {
    fn from(sender: mpsc::Sender<CallEvent>) -> Self {
        Self::new(move |event| drop(sender.try_send(event)))
    }
}

impl fmt::Debug for EventSink {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("EventSink")
    }
}
