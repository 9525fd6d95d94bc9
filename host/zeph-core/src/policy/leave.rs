//! Changing what programs obey (`crate::obeyed`): it asks even where the tool may write, unless a rule spells the very name.
//!
//! What was approved is passed with the call to the file guard, which sees the objects that are really opened and refuses the rest.

use std::path::{Path, PathBuf};

use super::allow::{AllowRule, escape};
use super::pattern::Pattern;
use super::permission::PermissionSource;
use super::subject::RuleSubject;
use super::{Finding, Policy, SessionFacts, Verdict};
use crate::call::{ObeyedPath, ResolvedCall};
use crate::obeyed::{TOO_MANY, spells};

/// What a call may change of what programs obey. The default is nothing.
#[derive(Debug, Clone, Default)]
pub struct Leave {
    everything: bool,
    below: Vec<PathBuf>,
    objects: Vec<PathBuf>,
    rules: Vec<Pattern>,
}

impl Leave {
    /// Whether the object with the real path `path`, which is `name` of the list or inside of it, may be changed.
    pub fn covers(&self, path: &Path, name: &str) -> bool {
        if self.everything || self.below.iter().any(|agreed| path.starts_with(agreed)) {
            return true;
        }
        if self.objects.iter().any(|agreed| path == agreed) {
            return true;
        }
        let lower = lowered(path);
        // The directory that a rule begins in has to be made for the rule to mean anything.
        let fits = |rule: &&Pattern| rule.fits(&lower) || rule.lies_below(&lower);
        let mut rules = self.rules.iter().filter(fits);
        rules.any(|rule| rule.is_literal() || spells(&rule.text, name))
    }

    /// The single objects that a user approved.
    pub fn objects(&self) -> &[PathBuf] {
        &self.objects
    }

    /// What the rules of `policy` spell for the tool of a call, whatever it turns out to reach. `names` are those under which
    /// rules know it, in lower case.
    pub fn by_rules(policy: &Policy, names: &[String]) -> Self {
        let is_named = |rule: &&AllowRule| names.iter().any(|name| rule.names(name));
        let allow = policy.allow.iter().filter(is_named);
        let mut rules: Vec<Pattern> = allow.filter_map(|rule| rule.path().cloned()).collect();
        if let PermissionSource::Rules(permissions) = &policy.permissions {
            rules.extend(permissions.allowed_paths(names).cloned());
        }
        Self {
            rules,
            ..Self::default()
        }
    }

    /// Adds the paths of allow rules of `tools.policy`.
    pub(super) fn with_policy(
        mut self,
        policy: &Policy,
        facts: &SessionFacts<'_>,
        names: &[String],
    ) -> Self {
        let rules = policy.rules.iter();
        let allowed = rules.flat_map(|rules| rules.allowed_paths(names, facts));
        self.rules.extend(allowed.cloned());
        self
    }

    /// Adds single objects that a user approved for exactly this call, after the file guard had refused them.
    pub(super) fn of_objects(mut self, objects: &[PathBuf]) -> Self {
        self.objects.extend_from_slice(objects);
        self
    }

    /// Adds the paths that a call names, with everything below them, because rules spell them.
    pub(super) fn named(mut self, call: &ResolvedCall) -> Self {
        let named = call.files.obeyed.iter().map(|obeyed| obeyed.path.clone());
        self.below = named.collect();
        self
    }

    /// Adds what a user approved: all paths that a call names, or everything if it names none.
    pub(super) fn agreed(mut self, call: &ResolvedCall) -> Self {
        self.below.clone_from(&call.files.reach);
        self.everything = self.below.is_empty();
        self
    }
}

fn lowered(path: &Path) -> String {
    path.to_string_lossy().to_lowercase()
}

/// Asks when the call names something obeyed and no rule spells it.
pub(super) fn check(
    policy: &Policy,
    facts: &SessionFacts<'_>,
    subject: &RuleSubject<'_>,
) -> Finding {
    let call = subject.call;
    if call.files.obeyed.is_empty() || !call.can_change {
        return Finding::pass("nothing that programs obey");
    }
    let names = &subject.names;
    let rules = Leave::by_rules(policy, names).with_policy(policy, facts, names);
    let asks = |obeyed: &&ObeyedPath| !rules.covers(&obeyed.path, obeyed.name);
    let missing: Vec<&ObeyedPath> = call.files.obeyed.iter().filter(asks).collect();
    let Some(first) = missing.first() else {
        return Finding::pass("a rule names what programs obey");
    };
    let shown = crate::failure::one_line(&below(&first.path, &policy.directory), 200);
    let reason = match first.inside {
        true if first.name == TOO_MANY => {
            format!("`{shown}` holds {TOO_MANY} for what programs obey without asking")
        }
        true => format!(
            "`{shown}` holds `{}`, which programs obey without asking, and no rule names it",
            first.name
        ),
        false => format!(
            "`{shown}` is what programs obey without asking (`{}`), and no rule names it",
            first.name
        ),
    };
    let rules = missing.iter().map(|obeyed| {
        let path = escape(&below(&obeyed.path, &policy.directory));
        format!("{}:{path}", call.name())
    });
    Finding::new(Verdict::Ask, "built-in: what programs obey asks")
        .because(reason)
        .missing(rules.collect())
}

/// The path as a rule may spell it: relative where relative patterns start.
fn below(path: &Path, directory: &Path) -> String {
    let below = path.strip_prefix(directory).ok();
    let below = below.filter(|below| !below.as_os_str().is_empty());
    below.unwrap_or(path).to_string_lossy().into_owned()
}
