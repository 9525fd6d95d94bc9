//! The vocabulary of all crates of zeph-host, and the decisions that depend on values only.
//!
//! In reading order: who and what (`id`, `principal`, `call`, `command`, `tool`, its `schema`, `server`, `catalog`), how a request becomes a checked call
//! (`argument`), what may be accessed (`capability`, and in it the hosts of the `network` and the arguments of a `program`), what a plugin requests and was granted (`manifest`, `grant`), whether a
//! call may run (`policy`), questions of tools to the user (`inquiry`), how long an agreement lasts (`lifetime`), its output (`execution`, `output`), how failures are reported
//! (`category`, `failure`, `exit`), who vouches for plugins (`signer`), how untrusted text is shown (`text`), patterns over paths (`globs`), where git's configuration says that hooks are (`git_config`), directories that calls fill (`draft`), and the user that tools work as (`user`). Nothing here accesses a disk, a clock, a socket or a process.

pub mod anomaly;
pub mod argument;
pub mod call;
pub mod capability;
pub mod catalog;
pub mod category;
pub mod command;
pub mod draft;
pub mod execution;
pub mod exit;
pub mod failure;
pub mod git_config;
pub mod globs;
pub mod grant;
pub mod id;
pub mod inquiry;
pub mod lifetime;
pub mod limit;
pub mod manifest;
pub mod nearest;
pub mod network;
pub mod obeyed;
pub mod output;
pub mod path;
pub mod policy;
pub mod principal;
pub mod program;
pub mod redact;
pub mod schema;
pub mod secret;
pub mod server;
pub mod signer;
pub mod text;
pub mod tool;
pub mod user;
