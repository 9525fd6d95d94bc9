//! Conversations and their stored outputs.

use std::sync::Mutex;
use std::thread::{self, ThreadId};
use std::time::Duration;

use tokio::task::JoinSet;
use zeph_core::id::{ConversationId, OverflowId};
use zeph_store::{Conversation, Retention, SweepReport};

use crate::database::{Database, on_every_database};
use crate::setup::{NOW_MS, begin, n_rows};

const DAY_MS: i64 = 86_400_000;

async fn outputs_come_back_byte_for_byte<D: Database>() {
    let database = D::fresh();
    let conversation = ConversationId::new();
    let every_byte: Vec<u8> = (0..=255).cycle().take(3_000_000).collect();
    let cases: [Vec<u8>; 5] = [
        Vec::new(),
        b"plain\n".to_vec(),
        b"\xff\xfe not UTF-8 \x00 with a zero".to_vec(),
        "lines\r\nof\u{2028}every kind\r".as_bytes().to_vec(),
        every_byte,
    ];
    let store = database.open();
    let mut ids = Vec::new();
    for content in &cases {
        ids.push(
            store
                .put_overflow(conversation, content.clone(), NOW_MS)
                .await
                .unwrap(),
        );
    }
    store.close().await.unwrap();
    let store = database.open();
    for (id, content) in ids.into_iter().zip(cases) {
        assert_eq!(id.as_uuid().get_version_num(), 4);
        assert_eq!(
            store.overflow(conversation, id).await.unwrap(),
            Some(content)
        );
    }
}

/// Outputs that many callers store at once, short ones and long ones, and one of each under a key that is taken.
async fn of_outputs_stored_at_once_only_the_bad_ones_fail<D: Database>() {
    let database = D::fresh();
    let store = database.open();
    let owner = ConversationId::new();
    let taken = store.put_overflow(owner, "first", NOW_MS).await.unwrap();
    let mut callers = JoinSet::new();
    for n in 0..100_usize {
        let store = store.clone();
        callers.spawn(async move {
            let content = vec![u8::try_from(n).unwrap(); n * 400];
            let is_bad = [20, 50].contains(&n);
            let id = if is_bad { taken } else { OverflowId::new() };
            let rules = vec![format!("rule {n}")];
            let put = store.put_overflow_as(id, owner, content.clone(), rules, NOW_MS + 5_000);
            (id, content, put.await)
        });
    }
    for (id, content, put) in callers.join_all().await {
        assert_eq!(put.is_ok(), id != taken, "{put:?}");
        let expect = if id == taken {
            b"first".to_vec()
        } else {
            content
        };
        assert_eq!(store.overflow(owner, id).await.unwrap(), Some(expect));
    }
    assert_eq!(store.outputs(owner, 200).await.unwrap().len(), 99);
    let known = store.list_conversations(2).await.unwrap();
    assert_eq!(known.len(), 1, "{known:?}");
    let (used_at_ms, n_calls) = (known[0].last_used_at_ms, known[0].n_calls);
    assert_eq!((used_at_ms, n_calls), (NOW_MS + 5_000, 0));
}

async fn outputs_are_listed_newest_first_and_for_their_conversation_alone<D: Database>() {
    let database = D::fresh();
    let store = database.open();
    let (owner, other) = (ConversationId::new(), ConversationId::new());
    let mut ids = Vec::new();
    for n in 0..3 {
        let content = vec![b'x'; n];
        ids.push(store.put_overflow(owner, content, NOW_MS).await.unwrap());
    }
    ids.reverse();
    let listed = store.outputs(owner, 10).await.unwrap();
    let of_ids: Vec<_> = listed.iter().map(|output| output.id).collect();
    assert_eq!(of_ids, ids);
    let sizes: Vec<_> = listed.iter().map(|output| output.n_bytes).collect();
    assert_eq!(sizes, [2, 1, 0]);
    assert_eq!(listed[0].at_ms, NOW_MS);
    assert_eq!(store.outputs(owner, 1).await.unwrap().len(), 1);
    assert_eq!(store.outputs(other, 10).await.unwrap(), []);
}

async fn another_conversation_reads_nothing<D: Database>() {
    let database = D::fresh();
    let store = database.open();
    let (owner, other) = (ConversationId::new(), ConversationId::new());
    let id = store
        .put_overflow(owner, b"secret".to_vec(), NOW_MS)
        .await
        .unwrap();
    store.begin_conversation(other, NOW_MS).await.unwrap();
    assert_eq!(store.overflow(other, id).await.unwrap(), None);
    assert_eq!(
        store.overflow(owner, OverflowId::new()).await.unwrap(),
        None
    );
    assert!(store.overflow(owner, id).await.unwrap().is_some());
}

async fn a_list_tells_use_calls_and_bytes<D: Database>() {
    let database = D::fresh();
    let store = database.open();
    let (first, second) = (ConversationId::new(), ConversationId::new());
    store.begin_conversation(first, 1_000).await.unwrap();
    store.begin_conversation(second, 2_000).await.unwrap();
    store.begin_conversation(second, 1_500).await.unwrap();
    store
        .audit_begin(begin("read", first, 3_000))
        .await
        .unwrap();
    store
        .audit_begin(begin("grep", first, 4_000))
        .await
        .unwrap();
    store.put_overflow(first, vec![0; 10], 3_500).await.unwrap();
    store.put_overflow(first, vec![0; 32], 3_600).await.unwrap();
    let expected = [
        Conversation {
            id: first,
            started_at_ms: 1_000,
            last_used_at_ms: 4_000,
            n_calls: 2,
            overflow_bytes: 42,
        },
        Conversation {
            id: second,
            started_at_ms: 2_000,
            last_used_at_ms: 2_000,
            n_calls: 0,
            overflow_bytes: 0,
        },
    ];
    assert_eq!(store.list_conversations(10).await.unwrap(), expected);
    assert_eq!(store.list_conversations(1).await.unwrap(), expected[..1]);
}

