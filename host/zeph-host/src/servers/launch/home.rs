//! The private home of a server: its own, kept between its runs, seen by nobody else's programs.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use tempfile::TempDir;
use zeph_config::Config;
use zeph_core::id::ServerName;
use zeph_core::user::run_as;

use super::{LaunchError, private_directory};

/// Variables that name a place in the home, and the place. The bytecode of Python is not among them: what a server could write there would
/// run instead of what is installed.
const PLACES: [(&str, &str); 8] = [
    ("GOCACHE", ".cache/go-build"),
    ("PIP_CACHE_DIR", ".cache/pip"),
    ("UV_CACHE_DIR", ".cache/uv"),
    ("XDG_CACHE_HOME", ".cache"),
    ("XDG_CONFIG_HOME", ".config"),
    ("XDG_DATA_HOME", ".local/share"),
    ("XDG_STATE_HOME", ".local/state"),
    ("npm_config_cache", ".cache/npm"),
];

/// The private home of one server.
#[derive(Debug)]
pub(super) struct ServerHome {
    path: PathBuf,
    /// Removed with the server, where there is no place to keep it.
    _temporary: Option<TempDir>,
}

impl ServerHome {
    /// The home of a server, made when missing.
    ///
    /// Errors: it cannot be made.
    pub(super) fn open(config: &Config, name: &ServerName) -> Result<Self, LaunchError> {
        let failed = |path: &Path, error| LaunchError::Directory {
            what: "the private home of the server",
            path: path.to_owned(),
            source: Arc::new(error),
        };
        let Some(homes) = &config.mcp_homes else {
            let make = || tempfile::Builder::new().prefix("zeph-server-").tempdir();
            let place = run_as(config.tool_user.as_ref(), make).flatten();
            let place = place.map_err(|error| failed(Path::new("/tmp"), error))?;
            let path = place.path().canonicalize();
            return Ok(Self {
                path: path.map_err(|error| failed(place.path(), error))?,
                _temporary: Some(place),
            });
        };
        let path = homes.join(name.as_str());
        let made = private_directory(&path, config.tool_user.as_ref());
        Ok(Self {
            path: made.map_err(|error| failed(&path, error))?,
            _temporary: None,
        })
    }

    /// Where it is.
    pub(super) fn path(&self) -> &Path {
        &self.path
    }

    /// Has `variables` name it, but for those that the operator set.
    pub(super) fn point_to(&self, variables: &mut BTreeMap<String, String>) {
        let text = |path: &Path| path.to_string_lossy().into_owned();
        let places = PLACES
            .iter()
            .map(|(name, place)| (*name, self.path.join(place)));
        for (name, path) in places.chain([("HOME", self.path.clone())]) {
            let known = variables.entry(name.to_owned());
            known.or_insert_with(|| text(&path));
        }
    }
}
