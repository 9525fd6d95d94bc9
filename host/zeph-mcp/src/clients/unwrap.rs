//! Wrapped entries turned back: from the file as it was before, to the byte, or from what they say themselves.

use std::collections::BTreeMap;

use serde_json::Value;

use super::error::MergeError;
use super::wrap::Inner;
use super::{Client, Format};

/// A file with its servers turned back.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct UnwrappedFile {
    /// Its text.
    pub text: String,
    /// What became of each server that was wrapped, in the order of the file.
    pub servers: Vec<(String, Unwrapped)>,
}

/// What became of a wrapped entry.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Unwrapped {
    /// It is spelled as in the file that was wrapped.
    AsBefore,
    /// It was edited since, or no old file has it: it starts what it says behind `--`.
    FromArguments,
    /// It stays wrapped: the host has no secret of this name, so that it would not start.
    NoSecret(String),
}

impl Client {
    /// Whether a server of the file is wrapped.
    ///
    /// Errors: as [`unwrap`](Self::unwrap).
    pub fn has_wrapped(&self, text: &str) -> Result<bool, MergeError> {
        let entries = self.entries(text)?;
        Ok(entries.iter().any(|(_, entry)| Inner::of(entry).is_some()))
    }

    /// The client's file with every wrapped server as it was before. `old` are texts the file had, the best first; those that cannot be
    /// read are skipped. `secret` gives a value the host keeps.
    ///
    /// Errors: `text` is not in the client's format, has something else where the servers should be, or names one twice.
    pub fn unwrap(
        &self,
        text: &str,
        old: &[String],
        secret: &dyn Fn(&str) -> Option<String>,
    ) -> Result<UnwrappedFile, MergeError> {
        let before: Vec<BTreeMap<String, Value>> =
            old.iter().map(|old| self.entries_by_name(old)).collect();
        let mut restored = vec![Vec::new(); old.len()];
        let (mut servers, mut edited) = (Vec::new(), Vec::new());
        for (name, entry) in self.entries(text)? {
            let Some(inner) = Inner::of(&entry) else {
                continue;
            };
            let is_of = |entries: &BTreeMap<String, Value>| {
                let old = entries.get(&name);
                old.is_some_and(|old| inner.is_of(self, &entry, old))
            };
            let unwrapped = match before.iter().position(is_of) {
                Some(idx) => {
                    restored[idx].push(name.clone());
                    Unwrapped::AsBefore
                }
                None => match inner.edits(self, secret) {
                    Ok(edits) => {
                        edited.push((name.clone(), edits));
                        Unwrapped::FromArguments
                    }
                    Err(missing) => Unwrapped::NoSecret(missing),
                },
            };
            servers.push((name, unwrapped));
        }
        let mut text = self.edit(text, &edited)?;
        for (old, names) in old.iter().zip(restored) {
            text = self.restore(&text, old, &names)?;
        }
        Ok(UnwrappedFile { text, servers })
    }

    /// The entries of a text that may be anything.
    fn entries_by_name(&self, text: &str) -> BTreeMap<String, Value> {
        let entries = self.entries(text).unwrap_or_default();
        entries.into_iter().collect()
    }

    fn restore(&self, text: &str, from: &str, names: &[String]) -> Result<String, MergeError> {
        match &self.format {
            _ if names.is_empty() => Ok(text.to_owned()),
            Format::Json(dialect) => super::json::restore(text, from, dialect, self.servers, names),
            Format::Toml => super::toml::restore(text, from, self.servers, names),
        }
    }
}
