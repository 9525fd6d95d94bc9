//! How grants end, move, and fail to be read.

use std::time::Duration;

use zeph_core::id::ConversationId;
use zeph_core::lifetime::GrantLifetime;
use zeph_store::{GrantRecord, OldGrants, Retention, Revoke};

use super::{
    DAY_MS, directory, grant, grant_to, host, lifetimes, pin, plugin, release, take, take_at,
};
use crate::database::{Database, on_every_database};
use crate::setup::{NOW_MS, begin};

async fn revoking_names_numbers_of_its_plugin_only<D: Database>() {
    let database = D::fresh();
    let store = database.open();
    let given = vec![host("a.example"), host("b.example"), directory("/srv")];
    let mut ids = Vec::new();
    for name in ["notes", "other"] {
        let added = store
            .add_grants(
                plugin(name),
                pin(1),
                given.clone(),
                GrantLifetime::Always,
                NOW_MS,
            )
            .await;
        ids.extend(added.unwrap().iter().map(|grant| grant.id));
    }
    let named = Revoke::Ids(vec![ids[1], ids[3], ids[1], 999]);
    let n_revoked = store.revoke_grants(plugin("notes"), named).await.unwrap();
    assert_eq!(n_revoked, 1);
    let left = store.list_grants(Some(plugin("notes"))).await.unwrap();
    let left: Vec<_> = left.iter().map(|grant| grant.id).collect();
    assert_eq!(left, [ids[0], ids[2]]);
    assert_eq!(store.forget_plugin(plugin("notes")).await.unwrap(), 2);
    assert_eq!(store.forget_plugin(plugin("notes")).await.unwrap(), 0);
    assert_eq!(store.list_grants(None).await.unwrap().len(), 3);
    // Numbers are not used again, also not the highest one.
    store.forget_plugin(plugin("other")).await.unwrap();
    let next = grant(&store, GrantLifetime::Always).await;
    assert!(next.id > ids[5], "{next:?}");
}

/// A name may have meant another plugin before, and may mean another one elsewhere.
async fn revoking_a_pin_leaves_the_grants_of_every_other<D: Database>() {
    let database = D::fresh();
    let store = database.open();
    grant(&store, GrantLifetime::Once).await;
    take(&store).await;
    for n in 1..=2 {
        grant_to(&store, pin(n), GrantLifetime::Always).await;
    }
    let given = store.add_grants(
        plugin("other"),
        pin(1),
        vec![host("a.example")],
        GrantLifetime::Always,
        NOW_MS,
    );
    given.await.unwrap();
    let n_revoked = |n| store.revoke_grants(plugin("notes"), Revoke::Pin(pin(n)));
    assert_eq!(n_revoked(3).await.unwrap(), 0);
    // What a running call holds is among them.
    assert_eq!(n_revoked(1).await.unwrap(), 2);
    let left = store.list_grants(None).await.unwrap();
    let left: Vec<_> = left
        .iter()
        .map(|grant| (grant.plugin.0.as_str(), grant.pin))
        .collect();
    assert_eq!(left, [("notes", pin(2)), ("other", pin(1))]);
}

