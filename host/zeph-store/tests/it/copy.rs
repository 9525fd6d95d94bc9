//! Copies between databases: every table, in both directions, or nothing.

use std::collections::BTreeMap;
use std::os::unix::fs::PermissionsExt as _;
use std::path::{Path, PathBuf};
use std::time::Duration;

use rusqlite::types::Value;
use tempfile::TempDir;
use zeph_core::id::ConversationId;
use zeph_store::{
    AuditKeyFolder, AuditKeySource, CopyKeys, CopyOptions, CopyReport, Location, NewSchedule,
    Owner, RecordsHost, ScheduleBounds, ScheduleOwner, Store, StoreError, StoreOptions, host_id,
};

use crate::database::{Database as _, Postgres};
use crate::setup::{NOW_MS, as_plain_user, fresh, open, open_url, sql, told};
use crate::suite::chain::calls;
use crate::suite::long_texts::{keep_long_texts, long_text};

fn options() -> CopyOptions {
    CopyOptions {
        store: StoreOptions {
            at_ms: NOW_MS,
            busy_timeout: Duration::from_secs(5),
        },
        directories: None,
        keys: CopyKeys::default(),
    }
}

pub(crate) fn copy(from: &Location, to: &Location) -> Result<CopyReport, StoreError> {
    Store::copy(from, to, &options(), &mut |_, _| {})
}

fn file(path: &Path) -> Location {
    Location::File(path.to_owned())
}

fn server(database: &Postgres) -> Location {
    Location::Server(Box::new(database.schema.url().parse().unwrap()))
}

/// Every table with its rows in order.
fn rows(path: &Path) -> BTreeMap<String, Vec<Vec<Value>>> {
    let connection = sql(path);
    let mut tables = connection
        .prepare("SELECT name FROM sqlite_schema WHERE type = 'table'")
        .unwrap();
    let tables: Vec<String> = tables
        .query_map([], |row| row.get(0))
        .unwrap()
        .map(Result::unwrap)
        .collect();
    tables
        .into_iter()
        .map(|table| {
            let mut statement = connection
                .prepare(&format!("SELECT * FROM {table} ORDER BY 1, 2"))
                .unwrap_or_else(|_| {
                    connection
                        .prepare(&format!("SELECT * FROM {table} ORDER BY 1"))
                        .unwrap()
                });
            let n_columns = statement.column_count();
            let rows = statement
                .query_map([], |row| {
                    (0..n_columns).map(|column| row.get(column)).collect()
                })
                .unwrap();
            (table, rows.map(Result::unwrap).collect())
        })
        .collect()
}

/// A store with two rows in every table that may have them.
fn full() -> (TempDir, PathBuf) {
    let (folder, path) = fresh();
    drop(open(&path));
    let connection = sql(&path);
    connection
        .execute_batch("PRAGMA foreign_keys = OFF")
        .unwrap();
    let mut tables = connection
        .prepare("SELECT name FROM sqlite_schema WHERE type = 'table' AND name NOT LIKE 'sqlite_%' AND sql NOT LIKE '%CHECK (id = 1)%'")
        .unwrap();
    let tables: Vec<String> = tables
        .query_map([], |row| row.get(0))
        .unwrap()
        .map(Result::unwrap)
        .collect();
    for table in tables {
        if ["grant_uses_since", "sequence_changes"].contains(&table.as_str()) {
            continue;
        }
        let mut columns = connection
            .prepare(&format!(
                "SELECT type, \"notnull\" OR pk FROM pragma_table_info('{table}')"
            ))
            .unwrap();
        let columns: Vec<(String, bool)> = columns
            .query_map([], |row| Ok((row.get(0)?, row.get(1)?)))
            .unwrap()
            .map(Result::unwrap)
            .collect();
        let marks = vec!["?"; columns.len()].join(", ");
        for n in 0..2_i64 {
            let value = |(of_column, is_needed): &(String, bool)| match of_column.as_str() {
                // One row without what may be missing.
                _ if n == 1 && !is_needed => Value::Null,
                "INTEGER" => Value::Integer(n),
                "TEXT" => Value::Text(format!("t{n} ä'\"\\ \u{1F980}")),
                "REAL" => Value::Real(0.5),
                _ => Value::Blob(vec![u8::try_from(n).unwrap(), 0, 255]),
            };
            let row: Vec<Value> = columns.iter().map(value).collect();
            connection
                .execute(
                    &format!("INSERT INTO {table} VALUES ({marks})"),
                    rusqlite::params_from_iter(row),
                )
                .unwrap();
        }
    }
    // A number that was given out and is gone.
    connection
        .execute_batch("UPDATE sqlite_sequence SET seq = 77 WHERE name = 'sequences'")
        .unwrap();
    connection
        .execute_batch(
            "UPDATE trust_version SET version = 5; UPDATE sequence_changes SET version = 6",
        )
        .unwrap();
    (folder, path)
}

