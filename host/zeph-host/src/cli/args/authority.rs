//! What can be typed about what may run: `approve`, `explain`, `policy`, `doctor`.

use std::path::PathBuf;

use clap::{Args as ClapArgs, Subcommand};
use zeph_core::id::{ApprovalId, ConversationId};

use super::Json;
use crate::cli::help::{
    APPROVE_CALL_EXAMPLES, APPROVE_CALL_LONG, DOCTOR_EXAMPLES, DOCTOR_LONG, EXPLAIN_EXAMPLES,
    EXPLAIN_LONG, POLICY_EXAMPLES, POLICY_LONG,
};

/// `zeph-host approve`
#[derive(Debug, ClapArgs)]
#[command(after_help = APPROVE_CALL_EXAMPLES, after_long_help = APPROVE_CALL_LONG)]
pub(crate) struct Approve {
    /// The call, by the id its refusal named, or a tool for its newest one; without it, what waits is listed
    #[arg(value_name = "ID|TOOL", conflicts_with_all = ["last", "list", "revoke"])]
    pub(crate) which: Option<String>,
    /// The newest call that waits
    #[arg(long, conflicts_with_all = ["list", "revoke"])]
    pub(crate) last: bool,
    /// List what waits and what was approved
    #[arg(long, conflicts_with = "revoke")]
    pub(crate) list: bool,
    /// Take an approval back
    #[arg(long, value_name = "ID")]
    pub(crate) revoke: Option<ApprovalId>,
    #[command(flatten)]
    pub(crate) how_long: HowLongApproved,
    /// Answer with no: the call waits no longer
    #[arg(long, conflicts_with_all = ["session", "always", "rule"])]
    pub(crate) deny: bool,
    /// Print a rule for such calls in place of approving this one
    #[arg(long, conflicts_with_all = ["session", "always"])]
    pub(crate) rule: bool,
    /// Add that rule to the operator's configuration file
    #[arg(long, requires = "rule")]
    pub(crate) write: bool,
    /// Do not ask
    #[arg(short, long)]
    pub(crate) yes: bool,
    #[command(flatten)]
    pub(crate) json: Json,
}

/// For how long; once when nothing is said.
#[derive(Debug, Clone, Copy, Default, ClapArgs)]
#[group(multiple = false)]
pub(crate) struct HowLongApproved {
    /// For every such call of its conversation
    #[arg(long)]
    pub(crate) session: bool,
    /// For every such call, until it is revoked
    #[arg(long)]
    pub(crate) always: bool,
}

/// `zeph-host explain`
#[derive(Debug, ClapArgs)]
#[command(after_help = EXPLAIN_EXAMPLES, after_long_help = EXPLAIN_LONG)]
pub(crate) struct Explain {
    /// The tool
    #[arg(value_name = "TOOL")]
    pub(crate) tool: String,
    /// Its arguments, as for `zeph-host call`
    #[arg(value_name = "KEY=VALUE", conflicts_with = "arguments_json")]
    pub(crate) arguments: Vec<String>,
    /// All arguments as one JSON object: the text itself, `@FILE`, or `-` for standard input
    #[arg(long = "args", value_name = "ARGS", allow_hyphen_values = true)]
    pub(crate) arguments_json: Option<String>,
    /// As if a person had typed the call; else as if a program had made it
    #[arg(long)]
    pub(crate) as_person: bool,
    /// With the rule of `zeph-host run --allow`; repeatable
    #[arg(long, value_name = "TOOL[:PATTERN]")]
    pub(crate) allow: Vec<String>,
    /// As a call of this conversation: what was approved for it counts
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

/// What to do with the rules.
#[derive(Debug, Subcommand)]
pub(crate) enum PolicyCommand {
    /// Compile the rules of a file, or those that are in effect, and say what is wrong with them
    #[command(after_help = POLICY_EXAMPLES)]
    Check {
        /// A file of rules (`[[rules]]`) or a configuration file
        #[arg(value_name = "FILE")]
        file: Option<PathBuf>,
        #[command(flatten)]
        json: Json,
    },
}

/// `zeph-host doctor`
#[derive(Debug, Clone, Copy, ClapArgs)]
#[command(after_help = DOCTOR_EXAMPLES, after_long_help = DOCTOR_LONG)]
pub(crate) struct Doctor {
    #[command(flatten)]
    pub(crate) json: Json,
}
