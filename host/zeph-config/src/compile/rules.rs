//! The rules of `tools`, compiled one by one so that each error stands at its line.

mod file;
mod lists;
mod permission;
mod policy;

use std::path::{Path, PathBuf};
use std::sync::Arc;

use zeph_core::anomaly::AnomalySettings;
use zeph_core::policy::{
    BadRule, Constraint, Hidden, Policy, PolicyRules, Scoped, ToolScope, Trial,
};

use super::super::origin::ValueOrigin;
use super::super::paths::spellings;
use super::super::raw::{RawAnomaly, RawScope, RawScoped, RawTools};
use super::super::rules::RuleSettings;
use super::super::{SandboxSettings, ShellSettings};
use super::Compiling;

/// What hides files from every tool; a rule is made of it for commands.
const DENY_READ: &str = "tools.file.deny_read";

impl Compiling<'_> {
    /// All rules; `user_file` is the operator's file, `of_servers` are the paths that MCP servers may use.
    pub(super) fn rules(
        &mut self,
        raw: &RawTools,
        shell: &ShellSettings,
        sandbox: &SandboxSettings,
        user_file: Option<&Path>,
        of_servers: &[PathBuf],
    ) -> RuleSettings {
        let directory = &self.surroundings.working_directory;
        let directory = spellings(directory)
            .pop()
            .unwrap_or_else(|| directory.clone());
        let governance = self.governance_rules(&raw.governance);
        let policy_file = self.policy_file(&raw.policy.policy_file, user_file);
        let (sections, variables) = self.sections(raw, policy_file.as_deref());
        let default_effect = self.default_effect(raw);
        let rules = match sections.is_empty() {
            true => None,
            false => self.sound(
                "tools.policy.rules",
                PolicyRules::new(sections, default_effect)
                    .map(|rules| rules.with_default_mode(policy::mode(raw.policy.mode))),
            ),
        };
        let hidden = rules.as_ref().map(PolicyRules::hidden_from_commands);
        let hidden = self.hidden(hidden.unwrap_or_default(), sandbox, of_servers);
        let scoped = self.scoped(&raw.scoped);
        let permissions = self.permissions(raw);
        let trial = trial(scoped.as_ref(), rules.as_ref(), &permissions);
        let mut roots = vec![directory.clone()];
        roots.extend_from_slice(&shell.allowed_paths);
        roots.extend_from_slice(&sandbox.write);
        roots.sort();
        roots.dedup();
        RuleSettings {
            policy: Policy {
                allow: Vec::new(),
                scoped: scoped.map(|scoped| scoped.in_force()),
                scope: scope(&raw.scope),
                rules,
                permissions: permissions.in_force,
                trial,
                governance,
                denies_network: !sandbox.network && sandbox.hosts.is_empty(),
                calls_max: match raw.max_tool_calls_per_session {
                    0 => None,
                    some => Some(some),
                },
                roots,
                directory,
                wrapped: None,
            },
            policy_file,
            hidden,
            variables,
        }
    }

    /// The denied paths that the jail hides; the others get a warning each.
    fn hidden(
        &mut self,
        hidden: Hidden,
        sandbox: &SandboxSettings,
        of_servers: &[PathBuf],
    ) -> Vec<PathBuf> {
        for (rule, reason) in hidden.words_only {
            let programs = match rule.as_str() {
                DENY_READ => "`bash` and MCP servers",
                _ => "`bash`",
            };
            self.merged.warnings.push(format!(
                "{rule}: its paths cannot all be hidden from {programs}, because {reason}: a command that names one is refused, a command that reads a directory above it is not. List the paths in `tools.sandbox.hide`"
            ));
        }
        if sandbox.disabled && !hidden.paths.is_empty() {
            self.merged.warnings.push(
                "rules deny paths to commands, but `tools.sandbox.disabled` leaves nothing to hide them: only a command that names such a path is refused".to_owned(),
            );
        }
        // Where commands run cannot be hidden from them: every command is refused there. Of the system they see only what they need.
        let roots = || sandbox.read.iter().chain(&sandbox.write);
        let home = self.surroundings.home.as_ref();
        let mut paths = hidden.paths;
        paths.retain(|path| {
            let is_granted = roots().chain(home).any(|root| path.starts_with(root));
            let is_in = |root: &PathBuf| path != root && path.starts_with(root);
            let is_granted = is_granted || of_servers.iter().any(is_in);
            is_granted && !roots().any(|root| root.starts_with(path))
        });
        paths
    }

    /// What compiled; what did not is a problem of the key.
    fn sound<T>(&mut self, key: &str, compiled: Result<T, BadRule>) -> Option<T> {
        match compiled {
            Ok(sound) => Some(sound),
            Err(bad) => {
                let message = reason(&bad);
                self.merged.problem(key, &message);
                None
            }
        }
    }

    fn scoped(&mut self, raw: &RawScoped) -> Option<Scoped> {
        const KEY: &str = "tools.scoped.constraints";
        let mut constraints = Vec::new();
        for (idx, constraint) in raw.constraints.iter().enumerate() {
            let mut paths: Vec<PathBuf> = Vec::new();
            for text in &constraint.allowed_paths {
                match self.base().named(text) {
                    // The last spelling is the resolved one.
                    Ok(spelt) => paths.extend(spelt.last().cloned()),
                    Err(message) => self.merged.problem_in(KEY, idx, "allowed_paths", &message),
                }
            }
            match Constraint::new(&constraint.deny_patterns, paths) {
                Ok(compiled) => {
                    let mode = policy::mode(constraint.mode.unwrap_or(raw.mode));
                    constraints.push((constraint.tool.clone(), compiled.with_mode(mode)));
                }
                Err(bad) => {
                    let message = reason(&bad);
                    self.merged.problem_in(KEY, idx, "deny_patterns", &message);
                }
            }
        }
        let allowed = Some(raw.allowed_tools.clone()).filter(|some| !some.is_empty());
        if raw.enabled && allowed.is_some() && !raw.denied_tools.is_empty() {
            self.merged.warnings.push(
                "`tools.scoped.denied_tools` does not count while `tools.scoped.allowed_tools` names some"
                    .to_owned(),
            );
        }
        let scoped = Scoped::new(allowed, raw.denied_tools.clone(), constraints)
            .with_mode(policy::mode(raw.mode));
        raw.enabled.then_some(scoped)
    }

    /// Whether a table of a list was said by a project, and the folder of that project.
    fn project_of(&self, key: &str, idx: usize) -> Option<PathBuf> {
        let item = self.merged.entries.get(key)?.items.get(idx)?;
        match &item.origin {
            ValueOrigin::Project { path, .. } => Some(path.parent()?.parent()?.to_owned()),
            _ => None,
        }
    }
}

