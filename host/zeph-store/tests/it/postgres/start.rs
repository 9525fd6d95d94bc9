//! The start: tables that several hosts make at once, and what is refused.

use std::sync::Barrier;

use zeph_core::id::ConversationId;
use zeph_store::StoreError;

use crate::database::{Database as _, Postgres};
use crate::setup::{NOW_MS, open_url, told, try_open_url};

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
