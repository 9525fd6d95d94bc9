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
    pub(super) fn word(&mut self) -> Result<Word, Syntax> {
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

/// What stands around an expansion.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Quoting {
    Unquoted,
    /// Double quotes.
    Quoted,
    /// A here-document, where `"` is nothing special.
    Document,
}
