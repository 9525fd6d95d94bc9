//! `zeph-host token`.

use clap::{Args as ClapArgs, Subcommand};

use super::Json;
use crate::cli::help::{TOKEN_EXAMPLES, TOKEN_LONG};

/// `zeph-host token`
#[derive(Debug, ClapArgs)]
#[command(args_conflicts_with_subcommands = true, after_help = TOKEN_EXAMPLES, after_long_help = TOKEN_LONG)]
pub(crate) struct Token {
    #[command(subcommand)]
    pub(crate) command: Option<TokenCommand>,
    #[command(flatten)]
    pub(crate) json: Json,
}

/// A command of `zeph-host token`.
#[derive(Debug, Subcommand)]
pub(crate) enum TokenCommand {
    /// Add a token and print it; it is not shown again
    #[command(after_help = TOKEN_EXAMPLES)]
    Add(TokenAdd),
    /// List the tokens
    List {
        #[command(flatten)]
        json: Json,
    },
    /// Revoke a token; its open requests end
    Revoke {
        /// The token
        #[arg(value_name = "NAME")]
        name: String,
    },
}

/// `zeph-host token add`
#[derive(Debug, ClapArgs)]
pub(crate) struct TokenAdd {
    /// Its name, which identifies the caller in the audit log
    #[arg(value_name = "NAME")]
    pub(crate) name: String,
    /// Tools it may call, as names or globs such as `read,file__*` [default: all]
    #[arg(long, value_name = "TOOLS", value_delimiter = ',')]
    pub(crate) tools: Option<Vec<String>>,
    /// When it expires: `30d`, `12h`, `2026-12-31` or `2026-12-31T12:00:00Z` [default: never]
    #[arg(long, value_name = "WHEN")]
    pub(crate) expires: Option<String>,
    /// Calls it may make per minute [default: unlimited]
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..=1_000_000))]
    pub(crate) rate: Option<u32>,
}
