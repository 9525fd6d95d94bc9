//! Sessions of the agent: items in order, from the last base on, found by directory, gone with their conversation.

use zeph_core::id::ConversationId;
use zeph_store::{AppendEnd, NewSession, NewSessionItem, SessionItems, Store};

use crate::database::{Database, on_every_database};
use crate::setup::NOW_MS;

fn session(conversation: ConversationId, directory: &str) -> NewSession {
    NewSession {
        conversation,
        title: "mend the test".to_owned(),
        directory: directory.to_owned(),
        provider: "large".to_owned(),
        model: "model-1".to_owned(),
    }
}

fn item(json: &str) -> NewSessionItem {
    NewSessionItem {
        json: json.to_owned(),
        is_base: false,
    }
}

async fn append(store: &Store, id: ConversationId, items: Vec<NewSessionItem>, after: i64) -> i64 {
    match store.append_items(id, items, after, NOW_MS).await.unwrap() {
        AppendEnd::Appended(last) => last,
        other => panic!("{other:?}"),
    }
}

async fn items_come_back_in_order_from_the_last_base_on<D: Database>() {
    let database = D::fresh();
    let store = database.open();
    let (own, other) = (ConversationId::new(), ConversationId::new());
    for conversation in [own, other] {
        let begun = store.begin_session(session(conversation, "/a"), NOW_MS);
        begun.await.unwrap();
    }
    let mut last = [0, 0];
    for n in 0..3 {
        let items = vec![item(&format!("{{\"n\":{n}}}"))];
        last[0] = append(&store, own, items, last[0]).await;
        let foreign = vec![item("\"not ours\"")];
        last[1] = append(&store, other, foreign, last[1]).await;
    }
    let all = ["{\"n\":0}", "{\"n\":1}", "{\"n\":2}"];
    let stored = store.session_items(own).await.unwrap();
    assert_eq!(
        (stored.items, stored.last),
        (all.map(str::to_owned).to_vec(), last[0])
    );
    let base = NewSessionItem {
        is_base: true,
        ..item("\"base\"")
    };
    append(&store, own, vec![base, item("\"next\"")], last[0]).await;
    store.close().await.unwrap();
    let store = database.open();
    assert_eq!(
        store.session_items(own).await.unwrap().items,
        ["\"base\"", "\"next\""]
    );
    assert_eq!(store.session_items(other).await.unwrap().items.len(), 3);
    let record = store.session(own).await.unwrap().unwrap();
    assert_eq!(
        (record.n_items, record.title.as_str()),
        (5, "mend the test")
    );
}

async fn sessions_are_found_by_directory_and_use<D: Database>() {
    let database = D::fresh();
    let store = database.open();
    let ids: Vec<ConversationId> = (0..3).map(|_| ConversationId::new()).collect();
    for (idx, directory) in ["/a", "/b", "/a"].into_iter().enumerate() {
        let at_ms = NOW_MS + i64::try_from(idx).unwrap();
        let begun = store.begin_session(session(ids[idx], directory), at_ms);
        begun.await.unwrap();
    }
    let appended = store.append_items(ids[0], vec![item("1")], 0, NOW_MS + 10);
    assert!(matches!(appended.await.unwrap(), AppendEnd::Appended(_)));
    let listed = async |directory: Option<&str>, limit| {
        let listed = store.list_sessions(directory.map(str::to_owned), limit);
        let listed = listed.await.unwrap();
        listed
            .iter()
            .map(|one| one.conversation)
            .collect::<Vec<_>>()
    };
    assert_eq!(listed(None, 10).await, [ids[0], ids[2], ids[1]]);
    assert_eq!(listed(Some("/a"), 10).await, [ids[0], ids[2]]);
    assert_eq!(listed(Some("/c"), 10).await, []);
    assert_eq!(listed(None, 1).await, [ids[0]]);
}

async fn a_session_that_goes_on_keeps_its_beginning<D: Database>() {
    let database = D::fresh();
    let store = database.open();
    let id = ConversationId::new();
    let untitled = NewSession {
        title: String::new(),
        ..session(id, "/a")
    };
    store.begin_session(untitled, NOW_MS).await.unwrap();
    let again = NewSession {
        model: "model-2".to_owned(),
        ..session(id, "/elsewhere")
    };
    store.begin_session(again, NOW_MS + 5).await.unwrap();
    let record = store.session(id).await.unwrap().unwrap();
    assert_eq!(record.title, "mend the test");
    assert_eq!(
        (record.directory.as_str(), record.model.as_str()),
        ("/a", "model-2")
    );
    assert_eq!(
        (record.started_at_ms, record.last_used_at_ms),
        (NOW_MS, NOW_MS + 5)
    );
}

async fn a_session_goes_with_its_conversation<D: Database>() {
    let database = D::fresh();
    let store = database.open();
    let id = ConversationId::new();
    let appended = store.append_items(id, vec![item("1")], 0, NOW_MS);
    assert_eq!(appended.await.unwrap(), AppendEnd::NoSession);
    store
        .begin_session(session(id, "/a"), NOW_MS)
        .await
        .unwrap();
    append(&store, id, vec![item("1")], 0).await;
    assert!(store.delete_conversation(id).await.unwrap());
    assert_eq!(store.session(id).await.unwrap(), None);
    assert!(store.session_items(id).await.unwrap().items.is_empty());
}

/// Of two that go on from the same item, the first appends.
async fn what_was_appended_meanwhile_is_in_nobodys_way<D: Database>() {
    let database = D::fresh();
    let stores = [database.open(), database.open()];
    let id = ConversationId::new();
    let begun = stores[0].begin_session(session(id, "/a"), NOW_MS);
    begun.await.unwrap();
    let first = append(&stores[0], id, vec![item("1")], 0).await;
    assert_eq!(stores[1].session_items(id).await.unwrap().last, first);
    let second = append(&stores[1], id, vec![item("2")], first).await;
    let late = stores[0].append_items(id, vec![item("3")], first, NOW_MS);
    assert_eq!(late.await.unwrap(), AppendEnd::Moved);
    append(&stores[0], id, vec![item("3")], second).await;
    let stored = stores[1].session_items(id).await.unwrap();
    assert_eq!(stored.items, ["1", "2", "3"]);
    assert_eq!(stores[1].last_item(id).await.unwrap(), stored.last);
    let later = stores[1].session_items_after(id, first).await.unwrap();
    assert_eq!(
        (later.items.join(" "), later.last),
        ("2 3".to_owned(), stored.last)
    );
    let none = stores[1]
        .session_items_after(id, stored.last)
        .await
        .unwrap();
    assert_eq!(none, SessionItems::default());
    let unknown = ConversationId::new();
    assert_eq!(stores[1].last_item(unknown).await.unwrap(), 0);
}

on_every_database! {
    any: [
        sessions_are_found_by_directory_and_use,
        a_session_that_goes_on_keeps_its_beginning,
        a_session_goes_with_its_conversation,
    ],
    lasting: [
        items_come_back_in_order_from_the_last_base_on,
        what_was_appended_meanwhile_is_in_nobodys_way,
    ],
}