#[test]
fn every_table_comes_back_as_it_was() {
    if !Postgres::is_there() {
        return;
    }
    let (_folder, path) = full();
    let before = rows(&path);
    let (first, second) = (Postgres::fresh(), Postgres::fresh());
    let report =
        copy(&file(&path), &server(&first)).unwrap_or_else(|error| panic!("{}", told(&error)));
    let n_rows: u64 = report.tables.iter().map(|(_, n_rows)| n_rows).sum();
    let is_kept = |table: &&String| !table.starts_with("sqlite_");
    let expected: usize = before
        .iter()
        .filter(|(table, _)| is_kept(table))
        .map(|(_, rows)| rows.len())
        .sum();
    assert_eq!(n_rows, expected as u64);
    assert_eq!(
        copy(&server(&first), &server(&second)).unwrap().tables,
        report.tables
    );
    let (_back, back) = fresh();
    let returned = copy(&server(&second), &file(&back)).unwrap();
    assert_eq!(
        (returned.n_hosts_unsealed, returned.tables.len()),
        (0, report.tables.len())
    );
    let after = rows(&back);
    for (table, rows) in &before {
        if table == "sqlite_sequence" {
            continue;
        }
        assert_eq!(after.get(table), Some(rows), "{table}");
    }
    let counter = "SELECT seq FROM sqlite_sequence WHERE name = 'sequences'";
    let counter: i64 = sql(&back).query_row(counter, [], |row| row.get(0)).unwrap();
    assert_eq!(counter, 77);
}

#[tokio::test]
async fn a_copy_goes_on_like_its_original() {
    if !Postgres::is_there() {
        return;
    }
    let (_folder, path) = fresh();
    let store = open(&path);
    let conversation = ConversationId::new();
    let every_byte: Vec<u8> = (0..=255).cycle().take(3_000_000).collect();
    let id = store
        .put_overflow(conversation, every_byte.clone(), NOW_MS)
        .await
        .unwrap();
    let old = store
        .put_overflow(conversation, b"b".to_vec(), NOW_MS)
        .await
        .unwrap();
    store.close().await.unwrap();
    let database = Postgres::fresh();
    copy(&file(&path), &server(&database)).unwrap();
    let store = database.open();
    assert_eq!(
        store.overflow(conversation, id).await.unwrap(),
        Some(every_byte)
    );
    let new = store
        .put_overflow(conversation, b"c".to_vec(), NOW_MS)
        .await
        .unwrap();
    let listed = store.outputs(conversation, 10).await.unwrap();
    let listed: Vec<_> = listed.iter().map(|output| output.id).collect();
    assert_eq!(
        listed,
        [new, old, id],
        "in the order in which they were stored"
    );
}

#[test]
fn a_store_is_not_copied_to_itself() {
    let (folder, path) = fresh();
    drop(open(&path));
    let link = folder.path().join("link.db");
    std::os::unix::fs::symlink(&path, &link).unwrap();
    for (from, to) in [(&path, &path), (&path, &link), (&link, &path)] {
        let error = copy(&file(from), &file(to)).unwrap_err();
        let is_told = told(&error).contains("cannot be copied to itself");
        assert!(is_told, "{}", told(&error));
    }
}

