//! Calls that a plugin's call makes of MCP servers' tools: each goes down the whole line, as a call of its own.

use std::pin::Pin;

use uuid::Uuid;
use zeph_core::call::{CallFrame, ResolvedCall, ToolRequest};
use zeph_core::category::{ErrorCategory, ErrorPhase};
use zeph_core::failure::ToolFailure;
use zeph_core::server::ServerTool;
use zeph_core::tool::Backend;
use zeph_engine::Cancel;
use zeph_store::WorkHold;

use crate::calls::{CallControl, CallReport};
use crate::guest::ServerToolCaller;
use crate::host::Rooms;
use crate::session::Session;

/// Characters of an answer that a plugin takes; a longer one is a failure.
const ANSWER_CHARS_MAX: usize = 1 << 20;

/// Makes the calls of one call.
#[derive(Debug)]
pub(super) struct NestedCalls<'a> {
    host: &'a Rooms,
    session: Session,
    /// They count with the call that makes them.
    batch: Uuid,
    hold: Option<WorkHold>,
}

impl<'a> NestedCalls<'a> {
    /// Those of the call with this frame.
    pub(super) fn of(
        host: &'a Rooms,
        session: &Session,
        frame: &CallFrame,
        control: &CallControl,
    ) -> Self {
        Self {
            host,
            session: session.of_plugin(frame.id),
            batch: control.batch.unwrap_or(frame.id.as_uuid()),
            hold: control.hold,
        }
    }
}

impl ServerToolCaller for NestedCalls<'_> {
    fn call<'a>(
        &'a self,
        request: ToolRequest,
        tool: ServerTool,
        cancel: Cancel,
    ) -> Pin<Box<dyn Future<Output = CallReport> + Send + 'a>> {
        let set = self.host.offers.servers().set();
        let standing = set.standing(tool.server.as_str());
        let mut offered = standing.into_iter().flat_map(|standing| &standing.tools);
        let offered = offered.find(|offered| offered.own_name() == tool.tool);
        let request = match offered {
            Some(offered) => ToolRequest {
                tool: offered.tool.name.to_string(),
                ..request
            },
            None => request,
        };
        let asked = self.session.asks(request);
        let control = CallControl {
            cancel,
            result_chars: Some(ANSWER_CHARS_MAX),
            batch: Some(self.batch),
            hold: self.hold,
            only: Some(tool),
            ..CallControl::default()
        };
        Box::pin(super::call(self.host, &self.session, asked, control))
    }
}

/// Whether a call of a plugin is one of the tool that it has to be of, with arguments that the tool declares. Names move: what was granted
/// is the tool. An argument that is left out makes another call of this one, and no plugin reads notes.
///
/// Errors: `tool_not_found`; `invalid_parameters`.
pub(super) fn check(control: &CallControl, call: &ResolvedCall) -> Result<(), ToolFailure> {
    let Some(only) = &control.only else {
        return Ok(());
    };
    let name = &call.tool.name;
    let is_it = |tool: &ServerTool| (&tool.server, &tool.tool) == (&only.server, &only.tool);
    let (category, message) = match &call.tool.backend {
        Backend::Mcp(tool) if is_it(tool) && call.arguments.notes.is_empty() => return Ok(()),
        Backend::Mcp(tool) if is_it(tool) => (
            ErrorCategory::InvalidParameters,
            format!(
                "`{name}` does not take these arguments ({}); `zeph-host tools show {name}` shows them",
                call.arguments.notes.join("; ")
            ),
        ),
        _ => (
            ErrorCategory::ToolNotFound,
            format!(
                "`{name}` is not the tool `{}` of the MCP server `{}`",
                only.tool, only.server
            ),
        ),
    };
    Err(ToolFailure::new(category, ErrorPhase::Setup, message))
}
