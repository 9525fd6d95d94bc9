//! Leave to change single objects that programs obey: asked for when the guard of files alone refused them to a call that was allowed.
//!
//! What the rules see of a call are the paths among its arguments; the guard sees what is really reached. An approval of this kind is
//! bound to both: to exactly the call, and to the real paths of what was refused. It gives leave for these and decides nothing else.

use std::path::PathBuf;

use zeph_core::call::ResolvedCall;
use zeph_core::execution::Execution;
use zeph_core::failure::ToolFailure;
use zeph_core::id::Digest;
use zeph_core::policy::AuthorizedCall;
use zeph_core::tool::Backend;
use zeph_engine::GuestWork;
use zeph_plugins::refusal::ObeyedRefusal;
use zeph_store::{ApprovalReason, StoredApproval};

use super::{Authoriser, bound, cannot_ask, of};
use crate::clock::now_ms;
use crate::session::Session;

/// What a person agreed that a call may change.
#[derive(Debug, Default)]
pub(super) struct AgreedObjects {
    /// Real paths.
    pub(super) paths: Vec<PathBuf>,
    /// The approvals among them that hold for one call.
    pub(super) once: Vec<StoredApproval>,
}

impl AgreedObjects {
    /// What was agreed to for exactly this call.
    ///
    /// Errors: `server_error` when the store cannot be asked.
    pub(super) async fn of(
        room: &Authoriser,
        session: &Session,
        call: &ResolvedCall,
        owner: Option<Digest>,
    ) -> Result<Self, ToolFailure> {
        if !call.can_change || !matches!(call.tool.backend, Backend::Wasm(_)) {
            return Ok(Self::default());
        }
        let (tool, conversation) = (&call.tool.name, session.conversation);
        let found = room.store.object_approvals(tool, conversation, now_ms());
        let mut found = found.await.map_err(|error| cannot_ask(&error))?;
        if found.is_empty() {
            return Ok(Self::default());
        }
        let digest = bound(room, session, of(call), owner).digest();
        let is_of_call = |approval: &StoredApproval| {
            let objects = approval.call.objects.as_ref();
            objects.is_some_and(|objects| objects.call_digest == digest)
        };
        found.retain(is_of_call);
        let once = found.iter().filter(|approval| approval.is_once());
        Ok(Self {
            once: once.cloned().collect(),
            paths: found
                .into_iter()
                .filter_map(|approval| approval.call.objects)
                .flat_map(|objects| objects.paths)
                .map(PathBuf::from)
                .collect(),
        })
    }
}

/// Leaves the question for a person whether `call` may change what it was `refused`, and says in its failure with which command it is
/// answered.
///
/// What the call had leave for already is asked for again: an approval for once was used up by this try.
pub(crate) async fn ask_later(
    (room, session, owner): (&Authoriser, &Session, Option<Digest>),
    call: &AuthorizedCall<GuestWork>,
    refused: ObeyedRefusal,
    mut execution: Execution,
) -> Execution {
    let mut paths = refused.paths;
    let held = call.leave().objects().iter();
    paths.extend(held.map(|path| path.to_string_lossy().into_owned()));
    let bound = bound(room, session, (call.tool(), call.arguments()), owner).changing(paths);
    let redactor = room.secrets.redactor();
    let clean = |text: &String| redactor.text(text).into_owned();
    let why = ApprovalReason {
        reason: clean(&refused.reason),
        rules: refused.rules.iter().map(clean).collect(),
    };
    let recorded = room
        .store
        .record_request(bound, why, session.asker(), now_ms());
    match (recorded.await, &mut execution.result) {
        (Ok(request), Err(failure)) => {
            let command = format!("{} approve {}", room.program, request.id);
            let advice = format!("; approve this change in this call with `{command}`");
            failure.message.push_str(&advice);
        }
        (Ok(_), Ok(_)) => {}
        // The refusal stands as it is; the rule that it names helps, too.
        (Err(error), _) => drop(cannot_ask(&error)),
    }
    execution
}
