//! What begins with `$`, a backquote, `<(` or `>(`.

use super::super::syntax::{Expansion, ExpansionKind, List, Word, WordPart};
use super::arithmetic::ArithmeticEnd;
use super::word::{QuotedUntil, Quoting};
use super::{Reader, Syntax, TextPlace, ansi};

impl Reader<'_, '_> {
    /// Reads what begins with `$`.
    pub(super) fn dollar(&mut self, quoting: Quoting) -> Result<Word, Syntax> {
        let start = self.at;
        self.pass('$')?;
        let mut is_list_of_words = false;
        let mut kind = ExpansionKind::Value;
        let lists = match self.peek() {
            Some('(') => {
                let lists;
                (lists, kind) = self.parenthesised()?;
                lists
            }
            Some('{') => {
                let lists = self.parameter(quoting)?;
                let inner = self.since(start);
                is_list_of_words = inner.contains('@');
                lists
            }
            Some('[') => {
                self.only_bash()?;
                self.pass('[')?;
                kind = ExpansionKind::Arithmetic;
                match self.arithmetic(ArithmeticEnd::Bracket)? {
                    Some(lists) => lists,
                    None => return self.fail("arithmetic is not understood"),
                }
            }
            Some('\'') if quoting == Quoting::Unquoted => {
                // Elsewhere it is a `$` and a quote.
                self.only_bash()?;
                if self.is_counted && self.is_in_quotes {
                    return self.fail("quotes around a substitution may undo those in it");
                }
                let text = self.ansi_quoted()?;
                return Ok(one(match text {
                    Some(text) => WordPart::Quoted(text),
                    None => WordPart::Expansion(Expansion {
                        source: self.since(start).to_owned(),
                        lists: Vec::new(),
                        kind,
                        is_one_word: true,
                    }),
                }));
            }
            Some('"') if quoting == Quoting::Unquoted => {
                self.only_bash()?;
                self.pass('"')?;
                return self.quoted(QuotedUntil::Quote);
            }
            Some(c) if c.is_ascii_alphabetic() || c == '_' => {
                while let Some(c) = self
                    .peek()
                    .filter(|c| c.is_ascii_alphanumeric() || *c == '_')
                {
                    self.pass(c)?;
                }
                Vec::new()
            }
            Some(c @ ('0'..='9' | '@' | '*' | '#' | '?' | '-' | '$' | '!')) => {
                is_list_of_words = c == '@';
                self.pass(c)?;
                Vec::new()
            }
            _ => {
                let part = match quoting {
                    Quoting::Unquoted => WordPart::Text("$".to_owned()),
                    _ => WordPart::Quoted("$".to_owned()),
                };
                return Ok(one(part));
            }
        };
        let source = self.since(start).replace("\\\n", "");
        let kind = match source.contains("@P}") {
            true => ExpansionKind::Prompt,
            false => kind,
        };
        Ok(one(WordPart::Expansion(Expansion {
            source,
            lists,
            kind,
            is_one_word: quoting != Quoting::Unquoted && !is_list_of_words,
        })))
    }

    pub(super) fn since(&self, start: usize) -> &str {
        self.text.get(start..self.at).unwrap_or_default()
    }

    /// Reads `$((…))` or `$(…)`, from the first parenthesis.
    fn parenthesised(&mut self) -> Result<(Vec<List>, ExpansionKind), Syntax> {
        let start = self.at;
        if self.takes("((")
            && let Some(lists) = self.arithmetic(ArithmeticEnd::Parentheses)?
        {
            return Ok((lists, ExpansionKind::Arithmetic));
        }
        self.at = start;
        let was_counted = self.is_counted;
        self.is_counted |= self.looks_at("((");
        self.pass('(')?;
        let list = self.substituted()?;
        self.no_arithmetic(start)?;
        self.is_counted = was_counted;
        Ok((vec![list], ExpansionKind::Value))
    }

