//! Logging to standard error. Off the data path: nothing a program reads is ever a log line.

use std::io;

use tracing::level_filters::LevelFilter;
use tracing_subscriber::filter::Targets;
use tracing_subscriber::layer::SubscriberExt as _;

use crate::known_secrets;

/// The variable that says what is logged, such as `warn,zeph_engine=debug`. It wins over `-v` and `-q`.
pub(crate) const LOG_VARIABLE: &str = "ZEPH_LOG";

/// Starts logging. Returns what to tell the operator when the variable cannot be read.
///
/// A second call in one process changes nothing.
pub(crate) fn start(said: Option<&str>, verbose: u8, quiet: u8) -> Option<String> {
    let (filter, problem) = match said.map(str::parse::<Targets>) {
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
