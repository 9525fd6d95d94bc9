//! Help texts of `approve`, `explain`, `policy` and `doctor`.

macro_rules! approve_examples {
    () => {
        r#"Examples:
  zeph-host approve                        list pending calls and approvals
  zeph-host approve k7m2x9qd               show the call, ask, and approve it once
  zeph-host approve --last --session       approve the newest for the rest of its conversation
  zeph-host approve k7m2x9qd --rule        print an allow rule for such calls
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
  zeph-host policy check                   check the active rules
  zeph-host policy check rules.toml
  zeph-host policy show                    print the active rules
  zeph-host policy show --set tools.permissions_preset=developer
  zeph-host policy report --since 7d       count what observed rules would have decided
  zeph-host policy check ~/.config/zeph-host/config.toml --json"#
    };
}

macro_rules! doctor_examples {
    () => {
        r#"Examples:
  zeph-host doctor
  zeph-host doctor --json | jq '.checks[] | select(.state != "ok")'
  zeph-host doctor --registries            print a line `allow_hosts = [...]` to paste"#
    };
}

/// For `-h` of `zeph-host approve`.
pub(crate) const APPROVE_CALL_EXAMPLES: &str = approve_examples!();

/// For `--help` of `zeph-host approve`.
pub(crate) const APPROVE_CALL_LONG: &str = concat!(
    approve_examples!(),
    r#"

When a program makes a call that needs approval and there is no user to ask, the call is refused
with `confirmation_required`. It stays pending for 7 days under the ID named in the refusal.
Approving it does not run it: the program has to make the call again.

An approval covers exactly one call: the same tool, arguments and directory. The next such call of
the same conversation within a day uses it up, unless --session or --always is given. Continue a
conversation with `zeph-host run --conversation ID`. A call that a rule denies stays denied, unless
that rule is a constraint (`tools.scoped.constraints`). No tool can approve a call.

--rule prints an allow rule for the configuration file. Rules in `tools.permissions` replace
`tools.shell.blocked_commands` and `tools.shell.confirm_patterns`.

JSON: {"requests": [...], "approvals": [...]} for the list; {"request", "approved", "approval"}
for a call, with "denied" for --deny; {"rules", "toml", "written"} for --rule; {"revoked"} for
--revoke.

Exit codes:
  0    approved, denied, revoked or listed
  2    no such pending call
  5    not approved: there was no terminal to ask on, or the answer was no"#
);

/// For `-h` of `zeph-host explain`.
pub(crate) const EXPLAIN_EXAMPLES: &str = explain_examples!();

/// For `--help` of `zeph-host explain`.
pub(crate) const EXPLAIN_LONG: &str = concat!(
    explain_examples!(),
    r#"

Nothing is run or recorded, and no approval is used up. Checks are listed in the order in which they
are made; the first one that denies decides. Grants and the sandbox are not tested: an allowed call
can still fail because a capability was not granted.

JSON: {"tool", "decision", "rule", "trace": [{"check", "verdict", "rule", "detail", "would"}]};
decision is allow, ask or deny. A decision to ask or deny also has "reason", "message", "allow"
(rules for --allow that would let the call run) and "can_be_approved". For an unknown tool or
invalid arguments: {"tool", "decision", "error"}; the decision is invalid.

Exit codes:
  0    the call would run
  2    unknown tool or invalid arguments
  4    the call would be denied
  5    the call would need approval"#
);

/// For `-h` of `zeph-host policy`.
pub(crate) const POLICY_EXAMPLES: &str = policy_examples!();

/// For `--help` of `zeph-host policy`.
pub(crate) const POLICY_LONG: &str = concat!(
    policy_examples!(),
    r#"

The host makes the same checks when it starts, and does not start if a rule does not compile.

`policy show` prints the rules in the order in which the checks of `explain` look at them.

`policy check` without a file also warns about rules that name no tool.

JSON of check: {"ok", "problems": [{"origin", "line", "column", "message"}], "warnings": [...]}
JSON of show:  {"dependencies", "scoped", "scope", "policy": {"rules", "default_effect", "mode"},
               "permissions": {TOOL: [{"pattern", "action", "preset", "mode"}]}, "lists",
               "sequences", "flow", "calls_max", "judge"}; null where nothing is set
JSON of report: [{"rule", "would", "decided", "tool", "calls", "last"}]

A rule with `mode = "observe"` decides nothing. What it would have decided is in the trace of
`explain`, in `policy_match` of the audit log, and counted by `policy report`: how many calls of a
tool it would have allowed, asked about or denied, and what was decided instead.

Exit codes:
  0    every rule compiles
  3    a rule does not compile"#
);

/// For `-h` of `zeph-host doctor`.
pub(crate) const DOCTOR_EXAMPLES: &str = doctor_examples!();

/// For `--help` of `zeph-host doctor`.
pub(crate) const DOCTOR_LONG: &str = concat!(
    doctor_examples!(),
    r#"

Each check is ok, degraded (works with reduced isolation or function) or missing, with the command
that installs what is missing. Nothing is installed or changed. If the configuration has mistakes,
they are listed and the rest is checked with the settings that can be read.

--registries reads the settings of the package managers it finds (cargo, npm, pnpm, yarn, pip, uv,
go, gem, Maven) and prints only the hosts they get packages from: for commands that may reach
these hosts and no others.

JSON: {"ok", "checks": [{"group", "name", "state", "version", "detail", "how_to_get"}]}

Exit codes:
  0    nothing required is missing
  1    something required is missing"#
);
