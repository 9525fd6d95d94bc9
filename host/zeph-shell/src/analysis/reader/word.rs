//! Words, and text in quotes.

use super::super::syntax::{Expansion, Word, WordPart};
use super::{Reader, Syntax, ends_word};

/// Where quoted text ends.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum QuotedUntil {
    /// At the next `"`.
    Quote,
    /// At the end of the text, in which `"` is nothing special: a here-document.
    End,
}

impl Reader<'_, '_> {
    /// Reads a word; there must be one.
    ///
    /// Bash expands braces before all else and takes double quotes between double quotes for the end of the outer ones: it may cut such a word
    /// in other places.
    pub(super) fn word(&mut self) -> Result<Word, Syntax> {
        let start = self.at;
        let had_inner_quotes = std::mem::take(&mut self.has_inner_quotes);
        let word = self.word_parts();
        let has_inner_quotes = std::mem::replace(&mut self.has_inner_quotes, had_inner_quotes);
        if has_inner_quotes && may_expand_braces(self.since(start)) {
            return self.fail("braces are expanded before quotes are paired");
        }
        word
    }

    fn word_parts(&mut self) -> Result<Word, Syntax> {
        let mut word = Word::default();
        loop {
            match self.peek() {
                None => break,
                Some('<' | '>') => {
                    let is_process = self.looks_at("<(") || self.looks_at(">(");
                    if !is_process {
                        break;
                    }
                    let part = self.process_substitution()?;
                    word.parts.push(part);
                }
                Some(c) if ends_word(c) => break,
                Some('\'') => {
                    let text = self.single_quoted()?;
                    word.parts.push(WordPart::Quoted(text));
                }
                Some('"') => {
                    self.pass('"')?;
                    let inner = self.quoted(QuotedUntil::Quote)?;
                    word.parts.extend(inner.parts);
                }
                Some('\\') => self.escaped(&mut word)?,
                Some('$') => {
                    let part = self.dollar(Quoting::Unquoted)?;
                    word.parts.extend(part.parts);
                }
                Some('`') => {
                    let part = self.backquoted(Quoting::Unquoted)?;
                    word.parts.push(WordPart::Expansion(part));
                }
                Some(c) => {
                    self.pass(c)?;
                    word.push_text(c);
                }
            }
        }
        if word.parts.is_empty() {
            return self.fail("a word is missing");
        }
        Ok(word)
    }

    fn escaped(&mut self, word: &mut Word) -> Result<(), Syntax> {
        self.pass('\\')?;
        match self.rest().chars().next() {
            Some(c) => {
                self.pass(c)?;
                word.push_quoted(c);
            }
            None => word.push_quoted('\\'),
        }
        Ok(())
    }

    /// Reads `'…'`.
    pub(super) fn single_quoted(&mut self) -> Result<String, Syntax> {
        self.pass('\'')?;
        let Some(end) = self.rest().find('\'') else {
            return self.fail("a quote is not closed");
        };
        let text = self.rest().get(..end).unwrap_or_default().to_owned();
        for c in text.chars() {
            self.pass(c)?;
        }
        self.pass('\'')?;
        Ok(text)
    }

    /// Reads the inside of `"…"`, with its closing quote, or of a here-document.
    pub(super) fn quoted(&mut self, until: QuotedUntil) -> Result<Word, Syntax> {
        let was_in_quotes = std::mem::replace(&mut self.is_in_quotes, true);
        let word = self.quoted_parts(until);
        self.is_in_quotes = was_in_quotes;
        word
    }

    fn quoted_parts(&mut self, until: QuotedUntil) -> Result<Word, Syntax> {
        // `""` is a word too.
        let mut word = Word {
            parts: vec![WordPart::Quoted(String::new())],
        };
        let quoting = match until {
            QuotedUntil::Quote => Quoting::Quoted,
            QuotedUntil::End => Quoting::Document,
        };
        loop {
            match self.peek() {
                None if until == QuotedUntil::End => return Ok(word),
                None => return self.fail("a quote is not closed"),
                Some('"') if until == QuotedUntil::Quote => {
                    self.pass('"')?;
                    return Ok(word);
                }
                Some('\\') => {
                    self.pass('\\')?;
                    match self.rest().chars().next() {
                        Some(c @ ('$' | '`' | '\\')) => {
                            self.pass(c)?;
                            word.push_quoted(c);
                        }
                        Some('"') if until == QuotedUntil::Quote => {
                            self.pass('"')?;
                            word.push_quoted('"');
                        }
                        _ => word.push_quoted('\\'),
                    }
                }
                Some('$') => {
                    let inner = self.dollar(quoting)?;
                    word.parts.extend(inner.parts);
                }
                Some('`') => {
                    let part = self.backquoted(quoting)?;
                    word.parts.push(WordPart::Expansion(Expansion {
                        is_one_word: true,
                        ..part
                    }));
                }
                Some(c) => {
                    self.pass(c)?;
                    word.push_quoted(c);
                }
            }
        }
    }
}

/// Whether a brace that is none of `${` stands in a text, and what separates alternatives.
fn may_expand_braces(text: &str) -> bool {
    let is_brace = |at: usize| !text.get(..at).unwrap_or_default().ends_with('$');
    let has_brace = text.match_indices('{').any(|(at, _)| is_brace(at));
    has_brace && (text.contains(',') || text.contains(".."))
}

/// What stands around an expansion.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Quoting {
    Unquoted,
    /// Double quotes.
    Quoted,
    /// A here-document, where `"` is nothing special.
    Document,
}
