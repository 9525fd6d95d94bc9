//! One call of a client, from its request to its answer, with the person behind the client: what asks is put to them, and the call is
//! made again with what they say. Each time it is decided anew, with what is true then.

mod outlive;
mod person;
mod waiting;

use std::pin::Pin;
use std::sync::{Arc, Mutex, OnceLock, PoisonError};
use std::time::Duration;

use rmcp::ErrorData;
use rmcp::model::{CallToolResult, CreateTaskResult, InputRequiredResult};
use tokio_util::sync::CancellationToken;
use zeph_core::call::ToolRequest;
use zeph_core::id::Digest;
use zeph_core::inquiry::{GivenAnswer, GivenAnswers};
use zeph_engine::Listener;
use zeph_mcp::holdings::Holdings;
use zeph_shell::run::OutputListener;
use zeph_store::{AgreedBy, Agreement, LongTaskHold, LongTaskOwner, Owner, WorkHold};

use self::person::{Person, fitting, replaced};
pub(super) use self::waiting::WaitingCalls;
use super::approval;
use super::client::{Client, Way};
use super::rounds::{self, About, Round};
use super::tasks::Tasks;
use crate::approval::{ApprovalAnswer, ApprovalPrompt, ApprovalQuestion};
use crate::calls::{CallControl, CallReport};
use crate::clock::now_ms;
use crate::host::Host;
use crate::questions::SealedInquiry;
use crate::session::Session;
use crate::telemetry::RemoteRequest;

/// How long a call may take before a client of the extension for tasks gets a task for it: well below the minute after which clients
/// give requests up.
const TASK_AFTER: Duration = Duration::from_secs(10);

/// A call on its way, and whom it is made for.
pub(super) struct Calling {
    pub(super) host: Host,
    pub(super) session: Session,
    /// The replica where its conversation began, if others may go on with it.
    pub(super) home: Option<Arc<str>>,
    /// Whose that is.
    pub(super) owner: Owner,
    /// Cancelled when what let its caller in is revoked.
    pub(super) right: CancellationToken,
    pub(super) holdings: Arc<Holdings>,
    pub(super) client: Client,
    pub(super) request: ToolRequest,
    /// Ends it.
    pub(super) stop: CancellationToken,
    pub(super) listener: Option<Listener>,
    pub(super) on_output: Option<OutputListener>,
    /// Characters of text the client takes at once, when it says so.
    pub(super) result_chars: Option<usize>,
    /// The request, for the span of the call.
    pub(super) remote: RemoteRequest,
    /// How long a person has for an answer.
    pub(super) patience: Duration,
    /// Where a native server asks its client; none where nothing asks in the middle of a call, or the client is asked then.
    pub(super) waiting: Option<Arc<WaitingCalls>>,
    /// What another server needs to make it again as a task; none when it must not.
    pub(super) again: Option<String>,
    /// The task that it is made for, from the moment on when there is one.
    pub(super) held: OnceLock<LongTaskHold>,
    /// Makes it, once, when there is a place for it; ends it when the token is cancelled or the future is dropped.
    pub(super) make: Make,
    /// Makes the result of a report.
    pub(super) show: Show,
}

/// What the client gets.
#[derive(Debug)]
pub(super) enum Reply {
    Ended(CallToolResult),
    Required(InputRequiredResult),
    /// Input is required, and the call keeps running until it gets the answer.
    Waiting(InputRequiredResult),
    Task(CreateTaskResult),
}

/// One time the call was made.
struct Attempt {
    report: CallReport,
    wants: Option<Wants>,
}

/// What has to be known before the call gets further.
enum Wants {
    Approval(Box<ApprovalQuestion>),
    Answers(SealedInquiry),
}

/// What a person has said so far.
#[derive(Default)]
struct Given {
    approval: Option<GivenApproval>,
    answers: Option<GivenAnswers>,
}

#[derive(Clone, Copy)]
struct GivenApproval {
    call: Digest,
    answer: ApprovalAnswer,
}

