//! Removes known secrets from what leaves a call: exact values, and the forms that programs give them by chance.
//!
//! Found are a value itself; its base64 in a longer text, at every alignment, with either alphabet and over folded lines; hexadecimal;
//! and all of these percent-encoded, escaped as in JSON, as HTML character references, with colours or other control sequences in them, or
//! two of these one in the other. Whatever part of the characters is escaped makes no difference. A value of the form `SCHEME CREDENTIAL` counts without its scheme too, and that of `Basic`
//! decoded. Of a value of several lines, such as a key, every line that may be secret by itself is found too. Not found are values that were compressed, encrypted, hashed, split, reversed or cut.
//!
//! A value of fewer than 8 bytes, or of fewer than 4 different ones, occurs by chance and is never looked for: [`is_hideable`].

mod form;
mod stream;
mod view;

use std::borrow::Cow;
use std::fmt;
use std::sync::Arc;

use aho_corasick::AhoCorasick;
use serde_json::Value;

use crate::execution::SecretValue;
use crate::output::{Content, RawOutput, ResourceBody};
pub use form::is_hideable;
pub use stream::RedactStream;

/// Bytes that are searched at once: what a view of them takes in memory is a multiple.
const CHUNK_BYTES: usize = 64 * 1024;

/// What stands in the place of a value.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum RedactionMark {
    /// `[redacted: NAME]`
    Name,
    /// A `*` for each byte: the length stays what was announced.
    Length,
}

/// The secrets that are known, ready to be found. Clones share it.
#[derive(Clone, Default)]
pub struct Redactor(Option<Arc<Needles>>);

/// What is searched for.
struct Needles {
    automaton: AhoCorasick,
    texts: Vec<Vec<u8>>,
    /// By the index of a text: the index of its secret's mark.
    owners: Vec<usize>,
    marks: Vec<String>,
    names: Vec<String>,
    /// The indexes of the texts that begin with a byte, the longest first.
    begins: Vec<Vec<usize>>,
    len_max: usize,
}

impl Redactor {
    /// A redactor of `secrets`; those that are not [hideable](is_hideable) are skipped.
    pub fn new(secrets: &[SecretValue]) -> Self {
        let (mut texts, mut owners) = (Vec::new(), Vec::new());
        for (idx, secret) in secrets.iter().enumerate() {
            for text in form::texts(&secret.value) {
                texts.push(text);
                owners.push(idx);
            }
        }
        let automaton = AhoCorasick::new(&texts).ok();
        let (Some(automaton), false) = (automaton, texts.is_empty()) else {
            return Self(None);
        };
        let mut begins = vec![Vec::new(); 256];
        for (idx, first) in texts.iter().map(|text| text[0]).enumerate() {
            begins[usize::from(first)].push(idx);
        }
        for of_byte in &mut begins {
            of_byte.sort_by_key(|idx| std::cmp::Reverse(texts[*idx].len()));
        }
        let names: Vec<String> = secrets.iter().map(|secret| secret.name.clone()).collect();
        let mark = |name: &String| {
            let mark = format!("[redacted: {name}]");
            // A value that is a part of the mark would stay in it.
            match automaton.is_match(mark.as_bytes()) {
                true => "*".repeat(8),
                false => mark,
            }
        };
        Self(Some(Arc::new(Needles {
            marks: names.iter().map(mark).collect(),
            len_max: texts.iter().map(Vec::len).max().unwrap_or_default(),
            names,
            automaton,
            texts,
            owners,
            begins,
        })))
    }

    /// Whether there is nothing to look for.
    pub fn is_empty(&self) -> bool {
        self.0.is_none()
    }

    /// The name of a secret that `bytes` hold in any form.
    pub fn find(&self, bytes: &[u8]) -> Option<&str> {
        let needles = self.0.as_ref()?;
        let mut stream = self.stream(RedactionMark::Name);
        for chunk in bytes.chunks(CHUNK_BYTES) {
            stream.push(chunk);
        }
        stream.finish();
        Some(&needles.names[stream.first_hit()?])
    }

    /// Whether `bytes` hold a secret in any form, whatever the case of its letters: for what is in one case, such as names of headers.
    ///
    /// Limits: time for each form of each secret; for short texts.
    pub fn is_in_any_case(&self, bytes: &[u8]) -> bool {
        let needles = self.0.as_ref();
        needles.is_some_and(|needles| needles.are_in_any_case(bytes))
    }

