//! Where the guests run: an engine with a pool, as a server has it, with small limits, and directories of its own.

use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use serde_json::{Map, Value};
use zeph_core::argument::Arguments;
use zeph_core::call::{CallFrame, FileFacts, ResolvedCall};
use zeph_core::capability::FsGrant;
use zeph_core::failure::ToolFailure;
use zeph_core::id::PluginId;
use zeph_core::lifetime::Lifetime;
use zeph_core::limit::CallLimits;
use zeph_core::output::RawOutput;
use zeph_core::policy::{Decision, Policy, SessionFacts, authorise_with};
use zeph_engine::fs::FsPolicy;
use zeph_engine::{
    CallGrant, Cancel, Engine, EngineOptions, HttpExit, Listener, LoadError, Plugin,
};

use crate::guests::guest;
use crate::tries::Try;
use crate::{CheckResult, How, ProductParts, SelftestError};

/// Limits that what grows meets at once and a good call never does.
pub(crate) const PATIENT: CallLimits = CallLimits {
    wall_clock: Duration::from_secs(30),
    cpu: Duration::from_secs(30),
    memory_bytes: 64 << 20,
    table_elements: 10_000,
    output_bytes: 1 << 20,
    log_bytes: 16 << 10,
    host_calls: 100_000,
    handles: 100,
};

/// Limits with little time and any number of host calls, for guests that end by time alone.
pub(crate) const SHORT: CallLimits = CallLimits {
    wall_clock: Duration::from_millis(200),
    cpu: Duration::from_millis(100),
    host_calls: u64::MAX,
    ..PATIENT
};

/// How much later than its time limit a call may end before that counts as not ending: the machine may be busy.
const LATE: Duration = Duration::from_secs(5);

/// Guests at one time.
pub(crate) const THREADS: u32 = 4;

/// See the head of the file.
pub(crate) struct Lab {
    engine: Engine,
    dir: tempfile::TempDir,
    good: Plugin,
    parts: ProductParts,
}

/// One call of a guest.
pub(crate) struct GuestCall<'a> {
    pub(crate) guest: &'a str,
    /// The argument `n`.
    pub(crate) say: &'a str,
    pub(crate) limits: CallLimits,
    pub(crate) files: FsGrant,
    pub(crate) cancel: Cancel,
    pub(crate) listener: Option<Listener>,
    pub(crate) http: Option<Arc<dyn HttpExit>>,
}

impl<'a> GuestCall<'a> {
    pub(crate) fn new(guest: &'a str, say: &'a str, limits: CallLimits) -> Self {
        Self {
            guest,
            say,
            limits,
            files: FsGrant::default(),
            cancel: Cancel::new(),
            listener: None,
            http: None,
        }
    }
}

impl Lab {
    pub(crate) async fn new(parts: ProductParts) -> Result<Self, SelftestError> {
        let dir = tempfile::Builder::new()
            .prefix("zeph-selftest-")
            .tempdir()
            .map_err(SelftestError::Directory)?;
        let engine = Engine::new(&EngineOptions {
            guest_threads: THREADS,
            pooled: true,
            cache_dir: Some(dir.path().join("cache")),
            on_compile: None,
        })
        .map_err(SelftestError::Engine)?;
        let good = load(&engine, "good", PATIENT)
            .await
            .map_err(SelftestError::Load)?;
        Ok(Self {
            engine,
            dir,
            good,
            parts,
        })
    }

    /// What of the product is tried.
    pub(crate) fn parts(&self) -> &ProductParts {
        &self.parts
    }

    /// The directory of this run; gone afterwards.
    pub(crate) fn dir(&self) -> &Path {
        self.dir.path()
    }

