//! `zeph-host policy show`: every rule in the order in which it is asked, those of a preset too.

use serde_json::{Value, json};
use zeph_core::policy::{
    Action, Effect, Mode, PermissionRule, PermissionSource, Policy, PolicyRules, ShellLists,
};

use crate::cli::context::Context;
use crate::cli::error::CliError;
use crate::cli::exit::Exit;
use crate::cli::out;
use crate::cli::page::print_json;
use crate::run::page::Page;

/// Runs the command.
pub(super) fn run(context: &Context, as_json: bool) -> Result<Exit, CliError> {
    let policy = with_trial(context.config()?.rules.policy);
    match as_json {
        true => print_json(&json(&policy))?,
        false => page(&policy, out::width()).print()?,
    }
    Ok(Exit::Success)
}

/// The policy with those of its rules that only observe: shown, they say so.
fn with_trial(policy: Policy) -> Policy {
    match policy.trial.clone() {
        Some(trial) => Policy {
            rules: trial.rules.clone(),
            permissions: trial.permissions.clone(),
            ..policy
        },
        None => policy,
    }
}

/// How a rule is shown that does not simply do what it says.
fn mode(mode: Option<Mode>) -> &'static str {
    match mode {
        Some(Mode::Observe) => "  (observes)",
        Some(Mode::Ask) => "  (asks)",
        Some(Mode::Deny) | None => "",
    }
}

fn page(policy: &Policy, width: Option<usize>) -> Page {
    let mut page = Page::of_width(width);
    if let Some(rules) = &policy.rules {
        page.head("POLICY (checked first; the first match wins)");
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
    match &policy.permissions {
        PermissionSource::Rules(permissions) => {
            for (tool, rules) in permissions.rules() {
                page.head(&format!("PERMISSIONS FOR {tool} (the first match wins)"));
                rules.iter().for_each(|rule| permission(&mut page, rule));
                page.dim(1, "ask   everything else");
            }
        }
        PermissionSource::Lists(lists) => self::lists(&mut page, lists),
    }
    page.head("DEFAULT");
    page.line(
        1,
        "tools that only read run; tools that change something ask",
    );
    page
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

fn json(policy: &Policy) -> Value {
    let rules = policy.rules.as_ref().map(policy_json);
    let permissions = match &policy.permissions {
        PermissionSource::Rules(permissions) => {
            let tools = permissions.rules().map(|(tool, rules)| {
                let rules = rules.iter().map(|rule| {
                    json!({ "pattern": rule.pattern(), "action": action(rule.action()), "preset": rule.preset(), "mode": rule.observes().then_some(Mode::Observe) })
                });
                (tool.to_owned(), rules.collect())
            });
            json!(tools.collect::<serde_json::Map<String, Value>>())
        }
        PermissionSource::Lists(_) => Value::Null,
    };
    let lists = match &policy.permissions {
        PermissionSource::Rules(_) => Value::Null,
        PermissionSource::Lists(lists) => {
            let texts = |patterns: &[zeph_core::policy::CommandPattern]| {
                patterns
                    .iter()
                    .map(|pattern| pattern.text().to_owned())
                    .collect::<Vec<_>>()
            };
            json!({ "blocked_commands": texts(&lists.blocked), "confirm_patterns": texts(&lists.confirm) })
        }
    };
    json!({ "policy": rules, "permissions": permissions, "lists": lists })
}

fn policy_json(rules: &PolicyRules) -> Value {
    let shown = rules.shown().into_iter();
    let shown = shown.map(|rule| json!({ "name": rule.name, "effect": effect(rule.effect), "conditions": rule.conditions, "mode": rule.mode }));
    json!({ "rules": shown.collect::<Vec<_>>(), "default_effect": effect(rules.default_effect()), "mode": rules.default_mode() })
}

fn action(action: Action) -> &'static str {
    match action {
        Action::Allow => "allow",
        Action::Ask => "ask",
        Action::Deny => "deny",
    }
}

fn effect(effect: Effect) -> &'static str {
    match effect {
        Effect::Allow => "allow",
        Effect::Deny => "deny",
    }
}
