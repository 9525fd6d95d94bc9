//! Output filters: less text for the model, and no lost failure.
//!
//! It sanitises text, matches rules against commands, runs strategies, and enforces what may never be lost. It reads no file and
//! runs no process: rule files come in as text, strategies in wasm as implementations of a trait.

mod sanitize;

pub use sanitize::{Lines, collapse, strip};
