//! What can be typed, as clap derives it. Help texts teach by example; the manual page and the shell completions are
//! generated from here.

mod authority;
mod filters;
mod plugin;

use std::path::PathBuf;

use clap::{ArgAction, Args as ClapArgs, Parser, Subcommand, ValueEnum};
use zeph_core::id::ConversationId;

pub(crate) use self::authority::{
    Approve, Doctor, Explain, HowLongApproved, Policy, PolicyCommand,
};
pub(crate) use self::filters::{Filter, Filters, FiltersCommand, Hook, Stats};
pub(crate) use self::plugin::{
    HowLong, Plugin, PluginAdd, PluginCheck, PluginCommand, PluginConfirmed, PluginDev,
    PluginGrant, PluginName, PluginNew, PluginRevoke, Selectors,
};
use super::help::{
    CALL_EXAMPLES, CALL_LONG, RUN_EXAMPLES, RUN_LONG, SELFTEST_EXAMPLES, SELFTEST_LONG,
    TOP_EXAMPLES, TOP_LONG,
};

/// Runs the tools of LLM agents as sandboxed WebAssembly components.
#[derive(Debug, Parser)]
#[command(
    name = "zeph-host",
    version,
    arg_required_else_help = true,
    subcommand_required = true,
    propagate_version = true,
    max_term_width = 100,
    after_help = TOP_EXAMPLES,
    after_long_help = TOP_LONG
)]
pub(crate) struct Args {
    #[command(flatten)]
    pub(crate) global: Global,
    #[command(subcommand)]
    pub(crate) command: Command,
}

/// Flags of every command.
#[derive(Debug, Clone, ClapArgs)]
#[command(next_help_heading = "Global options")]
pub(crate) struct Global {
    /// Configuration file in place of the user's own
    #[arg(long, value_name = "FILE", global = true)]
    pub(crate) config: Option<PathBuf>,
    /// Set one configuration key, such as `limits.cpu_secs=60`; repeatable
    #[arg(long, value_name = "KEY=VALUE", global = true, action = ArgAction::Append)]
    pub(crate) set: Vec<String>,
    /// Directory the tools may touch, in place of the current one; repeatable
    #[arg(long, value_name = "DIR", global = true, action = ArgAction::Append)]
    pub(crate) root: Vec<PathBuf>,
    /// Do not look for the project's `.zeph/config.toml`
    #[arg(long, global = true)]
    pub(crate) no_project: bool,
    /// Log more; twice and three times for still more
    #[arg(short, long, global = true, action = ArgAction::Count)]
    pub(crate) verbose: u8,
    /// Only errors: no notes, no summary
    #[arg(short, long, global = true, action = ArgAction::Count, conflicts_with = "verbose")]
    pub(crate) quiet: u8,
    /// When to use colours
    #[arg(
        long,
        value_name = "WHEN",
        global = true,
        default_value = "auto",
        hide_default_value = true
    )]
    pub(crate) color: Color,
}

/// When to use colours.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum Color {
    /// On a terminal, unless `NO_COLOR` is set.
    Auto,
    /// Always.
    Always,
    /// Never.
    Never,
}

/// What to do.
#[derive(Debug, Subcommand)]
pub(crate) enum Command {
    /// Make calls: a line editor on a terminal, JSON lines on a pipe
    Run(Run),
    /// Make one call
    Call(Call),
    /// List the tools, or show one with its parameters
    Tools(Tools),
    /// Look at plugins, add them, and decide what they may touch
    Plugin(Plugin),
    /// Let a call run that was refused because nobody was there to ask
    Approve(Approve),
    /// Say what would become of a call, and why, without making it
    Explain(Explain),
    /// Check the rules that decide about calls
    Policy(Policy),
    /// Run a command and print less of its output, or shorten a log
    Filter(Filter),
    /// Look at the rules that shorten outputs, and try them
    Filters(Filters),
    /// Say what shortening outputs saved
    Stats(Stats),
    /// Shorten outputs for another agent, as a hook of it
    Hook(Hook),
    /// Show, describe or check the configuration
    Config(Config),
    /// Read the record of every call
    Audit(Audit),
    /// List conversations, or delete one with its stored outputs
    Conversations(Conversations),
    /// Look at what this machine offers the host, and say how to get what is missing
    Doctor(Doctor),
    /// Try the walls around plugins on this machine, and say which hold
    Selftest(Selftest),
    /// Print completions for a shell
    #[command(
        after_help = "Example:\n  zeph-host completions bash >~/.local/share/bash-completion/completions/zeph-host"
    )]
    Completions(Completions),
    /// Print the manual page
    #[command(after_help = "Example:\n  zeph-host man | man -l -")]
    Man,
}

