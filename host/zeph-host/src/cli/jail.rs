//! `zeph-host jail`: the end of a command in the terminal of an editor. The host runs the command in its sandbox; this shows what it
//! prints, and ends as it ends. That it reached the host is the proof that the terminal started this program.

use std::io;
use std::os::unix::net::UnixStream;

use super::args::JailArgs;
use super::error::CliError;
use super::exit::Exit;
use crate::serve::acp::screen;

/// Runs the command.
pub(super) fn run(options: &JailArgs) -> Result<Exit, CliError> {
    let stream = UnixStream::connect(&options.socket).map_err(|error| {
        CliError::user("the host that runs the command cannot be reached").because(error)
    })?;
    let code = screen::show(stream, io::stdout().lock(), io::stderr().lock());
    let code =
        code.map_err(|error| CliError::user("the host ended before the command").because(error))?;
    Ok(Exit::OfCommand(code))
}
