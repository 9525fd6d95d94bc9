//! The calls of a session: announced, equipped with what the editor has, ended once.

use std::sync::{Arc, Weak};

use tokio::sync::mpsc;
use uuid::Uuid;
use zeph_acp::agent::ClientCapabilities;
use zeph_acp::update::{SessionUpdate, ToolCallContent, ToolCallUpdate};
use zeph_agent::Pending;
use zeph_agent::message::ToolCall;
use zeph_agent::tool_host::{CallEnd, CallEndKind};
use zeph_core::inquiry::GivenAnswers;
use zeph_core::output::Outcome;
use zeph_core::redact::Redactor;
use zeph_shell::run::OutputListener;

use super::super::call::{CallFacts, CallView};
use super::super::elicitation;
use super::super::files::EditorFiles;
use super::super::permission;
use super::super::terminal::{CHUNKS_MAX, EditorTerminal};
use super::AcpSession;
use crate::agent::tools::CallDoor;
use crate::builtin::update_plan;
use crate::calls::{CallControl, CallReport, EditorParts};
use crate::host::Host;
use crate::questions::SealedInquiry;

/// A call that has begun.
#[derive(Debug, Clone)]
pub(super) struct OpenCall {
    /// Unique in the session, as the model's is not.
    id: String,
    call: ToolCall,
    facts: CallFacts,
    /// The terminal of the client it runs in.
    terminal: Option<String>,
}

/// The first of the open calls with this id: a model may use one twice.
fn found<'a>(open: &'a mut [OpenCall], call_id: &str) -> Option<&'a mut OpenCall> {
    open.iter_mut().find(|open| open.call.id == call_id)
}

impl AcpSession {
    /// Shows the terminal that a call runs in.
    pub(in super::super) fn call_in_terminal(&self, call_id: &str, terminal_id: &str) {
        let mut state = self.state();
        let Some(open) = found(&mut state.open, call_id) else {
            return;
        };
        open.terminal = Some(terminal_id.to_owned());
        let id = open.id.clone();
        drop(state);
        self.tell(&SessionUpdate::ToolCallUpdate(ToolCallUpdate {
            tool_call_id: id,
            content: Some(vec![ToolCallContent::Terminal {
                terminal_id: terminal_id.to_owned(),
            }]),
            ..ToolCallUpdate::default()
        }));
    }

    /// What the editor has for a call that begins; commands print to it.
    fn editor(self: &Arc<Self>, call_id: &str) -> (EditorParts, Option<OutputListener>) {
        let ClientCapabilities { fs, terminal, .. } = self.client.capabilities;
        let has_files = fs.read_text_file || fs.write_text_file;
        let files = has_files.then(|| Arc::new(EditorFiles(Arc::clone(self))));
        if !terminal || !self.is_command(call_id) {
            let terminal = None;
            return (EditorParts { terminal, files }, None);
        }
        let (sender, printed) = mpsc::channel(CHUNKS_MAX);
        let terminal = EditorTerminal::new(self, call_id, printed);
        let parts = EditorParts {
            terminal: Some(Arc::new(terminal)),
            files,
        };
        (parts, Some(OutputListener::new(sender)))
    }

    fn is_command(&self, call_id: &str) -> bool {
        let mut state = self.state();
        let open = found(&mut state.open, call_id);
        open.is_some_and(|open| Host::runs_commands(&open.call.name))
    }

    /// Announces a call.
    pub(in super::super) fn call_begins(&self, call: &ToolCall) {
        let id = Uuid::now_v7().to_string();
        let redactor = self.host.redactor();
        let begun = self.view(call, &redactor).begin(&id);
        let open = OpenCall {
            id,
            call: call.clone(),
            facts: CallFacts::default(),
            terminal: None,
        };
        self.state().open.push(open);
        self.tell(&SessionUpdate::ToolCall(begun));
    }

    /// Ends a call that was announced, once.
    pub(in super::super) fn call_ends(&self, call_id: &str, end: &CallEnd) {
        let mut state = self.state();
        let place = state.open.iter().position(|open| open.call.id == call_id);
        let Some(open) = place.map(|place| state.open.remove(place)) else {
            return;
        };
        drop(state);
        let redactor = self.host.redactor();
        let terminal = open
            .terminal
            .map(|terminal_id| ToolCallContent::Terminal { terminal_id });
        let ended = self
            .view(&open.call, &redactor)
            .end(&open.id, (end, &open.facts), terminal);
        self.tell(&SessionUpdate::ToolCallUpdate(ended));
    }

    /// Ends every call that is still open, whatever became of it.
    pub(in super::super) fn end_open_calls(&self) {
        let open: Vec<String> = {
            let state = self.state();
            state.open.iter().map(|open| open.call.id.clone()).collect()
        };
        let end = CallEnd::of(
            CallEndKind::Cancelled,
            "[error] the turn ended before this call",
        );
        open.iter().for_each(|id| self.call_ends(id, &end));
    }

    /// What a call that is open is, for a question about it.
    pub(in super::super) fn described(&self, call_id: &str) -> Option<ToolCallUpdate> {
        let open = found(&mut self.state().open, call_id)?.clone();
        let redactor = self.host.redactor();
        Some(self.view(&open.call, &redactor).described(&open.id))
    }

    fn view<'a>(&'a self, call: &'a ToolCall, redactor: &'a Redactor) -> CallView<'a> {
        CallView {
            call,
            directory: &self.directory,
            redactor,
        }
    }

    fn keep_facts(&self, call_id: &str, report: &CallReport) {
        let mut state = self.state();
        let Some(open) = found(&mut state.open, call_id) else {
            return;
        };
        open.facts = CallFacts::of(&report.output);
        let is_plan = open.call.name == update_plan::NAME;
        drop(state);
        self.tell_plan(is_plan && matches!(report.output.outcome, Outcome::Done));
    }
}

/// The calls of a session, which its agent does not keep alive.
#[derive(Debug)]
pub(super) struct CallsOf(pub(super) Weak<AcpSession>);

impl CallDoor for CallsOf {
    fn equip(&self, call_id: &str, control: CallControl) -> CallControl {
        match self.0.upgrade() {
            Some(session) => {
                let (editor, on_output) = session.editor(call_id);
                CallControl {
                    ask: Some(permission::prompt(&session, call_id)),
                    on_output: on_output.or(control.on_output.clone()),
                    editor,
                    ..control
                }
            }
            None => control,
        }
    }

    fn ended(&self, call_id: &str, report: &CallReport) {
        if let Some(session) = self.0.upgrade() {
            session.keep_facts(call_id, report);
        }
    }

    fn inquire<'a>(
        &'a self,
        call: &'a ToolCall,
        asked: &'a SealedInquiry,
    ) -> Pending<'a, Option<GivenAnswers>> {
        Box::pin(async move {
            let session = self.0.upgrade()?;
            let id = session.described(&call.id)?.tool_call_id;
            elicitation::inquire(&session, (&call.name, &id), asked).await
        })
    }
}
