//! A generated function that reads tokens, as a table: for each state the token that ends there and where each character leads.
#![expect(
    unsafe_code,
    reason = "the characters come from the parser, through a pointer"
)]

use super::RawLexer;
use super::format::{NONE, PLAIN, SKIPS};

/// The table. In memory: the number of states, the accepted tokens, the ways at the end, [`PLAIN`] ways for each state, the
/// beginning of each state's ranges, and the ranges of other characters as first, last and way.
#[derive(Debug)]
pub struct Automaton {
    accepted: &'static [u8],
    at_end: &'static [u8],
    plain: &'static [u8],
    starts: &'static [u8],
    ranges: &'static [u8],
}

impl Automaton {
    /// The table in `bytes`; one without states when there is none.
    pub fn new(bytes: &'static [u8]) -> Self {
        let (count, rest) = bytes.split_at(bytes.len().min(4));
        let count = match count {
            [a, b, c, d] => u32::from_le_bytes([*a, *b, *c, *d]) as usize,
            _ => 0,
        };
        let (accepted, rest) = rest.split_at(count * 2);
        let (at_end, rest) = rest.split_at(count * 2);
        let (plain, rest) = rest.split_at(count * PLAIN * 2);
        let (starts, ranges) = rest.split_at(rest.len().min((count + 1) * 4));
        Self {
            accepted,
            at_end,
            plain,
            starts,
            ranges,
        }
    }

    /// Reads one token, beginning in `state`.
    pub(super) fn run(&self, lexer: *mut RawLexer, state: u16) -> bool {
        let mut state = usize::from(state);
        let mut has_token = false;
        loop {
            // SAFETY: the parser calls with its own lexer, which is valid for the call, and its functions.
            let character = unsafe { (*lexer).lookahead };
            let token = short(self.accepted, state);
            if token != NONE {
                has_token = true;
                // SAFETY: as above.
                unsafe {
                    (*lexer).result_symbol = token;
                    ((*lexer).mark_end)(lexer);
                }
            }
            // SAFETY: as above.
            let is_end = character == 0 && unsafe { ((*lexer).eof)(lexer) };
            let way = match is_end {
                true => short(self.at_end, state),
                false => self.way(state, character.cast_unsigned()),
            };
            if way == NONE {
                return has_token;
            }
            // SAFETY: as above.
            unsafe { ((*lexer).advance)(lexer, way & SKIPS != 0) };
            state = usize::from(way & !SKIPS);
        }
    }

    fn way(&self, state: usize, character: u32) -> u16 {
        match character as usize {
            plain @ 0..PLAIN => short(self.plain, state * PLAIN + plain),
            _ => self.far_way(state, character),
        }
    }

    fn far_way(&self, state: usize, character: u32) -> u16 {
        let (mut from, mut to) = (long(self.starts, state), long(self.starts, state + 1));
        while from < to {
            let middle = (from + to) / 2;
            let at = middle as usize * 3;
            if character < long(self.ranges, at) {
                to = middle;
            } else if character > long(self.ranges, at + 1) {
                from = middle + 1;
            } else {
                return u16::try_from(long(self.ranges, at + 2)).unwrap_or(NONE);
            }
        }
        NONE
    }
}

fn short(bytes: &[u8], index: usize) -> u16 {
    match bytes.get(index * 2..index * 2 + 2) {
        Some(pair) => u16::from_le_bytes([pair[0], pair[1]]),
        None => NONE,
    }
}

fn long(bytes: &[u8], index: usize) -> u32 {
    match bytes.get(index * 4..index * 4 + 4) {
        Some(four) => u32::from_le_bytes([four[0], four[1], four[2], four[3]]),
        None => 0,
    }
}
