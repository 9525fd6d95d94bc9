//! The seam between the room that keeps servers and those that start or reach them: what will run is said first, compared with its pin,
//! and only then run.

use std::collections::BTreeMap;
use std::fmt::Debug;
use std::sync::Arc;

use zeph_config::ServerConfig;
use zeph_core::execution::HostUse;
use zeph_core::id::ServerName;
use zeph_egress::Pending;
use zeph_mcp::client::ServerTransport;

use super::launch::Refusal;
use super::set::ChangedServer;

/// What will run or be reached, before anything of it does. It is part of the pin.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub(crate) struct LaunchPlan {
    /// The words of the command line, or the address; without known secrets.
    pub(crate) launch: Vec<String>,
    /// What is installed for it, such as `package`, `version` and `integrity`; empty when nothing is.
    pub(crate) install: BTreeMap<String, String>,
}

/// Starts the servers of one host, or gets ready to reach them.
pub(crate) trait Opener: Debug + Send + Sync + 'static {
    /// Installs what has to be installed, and says what will run. Nothing of the server itself runs yet. Where the configuration leaves a
    /// version open, it is that of `accepted`.
    ///
    /// Errors: one line for the operator, with what would help.
    fn plan<'a>(
        &'a self,
        name: &'a ServerName,
        config: &'a ServerConfig,
        accepted: Option<&'a LaunchPlan>,
    ) -> Pending<'a, Result<Box<dyn Launch>, OpenFailure>>;

    /// Whether what `plan` runs was found to know the older revisions alone: it ends at a request of the newer ones, or leaves it unanswered.
    /// Blocks.
    fn is_older(&self, _name: &ServerName, _plan: &LaunchPlan) -> bool {
        false
    }

    /// Keeps that for later starts, or forgets it. Blocks.
    fn note_older(&self, _name: &ServerName, _plan: &LaunchPlan, _is_older: bool) {}

    /// Keeps what stands around a server that is being started; it has no process when it is a remote one. Blocks.
    fn note_start(&self, _name: &ServerName, _process: Option<&dyn ServerProcess>) {}

    /// Keeps what a server said that is not what was accepted: another process, which approves it, may never see it so. Blocks.
    fn keep_changed(&self, _changed: &ChangedServer) {}
}

/// A server that can be started.
pub(crate) trait Launch: Debug + Send + Sync {
    /// What will run.
    fn plan(&self) -> LaunchPlan;

    /// Runs it.
    ///
    /// Errors: one line for the operator, with what would help.
    fn open(&self) -> Pending<'_, Result<OpenedServer, OpenFailure>>;
}

/// A server that can be spoken to.
#[derive(Debug)]
pub(crate) struct OpenedServer {
    /// The way to it.
    pub(crate) transport: ServerTransport,
    /// Its process; none of a remote one.
    pub(crate) process: Option<Arc<dyn ServerProcess>>,
}

/// The process of a server. Dropping it ends it with all it started.
pub(crate) trait ServerProcess: Debug + Send + Sync {
    /// How much of the jail stands around it: `full`, `landlock-only` or `none`.
    fn walls(&self) -> &'static str;

    /// The layers of the jail that are not around it, one sentence each.
    fn missing_layers(&self) -> Vec<String>;

    /// The end of what it printed to standard error, without known secrets.
    fn stderr(&self) -> String;

    /// What it was refused so far, one line each with what would grant it.
    fn refused(&self) -> Vec<String>;

    /// What it was refused so far, as it would be granted: hosts it tried to reach, and paths that its error stream or `said` speaks of.
    fn lacks(&self, said: &str) -> Vec<Refusal>;

    /// What went between it and each host so far.
    fn hosts(&self) -> Vec<HostUse>;

    /// Ends it with all it started, and waits for that.
    fn end(&self) -> Pending<'_, ()>;
}

/// Why a server cannot be reached.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum OpenFailure {
    /// Another try may succeed.
    Failed(String),
}
