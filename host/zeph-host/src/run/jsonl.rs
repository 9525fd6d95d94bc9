//! The door for programs: JSON lines, one call in, one answer out, in order of completion.
//!
//! One loop owns everything: it starts calls while fewer than `jobs` run, passes answers on, and hears cancels, signals
//! and a closed output. Input is read only while little waits, so memory is bounded whatever comes in. A call that runs
//! is never dropped: it is cancelled and its end awaited, so that its audit row is completed. After the last call, what runs in the
//! background is ended and told.

pub(crate) mod answer;
mod calls;
mod input;
mod lines;
pub(crate) mod output;
pub(crate) mod request;
pub(crate) mod schema;

use std::io;
use std::num::NonZeroUsize;

use tokio_util::sync::CancellationToken;

use self::calls::JsonLinesCalls;
use self::input::Requests;
use self::output::JsonLinesOutput;
use super::interrupt::{Interruption, Interrupts};
use crate::approval::ApprovalPrompt;
use crate::host::Host;
use crate::session::Session;

pub(crate) use self::calls::Tally;
pub(crate) use self::input::JsonLinesInput;

/// The bounds of the door, and who is asked.
#[derive(Debug, Clone)]
pub(crate) struct JsonLinesOptions {
    /// Calls in progress at one time.
    pub(crate) jobs: NonZeroUsize,
    /// The longest request line, in bytes.
    pub(crate) request_bytes_max: usize,
    /// Reaches a person who can agree to a call; without one a call that asks is refused.
    pub(crate) ask: Option<ApprovalPrompt>,
}

/// How the door was closed.
#[derive(Debug)]
pub(crate) enum JsonLinesEnd {
    /// The input ended, and everything was answered and ended.
    AtEnd,
    /// A signal came; every call was cancelled and answered, unless a second signal came.
    Interrupted(Interruption),
    /// Nobody reads the answers any more; every call was cancelled.
    OutputClosed,
    /// The input cannot be read; what was read was answered.
    Input(io::Error),
    /// The answers cannot be written; every call was cancelled.
    Output(io::Error),
}

/// Serves `input` until it ends.
///
/// Errors: only when a thread cannot be started.
pub(crate) async fn serve(
    host: &Host,
    session: &Session,
    options: JsonLinesOptions,
    input: JsonLinesInput,
    (interrupts, draining): (&mut Interrupts, &CancellationToken),
) -> io::Result<(JsonLinesEnd, Tally)> {
    let mut requests = Requests::of(input, options.request_bytes_max)?;
    let output = JsonLinesOutput::spawn()?;
    let mut calls = JsonLinesCalls::new(host, session, options);
    let mut ended = None;
    loop {
        calls.start_waiting();
        let is_reading = ended.is_none();
        if !is_reading {
            draining.cancel();
            calls.end_runs();
        }
        if !is_reading && calls.is_done() {
            break;
        }
        tokio::select! {
            biased;
            interruption = interrupts.next() => match ended {
                // The second one: do not even wait for the ends.
                Some(JsonLinesEnd::Interrupted(_)) => return Ok((JsonLinesEnd::Interrupted(interruption), calls.tally)),
                _ => {
                    calls.cancel_all();
                    ended = Some(JsonLinesEnd::Interrupted(interruption));
                }
            },
            () = output.gone(), if !matches!(ended, Some(JsonLinesEnd::OutputClosed)) => {
                calls.abandon();
                ended = Some(JsonLinesEnd::OutputClosed);
            }
            room = output.room(), if calls.has_answers() => match room {
                Some(room) => {
                    if let Some(line) = calls.next_answer() {
                        room.put(line);
                    }
                }
                None => {
                    calls.abandon();
                    ended = Some(JsonLinesEnd::OutputClosed);
                }
            },
            () = calls.one_end(), if calls.can_end() => {}
            item = requests.next(), if is_reading && calls.can_take() => match item {
                Some(Ok(item)) => calls.take(item),
                Some(Err(error)) => ended = Some(JsonLinesEnd::Input(error)),
                None => ended = Some(JsonLinesEnd::AtEnd),
            },
        }
    }
    let ended = ended.unwrap_or(JsonLinesEnd::AtEnd);
    tokio::select! {
        written = output.finish() => Ok((with_output(ended, written), calls.tally)),
        interruption = interrupts.next() => Ok((JsonLinesEnd::Interrupted(interruption), calls.tally)),
    }
}

/// What stopped the writing outweighs how the reading ended.
fn with_output(ended: JsonLinesEnd, written: io::Result<()>) -> JsonLinesEnd {
    match written {
        Ok(()) => ended,
        Err(error) if error.kind() == io::ErrorKind::BrokenPipe => JsonLinesEnd::OutputClosed,
        Err(error) => JsonLinesEnd::Output(error),
    }
}
