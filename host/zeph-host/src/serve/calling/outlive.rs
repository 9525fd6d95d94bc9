//! Calls that outlive their request: one that takes long, and a command in the background.

use std::sync::Arc;

use rmcp::model::CreateTaskResult;
use uuid::Uuid;
use zeph_core::category::ErrorCategory;
use zeph_store::LongTaskHold;

use super::person::Person;
use super::{Attempt, Attempting, Calling, Given};
use crate::calls::CallReport;
use crate::serve::tasks::{HeldTask, TaskEnd, TaskStart, Tasks};

/// Why a task ends with the token of its caller.
const REVOKED: &str = "what let its caller in was revoked";

impl Calling {
    /// What a task for this call begins with.
    fn start(&self, message: String, call: Option<String>) -> TaskStart {
        TaskStart {
            owner: self.task_owner(),
            right: self.right.clone(),
            message,
            call,
        }
    }

    /// What the call is made for from now on: it begins anew, after an answer, only while this server holds that.
    pub(in crate::serve) fn hold(&self, hold: LongTaskHold) {
        // A call is made for one task.
        self.held.get_or_init(|| hold);
    }

    /// A task for a call that takes long.
    ///
    /// Errors: the call, when there can be no task.
    pub(super) async fn outlive(
        self: &Arc<Self>,
        first: Attempting,
        tasks: &Tasks,
    ) -> Result<CreateTaskResult, Attempting> {
        let message = format!("`{}` is running", self.request.tool);
        let start = self.start(message, self.again.clone());
        let Some((task, held)) = tasks.begin(start).await else {
            return Err(first);
        };
        self.hold(held.hold);
        let (this, of_work) = (Arc::clone(self), Arc::clone(&held));
        let working = self.holdings.working();
        tasks.work(held, async move {
            let _working = working;
            let report = this.until_ended(first, &of_work).await;
            this.task_end(report, &of_work).await
        });
        Ok(CreateTaskResult::new(task))
    }

    /// Makes the call of a task that was taken over.
    pub(in crate::serve) async fn make_again(self: &Arc<Self>, held: &HeldTask) -> CallReport {
        let first = Arc::clone(self).attempt(Given::default());
        self.until_ended(first, held).await
    }

    /// Waits for the end of the call of a task, with the person behind it; it ends when the task does.
    async fn until_ended(self: &Arc<Self>, first: Attempting, held: &HeldTask) -> CallReport {
        let this = Arc::clone(self);
        let work = async move {
            let attempt = this.until_over(first, held).await;
            this.go_on(attempt, &Person::Task(held)).await
        };
        tokio::pin!(work);
        tokio::select! {
            biased;
            report = &mut work => report,
            () = held.ended() => {
                self.stop.cancel();
                work.await
            }
        }
    }

    /// How a task ends whose call came to `report`.
    pub(in crate::serve) async fn task_end(&self, report: CallReport, held: &HeldTask) -> TaskEnd {
        let failure = report.failure();
        let is_cancelled =
            failure.is_some_and(|failure| failure.category == ErrorCategory::Cancelled);
        match is_cancelled {
            false => TaskEnd::completed(&self.request.tool, &(self.show)(report).await),
            true if held.cancelled.is_cancelled() => TaskEnd::cancelled("it was cancelled"),
            true if held.right.is_cancelled() => TaskEnd::cancelled(REVOKED),
            true if self.again.is_some() && self.stop.is_cancelled() => TaskEnd::Released,
            true => TaskEnd::cancelled("the server was stopped, and the call with it"),
        }
    }

    /// A task for a command in the background: it ends with the run, whose output it carries.
    ///
    /// Errors: how the command began, when there can be no task.
    pub(super) async fn follow(
        self: &Arc<Self>,
        run_id: Uuid,
        attempt: Attempt,
        tasks: &Tasks,
    ) -> Result<CreateTaskResult, Attempt> {
        let message = format!("run {run_id} goes on in the background");
        let Some((task, held)) = tasks.begin(self.start(message, None)).await else {
            return Err(attempt);
        };
        let (this, of_work) = (Arc::clone(self), Arc::clone(&held));
        let working = self.holdings.working();
        tasks.work(held, async move {
            let _working = working;
            this.followed(run_id, attempt.report, &of_work).await
        });
        Ok(CreateTaskResult::new(task))
    }

    async fn followed(&self, run_id: Uuid, mut report: CallReport, held: &HeldTask) -> TaskEnd {
        let ended = self.host.ended_run(&self.session, run_id);
        tokio::pin!(ended);
        let (output, is_cancelled) = tokio::select! {
            biased;
            output = &mut ended => (output, false),
            () = held.ended() => {
                self.session.shell().commands().kill(run_id).await;
                (ended.await, true)
            }
        };
        if is_cancelled {
            return TaskEnd::cancelled(match held.right.is_cancelled() {
                true => REVOKED,
                false => "it was cancelled",
            });
        }
        // When it was told with another call, how it began is all there is to say.
        report.output = output.unwrap_or(report.output);
        TaskEnd::completed(&self.request.tool, &(self.show)(report).await)
    }
}
