//! What the rules say of a call, once the first that matches is found.

use crate::policy::{Finding, Verdict};

/// What the first rule that matches says.
#[derive(Debug, Default)]
pub(super) struct RuleMatch {
    pub(super) decided: Option<(Verdict, String)>,
    /// The first rule before it that might match, and the word it depends on.
    pub(super) doubt: Option<(String, String)>,
}

impl RuleMatch {
    pub(super) fn says(&self, verdict: Verdict) -> bool {
        let decided = self.decided.as_ref();
        self.doubt.is_none() && decided.is_some_and(|(decided, _)| *decided == verdict)
    }

    pub(super) fn denial(&self) -> Option<Finding> {
        let (_, rule) = self
            .decided
            .as_ref()
            .filter(|(verdict, _)| *verdict == Verdict::Deny)?;
        let reason = format!("{rule} forbids it");
        Some(Finding::new(Verdict::Deny, rule.clone()).because(reason))
    }

    /// A refusal that depends on what is not known, or a rule that asks.
    pub(super) fn question(&self) -> Option<Finding> {
        let Some((rule, word)) = self.doubt.as_ref() else {
            let decided = self.decided.as_ref();
            let (_, rule) = decided.filter(|(verdict, _)| *verdict == Verdict::Ask)?;
            let reason = format!("{rule} needs approval (`mode = \"ask\"`)");
            return Some(Finding::new(Verdict::Ask, rule.clone()).because(reason));
        };
        let reason =
            format!("{rule} may forbid it: what {word} becomes is known only when it runs");
        Some(Finding::new(Verdict::Ask, rule.clone()).because(reason))
    }

    /// What is left when nothing refuses and nothing is in doubt.
    pub(super) fn rest(&self) -> Finding {
        match &self.decided {
            Some((_, rule)) => Finding::new(Verdict::Allow, rule.clone()),
            None => Finding::pass("no rule matches"),
        }
    }
}
