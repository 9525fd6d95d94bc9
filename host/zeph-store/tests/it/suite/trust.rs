//! Trust in tools: windows, blocks, and what every host on the same database knows of them.

use zeph_core::anomaly::{AnomalySettings, ToolOutcome};
use zeph_core::policy::{TrustLevel, TrustSubject};
use zeph_store::{
    CallBegin, ObservedDecision, OutcomeNote, Reputation, SingleUseRights, Store, TrustAlert,
};

use crate::database::{Database, on_every_database};
use crate::setup::NOW_MS;

const SETTINGS: AnomalySettings = AnomalySettings {
    window_size: 10,
    failure_threshold: 0.5,
    auto_block: true,
};

fn subject(text: &str) -> TrustSubject {
    text.parse().unwrap()
}

fn note(tool: &str, caller: &str, outcome: ToolOutcome) -> OutcomeNote {
    OutcomeNote {
        subject: subject(tool),
        caller: caller.to_owned(),
        outcome,
        settings: SETTINGS,
        at_ms: NOW_MS,
    }
}

/// Notes `n` outcomes; gives back the alerts.
async fn fail(store: &Store, n: usize, tool: &str, caller: &str) -> Vec<TrustAlert> {
    let mut alerts = Vec::new();
    for _ in 0..n {
        let broken = note(tool, caller, ToolOutcome::Broken);
        alerts.extend(store.note_outcome(broken).await.unwrap());
    }
    alerts
}

/// The blocked subjects with their callers.
async fn blocked(store: &Store) -> Vec<(String, Option<String>)> {
    let records = store.trust().await.unwrap().records.into_iter();
    let blocked = records.filter(|record| record.level == TrustLevel::Blocked);
    blocked
        .map(|record| (record.subject.to_string(), record.caller))
        .collect()
}

async fn a_tool_that_fails_is_blocked_for_its_caller<D: Database>() {
    let database = D::fresh();
    let store = database.open();
    assert_eq!(fail(&store, 5, "greet__hello", "model").await, []);
    let alerts = fail(&store, 1, "greet__hello", "model").await;
    assert_eq!(alerts.len(), 1, "the owner has one tool that fails");
    assert!(alerts[0].is_blocked);
    assert_eq!(alerts[0].rate.to_string(), "6 of its last 10 calls failed");
    let expect = [("greet__hello".to_owned(), Some("model".to_owned()))];
    assert_eq!(blocked(&store).await, expect);
    // These failures are not held against the whole plugin.
    assert_eq!(fail(&store, 1, "greet__other", "model").await, []);
    // The window starts anew, so that one more failure after a reset is only one.
    assert_eq!(store.reset_trust(subject("greet__hello")).await.unwrap(), 1);
    assert_eq!(fail(&store, 5, "greet__hello", "model").await, []);
    assert_eq!(blocked(&store).await, []);
}

async fn callers_and_tools_have_windows_of_their_own<D: Database>() {
    let database = D::fresh();
    let store = database.open();
    for caller in ["model:ann", "model:ben", "operator"] {
        assert_eq!(fail(&store, 5, "greet__hello", caller).await, []);
    }
    assert_eq!(fail(&store, 5, "other__hello", "model:ann").await, []);
    let windows = store.trust().await.unwrap().windows;
    let key = (subject("greet__hello"), "model:ann".to_owned());
    assert!(windows.contains(&key), "{windows:?}");
    assert!(windows.contains(&(subject("plugin:greet"), "operator".to_owned())));
    // A run of successes closes a window.
    for _ in 0..10 {
        let done = note("other__hello", "model:ann", ToolOutcome::Done);
        store.note_outcome_soon(done).await.unwrap();
    }
    let windows = store.trust().await.unwrap().windows;
    assert!(!windows.contains(&(subject("other__hello"), "model:ann".to_owned())));
}

async fn an_owner_is_blocked_when_several_of_its_tools_fail<D: Database>() {
    let database = D::fresh();
    let store = database.open();
    let mut alerts = Vec::new();
    for _ in 0..3 {
        alerts.extend(fail(&store, 1, "server:git/a", "model").await);
        alerts.extend(fail(&store, 1, "server:git/b", "model").await);
    }
    let subjects: Vec<_> = alerts
        .iter()
        .map(|alert| alert.subject.to_string())
        .collect();
    assert_eq!(subjects, ["server:git"]);
    let expect = [("server:git".to_owned(), Some("model".to_owned()))];
    assert_eq!(blocked(&store).await, expect);
}