/// What makes a call.
pub(super) type Make =
    Box<dyn Fn(ToolRequest, CallControl, CancellationToken) -> Making + Send + Sync>;

/// What makes the result of a report.
pub(super) type Show = Box<dyn Fn(CallReport) -> Showing + Send + Sync>;

pub(super) type Showing = Pin<Box<dyn Future<Output = CallToolResult> + Send>>;

pub(super) type Making = Pin<Box<dyn Future<Output = CallReport> + Send>>;

type Attempting = Pin<Box<dyn Future<Output = Attempt> + Send>>;

impl Calling {
    /// Makes the call. `round` is what the request brings answers to.
    ///
    /// `request_ct` is cancelled when the client gives the request up.
    /// Errors: invalid parameters: an answer that is none, or that nothing waits for. Nothing ran.
    pub(super) async fn call(
        self: Arc<Self>,
        round: Option<Round>,
        tasks: &Tasks,
        request_ct: &CancellationToken,
    ) -> Result<Reply, ErrorData> {
        let ((mut first, stop), may_outlive) = match round {
            Some(Round::Waiting { id, given }) => (self.resumed(id, &given)?, false),
            round => match self.given(round)? {
                Ok(given) => (
                    (self.begun(given), self.stop.clone()),
                    self.client.has_tasks,
                ),
                Err(required) => return Ok(Reply::Required(required)),
            },
        };
        let open = self.opened();
        let attempt = tokio::select! {
            biased;
            attempt = &mut first => attempt,
            question = self.question() => return Ok(self.parked((first, stop), question)),
            () = request_ct.cancelled() => {
                stop.cancel();
                first.await
            }
            () = tokio::time::sleep(TASK_AFTER), if may_outlive => {
                match self.outlive(first, tasks).await {
                    Ok(task) => return Ok(Reply::Task(task)),
                    Err(first) => self.until_cancelled(first, request_ct).await,
                }
            }
        };
        drop(open);
        let begun_run = || attempt.report.begun_run(&self.request.tool);
        let run_id = may_outlive.then(begun_run).flatten();
        let attempt = match run_id {
            Some(run_id) => match self.follow(run_id, attempt, tasks).await {
                Ok(task) => return Ok(Reply::Task(task)),
                Err(attempt) => attempt,
            },
            None => attempt,
        };
        match (&attempt.wants, self.client.way) {
            (Some(_), Way::Later) => Ok(self.required(attempt).await),
            (Some(_), Way::Now) => {
                let person = Person::Client(&self.client);
                let ended = Arc::clone(&self).go_on(attempt, &person);
                let report = self.until_cancelled(ended, request_ct).await;
                Ok(Reply::Ended((self.show)(report).await))
            }
            (Some(_), Way::Nobody) | (None, _) => {
                Ok(Reply::Ended((self.show)(attempt.report).await))
            }
        }
    }

    async fn until_cancelled<T>(
        &self,
        work: impl Future<Output = T>,
        request_ct: &CancellationToken,
    ) -> T {
        tokio::pin!(work);
        tokio::select! {
            biased;
            ended = &mut work => ended,
            () = request_ct.cancelled() => {
                self.stop.cancel();
                work.await
            }
        }
    }

    fn task_owner(&self) -> LongTaskOwner {
        LongTaskOwner {
            caller: self.owner.clone(),
            conversation: self.session.conversation,
        }
    }

    /// Makes the call once.
    fn attempt(self: Arc<Self>, given: Given) -> Attempting {
        Box::pin(async move {
            let noted = Arc::new(Mutex::new(None));
            let control = CallControl {
                listener: self.listener.clone(),
                on_output: self.on_output.clone(),
                ask: self.ask(given.approval, &noted),
                result_chars: self.result_chars,
                remote: Some(self.remote.clone()),
                hold: self.held.get().copied().map(WorkHold::Task),
                ..CallControl::default()
            };
            let request = ToolRequest {
                answers: given.answers,
                ..self.request.clone()
            };
            let mut report = (self.make)(request, control, self.stop.clone()).await;
            let noted = noted.lock().unwrap_or_else(PoisonError::into_inner).take();
            let wants = noted.or_else(|| report.asked.take().map(Wants::Answers));
            Attempt {
                report,
                // Who shows no forms is asked nothing, by a task neither.
                wants: wants.filter(|_| self.client.way != Way::Nobody),
            }
        })
    }

