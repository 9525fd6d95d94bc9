//! Arguments of the commands that read records of calls: `plugin suggest`, `policy suggest`, `replay`, and `grants`.

use std::path::PathBuf;

use clap::Args as ClapArgs;
use zeph_core::id::CallPrefix;

use super::Json;
use crate::cli::help::{
    GRANTS_EXAMPLES, GRANTS_LONG, PLUGIN_SUGGEST_EXAMPLES, PLUGIN_SUGGEST_LONG,
    POLICY_SUGGEST_EXAMPLES, POLICY_SUGGEST_LONG, REPLAY_EXAMPLES, REPLAY_LONG,
};

/// Which records are read, and how the result is printed.
#[derive(Debug, ClapArgs)]
pub(crate) struct Records {
    /// The file of `--record`
    #[arg(long, value_name = "FILE")]
    pub(crate) from: PathBuf,
    /// Count calls of conversations that had read from the network, too
    #[arg(long)]
    pub(crate) include_untrusted: bool,
    #[command(flatten)]
    pub(crate) json: Json,
}

/// `zeph-host plugin suggest`
#[derive(Debug, ClapArgs)]
#[command(after_help = PLUGIN_SUGGEST_EXAMPLES, after_long_help = PLUGIN_SUGGEST_LONG)]
pub(crate) struct PluginSuggest {
    /// The plugin
    #[arg(value_name = "NAME")]
    pub(crate) name: String,
    #[command(flatten)]
    pub(crate) records: Records,
    /// Suggest what the manifest requests even where it is not granted now
    #[arg(long)]
    pub(crate) beyond_grants: bool,
}

/// `zeph-host policy suggest`
#[derive(Debug, ClapArgs)]
#[command(after_help = POLICY_SUGGEST_EXAMPLES, after_long_help = POLICY_SUGGEST_LONG)]
pub(crate) struct PolicySuggest {
    #[command(flatten)]
    pub(crate) records: Records,
}

/// `zeph-host grants`
#[derive(Debug, ClapArgs)]
#[command(after_help = GRANTS_EXAMPLES, after_long_help = GRANTS_LONG)]
pub(crate) struct Grants {
    /// Only grants that no call has used for this long, such as `30d`, or since a date
    #[arg(long, value_name = "TIME")]
    pub(crate) unused: Option<String>,
    #[command(flatten)]
    pub(crate) json: Json,
}

/// `zeph-host replay`
#[derive(Debug, ClapArgs)]
#[command(after_help = REPLAY_EXAMPLES, after_long_help = REPLAY_LONG)]
pub(crate) struct Replay {
    /// The call: its ID, as in the audit and in the record file, or enough of its beginning
    #[arg(value_name = "CALL-ID")]
    pub(crate) call: CallPrefix,
    /// The file of `--record` that the call was recorded in
    #[arg(long, value_name = "FILE")]
    pub(crate) from: PathBuf,
    #[command(flatten)]
    pub(crate) json: Json,
}
