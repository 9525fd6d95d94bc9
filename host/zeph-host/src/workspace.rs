//! The files and commands of a replica: which calls need them, and what becomes of those where they are not.
//!
//! Several servers behind a load balancer share what the store has, and not what a machine has: files (unless the operator says that all have the
//! same), commands in the background, the directory of a conversation, programs of MCP servers. A call that needs those where they are not
//! is refused before it is decided, so that it never works on other files than the call before it.

use std::sync::Arc;

use zeph_config::{Config, Workspace};
use zeph_core::category::{ErrorCategory, ErrorPhase};
use zeph_core::failure::ToolFailure;

use crate::process;
use crate::resolve::ResolvedRequest;
use crate::session::Session;
use crate::work::Work;

/// What a session has of files and commands.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub(crate) enum SessionWorkspace {
    /// Those of this machine.
    #[default]
    Here,
    /// None: this server is there for other calls.
    Nowhere,
    /// Those of the replica where its conversation began.
    Elsewhere {
        /// Its name.
        replica: Arc<str>,
        /// Whether its files are here as well.
        shares_files: bool,
    },
}

/// What the files of this machine are called where several hosts share a store: hosts that say the same have the same.
pub(crate) fn name(config: &Config) -> String {
    match (config.serve.workspace, &config.serve.replica) {
        (Workspace::Shared, _) => "shared".to_owned(),
        (Workspace::None, _) => "none".to_owned(),
        (Workspace::Own, Some(replica)) => format!("replica:{replica}"),
        (Workspace::Own, None) => format!("machine:{}", process::machine()),
    }
}

/// The same with the directories that tools work in: servers that say the same make a call in the same files.
pub(crate) fn files(config: &Config) -> String {
    let roots = config.file.roots.iter();
    roots.fold(name(config), |name, root| {
        format!("{name}\n{}", root.path.display())
    })
}

/// What a call needs of a machine.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Need {
    Nothing,
    Files,
    /// Processes, and what they left behind.
    Processes,
}

/// Whether a call of `session` finds here what it needs.
///
/// Errors: `policy_blocked`, with the key that decides.
pub(crate) fn check(session: &Session, resolved: &ResolvedRequest) -> Result<(), ToolFailure> {
    let needs = needs(resolved);
    let what = match needs {
        Need::Nothing => return Ok(()),
        Need::Files => "files",
        Need::Processes => "commands and servers",
    };
    let tool = &resolved.call.tool.name;
    let message = match session.workspace() {
        SessionWorkspace::Here => return Ok(()),
        SessionWorkspace::Elsewhere {
            shares_files: true, ..
        } if needs == Need::Files => return Ok(()),
        SessionWorkspace::Nowhere => format!(
            "`{tool}` needs {what}, and this server has none (`mcp.serve.workspace = \"none\"`)"
        ),
        SessionWorkspace::Elsewhere {
            replica,
            shares_files,
        } => {
            let remedy = match shares_files {
                true => "have the load balancer route requests by the handle of their conversation",
                false => {
                    "have the load balancer route requests by the handle of their conversation, or give all replicas the same files and set `mcp.serve.workspace = \"shared\"`"
                }
            };
            format!(
                "`{tool}` needs the {what} of replica `{replica}`, where this conversation began; {remedy}, or begin another conversation"
            )
        }
    };
    let failure = ToolFailure::new(ErrorCategory::PolicyBlocked, ErrorPhase::Setup, message);
    Err(failure)
}

fn needs(resolved: &ResolvedRequest) -> Need {
    match &resolved.work {
        Work::Shell(_) => Need::Processes,
        Work::Mcp(work) if work.is_of_this_machine => Need::Processes,
        Work::Guest(_) => match &resolved.rights {
            Some(rights) if !rights.programs.patterns.is_empty() => Need::Files,
            Some(rights) if !rights.programs.directories.is_empty() => Need::Files,
            _ => Need::Nothing,
        },
        Work::Mcp(_) | Work::Builtin(_) | Work::Delegated(_) => Need::Nothing,
    }
}

#[cfg(test)]
mod tests {
    use zeph_config::Flags;

    use super::{files, name};
    use crate::traceless;

    #[test]
    fn servers_in_other_directories_have_other_files() {
        let folders = [tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap()];
        let [one, other] = folders
            .each_ref()
            .map(|folder| traceless::config(folder.path().to_owned(), Flags::default()));
        assert_eq!(name(&one), name(&other));
        assert_ne!(files(&one), files(&other));
        assert!(files(&one).starts_with(&name(&one)));
    }
}
