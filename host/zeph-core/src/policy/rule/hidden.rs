//! Paths that rules hide from tools that do not name them: a search in a parent directory, a glob, a command.

use std::path::{Path, PathBuf};

use super::matches::Matches;
use super::{PolicyRule, PolicyRules};
use crate::policy::Verdict;
use crate::policy::facts::SessionFacts;
use crate::policy::pattern::SPECIAL;
use crate::policy::subject::{RuleSubject, SHELL};

/// What the denied paths come to for commands, which the jail alone can hide something from.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Hidden {
    /// Files and folders no command may see, absolute.
    pub paths: Vec<PathBuf>,
    /// Rules that only the words of a command are held against, each with the reason why its paths cannot be hidden.
    pub words_only: Vec<(String, &'static str)>,
}

/// Paths and whether they are hidden. Of several layers the first that holds a path decides.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub struct PathLayer {
    /// Whether what it holds is as if it were not there.
    pub hides: bool,
    /// Globs over absolute, resolved paths, without regard to case; `*` is any text, `/` included.
    pub globs: Vec<String>,
}

impl PolicyRules {
    /// Paths that are hidden from every command.
    pub fn hidden_from_commands(&self) -> Hidden {
        let mut hidden = Hidden::default();
        // A folder that is hidden has no exceptions.
        let mut has_exceptions = false;
        for (name, rule, _) in self.numbered() {
            if !rule.tool.fits(SHELL) {
                continue;
            }
            if rule.says() != Verdict::Deny {
                if rule.is_always() && rule.paths.is_empty() {
                    break;
                }
                has_exceptions = true;
                continue;
            }
            let is_whole = |tree: &&PathBuf| !rule.has_exception_in(tree);
            let trees = rule.trees.iter().flatten().filter(is_whole).cloned();
            let reason = match rule.trees.iter().all(Option::is_some) {
                _ if rule.trees.is_empty() => None,
                _ if !rule.is_always() => Some("the rule has other conditions"),
                _ if has_exceptions => Some("a rule before it makes exceptions"),
                true if rule.trees.iter().flatten().any(|tree| !is_whole(&tree)) => {
                    Some("`tools.file.allow_read` makes exceptions")
                }
                false => Some("a pattern is not one file or directory"),
                true => None,
            };
            if rule.is_always() && !has_exceptions {
                hidden.paths.extend(trees);
            }
            hidden
                .words_only
                .extend(reason.map(|reason| (name(), reason)));
        }
        hidden
    }

    /// The rules over paths for a call of `subject`, as layers; empty when nothing is hidden.
    pub(in crate::policy) fn layers(
        &self,
        subject: &RuleSubject<'_>,
        facts: &SessionFacts<'_>,
    ) -> Vec<PathLayer> {
        let matches = Matches::of(&self.expressions, subject);
        let mut layers = Vec::new();
        let mut is_closed = self.default_verdict() == Verdict::Deny;
        for (_, rule, expression) in self.numbered() {
            let is_meant = rule.is_for(&subject.names, facts)
                && expression.is_none_or(|at| matches.fit(rule.effect, at));
            if !is_meant {
                continue;
            }
            if rule.paths.is_empty() {
                // Whatever no rule before holds is decided here.
                is_closed = rule.says() == Verdict::Deny;
                break;
            }
            layers.push(PathLayer {
                hides: rule.says() == Verdict::Deny,
                globs: rule.paths.iter().map(|path| path.matched()).collect(),
            });
        }
        // Where rules name no path, there is nothing to go round.
        let names_paths = !layers.is_empty();
        if is_closed && names_paths {
            layers.push(PathLayer {
                hides: true,
                globs: vec!["*".to_owned()],
            });
        }
        layers.truncate(
            layers
                .iter()
                .rposition(|layer| layer.hides)
                .map_or(0, |last| last + 1),
        );
        layers
    }
}

impl PolicyRule {
    /// Whether it depends on nothing but tool and paths.
    fn is_always(&self) -> bool {
        self.env.is_empty() && self.trust_level.is_none() && self.args_match.is_none()
    }

    /// Whether something in `tree` may be an exception, or all of it.
    fn has_exception_in(&self, tree: &Path) -> bool {
        let lower = tree.to_string_lossy().to_lowercase();
        self.except.iter().any(|glob| {
            let fixed = &glob[..glob.find(SPECIAL).unwrap_or(glob.len())];
            let fixed = fixed.to_lowercase();
            fixed.starts_with(&lower) || lower.starts_with(&fixed)
        })
    }
}
