//! Copies a whole store from one database to another, between SQLite and PostgreSQL as well as within each.
//!
//! What is read is the state of one moment. What is written is one transaction: a copy that is interrupted leaves nothing.

mod postgres;
mod sqlite;

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};
use std::thread;

use uuid::Uuid;

use crate::audit::chain::ChainMark;
use crate::error::StoreError;
use crate::open::{Location, StoreOptions};
use crate::place;
use crate::secrets::audit_keys::AuditKeyFolder;
use crate::store::Store;

/// Tables that say something of their own database and nothing of what is kept in it.
const OWN_TABLES: [&str; 2] = ["zeph_host_schema", "host_processes"];

/// Tables that have a row from the beginning, which the copied one replaces.
const SINGLE_ROWS: [&str; 4] = [
    "grant_uses_since",
    "offer_version",
    "sequence_changes",
    "trust_version",
];

/// Tables in which the rows of each host stand for themselves, where many hosts share a database: the chain and what hangs on it.
const CHAIN_TABLES: [&str; 2] = ["audit_chain", "audit_checkpoint"];

/// Reads the newest event of a chain itself; on a server, of any.
const NEWEST_MARK: &str =
    "SELECT body FROM audit_chain WHERE body IS NOT NULL ORDER BY n DESC LIMIT 1";

/// The table whose rows belong to a directory, which is called otherwise where several machines share a database.
const SCHEDULES: &str = "schedules";

/// Its column with that.
const DIRECTORY: &str = "directory";

/// The column that says which host a row belongs to.
const HOST: &str = "host";

/// The column that orders rows where the database does not do so by itself.
const ORDER: &str = "seq";

/// Bytes of values that are held at a time, about.
const HELD_BYTES: usize = 8 << 20;

/// Rows that are held at a time, at most.
const HELD_ROWS: usize = 2_000;

/// A value of a row.
#[derive(Debug, Clone, PartialEq)]
enum Cell {
    Null,
    Integer(i64),
    Real(f64),
    Text(String),
    Bytes(Vec<u8>),
}

impl Cell {
    fn n_bytes(&self) -> usize {
        match self {
            Self::Text(text) => text.len(),
            Self::Bytes(bytes) => bytes.len(),
            Self::Null | Self::Integer(_) | Self::Real(_) => 8,
        }
    }
}

/// The columns of a table, in the order of its rows.
type Columns = Vec<String>;

/// Takes rows as they are read.
type TakeRows<'a> = dyn FnMut(Vec<Vec<Cell>>) -> Result<(), StoreError> + 'a;

/// One end of a copy, in one transaction.
trait CopyEnd {
    /// The tables with their columns.
    fn tables(&self) -> Result<BTreeMap<String, Columns>, StoreError>;
    /// Which table refers to which: its rows come later.
    fn references(&self) -> Result<BTreeSet<(String, String)>, StoreError>;
    /// How many rows a table has.
    fn count(&self, table: &str) -> Result<u64, StoreError>;
    /// The different values of a column of text.
    fn hosts(&self, table: &str) -> Result<BTreeSet<String>, StoreError>;
    /// Reads a table in parts.
    fn read(
        &self,
        table: &str,
        columns: &Columns,
        take: &mut TakeRows<'_>,
    ) -> Result<(), StoreError>;
    /// Deletes the rows of a table.
    fn clear(&self, table: &str) -> Result<(), StoreError>;
    /// Adds rows to a table.
    fn write(&self, table: &str, columns: &Columns, rows: Vec<Vec<Cell>>)
    -> Result<(), StoreError>;
    /// The highest number that was ever given out, of each table that never gives one out again.
    fn counters(&self) -> Result<BTreeMap<String, i64>, StoreError>;
    /// Goes on after these numbers in the tables that were copied.
    fn set_counters(
        &self,
        counters: &BTreeMap<String, i64>,
        copied: &[(String, u64)],
    ) -> Result<(), StoreError>;
    /// The newest event of the audit chain itself, as JSON.
    fn newest_mark(&self) -> Result<Option<String>, StoreError>;
    /// The host that opened it, where several share a database.
    fn host(&self) -> Option<&str>;
    /// Whether a text can have zero bytes.
    fn keeps_zeros(&self) -> bool;
    /// Makes what was written last.
    fn commit(&self) -> Result<(), StoreError>;
}

