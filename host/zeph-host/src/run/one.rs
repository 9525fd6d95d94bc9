//! One call of a person who waits for it: a signal cancels it, and its end is awaited.

use std::num::NonZeroUsize;

use zeph_core::call::ToolRequest;
use zeph_engine::Listener;
use zeph_shell::run::OutputListener;

use super::interrupt::{Interruption, Interrupts};
use crate::calls::{CallControl, CallReport};
use crate::calls::{CallsEvent, RunningCalls};
use crate::host::Host;
use crate::session::Session;

/// What became of it.
#[derive(Debug)]
pub(crate) struct SingleCallEnd {
    /// The report; `None` when a second signal came before the call had ended.
    pub(crate) report: Option<CallReport>,
    /// The signal that came, if one did.
    pub(crate) interruption: Option<Interruption>,
}

/// How a person watches a call; not at all by default.
#[derive(Debug, Default)]
pub(crate) struct Watching {
    /// Hears how it is getting on.
    pub(crate) listener: Option<Listener>,
    /// Hears what a command prints while it runs.
    pub(crate) on_output: Option<OutputListener>,
}

/// Makes the call.
pub(crate) async fn call(
    host: &Host,
    session: &Session,
    request: ToolRequest,
    watching: Watching,
    interrupts: &mut Interrupts,
) -> SingleCallEnd {
    let control = CallControl {
        listener: watching.listener,
        on_output: watching.on_output,
        ..CallControl::default()
    };
    let mut calls = RunningCalls::new(host, NonZeroUsize::MIN);
    calls.start(session, request, control, ());
    let mut interruption = None;
    loop {
        tokio::select! {
            biased;
            ended = calls.one_end() => {
                let report = ended.and_then(report);
                return SingleCallEnd { report, interruption };
            }
            signal = interrupts.next() => {
                if interruption.replace(signal).is_some() {
                    return SingleCallEnd { report: None, interruption };
                }
                calls.cancel_all();
            }
        }
    }
}

fn report(ended: CallsEvent<()>) -> Option<CallReport> {
    match ended {
        CallsEvent::Call { report, .. } => Some(match report {
            Ok(report) => *report,
            Err(failure) => CallReport::crashed(failure),
        }),
        CallsEvent::Messages(_) => None,
    }
}

/// A request typed at the terminal.
pub(crate) fn typed(tool: &str, arguments: serde_json::Value) -> ToolRequest {
    ToolRequest {
        tool: tool.to_owned(),
        arguments,
        answers: None,
    }
}
