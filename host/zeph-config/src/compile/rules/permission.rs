//! `[tools.permissions]`, or the lists of `[tools.shell]` in its absence.

use std::collections::HashMap;

use zeph_core::policy::{
    Action, BadRule, PermissionRule, PermissionSource, Permissions, PolicyRule, ShellLists,
};

use super::super::super::raw::{RawAction, RawMode, RawPermission, RawTools};
use super::super::Compiling;
use super::{policy, reason, text_of};
use crate::paths::unbraced;

impl Compiling<'_> {
    /// What the operator says; the lists when that is nothing. Comes with the same on trial.
    pub(super) fn permissions(&mut self, raw: &RawTools) -> PermissionSources {
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
                let (action, observes) = match ruling(rule) {
                    Ok(ruling) => ruling,
                    Err(message) => {
                        self.merged.problem_in(&key, idx, "mode", message);
                        continue;
                    }
                };
                let compiled = self.compiled(tool, &rule.pattern, |pattern| {
                    PermissionRule::new(tool, pattern, action, &directory)
                });
                match compiled {
                    Ok(compiled) if observes => {
                        rules.extend(compiled.into_iter().map(PermissionRule::observing));
                    }
                    Ok(compiled) => rules.extend(compiled),
                    Err(message) => self.merged.problem_in(&key, idx, "pattern", &message),
                }
                if observes {
                    continue;
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
        let in_force = in_force(&tools);
        if !in_force.is_empty() {
            self.warn_of_idle_lists();
        }
        let observes = match in_force.is_empty() {
            true => lists.observes || !tools.is_empty(),
            false => in_force.len() < tools.len() || has_observed(&tools),
        };
        PermissionSources {
            in_force: source(in_force, lists.in_force),
            on_trial: observes.then(|| source(tools, lists.on_trial)),
        }
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
                let compiled = self.compiled(tool, &rule.pattern, |pattern| {
                    let rules = policy::denying(tool, pattern, &text_of(&project));
                    rules.into_iter().collect::<Result<Vec<_>, _>>()
                });
                match compiled {
                    Ok(compiled) => rules.extend(compiled.into_iter().flatten()),
                    Err(message) => self.merged.problem_in(&key, idx, "pattern", &message),
                }
            }
        }
        rules
    }

    /// What `compile` makes of a pattern: of each alternative of one over paths in which the home directory stands for `~`. Commands are matched
    /// as they are written.
    ///
    /// Errors: one sentence.
    fn compiled<T>(
        &self,
        tool: &str,
        pattern: &str,
        compile: impl Fn(&str) -> Result<T, BadRule>,
    ) -> Result<Vec<T>, String> {
        let patterns = match policy::is_shell(tool) || !pattern.contains('~') {
            true => vec![pattern.to_owned()],
            false => unbraced(pattern)?,
        };
        let compiled = patterns.iter().map(|pattern| match policy::is_shell(tool) {
            true => compile(pattern),
            false => compile(&self.with_home(pattern)),
        });
        compiled
            .collect::<Result<_, _>>()
            .map_err(|bad| reason(&bad))
    }

    /// A pattern over paths with the home directory in place of `~`.
    fn with_home(&self, pattern: &str) -> String {
        let rest = pattern.strip_prefix('~');
        let rest = rest.filter(|rest| rest.is_empty() || rest.starts_with('/'));
        match (&self.surroundings.home, rest) {
            (Some(home), Some(rest)) => globset::escape(&home.to_string_lossy()) + rest,
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

/// The rules that decide, and all of them where some only observe.
pub(super) struct PermissionSources {
    pub(super) in_force: PermissionSource,
    pub(super) on_trial: Option<PermissionSource>,
}

/// The rules of each tool, by its name.
type ToolRules = Vec<(String, Vec<PermissionRule>)>;

fn in_force(tools: &ToolRules) -> ToolRules {
    let in_force = tools.iter().map(|(tool, rules)| {
        let rules = rules.iter().filter(|rule| !rule.observes()).cloned();
        (tool.clone(), rules.collect::<Vec<_>>())
    });
    in_force.filter(|(_, rules)| !rules.is_empty()).collect()
}

fn has_observed(tools: &ToolRules) -> bool {
    let mut rules = tools.iter().flat_map(|(_, rules)| rules);
    rules.any(PermissionRule::observes)
}

fn source(tools: ToolRules, lists: ShellLists) -> PermissionSource {
    match tools.is_empty() {
        true => PermissionSource::Lists(lists),
        false => PermissionSource::Rules(Permissions::new(tools)),
    }
}

/// What a rule does, and whether it only observes.
///
/// Errors: what is wrong with its mode.
fn ruling(raw: &RawPermission) -> Result<(Action, bool), &'static str> {
    match (raw.action, raw.mode) {
        (action, None) => Ok((self::action(action), false)),
        (action, Some(RawMode::Observe)) => Ok((self::action(action), true)),
        (RawAction::Ask | RawAction::Deny, Some(RawMode::Ask)) => Ok((Action::Ask, false)),
        (RawAction::Deny, Some(RawMode::Deny)) => Ok((Action::Deny, false)),
        (RawAction::Ask, Some(RawMode::Deny)) => {
            Err("a rule that asks cannot deny; write `action = \"deny\"`")
        }
        (RawAction::Allow, Some(RawMode::Ask | RawMode::Deny)) => {
            Err("a rule that allows can only have the mode \"observe\"")
        }
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
