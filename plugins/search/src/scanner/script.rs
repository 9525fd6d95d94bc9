//! Semicolons that nobody wrote, templates and JSX, of JavaScript and TypeScript, which differ a little.

use super::{Lexer, Scanner, Valid};

const SEMICOLON: u16 = 0;
const TEMPLATE_CHARS: u16 = 1;
const TERNARY: u16 = 2;
const HTML_COMMENT: u16 = 3;
const LOGICAL_OR: u16 = 4;
const ESCAPE_SEQUENCE: u16 = 5;
const REGEX_PATTERN: u16 = 6;
const JSX_TEXT: u16 = 7;
const SIGNATURE_SEMICOLON: u16 = 8;

const LINE_SEPARATOR: char = '\u{2028}';
const PARAGRAPH_SEPARATOR: char = '\u{2029}';

/// The scanner of JavaScript. It remembers nothing.
#[derive(Debug, Default)]
pub struct JavaScript;

/// The scanner of TypeScript. It remembers nothing.
#[derive(Debug, Default)]
pub struct TypeScript;

impl Scanner for JavaScript {
    fn scan(&mut self, lexer: &mut Lexer<'_>, valid: Valid) -> bool {
        if valid.has(TEMPLATE_CHARS) {
            return !valid.has(SEMICOLON) && template_chars(lexer);
        }
        if valid.has(JSX_TEXT) && jsx_text(lexer) {
            return true;
        }
        if valid.has(SEMICOLON) {
            let mut comment = false;
            let found = semicolon(lexer, !valid.has(LOGICAL_OR), &mut comment);
            let is_ternary = !found && !comment && valid.has(TERNARY) && lexer.is('?');
            return found || (is_ternary && ternary(lexer));
        }
        if valid.has(TERNARY) {
            return ternary(lexer);
        }
        may_be_html_comment(valid) && html_comment(lexer)
    }
}

impl Scanner for TypeScript {
    fn scan(&mut self, lexer: &mut Lexer<'_>, valid: Valid) -> bool {
        if valid.has(TEMPLATE_CHARS) {
            return !valid.has(SEMICOLON) && template_chars(lexer);
        }
        if valid.has(JSX_TEXT) && jsx_text(lexer) {
            return true;
        }
        if valid.has(SEMICOLON) || valid.has(SIGNATURE_SEMICOLON) {
            let mut comment = false;
            let found = typed_semicolon(lexer, valid, &mut comment);
            let is_ternary = !found && !comment && valid.has(TERNARY) && lexer.is('?');
            return found || (is_ternary && typed_ternary(lexer));
        }
        if valid.has(TERNARY) {
            return typed_ternary(lexer);
        }
        may_be_html_comment(valid) && html_comment(lexer)
    }
}

fn may_be_html_comment(valid: Valid) -> bool {
    valid.has(HTML_COMMENT)
        && !valid.has(LOGICAL_OR)
        && !valid.has(ESCAPE_SEQUENCE)
        && !valid.has(REGEX_PATTERN)
}

fn template_chars(lexer: &mut Lexer<'_>) -> bool {
    lexer.returns(TEMPLATE_CHARS);
    let mut has_content = false;
    loop {
        lexer.mark_end();
        match lexer.next() {
            '`' | '\\' => return has_content,
            '\0' => return false,
            '$' => {
                lexer.advance();
                if lexer.is('{') {
                    return has_content;
                }
            }
            _ => lexer.advance(),
        }
        has_content = true;
    }
}

#[derive(PartialEq)]
enum Space {
    /// A semicolon is not allowed here.
    Reject,
    /// Not decided yet.
    SameLine,
    /// A semicolon is allowed, if a comment was there.
    Accept,
}

/// Passes white space and comments; all of them when it `consumes`, else one comment.
fn space_and_comments(lexer: &mut Lexer<'_>, comment: &mut bool, consumes: bool) -> Space {
    let mut has_line_end = false;
    loop {
        while lexer.is_space() {
            lexer.skip();
        }
        if !lexer.is('/') {
            return Space::Accept;
        }
        lexer.skip();
        match lexer.next() {
            '/' => {
                lexer.skip();
                line_comment(lexer);
                *comment = true;
            }
            '*' => {
                lexer.skip();
                let is_closed = block_comment(lexer, &mut has_line_end);
                *comment |= is_closed;
                if is_closed && !lexer.is('/') && !consumes {
                    return match has_line_end {
                        true => Space::Accept,
                        false => Space::SameLine,
                    };
                }
            }
            _ => return Space::Reject,
        }
    }
}

fn is_line_end(character: char) -> bool {
    matches!(character, '\n' | LINE_SEPARATOR | PARAGRAPH_SEPARATOR)
}

fn line_comment(lexer: &mut Lexer<'_>) {
    while !lexer.is('\0') && !is_line_end(lexer.next()) {
        lexer.skip();
    }
}

/// Whether the comment has an end.
fn block_comment(lexer: &mut Lexer<'_>, has_line_end: &mut bool) -> bool {
    while !lexer.is('\0') {
        if lexer.is('*') {
            lexer.skip();
            if lexer.is('/') {
                lexer.skip();
                return true;
            }
        } else {
            *has_line_end |= is_line_end(lexer.next());
            lexer.skip();
        }
    }
    false
}

