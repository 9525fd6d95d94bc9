//! Database files that are damaged, newer, or another program's.

use std::fs;
use std::os::unix::fs::symlink;
use std::path::Path;

use zeph_core::id::ConversationId;
use zeph_store::StoreError;

use crate::setup::{NOW_MS, begin, fresh, n_rows, names, open, sql, told, try_look, try_open};

const ASIDE: &str = "zeph.db.corrupt-1753900000123";

/// A store with some rows, closed, with everything in the database file.
async fn filled(path: &Path) -> Vec<u8> {
    let store = open(path);
    for _ in 0..100 {
        store
            .audit_begin(begin("read", ConversationId::new(), NOW_MS))
            .await
            .unwrap();
    }
    store.close().await.unwrap();
    sql(path)
        .query_row("PRAGMA wal_checkpoint(TRUNCATE)", [], |_| Ok(()))
        .unwrap();
    fs::read(path).unwrap()
}

#[tokio::test]
async fn a_damaged_file_is_set_aside_and_told() {
    let (_dir, path) = fresh();
    let good = filled(&path).await;
    let damaged = |damage: &dyn Fn(&mut Vec<u8>)| {
        let mut bytes = good.clone();
        damage(&mut bytes);
        bytes
    };
    let half = good.len() / 2 / 4096 * 4096;
    let cases: [(&str, Vec<u8>); 7] = [
        (
            "zeros in place of the header",
            damaged(&|bytes| bytes[..100].fill(0)),
        ),
        (
            "cut in a page",
            damaged(&|bytes| bytes.truncate(half + 100)),
        ),
        ("cut after a page", damaged(&|bytes| bytes.truncate(half))),
        ("only a header", damaged(&|bytes| bytes.truncate(100))),
        (
            "flipped magic",
            damaged(&|bytes| bytes[..4].iter_mut().for_each(|byte| *byte ^= 0xff)),
        ),
        (
            "flipped schema page",
            damaged(&|bytes| bytes[100..116].iter_mut().for_each(|byte| *byte ^= 0xff)),
        ),
        (
            "zeros after the header",
            damaged(&|bytes| bytes[100..].fill(0)),
        ),
    ];
    for (name, bytes) in cases {
        let (dir, path) = fresh();
        fs::write(&path, &bytes).unwrap();
        let opened = try_open(&path).unwrap_or_else(|error| panic!("{name}: {}", told(&error)));
        assert_eq!(opened.notices.len(), 1, "{name}");
        let notice = &opened.notices[0];
        for part in [
            path.to_str().unwrap(),
            ASIDE,
            "is damaged",
            "fresh one was started",
        ] {
            assert!(notice.contains(part), "{name}: {notice}");
        }
        assert_eq!(fs::read(dir.path().join(ASIDE)).unwrap(), bytes, "{name}");
        let store = opened.store;
        assert_eq!(n_rows(&store).await, 0, "{name}");
        store
            .audit_begin(begin("read", ConversationId::new(), NOW_MS))
            .await
            .unwrap();
        store.close().await.unwrap();
        assert_eq!(n_rows(&open(&path)).await, 1, "{name}");
    }
}

#[tokio::test]
async fn a_link_and_its_file_are_one_store() {
    let (dir, path) = fresh();
    let good = filled(&path).await;
    let links = tempfile::tempdir().unwrap();
    let link = links.path().join("link.db");
    symlink(&path, &link).unwrap();
    for name in [&link, &path] {
        let store = open(name);
        assert_eq!(n_rows(&store).await, 100);
        store.close().await.unwrap();
    }
    // Damage is found by one name and mended for both.
    drop(fs::remove_file(dir.path().join("zeph.db-wal")));
    fs::write(&path, &good[..100]).unwrap();
    assert_eq!(try_open(&link).unwrap().notices.len(), 1);
    assert_eq!(fs::read(dir.path().join(ASIDE)).unwrap(), good[..100]);
    assert_eq!(n_rows(&open(&path)).await, 0);
    assert!(link.is_symlink());
    assert_eq!(names(links.path()), ["link.db"]);
    // What it leads to is gone.
    fs::rename(&path, dir.path().join("moved.db")).unwrap();
    for try_to in [try_open, try_look] {
        let told = told(&try_to(&link).unwrap_err());
        assert!(told.contains("which is not there"), "{told}");
    }
    assert_eq!(names(links.path()), ["link.db"]);
}

