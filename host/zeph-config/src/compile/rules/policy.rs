//! `[tools.policy]` and `[tools.authorization]`, with the denying rules of projects before them.

use std::path::Path;

use globset::GlobBuilder;
use zeph_core::failure::one_line;
use zeph_core::policy::{BadRule, Effect, Mode, PolicyRule, PolicyRuleText, TrustLevel, tool_key};

use super::super::super::raw::{RawEffect, RawFile, RawMode, RawRule, RawTools, RawTrust};
use super::super::Compiling;
use super::{DENY_READ, reason, text_of};
use crate::paths::unbraced;

const POLICY: &str = "tools.policy.rules";
const AUTHORIZATION: &str = "tools.authorization.rules";

/// A section of rules: its name in traces and what it says.
type Section = (String, Vec<PolicyRule>);

impl Compiling<'_> {
    /// The sections that count, in the order they are asked, and the variables their rules ask for.
    pub(super) fn sections(
        &mut self,
        raw: &RawTools,
        policy_file: Option<&Path>,
    ) -> (Vec<Section>, Vec<String>) {
        let mut variables = Vec::new();
        let mut of_projects = self.project_permissions(raw);
        let section = raw.policy.mode;
        let policy = (POLICY, section, raw.policy.rules.as_slice());
        let policy = self.split(policy, &mut of_projects, &mut variables);
        let more = self.split(
            (AUTHORIZATION, RawMode::Deny, &raw.authorization.rules),
            &mut of_projects,
            &mut variables,
        );
        let of_file = policy_file.map(|file| self.rules_of_file(file, section, &mut variables));
        if of_file.is_some() && !policy.is_empty() {
            self.merged.warnings.push(
                "`tools.policy.rules` does not count, because `tools.policy.policy_file` takes its place".to_owned(),
            );
        }
        let of_files = self.hiding(&raw.file);
        let sections = [
            (!of_files.is_empty(), DENY_READ, of_files),
            (!of_projects.is_empty(), "rules of the project", of_projects),
            (
                raw.policy.enabled,
                "tools.policy",
                of_file.unwrap_or(policy),
            ),
            (raw.authorization.enabled, "tools.authorization", more),
        ];
        let sections = sections
            .into_iter()
            .filter_map(|(counts, name, rules)| counts.then(|| (name.to_owned(), rules)));
        variables.sort();
        variables.dedup();
        (sections.collect(), variables)
    }

    /// What `tools.file.deny_read` hides, as a rule about commands: the guard of files does not see what they open.
    fn hiding(&mut self, raw: &RawFile) -> Vec<PolicyRule> {
        // What is wrong with a pattern is said where the file tools get it.
        let base = self.base();
        let globs = raw.deny_read.iter().filter_map(|text| base.deny(text).ok());
        let globs: Vec<String> = globs.flatten().collect();
        if globs.is_empty() {
            return Vec::new();
        }
        let except = raw
            .allow_read
            .iter()
            .filter_map(|text| base.allow(text).ok());
        let except: Vec<String> = except.collect();
        let rule = self.sound(DENY_READ, PolicyRule::hiding(DENY_READ, &globs, &except));
        rule.into_iter().collect()
    }

    /// What happens to a call no rule matches. It belongs to `tools.policy`: other rules decide only what they match.
    pub(super) fn default_effect(&self, raw: &RawTools) -> Effect {
        match raw.policy.enabled {
            true => effect(raw.policy.default_effect),
            false => Effect::Allow,
        }
    }

    /// Compiles a list; what projects said goes to `of_projects`, the rest comes back.
    fn split(
        &mut self,
        (key, section, raw): (&str, RawMode, &[RawRule]),
        of_projects: &mut Vec<PolicyRule>,
        variables: &mut Vec<String>,
    ) -> Vec<PolicyRule> {
        let mut rules = Vec::new();
        for (idx, rule) in raw.iter().enumerate() {
            let project = self.project_of(key, idx);
            let directory = project.as_deref();
            let directory = text_of(directory.unwrap_or(&self.surroundings.working_directory));
            variables.extend_from_slice(&rule.env);
            if !rule.capabilities.is_empty() {
                self.merged.warnings.push(format!(
                    "`{key}[{idx}].capabilities` is reserved: the rule is applied as if it were not there"
                ));
            }
            let section = match project {
                Some(_) => RawMode::Deny,
                None => section,
            };
            match self.rule(rule, section, &directory) {
                Ok(compiled) if project.is_some() => of_projects.push(compiled),
                Ok(compiled) => rules.push(compiled),
                Err((field, message)) => self.merged.problem_in(key, idx, field, &message),
            }
        }
        rules
    }

    /// One rule, compiled; `section` is the mode of the section, which is that of rules without their own.
    ///
    /// Errors: the field and what is wrong with it.
    pub(super) fn rule(
        &self,
        raw: &RawRule,
        section: RawMode,
        directory: &str,
    ) -> Result<PolicyRule, (&'static str, String)> {
        let mode = rule_mode(raw, section).map_err(|message| ("mode", message.to_owned()))?;
        let mut paths = Vec::new();
        for glob in &raw.paths {
            paths.extend(
                self.path_globs(glob, raw.effect)
                    .map_err(|message| ("paths", message))?,
            );
        }
        let expression = Some(raw.args_match.clone()).filter(|text| !text.is_empty());
        let text = PolicyRuleText {
            effect: effect(raw.effect),
            tool: raw.tool.clone(),
            paths,
            env: raw.env.clone(),
            trust_level: raw.trust_level.map(trust),
            args_match: expression.clone(),
            capabilities: raw.capabilities.clone(),
            mode,
        };
        PolicyRule::new(&text, directory).map_err(|bad| {
            let field = if expression.is_some_and(|text| reads_as(&text, &bad)) {
                "args_match"
            } else if reads_as(&raw.tool, &bad) {
                "tool"
            } else {
                "paths"
            };
            (field, reason(&bad))
        })
    }

    /// The globs of a pattern over paths. Calls are matched by resolved paths: a denied path counts in all its spellings, an allowed one only
    /// as it is written, so that no symlink widens it.
    fn path_globs(&self, text: &str, said: RawEffect) -> Result<Vec<String>, String> {
        let mut globs = Vec::new();
        for text in unbraced(text)? {
            match (said, text.starts_with(['/', '~'])) {
                (_, false) => globs.push(text),
                // What names everything has one spelling.
                _ if text == "/*" || text == "/**" => globs.push(text),
                (RawEffect::Deny, true) => globs.extend(self.base().deny(&text)?),
                (RawEffect::Allow, true) => globs.push(self.base().allow(&text)?),
            }
        }
        Ok(globs)
    }
}

