//! Where a request comes from: whose it is, and which conversation it belongs to.

use std::sync::Arc;

use rmcp::model::{ErrorData, JsonObject, ProtocolVersion};
use rmcp::service::{RequestContext, RoleServer};
use serde_json::Value;
use tokio::sync::OnceCell;
use zeph_core::id::{Digest, OverflowId};
use zeph_mcp::caller::Caller;
use zeph_store::LongTaskAsker;

use super::conversation::{
    self, CONVERSATION_KEY, Conversation, Conversations, Naming, NoConversation,
};
use super::handle::SharedHandle;
use super::rounds::Resumed;
use super::server::Handler;
use crate::telemetry::RemoteRequest;

/// How requests come in, and what that says about their conversation.
pub(super) enum Door {
    /// Over the standard streams: the process is the conversation.
    Process(Arc<Conversation>),
    /// Over HTTP.
    Http(HttpSession),
}

/// A session of the old revisions; its conversation begins with the first request that needs one.
#[derive(Default)]
pub(super) struct HttpSession(OnceCell<Arc<Conversation>>);

impl Handler {
    /// Who sent a request.
    ///
    /// Errors: it came over HTTP and no endpoint says who did.
    pub(super) fn caller(&self, context: &RequestContext<RoleServer>) -> Result<Caller, ErrorData> {
        match &self.door {
            Door::Process(_) => Ok(Caller::default()),
            Door::Http(_) => Caller::of_request(&context.extensions)
                .cloned()
                .ok_or_else(|| ErrorData::internal_error("the request has no caller", None)),
        }
    }

    /// What a request to call a tool says of itself, for the span of the call.
    pub(super) fn remote(&self, context: &RequestContext<RoleServer>) -> RemoteRequest {
        let meta = &context.meta;
        let version = context.protocol_version();
        RemoteRequest {
            method: "tools/call",
            protocol_version: version.map(|version| version.as_str().to_owned()),
            id: context.id.to_string(),
            transport: match self.door {
                Door::Process(_) => "pipe",
                Door::Http(_) => "tcp",
            },
            trace_parent: meta.get_traceparent().map(str::to_owned),
            trace_state: meta.get_tracestate().map(str::to_owned),
        }
    }

    /// The conversation that a request names, or that its connection is; `None` when it has none yet.
    pub(super) async fn known_conversation(
        &self,
        caller: &Caller,
        context: &RequestContext<RoleServer>,
    ) -> Result<Option<Arc<Conversation>>, ErrorData> {
        let named = match context.meta.get(CONVERSATION_KEY) {
            None => None,
            Some(Value::String(handle)) => Some(handle.as_str()),
            Some(_) => return Err(bad_conversation(NoConversation::Unknown)),
        };
        let found = match (&self.door, named) {
            (Door::Process(own), None) => Ok(Some(Arc::clone(own))),
            (Door::Process(own), Some(handle)) => match own.handle().to_string() == handle {
                true => Ok(Some(Arc::clone(own))),
                false => Err(NoConversation::Unknown),
            },
            (Door::Http(_), Some(handle)) => {
                let found = self.named(handle, caller).await;
                found.map(Some)
            }
            (Door::Http(_), None) if !is_in_session(context) => Ok(None),
            (Door::Http(session), None) => match session.0.get() {
                // A session belongs to the caller that began it.
                Some(own) if !own.is_of(caller) => Err(NoConversation::Unknown),
                own => Ok(own.cloned()),
            },
        };
        found.map_err(bad_conversation)
    }

    /// The conversation of this handle, which may have begun at another replica.
    async fn named(
        &self,
        handle: &str,
        caller: &Caller,
    ) -> Result<Arc<Conversation>, NoConversation> {
        let host = &self.shared.host;
        let conversations = &self.shared.conversations;
        let owner = conversation::owner(caller).text();
        let Some(shared) = SharedHandle::read(handle, host.seals(), owner.as_deref()) else {
            return conversations.find(handle, caller);
        };
        let found = conversations.adopt(host, &shared, caller).await?;
        // Another replica may have made calls since its last one here.
        found.session().look_back();
        Ok(found)
    }

    /// The same; or the conversation of the output that a request names, when it names nothing else.
    pub(super) async fn conversation_with(
        &self,
        output: Option<OverflowId>,
        caller: &Caller,
        context: &RequestContext<RoleServer>,
    ) -> Result<Option<Arc<Conversation>>, ErrorData> {
        let known = self.known_conversation(caller, context).await?;
        let (None, Some(output)) = (&known, output) else {
            return Ok(known);
        };
        let host = &self.shared.host;
        match self.shared.conversations.with_output(output, caller) {
            None if host.seals().are_shared() => {
                let found = Conversations::of_output(host, output, caller).await;
                found.map_err(bad_conversation)
            }
            found => Ok(found),
        }
    }