#[tokio::test]
async fn the_log_goes_with_a_damaged_file() {
    let (dir, path) = fresh();
    let good = filled(&path).await;
    fs::write(&path, &good[..100]).unwrap();
    fs::write(dir.path().join("zeph.db-wal"), "committed pages").unwrap();
    drop(try_open(&path).unwrap());
    let kept = fs::read_to_string(dir.path().join(format!("{ASIDE}-wal"))).unwrap();
    assert_eq!(kept, "committed pages");
}

#[tokio::test]
async fn a_second_damage_at_the_same_moment_gets_its_own_name() {
    let (dir, path) = fresh();
    let good = filled(&path).await;
    for _ in 0..3 {
        fs::write(&path, &good[..100]).unwrap();
        // A good log would heal the file.
        fs::remove_file(dir.path().join("zeph.db-wal")).ok();
        assert_eq!(try_open(&path).unwrap().notices.len(), 1);
    }
    let is_companion = |name: &str| name.ends_with("-shm") || name.ends_with("-wal");
    let is_database = |name: &&String| name.contains("corrupt") && !is_companion(name);
    let n_aside = names(dir.path()).iter().filter(is_database).count();
    assert_eq!(n_aside, 3, "{:?}", names(dir.path()));
}

#[tokio::test]
async fn a_log_without_its_database_is_set_aside() {
    let (dir, path) = fresh();
    fs::write(dir.path().join("zeph.db-wal"), "pages nobody may lose").unwrap();
    let opened = try_open(&path).unwrap();
    assert!(
        opened.notices[0].contains("write-ahead log"),
        "{:?}",
        opened.notices
    );
    let kept = fs::read_to_string(dir.path().join(format!("{ASIDE}-wal"))).unwrap();
    assert_eq!(kept, "pages nobody may lose");
}

#[tokio::test]
async fn an_empty_file_is_a_fresh_store() {
    let (_dir, path) = fresh();
    fs::write(&path, "").unwrap();
    assert_eq!(n_rows(&open(&path)).await, 0);
}

#[tokio::test]
async fn damage_found_later_fails_that_operation_with_a_clear_error() {
    let (_dir, path) = fresh();
    let store = open(&path);
    let conversation = ConversationId::new();
    let id = store
        .put_overflow(conversation, vec![b'z'; 100_000], NOW_MS)
        .await
        .unwrap();
    store.close().await.unwrap();
    sql(&path)
        .query_row("PRAGMA wal_checkpoint(TRUNCATE)", [], |_| Ok(()))
        .unwrap();
    // The chain of pages of the content is made to lead outside the file.
    let mut bytes = fs::read(&path).unwrap();
    let chain = bytes
        .chunks(4096)
        .position(|page| page[4..].iter().all(|byte| *byte == b'z'))
        .unwrap();
    bytes[chain * 4096..chain * 4096 + 4].fill(0x7f);
    fs::write(&path, bytes).unwrap();

    let store = open(&path);
    let error = store.overflow(conversation, id).await.unwrap_err();
    assert!(matches!(error, StoreError::Corrupt { .. }), "{error:?}");
    let told = told(&error);
    assert!(
        told.starts_with("cannot read a stored output: the store `"),
        "{told}"
    );
    assert!(told.contains("hint: put a backup"), "{told}");
    store
        .audit_begin(begin("read", conversation, NOW_MS))
        .await
        .unwrap();
    store.close().await.unwrap();

    // The start reads other pages, but it was told to look at all of them.
    assert!(try_look(&path).is_ok(), "who only looks looks at no more");
    let opened = try_open(&path).unwrap();
    assert!(opened.notices[0].contains(ASIDE), "{:?}", opened.notices);
    drop(opened);
    assert_eq!(n_rows(&open(&path)).await, 0, "and once only");
}

