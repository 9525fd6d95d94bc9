//! What is written about a call while it goes on, besides the audit: its span, and its record when calls are recorded.

use std::time::Duration;

use zeph_core::call::{CallFrame, ToolRequest};
use zeph_core::output::ToolOutput;
use zeph_core::redact::Redactor;
use zeph_store::Store;

use super::execution::RunResult;
use super::judgement::StartedCall;
use crate::calls::CallControl;
use crate::host::Rooms;
use crate::recording::OpenCall;
use crate::session::Session;
use crate::telemetry::CallSpan;

/// The span and the record of one call.
pub(super) struct CallRecords {
    span: CallSpan,
    recorded: Option<OpenCall>,
}

impl CallRecords {
    /// Of a call that was just asked for.
    pub(super) fn begin(
        host: &Rooms,
        (frame, request): (&CallFrame, &ToolRequest),
        control: &CallControl,
    ) -> Self {
        let recorder = host.recorder.as_ref();
        Self {
            recorded: recorder.map(|recorder| recorder.begin(host, frame, request)),
            span: CallSpan::begun(&host.telemetry, frame, request, control.remote.as_ref()),
        }
    }

    /// How the call was decided and what it holds.
    pub(super) fn decided(&mut self, session: &Session, begun: &StartedCall<'_>) {
        self.span.of_tool(begun.tool().as_deref());
        let Some(recorded) = &mut self.recorded else {
            return;
        };
        let (decision, rule) = &begun.decided;
        let is_after_untrusted = session.trajectory().held().has_untrusted();
        recorded.decided(*decision, rule.as_deref(), is_after_untrusted);
        if let Ok(allowed) = &begun.allowed {
            recorded.allowed(&allowed.call, allowed.rights.as_ref(), &allowed.offer);
        }
    }

    /// What the call used, which is taken, and what came of it before anything is filtered.
    pub(super) fn ran(&mut self, done: &mut RunResult) {
        if let Some(recorded) = &mut self.recorded {
            recorded.ran(std::mem::take(&mut done.uses), &done.execution);
        }
    }

    /// The end of the call.
    pub(super) async fn end(
        self,
        store: &Store,
        output: &ToolOutput,
        duration: Duration,
        redactor: &Redactor,
    ) {
        self.span.ended(output, duration, redactor);
        if let Some(recorded) = self.recorded {
            recorded.end(store, output, duration).await;
        }
    }
}
