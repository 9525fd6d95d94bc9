//! Arguments of `approve`, `explain`, `policy` and `doctor`.

use std::path::PathBuf;

use clap::{Args as ClapArgs, Subcommand};
use zeph_core::id::{ApprovalId, ConversationId};

use super::{Json, PolicySuggest};
use crate::cli::help::{
    APPROVE_CALL_EXAMPLES, APPROVE_CALL_LONG, DOCTOR_EXAMPLES, DOCTOR_LONG, EXPLAIN_EXAMPLES,
    EXPLAIN_LONG, POLICY_EXAMPLES, POLICY_LONG,
};

/// What says which pending call is meant: one of them, and whatever acts on a call needs it.
const PENDING: &str = "pending";

/// What is about no pending call.
const NO_CALL: [&str; 2] = ["list", "revoke"];

/// `zeph-host approve`
#[derive(Debug, ClapArgs)]
#[command(after_help = APPROVE_CALL_EXAMPLES, after_long_help = APPROVE_CALL_LONG)]
pub(crate) struct Approve {
    /// The pending call: the ID its refusal named, or a tool for its newest one; without it, list them
    #[arg(value_name = "ID|TOOL", group = PENDING, conflicts_with_all = NO_CALL)]
    pub(crate) which: Option<String>,
    /// Approve the newest pending call
    #[arg(long, group = PENDING, conflicts_with_all = NO_CALL)]
    pub(crate) last: bool,
    /// List pending calls and approvals
    #[arg(long, conflicts_with = "revoke")]
    pub(crate) list: bool,
    /// Revoke an approval
    #[arg(long, value_name = "ID")]
    pub(crate) revoke: Option<ApprovalId>,
    #[command(flatten)]
    pub(crate) how_long: ApprovalDuration,
    /// Deny the call and remove it from the list
    #[arg(long, requires = PENDING, conflicts_with_all = ["session", "always", "rule", "list", "revoke"])]
    pub(crate) deny: bool,
    /// Print an allow rule for such calls instead of approving this one
    #[arg(long, requires = PENDING, conflicts_with_all = ["session", "always", "list", "revoke"])]
    pub(crate) rule: bool,
    /// Add the rule to the user's configuration file
    #[arg(long, requires = "rule")]
    pub(crate) write: bool,
    /// Do not ask for confirmation
    #[arg(short, long, requires = PENDING, conflicts_with_all = NO_CALL)]
    pub(crate) yes: bool,
    #[command(flatten)]
    pub(crate) json: Json,
}

/// The lifetime of an approval; one call by default.
#[derive(Debug, Clone, Copy, Default, ClapArgs)]
#[group(multiple = false)]
pub(crate) struct ApprovalDuration {
    /// Approve every identical call of the conversation
    #[arg(long, requires = PENDING, conflicts_with_all = NO_CALL)]
    pub(crate) session: bool,
    /// Approve every identical call until the approval is revoked
    #[arg(long, requires = PENDING, conflicts_with_all = NO_CALL)]
    pub(crate) always: bool,
}

/// `zeph-host explain`
#[derive(Debug, ClapArgs)]
#[command(after_help = EXPLAIN_EXAMPLES, after_long_help = EXPLAIN_LONG)]
pub(crate) struct Explain {
    /// The tool
    #[arg(value_name = "TOOL", index = 1)]
    pub(crate) tool: String,
    /// Arguments of the tool, as for `zeph-host call`
    #[arg(value_name = "KEY=VALUE", index = 2, conflicts_with = "arguments_json")]
    pub(crate) arguments: Vec<String>,
    /// All arguments as one JSON object: the JSON itself, `@FILE`, or `-` for standard input
    #[arg(long = "args", value_name = "ARGS", allow_hyphen_values = true)]
    pub(crate) arguments_json: Option<String>,
    /// Decide as for a call typed at the terminal, instead of one made by a program
    #[arg(long)]
    pub(crate) as_person: bool,
    /// Decide as for a run of a scheduled task, for which nobody can be asked
    #[arg(long, conflicts_with = "as_person")]
    pub(crate) as_task: bool,
    /// Decide as with `zeph-host run --allow`; repeatable
    #[arg(long, value_name = "TOOL[:PATTERN]")]
    pub(crate) allow: Vec<String>,
    /// Decide as for a call of this conversation, with its approvals
    #[arg(long, value_name = "ID")]
    pub(crate) conversation: Option<ConversationId>,
    #[command(flatten)]
    pub(crate) json: Json,
}

/// `zeph-host policy`
#[derive(Debug, ClapArgs)]
#[command(after_help = POLICY_EXAMPLES, after_long_help = POLICY_LONG, arg_required_else_help = true)]
pub(crate) struct Policy {
    #[command(subcommand)]
    pub(crate) command: PolicyCommand,
}

/// A command of `zeph-host policy`.
#[derive(Debug, Subcommand)]
pub(crate) enum PolicyCommand {
    /// Compile the rules of a file, or the active rules, and report errors
    #[command(after_help = POLICY_EXAMPLES)]
    Check {
        /// A rule file (`[[rules]]`) or a configuration file
        #[arg(value_name = "FILE")]
        file: Option<PathBuf>,
        #[command(flatten)]
        json: Json,
    },
    /// Print the smallest rules that recorded calls need
    Suggest(PolicySuggest),
    /// Print the active rules in the order in which they are checked, including those of a preset
    #[command(after_help = POLICY_EXAMPLES)]
    Show {
        #[command(flatten)]
        json: Json,
    },
    /// Count what rules and grants with the mode "observe" would have decided
    #[command(after_help = POLICY_EXAMPLES)]
    Report {
        /// Only calls since then: `30m`, `2h`, `7d`, a date or a time; to the hour
        #[arg(long, value_name = "WHEN")]
        since: Option<String>,
        #[command(flatten)]
        json: Json,
    },
}

/// `zeph-host doctor`
#[derive(Debug, Clone, Copy, ClapArgs)]
#[command(after_help = DOCTOR_EXAMPLES, after_long_help = DOCTOR_LONG)]
pub(crate) struct Doctor {
    /// Print the hosts of this machine's package managers as a line for `[tools.sandbox]`
    #[arg(long, conflicts_with = "json")]
    pub(crate) registries: bool,
    #[command(flatten)]
    pub(crate) json: Json,
}
