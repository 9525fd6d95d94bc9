//! The line every call follows, from request to audit, whichever door it came through.

use std::time::{Duration, Instant};

use zeph_core::call::{CallFrame, ResolvedCall, ToolRequest};
use zeph_core::failure::ToolFailure;
use zeph_core::id::CallId;
use zeph_core::output::{RawOutput, ToolOutput};
use zeph_core::policy::{AuthorizedCall, Decision, authorise};
use zeph_engine::{CallContext, Cancel, Listener};

use crate::host::Inner;
use crate::session::Session;
use crate::{builtin, overflow, path};

/// The caller's hold on a running call.
#[derive(Debug, Clone, Default)]
pub struct CallControl {
    /// Ends the call at once.
    pub cancel: Cancel,
    /// Hears how it is getting on.
    pub listener: Option<Listener>,
}

/// What became of a call.
#[derive(Debug, Clone)]
pub struct CallReport {
    /// The call's identity, as in the audit.
    pub id: CallId,
    /// What the caller gets.
    pub output: ToolOutput,
    /// From request to output.
    pub duration: Duration,
}

/// Makes one call. Every stage is a plain call; every way a call can end leaves through the one exit at the bottom.
pub(crate) async fn call(
    host: &Inner,
    session: &Session,
    request: ToolRequest,
    control: CallControl,
) -> CallReport {
    let started = Instant::now();
    let frame = CallFrame {
        id: CallId::new(),
        conversation: session.conversation,
        caller: request.caller.clone(),
    };
    let id = frame.id;
    let draft = host.audit.draft(&frame, &request);

    // 1 parse, 2 resolve
    let resolved = resolve(host, frame, request);
    let notes = match &resolved {
        Ok(call) => call.arguments.notes.clone(),
        Err(_) => Vec::new(),
    };
    // 3 authorise
    let decision = resolved.map(|call| authorise(&host.policy, call));
    // The audit knows of the call before anything happens. Without it nothing does.
    let recorded = host.audit.begin(draft, &decision).await;
    let (entry, result) = match recorded {
        Err(failure) => (None, Err(failure)),
        Ok(entry) => {
            let result = match decision {
                Err(failure) => Err(failure),
                Ok(Decision::Deny(refusal) | Decision::Ask(refusal)) => Err(refusal.failure),
                // 4 execute
                Ok(Decision::Allow(call)) => execute(host, session, call, control).await,
            };
            (Some(entry), result)
        }
    };
    // 7 overflow
    let output = match result {
        Ok(raw) => overflow::fit(host, session, raw, notes).await,
        Err(failure) => ToolOutput::failed(failure),
    };
    // 8 the one exit
    let duration = started.elapsed();
    if let Some(entry) = entry {
        entry.finish(&output, duration).await;
    }
    CallReport {
        id,
        output,
        duration,
    }
}

/// Finds the tool, reads the arguments against its schema, and resolves the paths they name.
fn resolve(
    host: &Inner,
    frame: CallFrame,
    request: ToolRequest,
) -> Result<ResolvedCall, ToolFailure> {
    let tool = host.catalog.resolve(&request.tool)?.clone();
    let arguments = tool.parameters.read(request.arguments)?;
    // Only rules look at paths; what a guest may reach is decided by its grant, on the object really opened.
    let paths = match host.config.file.roots.first() {
        Some(root) if !host.policy.allow.is_empty() => {
            path::named_by(&arguments.values, &root.path)
        }
        _ => Vec::new(),
    };
    Ok(ResolvedCall {
        frame,
        tool,
        arguments,
        paths,
    })
}

async fn execute(
    host: &Inner,
    session: &Session,
    call: AuthorizedCall,
    control: CallControl,
) -> Result<RawOutput, ToolFailure> {
    match host.plugin(&call.tool().backend) {
        Some(plugin) => {
            let context = CallContext::default();
            plugin
                .call(
                    call,
                    context,
                    host.grant.clone(),
                    control.cancel,
                    control.listener,
                )
                .await
                .result
        }
        None => builtin::call(host, session, call).await,
    }
}