/// `zeph-host run`
#[derive(Debug, ClapArgs)]
#[command(after_help = RUN_EXAMPLES, after_long_help = RUN_LONG)]
pub(crate) struct Run {
    /// Read the calls from a file, one JSON object a line
    #[arg(long, value_name = "FILE")]
    pub(crate) calls: Option<PathBuf>,
    /// Calls in progress at one time; 0 is one for each processor (default: `run.jobs`)
    #[arg(short, long, value_name = "N")]
    pub(crate) jobs: Option<usize>,
    /// Let calls run that would ask, such as `write` or `write:src/**`; repeatable
    #[arg(long, value_name = "TOOL[:PATTERN]", action = ArgAction::Append)]
    pub(crate) allow: Vec<String>,
    /// Ask at the terminal before a call runs that would be refused for want of somebody to ask
    #[arg(long)]
    pub(crate) ask: bool,
    /// Go on with a conversation: its stored outputs can be read back
    #[arg(long, value_name = "ID")]
    pub(crate) conversation: Option<ConversationId>,
    /// Read JSON lines even on a terminal
    #[arg(long)]
    pub(crate) jsonl: bool,
}

/// `zeph-host call`
#[derive(Debug, ClapArgs)]
#[command(after_help = CALL_EXAMPLES, after_long_help = CALL_LONG)]
pub(crate) struct Call {
    /// The tool to call
    #[arg(value_name = "TOOL")]
    pub(crate) tool: String,
    /// Its arguments
    #[arg(value_name = "KEY=VALUE", conflicts_with = "json")]
    pub(crate) arguments: Vec<String>,
    /// All arguments as one JSON object: the text itself, `@FILE`, or `-` for standard input
    #[arg(long, value_name = "ARGS", allow_hyphen_values = true)]
    pub(crate) json: Option<String>,
    /// Go on with a conversation: its stored outputs can be read back
    #[arg(long, value_name = "ID")]
    pub(crate) conversation: Option<ConversationId>,
    /// What to print
    #[arg(short, long, value_name = "FORM", default_value = "text")]
    pub(crate) output: CallOutput,
}

/// The form of a result.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum CallOutput {
    /// The text of a success on standard output, a failure on standard error
    Text,
    /// One JSON object, whatever happened, as `run` prints it
    Json,
}

/// `zeph-host tools`
#[derive(Debug, ClapArgs)]
#[command(
    args_conflicts_with_subcommands = true,
    after_help = "Examples:\n  zeph-host tools\n  zeph-host tools show grep\n  zeph-host tools list --json"
)]
pub(crate) struct Tools {
    #[command(subcommand)]
    pub(crate) command: Option<ToolsCommand>,
    #[command(flatten)]
    pub(crate) json: Json,
}

/// What to do with the catalog.
#[derive(Debug, Subcommand)]
pub(crate) enum ToolsCommand {
    /// One line for each tool
    List {
        #[command(flatten)]
        json: Json,
    },
    /// One tool: description, parameters, schema
    Show {
        /// The tool
        #[arg(value_name = "NAME")]
        name: String,
        #[command(flatten)]
        json: Json,
    },
}

/// `--json` of every listing.
#[derive(Debug, Clone, Copy, ClapArgs)]
pub(crate) struct Json {
    /// Print JSON
    #[arg(long)]
    pub(crate) json: bool,
}

/// `zeph-host config`
#[derive(Debug, ClapArgs)]
#[command(
    args_conflicts_with_subcommands = true,
    after_help = "Examples:\n  zeph-host config show --origin\n  zeph-host config check .zeph/config.toml\n  zeph-host config schema >schema.json"
)]
pub(crate) struct Config {
    #[command(subcommand)]
    pub(crate) command: Option<ConfigCommand>,
    #[command(flatten)]
    pub(crate) show: ConfigShow,
}

