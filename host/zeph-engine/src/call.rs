//! One call of a guest: a fresh instance on a guest thread, ended within its limits.

mod begin;
mod end;
mod failure;
pub(crate) mod setup;
mod work;

use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Duration;

use tokio::runtime::Handle;
use tokio::sync::OwnedSemaphorePermit;
use tokio::time::Instant;
use wasmtime::Store;
use zeph_core::call::CallFrame;
use zeph_core::failure::ToolFailure;
use zeph_core::limit::CallLimits;
use zeph_core::policy::AuthorizedCall;
use zeph_core::user::run_as;

use self::begin::{BRIEF, begun_here};
use self::end::Tries;
use self::failure::{busy, crashed, failure, not_loaded, still_loading};
use crate::bindings::exports::zeph::plugin::tools;
use crate::bindings::zeph::plugin::types;
use crate::cancel::{Cancel, CancelOnDrop};
use crate::context::GuestContext;
use crate::convert::{self, GuestOutcome};
use crate::filter;
use crate::fs::{self, FsCtx};
use crate::lazy::Compiled;
use crate::limiter::{GuestStop, Limiter, within_max};
use crate::log::GuestLog;
use crate::plain::PlainResult;
use crate::plugin::{LoadedPlugin, Plugin};
use crate::process::Programs;
use crate::progress::Listener;
use crate::services::Services;
use crate::state::GuestState;

pub use self::end::{AskedCall, CallEnd, CallTerms};
pub use self::work::{CallGrant, GuestWork, NO_SETTINGS};

/// How long a finished call may take to end before the caller gets its result anyway. Only a host function that blocks in
/// the kernel gets that far.
const GRACE: Duration = Duration::from_millis(80);

impl Plugin {
    /// Runs an authorised call on a fresh instance of its component, with its grant.
    ///
    /// The result's errors: the tool's own failure, or the limit that ended it. Dropping the returned future ends the guest.
    /// Limits: returns at most `limits.wall_clock` + 100 ms after it was called, loading a recalled plugin and waiting for a
    /// guest thread included.
    pub async fn call(
        call: AuthorizedCall<GuestWork>,
        cancel: Cancel,
        listener: Option<Listener>,
    ) -> CallEnd {
        Self::attempt(Arc::new(call), cancel, listener, CallTerms::default()).await
    }

    /// The same on `terms`, for a call that may have to be made again.
    ///
    /// Limits: as above, and it ends with the deadline.
    pub async fn attempt(
        call: Arc<AuthorizedCall<GuestWork>>,
        cancel: Cancel,
        listener: Option<Listener>,
        terms: CallTerms,
    ) -> CallEnd {
        let GuestWork {
            plugin,
            mut grant,
            resumption,
        } = call.work().clone();
        grant.fs = Arc::new(grant.fs.leaving(call.leave()));
        let limits = within_max(grant.limits);
        let tool = call.shared_tool();
        let name = plugin.0.own_name(tool.name.as_str());
        let finish = move |given: GuestResult| given.finish(limits.output_bytes);
        // A guest that plans its time must end before either limit does.
        let context = convert::context(
            call.frame(),
            resumption.as_ref(),
            limits.wall_clock.min(limits.cpu).min(terms.time_left()),
        );
        let guest = GuestSetup {
            grant,
            cancel,
            listener,
            call: Some(call.frame().clone()),
            terms,
        };
        let made = Arc::clone(&call);
        let (outcome, tries) = plugin
            .0
            .on_guest_thread(guest, finish, move |store, compiled| {
                Box::pin(async move { call_tool(store, compiled, (&name, &made, &context)).await })
            })
            .await;
        let is_said = matches!(outcome, Ok(GuestOutcome::Failed(_)));
        let (result, asked) = match outcome {
            Ok(GuestOutcome::Done(output)) => (Ok(output), None),
            Ok(GuestOutcome::Failed(failure)) => (Err(failure), None),
            Ok(GuestOutcome::Ask(inquiry)) => {
                let failure = inquiry.unanswered(&call.tool().name);
                let arguments = call.arguments().clone();
                (Err(failure), Some(AskedCall { inquiry, arguments }))
            }
            Err(failure) => (Err(failure), None),
        };
        CallEnd {
            result,
            refused: tries.refused,
            used_files: tries.used_files,
            used_network: tries.used_network,
            files: tries.files,
            left: tries.left,
            asked,
            can_be_repeated: is_said && !tries.met_change,
            touched: tries.touched,
        }
    }
}

