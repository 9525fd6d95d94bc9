//! Which tools there are at all, and what their arguments may be: `tools.scoped` and `tools.scope`.

use std::collections::BTreeMap;
use std::path::PathBuf;

use super::bad::BadRule;
use super::command::CommandPattern;
use super::facts::SessionFacts;
use super::subject::{Subject, tool_key};
use super::{Finding, Policy, Verdict};

/// `tools.scoped`.
#[derive(Debug, Clone, Default)]
pub struct Scoped {
    tools: Tools,
    constraints: BTreeMap<String, Vec<Constraint>>,
}

#[derive(Debug, Clone)]
enum Tools {
    Only(Vec<String>),
    AllBut(Vec<String>),
}

impl Default for Tools {
    fn default() -> Self {
        Self::AllBut(Vec::new())
    }
}

/// What the arguments of one tool may be.
#[derive(Debug, Clone)]
pub struct Constraint {
    deny: Vec<CommandPattern>,
    allowed_paths: Vec<PathBuf>,
}

impl Constraint {
    /// Compiles one.
    ///
    /// Shape: `deny_patterns` as for [`CommandPattern::new`]; for tools without a command each is a piece of an argument, or `re:` and
    /// an expression. `allowed_paths` are absolute and resolved; none means that paths do not matter.
    pub fn new(deny_patterns: &[String], allowed_paths: Vec<PathBuf>) -> Result<Self, BadRule> {
        if let Some(path) = allowed_paths.iter().find(|path| !path.is_absolute()) {
            return Err(BadRule::new(
                &path.to_string_lossy(),
                "an allowed path must be absolute",
            ));
        }
        let deny = deny_patterns.iter().map(|text| CommandPattern::new(text));
        Ok(Self {
            deny: deny.collect::<Result<_, _>>()?,
            allowed_paths,
        })
    }
}

impl Scoped {
    /// Puts the section together. When `allowed_tools` is said, `denied_tools` does not count.
    pub fn new(
        allowed_tools: Option<Vec<String>>,
        denied_tools: Vec<String>,
        constraints: Vec<(String, Constraint)>,
    ) -> Self {
        let keys = |names: Vec<String>| names.iter().map(|name| tool_key(name)).collect();
        let mut this = Self {
            tools: match allowed_tools {
                Some(allowed) => Tools::Only(keys(allowed)),
                None => Tools::AllBut(keys(denied_tools)),
            },
            constraints: BTreeMap::new(),
        };
        for (tool, constraint) in constraints {
            let known = this.constraints.entry(tool_key(&tool)).or_default();
            known.push(constraint);
        }
        this
    }

    /// Whether the tool is out of scope.
    pub(super) fn hides(&self, tool: &str) -> bool {
        match &self.tools {
            Tools::Only(tools) => !tools.iter().any(|known| known == tool),
            Tools::AllBut(tools) => tools.iter().any(|known| known == tool),
        }
    }

    /// Whether a constraint looks at paths.
    pub(super) fn looks_at_paths(&self) -> bool {
        !self.constraints.is_empty()
    }

    /// Whether the tool is in scope and its arguments are within its constraints.
    pub(super) fn check(&self, policy: &Policy, subject: &Subject<'_>) -> Finding {
        if self.hides(&subject.tool) {
            let (key, reason) = match self.tools {
                Tools::Only(_) => ("tools.scoped.allowed_tools", "does not name"),
                Tools::AllBut(_) => ("tools.scoped.denied_tools", "names"),
            };
            let reason = format!("`{key}` {reason} `{}`", subject.call.name());
            return Finding::new(Verdict::Deny, key.to_owned()).because(reason);
        }
        let constraints = self.constraints.get(&subject.tool);
        let mut constraints = constraints.into_iter().flatten();
        let found = constraints.find_map(|constraint| constraint.violated(policy, subject));
        match found {
            Some(reason) => Finding::new(Verdict::Deny, "tools.scoped.constraints".to_owned())
                .because(format!("{reason} (`tools.scoped.constraints`)"))
                .approvable(),
            None => Finding::pass("in scope"),
        }
    }
}

impl Constraint {
    /// Which of it the call violates, in words.
    fn violated(&self, policy: &Policy, subject: &Subject<'_>) -> Option<String> {
        let pattern = self.deny.iter().find(|pattern| match &subject.line {
            Some(line) => {
                pattern.fits_whole(line) || line.parts.iter().any(|part| pattern.fits_part(part))
            }
            None => {
                let texts = subject.texts.iter().chain(&subject.paths);
                let mut texts = texts.chain(&subject.strings);
                texts.any(|text| pattern.fits_text(&text.given, &text.lower))
            }
        });
        if let Some(pattern) = pattern {
            return Some(format!(
                "it matches the denied pattern `{}`",
                pattern.text()
            ));
        }
        if self.allowed_paths.is_empty() {
            return None;
        }
        // What names no path works where relative paths start.
        let here = [policy.directory.clone()];
        let paths = match subject.call.paths.as_slice() {
            [] => &here[..],
            paths => paths,
        };
        let is_allowed = |path: &PathBuf| {
            self.allowed_paths
                .iter()
                .any(|allowed| path.starts_with(allowed))
        };
        let outside = paths.iter().find(|path| !is_allowed(path))?;
        let shown = crate::failure::one_line(&outside.to_string_lossy(), 200);
        Some(format!("`{shown}` is outside the allowed paths"))
    }
}

/// `tools.scope`.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Scope {
    /// The user tools run as; `None` is the host's own.
    pub run_as_user: Option<String>,
    /// Nothing runs by default: even a tool that only reads needs a rule or a person that allows it.
    pub require_capability: bool,
    /// Every call is written to the log. The authoriser has no part in it.
    pub audit_all_invocations: bool,
}

impl Scope {
    /// Whether tools can run as the user they must run as.
    pub(super) fn check(&self, facts: &SessionFacts<'_>) -> Finding {
        match self.run_as_user.as_deref() {
            None => Finding::pass("any user"),
            Some(user) if facts.user == Some(user) => Finding::pass("the right user"),
            Some(user) => {
                // Changing users within a process that has read files and opened a database as another is no wall.
                let how = match facts.is_root {
                    true => format!("start it with `sudo -u {user} -H zeph-host …`"),
                    false => format!(
                        "only root can start it as that user: `sudo -u {user} -H zeph-host …`"
                    ),
                };
                let reason = format!(
                    "tools must run as `{user}` (`tools.scope.run_as_user`), and this host runs as somebody else; {how}"
                );
                Finding::new(Verdict::Deny, "tools.scope.run_as_user".to_owned()).because(reason)
            }
        }
    }
}
