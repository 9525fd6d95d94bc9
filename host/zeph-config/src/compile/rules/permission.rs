//! `[tools.permissions]`, or the lists of `[tools.shell]` in its absence.

use std::collections::HashMap;

use zeph_core::policy::{Action, PermissionRule, PermissionSource, Permissions, PolicyRule};

use super::super::super::raw::{RawAction, RawTools};
use super::super::Compiling;
use super::{policy, reason, text_of};

impl Compiling<'_> {
    /// What the operator says; the lists when that is nothing.
    pub(super) fn permissions(&mut self, raw: &RawTools) -> PermissionSource {
        let directory = text_of(&self.surroundings.working_directory);
        let mut tools = Vec::new();
        for (tool, said) in &raw.permissions {
            let key = key(tool);
            let mut rules = Vec::new();
            let mut earlier = Earlier::default();
            for (idx, rule) in said.iter().enumerate() {
                if self.project_of(&key, idx).is_some() {
                    continue;
                }
                let pattern = self.with_home(tool, &rule.pattern);
                match PermissionRule::new(&pattern, action(rule.action), &directory) {
                    Ok(rule) => rules.push(rule),
                    Err(bad) => {
                        self.merged.problem_in(&key, idx, "pattern", &reason(&bad));
                    }
                }
                if let Some(covering) = earlier.covering(&rule.pattern) {
                    self.warn_of_dead(&key, idx, &covering);
                }
            }
            if !rules.is_empty() {
                tools.push((tool.clone(), rules));
            }
        }
        let preset = raw.permissions_preset.rules(&directory);
        let preset = self
            .sound("tools.permissions_preset", preset)
            .unwrap_or_default();
        if !preset.is_empty() {
            // Behind the operator's own, under whatever name of the shell they are.
            tools.push(("bash".to_owned(), preset));
        }
        // Compiled in any case: a pattern that is wrong is wrong whether it counts or not.
        let lists = self.lists(&raw.shell);
        if tools.is_empty() {
            return PermissionSource::Lists(lists);
        }
        self.warn_of_idle_lists();
        PermissionSource::Rules(Permissions::new(tools))
    }

    /// The denying rules of projects, as rules that come before those of `tools.policy`.
    ///
    /// Not among the operator's permissions: their presence would switch the lists of `tools.shell` off.
    pub(super) fn project_permissions(&mut self, raw: &RawTools) -> Vec<PolicyRule> {
        let mut rules = Vec::new();
        for (tool, said) in &raw.permissions {
            let key = key(tool);
            for (idx, rule) in said.iter().enumerate() {
                let Some(project) = self.project_of(&key, idx) else {
                    continue;
                };
                let pattern = self.with_home(tool, &rule.pattern);
                for compiled in policy::denying(tool, &pattern, &text_of(&project)) {
                    match compiled {
                        Ok(compiled) => rules.push(compiled),
                        Err(bad) => {
                            self.merged.problem_in(&key, idx, "pattern", &reason(&bad));
                            break;
                        }
                    }
                }
            }
        }
        rules
    }

    /// A pattern over paths with the home directory in place of `~`; commands are matched as they are written.
    fn with_home(&self, tool: &str, pattern: &str) -> String {
        match (&self.surroundings.home, pattern.strip_prefix("~/")) {
            (Some(home), Some(rest)) if !policy::is_shell(tool) => {
                format!("{}/{rest}", globset::escape(&home.to_string_lossy()))
            }
            _ => pattern.to_owned(),
        }
    }

    /// A rule after one with the same pattern, or after one for everything, is never asked.
    fn warn_of_dead(&mut self, key: &str, idx: usize, covering: &str) {
        let shown = zeph_core::failure::one_line(covering, 200);
        self.merged.warnings.push(format!(
            "`{key}[{idx}]` never matches: the rule for \"{shown}\" before it matches first"
        ));
    }
}

/// The patterns of the operator's rules so far.
#[derive(Default)]
struct Earlier {
    /// As written, by their form in lower case.
    patterns: HashMap<String, String>,
    has_any: bool,
}

impl Earlier {
    /// The earlier pattern that leaves nothing for `pattern`, which is one of them from now on.
    fn covering(&mut self, pattern: &str) -> Option<String> {
        let lower = pattern.to_ascii_lowercase();
        let covering = match self.has_any {
            true => Some("*".to_owned()),
            false => self.patterns.get(&lower).cloned(),
        };
        self.has_any |= pattern == "*";
        self.patterns
            .entry(lower)
            .or_insert_with(|| pattern.to_owned());
        covering
    }
}

fn key(tool: &str) -> String {
    format!("tools.permissions.{tool}")
}

fn action(raw: RawAction) -> Action {
    match raw {
        RawAction::Allow => Action::Allow,
        RawAction::Ask => Action::Ask,
        RawAction::Deny => Action::Deny,
    }
}
