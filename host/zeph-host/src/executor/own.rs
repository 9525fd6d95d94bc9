//! The host in a session, as an executor: its calls take the whole line.

use std::future::Future;

use serde_json::Value;
use tokio::sync::mpsc;
use zeph_core::call::ToolRequest;
use zeph_core::id::ConversationId;
use zeph_engine::{Cancel, Listener, Progress};
use zeph_shell::run::{OutputChunk, OutputListener};
use zeph_store::StoreError;

use super::{CallEvent, CallOptions, Caller, EventSink, ToolCall, ToolDefinition, ToolExecutor};
use crate::calls::{CallControl, CallReport, RunningCall};
use crate::host::Host;
use crate::session::{AskedRequest, Session};

/// Events of one kind that wait to be handed on; what comes beyond is omitted.
const EVENTS_MAX: usize = 64;

/// A host in one session. Clones are handles to the same session.
///
/// Every call takes the whole line: its rules and approvals, the audit, redaction, filters, overflow. A call whose future is dropped is
/// cancelled, and its end, with its audit record, is awaited in the background.
#[derive(Debug, Clone)]
pub struct HostExecutor {
    host: Host,
    session: Session,
}

impl Host {
    /// Begins a session of `caller` in a conversation of its own: an executor of all tools of the host.
    ///
    /// Errors: [`StoreError`] when the conversation cannot be recorded.
    pub async fn session(&self, caller: Caller) -> Result<HostExecutor, StoreError> {
        self.executor(None, caller).await
    }

    /// Begins a session of `caller` that goes on with `conversation`: outputs that were stored in it can be read back, and what was
    /// approved for it holds.
    ///
    /// Errors: [`StoreError`] when that cannot be recorded.
    pub async fn resume(
        &self,
        conversation: ConversationId,
        caller: Caller,
    ) -> Result<HostExecutor, StoreError> {
        self.executor(Some(conversation), caller).await
    }

    async fn executor(
        &self,
        conversation: Option<ConversationId>,
        caller: Caller,
    ) -> Result<HostExecutor, StoreError> {
        let session = self.open_session(conversation, caller.principal()).await?;
        session.expects_user();
        Ok(HostExecutor {
            host: self.clone(),
            session,
        })
    }

    /// `text` without any secret that the host knows, for logs of the program it is a part of.
    pub fn redact(&self, text: &str) -> String {
        self.redactor().text(text).into_owned()
    }
}

impl HostExecutor {
    /// A call as the line makes it, without what an executor adds: the peer of a bench, and of nothing else.
    #[doc(hidden)]
    pub async fn bare_call(&self, tool: &str, arguments: Value) -> CallReport {
        let request = ToolRequest {
            tool: tool.to_owned(),
            arguments,
            answers: None,
        };
        let control = CallControl::default();
        self.host.call(&self.session, request, control).await
    }

    /// The session whose calls it makes: its turns, what it remembers, its end.
    pub fn session(&self) -> &Session {
        &self.session
    }

    /// The host.
    pub fn host(&self) -> &Host {
        &self.host
    }

    /// What ended in the background since it was last told: messages for the model, for callers that begin a turn without a call.
    pub async fn take_messages(&self) -> Vec<String> {
        self.host.take_completed(&self.session).await
    }
}

impl ToolExecutor for HostExecutor {
    fn definitions(&self) -> Vec<ToolDefinition> {
        let catalog = self.host.catalog();
        catalog.tools().map(ToolDefinition::from).collect()
    }

    fn known_as(&self, name: &str) -> Option<String> {
        let catalog = self.host.catalog();
        let tool = catalog.resolve(name).ok()?;
        Some(tool.name.to_string())
    }

    fn call(
        &self,
        call: ToolCall,
        options: CallOptions,
    ) -> impl Future<Output = CallReport> + Send {
        let session = match &call.caller_id {
            Some(caller_id) => self.session.acting_for(caller_id),
            None => self.session.clone(),
        };
        let own_cancel = Cancel::new();
        // Of this moment: another turn may have begun when the call is awaited.
        let asked = session.asks(ToolRequest {
            tool: call.tool,
            arguments: call.arguments,
            answers: call.answers,
        });
        let made = made(
            self.host.clone(),
            session,
            asked,
            options,
            own_cancel.clone(),
        );
        RunningCall::new(&self.host, own_cancel, made)
    }
}

/// The call on the line, with its events handed on and the caller's cancel passed to it.
async fn made(
    host: Host,
    session: Session,
    asked: AskedRequest,
    options: CallOptions,
    own_cancel: Cancel,
) -> CallReport {
    let (mut heard, control) = controlled(options.events, &own_cancel);
    let control = CallControl {
        ask: options.ask,
        result_chars: options.result_chars,
        ..control
    };
    if options.cancel.is_cancelled() {
        own_cancel.cancel();
    }
    let called = host.call_of(&session, asked, control);
    tokio::pin!(called);
    loop {
        tokio::select! {
            biased;
            report = &mut called => {
                heard.drain();
                return report;
            }
            () = options.cancel.cancelled(), if !own_cancel.is_cancelled() => own_cancel.cancel(),
            event = heard.next() => heard.tell(event),
        }
    }
}

/// A control that tells `events`.
fn controlled(events: Option<EventSink>, cancel: &Cancel) -> (Heard, CallControl) {
    let control = CallControl {
        cancel: cancel.clone(),
        ..CallControl::default()
    };
    let Some(sink) = events else {
        return (Heard(None), control);
    };
    let (progress, progress_told) = mpsc::channel(EVENTS_MAX);
    let (output, output_told) = mpsc::channel(EVENTS_MAX);
    let control = CallControl {
        listener: Some(Listener::new(progress)),
        on_output: Some(OutputListener::new(output)),
        ..control
    };
    let heard = HeardEvents {
        sink,
        progress: progress_told,
        output: output_told,
    };
    (Heard(Some(heard)), control)
}

/// What was told of a call and is not handed on yet; none where nobody hears it.
struct Heard(Option<HeardEvents>);

struct HeardEvents {
    sink: EventSink,
    progress: mpsc::Receiver<Progress>,
    output: mpsc::Receiver<OutputChunk>,
}

impl Heard {
    /// The next event; never, when there will be none. Dropping the future loses nothing.
    async fn next(&mut self) -> CallEvent {
        let Some(heard) = &mut self.0 else {
            return std::future::pending().await;
        };
        tokio::select! {
            Some(progress) = heard.progress.recv() => CallEvent::Progress(progress),
            Some(output) = heard.output.recv() => CallEvent::Output(output),
            else => std::future::pending().await,
        }
    }

    fn tell(&self, event: CallEvent) {
        if let Some(heard) = &self.0 {
            heard.sink.tell(event);
        }
    }

    /// Hands on what came with the end.
    fn drain(&mut self) {
        let Some(heard) = &mut self.0 else {
            return;
        };
        while let Ok(progress) = heard.progress.try_recv() {
            heard.sink.tell(CallEvent::Progress(progress));
        }
        while let Ok(output) = heard.output.try_recv() {
            heard.sink.tell(CallEvent::Output(output));
        }
    }
}
