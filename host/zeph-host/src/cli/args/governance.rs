//! Arguments of `revoke` and `forgive`.

use clap::Args as ClapArgs;

use super::Json;
use crate::cli::help::{FORGIVE_EXAMPLES, FORGIVE_LONG, REVOKE_CALL_EXAMPLES, REVOKE_CALL_LONG};

/// `zeph-host revoke`
#[derive(Debug, ClapArgs)]
#[command(after_help = REVOKE_CALL_EXAMPLES, after_long_help = REVOKE_CALL_LONG)]
pub(crate) struct Revoke {
    /// The call: its ID, or as much of it as `zeph-host audit` prints
    #[arg(value_name = "CALL-ID")]
    pub(crate) call: String,
    #[command(flatten)]
    pub(crate) json: Json,
}

/// `zeph-host forgive`
#[derive(Debug, ClapArgs)]
#[command(after_help = FORGIVE_EXAMPLES, after_long_help = FORGIVE_LONG)]
pub(crate) struct Forgive {
    /// The learned sequence; without it, list them
    #[arg(value_name = "ID", value_parser = sequence)]
    pub(crate) sequence: Option<i64>,
    #[command(flatten)]
    pub(crate) json: Json,
}

fn sequence(text: &str) -> Result<i64, &'static str> {
    let number = text.parse();
    number.map_err(|_| "wanted the number of a learned sequence; `zeph-host forgive` lists them")
}
