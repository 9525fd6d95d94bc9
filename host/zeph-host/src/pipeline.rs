//! The line every call follows, from request to audit, whichever door it came through. It sees all rooms; a stage gets the one or two
//! things it works with.

mod execution;
mod judgement;
mod nested;
mod order;
mod records;
#[cfg(test)]
mod tests;
mod verdict;
mod view;

use std::sync::Arc;
use std::time::Instant;

use uuid::Uuid;
use zeph_agent::budget::CallMeter;
use zeph_core::call::{CallFrame, ToolRequest, TurnContext};
use zeph_core::category::{ErrorCategory, ErrorPhase};
use zeph_core::execution::{Execution, ExecutionFacts};
use zeph_core::failure::ToolFailure;
use zeph_core::id::CallId;
use zeph_core::output::{Outcome, ToolOutput};
use zeph_core::policy::{Decision, GrantModes};
use zeph_core::redact::Redactor;
use zeph_core::tool::Tool;
use zeph_engine::Cancel;
use zeph_plugins::rights::RightsSource;
use zeph_store::{BeginRecord, ObservedDecision, SingleUseRights, TrustState};

use self::execution::{RunResult, edited};
use self::judgement::{AllowedCall, Judgement, StartedCall, judge};
use self::records::CallRecords;
use self::view::{OutputContext, show};
use crate::anomaly::WatchedTool;
use crate::audit::{Audit, RecordBegin};
use crate::authorisation::{AuthorisationState, TrustTerms};
use crate::background::BackgroundResult;
use crate::calls::{CallControl, CallReport};
use crate::clock::now_ms;
use crate::compression::CompressionSubject;
use crate::dependencies::AskedCall;
use crate::filtering::{KnownWarnings, OutputSubject};
use crate::governance::{CallEnd, CallReach};
use crate::guest::GuestHints;
use crate::host::Rooms;
use crate::offers::Offer;
use crate::quota::CallQuota;
use crate::resolve::{ResolvedRequest, Resolver};
use crate::session::{AskedRequest, Session};
use crate::{authorisation, builtin, goal, questions, redact, workspace};

/// Makes one call. Every way a call can end leaves through the one exit at the bottom.
pub(crate) async fn call(
    host: &Rooms,
    session: &Session,
    asked: AskedRequest,
    control: CallControl,
) -> CallReport {
    let started = Instant::now();
    let AskedRequest {
        mut frame,
        request,
        asked,
        step,
    } = asked;
    step.begun();
    let id = frame.id;
    let configured = host.config.agent.goal_text.as_deref();
    goal::tell(&host.store, session, configured, &mut frame).await;
    let turn = frame.turn.clone();
    let messages = tell(host, session).await;
    session.hear_request(&request);
    let mut records = CallRecords::begin(host, (&frame, &request), &control);
    // 1 parse, 2 resolve, 3 authorise; the audit knows of the call before anything happens
    let begin = begin(host, session, (frame, request), &control, &asked);
    let mut begun = begin.await;
    records.decided(session, &begun);
    let (tool, entry) = (begun.tool(), begun.entry.take());
    let goes_on = begun.goes_on();
    let turn = turn.filter(|_| !session.is_of_plugin());
    let run = run((host, session), (id, turn), begun, control, &mut records);
    let ShownCall {
        output,
        facts,
        wanted,
        redactor,
    } = run.await;
    drop(step);
    match (&output.outcome, &tool) {
        (Outcome::Done, Some(tool)) if goes_on => asked.began(tool),
        (Outcome::Done, Some(tool)) => asked.succeeded(tool),
        _ => drop(asked),
    }
    // 8 the one exit
    let duration = started.elapsed();
    if let Some(entry) = entry {
        entry.finish(&output, &facts, duration).await;
    }
    let records = records.end(&host.store, &output, duration, &redactor);
    records.await;
    CallReport {
        id,
        messages,
        output,
        duration,
        request: wanted.grant,
        asked: wanted.answers,
    }
}

/// What came of a call, as it is shown.
struct ShownCall {
    output: ToolOutput,
    facts: ExecutionFacts,
    wanted: GuestHints,
    /// Of all that is secret by the end of the call.
    redactor: Redactor,
}

