//! What cannot be caused from outside without a disk of its own: a database that is not allowed to grow.

use std::time::Duration;

use tokio::task::JoinSet;
use zeph_core::id::ConversationId;

use crate::error::StoreError;
use crate::open::{Location, StoreOptions, WhenDamaged};
use crate::sqlite::open;
use crate::store::{Access, Store};

/// Pages a full store may still grow by: enough for small rows, not for the large output.
const SPARE_PAGES: i64 = 40;

fn full_store(location: Location) -> Store {
    let options = StoreOptions {
        at_ms: 0,
        busy_timeout: Duration::from_secs(5),
    };
    let database = match location {
        Location::Memory => open::open_memory(&options).unwrap(),
        Location::File(path) => {
            open::open_file(path, &options, WhenDamaged::SetAside)
                .unwrap()
                .0
        }
        Location::Server(_) => panic!("not of SQLite"),
    };
    let connection = &database.connection;
    let n_pages: i64 = connection
        .query_row("PRAGMA page_count", [], |row| row.get(0))
        .unwrap();
    connection
        .pragma_update_and_check(None, "max_page_count", n_pages + SPARE_PAGES, |_| Ok(()))
        .unwrap();
    open::start(database).unwrap()
}

/// Many small outputs and some that do not fit, queued together: exactly those fail, and the store goes on.
async fn check_full(location: Location) {
    let store = full_store(location);
    let conversation = ConversationId::new();
    let mut tasks = JoinSet::new();
    for n in 0..60_usize {
        let store = store.clone();
        tasks.spawn(async move {
            let n_bytes = if n % 7 == 3 { 1 << 20 } else { 10 };
            (
                n_bytes,
                store
                    .put_overflow(conversation, vec![b'x'; n_bytes], 1)
                    .await,
            )
        });
    }
    for (n_bytes, result) in tasks.join_all().await {
        match result {
            Ok(id) => {
                let content = store.overflow(conversation, id).await.unwrap().unwrap();
                assert_eq!((n_bytes, content.len()), (10, 10));
            }
            Err(error) => {
                assert!(matches!(error, StoreError::DiskFull { .. }), "{error:?}");
                assert!(n_bytes > 10, "a small output failed: {error}");
            }
        }
    }
    let listed = store.list_conversations(10).await.unwrap();
    assert_eq!(listed[0].overflow_bytes, 51 * 10);
}

#[tokio::test]
async fn a_full_disk_fails_only_what_does_not_fit() {
    let dir = tempfile::tempdir().unwrap();
    check_full(Location::File(dir.path().join("zeph.db"))).await;
    check_full(Location::Memory).await;
}

/// A caller that panics while it has the writer leaves it unfit for use: every other is told that the store is closed.
#[tokio::test]
async fn a_panic_of_one_caller_leaves_nobody_waiting() {
    for access in [Access::ReadRights, Access::WriteBriefly, Access::Write] {
        let store = full_store(Location::Memory);
        let panicking = store.clone();
        let mut tasks = JoinSet::new();
        tasks.spawn(async move {
            let work = |_: &dyn crate::operations::Operations| -> crate::operations::Outcome<()> {
                panic!("a job of this test")
            };
            panicking.run("panic", access, work).await
        });
        let panicked = tasks.join_next().await.unwrap();
        let is_told = matches!(panicked, Ok(Err(StoreError::Closed { .. })) | Err(_));
        assert!(is_told, "{access:?}: {panicked:?}");
        let next = store.begin_conversation(ConversationId::new(), 1).await;
        assert!(
            matches!(next, Err(StoreError::Closed { .. })),
            "{access:?}: {next:?}"
        );
    }
}
