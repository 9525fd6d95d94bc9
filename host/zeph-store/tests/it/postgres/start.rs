//! The start: tables that several hosts make at once, and what is refused.

use std::sync::Barrier;
use std::time::{Duration, Instant};

use zeph_core::id::ConversationId;
use zeph_store::{Location, Store, StoreError, StoreOptions};

use crate::copy::copy;
use crate::database::{Database as _, Postgres};
use crate::setup::{NOW_MS, fresh, open, open_url, told, try_open_url};

/// How long a store waits for others.
const BUSY: Duration = Duration::from_secs(5);

#[test]
fn hosts_that_start_at_once_make_the_tables_once() {
    if !Postgres::is_there() {
        return;
    }
    for _ in 0..3 {
        let database = Postgres::fresh();
        let url = database.schema.url();
        let barrier = Barrier::new(8);
        std::thread::scope(|scope| {
            for _ in 0..8 {
                scope.spawn(|| {
                    barrier.wait();
                    drop(open_url(&url));
                });
            }
        });
        let versions = database.schema.sql("SELECT count(*) FROM zeph_host_schema");
        assert_eq!(versions, "1\n");
    }
}

#[tokio::test]
async fn a_newer_schema_is_refused_and_left_alone() {
    if !Postgres::is_there() {
        return;
    }
    let database = Postgres::fresh();
    let store = database.open();
    store
        .begin_conversation(ConversationId::new(), NOW_MS)
        .await
        .unwrap();
    store.close().await.unwrap();
    database
        .schema
        .sql("UPDATE zeph_host_schema SET version = 999");
    let error = try_open_url(&database.schema.url()).unwrap_err();
    assert!(
        matches!(error, StoreError::Newer { found: 999, .. }),
        "{error:?}"
    );
    let told = told(&error);
    assert!(
        told.contains("`store.url`") && !told.contains("`store.path`"),
        "{told}"
    );
    assert_eq!(
        database.schema.sql("SELECT count(*) FROM conversations"),
        "1\n"
    );
}

#[test]
fn a_database_of_another_application_is_refused_and_left_alone() {
    if !Postgres::is_there() {
        return;
    }
    let database = Postgres::fresh();
    database
        .schema
        .sql("CREATE TABLE conversations (about TEXT)");
    let error = try_open_url(&database.schema.url()).unwrap_err();
    assert!(matches!(error, StoreError::Foreign { .. }), "{error:?}");
    let tables = "SELECT count(*) FROM pg_tables WHERE schemaname = current_schema()";
    assert_eq!(database.schema.sql(tables), "1\n");
}

#[test]
fn who_may_not_make_tables_may_use_those_that_are_there() {
    if !Postgres::is_there() {
        return;
    }
    let database = Postgres::fresh();
    let (schema, role) = (&database.schema.name, format!("r_{}", database.schema.name));
    database.schema.sql(&format!(
        "CREATE ROLE {role} LOGIN; GRANT USAGE ON SCHEMA {schema} TO {role}"
    ));
    let url = database.schema.url().replace("zeph@", &format!("{role}@"));
    let error = try_open_url(&url).unwrap_err();
    assert!(
        told(&error).contains("permission denied"),
        "{}",
        told(&error)
    );
    drop(database.open());
    database.schema.sql(&format!(
        "GRANT ALL ON ALL TABLES IN SCHEMA {schema} TO {role}"
    ));
    drop(open_url(&url));
}

#[test]
fn a_database_that_lacks_characters_is_refused_before_anything_is_kept_there() {
    if !Postgres::is_there() {
        return;
    }
    let database = Postgres::fresh();
    let cases = [
        ("LATIN1", false),
        ("WIN1252", false),
        ("UTF8", true),
        ("SQL_ASCII", true),
    ];
    for (encoding, is_taken) in cases {
        let name = format!("{}_{}", database.schema.name, encoding.to_lowercase());
        let sql = |sql: String| database.schema.server.sql("", &sql);
        sql(format!(
            "CREATE DATABASE {name} ENCODING '{encoding}' LOCALE 'C' TEMPLATE template0"
        ));
        let port = database.schema.server.port;
        let url = format!("postgres://zeph@127.0.0.1:{port}/{name}");
        match (try_open_url(&url), is_taken) {
            (Ok(opened), true) => drop(opened),
            (Err(error), false) => {
                let told = told(&error);
                assert!(told.contains(encoding) && told.contains("UTF8"), "{told}");
                let location = Location::Server(Box::new(url.parse().unwrap()));
                let (_folder, path) = fresh();
                drop(open(&path));
                let copied = copy(&Location::File(path), &location);
                let is_same = matches!(copied, Err(StoreError::Encoding { .. }));
                assert!(is_same, "{encoding}: {copied:?}");
            }
            (opened, _) => panic!("{encoding}: {opened:?}"),
        }
        sql(format!("DROP DATABASE {name} WITH (FORCE)"));
    }
}