#[tokio::test]
async fn who_only_looks_renames_nothing() {
    let (_dir, path) = fresh();
    let good = filled(&path).await;
    let mut without_header = good.clone();
    without_header[..100].fill(0);
    let cut = good[..good.len() / 2 / 4096 * 4096 + 100].to_vec();
    for bytes in [without_header, cut] {
        let (dir, path) = fresh();
        fs::write(&path, &bytes).unwrap();
        let error = try_look(&path).unwrap_err();
        assert!(matches!(error, StoreError::Corrupt { .. }), "{error:?}");
        assert!(told(&error).contains("backup"), "{}", told(&error));
        assert_eq!(fs::read(&path).unwrap(), bytes);
        let names = names(dir.path());
        assert!(
            !names.iter().any(|name| name.contains("corrupt")),
            "{names:?}"
        );
    }
    let (dir, path) = fresh();
    fs::write(dir.path().join("zeph.db-wal"), "pages nobody may lose").unwrap();
    let error = try_look(&path).unwrap_err();
    assert!(matches!(error, StoreError::Corrupt { .. }), "{error:?}");
    assert_eq!(names(dir.path()), ["zeph.db-wal", "zeph.db.lock"]);
}

#[tokio::test]
async fn what_was_never_a_store_is_left_to_its_owner() {
    let (_other, other) = fresh();
    sql(&other)
        .execute_batch("PRAGMA application_id = 7; CREATE TABLE bookmarks (url TEXT); VACUUM")
        .unwrap();
    let mut damaged = fs::read(&other).unwrap();
    damaged[100..116].fill(0xff);
    let cases: [&[u8]; 4] = [
        &b"this is no database at all, whatever its name says\n".repeat(100),
        b"xyz",
        &[0; 8192],
        &damaged,
    ];
    for bytes in cases {
        for try_to in [try_open, try_look] {
            let (dir, path) = fresh();
            fs::write(&path, bytes).unwrap();
            let error = try_to(&path).unwrap_err();
            assert!(matches!(error, StoreError::Foreign { .. }), "{error:?}");
            assert_eq!(fs::read(&path).unwrap(), bytes);
            assert_eq!(names(dir.path()), ["zeph.db", "zeph.db.lock"]);
        }
    }
}

#[tokio::test]
async fn a_newer_or_foreign_database_is_refused_and_left_as_it_is() {
    let cases = [
        (
            "PRAGMA user_version = 99",
            "has schema version 99; this program knows versions up to",
            "newer program",
        ),
        (
            "PRAGMA user_version = -1",
            "has schema version -1",
            "newer program",
        ),
        (
            "PRAGMA application_id = 7",
            "is a file or database of another application",
            "a file of its own",
        ),
    ];
    for (change, expected, hint) in cases {
        let (dir, path) = fresh();
        filled(&path).await;
        sql(&path).execute_batch(change).unwrap();
        let before = fs::read(&path).unwrap();
        let told = told(&try_open(&path).unwrap_err());
        assert!(told.contains(expected) && told.contains(hint), "{told}");
        assert_eq!(fs::read(&path).unwrap(), before, "{change}");
        assert!(
            !names(dir.path())
                .iter()
                .any(|name| name.contains("corrupt"))
        );
    }
}

#[tokio::test]
async fn somebody_elses_tables_are_refused() {
    let (_dir, path) = fresh();
    sql(&path)
        .execute_batch("CREATE TABLE bookmarks (url TEXT)")
        .unwrap();
    let before = fs::read(&path).unwrap();
    assert!(matches!(try_open(&path), Err(StoreError::Foreign { .. })));
    assert_eq!(fs::read(&path).unwrap(), before);
}
