//! Output while the command still runs, for people who watch.

use tokio::sync::mpsc;
use zeph_core::redact::{RedactStream, RedactionMark, Redactor};

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
pub struct OutputListener {
    sender: mpsc::Sender<OutputChunk>,
    redactor: Redactor,
}

impl OutputListener {
    /// Sends to `sender`. A piece is at most 768 KiB.
    pub fn new(sender: mpsc::Sender<OutputChunk>) -> Self {
        let redactor = Redactor::default();
        Self { sender, redactor }
    }

    /// This listener, hearing nothing that `redactor` removes. What may become a secret comes when that is known.
    #[must_use]
    pub fn redacted(self, redactor: Redactor) -> Self {
        Self { redactor, ..self }
    }
}

/// What has to be remembered of one stream.
#[derive(Debug)]
struct HeardStream {
    decoder: Decoder,
    redacted: RedactStream,
}

impl HeardStream {
    fn new(redactor: &Redactor) -> Self {
        Self {
            decoder: Decoder::default(),
            redacted: redactor.stream(RedactionMark::Name),
        }
    }

    /// Forgets what has begun, as a part of the stream is missing. Returns how many bytes of it are missing besides.
    fn skip(&mut self) -> u64 {
        let n_held = self.redacted.n_held() as u64;
        self.decoder.reset();
        self.redacted.reset();
        n_held
    }

    /// What is certain after `bytes`.
    fn push(&mut self, bytes: &[u8]) -> String {
        let mut text = String::new();
        self.decoder.push(bytes, &mut text);
        // What is replaced begins and ends with whole characters.
        String::from_utf8_lossy(&self.redacted.push(text.as_bytes())).into_owned()
    }

    /// The rest.
    fn finish(&mut self) -> String {
        String::from_utf8_lossy(&self.redacted.finish()).into_owned()
    }
}

/// A listener with what it has to remember of one run.
#[derive(Debug)]
pub(super) struct Teller {
    listener: Option<OutputListener>,
    streams: [HeardStream; 2],
    n_skipped: u64,
}

impl Teller {
    pub(super) fn new(listener: Option<OutputListener>) -> Self {
        let redactor = listener.as_ref().map(|listener| listener.redactor.clone());
        let redactor = redactor.unwrap_or_default();
        Self {
            listener,
            streams: [(); 2].map(|()| HeardStream::new(&redactor)),
            n_skipped: 0,
        }
    }

    pub(super) fn tell(&mut self, stream: StreamKind, bytes: &[u8]) {
        self.send(stream, bytes.len(), |heard| heard.push(bytes));
    }

    /// The command is over: tells what was held back.
    pub(super) fn finish(&mut self) {
        for stream in [StreamKind::Stdout, StreamKind::Stderr] {
            self.send(stream, 0, HeardStream::finish);
        }
    }

    fn send(
        &mut self,
        stream: StreamKind,
        n_bytes: usize,
        text: impl FnOnce(&mut HeardStream) -> String,
    ) {
        let Some(listener) = &self.listener else {
            return;
        };
        let heard = &mut self.streams[stream as usize];
        // Looked at before decoding: a flood that nobody reads costs nothing here.
        let Ok(place) = listener.sender.try_reserve() else {
            self.n_skipped += n_bytes as u64 + heard.skip();
            return;
        };
        let text = text(heard);
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
