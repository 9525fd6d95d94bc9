//! Rules over the arguments of a call.
//!
//! Only the low half of an argument is looked at: the kernel drops the high half of every argument that is judged here, so
//! judging it would open a hole.

use seccompiler::{SeccompCmpArgLen, SeccompCmpOp, SeccompCondition, SeccompRule};

/// Applies when all of `conditions` hold.
pub(super) fn all(conditions: impl IntoIterator<Item = SeccompCondition>) -> SeccompRule {
    SeccompRule::new(conditions.into_iter().collect())
        .unwrap_or_else(|error| panic!("bug: a rule without a condition: {error}"))
}

/// One rule per value: the argument equals one of `values`.
pub(super) fn one_of(
    argument: u8,
    values: impl IntoIterator<Item = u32>,
) -> impl Iterator<Item = SeccompRule> {
    let rule = move |value| all([equal(argument, value)]);
    values.into_iter().map(rule)
}

/// The conditions that the argument equals none of `values`.
pub(super) fn none_of(
    argument: u8,
    values: impl IntoIterator<Item = u32>,
) -> impl Iterator<Item = SeccompCondition> {
    let condition = move |value| condition(argument, SeccompCmpOp::Ne, value);
    values.into_iter().map(condition)
}

/// The argument equals `value`.
pub(super) fn equal(argument: u8, value: u32) -> SeccompCondition {
    condition(argument, SeccompCmpOp::Eq, value)
}

/// The bits `mask` of the argument are `value`.
pub(super) fn masked(argument: u8, mask: u32, value: u32) -> SeccompCondition {
    condition(argument, SeccompCmpOp::MaskedEq(mask.into()), value)
}

/// One condition per bit of `bits`: the argument has it.
pub(super) fn with_bit(argument: u8, bits: u32) -> impl Iterator<Item = SeccompCondition> {
    let single = (0..u32::BITS).map(|shift| 1 << shift);
    single
        .filter(move |bit| bits & bit != 0)
        .map(move |bit| masked(argument, bit, bit))
}

fn condition(argument: u8, operator: SeccompCmpOp, value: u32) -> SeccompCondition {
    SeccompCondition::new(argument, SeccompCmpArgLen::Dword, operator, value.into())
        .unwrap_or_else(|error| panic!("bug: a call has six arguments: {error}"))
}
