//! `[tools.permissions]`, or the lists of `[tools.shell]` in its absence.

use zeph_core::policy::{Action, PermissionRule, PermissionSource, Permissions, PolicyRule};

use super::super::super::raw::{RawAction, RawPermission, RawTools};
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
                self.warn_of_dead(&key, idx, said);
            }
            if !rules.is_empty() {
                tools.push((tool.clone(), rules));
            }
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
        let is_shell = ["bash", "sh", "shell"]
            .iter()
            .any(|name| name.eq_ignore_ascii_case(tool));
        match (&self.surroundings.home, pattern.strip_prefix("~/")) {
            (Some(home), Some(rest)) if !is_shell => {
                format!("{}/{rest}", globset::escape(&home.to_string_lossy()))
            }
            _ => pattern.to_owned(),
        }
    }

    /// A rule after one with the same pattern, or after one for everything, is never asked.
    fn warn_of_dead(&mut self, key: &str, idx: usize, said: &[RawPermission]) {
        let pattern = &said[idx].pattern;
        let covers = |earlier: &&RawPermission| {
            earlier.pattern == "*" || earlier.pattern.eq_ignore_ascii_case(pattern)
        };
        let operators = (0..idx).filter(|earlier| self.project_of(key, *earlier).is_none());
        if let Some(earlier) = operators.map(|at| &said[at]).find(covers) {
            let shown = zeph_core::failure::one_line(&earlier.pattern, 200);
            self.merged.warnings.push(format!(
                "`{key}[{idx}]` is never asked: \"{shown}\" before it matches first"
            ));
        }
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
