//! The native shell: what a command line will run, the jail it runs in, how it is run and ended.
//!
//! It is the only crate that spawns processes. It makes no decisions: whether a call may run was decided before, and the
//! proof of it is consumed here.

pub mod analysis;
pub mod background;
pub mod doctor;
pub mod environment;
pub mod held_object;
pub mod hooks;
pub mod jail;
mod leading;
#[cfg(test)]
#[path = "../../../tests/left_out.rs"]
mod left_out;
pub mod plain;
mod platform;
pub mod program;
pub mod run;
pub mod service;
pub mod shell;
mod spawn;
pub mod tools;
pub mod transaction;
pub mod turn;
