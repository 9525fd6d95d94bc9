//! `[tools.filters]`: where the rules stand, and the patterns of secrets.

use std::path::{Path, PathBuf};

use regex::RegexBuilder;
use zeph_core::failure::one_line;

use super::super::paths::spellings;
use super::super::raw::RawFilters;
use super::super::{FilterSettings, RuleFile, RuleFileTrust};
use super::Compiling;
use super::plugins::is_full;

/// The file of rules beside the configuration file.
const RULE_FILE: &str = "filters.toml";

/// Where the operator names another one.
const KEY: &str = "tools.filters.filters_path";

/// Characters of the longest pattern. Source: the documented limit.
const PATTERN_CHARS_MAX: usize = 512;

/// What a compiled pattern may come to, in bytes.
const COMPILED_BYTES_MAX: usize = 1024 * 1024;

impl Compiling<'_> {
    /// How outputs are shortened; `user_file` is the operator's file.
    pub(super) fn filters(&mut self, raw: &RawFilters, user_file: Option<&Path>) -> FilterSettings {
        let trusted = self.sha256(&raw.trusted_sha256);
        self.secret_patterns(&raw.security.extra_patterns);
        FilterSettings {
            enabled: raw.enabled,
            rule_file: self.rule_file(&raw.filters_path, trusted, user_file),
            tools: raw.tools.clone(),
            finds_secrets: raw.security.enabled,
            extra_patterns: raw.security.extra_patterns.clone(),
        }
    }

    fn rule_file(
        &mut self,
        text: &str,
        trusted: String,
        user_file: Option<&Path>,
    ) -> Option<RuleFile> {
        let home = user_file.and_then(Path::parent);
        if text.is_empty() {
            return Some(RuleFile {
                path: home?.join(RULE_FILE),
                is_named: false,
                trust: RuleFileTrust::Operator,
            });
        }
        let path = match self.base().absolute(text) {
            Ok(path) => path,
            Err(message) => {
                self.merged.problem(KEY, &message);
                return None;
            }
        };
        // Only the operator can name it. A path that starts at the working directory names another file in every repository,
        // so it is the operator's own only when it was typed for this one.
        let is_own = is_full(text) || self.is_typed(KEY);
        let trust = match trusted.is_empty() {
            _ if home.is_some_and(|home| lies_in(&path, home)) => RuleFileTrust::Operator,
            true if is_own => RuleFileTrust::Operator,
            _ => RuleFileTrust::Sha256(trusted),
        };
        Some(RuleFile {
            path,
            is_named: true,
            trust,
        })
    }

    fn sha256(&mut self, text: &str) -> String {
        let digits = text.strip_prefix("sha256:").unwrap_or(text);
        let is_digest = digits.len() == 64 && digits.bytes().all(|byte| byte.is_ascii_hexdigit());
        if !digits.is_empty() && !is_digest {
            let message = format!(
                "`{}` is not a SHA-256 digest (64 hexadecimal digits)",
                one_line(text, 200)
            );
            self.merged
                .problem("tools.filters.trusted_sha256", &message);
        }
        digits.to_ascii_lowercase()
    }

    fn secret_patterns(&mut self, patterns: &[String]) {
        const KEY: &str = "tools.filters.security.extra_patterns";
        for pattern in patterns {
            let n_chars = pattern.chars().count();
            let shown = one_line(pattern, 200);
            if n_chars == 0 || n_chars > PATTERN_CHARS_MAX {
                let message = format!(
                    "`{shown}` has {n_chars} characters, 1 to {PATTERN_CHARS_MAX} are allowed"
                );
                self.merged.problem(KEY, &message);
                continue;
            }
            let compiled = RegexBuilder::new(pattern)
                .size_limit(COMPILED_BYTES_MAX)
                .build();
            if let Err(error) = compiled {
                let error = error.to_string();
                let reason = error.rsplit("error: ").next().unwrap_or_default();
                let message = format!("`{shown}` does not compile: {}", one_line(reason, 200));
                self.merged.problem(KEY, &message);
            }
        }
    }
}

/// Whether a path lies in a folder, both resolved: a link out of the folder leads to another user's file.
fn lies_in(path: &Path, folder: &Path) -> bool {
    let resolved = |path: &Path| -> Option<PathBuf> { spellings(path).pop() };
    match (resolved(path), resolved(folder)) {
        (Some(path), Some(folder)) => path.starts_with(folder),
        _ => false,
    }
}
