//! Questions of tools to the user, from the call that asks to the call that brings the answers.
//!
//! No instance waits for a person: what a tool asked leaves the host in a seal, and comes back in it with the answers. A seal holds the
//! questions and the tool's own state, authenticated with a key that only this process has, together with the call it belongs to: the
//! tool, its component, the arguments and the conversation. It counts once, and not for ever.

mod code;

use std::collections::VecDeque;
use std::sync::{Mutex, PoisonError};

use base64::Engine as _;
use base64::engine::general_purpose::{STANDARD, URL_SAFE_NO_PAD};
use serde::{Deserialize, Serialize};
use serde_json::Value;
use uuid::Uuid;
use zeph_core::category::{ErrorCategory, ErrorPhase};
use zeph_core::failure::ToolFailure;
use zeph_core::id::{ConversationId, Digest};
use zeph_core::inquiry::{GivenAnswers, Inquiry, ROUNDS_MAX, Resumption, UserQuestion};
use zeph_core::policy::{Approval, AuthorizedCall};
use zeph_core::tool::Tool;
use zeph_engine::{AskedCall, GuestWork};
use zeph_store::BoundCall;

use self::code::CODE_BYTES;
use crate::clock::now_ms;
use crate::resolve::Resolved;
use crate::work::Work;

/// How long a question can be answered.
const VALID_MS: i64 = 60 * 60 * 1_000;

/// Questions of one host that can be answered at one time; a new one takes the place of the oldest.
const OPEN_MAX: usize = 1_024;

/// The questions a host has given out.
pub(crate) struct Questions {
    key: [u8; 32],
    /// Those that were not answered yet, oldest first.
    open: Mutex<VecDeque<Uuid>>,
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
pub(crate) struct Subject<'a> {
    pub(crate) call: &'a BoundCall,
    pub(crate) conversation: ConversationId,
}

/// A call that may ask: what is needed of it when it does.
pub(crate) struct Asker {
    tool: Tool,
    owner: Digest,
    conversation: ConversationId,
    before: Option<Resumption>,
    was_approved: bool,
}

