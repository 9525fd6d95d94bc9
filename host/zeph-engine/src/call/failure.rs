//! Failures that the host finds, in words for a model; the log gets more.

use std::time::Duration;

use wasmtime::component::ResourceTableError;
use zeph_core::category::{ErrorCategory, ErrorPhase};
use zeph_core::failure::{ToolFailure, one_line};
use zeph_core::limit::CallLimits;
use zeph_core::text::plain_text;

use super::setup::{COMPONENT_HANDLES_MAX, transfer_bytes_max};
use crate::error::LoadError;
use crate::limiter::GuestStop;
use crate::log::GuestLog;

/// Most characters of what the engine says about a broken contract.
const CAUSE_CHARS_MAX: usize = 400;

/// No guest thread was free in time.
pub(super) fn busy() -> ToolFailure {
    ToolFailure::new(
        ErrorCategory::RateLimited,
        ErrorPhase::Setup,
        "every guest thread is busy (`engine.guest_threads`)",
    )
}

/// The component was not ready in time.
pub(super) fn still_loading(wall_clock: Duration) -> ToolFailure {
    ToolFailure::new(
        ErrorCategory::Timeout,
        ErrorPhase::Setup,
        format!(
            "the plugin is being compiled, which takes longer than {} s (`limits.wall_clock_secs`) but goes on; later calls will \
             find it ready",
            wall_clock.as_secs_f64()
        ),
    )
}

/// A recalled plugin that worked before: the file or the host is at fault, not the call.
pub(super) fn not_loaded(error: &LoadError) -> ToolFailure {
    tracing::warn!(error = %plain_text(&format!("{error:?}")), "a plugin cannot be loaded");
    let message = match error {
        LoadError::Changed { .. } => {
            "the plugin's file changed; its tools work again once the new file was checked"
        }
        LoadError::Read { .. } => "the plugin's file cannot be read any more",
        _ => "the plugin cannot be loaded any more; the log says why",
    };
    ToolFailure::new(ErrorCategory::ServerError, ErrorPhase::Setup, message)
}

/// The guest ended in a way it would end in again.
pub(super) fn crashed(message: String) -> ToolFailure {
    ToolFailure::new(
        ErrorCategory::PermanentFailure,
        ErrorPhase::Execution,
        message,
    )
}

/// Whether the operating system refused what the engine needed, such as memory. Its errors have no common type.
fn is_of_machine(cause: &str) -> bool {
    cause.contains("(os error ")
}

fn of_machine(cause: &str) -> ToolFailure {
    ToolFailure::new(
        ErrorCategory::ServerError,
        ErrorPhase::Execution,
        format!("this machine did not give what the plugin needs to run: {cause}"),
    )
}

/// The limit of the engine's own that a guest met, if it did. The engine has types for few of these errors.
fn exhausted(error: &wasmtime::Error, limits: CallLimits) -> Option<String> {
    if let Some(ResourceTableError::Full) = error.downcast_ref() {
        let handles = limits.handles;
        return Some(format!(
            "the call held more than {handles} handles at one time (`limits.handles`)"
        ));
    }
    let text = format!("{error:#}");
    if text.contains("fuel allocated for hostcalls") {
        let n_bytes = transfer_bytes_max(limits);
        return Some(format!(
            "more than {n_bytes} bytes were handed to the host at once, as a result or an argument (`limits.output_bytes`)"
        ));
    }
    text.contains("store handle limit exceeded").then(|| {
        format!("the plugin held more than {COMPONENT_HANDLES_MAX} component handles at one time")
    })
}

/// Turns a guest's error into a failure for the model; the log gets the error chain and the backtrace.
pub(super) fn failure(error: &wasmtime::Error, log: &GuestLog, limits: CallLimits) -> ToolFailure {
    if let Some(stop) = error.downcast_ref::<GuestStop>() {
        return stop.failure();
    }
    if error.is::<wasmtime::PoolConcurrencyLimitError>() {
        return busy();
    }
    // The chain names functions as the guest's author did.
    tracing::debug!(error = %plain_text(&format!("{error:?}")), "a guest failed");
    if let Some(exit) = error.downcast_ref::<wasmtime_wasi::I32Exit>() {
        return crashed(format!("the plugin ended itself with exit code {}", exit.0));
    }
    if let Some(exhausted) = exhausted(error, limits) {
        return crashed(exhausted).arguable();
    }
    let Some(trap) = error.downcast_ref::<wasmtime::Trap>() else {
        let cause = one_line(&error.root_cause().to_string(), CAUSE_CHARS_MAX);
        if is_of_machine(&cause) {
            return of_machine(&cause);
        }
        return crashed(format!("the plugin broke its contract: {cause}"));
    };
    let said = match log.last_words() {
        Some(words) => format!("; it said: {words}"),
        None => String::new(),
    };
    crashed(match trap {
        wasmtime::Trap::StackOverflow => "the plugin recursed too deeply".to_owned(),
        wasmtime::Trap::UnreachableCodeReached => format!("the plugin crashed{said}"),
        other => format!("the plugin crashed ({other}){said}"),
    })
}

#[cfg(test)]
mod tests {
    use std::io;

    use zeph_core::category::ErrorCategory;
    use zeph_core::id::PluginId;

    use super::failure;
    use crate::limiter::LIMITS_MAX;
    use crate::log::GuestLog;

    #[test]
    fn what_the_machine_lacks_is_no_fault_of_the_plugin() {
        let log = GuestLog::new(PluginId("p".to_owned()), 1_000);
        let told = |error: wasmtime::Error| failure(&error, &log, LIMITS_MAX);
        let machine = told(io::Error::from_raw_os_error(12).into());
        assert_eq!(machine.category, ErrorCategory::ServerError);
        assert!(
            machine.message.contains("Cannot allocate memory"),
            "{machine:?}"
        );
        assert!(!machine.message.contains("contract"), "{machine:?}");
        let contract = told(wasmtime::Error::msg("wrong type"));
        assert!(
            contract.message.contains("broke its contract"),
            "{contract:?}"
        );
    }
}
