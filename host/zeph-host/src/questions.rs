//! Questions of tools to the user, from the call that asks to the call that brings the answers.
//!
//! No instance waits for a person: what a tool asked leaves the host in a seal, and comes back in it with the answers. A seal holds the
//! questions and the tool's own state, and belongs to the call: the tool, its component, the arguments, the conversation and its
//! caller. It counts once, and not for ever.

use std::sync::Arc;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use serde::{Deserialize, Serialize};
use serde_json::Value;
use zeph_core::category::{ErrorCategory, ErrorPhase};
use zeph_core::failure::ToolFailure;
use zeph_core::id::{ConversationId, Digest};
use zeph_core::inquiry::{GivenAnswers, Inquiry, ROUNDS_MAX, Resumption, UserQuestion};
use zeph_core::lifetime::Lifetime;
use zeph_core::policy::AuthorizedCall;
use zeph_core::tool::Tool;
use zeph_engine::{AskedCall, GuestWork};
use zeph_store::{Agreement, BoundCall};

use crate::clock::now_ms;
use crate::resolve::ResolvedRequest;
use crate::seals::{self, BadSeal, Opened, Seals, Ticket};
use crate::work::Work;

/// How long a question can be answered.
const VALID_MS: i64 = 60 * 60 * 1_000;

/// The questions a host has given out.
pub(crate) struct Questions {
    seals: Arc<Seals>,
}

/// What a call asked, for a door to put to a user.
#[derive(Debug, Clone)]
pub struct SealedInquiry {
    /// The questions.
    pub inquiry: Inquiry,
    /// Comes back with the answers.
    pub state: String,
    /// Until when they can be answered, in milliseconds since 1970.
    pub expires_ms: i64,
    /// How often the call has asked, this time included.
    pub round: u32,
}

/// The call that a seal belongs to.
pub(crate) struct SealedCall<'a> {
    pub(crate) call: &'a BoundCall,
    pub(crate) conversation: ConversationId,
    /// Who makes it, when that is known.
    pub(crate) caller: Option<&'a str>,
}

/// A call that may ask: what is needed of it when it does.
pub(crate) struct Asker {
    tool: Arc<Tool>,
    owner: Digest,
    conversation: ConversationId,
    caller: Option<String>,
    before: Option<Resumption>,
    agreement: Option<Agreement>,
}

impl Asker {
    /// Of a call that is about to run; answers that it was made with are used up by that. `agreement` is who agreed to it.
    ///
    /// Errors: `invalid_parameters` when another call has used them.
    pub(crate) async fn of(
        questions: &Questions,
        call: &AuthorizedCall<GuestWork>,
        agreement: Option<Agreement>,
    ) -> Result<Self, ToolFailure> {
        let before = call.work().resumption().cloned();
        if let Some(before) = &before {
            questions.redeem(before).await?;
        }
        Ok(Self {
            tool: call.shared_tool(),
            owner: call.work().digest(),
            conversation: call.frame().conversation,
            caller: call.frame().principal.caller_id().map(str::to_owned),
            // What was approved for longer holds by itself.
            agreement: agreement.filter(|_| call.approval() == Some(Lifetime::Once)),
            before,
        })
    }

    /// What it asked, for a door.
    ///
    /// Errors: `permanent_failure` when it has asked too often.
    pub(crate) fn seal(
        self,
        questions: &Questions,
        asked: AskedCall,
    ) -> Result<SealedInquiry, ToolFailure> {
        let bound = BoundCall::new(&self.tool, Some(self.owner), &asked.arguments, None);
        let subject = SealedCall {
            call: &bound,
            conversation: self.conversation,
            caller: self.caller.as_deref(),
        };
        let before = self.before.as_ref();
        questions.seal(&subject, asked.inquiry, before, self.agreement, now_ms())
    }
}

/// Reads the answers that a call came with, if any.
///
/// Errors: those of [`Questions::open`]; `invalid_parameters` for a tool that never asks.
pub(crate) async fn resumed(
    questions: &Questions,
    answers: Option<GivenAnswers>,
    resolved: ResolvedRequest,
) -> Result<ResolvedRequest, ToolFailure> {
    let Some(answers) = answers else {
        return Ok(resolved);
    };
    let ResolvedRequest {
        call, work, rights, ..
    } = resolved;
    let Work::Guest(work) = work else {
        let failure = refused(&format!("`{}` asks the user nothing", call.tool.name));
        return Err(failure);
    };
    let bound = BoundCall::new(
        &call.tool,
        Some(work.digest()),
        &call.arguments.values,
        None,
    );
    let subject = SealedCall {
        call: &bound,
        conversation: call.frame.conversation,
        caller: call.frame.principal.caller_id(),
    };
    let (resumption, agreement) = questions.open(&subject, answers, now_ms()).await?;
    let work = Work::Guest(work.resuming(Some(resumption)));
    Ok(ResolvedRequest {
        call,
        work,
        rights,
        agreement,
    })
}

/// What a seal holds besides its code.
#[derive(Serialize, Deserialize)]
struct SealContent {
    round: u32,
    /// Who agreed to the call, which covers its answers.
    agreement: Option<Agreement>,
    questions: Vec<SealedQuestion>,
    /// In base64.
    state: Option<String>,
}

#[derive(Serialize, Deserialize)]
struct SealedQuestion {
    id: String,
    message: String,
    schema: Value,
}

