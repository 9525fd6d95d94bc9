//! The Agent Client Protocol, version 1, as an agent speaks it: what editors send, what they are sent, and the connection between.
//!
//! In reading order: `rpc` (JSON-RPC messages and errors), `line` (bounded lines), `outbox` (what waits to be written), `connection`
//! (requests in both directions), then the messages: `content` (what prompts and answers are made of), `agent` (the methods of an
//! agent), `update` (what a session tells), `client` (the methods of a client). Nothing here knows what an agent does.
//!
//! Unknown fields are ignored, unknown notifications too; an unknown request is answered with [`rpc::METHOD_NOT_FOUND`].

pub mod agent;
pub mod client;
pub mod connection;
pub mod content;
pub mod line;
mod outbox;
pub mod rpc;
pub mod update;

/// The version of the protocol. A client that offers another one is offered this.
pub const PROTOCOL_VERSION: u16 = 1;
