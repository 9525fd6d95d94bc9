//! What replicas share: a seal counts once, a bucket of calls is one for all, an output belongs to its caller, a change is seen.

use uuid::Uuid;
use zeph_core::id::{ConversationId, Digest, OverflowId};
use zeph_store::{CallBucket, Owner, Store};

use crate::database::{Database, on_every_database};
use crate::setup::NOW_MS;

const DAY_MS: i64 = 24 * 3_600 * 1_000;

fn bucket(token: u8, per_minute: u32) -> CallBucket {
    CallBucket {
        token: Digest::new([token; 32]),
        per_minute,
    }
}

async fn a_seal_is_used_once<D: Database>() {
    let database = D::fresh();
    let store = database.open();
    let (seal, other) = (Uuid::new_v4(), Uuid::new_v4());
    assert!(!store.is_seal_used(seal).await.unwrap());
    assert!(store.use_seal(seal, NOW_MS).await.unwrap());
    assert!(!store.use_seal(seal, NOW_MS).await.unwrap());
    assert!(store.is_seal_used(seal).await.unwrap());
    assert!(!store.is_seal_used(other).await.unwrap());
    // It is remembered for as long as any seal can be opened.
    assert!(store.use_seal(other, NOW_MS + DAY_MS).await.unwrap());
    assert!(store.is_seal_used(seal).await.unwrap());
    let last = Uuid::new_v4();
    assert!(store.use_seal(last, NOW_MS + 2 * DAY_MS).await.unwrap());
    assert!(!store.is_seal_used(seal).await.unwrap());
}

async fn a_bucket_is_emptied_and_fills_evenly<D: Database>() {
    let database = D::fresh();
    let store = database.open();
    let take = |bucket, at_ms| store.take_call(bucket, at_ms);
    for _ in 0..60 {
        assert_eq!(take(bucket(1, 60), NOW_MS).await.unwrap(), None);
    }
    assert_eq!(take(bucket(1, 60), NOW_MS).await.unwrap(), Some(1_000));
    assert_eq!(take(bucket(2, 60), NOW_MS).await.unwrap(), None);
    assert_eq!(take(bucket(1, 60), NOW_MS + 999).await.unwrap(), Some(1));
    assert_eq!(take(bucket(1, 60), NOW_MS + 1_000).await.unwrap(), None);
    assert!(take(bucket(1, 60), NOW_MS + 1_001).await.unwrap().is_some());
    // No more than a minute is saved up.
    for _ in 0..60 {
        assert_eq!(take(bucket(1, 60), NOW_MS + DAY_MS).await.unwrap(), None);
    }
    assert!(
        take(bucket(1, 60), NOW_MS + DAY_MS)
            .await
            .unwrap()
            .is_some()
    );
    // A clock that was set back by a day closes no bucket for a day.
    assert_eq!(take(bucket(1, 60), NOW_MS).await.unwrap(), None);
    for (token, per_minute) in [(3, 0), (4, 1), (5, u32::MAX)] {
        let own = bucket(token, per_minute);
        assert_eq!(take(own, NOW_MS).await.unwrap(), None, "{per_minute}");
    }
}

async fn output(store: &Store, conversation: ConversationId) -> OverflowId {
    let put = store.put_overflow(conversation, b"all of it", NOW_MS);
    put.await.unwrap()
}

async fn an_output_is_found_by_its_caller_alone<D: Database>() {
    let database = D::fresh();
    let store = database.open();
    let conversation = ConversationId::new();
    let (anns, anybodys) = (
        output(&store, conversation).await,
        output(&store, conversation).await,
    );
    let ann = Owner::named(Some("ann"));
    store.own_output(anns, ann.clone()).await.unwrap();
    store.own_output(anybodys, Owner::default()).await.unwrap();
    // Whose it is does not change, and one that is not there is nobody's.
    store
        .own_output(anns, Owner::named(Some("bob")))
        .await
        .unwrap();
    store
        .own_output(OverflowId::new(), ann.clone())
        .await
        .unwrap();
    let found = |id, caller: Owner| store.conversation_of_output(id, caller);
    assert_eq!(found(anns, ann.clone()).await.unwrap(), Some(conversation));
    assert_eq!(
        found(anybodys, Owner::default()).await.unwrap(),
        Some(conversation)
    );
    for (id, caller) in [
        (anns, Owner::default()),
        (anns, Owner::named(Some("bob"))),
        (anybodys, ann.clone()),
        (OverflowId::new(), ann.clone()),
    ] {
        assert_eq!(found(id, caller).await.unwrap(), None);
    }
    assert_eq!(
        store.conversation_used(conversation).await.unwrap(),
        Some(NOW_MS)
    );
    store.delete_conversation(conversation).await.unwrap();
    assert_eq!(found(anns, ann).await.unwrap(), None);
    assert_eq!(store.conversation_used(conversation).await.unwrap(), None);
}

async fn of_many_hosts_one_uses_a_seal_and_a_bucket_is_one_for_all<D: Database>() {
    const N_HOSTS: usize = 4;
    let database = D::fresh();
    let hosts: Vec<Store> = (0..N_HOSTS).map(|_| database.open()).collect();
    let seals: Vec<Uuid> = (0..25).map(|_| Uuid::new_v4()).collect();
    let mut tries = tokio::task::JoinSet::new();
    for host in &hosts {
        let (host, seals) = (host.clone(), seals.clone());
        tries.spawn(async move {
            let (mut n_used, mut n_taken) = (0, 0);
            for seal in seals {
                n_used += usize::from(host.use_seal(seal, NOW_MS).await.unwrap());
                let taken = host.take_call(bucket(1, 40), NOW_MS).await.unwrap();
                n_taken += usize::from(taken.is_none());
            }
            (n_used, n_taken)
        });
    }
    let ends = tries.join_all().await;
    assert_eq!(ends.iter().map(|end| end.0).sum::<usize>(), seals.len());
    assert_eq!(ends.iter().map(|end| end.1).sum::<usize>(), 40);
}

async fn a_change_is_seen_by_every_host<D: Database>() {
    let database = D::fresh();
    let (one, other) = (database.open(), database.open());
    let before = other.offer_version().await.unwrap();
    one.note_offer_change().await.unwrap();
    let after = other.offer_version().await.unwrap();
    assert_ne!(before, after);
    assert_eq!(one.offer_version().await.unwrap(), after);
}

on_every_database! {
    any: [
        a_seal_is_used_once,
        a_bucket_is_emptied_and_fills_evenly,
        an_output_is_found_by_its_caller_alone,
    ],
    lasting: [
        of_many_hosts_one_uses_a_seal_and_a_bucket_is_one_for_all,
        a_change_is_seen_by_every_host,
    ],
}
