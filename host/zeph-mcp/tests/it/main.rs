//! The endpoint over real connections, with a handler of the tests behind it.

#![expect(clippy::unwrap_used, reason = "a test fails by panicking")]

mod client;
mod connections;
mod ending;
mod login;
mod messages;
mod names;
mod oauth;
mod server;
mod sessions;
mod tokens;
mod wire;
