//! What the output filters are told: checked values without an option left open. Nothing is loaded here.

use std::path::{Path, PathBuf};

use super::file;

/// Bytes of the longest file of filter rules. Source: the documented limit.
const RULE_FILE_BYTES_MAX: u64 = 1024 * 1024;

/// Less text for the model (`tools.filters`).
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct FilterSettings {
    /// Whether outputs are shortened at all (`enabled`).
    pub enabled: bool,
    /// The operator's file of rules; it need not exist unless it was named. `None` where there is no place for one.
    pub rule_file: Option<RuleFile>,
    /// Names of tools besides `bash` whose outputs are shortened (`tools`).
    pub tools: Vec<String>,
    /// Whether outputs are searched for secrets (`security.enabled`).
    pub finds_secrets: bool,
    /// Regular expressions of more that is a secret, known to compile (`security.extra_patterns`).
    pub extra_patterns: Vec<String>,
}

/// A file of filter rules (`filters_path`, else `filters.toml` beside the configuration file).
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RuleFile {
    /// Absolute.
    pub path: PathBuf,
    /// Whether the configuration names it, so that it has to exist.
    pub is_named: bool,
    /// Why its rules may be used.
    pub trust: RuleFileTrust,
}

/// Why the rules of a file may be used.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum RuleFileTrust {
    /// It is the operator's own: it lies in the folder of the configuration file, or the operator named it.
    Operator,
    /// Its content has this SHA-256, in lower-case hexadecimal digits; empty when the operator gave none for a path that
    /// starts at the working directory, and then it may not (`trusted_sha256`).
    Sha256(String),
}

impl RuleFile {
    /// Its text; `None` when it need not exist and does not.
    ///
    /// Errors: in words, for whatever is not a readable regular file of UTF-8.
    /// Limits: 1 MiB.
    pub fn read(&self) -> Result<Option<String>, String> {
        if !self.is_named && is_missing(&self.path) {
            return Ok(None);
        }
        file::read(&self.path, RULE_FILE_BYTES_MAX).map(Some)
    }
}

fn is_missing(path: &Path) -> bool {
    matches!(
        std::fs::symlink_metadata(path),
        Err(error) if error.kind() == std::io::ErrorKind::NotFound
    )
}
