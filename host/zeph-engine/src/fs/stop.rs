//! Ends long work on files when the call it belongs to is over.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use super::error::Fail;

/// A switch that is thrown once. Cheap to clone and to ask.
///
/// The epoch of the engine interrupts a guest, not the host functions it calls; those that may take long ask here.
#[derive(Debug, Clone, Default)]
pub struct StopSwitch(Arc<AtomicBool>);

impl StopSwitch {
    /// Ends what is under way at its next step.
    pub fn throw(&self) {
        self.0.store(true, Ordering::Relaxed);
    }

    /// Traps once the switch is thrown.
    pub(super) fn check(&self) -> Result<(), Fail> {
        if self.0.load(Ordering::Relaxed) {
            return Err(Fail::Trap(wasmtime::Error::msg(
                "the call was stopped during a file operation",
            )));
        }
        Ok(())
    }
}