/// From the decision to what a model is shown: stages 4 to 7, or why the call does not run. `turn` is what it is made in.
async fn run(
    (host, session): (&Rooms, &Session),
    (id, turn): (CallId, Option<TurnContext>),
    begun: StartedCall<'_>,
    control: CallControl,
    records: &mut CallRecords,
) -> ShownCall {
    let tool = begun.tool();
    let room_chars = |tool: &Arc<Tool>| builtin::room_chars(tool.name.as_str());
    let wanted_chars = control.result_chars.max(tool.as_ref().and_then(room_chars));
    let beside = beside(host, session, &begun.allowed, control.meter.as_ref()).await;
    // cache, 4 execute
    let mut done = match begun.allowed {
        Ok(allowed) => edited(host, session, allowed, control).await,
        Err(failure) => RunResult::failed(failure),
    };
    records.ran(&mut done);
    // What the call was given is known by now.
    let redactor = host.secrets.redactor();
    let mut facts = redact::facts(&done.execution.facts, &redactor);
    let execution = counted(host, begun.watched, done.execution).await;
    let execution = execution.after_notes(begun.notes);
    // 5 filter, 6 redact, 7 overflow
    let about = OutputContext {
        wanted_chars,
        subject: done.subject,
        warnings: done.warnings,
        exit_code: execution.exit_code(),
        beside,
        turn: turn.filter(|_| done.is_of_turn),
    };
    let output = show(host, session, (about, &redactor), execution).await;
    let repeats = |tool: &Arc<Tool>| builtin::only_repeats(tool.name.as_str());
    if !tool.as_ref().is_some_and(repeats) {
        session.hear_result(output.produced());
    }
    let end = CallEnd {
        output: &output,
        facts: &facts,
        has_violated: done.wanted.grant.is_some(),
    };
    facts.labels = host.authoriser.governance.ended(session, id, end).await;
    ShownCall {
        output,
        facts,
        wanted: done.wanted,
        redactor,
    }
}

/// An execution that was counted for its tool, with what the caller should know of that.
async fn counted(host: &Rooms, watched: Option<WatchedTool>, execution: Execution) -> Execution {
    let Some(watched) = watched else {
        return execution;
    };
    let alerts = host.authoriser.trust.ended(watched, &execution).await;
    execution.with_notes(alerts)
}

/// What the result of an allowed call is compared with the goal as; nothing for one that a plugin makes.
async fn beside(
    host: &Rooms,
    session: &Session,
    allowed: &Result<AllowedCall, ToolFailure>,
    meter: Option<&CallMeter>,
) -> Option<CompressionSubject> {
    if session.is_of_plugin() {
        return None;
    }
    let call = &allowed.as_ref().ok()?.call;
    let subject = host.compression.subject(&host.store, session, call).await?;
    Some(subject.metered(meter))
}

/// What `request` would come to, without making the call.
///
/// Errors: what is wrong with the request itself.
pub(crate) async fn explain(
    host: &Rooms,
    session: &Session,
    request: ToolRequest,
) -> Result<Decision, ToolFailure> {
    let offer = offer(host, &request, &Cancel::new()).await;
    let trust = host.authoriser.trust.refreshed().await?;
    let resolver = resolver(host, &offer, &trust);
    let redactor = host.secrets.redactor();
    let frame = session.frame();
    let mut draft = host.audit.draft(&frame, &request, &redactor);
    let resolved = resolver.resolve(session, frame, request).await?;
    let tool = resolved.call.tool.clone();
    Audit::identify(&mut draft, &tool, offer.plugins.plugin(&tool.backend));
    let owner = offer.owner(&tool.backend);
    let rights = resolved.rights.as_ref();
    let terms = TrustTerms {
        trust: resolver.trust_of(session, &tool),
        grants: rights.map_or_else(GrantModes::default, |rights| GrantModes {
            held: rights.held(),
            ..rights.modes.clone()
        }),
    };
    let reach = CallReach::of(&host.config, &tool, &resolved.work, rights);
    let asked = (&host.authoriser, session);
    let of = (owner, reach);
    let decision = authorisation::explain(asked, resolved.call, of, &terms).await?;
    let of = (&host.dependencies, &host.store);
    let decision = order::foreseen(of, session, (&tool, decision), &offer).await;
    Ok(verdict::foreseen((host.judge.as_ref(), &host.store), &draft, &tool, decision).await)
}

/// What ended in the background and is due, as messages for the model: recorded, and shown like any output.
pub(crate) async fn tell(host: &Rooms, session: &Session) -> Vec<String> {
    if session.is_of_plugin() {
        return Vec::new();
    }
    let ended = session.shell().take_completed();
    told(host, session, ended.into_iter().map(BackgroundResult::from)).await
}

/// Ends what runs in the background of `session`, whose door closes. Returns every end that was not told yet.
pub(crate) async fn end_runs(host: &Rooms, session: &Session) -> Vec<String> {
    session.close().await;
    let ended = session.shell().commands().take_completed();
    told(host, session, ended.into_iter().map(BackgroundResult::from)).await
}