/// What a guest runs with.
struct GuestSetup {
    grant: CallGrant,
    cancel: Cancel,
    listener: Option<Listener>,
    /// None while it says what it offers.
    call: Option<CallFrame>,
    terms: CallTerms,
}

impl GuestSetup {
    /// One that is asked what it offers.
    fn asked(grant: CallGrant, cancel: Cancel) -> Self {
        Self {
            grant,
            cancel,
            listener: None,
            call: None,
            terms: CallTerms::default(),
        }
    }
}

/// What a guest gave back, not yet looked at.
enum GuestResult {
    Tools(Result<types::Outcome, types::ToolError>),
    Plain(PlainResult),
}

impl GuestResult {
    fn finish(self, output_bytes: u64) -> Result<GuestOutcome, ToolFailure> {
        match self {
            Self::Tools(result) => convert::result(result, output_bytes),
            Self::Plain(returned) => returned.finish(output_bytes).map(GuestOutcome::Done),
        }
    }
}

type GuestFuture<'a, T> = std::pin::Pin<Box<dyn Future<Output = wasmtime::Result<T>> + Send + 'a>>;

impl LoadedPlugin {
    /// Asks the guest for its tools and has `read` make something of them, all on the guest's thread and within the limits.
    ///
    /// Errors: one sentence, of the guest, of `read`, or about the limit that was met.
    pub(crate) async fn list_tools<R: Send + 'static>(
        &self,
        grant: CallGrant,
        cancel: Cancel,
        read: impl FnOnce(Vec<tools::ToolDefinition>) -> Result<R, String> + Send + 'static,
    ) -> Result<R, String> {
        let setup = GuestSetup::asked(grant, cancel);
        let listed = self.listed(setup, read, move |store, compiled| {
            Box::pin(async move {
                let Compiled::Tools(pre) = compiled else {
                    return Ok(Err("it has no `list-tools`".to_owned()));
                };
                let guest = pre.instantiate_async(&mut *store).await?;
                guest.zeph_plugin_tools().call_list_tools(store).await
            })
        });
        listed.await
    }

    /// Lists the strategies of a filter component.
    pub(crate) async fn list_strategies<R: Send + 'static>(
        &self,
        grant: CallGrant,
        cancel: Cancel,
        read: impl FnOnce(Vec<filter::Listed>) -> Result<R, String> + Send + 'static,
    ) -> Result<R, String> {
        let setup = GuestSetup::asked(grant, cancel);
        let listed = self.listed(setup, read, move |store, compiled| {
            Box::pin(async move {
                let Compiled::Filter(pre) = compiled else {
                    return Ok(Err("it has no `list-strategies`".to_owned()));
                };
                let guest = pre.instantiate_async(&mut *store).await?;
                let strategies = guest.zeph_filter_strategies();
                strategies.call_list_strategies(store).await.map(Ok)
            })
        });
        listed.await
    }

    /// What `read` makes of a list that `list` asks the guest for.
    async fn listed<T: Send, R: Send + 'static>(
        &self,
        guest: GuestSetup,
        read: impl FnOnce(Vec<T>) -> Result<R, String> + Send + 'static,
        list: impl for<'a> FnOnce(
            &'a mut Store<GuestState>,
            Compiled,
        ) -> GuestFuture<'a, Result<Vec<T>, String>>
        + Send
        + 'static,
    ) -> Result<R, String> {
        let read = |listed: Result<Vec<T>, String>| Ok(listed.and_then(read));
        let (listed, _) = self.on_guest_thread(guest, read, list).await;
        listed.unwrap_or_else(|failure| Err(failure.message))
    }

    /// Waits until the component is ready and a guest thread is free, and runs `work` there with a new store. What it gives is
    /// looked at by `finish` on the same thread: a large result takes its time.
    async fn on_guest_thread<T: Send, R: Send + 'static>(
        &self,
        guest: GuestSetup,
        finish: impl FnOnce(T) -> Result<R, ToolFailure> + Send + 'static,
        work: impl for<'a> FnOnce(&'a mut Store<GuestState>, Compiled) -> GuestFuture<'a, T>
        + Send
        + 'static,
    ) -> (Result<R, ToolFailure>, Tries) {
        let GuestSetup {
            grant,
            cancel,
            listener,
            call,
            mut terms,
        } = guest;
        let (programs, services) = (terms.programs.take(), terms.services.take());
        let limits = within_max(grant.limits);
        if let Err(failure) = self.has_own_compiled(&cancel).await {
            return (Err(failure), Tries::default());
        }
        let started = Instant::now();
        let planned = limits.wall_clock.min(limits.cpu);
        let deadline = started + limits.wall_clock.min(terms.time_left());
        let _ends_with_the_caller = CancelOnDrop(cancel.clone());
        let (compiled, thread) = match self.prepared(limits, deadline, &cancel).await {
            Ok(prepared) => prepared,
            Err(failure) => return (Err(failure), Tries::default()),
        };
        let log = GuestLog::new(self.id.clone(), limits.log_bytes);
        let engine = self.engine.clone();
        let guest_log = log.clone();
        let fs = files(&grant, &terms);
        let stop_files = fs.stop();
        let guest_cancel = cancel.clone();
        let user = grant.fs.user().cloned();
        // Without files it can only reckon, or wait as other tasks do. Where that is usually over in a moment, it may begin on this
        // thread, which spares it two switches.
        let was_brief = Arc::clone(&self.was_brief);
        let can_begin_here = call.is_some()
            && user.is_none()
            && grant.fs.is_closed()
            && was_brief.load(Ordering::Relaxed);
        let guest = async move {
            let cancel = guest_cancel;
            let _running = engine.running();
            let begun = Instant::now();
            let mut limiter = Limiter::start(limits, cancel.clone(), deadline.into_std());
            if can_begin_here {
                limiter = limiter.yielding_once();
            }
            let context = GuestContext {
                settings: Arc::clone(&grant.settings),
                call,
            };
            let imports = (Programs::new(programs), Services::new(services));
            let state = setup::state(&grant, fs, limiter, guest_log, listener, context, imports);
            let mut store = setup::store(engine.wasm(), state, limits);
            let result = tokio::select! {
                biased;
                result = work(&mut store, compiled) => result,
                () = cancel.cancelled() => Err(GuestStop::Cancelled.into()),
                () = tokio::time::sleep_until(deadline) => Err(GuestStop::WallClock(limits.wall_clock).into()),
            };
            let times = (started.elapsed(), planned);
            let tries = Tries::of(store.data_mut(), times, terms.ignores_date);
            drop(store);
            let is_brief = begun.elapsed() <= BRIEF;
            was_brief.store(is_brief, Ordering::Relaxed);
            // What it gave may be as much as it took long to give.
            if can_begin_here && !is_brief {
                tokio::task::yield_now().await;
            }
            let result = result.map(finish);
            drop(thread);
            (result, tries)
        };
        let mut guest = Box::pin(guest);
        if can_begin_here && let Some(ended) = begun_here(&mut guest).await {
            return self.outcome(ended, |error| failure(error, &log, limits));
        }
        let runtime = Handle::current();
        // A thread of the pool goes on to work for the host: it never becomes another user's, but waits for one that does.
        let guest = tokio::task::spawn_blocking(move || {
            let ran = run_as(user.as_ref(), || runtime.block_on(guest));
            ran.unwrap_or_else(|error| (Err(error.into()), Tries::default()))
        });
        let guest = async { guest.await.map_err(|error| error.to_string()) };
        // Whatever ends the wait, also a caller that goes away, ends file operations that go on in the host.
        let stop_files = ThrowOnDrop(stop_files);
        tokio::pin!(guest);
        let interrupted = tokio::select! {
            biased;
            ended = &mut guest => {
                return self.outcome(ended, |error| failure(error, &log, limits));
            }
            () = cancel.cancelled() => GuestStop::Cancelled,
            () = tokio::time::sleep_until(deadline) => GuestStop::WallClock(limits.wall_clock),
        };
        drop(stop_files);
        match tokio::time::timeout(GRACE, guest).await {
            Ok(ended) => self.outcome(ended, |_| interrupted.failure()),
            Err(_elapsed) => (Err(interrupted.failure()), Tries::unknown()),
        }
    }

    /// Waits for the compiler when the component is part of the program, however long that takes: it is done once.
    async fn has_own_compiled(&self, cancel: &Cancel) -> Result<(), ToolFailure> {
        if !self.is_embedded() {
            return Ok(());
        }
        tokio::select! {
            biased;
            compiled = self.compiled() => compiled.map(drop).map_err(|error| not_loaded(&error)),
            () = cancel.cancelled() => Err(GuestStop::Cancelled.failure()),
        }
    }

    /// The component, loaded, and a guest thread to run it on.
    async fn prepared(
        &self,
        limits: CallLimits,
        deadline: Instant,
        cancel: &Cancel,
    ) -> Result<(Compiled, OwnedSemaphorePermit), ToolFailure> {
        let compiled = tokio::select! {
            biased;
            compiled = self.compiled() => compiled.map_err(|error| not_loaded(&error))?,
            () = cancel.cancelled() => return Err(GuestStop::Cancelled.failure()),
            () = tokio::time::sleep_until(deadline) => return Err(still_loading(limits.wall_clock)),
        };
        let threads = Arc::clone(self.engine.threads());
        let thread = tokio::select! {
            biased;
            thread = threads.acquire_owned() => thread.map_err(|_closed| busy())?,
            () = cancel.cancelled() => return Err(GuestStop::Cancelled.failure()),
            () = tokio::time::sleep_until(deadline) => return Err(busy()),
        };
        // A call that was cancelled while it waited, or before, changes nothing any more.
        if cancel.is_cancelled() {
            return Err(GuestStop::Cancelled.failure());
        }
        Ok((compiled, thread))
    }

    fn outcome<T>(
        &self,
        ended: Result<(wasmtime::Result<Result<T, ToolFailure>>, Tries), String>,
        failure: impl FnOnce(&wasmtime::Error) -> ToolFailure,
    ) -> (Result<T, ToolFailure>, Tries) {
        match ended {
            Ok((Ok(finished), tries)) => (finished, tries),
            Ok((Err(error), tries)) => (Err(failure(&error)), tries),
            Err(panicked) => {
                tracing::error!(plugin = %self.id, error = %panicked, "a host function panicked");
                let failure = crashed("a host function failed".to_owned());
                (Err(failure), Tries::unknown())
            }
        }
    }
}

