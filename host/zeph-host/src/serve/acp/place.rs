//! Where a session works, and the host for it.
//!
//! Sessions of one place share a host; it ends with the last of them. The command line makes hosts: this is what it is asked for.

use std::collections::{HashMap, HashSet};
use std::fmt;
use std::future::Future;
use std::path::{Path, PathBuf};
use std::pin::Pin;
use std::sync::{Arc, Mutex, PoisonError, Weak};

use tokio::sync::OnceCell;
use zeph_acp::agent::{McpServer, NewSessionRequest};
use zeph_acp::rpc::RpcError;

use super::schedules::ScheduledRuns;
use crate::host::Host;

/// MCP servers of one session.
const SERVERS_MAX: usize = 64;

/// Directories of one session besides the working directory.
const DIRECTORIES_MAX: usize = 64;

/// Where a session works and with which servers of its client.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub(crate) struct Place {
    /// The working directory: absolute, there, without symbolic links.
    pub(crate) directory: PathBuf,
    /// Directories besides it, of the same kind.
    pub(crate) more: Vec<PathBuf>,
    /// Servers of the client.
    pub(crate) servers: Vec<McpServer>,
}

/// A host that is being started.
pub(crate) type StartingHost<'a> =
    Pin<Box<dyn Future<Output = Result<Host, PlaceError>> + Send + 'a>>;

/// Why there is no host for a place.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum PlaceError {
    /// The place cannot be used: what the client asked for is wrong.
    Refused(String),
    /// The host cannot be started there.
    Failed(String),
}

/// Makes hosts.
pub(crate) trait HostSource: Send + Sync + fmt::Debug {
    /// Starts a host that works at `place`.
    fn start<'a>(&'a self, place: &'a Place) -> StartingHost<'a>;

    /// Where the process was started.
    fn home(&self) -> &Path;

    /// The name of the provider that was asked for, when one was.
    fn provider(&self) -> Option<&str>;

    /// Tells the person who reads the log of the client.
    fn remark(&self, text: &str);
}

impl Place {
    /// The place a client asks for.
    ///
    /// Errors: what is wrong with it.
    pub(crate) fn read(request: NewSessionRequest) -> Result<Self, RpcError> {
        if request.additional_directories.len() > DIRECTORIES_MAX {
            let message = format!("more than {DIRECTORIES_MAX} directories");
            return Err(RpcError::params(message));
        }
        if request.mcp_servers.len() > SERVERS_MAX {
            return Err(RpcError::params(format!(
                "more than {SERVERS_MAX} MCP servers"
            )));
        }
        let more = request.additional_directories.iter();
        Ok(Self {
            directory: directory("cwd", &request.cwd)?,
            more: more
                .map(|path| directory("additionalDirectories", path))
                .collect::<Result<_, _>>()?,
            servers: request.mcp_servers,
        })
    }

    /// The place where the process was started, with nothing else.
    fn bare(directory: &Path) -> Self {
        Self {
            directory: directory.to_owned(),
            more: Vec::new(),
            servers: Vec::new(),
        }
    }
}

/// A directory that is there.
fn directory(field: &str, path: &str) -> Result<PathBuf, RpcError> {
    let shown: String = path.chars().take(200).collect();
    let wrong = |why: &str| RpcError::params(format!("`{field}`: `{shown}` {why}"));
    let path = Path::new(path);
    if !path.is_absolute() {
        return Err(wrong("is not an absolute path"));
    }
    let real = path.canonicalize();
    let real = real.map_err(|error| wrong(&format!("cannot be used: {error}")))?;
    match real.is_dir() {
        true => Ok(real),
        false => Err(wrong("is not a directory")),
    }
}

/// A host that several sessions share, once it is there.
pub(super) type SharedHost = Arc<OnceCell<Host>>;

/// The hosts in use.
#[derive(Debug)]
pub(super) struct Hosts {
    source: Arc<dyn HostSource>,
    /// Each lives as long as a session holds it. Locked for a moment only.
    in_use: Mutex<HashMap<Place, Weak<OnceCell<Host>>>>,
    /// The one of the directory the process was started in, for the first session there and for listings.
    _first: SharedHost,
    scheduled: ScheduledRuns,
}