/// Another command may revoke all of it between the look and the change.
async fn what_stays_of_a_grant_stays_of_one_that_is_still_there<D: Database>() {
    let database = D::fresh();
    let store = database.open();
    let named = plugin("notes");
    let until = GrantLifetime::Until {
        at_ms: NOW_MS + DAY_MS,
    };
    let given = vec![directory("/srv"), directory("/opt"), host("a.example")];
    let added = store.add_grants(named.clone(), pin(1), given, until, NOW_MS);
    let [srv, opt, other] = <[GrantRecord; 3]>::try_from(added.await.unwrap()).unwrap();
    let part = |grant: &GrantRecord, path: &str| GrantRecord {
        capability: directory(path),
        ..grant.clone()
    };
    let both = vec![part(&srv, "/srv/a"), part(&opt, "/opt/a")];
    let which = || Revoke::Ids(vec![srv.id, opt.id]);
    // One of them is gone by then.
    let gone = store.revoke_grants(named.clone(), Revoke::Ids(vec![opt.id]));
    assert_eq!(gone.await.unwrap(), 1);
    let narrowed = store.narrow_grants(named.clone(), which(), both.clone(), NOW_MS);
    let left = narrowed.await.unwrap();
    let expect = GrantRecord {
        id: left[0].id,
        ..part(&srv, "/srv/a")
    };
    assert_eq!(left, std::slice::from_ref(&expect));
    let all = store.list_grants(Some(named.clone())).await.unwrap();
    assert_eq!(all, [other, expect]);
    // What cannot be kept revokes nothing.
    let bad = vec![part(&left[0], "relative")];
    let refused = store.narrow_grants(named.clone(), Revoke::All, bad, NOW_MS);
    assert!(refused.await.is_err());
    assert_eq!(
        store.list_grants(Some(named.clone())).await.unwrap().len(),
        2
    );
    // All of them are gone.
    store.forget_plugin(named.clone()).await.unwrap();
    let narrowed = store.narrow_grants(named.clone(), which(), both, NOW_MS);
    assert_eq!(narrowed.await.unwrap(), []);
    assert_eq!(store.list_grants(None).await.unwrap(), []);
}

async fn an_approved_version_gets_the_grants_of_the_one_before<D: Database>() {
    let until = |days: i64| GrantLifetime::Until {
        at_ms: NOW_MS + days * DAY_MS,
    };
    // Grants as pin 1, 2 and 3; which pin is left behind for pin 3; how many move; what is there as pin 3.
    let cases = [
        ([until(1), until(2), until(3)], Some(pin(1)), 1, until(3)),
        ([until(5), until(2), until(3)], Some(pin(1)), 1, until(5)),
        ([until(1), until(7), until(3)], None, 2, until(7)),
        (
            [until(1), until(2), GrantLifetime::Always],
            Some(pin(9)),
            0,
            GrantLifetime::Always,
        ),
    ];
    for (given, from, n_expected, expected) in cases {
        let database = D::fresh();
        let store = database.open();
        for (n, lifetime) in (1..).zip(given) {
            grant_to(&store, pin(n), lifetime).await;
        }
        let moved = store
            .rebind_grants(plugin("notes"), from, pin(3), OldGrants::Go)
            .await;
        assert_eq!(moved.unwrap(), n_expected, "{from:?}");
        let as_approved = store
            .grants_of_call(plugin("notes"), pin(3), ConversationId::new(), NOW_MS)
            .await
            .unwrap();
        let as_approved: Vec<_> = as_approved.iter().map(|grant| grant.lifetime).collect();
        assert_eq!(as_approved, [expected], "{from:?}");
        let n_before = store.list_grants(None).await.unwrap();
        let is_left = |grant: &&GrantRecord| grant.pin != pin(3);
        assert_eq!(n_before.iter().filter(is_left).count(), 2 - n_expected);
    }
}

async fn a_grant_held_by_a_call_moves_with_the_others<D: Database>() {
    let database = D::fresh();
    let store = database.open();
    grant(&store, GrantLifetime::Once).await;
    let taken = take(&store).await;
    let moved = store.rebind_grants(plugin("notes"), Some(pin(1)), pin(2), OldGrants::Go);
    assert_eq!(moved.await.unwrap(), 1);
    release(&store, taken).await;
    assert_eq!(take(&store).await, []);
    assert_eq!(store.list_grants(None).await.unwrap()[0].pin, pin(2));
}

