//! The store through its public border: a suite over all databases, and what holds for one of them.

#![expect(clippy::unwrap_used, reason = "a test fails by panicking")]

mod audit_chain;
mod audit_file;
mod copy;
mod database;
mod postgres;
#[expect(
    clippy::disallowed_methods,
    reason = "a test starts the server it needs"
)]
mod server;
mod setup;
mod sqlite;
mod suite;
