//! Indentation and strings of Python.

use super::{Lexer, Scanner, Valid};

const NEWLINE: u16 = 0;
const INDENT: u16 = 1;
const DEDENT: u16 = 2;
const STRING_START: u16 = 3;
const STRING_CONTENT: u16 = 4;
const ESCAPE_INTERPOLATION: u16 = 5;
const STRING_END: u16 = 6;
const CLOSE_PAREN: u16 = 8;
const CLOSE_BRACKET: u16 = 9;
const CLOSE_BRACE: u16 = 10;
const EXCEPT: u16 = 11;

/// What a string is between.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
struct Delimiter(u8);

impl Delimiter {
    const SINGLE: u8 = 1;
    const DOUBLE: u8 = 1 << 1;
    const BACK: u8 = 1 << 2;
    const RAW: u8 = 1 << 3;
    const FORMAT: u8 = 1 << 4;
    const TRIPLE: u8 = 1 << 5;
    const BYTES: u8 = 1 << 6;

    fn is(self, flag: u8) -> bool {
        self.0 & flag != 0
    }

    fn set(&mut self, flag: u8) {
        self.0 |= flag;
    }

    fn end(self) -> Option<char> {
        let marks = [(Self::SINGLE, '\''), (Self::DOUBLE, '"'), (Self::BACK, '`')];
        let mut marks = marks.into_iter();
        marks.find_map(|(flag, mark)| self.is(flag).then_some(mark))
    }
}

/// Remembers the indentations it is in, and the strings.
#[derive(Debug)]
pub struct Python {
    indents: Vec<u32>,
    delimiters: Vec<Delimiter>,
    in_format: bool,
}

impl Default for Python {
    fn default() -> Self {
        Self {
            indents: vec![0],
            delimiters: Vec::new(),
            in_format: false,
        }
    }
}

/// The white space before a token.
struct Margin {
    has_line_end: bool,
    indent: u32,
    first_comment: Option<u32>,
}

impl Scanner for Python {
    fn scan(&mut self, lexer: &mut Lexer<'_>, valid: Valid) -> bool {
        let recovers = valid.has(STRING_CONTENT) && valid.has(INDENT);
        if let Some(delimiter) = self.delimiters.last().copied().filter(|_| !recovers) {
            let is_brace = matches!(lexer.next(), '{' | '}');
            if valid.has(ESCAPE_INTERPOLATION) && is_brace && delimiter.is(Delimiter::FORMAT) {
                return escaped_brace(lexer);
            }
            if valid.has(STRING_CONTENT)
                && let Some(found) = self.string(lexer, delimiter)
            {
                return found;
            }
        }
        lexer.mark_end();
        let Some(margin) = margin(lexer, valid) else {
            return false;
        };
        if margin.has_line_end {
            if self.step(lexer, valid, &margin) {
                return true;
            }
            if valid.has(NEWLINE) && !recovers {
                lexer.returns(NEWLINE);
                return true;
            }
        }
        margin.first_comment.is_none() && valid.has(STRING_START) && self.string_start(lexer)
    }

    #[expect(clippy::cast_possible_truncation, reason = "as the original does")]
    fn state(&self) -> Vec<u8> {
        let count = self.delimiters.len().min(usize::from(u8::MAX));
        let mut state = vec![u8::from(self.in_format), count as u8];
        state.extend(self.delimiters[..count].iter().map(|delimiter| delimiter.0));
        state.extend(self.indents.iter().skip(1).map(|indent| *indent as u8));
        state
    }

    fn restore(&mut self, state: &[u8]) {
        self.indents = vec![0];
        self.delimiters.clear();
        let [in_format, count, rest @ ..] = state else {
            return;
        };
        self.in_format = *in_format != 0;
        let (delimiters, indents) = rest.split_at(rest.len().min(usize::from(*count)));
        self.delimiters = delimiters.iter().copied().map(Delimiter).collect();
        self.indents.extend(indents.iter().copied().map(u32::from));
    }
}

/// `{{` in a format string.
fn escaped_brace(lexer: &mut Lexer<'_>) -> bool {
    lexer.mark_end();
    let brace = lexer.next();
    lexer.advance();
    if !lexer.is(brace) {
        return false;
    }
    lexer.advance();
    lexer.mark_end();
    lexer.returns(ESCAPE_INTERPOLATION);
    true
}

impl Python {
    /// What stands in a string, or its end. None: the string is over without either.
    fn string(&mut self, lexer: &mut Lexer<'_>, delimiter: Delimiter) -> Option<bool> {
        let end = delimiter.end().unwrap_or('\0');
        let mut has_content = false;
        while !lexer.is('\0') {
            match lexer.next() {
                '{' | '}' if delimiter.is(Delimiter::FORMAT) => {
                    lexer.mark_end();
                    lexer.returns(STRING_CONTENT);
                    return Some(has_content);
                }
                '\\' if delimiter.is(Delimiter::RAW) => {
                    raw_escape(lexer, end);
                    continue;
                }
                '\\' => {
                    lexer.mark_end();
                    if !delimiter.is(Delimiter::BYTES) || !is_plain_in_bytes(lexer) {
                        lexer.returns(STRING_CONTENT);
                        return Some(has_content);
                    }
                    lexer.advance();
                }
                next if next == end => return Some(self.quote(lexer, delimiter, has_content)),
                '\n' if has_content && !delimiter.is(Delimiter::TRIPLE) => return Some(false),
                _ => {}
            }
            lexer.advance();
            has_content = true;
        }
        None
    }

