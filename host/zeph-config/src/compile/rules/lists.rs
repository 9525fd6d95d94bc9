//! The lists of `[tools.shell]`, which count while `tools.permissions` is absent.

use std::collections::BTreeSet;

use toml::Value;
use zeph_core::failure::one_line;
use zeph_core::policy::{CommandPattern, ShellLists};

use super::super::super::project::texts;
use super::super::super::raw::{RawMode, RawShell};
use super::super::Compiling;
use super::reason;

const BLOCKED: &str = "tools.shell.blocked_commands";
const CONFIRM: &str = "tools.shell.confirm_patterns";

/// The lists that decide, and both lists.
pub(super) struct ListSources {
    pub(super) in_force: ShellLists,
    pub(super) on_trial: ShellLists,
    /// Whether they differ.
    pub(super) observes: bool,
}

impl Compiling<'_> {
    /// Both lists, without the built-in patterns that shall not count.
    pub(super) fn lists(&mut self, raw: &RawShell) -> ListSources {
        let built_in = self.merged.built_in_items(BLOCKED);
        let n_built_in = texts(&built_in).len();
        self.allowed_are_built_in(&built_in, &raw.allowed_commands);
        let is_allowed = |pattern: &&String| {
            raw.allowed_commands
                .iter()
                .any(|allowed| same(allowed, pattern))
        };
        let (defaults, said) = raw
            .blocked_commands
            .split_at(n_built_in.min(raw.blocked_commands.len()));
        let blocked = defaults
            .iter()
            .filter(|pattern| !is_allowed(pattern))
            .chain(said);
        let on_trial = ShellLists {
            blocked: self.patterns_of(BLOCKED, blocked),
            confirm: self.patterns_of(CONFIRM, raw.confirm_patterns.iter()),
            blocked_asks: raw.blocked_mode == RawMode::Ask,
            confirm_denies: raw.confirm_mode == RawMode::Deny,
        };
        let mut in_force = on_trial.clone();
        if raw.blocked_mode == RawMode::Observe {
            in_force.blocked.clear();
        }
        if raw.confirm_mode == RawMode::Observe {
            in_force.confirm.clear();
        }
        ListSources {
            in_force,
            on_trial,
            observes: [raw.blocked_mode, raw.confirm_mode].contains(&RawMode::Observe),
        }
    }

    /// Says that lists in the configuration do not count.
    pub(super) fn warn_of_idle_lists(&mut self) {
        for key in [BLOCKED, CONFIRM, "tools.shell.allowed_commands"] {
            let said = self.merged.said(key);
            if said != "built-in" {
                self.merged.warnings.push(format!(
                    "`{key}` ({said}) has no effect, because `tools.permissions` or `tools.permissions_preset` is set"
                ));
            }
        }
    }

    fn patterns_of<'t>(
        &mut self,
        key: &str,
        texts: impl Iterator<Item = &'t String>,
    ) -> Vec<CommandPattern> {
        let mut seen = BTreeSet::new();
        let mut patterns = Vec::new();
        for text in texts.filter(|text| seen.insert(text.to_lowercase())) {
            match CommandPattern::new(text) {
                Ok(pattern) => patterns.push(pattern),
                Err(bad) => self.merged.problem(key, &reason(&bad)),
            }
        }
        patterns
    }

    /// An `allowed_commands` that takes nothing away is a misunderstanding: it is no list of what may run.
    fn allowed_are_built_in(&mut self, built_in: &Value, allowed: &[String]) {
        let built_in = texts(built_in);
        for text in allowed {
            if !built_in.iter().any(|pattern| same(pattern, text)) {
                let shown = one_line(text, 200);
                self.merged.warnings.push(format!(
                    "`tools.shell.allowed_commands`: \"{shown}\" is not built into `{BLOCKED}`, so this has no effect"
                ));
            }
        }
    }
}

/// Patterns are matched without regard to case, and a closing space only keeps longer names apart.
fn same(one: &str, other: &str) -> bool {
    one.trim().eq_ignore_ascii_case(other.trim())
}
