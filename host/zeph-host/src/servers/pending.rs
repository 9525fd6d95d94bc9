//! What a wrapped server is now, when it is not what was accepted. It stands in no configuration, so `mcp approve` cannot start it to look: the
//! process that wraps it keeps what it saw, in a lock file with this one server.

use std::path::PathBuf;
use std::{fs, io};

use zeph_config::Config;
use zeph_core::id::ServerName;
use zeph_plugins::lock::Lock;
use zeph_plugins::server;

use super::set::ChangedServer;

/// Keeps what `changed` is now. Blocks.
///
/// Errors: why it cannot be kept, in one line.
pub(crate) fn keep(config: &Config, changed: &ChangedServer) -> Result<(), String> {
    let place = place(config, &changed.new.name).ok_or("there is no directory for it")?;
    forget(config, &changed.new.name);
    let folder = place.parent().unwrap_or(&place);
    fs::create_dir_all(folder).map_err(|error| error.to_string())?;
    let kept = server::look(&place, &changed.new);
    kept.map(drop).map_err(|error| error.to_string())
}

/// Both sides of the difference that was kept; none when there is none, or when it was accepted. Blocks.
pub(crate) fn of(config: &Config, name: &ServerName) -> Option<ChangedServer> {
    let accepted = Lock::read(config.mcp_lock.as_deref()?).ok()?;
    let kept = Lock::read(&place(config, name)?).ok()?;
    let (old, new) = (accepted.server(name)?, kept.server(name)?);
    (!old.is_same(new)).then(|| ChangedServer {
        old: old.clone(),
        new: new.clone(),
    })
}

/// Keeps it no more. Blocks.
pub(crate) fn forget(config: &Config, name: &ServerName) {
    let removed = place(config, name).map(fs::remove_file);
    match removed {
        Some(Err(error)) if error.kind() != io::ErrorKind::NotFound => {
            tracing::warn!(%error, server = %name, "what a server is now is kept although it is not needed");
        }
        _ => {}
    }
}

fn place(config: &Config, name: &ServerName) -> Option<PathBuf> {
    let homes = config.mcp_homes.as_ref()?;
    Some(
        homes
            .with_file_name("changed-servers")
            .join(format!("{name}.lock")),
    )
}
