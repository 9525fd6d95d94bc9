//! `zeph-host plugin check`: looks at a component without any configuration and without leaving anything behind.

use crate::cli::args::PluginCheck;
use crate::cli::context::Context;
use crate::cli::error::CliError;
use crate::cli::exit::Exit;

/// Runs the command.
pub(super) fn run(_context: &Context, _options: &PluginCheck) -> Result<Exit, CliError> {
    Err(CliError::internal("not there yet"))
}
