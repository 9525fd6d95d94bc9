//! Options of the door for editors.

use std::path::PathBuf;

use clap::{ArgAction, Args as ClapArgs};

use crate::cli::help::{ACP_EXAMPLES, ACP_LONG};

/// `zeph-host acp`
#[derive(Debug, ClapArgs)]
#[command(after_help = ACP_EXAMPLES, after_long_help = ACP_LONG)]
pub(crate) struct AcpArgs {
    /// Allow calls that would need approval, such as `write` or `write:src/**`; repeatable
    #[arg(long, value_name = "TOOL[:PATTERN]", action = ArgAction::Append)]
    pub(crate) allow: Vec<String>,
    /// Begin sessions with this provider of `llm.providers` [default: `agent.provider`]
    #[arg(long, value_name = "NAME")]
    pub(crate) provider: Option<String>,
    /// Append what calls really used to this file, as JSON lines, for `plugin suggest`, `policy suggest` and `replay`
    #[arg(long, value_name = "FILE")]
    pub(crate) record: Option<PathBuf>,
}

/// `zeph-host jail`: what the editor's terminal starts.
#[derive(Debug, ClapArgs)]
#[command(
    after_help = "Example:\n  zeph-host jail --socket /tmp/zeph-terminal-1/socket -- 'cargo test'"
)]
pub(crate) struct JailArgs {
    /// The socket of the host that runs the command
    #[arg(long, value_name = "SOCKET")]
    pub(crate) socket: PathBuf,
    /// The command, as it is shown; the host knows which one it runs
    #[arg(last = true, value_name = "COMMAND")]
    pub(crate) command: Vec<String>,
}
