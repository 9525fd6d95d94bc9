//! Vectors of passages: kept apart by space, found by cosine, read by other hosts, and bounded.

use zeph_core::id::Digest;
use zeph_store::{PASSAGE_NUMBERS_MAX, PASSAGES_MAX, PassageVector};

use crate::database::{Database, on_every_database};
use crate::setup::NOW_MS;

const DAY_MS: i64 = 24 * 60 * 60 * 1_000;

fn space(number: u8) -> Digest {
    Digest::new([number; 32])
}

fn vector(numbers: &[f32]) -> PassageVector {
    PassageVector::new(numbers).unwrap()
}

async fn passages_are_found_by_their_cosine<D: Database>() {
    let database = D::fresh();
    let store = database.open();
    let far = u128::MAX;
    let kept = vec![
        (1, vector(&[1.0, 0.0, 0.0])),
        (2, vector(&[0.9, 0.3, 0.0])),
        (far, vector(&[0.0, -5.0, 0.1])),
    ];
    store.keep_passages(space(1), kept, NOW_MS).await.unwrap();
    let other = vec![(1, vector(&[0.0, 1.0]))];
    store.keep_passages(space(2), other, NOW_MS).await.unwrap();
    store.close().await.unwrap();

    let store = database.open();
    let keys = vec![far, 7, 2, 1];
    let missing = store.missing_passages(space(1), keys.clone(), NOW_MS).await;
    assert_eq!(missing.unwrap(), [1]);
    let missing = store.missing_passages(space(2), keys.clone(), NOW_MS).await;
    assert_eq!(
        missing.unwrap(),
        [0, 1, 2],
        "another space is another place"
    );

    let query = || vector(&[0.8, 0.4, 0.0]);
    let found = store.nearest_passages(space(1), keys.clone(), query(), 2);
    let found = found.await.unwrap();
    let places: Vec<u32> = found.iter().map(|(place, _)| *place).collect();
    assert_eq!(places, [2, 3]);
    let exact = (0.8 * 0.9 + 0.4 * 0.3) / ((0.8_f32).hypot(0.4) * (0.9_f32).hypot(0.3));
    assert!((found[0].1 - exact).abs() < 0.01, "{found:?}");

    let none = store.nearest_passages(space(1), vec![7], query(), 5).await;
    assert!(none.unwrap().is_empty());
    // Of another model: not comparable.
    let other = store.nearest_passages(space(2), vec![1], query(), 5).await;
    assert!(other.unwrap().is_empty());
    assert_eq!(PassageVector::new(&[0.0, 0.0]), None);
    assert_eq!(PassageVector::new(&[f32::NAN, 1.0]), None);
    assert_eq!(
        PassageVector::new(&vec![1.0; PASSAGE_NUMBERS_MAX + 1]),
        None
    );
}

async fn the_passages_used_last_are_kept<D: Database>() {
    let database = D::fresh();
    let store = database.open();
    let one = vector(&[1.0]);
    let many = |from: u32, to: u32| -> Vec<(u128, PassageVector)> {
        (from..to).map(|n| (n.into(), one.clone())).collect()
    };
    store
        .keep_passages(space(1), many(0, PASSAGES_MAX), NOW_MS)
        .await
        .unwrap();
    let used = store.missing_passages(space(1), vec![0], NOW_MS + 2 * DAY_MS);
    assert!(used.await.unwrap().is_empty());
    let next = many(PASSAGES_MAX, PASSAGES_MAX + 3);
    store
        .keep_passages(space(1), next, NOW_MS + DAY_MS)
        .await
        .unwrap();
    let all: Vec<u128> = (0..u128::from(PASSAGES_MAX) + 3).collect();
    let missing = store.missing_passages(space(1), all, NOW_MS).await.unwrap();
    assert_eq!(missing.len(), 3, "{missing:?}");
    assert!(
        missing
            .iter()
            .all(|place| (1..PASSAGES_MAX).contains(place))
    );
}

on_every_database! {
    any: [the_passages_used_last_are_kept],
    lasting: [passages_are_found_by_their_cosine],
}
