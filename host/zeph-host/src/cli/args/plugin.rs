//! Arguments of `zeph-host plugin`.

use std::path::PathBuf;

use clap::{ArgAction, Args as ClapArgs, Subcommand, ValueEnum};
use zeph_core::id::{ConversationId, Digest};
use zeph_plugins::author::Language;

use super::{
    Consent, Json, PluginApprove, PluginBundle, PluginKeygen, PluginSearch, PluginSign,
    PluginSuggest, PluginSync, PluginUpdate, PluginVerify,
};
use crate::cli::help::{
    ADD_EXAMPLES, ADD_LONG, APPROVE_EXAMPLES, BUNDLE_EXAMPLES, BUNDLE_LONG, CHECK_EXAMPLES,
    CHECK_LONG, DEV_EXAMPLES, GRANT_EXAMPLES, GRANT_LONG, KEYGEN_EXAMPLES, KEYGEN_LONG,
    NEW_EXAMPLES, OUTDATED_EXAMPLES, PLUGIN_EXAMPLES, PLUGIN_LONG, PUBLISH_EXAMPLES, PUBLISH_LONG,
    REVOKE_EXAMPLES, SEARCH_EXAMPLES, SEARCH_LONG, SIGN_EXAMPLES, SIGN_LONG, SYNC_EXAMPLES,
    SYNC_LONG, UPDATE_EXAMPLES, UPDATE_LONG, VERIFY_EXAMPLES, VERIFY_LONG,
};

/// `zeph-host plugin`
#[derive(Debug, ClapArgs)]
#[command(
    args_conflicts_with_subcommands = true,
    after_help = PLUGIN_EXAMPLES,
    after_long_help = PLUGIN_LONG
)]
pub(crate) struct Plugin {
    #[command(subcommand)]
    pub(crate) command: Option<PluginCommand>,
    #[command(flatten)]
    pub(crate) json: Json,
}

/// A command of `zeph-host plugin`.
#[derive(Debug, Subcommand)]
pub(crate) enum PluginCommand {
    /// List the plugins with their state and grants
    #[command(
        after_help = "Examples:\n  zeph-host plugin list\n  zeph-host plugin list --json --all"
    )]
    List {
        #[command(flatten)]
        json: Json,
        /// With `--json`, list the plugins that are part of the host, too
        #[arg(long, requires = "json")]
        all: bool,
    },
    /// Show one plugin: requested capabilities, grants, tools
    #[command(
        after_help = "Examples:\n  zeph-host plugin info weather\n  zeph-host plugin info weather --json"
    )]
    Info(PluginName),
    /// Check a component without installing it
    #[command(after_help = CHECK_EXAMPLES, after_long_help = CHECK_LONG)]
    Check(PluginCheck),
    /// Check a component and install it: from a file, a registry or a URL
    #[command(after_help = ADD_EXAMPLES, after_long_help = ADD_LONG)]
    Add(PluginAdd),
    /// Publish a component in a registry
    #[command(after_help = PUBLISH_EXAMPLES, after_long_help = PUBLISH_LONG)]
    Publish(PluginPublish),
    /// Delete a plugin, its pin and, unless others may use them, its grants
    #[command(
        after_help = "Examples:\n  zeph-host plugin remove weather\n  zeph-host plugin remove weather --yes --json"
    )]
    Remove(ConfirmedPlugin),
    /// Grant a plugin capabilities
    #[command(after_help = GRANT_EXAMPLES, after_long_help = GRANT_LONG)]
    Grant(PluginGrant),
    /// Revoke grants of a plugin
    #[command(after_help = REVOKE_EXAMPLES)]
    Revoke(PluginRevoke),
    /// Print the smallest grant that recorded calls need
    Suggest(PluginSuggest),
    /// Show what changed in a plugin, and accept it
    #[command(after_help = APPROVE_EXAMPLES)]
    Approve(PluginApprove),
    /// Disable a plugin; its pin and grants are kept
    #[command(after_help = "Example:\n  zeph-host plugin disable weather")]
    Disable(PluginName),
    /// Enable a disabled plugin
    #[command(after_help = "Example:\n  zeph-host plugin enable weather")]
    Enable(PluginName),
    /// Search the configured indexes for plugins
    #[command(after_help = SEARCH_EXAMPLES, after_long_help = SEARCH_LONG)]
    Search(PluginSearch),
    /// List plugins that have a newer version, or were withdrawn
    #[command(after_help = OUTDATED_EXAMPLES)]
    Outdated(Json),
    /// Show what another version changes, and install it
    #[command(after_help = UPDATE_EXAMPLES, after_long_help = UPDATE_LONG)]
    Update(PluginUpdate),
    /// Make the plugin directory match its `zeph.lock`
    #[command(after_help = SYNC_EXAMPLES, after_long_help = SYNC_LONG)]
    Sync(PluginSync),
    /// Write the plugins of a directory into one file, for a machine without a network
    #[command(after_help = BUNDLE_EXAMPLES, after_long_help = BUNDLE_LONG)]
    Bundle(PluginBundle),
    /// Create a plugin project
    #[command(after_help = NEW_EXAMPLES)]
    New(PluginNew),
    /// Create a key pair that signs plugins
    #[command(after_help = KEYGEN_EXAMPLES, after_long_help = KEYGEN_LONG)]
    Keygen(PluginKeygen),
    /// Sign a component
    #[command(disable_version_flag = true, after_help = SIGN_EXAMPLES, after_long_help = SIGN_LONG)]
    Sign(PluginSign),
    /// Check who signed a component or a published plugin
    #[command(after_help = VERIFY_EXAMPLES, after_long_help = VERIFY_LONG)]
    Verify(PluginVerify),
    /// Build and reload a plugin project whenever it changes
    #[command(after_help = DEV_EXAMPLES)]
    Dev(PluginDev),
}

