use std::sync::Arc;
use std::time::Instant;

use zeph_config::Flags;
use zeph_core::id::{Digest, OverflowId};
use zeph_core::lifetime::Lifetime;
use zeph_mcp::caller::Caller;
use zeph_store::{AgreedBy, Agreement, BoundCall};

use super::{Conversations, IDLE_MAX, IDLE_MAX_MS, Naming, NoConversation, PER_CALLER_MAX};
use crate::clock::now_ms;
use crate::host::{Host, StartOptions};
use crate::scheduler::tools;
use crate::traceless;

/// A host without plugins and without a trace on the disk.
async fn host() -> Host {
    let config = traceless::config(std::env::temp_dir(), Flags::default());
    let options = StartOptions {
        // A tool of the host: no engine is needed.
        expected_tool: Some("list_runs".to_owned()),
        ..StartOptions::default()
    };
    Host::start(config, options).await.unwrap().0
}

fn caller(id: Option<&str>) -> Caller {
    Caller {
        id: id.map(str::to_owned),
        ..Caller::default()
    }
}

#[test]
fn the_store_is_asked_about_the_same_time() {
    assert_eq!(i128::from(IDLE_MAX_MS).unsigned_abs(), IDLE_MAX.as_millis());
}

#[tokio::test]
async fn a_handle_counts_for_the_caller_it_was_given_to() {
    let host = host().await;
    let conversations = Conversations::default();
    let callers = [caller(Some("ann")), caller(Some("bob")), caller(None)];
    for owner in &callers {
        let own = conversations.begin(&host, owner, Naming::Own).unwrap();
        let handle = own.handle().to_string();
        for caller in &callers {
            let found = conversations.find(&handle, caller);
            match caller.id == owner.id {
                true => assert!(Arc::ptr_eq(&found.unwrap(), &own)),
                false => assert_eq!(found.unwrap_err(), NoConversation::Unknown),
            }
        }
        assert_eq!(own.session().principal().caller_id(), owner.id.as_deref());
    }
    for bad in ["", "x", "0192f0c0-0000-7000-8000-000000000000"] {
        let found = conversations.find(bad, &callers[0]);
        assert_eq!(found.unwrap_err(), NoConversation::Unknown);
    }
}

#[tokio::test]
async fn a_conversation_ends_with_the_token_it_was_begun_with() {
    let host = host().await;
    let conversations = Conversations::default();
    let of_token = |byte: u8| Caller {
        token: Some(Digest::new([byte; 32])),
        ..caller(Some("ann"))
    };
    let (old, anew) = (of_token(1), of_token(2));
    let [own, other] =
        [&old, &anew].map(|caller| conversations.begin(&host, caller, Naming::Own).unwrap());
    let handle = own.handle().to_string();
    // A token of the same name may be another's.
    let found = conversations.find(&handle, &anew);
    assert_eq!(found.unwrap_err(), NoConversation::Unknown);
    assert_ne!(own.owner(), other.owner());
    old.right.cancel();
    let found = conversations.find(&handle, &old);
    assert_eq!(found.unwrap_err(), NoConversation::Unknown);
    conversations.end_revoked();
    assert!(!conversations.open().contains_key(&own.handle()));
    assert!(conversations.open().contains_key(&other.handle()));
}

