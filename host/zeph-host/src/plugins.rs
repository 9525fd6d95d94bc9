//! Plugins that strangers wrote: found in folders, pinned, granted, swapped, and kept apart from everything else.
//!
//! In reading order: `folder` (which files there are), `record` (what is known of them from before), `load` (from a file to a
//! plugin), `definitions` and `lock` (what was accepted, `zeph.lock`), `diff` (what changed since), `set` (which plugins are in
//! force, under which names), `owners` (to which plugin a name belongs), `keeper` with `watcher` and `event` (the task that keeps the
//! set in step), `rights` and `refusal` (what one call may touch, and what people can do when that is too little), `off` (and when a
//! plugin is not in force), `visible` (texts of strangers on a terminal),
//! `author` (projects for those who write plugins). Nothing here runs a guest: that is the engine's.

pub(crate) mod author;
pub(crate) mod definitions;
pub(crate) mod diff;
pub(crate) mod event;
pub(crate) mod folder;
pub(crate) mod keeper;
mod load;
pub(crate) mod lock;
pub(crate) mod manage;
pub(crate) mod off;
pub(crate) mod owners;
pub(crate) mod record;
pub(crate) mod refusal;
pub(crate) mod rights;
pub(crate) mod set;
pub(crate) mod visible;
mod watcher;
