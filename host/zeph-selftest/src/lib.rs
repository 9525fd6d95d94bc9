//! The self-test: hostile components in the product's engine and hostile commands in its jail, run on the user's own machine.
//!
//! It has an engine, a cache, a jail and directories of its own and does not read the user's configuration, plugins or grants. It
//! tries what the tests of the workspace try, shortened to what takes seconds.
//!
//! In reading order: `guests` (the components), `lab` (where they run), `tries` (what is tried of each), `files`, `calls` and `cache`
//! (what takes more than a single call), `egress` and `secrets` (the network), `jail` (commands).

mod cache;
mod calls;
mod egress;
mod files;
pub mod guests;
mod hosts;
mod jail;
mod lab;
mod secrets;
mod tries;

use std::io;
use std::path::{Path, PathBuf};
use std::pin::Pin;
use std::sync::Arc;
use std::time::{Duration, Instant};

use serde::Serialize;
use zeph_egress::CallExit;
use zeph_egress::exit::{ExitProxy, SecretValues};
use zeph_engine::{EngineError, HttpExit, LoadError};
use zeph_shell::jail::Outlets;

use self::lab::Lab;
use self::tries::Try;

/// A layer of isolation, and whether it holds.
#[derive(Debug, Clone, Serialize)]
pub struct Wall {
    /// Its name.
    pub name: &'static str,
    /// What was tried against it.
    pub tried: &'static str,
    /// The result.
    #[serde(flatten)]
    pub verdict: CheckResult,
    /// How long that took.
    #[serde(rename = "duration_ms", serialize_with = "as_ms")]
    pub duration: Duration,
}

/// The result of a check.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[serde(tag = "verdict", rename_all = "snake_case")]
pub enum CheckResult {
    /// Every attempt was stopped as expected.
    Holds,
    /// An attempt was not stopped.
    Broken {
        /// The attempt, and what happened instead.
        why: String,
    },
    /// The machine does not provide it.
    Unavailable {
        /// What is missing, and what to do about it if anything can be done.
        why: String,
    },
}

impl CheckResult {
    fn broken(why: impl Into<String>) -> Self {
        Self::Broken { why: why.into() }
    }

    fn unavailable(why: impl Into<String>) -> Self {
        Self::Unavailable { why: why.into() }
    }
}

/// The self-test itself could not run.
#[derive(Debug, thiserror::Error)]
pub enum SelftestError {
    /// The wasm engine.
    #[error("the engine cannot start")]
    Engine(#[source] EngineError),
    /// A directory for files to probe.
    #[error("a temporary directory cannot be made")]
    Directory(#[source] std::io::Error),
    /// The well-behaved component.
    #[error("a component that is in order cannot be loaded")]
    Load(#[source] LoadError),
}

type CheckFuture<'a> = Pin<Box<dyn Future<Output = CheckResult> + Send + 'a>>;

/// How a layer is checked.
enum How {
    /// One after the other; the first that is not stopped decides.
    Tries(&'static [Try]),
    /// In a way of its own.
    Own(for<'a> fn(&'a Lab) -> CheckFuture<'a>),
}

/// A row of the table of checks.
struct Probe {
    name: &'static str,
    tried: &'static str,
    how: How,
}

/// What is tried of the product that lies above this crate: it joins crates that do not know each other.
#[derive(Debug, Clone, Copy)]
pub struct ProductParts {
    /// The way out of a call, as the engine takes it.
    pub exit: fn(CallExit) -> Arc<dyn HttpExit>,
    /// The ways out of commands that an exit serves.
    pub outlets: fn(ExitProxy) -> Arc<dyn Outlets>,
    /// Stores a secret (name, value) in a folder, and gives what uses it.
    pub secrets: fn(&Path, &str, &str) -> io::Result<Arc<dyn SecretValues>>,
}

/// Checks every layer, and reports each result to `tell`.
///
/// Shape: `search_path` is where programs are looked for. Returns the layers in the order of the checks.
/// Errors: [`SelftestError`] if no check could run.
/// Limits: some seconds; every try has a limit of its own.
pub async fn run(
    search_path: &[PathBuf],
    parts: ProductParts,
    mut tell: impl FnMut(&Wall),
) -> Result<Vec<Wall>, SelftestError> {
    let lab = Lab::new(parts).await?;
    let mut walls = Vec::new();
    let probes = tries::PROBES.iter().chain(files::PROBES);
    for probe in probes
        .chain(egress::PROBES)
        .chain(secrets::PROBES)
        .chain(calls::PROBES)
        .chain(cache::PROBES)
    {
        let started = Instant::now();
        let wall = Wall {
            name: probe.name,
            tried: probe.tried,
            verdict: lab.verdict(&probe.how).await,
            duration: started.elapsed(),
        };
        tell(&wall);
        walls.push(wall);
    }
    let jail = jail::walls(search_path, &parts, |wall| {
        tell(&wall);
        walls.push(wall);
    });
    jail.await;
    Ok(walls)
}

fn as_ms<S: serde::Serializer>(duration: &Duration, serializer: S) -> Result<S::Ok, S::Error> {
    serializer.serialize_f64((duration.as_secs_f64() * 1e4).round() / 10.0)
}

#[cfg(test)]
mod tests;
