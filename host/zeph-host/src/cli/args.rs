//! The command line, as clap derives it. The manual page and the shell completions are generated from these types.

mod acp;
mod audit;
mod authority;
mod filters;
mod frequent;
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

use std::net::SocketAddr;
use std::path::PathBuf;

use clap::{ArgAction, Args as ClapArgs, Parser, Subcommand, ValueEnum};
use zeph_core::id::ConversationId;

pub(crate) use self::acp::{AcpArgs, JailArgs};
pub(crate) use self::audit::{
    Audit, AuditCommand, AuditExport, AuditFormat, AuditQuery, AuditTail, AuditVerify,
};
pub(crate) use self::authority::{
    ApprovalDuration, Approve, Doctor, Explain, Policy, PolicyCommand,
};
pub(crate) use self::filters::{Filter, FiltersArgs, FiltersCommand, HookArgs, Stats};
pub(crate) use self::frequent::FrequentArgs;
pub(crate) use self::governance::{Forgive, Revoke};
pub(crate) use self::mcp::{Mcp, McpApprove, McpCommand, McpConfig, McpLogin, McpName};
pub(crate) use self::plugin::{
    ConfirmedPlugin, GrantMode, HowLong, Plugin, PluginAdd, PluginCheck, PluginCommand, PluginDev,
    PluginGrant, PluginName, PluginNew, PluginPublish, PluginRevoke, Selectors,
};
pub(crate) use self::records::{Grants, PluginSuggest, PolicySuggest, Replay};
pub(crate) use self::scheduler::{Scheduler, SchedulerCommand};
pub(crate) use self::secret::{Secret, SecretCommand};
pub(crate) use self::signature::{PluginKeygen, PluginSign, PluginVerify};
pub(crate) use self::store::{StoreArgs, StoreCommand, StorePlace};
pub(crate) use self::supply::{
    AcceptedRisk, Consent, PluginApprove, PluginBundle, PluginSearch, PluginSync, PluginUpdate,
};
pub(crate) use self::token::{Token, TokenAdd, TokenCommand};
pub(crate) use self::trust::{Trust, TrustCommand};
pub(crate) use self::wrap::Wrap;
use super::help::{
    CALL_EXAMPLES, CALL_LONG, CONFIG_EXAMPLES, RUN_EXAMPLES, RUN_LONG, SELFTEST_EXAMPLES,
    SELFTEST_LONG, SERVE_EXAMPLES, SERVE_LONG, TOP_EXAMPLES, TOP_LONG,
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
pub(crate) struct CliArgs {
    #[command(flatten)]
    pub(crate) global: Global,
    #[command(subcommand)]
    pub(crate) command: CliCommand,
}

/// Flags of every command.
#[derive(Debug, Clone, ClapArgs)]
#[command(next_help_heading = "Global options")]
pub(crate) struct Global {
    /// Use this configuration file instead of the user's own
    #[arg(long, value_name = "FILE", global = true)]
    pub(crate) config: Option<PathBuf>,
    /// Set one configuration key, such as `limits.cpu_secs=60`; repeatable
    #[arg(long, value_name = "KEY=VALUE", global = true, action = ArgAction::Append)]
    pub(crate) set: Vec<String>,
    /// Directory that tools and commands may access, instead of the current directory; commands
    /// start in the first one; repeatable
    #[arg(long, value_name = "DIR", global = true, action = ArgAction::Append)]
    pub(crate) root: Vec<PathBuf>,
    /// Directory with plugins, in addition to the usual ones; repeatable
    #[arg(long, value_name = "DIR", global = true, action = ArgAction::Append)]
    pub(crate) plugins: Vec<PathBuf>,
    /// Ignore the project's `.zeph/config.toml`
    #[arg(long, global = true)]
    pub(crate) no_project: bool,
    /// Log more; repeat for still more (-vv, -vvv)
    #[arg(short, long, global = true, action = ArgAction::Count)]
    pub(crate) verbose: u8,
    /// Print only errors
    #[arg(short, long, global = true, action = ArgAction::Count, conflicts_with = "verbose")]
    pub(crate) quiet: u8,
    /// When to use colors
    #[arg(
        long,
        value_name = "WHEN",
        global = true,
        default_value = "auto",
        hide_default_value = true
    )]
    pub(crate) color: Color,
}

