//! The names that `mcp-config --wrap` gave to servers, each with what it starts, in a lock file with this one server: `zeph.lock` does not know a
//! server before it ran. Nothing but names follows from it: what may run is pinned by the process that wraps it.

use std::collections::BTreeMap;
use std::path::PathBuf;
use std::{fs, io};

use zeph_config::Config;
use zeph_core::id::ServerName;
use zeph_plugins::lock::Lock;
use zeph_plugins::server::{self, LockedServer, ServerDefinitions, ServerSight};

/// Keeps a name for what `launch` starts, unless it is kept already. Blocks.
///
/// Errors: why it cannot be kept, in one line.
pub(crate) fn keep(
    config: &Config,
    name: &ServerName,
    launch: &[String],
    now_ms: i64,
) -> Result<(), String> {
    // Without a directory no server has a home either: nothing is mixed up.
    let Some(place) = place(config, name) else {
        return Ok(());
    };
    if of(config, name).is_some() {
        return Ok(());
    }
    let folder = place.parent().unwrap_or(&place);
    fs::create_dir_all(folder).map_err(|error| error.to_string())?;
    let definitions = ServerDefinitions::default();
    let reserved = LockedServer {
        name: name.clone(),
        launch: launch.to_vec(),
        install: BTreeMap::new(),
        accepted_at_ms: now_ms,
        digest: definitions.digest(),
        definitions,
    };
    match server::look(&place, &reserved).map_err(|error| error.to_string())? {
        ServerSight::Pinned | ServerSight::Same => Ok(()),
        ServerSight::Changed(_) => Err("another command has just given it away".to_owned()),
    }
}

/// Gives a name back; the servers that ran under it keep it. Blocks.
///
/// Errors: why it cannot be given back, in one line.
pub(crate) fn release(config: &Config, name: &ServerName) -> Result<(), String> {
    let Some(place) = place(config, name) else {
        return Ok(());
    };
    match fs::remove_file(place) {
        Err(error) if error.kind() != io::ErrorKind::NotFound => Err(error.to_string()),
        _ => Ok(()),
    }
}

/// What a name was given for. Blocks.
pub(crate) fn of(config: &Config, name: &ServerName) -> Option<Vec<String>> {
    let kept = Lock::read(&place(config, name)?).ok()?;
    Some(kept.server(name)?.launch.clone())
}

fn place(config: &Config, name: &ServerName) -> Option<PathBuf> {
    let homes = config.mcp_homes.as_ref()?;
    Some(
        homes
            .with_file_name("wrapped-servers")
            .join(format!("{name}.lock")),
    )
}