#[test]
fn a_file_that_nobody_may_change_is_copied_from() {
    let (folder, path) = full();
    let before = rows(&path);
    // A backup is one file.
    sql(&path)
        .query_row("PRAGMA wal_checkpoint(TRUNCATE)", [], |_| Ok(()))
        .unwrap();
    let odd = folder.path().join("100%#?.db");
    std::fs::rename(&path, &odd).unwrap();
    for beside in ["zeph.db-wal", "zeph.db-shm", "zeph.db.lock"] {
        drop(std::fs::remove_file(folder.path().join(beside)));
    }
    let (target_folder, target) = fresh();
    let set_mode = |path: &Path, mode| {
        std::fs::set_permissions(path, std::fs::Permissions::from_mode(mode)).unwrap();
    };
    set_mode(&odd, 0o444);
    set_mode(folder.path(), 0o555);
    set_mode(target_folder.path(), 0o777);
    let (from, to) = (file(&odd), file(&target));
    let names = || std::fs::read_dir(folder.path()).unwrap().count();
    let copied = as_plain_user(async move { copy(&from, &to).map_err(|error| told(&error)) });
    assert_eq!(names(), 1);
    set_mode(folder.path(), 0o755);
    copied.unwrap();
    assert_eq!(rows(&target), before);
}

#[tokio::test]
async fn what_holds_something_is_not_copied_to() {
    if !Postgres::is_there() {
        return;
    }
    let (_folder, path) = full();
    let database = Postgres::fresh();
    let store = database.open();
    store
        .begin_conversation(ConversationId::new(), NOW_MS)
        .await
        .unwrap();
    let (_other, other) = full();
    let before = rows(&other);
    for target in [server(&database), file(&other)] {
        let error = copy(&file(&path), &target).unwrap_err();
        assert!(matches!(error, StoreError::Occupied { .. }), "{error:?}");
    }
    assert_eq!(rows(&other), before);
    assert_eq!(store.list_conversations(10).await.unwrap().len(), 1);
    let missing = path.with_file_name("missing.db");
    let error = copy(&file(&missing), &server(&Postgres::fresh())).unwrap_err();
    assert!(matches!(error, StoreError::NotThere { .. }), "{error:?}");
    assert!(!missing.exists());
}

/// Where the schedules of a store belong, in order.
async fn directories(store: &Store) -> Vec<String> {
    let schedules = store.schedules(None, 10).await.unwrap();
    let owners = schedules.into_iter().map(|one| one.what.owner);
    owners.map(|owner| owner.directory).collect()
}

#[tokio::test(flavor = "multi_thread")]
async fn schedules_are_called_as_in_the_store_they_come_to() {
    let bounds = ScheduleBounds {
        of_caller: 9,
        in_all: 9,
    };
    let (_folder, path) = fresh();
    let store = open(&path);
    for directory in ["/a", "machine:other:/a"] {
        let schedule = NewSchedule {
            owner: ScheduleOwner {
                directory: directory.to_owned(),
                caller: Owner::default(),
            },
            name: "nightly".to_owned(),
            conversation: ConversationId::new(),
            is_model: false,
            work: "{}".to_owned(),
            times: "{}".to_owned(),
            next_ms: Some(NOW_MS),
        };
        store.put_schedule(schedule, bounds, NOW_MS).await.unwrap();
    }
    store.close().await.unwrap();
    let (_others, to_path) = fresh();
    let (_back, back_path) = fresh();
    let steps = [
        (&path, &to_path, ("/", "machine:this:/"), "machine:this:/a"),
        (&to_path, &back_path, ("machine:this:/", "/"), "/a"),
    ];
    for (from, to, (was, is), own) in steps {
        let options = CopyOptions {
            directories: Some((was.to_owned(), is.to_owned())),
            ..options()
        };
        Store::copy(&file(from), &file(to), &options, &mut |_, _| {}).unwrap();
        let store = open(to);
        let mut expected = vec![own.to_owned(), "machine:other:/a".to_owned()];
        expected.sort();
        assert_eq!(directories(&store).await, expected);
        store.close().await.unwrap();
    }
}

/// A host: where it keeps its own things.
struct Home(TempDir);

impl Home {
    fn new() -> Self {
        let home = Self(tempfile::tempdir().unwrap());
        home.folder().read_or_make(NOW_MS).unwrap();
        home
    }

    fn secrets(&self) -> PathBuf {
        self.0.path().join("secrets")
    }

    fn folder(&self) -> AuditKeyFolder {
        AuditKeyFolder::new(self.secrets())
    }

