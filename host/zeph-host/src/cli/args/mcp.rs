//! Arguments of `mcp` and of `mcp-config`.

use std::path::PathBuf;

use clap::builder::PossibleValuesParser;
use clap::{ArgAction, ArgGroup, Args as ClapArgs, Subcommand};
use zeph_mcp::clients::{CLIENTS, OWN_NAME};

use super::Json;
use crate::cli::help::{
    MCP_APPROVE_EXAMPLES, MCP_CONFIG_EXAMPLES, MCP_CONFIG_LONG, MCP_EXAMPLES, MCP_LOGIN_EXAMPLES,
    MCP_LONG,
};

/// `zeph-host mcp-config`
#[derive(Debug, ClapArgs)]
#[command(
    after_help = MCP_CONFIG_EXAMPLES,
    after_long_help = MCP_CONFIG_LONG,
    group = ArgGroup::new("of_file").args(["write", "wrap", "unwrap"]).multiple(true)
)]
pub(crate) struct McpConfig {
    /// The MCP client
    #[arg(value_name = "CLIENT", value_parser = PossibleValuesParser::new(CLIENTS.map(|client| client.name)))]
    pub(crate) client: String,
    /// Change the client's file, instead of printing what would be added or changed
    #[arg(long)]
    pub(crate) write: bool,
    /// Start the servers that are in the client's file through `zeph-host wrap`; prints the difference without --write
    #[arg(long, conflicts_with_all = ["unwrap", "force", "http", "name"])]
    pub(crate) wrap: bool,
    /// Undo --wrap in the client's file
    #[arg(long, conflicts_with_all = ["force", "http", "name"])]
    pub(crate) unwrap: bool,
    /// The client's file, instead of the usual one
    #[arg(long, value_name = "PATH", requires = "of_file")]
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
    #[arg(long, default_value = OWN_NAME)]
    pub(crate) name: String,
}

/// `zeph-host mcp`
#[derive(Debug, ClapArgs)]
#[command(
    args_conflicts_with_subcommands = true,
    after_help = MCP_EXAMPLES,
    after_long_help = MCP_LONG
)]
pub(crate) struct Mcp {
    #[command(subcommand)]
    pub(crate) command: Option<McpCommand>,
    #[command(flatten)]
    pub(crate) json: Json,
}

/// A command of `zeph-host mcp`.
#[derive(Debug, Subcommand)]
pub(crate) enum McpCommand {
    /// Start every MCP server of the configuration, and list how they and the wrapped ones stand
    #[command(after_help = "Examples:\n  zeph-host mcp list\n  zeph-host mcp list --json")]
    List {
        #[command(flatten)]
        json: Json,
    },
    /// Show one server: its grants, tools and pin
    #[command(
        after_help = "Examples:\n  zeph-host mcp info files\n  zeph-host mcp info files --json"
    )]
    Info(McpName),
    /// Start one server, and show its tools, what it was refused, and the end of its standard error
    #[command(after_help = "Example:\n  zeph-host mcp test files")]
    Test(McpName),
    /// Show what changed in a server, and accept it
    #[command(after_help = MCP_APPROVE_EXAMPLES)]
    Approve(McpApprove),
    /// Install the newest version of the packages of a server, show what is different, and accept it
    #[command(
        after_help = "Examples:\n  zeph-host mcp update files\n  zeph-host mcp update files --yes --json"
    )]
    Update(McpApprove),
    /// Forget a server that is no longer in the configuration: its pin, its login, and what was approved for its tools
    #[command(
        after_help = "Examples:\n  zeph-host mcp forget files\n  zeph-host mcp forget files --yes --json"
    )]
    Forget(McpApprove),
    /// Log in to a remote server
    #[command(after_help = MCP_LOGIN_EXAMPLES)]
    Login(McpLogin),
    /// Forget the login to a remote server
    #[command(after_help = "Example:\n  zeph-host mcp logout tickets")]
    Logout(McpName),
}

/// `zeph-host mcp login`
#[derive(Debug, ClapArgs)]
pub(crate) struct McpLogin {
    /// The server
    #[arg(value_name = "NAME")]
    pub(crate) name: String,
    /// Print the URL and read the one that the browser ends at, for a machine without a browser
    #[arg(long)]
    pub(crate) no_browser: bool,
    /// Ask for this scope, and for those of the last login, instead of those that the server asks for; repeatable
    #[arg(long, value_name = "SCOPE", action = ArgAction::Append)]
    pub(crate) scope: Vec<String>,
    /// Use a client that was registered with the authorization server beforehand
    #[arg(long, value_name = "ID")]
    pub(crate) client_id: Option<String>,
    /// The stored secret (`zeph-host secret`) with the secret of that client
    #[arg(long, value_name = "SECRET", requires = "client_id")]
    pub(crate) client_secret: Option<String>,
}

/// The name of a server.
#[derive(Debug, ClapArgs)]
pub(crate) struct McpName {
    /// The server
    #[arg(value_name = "NAME")]
    pub(crate) name: String,
    #[command(flatten)]
    pub(crate) json: Json,
}

/// `zeph-host mcp approve`, `update` and `forget`
#[derive(Debug, ClapArgs)]
pub(crate) struct McpApprove {
    /// The server
    #[arg(value_name = "NAME")]
    pub(crate) name: String,
    /// Do not ask for confirmation
    #[arg(short, long)]
    pub(crate) yes: bool,
    #[command(flatten)]
    pub(crate) json: Json,
}
