//! Calls that outlive their request: one that takes long, and a command in the background.

use std::sync::Arc;

use rmcp::model::CreateTaskResult;
use rmcp::task_manager::TaskExit;
use uuid::Uuid;
use zeph_core::category::ErrorCategory;
use zeph_core::output::Outcome;

use super::person::Person;
use super::{Attempt, Attempting, Calling};
use crate::host::Host;
use crate::serve::tasks::{Owner, Tasks};

impl Calling {
    /// The run that a call began in the background.
    pub(super) fn run_of(&self, attempt: &Attempt) -> Option<Uuid> {
        let arguments = &self.request.arguments;
        let is_begin = arguments.get("background") == Some(&true.into());
        let is_done = attempt.report.output.outcome == Outcome::Done;
        let structured = attempt.report.output.structured.as_ref();
        let run_id = structured.and_then(|structured| structured.get("run_id")?.as_str());
        let run_id = run_id.filter(|_| is_begin && is_done && Host::has_own(&self.request.tool));
        run_id.and_then(|run_id| run_id.parse().ok())
    }

    /// A task for a call that takes long.
    pub(super) fn outlive(
        self: Arc<Self>,
        first: Attempting,
        tasks: &Tasks,
        owner: Owner,
    ) -> CreateTaskResult {
        let message = format!("`{}` is running", self.request.tool);
        let task = tasks.spawn(owner, message, move |context| {
            Box::pin(async move {
                let this = Arc::clone(&self);
                let of_work = context.clone();
                let work = async move {
                    let attempt = first.await;
                    this.go_on(attempt, &Person::Task(&of_work)).await
                };
                tokio::pin!(work);
                let report = tokio::select! {
                    biased;
                    report = &mut work => report,
                    () = context.cancelled() => {
                        self.stop.cancel();
                        work.await
                    }
                };
                match &report.output.outcome {
                    Outcome::Failed(failure) if failure.category == ErrorCategory::Cancelled => {
                        Err(TaskExit::Cancelled)
                    }
                    Outcome::Done | Outcome::Failed(_) => Ok((self.show)(&report)),
                }
            })
        });
        CreateTaskResult::new(task)
    }

    /// A task for a command in the background: it ends with the run, whose output it carries.
    pub(super) fn follow(
        self: Arc<Self>,
        run_id: Uuid,
        attempt: Attempt,
        tasks: &Tasks,
        owner: Owner,
    ) -> CreateTaskResult {
        let message = format!("run {run_id} goes on in the background");
        let mut report = attempt.report;
        let task = tasks.spawn(owner, message, move |context| {
            Box::pin(async move {
                let ended = self.host.ended_run(&self.session, run_id);
                tokio::pin!(ended);
                let (output, is_cancelled) = tokio::select! {
                    biased;
                    output = &mut ended => (output, false),
                    () = context.cancelled() => {
                        self.session.shell().commands().kill(run_id).await;
                        (ended.await, true)
                    }
                };
                if is_cancelled {
                    return Err(TaskExit::Cancelled);
                }
                // When it was told with another call, how it began is all there is to say.
                report.output = output.unwrap_or(report.output);
                Ok((self.show)(&report))
            })
        });
        CreateTaskResult::new(task)
    }
}
