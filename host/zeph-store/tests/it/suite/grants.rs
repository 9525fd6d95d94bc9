//! Grants of plugins: which of them count for a call, for how long, and what becomes of them.

use std::slice::from_ref;

use tokio::task::JoinSet;
use zeph_core::capability::{Capability, FsRights, LimitName};
use zeph_core::id::{ConversationId, Digest, Pin, PluginId};
use zeph_core::lifetime::GrantLifetime;
use zeph_store::{CallBegin, GrantRecord, Revoke, SingleUseRights, Store, StoreError};

use crate::database::{Database, on_every_database};
use crate::setup::NOW_MS;

mod end;

const DAY_MS: i64 = 86_400_000;

pub(crate) fn plugin(name: &str) -> PluginId {
    PluginId(name.to_owned())
}

pub(crate) fn pin(n: u8) -> Pin {
    Pin {
        wasm: Digest::new([n; 32]),
        tools: Digest::new([n + 100; 32]),
    }
}

pub(crate) fn host(name: &str) -> Capability {
    Capability::Host(name.parse().unwrap())
}

fn directory(path: &str) -> Capability {
    let path = path.to_owned();
    Capability::Directory {
        path,
        rights: FsRights::READ,
    }
}

/// One grant of `a.example` to `notes` as it was with pin 1.
pub(crate) async fn grant(store: &Store, lifetime: GrantLifetime) -> GrantRecord {
    grant_to(store, pin(1), lifetime).await
}

async fn grant_to(store: &Store, pin: Pin, lifetime: GrantLifetime) -> GrantRecord {
    let given = vec![host("a.example")];
    let added = store
        .add_grants(plugin("notes"), pin, given, lifetime, NOW_MS)
        .await;
    added.unwrap().remove(0)
}

async fn look_up(store: &Store, conversation: ConversationId, now_ms: i64) -> Vec<GrantRecord> {
    let found = store.grants_of_call(plugin("notes"), pin(1), conversation, now_ms);
    found.await.unwrap()
}

/// Begins a call with the grants it leans on; says whether it got them.
async fn hold(store: &Store, granted: &[GrantRecord]) -> bool {
    let once = granted.iter().filter(|grant| grant.is_once());
    let rights = SingleUseRights {
        grants: once.cloned().collect(),
        ..SingleUseRights::default()
    };
    let begun = store.begin_call(None, rights, NOW_MS).await.unwrap();
    begun == CallBegin::Recorded
}

/// What a call that begins gets, decided again as long as others are quicker.
async fn take_at(store: &Store, conversation: ConversationId, now_ms: i64) -> Vec<GrantRecord> {
    loop {
        let granted = look_up(store, conversation, now_ms).await;
        if hold(store, &granted).await {
            return granted;
        }
    }
}

/// The end of a call that did not use what it held.
async fn release(store: &Store, granted: Vec<GrantRecord>) {
    store.finish_call(None, granted).await.unwrap();
}

pub(crate) async fn take(store: &Store) -> Vec<GrantRecord> {
    take_at(store, ConversationId::new(), NOW_MS).await
}

/// The lifetimes of all grants there are.
async fn lifetimes(store: &Store) -> Vec<GrantLifetime> {
    let listed = store.list_grants(None).await.unwrap();
    listed.into_iter().map(|grant| grant.lifetime).collect()
}

async fn a_grant_comes_back_as_it_was_given<D: Database>() {
    let database = D::fresh();
    let store = database.open();
    let given = vec![
        Capability::Directory {
            path: "/srv/notes and more/é".to_owned(),
            rights: FsRights::ALL,
        },
        host("*.example.com"),
        Capability::Program {
            name: "cargo".to_owned(),
        },
        Capability::Variable {
            name: "HOME".to_owned(),
        },
        Capability::Limit {
            name: LimitName::MemoryBytes,
            value: 1 << 40,
        },
    ];
    let conversation = ConversationId::new();
    let lifetimes = [
        GrantLifetime::Always,
        GrantLifetime::Until {
            at_ms: NOW_MS + DAY_MS,
        },
        GrantLifetime::Session { conversation },
        GrantLifetime::Once,
    ];
    let mut added = Vec::new();
    for (n, lifetime) in (1..).zip(lifetimes) {
        let records = store
            .add_grants(plugin("notes"), pin(n), given.clone(), lifetime, NOW_MS)
            .await
            .unwrap();
        for (record, capability) in records.iter().zip(&given) {
            let expected = GrantRecord {
                id: record.id,
                plugin: plugin("notes"),
                pin: pin(n),
                capability: capability.clone(),
                lifetime,
                granted_at_ms: NOW_MS,
                mode: None,
            };
            assert_eq!(*record, expected);
        }
        added.extend(records);
    }
    store.close().await.unwrap();
    let store = database.open();
    assert_eq!(store.list_grants(None).await.unwrap(), added);
    let other = store.list_grants(Some(plugin("other"))).await.unwrap();
    assert_eq!(other, []);
    assert_eq!(store.unreadable_grants().await.unwrap(), []);
}

