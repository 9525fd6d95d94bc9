//! From a path to a database: folder, lock, connection, migration, and what to do with a damaged file.
//!
//! It reads a handful of pages whatever the size of the database; the whole file is checked only when something
//! signals damage.

use std::ffi::OsString;
use std::io::ErrorKind;
use std::os::unix::ffi::{OsStrExt as _, OsStringExt as _};
use std::path::{Path, PathBuf};

use rusqlite::config::DbConfig;
use rusqlite::{Connection, OpenFlags};

use super::chain::ChainedConnection;
use super::checkpoint::BACKSTOP_PAGES;
use super::schema;
use super::set_aside::{has_orphan_log, set_aside};
use super::signs::{forget_damage, has_damage_note, was_a_store};
use super::site::Site;
use super::writer::Database;
use crate::error::{ErrorSource, StoreError, file};
use crate::open::{Location, MEMORY, StoreOptions, WhenDamaged};
use crate::place::{self, FileId};

/// Prepared statements kept ready. More than there are different ones.
const STATEMENTS_MAX: usize = 64;

/// Bytes of pages that are kept in memory. The store has one connection, calls read the few rows they are about, and the kernel keeps the
/// file's pages besides; what SQLite would take, twice as much, is memory that a host fills over its first thousand calls.
const CACHE_BYTES: i64 = 1 << 20;

/// What is tried, for messages.
const OPEN: &str = "open the store";

/// Bytes the write-ahead log keeps on disk after a checkpoint. A burst may grow it; this gives the space back.
const LOG_BYTES_KEPT: i64 = 8 << 20;

/// A store on this database.
#[cfg(test)]
pub(super) fn start(database: Database) -> Result<crate::store::Store, StoreError> {
    start_at(database, &std::sync::Arc::default())
}

/// Like [`start`], for tests that also use the `desk`.
#[cfg(test)]
pub(super) fn start_at(
    database: Database,
    desk: &std::sync::Arc<super::desk::WriterDesk>,
) -> Result<crate::store::Store, StoreError> {
    let path = database.site.path.clone();
    let of_callers = Some(std::sync::Arc::clone(desk));
    let desk = std::sync::Arc::clone(desk);
    crate::store::Store::start(&path, None, of_callers, move |queue, _| {
        super::writer::run(database, queue, &desk);
    })
}

/// Where the store at `location` is; none for one in memory, or where there is no file.
pub(super) fn site_of(
    location: &Location,
    options: &StoreOptions,
) -> Result<Option<Site>, StoreError> {
    let Location::File(path) = location else {
        return Ok(None);
    };
    match path.is_file() {
        true => real_site(path, options).map(Some),
        false => Ok(None),
    }
}

pub(crate) fn open_memory(options: &StoreOptions) -> Result<Database, StoreError> {
    let site = Site {
        path: PathBuf::from(MEMORY),
        busy_timeout: options.busy_timeout,
    };
    let connection = Connection::open_in_memory().and_then(|mut connection| {
        configure(&connection, &site)?;
        schema::migrate(&mut connection)?;
        Ok(connection)
    });
    let connection = connection.map_err(|source| site.error("open the store", source))?;
    Ok(Database {
        connection: ChainedConnection::new(connection),
        site,
        file_id: None,
    })
}

/// Opens or creates the file at `path`, and brings it to the newest schema.
pub(crate) fn open_file(
    path: PathBuf,
    options: &StoreOptions,
    when_damaged: WhenDamaged,
) -> Result<(Database, Vec<String>), StoreError> {
    let site = real_site(&path, options)?;
    let path = site.path.as_path();
    place::create_folder_of(path).map_err(file("create the folder of the store", path))?;
    place::check_regular(path)?;
    let _start_lock = place::lock_start(path, options.busy_timeout)?;
    let mut notices = Vec::new();
    if has_orphan_log(path) {
        if when_damaged == WhenDamaged::Refuse {
            return Err(orphan_error(&site));
        }
        let aside = set_aside(path, options.at_ms)?;
        notices.push(orphan_notice(path, &aside));
    }
    place::create_private(path)?;
    let connected = match when_damaged {
        WhenDamaged::Refuse => connect(&site),
        WhenDamaged::SetAside => connect_unless_noted(&site),
    };
    let connection = match connected {
        Err(StoreError::Corrupt { source, .. })
            if when_damaged == WhenDamaged::SetAside && is_damaged(&site) =>
        {
            let aside = set_aside(path, options.at_ms)?;
            forget_damage(path);
            notices.push(damage_notice(path, &aside, &source));
            place::create_private(path)?;
            connect(&site)?
        }
        other => other?,
    };
    let file_id = FileId::of_path(path).map_err(file("look at the store", path))?;
    Ok((
        Database {
            connection: ChainedConnection::new(connection),
            site,
            file_id: Some(file_id),
        },
        notices,
    ))
}

