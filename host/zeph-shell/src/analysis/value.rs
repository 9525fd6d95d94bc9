//! What is known of a word without running anything.

use super::syntax::{Part, Word};

/// A word, as far as it is known.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Value {
    /// Unquoted; what cannot be known as it stands in the text.
    pub(super) text: String,
    /// Whether `text` is exactly what a command would get.
    pub(super) is_literal: bool,
    /// Whether it becomes exactly one word.
    pub(super) is_one_word: bool,
    /// Whether the program it names is known: a path below the home directory is, a pattern is not.
    pub(super) is_name: bool,
    /// Whether it stands for arguments that are added while the line runs, and is not in the text.
    pub(super) is_added: bool,
}

impl Value {
    /// The value of a word.
    pub(super) fn of(word: &Word) -> Self {
        let mut text = String::new();
        let mut is_fixed = true;
        let mut is_one_word = true;
        for part in &word.parts {
            match part {
                Part::Text(part) | Part::Quoted(part) => text.push_str(part),
                Part::Expansion(expansion) => {
                    is_fixed = false;
                    is_one_word &= expansion.is_one_word;
                    text.push_str(&expansion.source);
                }
            }
        }
        let has_pattern = has_glob(word) || has_brace(word);
        let has_tilde =
            matches!(word.parts.first(), Some(Part::Text(first)) if first.starts_with('~'));
        Self {
            is_literal: is_fixed && !has_pattern && !has_tilde,
            is_one_word: is_one_word && !has_pattern,
            is_name: is_fixed
                && !has_pattern
                && !text.is_empty()
                && (!has_tilde || text.contains('/')),
            is_added: false,
            text,
        }
    }

    /// A word that stands for itself.
    pub(super) fn literal(text: &str) -> Self {
        Self {
            text: text.to_owned(),
            is_literal: true,
            is_one_word: true,
            is_name: !text.is_empty(),
            is_added: false,
        }
    }

    /// The arguments that `xargs` and its like add at the end.
    pub(super) fn added() -> Self {
        Self {
            text: String::new(),
            is_literal: false,
            is_one_word: false,
            is_name: false,
            is_added: true,
        }
    }

    /// The same, when `marker` in it is replaced while the line runs.
    pub(super) fn replaced(self, marker: &str) -> Self {
        let is_touched = self.text.contains(marker);
        Self {
            is_literal: self.is_literal && !is_touched,
            is_name: self.is_name && !is_touched,
            ..self
        }
    }

    /// Whether it is one word and no option, whatever it becomes.
    pub(super) fn is_operand(&self) -> bool {
        let may_be_option = !self.is_literal && self.text.starts_with(['$', '`']);
        self.is_one_word && !may_be_option
    }

    /// The text, if it is what a command would get.
    pub(super) fn as_literal(&self) -> Option<&str> {
        self.is_literal.then_some(self.text.as_str())
    }
}

/// Whether it matches the names of files.
fn has_glob(word: &Word) -> bool {
    if word.plain() == Some("[") {
        return false;
    }
    let has = |wanted: char| unquoted(word).any(|text| text.contains(wanted));
    has('*') || has('?') || (has('[') && has(']'))
}

/// Whether it may become several words, as `{a,b}` and `{1..3}` do.
fn has_brace(word: &Word) -> bool {
    let has = |wanted: &str| unquoted(word).any(|text| text.contains(wanted));
    has("{") && has("}") && (has(",") || has(".."))
}

fn unquoted(word: &Word) -> impl Iterator<Item = &str> {
    word.parts.iter().filter_map(|part| match part {
        Part::Text(text) => Some(text.as_str()),
        Part::Quoted(_) | Part::Expansion(_) => None,
    })
}