/// How a store is copied.
#[derive(Debug, Clone)]
pub struct CopyOptions {
    /// How the two are opened.
    pub store: StoreOptions,
    /// What directories of schedules begin with, and what stands in its place in the copy; none leaves them as they are.
    pub directories: Option<(String, String)>,
    /// Where a host on each of them has the keys of its audit log: the folders of the secrets. They say who goes on with the records.
    pub keys: CopyKeys,
}

/// The folders with the keys of the audit log, of the store that is copied and of the copy; none where nothing is kept.
#[derive(Debug, Clone, Default)]
pub struct CopyKeys {
    /// Of the store that is copied.
    pub from: Option<PathBuf>,
    /// Of the copy.
    pub to: Option<PathBuf>,
}

/// Which host the audit records of a file belong to on a server.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum RecordsHost {
    /// The one that copies: it has the key that vouches for them, or there is none.
    Own,
    /// The one whose identity is in this folder, beside the keys.
    Of(PathBuf),
    /// One of this identity that no host has yet: their key was not found.
    New(String),
}

/// What was copied.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct CopyReport {
    /// The tables with their rows, in the order in which they were copied.
    pub tables: Vec<(String, u64)>,
    /// Hosts whose audit records were copied without what vouches for them, since a file keeps the chain of one host.
    pub n_hosts_unsealed: usize,
    /// Whose the audit records of a file are on the server it was copied to.
    pub records_host: Option<RecordsHost>,
    /// Texts with zero bytes, which no server can hold: there they have the control character SUBSTITUTE (U+001A) in their place.
    pub n_replaced: u64,
    /// Tables of others, which were not copied.
    pub passed_over: Vec<String>,
}

impl Store {
    /// Copies everything from one database to another, which has to be empty. `tell` hears of each table when it was copied.
    ///
    /// It blocks until that is done. The one it copies from is only read. Secrets and the keys of the audit log are not in a database and
    /// stay where they are.
    /// Errors: those of [`Store::open`]; [`StoreError::NotThere`] when there is nothing to copy, [`StoreError::UnreadableSource`],
    /// [`StoreError::CopyToItself`], [`StoreError::Older`] when one of them is of
    /// another version, [`StoreError::Occupied`] when the target holds anything, [`StoreError::CopyDiffers`] when another process wrote to it meanwhile.
    pub fn copy(
        from: &Location,
        to: &Location,
        options: &CopyOptions,
        tell: &mut (dyn FnMut(&str, u64) + Send),
    ) -> Result<CopyReport, StoreError> {
        if are_one(from, to) {
            return Err(StoreError::CopyToItself {
                place: to.to_string(),
            });
        }
        // On a thread of its own: the caller may be one of a runtime, where nothing may wait.
        thread::scope(|scope| {
            let copied = scope.spawn(|| copy(from, to, options, tell)).join();
            copied.unwrap_or(Err(StoreError::Closed {
                operation: "copy the store",
            }))
        })
    }
}

fn are_one(from: &Location, to: &Location) -> bool {
    match (from, to) {
        (Location::File(from), Location::File(to)) => {
            matches!((place::real(from), place::real(to)), (Ok(from), Ok(to)) if from == to)
        }
        _ => from == to,
    }
}

fn copy(
    from: &Location,
    to: &Location,
    options: &CopyOptions,
    tell: &mut dyn FnMut(&str, u64),
) -> Result<CopyReport, StoreError> {
    let source = open_source(from, &options.store)?;
    let target = open_target(to, &options.store)?;
    let copy = Copy {
        source: source.as_ref(),
        target: target.as_ref(),
        place: to.to_string(),
        directories: options.directories.as_ref(),
        keys: &options.keys,
    };
    copy.run(tell)
}

