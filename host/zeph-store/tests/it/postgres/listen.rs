//! Announcements of other hosts.

use std::time::Duration;

use zeph_store::Change;

use crate::database::{Database as _, Postgres};

const LONG: Duration = Duration::from_secs(600);

#[tokio::test]
async fn another_host_is_heard_and_only_on_its_own_store() {
    if !Postgres::is_there() {
        return;
    }
    let (database, elsewhere) = (Postgres::fresh(), Postgres::fresh());
    let (here, there) = (database.open(), database.open());
    let mut changes = here.changes(LONG).await.unwrap();
    // Once it listens it says so.
    assert_eq!(changes.next().await, Change::Look);
    elsewhere.open().announce("of another store").await.unwrap();
    there.announce("tools").await.unwrap();
    assert_eq!(changes.next().await, Change::Announced("tools".into()));
    here.announce("own").await.unwrap();
    there.announce("again").await.unwrap();
    assert_eq!(changes.next().await, Change::Announced("own".into()));
    assert_eq!(changes.next().await, Change::Announced("again".into()));
}

#[tokio::test]
async fn a_lost_connection_is_made_anew_and_is_a_reason_to_look() {
    if !Postgres::is_there() {
        return;
    }
    let database = Postgres::fresh();
    let (here, there) = (database.open(), database.open());
    let mut changes = here.changes(LONG).await.unwrap();
    assert_eq!(changes.next().await, Change::Look);
    database.schema.end_connections();
    assert_eq!(changes.next().await, Change::Look);
    there.announce("tools").await.unwrap();
    assert_eq!(changes.next().await, Change::Announced("tools".into()));
}