impl Questions {
    /// Questions under `seals`.
    pub(crate) fn new(seals: Arc<Seals>) -> Self {
        Self { seals }
    }

    /// Seals what `subject` asks. `before` is how the call came to be, when it was made with answers itself; `agreement` is who agreed
    /// to the call, when that has to cover its answers.
    ///
    /// Errors: `permanent_failure` when the tool has asked too often.
    pub(crate) fn seal(
        &self,
        subject: &SealedCall<'_>,
        inquiry: Inquiry,
        before: Option<&Resumption>,
        agreement: Option<Agreement>,
        now_ms: i64,
    ) -> Result<SealedInquiry, ToolFailure> {
        let round = before.map_or(0, |before| before.round) + 1;
        if round > ROUNDS_MAX {
            return Err(ToolFailure::new(
                ErrorCategory::PermanentFailure,
                ErrorPhase::ResultInterpretation,
                format!("the tool has asked the user {ROUNDS_MAX} times and asks again"),
            ));
        }
        let content = SealContent {
            round,
            agreement,
            questions: inquiry.questions().iter().map(SealedQuestion::of).collect(),
            state: inquiry.state().map(|state| STANDARD.encode(state)),
        };
        let expires_ms = now_ms + VALID_MS;
        let seal = |subject: seals::Subject<'_>| {
            let seals = &self.seals;
            seals.seal(subject, &content, expires_ms, now_ms)
        };
        Ok(SealedInquiry {
            state: subject.with_seal(seal),
            inquiry,
            expires_ms,
            round,
        })
    }

    /// Reads the answers to what the same call asked before; also who agreed to it, when that covers the answers.
    ///
    /// Errors: `invalid_parameters` or `type_mismatch`: the seal is none of this call, has expired or was used, or an answer does not
    ///         fit its question.
    pub(crate) async fn open(
        &self,
        subject: &SealedCall<'_>,
        given: GivenAnswers,
        now_ms: i64,
    ) -> Result<(Resumption, Option<Agreement>), ToolFailure> {
        let opened = subject.with_seal(|subject| {
            let seals = &self.seals;
            seals.open::<SealContent>(subject, &given.state, now_ms)
        });
        let Opened { content, ticket } = opened.map_err(refused_by)?;
        self.seals.check(ticket).await.map_err(refused_by)?;
        let inquiry = content.inquiry().map_err(|reason| refused(&reason))?;
        let resumption = Resumption {
            answered: inquiry.answered(given.answers)?,
            round: content.round,
            ticket: ticket.0,
        };
        Ok((resumption, content.agreement))
    }

    /// What the seal `state` asks; nothing when it is none. Only for one that is known to be ours: nothing is checked.
    pub(crate) fn asked(state: &str) -> Option<Inquiry> {
        let content: SealContent = Seals::content(state)?;
        content.inquiry().ok()
    }

    /// Uses up the answers of a call that is about to run.
    ///
    /// Errors: `invalid_parameters` when another call has used them.
    pub(crate) async fn redeem(&self, resumption: &Resumption) -> Result<(), ToolFailure> {
        let redeemed = self.seals.redeem(Ticket(resumption.ticket)).await;
        redeemed.map_err(refused_by)
    }
}

impl std::fmt::Debug for Questions {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Questions").finish_non_exhaustive()
    }
}

impl SealedCall<'_> {
    /// What the seal belongs to.
    fn with_seal<T>(&self, make: impl FnOnce(seals::Subject<'_>) -> T) -> T {
        let digest = self.call.digest().hex();
        let conversation = self.conversation.to_string();
        make(seals::Subject {
            purpose: "questions",
            owner: self.caller,
            parts: &[digest.as_bytes(), conversation.as_bytes()],
        })
    }
}

impl SealedQuestion {
    fn of(question: &UserQuestion) -> Self {
        Self {
            id: question.id().to_owned(),
            message: question.message().to_owned(),
            schema: question.schema().schema().clone(),
        }
    }
}

impl SealContent {
    /// The questions that were sealed.
    fn inquiry(&self) -> Result<Inquiry, String> {
        let question = |question: &SealedQuestion| {
            let schema = question.schema.clone();
            UserQuestion::new(question.id.clone(), &question.message, schema)
        };
        let questions = self.questions.iter().map(question);
        let state = self.state.as_ref().map(|state| STANDARD.decode(state));
        let state = state.transpose().map_err(|error| error.to_string())?;
        Inquiry::new(questions.collect::<Result<_, _>>()?, state)
    }
}

fn refused_by(problem: BadSeal) -> ToolFailure {
    if problem == BadSeal::Unknown {
        return ToolFailure::new(
            ErrorCategory::ServerError,
            ErrorPhase::ParamHandling,
            "the store cannot say whether the questions were answered before; nothing ran, so make the call again",
        );
    }
    refused(match problem {
        BadSeal::Foreign => {
            "the `state` of the answers does not belong to this call: it was asked by another call, by an earlier run of the host or by one with other keys (`mcp.serve.seal_keys`), or the arguments differ"
        }
        BadSeal::Expired => "the time to answer is over",
        BadSeal::Used | BadSeal::Unknown => {
            "the questions were answered before, or too many others were asked since"
        }
    })
}

fn refused(why: &str) -> ToolFailure {
    ToolFailure::new(
        ErrorCategory::InvalidParameters,
        ErrorPhase::ParamHandling,
        format!("{why}; make the call without an answer, and it asks again"),
    )
}

#[cfg(test)]
mod tests;