fn open_source(from: &Location, options: &StoreOptions) -> Result<Box<dyn CopyEnd>, StoreError> {
    let none = || StoreError::NotThere {
        place: from.to_string(),
    };
    Ok(match from {
        Location::Memory => return Err(none()),
        Location::File(path) if !path.is_file() => return Err(none()),
        Location::File(path) => {
            let end = sqlite::SqliteEnd::open_source(path, options)?;
            // A file without anything in it is none.
            match end.tables()?.is_empty() {
                true => return Err(none()),
                false => Box::new(end),
            }
        }
        Location::Server(url) => {
            let end = postgres::PostgresEnd::open_source((**url).clone(), options)?;
            Box::new(end.ok_or_else(none)?)
        }
    })
}

fn open_target(to: &Location, options: &StoreOptions) -> Result<Box<dyn CopyEnd>, StoreError> {
    Ok(match to {
        Location::Memory => {
            return Err(StoreError::NotThere {
                place: to.to_string(),
            });
        }
        Location::File(path) => Box::new(sqlite::SqliteEnd::open_target(path, options)?),
        Location::Server(url) => Box::new(postgres::PostgresEnd::open_target(
            (**url).clone(),
            options,
        )?),
    })
}

struct Copy<'a> {
    source: &'a dyn CopyEnd,
    target: &'a dyn CopyEnd,
    /// The target as messages show it.
    place: String,
    directories: Option<&'a (String, String)>,
    keys: &'a CopyKeys,
}

/// The columns of a row that are others in the target, by number.
#[derive(Debug, Clone, Copy, Default)]
struct ChangedColumns {
    /// What says that a chain vouches for the row, where none does there.
    chain_n: Option<usize>,
    directory: Option<usize>,
    /// Whether the row gets a host.
    adds_host: bool,
}

/// What becomes of audit records.
struct CopiedAudit {
    /// Whether what vouches for them is copied.
    is_sealed: bool,
    /// The host they get, where they had none.
    host: Option<String>,
}

