//! The record of every call: a row written before anything happens, completed when the call has ended.
//!
//! A row without an end means that the host died during the call. `record` is what is recorded, `table` the rows in
//! the store (`label` has their words), `file` the same events as JSON lines.

pub(crate) mod file;
mod label;
pub(crate) mod record;
pub(crate) mod table;
