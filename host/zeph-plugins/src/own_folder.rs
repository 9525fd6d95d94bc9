//! The folder of its own that a plugin of the program has in the cache directory, for what it can make anew at any time.
//!
//! It is no grant over anybody's files: no other tool sees it, and a tool that calls itself read-only may write there too.

use std::fs::DirBuilder;
use std::io;
use std::os::unix::fs::{DirBuilderExt as _, MetadataExt as _};
use std::path::{Path, PathBuf};
use std::sync::Arc;

use serde_json::{Map, Value, json};
use zeph_config::Config;
use zeph_core::category::{ErrorCategory, ErrorPhase};
use zeph_core::failure::ToolFailure;
use zeph_core::user::run_as;
use zeph_engine::CallGrant;

use super::set::{InForce, PluginOrigin};

/// The plugins of the program that keep something.
const KEEPERS: [&str; 1] = ["search"];

/// The grant with the folder, when the plugin has one: it is told where in its settings, as `cache`, beside
/// those of its section.
///
/// Errors: `server_error`, the folder cannot be opened.
pub(crate) fn given(
    grant: CallGrant,
    in_force: &InForce,
    config: &Config,
) -> Result<CallGrant, ToolFailure> {
    let name = in_force.good.plugin.id().0.as_str();
    let is_keeper = in_force.origin == PluginOrigin::Program && KEEPERS.contains(&name);
    let Some(cache) = config.cache_of_tools().filter(|_| is_keeper) else {
        return Ok(grant);
    };
    let place = cache.join(name);
    let opened = run_as(config.tool_user.as_ref(), || made(&place)).flatten();
    let opened = opened.map_err(|error| error.to_string());
    let opened = opened.and_then(|folder| {
        let fs = grant.fs.with_own(&folder);
        Ok((fs.map_err(|error| error.to_string())?, folder))
    });
    let (fs, folder) = opened.map_err(|problem| {
        tracing::error!(
            problem,
            plugin = name,
            "the folder of a plugin cannot be opened"
        );
        let message = format!(
            "the cache folder of `{name}` cannot be used; the log says why (`engine.cache_dir`)"
        );
        ToolFailure::new(ErrorCategory::ServerError, ErrorPhase::Setup, message)
    })?;
    let mut settings: Map<String, Value> =
        serde_json::from_str(&grant.settings).unwrap_or_default();
    settings.insert("cache".to_owned(), json!(folder));
    Ok(CallGrant {
        fs: Arc::new(fs),
        settings: Value::Object(settings).to_string().into(),
        ..grant
    })
}

/// The folder, readable for its user only.
///
/// Errors: it cannot be made; another user can change what lies in it.
fn made(folder: &Path) -> io::Result<PathBuf> {
    let mut builder = DirBuilder::new();
    builder.recursive(true).mode(0o700).create(folder)?;
    let folder = folder.canonicalize()?;
    let about = folder.symlink_metadata()?;
    let is_own = about.uid() == rustix::process::geteuid().as_raw();
    if is_own && about.mode() & 0o022 == 0 {
        return Ok(folder);
    }
    Err(io::Error::new(
        io::ErrorKind::PermissionDenied,
        format!(
            "`{}` is one that other users can change; remove it",
            folder.display()
        ),
    ))
}

#[cfg(test)]
mod tests {
    use std::fs::{self, Permissions};
    use std::os::unix::fs::PermissionsExt as _;

    use super::made;

    #[test]
    fn a_folder_that_others_can_change_is_not_used() {
        let root = tempfile::tempdir().unwrap();
        let folder = root.path().join("search");
        for (mode, is_used) in [(0o700, true), (0o755, true), (0o775, false), (0o777, false)] {
            made(&folder).unwrap();
            fs::set_permissions(&folder, Permissions::from_mode(mode)).unwrap();
            assert_eq!(made(&folder).is_ok(), is_used, "{mode:o}");
            fs::remove_dir(&folder).unwrap();
        }
    }
}
