//! How a client's file starts each of its servers: through this program, or without it.

use serde_json::Value;

use super::Client;
use super::entry::is_host;
use super::error::MergeError;
use super::wrap::Inner;

/// A server in a client's file.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct StartedServer {
    /// Its name there.
    pub name: String,
    /// How it is started.
    pub start: ServerStart,
}

/// How a client starts a server.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum ServerStart {
    /// By `zeph-host wrap`.
    Wrapped {
        /// The name that it is given (`--name`).
        name: Option<String>,
        /// The command behind `--`; empty of a server that is reached by an address.
        command: Vec<String>,
        /// That address.
        url: Option<String>,
    },
    /// It is `zeph-host` itself.
    Host,
    /// As a program of its own, without this one.
    Bare,
    /// Not at all: it is reached by an address.
    Remote,
}

impl Client {
    /// How each server of the file is started, in its order.
    ///
    /// Errors: `text` is not in the client's format, has something else where the servers should be, or names one twice.
    pub fn started(&self, text: &str) -> Result<Vec<StartedServer>, MergeError> {
        let entries = self.entries(text)?.into_iter();
        let started = entries.map(|(name, entry)| StartedServer {
            name,
            start: start(&entry),
        });
        Ok(started.collect())
    }
}

fn start(entry: &Value) -> ServerStart {
    if let Some(inner) = Inner::of(entry) {
        return inner.start();
    }
    match entry.get("command").and_then(Value::as_str) {
        Some(command) if is_host(command) => ServerStart::Host,
        Some(_) => ServerStart::Bare,
        None => ServerStart::Remote,
    }
}
