//! Sequences of calls: what a call comes to by what the conversation did before it.
//!
//! What an operator forbids binds everybody who calls; what was learned binds programs and models. Nothing learned ever allows a call.

mod origin;
mod sequence;
mod similarity;
mod words;

pub use self::origin::{LearnedCause, SequenceOrigin};
pub use self::sequence::{BadSequence, MappedCall, SEQUENCE_WORDS_MAX, Sequence, SequenceSet};
pub use self::similarity::NearSequence;
pub use self::words::{CallWord, CallWords, WordKind};

use std::sync::Arc;

use super::finding::Finding;
use super::{Mode, Policy, SessionFacts, Verdict, tool_key};
use crate::call::ResolvedCall;
use crate::failure::one_line;

/// What a check of sequences looks at.
#[derive(Debug, Clone, Copy)]
pub struct TrajectoryFacts<'a> {
    /// Those of the operator and those that were learned.
    pub sequences: &'a SequenceSet,
    /// The calls of the conversation before this one that count, oldest first.
    pub window: &'a [Arc<MappedCall>],
    /// This call.
    pub call: &'a MappedCall,
    /// The learned sequence it is most like by meaning, where a model compared them; else words are compared.
    pub near: Option<NearSequence>,
    /// Whether meaning was compared, so that words are not.
    pub has_compared: bool,
}

/// The words of `call`, as sequences know them.
pub fn words_of(call: &ResolvedCall, is_known: Option<&dyn Fn(&str) -> bool>) -> CallWords {
    let names = super::subject::names(&call.tool);
    CallWords::of(
        &names,
        &call.arguments.values,
        call.command.as_ref(),
        is_known,
    )
}

/// Whether governance never blocks the tool of `call`.
pub(super) fn is_always_available(policy: &Policy, call: &ResolvedCall) -> bool {
    let names = super::subject::names(&call.tool);
    let mut always = policy.governance.always_available.iter();
    always.any(|name| names.contains(&tool_key(name)))
}

/// Refuses or asks where `call` completes a sequence, or is like a learned one.
pub(super) fn check(policy: &Policy, facts: &SessionFacts<'_>, call: &ResolvedCall) -> Finding {
    let Some(trajectory) = &facts.trajectory else {
        return Finding::pass("not enabled");
    };
    if is_always_available(policy, call) {
        return Finding::pass("the tool is always available");
    }
    let is_person = call.frame.principal.is_operator();
    let found = trajectory
        .sequences
        .found(trajectory.window, trajectory.call);
    let bind = found
        .into_iter()
        .filter(|found| !is_person || found.sequence.binds_operator());
    let strictest = bind
        .map(|found| (mode(policy, found.sequence, found.is_doubtful), found))
        .max_by_key(|(mode, _)| strictness(*mode));
    if let Some((mode, found)) = strictest {
        return completed(mode, found.sequence, found.is_doubtful);
    }
    match similar(policy, trajectory).filter(|_| !is_person) {
        Some((near, sequence)) => like(policy, near, sequence),
        None => Finding::pass("no sequence of calls is completed"),
    }
}

fn similar<'a>(
    policy: &Policy,
    facts: &TrajectoryFacts<'a>,
) -> Option<(NearSequence, &'a Sequence)> {
    let threshold = policy.governance.similarity_threshold;
    let near = match facts.has_compared {
        true => facts.near.filter(|near| near.similarity >= threshold),
        false => facts.sequences.nearest(facts.window, facts.call, threshold),
    }?;
    Some((near, facts.sequences.learned(near.id)?))
}

fn strictness(mode: Mode) -> u8 {
    match mode {
        Mode::Observe => 0,
        Mode::Ask => 1,
        Mode::Deny => 2,
    }
}

/// What a sequence does. What was learned without a person only watches until the operator wants it to block; a failure asks.
fn mode(policy: &Policy, sequence: &Sequence, is_doubtful: bool) -> Mode {
    let mode = match &sequence.origin {
        SequenceOrigin::Learned { cause, .. } if *cause != LearnedCause::Revoked => {
            match (policy.governance.blocks_risky, cause) {
                (false, _) => Mode::Observe,
                (true, LearnedCause::Failed) => Mode::Ask,
                (true, _) => sequence.mode,
            }
        }
        _ => sequence.mode,
    };
    match mode {
        Mode::Deny if is_doubtful => Mode::Ask,
        mode => mode,
    }
}

fn completed(mode: Mode, sequence: &Sequence, is_doubtful: bool) -> Finding {
    let may = if is_doubtful {
        "may complete"
    } else {
        "completes"
    };
    let reason = format!(
        "the call {may} the blocked sequence `{}` ({}); {}",
        shown(sequence),
        sequence.origin,
        sequence.origin.remedy()
    );
    in_mode(mode, Verdict::Deny, (sequence.origin.rule(), reason))
}

/// A call that is like what went wrong is no proof: a person decides.
fn like(policy: &Policy, near: NearSequence, sequence: &Sequence) -> Finding {
    let mode = match policy.governance.blocks_risky {
        true => Mode::Ask,
        false => Mode::Observe,
    };
    let reason = format!(
        "the call is like the sequence `{}` ({}; similarity {:.2}, `tools.governance.similarity_threshold`); {}",
        shown(sequence),
        sequence.origin,
        near.similarity,
        sequence.origin.remedy()
    );
    let rule = format!("{}: similar", sequence.origin.rule());
    in_mode(mode, Verdict::Ask, (rule, reason))
}

fn shown(sequence: &Sequence) -> String {
    one_line(&sequence.words.join(" "), 200)
}

/// The finding of a rule with a mode, which `would` say this if it did more than observe.
pub(super) fn in_mode(mode: Mode, would: Verdict, (rule, reason): (String, String)) -> Finding {
    match mode {
        Mode::Deny => Finding::new(Verdict::Deny, rule).because(reason),
        Mode::Ask => Finding::new(Verdict::Ask, rule).because(reason),
        Mode::Observe => {
            let observed = Finding::pass(&format!("observed only: {reason}"));
            observed.by(rule).observing(would)
        }
    }
}
