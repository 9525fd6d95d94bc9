//! Two executors as one.

use super::{CallOptions, ToolCall, ToolDefinition, ToolExecutor};
use crate::calls::CallReport;

/// The tools of two executors. A call goes to the first of them that knows the tool; what neither knows goes to the second, which
/// says so. More than two are nested.
#[derive(Debug, Clone)]
pub struct CompositeExecutor<A, B> {
    first: A,
    second: B,
}

/// Two executors have a tool of the same name.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error(
    "both executors have a tool `{tool}`: leave it out of one of them with `ScopedExecutor::without`"
)]
pub struct NameClash {
    /// The tool, by the name that one of them offers it under.
    pub tool: String,
}

impl<A: ToolExecutor, B: ToolExecutor> CompositeExecutor<A, B> {
    /// Puts both together.
    ///
    /// Errors: [`NameClash`] for the first name that reaches a tool of each. A name that both come to have later stays with `first`.
    pub fn new(first: A, second: B) -> Result<Self, NameClash> {
        let of_first = first.definitions();
        let of_first = of_first.into_iter().map(|one| one.name);
        let taken = of_first
            .into_iter()
            .find(|tool| second.known_as(tool).is_some());
        let of_second = second.definitions();
        let of_second = of_second.into_iter().map(|one| one.name);
        let taken = taken.or_else(|| {
            of_second
                .into_iter()
                .find(|tool| first.known_as(tool).is_some())
        });
        match taken {
            Some(tool) => Err(NameClash { tool }),
            None => Ok(Self { first, second }),
        }
    }
}

impl<A: ToolExecutor, B: ToolExecutor> ToolExecutor for CompositeExecutor<A, B> {
    fn definitions(&self) -> Vec<ToolDefinition> {
        let mut definitions = self.first.definitions();
        let others = self.second.definitions().into_iter();
        definitions.extend(others.filter(|other| self.first.known_as(&other.name).is_none()));
        definitions
    }

    fn known_as(&self, name: &str) -> Option<String> {
        let of_first = self.first.known_as(name);
        of_first.or_else(|| self.second.known_as(name))
    }

    async fn call(&self, call: ToolCall, options: CallOptions) -> CallReport {
        match self.first.known_as(&call.tool) {
            Some(_) => self.first.call(call, options).await,
            None => self.second.call(call, options).await,
        }
    }
}
