//! The definitions of one list as they come in: bounded in number and size, each once, with notes about the rest.

use std::collections::HashSet;

use serde_json::Value;
use zeph_core::failure::one_line;
use zeph_core::redact::Redactor;
use zeph_core::text::plain_line;

use super::{Definition, DefinitionLimits};
use crate::client::cleaning::is_name;

/// Collects the definitions of one list.
pub(in crate::client) struct Collector<'a, D: Definition> {
    limits: &'a DefinitionLimits,
    /// Removes secrets before anything is made of a definition.
    redactor: Redactor,
    kept: Vec<D::Kept>,
    known: HashSet<String>,
    n_bytes: usize,
    n_beyond: usize,
    n_cut: usize,
    /// Whose texts were cut, on one line each; the first ones.
    cut: Vec<String>,
    n_cut_definitions: usize,
    notes: Vec<String>,
}

/// Most definitions that a note names.
const NAMED_MAX: usize = 5;

/// Most notes about one list, so that a server cannot fill a screen with them.
pub(super) const NOTES_MAX: usize = 8;

/// Most characters of an identity: a resource's URI is the longest.
const IDENTITY_CHARS_MAX: usize = 2_048;

impl<'a, D: Definition> Collector<'a, D> {
    pub(in crate::client) fn new(limits: &'a DefinitionLimits, redactor: Redactor) -> Self {
        Self {
            limits,
            redactor,
            kept: Vec::new(),
            known: HashSet::new(),
            n_bytes: 0,
            n_beyond: 0,
            n_cut: 0,
            cut: Vec::new(),
            n_cut_definitions: 0,
            notes: Vec::new(),
        }
    }

    /// Whether nothing more is kept.
    pub(in crate::client) fn is_full(&self) -> bool {
        self.n_beyond > 0
    }

    /// Takes one definition, or notes why not.
    pub(in crate::client) fn take(&mut self, definition: D) {
        let sent = serde_json::to_value(&definition).unwrap_or(Value::Null);
        let n_bytes = sent.to_string().len();
        let has_room = self.kept.len() < self.limits.n_each
            && self.n_bytes + n_bytes <= self.limits.list_bytes;
        if !has_room {
            self.n_beyond += 1;
            return;
        }
        let identity = self.redactor.text(definition.identity()).into_owned();
        let n_cut = self.n_cut;
        let clean = self.clean(definition, sent);
        match clean.and_then(|(definition, sent)| self.checked(definition, sent, n_bytes)) {
            Ok(kept) => {
                if self.n_cut > n_cut {
                    self.note_cut(&identity);
                }
                self.n_bytes += n_bytes;
                self.known.insert(identity);
                self.kept.push(kept);
            }
            Err(why) => {
                let (noun, name) = (D::NOUN, plain_line(&identity, 64));
                self.note(format!("{noun} `{name}` is omitted: {why}"));
            }
        }
    }

    /// The definition without secrets, in both forms.
    ///
    /// Errors: it cannot be without them.
    fn clean(&self, definition: D, sent: Value) -> Result<(D, Value), String> {
        if self.redactor.is_empty() {
            return Ok((definition, sent));
        }
        let mut clean = sent.clone();
        self.redactor.clean_json(&mut clean);
        if clean == sent {
            return Ok((definition, sent));
        }
        let cleaned = D::deserialize(&clean);
        let cleaned = cleaned.map_err(|_| "it holds a secret where it cannot be removed")?;
        match cleaned.identity() == definition.identity() {
            true => Ok((cleaned, clean)),
            false => Err("its name holds a secret".to_owned()),
        }
    }

    fn checked(&mut self, definition: D, sent: Value, n_bytes: usize) -> Result<D::Kept, String> {
        let identity = definition.identity();
        let max = self.limits.definition_bytes;
        let is_sound = !identity.is_empty()
            && identity.len() <= IDENTITY_CHARS_MAX
            && !identity.contains(zeph_core::text::is_deceptive);
        if !is_sound || (D::NOUN == "tool" && !is_name(identity)) {
            return Err("its name is empty, too long or holds invisible characters".to_owned());
        }
        if self.known.contains(identity) {
            return Err("there is another one of that name".to_owned());
        }
        if n_bytes > max {
            return Err(format!(
                "its definition has {n_bytes} bytes; the limit is {max}"
            ));
        }
        definition.kept(sent, self.limits, &mut self.n_cut)
    }

    fn note_cut(&mut self, identity: &str) {
        self.n_cut_definitions += 1;
        if self.cut.len() < NAMED_MAX {
            self.cut.push(format!("`{}`", plain_line(identity, 64)));
        }
    }

    pub(in crate::client) fn note(&mut self, note: String) {
        match self.notes.len() {
            0..NOTES_MAX => self.notes.push(one_line(&note, 300)),
            NOTES_MAX => self
                .notes
                .push(format!("more notes about {}s are not shown", D::NOUN)),
            _ => {}
        }
    }

    /// What was kept; the notes are added to `notes`.
    pub(in crate::client) fn finish(mut self, notes: &mut Vec<String>) -> Vec<D::Kept> {
        let noun = D::NOUN;
        if self.n_cut_definitions > 0 {
            let (max, inner_max) = (self.limits.description_bytes, self.limits.schema_text_bytes);
            let n_more = self.n_cut_definitions - self.cut.len();
            let more = match n_more {
                0 => String::new(),
                n_more => format!(" and {n_more} more"),
            };
            let note = format!(
                "{noun}s whose texts were cut: {}{more}; the limit is {max} bytes for a description and {inner_max} for one inside a schema",
                self.cut.join(", ")
            );
            self.notes.push(note);
        }
        if self.n_beyond > 0 {
            let (max, bytes) = (self.limits.n_each, self.limits.list_bytes);
            let note = format!(
                "the server offers more than {max} {noun}s or {bytes} bytes of them; the rest is omitted"
            );
            self.notes.push(note);
        }
        notes.append(&mut self.notes);
        self.kept
    }
}
