//! From a location to a running store, whatever the database.

use std::fmt;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use tokio::sync::{mpsc, oneshot};

use crate::error::StoreError;
use crate::place;
use crate::postgres;
use crate::postgres::url::ServerUrl;
use crate::sqlite;
use crate::sqlite::desk::WriterDesk;
use crate::store::{QUEUE_JOBS_MAX, Store};

/// What a store without a file is called in messages.
pub(crate) const MEMORY: &str = ":memory:";

/// Where the store is.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Location {
    /// In memory: gone when the store is closed.
    Memory,
    /// In this file, created with its folders when missing (files 0600, folders 0700; existing ones keep their rights).
    File(PathBuf),
    /// On this server, shared with other hosts.
    Server(Box<ServerUrl>),
}

impl fmt::Display for Location {
    /// As it may be shown: without passwords.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Memory => f.write_str(MEMORY),
            Self::File(path) => write!(f, "{}", path.display()),
            Self::Server(url) => write!(f, "{url}"),
        }
    }
}

impl Location {
    /// What the keys of the audit know its chain by: on a server, each host has one.
    pub(crate) fn chain_place(&self) -> String {
        match self {
            Self::Memory => MEMORY.to_owned(),
            Self::File(path) => place::by_any_name(path).display().to_string(),
            Self::Server(url) => url.chain_place(),
        }
    }
}

/// How to open a store.
#[derive(Debug, Clone)]
pub struct StoreOptions {
    /// Now, in Unix milliseconds. It names a damaged file that is set aside.
    pub at_ms: i64,
    /// How long an operation, or the start, waits for other processes on the same store. 5 s is a good value: a healthy
    /// host holds the store for milliseconds.
    pub busy_timeout: Duration,
}

/// What becomes of a damaged file.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum WhenDamaged {
    /// It stays as it is, and the store is not opened.
    Refuse,
    /// It is renamed, with what lies beside it, and a fresh store is started: for a host that makes calls, which nobody may have to wait for.
    SetAside,
}

/// A store that is ready, and what the operator should know about its start.
#[derive(Debug)]
pub struct OpenedStore {
    /// The store.
    pub store: Store,
    /// One sentence each; empty when nothing was unusual.
    pub notices: Vec<String>,
}

/// An open database, on the way to the thread that owns it.
enum OpenDatabase {
    Sqlite(Box<sqlite::writer::Database>),
    Postgres(Box<postgres::writer::Database>),
}

impl Store {
    /// Opens the store, bringing it to the newest schema; it blocks until that is done.
    ///
    /// Several hosts may open one file or one server, also at the same time.
    ///
    /// Errors: [`StoreError::File`], [`StoreError::NotAFile`], [`StoreError::ReadOnly`], [`StoreError::DiskFull`] when
    /// the place cannot be used; [`StoreError::Busy`] when others hold it; [`StoreError::Corrupt`] when it is damaged;
    /// [`StoreError::Newer`] and [`StoreError::Foreign`] when it is not for this program, which then leaves it as it is;
    /// [`StoreError::ServerAway`] and [`StoreError::ServerRefused`].
    pub fn open(location: Location, options: StoreOptions) -> Result<OpenedStore, StoreError> {
        Self::open_when(location, options, WhenDamaged::Refuse)
    }

    /// Opens the store for a host that makes calls: a damaged file is renamed to `<path>.corrupt-<at_ms>` with its companions, a fresh
    /// store is started, and a notice says so.
    ///
    /// Errors: those of [`open`](Self::open).
    pub fn open_or_set_aside(
        location: Location,
        options: StoreOptions,
    ) -> Result<OpenedStore, StoreError> {
        Self::open_when(location, options, WhenDamaged::SetAside)
    }

    /// Whether a store can be opened at `location` by what is there, as far as that shows without opening or making anything: it is no directory,
    /// device or link to nothing. Of a server nothing is asked.
    ///
    /// Errors: [`StoreError::NotAFile`], [`StoreError::DanglingLink`], [`StoreError::File`].
    pub fn check_place(location: &Location) -> Result<(), StoreError> {
        match location {
            Location::File(path) => place::check_regular(&place::real(path)?),
            Location::Memory | Location::Server(_) => Ok(()),
        }
    }

