//! Tokens of the MCP endpoint: kept, listed, revoked, and seen by every host on the same database at once.

use zeph_core::id::Digest;
use zeph_store::TokenRecord;

use crate::database::{Database, on_every_database};
use crate::setup::NOW_MS;

fn token(name: &str, digest: u8) -> TokenRecord {
    TokenRecord {
        name: name.to_owned(),
        digest: Digest::new([digest; 32]),
        tools: None,
        rate: None,
        created_at_ms: NOW_MS,
        expires_at_ms: None,
    }
}

async fn tokens_are_kept_with_all_they_limit<D: Database>() {
    let database = D::fresh();
    let limited = TokenRecord {
        tools: Some(vec!["file__*".to_owned(), "gr,ep\"".to_owned()]),
        rate: Some(u32::MAX),
        expires_at_ms: Some(NOW_MS + 1),
        ..token("limited", 1)
    };
    let nothing = TokenRecord {
        tools: Some(Vec::new()),
        ..token("nothing", 2)
    };
    let store = database.open();
    for token in [&nothing, &limited] {
        assert!(store.add_token(token.clone()).await.unwrap());
    }
    store.close().await.unwrap();
    let listed = database.open().list_tokens().await.unwrap();
    assert_eq!(listed, [limited.clone(), nothing]);
    assert!(!limited.has_expired(NOW_MS) && limited.has_expired(NOW_MS + 1));
}

async fn a_name_is_given_once_and_free_again_after_revocation<D: Database>() {
    let database = D::fresh();
    let store = database.open();
    assert!(store.add_token(token("ci", 1)).await.unwrap());
    assert!(!store.add_token(token("ci", 2)).await.unwrap());
    assert_eq!(store.list_tokens().await.unwrap(), [token("ci", 1)]);
    assert!(store.revoke_token("ci".to_owned()).await.unwrap());
    assert!(!store.revoke_token("ci".to_owned()).await.unwrap());
    assert!(store.add_token(token("ci", 2)).await.unwrap());
}

async fn another_host_sees_a_token_and_its_revocation_at_once<D: Database>() {
    let database = D::fresh();
    let (server, operator) = (database.open(), database.open());
    assert!(server.list_tokens().await.unwrap().is_empty());
    operator.add_token(token("ci", 1)).await.unwrap();
    assert_eq!(server.list_tokens().await.unwrap(), [token("ci", 1)]);
    operator.revoke_token("ci".to_owned()).await.unwrap();
    assert!(server.list_tokens().await.unwrap().is_empty());
}

on_every_database! {
    any: [a_name_is_given_once_and_free_again_after_revocation],
    lasting: [
        tokens_are_kept_with_all_they_limit,
        another_host_sees_a_token_and_its_revocation_at_once,
    ],
}
