//! Vectors of texts: kept, read by other hosts, and bounded.

use zeph_core::id::Digest;
use zeph_store::{VECTOR_BYTES_MAX, VECTORS_MAX};

use crate::database::{Database, on_every_database};
use crate::setup::NOW_MS;

fn digest(number: u32) -> Digest {
    let mut bytes = [7; 32];
    bytes[..4].copy_from_slice(&number.to_le_bytes());
    Digest::new(bytes)
}

async fn vectors_are_kept_by_their_digest<D: Database>() {
    let database = D::fresh();
    let vectors = vec![
        (digest(1), vec![0.5, -1.25, f32::MIN_POSITIVE]),
        (digest(2), Vec::new()),
        (digest(3), vec![0.0; VECTOR_BYTES_MAX / 4 + 1]),
    ];
    let store = database.open();
    store.keep_vectors(vectors.clone(), NOW_MS).await.unwrap();
    store.close().await.unwrap();
    let digests = vec![digest(2), digest(9), digest(1), digest(3)];
    let kept = database.open().vectors(digests, NOW_MS).await.unwrap();
    let expected = [Some(Vec::new()), None, Some(vectors[0].1.clone()), None];
    assert_eq!(kept, expected);
}

async fn the_vectors_used_last_are_kept<D: Database>() {
    const DAY_MS: i64 = 24 * 60 * 60 * 1_000;
    let database = D::fresh();
    let store = database.open();
    let first: Vec<_> = (0..VECTORS_MAX).map(|n| (digest(n), vec![1.0])).collect();
    store.keep_vectors(first, NOW_MS).await.unwrap();
    let used = store.vectors(vec![digest(0)], NOW_MS + 2 * DAY_MS).await;
    assert_eq!(used.unwrap(), [Some(vec![1.0])]);
    let next: Vec<_> = (VECTORS_MAX..2 * VECTORS_MAX - 1)
        .map(|n| (digest(n), vec![2.0]))
        .collect();
    store.keep_vectors(next, NOW_MS + DAY_MS).await.unwrap();
    let digests = vec![digest(0), digest(1), digest(VECTORS_MAX)];
    let kept = store.vectors(digests, NOW_MS).await.unwrap();
    assert_eq!(kept, [Some(vec![1.0]), None, Some(vec![2.0])]);
}

on_every_database! {
    any: [the_vectors_used_last_are_kept],
    lasting: [vectors_are_kept_by_their_digest],
}