fn semicolon(lexer: &mut Lexer<'_>, minds_comments: bool, comment: &mut bool) -> bool {
    lexer.returns(SEMICOLON);
    lexer.mark_end();
    loop {
        if lexer.is('\0') {
            return true;
        }
        if lexer.is('/') {
            match space_and_comments(lexer, comment, false) {
                Space::Reject => return false,
                Space::Accept if minds_comments && !matches!(lexer.next(), ',' | '=') => {
                    return true;
                }
                _ => {}
            }
        }
        if lexer.is('}') || lexer.begins_range() {
            return true;
        }
        if is_line_end(lexer.next()) {
            break;
        }
        if !lexer.is_space() {
            return false;
        }
        lexer.skip();
    }
    lexer.skip();
    if space_and_comments(lexer, comment, true) == Space::Reject {
        return false;
    }
    match lexer.next() {
        '`' | ',' | ':' | ';' | '*' | '%' | '>' | '<' | '=' | '[' | '(' | '?' | '^' | '|' | '&'
        | '/' => false,
        '.' => {
            lexer.skip();
            lexer.is_digit()
        }
        _ => next_begins_statement(lexer),
    }
}

fn typed_semicolon(lexer: &mut Lexer<'_>, valid: Valid, comment: &mut bool) -> bool {
    lexer.returns(SEMICOLON);
    lexer.mark_end();
    loop {
        match lexer.next() {
            '\0' => return true,
            '}' => return closing_brace(lexer, valid),
            _ if !lexer.is_space() => return false,
            '\n' => break,
            _ => lexer.skip(),
        }
    }
    lexer.skip();
    if !typed_space_and_comments(lexer, comment) {
        return false;
    }
    match lexer.next() {
        '`' | ',' | '.' | ';' | '*' | '%' | '>' | '<' | '=' | '?' | '^' | '|' | '&' | '/' | ':' => {
            false
        }
        '{' => !valid.has(SIGNATURE_SEMICOLON),
        '(' | '[' => !valid.has(LOGICAL_OR),
        _ => next_begins_statement(lexer),
    }
}

/// `type F = ({a}: {a: number}) => number;` has no semicolon behind the first brace.
fn closing_brace(lexer: &mut Lexer<'_>, valid: Valid) -> bool {
    lexer.skip();
    while lexer.is_space() {
        lexer.skip();
    }
    !lexer.is(':') || valid.has(LOGICAL_OR)
}

fn typed_space_and_comments(lexer: &mut Lexer<'_>, comment: &mut bool) -> bool {
    loop {
        while lexer.is_space() {
            lexer.skip();
        }
        if !lexer.is('/') {
            return true;
        }
        lexer.skip();
        match lexer.next() {
            '/' => {
                lexer.skip();
                while !matches!(lexer.next(), '\0' | '\n') {
                    lexer.skip();
                }
                *comment = true;
            }
            '*' => {
                lexer.skip();
                block_comment(lexer, &mut false);
            }
            _ => return false,
        }
    }
}

/// Whether what follows on the next line begins a statement: `++`, `--`, `!x`, a word other than `in` and `instanceof`.
fn next_begins_statement(lexer: &mut Lexer<'_>) -> bool {
    match lexer.next() {
        sign @ ('+' | '-') => {
            lexer.skip();
            lexer.is(sign)
        }
        '!' => {
            lexer.skip();
            !lexer.is('=')
        }
        'i' => {
            lexer.skip();
            is_no_operator(lexer)
        }
        _ => true,
    }
}

/// Whether the word that began with `i` is neither `in` nor `instanceof`.
fn is_no_operator(lexer: &mut Lexer<'_>) -> bool {
    if !lexer.is('n') {
        return true;
    }
    lexer.skip();
    if !lexer.is_letter() {
        return false;
    }
    for character in "stanceof".chars() {
        if !lexer.is(character) {
            return true;
        }
        lexer.skip();
    }
    lexer.is_letter()
}

fn ternary(lexer: &mut Lexer<'_>) -> bool {
    if !question_mark(lexer) || lexer.is('?') {
        return false;
    }
    lexer.mark_end();
    lexer.returns(TERNARY);
    is_no_chain(lexer)
}

fn typed_ternary(lexer: &mut Lexer<'_>) -> bool {
    if !question_mark(lexer) || matches!(lexer.next(), '?' | '.') {
        return false;
    }
    lexer.mark_end();
    lexer.returns(TERNARY);
    while lexer.is_space() {
        lexer.advance();
    }
    !matches!(lexer.next(), ':' | ')' | ',') && is_no_chain(lexer)
}

fn question_mark(lexer: &mut Lexer<'_>) -> bool {
    while lexer.is_space() {
        lexer.skip();
    }
    let is_there = lexer.is('?');
    if is_there {
        lexer.advance();
    }
    is_there
}

/// `?.5` is a ternary, `?.a` is not.
fn is_no_chain(lexer: &mut Lexer<'_>) -> bool {
    if !lexer.is('.') {
        return true;
    }
    lexer.advance();
    lexer.is_digit()
}

fn html_comment(lexer: &mut Lexer<'_>) -> bool {
    while lexer.is_space() || matches!(lexer.next(), LINE_SEPARATOR | PARAGRAPH_SEPARATOR) {
        lexer.skip();
    }
    let mark = match lexer.next() {
        '<' => "<!--",
        '-' => "-->",
        _ => return false,
    };
    for character in mark.chars() {
        if !lexer.is(character) {
            return false;
        }
        lexer.advance();
    }
    while !lexer.is('\0') && !is_line_end(lexer.next()) {
        lexer.advance();
    }
    lexer.returns(HTML_COMMENT);
    lexer.mark_end();
    true
}

/// Text between tags; white space counts unless it stands at a line's beginning or end.
fn jsx_text(lexer: &mut Lexer<'_>) -> bool {
    let mut has_text = false;
    let mut at_line_end = false;
    while !matches!(lexer.next(), '\0' | '<' | '>' | '{' | '}' | '&') {
        if lexer.is('\n') {
            at_line_end = true;
        } else {
            at_line_end &= lexer.is_space();
            has_text |= !at_line_end;
        }
        lexer.advance();
    }
    lexer.returns(JSX_TEXT);
    has_text
}