/// Others may use the version before; what counts for one call still counts for one.
async fn what_others_use_keeps_its_grants_but_those_for_one_call<D: Database>() {
    let conversation = ConversationId::new();
    for (lifetime, stays) in [
        (GrantLifetime::Always, true),
        (
            GrantLifetime::Until {
                at_ms: NOW_MS + DAY_MS,
            },
            true,
        ),
        (GrantLifetime::Session { conversation }, true),
        (GrantLifetime::Once, false),
    ] {
        let database = D::fresh();
        let store = database.open();
        grant(&store, lifetime).await;
        // The second time there is nothing to add.
        for n_expected in [1, usize::from(stays)] {
            let bound = store.rebind_grants(plugin("notes"), Some(pin(1)), pin(2), OldGrants::Stay);
            assert_eq!(bound.await.unwrap(), n_expected, "{lifetime:?}");
        }
        let all = store.list_grants(None).await.unwrap();
        let pins: Vec<_> = all.iter().map(|grant| grant.pin).collect();
        let expected = if stays {
            vec![pin(1), pin(2)]
        } else {
            vec![pin(2)]
        };
        assert_eq!(pins, expected, "{lifetime:?}");
        let is_same = |grant: &GrantRecord| {
            grant.lifetime == lifetime && grant.granted_at_ms == all[0].granted_at_ms
        };
        assert!(all.iter().all(is_same), "{all:?}");
    }
}

async fn a_session_grant_goes_with_its_conversation<D: Database>() {
    let database = D::fresh();
    let store = database.open();
    let (deleted, swept, kept) = (
        ConversationId::new(),
        ConversationId::new(),
        ConversationId::new(),
    );
    for conversation in [deleted, swept, kept] {
        grant(&store, GrantLifetime::Session { conversation }).await;
    }
    // The store had not known them before.
    assert_eq!(store.list_conversations(10).await.unwrap().len(), 3);
    store.delete_conversation(deleted).await.unwrap();
    assert_eq!(lifetimes(&store).await.len(), 2);
    let later_ms = NOW_MS + 30 * DAY_MS;
    store
        .audit_begin(begin("read", kept, later_ms))
        .await
        .unwrap();
    let retention = Duration::from_secs(7 * 86_400);
    store
        .sweep(Retention::of_outputs(retention), later_ms)
        .await
        .unwrap();
    let left = [GrantLifetime::Session { conversation: kept }];
    assert_eq!(lifetimes(&store).await, left);
    // A conversation that comes back does not bring its grant back.
    store.begin_conversation(deleted, later_ms).await.unwrap();
    assert_eq!(take_at(&store, deleted, later_ms).await, []);
}

/// A sweep so many milliseconds later: how many grants went.
async fn check_swept<D: Database>(
    lifetime: GrantLifetime,
    is_taken: bool,
    later_ms: i64,
    expected: usize,
) {
    let database = D::fresh();
    let store = database.open();
    grant(&store, lifetime).await;
    if is_taken {
        take(&store).await;
    }
    // Zero: outputs and conversations are kept for ever, ended grants are not.
    let swept = store.sweep(Retention::default(), NOW_MS + later_ms).await;
    let n_grants = swept.unwrap().n_grants;
    assert_eq!(n_grants, expected, "{lifetime:?} after {later_ms} ms");
}

async fn a_sweep_deletes_what_has_ended<D: Database>() {
    let until = GrantLifetime::Until { at_ms: NOW_MS + 50 };
    check_swept::<D>(until, false, 49, 0).await;
    check_swept::<D>(until, false, 50, 1).await;
    check_swept::<D>(GrantLifetime::Always, false, 400 * DAY_MS, 0).await;
    check_swept::<D>(GrantLifetime::Once, false, 400 * DAY_MS, 0).await;
    check_swept::<D>(GrantLifetime::Once, true, DAY_MS, 0).await;
    check_swept::<D>(GrantLifetime::Once, true, DAY_MS + 1, 1).await;
}

on_every_database! {
    any: [
        revoking_names_numbers_of_its_plugin_only,
        revoking_a_pin_leaves_the_grants_of_every_other,
        what_stays_of_a_grant_stays_of_one_that_is_still_there,
        an_approved_version_gets_the_grants_of_the_one_before,
        a_grant_held_by_a_call_moves_with_the_others,
        what_others_use_keeps_its_grants_but_those_for_one_call,
        a_session_grant_goes_with_its_conversation,
        a_sweep_deletes_what_has_ended,
    ],
    lasting: [],
}