async fn a_deleted_conversation_takes_its_outputs_and_leaves_its_record<D: Database>() {
    let database = D::fresh();
    let store = database.open();
    let (gone, kept) = (ConversationId::new(), ConversationId::new());
    store
        .audit_begin(begin("read", gone, NOW_MS))
        .await
        .unwrap();
    let lost = store
        .put_overflow(gone, b"gone".to_vec(), NOW_MS)
        .await
        .unwrap();
    let held = store
        .put_overflow(kept, b"kept".to_vec(), NOW_MS)
        .await
        .unwrap();

    assert!(store.delete_conversation(gone).await.unwrap());
    assert!(!store.delete_conversation(gone).await.unwrap());

    assert_eq!(store.overflow(gone, lost).await.unwrap(), None);
    assert_eq!(
        store.overflow(kept, held).await.unwrap().as_deref(),
        Some(b"kept".as_slice())
    );
    assert_eq!(n_rows(&store).await, 1);
    // Its next use brings it back: the host that uses it need not know that it was deleted.
    store
        .put_overflow(gone, b"again".to_vec(), NOW_MS)
        .await
        .unwrap();
    assert_eq!(store.list_conversations(10).await.unwrap().len(), 2);
}

/// Outputs and conversations of these ages in days, swept with a retention in days: what is left of each.
async fn check_sweep<D: Database>(retention_days: u64, ages: &[i64], expected_left: &[i64]) {
    let database = D::fresh();
    let store = database.open();
    let mut stored = Vec::new();
    for age in ages {
        let conversation = ConversationId::new();
        let at_ms = NOW_MS - age * DAY_MS;
        let id = store
            .put_overflow(conversation, vec![1], at_ms)
            .await
            .unwrap();
        stored.push((*age, conversation, id));
    }
    let retention = Duration::from_secs(retention_days * 86_400);
    let swept = store
        .sweep(Retention::of_outputs(retention), NOW_MS)
        .await
        .unwrap();
    let mut left = Vec::new();
    for (age, conversation, id) in stored {
        if store.overflow(conversation, id).await.unwrap().is_some() {
            left.push(age);
        }
    }
    let n_gone = ages.len() - left.len();
    assert_eq!(left, expected_left, "retention of {retention_days} days");
    assert_eq!(
        swept,
        SweepReport {
            n_overflow: n_gone,
            n_conversations: n_gone,
            ..SweepReport::default()
        }
    );
    assert_eq!(
        store.list_conversations(1_000).await.unwrap().len(),
        left.len()
    );
}

async fn a_sweep_deletes_what_is_older_than_the_retention<D: Database>() {
    check_sweep::<D>(7, &[0, 1, 7, 8, 400], &[0, 1, 7]).await;
    check_sweep::<D>(1, &[0, 2], &[0]).await;
    check_sweep::<D>(0, &[0, 8, 4_000], &[0, 8, 4_000]).await;
    check_sweep::<D>(u64::MAX / 86_400, &[0, 4_000], &[0, 4_000]).await;
    let many: Vec<i64> = (8..308).collect();
    check_sweep::<D>(7, &many, &[]).await;
}

async fn a_sweep_spares_a_conversation_in_use<D: Database>() {
    let database = D::fresh();
    let store = database.open();
    let conversation = ConversationId::new();
    store
        .put_overflow(conversation, vec![1], NOW_MS - 30 * DAY_MS)
        .await
        .unwrap();
    store
        .audit_begin(begin("read", conversation, NOW_MS))
        .await
        .unwrap();
    let swept = store
        .sweep(
            Retention::of_outputs(Duration::from_secs(7 * 86_400)),
            NOW_MS,
        )
        .await
        .unwrap();
    assert_eq!(
        swept,
        SweepReport {
            n_overflow: 1,
            n_conversations: 0,
            ..SweepReport::default()
        }
    );
    assert_eq!(store.list_conversations(10).await.unwrap()[0].n_calls, 1);
}

async fn what_is_given_back_is_taken_anew<D: Database>() {
    static THREADS: Mutex<Vec<ThreadId>> = Mutex::new(Vec::new());
    let database = D::fresh();
    let conversation = ConversationId::new();
    let store = database.open();
    let put = |content: &'static str| store.put_overflow(conversation, content, NOW_MS);
    let before = put("before").await.unwrap();
    let note_thread = || THREADS.lock().unwrap().push(thread::current().id());
    store.give_back_memory(note_thread).await.unwrap();
    let after = put("after").await.unwrap();
    for (id, content) in [(before, "before"), (after, "after")] {
        let stored = store.overflow(conversation, id).await.unwrap();
        assert_eq!(stored.as_deref(), Some(content.as_bytes()));
    }
    let threads = THREADS.lock().unwrap();
    assert!(!threads.is_empty());
    assert!(!threads.contains(&thread::current().id()));
}

on_every_database! {
    any: [
        what_is_given_back_is_taken_anew,
        outputs_are_listed_newest_first_and_for_their_conversation_alone,
        of_outputs_stored_at_once_only_the_bad_ones_fail,
        another_conversation_reads_nothing,
        a_list_tells_use_calls_and_bytes,
        a_deleted_conversation_takes_its_outputs_and_leaves_its_record,
        a_sweep_deletes_what_is_older_than_the_retention,
        a_sweep_spares_a_conversation_in_use,
    ],
    lasting: [
        outputs_come_back_byte_for_byte,
    ],
}
