//! Stage 3 of the line with what it needs of the world: the count of calls, approvals, and a person to ask.
//!
//! What is allowed is said by `zeph_core::policy` alone; here its facts are gathered, and asked for again when a person has agreed.

use std::path::PathBuf;
use std::sync::Arc;

use serde_json::{Map, Value};
use zeph_core::call::ResolvedCall;
use zeph_core::category::{ErrorCategory, ErrorPhase};
use zeph_core::failure::ToolFailure;
use zeph_core::id::Digest;
use zeph_core::lifetime::Lifetime;
use zeph_core::policy::{
    self, CallTrust, Decision, GrantModes, Policy, Refusal, SessionFacts, authorise, authorise_with,
};
use zeph_core::tool::{Backend, Tool};
use zeph_store::{
    Agreement, ApprovalReason, ApprovalRequest, BoundCall, Store, StoreError, StoredApproval,
};

pub(crate) mod objects;
mod rules;
mod scheduled;
pub(crate) mod token;

use self::objects::AgreedObjects;
use crate::anomaly::TrustRoom;
use crate::approval::{ApprovalAnswer, ApprovalQuestion};
use crate::calls::CallControl;
use crate::clock::now_ms;
use crate::governance::{CallReach, GovernanceRoom, GovernanceView};
use crate::known_secrets::KnownSecrets;
use crate::mode::{SessionMode, read_only_refusal};
use crate::session::Session;
use crate::work::Work;

/// What the stage works with.
#[derive(Debug)]
pub(crate) struct Authoriser {
    pub(crate) policy: Policy,
    /// The same rules with those of [`SessionMode::Edit`].
    pub(crate) edit_policy: Policy,
    /// The same without what was allowed on the command line, for calls that a schedule makes.
    pub(crate) scheduled_policy: Policy,
    /// What calls come to by what their conversation did before.
    pub(crate) governance: GovernanceRoom,
    /// The approvals.
    pub(crate) store: Store,
    /// What no request for an approval tells.
    pub(crate) secrets: Arc<KnownSecrets>,
    /// The user the host runs as, when a rule asks for one and it has a name.
    pub(crate) user: Option<String>,
    /// How this program is called here, for the commands that messages name.
    pub(crate) program: String,
    /// Where relative paths of calls start.
    pub(crate) directory: Option<PathBuf>,
    /// How far tools are trusted.
    pub(crate) trust: TrustRoom,
}

impl Authoriser {
    /// The rules for a call of `session`.
    pub(crate) fn policy_of(&self, session: &Session) -> &Policy {
        if session.schedule().is_some() {
            return &self.scheduled_policy;
        }
        match session.mode() {
            SessionMode::Edit => &self.edit_policy,
            SessionMode::Ask | SessionMode::ReadOnly => &self.policy,
        }
    }

    /// The facts of this moment.
    pub(crate) fn facts(&self, calls_made: u32, approval: Option<Lifetime>) -> SessionFacts<'_> {
        SessionFacts {
            calls_made,
            approval,
            has_variable: &|name| zeph_config::variable(name).is_some(),
            user: self.user.as_deref(),
            is_root: rustix::process::geteuid().is_root(),
            ..SessionFacts::default()
        }
    }
}

/// A decision and the approval for once it leans on, which the begin of the call uses up.
pub(crate) struct AuthorisationResult<W = Work> {
    pub(crate) decision: Decision<W>,
    pub(crate) approval: Option<StoredApproval>,
    /// The approvals for once of single objects, which the begin uses up too.
    pub(crate) objects: Vec<StoredApproval>,
    /// Who agreed to it, when it would not be allowed without.
    pub(crate) agreement: Option<Agreement>,
}

/// What the line knows of a call that is decided.
#[derive(Debug, Clone)]
pub(crate) struct AuthorisationState {
    /// Calls the session asked for before.
    pub(crate) calls_made: u32,
    /// How far what runs it reaches.
    pub(crate) reach: CallReach,
    /// The component behind it, when it is one of an installed plugin.
    pub(crate) owner: Option<Digest>,
    /// Who agreed to the call whose questions it answers: it is the same call.
    pub(crate) resumed: Option<Agreement>,
    /// What a person answered when the same call was decided before.
    pub(crate) agreed: Option<(Lifetime, Agreement)>,
    /// Whether a person had to answer: one was asked, or nobody could be.
    pub(crate) needs_person: bool,
    /// What it is decided with.
    pub(crate) terms: TrustTerms,
}

