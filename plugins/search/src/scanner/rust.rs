//! Strings, floats and block comments of Rust.

use super::{Lexer, Scanner, Valid};

const STRING_CONTENT: u16 = 0;
const RAW_START: u16 = 1;
const RAW_CONTENT: u16 = 2;
const RAW_END: u16 = 3;
const FLOAT: u16 = 4;
const OUTER_DOC: u16 = 5;
const INNER_DOC: u16 = 6;
const COMMENT_CONTENT: u16 = 7;
const LINE_DOC: u16 = 8;
const RECOVERY: u16 = 9;

/// Remembers how many `#` the raw string has that it is in.
#[derive(Debug, Default)]
pub struct Rust {
    hashes: u8,
}

impl Scanner for Rust {
    fn scan(&mut self, lexer: &mut Lexer<'_>, valid: Valid) -> bool {
        if valid.has(RECOVERY) {
            return false;
        }
        if valid.has(COMMENT_CONTENT) || valid.has(INNER_DOC) || valid.has(OUTER_DOC) {
            return block_comment(lexer, valid);
        }
        if valid.has(STRING_CONTENT) && !valid.has(FLOAT) {
            return string(lexer);
        }
        if valid.has(LINE_DOC) {
            return line_doc(lexer);
        }
        while lexer.is_space() {
            lexer.skip();
        }
        if valid.has(RAW_START) && matches!(lexer.next(), 'r' | 'b' | 'c') {
            return self.raw_start(lexer);
        }
        if valid.has(RAW_CONTENT) {
            return self.raw_content(lexer);
        }
        if valid.has(RAW_END) && lexer.is('"') {
            return self.raw_end(lexer);
        }
        valid.has(FLOAT) && lexer.is_digit() && float(lexer)
    }

    fn state(&self) -> Vec<u8> {
        vec![self.hashes]
    }

    fn restore(&mut self, state: &[u8]) {
        self.hashes = match state {
            [hashes] => *hashes,
            _ => 0,
        };
    }
}

impl Rust {
    fn raw_start(&mut self, lexer: &mut Lexer<'_>) -> bool {
        if matches!(lexer.next(), 'b' | 'c') {
            lexer.advance();
        }
        if !lexer.is('r') {
            return false;
        }
        lexer.advance();
        let mut hashes: u8 = 0;
        while lexer.is('#') {
            lexer.advance();
            hashes = hashes.wrapping_add(1);
        }
        if !lexer.is('"') {
            return false;
        }
        lexer.advance();
        self.hashes = hashes;
        lexer.returns(RAW_START);
        true
    }

    fn raw_content(&self, lexer: &mut Lexer<'_>) -> bool {
        while !lexer.is_end() {
            if !lexer.is('"') {
                lexer.advance();
                continue;
            }
            lexer.mark_end();
            lexer.advance();
            let mut hashes = 0;
            while lexer.is('#') && hashes < self.hashes {
                lexer.advance();
                hashes += 1;
            }
            if hashes == self.hashes {
                lexer.returns(RAW_CONTENT);
                return true;
            }
        }
        false
    }

    fn raw_end(&self, lexer: &mut Lexer<'_>) -> bool {
        for _ in 0..=self.hashes {
            lexer.advance();
        }
        lexer.returns(RAW_END);
        true
    }
}

fn string(lexer: &mut Lexer<'_>) -> bool {
    let mut has_content = false;
    while !matches!(lexer.next(), '"' | '\\') {
        if lexer.is_end() {
            return false;
        }
        has_content = true;
        lexer.advance();
    }
    lexer.returns(STRING_CONTENT);
    lexer.mark_end();
    has_content
}

fn digits(lexer: &mut Lexer<'_>) {
    while lexer.is('_') || lexer.is_digit() {
        lexer.advance();
    }
}

fn float(lexer: &mut Lexer<'_>) -> bool {
    lexer.returns(FLOAT);
    lexer.advance();
    digits(lexer);
    let has_fraction = lexer.is('.');
    if has_fraction {
        lexer.advance();
        // `1.max(2)` and `1..2` are no floats.
        if lexer.is_letter() || lexer.is('.') {
            return false;
        }
        digits(lexer);
    }
    lexer.mark_end();
    let has_exponent = matches!(lexer.next(), 'e' | 'E');
    if has_exponent {
        lexer.advance();
        if matches!(lexer.next(), '+' | '-') {
            lexer.advance();
        }
        if !(lexer.is('_') || lexer.is_digit()) {
            return true;
        }
        lexer.advance();
        digits(lexer);
        lexer.mark_end();
    }
    if !has_exponent && !has_fraction {
        return false;
    }
    float_type(lexer);
    true
}

/// `f32` behind a float.
fn float_type(lexer: &mut Lexer<'_>) {
    if !matches!(lexer.next(), 'u' | 'i' | 'f') {
        return;
    }
    lexer.advance();
    if !lexer.is_digit() {
        return;
    }
    while lexer.is_digit() {
        lexer.advance();
    }
    lexer.mark_end();
}

fn line_doc(lexer: &mut Lexer<'_>) -> bool {
    lexer.returns(LINE_DOC);
    while !lexer.is_end() {
        let is_last = lexer.is('\n');
        lexer.advance();
        if is_last {
            break;
        }
    }
    true
}

#[derive(Clone, Copy)]
enum Left {
    Slash,
    Star,
    Nothing,
}

fn block_comment(lexer: &mut Lexer<'_>, valid: Valid) -> bool {
    let first = lexer.next();
    if valid.has(INNER_DOC) && first == '!' {
        lexer.returns(INNER_DOC);
        lexer.advance();
        return true;
    }
    let is_outer = valid.has(OUTER_DOC) && first == '*';
    lexer.advance();
    if is_outer {
        lexer.mark_end();
        if lexer.is('/') {
            return false;
        }
        if !lexer.is('*') {
            lexer.returns(OUTER_DOC);
            return true;
        }
    }
    if !valid.has(COMMENT_CONTENT) {
        return false;
    }
    let left = match first {
        '*' if lexer.is('/') => return false,
        '*' => Left::Star,
        '/' => Left::Slash,
        _ => Left::Nothing,
    };
    comment_content(lexer, left);
    lexer.returns(COMMENT_CONTENT);
    true
}

fn comment_content(lexer: &mut Lexer<'_>, mut left: Left) {
    let mut depth: u32 = 1;
    while !lexer.is_end() && depth != 0 {
        let character = lexer.next();
        left = match (left, character) {
            (Left::Slash, _) => {
                depth += u32::from(character == '*');
                Left::Nothing
            }
            (Left::Star, '*') => {
                lexer.mark_end();
                Left::Star
            }
            (Left::Star, _) => {
                depth -= u32::from(character == '/');
                Left::Nothing
            }
            (Left::Nothing, _) => {
                lexer.mark_end();
                match character {
                    '/' => Left::Slash,
                    '*' => Left::Star,
                    _ => Left::Nothing,
                }
            }
        };
        lexer.advance();
        if character == '/' && depth != 0 {
            lexer.mark_end();
        }
    }
}
