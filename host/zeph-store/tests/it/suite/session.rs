//! Sessions of the agent: items in order, from the last base on, found by directory, gone with their conversation.

use zeph_core::id::ConversationId;
use zeph_store::{NewSession, NewSessionItem};

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

async fn items_come_back_in_order_from_the_last_base_on<D: Database>() {
    let database = D::fresh();
    let store = database.open();
    let (own, other) = (ConversationId::new(), ConversationId::new());
    for conversation in [own, other] {
        let begun = store.begin_session(session(conversation, "/a"), NOW_MS);
        begun.await.unwrap();
    }
    for n in 0..3 {
        let items = vec![item(&format!("{{\"n\":{n}}}"))];
        assert!(store.append_items(own, items, NOW_MS).await.unwrap());
        let foreign = vec![item("\"not ours\"")];
        assert!(store.append_items(other, foreign, NOW_MS).await.unwrap());
    }
    let all = ["{\"n\":0}", "{\"n\":1}", "{\"n\":2}"];
    assert_eq!(store.session_items(own).await.unwrap(), all);
    let base = NewSessionItem {
        is_base: true,
        ..item("\"base\"")
    };
    let appended = store.append_items(own, vec![base, item("\"next\"")], NOW_MS);
    assert!(appended.await.unwrap());
    store.close().await.unwrap();
    let store = database.open();
    assert_eq!(
        store.session_items(own).await.unwrap(),
        ["\"base\"", "\"next\""]
    );
    assert_eq!(store.session_items(other).await.unwrap().len(), 3);
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
    let appended = store.append_items(ids[0], vec![item("1")], NOW_MS + 10);
    assert!(appended.await.unwrap());
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
    assert!(
        !store
            .append_items(id, vec![item("1")], NOW_MS)
            .await
            .unwrap()
    );
    store
        .begin_session(session(id, "/a"), NOW_MS)
        .await
        .unwrap();
    assert!(
        store
            .append_items(id, vec![item("1")], NOW_MS)
            .await
            .unwrap()
    );
    assert!(store.delete_conversation(id).await.unwrap());
    assert_eq!(store.session(id).await.unwrap(), None);
    assert!(store.session_items(id).await.unwrap().is_empty());
}

on_every_database! {
    any: [
        sessions_are_found_by_directory_and_use,
        a_session_that_goes_on_keeps_its_beginning,
        a_session_goes_with_its_conversation,
    ],
    lasting: [items_come_back_in_order_from_the_last_base_on],
}