async fn told(
    host: &Rooms,
    session: &Session,
    ended: impl Iterator<Item = BackgroundResult>,
) -> Vec<String> {
    let mut messages = session.take_untold();
    for ended in ended {
        let mut header = ended.header.clone();
        let output = end_of(host, session, ended).await;
        host.secrets.redactor().clean(&mut header);
        messages.push(format!("{header}\n{}", output.produced()));
    }
    messages
}

/// Waits for the end of a background run of `session`: recorded, and shown like any output. `None` when it was told before.
pub(crate) async fn ended_run(host: &Rooms, session: &Session, run_id: Uuid) -> Option<ToolOutput> {
    let completed = session.shell().commands().ended(run_id).await?;
    Some(end_of(host, session, completed.into()).await)
}

/// The output of a background run that ended, recorded.
async fn end_of(host: &Rooms, session: &Session, ended: BackgroundResult) -> ToolOutput {
    let BackgroundResult {
        run_id,
        turn,
        duration,
        hooks_since_ms,
        subject,
        exit_code,
        execution,
        ..
    } = ended;
    let execution = match hooks_since_ms {
        Some(since_ms) => {
            session
                .commands()
                .hooked_late(session, since_ms, execution)
                .await
        }
        None => execution,
    };
    let redactor = host.secrets.redactor();
    let facts = redact::facts(&execution.facts, &redactor);
    let goal_id = turn.as_ref().and_then(|turn| turn.goal_id.as_deref());
    let beside = match &subject {
        OutputSubject::Command(line) => {
            let room = &host.compression;
            let asked = (line.text.as_str(), goal_id);
            room.of_command(&host.store, session, asked).await
        }
        _ => None,
    };
    let labelled = match &subject {
        OutputSubject::Command(line) => Some(line.clone()),
        _ => None,
    };
    let about = OutputContext {
        wanted_chars: None,
        subject,
        warnings: KnownWarnings::default(),
        exit_code,
        beside,
        turn: turn.clone(),
    };
    let output = show(host, session, (about, &redactor), execution).await;
    session.hear_result(output.produced());
    if let Outcome::Done = output.outcome {
        session.progress().ended_well();
    }
    let of = (&host.authoriser.policy, labelled.as_deref());
    let governance = &host.authoriser.governance;
    governance
        .ended_in_background(session, of, &output, &facts)
        .await;
    host.audit
        .completed(session, (&run_id, turn), &facts, &output, duration)
        .await;
    output
}

/// Stages 1 to 3 and the begin of the record.
///
/// What a call holds for itself alone is taken when it begins. When another call has taken it since this one was decided, it was never
/// there: the call is decided again. Each time another call has got on.
async fn begin<'h>(
    host: &'h Rooms,
    session: &Session,
    (frame, request): (CallFrame, ToolRequest),
    control: &CallControl,
    asked_call: &AskedCall,
) -> StartedCall<'h> {
    let draft = host.audit.draft(&frame, &request, &host.secrets.redactor());
    let offer = offer(host, &request, &control.cancel).await;
    let tool = offer.catalog.resolve_shared(&request.tool).ok();
    let quota = quota(host, session, control.batch.unwrap_or(frame.id.as_uuid()));
    let mut asked = AuthorisationState::first(0);
    let mut verdict = None;
    loop {
        let (trust, refused) = trusted(host, control).await;
        let before = quota.before(&host.store).await;
        asked.calls_made = *before.as_ref().unwrap_or(&0);
        let resolver = resolver(host, &offer, &trust);
        asked.note_trust(tool.map(|tool| resolver.trust_of(session, tool)));
        // 1 parse, 2 resolve
        let of = (frame.clone(), request.clone());
        let resolved = match refused.or(before.err()) {
            Some(failure) => Err(failure),
            None => resolved((host, session), &resolver, of, control).await,
        };
        // 3 authorise
        let mut judged = match resolved {
            Ok(resolved) => {
                let of = (resolved, asked_call);
                authorised((host, session), &resolver, of, control, &mut asked).await
            }
            Err(failure) => Judgement::failed(failure, tool),
        };
        judged = verdict::asked(host.judge.as_ref(), session, judged, control, &mut verdict).await;
        let mut draft = draft.clone();
        judged.identify(&mut draft, &offer);
        let observed = note_decision((host, session), &mut draft, &judged, &asked).await;
        let once = SingleUseRights {
            quota: quota.to_count(asked.calls_made),
            hold: control.hold.or(session.hold()),
            ..std::mem::take(&mut judged.once)
        };
        match host.audit.begin(draft, &judged.decision, once).await {
            // What it was decided with may be no more.
            Ok(RecordBegin::RightGone) => host.authoriser.trust.forget(),
            // Other calls were faster; the rules say what follows from that.
            Ok(RecordBegin::QuotaUsed) => quota.used_up(),
            Ok(RecordBegin::Open(entry)) => {
                quota.counted();
                judgement::count(&host.store, observed).await;
                let watched = judged.watched(host, session, (&offer, &trust));
                return judged.begun(Some(entry), offer, watched);
            }
            Err(failure) => {
                judged.decision = Err(failure);
                return judged.begun(None, offer, None);
            }
        }
    }
}

