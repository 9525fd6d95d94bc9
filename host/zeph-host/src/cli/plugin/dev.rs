//! `zeph-host plugin dev`: builds a project whenever it changes, and loads what comes out.

use crate::cli::args::PluginDev;
use crate::cli::context::Context;
use crate::cli::error::CliError;
use crate::cli::exit::Exit;

/// Runs the command.
pub(super) fn run(_context: &Context, _options: &PluginDev) -> Result<Exit, CliError> {
    Err(CliError::internal("not there yet"))
}
