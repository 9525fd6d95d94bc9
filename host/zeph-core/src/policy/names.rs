//! Rules that cannot apply: they name no tool, or paths of tools that have none; and other settings that name no tool.

use super::allow::AllowRule;
use super::rule::{Effect, PolicyRule};
use super::scope::ToolGlob;
use super::subject::{names, tool_key};
use super::{PermissionSource, Policy};
use crate::call::PATH_ARGUMENTS;
use crate::failure::one_line;
use crate::nearest::nearest;
use crate::tool::{Backend, Tool};

/// A tool that a setting names.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct NamedTool {
    /// The setting, as its key.
    pub key: String,
    /// The tool, as the operator wrote it.
    pub tool: String,
}

/// One sentence for each setting that names a tool which is not among `tools`. `may_come`: names that may belong to tools that are not known
/// yet.
pub fn unknown_tools<'a>(
    named: &[NamedTool],
    tools: impl IntoIterator<Item = &'a Tool>,
    may_come: &dyn Fn(&str) -> bool,
) -> Vec<String> {
    let known = ToolNames::new(tools, may_come);
    let place = |one: &NamedTool| format!("`{}`", one_line(&one.key, 200));
    let unknown = named.iter().filter_map(|one| {
        if one.tool.contains(['*', '?']) {
            let tool = one_line(&one.tool, 100);
            return Some(format!(
                "{}: no tool is named `{tool}`; names here are not patterns",
                place(one)
            ));
        }
        let is_known = known.has(|name| name == tool_key(&one.tool));
        (!is_known)
            .then(|| known.unknown(&place(one), &one.tool))
            .flatten()
    });
    unknown.collect()
}

/// The tools there are, under every name rules may give them.
struct ToolNames<'a> {
    tools: Vec<(&'a Tool, Vec<String>)>,
    may_come: &'a dyn Fn(&str) -> bool,
}

impl Policy {
    /// One sentence for each rule and each `--allow` that can never apply while these are the tools. `may_come`: names that may belong to
    /// tools that are not known yet.
    pub fn idle_rules<'a>(
        &self,
        tools: impl IntoIterator<Item = &'a Tool>,
        may_come: &dyn Fn(&str) -> bool,
    ) -> Vec<String> {
        let known = ToolNames::new(tools, may_come);
        let flags = self.allow.iter().filter_map(|rule| known.flag(rule));
        let permissions = self.trial.as_ref().map(|trial| &trial.permissions);
        let permissions = match permissions.unwrap_or(&self.permissions) {
            PermissionSource::Rules(permissions) => {
                permissions.rules().map(|(tool, _)| tool).collect()
            }
            PermissionSource::Lists(_) => Vec::new(),
        };
        let permissions = permissions
            .into_iter()
            .filter_map(|tool| known.named(&format!("`tools.permissions.{tool}`"), tool));
        let scoped = self.trial.as_ref().map(|trial| &trial.scoped);
        let scoped = scoped.unwrap_or(&self.scoped);
        let scoped = scoped.iter().flat_map(|scoped| scoped.names());
        let scoped = scoped.filter_map(|(key, tool)| known.named(&format!("`{key}`"), tool));
        let rules = self.rules.iter().flat_map(|rules| rules.named());
        let rules = rules.filter_map(|(name, rule)| known.rule(&name, rule));
        flags
            .chain(permissions)
            .chain(scoped)
            .chain(rules)
            .collect()
    }
}

impl<'a> ToolNames<'a> {
    fn new<'b: 'a>(
        tools: impl IntoIterator<Item = &'b Tool>,
        may_come: &'a dyn Fn(&str) -> bool,
    ) -> Self {
        let tools = tools.into_iter().map(|tool| (tool, names(tool)));
        Self {
            tools: tools.collect(),
            may_come,
        }
    }

    fn has(&self, fits: impl Fn(&str) -> bool) -> bool {
        self.tools
            .iter()
            .any(|(_, names)| names.iter().any(|name| fits(name)))
    }

    fn flag(&self, rule: &AllowRule) -> Option<String> {
        let is_known = self.has(|name| rule.names(name));
        let tool = rule.text().split(':').next().unwrap_or_default();
        match is_known {
            true => None,
            false => self.unknown(&format!("`--allow {}`", one_line(rule.text(), 200)), tool),
        }
    }

    fn named(&self, place: &str, tool: &str) -> Option<String> {
        let meant = ToolGlob::new(tool);
        match self.has(|name| meant.fits(name)) {
            true => None,
            false => self.unknown(place, tool),
        }
    }

    fn rule(&self, place: &str, rule: &PolicyRule) -> Option<String> {
        let known = self.tools.iter();
        let meant: Vec<&Tool> = known
            .filter(|(_, names)| names.iter().any(|name| rule.tool().fits(name)))
            .map(|(tool, _)| *tool)
            .collect();
        if meant.is_empty() {
            return self.unknown(place, &rule.tool().text);
        }
        let applies = |tool: &&Tool| match rule.effect() {
            // What a component or a command reaches by itself is hidden from it.
            Effect::Deny => {
                matches!(tool.backend, Backend::Wasm(_) | Backend::Shell) || names_paths(tool)
            }
            Effect::Allow => tool.backend == Backend::Shell || names_paths(tool),
        };
        let is_idle = rule.has_paths() && !meant.iter().any(applies);
        is_idle.then(|| {
            let tool = one_line(&rule.tool().text, 100);
            format!("{place} has `paths` but no call of `{tool}` names a path, so the rule never matches")
        })
    }

    /// That there is no tool of this name, unless one may come.
    fn unknown(&self, place: &str, tool: &str) -> Option<String> {
        if (self.may_come)(tool.trim()) {
            return None;
        }
        let tool = one_line(tool, 100);
        let names = self.tools.iter().flat_map(|(_, names)| names);
        Some(match nearest(&tool, names.map(String::as_str)) {
            Some(near) => format!("{place}: no tool is named `{tool}`; did you mean `{near}`?"),
            None => format!("{place}: no tool is named `{tool}`"),
        })
    }
}

/// Whether a tool has an argument that rules take for a path.
fn names_paths(tool: &Tool) -> bool {
    let properties = tool.parameters.schema().get("properties");
    properties.is_some_and(|properties| {
        PATH_ARGUMENTS
            .iter()
            .any(|name| properties.get(name).is_some())
    })
}
