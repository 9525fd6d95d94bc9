//! Examples and long descriptions of the help texts.

mod acp;
mod audit;
mod authority;
mod filters;
mod governance;
mod mcp;
mod plugin;
mod records;
mod scheduler;
mod secret;
mod signature;
mod store;
mod supply;
mod token;
mod trust;
mod wrap;

pub(crate) use self::governance::{
    FORGIVE_EXAMPLES, FORGIVE_LONG, REVOKE_CALL_EXAMPLES, REVOKE_CALL_LONG,
};
pub(crate) use acp::{ACP_EXAMPLES, ACP_LONG};
pub(crate) use audit::{AUDIT_EXPORT_EXAMPLES, AUDIT_VERIFY_EXAMPLES, AUDIT_VERIFY_LONG};
pub(crate) use authority::{
    APPROVE_CALL_EXAMPLES, APPROVE_CALL_LONG, DOCTOR_EXAMPLES, DOCTOR_LONG, EXPLAIN_EXAMPLES,
    EXPLAIN_LONG, POLICY_EXAMPLES, POLICY_LONG,
};
pub(crate) use filters::{
    FILTER_EXAMPLES, FILTER_LONG, FILTERS_EXAMPLES, FILTERS_LONG, HOOK_EXAMPLES, HOOK_LONG,
    STATS_EXAMPLES, STATS_LONG,
};
pub(crate) use mcp::{
    MCP_APPROVE_EXAMPLES, MCP_CONFIG_EXAMPLES, MCP_CONFIG_LONG, MCP_EXAMPLES, MCP_LOGIN_EXAMPLES,
    MCP_LONG,
};
pub(crate) use plugin::{
    ADD_EXAMPLES, ADD_LONG, APPROVE_EXAMPLES, CHECK_EXAMPLES, CHECK_LONG, DEV_EXAMPLES,
    GRANT_EXAMPLES, GRANT_LONG, NEW_EXAMPLES, PLUGIN_EXAMPLES, PLUGIN_LONG, PUBLISH_EXAMPLES,
    PUBLISH_LONG, REVOKE_EXAMPLES,
};
pub(crate) use records::{
    GRANTS_EXAMPLES, GRANTS_LONG, PLUGIN_SUGGEST_EXAMPLES, PLUGIN_SUGGEST_LONG,
    POLICY_SUGGEST_EXAMPLES, POLICY_SUGGEST_LONG, REPLAY_EXAMPLES, REPLAY_LONG,
};
pub(crate) use scheduler::{SCHEDULER_EXAMPLES, SCHEDULER_LONG};
pub(crate) use secret::{SECRET_EXAMPLES, SECRET_LONG};
pub(crate) use signature::{
    KEYGEN_EXAMPLES, KEYGEN_LONG, SIGN_EXAMPLES, SIGN_LONG, VERIFY_EXAMPLES, VERIFY_LONG,
};
pub(crate) use store::{STORE_EXAMPLES, STORE_LONG};
pub(crate) use supply::{
    BUNDLE_EXAMPLES, BUNDLE_LONG, OUTDATED_EXAMPLES, SEARCH_EXAMPLES, SEARCH_LONG, SYNC_EXAMPLES,
    SYNC_LONG, UPDATE_EXAMPLES, UPDATE_LONG,
};
pub(crate) use token::{TOKEN_EXAMPLES, TOKEN_LONG};
pub(crate) use trust::{TRUST_EXAMPLES, TRUST_LONG};
pub(crate) use wrap::{WRAP_EXAMPLES, WRAP_LONG};

macro_rules! top_examples {
    () => {
        r#"Examples:
  zeph-host run                                   chat with the model, or open a prompt for tools
  zeph-host run "fix the failing test"            give the model a task
  zeph-host run <calls.jsonl >results.jsonl       read calls and write results as JSON lines
  zeph-host serve                                 serve the tools to an agent over MCP
  zeph-host acp                                   be the agent of an editor
  zeph-host wrap -- npx -y SERVER                 run an MCP server in a sandbox
  zeph-host call read path=README.md limit=20     call one tool
  zeph-host tools                                 list the tools
  zeph-host approve                               list pending calls
  zeph-host explain bash command='git push'       show how a call would be decided
  zeph-host plugin add weather.wasm               install a plugin
  zeph-host filter -- cargo test                  run a command with filtered output
  zeph-host config show --origin                  show settings and where they are set"#
    };
}

