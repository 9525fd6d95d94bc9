//! `zeph-host secret`.

use clap::{Args as ClapArgs, Subcommand};

use super::Json;
use crate::cli::help::{SECRET_EXAMPLES, SECRET_LONG};

/// `zeph-host secret`
#[derive(Debug, ClapArgs)]
#[command(args_conflicts_with_subcommands = true, after_help = SECRET_EXAMPLES, after_long_help = SECRET_LONG)]
pub(crate) struct Secret {
    #[command(subcommand)]
    pub(crate) command: Option<SecretCommand>,
    #[command(flatten)]
    pub(crate) json: Json,
}

/// A command of `zeph-host secret`.
#[derive(Debug, Subcommand)]
pub(crate) enum SecretCommand {
    /// Set a secret, or replace it; the value is read from a prompt or from standard input
    Set {
        /// The secret
        #[arg(value_name = "NAME")]
        name: String,
    },
    /// List the secrets and what may use them; values are never shown
    List {
        #[command(flatten)]
        json: Json,
    },
    /// Remove a secret
    Rm {
        /// The secret
        #[arg(value_name = "NAME")]
        name: String,
        #[command(flatten)]
        json: Json,
    },
}
