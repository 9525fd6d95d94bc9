//! Arguments of `zeph-host plugin sync`, `bundle`, `outdated`, `update` and `search`.

use std::path::PathBuf;

use clap::{ArgAction, Args as ClapArgs, ValueEnum};

use super::{ConfirmedPlugin, Json};

/// Agreeing without being asked.
#[derive(Debug, Clone, Default, ClapArgs)]
pub(crate) struct Consent {
    /// Do not ask for confirmation, unless something has to be named with --accept
    #[arg(short, long)]
    pub(crate) yes: bool,
    /// With `--yes`, also accept what is unusual about a version; repeatable
    #[arg(long, value_name = "WHAT", action = ArgAction::Append, requires = "yes")]
    pub(crate) accept: Vec<AcceptedRisk>,
}

/// What is unusual about a version.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum AcceptedRisk {
    /// Another signer than the pinned one, or none.
    Signer,
    /// A lower version.
    Downgrade,
    /// A version that its publisher withdrew.
    Yanked,
    /// A version that no known signer signed, where `plugins.trust.unsigned` is "ask".
    Unsigned,
}

/// `zeph-host plugin approve`
#[derive(Debug, ClapArgs)]
pub(crate) struct PluginApprove {
    #[command(flatten)]
    pub(crate) plugin: ConfirmedPlugin,
    /// With `--yes`, also accept what is unusual about a version; repeatable
    #[arg(long, value_name = "WHAT", action = ArgAction::Append, requires = "yes")]
    pub(crate) accept: Vec<AcceptedRisk>,
}

/// `zeph-host plugin search`
#[derive(Debug, ClapArgs)]
pub(crate) struct PluginSearch {
    /// Words that the name, description or keywords contain
    #[arg(value_name = "WORD", required = true)]
    pub(crate) words: Vec<String>,
    #[command(flatten)]
    pub(crate) json: Json,
}

/// `zeph-host plugin sync`
#[derive(Debug, ClapArgs)]
pub(crate) struct PluginSync {
    /// Take everything from a bundle, and nothing from the network
    #[arg(long, value_name = "BUNDLE")]
    pub(crate) from: Option<PathBuf>,
    /// With --from, keep to the lock of the directory and ignore the lock in the bundle
    #[arg(long, requires = "from")]
    pub(crate) locked: bool,
    /// Remove plugins that are not in the lock
    #[arg(long)]
    pub(crate) prune: bool,
    /// Show what would be done, and do nothing
    #[arg(short = 'n', long)]
    pub(crate) dry_run: bool,
    #[command(flatten)]
    pub(crate) consent: Consent,
    #[command(flatten)]
    pub(crate) json: Json,
}

/// `zeph-host plugin bundle`
#[derive(Debug, ClapArgs)]
pub(crate) struct PluginBundle {
    /// The file to write
    #[arg(value_name = "FILE")]
    pub(crate) file: PathBuf,
    /// Replace the file if it exists
    #[arg(long)]
    pub(crate) force: bool,
    #[command(flatten)]
    pub(crate) json: Json,
}

/// `zeph-host plugin update`
#[derive(Debug, ClapArgs)]
pub(crate) struct PluginUpdate {
    /// The plugin
    #[arg(value_name = "NAME")]
    pub(crate) name: String,
    /// Version or tag to change to, also an older one [default: the newest]
    #[arg(long, value_name = "VERSION")]
    pub(crate) to: Option<String>,
    #[command(flatten)]
    pub(crate) consent: Consent,
    #[command(flatten)]
    pub(crate) json: Json,
}
