//! Quotas: what counts once, on however many hosts, and what never begins beyond.

use tokio::task::JoinSet;
use uuid::Uuid;
use zeph_core::id::ConversationId;
use zeph_store::{CallBegin, QuotaUse, SingleUseRights, Store};

use crate::database::{Database, on_every_database};
use crate::setup::{NOW_MS, begin, n_rows};

/// Hosts at one time, the calls that each asks for, and how many there may be.
const HOSTS: usize = 4;
const CALLS: usize = 50;
const MAX: u32 = 37;

async fn ask(
    store: &Store,
    conversation: ConversationId,
    batch: Uuid,
    calls_max: u32,
) -> CallBegin {
    let rights = SingleUseRights {
        quota: Some(QuotaUse {
            conversation,
            batch,
            calls_max,
        }),
        ..SingleUseRights::default()
    };
    let begin = begin("read", conversation, NOW_MS);
    store.begin_call(Some(begin), rights, NOW_MS).await.unwrap()
}

async fn calls_count_until_there_are_enough<D: Database>() {
    let database = D::fresh();
    let store = database.open();
    let (own, other) = (ConversationId::new(), ConversationId::new());
    assert_eq!(store.n_counted(own).await.unwrap(), 0);
    for _ in 0..2 {
        assert_eq!(
            ask(&store, own, Uuid::new_v4(), 2).await,
            CallBegin::Recorded
        );
    }
    assert_eq!(
        ask(&store, own, Uuid::new_v4(), 2).await,
        CallBegin::QuotaUsed
    );
    assert_eq!(
        ask(&store, other, Uuid::new_v4(), 2).await,
        CallBegin::Recorded
    );
    assert_eq!(
        ask(&store, own, Uuid::new_v4(), 3).await,
        CallBegin::Recorded
    );
    assert_eq!(store.n_counted(own).await.unwrap(), 3);
    // What was refused left nothing.
    assert_eq!(n_rows(&store).await, 4);
    let conversations = store.list_conversations(10).await.unwrap();
    assert_eq!(conversations.iter().map(|one| one.n_calls).sum::<u64>(), 4);
    store.forget_counted(own).await.unwrap();
    assert_eq!(store.n_counted(own).await.unwrap(), 0);
    assert_eq!(
        ask(&store, own, Uuid::new_v4(), 1).await,
        CallBegin::Recorded
    );
}

async fn what_is_asked_for_at_once_counts_once_or_not_at_all<D: Database>() {
    let database = D::fresh();
    let store = database.open();
    let conversation = ConversationId::new();
    let (first, second) = (Uuid::new_v4(), Uuid::new_v4());
    for batch in [first, first, first] {
        assert_eq!(
            ask(&store, conversation, batch, 1).await,
            CallBegin::Recorded
        );
    }
    assert_eq!(store.n_counted(conversation).await.unwrap(), 1);
    for batch in [second, second] {
        assert_eq!(
            ask(&store, conversation, batch, 1).await,
            CallBegin::QuotaUsed
        );
    }
    // A call that is not recorded counts too.
    let rights = SingleUseRights {
        quota: Some(QuotaUse {
            conversation,
            batch: second,
            calls_max: 2,
        }),
        ..SingleUseRights::default()
    };
    let begun = store.begin_call(None, rights, NOW_MS).await.unwrap();
    assert_eq!(begun, CallBegin::Recorded);
    assert_eq!(store.n_counted(conversation).await.unwrap(), 2);
}

async fn hosts_at_one_time_never_exceed_together<D: Database>() {
    let database = D::fresh();
    let conversation = ConversationId::new();
    let mut asking = JoinSet::new();
    for _ in 0..HOSTS {
        let store = database.open();
        for _ in 0..CALLS {
            let store = store.clone();
            asking.spawn(async move { ask(&store, conversation, Uuid::new_v4(), MAX).await });
        }
    }
    let begun = asking.join_all().await;
    let recorded = begun
        .iter()
        .filter(|one| **one == CallBegin::Recorded)
        .count();
    assert_eq!(recorded, MAX as usize);
    let left = begun
        .iter()
        .filter(|one| **one == CallBegin::QuotaUsed)
        .count();
    assert_eq!(left, HOSTS * CALLS - MAX as usize);
    // A host that starts later goes on counting.
    let store = database.open();
    assert_eq!(store.n_counted(conversation).await.unwrap(), MAX);
    assert_eq!(
        ask(&store, conversation, Uuid::new_v4(), MAX).await,
        CallBegin::QuotaUsed
    );
    assert_eq!(n_rows(&store).await, MAX as usize);
}

on_every_database! {
    any: [
        calls_count_until_there_are_enough,
        what_is_asked_for_at_once_counts_once_or_not_at_all,
    ],
    lasting: [hosts_at_one_time_never_exceed_together],
}