/// How far a call is trusted, and which of its grants do not simply allow.
#[derive(Debug, Clone, Default)]
pub(crate) struct TrustTerms {
    pub(crate) trust: CallTrust,
    pub(crate) grants: GrantModes,
}

impl AuthorisationState {
    /// Of a call that was not decided before.
    pub(crate) fn first(calls_made: u32) -> Self {
        Self {
            calls_made,
            reach: CallReach::default(),
            owner: None,
            resumed: None,
            agreed: None,
            needs_person: false,
            terms: TrustTerms::default(),
        }
    }

    /// Notes how far the tool is trusted: that is recorded also of a call that is not decided about, because it is wrong or too early.
    pub(crate) fn note_trust(&mut self, trust: Option<CallTrust>) {
        if let Some(trust) = trust {
            self.terms.trust = trust;
        }
    }
}

/// Decides about `call`; asks the store and, where there is one, a person, when the rules alone do not allow it.
///
/// What the person answers is kept in `asked`, so that one question is asked once.
/// Errors: `server_error` when the store cannot be asked: then nothing runs.
pub(crate) async fn decide(
    room: &Authoriser,
    session: &Session,
    call: ResolvedCall,
    work: Work,
    control: &CallControl,
    asked: &mut AuthorisationState,
) -> Result<AuthorisationResult, ToolFailure> {
    token::count(&room.store, session).await?;
    let agreed = AgreedObjects::of(room, session, &call, asked.owner).await?;
    let policy = room.policy_of(session);
    let of = (&call, asked.reach);
    let view = room.governance.enter(policy, session, of, control).await?;
    let known = (&agreed, &view);
    let decided = decide_with(room, session, (call, work, known), control, asked).await?;
    Ok(AuthorisationResult {
        objects: agreed.once,
        ..decided
    })
}

async fn decide_with(
    room: &Authoriser,
    session: &Session,
    (call, work, (agreed, view)): (ResolvedCall, Work, (&AgreedObjects, &GovernanceView)),
    control: &CallControl,
    asked: &mut AuthorisationState,
) -> Result<AuthorisationResult, ToolFailure> {
    let calls_made = asked.calls_made;
    let heard = session.heard();
    let terms = asked.terms.clone();
    let decide = |policy: &Policy, approval| {
        if let Some(refusal) = token::refusal(session, &call.tool) {
            return Decision::Deny(refusal);
        }
        // Looked at each time: the mode may have changed while a person was asked.
        if session.mode() == SessionMode::ReadOnly && !call.tool.annotations.read_only {
            return Decision::Deny(read_only_refusal(call.tool.name.as_str()));
        }
        let facts = SessionFacts {
            heard: heard.as_deref(),
            agreed_objects: &agreed.paths,
            trust: &terms.trust,
            grants: &terms.grants,
            ..room.facts(calls_made, approval)
        };
        let decision = authorise_with(policy, &view.tell(facts), call.clone(), work.clone());
        scheduled::advised(session, decision)
    };
    let (approval, agreement) = asked.agreed.clone().unzip();
    let decision = decide(room.policy_of(session), approval);
    let refusal = match &decision {
        Decision::Ask(refusal) | Decision::Deny(refusal) if refusal.can_be_approved => refusal,
        _ => return Ok(AuthorisationResult::with(decision, agreement)),
    };
    if let Some(resumed) = asked.resumed.clone() {
        let decision = decide(room.policy_of(session), Some(Lifetime::Once));
        return Ok(AuthorisationResult::with(decision, Some(resumed)));
    }
    let bound = bound(room, session, of(&call), asked.owner);
    let before = (&call, asked.owner, &bound);
    if let Some(allowed) = agreed_before(room, session, before, &decide).await? {
        return Ok(allowed);
    }
    asked.needs_person = true;
    let ask = control.ask.as_ref();
    // The user who typed the call was told why, and changes the rule or approves it.
    let Some(ask) = ask.filter(|_| !call.frame.principal.is_operator()) else {
        return Ok(asked_later(room, session, bound, decision).await?.into());
    };
    let is_enough = |policy: &Policy| matches!(decide(policy, None), Decision::Allow(_));
    let offer = || rules::offered(room, &call, &refusal.allow, is_enough);
    let offered = ask.keeps_rules().then(offer);
    let question = question(&bound, refusal, offered.as_ref());
    let Some(answer) = ask.ask(question, &control.cancel).await else {
        if control.cancel.is_cancelled() {
            return Err(cancelled());
        }
        // Nobody answered in time.
        return Ok(asked_later(room, session, bound, decision).await?.into());
    };
    let agreement = ask.agreement().clone();
    let scope = rules::scope(room, &call, asked.owner);
    let kept = (bound, scope, offered.unwrap_or_default());
    let kept = keep(room, session, kept, answer, &agreement).await;
    kept.map_err(|error| cannot_ask(&error))?;
    let ApprovalAnswer::Approved(approval) = answer else {
        return Ok(refused(decision).into());
    };
    asked.agreed = Some((approval, agreement.clone()));
    let decision = decide(room.policy_of(session), Some(approval));
    Ok(AuthorisationResult::with(decision, Some(agreement)))
}

