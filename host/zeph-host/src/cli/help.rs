//! The examples and the longer explanations of the help texts.

mod authority;
mod filters;
mod plugin;

pub(crate) use authority::{
    APPROVE_CALL_EXAMPLES, APPROVE_CALL_LONG, DOCTOR_EXAMPLES, DOCTOR_LONG, EXPLAIN_EXAMPLES,
    EXPLAIN_LONG, POLICY_EXAMPLES, POLICY_LONG,
};
pub(crate) use filters::{
    FILTER_EXAMPLES, FILTER_LONG, FILTERS_EXAMPLES, FILTERS_LONG, HOOK_EXAMPLES, HOOK_LONG,
    STATS_EXAMPLES, STATS_LONG,
};
pub(crate) use plugin::{
    ADD_EXAMPLES, ADD_LONG, APPROVE_EXAMPLES, CHECK_EXAMPLES, CHECK_LONG, DEV_EXAMPLES,
    GRANT_EXAMPLES, GRANT_LONG, NEW_EXAMPLES, PLUGIN_EXAMPLES, PLUGIN_LONG, REVOKE_EXAMPLES,
};

macro_rules! top_examples {
    () => {
        r#"Examples:
  zeph-host run                                   a line editor for calls, on a terminal
  zeph-host run <calls.jsonl >results.jsonl       JSON lines: one call in, one result out
  zeph-host call read path=README.md limit=20     one call
  zeph-host tools                                 what there is to call
  zeph-host approve                               the calls that wait for you
  zeph-host explain bash command='git push'       what would become of a call, and why
  zeph-host plugin add weather.wasm               a plugin of somebody else's
  zeph-host filter -- cargo test                  a command, with less of its output
  zeph-host config show --origin                  what is set, and where"#
    };
}

macro_rules! run_examples {
    () => {
        r#"Examples:
  zeph-host run
  echo '{"id":1,"tool":"read","params":{"path":"README.md"}}' | zeph-host run
  zeph-host run --calls calls.jsonl --jobs 4 --allow 'write:out/**' >results.jsonl
  agent | zeph-host run --ask | tee results.jsonl"#
    };
}

macro_rules! call_examples {
    () => {
        r#"Examples:
  zeph-host call read path=README.md limit=20
  zeph-host call grep --json '{"pattern": "fn main", "path": "src"}' --output json
  zeph-host call write --json @arguments.json"#
    };
}

macro_rules! selftest_examples {
    () => {
        r#"Examples:
  zeph-host selftest
  zeph-host selftest --json | jq '.[] | select(.verdict != "holds")'"#
    };
}

/// For `-h` of `zeph-host selftest`.
pub(super) const SELFTEST_EXAMPLES: &str = selftest_examples!();

/// For `--help` of `zeph-host selftest`.
pub(super) const SELFTEST_LONG: &str = concat!(
    selftest_examples!(),
    r#"

Runs components made to misbehave, and probes of the kernel, in a temporary directory: your
configuration, plugins and files are not touched, no process is started. Takes some seconds.

A wall holds, does not hold, or is not available here, with the reason. What is not available is
not used by anything yet and is no failure.

JSON: a list of {"name", "tried", "verdict", "why", "duration_ms"}; verdict is holds, broken or
unavailable.

Exit codes:
  0    every wall that is there holds
  1    one does not, or the self-test cannot run"#
);

/// For `-h` of the program.
pub(super) const TOP_EXAMPLES: &str = top_examples!();

/// For `--help` of the program.
pub(super) const TOP_LONG: &str = concat!(
    top_examples!(),
    r#"

Without any configuration the tools reach the current directory and nothing else.
Data goes to standard output; notes, errors and logs go to standard error.

Exit codes:
  0    success
  1    the tool failed, or the command could not be completed
  2    wrong usage: unknown command, flag, tool or argument
  3    the configuration is wrong, or the host cannot start
  4    refused: a rule or a grant forbids the call
  5    a person has to agree first
  124  a time limit passed
  130  interrupted (Ctrl-C); 143 when terminated
  141  standard output was closed

Environment:
  ZEPH_HOST_CONFIG     the configuration file, as --config
  ZEPH_SECTION_KEY     one key, such as ZEPH_LIMITS_CPU_SECS=60
  ZEPH_LOG             what is logged, such as warn,zeph_engine=debug
  NO_COLOR, CLICOLOR_FORCE"#
);

/// For `-h` of `zeph-host run`.
pub(super) const RUN_EXAMPLES: &str = run_examples!();

/// For `--help` of `zeph-host run`.
pub(super) const RUN_LONG: &str = concat!(
    run_examples!(),
    r#"

JSON lines in:
  {"id": 1, "tool": "read", "params": {"path": "README.md"}}    a call; `id` is any JSON value
  {"cancel": 1}                                                 ends the call with that id

JSON lines out, in order of completion, empty parts left out:
  {"id": 1, "status": "ok", "text": "...", "structured": {...}, "locations": [...], "notes": [...],
   "duration_ms": 1.2, "overflow": "overflow:<uuid>", "truncated": true, "call_id": "<uuid>"}
  status is ok, failed, refused, cancelled or invalid; all but ok have
  "error": {"category", "phase", "message", "suggestion", "retryable"}

A line that is no request gets an invalid result with its "line" number, and the rest goes on.
The exit code is 0 when every line was answered, whatever the answers say.
Ctrl-C cancels what runs, answers it as cancelled, and ends with 130; a second one does not wait.
Calls that change something are refused unless a rule or --allow names them; a line typed on a
terminal is its own approval. A refused call waits: `zeph-host approve` lets it run when it is made
again. With --ask a person is asked at the terminal of the process, while the calls come through
standard input; a question that nobody answers for ten minutes refuses its call."#
);

/// For `-h` of `zeph-host call`.
pub(super) const CALL_EXAMPLES: &str = call_examples!();

/// For `--help` of `zeph-host call`.
pub(super) const CALL_LONG: &str = concat!(
    call_examples!(),
    r#"

A value is text where the tool wants text; elsewhere a number, true, false, an array or an object
is read as JSON.
Typing the call approves it; grants and limits still hold.

Exit codes:
  0    success
  1    the tool failed: its message is on standard error
  2    unknown tool or wrong arguments
  3    the host cannot start
  4    refused
  5    a person has to agree first
  124  a time limit passed
  130  interrupted"#
);
