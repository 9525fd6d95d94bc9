//! Loads the hostile components of the self-test on an engine, and calls them.

use std::sync::Arc;
use std::time::Duration;

use serde_json::json;
use tokio::sync::mpsc;
use zeph_core::argument::Arguments;
use zeph_core::call::{CallFrame, ResolvedCall};
use zeph_core::capability::FsGrant;
use zeph_core::failure::ToolFailure;
use zeph_core::id::PluginId;
use zeph_core::limit::CallLimits;
use zeph_core::output::RawOutput;
use zeph_core::policy::{AuthorizedCall, Decision, Policy, SessionFacts, authorise_with};
use zeph_engine::fs::FsPolicy;
use zeph_engine::{
    CallGrant, Cancel, Engine, EngineOptions, GuestWork, Listener, LoadError, Plugin, Progress,
};
use zeph_selftest::guests::guest;

/// Limits a good call never meets, and that what grows meets at once.
pub(crate) const PATIENT: CallLimits = CallLimits {
    wall_clock: Duration::from_secs(60),
    cpu: Duration::from_secs(60),
    memory_bytes: 64 << 20,
    table_elements: 10_000,
    output_bytes: 1 << 20,
    log_bytes: 16 << 10,
    host_calls: 100_000,
    handles: 100,
};

/// The same with little time and any number of host calls, for what ends by time alone.
pub(crate) const SHORT: CallLimits = CallLimits {
    wall_clock: Duration::from_millis(200),
    cpu: Duration::from_millis(100),
    host_calls: u64::MAX,
    ..PATIENT
};

/// The same without any limit that would end it before a person does.
pub(crate) const ENDLESS: CallLimits = CallLimits {
    host_calls: u64::MAX,
    ..PATIENT
};

/// How late an end may be noticed. The host promises 100 ms (the bench measures it); a test machine may be busy with ten
/// other things, and what ends here would never end by itself.
pub(crate) const LATE: Duration = Duration::from_secs(10);

/// Guests that run at one time.
pub(crate) const THREADS: u32 = 4;

/// An engine: with a pool, as a server has it, or without, as a single call has it.
pub(crate) fn engine(pool: Pool) -> Engine {
    let options = EngineOptions {
        guest_threads: THREADS,
        pooled: pool == Pool::Prepared,
        cache_dir: Some(std::env::temp_dir().join("zeph-host-tests")),
        on_compile: None,
    };
    Engine::new(&options).unwrap()
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Pool {
    Prepared,
    None,
}

/// Loads a guest of the self-test.
pub(crate) async fn load(
    engine: &Engine,
    name: &str,
    limits: CallLimits,
) -> Result<Plugin, LoadError> {
    let bytes = guest(name).unwrap_or_else(|| panic!("no guest `{name}`"));
    Plugin::load(engine, PluginId(name.to_owned()), bytes, limits).await
}

/// One call of a guest.
#[derive(Debug, Clone)]
pub(crate) struct Call<'a> {
    plugin: &'a Plugin,
    /// The argument `n`: which variant.
    say: &'a str,
    limits: CallLimits,
    pub(crate) cancel: Cancel,
    listener: Option<Listener>,
}

impl<'a> Call<'a> {
    pub(crate) fn new(plugin: &'a Plugin, say: &'a str, limits: CallLimits) -> Self {
        Self {
            plugin,
            say,
            limits,
            cancel: Cancel::new(),
            listener: None,
        }
    }

    /// Hears when the guest says that the call has begun.
    pub(crate) fn heard(mut self) -> (Self, mpsc::Receiver<Progress>) {
        let (sender, receiver) = mpsc::channel(1);
        self.listener = Some(Listener::new(sender));
        (self, receiver)
    }

    pub(crate) async fn run(self) -> Result<RawOutput, ToolFailure> {
        let grant = CallGrant {
            fs: Arc::new(FsPolicy::new(&FsGrant::default()).unwrap()),
            limits: self.limits,
            variables: Arc::default(),
            settings: zeph_engine::NO_SETTINGS.into(),
            http: None,
        };
        let call = authorised(self.plugin, grant, self.say);
        let ended = Plugin::call(call, self.cancel, self.listener);
        ended.await.result
    }
}

/// Calls the guest that behaves and checks its answer.
pub(crate) async fn good(plugin: &Plugin) {
    let answer = Call::new(plugin, "good", PATIENT).run().await.unwrap();
    assert_eq!(answer.to_text(), r#"{"n":"good"}"#);
}

/// As many good calls at once as there are threads: every one of them, and every instance, must have been given back.
pub(crate) async fn all_threads_are_free(engine: &Engine) {
    let works = load(engine, "works", PATIENT).await.unwrap();
    let mut calls = tokio::task::JoinSet::new();
    for _ in 0..THREADS {
        let works = works.clone();
        calls.spawn(async move { Call::new(&works, "a", PATIENT).run().await });
    }
    let ended = tokio::time::timeout(LATE, calls.join_all()).await;
    for result in ended.expect("a thread was not given back") {
        assert_eq!(result.unwrap().to_text(), "intact");
    }
}

fn authorised(plugin: &Plugin, grant: CallGrant, say: &str) -> AuthorizedCall<GuestWork> {
    let tool = &plugin.tools()[0];
    let frame = CallFrame::alone();
    let arguments = Arguments {
        values: json!({"n": say}).as_object().unwrap().clone(),
        notes: Vec::new(),
    };
    let call = ResolvedCall {
        frame,
        tool: tool.clone().into(),
        arguments,
        paths: Vec::new(),
        command: None,
        can_change: false,
        files: zeph_core::call::FileFacts::default(),
    };
    let (policy, facts) = (Policy::default(), SessionFacts::default());
    match authorise_with(&policy, &facts, call, plugin.work(grant)) {
        Decision::Allow(call) => call,
        Decision::Ask(refusal) | Decision::Deny(refusal) => panic!("{refusal:?}"),
    }
}
