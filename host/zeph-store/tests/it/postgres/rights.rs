//! Rights for one call among hosts that run at the same time: whatever happens at once is as if it had happened in some order.
//!
//! The oracle is SQLite, where one thing happens after another: for some order of the same operations, every answer and what is left is the
//! same there.

use std::sync::Arc;

use tokio::sync::Barrier;
use tokio::task::JoinSet;
use zeph_core::id::ConversationId;
use zeph_core::lifetime::{GrantLifetime, Lifetime};
use zeph_core::policy::Mode;
use zeph_store::{
    CallBegin, GrantRecord, OldGrants, Revoke, SingleUseRights, Store, StoredApproval,
};

use crate::database::{Database as _, Postgres};
use crate::setup::{NOW_MS, agreement, begin, memory};
use crate::suite::approvals::call;
use crate::suite::grants::{host, pin, plugin};

/// Hosts that do something at the same time.
const N_HOSTS: usize = 4;

/// What a host does.
#[derive(Debug, Clone, Copy)]
enum Deed {
    /// Begins a call with an approval, if any, and the grants of a mask.
    Begin {
        approval: bool,
        grants: u8,
    },
    /// Ends a call that holds the first grant and has not used it.
    End,
    /// Grants one of the capabilities anew.
    Grant(usize, GrantLifetime, Option<Mode>),
    Revoke(usize),
    RevokeAll,
    Rebind,
    Unapprove,
    Approve(Lifetime),
}

/// Where they begin: three grants for one call, of which the first is held, and an approval for once.
struct Beginning {
    grants: Vec<GrantRecord>,
    approval: StoredApproval,
    conversation: ConversationId,
}

/// An approval of the same call each time.
async fn agreed(store: &Store, conversation: ConversationId, lifetime: Lifetime) -> StoredApproval {
    let approved = store.approve_call(call(), lifetime, agreement(), conversation, NOW_MS);
    approved.await.unwrap()
}

impl Beginning {
    async fn of(store: &Store, name: &str) -> Self {
        let mut grants = Vec::new();
        for n in 0..3 {
            let given = vec![host(&format!("{n}.example"))];
            let added = store.add_grants(plugin(name), pin(1), given, GrantLifetime::Once, NOW_MS);
            grants.extend(added.await.unwrap());
        }
        let held = SingleUseRights {
            grants: vec![grants[0].clone()],
            ..SingleUseRights::default()
        };
        store.begin_call(None, held, NOW_MS).await.unwrap();
        let conversation = ConversationId::new();
        Self {
            grants,
            approval: agreed(store, conversation, Lifetime::Once).await,
            conversation,
        }
    }

    /// Does it; the answer.
    async fn done(&self, store: &Store, deed: Deed) -> String {
        let name = self.grants[0].plugin.clone();
        match deed {
            Deed::Begin { approval, grants } => {
                let chosen = self.grants.iter().enumerate();
                let chosen = chosen.filter(|(n, _)| grants & (1 << n) != 0);
                let rights = SingleUseRights {
                    approval: approval.then_some(self.approval.id),
                    grants: chosen.map(|(_, grant)| grant.clone()).collect(),
                    ..SingleUseRights::default()
                };
                let begin = begin("bash", self.conversation, NOW_MS);
                let begun = store.begin_call(Some(begin), rights, NOW_MS).await;
                format!("{:?}", begun.unwrap())
            }
            Deed::End => {
                let unused = vec![self.grants[0].clone()];
                format!("{:?}", store.finish_call(None, unused).await.is_ok())
            }
            Deed::Grant(n, lifetime, mode) => {
                let given = vec![self.grants[n].capability.clone()];
                let terms = (lifetime, mode);
                let added = store.add_grants_in_mode(name, pin(1), given, terms, NOW_MS);
                let added = added.await.unwrap().remove(0);
                format!("{:?} {:?}", added.lifetime, added.mode)
            }
            Deed::Revoke(n) => {
                let ids = Revoke::Ids(vec![self.grants[n].id]);
                format!("{:?}", store.revoke_grants(name, ids).await.unwrap())
            }
            Deed::RevokeAll => {
                format!(
                    "{:?}",
                    store.revoke_grants(name, Revoke::All).await.unwrap()
                )
            }
            Deed::Rebind => {
                format!(
                    "{:?}",
                    store
                        .rebind_grants(name, None, pin(2), OldGrants::Go)
                        .await
                        .unwrap()
                )
            }
            Deed::Unapprove => {
                format!(
                    "{:?}",
                    store.revoke_approval(self.approval.id).await.unwrap()
                )
            }
            Deed::Approve(lifetime) => {
                let approved = agreed(store, self.conversation, lifetime).await;
                format!("{:?}", approved.lifetime)
            }
        }
    }

