//! Transactions: what a directory held before a command, so that it can be put back.
//!
//! A snapshot is taken before a command runs and restored when the command fails, or when a person asks for it with `/undo`. It is a
//! true copy of the tree, whatever the command line looked like: which files a command writes cannot be known from its words. `.git`,
//! `target` and `node_modules` are part of the tree unless the scope says otherwise; the cost is bounded by `max_snapshot_bytes`, and a
//! snapshot taken on top of an earlier one copies only what has changed since.
//!
//! The tree may change while it is read and written here, because commands run in it. So every step goes through the
//! handle of a directory and one name, never through a path and never through a link, and nothing outside the root is read or written
//! whatever is swapped meanwhile. Other file systems mounted below the root are not entered.
//!
//! All functions block: call them on a thread that may. Nothing here decides whether a command may run.

mod attributes;
mod changes;
mod compare;
mod error;
mod handle;
mod mend;
mod relink;
mod remove;
mod restore;
mod rule;
mod scope;
mod snapshot;
mod take;
mod tree;
mod undo;
mod vault;

pub use changes::Changes;
pub use error::{RestoreError, ScopeError, SnapshotError};
pub use restore::RestoreReport;
pub use rule::{CommandEnd, Rollback};
pub use scope::SnapshotScope;
pub use snapshot::{Snapshot, SnapshotOptions};
pub use undo::{UndoEnd, UndoStack};
pub use vault::clean_leftovers;

#[cfg(test)]
mod tests;