    fn open_when(
        location: Location,
        options: StoreOptions,
        when_damaged: WhenDamaged,
    ) -> Result<OpenedStore, StoreError> {
        // Not a channel of the runtime: the caller may be one of its threads.
        let (sender, opened) = std::sync::mpsc::sync_channel(1);
        let store = Self::open_on_thread((location, when_damaged), options, move |opened| {
            drop(sender.send(opened));
        })?;
        let notices = opened.recv().unwrap_or(Err(CLOSED))?;
        Ok(OpenedStore { store, notices })
    }

    /// Begins to open the store, on the thread that will own it, beside the rest of a start.
    ///
    /// Errors: the kernel refuses the thread.
    pub fn begin_to_open(
        location: Location,
        options: StoreOptions,
        when_damaged: WhenDamaged,
    ) -> Result<StoreOpening, StoreError> {
        let (sender, opened) = oneshot::channel();
        // Nobody waits any more when the start failed elsewhere; then the queue is closed too.
        let store = Self::open_on_thread((location, when_damaged), options, move |opened| {
            drop(sender.send(opened));
        })?;
        Ok(StoreOpening { store, opened })
    }

    /// Checks every page of the store at `location`, which may be in use. Nothing is looked at on a server, which has means of its own.
    ///
    /// Errors: [`StoreError::Corrupt`]; why it cannot be read. Limits: O(size of the file).
    pub fn check(location: &Location, options: &StoreOptions) -> Result<(), StoreError> {
        match location {
            Location::File(path) => sqlite::open::check_file(path, options),
            Location::Memory | Location::Server(_) => Ok(()),
        }
    }

    /// Opens the store on the thread that will own it, which says what came of it.
    fn open_on_thread(
        (location, when_damaged): (Location, WhenDamaged),
        options: StoreOptions,
        tell: impl FnOnce(Result<Vec<String>, StoreError>) + Send + 'static,
    ) -> Result<Self, StoreError> {
        let place = PathBuf::from(location.to_string());
        let chain_place = location.chain_place();
        // A file is read faster than a thread is woken.
        let is_far = matches!(location, Location::Server(_));
        let (sender, rights) = mpsc::channel(QUEUE_JOBS_MAX);
        let desk = Arc::new(WriterDesk::default());
        let of_callers = (!is_far).then(|| Arc::clone(&desk));
        let mut store =
            Self::start(
                &place,
                is_far.then_some(sender),
                of_callers,
                move |queue| match open(location, &options, when_damaged) {
                    Ok((OpenDatabase::Sqlite(database), notices)) => {
                        tell(Ok(notices));
                        sqlite::writer::run(*database, queue, &desk);
                    }
                    Ok((OpenDatabase::Postgres(database), notices)) => {
                        tell(Ok(notices));
                        postgres::writer::run(*database, queue, rights);
                    }
                    Err(error) => tell(Err(error)),
                },
            )?;
        store.chain_place = chain_place.into();
        Ok(store)
    }
}

const CLOSED: StoreError = StoreError::Closed {
    operation: "open the store",
};

/// A store that is being opened. Dropping it waits until that is over, and closes it.
#[derive(Debug)]
pub struct StoreOpening {
    store: Store,
    opened: oneshot::Receiver<Result<Vec<String>, StoreError>>,
}

impl StoreOpening {
    /// Waits until the store is ready.
    ///
    /// Errors: those of [`Store::open`].
    pub async fn finish(self) -> Result<OpenedStore, StoreError> {
        let notices = self.opened.await.unwrap_or(Err(CLOSED))?;
        let store = self.store;
        Ok(OpenedStore { store, notices })
    }
}

fn open(
    location: Location,
    options: &StoreOptions,
    when_damaged: WhenDamaged,
) -> Result<(OpenDatabase, Vec<String>), StoreError> {
    let (database, notices) = match location {
        Location::Memory => (sqlite::open::open_memory(options)?, Vec::new()),
        Location::File(path) => sqlite::open::open_file(path, options, when_damaged)?,
        Location::Server(url) => {
            let database = postgres::writer::Database::open(*url, options)?;
            return Ok((OpenDatabase::Postgres(Box::new(database)), Vec::new()));
        }
    };
    Ok((OpenDatabase::Sqlite(Box::new(database)), notices))
}
