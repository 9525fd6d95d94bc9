//! What filtering saved, per rule.

use std::collections::BTreeMap;

use serde::Serialize;
use zeph_strategies::Confidence;

use crate::apply::Filtered;

/// Bytes per token, roughly, over the outputs of tools. An estimate for people; no decision depends on it.
const TOKEN_BYTES: usize = 4;

/// Sums over outputs.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize)]
pub struct Savings {
    /// Outputs that were shortened.
    pub n_outputs: usize,
    /// Lines before filtering.
    pub lines_before: usize,
    /// Lines after it.
    pub lines_after: usize,
    /// Bytes before filtering.
    pub bytes_before: usize,
    /// Bytes after it.
    pub bytes_after: usize,
    /// Outputs handled with confidence `full`.
    pub n_full: usize,
    /// Outputs handled with confidence `partial`.
    pub n_partial: usize,
    /// Outputs that were not as expected.
    pub n_fallback: usize,
    /// How often a model read what was omitted.
    pub n_read_back: usize,
}

impl Savings {
    /// Tokens saved, an estimate.
    pub fn tokens_saved(&self) -> usize {
        self.bytes_before.saturating_sub(self.bytes_after) / TOKEN_BYTES
    }

    /// Whether the rule drops what models need: more than one in ten of its outputs was read back.
    pub fn is_read_back_often(&self) -> bool {
        self.n_read_back * 10 > self.n_outputs
    }

    fn add(&mut self, filtered: &Filtered<'_>) {
        let size = filtered.size;
        self.n_outputs += usize::from(!filtered.rules.is_empty());
        self.lines_before += size.lines_before;
        self.lines_after += size.lines_after;
        self.bytes_before += size.bytes_before;
        self.bytes_after += size.bytes_after;
        match filtered.confidence {
            Some(Confidence::Full) => self.n_full += 1,
            Some(Confidence::Partial) => self.n_partial += 1,
            Some(Confidence::Fallback) => self.n_fallback += 1,
            None => {}
        }
    }
}

/// The savings of one session.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize)]
pub struct Stats {
    /// Over all outputs that a rule was tried on.
    pub all: Savings,
    /// By rule. An output that several rules worked on counts for each.
    pub by_rule: BTreeMap<String, Savings>,
}

impl Stats {
    /// Counts one output.
    pub fn add(&mut self, filtered: &Filtered<'_>) {
        if filtered.confidence.is_none() {
            return;
        }
        self.all.add(filtered);
        for rule in &filtered.rules {
            self.by_rule.entry(rule.clone()).or_default().add(filtered);
        }
    }

    /// Counts that a model read back what `rules` omitted.
    pub fn read_back(&mut self, rules: &[String]) {
        self.all.n_read_back += 1;
        for rule in rules {
            self.by_rule.entry(rule.clone()).or_default().n_read_back += 1;
        }
    }
}

/// The line shown after a shortened output: `[shell] 342 lines -> 28 lines, 91.8% filtered`; `None` when no line was removed.
///
/// Units: the percentage is of lines.
pub fn line(filtered: &Filtered<'_>) -> Option<String> {
    let size = filtered.size;
    if size.lines_after >= size.lines_before {
        return None;
    }
    // Per mille in whole numbers: the same text on every machine.
    let per_mille = (size.lines_before - size.lines_after) * 1000 / size.lines_before;
    let (before, after) = (size.lines_before, size.lines_after);
    Some(format!(
        "[shell] {before} lines -> {after} lines, {}.{}% filtered",
        per_mille / 10,
        per_mille % 10
    ))
}

#[cfg(test)]
mod tests;
