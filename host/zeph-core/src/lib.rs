//! The vocabulary every room of zeph-host speaks, and the decisions that need nothing but values.
//!
//! In reading order: who and what (`id`, `principal`, `call`, `command`, `tool`, `catalog`), how a request becomes a checked call
//! (`argument`), what may be touched (`capability`), what a plugin wants and was granted (`manifest`, `grant`), whether a call
//! may run (`policy`), what a tool asks the user (`inquiry`), what comes out (`execution`, `output`),
//! how failures are told (`category`, `failure`, `exit`) and how text of strangers is shown (`text`). Nothing here touches a disk, a clock, a socket or a process.

pub mod argument;
pub mod call;
pub mod capability;
pub mod catalog;
pub mod category;
pub mod command;
pub mod execution;
pub mod exit;
pub mod failure;
pub mod grant;
pub mod id;
pub mod inquiry;
pub mod limit;
pub mod manifest;
pub mod nearest;
pub mod obeyed;
pub mod output;
pub mod policy;
pub mod principal;
pub mod text;
pub mod tool;
