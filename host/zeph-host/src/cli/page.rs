//! Where a page goes: to standard output, or to standard error before a question.

use std::io;

use serde_json::Value;
use zeph_plugins::visible::visible_json;

use super::error::CliError;
use super::out;
use crate::run::page::Page;

impl Page {
    /// For standard output.
    pub(in crate::cli) fn new() -> Self {
        Self::of_width(out::width())
    }

    /// For standard error, before a question.
    pub(in crate::cli) fn for_stderr() -> Self {
        Self::of_width(out::width_of(io::stderr()))
    }

    /// Writes it to standard output.
    pub(in crate::cli) fn print(&self) -> Result<(), CliError> {
        out::styled(self.as_str())
    }

    /// Writes it to standard error.
    pub(in crate::cli) fn print_to_stderr(&self) {
        out::stderr(self.as_str());
    }
}

/// Prints JSON in which hidden characters of untrusted texts are visible.
pub(super) fn print_json(value: &Value) -> Result<(), CliError> {
    let text = serde_json::to_string_pretty(value)
        .map_err(|error| CliError::internal("the answer is not valid JSON").because(error))?;
    out::data(&(visible_json(&text) + "\n"))
}
