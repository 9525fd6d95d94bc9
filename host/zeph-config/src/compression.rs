//! What compression beside a goal is told: checked values without an option left open.

use std::collections::BTreeMap;

/// Less of outputs that have little to do with the goal (`tools.compression`).
#[derive(Debug, Clone, PartialEq)]
pub struct CompressionSettings {
    /// Whether outputs are compressed while there is a goal (`enabled`).
    pub enabled: bool,
    /// Whether what is near the goal as a whole stays whole (`goal_aware`); single lines near it always do.
    pub goal_aware: bool,
    /// Whether parts of outputs are compared with the goal by their meaning, where there is a model for that (`embeddings`).
    pub embeddings: bool,
    /// Estimated tokens up to which an output stays as it is (`compression_threshold_tokens`).
    pub threshold_tokens: usize,
    /// The relevance from which on something is near the goal, from 0 to 1 (`goal_relevance_threshold`).
    pub relevance_threshold: f64,
    /// Whether lines that say what went wrong always stay (`preserve_errors`).
    pub preserves_errors: bool,
    /// Whether outputs of commands that failed stay as they are (`preserve_shell_errors`).
    pub preserves_shell_errors: bool,
    /// Characters of the lines that stay of one output, errors aside (`max_preserved_chars`).
    pub preserved_chars_max: usize,
    /// By the name of a tool; outputs of others stay as they are (`strategies`).
    pub strategies: BTreeMap<String, CompressionStrategy>,
    /// The names of tools among them that the operator gave, in a file, a variable or a flag.
    pub named: Vec<String>,
}

/// How much is left of an output.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum CompressionStrategy {
    /// Its first and its last line, errors, and what is near the goal.
    Aggressive,
    /// Its beginning, its last line, errors, and what is near the goal.
    Moderate,
    /// All.
    None,
}
