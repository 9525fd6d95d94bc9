//! Which tools there are at all, and what their arguments may be: `tools.scoped` and `tools.scope`.

use std::path::{Path, PathBuf};

use super::bad::BadRule;
use super::command::CommandPattern;
use super::facts::SessionFacts;
use super::mode::Mode;
use super::pattern::Pattern;
use super::reach::Reach;
use super::redirection::Write;
use super::subject::{LinePart, RuleSubject, Text, WRITER, tool_key};
use super::{Finding, Policy, Verdict};

mod shown;

pub use self::shown::{ShownConstraint, ShownScope};

/// `tools.scoped`.
#[derive(Debug, Clone)]
pub struct Scoped {
    tools: Tools,
    /// What `tools` does with a tool that is out of scope.
    mode: Mode,
    /// By the tools they are for, in alphabetical order.
    constraints: Vec<(ToolGlob, Constraint)>,
}

#[derive(Debug, Clone)]
enum Tools {
    Only(Vec<ToolGlob>),
    AllBut(Vec<ToolGlob>),
}

/// A tool, or the tools whose names a glob fits.
#[derive(Debug, Clone)]
pub(super) struct ToolGlob {
    /// As the key that rules know it by.
    text: String,
    /// `None` where the text is not a valid glob: it names one tool then.
    glob: Option<Pattern>,
}

impl ToolGlob {
    pub(super) fn new(text: &str) -> Self {
        let text = tool_key(text);
        let glob = Pattern::new(&text).ok();
        Self { text, glob }
    }

    pub(super) fn fits(&self, name: &str) -> bool {
        match &self.glob {
            Some(glob) => glob.fits(name),
            None => self.text == name,
        }
    }
}

impl Default for Scoped {
    /// Everything is in scope.
    fn default() -> Self {
        Self::new(None, Vec::new(), Vec::new())
    }
}

/// What the arguments of one tool may be.
#[derive(Debug, Clone)]
pub struct Constraint {
    deny: Vec<CommandPattern>,
    allowed_paths: Vec<PathBuf>,
    mode: Mode,
}

impl Constraint {
    /// Compiles the constraint of one tool.
    ///
    /// Shape: `deny_patterns` as for [`CommandPattern::new`]; for tools without a command each is a piece of an argument, with `*` or `?`
    /// a glob over a whole argument or the end of a path, or `re:` and an expression. `allowed_paths` are absolute and resolved; if there are none, paths do not matter.
    /// Errors: [`BadRule`] if a pattern is invalid or a path is relative.
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
            mode: Mode::Deny,
        })
    }

    /// The same with another way to treat what violates it.
    #[must_use]
    pub fn with_mode(self, mode: Mode) -> Self {
        Self { mode, ..self }
    }
}

impl Scoped {
    /// Puts the section together. If `allowed_tools` is set, `denied_tools` is ignored. Tools are named, or meant by a glob.
    pub fn new(
        allowed_tools: Option<Vec<String>>,
        denied_tools: Vec<String>,
        constraints: Vec<(String, Constraint)>,
    ) -> Self {
        let globs = |names: Vec<String>| names.iter().map(|name| ToolGlob::new(name)).collect();
        let constraints = constraints.into_iter();
        let constraints = constraints.map(|(tool, constraint)| (ToolGlob::new(&tool), constraint));
        let mut constraints: Vec<_> = constraints.collect();
        constraints.sort_by(|(one, _), (other, _)| one.text.cmp(&other.text));
        Self {
            tools: match allowed_tools {
                Some(allowed) => Tools::Only(globs(allowed)),
                None => Tools::AllBut(globs(denied_tools)),
            },
            mode: Mode::Deny,
            constraints,
        }
    }

    /// The same with another way to treat tools that are out of scope.
    #[must_use]
    pub fn with_mode(self, mode: Mode) -> Self {
        Self { mode, ..self }
    }

    /// The same without what only observes.
    #[must_use]
    pub fn in_force(&self) -> Self {
        let mut this = self.clone();
        this.constraints
            .retain(|(_, constraint)| constraint.mode != Mode::Observe);
        if this.mode == Mode::Observe {
            this.tools = Tools::AllBut(Vec::new());
        }
        this
    }

    /// Whether some of it only observes.
    pub fn observes(&self) -> bool {
        let mut constraints = self.constraints.iter();
        let observes = |(_, constraint): &(ToolGlob, Constraint)| constraint.mode == Mode::Observe;
        self.mode == Mode::Observe || constraints.any(observes)
    }