    /// What is left: grants that count, those that come back when the held one does, approvals.
    async fn left(&self, store: &Store) -> Vec<String> {
        let name = self.grants[0].plugin.clone();
        let mut left = Vec::new();
        for _ in 0..2 {
            for grant in store.list_grants(Some(name.clone())).await.unwrap() {
                let (lifetime, mode) = (grant.lifetime, grant.mode);
                left.push(format!(
                    "{} {lifetime:?} {mode:?} {:?}",
                    grant.capability, grant.pin
                ));
            }
            left.sort();
            left.push("and then".to_owned());
            for grant in &self.grants {
                store.finish_call(None, vec![grant.clone()]).await.unwrap();
            }
        }
        let approvals = store.list_approvals(NOW_MS).await.unwrap();
        let own = approvals
            .iter()
            .filter(|approval| approval.conversation == Some(self.conversation));
        let mut lifetimes: Vec<String> = own.map(|own| format!("{:?}", own.lifetime)).collect();
        lifetimes.sort();
        left.extend(lifetimes);
        left
    }
}

/// The orders in which `n` things can happen.
fn orders(n: usize) -> Vec<Vec<usize>> {
    let Some(last) = n.checked_sub(1) else {
        return vec![Vec::new()];
    };
    let mut all = Vec::new();
    for order in orders(last) {
        for place in 0..=last {
            let mut longer = order.clone();
            longer.insert(place, last);
            all.push(longer);
        }
    }
    all
}

/// The answers, in the order of the hosts, and what is left when they act one after another.
async fn in_order(deeds: &[Deed], order: &[usize]) -> (Vec<String>, Vec<String>) {
    let store = memory();
    let beginning = Beginning::of(&store, "notes").await;
    let mut answers = vec![String::new(); deeds.len()];
    for n in order {
        answers[*n] = beginning.done(&store, deeds[*n]).await;
    }
    (answers, beginning.left(&store).await)
}

/// A number from a seed, below `n`.
fn random(seed: &mut u64, n: u64) -> u64 {
    *seed = seed
        .wrapping_mul(6_364_136_223_846_793_005)
        .wrapping_add(1_442_695_040_888_963_407);
    (*seed >> 33) % n
}

fn some_deed(seed: &mut u64) -> Deed {
    let which = usize::try_from(random(seed, 3)).unwrap();
    match random(seed, 12) {
        0..=4 => Deed::Begin {
            approval: random(seed, 2) == 0,
            grants: u8::try_from(random(seed, 4)).unwrap() << 1,
        },
        5 => Deed::End,
        6 => Deed::Grant(which, GrantLifetime::Always, None),
        7 => Deed::Grant(which, GrantLifetime::Once, Some(Mode::Deny)),
        8 => Deed::Revoke(which),
        9 => match which {
            0 => Deed::RevokeAll,
            _ => Deed::Rebind,
        },
        10 => Deed::Unapprove,
        _ => Deed::Approve(Lifetime::Session),
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn what_hosts_do_at_once_is_as_if_they_took_turns() {
    if !Postgres::is_there() {
        return;
    }
    let database = Postgres::fresh();
    let hosts: [Store; N_HOSTS] = std::array::from_fn(|_| database.open());
    let mut seed = 18;
    for trial in 0..40 {
        let deeds: [Deed; N_HOSTS] = std::array::from_fn(|_| some_deed(&mut seed));
        let beginning = Arc::new(Beginning::of(&hosts[0], &format!("notes{trial}")).await);
        let together = Arc::new(Barrier::new(N_HOSTS));
        let mut running = JoinSet::new();
        for (n, deed) in deeds.into_iter().enumerate() {
            let (store, together) = (hosts[n].clone(), Arc::clone(&together));
            let beginning = Arc::clone(&beginning);
            running.spawn(async move {
                together.wait().await;
                (n, beginning.done(&store, deed).await)
            });
        }
        let mut answers = running.join_all().await;
        answers.sort();
        let answers: Vec<String> = answers.into_iter().map(|(_, answer)| answer).collect();
        let happened = (answers, beginning.left(&hosts[0]).await);
        let mut is_explained = false;
        for order in orders(N_HOSTS) {
            is_explained = in_order(&deeds, &order).await == happened;
            if is_explained {
                break;
            }
        }
        assert!(is_explained, "trial {trial}: {deeds:?} gave {happened:#?}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn of_many_hosts_one_takes_a_right_each_time() {
    if !Postgres::is_there() {
        return;
    }
    let database = Postgres::fresh();
    let hosts: [Store; 8] = std::array::from_fn(|_| database.open());
    for round in 0..25 {
        let beginning = Beginning::of(&hosts[0], &format!("notes{round}")).await;
        let beginning = Arc::new(beginning);
        let together = Arc::new(Barrier::new(hosts.len() * 2));
        let mut calls = JoinSet::new();
        for n in 0..hosts.len() * 2 {
            let (store, together) = (hosts[n % hosts.len()].clone(), Arc::clone(&together));
            let beginning = Arc::clone(&beginning);
            // Some want them in the other order.
            let mut grants = beginning.grants[1..].to_vec();
            if n % 2 == 0 {
                grants.reverse();
            }
            calls.spawn(async move {
                let rights = SingleUseRights {
                    approval: Some(beginning.approval.id),
                    grants,
                    ..SingleUseRights::default()
                };
                together.wait().await;
                let begin = begin("bash", beginning.conversation, NOW_MS);
                store.begin_call(Some(begin), rights, NOW_MS).await.unwrap()
            });
        }
        let begun = calls.join_all().await.into_iter();
        let n_begun = begun.filter(|begun| *begun == CallBegin::Recorded).count();
        assert_eq!(n_begun, 1, "round {round}");
    }
}
