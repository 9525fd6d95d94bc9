//! Stage 3 of the line with what the record and the execution have to know of the call.

use std::sync::Arc;

use zeph_core::call::FileFacts;
use zeph_core::failure::{ToolFailure, one_line};
use zeph_core::policy::{AuthorizedCall, Decision, GrantModes, Refusal};
use zeph_core::tool::Tool;
use zeph_plugins::rights::Rights;
use zeph_plugins::set::InForce;
use zeph_store::{
    Agreement, BeginRecord, ObservedDecision, SingleUseRights, Store, StoredApproval, TrustState,
};

use crate::anomaly::WatchedTool;
use crate::audit::{Audit, OpenRecord};
use crate::authorisation::{self, AuthorisationState, TrustTerms};
use crate::calls::CallControl;
use crate::clock::now_ms;
use crate::governance::CallReach;
use crate::host::Rooms;
use crate::offers::Offer;
use crate::recording::RecordedDecision;
use crate::resolve::{ResolvedRequest, Resolver};
use crate::session::Session;
use crate::work::Work;

/// Characters of a rule in the counts of what rules on trial would have decided.
const RULE_CHARS_MAX: usize = 300;

/// A call whose begin is recorded.
pub(super) struct StartedCall<'h> {
    /// None when it could not be recorded; then it is not allowed.
    pub(super) entry: Option<OpenRecord<'h>>,
    pub(super) allowed: Result<AllowedCall, ToolFailure>,
    /// What the caller should know of how the request was read.
    pub(super) notes: Vec<String>,
    /// How it was decided, and by which rule.
    pub(super) decided: (RecordedDecision, Option<String>),
    /// Its tool, if it may run and what comes of that is counted.
    pub(super) watched: Option<WatchedTool>,
}

/// A call that may run.
pub(super) struct AllowedCall {
    pub(super) call: AuthorizedCall<Work>,
    pub(super) rights: Option<Rights>,
    pub(super) files: FileFacts,
    pub(super) agreement: Option<Agreement>,
    pub(super) offer: Arc<Offer>,
}

impl StartedCall<'_> {
    /// The tool of a call that may run.
    pub(super) fn tool(&self) -> Option<Arc<Tool>> {
        let allowed = self.allowed.as_ref().ok()?;
        Some(allowed.call.shared_tool())
    }

    /// Whether what it begins goes on when the call has ended.
    pub(super) fn goes_on(&self) -> bool {
        let allowed = self.allowed.as_ref();
        allowed.is_ok_and(|allowed| matches!(allowed.call.work(), Work::Shell(work) if work.is_background_command()))
    }
}

impl AllowedCall {
    /// The plugin behind it, and what that holds; none for a tool of the host.
    pub(super) fn guest(&self) -> Option<(&InForce, &Rights)> {
        let provider = self.offer.plugins.plugin(&self.call.tool().backend)?;
        Some((provider, self.rights.as_ref()?))
    }

    /// Whether it can change files, or what else later calls may read.
    pub(super) fn can_change(&self) -> bool {
        match self.call.work() {
            Work::Shell(_) => true,
            Work::Guest(_) => self.rights.as_ref().is_some_and(|rights| rights.can_change),
            Work::Builtin(_) => false,
            Work::Mcp(work) => work.can_change,
            Work::Delegated(work) => work.can_change,
        }
    }
}

/// A call that was decided about and is not recorded yet.
pub(super) struct Judgement {
    pub(super) decision: Result<Decision<Work>, ToolFailure>,
    /// Its tool; none when there is none of its name.
    pub(super) tool: Option<Arc<Tool>>,
    /// What it uses up by beginning.
    pub(super) once: SingleUseRights,
    /// The approvals among that.
    approvals: Vec<StoredApproval>,
    /// Who agreed to it, when it would not be allowed without.
    agreement: Option<Agreement>,
    rights: Option<Rights>,
    files: FileFacts,
    pub(super) notes: Vec<String>,
    /// What the model said that judges calls.
    pub(super) verdict: Option<String>,
}