    /// Checks a layer, and then whether the next call works.
    pub(crate) async fn verdict(&self, how: &How) -> CheckResult {
        let verdict = match how {
            How::Own(run) => run(self).await,
            How::Tries(tries) => self.first_broken(tries).await,
        };
        match (verdict, self.good().await) {
            (CheckResult::Holds, Err(failure)) => CheckResult::broken(format!(
                "the next call, a good one, failed: {}",
                failure.message
            )),
            (verdict, _) => verdict,
        }
    }

    async fn first_broken(&self, tries: &[Try]) -> CheckResult {
        for one in tries {
            let verdict = one.run(self).await;
            if verdict != CheckResult::Holds {
                return verdict;
            }
        }
        CheckResult::Holds
    }

    /// A call that must succeed whatever else goes on.
    pub(crate) async fn good(&self) -> Result<(), ToolFailure> {
        let call = GuestCall::new("good", "g", PATIENT);
        run(&self.good, call).await.map(drop)
    }

    /// Loads a guest.
    pub(crate) async fn load(&self, name: &str, limits: CallLimits) -> Result<Plugin, LoadError> {
        load(&self.engine, name, limits).await
    }

    /// Loads a guest and calls it. None when it did not end in its time.
    ///
    /// Errors: a guest that cannot be loaded is a failure with the reason.
    pub(crate) async fn call(&self, call: GuestCall<'_>) -> Option<Result<RawOutput, ToolFailure>> {
        let plugin = match self.load(call.guest, PATIENT).await {
            Ok(plugin) => plugin,
            Err(error) => return Some(Err(not_loaded(&error))),
        };
        let time = call.limits.wall_clock + LATE;
        tokio::time::timeout(time, run(&plugin, call)).await.ok()
    }
}

async fn load(engine: &Engine, name: &str, limits: CallLimits) -> Result<Plugin, LoadError> {
    let bytes = guest(name).unwrap_or_default();
    Plugin::load(engine, PluginId(name.to_owned()), bytes, limits).await
}

async fn run(plugin: &Plugin, call: GuestCall<'_>) -> Result<RawOutput, ToolFailure> {
    let fs = FsPolicy::new(&call.files).map_err(|error| internal(error.to_string()))?;
    let grant = CallGrant {
        fs: Arc::new(fs),
        limits: call.limits,
        variables: Arc::default(),
        settings: zeph_engine::NO_SETTINGS.into(),
        http: call.http,
    };
    let tool = plugin.tools().first().cloned().map(Arc::new);
    let resolved = ResolvedCall {
        frame: CallFrame::alone(),
        tool: tool.ok_or_else(|| internal("it has no tool".to_owned()))?,
        arguments: Arguments {
            values: Map::from_iter([("n".to_owned(), Value::from(call.say))]),
            notes: Vec::new(),
        },
        paths: Vec::new(),
        command: None,
        can_change: true,
        files: FileFacts::default(),
    };
    let facts = SessionFacts {
        approval: Some(Lifetime::Once),
        ..SessionFacts::default()
    };
    let policy = Policy::default();
    let authorised = match authorise_with(&policy, &facts, resolved, plugin.work(grant)) {
        Decision::Allow(authorised) => authorised,
        Decision::Ask(refusal) | Decision::Deny(refusal) => return Err(refusal.failure),
    };
    let ended = Plugin::call(authorised, call.cancel, call.listener);
    ended.await.result
}

/// The reason with its causes.
pub(crate) fn reason(error: &dyn std::error::Error) -> String {
    let causes = std::iter::successors(error.source(), |cause| (*cause).source());
    let causes: Vec<String> = causes.map(ToString::to_string).collect();
    [error.to_string()]
        .into_iter()
        .chain(causes)
        .collect::<Vec<_>>()
        .join(": ")
}

fn not_loaded(error: &LoadError) -> ToolFailure {
    internal(format!("it cannot be loaded: {}", reason(error)))
}

fn internal(message: String) -> ToolFailure {
    use zeph_core::category::{ErrorCategory, ErrorPhase};
    ToolFailure::new(ErrorCategory::ServerError, ErrorPhase::Setup, message)
}
