//! Help texts of the commands that read records of calls.

macro_rules! plugin_suggest_examples {
    () => {
        r#"Examples:
  zeph-host run --record calls.jsonl
  zeph-host plugin suggest notes --from calls.jsonl
  zeph-host plugin suggest notes --from calls.jsonl --json | jq -r '.commands[]'"#
    };
}

macro_rules! policy_suggest_examples {
    () => {
        r#"Examples:
  zeph-host serve --record calls.jsonl
  zeph-host policy suggest --from calls.jsonl
  zeph-host policy suggest --from calls.jsonl --json | jq -r .toml >rules.toml"#
    };
}

macro_rules! grants_examples {
    () => {
        r#"Examples:
  zeph-host grants                         list all grants and when they were last used
  zeph-host grants --unused 30d            list those that no call has used for 30 days
  zeph-host grants --unused 2026-11-01 --json"#
    };
}

macro_rules! replay_examples {
    () => {
        r#"Examples:
  zeph-host replay 0193a5c2-7d1e-7c50-9d6e-1f2a3b4c5d6e --from calls.jsonl
  zeph-host replay 0193a5c2-7d1e-7c50-9d6e-1f2a3b4c5d6e --from calls.jsonl --json"#
    };
}

/// For `-h` of `zeph-host plugin suggest`.
pub(crate) const PLUGIN_SUGGEST_EXAMPLES: &str = plugin_suggest_examples!();

/// For `--help` of `zeph-host plugin suggest`.
pub(crate) const PLUGIN_SUGGEST_LONG: &str = concat!(
    plugin_suggest_examples!(),
    r#"

Prints the smallest grant that lets the recorded calls of a plugin run again, the difference from
what is granted now, and the commands that change it. Nothing is changed.

Counted are calls that ran, of the plugin as it is installed now. Calls of a conversation that had
read untrusted content from the network (fetch, a remote MCP server, a plugin or command that
received something from a host) are omitted, because what they did may not have been what the
user wanted; --include-untrusted counts them.

A grant of files is a grant of directories. Entries of a suggested directory that no call used are
listed, and so is what calls tried there and were refused; `zeph-host policy suggest` prints rules
that leave only the files that were used. Nothing is suggested that is not granted now, whatever
the record says; with --beyond-grants nothing that the manifest does not request."#
);

/// For `-h` of `zeph-host policy suggest`.
pub(crate) const POLICY_SUGGEST_EXAMPLES: &str = policy_suggest_examples!();

/// For `--help` of `zeph-host policy suggest`.
pub(crate) const POLICY_SUGGEST_LONG: &str = concat!(
    policy_suggest_examples!(),
    r#"

Prints rules as TOML under which the recorded calls run again without a question: for each tool
the files it used and the hosts it reached, for `bash` the commands. Other files are denied to
these tools; other commands ask. Nothing is changed. Add the rules behind those that you have: the
first match wins, so a rule that denies stays in effect.

A call that listed or named a directory needs a rule for the directory with all below it. What lies
there and was not used is listed. Only paths that tools may access now are suggested, and calls of
conversations that had read from the network are omitted unless --include-untrusted is given."#
);

/// For `-h` of `zeph-host grants`.
pub(crate) const GRANTS_EXAMPLES: &str = grants_examples!();

/// For `--help` of `zeph-host grants`.
pub(crate) const GRANTS_LONG: &str = concat!(
    grants_examples!(),
    r#"

A directory counts as used when a call exercised a granted right in it, a host when a request was
sent to it, a secret when a request was sent to its host, a program when it ran. Variables and
raised limits are available to every call, so each call of the plugin counts as a use. The time is
exact to about ten minutes. Uses are kept since the store was first opened by a version that does;
of an earlier time nothing is known, and the output says so."#
);

/// For `-h` of `zeph-host replay`.
pub(crate) const REPLAY_EXAMPLES: &str = replay_examples!();

/// For `--help` of `zeph-host replay`.
pub(crate) const REPLAY_LONG: &str = concat!(
    replay_examples!(),
    r#"

Makes a recorded call of a plugin again and compares the result, the files it used and its
duration. The plugin must have the same digest. The call is decided under the rules and grants of
now, as if you had typed it, and is recorded in the audit. It has no network and runs no programs.
If it changed something, it runs on a temporary copy of the files in its record, else it only
reads.

The arguments are read from the audit log. Where they are too long for it, --record stores them
beside it, up to 1 MiB, for as long as stored outputs are kept (`tools.overflow.retention_days`).
Arguments with a secret are not kept, so such a call cannot be replayed. Neither can calls that
used the network or a program, commands, calls of MCP servers, and tools of the host itself.

Exit codes:
  0    the same result
  1    another result
  2    the call cannot be replayed, or is not in the file
  4    a rule or a missing grant denies it now"#
);