    /// Reads the inside of `$(…)`, `<(…)` and `>(…)`, with the closing parenthesis.
    fn substituted(&mut self) -> Result<List, Syntax> {
        let pending = std::mem::take(&mut self.pending);
        let was_pending_outside = self.is_pending_outside;
        let place = self.place;
        self.is_pending_outside |= !pending.is_empty();
        self.place = TextPlace::Substitution;
        let list = self.nested(Self::list)?;
        if !self.pending.is_empty() {
            return self.fail("a here-document does not end inside its substitution");
        }
        if !self.takes(")") {
            return self.fail("a parenthesis is not closed");
        }
        self.pending = pending;
        self.is_pending_outside = was_pending_outside;
        self.place = place;
        Ok(list)
    }

    pub(super) fn process_substitution(&mut self) -> Result<WordPart, Syntax> {
        let start = self.at;
        self.at += 2;
        let list = self.substituted()?;
        if list.pipelines.is_empty() {
            return self.fail("a process substitution that runs nothing is no word");
        }
        Ok(WordPart::Expansion(Expansion {
            source: self.since(start).to_owned(),
            lists: vec![list],
            kind: ExpansionKind::Process,
            is_one_word: true,
        }))
    }

    /// Reads a backquoted command, whose backslashes are undone before it is read.
    pub(super) fn backquoted(&mut self, quoting: Quoting) -> Result<Expansion, Syntax> {
        let start = self.at;
        self.pass('`')?;
        let mut text = String::new();
        loop {
            let Some(c) = self.rest().chars().next() else {
                return self.fail("a backquote is not closed");
            };
            self.pass(c)?;
            if c == '`' {
                break;
            }
            self.has_inner_quotes |= c == '"' && quoting == Quoting::Quoted;
            if c != '\\' {
                text.push(c);
                continue;
            }
            match self.rest().chars().next() {
                Some(c @ ('`' | '\\' | '$')) => {
                    self.pass(c)?;
                    text.push(c);
                }
                Some('"') if quoting == Quoting::Quoted => {
                    self.pass('"')?;
                    text.push('"');
                }
                _ => text.push('\\'),
            }
        }
        let has_line_end = text.contains('\n');
        if has_line_end && (self.is_pending_outside || !self.pending.is_empty()) {
            return self.fail("a here-document begins inside a substitution");
        }
        let list = Reader::new(&text, self.depth, self.shared).whole()?;
        Ok(Expansion {
            source: self.since(start).to_owned(),
            lists: vec![list],
            kind: ExpansionKind::Value,
            is_one_word: false,
        })
    }

    /// Reads `{…}` of `${…}`: the first unquoted `}` ends it.
    fn parameter(&mut self, quoting: Quoting) -> Result<Vec<List>, Syntax> {
        self.pass('{')?;
        if matches!(self.peek(), Some(' ' | '\t' | '\n' | '|' | '(')) {
            return self.fail("an expansion runs commands in a way only newer shells know");
        }
        let start = self.at;
        let lists = self.nested(|reader| reader.parameter_inside(quoting))?;
        if self.is_counted && !is_balanced(self.since(start)) {
            return self.fail("an expansion holds what may end something around it");
        }
        Ok(lists)
    }

    fn parameter_inside(&mut self, quoting: Quoting) -> Result<Vec<List>, Syntax> {
        let mut lists = Vec::new();
        let start = self.at;
        loop {
            let inner = match self.peek() {
                None => return self.fail("an expansion is not closed"),
                Some('}') if has_open_subscript(self.since(start)) => {
                    return self.fail("a subscript holds what may end its expansion");
                }
                Some('}') => {
                    self.pass('}')?;
                    return Ok(lists);
                }
                // In double quotes, whether a `'` quotes depends on the operator; in here-documents a `"` does too.
                Some('\'') if quoting != Quoting::Unquoted => {
                    return self.fail("a quote stands inside an expansion");
                }
                Some('"') if quoting == Quoting::Document => {
                    return self.fail("a quote stands inside an expansion");
                }
                Some('\'') => {
                    self.single_quoted()?;
                    continue;
                }
                Some('"') => {
                    self.has_inner_quotes |= quoting == Quoting::Quoted;
                    self.pass('"')?;
                    self.quoted(QuotedUntil::Quote)?
                }
                Some('\\') => {
                    self.pass('\\')?;
                    if let Some(c) = self.rest().chars().next() {
                        self.pass(c)?;
                    }
                    continue;
                }
                Some('$') => {
                    let dollar = self.at;
                    let word = self.dollar(quoting)?;
                    self.no_bare_text(start, dollar, &word)?;
                    word
                }
                Some('`') => one(WordPart::Expansion(self.backquoted(quoting)?)),
                Some('<' | '>') if self.looks_at("<(") || self.looks_at(">(") => {
                    return self.fail("a process substitution stands inside an expansion");
                }
                Some(c) => {
                    self.pass(c)?;
                    continue;
                }
            };
            lists.extend(lists_of(inner));
        }
    }

