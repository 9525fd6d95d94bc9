//! `zeph-host scheduler` on the command line.

use clap::{Args as ClapArgs, Subcommand};

use super::super::help::{SCHEDULER_EXAMPLES, SCHEDULER_LONG};
use super::Json;

/// `zeph-host scheduler`
#[derive(Debug, ClapArgs)]
#[command(after_help = SCHEDULER_EXAMPLES, after_long_help = SCHEDULER_LONG)]
pub(crate) struct Scheduler {
    #[command(subcommand)]
    pub(crate) command: Option<SchedulerCommand>,
}

/// A command of `zeph-host scheduler`.
#[derive(Debug, Subcommand)]
pub(crate) enum SchedulerCommand {
    /// List the scheduled tasks of this directory, with the end of the last run of each
    List {
        /// The tasks of all directories
        #[arg(long)]
        all: bool,
        #[command(flatten)]
        json: Json,
    },
    /// Take over the scheduled tasks of another directory, machine or replica: they run here from now on
    Adopt {
        /// Where they belong, as `scheduler list --all --json` shows it
        #[arg(value_name = "DIRECTORY")]
        directory: String,
    },
    /// Cancel a scheduled task of this directory
    Cancel {
        /// The name of the task
        #[arg(value_name = "NAME")]
        name: String,
        /// The caller that scheduled it, where it has a name
        #[arg(long, value_name = "CALLER")]
        caller: Option<String>,
        /// Where it belongs, as `scheduler list --all --json` shows it
        #[arg(long, value_name = "DIRECTORY")]
        directory: Option<String>,
    },
}