    /// The conversation of a request, which begins with it when there is none yet.
    pub(super) async fn conversation(
        &self,
        output: Option<OverflowId>,
        caller: &Caller,
        context: &RequestContext<RoleServer>,
    ) -> Result<Arc<Conversation>, ErrorData> {
        if let Some(known) = self.conversation_with(output, caller, context).await? {
            return Ok(known);
        }
        let host = &self.shared.host;
        let begin = |naming| self.shared.conversations.begin(host, caller, naming);
        let begun = match &self.door {
            Door::Http(session) if is_in_session(context) => {
                let begin = async || begin(Naming::Own);
                let own = session.0.get_or_try_init(begin).await;
                own.cloned()
            }
            _ => begin(self.naming()),
        };
        let begun = begun.map_err(bad_conversation)?;
        match begun.is_of(caller) {
            true => Ok(begun),
            false => Err(bad_conversation(NoConversation::Unknown)),
        }
    }

    /// The conversation of a call that reads `output`: the one in which a person was asked about this very call, when its request
    /// names nothing.
    pub(super) async fn conversation_of_call(
        &self,
        (output, call): (Option<OverflowId>, Option<Digest>),
        caller: &Caller,
        context: &RequestContext<RoleServer>,
    ) -> Result<Arc<Conversation>, ErrorData> {
        let asked = match call {
            Some(call) => {
                let (store, conversations) = (self.shared.host.store(), &self.shared.conversations);
                let asked = conversations.with_asked(store, call, caller).await;
                asked.map_err(bad_conversation)?
            }
            None => None,
        };
        match asked {
            Some(asked) => Ok(asked),
            None => self.conversation(output, caller, context).await,
        }
    }

    /// What tells a call from all others, when its request belongs to no conversation and names none.
    pub(super) fn nameless(
        &self,
        tool: &str,
        arguments: &JsonObject,
        context: &RequestContext<RoleServer>,
    ) -> Option<Digest> {
        let is_named = context.meta.get(CONVERSATION_KEY).is_some();
        let is_nameless = matches!(self.door, Door::Http(_)) && !is_in_session(context);
        (is_nameless && !is_named).then(|| {
            let call = format!("{tool}\n{}", zeph_store::canonical(arguments));
            zeph_engine::digest(call.as_bytes())
        })
    }

    /// The conversation in which a call goes on that brings answers.
    ///
    /// Errors: it is none of this caller's any more.
    pub(super) async fn going_on(
        &self,
        caller: &Caller,
        context: &RequestContext<RoleServer>,
        resumed: &Resumed,
    ) -> Result<Arc<Conversation>, ErrorData> {
        let known = self.known_conversation(caller, context).await?;
        let conversations = &self.shared.conversations;
        let known = match (known, &self.door, &resumed.home) {
            (None, Door::Http(_), Some(home)) => {
                let handle = SharedHandle {
                    conversation: resumed.conversation,
                    home: Arc::clone(home),
                };
                let found = conversations.adopt(&self.shared.host, &handle, caller);
                Some(found.await.map_err(bad_conversation)?)
            }
            (None, Door::Http(_), None) => {
                let handle = resumed.conversation.to_string();
                let found = conversations.find(&handle, caller);
                Some(found.map_err(bad_conversation)?)
            }
            (known, _, _) => known,
        };
        let known = known.filter(|known| known.handle() == resumed.conversation);
        known.ok_or_else(|| bad_conversation(NoConversation::Unknown))
    }

    /// How conversations are named that begin with a request.
    fn naming(&self) -> Naming {
        let host = &self.shared.host;
        let replica = host.config().serve.replica.as_deref();
        match replica.filter(|_| host.seals().are_shared()) {
            Some(replica) => Naming::Shared(Arc::from(replica)),
            None => Naming::Own,
        }
    }

    /// Who asks about a task.
    pub(super) async fn asking(
        &self,
        caller: &Caller,
        context: &RequestContext<RoleServer>,
    ) -> Result<LongTaskAsker, ErrorData> {
        let known = self.known_conversation(caller, context).await?;
        Ok(LongTaskAsker {
            caller: conversation::owner(caller),
            conversation: known.map(|known| known.handle()),
        })
    }
}

impl Drop for Handler {
    fn drop(&mut self) {
        let Door::Http(session) = &mut self.door else {
            return;
        };
        // A session of the old revisions is over: what runs in its background ends with it.
        if let Some(conversation) = session.0.take()
            && tokio::runtime::Handle::try_current().is_ok()
        {
            self.shared.conversations.forget(&conversation);
            self.shared.conversations.end(conversation);
        }
    }
}

/// Whether a request belongs to a session of the old revisions.
fn is_in_session(context: &RequestContext<RoleServer>) -> bool {
    let version = context.protocol_version();
    version.is_none_or(|version| version < ProtocolVersion::V_2026_07_28)
}

/// What a request with a bad conversation is told.
fn bad_conversation(error: NoConversation) -> ErrorData {
    match error {
        NoConversation::Unknown => ErrorData::invalid_params(error.to_string(), None),
        NoConversation::TooMany => ErrorData::invalid_request(error.to_string(), None),
        NoConversation::Unread => ErrorData::internal_error(error.to_string(), None),
    }
}
