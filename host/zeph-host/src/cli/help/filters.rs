//! Help texts of `filter`, `filters`, `stats` and `hook`.

macro_rules! filter_examples {
    () => {
        r#"Examples:
  zeph-host filter -- cargo test
  zeph-host filter --as 'cargo test' --exit-code 101 <log
  zeph-host filter --read 5b0c5f0e-7d0e-4d39-9f0e-0b7a3c1d2e4f"#
    };
}

macro_rules! filters_examples {
    () => {
        r#"Examples:
  zeph-host filters                       list the active rules
  zeph-host filters why -- cargo test     show which rules apply
  zeph-host filters show cargo-test
  zeph-host filters test ./filters.toml   run the tests of a rule file
  zeph-host filters verify                check the active rule file"#
    };
}

macro_rules! stats_examples {
    () => {
        r#"Examples:
  zeph-host stats
  zeph-host stats --json | jq '.rules[] | select(.read_back_often)'"#
    };
}

macro_rules! hook_examples {
    () => {
        r#"Examples:
  zeph-host hook claude post-tool-use     replace the output of a Bash call with the filtered output
  zeph-host hook codex pre-tool-use       run a command through `zeph-host filter`"#
    };
}

/// For `-h` of `zeph-host filter`.
pub(crate) const FILTER_EXAMPLES: &str = filter_examples!();

/// For `--help` of `zeph-host filter`.
pub(crate) const FILTER_LONG: &str = concat!(
    filter_examples!(),
    r#"

The command runs with your environment and standard input, without a sandbox. When it has finished,
standard output and standard error are printed to standard output in the order of arrival, filtered
by the rules for the command. The full output is stored before anything is omitted; if it cannot be
stored, or the configuration is invalid, nothing is omitted. The exit code is the command's own (128
plus the signal number if a signal ended it; 127 if the command does not exist); with --as, it is 0.

On a terminal, a command without a rule writes to the terminal directly. Output larger than 64 MiB
or `tools.overflow.max_overflow_bytes` is passed through unfiltered.

A rule that names a plugin's strategy (`wasm:PLUGIN/STRATEGY`) runs it as for calls; built-in
strategies run natively in this process."#
);

/// For `-h` of `zeph-host filters`.
pub(crate) const FILTERS_EXAMPLES: &str = filters_examples!();

/// For `--help` of `zeph-host filters`.
pub(crate) const FILTERS_LONG: &str = concat!(
    filters_examples!(),
    r#"

User rules are read from filters.toml beside the configuration file, or from the file named by
`tools.filters.filters_path`:

  [[rules]]
  name = "deploy"
  match = { prefix = "./deploy.sh" }            # or exact, or regex
  strategy = { type = "strip_noise", patterns = ['^uploading '] }

  [[tests]]
  name = "uploads are noise"
  command = "./deploy.sh prod"
  input_file = "deploy.txt"                     # beside filters.toml; or `input`, the text itself
  contains = ["done"]
  lacks = ["uploading"]

A rule with the name of a built-in rule replaces it; `enabled = false` disables it. An output of
less than 400 bytes is shown as it is, whatever the rules: a test takes a longer one.
`test` and `verify` exit with 1 if a test fails or a rule cannot work."#
);

/// For `-h` of `zeph-host stats`.
pub(crate) const STATS_EXAMPLES: &str = stats_examples!();

/// For `--help` of `zeph-host stats`.
pub(crate) const STATS_LONG: &str = concat!(
    stats_examples!(),
    r#"

F, P and B count outputs in the expected format (full), in a partly recognized format (partial), and
in an unknown format (fallback). READ BACK counts filtered outputs whose full text was requested
later; more than one in ten means that the rule omits something that is needed. Tokens are estimated
as a quarter of the bytes.

JSON: {"all": {...}, "rules": [{"rule", "n_outputs", "n_shortened", "lines_before", "lines_after",
"bytes_before", "bytes_after", "tokens_saved", "n_full", "n_partial", "n_fallback", "n_read_back",
"read_back_often"}], "cache": {"n_hits", "bytes"}, "approvals": {"calls", "asked", "unanswered",
"per_100_calls"}}. "approvals" counts calls of models and programs in the audit log, across
sessions: those that a user was asked about, or would have been."#
);

/// For `-h` of `zeph-host hook`.
pub(crate) const HOOK_EXAMPLES: &str = hook_examples!();

/// For `--help` of `zeph-host hook`.
pub(crate) const HOOK_LONG: &str = concat!(
    hook_examples!(),
    r#"

Reads the event as JSON from standard input and answers in the agent's hook format. On any error the
exit code is 0 and standard output is empty, which means "no opinion"; the error is printed to
standard error.

Claude Code, in ~/.claude/settings.json:

  {"hooks": {"PostToolUse": [{"matcher": "Bash", "hooks": [
    {"type": "command", "command": "zeph-host hook claude post-tool-use", "timeout": 10}]}]}}

Codex, in ~/.codex/hooks.json:

  {"hooks": {"PreToolUse": [{"matcher": "Bash", "hooks": [
    {"type": "command", "command": "zeph-host hook codex pre-tool-use", "timeout": 10}]}]}}

pre-tool-use rewrites a command if it is a single simple command with a rule. Agents treat a
rewritten command as allowed, so commands are rewritten only in modes that ask for nothing
(bypassPermissions), or with --allow.

Read omitted output with `zeph-host filter --read ID`."#
);