    fn file(&self) -> Location {
        file(&self.0.path().join("zeph.db"))
    }

    fn server(&self, database: &Postgres) -> Location {
        let url: zeph_store::ServerUrl = database.schema.url().parse().unwrap();
        Location::Server(Box::new(url.of_host(host_id(self.0.path()).unwrap())))
    }

    /// Makes a call on a store.
    async fn call(&self, location: Location) -> Result<(), StoreError> {
        let store = Store::open(location, options().store)?.store;
        let keys = AuditKeySource::Folder(self.folder());
        store.begin_chain(&keys, NOW_MS).await?;
        calls(&store, 1, NOW_MS).await;
        store.close().await
    }
}

/// Copies, with the keys of one home and those of another.
fn copy_with_keys(
    (from, to): (&Location, &Location),
    keys: (Option<&Home>, Option<&Home>),
) -> CopyReport {
    let keys = CopyKeys {
        from: keys.0.map(Home::secrets),
        to: keys.1.map(Home::secrets),
    };
    let options = CopyOptions { keys, ..options() };
    Store::copy(from, to, &options, &mut |_, _| {}).unwrap()
}

#[tokio::test(flavor = "multi_thread")]
async fn records_of_a_file_go_to_the_host_that_has_their_key() {
    if !Postgres::is_there() {
        return;
    }
    let (service, admin) = (Home::new(), Home::new());
    service.call(service.file()).await.unwrap();
    let n_hosts = |database: &Postgres| {
        database
            .schema
            .sql("SELECT count(DISTINCT host) FROM audit_chain")
    };
    // The service copies its own store.
    let own = Postgres::fresh();
    let ends = (service.file(), service.server(&own));
    let report = copy_with_keys((&ends.0, &ends.1), (Some(&service), Some(&service)));
    assert_eq!(report.records_host, Some(RecordsHost::Own));
    service.call(service.server(&own)).await.unwrap();
    assert_eq!(n_hosts(&own), "1\n");
    // Another user does: the service goes on with its records, and the user is not shut out.
    let others = Postgres::fresh();
    let ends = (service.file(), admin.server(&others));
    let report = copy_with_keys((&ends.0, &ends.1), (Some(&service), Some(&admin)));
    let expected = RecordsHost::Of(service.0.path().to_owned());
    assert_eq!(report.records_host, Some(expected));
    service.call(service.server(&others)).await.unwrap();
    assert_eq!(n_hosts(&others), "1\n");
    admin.call(admin.server(&others)).await.unwrap();
    // A file without its keys.
    let nobodys = Postgres::fresh();
    let ends = (service.file(), admin.server(&nobodys));
    let report = copy_with_keys((&ends.0, &ends.1), (None, Some(&admin)));
    let is_new = matches!(report.records_host, Some(RecordsHost::New(_)));
    assert!(is_new, "{report:?}");
    admin.call(admin.server(&nobodys)).await.unwrap();
    assert_eq!(n_hosts(&nobodys), "2\n");
}

#[tokio::test(flavor = "multi_thread")]
async fn records_of_another_host_come_to_a_file_without_its_seals() {
    if !Postgres::is_there() {
        return;
    }
    let (one, other) = (Home::new(), Home::new());
    let database = Postgres::fresh();
    one.call(one.server(&database)).await.unwrap();
    let ends = (other.server(&database), other.file());
    let report = copy_with_keys((&ends.0, &ends.1), (Some(&other), Some(&other)));
    assert_eq!(report.n_hosts_unsealed, 1);
    other.call(other.file()).await.unwrap();
    // Where its key is, it is sealed.
    let ends = (other.server(&database), one.file());
    let report = copy_with_keys((&ends.0, &ends.1), (Some(&other), Some(&one)));
    assert_eq!(report.n_hosts_unsealed, 0);
    one.call(one.file()).await.unwrap();
}