/// The name of a plugin.
#[derive(Debug, ClapArgs)]
pub(crate) struct PluginName {
    /// The plugin
    #[arg(value_name = "NAME")]
    pub(crate) name: String,
    #[command(flatten)]
    pub(crate) json: Json,
}

/// The name of a plugin, and whether to ask for confirmation.
#[derive(Debug, ClapArgs)]
pub(crate) struct ConfirmedPlugin {
    /// The plugin
    #[arg(value_name = "NAME")]
    pub(crate) name: String,
    /// Do not ask for confirmation
    #[arg(short, long)]
    pub(crate) yes: bool,
    #[command(flatten)]
    pub(crate) json: Json,
}

/// `zeph-host plugin check`
#[derive(Debug, ClapArgs)]
pub(crate) struct PluginCheck {
    /// The component, or a project directory with a built component
    #[arg(value_name = "FILE")]
    pub(crate) file: PathBuf,
    /// Do not run the component to list its tools
    #[arg(long)]
    pub(crate) no_run: bool,
    #[command(flatten)]
    pub(crate) json: Json,
}

/// `zeph-host plugin add`
#[derive(Debug, ClapArgs)]
pub(crate) struct PluginAdd {
    /// The component, a project directory with a built component, a reference such as `ghcr.io/org/name:1.2`, a package of wkg (`ns:name@1.2.0`), or a URL
    #[arg(value_name = "FILE|DIR|REF|URL")]
    pub(crate) from: PathBuf,
    /// Name of the plugin [default: the file name, or the last part of the reference]
    #[arg(long, value_name = "NAME")]
    pub(crate) name: Option<String>,
    /// SHA-256 that the component must have; required for a URL
    #[arg(long, value_name = "HEX", value_parser = digest)]
    pub(crate) sha256: Option<Digest>,
    /// Manifest (`plugin.toml`) for a component that has none
    #[arg(long, value_name = "FILE")]
    pub(crate) manifest: Option<PathBuf>,
    /// Replace the plugin of this name; the new one is off until it is approved
    #[arg(long)]
    pub(crate) replace: bool,
    #[command(flatten)]
    pub(crate) consent: Consent,
    #[command(flatten)]
    pub(crate) json: Json,
}

/// `zeph-host plugin publish`
#[derive(Debug, ClapArgs)]
pub(crate) struct PluginPublish {
    /// The component, or a project directory with a built component
    #[arg(value_name = "FILE|DIR")]
    pub(crate) file: PathBuf,
    /// Where to publish it, such as `ghcr.io/org/name:1.2`
    #[arg(value_name = "REF")]
    pub(crate) reference: String,
    /// Sign it with this secret key, made by `plugin keygen` or `minisign -G`
    #[arg(long, value_name = "KEY")]
    pub(crate) sign: Option<PathBuf>,
    /// When the signature expires, as for `plugin sign` [default: when the one beside the file does that this key made, else never]
    #[arg(long, value_name = "DATE", requires = "sign")]
    pub(crate) expires: Option<String>,
    #[command(flatten)]
    pub(crate) json: Json,
}

/// Reads the value of `--sha256`: the digits alone, or with `sha256:` before them.
pub(super) fn digest(text: &str) -> Result<Digest, String> {
    let digits = text.strip_prefix("sha256:").unwrap_or(text);
    let whole = format!("sha256:{}", digits.to_ascii_lowercase());
    whole
        .parse()
        .map_err(|_| "write the 64 hexadecimal digits that `sha256sum` prints".to_owned())
}

