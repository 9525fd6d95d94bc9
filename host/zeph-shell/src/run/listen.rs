//! Output while the command still runs, for people who watch.

use tokio::sync::mpsc;

use super::capture::StreamKind;
use super::text::Decoder;

/// A piece of output, as it arrived.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct OutputChunk {
    /// Where it was printed to.
    pub stream: StreamKind,
    /// Whole characters; what is no UTF-8 is U+FFFD.
    pub text: String,
    /// Bytes of either stream that were omitted since the last piece, because nobody kept up.
    pub n_skipped: u64,
}

/// Where pieces of output go. One that finds the channel full is omitted: listening never slows a command, and the result has
/// all of it.
#[derive(Debug, Clone)]
pub struct OutputListener(mpsc::Sender<OutputChunk>);

impl OutputListener {
    /// Sends to `sender`. A piece is at most 768 KiB.
    pub fn new(sender: mpsc::Sender<OutputChunk>) -> Self {
        Self(sender)
    }
}

/// A listener with what it has to remember of one run.
#[derive(Debug)]
pub(super) struct Teller {
    listener: Option<OutputListener>,
    decoders: [Decoder; 2],
    n_skipped: u64,
}

impl Teller {
    pub(super) fn new(listener: Option<OutputListener>) -> Self {
        Self {
            listener,
            decoders: Default::default(),
            n_skipped: 0,
        }
    }

    pub(super) fn tell(&mut self, stream: StreamKind, bytes: &[u8]) {
        let Some(OutputListener(sender)) = &self.listener else {
            return;
        };
        let decoder = &mut self.decoders[stream as usize];
        // Looked at before decoding: a flood that nobody reads costs nothing here.
        let Ok(place) = sender.try_reserve() else {
            self.n_skipped += bytes.len() as u64;
            decoder.reset();
            return;
        };
        let mut text = String::new();
        decoder.push(bytes, &mut text);
        if text.is_empty() {
            return;
        }
        place.send(OutputChunk {
            stream,
            text,
            n_skipped: std::mem::take(&mut self.n_skipped),
        });
    }
}
