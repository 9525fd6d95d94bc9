//! `zeph-host call FILE.wasm TOOL …`: calls a component without installing it. Nothing is pinned or granted.
//!
//! For one process it is the only file of a folder of plugins that is made for it, so what is checked is what is checked of any.

use std::os::unix::fs::symlink;
use std::path::{Path, PathBuf};

use tempfile::TempDir;
use zeph_config::{Config, PLUGINS_FOLDER};
use zeph_core::id::PluginId;
use zeph_plugins::manage::{ManageError, names, source};
use zeph_plugins::record::Records;
use zeph_plugins::refusal::quoted;
use zeph_plugins::set::{PluginStanding, Status};

use crate::cli::context::Context;
use crate::cli::error::CliError;
use crate::host::Host;

/// A component that is called without being installed.
pub(super) struct Loose {
    name: PluginId,
    /// Absolute.
    file: PathBuf,
    /// What the host takes for the file.
    link: PathBuf,
    records: Records,
    _dir: TempDir,
}

/// Whether what was typed in the place of a tool is a file: no tool has such a name.
pub(super) fn is_file(typed: &str) -> bool {
    typed.contains('/')
        || Path::new(typed)
            .extension()
            .is_some_and(|end| end == "wasm")
}

impl Loose {
    /// Takes the component that `typed` names for the only plugin of `config`.
    ///
    /// Errors: `Read` when it cannot be read; `Off` when plugins are.
    pub(super) fn new(
        context: &Context,
        config: &mut Config,
        typed: &str,
    ) -> Result<Self, CliError> {
        if !config.tools_enabled || config.plugins.folders.is_empty() {
            return Err(ManageError::Off.into());
        }
        let from = context.surroundings.working_directory.join(typed);
        let found = source::component(&from)?;
        let cannot_read = |source| ManageError::Read {
            path: found.file.clone(),
            source,
        };
        let file = found.file.canonicalize().map_err(cannot_read)?;
        // Its name is only heard here, so one that cannot be a plugin's is no fault.
        let name = source::name(None, &found, &context.first_party())
            .unwrap_or_else(|_| PluginId("component".to_owned()));
        let no_place =
            |error| CliError::internal("there is no place for a temporary folder").because(error);
        let dir = tempfile::tempdir().map_err(no_place)?;
        let folder = dir.path().join(PLUGINS_FOLDER);
        let link = folder.join(format!("{name}.wasm"));
        let made = std::fs::create_dir(&folder).and_then(|()| symlink(&file, &link));
        made.map_err(no_place)?;
        (config.plugins.folders, config.plugins.n_typed) = (vec![folder], 0);
        Ok(Self {
            name,
            file,
            link,
            records: Records::new(config.engine.cache_dir.as_deref()),
            _dir: dir,
        })
    }

    /// How the program would be called for a command that needs the component as a plugin.
    pub(super) fn program(&self, context: &Context) -> String {
        let program = context.program();
        let file = quoted(&self.file.to_string_lossy());
        format!("{program} plugin add {file} && {program}")
    }

    /// The name under which `host` offers the component's tool `own`.
    ///
    /// Errors: that it is no plugin, or has no such tool.
    pub(super) async fn tool(&self, host: &Host, own: Option<&str>) -> Result<String, CliError> {
        host.settled().await;
        let set = host.plugins();
        let standing = names::standing(&set, &self.name.0, &[])?;
        if let Status::Quarantined(reason) = &standing.status {
            let error = ManageError::Bad {
                path: self.file.clone(),
                reason: reason.clone(),
            };
            let file = quoted(&self.file.to_string_lossy());
            return Err(
                CliError::from(error).hint(format!("`zeph-host plugin check {file}` says more"))
            );
        }
        let offered = own.and_then(|own| offered(standing, own));
        offered.ok_or_else(|| self.no_tool(standing, own))
    }

    fn no_tool(&self, standing: &PluginStanding, own: Option<&str>) -> CliError {
        let tools = standing.good.iter().flat_map(|good| good.plugin.tools());
        let names: Vec<&str> = tools.map(|tool| tool.name.as_str()).collect();
        let file = self.file.display();
        let error = match own {
            Some(own) => {
                let own = zeph_core::failure::one_line(own, 80);
                CliError::user(format!("`{file}` has no tool `{own}`"))
            }
            None => CliError::user(format!("name the tool of `{file}` to call")),
        };
        match names.is_empty() {
            true => error.hint("it offers no tools"),
            false => error.hint(format!("it has {}", names.join(", "))),
        }
    }
}

impl Drop for Loose {
    fn drop(&mut self) {
        // What was found out is kept by the path, which nobody has again.
        self.records.forget(&self.link);
    }
}

fn offered(standing: &PluginStanding, own: &str) -> Option<String> {
    let good = standing.good.as_ref()?;
    let mut tools = good.plugin.tools().iter();
    let idx = tools.position(|tool| tool.name.as_str() == own)?;
    standing.tools.get(idx).map(ToString::to_string)
}