/// Opens the file at `path` to look at what is in it. Where nothing can be written it is only read, and where there is no file, an empty store
/// stands for it; the notice says so then.
pub(crate) fn open_to_look(
    path: PathBuf,
    options: &StoreOptions,
) -> Result<(Database, Option<String>), StoreError> {
    let opened = open_file(path.clone(), options, WhenDamaged::Refuse);
    let refused = match opened {
        // What is not set aside has nothing to say.
        Ok((database, _)) => return Ok((database, None)),
        Err(error) if is_unwritable(&error) => error,
        Err(error) => return Err(error),
    };
    match place::real(&path)?.try_exists() {
        Ok(true) => Ok((open_to_read(&path, options)?, Some(only_read_notice(&path)))),
        Ok(false) => Ok((open_empty(&path, options)?, Some(empty_notice(&path)))),
        Err(_) => Err(refused),
    }
}

/// Whether nobody, or not this user, may write in the place of the store.
fn is_unwritable(error: &StoreError) -> bool {
    match error {
        StoreError::ReadOnly { .. } => true,
        StoreError::File { source, .. } => matches!(
            source.kind(),
            ErrorKind::PermissionDenied | ErrorKind::ReadOnlyFilesystem
        ),
        _ => false,
    }
}

/// A store without anything in it, which takes nothing; errors name `path`, where it would be.
fn open_empty(path: &Path, options: &StoreOptions) -> Result<Database, StoreError> {
    let mut database = open_memory(options)?;
    database.site.path = place::real(path)?;
    let fault = |source| database.site.error(OPEN, source);
    database
        .connection
        .pragma_update(None, "query_only", true)
        .map_err(fault)?;
    Ok(database)
}

/// Opens the file of a store to read all of it, and changes nothing: no schema, no log, no name.
///
/// Errors: [`StoreError::Corrupt`], [`StoreError::Foreign`]; [`StoreError::Older`] and [`StoreError::Newer`] for another schema.
pub(crate) fn open_to_read(path: &Path, options: &StoreOptions) -> Result<Database, StoreError> {
    let site = real_site(path, options)?;
    place::check_regular(&site.path)?;
    let log = std::fs::metadata(place::with_suffix(&site.path, "-wal"));
    let has_log = log.as_ref().is_ok_and(|log| log.len() > 0);
    let connected = match connect_to_read(&site, open_connection) {
        // No log can be made beside it; where there is none, nobody writes to it either.
        Err(StoreError::ReadOnly { .. }) if log.is_err() => connect_to_read(&site, open_immutable),
        other => other,
    };
    let connection = told_if_foreign(&site, connected)?;
    // An empty log that this made goes when it is closed; one that holds something is its owner's.
    connection
        .set_db_config(DbConfig::SQLITE_DBCONFIG_NO_CKPT_ON_CLOSE, has_log)
        .map_err(|source| site.error(OPEN, source))?;
    Ok(Database {
        connection: ChainedConnection::new(connection),
        site,
        file_id: None,
    })
}

