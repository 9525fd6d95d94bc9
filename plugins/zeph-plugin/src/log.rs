//! Lines for the operator's log, never for the model. The host caps them per call. No-ops in a native build.

use crate::bindings::zeph::plugin::log::Level;

/// Logs every step, for somebody who follows the plugin at work.
pub fn trace(message: &str) {
    write(Level::Trace, message);
}

/// Logs what only somebody debugging the plugin wants to see.
pub fn debug(message: &str) {
    write(Level::Debug, message);
}

/// Logs what the operator may want to know.
pub fn info(message: &str) {
    write(Level::Info, message);
}

/// Logs what is wrong but did not end the call.
pub fn warn(message: &str) {
    write(Level::Warn, message);
}

/// Logs what ended the call.
pub fn error(message: &str) {
    write(Level::Error, message);
}

fn write(level: Level, message: &str) {
    if cfg!(target_family = "wasm") {
        crate::bindings::zeph::plugin::log::write(level, message);
    }
}