#[tokio::test]
async fn one_too_many_ends_the_one_that_was_idle_longest_of_this_caller() {
    let host = host().await;
    let conversations = Conversations::default();
    let (ann, bob) = (caller(Some("ann")), caller(Some("bob")));
    let of_bob = conversations
        .begin(&host, &bob, Naming::Own)
        .unwrap()
        .handle()
        .to_string();
    let used = conversations.begin(&host, &ann, Naming::Own).unwrap();
    let mut idle = Vec::new();
    for _ in 1..PER_CALLER_MAX {
        idle.push(
            conversations
                .begin(&host, &ann, Naming::Own)
                .unwrap()
                .handle()
                .to_string(),
        );
    }
    // Used again, so the second is the one that was idle longest.
    conversations.find(&idle[0], &ann).unwrap();
    conversations.begin(&host, &ann, Naming::Own).unwrap();
    assert!(conversations.find(&idle[1], &ann).is_err());
    assert!(conversations.find(&idle[0], &ann).is_ok());
    assert!(conversations.find(&used.handle().to_string(), &ann).is_ok());
    assert!(conversations.find(&of_bob, &bob).is_ok());

    let held: Vec<_> = conversations.open().values().cloned().collect();
    let refused = conversations.begin(&host, &ann, Naming::Own);
    assert_eq!(refused.unwrap_err(), NoConversation::TooMany);
    drop(held);
    assert!(conversations.begin(&host, &ann, Naming::Own).is_ok());
}

#[tokio::test]
async fn an_output_leads_its_owner_to_its_conversation() {
    let host = host().await;
    let conversations = Conversations::default();
    let (ann, bob) = (caller(Some("ann")), caller(None));
    let own = conversations.begin(&host, &ann, Naming::Own).unwrap();
    let output = OverflowId::new();
    own.remember(output);
    let found = conversations.with_output(output, &ann).unwrap();
    assert!(Arc::ptr_eq(&found, &own));
    assert!(conversations.with_output(output, &bob).is_none());
    assert!(conversations.with_output(OverflowId::new(), &ann).is_none());
}

#[tokio::test]
async fn what_nobody_uses_is_ended() {
    let host = host().await;
    let conversations = Conversations::default();
    let ann = caller(Some("ann"));
    let used = conversations.begin(&host, &ann, Naming::Own).unwrap();
    let idle = conversations
        .begin(&host, &ann, Naming::Own)
        .unwrap()
        .handle()
        .to_string();
    conversations.sweep(Instant::now());
    assert!(conversations.find(&idle, &ann).is_ok());
    conversations.sweep(Instant::now() + IDLE_MAX * 2);
    assert!(conversations.find(&idle, &ann).is_err());
    assert!(conversations.find(&used.handle().to_string(), &ann).is_ok());
}

#[tokio::test]
async fn a_call_that_a_person_is_asked_about_leads_its_caller_to_its_conversation() {
    let host = host().await;
    let conversations = Conversations::default();
    let (ann, bob) = (caller(Some("ann")), caller(Some("bob")));
    let own = conversations.begin(&host, &ann, Naming::Own).unwrap();
    let (call, other) = (Digest::new([1; 32]), Digest::new([2; 32]));
    let asked = async |call, caller: &Caller| {
        let found = conversations.with_asked(host.store(), call, caller);
        found.await.unwrap()
    };
    own.remember_asked(call);
    assert!(Arc::ptr_eq(&asked(call, &ann).await.unwrap(), &own));
    assert!(asked(call, &bob).await.is_none());
    assert!(asked(other, &ann).await.is_none());
    own.forget_asked(call);
    assert!(asked(call, &ann).await.is_none());
}

#[tokio::test]
async fn of_conversations_that_ask_about_one_call_the_approved_one_goes_on() {
    let host = host().await;
    let ann = caller(Some("ann"));
    let call = Digest::new([1; 32]);
    for approved in 0..3 {
        let conversations = Conversations::default();
        let begin = || conversations.begin(&host, &ann, Naming::Own).unwrap();
        let asked = [begin(), begin(), begin()];
        for conversation in &asked {
            conversation.remember_asked(call);
        }
        let agreed = Agreement {
            how: AgreedBy::CommandLine,
            who: None,
            client: None,
        };
        let tool = tools::tools().remove(0);
        let bound = BoundCall::new(&tool, None, &serde_json::Map::new(), None);
        let handle = asked[approved].handle();
        let store = host.store();
        let kept = store.approve_call(bound, Lifetime::Once, agreed, handle, now_ms());
        kept.await.unwrap();
        let found = conversations.with_asked(host.store(), call, &ann).await;
        assert_eq!(found.unwrap().unwrap().handle(), handle);
    }
}
