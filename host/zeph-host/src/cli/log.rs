//! Logging to standard error. Off the data path: nothing a program reads is ever a log line.

use std::io;

use tracing::level_filters::LevelFilter;
use tracing_subscriber::filter::Targets;
use tracing_subscriber::layer::SubscriberExt as _;
use zeph_core::failure::one_line;

use crate::known_secrets;

/// The variable that says what is logged, such as `warn,zeph_engine=debug`. It wins over `-v` and `-q`.
pub(crate) const LOG_VARIABLE: &str = "ZEPH_LOG";

/// Starts logging. Returns what to tell the operator when the variable cannot be read.
///
/// A second call in one process changes nothing.
pub(crate) fn start(said: Option<&str>, verbose: u8, quiet: u8) -> Option<String> {
    let (filter, problem) = match said.map(targets) {
        Some(Ok(filter)) => (filter, None),
        Some(Err(error)) => {
            let problem = format!(
                "`{LOG_VARIABLE}` is ignored: {error}; write levels such as `debug` or `warn,zeph_engine=debug`"
            );
            (of_flags(verbose, quiet), Some(problem))
        }
        None => (of_flags(verbose, quiet), None),
    };
    let lines = tracing_subscriber::fmt::layer()
        .with_writer(|| RedactedStderr)
        .with_ansi(
            anstream::AutoStream::choice(&std::io::stderr()) != anstream::ColorChoice::Never,
        );
    let subscriber = tracing_subscriber::registry().with(filter).with(lines);
    drop(tracing::subscriber::set_global_default(subscriber));
    problem
}

/// What a filter says.
///
/// Errors: one sentence. The parser takes any word for a target, also one that no target can have.
fn targets(said: &str) -> Result<Targets, String> {
    let may_stand = |character: char| character.is_alphanumeric() || "_:-.".contains(character);
    let mut words = said.split(',').filter_map(|word| word.split('=').next());
    if let Some(word) = words.find(|word| !word.trim().chars().all(may_stand)) {
        return Err(format!("`{}` is no target", one_line(word, 80)));
    }
    let parsed: Result<Targets, _> = said.parse();
    parsed.map_err(|error| error.to_string())
}

/// Standard error for one event at a time, which is written at once and without any secret.
struct RedactedStderr;

impl io::Write for RedactedStderr {
    fn write(&mut self, event: &[u8]) -> io::Result<usize> {
        let clean = known_secrets::for_log(event);
        let shown = clean.as_ref().map_or(event, String::as_bytes);
        io::Write::write_all(&mut io::stderr(), shown)?;
        Ok(event.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        io::Write::flush(&mut io::stderr())
    }
}

/// Ours one step louder than those of the libraries.
fn of_flags(verbose: u8, quiet: u8) -> Targets {
    let (ours, theirs) = match (verbose, quiet) {
        (0, 0) => (LevelFilter::WARN, LevelFilter::WARN),
        (0, _) => (LevelFilter::ERROR, LevelFilter::ERROR),
        (1, _) => (LevelFilter::INFO, LevelFilter::WARN),
        (2, _) => (LevelFilter::DEBUG, LevelFilter::INFO),
        _ => (LevelFilter::TRACE, LevelFilter::DEBUG),
    };
    // It counts what a client does, a request that is none or a stream that is closed, as a fault of this program.
    let of_protocol = match verbose {
        0 => LevelFilter::OFF,
        _ => theirs,
    };
    Targets::new()
        .with_default(theirs)
        .with_target("rmcp", of_protocol)
        .with_target("zeph", ours)
}

#[cfg(test)]
mod tests {
    use super::targets;

    #[test]
    fn a_word_that_can_be_no_target_is_told() {
        for (said, is_good) in [
            ("debug", true),
            ("", true),
            ("warn,zeph_engine=debug, zeph_host::cli=trace", true),
            ("[[", false),
            ("warn,a{b}=debug", false),
            ("bogus=foo=1", false),
            ("zeph=loud", false),
        ] {
            assert_eq!(targets(said).is_ok(), is_good, "{said:?}");
        }
    }
}
