//! What stood around each wrapped server when it was last started. `mcp list` starts none of them, and which layers they get is decided
//! by the options of the clients that do, so it tells what was so and not what should be.

use std::path::{Path, PathBuf};
use std::{fs, io};

use serde::{Deserialize, Serialize};
use zeph_config::Config;
use zeph_core::id::ServerName;
use zeph_core::user::run_as;

use super::older;

/// Most bytes of a record.
const BYTES_MAX: u64 = 16 * 1024;

/// How a server was last started.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct LastStart {
    /// How much of the jail stood around it, in a word: a `JailLabel`, or `remote`.
    pub(crate) walls: String,
    /// The layers that did not, one sentence each.
    pub(crate) missing_layers: Vec<String>,
}

impl LastStart {
    /// The last start of a server; none that is known.
    pub(crate) fn of(config: &Config, name: &ServerName) -> Option<Self> {
        let place = place(config, name)?;
        let read = run_as(config.tool_user.as_ref(), || read(&place));
        serde_json::from_slice(&read.ok().flatten()?).ok()
    }

    /// Forgets it.
    ///
    /// Errors: of the file.
    pub(super) fn forget(config: &Config, name: &ServerName) -> io::Result<()> {
        older::forget_note(config, place(config, name))
    }

    /// Keeps it, with the rights of the user whose place it is.
    ///
    /// Errors: of the file.
    pub(super) fn keep(&self, config: &Config, name: &ServerName) -> io::Result<()> {
        let Some(place) = place(config, name) else {
            return Ok(());
        };
        let record = serde_json::to_vec(self)?;
        let keep = || match read(&place) {
            Some(kept) if kept == record => Ok(()),
            _ => write(&place, &record),
        };
        run_as(config.tool_user.as_ref(), keep).flatten()
    }
}

fn read(place: &Path) -> Option<Vec<u8>> {
    let about = fs::symlink_metadata(place).ok()?;
    let is_record = about.is_file() && about.len() <= BYTES_MAX;
    is_record.then(|| fs::read(place).ok())?
}

/// One that is read while it is written is none.
fn write(place: &Path, record: &[u8]) -> io::Result<()> {
    if let Some(folder) = place.parent() {
        fs::create_dir_all(folder)?;
    }
    fs::write(place, record)
}

/// Beside the homes of the servers, where none of them can write.
fn place(config: &Config, name: &ServerName) -> Option<PathBuf> {
    let homes = config.mcp_homes.as_ref()?;
    Some(homes.with_file_name("server-starts").join(name.as_str()))
}