/// The URL of a role that may have so many connections, and all rights in the schema.
fn limited(database: &Postgres, n_connections: u32) -> String {
    let (schema, role) = (&database.schema.name, format!("l_{}", database.schema.name));
    drop(database.open());
    database.schema.sql(&format!(
        "CREATE ROLE {role} LOGIN CONNECTION LIMIT {n_connections}; GRANT USAGE ON SCHEMA {schema} TO {role};
        GRANT ALL ON ALL TABLES IN SCHEMA {schema} TO {role}"
    ));
    database.schema.url().replace("zeph@", &format!("{role}@"))
}

#[tokio::test(flavor = "multi_thread")]
async fn a_host_reads_with_the_connections_it_gets() {
    if !Postgres::is_there() {
        return;
    }
    // That of the writer is enough.
    for n_connections in 1..=3 {
        let database = Postgres::fresh();
        let store = open_url(&limited(&database, n_connections));
        let conversation = ConversationId::new();
        store
            .begin_conversation(conversation, NOW_MS)
            .await
            .unwrap();
        let began = Instant::now();
        assert_eq!(store.list_tokens().await.unwrap(), []);
        let mut reads = tokio::task::JoinSet::new();
        for _ in 0..64 {
            let store = store.clone();
            reads.spawn(async move { store.list_conversations(9).await });
        }
        for read in reads.join_all().await {
            let read = read.unwrap_or_else(|error| panic!("{}", told(&error)));
            assert_eq!(read.len(), 1);
        }
        assert!(began.elapsed() < BUSY, "nothing waited in vain");
        store.close().await.unwrap();
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_host_waits_for_a_connection_that_another_one_has() {
    if !Postgres::is_there() {
        return;
    }
    let database = Postgres::fresh();
    let url = limited(&database, 1);
    let options = |busy_timeout| StoreOptions {
        at_ms: NOW_MS,
        busy_timeout,
    };
    let open = |busy_timeout| {
        let location = Location::Server(Box::new(url.parse().unwrap()));
        Store::open(location, options(busy_timeout))
    };
    let one = open(Duration::from_secs(60)).unwrap().store;
    one.begin_conversation(ConversationId::new(), NOW_MS)
        .await
        .unwrap();
    let error = open(Duration::from_millis(300)).unwrap_err();
    assert!(matches!(error, StoreError::ServerFull { .. }), "{error:?}");
    let told = told(&error);
    assert!(
        told.contains("too many") && told.contains("max_connections"),
        "{told}"
    );
    std::thread::scope(|scope| {
        let other = scope.spawn(|| open(Duration::from_secs(60)));
        drop(one);
        drop(other.join().unwrap().unwrap());
    });
}

#[test]
fn a_server_that_lets_nobody_in_is_no_server_that_is_away() {
    if !Postgres::is_there() {
        return;
    }
    let url = Postgres::fresh().schema.url();
    let other_database = {
        let (before, rest) = url.rsplit_once('/').unwrap();
        let (_, settings) = rest.split_once('?').unwrap();
        format!("{before}/no_such_database?{settings}")
    };
    let cases = [
        (url.replace("zeph@", "nobody_of_this_name@"), "role"),
        (other_database, "database"),
    ];
    for (url, said) in cases {
        let error = try_open_url(&url).unwrap_err();
        assert!(
            matches!(error, StoreError::ServerRefused { .. }),
            "{error:?}"
        );
        let told = told(&error);
        assert!(told.contains(said) && told.contains("store.url"), "{told}");
    }
}

#[test]
fn what_cannot_be_reached_is_told_without_the_password() {
    let cases = [
        "postgres://ann:s3cr3t@127.0.0.1:1/zeph?connect_timeout=1",
        "postgres://ann:s3cr3t@%2Fnonexistent/zeph",
        "postgres://ann:s3cr3t@no-such-host.invalid/zeph?sslmode=disable",
    ];
    for url in cases {
        let error = try_open_url(url).unwrap_err();
        assert!(matches!(error, StoreError::ServerAway { .. }), "{error:?}");
        let shown = format!("{} {error:?}", told(&error));
        assert!(!shown.contains("s3cr3t"), "{shown}");
        assert!(shown.contains("store.url"), "{shown}");
    }
}
