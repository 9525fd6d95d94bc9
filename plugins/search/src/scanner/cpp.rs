//! Raw strings of C++: `R"delimiter(content)delimiter"`.

use super::{Lexer, Scanner, Valid};

const DELIMITER: u16 = 0;
const CONTENT: u16 = 1;

/// The language allows no longer delimiter.
const DELIMITER_MAX: usize = 16;

/// Remembers the delimiter of the string it is in.
#[derive(Debug, Default)]
pub struct Cpp {
    delimiter: Vec<char>,
}

impl Scanner for Cpp {
    fn scan(&mut self, lexer: &mut Lexer<'_>, valid: Valid) -> bool {
        match (valid.has(DELIMITER), valid.has(CONTENT)) {
            (true, false) => {
                lexer.returns(DELIMITER);
                self.delimiter(lexer)
            }
            (false, true) => {
                lexer.returns(CONTENT);
                self.content(lexer);
                true
            }
            _ => false,
        }
    }

    fn state(&self) -> Vec<u8> {
        let characters = self.delimiter.iter();
        characters
            .flat_map(|character| u32::from(*character).to_le_bytes())
            .collect()
    }

    fn restore(&mut self, state: &[u8]) {
        let numbers = state.chunks_exact(4);
        let numbers = numbers.map(|four| u32::from_le_bytes([four[0], four[1], four[2], four[3]]));
        self.delimiter = numbers.filter_map(char::from_u32).collect();
    }
}

impl Cpp {
    fn delimiter(&mut self, lexer: &mut Lexer<'_>) -> bool {
        match self.delimiter.is_empty() {
            true => self.opening(lexer),
            false => self.closing(lexer),
        }
    }

    fn closing(&mut self, lexer: &mut Lexer<'_>) -> bool {
        for character in &self.delimiter {
            if !lexer.is(*character) {
                return false;
            }
            lexer.advance();
        }
        self.delimiter.clear();
        true
    }

    fn opening(&mut self, lexer: &mut Lexer<'_>) -> bool {
        loop {
            let is_over = self.delimiter.len() >= DELIMITER_MAX;
            if is_over || lexer.is_end() || lexer.is('\\') || lexer.is_space() {
                return false;
            }
            if lexer.is('(') {
                // One without a delimiter is another rule of the grammar.
                return !self.delimiter.is_empty();
            }
            self.delimiter.push(lexer.next());
            lexer.advance();
        }
    }

    /// Up to `)delimiter"`, or to the end of the text.
    fn content(&self, lexer: &mut Lexer<'_>) {
        let mut matched: Option<usize> = None;
        loop {
            if lexer.is_end() {
                return lexer.mark_end();
            }
            matched = match matched {
                Some(count) if count == self.delimiter.len() && lexer.is('"') => return,
                Some(count) => self
                    .delimiter
                    .get(count)
                    .filter(|character| lexer.is(**character))
                    .map(|_| count + 1),
                None => None,
            };
            if matched.is_none() && lexer.is(')') {
                lexer.mark_end();
                matched = Some(0);
            }
            lexer.advance();
        }
    }
}
