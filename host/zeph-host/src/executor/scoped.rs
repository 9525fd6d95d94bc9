//! Some of the tools of an executor.

use std::collections::BTreeSet;

use zeph_core::category::{ErrorCategory, ErrorPhase};
use zeph_core::failure::{ToolFailure, one_line};

use super::{CallOptions, ToolCall, ToolDefinition, ToolExecutor};
use crate::calls::CallReport;

/// An executor of which some tools are used. The others are not listed, and a call of one fails as that of a tool that does not
/// exist, by whichever of its names it is called.
///
/// What a user of a host may do is decided by its configuration (`[tools.scoped]`, permissions, policy), which also looks at arguments
/// and records what it refuses. This is for programs that give parts of their tools to different agents.
#[derive(Debug, Clone)]
pub struct ScopedExecutor<E> {
    inner: E,
    scope: Scope,
}

#[derive(Debug, Clone)]
enum Scope {
    Only(BTreeSet<String>),
    Without(BTreeSet<String>),
}

impl Scope {
    fn has(&self, tool: &str) -> bool {
        match self {
            Self::Only(tools) => tools.contains(tool),
            Self::Without(tools) => !tools.contains(tool),
        }
    }
}

impl<E: ToolExecutor> ScopedExecutor<E> {
    /// Only `tools`, by the names they are offered under, and nothing else, whatever comes later.
    pub fn only<T: Into<String>>(inner: E, tools: impl IntoIterator<Item = T>) -> Self {
        let scope = Scope::Only(tools.into_iter().map(T::into).collect());
        Self { inner, scope }
    }

    /// All but `tools`, by the names they are offered under.
    pub fn without<T: Into<String>>(inner: E, tools: impl IntoIterator<Item = T>) -> Self {
        let scope = Scope::Without(tools.into_iter().map(T::into).collect());
        Self { inner, scope }
    }
}

impl<E: ToolExecutor> ToolExecutor for ScopedExecutor<E> {
    fn definitions(&self) -> Vec<ToolDefinition> {
        let mut definitions = self.inner.definitions();
        definitions.retain(|one| self.scope.has(&one.name));
        definitions
    }

    fn known_as(&self, name: &str) -> Option<String> {
        let known = self.inner.known_as(name);
        known.filter(|tool| self.scope.has(tool))
    }

    async fn call(&self, mut call: ToolCall, options: CallOptions) -> CallReport {
        let Some(tool) = self.known_as(&call.tool) else {
            return CallReport::failed(not_found(&call.tool));
        };
        // What was looked at is what is called.
        call.tool = tool;
        self.inner.call(call, options).await
    }
}

fn not_found(tool: &str) -> ToolFailure {
    let message = format!("no tool is named `{}`", one_line(tool, 80));
    ToolFailure::new(ErrorCategory::ToolNotFound, ErrorPhase::Setup, message)
}
