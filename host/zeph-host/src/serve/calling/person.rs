//! The person behind a client, asked while the call goes on: by the client's own forms, or through a task.

use std::sync::Arc;

use rmcp::ErrorData;
use rmcp::model::{ElicitRequestParams, ElicitResult, InputResponses};
use zeph_core::category::{ErrorCategory, ErrorPhase};
use zeph_core::failure::ToolFailure;
use zeph_core::inquiry::{GivenAnswer, Inquiry, UserAction, UserQuestion};
use zeph_core::output::ToolOutput;

use super::{Attempt, Calling, Given, GivenApproval, Wants};
use crate::approval::ApprovalQuestion;
use crate::calls::CallReport;
use crate::questions::SealedInquiry;
use crate::serve::client::Client;
use crate::serve::tasks::HeldTask;
use crate::serve::{approval, inquiry, rounds};

/// How often a person is asked again when an answer does not fit.
const TRIES: usize = 3;

/// Where the person is reached while the call goes on.
pub(super) enum Person<'a> {
    Client(&'a Client),
    Task(&'a HeldTask),
}

impl Calling {
    /// Puts what an attempt wants to the person, and makes the call again, until it wants nothing more or nobody answers.
    pub(super) async fn go_on(
        self: Arc<Self>,
        mut attempt: Attempt,
        person: &Person<'_>,
    ) -> CallReport {
        let mut n_asked = 0;
        while let Some(wants) = attempt.wants.take() {
            n_asked += 1;
            let given = match wants {
                Wants::Approval(question) => Ok(self.approved(&question, person, n_asked).await),
                Wants::Answers(asked) => self.answers(&asked, person, n_asked).await,
            };
            let given = match given {
                Ok(Some(given)) => given,
                Ok(None) if self.stop.is_cancelled() => {
                    return replaced(attempt.report, cancelled());
                }
                Ok(None) => return attempt.report,
                Err(failure) => return replaced(attempt.report, failure),
            };
            let mut messages = std::mem::take(&mut attempt.report.messages);
            let again = self.begun(given);
            attempt = match person {
                Person::Client(_) => again.await,
                Person::Task(held) => self.until_over(again, held).await,
            };
            messages.append(&mut attempt.report.messages);
            attempt.report.messages = messages;
        }
        attempt.report
    }

    /// Asks whether the call may run; `None` when nobody says.
    async fn approved(
        &self,
        question: &ApprovalQuestion,
        person: &Person<'_>,
        n_asked: usize,
    ) -> Option<Given> {
        let form = approval::form(question)?;
        let key = format!("{}-{n_asked}", approval::KEY);
        let given = self.put(person, key, form).await?;
        let answer = approval::answer(&given);
        let answer = answer.map_err(|problem| tracing::debug!(problem, "nobody has agreed"));
        let approval = GivenApproval {
            call: question.call.digest,
            answer: answer.ok()?,
        };
        Some(Given {
            approval: Some(approval),
            answers: None,
        })
    }

    /// Asks what the tool asks; `None` when nobody answers.
    ///
    /// Errors: a question that must not or cannot be put to a client.
    async fn answers(
        &self,
        asked: &SealedInquiry,
        person: &Person<'_>,
        n_asked: usize,
    ) -> Result<Option<Given>, ToolFailure> {
        self.forms(&asked.inquiry, &[])?;
        let mut answers: Vec<GivenAnswer> = Vec::new();
        for question in asked.inquiry.questions() {
            let last = answers.last().map(|answer| answer.action);
            let answer = match last {
                // Who wants the call to stop is not asked for more.
                Some(UserAction::Cancel) => Some(GivenAnswer {
                    id: question.id().to_owned(),
                    action: UserAction::Cancel,
                    content: None,
                }),
                _ => self.answer(question, person, n_asked).await?,
            };
            let Some(answer) = answer else {
                return Ok(None);
            };
            answers.push(answer);
        }
        Ok(Some(Given::answers(asked.state.clone(), answers)))
    }

    /// Asks one question until the answer fits; `None` when nobody answers, or no answer fits.
    async fn answer(
        &self,
        question: &UserQuestion,
        person: &Person<'_>,
        n_asked: usize,
    ) -> Result<Option<GivenAnswer>, ToolFailure> {
        let mut problem = None::<String>;
        for n_try in 0..TRIES {
            let form = inquiry::form(&self.request.tool, question, problem.as_deref())?;
            let key = format!("{}-{n_asked}-{n_try}", question.id());
            let Some(given) = self.put(person, key, form).await else {
                return Ok(None);
            };
            match inquiry::answer(question, &given) {
                Ok(answer) => return Ok(Some(answer)),
                Err(wrong) => problem = Some(wrong),
            }
        }
        Ok(None)
    }

    async fn put(
        &self,
        person: &Person<'_>,
        key: String,
        form: ElicitRequestParams,
    ) -> Option<ElicitResult> {
        match person {
            Person::Client(client) => client.put(form, self.patience, &self.stop).await,
            Person::Task(task) => {
                let over = async {
                    tokio::select! {
                        () = self.stop.cancelled() => {}
                        () = tokio::time::sleep(self.patience) => {}
                    }
                };
                let answer = task.request_input(key, rounds::request(form), over);
                rounds::read(&answer.await?).ok()
            }
        }
    }

    /// The forms of all questions; `problems` has what was wrong with earlier answers, by question.
    ///
    /// Errors: a question that must not or cannot be put to a client.
    pub(super) fn forms(
        &self,
        asked: &Inquiry,
        problems: &[(&str, String)],
    ) -> Result<Vec<(String, ElicitRequestParams)>, ToolFailure> {
        let form = |question: &UserQuestion| {
            let problem = problems.iter().find(|(id, _)| *id == question.id());
            let problem = problem.map(|(_, problem)| problem.as_str());
            let form = inquiry::form(&self.request.tool, question, problem)?;
            Ok((question.id().to_owned(), form))
        };
        asked.questions().iter().map(form).collect()
    }
}

/// What is wrong with the answer to a question, by the question's name.
pub(super) type Problem<'a> = (&'a str, String);

/// The answers to all questions; or what is wrong with some of them.
///
/// Errors: invalid parameters for an answer that is none.
pub(super) fn fitting<'a>(
    asked: &'a Inquiry,
    given: &InputResponses,
) -> Result<Result<Vec<GivenAnswer>, Vec<Problem<'a>>>, ErrorData> {
    let (mut answers, mut problems) = (Vec::new(), Vec::new());
    for question in asked.questions() {
        let Some(response) = given.get(question.id()) else {
            problems.push((question.id(), "it is missing".to_owned()));
            continue;
        };
        match inquiry::answer(question, &rounds::read(response)?) {
            Ok(answer) => answers.push(answer),
            Err(problem) => problems.push((question.id(), problem)),
        }
    }
    Ok(match problems.is_empty() {
        true => Ok(answers),
        false => Err(problems),
    })
}

/// The report of a call whose questions came to nothing.
pub(super) fn replaced(report: CallReport, failure: ToolFailure) -> CallReport {
    CallReport {
        output: ToolOutput::failed(failure),
        ..report
    }
}

fn cancelled() -> ToolFailure {
    ToolFailure::new(
        ErrorCategory::Cancelled,
        ErrorPhase::Setup,
        "the call was cancelled while waiting for an answer",
    )
}
