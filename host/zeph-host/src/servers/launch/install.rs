//! Programs that have to be installed before they run.

use std::path::PathBuf;

use serde::{Deserialize, Serialize};
use zeph_config::{CommandServer, Config};
use zeph_core::id::ServerName;

use super::{LaunchError, LauncherState};

/// What was installed for a server: pinned, so that other bytes need the approval of the operator.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct InstallPin {
    /// The package that has the program, as its registry calls it.
    pub(crate) package: String,
    /// The version that was chosen.
    pub(crate) version: String,
    /// A digest over all that was installed, with its dependencies, as `sha256:` and 64 hexadecimal digits.
    pub(crate) integrity: String,
}

/// A program that is ready to run.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct ReadyProgram {
    /// A bare name or an absolute path.
    pub(super) program: String,
    /// Its arguments.
    pub(super) arguments: Vec<String>,
    /// What was installed for it, to be read.
    pub(super) directories: Vec<PathBuf>,
    /// What is pinned of that; none where nothing had to be installed.
    pub(super) pin: Option<InstallPin>,
}

/// Installs programs.
#[derive(Debug)]
pub(super) struct Installer {}

impl Installer {
    pub(super) fn new(_config: &Config) -> Self {
        Self {}
    }

    /// The program of a server, installed if it has to be.
    ///
    /// Errors: [`LaunchError`].
    pub(super) async fn ready(
        &self,
        _state: &LauncherState,
        _name: &ServerName,
        server: &CommandServer,
        _version: Option<&InstallPin>,
    ) -> Result<ReadyProgram, LaunchError> {
        Ok(ReadyProgram {
            program: server.program.clone(),
            arguments: server.arguments.clone(),
            directories: Vec::new(),
            pin: None,
        })
    }
}