/// Stage 3 with what the record and the execution have to know of the call.
pub(super) async fn judge(
    resolver: &Resolver<'_>,
    session: &Session,
    resolved: ResolvedRequest,
    control: &CallControl,
    asked: &mut AuthorisationState,
) -> Judgement {
    let ResolvedRequest {
        call,
        work,
        rights,
        agreement,
    } = resolved;
    asked.resumed = agreement;
    asked.owner = resolver.offer.owner(&call.tool.backend);
    asked.reach = CallReach::of(resolver.config, &call.tool, &work, rights.as_ref());
    asked.terms = TrustTerms {
        trust: resolver.trust_of(session, &call.tool),
        grants: rights
            .as_ref()
            .map_or_else(GrantModes::default, |rights| rights.modes.clone()),
    };
    let (tool, files) = (call.tool.clone(), call.files.clone());
    let notes = call.arguments.notes.clone();
    let authoriser = resolver.authoriser;
    let decided = authorisation::decide(authoriser, session, call, work, control, asked).await;
    let (decision, approval, agreement, objects) = match decided {
        Ok(decided) => (
            Ok(decided.decision),
            decided.approval,
            decided.agreement,
            decided.objects,
        ),
        Err(failure) => (Err(failure), None, None, Vec::new()),
    };
    Judgement {
        decision,
        tool: Some(tool),
        once: SingleUseRights {
            approval: approval.as_ref().map(|approval| approval.id),
            objects: objects.iter().map(|approval| approval.id).collect(),
            grants: rights.as_ref().map(Rights::once).unwrap_or_default(),
            trust_version: Some(resolver.trust.version),
            ..SingleUseRights::default()
        },
        approvals: approval.into_iter().chain(objects).collect(),
        agreement,
        rights,
        files,
        notes,
        verdict: None,
    }
}

impl Judgement {
    /// Of a request that is no call. `tool` is the one that it names, if there is one.
    pub(super) fn failed(failure: ToolFailure, tool: Option<&Arc<Tool>>) -> Self {
        Self {
            decision: Err(failure),
            tool: tool.cloned(),
            once: SingleUseRights::default(),
            approvals: Vec::new(),
            agreement: None,
            rights: None,
            files: FileFacts::default(),
            notes: Vec::new(),
            verdict: None,
        }
    }

    /// Of a call that is refused before anything else is asked.
    pub(super) fn refused(refusal: Refusal, resolved: ResolvedRequest) -> Self {
        Self {
            decision: Ok(Decision::Deny(refusal)),
            tool: Some(resolved.call.tool),
            once: SingleUseRights::default(),
            approvals: Vec::new(),
            agreement: None,
            rights: None,
            files: FileFacts::default(),
            notes: resolved.call.arguments.notes,
            verdict: None,
        }
    }

    /// Puts what was called into the record.
    pub(super) fn identify(&self, draft: &mut BeginRecord, offer: &Offer) {
        if let Some(tool) = &self.tool {
            Audit::identify(draft, tool, offer.plugins.plugin(&tool.backend));
        }
        draft.agreement = self.agreement.clone();
        draft.adversarial_verdict = self.verdict.clone();
    }

    /// The call with its record, to be run if it may be.
    pub(super) fn begun(
        self,
        entry: Option<OpenRecord<'_>>,
        offer: Arc<Offer>,
        watched: Option<WatchedTool>,
    ) -> StartedCall<'_> {
        let decided = RecordedDecision::of(&self.decision);
        let entry = match &self.decision {
            Ok(Decision::Allow(_)) => entry.map(|entry| entry.holding(self.approvals)),
            _ => entry,
        };
        let allowed = match self.decision {
            Ok(Decision::Allow(call)) => Ok(AllowedCall {
                call,
                rights: self.rights,
                files: self.files,
                agreement: self.agreement,
                offer,
            }),
            Ok(Decision::Ask(refusal) | Decision::Deny(refusal)) => Err(refusal.failure),
            Err(failure) => Err(failure),
        };
        StartedCall {
            entry,
            allowed,
            notes: self.notes,
            decided,
            watched,
        }
    }

    /// The tool of a call that may run, if its executions are counted.
    pub(super) fn watched(
        &self,
        host: &Rooms,
        session: &Session,
        (offer, trust): (&Offer, &Arc<TrustState>),
    ) -> Option<WatchedTool> {
        let Ok(Decision::Allow(call)) = &self.decision else {
            return None;
        };
        let plugin = offer.plugins.plugin(&call.tool().backend);
        let origin = plugin.map(|plugin| plugin.origin);
        let room = &host.authoriser.trust;
        room.watched(trust, session, call.tool(), origin)
    }
}

/// What rules on trial would have decided about a call of `tool`.
pub(super) fn observed(
    decision: &Result<Decision<Work>, ToolFailure>,
    tool: &str,
) -> Vec<ObservedDecision> {
    let Ok(decision) = decision else {
        return Vec::new();
    };
    let observed = decision.trace().iter().filter_map(|step| {
        Some(ObservedDecision {
            rule: one_line(step.rule.as_deref()?, RULE_CHARS_MAX),
            would: step.would?.label(),
            decided: decision.verdict().label(),
            tool: tool.to_owned(),
        })
    });
    observed.collect()
}

/// Counts what rules on trial would have decided.
pub(super) async fn count(store: &Store, observed: Vec<ObservedDecision>) {
    if observed.is_empty() {
        return;
    }
    if let Err(error) = store.count_observed(observed, now_ms()).await {
        let error = &error as &dyn std::error::Error;
        tracing::error!(
            error,
            "what rules on trial would have decided cannot be counted"
        );
    }
}