async fn nothing_is_blocked_without_auto_block<D: Database>() {
    let database = D::fresh();
    let store = database.open();
    let mut alerts = Vec::new();
    for _ in 0..20 {
        let mut broken = note("greet__hello", "model", ToolOutcome::Broken);
        broken.settings.auto_block = false;
        alerts.extend(store.note_outcome(broken).await.unwrap());
    }
    assert_eq!(alerts.len(), 1, "one alert for one crossing");
    assert_eq!(blocked(&store).await, []);
}

async fn windows_are_bounded<D: Database>() {
    let database = D::fresh();
    let store = database.open();
    for n in 0..600 {
        let mut broken = note("greet__hello", &format!("model:{n}"), ToolOutcome::Broken);
        broken.at_ms = NOW_MS + n;
        store.note_outcome(broken).await.unwrap();
    }
    let windows = store.trust().await.unwrap().windows;
    assert_eq!(windows.len(), 1_024);
    assert!(windows.contains(&(subject("greet__hello"), "model:599".to_owned())));
    assert!(!windows.contains(&(subject("greet__hello"), "model:0".to_owned())));
}

async fn what_a_person_set_is_kept_and_reset<D: Database>() {
    let database = D::fresh();
    let store = database.open();
    let plugin = subject("plugin:greet");
    store
        .set_trust(plugin.clone(), TrustLevel::Quarantined, NOW_MS)
        .await
        .unwrap();
    store.close().await.unwrap();
    let store = database.open();
    let records = store.trust().await.unwrap().records;
    assert_eq!(records.len(), 1);
    let record = &records[0];
    assert_eq!(
        (&record.subject, record.level),
        (&plugin, TrustLevel::Quarantined)
    );
    assert!(record.caller.is_none() && !record.is_automatic);
    assert_eq!(store.reset_trust(plugin.clone()).await.unwrap(), 1);
    assert_eq!(store.reset_trust(plugin).await.unwrap(), 0);
}

async fn a_call_decided_with_other_trust_does_not_begin<D: Database>() {
    let database = D::fresh();
    let (host, operator) = (database.open(), database.open());
    let begun = |trust_version| {
        let rights = SingleUseRights {
            trust_version,
            ..SingleUseRights::default()
        };
        host.begin_call(None, rights, NOW_MS)
    };
    let version = host.trust().await.unwrap().version;
    assert_eq!(begun(Some(version)).await.unwrap(), CallBegin::Recorded);
    operator
        .set_trust(subject("greet__hello"), TrustLevel::Blocked, NOW_MS)
        .await
        .unwrap();
    assert_eq!(begun(Some(version)).await.unwrap(), CallBegin::RightGone);
    assert_eq!(begun(None).await.unwrap(), CallBegin::Recorded);
    let version = host.trust_version().await.unwrap();
    assert_eq!(begun(Some(version)).await.unwrap(), CallBegin::Recorded);
    assert_eq!(blocked(&host).await, [("greet__hello".to_owned(), None)]);
}

async fn observed_decisions_are_counted_by_the_hour<D: Database>() {
    let database = D::fresh();
    let store = database.open();
    let one = |rule: &str| ObservedDecision {
        rule: rule.to_owned(),
        would: "deny",
        decided: "allow",
        tool: "write".to_owned(),
    };
    let hour = 3_600_000;
    store
        .count_observed(vec![one("a"), one("b")], NOW_MS)
        .await
        .unwrap();
    store
        .count_observed(vec![one("a")], NOW_MS + 1)
        .await
        .unwrap();
    store
        .count_observed(vec![one("a")], NOW_MS - 2 * hour)
        .await
        .unwrap();
    let counts = store.observed_counts(0).await.unwrap();
    let of = |rule: &str| counts.iter().find(|count| count.rule == rule).unwrap();
    assert_eq!((of("a").n_calls, of("b").n_calls), (3, 1));
    assert_eq!(of("a").last_at_ms, NOW_MS + 1);
    let counts = store.observed_counts(NOW_MS).await.unwrap();
    assert_eq!(counts.iter().map(|count| count.n_calls).sum::<u64>(), 3);
}

async fn a_plugin_nobody_called_has_no_reputation<D: Database>() {
    let database = D::fresh();
    let store = database.open();
    let plugin = zeph_core::id::PluginId("greet".to_owned());
    assert_eq!(
        store.reputation(plugin).await.unwrap(),
        Reputation::default()
    );
}

on_every_database! {
    any: [
        a_tool_that_fails_is_blocked_for_its_caller,
        callers_and_tools_have_windows_of_their_own,
        an_owner_is_blocked_when_several_of_its_tools_fail,
        nothing_is_blocked_without_auto_block,
        windows_are_bounded,
        observed_decisions_are_counted_by_the_hour,
        a_plugin_nobody_called_has_no_reputation,
    ],
    lasting: [
        what_a_person_set_is_kept_and_reset,
        a_call_decided_with_other_trust_does_not_begin,
    ],
}
