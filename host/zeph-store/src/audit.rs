//! The record of every call: a row written before anything happens, completed when the call has ended.
//!
//! A row without an end means that the host died during the call. `record` is what is recorded, `columns` and `value` how that is stored,
//! `filter` how the rows are read, `file` the same events as JSON lines. `chain` vouches for the rows with codes (`code`), as `file` does
//! for its lines: `seal` adds events (`event`), `retention` decides which go, `verify` compares all of it, by what `mark` lets it believe.
//! `checkpoint` is what leaves the machine of it, `earlier` what is known of chains that are gone.

pub(crate) mod chain;
pub(crate) mod checkpoint;
pub(crate) mod code;
pub(crate) mod columns;
pub(crate) mod earlier;
pub(crate) mod event;
pub(crate) mod file;
pub(crate) mod filter;
pub(crate) mod mark;
pub(crate) mod problem;
pub(crate) mod record;
pub(crate) mod retention;
pub(crate) mod seal;
pub(crate) mod value;
pub(crate) mod verify;
