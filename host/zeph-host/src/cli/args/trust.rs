//! Arguments of `trust`.

use clap::{Args as ClapArgs, Subcommand};
use zeph_core::policy::TrustLevel;

use super::Json;
use crate::cli::help::{TRUST_EXAMPLES, TRUST_LONG};

/// `zeph-host trust`
#[derive(Debug, ClapArgs)]
#[command(args_conflicts_with_subcommands = true, after_help = TRUST_EXAMPLES, after_long_help = TRUST_LONG)]
pub(crate) struct Trust {
    #[command(subcommand)]
    pub(crate) command: Option<TrustCommand>,
    #[command(flatten)]
    pub(crate) json: Json,
}

/// A command of `zeph-host trust`.
#[derive(Debug, Subcommand)]
pub(crate) enum TrustCommand {
    /// List the trust that was set, and what is blocked
    #[command(after_help = TRUST_EXAMPLES)]
    List {
        #[command(flatten)]
        json: Json,
    },
    /// Forget the trust that was set in a tool, and unblock it
    #[command(after_help = TRUST_EXAMPLES)]
    Reset {
        /// A tool, `plugin:NAME` or `server:NAME`
        #[arg(value_name = "TOOL")]
        tool: String,
        #[command(flatten)]
        json: Json,
    },
    /// Set how far a tool is trusted: trusted, verified, quarantined or blocked
    #[command(after_help = TRUST_EXAMPLES)]
    Set {
        /// A tool, `plugin:NAME` or `server:NAME`
        #[arg(value_name = "TOOL")]
        tool: String,
        /// The trust level
        #[arg(value_name = "LEVEL")]
        level: TrustLevel,
        #[command(flatten)]
        json: Json,
    },
}
