//! Requests over one connection: with a limit of time, ended at once when they are cancelled or dropped, and the rounds in which a server
//! of the stateless revisions asks before it answers.

use std::collections::BTreeMap;
use std::fmt;
use std::time::Duration;

use rmcp::RoleClient;
use rmcp::model::{
    CancelledNotificationParam, ClientRequest, ElicitRequest, ErrorCode, ErrorData,
    GetExtensions as _, GetMeta as _, InputRequest, InputRequiredResult, InputResponses, RequestId,
    ServerResult,
};
use rmcp::service::{Peer, PeerRequestOptions, ServiceError};
use serde_json::{Value, json};
use tokio::sync::mpsc;
use tokio::time::{Instant, sleep_until, timeout};
use zeph_core::failure::one_line;

use super::desk::{Desk, ProgressRoute};
use super::ending::{EndReason, Ending};
use super::error::{McpError, McpErrorCode, WORDS_CHARS_MAX};
use super::listener::ServerListener;
use super::message::is_unusable;
use super::{CallControl, QuestionKinds, question};

/// Most rounds of one request.
const ROUNDS_MAX: usize = 10;

/// Most questions of one round.
pub(super) const QUESTIONS_MAX: usize = 16;

/// The longest that a question to the user stops the clock of a request.
const USER_PATIENCE: Duration = Duration::from_mins(10);

/// How long the server is waited for before a round without a question is made again.
const ROUND_PAUSE: Duration = Duration::from_millis(200);

/// What requests are made with.
pub(super) struct Session {
    pub(super) peer: Peer<RoleClient>,
    pub(super) desk: Desk,
    pub(super) ending: Ending,
    pub(super) listener: std::sync::Arc<dyn ServerListener>,
    pub(super) questions: QuestionKinds,
    pub(super) request_timeout: Duration,
    /// Whether each request says which log messages are wanted: a revision without `initialize`.
    pub(super) is_stateless: bool,
    /// Requests that nobody waits for any more.
    pub(super) abandoned: mpsc::Sender<RequestId>,
}

impl fmt::Debug for Session {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Session").finish_non_exhaustive()
    }
}

/// Answers to the questions of a server, and the state it wants back.
pub(super) type Round = (Option<InputResponses>, Option<String>);

/// Tells the server that nobody waits for an answer, unless it has come.
struct Waiting<'a> {
    session: &'a Session,
    id: Option<RequestId>,
}

impl Drop for Waiting<'_> {
    fn drop(&mut self) {
        if let Some(id) = self.id.take() {
            // A full queue means that the server reads nothing; its late answer is dropped all the same.
            let _is_queued = self.session.abandoned.try_send(id).is_ok();
        }
    }
}

impl Session {
    /// Makes one request.
    pub(super) async fn ask(
        &self,
        request: ClientRequest,
        control: &CallControl,
    ) -> Result<ServerResult, McpError> {
        let limit = control.timeout.unwrap_or(self.request_timeout);
        self.within(limit, request, control).await
    }

    /// Makes a request as often as the server has questions first.
    pub(super) async fn ask_in_rounds(
        &self,
        request: impl Fn(Round) -> ClientRequest,
        control: &CallControl,
    ) -> Result<ServerResult, McpError> {
        let mut left = control.timeout.unwrap_or(self.request_timeout);
        let mut round: Round = (None, None);
        for _round in 0..ROUNDS_MAX {
            let begin = Instant::now();
            let answer = self.within(left, request(round), control).await?;
            let ServerResult::InputRequiredResult(required) = answer else {
                return Ok(answer);
            };
            left = left.saturating_sub(begin.elapsed());
            round = tokio::select! {
                round = self.answers(required) => round?,
                () = control.cancel.cancelled() => return Err(McpError::Cancelled),
                reason = self.ending.wait() => return Err(McpError::Ended(reason)),
            };
        }
        Err(McpError::bad_answer(format!(
            "the server has asked for input in {ROUNDS_MAX} rounds"
        )))
    }

    async fn within(
        &self,
        limit: Duration,
        mut request: ClientRequest,
        control: &CallControl,
    ) -> Result<ServerResult, McpError> {
        if let Some(level) = self.listener.log_level().filter(|_| self.is_stateless) {
            request.get_meta_mut().set_log_level(level);
        }
        if let Some(sink) = &control.progress {
            let route = ProgressRoute(std::sync::Arc::clone(sink));
            request.extensions_mut().insert(route);
        }
        tokio::select! {
            biased;
            () = control.cancel.cancelled() => Err(McpError::Cancelled),
            answer = self.answer(request) => answer,
            () = self.expired(limit) => Err(McpError::Timeout { limit }),
            reason = self.ending.wait() => Err(McpError::Ended(reason)),
        }
    }

