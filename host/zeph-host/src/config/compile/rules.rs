//! The rules of `tools`.

use std::collections::BTreeSet;

use toml::Value;
use zeph_core::failure::one_line;

use super::super::project::texts;
use super::super::raw::RawShell;
use super::super::rules::LegacyRules;
use super::Compiling;

impl Compiling<'_> {
    /// The lists of `tools.shell`.
    pub(super) fn legacy(&mut self, raw: &RawShell) -> LegacyRules {
        let built_in = self.merged.built_in_items("tools.shell.blocked_commands");
        let n_built_in = texts(&built_in).len();
        for (key, patterns) in [
            ("tools.shell.blocked_commands", &raw.blocked_commands),
            ("tools.shell.confirm_patterns", &raw.confirm_patterns),
        ] {
            if patterns.iter().any(|pattern| pattern.trim().is_empty()) {
                let message = "an empty pattern would match every command";
                self.merged.problem(key, message);
            }
        }
        self.allowed_are_built_in(&built_in, &raw.allowed_commands);
        let blocked = raw.blocked_commands.iter().enumerate();
        let blocked = blocked.filter(|(at, pattern)| {
            *at >= n_built_in
                || !raw
                    .allowed_commands
                    .iter()
                    .any(|allowed| same(allowed, pattern))
        });
        LegacyRules {
            blocked: each_once(blocked.map(|(_, pattern)| pattern)),
            confirm: each_once(raw.confirm_patterns.iter()),
        }
    }

    /// An `allowed_commands` that takes nothing away is a misunderstanding: it is no list of what may run.
    fn allowed_are_built_in(&mut self, built_in: &Value, allowed: &[String]) {
        let built_in = texts(built_in);
        for text in allowed {
            if !built_in.iter().any(|pattern| same(pattern, text)) {
                let shown = one_line(text, 200);
                self.merged.warnings.push(format!(
                    "`tools.shell.allowed_commands`: \"{shown}\" is not built into `tools.shell.blocked_commands`, so this has no effect"
                ));
            }
        }
    }
}

/// Patterns are matched without regard to case, and a closing space only keeps longer names apart.
fn same(one: &str, other: &str) -> bool {
    one.trim().eq_ignore_ascii_case(other.trim())
}

fn each_once<'a>(patterns: impl Iterator<Item = &'a String>) -> Vec<String> {
    let mut seen = BTreeSet::new();
    patterns
        .filter(|pattern| seen.insert(pattern.to_lowercase()))
        .cloned()
        .collect()
}
