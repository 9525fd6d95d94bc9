//! Arguments of `mcp-config`.

use std::path::PathBuf;

use clap::Args as ClapArgs;
use clap::builder::PossibleValuesParser;
use zeph_mcp::clients::CLIENTS;

use crate::cli::help::{MCP_CONFIG_EXAMPLES, MCP_CONFIG_LONG};

/// `zeph-host mcp-config`
#[derive(Debug, ClapArgs)]
#[command(after_help = MCP_CONFIG_EXAMPLES, after_long_help = MCP_CONFIG_LONG)]
pub(crate) struct McpConfig {
    /// The MCP client
    #[arg(value_name = "CLIENT", value_parser = PossibleValuesParser::new(CLIENTS.map(|client| client.name)))]
    pub(crate) client: String,
    /// Add the server to the client's file, instead of printing the snippet
    #[arg(long)]
    pub(crate) write: bool,
    /// The file to add it to, instead of the client's usual one
    #[arg(long, value_name = "PATH", requires = "write")]
    pub(crate) file: Option<PathBuf>,
    /// Replace a server of the same name even if it does not start zeph-host
    #[arg(long, requires = "write")]
    pub(crate) force: bool,
    /// Connect to a running `zeph-host serve --http` at this address, instead of starting the server
    #[arg(long, value_name = "URL")]
    pub(crate) http: Option<String>,
    /// The variable that holds the token of that server
    #[arg(long, value_name = "VARIABLE", requires = "http")]
    pub(crate) token_var: Option<String>,
    /// The name of the server in the client
    #[arg(long, default_value = "zeph")]
    pub(crate) name: String,
}
