//! What can be typed after `zeph-host plugin`.

use std::path::PathBuf;

use clap::{ArgAction, Args as ClapArgs, Subcommand};
use zeph_core::id::ConversationId;

use super::Json;
use crate::cli::help::{
    ADD_EXAMPLES, ADD_LONG, APPROVE_EXAMPLES, CHECK_EXAMPLES, CHECK_LONG, DEV_EXAMPLES,
    GRANT_EXAMPLES, GRANT_LONG, NEW_EXAMPLES, PLUGIN_EXAMPLES, PLUGIN_LONG, REVOKE_EXAMPLES,
};
use crate::plugins::author::Language;

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

/// What to do with plugins.
#[derive(Debug, Subcommand)]
pub(crate) enum PluginCommand {
    /// One line for each plugin in the folders: whether it is in force, and what it was granted
    #[command(after_help = "Examples:\n  zeph-host plugin list\n  zeph-host plugin list --json")]
    List {
        #[command(flatten)]
        json: Json,
    },
    /// One plugin: what it is, what it wants and why, what it was granted, its tools
    #[command(
        after_help = "Examples:\n  zeph-host plugin info weather\n  zeph-host plugin info weather --json"
    )]
    Info(PluginName),
    /// Look at a component before it is added: what it is, what it wants, what its author has to fix
    #[command(after_help = CHECK_EXAMPLES, after_long_help = CHECK_LONG)]
    Check(PluginCheck),
    /// Copy a component into the folder of plugins, once it has been checked
    #[command(after_help = ADD_EXAMPLES, after_long_help = ADD_LONG)]
    Add(PluginAdd),
    /// Delete a plugin: its file, its pin and its grants
    #[command(
        after_help = "Examples:\n  zeph-host plugin remove weather\n  zeph-host plugin remove weather --yes --json"
    )]
    Remove(PluginConfirmed),
    /// Give a plugin something that it wants
    #[command(after_help = GRANT_EXAMPLES, after_long_help = GRANT_LONG)]
    Grant(PluginGrant),
    /// Take grants back
    #[command(after_help = REVOKE_EXAMPLES)]
    Revoke(PluginRevoke),
    /// Show what is different about a plugin, and accept it as it is now
    #[command(after_help = APPROVE_EXAMPLES)]
    Approve(PluginConfirmed),
    /// Switch a plugin off; its pin and its grants stay
    #[command(after_help = "Example:\n  zeph-host plugin disable weather")]
    Disable(PluginName),
    /// Switch a plugin on again
    #[command(after_help = "Example:\n  zeph-host plugin enable weather")]
    Enable(PluginName),
    /// Begin a project for a plugin of your own
    #[command(after_help = NEW_EXAMPLES)]
    New(PluginNew),
    /// Build a project whenever it changes, and load what comes out
    #[command(after_help = DEV_EXAMPLES)]
    Dev(PluginDev),
}

/// A plugin and nothing else.
#[derive(Debug, ClapArgs)]
pub(crate) struct PluginName {
    /// The plugin
    #[arg(value_name = "NAME")]
    pub(crate) name: String,
    #[command(flatten)]
    pub(crate) json: Json,
}

/// A plugin, and whether to ask.
#[derive(Debug, ClapArgs)]
pub(crate) struct PluginConfirmed {
    /// The plugin
    #[arg(value_name = "NAME")]
    pub(crate) name: String,
    /// Do not ask
    #[arg(short, long)]
    pub(crate) yes: bool,
    #[command(flatten)]
    pub(crate) json: Json,
}

/// `zeph-host plugin check`
#[derive(Debug, ClapArgs)]
pub(crate) struct PluginCheck {
    /// The component, or a project with one that is built
    #[arg(value_name = "FILE")]
    pub(crate) file: PathBuf,
    /// Only read it: do not ask it for its tools
    #[arg(long)]
    pub(crate) no_run: bool,
    #[command(flatten)]
    pub(crate) json: Json,
}