    async fn answer(&self, request: ClientRequest) -> Result<ServerResult, McpError> {
        let options = PeerRequestOptions::no_options();
        let sending = self.peer.send_request_with_option(request, options).await;
        let mut handle = sending.map_err(|error| self.failed(error))?;
        let mut waiting = Waiting {
            session: self,
            id: Some(handle.id.clone()),
        };
        let answer = (&mut handle.rx).await;
        waiting.id = None;
        match answer {
            Ok(answer) => answer.map_err(|error| self.failed(error)),
            Err(_closed) => Err(self.failed(ServiceError::TransportClosed)),
        }
    }

    /// Waits for the end of `limit`, which stands still while the server asks the user.
    async fn expired(&self, limit: Duration) {
        const STEP: Duration = Duration::from_millis(250);
        let mut end = Instant::now() + limit;
        let last = end + USER_PATIENCE;
        loop {
            sleep_until(end).await;
            if end >= last || !(self.questions.has_any() && self.desk.has_questions()) {
                return;
            }
            end += STEP;
        }
    }

    /// The answers to the questions of one round.
    async fn answers(&self, required: InputRequiredResult) -> Result<Round, McpError> {
        let questions = required.input_requests.unwrap_or_default();
        if questions.is_empty() && required.request_state.is_none() {
            return Err(McpError::bad_answer(
                "the server wants input and asks for none",
            ));
        }
        if questions.len() > QUESTIONS_MAX {
            return Err(McpError::bad_answer(format!(
                "the server has more than {QUESTIONS_MAX} questions at once"
            )));
        }
        if questions.is_empty() {
            tokio::time::sleep(ROUND_PAUSE).await;
        }
        let mut answers = BTreeMap::new();
        for (key, question) in questions {
            let answer = match question {
                InputRequest::Elicitation(question) => self.elicited(question).await?,
                InputRequest::ListRoots(_) => return Err(McpError::NotGiven("roots")),
                _ => return Err(McpError::NotGiven("sampling")),
            };
            answers.insert(key, answer);
        }
        Ok((
            (!answers.is_empty()).then_some(answers),
            required.request_state,
        ))
    }

    async fn elicited(&self, question: ElicitRequest) -> Result<Value, McpError> {
        if !self.questions.has(&question.params) {
            return Err(McpError::NotGiven("elicitation"));
        }
        let question = question::cleaned(question.params).map_err(not_put)?;
        let asking = self.listener.elicit(question);
        let answer = timeout(USER_PATIENCE, asking).await;
        let answer = answer.map_err(|_| McpError::Timeout {
            limit: USER_PATIENCE,
        })?;
        // Made of texts, numbers and booleans.
        Ok(serde_json::to_value(answer).unwrap_or_else(|_| json!({ "action": "cancel" })))
    }

    fn failed(&self, error: ServiceError) -> McpError {
        match error {
            ServiceError::McpError(error) => of_rpc(&error),
            ServiceError::TransportSend(error) => error
                .error
                .downcast_ref::<McpError>()
                .cloned()
                .unwrap_or_else(|| McpError::Unreachable(one_line(&error.error.to_string(), 300))),
            ServiceError::TransportClosed => {
                McpError::Ended(self.ending.reason().unwrap_or(EndReason::Closed))
            }
            ServiceError::Cancelled { .. } => McpError::Cancelled,
            other => McpError::bad_answer(other.to_string()),
        }
    }
}

/// A question that nobody is asked.
pub(super) fn not_put(problem: &'static str) -> McpError {
    McpError::bad_answer(format!("a question of the server is not put: {problem}"))
}

/// The error a server answered with.
pub(super) fn of_rpc(error: &ErrorData) -> McpError {
    let message = one_line(&error.message, WORDS_CHARS_MAX);
    if is_unusable(error) {
        return McpError::BadAnswer(message);
    }
    let ErrorCode(rpc_code) = error.code;
    McpError::ToolCall {
        code: McpErrorCode::from_rpc(rpc_code),
        rpc_code,
        message,
    }
}

/// Tells the server about requests that nobody waits for, until the connection ends.
pub(super) async fn tell_abandoned(
    peer: Peer<RoleClient>,
    mut abandoned: mpsc::Receiver<RequestId>,
    ending: Ending,
) {
    let telling = async {
        while let Some(id) = abandoned.recv().await {
            let reason = Some("nobody waits for the answer any more".to_owned());
            let params = CancelledNotificationParam::new(Some(id), reason);
            let _is_told = timeout(Duration::from_secs(5), peer.notify_cancelled(params)).await;
        }
    };
    tokio::select! {
        () = telling => {}
        _reason = ending.wait() => {}
    }
}