/// Stages 1 and 2: the call that a request is, with what a question of its tool was answered.
async fn resolved(
    (host, session): (&Rooms, &Session),
    resolver: &Resolver<'_>,
    (frame, request): (CallFrame, ToolRequest),
    control: &CallControl,
) -> Result<ResolvedRequest, ToolFailure> {
    // Nobody waited any longer until it was known whether there is such a tool.
    if control.cancel.is_cancelled() && !host.offers.knows(resolver.offer, &request.tool) {
        return Err(ToolFailure::new(
            ErrorCategory::Cancelled,
            ErrorPhase::Setup,
            "the call was cancelled before it began",
        ));
    }
    let answers = request.answers.clone();
    let resolved = resolver.resolve(session, frame, request).await?;
    workspace::check(session, &resolved)?;
    nested::check(control, &resolved.call)?;
    questions::resumed(&host.questions, answers, resolved).await
}

/// Stage 3: what the order of calls and the rules say of a call.
async fn authorised(
    (host, session): (&Rooms, &Session),
    resolver: &Resolver<'_>,
    (resolved, asked_call): (ResolvedRequest, &AskedCall),
    control: &CallControl,
    asked: &mut AuthorisationState,
) -> Judgement {
    session.hear_resolved(&resolved.call);
    let of = (&host.dependencies, &host.store);
    let call = (asked_call, &*resolved.call.tool);
    match order::refusal(of, session, call, resolver.offer, control).await {
        Some(refusal) => Judgement::refused(refusal, resolved),
        None => judge(resolver, session, resolved, control, asked).await,
    }
}

/// Adds to the record how a call was decided. Returns what rules on trial would have said.
async fn note_decision(
    (host, session): (&Rooms, &Session),
    draft: &mut BeginRecord,
    judged: &Judgement,
    asked: &AuthorisationState,
) -> Vec<ObservedDecision> {
    draft.correlation_id = session.made_by();
    draft.facts.tokens = session.tokens();
    draft.facts.labels = session.trajectory().passed_labels(draft.call_id);
    let trust = asked.terms.trust.level();
    draft.facts.trust = judged.tool.is_some().then(|| trust.label().to_owned());
    draft.facts.asked = (!session.principal().is_operator()).then_some(asked.needs_person);
    let governance = &host.authoriser.governance;
    let decided = governance.decided(session, draft.call_id, &judged.decision);
    decided.await;
    let observed = judgement::observed(&judged.decision, &draft.tool);
    let would = observed.first();
    draft.facts.observed = would.map(|seen| format!("{}: {}", seen.would, seen.rule));
    observed
}

/// How a call of `session` counts as `batch`.
fn quota<'a>(host: &Rooms, session: &'a Session, batch: Uuid) -> CallQuota<'a> {
    CallQuota {
        known: session.quota(),
        conversation: session.conversation,
        batch,
        calls_max: host.authoriser.policy.calls_max,
    }
}

/// What is known of trust, and why the call cannot be decided about.
async fn trusted(host: &Rooms, control: &CallControl) -> (Arc<TrustState>, Option<ToolFailure>) {
    let refused = control.refused.clone();
    match host.authoriser.trust.known().await {
        Ok(trust) => (trust, refused),
        Err(failure) => (Arc::default(), refused.or(Some(failure))),
    }
}

fn resolver<'a>(host: &'a Rooms, offer: &'a Offer, trust: &'a Arc<TrustState>) -> Resolver<'a> {
    Resolver {
        trust,
        config: &host.config,
        authoriser: &host.authoriser,
        rights: RightsSource {
            config: &host.config,
            operator: &host.operator,
            store: &host.store,
            now_ms: now_ms(),
        },
        offer,
        servers: host.offers.servers(),
        backends: &host.backends,
        egress: &host.egress,
        replay: host.replay.as_ref(),
    }
}

/// What there is at this moment, or at the moment when the tool that is asked for is there.
async fn offer(host: &Rooms, request: &ToolRequest, cancel: &Cancel) -> Arc<Offer> {
    let patience = host.config.limits.wall_clock;
    host.offers.with_tool(&request.tool, patience, cancel).await
}
