//! Questions of a native server in the middle of a call, for clients that are asked in the answer to their request (2026-07-28 and later).
//!
//! The call goes on waiting for its server while the client has the question; the request that brings the answer goes on with the same
//! call. Which of several calls a server asks for is not always known: the question goes out with the one that is answered next.

use std::collections::VecDeque;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use rmcp::ErrorData;
use rmcp::model::{ElicitRequestParams, ElicitResult, InputResponses};
use tokio::sync::{Notify, oneshot};
use tokio::task::JoinSet;
use tokio_util::sync::CancellationToken;
use uuid::Uuid;
use zeph_core::category::{ErrorCategory, ErrorPhase};
use zeph_core::failure::ToolFailure;

use super::{Attempt, Attempting, Calling, Given, Reply};
use crate::calls::CallReport;
use crate::serve::rounds::{self, About};
use crate::serve::tasks::HeldTask;

/// What the question of a server is called among the answers.
const KEY: &str = "question";

/// Most calls that wait for a client. The oldest is ended when there are more.
const PARKED_MAX: usize = 32;

/// The calls of one door that a server may ask something for.
#[derive(Debug, Default)]
pub(in crate::serve) struct WaitingCalls {
    asked: Mutex<VecDeque<ServerQuestion>>,
    came: Notify,
    /// Calls that can take a question to their client.
    n_open: AtomicUsize,
    parked: Mutex<VecDeque<ParkedCall>>,
}

/// A question of a server.
#[derive(Debug)]
pub(super) struct ServerQuestion {
    form: ElicitRequestParams,
    answer: oneshot::Sender<ElicitResult>,
}

/// A call whose client has a question.
struct ParkedCall {
    id: Uuid,
    attempt: Attempting,
    stop: CancellationToken,
    answer: oneshot::Sender<ElicitResult>,
}

impl std::fmt::Debug for ParkedCall {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("ParkedCall")
            .field("id", &self.id)
            .finish_non_exhaustive()
    }
}

/// A call that can take a question to its client, until this is dropped.
pub(super) struct OpenCall<'a>(&'a WaitingCalls);

impl Drop for OpenCall<'_> {
    fn drop(&mut self) {
        self.0.n_open.fetch_sub(1, Ordering::Relaxed);
    }
}

impl WaitingCalls {
    /// Whether a call can take a question to its client.
    pub(in crate::serve) fn is_open(&self) -> bool {
        self.n_open.load(Ordering::Relaxed) > 0
    }

    /// Puts a question to the client; `None` when it is not answered within `patience`.
    pub(in crate::serve) async fn ask(
        &self,
        form: ElicitRequestParams,
        patience: Duration,
    ) -> Option<ElicitResult> {
        let (answer, answered) = oneshot::channel();
        lock(&self.asked).push_back(ServerQuestion { form, answer });
        self.came.notify_one();
        tokio::time::timeout(patience, answered).await.ok()?.ok()
    }

    fn open(&self) -> OpenCall<'_> {
        self.n_open.fetch_add(1, Ordering::Relaxed);
        OpenCall(self)
    }

    /// Waits for a question whose answer is still wanted.
    async fn next(&self) -> ServerQuestion {
        loop {
            let came = self.came.notified();
            if let Some(question) = self.waiting() {
                return question;
            }
            came.await;
        }
    }

    fn waiting(&self) -> Option<ServerQuestion> {
        let mut asked = lock(&self.asked);
        asked.retain(|question| !question.answer.is_closed());
        let question = asked.pop_front();
        if !asked.is_empty() {
            self.came.notify_one();
        }
        question
    }

    fn park(&self, call: ParkedCall) {
        let mut parked = lock(&self.parked);
        if parked.len() == PARKED_MAX {
            parked.pop_front();
        }
        parked.push_back(call);
    }

    fn take(&self, id: Uuid) -> Option<ParkedCall> {
        let mut parked = lock(&self.parked);
        let at = parked.iter().position(|call| call.id == id)?;
        parked.remove(at)
    }
}

