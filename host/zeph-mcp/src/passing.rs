//! A message that is too long to be kept, or cannot be read: which request it is, found while it goes by.
//!
//! A client waits for the answer to its request, so the refusal must name it, wherever in the message the id stands. Only keys and values of
//! the outermost object are looked at: an `id` among the parameters is none. Pure.

use crate::refusal::WrittenId;

/// Most bytes of a key or value that are kept. Ids of clients are numbers or UUIDs.
const TOKEN_BYTES_MAX: usize = 1024;

/// What was seen of a message so far.
#[derive(Debug, Default)]
pub(crate) struct PassingMessage {
    /// Objects and arrays that are open.
    depth: usize,
    is_in_string: bool,
    is_escaped: bool,
    /// The key or value of the outermost object that is being read; what has more bytes than may be kept is cut.
    token: Vec<u8>,
    /// The key whose value is being read.
    key: Vec<u8>,
    id: Option<Vec<u8>>,
    has_method: bool,
}

impl PassingMessage {
    /// All of a message that is at hand.
    pub(crate) fn of(message: &[u8]) -> Self {
        let mut passing = Self::default();
        passing.push(message);
        passing
    }

    /// Reads on.
    pub(crate) fn push(&mut self, bytes: &[u8]) {
        for byte in bytes {
            self.push_byte(*byte);
        }
    }

    /// The id of the request that it was. `None` for what is no request: an answer's id is one of the server's own requests.
    pub(crate) fn request_id(&self) -> Option<WrittenId> {
        let id = self.id.as_ref().filter(|_| self.has_method)?;
        let is_whole = id.len() < TOKEN_BYTES_MAX;
        let id = std::str::from_utf8(id).ok().filter(|_| is_whole)?;
        WrittenId::read(id)
    }

    fn push_byte(&mut self, byte: u8) {
        if self.is_in_string {
            self.keep(byte);
            self.is_in_string = self.is_escaped || byte != b'"';
            self.is_escaped = !self.is_escaped && byte == b'\\';
            return;
        }
        match byte {
            b'"' => {
                self.keep(byte);
                self.is_in_string = true;
            }
            b'{' | b'[' => self.depth += 1,
            b'}' | b']' => {
                self.end_value();
                self.depth = self.depth.saturating_sub(1);
            }
            b',' => self.end_value(),
            b':' if self.depth == 1 => self.key = std::mem::take(&mut self.token),
            _ => self.keep(byte),
        }
    }

    fn keep(&mut self, byte: u8) {
        let is_blank = !self.is_in_string && byte.is_ascii_whitespace();
        if self.depth == 1 && !is_blank && self.token.len() < TOKEN_BYTES_MAX {
            self.token.push(byte);
        }
    }

    fn end_value(&mut self) {
        if self.depth != 1 {
            return;
        }
        let value = std::mem::take(&mut self.token);
        match std::mem::take(&mut self.key).as_slice() {
            b"\"id\"" => self.id = Some(value),
            b"\"method\"" => self.has_method = true,
            _ => {}
        }
    }
}
