//! What a command printed, kept in bounded memory: all of it below the limit, else its head and its tail, with what lies
//! between counted.
//!
//! Bytes are kept once, in the order of their arrival, marked with their stream; the three texts are made from them at the end.

use std::collections::VecDeque;

use super::text::Decoder;

/// Where a command printed to.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[expect(missing_docs, reason = "the names are the meaning")]
pub enum StreamKind {
    Stdout,
    Stderr,
}

/// Room below the limit for the line that tells of bytes omitted and for those that tell how the command ended: what is kept of too
/// much must itself not be too much to store.
const LINES_BYTES: usize = 256;

/// Bytes in order of arrival.
#[derive(Debug)]
pub(crate) struct Capture {
    head: CapturePart,
    tail: CapturePart,
    head_max: usize,
    tail_max: usize,
    /// Whether something did not fit the head any more: nothing that comes later may stand before it.
    is_head_full: bool,
    /// Bytes that were in neither part at the end of their life, by stream.
    n_cut: [u64; 2],
}

/// The three texts of a command's output.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct CapturedOutput {
    /// What came from standard output.
    pub stdout: String,
    /// What came from standard error.
    pub stderr: String,
    /// Both, in the order of arrival.
    pub text: String,
    /// Bytes that were omitted, for which a line stands in the texts; 0 when they are whole.
    pub n_cut: u64,
    /// The same of each stream: standard output, standard error.
    pub n_cut_of: [u64; 2],
}

#[derive(Debug, Default)]
struct CapturePart {
    bytes: VecDeque<u8>,
    segments: VecDeque<Segment>,
}

/// A run of bytes of one stream.
#[derive(Debug, Clone, Copy)]
struct Segment {
    stream: StreamKind,
    n_bytes: usize,
}

impl Capture {
    /// Keeps at most `bytes_max` bytes, marks of the streams included.
    pub(crate) fn new(bytes_max: usize) -> Self {
        let head_max = bytes_max / 2;
        Self {
            head: CapturePart::default(),
            tail: CapturePart::default(),
            head_max,
            tail_max: bytes_max - head_max,
            is_head_full: false,
            n_cut: [0; 2],
        }
    }

    /// Takes what has just arrived.
    pub(crate) fn push(&mut self, stream: StreamKind, mut bytes: &[u8]) {
        if !self.is_head_full {
            let room = self.head_max.saturating_sub(self.head.cost_with(stream));
            let (now, later) = bytes.split_at(room.min(bytes.len()));
            self.head.push(stream, now);
            self.is_head_full = !later.is_empty();
            bytes = later;
        }
        // Only the end of it can stay. Room is made first: the buffer never grows beyond what it may hold.
        let n_skipped = bytes.len().saturating_sub(self.tail_max);
        self.n_cut[stream as usize] += n_skipped as u64;
        let bytes = &bytes[n_skipped..];
        self.make_room(stream, bytes.len());
        self.tail.push(stream, bytes);
        // With room for bytes alone there may be none for their mark.
        self.make_room(stream, 0);
    }

    /// Drops what is oldest in the tail until `n_bytes` more fit.
    fn make_room(&mut self, stream: StreamKind, n_bytes: usize) {
        while !self.tail.bytes.is_empty() {
            let n_over = (self.tail.cost_with(stream) + n_bytes).saturating_sub(self.tail_max);
            if n_over == 0 {
                return;
            }
            let (from, n_dropped) = self.tail.drop_front(n_over);
            self.n_cut[from as usize] += n_dropped as u64;
        }
    }

