//! Help texts of `revoke` and `forgive`.

macro_rules! revoke_examples {
    () => {
        r#"Examples:
  zeph-host audit -n 5                     find the call
  zeph-host revoke 01938c2e-5a51           by the beginning of its ID
  zeph-host forgive 12                     allow such calls again"#
    };
}

macro_rules! forgive_examples {
    () => {
        r#"Examples:
  zeph-host forgive                        list the learned sequences
  zeph-host forgive 12"#
    };
}

/// For `-h` of `zeph-host revoke`.
pub(crate) const REVOKE_CALL_EXAMPLES: &str = revoke_examples!();

/// For `--help` of `zeph-host revoke`.
pub(crate) const REVOKE_CALL_LONG: &str = concat!(
    revoke_examples!(),
    r#"

Marks the result of a call as unacceptable. From then on a call with the same words in the same
order is denied to programs and models, in every conversation and in every running host. What the
call did is not undone. A call that names no more than a tool or a program cannot be revoked:
every call of it would be denied.

JSON: {"sequence", "call", "words"}

Exit codes:
  0    the sequence is blocked
  2    no such call, or one that cannot be revoked"#
);

/// For `-h` of `zeph-host forgive`.
pub(crate) const FORGIVE_EXAMPLES: &str = forgive_examples!();

/// For `--help` of `zeph-host forgive`.
pub(crate) const FORGIVE_LONG: &str = concat!(
    forgive_examples!(),
    r#"

A learned sequence counts until it is forgiven; then it is learned again only by `zeph-host revoke`.
Sequences of `tools.governance.blocked_sequences` are changed in the configuration. A candidate has
gone wrong, but not often enough to count.

JSON of the list: a list of {"id", "words", "state", "cause", "call_id", "n_bad", "n_good", "at"}

Exit codes:
  0    forgiven or listed
  2    no such sequence"#
);
