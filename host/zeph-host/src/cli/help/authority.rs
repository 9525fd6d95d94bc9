//! The help texts of `approve`, `explain`, `policy` and `doctor`.

macro_rules! approve_examples {
    () => {
        r#"Examples:
  zeph-host approve                        what waits, and what was approved
  zeph-host approve k7m2x9qd               shows the call and asks; then it may run once
  zeph-host approve --last --session       the newest one, for the rest of its conversation
  zeph-host approve k7m2x9qd --rule        a rule for the configuration in place of an approval
  zeph-host approve --revoke k7m2x9qd"#
    };
}

macro_rules! explain_examples {
    () => {
        r#"Examples:
  zeph-host explain bash command='rm -r build'
  zeph-host explain write path=src/main.rs content=x --allow 'write:src/**'
  zeph-host explain bash --args '{"command": "git push"}' --json"#
    };
}

macro_rules! policy_examples {
    () => {
        r#"Examples:
  zeph-host policy check                   the rules that are in effect
  zeph-host policy check rules.toml
  zeph-host policy check ~/.config/zeph-host/config.toml --json"#
    };
}

macro_rules! doctor_examples {
    () => {
        r#"Examples:
  zeph-host doctor
  zeph-host doctor --json | jq '.checks[] | select(.state != "ok")'"#
    };
}

/// For `-h` of `zeph-host approve`.
pub(crate) const APPROVE_CALL_EXAMPLES: &str = approve_examples!();

/// For `--help` of `zeph-host approve`.
pub(crate) const APPROVE_CALL_LONG: &str = concat!(
    approve_examples!(),
    r#"

A call of a program that asks and finds nobody to ask is refused with `confirmation_required`, and
waits here under the id that its refusal names, for 7 days. Approving it does not make the call:
the program makes it again.

An approval is for exactly this call: the same tool, the same arguments, the same directory. It is
used up by the next such call of the same conversation within a day, unless --session or --always
is given. `zeph-host run --conversation ID` goes on with a conversation. What a rule denies stays
denied. No tool can approve anything.

--rule prints lines for the configuration file that allow all calls like it. Rules in
`tools.permissions` take the place of `tools.shell.blocked_commands` and
`tools.shell.confirm_patterns`.

JSON: {"requests": [...], "approvals": [...]} for the list; {"request", "approved", "approval"}
for a call.

Exit codes:
  0    approved, denied, revoked or listed
  2    no such call waits
  5    nobody was there to agree, or the answer was no"#
);

/// For `-h` of `zeph-host explain`.
pub(crate) const EXPLAIN_EXAMPLES: &str = explain_examples!();

/// For `--help` of `zeph-host explain`.
pub(crate) const EXPLAIN_LONG: &str = concat!(
    explain_examples!(),
    r#"

Nothing is run, recorded or used up. The checks stand in the order in which they are made; the
first one that denies ends it. The walls around a tool are not tried: a call that is allowed may
still be refused what it was not granted.

JSON: {"tool", "decision", "rule", "message", "trace": [{"check", "verdict", ...}], "command"};
decision is allow, ask or deny.

Exit codes:
  0    it would run
  2    unknown tool or wrong arguments
  4    a rule forbids it
  5    it would ask"#
);

/// For `-h` of `zeph-host policy`.
pub(crate) const POLICY_EXAMPLES: &str = policy_examples!();

/// For `--help` of `zeph-host policy`.
pub(crate) const POLICY_LONG: &str = concat!(
    policy_examples!(),
    r#"

The same checks are made at every start: a rule that does not compile stops the host.

JSON: {"ok", "problems": [{"origin", "line", "column", "message"}], "warnings": [...]}

Exit codes:
  0    every rule compiles
  3    one does not"#
);

/// For `-h` of `zeph-host doctor`.
pub(crate) const DOCTOR_EXAMPLES: &str = doctor_examples!();

/// For `--help` of `zeph-host doctor`.
pub(crate) const DOCTOR_LONG: &str = concat!(
    doctor_examples!(),
    r#"

Each line is ok, degraded (it works, with less) or missing, with the way to get what is missing.
Nothing is installed or changed.

JSON: {"ok", "checks": [{"group", "name", "state", "version", "detail", "how_to_get"}]}

Exit codes:
  0    nothing that is required is missing
  1    something is"#
);