impl Hosts {
    /// None yet.
    pub(super) fn new(source: Arc<dyn HostSource>) -> Self {
        let first = SharedHost::default();
        let home = source.home();
        let home = home.canonicalize().unwrap_or_else(|_| home.to_owned());
        let in_use = [(Place::bare(&home), Arc::downgrade(&first))];
        Self {
            source,
            in_use: Mutex::new(in_use.into()),
            _first: first,
            scheduled: ScheduledRuns::default(),
        }
    }

    /// What makes them.
    pub(super) fn source(&self) -> &Arc<dyn HostSource> {
        &self.source
    }

    /// The host of `place`, and what keeps it.
    ///
    /// Errors: the place cannot be used, or the host not be started.
    pub(super) async fn at(&self, place: &Place) -> Result<(Host, SharedHost), RpcError> {
        let shared = self.shared(place);
        let host = shared.get_or_try_init(|| self.source.start(place)).await;
        let host = host.map_err(|error| match error {
            PlaceError::Refused(why) => RpcError::params(why),
            PlaceError::Failed(why) => RpcError::internal(why),
        })?;
        Ok((host.clone(), shared))
    }

    /// The host of the directory the process was started in.
    ///
    /// Errors: it cannot be started.
    pub(super) async fn first(&self) -> Result<Host, RpcError> {
        let home = self.source.home();
        let home = home.canonicalize().unwrap_or_else(|_| home.to_owned());
        Ok(self.at(&Place::bare(&home)).await?.0)
    }

    /// Has what is scheduled in the directory of `place`, where `host` works, run from now on.
    pub(super) async fn run_scheduled(&self, place: &Place, host: &Host) {
        if host.scheduler().is_none() || self.scheduled.has(&place.directory) {
            return;
        }
        match self.at(&Place::bare(&place.directory)).await {
            Ok((host, _)) => self.scheduled.begin(&place.directory, &host),
            Err(error) => self.source.remark(&format!(
                "scheduled tasks of `{}` are not run here: {}",
                place.directory.display(),
                error.message
            )),
        }
    }

    /// Begins no more scheduled runs where no session works any more.
    pub(super) fn end_unused(&self) {
        let in_use = self.in_use.lock().unwrap_or_else(PoisonError::into_inner);
        let used: HashSet<PathBuf> = in_use
            .iter()
            .filter(|(_, host)| host.strong_count() > 0)
            .map(|(place, _)| place.directory.clone())
            .collect();
        drop(in_use);
        self.scheduled.keep(|directory| used.contains(directory));
    }

    /// Begins no more scheduled runs, and waits for the ends of those that go on.
    pub(super) async fn end_scheduled(&self) {
        self.scheduled.end().await;
    }

    fn shared(&self, place: &Place) -> SharedHost {
        let mut in_use = self.in_use.lock().unwrap_or_else(PoisonError::into_inner);
        in_use.retain(|_, host| host.strong_count() > 0);
        if let Some(host) = in_use.get(place).and_then(Weak::upgrade) {
            return host;
        }
        let host = SharedHost::default();
        in_use.insert(place.clone(), Arc::downgrade(&host));
        host
    }
}

#[cfg(test)]
mod tests {
    use zeph_acp::agent::NewSessionRequest;
    use zeph_acp::rpc::INVALID_PARAMS;

    use super::Place;

    #[test]
    fn a_working_directory_is_absolute_and_there() {
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("file");
        std::fs::write(&file, "").unwrap();
        let read = |cwd: &str| {
            Place::read(NewSessionRequest {
                cwd: cwd.to_owned(),
                additional_directories: Vec::new(),
                mcp_servers: Vec::new(),
            })
        };
        for bad in ["", ".", "/no/such/directory", file.to_str().unwrap()] {
            assert_eq!(read(bad).unwrap_err().code, INVALID_PARAMS, "{bad}");
        }
        let place = read(folder.path().to_str().unwrap()).unwrap();
        assert_eq!(place.directory, folder.path().canonicalize().unwrap());
    }
}
