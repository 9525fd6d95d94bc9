//! Cuts `key=value` words: bare values, quoted ones, and JSON values with spaces in them.

use serde_json::Value;
use zeph_core::failure::one_line;

/// The rest of a line.
pub(super) struct Words<'a> {
    text: &'a str,
    position: usize,
}

/// One `key=value`.
pub(super) struct ArgumentAssignment<'a> {
    pub(super) key: &'a str,
    pub(super) given: WrittenValue<'a>,
}

/// A value as it was written.
pub(super) enum WrittenValue<'a> {
    /// Up to the next space.
    Bare(&'a str),
    /// In quotes, which say that it is text.
    Quoted(String),
    /// A JSON array or object, which may hold spaces, and its letters.
    Json(&'a str, Value),
}

impl<'a> Words<'a> {
    pub(super) fn new(text: &'a str) -> Self {
        Self { text, position: 0 }
    }

    /// The next word; `None` at the end.
    ///
    /// Errors: one line with the column, in characters from 1 after the tool's name.
    pub(super) fn next_assignment(&mut self) -> Result<Option<ArgumentAssignment<'a>>, String> {
        let rest = self.rest().trim_start();
        self.position = self.text.len() - rest.len();
        if rest.is_empty() {
            return Ok(None);
        }
        let word_end = rest.find(char::is_whitespace).unwrap_or(rest.len());
        let Some((key, _)) = rest[..word_end]
            .split_once('=')
            .filter(|(key, _)| super::is_key(key))
        else {
            return Err(format!(
                "`{}` is not `key=value`",
                one_line(&rest[..word_end], 60)
            ));
        };
        self.position += key.len() + 1;
        let given = self.value(key)?;
        let is_separate = self.rest().chars().next().is_none_or(char::is_whitespace);
        if !is_separate {
            return Err(format!("a space is missing after the value of `{key}`"));
        }
        Ok(Some(ArgumentAssignment { key, given }))
    }

    fn rest(&self) -> &'a str {
        &self.text[self.position..]
    }

    fn value(&mut self, key: &str) -> Result<WrittenValue<'a>, String> {
        let rest = self.rest();
        match rest.chars().next() {
            Some('"') => match self.json(rest) {
                Some((_, Value::String(text))) => Ok(WrittenValue::Quoted(text)),
                _ => Err(format!(
                    "the quoted value of `{key}` does not end, or has a wrong escape"
                )),
            },
            Some('\'') => {
                let Some((text, _)) = rest[1..].split_once('\'') else {
                    return Err(format!("the quoted value of `{key}` does not end"));
                };
                self.position += text.len() + 2;
                Ok(WrittenValue::Quoted(text.to_owned()))
            }
            Some('[' | '{') => match self.json(rest) {
                Some((text, value)) => Ok(WrittenValue::Json(text, value)),
                // A glob such as `[a-z]*.rs` or `{a,b}` is text.
                None => Ok(self.bare(rest)),
            },
            _ => Ok(self.bare(rest)),
        }
    }

    fn bare(&mut self, rest: &'a str) -> WrittenValue<'a> {
        let end = rest.find(char::is_whitespace).unwrap_or(rest.len());
        self.position += end;
        WrittenValue::Bare(&rest[..end])
    }

    /// One JSON value at the start of `rest`, when it is one and a space follows.
    fn json(&mut self, rest: &'a str) -> Option<(&'a str, Value)> {
        let mut values = serde_json::Deserializer::from_str(rest).into_iter::<Value>();
        let value = values.next()?.ok()?;
        let (text, after) = rest.split_at(values.byte_offset());
        let is_quoted = value.is_string();
        if !is_quoted
            && after
                .chars()
                .next()
                .is_some_and(|next| !next.is_whitespace())
        {
            return None;
        }
        self.position += text.len();
        Some((text, value))
    }
}