impl Copy<'_> {
    fn run(&self, tell: &mut dyn FnMut(&str, u64)) -> Result<CopyReport, StoreError> {
        let (from, to) = (self.source.tables()?, self.target.tables()?);
        self.check_empty(from.keys().filter(|table| to.contains_key(*table)))?;
        let (records_host, host) = self.records_host()?.unzip();
        let mut report = CopyReport {
            n_hosts_unsealed: self.n_hosts_unsealed(&from, &to)?,
            records_host,
            ..CopyReport::default()
        };
        let audit = CopiedAudit {
            is_sealed: report.n_hosts_unsealed == 0,
            host,
        };
        let references = self.target.references()?;
        for table in in_order(from.keys(), &references) {
            if OWN_TABLES.contains(&table.as_str()) {
                continue;
            }
            if !audit.is_sealed && CHAIN_TABLES.contains(&table.as_str()) {
                continue;
            }
            // Both are of one version: it is none of a store.
            let Some(columns) = to.get(&table) else {
                report.passed_over.push(table);
                continue;
            };
            let n_rows = self.table(
                &table,
                (&from[&table], columns),
                &audit,
                &mut report.n_replaced,
            )?;
            tell(&table, n_rows);
            report.tables.push((table, n_rows));
        }
        self.target
            .set_counters(&self.source.counters()?, &report.tables)?;
        self.target.commit()?;
        Ok(report)
    }

    fn check_empty<'a>(&self, tables: impl Iterator<Item = &'a String>) -> Result<(), StoreError> {
        let kept = |table: &&String| {
            let table = table.as_str();
            !OWN_TABLES.contains(&table) && !SINGLE_ROWS.contains(&table)
        };
        for table in tables.filter(kept) {
            if self.target.count(table)? > 0 {
                return Err(StoreError::Occupied {
                    place: self.place.clone(),
                    table: format!("the table `{table}`"),
                });
            }
        }
        Ok(())
    }

    /// The name of the key that vouches for the newest records.
    fn sealing_key(&self) -> Result<Option<String>, StoreError> {
        let mark = self.source.newest_mark()?;
        let mark = mark.and_then(|mark| serde_json::from_str::<ChainMark>(&mark).ok());
        Ok(mark.map(|mark| mark.key))
    }

    /// Which host goes on with the records of a file on a server, and its identity: the one that has the key. Any other could not open the store.
    fn records_host(&self) -> Result<Option<(RecordsHost, String)>, StoreError> {
        let (None, Some(own)) = (self.source.host(), self.target.host()) else {
            return Ok(None);
        };
        let own = (RecordsHost::Own, own.to_owned());
        let Some(key) = self.sealing_key()? else {
            return Ok(Some(own));
        };
        let CopyKeys { from, to } = self.keys;
        if has_key(to.as_deref(), &key) {
            return Ok(Some(own));
        }
        let folder = from.as_deref().filter(|keys| has_keys(keys));
        let folder = folder.and_then(Path::parent);
        let beside = folder.and_then(|folder| Some((folder, place::host_id_of(folder)?)));
        Ok(Some(match beside {
            Some((folder, host)) => (RecordsHost::Of(folder.to_owned()), host),
            None => {
                let host = Uuid::new_v4().to_string();
                (RecordsHost::New(host.clone()), host)
            }
        }))
    }

    /// Hosts whose chains cannot be kept: more than one, where the target keeps one; or one that is not this, and has its keys elsewhere.
    fn n_hosts_unsealed(
        &self,
        from: &BTreeMap<String, Columns>,
        to: &BTreeMap<String, Columns>,
    ) -> Result<usize, StoreError> {
        let has_hosts = |tables: &BTreeMap<String, Columns>| {
            let columns = tables.get(CHAIN_TABLES[0]);
            columns.is_some_and(|columns| columns.iter().any(|column| column == HOST))
        };
        if !has_hosts(from) || has_hosts(to) {
            return Ok(0);
        }
        let mut hosts = self.source.hosts("audit")?;
        hosts.extend(self.source.hosts(CHAIN_TABLES[0])?);
        let [host] = &Vec::from_iter(&hosts)[..] else {
            return Ok(hosts.len());
        };
        if self.source.host() == Some(host.as_str()) {
            return Ok(0);
        }
        let key = self.sealing_key()?;
        let is_kept = key.is_none_or(|key| has_key(self.keys.to.as_deref(), &key));
        Ok(usize::from(!is_kept))
    }

    /// Copies the columns that both have; what only one has is an order or a host, or a fault.
    fn table(
        &self,
        table: &str,
        (from, to): (&Columns, &Columns),
        audit: &CopiedAudit,
        n_replaced: &mut u64,
    ) -> Result<u64, StoreError> {
        let is_extra = |column: &str| column == HOST || column == ORDER;
        let differs = |one: &Columns, other: &Columns| {
            one.iter()
                .any(|column| !other.contains(column) && !is_extra(column))
        };
        if differs(from, to) || differs(to, from) {
            return Err(self.unknown(table));
        }
        // Where rows belong to a host and did not before, they are this one's.
        let adds_host =
            to.iter().any(|column| column == HOST) && !from.iter().any(|column| column == HOST);
        let drops_host =
            from.iter().any(|column| column == HOST) && !to.iter().any(|column| column == HOST);
        let keeps = |column: &&String| !(drops_host && *column == HOST);
        let read: Columns = from.iter().filter(keeps).cloned().collect();
        let mut written = read.clone();
        if adds_host {
            written.push(HOST.to_owned());
        }
        let of = |wanted: &str, is_changed: bool| {
            let at = read.iter().position(|column| column == wanted);
            at.filter(|_| is_changed)
        };
        let changed = ChangedColumns {
            chain_n: of("chain_n", !audit.is_sealed),
            directory: of(DIRECTORY, table == SCHEDULES),
            adds_host,
        };
        if SINGLE_ROWS.contains(&table) {
            self.target.clear(table)?;
        }
        let mut n_rows = 0;
        self.source.read(table, &read, &mut |mut rows| {
            for row in &mut rows {
                self.change(row, changed, audit.host.as_deref());
            }
            if !self.target.keeps_zeros() {
                *n_replaced += n_with_zeros(&rows);
            }
            n_rows += rows.len() as u64;
            self.target.write(table, &written, rows)
        })?;
        let (there, here) = (self.source.count(table)?, self.target.count(table)?);
        match there == n_rows && here == n_rows {
            true => Ok(n_rows),
            false => Err(StoreError::CopyDiffers {
                place: self.place.clone(),
                table: table.to_owned(),
                expected: there,
                found: here,
            }),
        }
    }

    fn change(&self, row: &mut Vec<Cell>, changed: ChangedColumns, host: Option<&str>) {
        if let Some(column) = changed.chain_n {
            row[column] = Cell::Null;
        }
        if let (Some(column), Some((from, to))) = (changed.directory, self.directories)
            && let Cell::Text(directory) = &mut row[column]
            && let Some(rest) = directory.strip_prefix(from.as_str())
        {
            *directory = format!("{to}{rest}");
        }
        if changed.adds_host {
            row.push(host.map_or(Cell::Null, |host| Cell::Text(host.to_owned())));
        }
    }

    fn unknown(&self, table: &str) -> StoreError {
        StoreError::CopyUnknown {
            place: self.place.clone(),
            table: table.to_owned(),
        }
    }
}