    /// The texts.
    pub(crate) fn finish(mut self) -> CapturedOutput {
        let is_cut = self.n_cut != [0; 2];
        if is_cut {
            self.tail_max = self.tail_max.saturating_sub(LINES_BYTES);
            self.make_room(StreamKind::Stdout, 0);
        }
        // The tail may begin inside a character whose first bytes are gone: the rest of it goes too.
        while is_cut
            && self
                .tail
                .bytes
                .front()
                .is_some_and(|byte| byte & 0xc0 == 0x80)
        {
            let (from, n_dropped) = self.tail.drop_front(1);
            self.n_cut[from as usize] += n_dropped as u64;
        }
        let n_cut = self.n_cut;
        let parts = [&mut self.head, &mut self.tail];
        for part in parts {
            part.bytes.make_contiguous();
        }
        let n_cut_of_both = n_cut[0] + n_cut[1];
        let stdout = self.text_of(Some(StreamKind::Stdout), n_cut[0]);
        let stderr = self.text_of(Some(StreamKind::Stderr), n_cut[1]);
        let is_of_both = !stdout.is_empty() && !stderr.is_empty();
        let both = is_of_both.then(|| self.text_of(None, n_cut_of_both));
        // The bytes go before the longest text is made a second time.
        drop(self);
        let text = both.unwrap_or_else(|| match stderr.is_empty() {
            true => stdout.clone(),
            false => stderr.clone(),
        });
        CapturedOutput {
            stdout,
            stderr,
            text,
            n_cut: n_cut_of_both,
            n_cut_of: n_cut,
        }
    }

    /// The text of one stream, or of both in order, with a line where `n_cut` bytes are missing.
    fn text_of(&self, only: Option<StreamKind>, n_cut: u64) -> String {
        let n_bytes = self.head.bytes_of(only) + self.tail.bytes_of(only);
        let mut text = String::with_capacity(n_bytes + 100);
        let mut decoders = [Decoder::default(), Decoder::default()];
        self.head.decode(only, &mut decoders, &mut text);
        if n_cut > 0 {
            for decoder in &mut decoders {
                decoder.finish(&mut text);
            }
            if !text.is_empty() && !text.ends_with('\n') {
                text.push('\n');
            }
            text.push_str(&format!("[… {n_cut} bytes omitted …]\n"));
        }
        self.tail.decode(only, &mut decoders, &mut text);
        for decoder in &mut decoders {
            decoder.finish(&mut text);
        }
        text
    }
}

impl CapturePart {
    /// What it takes of the limit.
    fn cost(&self) -> usize {
        self.bytes.len() + self.segments.len() * size_of::<Segment>()
    }

    /// The same, were something of `stream` appended.
    fn cost_with(&self, stream: StreamKind) -> usize {
        match self.segments.back() {
            Some(last) if last.stream == stream => self.cost(),
            _ => self.cost() + size_of::<Segment>(),
        }
    }

    fn push(&mut self, stream: StreamKind, bytes: &[u8]) {
        if bytes.is_empty() {
            return;
        }
        self.bytes.extend(bytes);
        match self.segments.back_mut() {
            Some(last) if last.stream == stream => last.n_bytes += bytes.len(),
            _ => self.segments.push_back(Segment {
                stream,
                n_bytes: bytes.len(),
            }),
        }
    }

    fn bytes_of(&self, only: Option<StreamKind>) -> usize {
        let is_wanted = |segment: &&Segment| only.is_none_or(|stream| stream == segment.stream);
        self.segments
            .iter()
            .filter(is_wanted)
            .map(|segment| segment.n_bytes)
            .sum()
    }

    /// Drops at most `n_bytes` of the first segment and says whose and how many.
    fn drop_front(&mut self, n_bytes: usize) -> (StreamKind, usize) {
        let Some(first) = self.segments.front_mut() else {
            return (StreamKind::Stdout, 0);
        };
        let stream = first.stream;
        let n_dropped = n_bytes.min(first.n_bytes);
        first.n_bytes -= n_dropped;
        if first.n_bytes == 0 {
            self.segments.pop_front();
        }
        self.bytes.drain(..n_dropped);
        (stream, n_dropped)
    }

    fn decode(&self, only: Option<StreamKind>, decoders: &mut [Decoder; 2], text: &mut String) {
        let (bytes, rest) = self.bytes.as_slices();
        debug_assert!(rest.is_empty(), "bug: `finish` made it contiguous");
        let mut start = 0;
        for segment in &self.segments {
            let end = start + segment.n_bytes;
            if only.is_none_or(|stream| stream == segment.stream) {
                decoders[segment.stream as usize].push(&bytes[start..end], text);
            }
            start = end;
        }
    }
}

#[cfg(test)]
mod tests;
