//! Which servers know the older revisions alone. They end at a request of the newer ones, or leave it unanswered, so that they would be
//! started twice, or waited for, with every start of the host. What is kept is of one command line and installation: another is asked again.

use std::path::{Path, PathBuf};
use std::{fs, io};

use serde_json::json;
use zeph_config::Config;
use zeph_core::id::ServerName;
use zeph_core::user::run_as;

use super::opener::LaunchPlan;

/// Whether it was noted of what `plan` runs.
pub(super) fn is_noted(config: &Config, name: &ServerName, plan: &LaunchPlan) -> bool {
    let Some(place) = place(config, name) else {
        return false;
    };
    let read = run_as(config.tool_user.as_ref(), || fs::read_to_string(place));
    read.flatten().is_ok_and(|noted| noted == mark(plan))
}

/// Notes it, or forgets it, with the rights of the user whose place it is.
///
/// Errors: of the file.
pub(super) fn note(
    config: &Config,
    name: &ServerName,
    plan: &LaunchPlan,
    is_older: bool,
) -> io::Result<()> {
    if !is_older {
        return forget(config, name);
    }
    let Some(place) = place(config, name) else {
        return Ok(());
    };
    let note = || write(&place, &mark(plan));
    run_as(config.tool_user.as_ref(), note).flatten()
}

/// Forgets it, whatever the plan.
///
/// Errors: of the file.
pub(super) fn forget(config: &Config, name: &ServerName) -> io::Result<()> {
    forget_note(config, place(config, name))
}

/// Removes a note that may not be there, with the rights of the user whose place it is.
///
/// Errors: of the file.
pub(super) fn forget_note(config: &Config, place: Option<PathBuf>) -> io::Result<()> {
    let Some(place) = place else { return Ok(()) };
    let remove = || match fs::remove_file(&place) {
        Err(error) if error.kind() != io::ErrorKind::NotFound => Err(error),
        _ => Ok(()),
    };
    run_as(config.tool_user.as_ref(), remove).flatten()
}

/// One that is read while it is written is of no plan.
fn write(place: &Path, mark: &str) -> io::Result<()> {
    if let Some(folder) = place.parent() {
        fs::create_dir_all(folder)?;
    }
    fs::write(place, mark)
}

/// What stands for a plan: arguments may be what others must not read.
fn mark(plan: &LaunchPlan) -> String {
    let text = json!([plan.launch, plan.install]).to_string();
    zeph_engine::digest(text.as_bytes()).to_string()
}

/// Beside the homes of the servers, where none of them can write.
fn place(config: &Config, name: &ServerName) -> Option<PathBuf> {
    let homes = config.mcp_homes.as_ref()?;
    Some(homes.with_file_name("older-servers").join(name.as_str()))
}