impl Asker {
    /// Of a call that is about to run; answers that it was made with are used up by that.
    ///
    /// Errors: `invalid_parameters` when another call has used them.
    pub(crate) fn of(
        questions: &Questions,
        call: &AuthorizedCall<GuestWork>,
    ) -> Result<Self, ToolFailure> {
        let before = call.work().resumption().cloned();
        before
            .iter()
            .try_for_each(|before| questions.redeem(before))?;
        Ok(Self {
            tool: call.tool().clone(),
            owner: call.work().digest(),
            conversation: call.frame().conversation,
            was_approved: call.approval() == Some(Approval::Once),
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
        let subject = Subject {
            call: &bound,
            conversation: self.conversation,
        };
        let before = self.before.as_ref();
        questions.seal(&subject, asked.inquiry, before, self.was_approved, now_ms())
    }
}

/// Reads the answers that a call came with, if any.
///
/// Errors: those of [`Questions::open`]; `invalid_parameters` for a tool that never asks.
pub(crate) fn resumed(
    questions: &Questions,
    answers: Option<GivenAnswers>,
    resolved: Resolved,
) -> Result<Resolved, ToolFailure> {
    let Some(answers) = answers else {
        return Ok(resolved);
    };
    let Resolved { call, work, rights } = resolved;
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
    let subject = Subject {
        call: &bound,
        conversation: call.frame.conversation,
    };
    let resumption = questions.open(&subject, answers, now_ms())?;
    let work = Work::Guest(work.resuming(Some(resumption)));
    Ok(Resolved { call, work, rights })
}

/// What a seal holds besides its code.
#[derive(Serialize, Deserialize)]
struct Content {
    ticket: Uuid,
    expires_ms: i64,
    round: u32,
    was_approved: bool,
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
    /// Questions that nobody else can seal.
    pub(crate) fn new() -> Self {
        let mut key = [0; 32];
        for half in key.chunks_mut(16) {
            half.copy_from_slice(Uuid::new_v4().as_bytes());
        }
        Self {
            key,
            open: Mutex::default(),
        }
    }

    /// Seals what `subject` asks. `before` is how the call came to be, when it was made with answers itself.
    ///
    /// Errors: `permanent_failure` when the tool has asked too often.
    pub(crate) fn seal(
        &self,
        subject: &Subject<'_>,
        inquiry: Inquiry,
        before: Option<&Resumption>,
        was_approved: bool,
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
        let content = Content {
            ticket: Uuid::new_v4(),
            expires_ms: now_ms + VALID_MS,
            round,
            was_approved,
            questions: inquiry.questions().iter().map(SealedQuestion::of).collect(),
            state: inquiry.state().map(|state| STANDARD.encode(state)),
        };
        self.remember(content.ticket);
        Ok(SealedInquiry {
            state: self.encode(subject, &content),
            inquiry,
            expires_ms: content.expires_ms,
            round,
        })
    }

    /// Reads the answers to what the same call asked before.
    ///
    /// Errors: `invalid_parameters` or `type_mismatch`: the seal is none of this call, has expired or was used, or an answer does not
    ///         fit its question.
    pub(crate) fn open(
        &self,
        subject: &Subject<'_>,
        given: GivenAnswers,
        now_ms: i64,
    ) -> Result<Resumption, ToolFailure> {
        let content = self
            .decode(subject, &given.state)
            .ok_or_else(|| refused("the `state` of the answers does not belong to this call: it was asked by another call or by an earlier run of the host, or the arguments differ"))?;
        if content.expires_ms <= now_ms {
            return Err(refused("the time to answer is over"));
        }
        if !self.list().contains(&content.ticket) {
            return Err(used());
        }
        let inquiry = content.inquiry().map_err(|reason| refused(&reason))?;
        Ok(Resumption {
            answered: inquiry.answered(given.answers)?,
            round: content.round,
            was_approved: content.was_approved,
            ticket: content.ticket,
        })
    }

    /// Uses up the answers of a call that is about to run.
    ///
    /// Errors: `invalid_parameters` when another call has used them.
    pub(crate) fn redeem(&self, resumption: &Resumption) -> Result<(), ToolFailure> {
        let mut open = self.list();
        let place = open.iter().position(|ticket| *ticket == resumption.ticket);
        match place.and_then(|place| open.remove(place)) {
            Some(_) => Ok(()),
            None => Err(used()),
        }
    }

    fn remember(&self, ticket: Uuid) {
        let mut open = self.list();
        if open.len() == OPEN_MAX {
            open.pop_front();
        }
        open.push_back(ticket);
    }

    fn list(&self) -> std::sync::MutexGuard<'_, VecDeque<Uuid>> {
        self.open.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn encode(&self, subject: &Subject<'_>, content: &Content) -> String {
        let text = serde_json::to_vec(content).unwrap_or_default();
        let mut bytes = self.code(subject, &text).to_vec();
        bytes.extend(text);
        URL_SAFE_NO_PAD.encode(bytes)
    }

    fn decode(&self, subject: &Subject<'_>, seal: &str) -> Option<Content> {
        let bytes = URL_SAFE_NO_PAD.decode(seal).ok()?;
        let (code, text) = bytes.split_at_checked(CODE_BYTES)?;
        let is_ours = self.with_parts(subject, text, |parts| {
            code::is_code_of(&self.key, parts, code)
        });
        is_ours.then(|| serde_json::from_slice(text).ok())?
    }

    /// The code over a seal's content and the call it belongs to.
    fn code(&self, subject: &Subject<'_>, text: &[u8]) -> [u8; CODE_BYTES] {
        self.with_parts(subject, text, |parts| code::hmac_sha256(&self.key, parts))
    }

    /// What a code is made over; all but the last are of one length each.
    fn with_parts<T>(
        &self,
        subject: &Subject<'_>,
        text: &[u8],
        make: impl FnOnce(&[&[u8]]) -> T,
    ) -> T {
        let digest = subject.call.digest().hex();
        let conversation = subject.conversation.to_string();
        make(&[digest.as_bytes(), conversation.as_bytes(), text])
    }
}

impl std::fmt::Debug for Questions {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Questions").finish_non_exhaustive()
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

impl Content {
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

fn used() -> ToolFailure {
    refused("the questions were answered before, or too many others were asked since")
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