/// When to use colors.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum Color {
    /// On a terminal, unless `NO_COLOR` is set.
    Auto,
    /// Always.
    Always,
    /// Never.
    Never,
}

/// A command of the program.
#[derive(Debug, Subcommand)]
pub(crate) enum CliCommand {
    /// Give a model a task, or chat with it; without a model, call tools at a prompt or as JSON lines
    Run(RunArgs),
    /// Serve the tools to agents and editors over the Model Context Protocol (MCP)
    Serve(Serve),
    /// Be the agent of an editor, over the Agent Client Protocol (ACP)
    Acp(AcpArgs),
    /// Serve one MCP server as if it were started directly, in a sandbox and under the rules
    Wrap(Wrap),
    /// Call one tool
    Call(CallArgs),
    /// List the available tools, or describe one
    Tools(Tools),
    /// Manage plugins and what they may access
    Plugin(Plugin),
    /// List what plugins are granted and when it was last used
    Grants(Grants),
    /// Make a recorded call again, without side effects, and compare the result
    Replay(Replay),
    /// Approve a pending call
    Approve(Approve),
    /// Mark the result of a call as unacceptable: such calls are denied from then on
    Revoke(Revoke),
    /// Allow a learned sequence of calls again, or list them
    Forgive(Forgive),
    /// Show how a call would be decided, without making it
    Explain(Explain),
    /// Check the rules that allow or deny calls
    Policy(Policy),
    /// Run a command, or read a log, and print its output filtered
    Filter(Filter),
    /// List, test and explain output filter rules
    Filters(FiltersArgs),
    /// Show how much output filtering saved, and how many calls needed approval
    Stats(Stats),
    /// Read a project for code search, or show how far its index is
    Index(Index),
    /// Filter output for another agent, as one of its hooks
    Hook(HookArgs),
    /// Show or check the configuration
    Config(Config),
    /// Read, verify and export the audit log
    Audit(Audit),
    /// List or delete conversations
    Conversations(Conversations),
    /// Run scheduled tasks when they are due; list or cancel them
    Scheduler(Scheduler),
    /// List, test and approve the MCP servers whose tools the host offers
    Mcp(Mcp),
    /// Set up an MCP client to use the tools
    McpConfig(McpConfig),
    /// Manage the secrets that plugins can use and never read
    Secret(Secret),
    /// Manage the tokens of `serve --http`
    Token(Token),
    /// Prepare a store for this version, or copy one to another database
    Store(StoreArgs),
    /// Show or set how far tools are trusted, and unblock them
    Trust(Trust),
    /// Check what this machine provides, and how to install what is missing
    Doctor(Doctor),
    /// Test the isolation on this machine with hostile components and commands
    Selftest(Selftest),
    /// Show a command that runs in the sandbox of a host, in the terminal of an editor
    #[command(hide = true)]
    Jail(JailArgs),
    /// Print shell completions
    #[command(
        after_help = "Example:\n  mkdir -p ~/.local/share/bash-completion/completions\n  zeph-host completions bash >~/.local/share/bash-completion/completions/zeph-host"
    )]
    Completions(Completions),
    /// Print the manual page
    #[command(after_help = "Example:\n  zeph-host man | man -l -")]
    Man,
}

