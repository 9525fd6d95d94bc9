//! Which rules act on a command, and why the others do not.

use zeph_core::command::CommandLine;

use crate::command::{Spoken, spoken};
use crate::load::Filters;
use crate::rule::{Miss, Origin, Rule};

/// What would happen to a command's output, for a person who asks.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Explanation {
    /// The command rules are matched against, in its plain spelling.
    pub command: Option<String>,
    /// The rules that act, in order.
    pub acting: Vec<String>,
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
        for (rule, reason) in &self.off {
            writeln!(f, "rule `{rule}` does not act: {reason}")?;
        }
        if self.acting.is_empty() && self.off.is_empty() && self.reason.is_none() {
            writeln!(f, "no rule is for this command")?;
        }
        Ok(())
    }
}

/// The rules that act on a command.
pub(crate) struct Chosen<'a> {
    pub(crate) spoken: Spoken<'a>,
    pub(crate) rules: Vec<&'a Rule>,
    off: Vec<(&'a Rule, String)>,
}

impl Filters {
    /// Tells which rules would act on the output of a command, and why others would not.
    pub fn why(&self, line: &CommandLine) -> Explanation {
        match self.choose(line) {
            Err(reason) => Explanation {
                command: None,
                acting: Vec::new(),
                off: Vec::new(),
                reason: Some(reason),
            },
            Ok(chosen) => Explanation {
                acting: chosen.rules.iter().map(|rule| rule.name.clone()).collect(),
                off: chosen
                    .off
                    .into_iter()
                    .map(|(rule, reason)| (rule.name.clone(), reason))
                    .collect(),
                command: Some(chosen.spoken.plain),
                reason: None,
            },
        }
    }

    pub(crate) fn choose<'a>(&'a self, line: &'a CommandLine) -> Result<Chosen<'a>, String> {
        let spoken = spoken(line)?;
        let mut chosen = Chosen {
            spoken,
            rules: Vec::new(),
            off: Vec::new(),
        };
        for rule in self.rules() {
            let is_owned = rule.origin == Origin::Builtin && chosen.has_user_rule();
            match rule.check(&chosen.spoken) {
                Ok(()) if is_owned => chosen
                    .off
                    .push((rule, "a rule of yours is for this command".to_owned())),
                Ok(()) => chosen.rules.push(rule),
                Err(Miss::Off(reason)) => chosen.off.push((rule, reason)),
                Err(Miss::Other) => {}
            }
        }
        Ok(chosen)
    }
}

impl Chosen<'_> {
    /// A user's rule that takes a built-in one's place is one of the set, not an owner of the command.
    fn has_user_rule(&self) -> bool {
        self.rules.iter().any(|rule| {
            matches!(rule.origin, Origin::User(_)) && !crate::builtin::is_name(&rule.name)
        })
    }
}