    /// Whether models are not told of the tool, because nothing of it can run.
    pub(super) fn conceals(&self, names: &[String]) -> bool {
        self.mode == Mode::Deny && self.hides(names)
    }

    /// Whether the tool is out of scope.
    pub(super) fn hides(&self, names: &[String]) -> bool {
        let has = |tools: &[ToolGlob]| {
            let mut tools = tools.iter();
            tools.any(|tool| names.iter().any(|name| tool.fits(name)))
        };
        match &self.tools {
            Tools::Only(tools) => !has(tools),
            Tools::AllBut(tools) => has(tools),
        }
    }

    /// Every tool that is named, with the key that names it.
    pub(super) fn names(&self) -> impl Iterator<Item = (&'static str, &str)> {
        let (key, tools) = match &self.tools {
            Tools::Only(tools) => ("tools.scoped.allowed_tools", tools),
            Tools::AllBut(tools) => ("tools.scoped.denied_tools", tools),
        };
        let mut constrained: Vec<&str> = self
            .constraints
            .iter()
            .map(|(tool, _)| tool.text.as_str())
            .collect();
        constrained.dedup();
        let constrained = constrained.into_iter();
        let constrained = constrained.map(|tool| ("tools.scoped.constraints", tool));
        let listed = tools.iter().map(move |tool| (key, tool.text.as_str()));
        listed.chain(constrained)
    }

    /// Whether a constraint looks at paths.
    pub(super) fn looks_at_paths(&self) -> bool {
        !self.constraints.is_empty()
    }

    /// Whether the tool is in scope and its arguments are within its constraints.
    pub(super) fn check(&self, policy: &Policy, subject: &RuleSubject<'_>) -> Finding {
        if self.hides(&subject.names) {
            let (key, reason) = match self.tools {
                Tools::Only(_) => ("tools.scoped.allowed_tools", "does not name"),
                Tools::AllBut(_) => ("tools.scoped.denied_tools", "names"),
            };
            let reason = format!("`{key}` {reason} `{}`", subject.call.name());
            return Finding::new(verdict(self.mode), key.to_owned()).because(reason);
        }
        let names: Vec<&str> = subject.names.iter().map(String::as_str).collect();
        let own = self.constraints_of(&names);
        let own = own.filter_map(|constraint| {
            Some((constraint.mode, constraint.violated(policy, subject)?))
        });
        let violated: Vec<_> = own.chain(self.violating_writes(subject)).collect();
        let denied = violated.iter().find(|(mode, _)| *mode != Mode::Ask);
        match denied.or(violated.first()) {
            Some((mode, reason)) => {
                Finding::new(verdict(*mode), "tools.scoped.constraints".to_owned())
                    .because(format!("{reason} (`tools.scoped.constraints`)"))
                    .approvable()
            }
            None => Finding::pass("in scope"),
        }
    }
}

/// What is said of a call that a part of the section is against. What observes does not decide; on trial it denies.
fn verdict(mode: Mode) -> Verdict {
    match mode {
        Mode::Ask => Verdict::Ask,
        Mode::Observe | Mode::Deny => Verdict::Deny,
    }
}

impl Scoped {
    fn constraints_of(&self, names: &[&str]) -> impl Iterator<Item = &Constraint> {
        let own = self.constraints.iter().filter(|(tool, _)| {
            let mut names = names.iter();
            names.any(|name| tool.fits(name))
        });
        own.map(|(_, constraint)| constraint)
    }

    /// The redirections that constraints of `write` are against, in words.
    fn violating_writes(&self, subject: &RuleSubject<'_>) -> Vec<(Mode, String)> {
        let writes = subject.line.iter().flat_map(|line| &line.writes);
        let violated = writes.flat_map(|write| {
            let reach = Reach::of_write(write);
            let constraints = self.constraints_of(&WRITER);
            let violated = constraints.filter_map(|constraint| {
                let denied = constraint.denied_write(write);
                denied.or_else(|| Some((constraint.mode, constraint.outside(&reach)?)))
            });
            violated.collect::<Vec<_>>()
        });
        violated.collect()
    }
}

