//! `zeph-host mcp test`: starts one server and shows what came of it: its tools, what stands around it, what it was refused, and what it
//! said last.

use super::info::{KnownServer, as_json, as_page, with_known};
use super::{is_json, look, named};
use crate::cli::args::McpName;
use crate::cli::context::{self, Context};
use crate::cli::error::CliError;
use crate::cli::exit::Exit;
use crate::cli::page::print_json;
use crate::run::page::Page;
use crate::servers::ServerState;

/// Runs the command.
pub(super) fn run(context: &Context, options: &McpName) -> Result<Exit, CliError> {
    let config = context.config()?;
    let name = named(&config, &options.name)?;
    context::block_on_threads(async {
        let host = look::host_of(context, config, &name).await?;
        let mut exit = Exit::Failure;
        with_known(&host, &options.name, |known| {
            exit = match known.standing.state {
                ServerState::Active => Exit::Success,
                ServerState::Changed(_) => Exit::Confirm,
                _ => Exit::Failure,
            };
            match is_json(&options.json) {
                true => print_json(&as_json(known)),
                false => page(known).print(),
            }
        })?;
        Ok(exit)
    })
}

fn page(known: &KnownServer<'_>) -> Page {
    let mut page = as_page(known);
    let Some(about) = known.standing.about.as_deref() else {
        return page;
    };
    if !about.refused.is_empty() {
        page.head("REFUSED");
    }
    for refused in &about.refused {
        page.line(1, refused);
    }
    if !about.stderr.trim().is_empty() {
        page.head("STANDARD ERROR");
        page.text(1, &about.stderr);
    }
    page
}
