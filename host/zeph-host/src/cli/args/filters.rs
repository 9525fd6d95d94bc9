//! What can be typed about output filters: `filter`, `filters`, `stats`, `hook`.

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
    /// Shorten standard input as the output of this command, in place of running one
    #[arg(long = "as", value_name = "COMMAND", conflicts_with = "command")]
    pub(crate) as_command: Option<String>,
    /// The exit code it ended with; without it, it is taken for a failure
    #[arg(
        long,
        value_name = "N",
        requires = "as_command",
        conflicts_with = "command",
        allow_negative_numbers = true
    )]
    pub(crate) exit_code: Option<i32>,
    /// Store the whole input, to be read back
    #[arg(long, requires = "as_command", conflicts_with = "command")]
    pub(crate) keep: bool,
    /// Print a stored output, byte for byte
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
pub(crate) struct Filters {
    #[command(subcommand)]
    pub(crate) command: Option<FiltersCommand>,
    #[command(flatten)]
    pub(crate) json: Json,
}

/// What to do with the rules.
#[derive(Debug, Subcommand)]
pub(crate) enum FiltersCommand {
    /// One line for each rule, in the order they act
    #[command(after_help = "Example:\n  zeph-host filters list --json")]
    List {
        #[command(flatten)]
        json: Json,
    },
    /// One rule
    #[command(after_help = "Example:\n  zeph-host filters show cargo-test")]
    Show {
        /// The rule
        #[arg(value_name = "NAME")]
        name: String,
        #[command(flatten)]
        json: Json,
    },
    /// Run the tests in a rule file with its rules over the built-in ones
    #[command(after_help = "Example:\n  zeph-host filters test ./filters.toml")]
    Test {
        /// The rule file
        #[arg(value_name = "FILE")]
        file: PathBuf,
        #[command(flatten)]
        json: Json,
    },
    /// Check the rule file in use, and run the tests in it
    #[command(after_help = "Example:\n  zeph-host filters verify")]
    Verify {
        #[command(flatten)]
        json: Json,
    },
    /// Say which rules would act on the output of a command, and why others would not
    #[command(
        after_help = "Examples:\n  zeph-host filters why -- cargo test\n  zeph-host filters why -- 'cd app && npm ci | tail -5'"
    )]
    Why {
        /// The command, as words or as one text for a shell
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
    /// Of one conversation
    #[arg(long, value_name = "ID")]
    pub(crate) conversation: Option<ConversationId>,
    #[command(flatten)]
    pub(crate) json: Json,
}

/// `zeph-host hook`
///
/// Everything is free text: a word that is wrong must not end in the exit code that blocks an agent.
#[derive(Debug, ClapArgs)]
#[command(after_help = HOOK_EXAMPLES, after_long_help = HOOK_LONG, arg_required_else_help = true)]
pub(crate) struct Hook {
    /// The agent: claude or codex
    #[arg(value_name = "AGENT")]
    pub(crate) agent: String,
    /// The event: pre-tool-use or post-tool-use; without it, the input tells
    #[arg(value_name = "EVENT")]
    pub(crate) event: Option<String>,
    /// Rewrite commands in modes too in which the agent may ask its user; what is rewritten then runs without asking
    #[arg(long)]
    pub(crate) allow: bool,
}