/// The files of a call, with what is noted of their use.
fn files(grant: &CallGrant, terms: &CallTerms) -> FsCtx {
    let mut fs = FsCtx::new(Arc::clone(&grant.fs));
    if terms.is_watched {
        fs = fs.watched();
    }
    if terms.is_recorded {
        fs = fs.recorded();
    }
    fs.marking(Arc::clone(&terms.private))
}

/// Calls the tool of this name on a new instance.
async fn call_tool(
    store: &mut Store<GuestState>,
    compiled: Compiled,
    (name, call, context): (&str, &AuthorizedCall<GuestWork>, &types::CallContext),
) -> wasmtime::Result<GuestResult> {
    let pre = match compiled {
        Compiled::Tools(pre) => pre,
        Compiled::Plain(plain) => {
            let returned = plain.call(store, name, call.arguments()).await;
            return returned.map(GuestResult::Plain);
        }
        Compiled::Filter(_) => wasmtime::bail!("it offers strategies, no tools"),
    };
    let arguments = serde_json::to_string(call.arguments()).unwrap_or_default();
    let guest = pre.instantiate_async(&mut *store).await?;
    let tools = guest.zeph_plugin_tools();
    let result = tools.call_call_tool(store, name, &arguments, context).await;
    result.map(GuestResult::Tools)
}

/// Ends the file operations of a call.
struct ThrowOnDrop(fs::StopSwitch);

impl Drop for ThrowOnDrop {
    fn drop(&mut self) {
        self.0.throw();
    }
}
