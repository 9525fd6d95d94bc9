//! The scanners that five grammars have by hand, ported from their C (`scanner.c` of each grammar), token by token.
//!
//! `tests/grammars` compares the trees that come of them with those of the originals.
#![expect(unsafe_code, reason = "the parser calls scanners through C functions")]

mod cpp;
mod python;
mod rust;
mod script;

use std::ffi::c_void;

use crate::grammar::{ExternalScanner, RawLexer};

pub use cpp::Cpp;
pub use python::Python;
pub use rust::Rust;
pub use script::{JavaScript, TypeScript};

/// What a scanner may write down of itself, in bytes.
const STATE_MAX: usize = 1024;

/// The characters of the text, from the place where a token is wanted.
#[derive(Debug)]
pub struct Lexer<'a>(&'a mut RawLexer);

impl Lexer<'_> {
    /// The next character; NUL at the end, and for what is none.
    fn next(&self) -> char {
        u32::try_from(self.0.lookahead)
            .ok()
            .and_then(char::from_u32)
            .unwrap_or('\u{FFFD}')
    }

    fn is(&self, character: char) -> bool {
        self.next() == character
    }

    fn is_space(&self) -> bool {
        matches!(self.next(), '\t'..='\r' | ' ')
    }

    fn is_letter(&self) -> bool {
        self.next().is_ascii_alphabetic()
    }

    fn is_digit(&self) -> bool {
        self.next().is_ascii_digit()
    }

    fn advance(&mut self) {
        // SAFETY: the functions are those of the parser, called with its own lexer.
        unsafe { (self.0.advance)(self.0, false) }
    }

    fn skip(&mut self) {
        // SAFETY: as above.
        unsafe { (self.0.advance)(self.0, true) }
    }

    fn mark_end(&mut self) {
        // SAFETY: as above.
        unsafe { (self.0.mark_end)(self.0) }
    }

    fn is_end(&self) -> bool {
        // SAFETY: as above.
        unsafe { (self.0.eof)(self.0) }
    }

    fn begins_range(&self) -> bool {
        // SAFETY: as above.
        unsafe { (self.0.is_at_included_range_start)(self.0) }
    }

    fn returns(&mut self, token: u16) {
        self.0.result_symbol = token;
    }
}

/// Which tokens may stand at this place.
#[derive(Debug, Clone, Copy)]
pub struct Valid(*const bool);

impl Valid {
    fn has(self, token: u16) -> bool {
        // SAFETY: the parser hands over one `bool` for each token of the scanner, and `token` is one of them.
        unsafe { *self.0.add(usize::from(token)) }
    }
}

/// A scanner: reads the tokens that its grammar has no rules for.
pub trait Scanner: Default {
    /// Reads one of the `valid` tokens; `false` when none stands there.
    fn scan(&mut self, lexer: &mut Lexer<'_>, valid: Valid) -> bool;

    /// What it has to remember between two tokens.
    fn state(&self) -> Vec<u8> {
        Vec::new()
    }

    /// Goes back to what [`state`](Self::state) said; to the beginning when that is empty.
    fn restore(&mut self, _state: &[u8]) {}

    /// The functions for the parser.
    fn functions() -> ExternalScanner {
        ExternalScanner {
            create: Some(create::<Self>),
            destroy: Some(destroy::<Self>),
            scan: Some(scan::<Self>),
            serialize: Some(serialize::<Self>),
            deserialize: Some(deserialize::<Self>),
            ..ExternalScanner::default()
        }
    }
}

unsafe extern "C" fn create<S: Scanner>() -> *mut c_void {
    Box::into_raw(Box::<S>::default()).cast()
}

unsafe extern "C" fn destroy<S: Scanner>(scanner: *mut c_void) {
    // SAFETY: the parser hands back what `create` gave it, once.
    drop(unsafe { Box::from_raw(scanner.cast::<S>()) });
}

unsafe extern "C" fn scan<S: Scanner>(
    scanner: *mut c_void,
    lexer: *mut RawLexer,
    valid: *const bool,
) -> bool {
    // SAFETY: the scanner is that of `create`, the lexer the parser's own, and nobody else uses them during the call.
    let (scanner, lexer) = unsafe { (&mut *scanner.cast::<S>(), &mut *lexer) };
    scanner.scan(&mut Lexer(lexer), Valid(valid))
}

#[expect(clippy::cast_possible_truncation, reason = "at most STATE_MAX")]
unsafe extern "C" fn serialize<S: Scanner>(scanner: *mut c_void, buffer: *mut u8) -> u32 {
    // SAFETY: the scanner is that of `create`.
    let state = unsafe { &*scanner.cast::<S>() }.state();
    let length = state.len().min(STATE_MAX);
    // SAFETY: the parser's buffer holds STATE_MAX bytes.
    unsafe { std::ptr::copy_nonoverlapping(state.as_ptr(), buffer, length) };
    length as u32
}

unsafe extern "C" fn deserialize<S: Scanner>(scanner: *mut c_void, buffer: *const u8, length: u32) {
    // SAFETY: the scanner is that of `create`.
    let scanner = unsafe { &mut *scanner.cast::<S>() };
    match length {
        0 => scanner.restore(&[]),
        // SAFETY: the parser hands over as many bytes.
        _ => scanner.restore(unsafe { std::slice::from_raw_parts(buffer, length as usize) }),
    }
}