    /// What the line asks: it answers when the very same call was agreed to or refused, and notes the question otherwise.
    fn ask(
        &self,
        given: Option<GivenApproval>,
        noted: &Arc<Mutex<Option<Wants>>>,
    ) -> Option<ApprovalPrompt> {
        if self.client.way == Way::Nobody {
            return None;
        }
        let agreement = Agreement {
            how: AgreedBy::Elicitation,
            who: self.session.principal().caller_id().map(str::to_owned),
            client: self.client.name.clone(),
        };
        let noted = Arc::clone(noted);
        Some(ApprovalPrompt::new(agreement, move |question| {
            let given = given.filter(|given| given.call == question.call.digest);
            if given.is_none() {
                let wants = Wants::Approval(Box::new(question));
                *noted.lock().unwrap_or_else(PoisonError::into_inner) = Some(wants);
            }
            std::future::ready(given.map(|given| given.answer))
        }))
    }

    /// What an attempt wants, as the result that asks for it.
    async fn required(&self, attempt: Attempt) -> Reply {
        let Attempt { report, wants } = attempt;
        let (forms, about) = match wants {
            Some(Wants::Approval(question)) => match approval::form(&question) {
                Some(form) => {
                    let form = (approval::KEY.to_owned(), form);
                    (Ok(vec![form]), About::Approval(question.call.digest))
                }
                None => return Reply::Ended((self.show)(report).await),
            },
            Some(Wants::Answers(asked)) => (
                self.forms(&asked.inquiry, &[]),
                About::Questions(asked.state),
            ),
            None => return Reply::Ended((self.show)(report).await),
        };
        match forms {
            Ok(forms) => {
                self.session.tell_later(report.messages);
                Reply::Required(rounds::required(forms, self.state(about)))
            }
            Err(failure) => Reply::Ended((self.show)(replaced(report, failure)).await),
        }
    }

    fn state(&self, about: About) -> String {
        let empty = serde_json::Map::new();
        let owner = self.owner.text();
        let request = rounds::Request {
            caller: owner.as_deref(),
            tool: &self.request.tool,
            arguments: self.request.arguments.as_object().unwrap_or(&empty),
        };
        let now = now_ms();
        let patience = i64::try_from(self.patience.as_millis()).unwrap_or(i64::MAX);
        let seals = self.host.seals();
        let place = (self.session.conversation, self.home.clone());
        request.seal(seals, place, about, now.saturating_add(patience), now)
    }

    /// What a request brings; or what it has to be asked for again.
    ///
    /// Errors: invalid parameters for an answer that is none.
    fn given(&self, round: Option<Round>) -> Result<Result<Given, InputRequiredResult>, ErrorData> {
        Ok(match round {
            None | Some(Round::Waiting { .. }) => Ok(Given::default()),
            Some(Round::Approval { answer: None, .. }) => Ok(Given::default()),
            Some(Round::Approval {
                call,
                answer: Some(answer),
            }) => Ok(Given {
                approval: Some(GivenApproval { call, answer }),
                answers: None,
            }),
            Some(Round::Questions {
                inquiry,
                state,
                given,
            }) => match fitting(&inquiry, &given)? {
                Ok(answers) => Ok(Given::answers(state, answers)),
                Err(problems) => {
                    let forms = self.forms(&inquiry, &problems);
                    let forms = forms
                        .map_err(|failure| ErrorData::invalid_params(failure.message, None))?;
                    Err(rounds::required(forms, self.state(About::Questions(state))))
                }
            },
        })
    }
}

impl Given {
    fn answers(state: String, answers: Vec<GivenAnswer>) -> Self {
        Self {
            approval: None,
            answers: Some(GivenAnswers { state, answers }),
        }
    }
}
