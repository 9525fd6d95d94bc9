//! The options of `store`.

use std::path::PathBuf;
use std::str::FromStr;

use clap::{Args as ClapArgs, Subcommand};
use zeph_store::ServerUrl;

use super::Json;
use crate::cli::help::{STORE_EXAMPLES, STORE_LONG};

/// `zeph-host store`
#[derive(Debug, ClapArgs)]
#[command(after_help = STORE_EXAMPLES, after_long_help = STORE_LONG)]
pub(crate) struct StoreArgs {
    #[command(subcommand)]
    pub(crate) command: StoreCommand,
}

/// A command of `zeph-host store`.
#[derive(Debug, Subcommand)]
pub(crate) enum StoreCommand {
    /// Bring the tables of the configured store to the version of this program
    #[command(after_help = STORE_EXAMPLES)]
    Migrate,
    /// Copy a store to another, empty database, in one transaction
    #[command(after_help = STORE_EXAMPLES)]
    Copy {
        /// `sqlite:PATH`, `postgres://…` or `configured`
        #[arg(value_name = "FROM")]
        from: StorePlace,
        /// The same; it must not contain anything yet
        #[arg(value_name = "TO")]
        to: StorePlace,
        #[command(flatten)]
        json: Json,
    },
}

/// A store on the command line.
#[derive(Debug, Clone)]
pub(crate) enum StorePlace {
    /// The one of the configuration.
    Configured,
    /// A file.
    File(PathBuf),
    /// A server.
    Server(Box<ServerUrl>),
}

impl FromStr for StorePlace {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        match text.split_once(':') {
            Some(("sqlite", "")) => Err("`sqlite:` is followed by the path of a file".to_owned()),
            Some(("sqlite", path)) => Ok(Self::File(path.into())),
            Some(("postgres" | "postgresql", _)) => {
                let url = text.parse::<ServerUrl>();
                let url = url.map_err(|error| error.to_string())?;
                Ok(Self::Server(Box::new(url)))
            }
            _ if text == "configured" => Ok(Self::Configured),
            _ => Err("wanted `sqlite:PATH`, `postgres://…` or `configured`".to_owned()),
        }
    }
}