#[tokio::test(flavor = "multi_thread")]
async fn long_texts_and_zero_bytes_are_copied_and_tables_of_others_are_not() {
    if !Postgres::is_there() {
        return;
    }
    let (_folder, path) = fresh();
    let store = open(&path);
    let text = long_text("/work");
    keep_long_texts(&store, &text).await;
    store.close().await.unwrap();
    sql(&path)
        .execute_batch(
            "CREATE TABLE mine (x INTEGER); INSERT INTO mine VALUES (1);
            UPDATE schedules SET work = 'a' || char(0) || 'b'",
        )
        .unwrap();
    let (first, second) = (Postgres::fresh(), Postgres::fresh());
    drop(first.open());
    let theirs = "CREATE TABLE theirs (x INT GENERATED ALWAYS AS IDENTITY); INSERT INTO theirs DEFAULT VALUES";
    first.schema.sql(theirs);
    let report = copy(&file(&path), &server(&first)).unwrap();
    assert_eq!(report.passed_over, ["mine"]);
    assert_eq!(report.n_replaced, 1);
    let report = copy(&server(&first), &server(&second)).unwrap();
    assert_eq!(report.passed_over, ["theirs"]);
    assert_eq!(report.n_replaced, 0);
    let copied = directories(&second.open()).await;
    assert_eq!(copied, [text]);
}

#[test]
fn an_interrupted_copy_leaves_nothing() {
    if !Postgres::is_there() {
        return;
    }
    let (_folder, path) = full();
    let database = Postgres::fresh();
    drop(open_url(&database.schema.url()));
    let mut n_tables = 0;
    let ended = Store::copy(&file(&path), &server(&database), &options(), &mut |_, _| {
        n_tables += 1;
        if n_tables == 3 {
            database.schema.end_connections();
        }
    });
    let error = ended.unwrap_err();
    assert!(matches!(error, StoreError::ServerAway { .. }), "{error:?}");
    assert_eq!(
        database.schema.sql("SELECT count(*) FROM conversations"),
        "0\n"
    );
    copy(&file(&path), &server(&database)).unwrap();
}

#[tokio::test]
async fn the_source_of_a_copy_is_only_read() {
    let (folder, path) = full();
    sql(&path)
        .query_row("PRAGMA wal_checkpoint(TRUNCATE)", [], |_| Ok(()))
        .unwrap();
    let good = std::fs::read(&path).unwrap();
    let target = path.with_file_name("target.db");
    let older = |connection: &rusqlite::Connection| {
        connection.execute_batch("PRAGMA user_version = 1").unwrap();
    };
    let mut damaged = good.clone();
    damaged[..100].fill(0);
    type Expected = fn(&StoreError) -> bool;
    let cases: [(&str, Vec<u8>, Expected); 3] = [
        ("damaged", damaged, |error| {
            matches!(error, StoreError::Corrupt { .. })
        }),
        (
            "of an older version",
            {
                let old = path.with_file_name("old.db");
                std::fs::write(&old, &good).unwrap();
                older(&sql(&old));
                sql(&old)
                    .query_row("PRAGMA wal_checkpoint(TRUNCATE)", [], |_| Ok(()))
                    .unwrap();
                std::fs::read(&old).unwrap()
            },
            |error| matches!(error, StoreError::Older { found: 1, .. }),
        ),
        ("a text", b"thesis".repeat(100), |error| {
            matches!(error, StoreError::Foreign { .. })
        }),
    ];
    for (name, bytes, is_expected) in cases {
        let source = folder.path().join("source.db");
        std::fs::write(&source, &bytes).unwrap();
        let error = copy(&file(&source), &file(&target)).unwrap_err();
        assert!(is_expected(&error), "{name}: {error:?}");
        assert_eq!(std::fs::read(&source).unwrap(), bytes, "{name}");
        assert!(!target.exists(), "{name}");
        // Nor is it written over.
        let error = copy(&file(&path), &file(&source)).unwrap_err();
        assert!(is_expected(&error), "{name}: {error:?}");
        assert_eq!(std::fs::read(&source).unwrap(), bytes, "{name}");
    }
    let backup = folder.path().join("backups").join("zeph.db");
    std::fs::create_dir(backup.parent().unwrap()).unwrap();
    std::fs::write(&backup, &good).unwrap();
    copy(&file(&backup), &file(&target)).unwrap();
    assert_eq!(std::fs::read(&backup).unwrap(), good);
    assert_eq!(crate::setup::names(backup.parent().unwrap()), ["zeph.db"]);
}