/// `zeph-host plugin add`
#[derive(Debug, ClapArgs)]
pub(crate) struct PluginAdd {
    /// The component, or a project with one that is built
    #[arg(value_name = "FILE|DIR")]
    pub(crate) from: PathBuf,
    /// Its name here (default: that of the file)
    #[arg(long, value_name = "NAME")]
    pub(crate) name: Option<String>,
    /// Take the place of a plugin of this name; it is off until it is approved
    #[arg(long)]
    pub(crate) replace: bool,
    /// Do not ask
    #[arg(short, long)]
    pub(crate) yes: bool,
    #[command(flatten)]
    pub(crate) json: Json,
}

/// What is granted or revoked.
#[derive(Debug, Clone, Default, ClapArgs)]
#[command(next_help_heading = "What")]
pub(crate) struct Selectors {
    /// A directory; RIGHTS are some of `read`, `write`, `create`, `delete`, joined by `+`; repeatable
    #[arg(long = "dir", value_name = "PATH[:RIGHTS]", action = ArgAction::Append)]
    pub(crate) directories: Vec<String>,
    /// A host, such as `api.example.com`; repeatable
    #[arg(long = "host", value_name = "HOST", action = ArgAction::Append)]
    pub(crate) hosts: Vec<String>,
    /// A program, such as `cargo`; repeatable
    #[arg(long = "program", value_name = "PROGRAM", action = ArgAction::Append)]
    pub(crate) programs: Vec<String>,
    /// A variable of the environment; repeatable
    #[arg(long = "variable", value_name = "VARIABLE", action = ArgAction::Append)]
    pub(crate) variables: Vec<String>,
    /// A limit above the default, such as `memory_bytes=1073741824`; repeatable
    #[arg(long = "limit", value_name = "NAME=VALUE", action = ArgAction::Append)]
    pub(crate) limits: Vec<String>,
    /// All of it
    #[arg(long)]
    pub(crate) all: bool,
}

/// `zeph-host plugin grant`
#[derive(Debug, ClapArgs)]
pub(crate) struct PluginGrant {
    /// The plugin
    #[arg(value_name = "NAME")]
    pub(crate) name: String,
    /// Do not ask
    #[arg(short, long)]
    pub(crate) yes: bool,
    #[command(flatten)]
    pub(crate) json: Json,
    // Behind these two: a heading holds for all that follows it.
    #[command(flatten)]
    pub(crate) what: Selectors,
    #[command(flatten)]
    pub(crate) how_long: HowLong,
}

/// How long a grant lives; for good when nothing is said.
#[derive(Debug, Clone, Default, ClapArgs)]
#[group(multiple = false)]
#[command(next_help_heading = "How long")]
pub(crate) struct HowLong {
    /// For the next call that uses it
    #[arg(long)]
    pub(crate) once: bool,
    /// For the calls of one conversation
    #[arg(long, value_name = "CONVERSATION")]
    pub(crate) session: Option<ConversationId>,
    /// Until the end of a day in UTC, such as 2026-12-31, or a moment, such as 2026-12-31T12:00:00Z
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
    /// The grant of this number, as `plugin info` shows it; repeatable
    #[arg(long = "id", value_name = "N", action = ArgAction::Append, help_heading = "What")]
    pub(crate) ids: Vec<i64>,
}

/// `zeph-host plugin new`
#[derive(Debug, ClapArgs)]
pub(crate) struct PluginNew {
    /// The plugin's name and that of the project's folder
    #[arg(value_name = "NAME")]
    pub(crate) name: String,
    /// The language: rust, js, python or c
    #[arg(long, value_name = "LANGUAGE")]
    pub(crate) lang: Language,
    /// A project of filter strategies for command output instead of tools
    #[arg(long)]
    pub(crate) filter: bool,
    /// Where the folder is made (default: here)
    #[arg(long, value_name = "DIR")]
    pub(crate) dir: Option<PathBuf>,
    #[command(flatten)]
    pub(crate) json: Json,
}

/// `zeph-host plugin dev`
#[derive(Debug, ClapArgs)]
pub(crate) struct PluginDev {
    /// The project
    #[arg(value_name = "DIR")]
    pub(crate) dir: PathBuf,
    /// Accept every change of it without asking
    #[arg(long)]
    pub(crate) approve: bool,
}