/// A permission of a project that denies, as rules of a policy: over texts and, where there is no command, over paths.
pub(super) fn denying(
    tool: &str,
    pattern: &str,
    directory: &str,
) -> Vec<Result<PolicyRule, BadRule>> {
    let rule = |paths: Vec<String>, args_match: Option<String>| {
        let text = PolicyRuleText {
            effect: Effect::Deny,
            tool: tool.to_owned(),
            paths,
            env: Vec::new(),
            trust_level: None,
            args_match,
            capabilities: Vec::new(),
            mode: None,
        };
        PolicyRule::new(&text, directory)
    };
    if pattern == "*" {
        return vec![rule(Vec::new(), None)];
    }
    let over_texts = |pattern| expression(pattern).and_then(|regex| rule(Vec::new(), Some(regex)));
    // `rm *` is `rm` too.
    let bare = pattern.strip_suffix(" *").filter(|_| is_shell(tool));
    let mut rules = vec![over_texts(pattern)];
    rules.extend(bare.map(over_texts));
    if !is_shell(tool) {
        rules.push(rule(vec![pattern.to_owned()], None));
    }
    rules
}

/// Whether rules mean the shell by this name.
pub(super) fn is_shell(tool: &str) -> bool {
    tool_key(tool) == "bash"
}

/// A glob as a regular expression over text.
fn expression(pattern: &str) -> Result<String, BadRule> {
    let bad = |reason: String| BadRule {
        rule: one_line(pattern, 200),
        reason,
    };
    if pattern.trim().is_empty() {
        return Err(bad("an empty pattern matches nothing".to_owned()));
    }
    // The glob library writes other letters byte by byte, which an expression over text does not understand.
    if !pattern.is_ascii() {
        return Err(bad("a pattern of a project has to be ASCII".to_owned()));
    }
    let glob = GlobBuilder::new(pattern)
        .build()
        .map_err(|error| bad(error.kind().to_string()))?;
    Ok(format!("(?i){}", glob.regex().replacen("(?-u)", "(?s)", 1)))
}

fn reads_as(text: &str, bad: &BadRule) -> bool {
    one_line(text, 200).eq_ignore_ascii_case(&bad.rule)
}

fn effect(raw: RawEffect) -> Effect {
    match raw {
        RawEffect::Allow => Effect::Allow,
        RawEffect::Deny => Effect::Deny,
    }
}

/// What a rule does with a call it matches.
///
/// Errors: what is wrong with its mode.
fn rule_mode(raw: &RawRule, section: RawMode) -> Result<Option<Mode>, &'static str> {
    match (raw.effect, raw.mode, section) {
        (_, Some(RawMode::Observe), _) | (_, None, RawMode::Observe) => Ok(Some(Mode::Observe)),
        (RawEffect::Allow, None, RawMode::Ask | RawMode::Deny) => Ok(None),
        (RawEffect::Allow, Some(RawMode::Ask | RawMode::Deny), _) => {
            Err("a rule that allows can only have the mode \"observe\"")
        }
        (RawEffect::Deny, own, section) => Ok(Some(mode(own.unwrap_or(section)))),
    }
}

pub(super) fn mode(raw: RawMode) -> Mode {
    match raw {
        RawMode::Observe => Mode::Observe,
        RawMode::Ask => Mode::Ask,
        RawMode::Deny => Mode::Deny,
    }
}

fn trust(raw: RawTrust) -> TrustLevel {
    match raw {
        RawTrust::Trusted => TrustLevel::Trusted,
        RawTrust::Verified => TrustLevel::Verified,
        RawTrust::Quarantined => TrustLevel::Quarantined,
        RawTrust::Blocked => TrustLevel::Blocked,
    }
}
