//! Arguments of `filter`, `filters`, `stats` and `hook`.

use std::ffi::OsString;
use std::path::PathBuf;

use clap::{Args as ClapArgs, Subcommand};
use zeph_core::id::ConversationId;

use super::Json;
use crate::cli::help::{
    FILTER_EXAMPLES, FILTER_LONG, FILTERS_EXAMPLES, FILTERS_LONG, HOOK_EXAMPLES, HOOK_LONG,
    STATS_EXAMPLES, STATS_LONG,
};

/// `zeph-host filter`
#[derive(Debug, ClapArgs)]
#[command(after_help = FILTER_EXAMPLES, after_long_help = FILTER_LONG, arg_required_else_help = true)]
pub(crate) struct Filter {
    /// Filter standard input as the output of this command, instead of running one
    #[arg(long = "as", value_name = "COMMAND", conflicts_with = "command")]
    pub(crate) as_command: Option<String>,
    /// The command's exit code; without it, the command is assumed to have failed
    #[arg(
        long,
        value_name = "N",
        requires = "as_command",
        conflicts_with = "command",
        allow_negative_numbers = true
    )]
    pub(crate) exit_code: Option<i32>,
    /// Store the unfiltered input, so that it can be read back
    #[arg(long, requires = "as_command", conflicts_with = "command")]
    pub(crate) keep: bool,
    /// Print a stored output unchanged
    #[arg(long, value_name = "ID", conflicts_with_all = ["as_command", "command"])]
    pub(crate) read: Option<String>,
    /// The command to run
    #[arg(value_name = "COMMAND", last = true)]
    pub(crate) command: Vec<OsString>,
}

/// `zeph-host filters`
#[derive(Debug, ClapArgs)]
#[command(
    args_conflicts_with_subcommands = true,
    after_help = FILTERS_EXAMPLES,
    after_long_help = FILTERS_LONG
)]
pub(crate) struct FiltersArgs {
    #[command(subcommand)]
    pub(crate) command: Option<FiltersCommand>,
    #[command(flatten)]
    pub(crate) json: Json,
}

/// A command of `zeph-host filters`.
#[derive(Debug, Subcommand)]
pub(crate) enum FiltersCommand {
    /// List the rules in the order in which they apply
    #[command(after_help = "Example:\n  zeph-host filters list --json")]
    List {
        #[command(flatten)]
        json: Json,
    },
    /// Show one rule
    #[command(after_help = "Example:\n  zeph-host filters show cargo-test")]
    Show {
        /// The rule
        #[arg(value_name = "NAME")]
        name: String,
        #[command(flatten)]
        json: Json,
    },
    /// Run the tests of a rule file, with its rules added to the built-in ones
    #[command(after_help = "Example:\n  zeph-host filters test ./filters.toml")]
    Test {
        /// The rule file
        #[arg(value_name = "FILE")]
        file: PathBuf,
        #[command(flatten)]
        json: Json,
    },
    /// Check the active rule file and run its tests
    #[command(after_help = "Example:\n  zeph-host filters verify")]
    Verify {
        #[command(flatten)]
        json: Json,
    },
    /// Show which rules apply to the output of a command, and why others do not
    #[command(
        after_help = "Examples:\n  zeph-host filters why -- cargo test\n  zeph-host filters why -- 'cd app && npm ci | tail -5'"
    )]
    Why {
        /// The command, as words or as one string for a shell
        #[arg(value_name = "COMMAND", last = true, required = true)]
        command: Vec<String>,
        #[command(flatten)]
        json: Json,
    },
}

/// `zeph-host stats`
#[derive(Debug, ClapArgs)]
#[command(after_help = STATS_EXAMPLES, after_long_help = STATS_LONG)]
pub(crate) struct Stats {
    /// Only outputs of this conversation
    #[arg(long, value_name = "ID")]
    pub(crate) conversation: Option<ConversationId>,
    #[command(flatten)]
    pub(crate) json: Json,
}

/// `zeph-host hook`
///
/// All arguments are free text: a wrong word must not lead to the exit code that blocks an agent.
#[derive(Debug, ClapArgs)]
#[command(after_help = HOOK_EXAMPLES, after_long_help = HOOK_LONG, arg_required_else_help = true)]
pub(crate) struct HookArgs {
    /// The agent: `claude` or `codex`
    #[arg(value_name = "AGENT", index = 1)]
    pub(crate) agent: String,
    /// The event: `pre-tool-use` or `post-tool-use` [default: as the input says]
    #[arg(value_name = "EVENT", index = 2)]
    pub(crate) event: Option<String>,
    /// Also rewrite commands while the agent may ask its user; a rewritten command runs without asking
    #[arg(long)]
    pub(crate) allow: bool,
}