/// What was agreed to before, when `call` may run by it: by rules, or by an approval of exactly this call.
async fn agreed_before<W>(
    room: &Authoriser,
    session: &Session,
    (call, owner, bound): (&ResolvedCall, Option<Digest>, &BoundCall),
    decide: impl Fn(&Policy, Option<Lifetime>) -> Decision<W>,
) -> Result<Option<AuthorisationResult<W>>, ToolFailure> {
    if let Some(agreed) = rules::agreed(room, session, call, owner).await? {
        let decision = decide(&agreed.policy, None);
        if matches!(decision, Decision::Allow(_)) {
            return Ok(Some(AuthorisationResult {
                agreement: agreed.agreement,
                ..decision.into()
            }));
        }
    }
    let approval = stored(room, session, bound).await?;
    Ok(approval.map(|approval| AuthorisationResult {
        approval: approval.is_once().then(|| approval.clone()),
        ..AuthorisationResult::with(
            decide(room.policy_of(session), Some(approval.lifetime)),
            approval.agreement,
        )
    }))
}

/// Keeps what a person answered. The call waits no longer, should it have been left for later before.
async fn keep(
    room: &Authoriser,
    session: &Session,
    (bound, scope, rules): (BoundCall, Digest, Vec<String>),
    answer: ApprovalAnswer,
    agreement: &Agreement,
) -> Result<(), StoreError> {
    let (store, conversation, now) = (&room.store, session.conversation, now_ms());
    let digest = bound.digest();
    if let Some(lifetime) = answer.kept() {
        let kept = match rules.is_empty() {
            true => bound,
            false => bound.keeping(scope, rules),
        };
        let approved = store.approve_call(kept, lifetime, agreement.clone(), conversation, now);
        approved.await?;
    }
    let waiting = store.list_requests(Some(conversation), now).await?;
    let is_same = |request: &ApprovalRequest| request.call.digest == digest;
    if let Some(request) = waiting.into_iter().find(is_same) {
        store.deny_request(request.id).await?;
    }
    Ok(())
}

/// What `call` would come to for `session`, without counting it, asking a person or changing anything.
///
/// Errors: `server_error` when the store cannot be read.
pub(crate) async fn explain(
    (room, session): (&Authoriser, &Session),
    call: ResolvedCall,
    (owner, reach): (Option<Digest>, CallReach),
    terms: &TrustTerms,
) -> Result<Decision, ToolFailure> {
    let heard = session.heard();
    let policy = room.policy_of(session);
    let view = room
        .governance
        .look(policy, session, (&call, reach))
        .await?;
    let decide = |policy: &Policy, approval| {
        if let Some(refusal) = token::refusal(session, &call.tool) {
            return Decision::Deny(refusal);
        }
        let facts = SessionFacts {
            heard: heard.as_deref(),
            trust: &terms.trust,
            grants: &terms.grants,
            ..room.facts(session.calls_made(), approval)
        };
        scheduled::advised(session, authorise(policy, &view.tell(facts), call.clone()))
    };
    let decision = decide(room.policy_of(session), None);
    match &decision {
        Decision::Ask(refusal) | Decision::Deny(refusal) if refusal.can_be_approved => {}
        _ => return Ok(decision),
    }
    let bound = bound(room, session, of(&call), owner);
    let before = (&call, owner, &bound);
    let allowed = agreed_before(room, session, before, &decide).await?;
    Ok(allowed.map_or(decision, |allowed| allowed.decision))
}

