//! Arithmetic: only what it substitutes matters, and where it ends.

use super::super::syntax::{ExpansionKind, List, WordPart};
use super::expansion::lists_of;
use super::word::Quoting;
use super::{Reader, Syntax};

/// What closes arithmetic.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum ArithmeticEnd {
    /// `))`, of `$((…))` and `((…))`.
    Parentheses,
    /// `))`, and `;` may stand inside: `for ((…))`.
    Loop,
    /// `]`, of `$[…]`.
    Bracket,
}

impl Reader<'_, '_> {
    /// Reads arithmetic with its end; `None` when this is none, and may be commands in parentheses.
    ///
    /// Quotes, escapes and comments decide where bash sees the end, so a text with them is read as commands.
    pub(super) fn arithmetic(&mut self, end: ArithmeticEnd) -> Result<Option<Vec<List>>, Syntax> {
        let was_counted = std::mem::replace(&mut self.is_counted, true);
        let lists = self.formula(end);
        self.is_counted = was_counted;
        lists
    }

    fn formula(&mut self, end: ArithmeticEnd) -> Result<Option<Vec<List>>, Syntax> {
        let mut lists = Vec::new();
        let mut depth = 0usize;
        loop {
            match self.peek() {
                Some(')') if depth == 0 => {
                    let is_end = end != ArithmeticEnd::Bracket && self.takes("))");
                    return Ok(is_end.then_some(lists));
                }
                Some(']') if end == ArithmeticEnd::Bracket && depth == 0 => {
                    self.pass(']')?;
                    return Ok(Some(lists));
                }
                Some(';') if end == ArithmeticEnd::Loop => self.pass(';')?,
                None | Some('"' | '\'' | '\\' | ';' | '{' | '}') => return Ok(None),
                Some('#') if self.is_after_blank() => return Ok(None),
                Some('$') => {
                    let Some(inner) = self.arithmetic_dollar()? else {
                        return Ok(None);
                    };
                    lists.extend(inner);
                }
                Some('`') => lists.extend(self.backquoted(Quoting::Quoted)?.lists),
                Some(c) => {
                    depth = match (c, end) {
                        ('(', _) | ('[', ArithmeticEnd::Bracket) => depth + 1,
                        (')', _) | (']', ArithmeticEnd::Bracket) => depth.saturating_sub(1),
                        _ => depth,
                    };
                    self.pass(c)?;
                }
            }
        }
    }

    /// Refuses what was read as commands since `start` and is arithmetic to bash, by how it begins and ends: single quotes hide nothing there.
    pub(super) fn no_arithmetic(&mut self, start: usize) -> Result<(), Syntax> {
        let text = self.since(start).replace("\\\n", "");
        match text.starts_with("((") && text.ends_with("))") {
            true => self.fail("arithmetic is not understood"),
            false => Ok(()),
        }
    }

    fn arithmetic_dollar(&mut self) -> Result<Option<Vec<List>>, Syntax> {
        // All of it is expanded as if it stood in double quotes.
        let word = self.nested(|reader| reader.dollar(Quoting::Quoted))?;
        let is_expansion = match word.parts.as_slice() {
            [WordPart::Expansion(expansion)] if expansion.kind == ExpansionKind::Prompt => {
                return self.fail("arithmetic runs what a variable holds");
            }
            [WordPart::Expansion(_)] => true,
            _ => false,
        };
        Ok(is_expansion.then(|| lists_of(word)))
    }

    fn is_after_blank(&self) -> bool {
        let before = self.text.get(..self.at).unwrap_or_default();
        before.ends_with([' ', '\t', '\n', '('])
    }
}
