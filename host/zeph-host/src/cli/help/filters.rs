//! The help texts of `filter`, `filters`, `stats` and `hook`.

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
  zeph-host filters                       the rules in force
  zeph-host filters why -- cargo test     which of them would act
  zeph-host filters show cargo-test
  zeph-host filters test ./filters.toml   the tests in a rule file
  zeph-host filters verify                the rule file in use"#
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
  zeph-host hook claude post-tool-use     replaces the output of a Bash call by the shorter one
  zeph-host hook codex pre-tool-use       runs a command through `zeph-host filter`"#
    };
}

/// For `-h` of `zeph-host filter`.
pub(crate) const FILTER_EXAMPLES: &str = filter_examples!();

/// For `--help` of `zeph-host filter`.
pub(crate) const FILTER_LONG: &str = concat!(
    filter_examples!(),
    r#"

Runs the command as you would: your environment, your input, no sandbox. When it has ended, both its
streams are printed to standard output in the order of arrival, shortened by the rules for it. What was
left out is stored and can be read back; what cannot be stored is not left out. The exit code is the
command's own (128 and the number of the signal that ended it; 127 when there is no such command).

At a terminal, a command that no rule is for prints there itself. Output of more than 64 MiB, or
of more than may be stored (`tools.overflow.max_overflow_bytes`), is passed on as it comes.

A rule that names a strategy of a plugin (`wasm:NAME`) works here as it does for calls; the
strategies of the program run in this process."#
);

/// For `-h` of `zeph-host filters`.
pub(crate) const FILTERS_EXAMPLES: &str = filters_examples!();

/// For `--help` of `zeph-host filters`.
pub(crate) const FILTERS_LONG: &str = concat!(
    filters_examples!(),
    r#"

Your rules stand in filters.toml beside the configuration file, or where `tools.filters.filters_path`
says:

  [[rules]]
  name = "deploy"
  match = { prefix = "./deploy.sh" }            # or exact, or regex
  strategy = { type = "strip_noise", patterns = ['^uploading '] }

  [[tests]]
  name = "uploads are noise"
  command = "./deploy.sh prod"
  input = "uploading a\nuploading b\ndone\n"
  contains = ["done"]

A rule named like a built-in one takes its place; `enabled = false` switches one off.
Exit code of test and verify: 1 when a test fails or something in the file is not used."#
);

/// For `-h` of `zeph-host stats`.
pub(crate) const STATS_EXAMPLES: &str = stats_examples!();

/// For `--help` of `zeph-host stats`.
pub(crate) const STATS_LONG: &str = concat!(
    stats_examples!(),
    r#"

F, P and B count outputs that were as expected (full), handled by a guess (partial), and not as expected
(fallback). READ BACK counts shortened outputs whose whole a model asked for; more than one in ten means
that the rule leaves out what is needed. Tokens are estimated as a quarter of the bytes.

JSON: {"all": {...}, "rules": [{"rule", "n_outputs", "n_shortened", "lines_before", "lines_after",
"bytes_before", "bytes_after", "tokens_saved", "n_full", "n_partial", "n_fallback", "n_read_back",
"read_back_often"}]}"#
);

/// For `-h` of `zeph-host hook`.
pub(crate) const HOOK_EXAMPLES: &str = hook_examples!();

/// For `--help` of `zeph-host hook`.
pub(crate) const HOOK_LONG: &str = concat!(
    hook_examples!(),
    r#"

Reads the event as JSON from standard input and answers as the agent's hooks do. Whatever goes wrong,
the exit code is 0 and standard output is empty, which means "no opinion"; why is on standard error.

Claude Code, in ~/.claude/settings.json:

  {"hooks": {"PostToolUse": [{"matcher": "Bash", "hooks": [
    {"type": "command", "command": "zeph-host hook claude post-tool-use", "timeout": 10}]}]}}

Codex, in ~/.codex/hooks.json:

  {"hooks": {"PreToolUse": [{"matcher": "Bash", "hooks": [
    {"type": "command", "command": "zeph-host hook codex pre-tool-use", "timeout": 10}]}]}}

A command is rewritten before it runs (pre-tool-use) when it is one plain command that a rule is for. An
agent takes a rewritten command as allowed, so this happens only in modes in which it asks for nothing
anyway (bypassPermissions), or with --allow.

What was left out is read back with `zeph-host filter --read ID`."#
);
