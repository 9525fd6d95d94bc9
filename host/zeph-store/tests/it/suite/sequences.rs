//! Sequences are learned, revoked and forgiven, and a conversation remembers its last calls and its labels.

use zeph_core::id::{CallId, ConversationId, OverflowId};
use zeph_core::policy::{Label, LabelKind, LearnedCause};
use zeph_store::{SequenceObservation, SequenceState};

use crate::database::{Database, on_every_database};
use crate::setup::NOW_MS;

fn words(text: &str) -> Vec<String> {
    text.split(' ').map(str::to_owned).collect()
}

fn observed(text: &str, cause: Option<LearnedCause>) -> SequenceObservation {
    SequenceObservation {
        words: words(text),
        cause,
        call_id: CallId::new(),
        n_needed: 3,
        at_ms: NOW_MS,
    }
}

async fn a_sequence_is_learned_when_it_goes_wrong_often_and_never_well<D: Database>() {
    let database = D::fresh();
    let store = database.open();
    let bad = Some(LearnedCause::Failed);
    for expect_learned in [false, false, true, false] {
        let learned = store
            .observe_sequence(observed("read a", bad))
            .await
            .unwrap();
        assert_eq!(learned.is_some(), expect_learned);
    }
    store
        .observe_sequence(observed("read b", bad))
        .await
        .unwrap();
    store
        .observe_sequence(observed("read b", None))
        .await
        .unwrap();
    for _ in 0..5 {
        assert_eq!(
            store
                .observe_sequence(observed("read b", bad))
                .await
                .unwrap(),
            None
        );
    }
    // What never went wrong is not kept.
    store
        .observe_sequence(observed("read c", None))
        .await
        .unwrap();
    let all = store.list_sequences().await.unwrap();
    let told: Vec<_> = all
        .iter()
        .map(|one| (one.words.join(" "), one.state, one.n_bad))
        .collect();
    assert_eq!(
        told,
        [
            ("read a".to_owned(), SequenceState::Learned, 4),
            ("read b".to_owned(), SequenceState::Candidate, 6),
        ]
    );
}

async fn a_person_revokes_and_forgives<D: Database>() {
    let database = D::fresh();
    let store = database.open();
    let before = store.sequences_version().await.unwrap();
    let call = CallId::new();
    let id = store
        .revoke_sequence(words("bash rm"), call, NOW_MS)
        .await
        .unwrap();
    assert_ne!(store.sequences_version().await.unwrap(), before);
    assert_eq!(
        store
            .revoke_sequence(words("bash rm"), call, NOW_MS)
            .await
            .unwrap(),
        id
    );
    assert!(store.forgive_sequence(id, NOW_MS).await.unwrap());
    assert!(!store.forgive_sequence(id, NOW_MS).await.unwrap());
    assert!(!store.forgive_sequence(99, NOW_MS).await.unwrap());
    // What was forgiven is learned again by a person alone.
    for _ in 0..5 {
        let bad = observed("bash rm", Some(LearnedCause::Refused));
        assert_eq!(store.observe_sequence(bad).await.unwrap(), None);
    }
    assert_eq!(
        store
            .revoke_sequence(words("bash rm"), call, NOW_MS)
            .await
            .unwrap(),
        id
    );
    let all = store.list_sequences().await.unwrap();
    assert_eq!(
        (all[0].state, all[0].cause),
        (SequenceState::Learned, LearnedCause::Revoked)
    );
}

async fn a_conversation_remembers_its_last_calls_and_its_labels<D: Database>() {
    let database = D::fresh();
    let store = database.open();
    let (conversation, other) = (ConversationId::new(), ConversationId::new());
    let calls: Vec<CallId> = (0..5).map(|_| CallId::new()).collect();
    for (n, call) in calls.iter().enumerate() {
        let words = (*call, format!("[{n}]"));
        store
            .remember_call(conversation, words, 3, NOW_MS)
            .await
            .unwrap();
    }
    let private = Label::new(LabelKind::Private, "/w/.env");
    let changed = private.clone().stamped("7:12:1.000000002");
    let output = OverflowId::new();
    for output in [None, Some(output), None] {
        let labels = vec![private.clone(), changed.clone()];
        store
            .keep_labels(conversation, output, labels, NOW_MS)
            .await
            .unwrap();
    }
    let past = store.conversation_past(conversation, 2).await.unwrap();
    assert_eq!(
        past.calls,
        [(calls[3], "[3]".to_owned()), (calls[4], "[4]".to_owned())]
    );
    assert_eq!(
        past.labels,
        [
            (None, private.clone()),
            (None, changed.clone()),
            (Some(output), private),
            (Some(output), changed)
        ]
    );
    assert_eq!(
        store
            .conversation_past(conversation, 50)
            .await
            .unwrap()
            .calls
            .len(),
        3
    );
    assert!(
        store
            .conversation_past(other, 50)
            .await
            .unwrap()
            .calls
            .is_empty()
    );
    assert!(store.delete_conversation(conversation).await.unwrap());
    let past = store.conversation_past(conversation, 50).await.unwrap();
    assert!(past.calls.is_empty() && past.labels.is_empty());
}