impl Constraint {
    /// The path that is not within the allowed ones, in words.
    fn outside(&self, reach: &Reach) -> Option<String> {
        if self.allowed_paths.is_empty() {
            return None;
        }
        let is_allowed = |path: &Path| {
            let mut allowed = self.allowed_paths.iter();
            // What a device keeps is nothing.
            path == Path::new("/dev/null") || allowed.any(|allowed| path.starts_with(allowed))
        };
        let paths = reach.paths.iter().map(|path| path.given.as_str());
        let outside: Vec<&str> = paths.filter(|path| !is_allowed(Path::new(path))).collect();
        let is_place = |path: &&&str| reach.directories.iter().any(|place| place == **path);
        // What a command names says more than where it works.
        let named = outside.iter().find(|path| !is_place(path));
        let outside = named.or(outside.first()).copied();
        let unknown = || reach.unknown.first().map(|doubt| doubt.word.as_str());
        let what = outside.or_else(unknown)?;
        let shown = crate::failure::one_line(what, 200);
        Some(match outside {
            Some(_) if named.is_none() && !reach.directories.is_empty() => format!(
                "the command works in `{shown}`, outside the allowed paths, and may reach all that lies there without naming it"
            ),
            Some(_) => format!("`{shown}` is outside the allowed paths"),
            None => format!("`{shown}` may be outside the allowed paths"),
        })
    }

    /// Which denied pattern a redirection matches, in words. One to a file that is not known may match each: it asks.
    fn denied_write(&self, write: &Write<'_>) -> Option<(Mode, String)> {
        let Some(places) = &write.places else {
            let pattern = self.deny.first()?;
            let mode = match self.mode {
                Mode::Deny => Mode::Ask,
                other => other,
            };
            let (shown, pattern) = (write.shown(), pattern.text());
            return Some((
                mode,
                format!("`{shown}` may match the denied pattern `{pattern}`"),
            ));
        };
        let target = write.redirection.target.clone().map(Text::new);
        let fits = |pattern: &&CommandPattern| {
            let mut texts = places.iter().chain(&target);
            texts.any(|text| pattern.fits_text(&text.given, &text.lower))
        };
        let pattern = self.deny.iter().find(fits)?.text();
        let shown = write.shown();
        Some((
            self.mode,
            format!("`{shown}` matches the denied pattern `{pattern}`"),
        ))
    }

    /// Which of it the call violates, in words.
    fn violated(&self, policy: &Policy, subject: &RuleSubject<'_>) -> Option<String> {
        let pattern = self.deny.iter().find(|pattern| match &subject.line {
            Some(line) => {
                let fits = |part: &LinePart<'_>| {
                    pattern.fits_part(line, part) || pattern.may_fit_part(line, part)
                };
                pattern.fits_whole(line) || line.parts.iter().any(fits)
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
        let mut reach = Reach::of(subject);
        // What names no path works where relative paths start.
        if reach.paths.is_empty() && reach.unknown.is_empty() {
            reach.paths.push(Text::of_path(&policy.directory));
        }
        self.outside(&reach)
    }
}

/// `tools.scope`.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct ToolScope {
    /// The user tools run as; `None` is the host's own.
    pub run_as_user: Option<String>,
    /// Nothing runs by default: even a tool that only reads needs a rule or a person that allows it.
    pub require_capability: bool,
    /// Every call is written to the log. The authoriser has no part in it.
    pub audit_all_invocations: bool,
}

impl ToolScope {
    /// The user tools must run as, if they must.
    pub fn user(&self) -> Option<&str> {
        self.run_as_user.as_deref()
    }

    /// Whether tools can run as the user they must run as.
    pub(super) fn check(&self, facts: &SessionFacts<'_>) -> Finding {
        match self.run_as_user.as_deref() {
            None => Finding::pass("runs as the user of the host"),
            Some(user) if facts.user == Some(user) => {
                Finding::pass(&format!("runs as `{user}` (tools.scope.run_as_user)"))
            }
            Some(user) => {
                // A host becomes that user for tools when it starts, or does not start: this is the wall behind that.
                let how = match facts.is_root {
                    true => format!("start it with `sudo -u {user} -H zeph-host …`"),
                    false => format!(
                        "only root can start it as that user: `sudo -u {user} -H zeph-host …`"
                    ),
                };
                let reason = format!(
                    "tools must run as `{user}` (`tools.scope.run_as_user`), and this host runs as another user; {how}"
                );
                Finding::new(Verdict::Deny, "tools.scope.run_as_user".to_owned()).because(reason)
            }
        }
    }
}
