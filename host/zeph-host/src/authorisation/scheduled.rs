//! What a refusal of a scheduled call advises: no `--allow` counts for it, so a rule of the configuration has to allow it.

use zeph_core::policy::{Decision, Refusal};

use crate::session::Session;

/// The decision with advice that holds for calls of `session`.
pub(super) fn advised<W>(session: &Session, decision: Decision<W>) -> Decision<W> {
    if session.schedule().is_none() {
        return decision;
    }
    match decision {
        Decision::Ask(refusal) => Decision::Ask(in_configuration(refusal)),
        Decision::Deny(refusal) => Decision::Deny(in_configuration(refusal)),
        Decision::Allow(_) => decision,
    }
}

fn in_configuration(mut refusal: Refusal) -> Refusal {
    if refusal.allow.is_empty() {
        return refusal;
    }
    let rules = refusal.allow.iter().map(|rule| {
        let (tool, pattern) = rule.split_once(':').unwrap_or((rule, "*"));
        format!(
            "`[[tools.permissions.{tool}]]` with `pattern = {pattern:?}` and `action = \"allow\"`"
        )
    });
    let rules: Vec<String> = rules.collect();
    refusal.failure.message = format!(
        "{}; the operator can allow it in the configuration: {}",
        refusal.reason,
        rules.join(", ")
    );
    refusal
}