async fn what_was_let_out_of_a_conversation_is_kept<D: Database>() {
    let database = D::fresh();
    let store = database.open();
    let (conversation, other) = (ConversationId::new(), ConversationId::new());
    let private = Label::new(LabelKind::Private, "/w/.env");
    let untrusted = Label::new(LabelKind::Untrusted, "example.org");
    for (destination, labels) in [
        ("git push origin", vec![private.clone()]),
        ("curl example.org", vec![untrusted.clone()]),
        ("git push origin", vec![private.clone(), untrusted.clone()]),
    ] {
        let kept = store.keep_release(conversation, destination.to_owned(), labels, NOW_MS);
        kept.await.unwrap();
    }
    let of = async |conversation| store.conversation_past(conversation, 1).await.unwrap();
    let expect = [
        ("curl example.org".to_owned(), vec![untrusted.clone()]),
        ("git push origin".to_owned(), vec![private, untrusted]),
    ];
    assert_eq!(of(conversation).await.releases, expect);
    assert_eq!(of(other).await.releases, []);
    for n in 0..300_i64 {
        let kept = store.keep_release(conversation, format!("to {n}"), Vec::new(), NOW_MS + n);
        kept.await.unwrap();
    }
    let releases = of(conversation).await.releases;
    assert_eq!(releases.len(), 256, "the oldest are forgotten");
    assert!(releases.iter().any(|(to, _)| to == "to 299"));
    assert!(store.delete_conversation(conversation).await.unwrap());
    assert_eq!(of(conversation).await.releases, []);
}

/// Labels of many outputs do not push out those of what the conversation itself read.
async fn labels_of_outputs_push_out_no_others<D: Database>() {
    let database = D::fresh();
    let store = database.open();
    let conversation = ConversationId::new();
    let private = Label::new(LabelKind::Private, "/w/.env");
    let labels: Vec<Label> = (0..1_200)
        .map(|n| Label::new(LabelKind::Untrusted, &format!("{n}.example.org")))
        .collect();
    for (output, labels) in [
        (Some(OverflowId::new()), labels),
        (None, vec![private.clone()]),
    ] {
        let kept = store.keep_labels(conversation, output, labels, NOW_MS);
        kept.await.unwrap();
    }
    let past = store.conversation_past(conversation, 1).await.unwrap();
    assert_eq!(past.labels.first(), Some(&(None, private)));
    assert_eq!(past.labels.len(), 1_201);
}

async fn candidates_are_bounded<D: Database>() {
    let database = D::fresh();
    let store = database.open();
    for n in 0..2_050 {
        let bad = observed(&format!("read {n}"), Some(LearnedCause::Failed));
        store.observe_sequence(bad).await.unwrap();
    }
    assert_eq!(store.list_sequences().await.unwrap().len(), 2_000);
}

async fn another_host_sees_what_was_learned<D: Database>() {
    let database = D::fresh();
    let (one, other) = (database.open(), database.open());
    let before = other.sequences_version().await.unwrap();
    one.revoke_sequence(words("bash rm"), CallId::new(), NOW_MS)
        .await
        .unwrap();
    assert_ne!(other.sequences_version().await.unwrap(), before);
    assert_eq!(other.list_sequences().await.unwrap().len(), 1);
}

on_every_database! {
    any: [
        a_sequence_is_learned_when_it_goes_wrong_often_and_never_well,
        a_person_revokes_and_forgives,
        a_conversation_remembers_its_last_calls_and_its_labels,
        what_was_let_out_of_a_conversation_is_kept,
        labels_of_outputs_push_out_no_others,
        candidates_are_bounded,
    ],
    lasting: [another_host_sees_what_was_learned],
}