    /// Refuses the text of a `$'…'` in `${…}`, which stands there since `dollar`, where bash may put it in without quotes and read it again: where
    /// double quotes stand around. Line ends and blanks do nothing there.
    fn no_bare_text(&self, start: usize, dollar: usize, word: &Word) -> Result<(), Syntax> {
        if !self.is_in_quotes || !self.since(dollar).replace("\\\n", "").starts_with("$'") {
            return Ok(());
        }
        let is_blank = |c: char| matches!(c, ' ' | '\t' | '\n' | '\r');
        match word.parts.as_slice() {
            [WordPart::Quoted(text)] if start < dollar && text.chars().all(is_blank) => Ok(()),
            _ => self.fail("quotes around a substitution may undo those in it"),
        }
    }

    /// The text of `$'…'`, if it is known.
    fn ansi_quoted(&mut self) -> Result<Option<String>, Syntax> {
        self.pass('\'')?;
        let mut raw = String::new();
        loop {
            let Some(c) = self.rest().chars().next() else {
                return self.fail("a quote is not closed");
            };
            self.pass(c)?;
            match c {
                '\'' => {
                    return Ok(ansi::unescape(&raw));
                }
                '\\' => {
                    raw.push('\\');
                    if let Some(next) = self.rest().chars().next() {
                        self.pass(next)?;
                        raw.push(next);
                    }
                }
                c => raw.push(c),
            }
        }
    }
}

/// Whether the inside of `${…}` so far ends in the subscript of its variable: to bash a `}` there is a part of it.
fn has_open_subscript(inside: &str) -> bool {
    let name = inside.trim_start_matches(['!', '#']);
    let is_part = |c: char| c.is_ascii_alphanumeric() || c == '_';
    let Some(subscript) = name.trim_start_matches(is_part).strip_prefix('[') else {
        return false;
    };
    let mut depth = 1_usize;
    let mut marks = subscript.chars();
    while let Some(c) = marks.next().filter(|_| depth > 0) {
        match c {
            '[' => depth += 1,
            ']' => depth -= 1,
            _ => {}
        }
    }
    depth > 0
}

/// Whether brackets are certainly paired in a text, as bash counts them: what is quoted does not count.
fn is_balanced(text: &str) -> bool {
    if !text.contains(['(', ')', '[', ']']) {
        return true;
    }
    let is_plain = !text.contains(['\'', '`', '\\']);
    let n_quotes = text.matches('"').count();
    let is_flat = n_quotes == 0 || n_quotes == 2 && !text.contains("$(");
    is_plain && is_flat && is_paired(text, '(', ')') && is_paired(text, '[', ']')
}

fn is_paired(text: &str, open: char, close: char) -> bool {
    let mut depth = 0_usize;
    let mut is_quoted = false;
    for c in text.chars() {
        is_quoted ^= c == '"';
        if c == open && !is_quoted {
            depth += 1;
        } else if c == close && !is_quoted {
            let Some(outer) = depth.checked_sub(1) else {
                return false;
            };
            depth = outer;
        }
    }
    depth == 0
}

/// What the expansions of a word run.
pub(super) fn lists_of(word: Word) -> Vec<List> {
    let expansions = word.parts.into_iter().filter_map(|part| match part {
        WordPart::Expansion(expansion) => Some(expansion.lists),
        WordPart::Text(_) | WordPart::Quoted(_) => None,
    });
    expansions.flatten().collect()
}

fn one(part: WordPart) -> Word {
    Word { parts: vec![part] }
}