/// All rules, with those that only observe taken for rules that decide; none when none does.
fn trial(
    scoped: Option<&Scoped>,
    rules: Option<&PolicyRules>,
    permissions: &permission::PermissionSources,
) -> Option<Arc<Trial>> {
    let rules_on_trial = rules.and_then(PolicyRules::on_trial);
    let observes = rules_on_trial.is_some()
        || scoped.is_some_and(Scoped::observes)
        || permissions.on_trial.is_some();
    observes.then(|| {
        Arc::new(Trial {
            scoped: scoped.cloned(),
            rules: rules_on_trial.or_else(|| rules.cloned()),
            permissions: permissions
                .on_trial
                .clone()
                .unwrap_or_else(|| permissions.in_force.clone()),
        })
    })
}

/// When tools that fail are blocked.
pub(super) fn anomaly(raw: &RawAnomaly) -> Option<AnomalySettings> {
    raw.enabled.then_some(AnomalySettings {
        window_size: super::size(raw.window_size),
        failure_threshold: raw.failure_threshold,
        auto_block: raw.auto_block,
    })
}

fn scope(raw: &RawScope) -> Option<ToolScope> {
    let scope = ToolScope {
        run_as_user: Some(raw.run_as_user.clone()).filter(|user| !user.is_empty()),
        require_capability: raw.require_capability,
        audit_all_invocations: raw.audit_all_invocations,
    };
    raw.enabled.then_some(scope)
}

/// What is wrong with a rule, without the words around it.
fn reason(bad: &BadRule) -> String {
    // The expression library draws a picture over several lines; its last words say what is wrong.
    let reason = match bad.reason.starts_with("regex parse error") {
        true => bad.reason.rsplit("error: ").next().unwrap_or_default(),
        false => &bad.reason,
    };
    format!("`{}` does not compile: {reason}", bad.rule)
}

/// A directory as rules take it: resolved, as the paths of a call are.
fn text_of(directory: &Path) -> String {
    let resolved = spellings(directory).pop();
    resolved
        .as_deref()
        .unwrap_or(directory)
        .to_string_lossy()
        .into_owned()
}
