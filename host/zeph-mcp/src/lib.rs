//! The Model Context Protocol: tools and results in its terms, the HTTP endpoint and who may use it, and
//! connections to the servers of others.
//!
//! The room knows the protocol and no other room of the host: what makes the calls is `zeph-host`, which puts the two together in
//! its door `serve`.

pub mod caller;
pub mod client;
pub mod clients;
pub mod door;
pub mod holdings;
pub mod http;
pub mod metrics;
pub mod names;
mod passing;
pub mod rate;
mod readable;
mod refusal;
pub mod result;
pub mod stdio;
pub mod subset;
pub mod token;
pub mod tool;