    /// A quotation mark in a string: content, or the end.
    fn quote(&mut self, lexer: &mut Lexer<'_>, delimiter: Delimiter, has_content: bool) -> bool {
        let end = lexer.next();
        if delimiter.is(Delimiter::TRIPLE) {
            lexer.mark_end();
            for _ in 0..2 {
                lexer.advance();
                if !lexer.is(end) {
                    lexer.mark_end();
                    lexer.returns(STRING_CONTENT);
                    return true;
                }
            }
        }
        if has_content {
            lexer.returns(STRING_CONTENT);
            if !delimiter.is(Delimiter::TRIPLE) {
                lexer.mark_end();
            }
            return true;
        }
        lexer.advance();
        lexer.mark_end();
        self.delimiters.pop();
        self.in_format = false;
        lexer.returns(STRING_END);
        true
    }

    /// Into a block, or out of one.
    fn step(&mut self, lexer: &mut Lexer<'_>, valid: Valid, margin: &Margin) -> bool {
        let Some(current) = self.indents.last().copied() else {
            return false;
        };
        if valid.has(INDENT) && margin.indent > current {
            self.indents.push(margin.indent);
            lexer.returns(INDENT);
            return true;
        }
        let in_brackets =
            valid.has(CLOSE_BRACE) || valid.has(CLOSE_PAREN) || valid.has(CLOSE_BRACKET);
        let begins_string = valid.has(STRING_START) && matches!(lexer.next(), '"' | '\'' | '`');
        let may_end = valid.has(DEDENT) || (!valid.has(NEWLINE) && !begins_string && !in_brackets);
        let comments_are_out = margin.first_comment.is_none_or(|comment| comment < current);
        if may_end && margin.indent < current && !self.in_format && comments_are_out {
            self.indents.pop();
            lexer.returns(DEDENT);
            return true;
        }
        false
    }

    fn string_start(&mut self, lexer: &mut Lexer<'_>) -> bool {
        let mut delimiter = Delimiter::default();
        loop {
            match lexer.next() {
                'f' | 'F' => delimiter.set(Delimiter::FORMAT),
                'r' | 'R' => delimiter.set(Delimiter::RAW),
                'b' | 'B' => delimiter.set(Delimiter::BYTES),
                'u' | 'U' => {}
                _ => break,
            }
            lexer.advance();
        }
        let quote = lexer.next();
        delimiter.set(match quote {
            '`' => Delimiter::BACK,
            '\'' => Delimiter::SINGLE,
            '"' => Delimiter::DOUBLE,
            _ => return false,
        });
        lexer.advance();
        lexer.mark_end();
        if quote != '`' && lexer.is(quote) {
            lexer.advance();
            if lexer.is(quote) {
                lexer.advance();
                lexer.mark_end();
                delimiter.set(Delimiter::TRIPLE);
            }
        }
        self.delimiters.push(delimiter);
        lexer.returns(STRING_START);
        self.in_format = delimiter.is(Delimiter::FORMAT);
        true
    }
}

/// Steps over a backslash and what it escapes in a raw string.
fn raw_escape(lexer: &mut Lexer<'_>, end: char) {
    lexer.advance();
    if lexer.is(end) || lexer.is('\\') {
        lexer.advance();
    }
    if lexer.is('\r') {
        lexer.advance();
    }
    if lexer.is('\n') {
        lexer.advance();
    }
}

/// `\N`, `\u` and `\U` escape nothing in bytes.
fn is_plain_in_bytes(lexer: &mut Lexer<'_>) -> bool {
    lexer.advance();
    matches!(lexer.next(), 'N' | 'u' | 'U')
}

/// Reads the white space and the comments before a token. None: there is nothing for the scanner here.
fn margin(lexer: &mut Lexer<'_>, valid: Valid) -> Option<Margin> {
    let minds_comments =
        valid.has(INDENT) || valid.has(DEDENT) || valid.has(NEWLINE) || valid.has(EXCEPT);
    let mut margin = Margin {
        has_line_end: false,
        indent: 0,
        first_comment: None,
    };
    loop {
        match lexer.next() {
            '\n' => {
                margin.has_line_end = true;
                margin.indent = 0;
                lexer.skip();
            }
            ' ' => {
                margin.indent += 1;
                lexer.skip();
            }
            '\r' | '\u{C}' => {
                margin.indent = 0;
                lexer.skip();
            }
            '\t' => {
                margin.indent += 8;
                lexer.skip();
            }
            '#' if minds_comments => {
                if !margin.has_line_end {
                    return None;
                }
                margin.first_comment.get_or_insert(margin.indent);
                comment(lexer);
                margin.indent = 0;
            }
            '\\' => continued_line(lexer)?,
            _ if lexer.is_end() => {
                margin.indent = 0;
                margin.has_line_end = true;
                return Some(margin);
            }
            _ => return Some(margin),
        }
    }
}

fn comment(lexer: &mut Lexer<'_>) {
    while !matches!(lexer.next(), '\0' | '\n') {
        lexer.skip();
    }
    lexer.skip();
}

/// A backslash at the end of a line.
fn continued_line(lexer: &mut Lexer<'_>) -> Option<()> {
    lexer.skip();
    if lexer.is('\r') {
        lexer.skip();
    }
    if !lexer.is('\n') && !lexer.is_end() {
        return None;
    }
    lexer.skip();
    Some(())
}