/// What to do with the configuration.
#[derive(Debug, Subcommand)]
pub(crate) enum ConfigCommand {
    /// Every key with its effective value
    Show(ConfigShow),
    /// The JSON Schema of a configuration file
    Schema,
    /// Check one file, or everything that would be in effect
    Check {
        /// The file
        #[arg(value_name = "FILE")]
        file: Option<PathBuf>,
    },
}

/// How to show it.
#[derive(Debug, Clone, Copy, ClapArgs)]
pub(crate) struct ConfigShow {
    /// Say where each value was set
    #[arg(long)]
    pub(crate) origin: bool,
    #[command(flatten)]
    pub(crate) json: Json,
}

/// `zeph-host audit`
#[derive(Debug, ClapArgs)]
#[command(
    args_conflicts_with_subcommands = true,
    after_help = "Examples:\n  zeph-host audit tail -n 20 -f\n  zeph-host audit query --tool write --since 2h\n  zeph-host audit query --unfinished --json"
)]
pub(crate) struct Audit {
    #[command(subcommand)]
    pub(crate) command: Option<AuditCommand>,
    #[command(flatten)]
    pub(crate) tail: AuditTail,
}

/// Which part of the record.
#[derive(Debug, Subcommand)]
pub(crate) enum AuditCommand {
    /// The newest calls, oldest first
    Tail(AuditTail),
    /// The calls that fit every condition, oldest first
    Query(AuditQuery),
}

/// `zeph-host audit tail`
#[derive(Debug, Clone, Copy, ClapArgs)]
pub(crate) struct AuditTail {
    /// How many calls
    #[arg(short = 'n', long = "lines", value_name = "N", default_value_t = 10)]
    pub(crate) lines: u32,
    /// Go on printing calls as they end
    #[arg(short, long)]
    pub(crate) follow: bool,
    #[command(flatten)]
    pub(crate) json: Json,
}

/// `zeph-host audit query`
#[derive(Debug, Clone, ClapArgs)]
pub(crate) struct AuditQuery {
    /// Of this tool
    #[arg(long, value_name = "NAME")]
    pub(crate) tool: Option<String>,
    /// That failed with this category, such as `timeout`
    #[arg(long, value_name = "CATEGORY")]
    pub(crate) category: Option<String>,
    /// Begun at this time or later: `2h`, `3d`, `2026-11-20` or `2026-11-20T08:00:00Z`
    #[arg(long, value_name = "TIME")]
    pub(crate) since: Option<String>,
    /// Begun before this time
    #[arg(long, value_name = "TIME")]
    pub(crate) until: Option<String>,
    /// Of this conversation
    #[arg(long, value_name = "ID")]
    pub(crate) conversation: Option<ConversationId>,
    /// Only calls without an end: still running, or the host died
    #[arg(long)]
    pub(crate) unfinished: bool,
    /// At most so many of the newest
    #[arg(long, value_name = "N", default_value_t = 1000)]
    pub(crate) limit: u32,
    #[command(flatten)]
    pub(crate) json: Json,
}

/// `zeph-host conversations`
#[derive(Debug, ClapArgs)]
#[command(
    args_conflicts_with_subcommands = true,
    after_help = "Examples:\n  zeph-host conversations\n  zeph-host conversations delete 01938c2e-5a51-7cc3-98f2-8c1f9a3b7e10"
)]
pub(crate) struct Conversations {
    #[command(subcommand)]
    pub(crate) command: Option<ConversationsCommand>,
    #[command(flatten)]
    pub(crate) json: Json,
}

/// What to do with conversations.
#[derive(Debug, Subcommand)]
pub(crate) enum ConversationsCommand {
    /// The conversations used last, newest first
    List {
        #[command(flatten)]
        json: Json,
    },
    /// Delete one and its stored outputs; its audit rows stay
    Delete {
        /// The conversation
        #[arg(value_name = "ID")]
        id: ConversationId,
    },
}

/// `zeph-host selftest`
#[derive(Debug, ClapArgs)]
#[command(after_help = SELFTEST_EXAMPLES, after_long_help = SELFTEST_LONG)]
pub(crate) struct Selftest {
    #[command(flatten)]
    pub(crate) json: Json,
}

/// `zeph-host completions`
#[derive(Debug, ClapArgs)]
pub(crate) struct Completions {
    /// The shell
    #[arg(value_name = "SHELL")]
    pub(crate) shell: clap_complete::Shell,
}
