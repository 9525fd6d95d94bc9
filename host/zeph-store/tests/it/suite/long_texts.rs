//! Paths, addresses and rules of any length are kept like short ones, each once, and copied.

use std::time::Duration;

use uuid::Uuid;
use zeph_core::id::{ConversationId, Digest, PluginId};
use zeph_store::{
    NewSchedule, ObservedDecision, Owner, PutSchedule, ScheduleBounds, ScheduleClaim,
    ScheduleOwner, SeenIndex, Store,
};

use crate::database::{Database, on_every_database};
use crate::setup::NOW_MS;

/// Longer than what an index of PostgreSQL holds, also compressed, and as long as a path may be.
pub(crate) fn long_text(prefix: &str) -> String {
    let random = std::iter::repeat_with(|| Uuid::new_v4().simple().to_string());
    random
        .take(120)
        .fold(prefix.to_owned(), |text, part| text + "/" + &part)
}

/// Keeps something under each long text, twice.
pub(crate) async fn keep_long_texts(store: &Store, text: &str) {
    let bounds = ScheduleBounds {
        of_caller: 9,
        in_all: 9,
    };
    let conversation = ConversationId::new();
    for expected in [PutSchedule::Created, PutSchedule::Replaced] {
        let schedule = NewSchedule {
            owner: ScheduleOwner {
                directory: text.to_owned(),
                caller: Owner::default(),
            },
            name: "nightly".to_owned(),
            conversation,
            is_model: true,
            work: "{}".to_owned(),
            times: "{}".to_owned(),
            next_ms: Some(NOW_MS),
        };
        let put = store.put_schedule(schedule, bounds, NOW_MS).await.unwrap();
        assert_eq!(put, expected);
        store.note_grant_uses(PluginId("p".to_owned()), vec![text.to_owned()], NOW_MS);
        let index = SeenIndex {
            source: text.to_owned(),
            number: 7,
            document: Digest::new([1; 32]),
            keys: Vec::new(),
            configured: vec!["key".to_owned()],
        };
        assert!(store.keep_seen_index(index, NOW_MS).await.unwrap());
        let kept = store.keep_release(conversation, text.to_owned(), Vec::new(), NOW_MS);
        kept.await.unwrap();
        let observed = ObservedDecision {
            rule: text.to_owned(),
            would: "deny",
            decided: "allow",
            tool: "read".to_owned(),
        };
        store.count_observed(vec![observed], NOW_MS).await.unwrap();
    }
    let past = store.conversation_past(conversation, 9).await.unwrap();
    assert_eq!(past.releases, [(text.to_owned(), Vec::new())]);
}

async fn texts_longer_than_an_index_holds_are_kept_once<D: Database>() {
    let database = D::fresh();
    let store = database.open();
    let [one, other] = ["/one", "/other"].map(long_text);
    keep_long_texts(&store, &one).await;
    keep_long_texts(&store, &other).await;
    let claim = ScheduleClaim {
        directory: one.clone(),
        now_ms: NOW_MS,
        lease: Duration::from_secs(600),
        limit: 9,
        waiting_ms: None,
        of_anybody: true,
        busy: Vec::new(),
    };
    let next = store
        .next_schedule((one.clone(), true), None)
        .await
        .unwrap();
    assert_eq!(next, Some(NOW_MS));
    let claimed = store.claim_schedules(claim).await.unwrap();
    let claimed: Vec<_> = claimed
        .iter()
        .map(|one| &one.what.owner.directory)
        .collect();
    assert_eq!(claimed, [&one]);
    assert!(store.seen_index(other.clone()).await.unwrap().is_some());
    let uses = store.grant_uses().await.unwrap().uses;
    assert_eq!(uses.len(), 2, "{uses:?}");
    let counts = store.observed_counts(0).await.unwrap();
    let counts: Vec<u64> = counts.iter().map(|count| count.n_calls).collect();
    assert_eq!(counts, [2, 2]);
    let owner = ScheduleOwner {
        directory: other,
        caller: Owner::default(),
    };
    let name = "nightly".to_owned();
    assert!(store.cancel_schedule(owner, name).await.unwrap());
}

on_every_database! {
    any: [texts_longer_than_an_index_holds_are_kept_once],
    lasting: [],
}
