//! Which rules act on a command, and why the others do not.

use zeph_core::command::CommandLine;
use zeph_strategies::{Input, Selection};

use crate::apply::{Foreign, TEXT_BYTES_MIN};
use crate::command::{Spoken, spoken};
use crate::load::{Filters, Place};
use crate::rule::{Miss, Origin, Rule};

/// What would happen to a command's output, for a person who asks.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Explanation {
    /// The command rules are matched against, in its plain spelling.
    pub command: Option<String>,
    /// The rules that act, in order.
    pub acting: Vec<String>,
    /// Rules for this command whose strategy cannot be used, and why. A built-in rule acts in their place when there is one.
    pub unable: Vec<(String, String)>,
    /// Rules for this command that do not act, and why.
    pub off: Vec<(String, String)>,
    /// Why none can act, whatever the rules say.
    pub reason: Option<String>,
}

impl std::fmt::Display for Explanation {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        if let Some(command) = &self.command {
            writeln!(f, "command: {command}")?;
        }
        if let Some(reason) = &self.reason {
            writeln!(f, "no rule acts: {reason}")?;
        }
        for rule in &self.acting {
            writeln!(f, "rule `{rule}` acts")?;
        }
        if !self.acting.is_empty() {
            writeln!(
                f,
                "outputs below {TEXT_BYTES_MIN} bytes are left as they are"
            )?;
        }
        for (rule, reason) in &self.unable {
            writeln!(f, "rule `{rule}` cannot act: {reason}")?;
        }
        for (rule, reason) in &self.off {
            writeln!(f, "rule `{rule}` does not act: {reason}")?;
        }
        let is_for_none = self.acting.is_empty() && self.unable.is_empty() && self.off.is_empty();
        if is_for_none && self.reason.is_none() {
            writeln!(f, "no rule is for this command")?;
        }
        Ok(())
    }
}

/// The rules that act on a command.
pub(crate) struct Chosen<'a> {
    pub(crate) spoken: Spoken<'a>,
    pub(crate) rules: Vec<&'a Rule>,
    /// Rules whose strategy cannot be used, and why.
    pub(crate) unable: Vec<(&'a Rule, String)>,
    off: Vec<(&'a Rule, String)>,
}

/// For where every strategy is taken to be usable.
struct AnyForeign;

impl Foreign for AnyForeign {
    fn apply(&self, _: &str, _: &str, _: &Input<'_>) -> Result<Selection, String> {
        Err("it is not there".to_owned())
    }
}

impl Filters {
    /// Tells which rules are for the output of a command, and why others would not act. Whether the strategies of plugins can be
    /// used is not looked at.
    pub fn why(&self, line: &CommandLine) -> Explanation {
        self.why_with(line, &AnyForeign)
    }

    /// Tells which rules would act on the output of a command with these strategies of plugins, and why others would not.
    pub fn why_with(&self, line: &CommandLine, foreign: &dyn Foreign) -> Explanation {
        let named = |rules: Vec<(&Rule, String)>| {
            let rules = rules.into_iter();
            rules
                .map(|(rule, reason)| (rule.name.clone(), reason))
                .collect()
        };
        match self.choose(line, foreign) {
            Err(reason) => Explanation {
                command: None,
                acting: Vec::new(),
                unable: Vec::new(),
                off: Vec::new(),
                reason: Some(reason),
            },
            Ok(chosen) => Explanation {
                acting: chosen.rules.iter().map(|rule| rule.name.clone()).collect(),
                unable: named(chosen.unable),
                off: named(chosen.off),
                command: Some(chosen.spoken.plain),
                reason: None,
            },
        }
    }

    pub(crate) fn choose<'a>(
        &'a self,
        line: &'a CommandLine,
        foreign: &dyn Foreign,
    ) -> Result<Chosen<'a>, String> {
        let mut chosen = Chosen {
            spoken: spoken(line)?,
            rules: Vec::new(),
            unable: Vec::new(),
            off: Vec::new(),
        };
        for rule in self.own() {
            chosen.consider(rule, None, foreign);
        }
        for place in self.places() {
            let rule = match place.over() {
                Some(rule) => Some(rule),
                None => place.builtin_for(&[&chosen.spoken.written, &chosen.spoken.plain]),
            };
            if let Some(rule) = rule {
                chosen.consider(rule, place.over().map(|_| place), foreign);
            }
        }
        Ok(chosen)
    }
}

impl<'a> Chosen<'a> {
    /// Whether a rule is for this command, though it may not be able to act.
    pub(crate) fn is_for_command(&self) -> bool {
        !self.rules.is_empty() || !self.unable.is_empty()
    }

    /// Adds a rule where it belongs. The built-in rule whose place it has acts when it cannot.
    fn consider(&mut self, rule: &'a Rule, place: Option<&'a Place>, foreign: &dyn Foreign) {
        let is_owned = rule.origin == Origin::Builtin && self.has_user_rule();
        match rule.check(&self.spoken) {
            Ok(()) if is_owned => {
                let reason = "a rule of yours is for this command".to_owned();
                self.off.push((rule, reason));
            }
            Ok(()) => match rule.problem(foreign) {
                None => self.rules.push(rule),
                Some(problem) => {
                    self.unable.push((rule, problem));
                    if let Some(replaced) = place.and_then(Place::builtin) {
                        self.consider(replaced, None, foreign);
                    }
                }
            },
            Err(Miss::Off(reason)) => self.off.push((rule, reason)),
            Err(Miss::Other) => {}
        }
    }

    /// A user's rule that takes a built-in one's place is one of the set, not an owner of the command.
    fn has_user_rule(&self) -> bool {
        self.rules.iter().any(|rule| {
            matches!(rule.origin, Origin::User(_)) && !crate::builtin::is_name(&rule.name)
        })
    }
}
