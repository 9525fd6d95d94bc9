//! Tells the user how a long call is getting on. Costs next to nothing when nobody listens; a no-op in a native build.

use crate::bindings::zeph::plugin::progress::report;

/// Reports what the call is doing, without a measure.
pub fn message(message: &str) {
    send(message, None, None);
}

/// Reports how many units are done, and of how many when that is known.
pub fn count(message: &str, completed: u64, total: Option<u64>) {
    send(message, Some(completed), total);
}

fn send(message: &str, completed: Option<u64>, total: Option<u64>) {
    if cfg!(target_family = "wasm") {
        report(message, completed, total);
    }
}
