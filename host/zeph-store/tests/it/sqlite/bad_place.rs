//! Places where a store cannot be: one clear error each, with a way out.

use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::time::Duration;

use zeph_core::id::ConversationId;
use zeph_store::{Location, Store, StoreError, StoreOptions};

use crate::setup::{NOW_MS, as_plain_user, begin, fresh, memory, n_rows, open, told, try_open};

/// Opening fails, and what is told starts as expected, names the path, and tells what to do.
fn check_refused(path: &Path, expected_start: &str) {
    let error = try_open(path).unwrap_err();
    let told = told(&error);
    assert!(told.starts_with(expected_start), "{told}");
    assert!(
        told.contains("`store.path`") && told.contains("\":memory:\""),
        "{told}"
    );
    assert!(
        !error.to_string().contains("os error"),
        "the cause is repeated: {error}"
    );
}

#[test]
fn places_that_cannot_hold_a_store() {
    let (dir, _) = fresh();
    let plain = dir.path().join("plain");
    fs::write(&plain, "text").unwrap();
    check_refused(
        &plain.join("zeph.db"),
        "cannot create the folder of the store `",
    );
    check_refused(
        &plain.join("a/b/zeph.db"),
        "cannot create the folder of the store `",
    );
    check_refused(
        Path::new("/proc/no/such/zeph.db"),
        "cannot create the folder of the store `/proc",
    );
    check_refused(
        dir.path(),
        &format!(
            "the store `{}` is a directory, not a file",
            dir.path().display()
        ),
    );
    check_refused(
        Path::new("/dev/null"),
        "the store `/dev/null` is a device, pipe or socket, not a file",
    );
    check_refused(
        Path::new("/proc/zeph.db"),
        "cannot create the lock file `/proc/zeph.db.lock`",
    );
    assert_eq!(fs::read_to_string(&plain).unwrap(), "text");
}

#[test]
fn places_without_the_right_to_write() {
    as_plain_user(without_the_right_to_write());
}

async fn without_the_right_to_write() {
    let set_mode =
        |path: &Path, mode| fs::set_permissions(path, fs::Permissions::from_mode(mode)).unwrap();
    let (dir, path) = fresh();
    set_mode(dir.path(), 0o500);
    check_refused(&path, "cannot create the lock file `");
    check_refused(
        &dir.path().join("new/zeph.db"),
        "cannot create the folder of the store `",
    );
    set_mode(dir.path(), 0o700);
    open(&path).close().await.unwrap();
    set_mode(&path, 0o400);
    check_refused(&path, "cannot open the store: the store `");
    set_mode(&path, 0o000);
    check_refused(&path, "cannot open the store: the store `");
    set_mode(&path, 0o600);
    set_mode(dir.path(), 0o500);
    // The lock file is there from the first time, so the start gets further than on a fresh folder.
    let error = try_open(&path);
    set_mode(dir.path(), 0o700);
    if let Err(error) = error {
        assert!(told(&error).contains("`store.path`"), "{}", told(&error));
    }
}

#[test]
fn a_store_where_nothing_can_be_written_is_looked_at() {
    as_plain_user(looked_at());
}

async fn looked_at() {
    let set_mode =
        |path: &Path, mode| fs::set_permissions(path, fs::Permissions::from_mode(mode)).unwrap();
    let (dir, path) = fresh();
    let look = || {
        let options = StoreOptions {
            at_ms: NOW_MS,
            busy_timeout: Duration::from_secs(5),
        };
        Store::open_to_look(Location::File(path.clone()), options).unwrap()
    };
    for (is_there, notice) in [(false, "it is taken for empty"), (true, "is only read")] {
        if is_there {
            let store = open(&path);
            let begun = store.begin_conversation(ConversationId::new(), NOW_MS);
            begun.await.unwrap();
            store.close().await.unwrap();
            let changed = look();
            assert!(!changed.is_read_only);
            assert_eq!(changed.notices, Vec::<String>::new());
            changed.store.close().await.unwrap();
            set_mode(&path, 0o400);
        }
        set_mode(dir.path(), 0o500);
        let looked = look();
        set_mode(dir.path(), 0o700);
        assert!(looked.is_read_only);
        assert!(looked.notices[0].contains(notice), "{:?}", looked.notices);
        let listed = looked.store.list_conversations(9).await.unwrap();
        assert_eq!(listed.len(), usize::from(is_there));
        let begun = looked
            .store
            .begin_conversation(ConversationId::new(), NOW_MS);
        let refused = begun.await.unwrap_err();
        assert!(
            matches!(refused, StoreError::ReadOnly { .. }),
            "{refused:?}"
        );
        looked.store.close().await.unwrap();
        assert_eq!(path.exists(), is_there);
    }
}

#[tokio::test]
async fn what_is_created_is_private() {
    let (dir, _) = fresh();
    let path = dir.path().join("new/folder/zeph.db");
    let store = open(&path);
    store
        .begin_conversation(ConversationId::new(), NOW_MS)
        .await
        .unwrap();
    let mode = |path: PathBuf| fs::metadata(path).unwrap().permissions().mode() & 0o777;
    assert_eq!(mode(dir.path().join("new")), 0o700);
    assert_eq!(mode(dir.path().join("new/folder")), 0o700);
    for suffix in ["", "-wal", "-shm", ".lock"] {
        assert_eq!(
            mode(dir.path().join(format!("new/folder/zeph.db{suffix}"))),
            0o600,
            "{suffix}"
        );
    }
}

#[tokio::test]
async fn a_file_that_goes_away_is_noticed_before_anything_is_lost() {
    let (dir, path) = fresh();
    let store = open(&path);
    let conversation = ConversationId::new();
    store
        .audit_begin(begin("read", conversation, NOW_MS))
        .await
        .unwrap();
    fs::rename(&path, dir.path().join("elsewhere.db")).unwrap();
    let error = store
        .audit_begin(begin("read", conversation, NOW_MS))
        .await
        .unwrap_err();
    assert!(matches!(error, StoreError::Moved { .. }), "{error:?}");
    assert!(
        told(&error).contains("removed or replaced while in use"),
        "{}",
        told(&error)
    );
    fs::rename(dir.path().join("elsewhere.db"), &path).unwrap();
    store
        .audit_begin(begin("read", conversation, NOW_MS))
        .await
        .unwrap();
    assert_eq!(n_rows(&store).await, 2);
}

#[tokio::test]
async fn memory_needs_no_place() {
    let store = memory();
    store
        .audit_begin(begin("read", ConversationId::new(), NOW_MS))
        .await
        .unwrap();
    assert_eq!(n_rows(&store).await, 1);
    store.close().await.unwrap();
}
