//! What waits and what was approved.

use serde_json::{Value, json};
use zeph_store::Store;

use super::{approval_json, request_json};
use crate::cli::error::CliError;
use crate::cli::exit::Exit;
use crate::cli::out;
use crate::cli::page::print_json;
use crate::clock::now_ms;
use crate::run::approval_text;

/// Prints both lists.
pub(super) async fn run(store: &Store, json: bool) -> Result<Exit, CliError> {
    let requests = store.list_requests(None, now_ms()).await?;
    let approvals = store.list_approvals(now_ms()).await?;
    match json {
        true => print_json(&json!({
            "requests": requests.iter().map(request_json).collect::<Value>(),
            "approvals": approvals.iter().map(approval_json).collect::<Value>(),
        })),
        false => approval_text::list(&requests, &approvals, now_ms(), out::width()).print(),
    }?;
    Ok(Exit::Success)
}