fn connect_to_read(
    site: &Site,
    open: fn(&Site) -> rusqlite::Result<Connection>,
) -> Result<Connection, StoreError> {
    let fault = |source| site.error(OPEN, source);
    let connection = open(site).map_err(fault)?;
    connection
        .pragma_update(None, "query_only", true)
        .map_err(fault)?;
    let found = check_ours(&connection, site)?;
    let known = schema::newest_version();
    if found.is_some_and(|found| found < known) {
        return Err(StoreError::Older {
            place: site.path.display().to_string(),
            found: found.unwrap_or(0),
            known,
        });
    }
    check_pages(&connection, site)?;
    Ok(connection)
}

/// Checks every page of the file at `path`.
///
/// Errors: [`StoreError::Corrupt`], and why it cannot be read. Limits: O(size of the file).
pub(crate) fn check_file(path: &Path, options: &StoreOptions) -> Result<(), StoreError> {
    let site = real_site(path, options)?;
    check_whole(&site)
}

fn real_site(path: &Path, options: &StoreOptions) -> Result<Site, StoreError> {
    Ok(Site {
        path: place::real(path)?,
        busy_timeout: options.busy_timeout,
    })
}

/// Opens an existing file, checks that it is ours to write, and brings it to the newest schema.
fn connect(site: &Site) -> Result<Connection, StoreError> {
    told_if_foreign(site, connect_as_found(site))
}

/// The same; where damage was met in the file, its pages are all looked at first.
fn connect_unless_noted(site: &Site) -> Result<Connection, StoreError> {
    if has_damage_note(&site.path) {
        check_whole(site)?;
        forget_damage(&site.path);
    }
    connect(site)
}

/// What SQLite cannot read is damaged only if it was a store once.
fn told_if_foreign(
    site: &Site,
    connected: Result<Connection, StoreError>,
) -> Result<Connection, StoreError> {
    match connected {
        Err(StoreError::Corrupt { .. }) if !was_a_store(&site.path) => Err(StoreError::Foreign {
            path: site.path.clone(),
        }),
        other => other,
    }
}

fn connect_as_found(site: &Site) -> Result<Connection, StoreError> {
    let fault = |source| site.error(OPEN, source);
    let mut connection = open_connection(site).map_err(fault)?;
    if connection.is_readonly("main").map_err(fault)? {
        let source = ErrorSource::from(std::io::Error::from(std::io::ErrorKind::PermissionDenied));
        return Err(StoreError::ReadOnly {
            operation: OPEN,
            path: site.path.clone(),
            source,
        });
    }
    check_ours(&connection, site)?;
    configure(&connection, site).map_err(fault)?;
    schema::migrate(&mut connection).map_err(|source| site.error("migrate the store", source))?;
    schema::probe(&connection).map_err(fault)?;
    Ok(connection)
}

/// A connection to an existing file, with nothing set but the time it waits for others.
///
/// Closing it leaves the write-ahead log alone: what turns out to be damaged, or not ours, is not to be changed.
pub(crate) fn open_connection(site: &Site) -> rusqlite::Result<Connection> {
    let flags = OpenFlags::SQLITE_OPEN_READ_WRITE
        | OpenFlags::SQLITE_OPEN_NO_MUTEX
        | OpenFlags::SQLITE_OPEN_EXRESCODE;
    let connection = Connection::open_with_flags(&site.path, flags)?;
    connection.busy_timeout(site.busy_timeout)?;
    connection.set_db_config(DbConfig::SQLITE_DBCONFIG_NO_CKPT_ON_CLOSE, true)?;
    Ok(connection)
}

/// A connection to a file that nobody changes, in a folder where nothing can be made.
fn open_immutable(site: &Site) -> rusqlite::Result<Connection> {
    let flags = OpenFlags::SQLITE_OPEN_READ_ONLY
        | OpenFlags::SQLITE_OPEN_URI
        | OpenFlags::SQLITE_OPEN_NO_MUTEX
        | OpenFlags::SQLITE_OPEN_EXRESCODE;
    let mut uri = b"file:".to_vec();
    for byte in site.path.as_os_str().as_bytes() {
        match byte {
            b'%' | b'?' | b'#' => uri.extend_from_slice(format!("%{byte:02X}").as_bytes()),
            other => uri.push(*other),
        }
    }
    uri.extend_from_slice(b"?immutable=1");
    Connection::open_with_flags(PathBuf::from(OsString::from_vec(uri)), flags)
}

