//! Arguments of `wrap`.

use std::path::PathBuf;

use clap::{ArgAction, Args as ClapArgs};

use crate::cli::help::{WRAP_EXAMPLES, WRAP_LONG};

/// `zeph-host wrap`
#[derive(Debug, ClapArgs)]
#[command(after_help = WRAP_EXAMPLES, after_long_help = WRAP_LONG)]
pub(crate) struct Wrap {
    /// The name of the server in rules, pins and the audit log [default: after its command]
    #[arg(long, value_name = "NAME")]
    pub(crate) name: Option<String>,
    /// Directory or file the server may read; repeatable
    #[arg(long, value_name = "PATH", action = ArgAction::Append)]
    pub(crate) allow_read: Vec<PathBuf>,
    /// Directory or file the server may read and change; repeatable
    #[arg(long, value_name = "PATH", action = ArgAction::Append)]
    pub(crate) allow_write: Vec<PathBuf>,
    /// Host the server may reach, such as `api.example.com` or `*.example.com:8443`; repeatable
    #[arg(long, value_name = "HOST[:PORT]", action = ArgAction::Append)]
    pub(crate) host: Vec<String>,
    /// Environment variable of the server: one of this process, or with a value; repeatable
    #[arg(long, value_name = "NAME[=VALUE]", action = ArgAction::Append)]
    pub(crate) env: Vec<String>,
    /// Stored secret as a variable (`VARIABLE=SECRET`), or added to the requests to one host and never seen by the server
    /// (`SECRET=HOST:HEADER[:METHODS]`); repeatable
    #[arg(long, value_name = "SECRET", action = ArgAction::Append)]
    pub(crate) secret: Vec<String>,
    /// Wrap a server that is reached over HTTP, instead of a command
    #[arg(
        long,
        value_name = "URL",
        conflicts_with_all = ["command", "allow_read", "allow_write", "host", "env", "secret", "learn"]
    )]
    pub(crate) url: Option<String>,
    /// Header of every request to it; repeatable
    #[arg(long, value_name = "NAME=VALUE", requires = "url", action = ArgAction::Append)]
    pub(crate) header: Vec<String>,
    /// Header whose value is a stored secret; repeatable
    #[arg(long, value_name = "NAME=SECRET", requires = "url", action = ArgAction::Append)]
    pub(crate) secret_header: Vec<String>,
    /// Ask before calls that no rule allows, instead of allowing them
    #[arg(long)]
    pub(crate) ask: bool,
    /// At the end, print what the server was refused and the smallest grant that would allow it
    #[arg(long)]
    pub(crate) learn: bool,
    /// The command that starts the server
    #[arg(value_name = "COMMAND", last = true)]
    pub(crate) command: Vec<String>,
}
