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
    /// Whether it takes no changes: it was opened to look at it, where nothing can be written.
    pub is_read_only: bool,
    /// One sentence each; empty when nothing was unusual.
    pub notices: Vec<String>,
}

/// What a store is opened for.
#[derive(Clone, Copy)]
enum StoreUse {
    /// To change it.
    Change(WhenDamaged),
    /// To look at what is in it.
    Look,
}

/// How the start of a store went.
#[derive(Debug)]
struct StoreStart {
    is_read_only: bool,
    notices: Vec<String>,
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
        Self::open_for(location, options, StoreUse::Change(WhenDamaged::Refuse))
    }

    /// Opens the store to look at what is in it. Where nothing can be written it is only read, and where there is none, an empty one stands for it;
    /// a notice says so, and what would change it fails.
    ///
    /// Errors: those of [`open`](Self::open), of which those of a place that cannot be written are what reading it meets;
    /// [`StoreError::Older`] for a store there that an older program made.
    pub fn open_to_look(
        location: Location,
        options: StoreOptions,
    ) -> Result<OpenedStore, StoreError> {
        Self::open_for(location, options, StoreUse::Look)
    }

    /// Opens the store for a host that makes calls: a damaged file is renamed to `<path>.corrupt-<at_ms>` with its companions, a fresh
    /// store is started, and a notice says so.
    ///
    /// Errors: those of [`open`](Self::open).
    pub fn open_or_set_aside(
        location: Location,
        options: StoreOptions,
    ) -> Result<OpenedStore, StoreError> {
        Self::open_for(location, options, StoreUse::Change(WhenDamaged::SetAside))
    }

    /// Whether a store can be opened at `location` by what is there, as far as that shows without opening or making anything: it is no directory,
    /// device or link to nothing, and not of another application or a newer program. Of a server nothing is asked.
    ///
    /// It opens the file by itself: nothing in this process may have the store open, since closing the file drops SQLite's locks.
    /// Errors: [`StoreError::NotAFile`], [`StoreError::DanglingLink`], [`StoreError::File`], [`StoreError::Foreign`], [`StoreError::Newer`].
    pub fn check_place(location: &Location) -> Result<(), StoreError> {
        match location {
            Location::File(path) => {
                let path = place::real(path)?;
                place::check_regular(&path)?;
                sqlite::signs::check_header(&path)
            }
            Location::Memory | Location::Server(_) => Ok(()),
        }
    }

    fn open_for(
        location: Location,
        options: StoreOptions,
        used: StoreUse,
    ) -> Result<OpenedStore, StoreError> {
        // Not a channel of the runtime: the caller may be one of its threads.
        let (sender, opened) = std::sync::mpsc::sync_channel(1);
        let store = Self::open_on_thread((location, used), options, move |opened| {
            drop(sender.send(opened));
        })?;
        let start = opened.recv().unwrap_or(Err(CLOSED))?;
        Ok(start.of(store))
    }

    /// Begins to open the store, on the thread that will own it, beside the rest of a start.
    ///
    /// Errors: the kernel refuses the thread.
    pub fn begin_to_open(
        location: Location,
        options: StoreOptions,
        when_damaged: WhenDamaged,
    ) -> Result<StoreOpening, StoreError> {
        Self::begin_to_open_for(location, options, StoreUse::Change(when_damaged))
    }

    /// The same to look at what is in it, as [`open_to_look`](Self::open_to_look) does.
    ///
    /// Errors: the kernel refuses the thread.
    pub fn begin_to_look(
        location: Location,
        options: StoreOptions,
    ) -> Result<StoreOpening, StoreError> {
        Self::begin_to_open_for(location, options, StoreUse::Look)
    }

    fn begin_to_open_for(
        location: Location,
        options: StoreOptions,
        used: StoreUse,
    ) -> Result<StoreOpening, StoreError> {
        let (sender, opened) = oneshot::channel();
        // Nobody waits any more when the start failed elsewhere; then the queue is closed too.
        let store = Self::open_on_thread((location, used), options, move |opened| {
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
        (location, used): (Location, StoreUse),
        options: StoreOptions,
        tell: impl FnOnce(Result<StoreStart, StoreError>) + Send + 'static,
    ) -> Result<Self, StoreError> {
        let place = PathBuf::from(location.to_string());
        let chain_place = location.chain_place();
        // A file is read faster than a thread is woken.
        let is_far = matches!(location, Location::Server(_));
        let (sender, rights) = mpsc::channel(QUEUE_JOBS_MAX);
        let desk = Arc::new(WriterDesk::default());
        let of_callers = (!is_far).then(|| Arc::clone(&desk));
        let mut store = Self::start(
            &place,
            is_far.then_some(sender),
            of_callers,
            move |queue, back| match open(location, &options, used) {
                Ok((OpenDatabase::Sqlite(database), start)) => {
                    tell(Ok(start));
                    sqlite::writer::run(*database, queue, &desk);
                }
                Ok((OpenDatabase::Postgres(database), start)) => {
                    tell(Ok(start));
                    postgres::writer::run(*database, (queue, back), rights);
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
    opened: oneshot::Receiver<Result<StoreStart, StoreError>>,
}

impl StoreStart {
    /// That of a store that takes changes.
    fn told(notices: Vec<String>) -> Self {
        Self {
            is_read_only: false,
            notices,
        }
    }

    fn of(self, store: Store) -> OpenedStore {
        OpenedStore {
            store,
            is_read_only: self.is_read_only,
            notices: self.notices,
        }
    }
}

impl StoreOpening {
    /// Waits until the store is ready.
    ///
    /// Errors: those of [`Store::open`].
    pub async fn finish(self) -> Result<OpenedStore, StoreError> {
        let start = self.opened.await.unwrap_or(Err(CLOSED))?;
        Ok(start.of(self.store))
    }
}

fn open(
    location: Location,
    options: &StoreOptions,
    used: StoreUse,
) -> Result<(OpenDatabase, StoreStart), StoreError> {
    let (database, start) = match (location, used) {
        (Location::Memory, _) => (
            sqlite::open::open_memory(options)?,
            StoreStart::told(vec![]),
        ),
        (Location::File(path), StoreUse::Change(when_damaged)) => {
            let (database, notices) = sqlite::open::open_file(path, options, when_damaged)?;
            (database, StoreStart::told(notices))
        }
        (Location::File(path), StoreUse::Look) => {
            let (database, notice) = sqlite::open::open_to_look(path, options)?;
            let start = StoreStart {
                is_read_only: notice.is_some(),
                notices: Vec::from_iter(notice),
            };
            (database, start)
        }
        (Location::Server(url), _) => {
            let database = postgres::writer::Database::open(*url, options)?;
            let database = OpenDatabase::Postgres(Box::new(database));
            return Ok((database, StoreStart::told(vec![])));
        }
    };
    Ok((OpenDatabase::Sqlite(Box::new(database)), start))
}
