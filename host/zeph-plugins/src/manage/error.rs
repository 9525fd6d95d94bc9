//! Why a command about plugins cannot be carried out, and what to do about it.

use std::io;
use std::path::PathBuf;

use zeph_core::capability::Capability;
use zeph_core::failure::one_line;
use zeph_core::id::PluginId;
use zeph_core::manifest::Want;

use crate::folder::FILES_MAX;
use crate::lock::LockError;
use crate::visible::visible_line;

/// A directory of which no right is wanted is asked for without naming one.
fn shown(what: &Capability) -> String {
    let text = what.to_string();
    visible_line(text.strip_suffix(':').unwrap_or(&text))
}

/// Characters of a name that was typed, in a message.
const NAME_CHARS_MAX: usize = 80;

/// A command that was not carried out; nothing was changed.
#[derive(Debug, thiserror::Error)]
pub enum ManageError {
    /// No plugin of this name.
    #[error("no plugin is named `{}`{}", one_line(name, NAME_CHARS_MAX), meant(.near.as_deref()))]
    Unknown {
        /// As typed.
        name: String,
        /// What was probably meant.
        near: Option<String>,
    },
    /// It is part of the program.
    #[error("`{0}` is part of the host: it cannot be changed, disabled or removed")]
    FirstParty(PluginId),
    /// There are no folders.
    #[error(
        "plugins are switched off (`plugins.enabled`, `tools.enabled`), or there is no folder for them"
    )]
    Off,
    /// A folder that must not be used.
    #[error("the plugins in `{}` are not used: {problem}", folder.display())]
    Folder {
        /// Which.
        folder: PathBuf,
        /// Why.
        problem: String,
    },
    /// A folder with as many plugins as it may have.
    #[error("`{}` holds {FILES_MAX} plugins, which is the limit; nothing was added", .0.display())]
    Full(PathBuf),
    /// A folder that another command changes, and does not finish.
    #[error("another command is changing the plugins in `{}` and did not finish in time", .0.display())]
    Busy(PathBuf),
    /// The lock beside a folder.
    #[error(transparent)]
    Lock(#[from] LockError),
    /// A name that no plugin can have.
    #[error("`{}` cannot be the name of a plugin: 1 to 48 of `a-z 0-9 _ -`", one_line(.0, NAME_CHARS_MAX))]
    BadName(String),
    /// A name that the host's own plugin has.
    #[error("`{0}` is the name of a plugin of the host")]
    TakenByHost(PluginId),
    /// Another file has the name.
    #[error("there is a plugin `{name}` already, and it is another file: `{}`", file.display())]
    Exists {
        /// The name.
        name: PluginId,
        /// Its file.
        file: PathBuf,
    },
    /// Another file had the name when it was pinned.
    #[error("`{0}` was another file when it was accepted")]
    Pinned(PluginId),
    /// What was named cannot be read.
    #[error("`{}` cannot be read", path.display())]
    Read {
        /// Which.
        path: PathBuf,
        /// The system's reason.
        source: io::Error,
    },
    /// Not exactly one component in a directory.
    #[error("{problem}")]
    Source {
        /// Which and why.
        problem: String,
        /// What to do.
        hint: String,
    },
    /// The file is not a plugin.
    #[error("`{}` cannot be used: {reason}", path.display())]
    Bad {
        /// Which.
        path: PathBuf,
        /// Why, in one sentence.
        reason: String,
    },
    /// An invalid manifest file.
    #[error("`{}` is no manifest: {reason}", path.display())]
    Manifest {
        /// Which.
        path: PathBuf,
        /// Why, in one line.
        reason: String,
    },
    /// Files cannot be changed.
    #[error("cannot {operation} `{}`", path.display())]
    File {
        /// What was tried.
        operation: &'static str,
        /// On which file.
        path: PathBuf,
        /// The system's reason.
        source: io::Error,
    },
    /// It is not in a state for this.
    #[error("plugin `{name}` {state}")]
    State {
        /// Which.
        name: PluginId,
        /// What is in the way.
        state: String,
        /// What to do.
        hint: Option<String>,
    },
    /// Text that selects nothing.
    #[error("{0}")]
    BadSelector(String),
    /// More than the manifest wants.
    #[error(
        "plugin `{name}` does not request {}, so it cannot be granted",
        shown(what)
    )]
    NotWanted {
        /// Which plugin.
        name: PluginId,
        /// What was asked for.
        what: Box<Capability>,
        /// What it wants instead.
        wants: Vec<Want>,
    },
    /// Nothing fits what was named.
    #[error("plugin `{name}` was not granted that; nothing was revoked")]
    NothingToRevoke {
        /// Which.
        name: PluginId,
        /// What there is, one line each.
        grants: Vec<String>,
    },
    /// Another decision was made in the meantime.
    #[error("what was accepted of plugin `{0}` changed in the meantime; nothing was done")]
    Meanwhile(PluginId),
    /// Grants would be forgotten at once.
    #[error("the store is in memory only (`store.path`): a grant would be forgotten at once")]
    NoStore,
}

fn meant(near: Option<&str>) -> String {
    near.map(|near| format!("; did you mean `{near}`?"))
        .unwrap_or_default()
}

impl ManageError {
    /// Whether what was typed is at fault.
    pub fn is_usage(&self) -> bool {
        matches!(
            self,
            Self::Unknown { .. }
                | Self::FirstParty(_)
                | Self::BadName(_)
                | Self::TakenByHost(_)
                | Self::Read { .. }
                | Self::Source { .. }
                | Self::Manifest { .. }
                | Self::BadSelector(_)
                | Self::NotWanted { .. }
        )
    }

    /// What to do, one sentence each.
    pub fn hints(&self) -> Vec<String> {
        match self {
            Self::Unknown { .. } => vec!["`zeph-host plugin` lists the names".to_owned()],
            Self::FirstParty(name) => vec![format!(
                "`zeph-host plugin revoke {name} --all` takes what it may access, and `zeph-host plugin info {name}` shows it"
            )],
            Self::Off => {
                vec!["`zeph-host config show --origin` says where that was set".to_owned()]
            }
            Self::Full(_) => vec!["`zeph-host plugin remove NAME` makes room".to_owned()],
            Self::Busy(_) => vec!["try again when it has ended".to_owned()],
            Self::Lock(error) => vec![error.hint().to_owned()],
            Self::BadName(_) => vec!["give it one with `--name`".to_owned()],
            Self::TakenByHost(_) => vec!["give it another with `--name`".to_owned()],
            Self::Exists { name, .. } | Self::Pinned(name) => vec![format!(
                "`--replace` puts the new file in its place, off until `zeph-host plugin approve {name}`; \
                 or remove it with `zeph-host plugin remove {name}`, or give this one another name with `--name`"
            )],
            Self::Source { hint, .. } => vec![hint.clone()],
            Self::State { hint, .. } => hint.iter().cloned().collect(),
            Self::NotWanted { wants, .. } if wants.is_empty() => {
                vec!["it requests nothing".to_owned()]
            }
            Self::NotWanted { wants, .. } => wants
                .iter()
                .map(|want| format!("it requests {}", visible_line(&want.capability.to_string())))
                .collect(),
            Self::NothingToRevoke { grants, .. } if grants.is_empty() => {
                vec!["it was granted nothing".to_owned()]
            }
            Self::NothingToRevoke { grants, .. } => grants
                .iter()
                .map(|grant| format!("there is {grant}"))
                .collect(),
            Self::Meanwhile(name) => {
                vec![format!("look again with `zeph-host plugin approve {name}`")]
            }
            _ => Vec::new(),
        }
    }
}