/// The capabilities to grant or revoke.
#[derive(Debug, Clone, Default, ClapArgs)]
#[command(next_help_heading = "Capabilities")]
pub(crate) struct Selectors {
    /// Directory; RIGHTS is any of `read`, `write`, `create`, `delete`, joined by `+`; repeatable
    #[arg(long = "dir", value_name = "PATH[:RIGHTS]", action = ArgAction::Append)]
    pub(crate) directories: Vec<String>,
    /// Network host, such as `api.example.com`; repeatable
    #[arg(long = "host", value_name = "HOST", action = ArgAction::Append)]
    pub(crate) hosts: Vec<String>,
    /// Program, such as `cargo`, or with the arguments it may get: `'cargo check *'`; repeatable
    #[arg(long = "program", value_name = "PROGRAM", action = ArgAction::Append)]
    pub(crate) programs: Vec<String>,
    /// Environment variable; repeatable
    #[arg(long = "variable", value_name = "VARIABLE", action = ArgAction::Append)]
    pub(crate) variables: Vec<String>,
    /// Limit above the default, such as `memory_bytes=1073741824`; repeatable
    #[arg(long = "limit", value_name = "NAME=VALUE", action = ArgAction::Append)]
    pub(crate) limits: Vec<String>,
    /// Secret that is sent in a header to one host, such as `GH_TOKEN=api.example.com:authorization:GET`; repeatable
    #[arg(long = "secret", value_name = "NAME=HOST:HEADER[:METHODS]", action = ArgAction::Append)]
    pub(crate) secrets: Vec<String>,
    /// Provider of embeddings that texts may be sent to, by its name in `llm.providers`; repeatable
    #[arg(long = "embedder", value_name = "PROVIDER", action = ArgAction::Append)]
    pub(crate) embedders: Vec<String>,
    /// Tool of an MCP server that may be called; repeatable
    #[arg(long = "tool", value_name = "SERVER/TOOL", action = ArgAction::Append)]
    pub(crate) tools: Vec<String>,
    /// Everything that applies
    #[arg(long)]
    pub(crate) all: bool,
}

/// `zeph-host plugin grant`
#[derive(Debug, ClapArgs)]
pub(crate) struct PluginGrant {
    /// The plugin
    #[arg(value_name = "NAME")]
    pub(crate) name: String,
    /// Do not ask for confirmation
    #[arg(short, long)]
    pub(crate) yes: bool,
    #[command(flatten)]
    pub(crate) json: Json,
    // Behind these two: a heading holds for all that follows it.
    #[command(flatten)]
    pub(crate) what: Selectors,
    #[command(flatten)]
    pub(crate) how_long: HowLong,
    #[command(flatten)]
    pub(crate) terms: GrantTerms,
}

/// What a grant does when it does not simply allow.
#[derive(Debug, Clone, Copy, Default, ClapArgs)]
#[command(next_help_heading = "Mode")]
pub(crate) struct GrantTerms {
    /// Grant on trial and record it, ask before each call that holds it, or withhold it [default: allow]
    #[arg(long, value_name = "MODE")]
    pub(crate) mode: Option<GrantMode>,
}

/// What a grant does with a call that holds it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum GrantMode {
    /// Allow it, and record what would be refused without.
    Observe,
    /// Ask before each call.
    Ask,
    /// Withhold it, whatever else is granted.
    Deny,
}

/// The lifetime of a grant; permanent by default.
#[derive(Debug, Clone, Default, ClapArgs)]
#[group(multiple = false)]
#[command(next_help_heading = "Lifetime")]
pub(crate) struct HowLong {
    /// Grant for the next call that uses it
    #[arg(long)]
    pub(crate) once: bool,
    /// Grant for the calls of one conversation
    #[arg(long, value_name = "CONVERSATION")]
    pub(crate) session: Option<ConversationId>,
    /// Grant until a date (2026-12-31, end of day in UTC) or time (2026-12-31T12:00:00Z)
    #[arg(long, value_name = "DATE")]
    pub(crate) until: Option<String>,
}

/// `zeph-host plugin revoke`
#[derive(Debug, ClapArgs)]
pub(crate) struct PluginRevoke {
    /// The plugin
    #[arg(value_name = "NAME")]
    pub(crate) name: String,
    #[command(flatten)]
    pub(crate) json: Json,
    #[command(flatten)]
    pub(crate) what: Selectors,
    /// Grant with this number, as shown by `plugin info`; repeatable
    #[arg(long = "id", value_name = "N", action = ArgAction::Append, help_heading = "Capabilities")]
    pub(crate) ids: Vec<i64>,
}

/// `zeph-host plugin new`
#[derive(Debug, ClapArgs)]
pub(crate) struct PluginNew {
    /// Name of the plugin and of the project directory
    #[arg(value_name = "NAME")]
    pub(crate) name: String,
    /// Programming language: `rust`, `js`, `python` or `c`
    #[arg(long, value_name = "LANGUAGE")]
    pub(crate) lang: Language,
    /// Create a project for output filter strategies instead of tools
    #[arg(long)]
    pub(crate) filter: bool,
    /// Directory to create the project in [default: the current directory]
    #[arg(long, value_name = "DIR")]
    pub(crate) dir: Option<PathBuf>,
    #[command(flatten)]
    pub(crate) json: Json,
}

/// `zeph-host plugin dev`
#[derive(Debug, ClapArgs)]
pub(crate) struct PluginDev {
    /// The project directory
    #[arg(value_name = "DIR")]
    pub(crate) dir: PathBuf,
    /// Approve every change of the plugin without asking
    #[arg(long)]
    pub(crate) approve: bool,
}