/// `zeph-host run`
#[derive(Debug, Default, ClapArgs)]
#[command(after_help = RUN_EXAMPLES, after_long_help = RUN_LONG)]
pub(crate) struct RunArgs {
    /// Give a task to the configured model, which works on it with the tools; `-` reads it from standard input
    #[arg(value_name = "PROMPT", conflicts_with_all = ["calls", "jobs", "jsonl"])]
    pub(crate) prompt: Option<String>,
    /// Print events as JSON, one object per line, instead of the model's text
    #[arg(long, conflicts_with_all = ["calls", "jobs", "jsonl"])]
    pub(crate) json: bool,
    /// Continue a session of the agent: the last one of this directory that no schedule began, or that with this ID
    #[arg(long, value_name = "ID", num_args = 0..=1, conflicts_with_all = ["calls", "jobs", "jsonl", "conversation"])]
    pub(crate) resume: Option<Option<String>>,
    /// Print the request that the prompt would send to the model as JSON, and send nothing
    #[arg(long, value_name = "PROMPT", num_args = 0..=1, conflicts_with_all = ["calls", "jobs", "jsonl", "json"])]
    pub(crate) show_prompt: Option<Option<String>>,
    /// Use this provider of `llm.providers` [default: `agent.provider`]
    #[arg(long, value_name = "NAME", conflicts_with_all = ["calls", "jobs", "jsonl"])]
    pub(crate) provider: Option<String>,
    /// Open the prompt for tools even when a model is configured
    #[arg(long, conflicts_with_all = ["prompt", "json", "resume", "show_prompt", "provider"])]
    pub(crate) no_model: bool,
    /// Show how it works with a scripted model, real tools and a real sandbox, in a temporary directory
    #[arg(long, conflicts_with_all = ["prompt", "calls", "jobs", "jsonl", "resume", "show_prompt", "provider", "no_model", "allow", "ask", "conversation"])]
    pub(crate) demo: bool,
    /// Chat on the full screen, with a pane of tools and live counters
    #[arg(long, conflicts_with_all = ["prompt", "json", "calls", "jobs", "jsonl", "show_prompt", "no_model", "ask"])]
    pub(crate) tui: bool,
    /// Print the JSON Schema of the events of `--json`
    #[arg(long, exclusive = true)]
    pub(crate) json_schema: bool,
    /// Print the JSON Schemas of the requests and the answers of JSON lines
    #[arg(long, exclusive = true)]
    pub(crate) jsonl_schema: bool,
    /// Read calls from a file, one JSON object per line
    #[arg(long, value_name = "FILE")]
    pub(crate) calls: Option<PathBuf>,
    /// Number of calls to run at once; 0 means one per processor [default: `run.jobs`]
    #[arg(short, long, value_name = "N")]
    pub(crate) jobs: Option<usize>,
    /// Allow calls that would need approval, such as `write` or `write:src/**`; repeatable
    #[arg(long, value_name = "TOOL[:PATTERN]", action = ArgAction::Append)]
    pub(crate) allow: Vec<String>,
    /// Ask on the terminal when a call needs approval, instead of refusing it
    #[arg(long)]
    pub(crate) ask: bool,
    /// Continue a conversation; its stored outputs can be read back
    #[arg(long, value_name = "ID")]
    pub(crate) conversation: Option<ConversationId>,
    /// Append what calls really used to this file, as JSON lines, for `plugin suggest`, `policy suggest` and `replay`
    #[arg(long, value_name = "FILE")]
    pub(crate) record: Option<PathBuf>,
    /// Read JSON lines even when standard input is a terminal
    #[arg(long)]
    pub(crate) jsonl: bool,
}

impl RunArgs {
    /// Whether only an agent can do what is asked.
    pub(crate) fn asks_agent(&self) -> bool {
        self.prompt.is_some()
            || self.json
            || self.resume.is_some()
            || self.show_prompt.is_some()
            || self.provider.is_some()
            || self.tui
    }
}

/// `zeph-host serve`
#[derive(Debug, ClapArgs)]
#[command(after_help = SERVE_EXAMPLES, after_long_help = SERVE_LONG)]
pub(crate) struct Serve {
    /// Serve one client on standard input and output; the default
    #[arg(long, conflicts_with = "http")]
    pub(crate) stdio: bool,
    /// Serve clients over HTTP at `/mcp` of this address: a port, `localhost:PORT` or `IP:PORT`
    #[arg(long, value_name = "ADDR", value_parser = zeph_mcp::http::parse_address)]
    pub(crate) http: Option<SocketAddr>,
    /// Host name that requests may name besides the address, such as that of a proxy; repeatable
    #[arg(long, value_name = "NAME", requires = "http", action = ArgAction::Append)]
    pub(crate) allow_host: Vec<String>,
    /// Allow calls that would need approval, such as `write` or `write:src/**`; repeatable
    #[arg(long, value_name = "TOOL[:PATTERN]", action = ArgAction::Append)]
    pub(crate) allow: Vec<String>,
    /// Continue a conversation; its stored outputs can be read back
    #[arg(long, value_name = "ID", conflicts_with = "http")]
    pub(crate) conversation: Option<ConversationId>,
    /// Append what calls really used to this file, as JSON lines, for `plugin suggest`, `policy suggest` and `replay`
    #[arg(long, value_name = "FILE")]
    pub(crate) record: Option<PathBuf>,
}

