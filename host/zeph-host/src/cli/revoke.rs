//! `zeph-host revoke`: marks the result of a call as unacceptable.

use serde_json::json;

use super::args::Revoke;
use super::context::{self, Context};
use super::error::CliError;
use super::exit::Exit;
use super::page::print_json;
use crate::governance::{self, RevokeError};
use crate::run::page::Page;
use crate::run::session_commands;

/// Where the IDs of calls are found.
pub(super) const CALL_IDS: &str =
    "`zeph-host audit` lists calls with the beginning of their IDs, with `--json` whole";

/// Runs the command.
pub(super) fn run(context: &Context, options: &Revoke) -> Result<Exit, CliError> {
    let store = context.store(&context.config()?)?;
    context::block_on(async {
        let revoked = governance::revoke(&store, Some(&options.call), None).await;
        let revoked = revoked.map_err(problem)?;
        match options.json.json {
            true => print_json(&json!({
                "sequence": revoked.id,
                "call": revoked.call,
                "words": revoked.words,
            })),
            false => Page::new()
                .line(0, &session_commands::revoked(&revoked))
                .print(),
        }?;
        Ok(Exit::Success)
    })
}

fn problem(error: RevokeError) -> CliError {
    match error {
        RevokeError::Store(error) => error.into(),
        RevokeError::Unknown(_) | RevokeError::Several(_) | RevokeError::NoCall => {
            CliError::user(error.to_string()).hint(CALL_IDS)
        }
        RevokeError::BlocksAll(..) => CliError::user(error.to_string()),
    }
}
