//! Bytes of an answer to frames: events of a stream (SSE), lines of JSON, or one document.
//!
//! One reader of lines serves the first two. Fields that the standard of SSE does not know are ignored, as it demands; a frame that is
//! not over at the end of the answer is none.

use bytes::{Buf as _, Bytes, BytesMut};

/// How an answer is cut into frames.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Framing {
    /// Server-sent events; a frame is the data of one.
    Events,
    /// A frame is a line.
    Lines,
    /// The whole answer is one frame.
    Whole,
}

/// Cuts an answer into frames.
#[derive(Debug)]
pub(crate) struct Frames {
    framing: Framing,
    rest: BytesMut,
    /// How much of `rest` holds no end of a line.
    searched: usize,
    data: Option<String>,
}

impl Frames {
    pub(crate) fn new(framing: Framing) -> Self {
        Self {
            framing,
            rest: BytesMut::new(),
            searched: 0,
            data: None,
        }
    }

    /// Takes the next piece of the answer.
    pub(crate) fn push(&mut self, piece: &Bytes) {
        self.rest.extend_from_slice(piece);
    }

    /// The next complete frame, when there is one.
    ///
    /// Errors: a sentence, for what is not UTF-8.
    pub(crate) fn next(&mut self) -> Result<Option<String>, String> {
        if self.framing == Framing::Whole {
            return Ok(None);
        }
        while let Some(line) = self.line()? {
            if let Some(frame) = self.frame(line) {
                return Ok(Some(frame));
            }
        }
        Ok(None)
    }

    /// What is left at the end of the answer, where that is a frame: a document, or a last line that was not ended.
    ///
    /// Errors: a sentence, for what is not UTF-8.
    pub(crate) fn last(&mut self) -> Result<Option<String>, String> {
        if self.framing == Framing::Events {
            return Ok(None);
        }
        let rest = text(std::mem::take(&mut self.rest))?;
        Ok((!rest.trim().is_empty()).then_some(rest))
    }

    fn line(&mut self) -> Result<Option<String>, String> {
        let new = self.rest[self.searched..].iter();
        let Some(end) = new.clone().position(|byte| *byte == b'\n') else {
            self.searched = self.rest.len();
            return Ok(None);
        };
        let mut line = self.rest.split_to(self.searched + end);
        self.rest.advance(1);
        self.searched = 0;
        if line.ends_with(b"\r") {
            line.truncate(line.len() - 1);
        }
        text(line).map(Some)
    }

    fn frame(&mut self, line: String) -> Option<String> {
        if self.framing == Framing::Lines {
            return (!line.trim().is_empty()).then_some(line);
        }
        if line.is_empty() {
            return self.data.take();
        }
        let value = line.trim_start_matches('\u{feff}').strip_prefix("data:")?;
        let value = value.strip_prefix(' ').unwrap_or(value);
        match &mut self.data {
            Some(data) => {
                data.push('\n');
                data.push_str(value);
            }
            None => self.data = Some(value.to_owned()),
        }
        None
    }
}

/// Errors: a sentence.
fn text(bytes: BytesMut) -> Result<String, String> {
    String::from_utf8(bytes.into()).map_err(|_| "the answer is not UTF-8".to_owned())
}

#[cfg(test)]
mod tests;
