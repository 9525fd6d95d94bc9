//! Grants that do not simply allow: what a call holds only when a person agrees, and what it holds on trial.
//!
//! A grant with the mode `deny` is never held, so no call knows of it.

use super::finding::Finding;
use super::{Mode, Observed, Verdict};
use crate::failure::one_line;

/// Most grants that one refusal names.
const NAMED_MAX: usize = 4;

/// The grants of a call that do not simply allow, in words such as `host example.org`.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct GrantModes {
    /// Those for which a person has to agree.
    pub asked: Vec<String>,
    /// Those on trial: held, and recorded as what would be refused without them.
    pub observed: Vec<String>,
    /// All that it holds, for the trace of a call that is explained; no decision looks at it.
    pub held: Vec<String>,
}

impl GrantModes {
    /// Every grant allows.
    pub const NONE: Self = Self {
        asked: Vec::new(),
        observed: Vec::new(),
        held: Vec::new(),
    };

    /// Adds a grant with a mode; one that denies is not held.
    pub fn add(&mut self, mode: Mode, capability: String) {
        match mode {
            Mode::Ask => self.asked.push(capability),
            Mode::Observe => self.observed.push(capability),
            Mode::Deny => {}
        }
    }
}

/// Asks when the call holds what a person has to agree to.
pub(super) fn check(grants: &GrantModes) -> Finding {
    if grants.asked.is_empty() {
        return match grants.held.is_empty() {
            true => Finding::pass("no grant asks"),
            false => Finding::pass(&format!("it holds {}; no grant asks", list(&grants.held))),
        };
    }
    let reason = format!(
        "its plugin holds {}, whose grant has `mode = \"ask\"`",
        list(&grants.asked)
    );
    Finding::new(Verdict::Ask, "grants: mode = \"ask\"").because(reason)
}

/// The first of them, and how many more there are.
fn list(capabilities: &[String]) -> String {
    let named = capabilities.iter().take(NAMED_MAX);
    let named: Vec<String> = named.map(|capability| quoted(capability)).collect();
    match capabilities.len() - named.len() {
        0 => named.join(", "),
        more => format!("{} and {more} more", named.join(", ")),
    }
}

/// What the call would be refused without the grants on trial.
pub(super) fn observed(grants: &GrantModes) -> Vec<Observed> {
    let observed = grants.observed.iter().map(|capability| Observed {
        check: "grants",
        rule: format!("grant {}", one_line(capability, 200)),
        would: Verdict::Deny,
    });
    observed.collect()
}

fn quoted(capability: &str) -> String {
    format!("`{}`", one_line(capability, 100))
}
