//! The only way to the standard streams: data to standard output, everything else to standard error.
//!
//! A closed standard output ends the command silently. A closed standard error is ignored.

use std::borrow::Cow;
use std::io::{self, IsTerminal as _, Write};
use std::os::fd::AsFd;
use std::path::Path;
use std::sync::OnceLock;

use clap::builder::styling::Style;
use serde::Serialize;

use zeph_plugins::refusal::quoted;

use super::error::{CliError, CliErrorKind};
use crate::run::render::{BOLD, DIM, RED, YELLOW, escape};

/// The option that names the configuration file, where one was typed: commands in messages have it, too.
static CONFIG: OnceLock<String> = OnceLock::new();

/// Has the commands in messages name `file`, the configuration that was typed.
pub(crate) fn name_config(file: &Path) {
    let path = std::path::absolute(file).unwrap_or_else(|_| file.to_owned());
    // There is one command line.
    drop(CONFIG.set(format!("--config {}", quoted(&path.to_string_lossy()))));
}

/// Writes bytes as they are.
pub(crate) fn data(text: &str) -> Result<(), CliError> {
    let mut stdout = io::stdout().lock();
    stdout
        .write_all(text.as_bytes())
        .and_then(|()| stdout.flush())
        .map_err(CliError::stdout)
}

/// Writes bytes that need not be text.
pub(crate) fn bytes(bytes: &[u8]) -> Result<(), CliError> {
    let mut stdout = io::stdout().lock();
    stdout
        .write_all(bytes)
        .and_then(|()| stdout.flush())
        .map_err(CliError::stdout)
}

/// Writes text with colours in it, without them when they are not wanted.
///
/// Shape: what stands between the colours must have gone through `escape`.
pub(crate) fn styled(text: &str) -> Result<(), CliError> {
    let mut stdout = anstream::stdout().lock();
    stdout
        .write_all(text.as_bytes())
        .and_then(|()| stdout.flush())
        .map_err(CliError::stdout)
}

/// Writes a value as JSON for people and programs, over several lines.
pub(crate) fn json(value: &impl Serialize) -> Result<(), CliError> {
    let mut text = serde_json::to_string_pretty(value)
        .map_err(|error| CliError::internal("the answer is not valid JSON").because(error))?;
    text.push('\n');
    data(&text)
}

/// Writes a value as one line of JSON.
pub(crate) fn json_line(value: &impl Serialize) -> Result<(), CliError> {
    let mut text = serde_json::to_string(value)
        .map_err(|error| CliError::internal("the answer is not valid JSON").because(error))?;
    text.push('\n');
    data(&text)
}

/// Tells the person at the terminal something that is no error.
pub(crate) fn note(text: &str) {
    tell(YELLOW, "note:", text);
}

/// A remark without a label.
pub(crate) fn remark(text: &str) {
    let text = with_config(text, CONFIG.get());
    line(&format!("{DIM}{}{DIM:#}\n", escape(&text)));
}

/// Text for standard error as it is, colours included.
pub(crate) fn stderr(text: &str) {
    line(text);
}

/// Prints an error: what, why, and what to do. `quiet` leaves the hints out.
pub(crate) fn error(error: &CliError, quiet: bool) {
    if error.kind == CliErrorKind::BrokenPipe {
        return;
    }
    for problem in &error.problems {
        tell(RED, "error:", problem);
    }
    for cause in error.causes() {
        tell(RED, "  caused by:", &cause);
    }
    if quiet || error.hints.is_empty() {
        return;
    }
    line("\n");
    for hint in &error.hints {
        tell(BOLD, "hint:", hint);
    }
}

/// Whether standard output is a terminal.
pub(crate) fn stdout_is_terminal() -> bool {
    io::stdout().is_terminal()
}

/// The width of the terminal in characters; `None` when standard output is none, and nothing has to fit.
pub(crate) fn width() -> Option<usize> {
    width_of(io::stdout())
}

/// The columns of the terminal behind `stream`, if it is one.
pub(crate) fn width_of(stream: impl AsFd) -> Option<usize> {
    let size = rustix::termios::tcgetwinsize(stream).ok()?;
    Some(usize::from(size.ws_col)).filter(|width| *width > 0)
}

fn tell(style: Style, label: &str, text: &str) {
    let text = with_config(text, CONFIG.get());
    line(&format!("{style}{label}{style:#} {}\n", escape(&text)));
}

/// A message whose commands have `option`, but for those that name a configuration themselves.
fn with_config<'t>(text: &'t str, option: Option<&String>) -> Cow<'t, str> {
    const COMMAND: &str = "`zeph-host ";
    let Some(option) = option.filter(|_| text.contains(COMMAND)) else {
        return Cow::Borrowed(text);
    };
    let mut parts = text.split(COMMAND);
    let mut named = parts.next().unwrap_or_default().to_owned();
    for part in parts {
        named.push_str(COMMAND);
        if !part.starts_with("--config ") {
            named.push_str(option);
            named.push(' ');
        }
        named.push_str(part);
    }
    Cow::Owned(named)
}

fn line(text: &str) {
    drop(anstream::stderr().lock().write_all(text.as_bytes()));
}

#[cfg(test)]
mod tests {
    use super::with_config;

    #[test]
    fn commands_in_messages_name_the_configuration() {
        let option = "--config /c.toml".to_owned();
        for (text, expected) in [
            ("nothing to run", "nothing to run"),
            ("`zeph-host` runs", "`zeph-host` runs"),
            (
                "`zeph-host doctor`, or `zeph-host mcp test a` says why",
                "`zeph-host --config /c.toml doctor`, or `zeph-host --config /c.toml mcp test a` says why",
            ),
            (
                "`zeph-host --config /d.toml doctor`",
                "`zeph-host --config /d.toml doctor`",
            ),
        ] {
            assert_eq!(with_config(text, Some(&option)), expected);
            assert_eq!(with_config(text, None), text);
        }
    }
}