    /// `text` without any secret.
    pub fn text<'t>(&self, text: &'t str) -> Cow<'t, str> {
        match self.replaced(text.as_bytes(), RedactionMark::Name) {
            None => Cow::Borrowed(text),
            // Values are valid UTF-8, and what is replaced begins and ends with whole characters.
            Some(bytes) => Cow::Owned(String::from_utf8_lossy(&bytes).into_owned()),
        }
    }

    /// The first `chars_max` characters of `text`, without any secret. No more of a long text is searched than that takes.
    pub fn head(&self, text: &str, chars_max: usize) -> String {
        let mut stream = self.stream(RedactionMark::Name);
        let mut clean = Vec::new();
        for chunk in text.as_bytes().chunks(CHUNK_BYTES) {
            clean.extend(stream.push(chunk));
            if clean.len() >= 4 * chars_max {
                break;
            }
        }
        if clean.len() < 4 * chars_max {
            clean.extend(stream.finish());
        }
        let clean = String::from_utf8_lossy(&clean);
        clean.chars().take(chars_max).collect()
    }

    /// Removes every secret from `text`.
    pub fn clean(&self, text: &mut String) {
        if let Cow::Owned(cleaned) = self.text(text) {
            *text = cleaned;
        }
    }

    /// Removes every secret from `bytes`, which keep their length.
    pub fn clean_bytes(&self, bytes: &mut Vec<u8>) {
        if let Some(cleaned) = self.replaced(bytes, RedactionMark::Length) {
            *bytes = cleaned;
        }
    }

    /// Removes every secret from the keys and values of `value`.
    pub fn clean_json(&self, value: &mut Value) {
        if self.is_empty() {
            return;
        }
        match value {
            Value::String(text) => self.clean(text),
            Value::Number(number) => {
                if let Cow::Owned(text) = self.text(&number.to_string()) {
                    *value = Value::String(text);
                }
            }
            Value::Array(items) => items.iter_mut().for_each(|item| self.clean_json(item)),
            Value::Object(fields) => {
                let given = std::mem::take(fields).into_iter();
                *fields = given
                    .map(|(mut key, mut item)| {
                        self.clean(&mut key);
                        self.clean_json(&mut item);
                        (key, item)
                    })
                    .collect();
            }
            Value::Null | Value::Bool(_) => {}
        }
    }

    /// Removes every secret from all that a tool gave: texts, the structured part, documents with their addresses, locations. Bytes of
    /// images and sounds keep their length.
    pub fn clean_output(&self, raw: &mut RawOutput) {
        if self.is_empty() {
            return;
        }
        raw.content
            .iter_mut()
            .for_each(|content| self.clean_content(content));
        if let Some(structured) = &mut raw.structured {
            self.clean_json(structured);
        }
        for location in &mut raw.locations {
            self.clean(&mut location.path);
        }
    }

    fn clean_content(&self, content: &mut Content) {
        let clean = |text: &mut Option<String>| text.iter_mut().for_each(|text| self.clean(text));
        match content {
            Content::Text(text) => self.clean(text),
            Content::Image(blob) | Content::Audio(blob) => {
                self.clean(&mut blob.media_type);
                self.clean_bytes(&mut blob.data);
            }
            Content::Resource {
                uri,
                media_type,
                body,
            } => {
                self.clean(uri);
                clean(media_type);
                match body {
                    ResourceBody::Text(text) => self.clean(text),
                    ResourceBody::Bytes(data) => self.clean_bytes(data),
                }
            }
            Content::Link {
                uri,
                name,
                media_type,
                description,
            } => {
                self.clean(uri);
                self.clean(name);
                clean(media_type);
                clean(description);
            }
        }
    }

    /// A redactor of a text that comes in pieces.
    pub fn stream(&self, mark: RedactionMark) -> RedactStream {
        RedactStream::new(self.clone(), mark)
    }

    /// `None` when there is nothing to replace.
    fn replaced(&self, bytes: &[u8], mark: RedactionMark) -> Option<Vec<u8>> {
        self.0.as_ref()?;
        let mut stream = self.stream(mark);
        let mut clean = Vec::new();
        for chunk in bytes.chunks(CHUNK_BYTES) {
            clean.extend(stream.push(chunk));
        }
        clean.extend(stream.finish());
        stream.first_hit().map(|_| clean)
    }
}

impl fmt::Debug for Redactor {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let names = self.0.as_ref().map(|needles| &needles.names);
        f.debug_tuple("Redactor").field(&names).finish()
    }
}

#[cfg(test)]
mod tests;