/// Refuses a database of another application or of a newer program, before anything is written. The version of its schema; none when it is
/// empty.
fn check_ours(connection: &Connection, site: &Site) -> Result<Option<i64>, StoreError> {
    let number = |sql: &str| {
        let number = connection.query_row(sql, [], |row| row.get::<_, i64>(0));
        number.map_err(|source| site.error("read the version of the store", source))
    };
    let application = number("PRAGMA application_id")?;
    let found = number("PRAGMA user_version")?;
    let n_objects = number("SELECT count(*) FROM sqlite_schema")?;
    let is_fresh = application == 0 && found == 0 && n_objects == 0;
    if is_fresh {
        return Ok(None);
    }
    if application != schema::APPLICATION_ID {
        return Err(StoreError::Foreign {
            path: site.path.clone(),
        });
    }
    let known = schema::newest_version();
    if !(0..=known).contains(&found) {
        return Err(StoreError::Newer {
            path: site.path.clone(),
            found,
            known,
        });
    }
    Ok(Some(found))
}

fn configure(connection: &Connection, site: &Site) -> rusqlite::Result<()> {
    connection.busy_timeout(site.busy_timeout)?;
    connection.set_prepared_statement_cache_capacity(STATEMENTS_MAX);
    connection.pragma_update_and_check(None, "journal_mode", "WAL", |_| Ok(()))?;
    connection.pragma_update(None, "synchronous", "NORMAL")?;
    connection.pragma_update_and_check(None, "wal_autocheckpoint", BACKSTOP_PAGES, |_| Ok(()))?;
    connection.pragma_update(None, "foreign_keys", true)?;
    // Kibibytes, where it is negative; else pages.
    connection.pragma_update(None, "cache_size", -(CACHE_BYTES >> 10))?;
    connection.pragma_update_and_check(None, "journal_size_limit", LOG_BYTES_KEPT, |_| Ok(()))
}

/// Whether the file is damaged; asked only after a sign of it.
fn is_damaged(site: &Site) -> bool {
    matches!(check_whole(site), Err(StoreError::Corrupt { .. }))
}

/// Checks the whole file.
///
/// Limits: O(size of the file). Others who start on the same file wait meanwhile.
fn check_whole(site: &Site) -> Result<(), StoreError> {
    let connection = open_connection(site).map_err(|source| site.error(CHECK, source))?;
    check_pages(&connection, site)
}

const CHECK: &str = "check the store";

fn check_pages(connection: &Connection, site: &Site) -> Result<(), StoreError> {
    let verdict = connection.query_row("PRAGMA quick_check(1)", [], |row| row.get::<_, String>(0));
    match verdict.map_err(|source| site.error(CHECK, source))? {
        verdict if verdict == "ok" => Ok(()),
        verdict => Err(StoreError::Corrupt {
            operation: CHECK,
            path: site.path.clone(),
            source: verdict.into(),
        }),
    }
}

/// The log of a store without the store.
fn orphan_error(site: &Site) -> StoreError {
    StoreError::Corrupt {
        operation: OPEN,
        path: site.path.clone(),
        source: "its write-ahead log is there, and the file itself is missing".into(),
    }
}

fn damage_notice(path: &Path, aside: &Path, source: &ErrorSource) -> String {
    format!(
        "the store `{}` is damaged ({source}): it was set aside as `{}` and a fresh one was started; conversations, \
         stored outputs and audit rows up to now are only in the file set aside",
        path.display(),
        aside.display(),
    )
}

fn only_read_notice(path: &Path) -> String {
    format!(
        "the store `{}` is only read: nothing can be written there",
        path.display()
    )
}

fn empty_notice(path: &Path) -> String {
    format!(
        "there is no store `{}`, and none can be made there: it is taken for empty",
        path.display()
    )
}

fn orphan_notice(path: &Path, aside: &Path) -> String {
    format!(
        "the store `{}` was missing but its write-ahead log was there: the log was set aside as `{}-wal` and a fresh \
         store was started",
        path.display(),
        aside.display(),
    )
}