/// Whether a key of this name is in a folder, as far as that can be read.
fn has_key(folder: Option<&Path>, key: &str) -> bool {
    folder.is_some_and(|folder| AuditKeyFolder::new(folder).names(key))
}

/// Whether a folder has any keys, readable or not.
fn has_keys(folder: &Path) -> bool {
    AuditKeyFolder::new(folder).file().exists()
}

fn n_with_zeros(rows: &[Vec<Cell>]) -> u64 {
    let has_zero = |cell: &&Cell| matches!(cell, Cell::Text(text) if text.contains('\0'));
    rows.iter().flatten().filter(has_zero).count() as u64
}

/// The tables such that each comes after those it refers to.
fn in_order<'a>(
    tables: impl Iterator<Item = &'a String>,
    references: &BTreeSet<(String, String)>,
) -> Vec<String> {
    let mut waiting: Vec<String> = tables.cloned().collect();
    let mut ordered = Vec::with_capacity(waiting.len());
    while !waiting.is_empty() {
        let is_ready = |table: &String| {
            let mut of_table = references.iter().filter(|(child, _)| child == table);
            of_table.all(|(child, parent)| child == parent || !waiting.contains(parent))
        };
        let (ready, rest): (Vec<_>, Vec<_>) = waiting.iter().cloned().partition(is_ready);
        // Tables that refer to each other could have no order: then it is as good as any.
        if ready.is_empty() {
            ordered.extend(rest);
            break;
        }
        ordered.extend(ready);
        waiting = rest;
    }
    ordered
}

/// Rows that are held until they are many or large enough.
#[derive(Default)]
struct HeldRows {
    rows: Vec<Vec<Cell>>,
    n_bytes: usize,
}

impl HeldRows {
    /// Adds a row; gives all back when they are enough.
    fn add(&mut self, row: Vec<Cell>) -> Option<Vec<Vec<Cell>>> {
        self.n_bytes += row.iter().map(Cell::n_bytes).sum::<usize>();
        self.rows.push(row);
        let is_enough = self.rows.len() >= HELD_ROWS || self.n_bytes >= HELD_BYTES;
        is_enough.then(|| self.take())
    }

    fn take(&mut self) -> Vec<Vec<Cell>> {
        self.n_bytes = 0;
        std::mem::take(&mut self.rows)
    }
}
