//! Runs a tool of the hostile plugin straight on the engine.

use std::sync::Arc;
use std::time::Duration;

use serde_json::Value;
use zeph_core::call::{CallFrame, ResolvedCall};
use zeph_core::capability::FsGrant;
use zeph_core::failure::ToolFailure;
use zeph_core::id::PluginId;
use zeph_core::lifetime::Lifetime;
use zeph_core::limit::CallLimits;
use zeph_core::output::RawOutput;
use zeph_core::policy::{AuthorizedCall, Decision, Policy, SessionFacts, authorise_with};
use zeph_core::tool::Tool;
use zeph_engine::fs::FsPolicy;
use zeph_engine::{
    CallEnd, CallGrant, Cancel, ComponentBytes, Engine, EngineOptions, GuestWork, Plugin,
};

/// The hostile plugin, compiled by the build script.
pub(crate) static HOSTILE: &[u8] = include_bytes!(env!("GUEST_HOSTILE"));

/// Small limits, so that hitting one is quick.
pub(crate) const LIMITS: CallLimits = CallLimits {
    wall_clock: Duration::from_millis(400),
    cpu: Duration::from_millis(200),
    memory_bytes: 64 << 20,
    table_elements: 10_000,
    output_bytes: 1 << 20,
    log_bytes: 16 << 10,
    host_calls: 1_000_000,
    handles: 100,
};

/// Limits that a well-behaved guest never meets.
pub(crate) const PATIENT: CallLimits = CallLimits {
    wall_clock: Duration::from_secs(60),
    cpu: Duration::from_secs(60),
    ..LIMITS
};

/// An engine with the hostile plugin loaded.
pub(crate) struct Guest {
    plugin: Plugin,
    grant: CallGrant,
}

impl Guest {
    pub(crate) async fn load(limits: CallLimits, grant: &FsGrant) -> Self {
        Self::of("hostile", HOSTILE.into(), limits, grant).await
    }

    /// Another plugin.
    pub(crate) async fn of(
        id: &str,
        component: ComponentBytes,
        limits: CallLimits,
        grant: &FsGrant,
    ) -> Self {
        let options = EngineOptions {
            guest_threads: 4,
            pooled: true,
            cache_dir: Some(std::env::temp_dir().join("zeph-host-tests")),
            on_compile: None,
        };
        let engine = Engine::new(&options).unwrap();
        let id = PluginId(id.to_owned());
        let plugin = Plugin::load(&engine, id, component, PATIENT).await.unwrap();
        let grant = CallGrant {
            fs: Arc::new(FsPolicy::new(grant).unwrap()),
            limits,
            variables: Arc::default(),
            settings: zeph_engine::NO_SETTINGS.into(),
            http: None,
        };
        Self { plugin, grant }
    }

    /// The same plugin on the same engine, under other limits.
    pub(crate) fn with(&self, limits: CallLimits) -> Self {
        self.granted(CallGrant {
            limits,
            ..self.grant.clone()
        })
    }

    /// The same plugin on the same engine, under another grant.
    pub(crate) fn granted(&self, grant: CallGrant) -> Self {
        Self {
            plugin: self.plugin.clone(),
            grant,
        }
    }

    /// What it offers.
    pub(crate) fn tools(&self) -> &[Tool] {
        self.plugin.tools()
    }

    /// What it holds.
    pub(crate) fn grant(&self) -> &CallGrant {
        &self.grant
    }

    pub(crate) fn tool(&self, name: &str) -> &Tool {
        let mut tools = self.tools().iter();
        tools.find(|tool| tool.name.as_str() == name).unwrap()
    }

    pub(crate) async fn call(
        &self,
        tool: &str,
        arguments: Value,
    ) -> Result<RawOutput, ToolFailure> {
        self.call_with(tool, arguments, Cancel::new()).await
    }

    pub(crate) async fn call_with(
        &self,
        tool: &str,
        arguments: Value,
        cancel: Cancel,
    ) -> Result<RawOutput, ToolFailure> {
        self.end_of(tool, arguments, cancel).await.result
    }

    /// The same with arguments that the schema may refuse.
    pub(crate) async fn try_call(
        &self,
        tool: &str,
        arguments: Value,
    ) -> Result<RawOutput, ToolFailure> {
        let read = self.tool(tool).parameters.read(arguments)?;
        self.call(tool, Value::Object(read.values)).await
    }

    /// How a call ends, with what it tried in vain.
    pub(crate) async fn end_of(&self, tool: &str, arguments: Value, cancel: Cancel) -> CallEnd {
        let call = self.authorised(tool, arguments);
        Plugin::call(call, cancel, None).await
    }

    fn authorised(&self, tool: &str, arguments: Value) -> AuthorizedCall<GuestWork> {
        let tool = self.tool(tool).clone();
        let arguments = tool.parameters.read(arguments).unwrap();
        let frame = CallFrame::alone();
        let call = ResolvedCall {
            frame,
            tool: tool.into(),
            arguments,
            paths: Vec::new(),
            command: None,
            can_change: true,
            files: zeph_core::call::FileFacts::default(),
        };
        let facts = SessionFacts {
            approval: Some(Lifetime::Once),
            ..SessionFacts::default()
        };
        let work = self.plugin.work(self.grant.clone());
        match authorise_with(&Policy::default(), &facts, call, work) {
            Decision::Allow(call) => call,
            Decision::Ask(refusal) | Decision::Deny(refusal) => panic!("{refusal:?}"),
        }
    }
}
