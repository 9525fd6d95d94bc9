//! What one check found.

use super::Verdict;

/// What one check found.
#[derive(Debug)]
pub(super) struct Finding {
    pub(super) verdict: Verdict,
    pub(super) rule: Option<String>,
    pub(super) detail: String,
    pub(super) can_be_approved: bool,
    /// Rules for `--allow` that would turn it.
    pub(super) allow: Vec<String>,
    /// What it would have said if it did more than observe.
    pub(super) would: Option<Verdict>,
}

impl Finding {
    pub(super) fn new(verdict: Verdict, rule: impl Into<String>) -> Self {
        let rule = rule.into();
        Self {
            verdict,
            detail: format!("{rule} matches"),
            rule: Some(rule),
            can_be_approved: verdict == Verdict::Ask,
            allow: Vec::new(),
            would: None,
        }
    }

    pub(super) fn pass(detail: &str) -> Self {
        Self {
            verdict: Verdict::Pass,
            rule: None,
            detail: detail.to_owned(),
            can_be_approved: false,
            allow: Vec::new(),
            would: None,
        }
    }

    pub(super) fn because(mut self, reason: impl Into<String>) -> Self {
        self.detail = reason.into();
        self
    }

    pub(super) fn by(mut self, rule: String) -> Self {
        self.rule = Some(rule);
        self
    }

    pub(super) fn observing(mut self, would: Verdict) -> Self {
        self.would = Some(would);
        self
    }

    pub(super) fn approvable(mut self) -> Self {
        self.can_be_approved = true;
        self
    }

    pub(super) fn missing(mut self, rules: Vec<String>) -> Self {
        self.allow = rules;
        self
    }
}