/// The approval that is kept for a call.
async fn stored(
    room: &Authoriser,
    session: &Session,
    bound: &BoundCall,
) -> Result<Option<StoredApproval>, ToolFailure> {
    let found = room
        .store
        .find_approval(bound, session.conversation, now_ms())
        .await;
    found.map_err(|error| cannot_ask(&error))
}

impl<W> AuthorisationResult<W> {
    /// A decision that uses up no approval, and who agreed to it if anybody did.
    fn with(decision: Decision<W>, agreement: Option<Agreement>) -> Self {
        let needs_it = matches!(&decision, Decision::Allow(call) if call.approval().is_some());
        Self {
            decision,
            approval: None,
            objects: Vec::new(),
            agreement: agreement.filter(|_| needs_it),
        }
    }
}

impl<W> From<Decision<W>> for AuthorisationResult<W> {
    /// A decision that leans on no approval.
    fn from(decision: Decision<W>) -> Self {
        Self::with(decision, None)
    }
}

fn cancelled() -> ToolFailure {
    ToolFailure::new(
        ErrorCategory::Cancelled,
        ErrorPhase::Setup,
        "the call was cancelled while waiting for approval",
    )
}

/// Leaves the question for a person, and says in the refusal with which command it is answered.
async fn asked_later(
    room: &Authoriser,
    session: &Session,
    bound: BoundCall,
    decision: Decision<Work>,
) -> Result<Decision<Work>, ToolFailure> {
    let (refusal, is_ask) = match decision {
        Decision::Ask(refusal) => (refusal, true),
        Decision::Deny(refusal) => (refusal, false),
        Decision::Allow(_) => return Ok(decision),
    };
    let redactor = room.secrets.redactor();
    let clean = |text: &String| redactor.text(text).into_owned();
    let asking = ApprovalReason {
        reason: clean(&refusal.reason),
        rules: refusal.allow.iter().map(clean).collect(),
    };
    let recorded = room
        .store
        .record_request(bound, asking, session.asker(), now_ms())
        .await;
    let request = recorded.map_err(|error| cannot_ask(&error))?;
    let refusal = refusal.with_approve_command(&format!("{} approve {}", room.program, request.id));
    Ok(match is_ask {
        true => Decision::Ask(refusal),
        false => Decision::Deny(refusal),
    })
}

/// A person said no.
fn refused(decision: Decision<Work>) -> Decision<Work> {
    let (Decision::Ask(mut refusal) | Decision::Deny(mut refusal)) = decision else {
        return decision;
    };
    refusal.failure = ToolFailure::new(
        ErrorCategory::PolicyBlocked,
        ErrorPhase::Setup,
        format!("the user did not approve it ({})", refusal.reason),
    );
    refusal.rule = "denied by the user".to_owned();
    Decision::Deny(refusal)
}

/// The question; `offered` are the rules that an answer keeps, where the prompt keeps rules.
fn question(
    bound: &BoundCall,
    refusal: &Refusal,
    offered: Option<&Vec<String>>,
) -> ApprovalQuestion {
    let line = |step: &policy::TraceStep| format!("{}: {}", step.check, step.detail);
    ApprovalQuestion {
        call: bound.shown().clone(),
        reason: refusal.reason.clone(),
        rules: offered.unwrap_or(&refusal.allow).clone(),
        trace: refusal.trace.iter().map(line).collect(),
        is_once: false,
    }
}

fn of(call: &ResolvedCall) -> (&Tool, &Map<String, Value>) {
    (&call.tool, &call.arguments.values)
}

/// The call with all that says what it will do: a command means something else in another directory.
fn bound(
    room: &Authoriser,
    session: &Session,
    (tool, arguments): (&Tool, &Map<String, Value>),
    owner: Option<Digest>,
) -> BoundCall {
    let directory = match tool.backend {
        Backend::Shell => Some(session.shell().commands().directory()),
        Backend::Wasm(_) | Backend::Builtin | Backend::Mcp(_) => room.directory.clone(),
    };
    BoundCall::new(tool, owner, arguments, directory.as_deref())
        .without_secrets(&room.secrets.redactor())
}

fn cannot_ask(error: &StoreError) -> ToolFailure {
    tracing::error!(
        error = error as &dyn std::error::Error,
        "a call was not made: approvals cannot be read"
    );
    ToolFailure::new(
        ErrorCategory::ServerError,
        ErrorPhase::Setup,
        "the call was not made: the host cannot read its approvals",
    )
}
