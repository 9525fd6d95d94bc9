//! Indexes of plugins: the greatest number stays, in whatever order they are written.

use zeph_core::id::Digest;
use zeph_store::SeenIndex;

use crate::database::{Database, on_every_database};
use crate::setup::NOW_MS;

fn index(source: &str, number: i64, document: u8) -> SeenIndex {
    SeenIndex {
        source: source.to_owned(),
        number,
        document: Digest::new([document; 32]),
        keys: vec!["one".to_owned(), "two".to_owned()],
        configured: vec!["three".to_owned()],
    }
}

async fn the_greatest_number_of_an_index_stays<D: Database>() {
    let database = D::fresh();
    let store = database.open();
    let keep = |index: SeenIndex| store.keep_seen_index(index, NOW_MS);
    assert_eq!(store.seen_index("a".to_owned()).await.unwrap(), None);
    assert!(keep(index("a", 7, 1)).await.unwrap());
    // The same again is no change; another one of its number, or an older one, is refused.
    assert!(keep(index("a", 7, 1)).await.unwrap());
    assert!(!keep(index("a", 7, 2)).await.unwrap());
    assert!(!keep(index("a", 6, 1)).await.unwrap());
    assert!(keep(index("b", 1, 1)).await.unwrap());
    let newer = SeenIndex {
        keys: Vec::new(),
        configured: Vec::new(),
        ..index("a", i64::MAX, 3)
    };
    assert!(keep(newer.clone()).await.unwrap());
    let seen = store.seen_index("a".to_owned()).await.unwrap();
    assert_eq!(seen, Some(newer));
    let seen = store.seen_index("b".to_owned()).await.unwrap();
    assert_eq!(seen, Some(index("b", 1, 1)));
}

async fn an_index_is_seen_by_other_hosts<D: Database>() {
    let database = D::fresh();
    let (one, other) = (database.open(), database.open());
    let kept = one.keep_seen_index(index("a", 7, 1), NOW_MS).await;
    assert!(kept.unwrap());
    let kept = other.keep_seen_index(index("a", 6, 1), NOW_MS).await;
    assert!(!kept.unwrap());
    let seen = other.seen_index("a".to_owned()).await.unwrap();
    assert_eq!(seen, Some(index("a", 7, 1)));
}

on_every_database! {
    any: [the_greatest_number_of_an_index_stays],
    lasting: [an_index_is_seen_by_other_hosts],
}
