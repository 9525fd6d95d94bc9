//! Wrapped entries turned back: from the file as it was before, to the byte, or from what they say themselves.

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
        let mut file = UnwrappedFile {
            text: text.to_owned(),
            servers: Vec::new(),
        };
        for (name, entry) in self.entries(text)? {
            let Some(inner) = Inner::of(&entry) else {
                continue;
            };
            let is_of = |old: &&String| self.has_entry(old, &name, &entry, &inner);
            let unwrapped = match old.iter().find(is_of) {
                Some(old) => {
                    file.text = self.restore(&file.text, old, &name)?;
                    Unwrapped::AsBefore
                }
                None => match inner.edits(self, secret) {
                    Ok(edits) => {
                        file.text = self.edit(&file.text, &name, &edits)?;
                        Unwrapped::FromArguments
                    }
                    Err(missing) => Unwrapped::NoSecret(missing),
                },
            };
            file.servers.push((name, unwrapped));
        }
        Ok(file)
    }

    /// Whether `old` has the entry that was wrapped to `wrapped`.
    fn has_entry(&self, old: &str, name: &str, wrapped: &Value, inner: &Inner) -> bool {
        let entries = self.entries(old).unwrap_or_default();
        let entry = entries.iter().find(|(there, _)| there == name);
        entry.is_some_and(|(_, entry)| inner.is_of(self, wrapped, entry))
    }

    fn restore(&self, text: &str, from: &str, name: &str) -> Result<String, MergeError> {
        match &self.format {
            Format::Json(dialect) => super::json::restore(text, from, dialect, self.servers, name),
            Format::Toml => super::toml::restore(text, from, self.servers, name),
        }
    }
}
