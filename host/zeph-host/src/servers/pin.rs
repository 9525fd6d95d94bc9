//! The pins of servers in `zeph.lock`: what was accepted stays, what is new is pinned, what differs is off.

use std::collections::BTreeSet;
use std::path::Path;

use zeph_config::Config;
use zeph_core::id::{Digest, ServerName};
use zeph_plugins::lock::Lock;
use zeph_plugins::server::{
    self, LockedServer, SERVER_DEFINITIONS_BYTES_MAX, ServerDefinitions, ServerSight, own_name,
};

use super::offered;
use super::opener::LaunchPlan;
use super::set::ChangedServer;

/// How a running server compares with its pin.
#[derive(Debug)]
pub(crate) enum Sight {
    /// It is what was accepted.
    Accepted {
        /// The digest of what was accepted of it.
        digest: Digest,
        /// Its own names of all tools that were accepted, whether it lists them now or not.
        tools: BTreeSet<String>,
    },
    /// It is not.
    Changed(Box<ChangedServer>),
}

/// A server as it would be pinned.
pub(crate) fn server(
    name: &ServerName,
    plan: &LaunchPlan,
    definitions: ServerDefinitions,
    now_ms: i64,
) -> LockedServer {
    LockedServer {
        name: name.clone(),
        launch: plan.launch.clone(),
        install: plan.install.clone(),
        accepted_at_ms: now_ms,
        digest: definitions.digest(),
        definitions,
    }
}

/// What was accepted to run; none when nothing was accepted yet.
///
/// Errors: why that cannot be said, in one line.
pub(crate) fn accepted_launch(
    lock: Option<&Path>,
    name: &ServerName,
) -> Result<Option<LaunchPlan>, String> {
    let lock = Lock::read(place_of(lock)?).map_err(|error| error.told())?;
    Ok(lock.server(name).map(|server| LaunchPlan {
        launch: server.launch.clone(),
        install: server.install.clone(),
    }))
}

/// The difference between what would run and what was accepted, before it runs; none when there is none, or when nothing was accepted yet.
///
/// Errors: why no server can be compared, in one line.
pub(crate) fn of_launch(
    lock: Option<&Path>,
    name: &ServerName,
    plan: &LaunchPlan,
) -> Result<Option<ChangedServer>, String> {
    let lock = Lock::read(place_of(lock)?).map_err(|error| error.told())?;
    let Some(old) = lock.server(name) else {
        return Ok(None);
    };
    let new = LockedServer {
        launch: plan.launch.clone(),
        install: plan.install.clone(),
        ..old.clone()
    };
    Ok((!old.is_same(&new)).then(|| ChangedServer {
        old: old.clone(),
        new,
    }))
}

/// Whether `server` is what stands in the lock.
///
/// Errors: why that cannot be said, in one line.
pub(crate) fn is_accepted(lock: Option<&Path>, server: &LockedServer) -> Result<bool, String> {
    let lock = Lock::read(place_of(lock)?).map_err(|error| error.told())?;
    Ok(lock
        .server(&server.name)
        .is_some_and(|accepted| accepted.is_same(server)))
}

/// Compares a running server with its pin, and pins it when it is new.
///
/// Errors: why it cannot be used, in one line.
pub(crate) fn look(lock: Option<&Path>, now: LockedServer) -> Result<Sight, String> {
    let n_bytes = now.definitions.n_bytes();
    if n_bytes > SERVER_DEFINITIONS_BYTES_MAX {
        return Err(format!(
            "its definitions have {n_bytes} bytes; the limit is {SERVER_DEFINITIONS_BYTES_MAX}"
        ));
    }
    let lock = place_of(lock)?;
    let sight = server::look(lock, &now).map_err(|error| error.told())?;
    if let ServerSight::Changed(old) = sight {
        return Ok(Sight::Changed(Box::new(ChangedServer {
            old: *old,
            new: now,
        })));
    }
    let pinned = Lock::read(lock).map_err(|error| error.told())?;
    let accepted = pinned.server(&now.name).unwrap_or(&now);
    let tools = accepted.definitions.tools().iter();
    Ok(Sight::Accepted {
        digest: accepted.digest,
        tools: tools.map(|tool| own_name(tool).to_owned()).collect(),
    })
}

/// What the configuration says of tools that accepted servers do not have, one sentence each. A server that was never accepted is not known,
/// and neither is any where the lock cannot be read.
pub(crate) fn idle_entries(config: &Config) -> Vec<String> {
    let lock = config.mcp_lock.as_deref().map(Lock::read);
    let Some(Ok(lock)) = lock else {
        return Vec::new();
    };
    let enabled = config.mcp_servers.iter().filter(|(_, it)| !it.disabled);
    let idle = enabled.flat_map(|(name, server)| {
        let accepted = lock.server(name).map(|it| it.definitions.tools());
        let tools = accepted.map(|tools| tools.iter().map(own_name).collect::<Vec<_>>());
        let idle = tools.map(|tools| offered::idle_entries(name, server, &tools));
        let idle = idle.unwrap_or_default().into_iter();
        idle.map(move |problem| format!("MCP server `{name}`: {problem}"))
    });
    idle.collect()
}

/// Does what reads and writes files on a thread that may block.
///
/// Errors: those of `work`.
pub(crate) async fn blocking<T: Send + 'static>(
    work: impl FnOnce() -> Result<T, String> + Send + 'static,
) -> Result<T, String> {
    let done = tokio::task::spawn_blocking(work).await;
    done.unwrap_or_else(|error| {
        // Not begun when the host ended: nobody is left to whom that is news.
        if error.is_panic() {
            tracing::error!(%error, "a pin could not be looked at");
        }
        Err("the host failed while it looked at the pin".to_owned())
    })
}

fn place_of(lock: Option<&Path>) -> Result<&Path, String> {
    lock.ok_or_else(|| {
        "there is no place to pin it: set `HOME`, or name a configuration file with `--config`"
            .to_owned()
    })
}
