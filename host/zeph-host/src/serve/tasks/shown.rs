//! Tasks in the terms of the protocol, and how calls end as tasks.

use rmcp::ErrorData;
use rmcp::model::{
    CallToolResult, DetailedTask, InputRequests, JsonObject, Task, TaskPayload, TaskStatus,
};
use serde_json::Value;
use zeph_store::{LongTask, LongTaskEnd, LongTaskState};

use super::{POLL_MS, TaskEnd};
use crate::clock::moment;

/// What every answer about a task says of it.
pub(super) fn task(task: &LongTask) -> Task {
    let (created, changed) = (moment(task.created_at_ms), moment(task.changed_at_ms));
    let mut shown = Task::new(task.id.to_string(), TaskStatus::Working, created, changed);
    shown.status_message = Some(task.message.clone());
    shown.ttl_ms = u64::try_from(task.lifetime.as_millis()).ok();
    shown.poll_interval_ms = Some(POLL_MS);
    shown
}

/// A task with what it came to, or what it asks.
pub(super) fn detailed(task: &LongTask) -> DetailedTask {
    let error = || object(&ErrorData::internal_error(task.message.clone(), None));
    let payload = match task.state {
        LongTaskState::Working => working(task),
        LongTaskState::Completed => match task.result.as_deref().map(serde_json::from_str) {
            Some(Ok(result)) => TaskPayload::Completed { result },
            _ => TaskPayload::Failed { error: error() },
        },
        LongTaskState::Failed | LongTaskState::Unknown => TaskPayload::Failed { error: error() },
        LongTaskState::Cancelled => TaskPayload::Cancelled,
    };
    DetailedTask::new(self::task(task), payload)
}

fn working(task: &LongTask) -> TaskPayload {
    let asked = task.questions.iter().filter(|_| !task.is_cancelled);
    let asked = asked.filter_map(|(key, question)| {
        let question = serde_json::from_str(question).ok()?;
        Some((key.clone(), question))
    });
    let input_requests: InputRequests = asked.collect();
    match input_requests.is_empty() {
        true => TaskPayload::Working,
        false => TaskPayload::InputRequired { input_requests },
    }
}

impl TaskEnd {
    /// With a result, which may tell of a failure of the tool.
    pub(in crate::serve) fn completed(tool: &str, result: &CallToolResult) -> Self {
        Self::Ended(LongTaskEnd {
            state: LongTaskState::Completed,
            message: format!("`{tool}` has ended"),
            result: Some(Value::Object(object(result)).to_string()),
        })
    }

    /// Because its owner wanted that, or its server ended.
    pub(in crate::serve) fn cancelled(why: &str) -> Self {
        Self::without_result(LongTaskState::Cancelled, why)
    }

    pub(in crate::serve) fn failed(why: &str) -> Self {
        Self::without_result(LongTaskState::Failed, why)
    }

    /// After its server had ended over it.
    pub(super) fn unknown(why: &str) -> Self {
        let message = format!(
            "the server that made the call ended over it: nobody knows how far it came; {why}"
        );
        Self::without_result(LongTaskState::Unknown, &message)
    }

    fn without_result(state: LongTaskState, why: &str) -> Self {
        Self::Ended(LongTaskEnd {
            state,
            message: why.to_owned(),
            result: None,
        })
    }
}

fn object<T: serde::Serialize>(value: &T) -> JsonObject {
    match serde_json::to_value(value) {
        Ok(Value::Object(object)) => object,
        _ => JsonObject::new(),
    }
}
