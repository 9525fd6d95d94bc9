//! Values that a line gives its variables: `o=-rf; rm $o x` is `rm -rf x`.
//!
//! Only rules that refuse or ask look at what comes of them, beside the command as it is written. So a value is one that the variable can have
//! there; a variable that may have been changed since has none.

use std::collections::{BTreeMap, BTreeSet};

use super::syntax::{Expansion, ExpansionKind, Word, WordPart};

/// Most variables whose values are kept, which bounds the work of keeping them apart from branch to branch.
const VARIABLES_MAX: usize = 32;

/// Most bytes of a value.
const VALUE_BYTES_MAX: usize = 4 * 1024;

/// What the values of variables are where a walk is.
#[derive(Debug, Clone, Default)]
pub(super) struct Literals {
    values: BTreeMap<String, Literal>,
    /// Variables that functions set. A function may be called anywhere, so they have no value outside of it.
    volatile: BTreeSet<String>,
    /// Functions around the place.
    n_functions: usize,
    /// Whether words may be split otherwise than at white space, because `IFS` was set.
    is_off: bool,
}

#[derive(Debug, Clone, PartialEq, Eq)]
struct Literal {
    text: String,
    /// Whether programs get it.
    is_exported: bool,
}

impl Literals {
    /// Notes that a variable is given the value `text`.
    pub(super) fn set(&mut self, name: &str, text: &str, is_exported: bool) {
        self.forget(name);
        let is_volatile = self.n_functions == 0 && self.volatile.contains(name);
        let is_large = self.values.len() >= VARIABLES_MAX || text.len() > VALUE_BYTES_MAX;
        if !self.is_off && !is_volatile && !is_large {
            let text = text.to_owned();
            self.values
                .insert(name.to_owned(), Literal { text, is_exported });
        }
    }

    /// The value of a variable, and whether it is exported.
    pub(super) fn get(&self, name: &str) -> Option<(String, bool)> {
        let literal = self.values.get(name)?;
        Some((literal.text.clone(), literal.is_exported))
    }

    /// Notes that a variable is exported with the value it has.
    pub(super) fn export(&mut self, name: &str) {
        if let Some(literal) = self.values.get_mut(name) {
            literal.is_exported = true;
        }
    }

    /// Notes that a variable gets a value that is not known.
    pub(super) fn forget(&mut self, name: &str) {
        self.values.remove(name);
        if name == "IFS" {
            self.is_off = true;
            self.values.clear();
        }
        if self.n_functions > 0 {
            self.volatile.insert(name.to_owned());
        }
    }

    /// Notes that any variable may get any value.
    pub(super) fn forget_all(&mut self) {
        self.values.clear();
    }

    /// Keeps what is as it was: what ran since may not have run, or in a shell of its own.
    pub(super) fn keep_common(&mut self, before: &Self) {
        self.values
            .retain(|name, literal| before.values.get(name) == Some(literal));
    }

    /// Enters the body of a function.
    pub(super) fn enter(&mut self) {
        self.n_functions += 1;
    }

    /// Leaves the body of a function.
    pub(super) fn leave(&mut self) {
        self.n_functions -= 1;
        if self.n_functions == 0 {
            let volatile = &self.volatile;
            self.values.retain(|name, _| !volatile.contains(name));
        }
    }

    /// What a program knows of it.
    pub(super) fn exported(&self) -> Self {
        let mut this = self.clone();
        this.values.retain(|_, literal| literal.is_exported);
        this
    }

    /// The words with the values put in, split as bash does it; `None` when there is nothing to put in.
    pub(super) fn put_into(&self, words: &[Word]) -> Option<Vec<Word>> {
        let is_known = |part: &WordPart| self.value(part).is_some();
        let has_known = |word: &Word| word.parts.iter().any(is_known);
        words
            .iter()
            .any(has_known)
            .then(|| words.iter().flat_map(|word| self.split(word)).collect())
    }

    /// The word with the values put in where nothing is split, as behind the `=` of an assignment.
    pub(super) fn put_whole(&self, word: &Word) -> Word {
        let parts = word.parts.iter().map(|part| match self.value(part) {
            Some((text, _)) => WordPart::Quoted(text.to_owned()),
            None => part.clone(),
        });
        Word {
            parts: parts.collect(),
        }
    }

    fn split(&self, word: &Word) -> Vec<Word> {
        let mut words = Vec::new();
        let mut open = Word::default();
        for part in &word.parts {
            match self.value(part) {
                Some((text, true)) => open.parts.push(WordPart::Quoted(text.to_owned())),
                Some((text, false)) => split_text(text, &mut open, &mut words),
                None if !matches!(part, WordPart::Text(text) if text.is_empty()) => {
                    open.parts.push(part.clone());
                }
                None => {}
            }
        }
        words.extend((!open.parts.is_empty()).then_some(open));
        words
    }

    /// The value that an expansion has, and whether it is one word.
    fn value(&self, part: &WordPart) -> Option<(&str, bool)> {
        let WordPart::Expansion(expansion) = part else {
            return None;
        };
        let literal = self.values.get(variable(expansion)?)?;
        let is_plain = !literal.text.contains(['*', '?', '[', '\\']);
        let is_whole = !literal.text.is_empty() || !expansion.source.contains(['-', '=', '?']);
        (is_whole && (is_plain || expansion.is_one_word))
            .then_some((literal.text.as_str(), expansion.is_one_word))
    }
}

/// The variable whose value an expansion is: of `$name`, `${name}`, and those with a value for when there is none.
pub(super) fn variable(expansion: &Expansion) -> Option<&str> {
    if expansion.kind != ExpansionKind::Value {
        return None;
    }
    let inside = expansion.source.strip_prefix('$')?;
    let inside = match inside.strip_prefix('{') {
        Some(inside) => inside.strip_suffix('}')?,
        None => return Some(inside),
    };
    let is_part = |c: char| c.is_ascii_alphanumeric() || c == '_';
    let end = inside.find(|c| !is_part(c)).unwrap_or(inside.len());
    let (name, rest) = inside.split_at(end);
    let operator = rest.strip_prefix(':').unwrap_or(rest);
    (rest.is_empty() || operator.starts_with(['-', '=', '?'])).then_some(name)
}

/// Adds a value that is split at its white space.
fn split_text(text: &str, open: &mut Word, words: &mut Vec<Word>) {
    for c in text.chars() {
        if !matches!(c, ' ' | '\t' | '\n') {
            open.push_quoted(c);
        } else if !open.parts.is_empty() {
            words.push(std::mem::take(open));
        }
    }
}
