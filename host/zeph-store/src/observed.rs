//! What rules and grants on trial would have decided: counted by the hour, the rule, the tool and what was decided instead.

use serde::Serialize;

use crate::error::StoreError;
use crate::operations::Operations;
use crate::store::{Access, Store, StoreReply, Task};

/// The span of one count, in milliseconds.
pub(crate) const HOUR_MS: i64 = 3_600_000;

const COUNT: &str = "count what rules on trial would have decided";

/// What a rule on trial would have decided about one call.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ObservedDecision {
    /// The rule, as traces name it.
    pub rule: String,
    /// What it would have decided: `allow`, `ask` or `deny`.
    pub would: &'static str,
    /// What was decided.
    pub decided: &'static str,
    /// The tool, as the audit names it.
    pub tool: String,
}

/// How often a rule on trial would have decided something.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct ObservedCount {
    /// The rule, as traces name it.
    pub rule: String,
    /// What it would have decided.
    pub would: String,
    /// What was decided.
    pub decided: String,
    /// The tool.
    pub tool: String,
    /// Calls.
    pub n_calls: u64,
    /// The last of them, in Unix milliseconds.
    pub last_at_ms: i64,
}

impl Store {
    /// Counts what rules on trial would have decided about a call; resolves when it is queued, and what goes wrong then is in the log.
    ///
    /// Errors: [`StoreError::Closed`].
    pub async fn count_observed(
        &self,
        observed: Vec<ObservedDecision>,
        at_ms: i64,
    ) -> Result<(), StoreError> {
        let work = move |operations: &dyn Operations| operations.count_observed(&observed, at_ms);
        let log = |counted: Result<(), StoreError>| {
            if let Err(error) = counted {
                let error = &error as &dyn std::error::Error;
                tracing::error!(
                    error,
                    "what rules on trial would have decided cannot be counted"
                );
            }
        };
        let reply = StoreReply::Logged(Box::new(log));
        self.queue_task(Task::new(COUNT, Access::WriteSoon, work, reply))
            .await
    }

    /// What rules on trial would have decided since `since_ms`, to the hour; the most frequent first.
    ///
    /// Errors: what the database says.
    pub async fn observed_counts(&self, since_ms: i64) -> Result<Vec<ObservedCount>, StoreError> {
        self.run(
            "read what rules on trial would have decided",
            Access::Read,
            move |operations| operations.observed_counts(since_ms),
        )
        .await
    }
}
