//! `zeph-host policy show`: every active rule in the order of the checks, those of a preset too.

mod sections;

use serde_json::{Value, json};
use zeph_config::{Config, DependencySettings, JudgeSettings};
use zeph_core::policy::{
    Action, Check, CommandPattern, Effect, Mode, PermissionSource, Permissions, Policy,
    PolicyRules, Scoped, Sequence, ToolScope,
};

use crate::cli::context::Context;
use crate::cli::error::CliError;
use crate::cli::exit::Exit;
use crate::cli::out;
use crate::cli::page::print_json;
use crate::run::page::Page;

/// What is shown: the rules of the policy, and those that the host keeps beside it.
struct ActiveRules {
    policy: Policy,
    /// None where sequences are not looked for.
    sequences: Vec<Sequence>,
    dependencies: Option<DependencySettings>,
    judge: Option<JudgeSettings>,
}

/// Runs the command.
pub(super) fn run(context: &Context, as_json: bool) -> Result<Exit, CliError> {
    let rules = ActiveRules::of(context.config()?);
    match as_json {
        true => print_json(&rules.json())?,
        false => rules.page(out::width()).print()?,
    }
    Ok(Exit::Success)
}

impl ActiveRules {
    fn of(config: Config) -> Self {
        let sequences = match config.governance.trajectory {
            true => config.governance.sequences.to_vec(),
            false => Vec::new(),
        };
        Self {
            policy: with_trial(config.rules.policy),
            sequences,
            dependencies: config.shaping.dependencies,
            judge: config.judge,
        }
    }

    /// The checks as `explain` lists them, between what is looked at before them and what judges after.
    fn page(&self, width: Option<usize>) -> Page {
        let mut page = Page::of_width(width);
        if let Some(dependencies) = &self.dependencies {
            sections::dependencies(&mut page, dependencies);
        }
        for check in Check::ALL {
            self.section(&mut page, check);
        }
        if let Some(judge) = &self.judge {
            sections::judge(&mut page, judge);
        }
        page
    }

    fn section(&self, page: &mut Page, check: Check) {
        let policy = &self.policy;
        match check {
            Check::Scoped => {
                if let Some(scoped) = &policy.scoped {
                    sections::scoped(page, &scoped.shown());
                }
            }
            Check::Scope => {
                if let Some(user) = policy.scope.as_ref().and_then(ToolScope::user) {
                    sections::scope(page, user);
                }
            }
            Check::Policy => {
                if let Some(rules) = &policy.rules {
                    sections::rules(page, rules);
                }
            }
            Check::Permissions => sections::permissions(page, &policy.permissions),
            // Five checks that no rule is about: one section.
            Check::BuiltIn => sections::built_in(page, policy.denies_network),
            Check::Directories | Check::Obeyed | Check::Analysis | Check::Addresses => {}
            Check::Sequences => sections::sequences(page, &self.sequences),
            Check::Flow => {
                if let Some(mode) = policy.governance.flow {
                    sections::flow(page, mode);
                }
            }
            // What of both counts is in the store: another section for the two.
            Check::Grants => sections::stored(page),
            Check::Trust => {}
            Check::Quota => {
                if let Some(max) = policy.calls_max {
                    sections::quota(page, max);
                }
            }
            Check::Default => sections::default(page, policy.scope.as_ref()),
        }
    }

    fn json(&self) -> Value {
        let policy = &self.policy;
        let (permissions, lists) = match &policy.permissions {
            PermissionSource::Rules(permissions) => (permissions_json(permissions), Value::Null),
            PermissionSource::Lists(lists) => {
                let lists = json!({ "blocked_commands": texts(&lists.blocked), "confirm_patterns": texts(&lists.confirm) });
                (Value::Null, lists)
            }
        };
        let sequences = self.sequences.iter();
        let sequences = sequences
            .map(|sequence| json!({ "sequence": sequence.words(), "mode": sequence.mode() }));
        json!({
            "dependencies": self.dependencies.as_ref().map(dependencies_json),
            "scoped": policy.scoped.as_ref().map(Scoped::shown),
            "scope": policy.scope.as_ref().map(|scope| json!({
                "run_as_user": scope.run_as_user,
                "require_capability": scope.require_capability,
            })),
            "policy": policy.rules.as_ref().map(policy_json),
            "permissions": permissions,
            "lists": lists,
            "sequences": sequences.collect::<Value>(),
            "flow": policy.governance.flow,
            "calls_max": policy.calls_max,
            "judge": self.judge.as_ref().map(|judge| json!({ "policies": judge.policies })),
        })
    }
}

/// The policy with those of its rules that only observe: shown, they say so.
fn with_trial(policy: Policy) -> Policy {
    match policy.trial.clone() {
        Some(trial) => Policy {
            scoped: trial.scoped.clone(),
            rules: trial.rules.clone(),
            permissions: trial.permissions.clone(),
            ..policy
        },
        None => policy,
    }
}

fn permissions_json(permissions: &Permissions) -> Value {
    let tools = permissions.rules().map(|(tool, rules)| {
        let rules = rules.iter().map(|rule| {
            json!({ "pattern": rule.pattern(), "action": action(rule.action()), "preset": rule.preset(), "mode": rule.observes().then_some(Mode::Observe) })
        });
        (tool.to_owned(), rules.collect())
    });
    json!(tools.collect::<serde_json::Map<String, Value>>())
}

fn policy_json(rules: &PolicyRules) -> Value {
    let shown = rules.shown().into_iter();
    let shown = shown.map(|rule| json!({ "name": rule.name, "effect": effect(rule.effect), "conditions": rule.conditions, "mode": rule.mode }));
    json!({ "rules": shown.collect::<Vec<_>>(), "default_effect": effect(rules.default_effect()), "mode": rules.default_mode() })
}

fn dependencies_json(dependencies: &DependencySettings) -> Value {
    let rules = dependencies.rules.iter();
    let rules = rules.map(|(tool, rule)| (tool.clone(), json!({ "requires": rule.requires })));
    json!(rules.collect::<serde_json::Map<String, Value>>())
}

fn texts(patterns: &[CommandPattern]) -> Vec<&str> {
    patterns.iter().map(CommandPattern::text).collect()
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
