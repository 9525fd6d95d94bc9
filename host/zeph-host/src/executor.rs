//! The host as a library: what runs the tools of an agent, behind one trait.
//!
//! In reading order: [`ToolExecutor`] and its object-safe sister (here), `definition` (a tool as data), `request` (a call, and the caller's
//! hold on it), `event` (how it gets on), `builder` and `caller` (a host for another program), `own` (the host in a session is one executor), `composite` and `scoped` (executors made of
//! executors), and `backend` (an executor whose tools are tools of a host).
//!
//! A call of an executor that is no host follows no line: nothing authorises or records it. Such an executor belongs into a host, as a
//! backend ([`HostBuilder::backend`](crate::HostBuilder::backend)), where its calls take the same line as all others.

pub(crate) mod backend;
mod builder;
mod caller;
mod composite;
mod definition;
mod event;
mod own;
mod request;
mod scoped;
#[cfg(test)]
mod tests;

use std::fmt;
use std::future::Future;
use std::pin::Pin;
use std::sync::Arc;

pub use self::builder::{BuildError, HostBuilder};
pub use self::caller::Caller;
pub use self::composite::{CompositeExecutor, NameClash};
pub use self::definition::{BadDefinition, ToolDefinition};
pub use self::event::{CallEvent, EventSink};
pub use self::own::HostExecutor;
pub use self::request::{CallOptions, ToolCall};
pub use self::scoped::ScopedExecutor;
use crate::calls::CallReport;

/// Runs tools.
///
/// An implementation writes `async fn call`; its future must be `Send`. What the caller says about the call while it runs, and hears of
/// it, travels with the call: [`CallOptions::cancel`] ends it, [`CallOptions::events`] hears how it gets on. A cancel is
/// never lost, however early it comes.
///
/// ```
/// use zeph_host::{CallOptions, CallReport, ToolCall, ToolDefinition, ToolExecutor};
///
/// struct Clock;
///
/// impl ToolExecutor for Clock {
///     fn definitions(&self) -> Vec<ToolDefinition> {
///         let schema = serde_json::json!({"type": "object", "properties": {}});
///         vec![ToolDefinition::new("time", "Tell the time.", schema).reading_only()]
///     }
///
///     async fn call(&self, _call: ToolCall, _options: CallOptions) -> CallReport {
///         CallReport::text("five past three")
///     }
/// }
/// ```
pub trait ToolExecutor: Send + Sync {
    /// The tools of this moment, sorted or not, each name once.
    fn definitions(&self) -> Vec<ToolDefinition>;

    /// The name in [`definitions`](Self::definitions) of the tool that a call of `name` reaches; `None` when there is none. Only an
    /// executor whose tools answer to more than one name has to say more than whether it is listed.
    fn known_as(&self, name: &str) -> Option<String> {
        let mut definitions = self.definitions().into_iter();
        definitions.any(|one| one.name == name).then(|| name.into())
    }

    /// Makes a call. It never fails: whatever happens is in the report.
    ///
    /// Limits: ends soon after `options.cancel`, with a failure of the category `cancelled`. Dropping the future ends the call too.
    fn call(&self, call: ToolCall, options: CallOptions)
    -> impl Future<Output = CallReport> + Send;
}

/// A report that is waited for.
pub type PendingReport<'a> = Pin<Box<dyn Future<Output = CallReport> + Send + 'a>>;

/// [`ToolExecutor`] for trait objects. Every executor is one; nobody implements it by hand.
pub trait ErasedToolExecutor: Send + Sync {
    /// [`ToolExecutor::definitions`]
    fn erased_definitions(&self) -> Vec<ToolDefinition>;

    /// [`ToolExecutor::known_as`]
    fn erased_known_as(&self, name: &str) -> Option<String>;

    /// [`ToolExecutor::call`]
    fn erased_call(&self, call: ToolCall, options: CallOptions) -> PendingReport<'_>;
}

impl<E: ToolExecutor> ErasedToolExecutor for E {
    fn erased_definitions(&self) -> Vec<ToolDefinition> {
        self.definitions()
    }

    fn erased_known_as(&self, name: &str) -> Option<String> {
        self.known_as(name)
    }

    fn erased_call(&self, call: ToolCall, options: CallOptions) -> PendingReport<'_> {
        Box::pin(self.call(call, options))
    }
}

/// An executor of a kind that is known at run time only. Clones are handles to one.
///
/// ```no_run
/// use std::sync::Arc;
/// use zeph_host::{CompositeExecutor, DynExecutor, HostExecutor, NameClash, ScopedExecutor, ToolExecutor};
///
/// /// The tools of an editor, and those of the host but the one that the editor has too.
/// fn tools(editor: impl ToolExecutor + 'static, host: HostExecutor) -> Result<DynExecutor, NameClash> {
///     let local = ScopedExecutor::without(host, ["bash"]);
///     let composite = CompositeExecutor::new(editor, local)?;
///     Ok(DynExecutor(Arc::new(composite)))
/// }
/// ```
#[derive(Clone)]
pub struct DynExecutor(pub Arc<dyn ErasedToolExecutor>);

impl DynExecutor {
    /// Forgets the kind of `executor`.
    pub fn new(executor: impl ToolExecutor + 'static) -> Self {
        Self(Arc::new(executor))
    }
}

impl ToolExecutor for DynExecutor {
    fn definitions(&self) -> Vec<ToolDefinition> {
        self.0.erased_definitions()
    }

    fn known_as(&self, name: &str) -> Option<String> {
        self.0.erased_known_as(name)
    }

    fn call(
        &self,
        call: ToolCall,
        options: CallOptions,
    ) -> impl Future<Output = CallReport> + Send {
        self.0.erased_call(call, options)
    }
}

impl fmt::Debug for DynExecutor {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("DynExecutor")
    }
}