/// `zeph-host call`
#[derive(Debug, ClapArgs)]
#[command(after_help = CALL_EXAMPLES, after_long_help = CALL_LONG)]
pub(crate) struct CallArgs {
    /// The tool to call; or a component (`FILE.wasm`) followed by one of its tools, without installing it
    // With numbers: an argument that completions know would come last without.
    #[arg(value_name = "TOOL", index = 1)]
    pub(crate) tool: String,
    /// Arguments of the tool
    #[arg(value_name = "KEY=VALUE", index = 2)]
    pub(crate) arguments: Vec<String>,
    /// All arguments as one JSON object: the JSON itself, `@FILE`, or `-` for standard input
    #[arg(long, value_name = "ARGS", allow_hyphen_values = true)]
    pub(crate) json: Option<String>,
    /// Continue a conversation; its stored outputs can be read back
    #[arg(long, value_name = "ID")]
    pub(crate) conversation: Option<ConversationId>,
    /// Append what calls really used to this file, as JSON lines, for `plugin suggest`, `policy suggest` and `replay`
    #[arg(long, value_name = "FILE")]
    pub(crate) record: Option<PathBuf>,
    /// Output format
    #[arg(short, long, value_name = "FORM", default_value = "text")]
    pub(crate) output: CallOutput,
}

/// The output format of a call.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum CallOutput {
    /// The result's text or the command's output on standard output, other failures on standard error
    Text,
    /// One JSON object, as `run` prints it, for every outcome
    Json,
}

/// `zeph-host index`
#[derive(Debug, ClapArgs)]
#[command(
    after_help = "Examples:\n  zeph-host index\n  zeph-host index --status --json\n  zeph-host index crates/parser"
)]
pub(crate) struct Index {
    /// The directory to read
    #[arg(value_name = "DIR", default_value = ".")]
    pub(crate) path: String,
    /// Read and send nothing; show how many files changed since they were read, and how many parts have no vector
    #[arg(long)]
    pub(crate) status: bool,
    #[command(flatten)]
    pub(crate) json: Json,
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

/// A command of `zeph-host tools`.
#[derive(Debug, Subcommand)]
pub(crate) enum ToolsCommand {
    /// List the tools, one per line
    List {
        #[command(flatten)]
        json: Json,
    },
    /// Show one tool: description, parameters, schema
    Show {
        /// The tool
        #[arg(value_name = "NAME")]
        name: String,
        #[command(flatten)]
        json: Json,
    },
}

/// The `--json` flag of a listing.
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
    after_help = CONFIG_EXAMPLES
)]
pub(crate) struct Config {
    #[command(subcommand)]
    pub(crate) command: Option<ConfigCommand>,
    #[command(flatten)]
    pub(crate) show: ConfigShow,
}

/// A command of `zeph-host config`.
#[derive(Debug, Subcommand)]
pub(crate) enum ConfigCommand {
    /// Print every key with its effective value
    Show(ConfigShow),
    /// Print the JSON Schema of the configuration file
    Schema,
    /// Check one file, or the whole effective configuration
    Check {
        /// The file
        #[arg(value_name = "FILE")]
        file: Option<PathBuf>,
        #[command(flatten)]
        json: Json,
    },
}

/// Flags of `zeph-host config show`.
#[derive(Debug, Clone, Copy, ClapArgs)]
pub(crate) struct ConfigShow {
    /// Show where each value was set
    #[arg(long)]
    pub(crate) origin: bool,
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

/// A command of `zeph-host conversations`.
#[derive(Debug, Subcommand)]
pub(crate) enum ConversationsCommand {
    /// List the conversations used most recently, newest first
    List {
        #[command(flatten)]
        json: Json,
    },
    /// Delete a conversation and its stored outputs; its audit records are kept
    Delete {
        /// The conversation
        #[arg(value_name = "ID", value_parser = conversation)]
        id: ConversationId,
    },
}

fn conversation(text: &str) -> Result<ConversationId, &'static str> {
    let id = text.parse();
    id.map_err(|_| "wanted the whole ID of a conversation; `zeph-host conversations` lists them")
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