macro_rules! run_examples {
    () => {
        r#"Examples:
  zeph-host run
  zeph-host run --demo
  zeph-host run --tui
  zeph-host run "why does the test in @src/lib.rs fail?"
  zeph-host run --json --allow 'bash:cargo *' "mend the failing test" | jq -r .type
  zeph-host run --resume
  echo '{"id":1,"tool":"read","params":{"path":"README.md"}}' | zeph-host run
  zeph-host run --calls calls.jsonl --jobs 4 --allow 'write:out/**' >results.jsonl
  agent | zeph-host run --ask | tee results.jsonl"#
    };
}

macro_rules! serve_examples {
    () => {
        r#"Examples:
  zeph-host serve
  zeph-host serve --allow 'write:src/**' --allow 'bash:cargo *'
  zeph-host serve --http 8080
  claude mcp add zeph-host -- zeph-host --root ~/src/project serve"#
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

/// For the help of `zeph-host config`.
pub(super) const CONFIG_EXAMPLES: &str = r#"Examples:
  zeph-host config show --origin
  zeph-host config check                     the configuration in effect, and this machine
  zeph-host config check .zeph/config.toml   one file
  zeph-host config schema >schema.json

JSON of show:  a list of {"key", "value", "origins"}
JSON of check: {"ok", "problems": [{"origin", "line", "column", "message"}], "warnings": [...]};
               `origin` is null for what this machine lacks

Exit codes of check:
  0  a host would start
  3  the configuration has mistakes, or a host would not start with it on this machine"#;

/// For `-h` of `zeph-host selftest`.
pub(super) const SELFTEST_EXAMPLES: &str = selftest_examples!();

/// For `--help` of `zeph-host selftest`.
pub(super) const SELFTEST_LONG: &str = concat!(
    selftest_examples!(),
    r#"

Runs hostile components in the engine and hostile commands in the jail, in temporary directories.
Your configuration, plugins and files are not used. Takes some seconds.

Each check of the isolation holds, is broken, or is unavailable on this machine, with the reason.
An unavailable one is not a failure.

JSON: a list of {"name", "tried", "verdict", "why", "duration_ms"}; verdict is holds, broken or
unavailable.

Exit codes:
  0    every available check holds
  1    a check is broken, or the self-test cannot run"#
);

/// For `-h` of `zeph-host serve`.
pub(super) const SERVE_EXAMPLES: &str = serve_examples!();

/// For `--help` of `zeph-host serve`.
pub(super) const SERVE_LONG: &str = concat!(
    serve_examples!(),
    r#"

Clients of protocol revisions 2024-11-05 to 2026-07-28 can connect. Standard output carries the
protocol only; notes and logs go to standard error.

Calls are those of a model: read-only tools run within the granted directories, and everything
else needs a rule, an approval or `--allow`. A failed or refused call is a result with `isError`;
its text says what to do, and `structuredContent.error.category` is one of the categories of
`zeph-host call --help`.

A result that is too long ends with a reference, `overflow:ID`: a resource of the server, which
the tool `read_overflow` reads in pages. A request can raise the threshold for its result up to
131072 characters with `_meta["zeph/maxResultSizeChars"]`.

With --http, clients connect to `/mcp` of the address (streamable HTTP). On a loopback address the
server is open to every local program until there is a token (`zeph-host token add`); any other
address needs a token, or `mcp.serve.oauth`, to start. The address is printed; port 0 means any
free one. On a signal, running calls have `mcp.serve.drain_timeout_secs` (10 by default) to finish.

On standard input the process is the conversation. When the input ends or a signal arrives,
running calls are cancelled and background runs ended. Over HTTP a conversation is a session (up
to 2025-11-25), or has a handle: `_meta["zeph.host/conversation"]` of a result, which later
requests of the same caller repeat. It ends after an hour without use.

Exit codes:
  0    the input ended
  3    the configuration is invalid, or the host cannot start
  130  interrupted by SIGINT (143 by SIGTERM, 129 by SIGHUP)
  141  the output was closed"#
);

/// For `-h` of the program.
pub(super) const TOP_EXAMPLES: &str = top_examples!();

/// For `--help` of the program.
pub(super) const TOP_LONG: &str = concat!(
    top_examples!(),
    r#"

Without configuration, tools can access the current directory and nothing else. Results are written
to standard output; notes, errors and logs to standard error.

Exit codes:
  0    success
  1    the tool or the command failed
  2    usage error: unknown command, flag, tool or argument
  3    the configuration is invalid, or the host cannot start
  4    denied by a rule or a missing grant
  5    the call needs approval
  124  timed out
  129  the terminal was closed (SIGHUP)
  130  interrupted (Ctrl-C); 143 if terminated
  141  standard output was closed
`zeph-host call bash` exits with the exit code of its command.

Environment:
  ZEPH_HOST_CONFIG     configuration file, like --config
  ZEPH_SECTION_KEY     one configuration key, such as ZEPH_LIMITS_CPU_SECS=60
  ZEPH_LOG             log filter, such as warn,zeph_engine=debug
  NO_COLOR, CLICOLOR_FORCE"#
);

/// For `-h` of `zeph-host run`.
pub(super) const RUN_EXAMPLES: &str = run_examples!();

/// For `--help` of `zeph-host run`.
pub(super) const RUN_LONG: &str = concat!(
    run_examples!(),
    r#"

With a model ([[llm.providers]] in the configuration), `run` is an agent: a
chat when standard input, output and error are a terminal, or one task with
PROMPT. The model's calls take the same path as any other: sandboxed, and what
changes something asks. `@path` attaches a file. PROMPT prints the model's text
on standard output and progress on standard error; --json prints events, one
object per line, of the types session, text, tool_call, tool_result, approval,
message, usage, error and, last, result (--json-schema has the details).
Sessions are stored, and --resume continues one; one that is not used is
deleted after `agent.retention_days`.
--tui is the chat on the full screen. --no-model opens the prompt for tools.
--demo needs no model.

Exit codes with a model:
  0    the model finished
  1    stopped by a limit, a loop, a cut or an empty answer, or a failing
       provider; `result` says which
  2    usage error
  3    there is no model, or its key is missing
  5    the model finished, and a call needed an approval that no one could give
  130  interrupted by SIGINT (143 by SIGTERM, 129 by SIGHUP)

Without a model, and on a pipe, `run` makes calls.

Input, one JSON object per line:
  {"id": 1, "tool": "read", "params": {"path": "README.md"}}    a call; `id` is any JSON value
  {"cancel": 1}                                                 cancels the call with that ID
  {"turn": "t1"}                                                starts the turn `t1`
  {"caller_id": "planner"}                                      the caller of the calls that follow
A call may have "turn", "goal_id", "skill_name" and "caller_id", too. Commands
of one turn share the working directory and exported variables; a call without
"turn" belongs to the current one.

Output, one JSON object per line in order of completion; empty fields are
omitted. --jsonl-schema has the details of input and output:
  {"id": 1, "status": "ok", "text": "...", "structured": {...}, "attachments": [...],
   "locations": [...], "notes": [...], "duration_ms": 1.2, "overflow": "overflow:<uuid>",
   "truncated": true, "call_id": "<uuid>"}
  {"role": "user", "text": "..."}    a message for the model, such as the end of
                                     a background command
  status is ok, failed, refused, cancelled or invalid; all but ok have
  "error": {"category", "phase", "message", "suggestion", "retryable"}
  A command that exits with a code other than 0 has failed: "text" has its output, and "error" its
  "exit_code", which is null if a signal killed it. "retryable" means that the same call may succeed
  if it is made again. The host itself repeats only calls of tools that say that this changes
  nothing more, such as `fetch`, after faults that pass ([tools.retry]).

A line that is not a valid request gets a result with status `invalid` and its
"line" number; later lines are still processed. The exit code is 0 if every
line was answered, even if calls failed. Ctrl-C cancels running calls, reports
them as cancelled and exits with 130; a second Ctrl-C exits at once.

Calls that change something are refused unless a rule or --allow allows them. A
refused call stays pending: after `zeph-host approve` the program can make it
again. With --ask, the host asks on the terminal while calls are read from
standard input; a question without an answer within ten minutes refuses the
call. At the prompt, typing a call approves it."#
);

/// For `-h` of `zeph-host call`.
pub(super) const CALL_EXAMPLES: &str = call_examples!();

/// For `--help` of `zeph-host call`.
pub(super) const CALL_LONG: &str = concat!(
    call_examples!(),
    r#"

A value is taken as text if the tool's schema has a string there; otherwise it is parsed as JSON.
Typing the call approves it; deny rules, grants and limits still apply.
If a command of `bash` fails, its output is printed to standard output and zeph-host exits with the
exit code of the command, or with 128 + the number of the signal that killed it.

A failure has a category, `error.category` with `--output json`: tool_not_found, invalid_parameters,
type_mismatch, policy_blocked, confirmation_required, permanent_failure, cancelled, rate_limited,
server_error, network_error or timeout.

Exit codes:
  0    success
  1    the tool failed; its message is printed to standard error
  2    unknown tool or invalid arguments
  3    the host cannot start
  4    denied by a rule or a missing grant
  5    the call needs approval
  124  timed out
  130  interrupted"#
);