async fn a_grant_counts_for_its_plugin_its_pin_and_its_time<D: Database>() {
    let database = D::fresh();
    let store = database.open();
    let (own, other) = (ConversationId::new(), ConversationId::new());
    let session = GrantLifetime::Session { conversation: own };
    let until = GrantLifetime::Until {
        at_ms: NOW_MS + 1_000,
    };
    // Lifetime, conversation of the call, when it begins: does the grant count?
    let cases = [
        (GrantLifetime::Always, own, NOW_MS + 400 * DAY_MS, true),
        (until, own, NOW_MS + 999, true),
        (until, own, NOW_MS + 1_000, false),
        (session, own, NOW_MS + 400 * DAY_MS, true),
        (session, other, NOW_MS, false),
        (GrantLifetime::Once, other, NOW_MS + 400 * DAY_MS, true),
    ];
    for (lifetime, conversation, now_ms, expected) in cases {
        let granted = grant(&store, lifetime).await;
        let not_mine = [
            (plugin("other"), pin(1)),
            (plugin("notes"), pin(2)),
            (
                plugin("notes"),
                Pin {
                    tools: pin(2).tools,
                    ..pin(1)
                },
            ),
        ];
        for (name, pin) in not_mine {
            let taken = store.grants_of_call(name, pin, conversation, now_ms);
            assert_eq!(taken.await.unwrap(), []);
        }
        let expected = if expected { vec![granted] } else { Vec::new() };
        let taken = take_at(&store, conversation, now_ms).await;
        assert_eq!(taken, expected, "{lifetime:?} at {now_ms}");
        store
            .revoke_grants(plugin("notes"), Revoke::All)
            .await
            .unwrap();
    }
}

/// Grants one after another for the same capability: what is left of them, in order.
async fn check_added<D: Database>(given: &[GrantLifetime], expected_left: &[GrantLifetime]) {
    let database = D::fresh();
    let store = database.open();
    for lifetime in given {
        let stands = grant(&store, *lifetime).await;
        let listed = store.list_grants(None).await.unwrap();
        assert!(listed.contains(&stands), "{given:?}: {stands:?}");
    }
    assert_eq!(lifetimes(&store).await, expected_left, "{given:?}");
}

async fn the_longer_lifetime_stays<D: Database>() {
    use GrantLifetime::{Always, Once};
    let until = |days: i64| GrantLifetime::Until {
        at_ms: NOW_MS + days * DAY_MS,
    };
    let (one, two) = (ConversationId::new(), ConversationId::new());
    let session = |conversation| GrantLifetime::Session { conversation };

    check_added::<D>(&[Once, Once], &[Once]).await;
    check_added::<D>(&[Always, Always], &[Always]).await;
    check_added::<D>(&[session(one), session(one)], &[session(one)]).await;
    check_added::<D>(&[Once, session(one)], &[session(one)]).await;
    check_added::<D>(&[Once, until(1)], &[until(1)]).await;
    check_added::<D>(&[until(1), Once], &[until(1)]).await;
    check_added::<D>(&[until(1), until(2)], &[until(2)]).await;
    check_added::<D>(&[until(2), until(1)], &[until(2)]).await;
    check_added::<D>(&[session(one), until(1), Always], &[Always]).await;
    check_added::<D>(&[Always, Once, until(1), session(one)], &[Always]).await;
    // None of these makes the other pointless.
    check_added::<D>(&[session(one), Once], &[session(one), Once]).await;
    check_added::<D>(&[session(one), session(two)], &[session(one), session(two)]).await;
    check_added::<D>(&[session(one), until(1)], &[session(one), until(1)]).await;
    check_added::<D>(&[until(1), session(one)], &[until(1), session(one)]).await;
}

async fn an_ended_grant_makes_no_new_one_pointless<D: Database>() {
    let database = D::fresh();
    let store = database.open();
    let until = GrantLifetime::Until { at_ms: NOW_MS + 1 };
    grant(&store, until).await;
    let given = vec![host("a.example")];
    let later = store
        .add_grants(
            plugin("notes"),
            pin(1),
            given,
            GrantLifetime::Once,
            NOW_MS + DAY_MS,
        )
        .await
        .unwrap();
    assert_eq!(later[0].lifetime, GrantLifetime::Once);
    let taken = take_at(&store, ConversationId::new(), NOW_MS + DAY_MS).await;
    assert_eq!(taken, later);
}

