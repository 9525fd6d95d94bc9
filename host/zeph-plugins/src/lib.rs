//! Third-party plugins: found in plugin directories, pinned, granted, updated, and isolated from everything else.
//!
//! In reading order: `folder` (which files there are), `record` (what is known of them from before), `load` (from a file to a
//! plugin), `definitions` and `lock` (what was accepted, `zeph.lock`), `signature` (who
//! vouches for it), `diff` (what changed since), `set` (which plugins are in
//! force, under which names), `owners` (to which plugin a name belongs), `keeper` with `watcher` and `event` (the task that keeps the
//! set in step), `rights` and `refusal` (what one call may touch, and what people can do when that is too little), `off` (and when a
//! plugin is not in force), `server` (what MCP servers said when they were accepted), `component` (what comes with the program), `visible` (texts of strangers on a terminal),
//! `author` (projects for those who write plugins). Nothing here runs a guest: that is the engine's.

pub mod author;
pub mod component;
pub mod definitions;
pub mod diff;
pub mod event;
pub mod folder;
pub mod keeper;
mod load;
pub mod lock;
pub mod manage;
pub mod off;
mod own_folder;
mod owners;
pub mod record;
pub mod refusal;
pub mod rights;
pub mod server;
pub mod set;
pub mod signature;
pub mod visible;
mod watcher;

/// The time, in milliseconds since the Unix epoch. An argument: this crate has no clock of its own.
pub type Clock = fn() -> i64;