impl Calling {
    /// Begins an attempt. One that may wait for its client goes on while no request waits for it.
    pub(super) fn begun(self: &Arc<Self>, given: Given) -> Attempting {
        let attempt = Arc::clone(self).attempt(given);
        if self.waiting.is_none() {
            return attempt;
        }
        let mut running = JoinSet::new();
        running.spawn(attempt);
        Box::pin(async move {
            match running.join_next().await {
                Some(Ok(attempt)) => attempt,
                Some(Err(_)) | None => Attempt::lost(),
            }
        })
    }

    /// Lets the server ask, as long as the result is held.
    pub(super) fn opened(&self) -> Option<OpenCall<'_>> {
        self.waiting.as_deref().map(WaitingCalls::open)
    }

    /// Waits for a question of the server; for ever where the client is asked in another way.
    pub(super) async fn question(&self) -> ServerQuestion {
        match &self.waiting {
            Some(waiting) => waiting.next().await,
            None => std::future::pending().await,
        }
    }

    /// Waits for the end of an attempt that a task is for. What the server asks meanwhile is put to the task's owner.
    pub(super) async fn until_over(&self, mut attempt: Attempting, held: &HeldTask) -> Attempt {
        let _open = self.opened();
        let mut n_asked = 0;
        loop {
            let ServerQuestion { form, mut answer } = tokio::select! {
                biased;
                attempt = &mut attempt => return attempt,
                question = self.question() => question,
            };
            n_asked += 1;
            let mut ended = None;
            let over = async {
                tokio::select! {
                    biased;
                    attempt = &mut attempt => ended = Some(attempt),
                    // The server does not want to know any more.
                    () = answer.closed() => {}
                    () = tokio::time::sleep(self.patience) => {}
                }
            };
            let key = format!("{KEY}-{n_asked}");
            let given = held.request_input(key, rounds::request(form), over).await;
            // Without an answer, the server hears that nobody gave one.
            if let Some(given) = given.and_then(|given| rounds::read(&given).ok()) {
                drop(answer.send(given));
            }
            if let Some(ended) = ended {
                return ended;
            }
        }
    }

    /// Keeps a call until its client has answered `question`.
    pub(super) fn parked(
        &self,
        (attempt, stop): (Attempting, CancellationToken),
        question: ServerQuestion,
    ) -> Reply {
        let id = Uuid::new_v4();
        let ServerQuestion { form, answer } = question;
        if let Some(waiting) = &self.waiting {
            waiting.park(ParkedCall {
                id,
                attempt,
                stop,
                answer,
            });
        }
        let state = self.state(About::Waiting(id));
        Reply::Waiting(rounds::required([(KEY.to_owned(), form)], state))
    }

    /// Goes on with a call, whose server gets the answer.
    ///
    /// Errors: invalid parameters: there is no answer, or the call waits no longer.
    pub(super) fn resumed(
        &self,
        id: Uuid,
        given: &InputResponses,
    ) -> Result<(Attempting, CancellationToken), ErrorData> {
        let invalid = |message: String| ErrorData::invalid_params(message, None);
        let response = given.get(KEY);
        let response =
            response.ok_or_else(|| invalid(format!("`inputResponses` has no `{KEY}`")))?;
        let answer = rounds::read(response)?;
        let parked = self.waiting.as_ref().and_then(|waiting| waiting.take(id));
        let parked = parked.ok_or_else(|| {
            invalid(
                "the call waits for this answer no longer; make it again without `requestState`"
                    .to_owned(),
            )
        })?;
        // A server that no longer waits for it ends the call in its own way.
        drop(parked.answer.send(answer));
        Ok((parked.attempt, parked.stop))
    }
}

impl Attempt {
    /// One whose task failed.
    fn lost() -> Self {
        let failure = ToolFailure::new(
            ErrorCategory::ServerError,
            ErrorPhase::Execution,
            "the host failed while it made the call",
        );
        Self {
            report: CallReport::crashed(failure),
            wants: None,
        }
    }
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    // Every change is complete before anything can panic.
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