async fn what_could_never_be_in_force_is_refused_as_a_whole<D: Database>() {
    let database = D::fresh();
    let store = database.open();
    let past = GrantLifetime::Until { at_ms: NOW_MS };
    let no_rights = Capability::Directory {
        path: "/srv".to_owned(),
        rights: FsRights::default(),
    };
    let cases = [
        (directory("notes"), GrantLifetime::Always, "is absolute"),
        (directory("."), GrantLifetime::Always, "is absolute"),
        (directory("~/notes"), GrantLifetime::Always, "is absolute"),
        (
            directory("/srv/../etc"),
            GrantLifetime::Always,
            "without `..`",
        ),
        (no_rights, GrantLifetime::Always, "names no right"),
        (host("b.example"), past, "has passed"),
    ];
    for (capability, lifetime, expected) in cases {
        let given = vec![host("a.example"), capability.clone()];
        let added = store
            .add_grants(plugin("notes"), pin(1), given, lifetime, NOW_MS)
            .await;
        let error = added.unwrap_err();
        assert!(matches!(error, StoreError::BadGrant { .. }), "{error:?}");
        assert!(error.to_string().contains(expected), "{error}");
        assert_eq!(store.list_grants(None).await.unwrap(), [], "{capability}");
    }
}

async fn of_many_calls_at_once_one_gets_the_grant_for_once<D: Database>() {
    for _ in 0..20 {
        let database = D::fresh();
        let hosts: [Store; 4] = std::array::from_fn(|_| database.open());
        let granted = grant(&hosts[0], GrantLifetime::Once).await;
        let mut calls = JoinSet::new();
        for n in 0..20 {
            let store = hosts[n % hosts.len()].clone();
            calls.spawn(async move { take(&store).await });
        }
        let taken: Vec<_> = calls.join_all().await.concat();
        assert_eq!(taken, [granted]);
        assert_eq!(take(&hosts[1]).await, []);
    }
}

async fn what_a_call_did_not_use_comes_back<D: Database>() {
    let database = D::fresh();
    let store = database.open();
    let granted = grant(&store, GrantLifetime::Once).await;
    assert_eq!(take(&store).await, from_ref(&granted));
    assert_eq!(take(&store).await, []);
    assert_eq!(store.list_grants(None).await.unwrap(), []);
    release(&store, vec![granted.clone()]).await;
    // Twice makes no second one.
    release(&store, vec![granted.clone()]).await;
    assert_eq!(take(&store).await, [granted]);
    assert_eq!(take(&store).await, []);
}

async fn others_than_once_are_neither_used_up_nor_made_by_an_end<D: Database>() {
    let database = D::fresh();
    let store = database.open();
    let granted = grant(&store, GrantLifetime::Always).await;
    assert_eq!(take(&store).await, from_ref(&granted));
    assert_eq!(take(&store).await, from_ref(&granted));
    store
        .revoke_grants(plugin("notes"), Revoke::All)
        .await
        .unwrap();
    release(&store, vec![granted]).await;
    assert_eq!(store.list_grants(None).await.unwrap(), []);
}

async fn what_was_revoked_during_the_call_does_not_come_back<D: Database>() {
    let database = D::fresh();
    let store = database.open();
    for which in [Revoke::All, Revoke::Ids(vec![2])] {
        let granted = grant(&store, GrantLifetime::Once).await;
        let taken = take(&store).await;
        assert_eq!(taken, [granted]);
        let n_revoked = store.revoke_grants(plugin("notes"), which.clone()).await;
        assert_eq!(n_revoked.unwrap(), 1, "{which:?}");
        release(&store, taken).await;
        assert_eq!(take(&store).await, [], "{which:?}");
    }
}

async fn what_was_replaced_during_the_call_does_not_come_back<D: Database>() {
    let database = D::fresh();
    let store = database.open();
    grant(&store, GrantLifetime::Once).await;
    let taken = take(&store).await;
    grant(&store, GrantLifetime::Once).await;
    release(&store, taken).await;
    assert_eq!(lifetimes(&store).await, [GrantLifetime::Once]);
}

async fn a_session_spares_the_grant_for_once_and_does_not_swallow_it<D: Database>() {
    let database = D::fresh();
    let store = database.open();
    let (own, other) = (ConversationId::new(), ConversationId::new());
    let session = grant(&store, GrantLifetime::Session { conversation: own }).await;
    let once = grant(&store, GrantLifetime::Once).await;
    assert_eq!(take_at(&store, own, NOW_MS).await, [session]);
    let taken = take_at(&store, other, NOW_MS).await;
    assert_eq!(taken, from_ref(&once));
    release(&store, taken).await;
    assert_eq!(take_at(&store, other, NOW_MS).await, [once]);
}

on_every_database! {
    any: [
        a_grant_counts_for_its_plugin_its_pin_and_its_time,
        the_longer_lifetime_stays,
        an_ended_grant_makes_no_new_one_pointless,
        what_could_never_be_in_force_is_refused_as_a_whole,
        what_a_call_did_not_use_comes_back,
        others_than_once_are_neither_used_up_nor_made_by_an_end,
        what_was_revoked_during_the_call_does_not_come_back,
        what_was_replaced_during_the_call_does_not_come_back,
        a_session_spares_the_grant_for_once_and_does_not_swallow_it,
    ],
    lasting: [
        a_grant_comes_back_as_it_was_given,
        of_many_calls_at_once_one_gets_the_grant_for_once,
    ],
}
