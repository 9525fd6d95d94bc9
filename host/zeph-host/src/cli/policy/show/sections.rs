//! The rules of each check, for people. A check without rules has no section.

use std::path::PathBuf;

use zeph_config::{DependencySettings, JudgeSettings};
use zeph_core::policy::{
    Mode, PermissionRule, PermissionSource, PolicyRules, Sequence, ShellLists, ShownConstraint,
    ShownScope, ToolScope,
};
use zeph_core::text::counted;

use super::{action, effect};
use crate::run::page::Page;

/// How a rule is shown that does not simply do what it says.
fn mode(mode: Option<Mode>) -> &'static str {
    match mode {
        Some(Mode::Observe) => "  (observes)",
        Some(Mode::Ask) => "  (asks)",
        Some(Mode::Deny) | None => "",
    }
}

/// What a mode does, in a word.
fn does(mode: Mode) -> &'static str {
    match mode {
        Mode::Observe => "observe",
        Mode::Ask => "ask",
        Mode::Deny => "deny",
    }
}

pub(super) fn dependencies(page: &mut Page, dependencies: &DependencySettings) {
    page.head("DEPENDENCIES (looked at before all checks)");
    for (tool, rule) in &dependencies.rules {
        if !rule.requires.is_empty() {
            let requires = rule.requires.join(", ");
            page.line(1, &format!("deny  {tool} before {requires} succeeded"));
        }
    }
}

pub(super) fn scoped(page: &mut Page, scoped: &ShownScope) {
    page.head("SCOPE (tools.scoped)");
    let does_here = does(scoped.mode);
    if let Some(allowed) = &scoped.allowed_tools {
        let allowed = allowed.join(", ");
        page.line(1, &format!("{does_here:<6}every tool but {allowed}"));
    }
    for tool in &scoped.denied_tools {
        page.line(1, &format!("{does_here:<6}{tool}"));
    }
    for constraint in &scoped.constraints {
        self::constraint(page, constraint);
    }
}

fn constraint(page: &mut Page, constraint: &ShownConstraint) {
    let (does, tool) = (does(constraint.mode), &constraint.tool);
    let approvable = match constraint.mode {
        Mode::Deny => "  (a user can approve a call)",
        Mode::Ask | Mode::Observe => "",
    };
    for pattern in &constraint.deny_patterns {
        page.line(1, &format!("{does:<6}{tool} with {pattern}{approvable}"));
    }
    if !constraint.allowed_paths.is_empty() {
        let shown = |path: &PathBuf| path.display().to_string();
        let paths: Vec<String> = constraint.allowed_paths.iter().map(shown).collect();
        let paths = paths.join(", ");
        page.line(1, &format!("{does:<6}{tool} outside {paths}{approvable}"));
    }
}

pub(super) fn scope(page: &mut Page, user: &str) {
    page.head("USER (tools.scope)");
    page.line(
        1,
        &format!("deny  every call, unless tools run as `{user}`"),
    );
}

pub(super) fn rules(page: &mut Page, rules: &PolicyRules) {
    page.head("POLICY (the first match wins)");
    for rule in rules.shown() {
        let effect = effect(rule.effect);
        page.line(
            1,
            &format!(
                "{effect:<6}{}  ({}){}",
                rule.conditions.join("  "),
                rule.name,
                mode(rule.mode)
            ),
        );
    }
    page.dim(
        1,
        &format!(
            "default_effect = \"{}\"{}",
            effect(rules.default_effect()),
            mode(Some(rules.default_mode()))
        ),
    );
}

pub(super) fn permissions(page: &mut Page, source: &PermissionSource) {
    match source {
        PermissionSource::Rules(permissions) => {
            for (tool, rules) in permissions.rules() {
                page.head(&format!("PERMISSIONS FOR {tool} (the first match wins)"));
                rules.iter().for_each(|rule| permission(page, rule));
                page.dim(1, "ask   everything else");
            }
        }
        PermissionSource::Lists(lists) => self::lists(page, lists),
    }
}

fn permission(page: &mut Page, rule: &PermissionRule) {
    let origin = match rule.preset() {
        Some(preset) => format!("  (preset \"{preset}\")"),
        None => String::new(),
    };
    let action = action(rule.action());
    let mode = mode(rule.observes().then_some(Mode::Observe));
    page.line(1, &format!("{action:<6}{}{origin}{mode}", rule.pattern()));
}

fn lists(page: &mut Page, lists: &ShellLists) {
    page.head("LISTS FOR bash (used because there are no permissions)");
    for pattern in &lists.blocked {
        page.line(1, &format!("deny  {}", pattern.text()));
    }
    for pattern in &lists.confirm {
        page.line(1, &format!("ask   {}", pattern.text()));
    }
}

pub(super) fn built_in(page: &mut Page, denies_network: bool) {
    page.head("BUILT IN");
    page.line(
        1,
        "deny  removals that are never intended, such as `rm -rf /`, and moves to where files do not stay",
    );
    if denies_network {
        page.line(
            1,
            "deny  commands that need the network, which commands do not have (tools.sandbox)",
        );
    }
    page.line(1, "deny  paths outside the directories of the tools");
    page.line(
        1,
        "ask   changes of what programs obey, such as `.git/hooks`",
    );
    page.line(1, "ask   commands whose effect is known only when they run");
    page.line(
        1,
        "ask   addresses that neither the user nor a result named",
    );
}

pub(super) fn sequences(page: &mut Page, sequences: &[Sequence]) {
    if sequences.is_empty() {
        return;
    }
    page.head("SEQUENCES (tools.governance.blocked_sequences)");
    for sequence in sequences {
        let (does, words) = (does(sequence.mode()), sequence.words().join(" "));
        page.line(1, &format!("{does:<8}{words}"));
    }
}

pub(super) fn flow(page: &mut Page, mode: Mode) {
    page.head("FLOW (tools.governance.flow)");
    let does = does(mode);
    page.line(
        1,
        &format!("{does:<8}calls that would carry what is private off the machine"),
    );
}

pub(super) fn stored(page: &mut Page) {
    page.head("IN THE STORE");
    page.dim(
        1,
        "grants, trust and learned sequences: zeph-host grants, zeph-host trust, zeph-host forgive",
    );
}

pub(super) fn quota(page: &mut Page, calls_max: u32) {
    page.head("QUOTA (tools.max_tool_calls_per_session)");
    page.line(
        1,
        &format!(
            "deny  more than {} in a session",
            counted(calls_max, "call", "calls")
        ),
    );
}

pub(super) fn default(page: &mut Page, scope: Option<&ToolScope>) {
    page.head("DEFAULT");
    let text = match scope.is_some_and(|scope| scope.require_capability) {
        true => "ask   every call that nothing above allows (tools.scope.require_capability)",
        false => "tools that only read run; tools that change something ask",
    };
    page.line(1, text);
}

pub(super) fn judge(page: &mut Page, judge: &JudgeSettings) {
    page.head("MODEL THAT JUDGES WHAT IS ALLOWED (tools.adversarial_policy)");
    for policy in &judge.policies {
        page.line(1, policy);
    }
}
