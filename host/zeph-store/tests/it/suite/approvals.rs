//! Approvals: what waits, what a person agreed to, for which calls that counts, and for how long.

use std::path::Path;

use serde_json::{Map, Value, json};
use tokio::task::JoinSet;
use zeph_core::argument::Parameters;
use zeph_core::id::{ApprovalId, ConversationId, Digest, PluginId, ToolName};
use zeph_core::lifetime::Lifetime;
use zeph_core::tool::{Annotations, Backend, Tool, ToolKind};
use zeph_store::{
    ApprovalAsker, ApprovalReason, ApprovalRequest, BoundCall, CallBegin, Owner, SingleUseRights,
    Store, StoredApproval, rule_scope,
};

use crate::database::{Database, on_every_database};
use crate::setup::{NOW_MS, agreement};

mod end;

const DAY_MS: i64 = 86_400_000;

fn tool(name: &str, backend: Backend) -> Tool {
    Tool {
        name: ToolName::new(name).unwrap(),
        title: None,
        description: String::new(),
        parameters: Parameters::new(json!({ "type": "object" })).unwrap(),
        output: None,
        kind: ToolKind::Execute,
        annotations: Annotations::default(),
        backend,
    }
}

fn plugin(name: &str) -> Backend {
    Backend::Wasm(PluginId(name.to_owned()))
}

fn arguments(value: Value) -> Map<String, Value> {
    let Value::Object(arguments) = value else {
        panic!("{value} is no object");
    };
    arguments
}

fn bound(value: Value) -> BoundCall {
    let tool = tool("bash", Backend::Builtin);
    BoundCall::new(
        &tool,
        None,
        &arguments(value),
        Some(Path::new("/srv/project")),
    )
}

pub(crate) fn call() -> BoundCall {
    bound(json!({ "command": "rm -r build" }))
}

async fn ask_at(
    store: &Store,
    call: BoundCall,
    conversation: ConversationId,
    at_ms: i64,
) -> ApprovalRequest {
    let asker = ApprovalAsker {
        conversation,
        caller: Owner::default(),
    };
    ask_as(store, call, asker, at_ms).await
}

async fn ask_as(
    store: &Store,
    call: BoundCall,
    asker: ApprovalAsker,
    at_ms: i64,
) -> ApprovalRequest {
    let asking = ApprovalReason {
        reason: "`rm ` asks".to_owned(),
        rules: vec!["bash:rm *".to_owned(), "bash:ls".to_owned()],
    };
    let recorded = store.record_request(call, asking, asker, at_ms);
    recorded.await.unwrap()
}

async fn ask(store: &Store, conversation: ConversationId) -> ApprovalRequest {
    ask_at(store, call(), conversation, NOW_MS).await
}

/// An approval of the call all tests make.
pub(crate) async fn approved(
    store: &Store,
    conversation: ConversationId,
    lifetime: Lifetime,
) -> StoredApproval {
    let request = ask(store, conversation).await;
    let approved = store
        .approve(request.id, lifetime, agreement(), NOW_MS)
        .await;
    approved.unwrap().unwrap()
}

pub(crate) async fn take(store: &Store, conversation: ConversationId) -> Option<StoredApproval> {
    take_at(store, &call(), conversation, NOW_MS).await
}

async fn take_at(
    store: &Store,
    call: &BoundCall,
    conversation: ConversationId,
    now_ms: i64,
) -> Option<StoredApproval> {
    loop {
        let found = store.find_approval(call, conversation, now_ms).await;
        let found = found.unwrap()?;
        if hold(store, &found).await {
            return Some(found);
        }
    }
}

/// Begins a call that leans on this approval; says whether it got it.
async fn hold(store: &Store, approval: &StoredApproval) -> bool {
    let rights = SingleUseRights {
        approval: approval.is_once().then_some(approval.id),
        ..SingleUseRights::default()
    };
    let begun = store.begin_call(None, rights, NOW_MS).await.unwrap();
    begun == CallBegin::Recorded
}

async fn n_waiting(store: &Store) -> usize {
    store.list_requests(None, NOW_MS).await.unwrap().len()
}

#[test]
fn a_call_is_bound_to_all_that_says_what_it_does() {
    let bash = tool("bash", Backend::Builtin);
    let here = Some(Path::new("/srv"));
    let one = arguments(json!({ "a": 1, "b": { "c": [1, { "d": "x" }], "e": null } }));
    let bound = BoundCall::new(&bash, None, &one, here).digest();

    let same = r#"{ "b": {"e": null, "c": [1, {"d": "x"}]}, "a": 1 }"#;
    let same: Map<String, Value> = serde_json::from_str(same).unwrap();
    assert_eq!(BoundCall::new(&bash, None, &same, here).digest(), bound);

    let others = [
        json!({ "a": 1 }),
        json!({ "a": "1", "b": { "c": [1, { "d": "x" }], "e": null } }),
        json!({ "a": 1.0, "b": { "c": [1, { "d": "x" }], "e": null } }),
        json!({ "a": 1, "b": { "c": [1, { "d": "x " }], "e": null } }),
        json!({ "a": 1, "b": { "c": [{ "d": "x" }, 1], "e": null } }),
        json!({ "a": 1, "b": { "c": [1, { "d": "x" }] } }),
        json!({ "a": 1, "b": { "c": [1, { "d": "x" }], "e": null }, "f": 0 }),
    ];
    for other in others {
        let digest = BoundCall::new(&bash, None, &arguments(other.clone()), here).digest();
        assert_ne!(digest, bound, "{other}");
    }
    let tools = [
        tool("bash2", Backend::Builtin),
        tool("bash", plugin("bash")),
        tool("bash", plugin("other")),
    ];
    for other in tools {
        assert_ne!(BoundCall::new(&other, None, &one, here).digest(), bound);
    }
    for elsewhere in [None, Some(Path::new("/")), Some(Path::new("/srv/a"))] {
        assert_ne!(BoundCall::new(&bash, None, &one, elsewhere).digest(), bound);
    }
    // The same name in the hands of another component, and a longer spelling of it in the hands of one.
    let owner = |byte| Some(Digest::new([byte; 32]));
    let greet = tool("greet", plugin("alpha"));
    let owned = BoundCall::new(&greet, owner(1), &one, here).digest();
    assert_ne!(BoundCall::new(&greet, owner(2), &one, here).digest(), owned);
    assert_ne!(BoundCall::new(&greet, None, &one, here).digest(), owned);
    let spelled = tool("alpha__greet", plugin("alpha"));
    assert_eq!(
        BoundCall::new(&spelled, owner(1), &one, here).digest(),
        owned
    );
    // What is empty is not what is not there.
    let nowhere = BoundCall::new(&bash, None, &one, None).digest();
    assert_ne!(
        BoundCall::new(&bash, None, &one, Some(Path::new(""))).digest(),
        nowhere
    );
}

#[test]
fn a_remark_about_a_command_is_no_part_of_what_is_agreed_to() {
    let here = Some(Path::new("/srv"));
    let digest = |backend: Backend, value: Value| {
        BoundCall::new(&tool("bash", backend), None, &arguments(value), here).digest()
    };
    let plain = json!({ "command": "make" });
    let said = |text: &str| json!({ "command": "make", "description": text });
    let bound = digest(Backend::Shell, plain.clone());
    for text in ["Build it", "Build it again", ""] {
        assert_eq!(digest(Backend::Shell, said(text)), bound, "{text}");
    }
    let others = [
        json!({ "command": "make x", "description": "Build it" }),
        json!({ "command": "make", "description": "Build it", "background": true }),
        json!({ "command": "make", "description": "Build it", "timeout": 5 }),
        json!({ "command": { "description": "make" } }),
    ];
    for other in others {
        assert_ne!(digest(Backend::Shell, other.clone()), bound, "{other}");
    }
    assert_ne!(
        digest(Backend::Shell, json!({ "command": { "description": "a" } })),
        digest(Backend::Shell, json!({ "command": { "description": "b" } })),
    );
    // Nobody knows what others make of one.
    for backend in [Backend::Builtin, plugin("bash")] {
        let bound = digest(backend.clone(), plain.clone());
        assert_ne!(digest(backend, said("Build it")), bound);
    }
    // A person is shown it all the same.
    let call = BoundCall::new(
        &tool("bash", Backend::Shell),
        None,
        &arguments(said("x")),
        here,
    );
    assert!(call.shown().arguments.contains("\"x\""), "{call:?}");
}

async fn a_request_comes_back_as_it_was_asked<D: Database>() {
    let database = D::fresh();
    let store = database.open();
    let conversation = ConversationId::new();
    let request = ask(&store, conversation).await;
    assert_eq!(request.call.arguments, r#"{"command":"rm -r build"}"#);
    assert_eq!(request.call.directory.as_deref(), Some("/srv/project"));
    assert!(request.call.is_whole());
    store.close().await.unwrap();
    let store = database.open();
    let found = store.approval_request(request.id, NOW_MS).await.unwrap();
    assert_eq!(found.as_ref(), Some(&request));
    let listed = store.list_requests(Some(conversation), NOW_MS).await;
    assert_eq!(listed.unwrap(), [request]);
    let others = store.list_requests(Some(ConversationId::new()), NOW_MS);
    assert_eq!(others.await.unwrap(), []);
}

async fn rules_hold_for_one_tool_in_one_place<D: Database>() {
    let database = D::fresh();
    let store = database.open();
    let (mine, other) = (ConversationId::new(), ConversationId::new());
    let bash = tool("bash", Backend::Builtin);
    let scope = rule_scope(&bash, None, Path::new("/srv"));
    let approve = async |text: &str, lifetime| {
        let rules = call().keeping(scope, vec![text.to_owned()]);
        let approved = store.approve_call(rules, lifetime, agreement(), mine, NOW_MS);
        approved.await.unwrap()
    };
    let held = async |conversation| {
        let found = store.rule_approvals(&bash.name, conversation).await;
        let rules = found.unwrap().into_iter().flat_map(|held| held.call.rules);
        rules.flat_map(|rules| rules.texts).collect::<Vec<String>>()
    };
    approve("bash:rm *", Lifetime::Session).await;
    assert_eq!(held(mine).await, ["bash:rm *"]);
    assert!(held(other).await.is_empty());
    // It is no approval of the call that was shown.
    assert_eq!(take(&store, mine).await, None);
    let always = approve("bash:rm *", Lifetime::Always).await;
    assert_eq!(held(mine).await, ["bash:rm *"]);
    assert_eq!(held(other).await, ["bash:rm *"]);
    let listed = store.list_approvals(NOW_MS).await.unwrap();
    assert_eq!(listed, std::slice::from_ref(&always));
    assert!(store.revoke_approval(always.id).await.unwrap());
    approve("bash:ls", Lifetime::Session).await;
    store.forget_approvals(mine).await.unwrap();
    assert!(held(mine).await.is_empty());
}

#[test]
fn rules_are_bound_to_a_tool_its_provider_and_a_directory() {
    let bash = tool("bash", Backend::Builtin);
    let here = Path::new("/srv");
    let scope = rule_scope(&bash, None, here);
    let owner = Some(Digest::new([1; 32]));
    let others = [
        rule_scope(&bash, None, Path::new("/srv/other")),
        rule_scope(&bash, owner, here),
        rule_scope(&tool("bash", plugin("bash")), None, here),
        rule_scope(&tool("write", Backend::Builtin), None, here),
    ];
    assert_eq!(scope, rule_scope(&bash, None, here));
    assert!(!others.contains(&scope));
}

async fn the_same_call_waits_once<D: Database>() {
    let database = D::fresh();
    let store = database.open();
    let (one, two) = (ConversationId::new(), ConversationId::new());
    let first = ask(&store, one).await;
    let again = ask_at(&store, call(), one, NOW_MS + 5).await;
    assert_eq!(again.id, first.id);
    assert_eq!(n_waiting(&store).await, 1);
    ask(&store, two).await;
    ask_at(
        &store,
        bound(json!({ "command": "rm -r src" })),
        one,
        NOW_MS,
    )
    .await;
    assert_eq!(n_waiting(&store).await, 3);
}

async fn long_arguments_are_kept_in_part_and_bound_as_a_whole<D: Database>() {
    let database = D::fresh();
    let store = database.open();
    let conversation = ConversationId::new();
    let long = |last: &str| bound(json!({ "content": format!("{}{last}", "é".repeat(100_000)) }));
    let request = ask_at(&store, long("a"), conversation, NOW_MS).await;
    assert!(!request.call.is_whole());
    assert!(request.call.arguments.len() <= 64 * 1024);
    assert_eq!(
        request.call.arguments_bytes,
        200_001 + r#"{"content":""}"#.len() as u64
    );
    let approved = store.approve(request.id, Lifetime::Session, agreement(), NOW_MS);
    approved.await.unwrap().unwrap();
    assert_eq!(
        take_at(&store, &long("b"), conversation, NOW_MS).await,
        None
    );
    assert!(
        take_at(&store, &long("a"), conversation, NOW_MS)
            .await
            .is_some()
    );
}

async fn leave_for_single_objects_is_another_approval_than_that_of_the_call<D: Database>() {
    let database = D::fresh();
    let store = database.open();
    let (one, other) = (ConversationId::new(), ConversationId::new());
    let changing = |paths: &[&str]| {
        let paths = paths.iter().map(|path| (*path).to_owned());
        call().changing(paths.collect())
    };
    let objects = ["/w/.envrc", "/w/.npmrc"];
    // Each set of objects waits by itself, in whatever order it was refused.
    assert_eq!(changing(&[objects[1], objects[0]]), changing(&objects));
    let request = ask_at(&store, changing(&objects), one, NOW_MS).await;
    ask_at(&store, changing(&objects[..1]), one, NOW_MS).await;
    ask_at(&store, call(), one, NOW_MS).await;
    assert_eq!(n_waiting(&store).await, 3);
    let approved = store.approve(request.id, Lifetime::Once, agreement(), NOW_MS);
    let approved = approved.await.unwrap().unwrap();
    assert_eq!(
        take(&store, one).await,
        None,
        "it is not the call that was approved"
    );
    let found = async |conversation, now_ms| {
        let tool = call().shown().tool.clone();
        let found = store.object_approvals(&tool, conversation, now_ms);
        found.await.unwrap()
    };
    assert_eq!(found(one, NOW_MS).await, std::slice::from_ref(&approved));
    assert_eq!(found(other, NOW_MS).await, []);
    assert_eq!(found(one, NOW_MS + 2 * DAY_MS).await, []);
    let refused = approved.call.objects.clone().unwrap();
    assert_eq!(
        (refused.call_digest, refused.paths),
        (call().digest(), objects.map(str::to_owned).to_vec())
    );
    // The begin of a call uses it up, once.
    for expect in [CallBegin::Recorded, CallBegin::RightGone] {
        let rights = SingleUseRights {
            objects: vec![approved.id],
            ..SingleUseRights::default()
        };
        let begun = store.begin_call(None, rights, NOW_MS).await.unwrap();
        assert_eq!(begun, expect);
    }
    assert_eq!(found(one, NOW_MS).await, []);
}

async fn an_approval_counts_for_its_call_and_its_conversation<D: Database>() {
    use Lifetime::{Always, Once, Session};
    // Lifetime: how often may its own conversation make the call, how often another one afterwards?
    for (lifetime, n_own, n_other) in [(Once, 1, 0), (Session, 3, 0), (Always, 3, 3)] {
        let database = D::fresh();
        let store = database.open();
        let (own, other) = (ConversationId::new(), ConversationId::new());
        let given = approved(&store, own, lifetime).await;
        assert_eq!(n_waiting(&store).await, 0);
        let different = bound(json!({ "command": "rm -r build", "timeout": 5 }));
        assert_eq!(take_at(&store, &different, own, NOW_MS).await, None);
        let elsewhere = arguments(json!({ "command": "rm -r build" }));
        let elsewhere = BoundCall::new(
            &tool("bash", Backend::Builtin),
            None,
            &elsewhere,
            Some(Path::new("/srv")),
        );
        assert_eq!(take_at(&store, &elsewhere, own, NOW_MS).await, None);
        if n_other == 0 {
            assert_eq!(take(&store, other).await, None);
        }
        for n in 0..3 {
            let expected = (n < n_own).then(|| given.clone());
            assert_eq!(take(&store, own).await, expected, "{lifetime:?} {n}");
        }
        for n in 0..3 {
            let expected = (n < n_other).then(|| given.clone());
            assert_eq!(take(&store, other).await, expected, "{lifetime:?} {n}");
        }
    }
}

async fn only_what_waits_can_be_approved<D: Database>() {
    let database = D::fresh();
    let store = database.open();
    let conversation = ConversationId::new();
    let approve = |id| store.approve(id, Lifetime::Always, agreement(), NOW_MS);
    assert_eq!(approve(ApprovalId::new()).await.unwrap(), None);
    let request = ask(&store, conversation).await;
    assert!(store.deny_request(request.id).await.unwrap());
    assert!(!store.deny_request(request.id).await.unwrap());
    assert_eq!(approve(request.id).await.unwrap(), None);
    let request = ask(&store, conversation).await;
    assert!(approve(request.id).await.unwrap().is_some());
    assert_eq!(approve(request.id).await.unwrap(), None);
    assert_eq!(store.list_approvals(NOW_MS).await.unwrap().len(), 1);
}

async fn of_many_calls_at_once_one_gets_the_approval_for_once<D: Database>() {
    for _ in 0..20 {
        let database = D::fresh();
        let hosts: [Store; 4] = std::array::from_fn(|_| database.open());
        let conversation = ConversationId::new();
        let given = approved(&hosts[0], conversation, Lifetime::Once).await;
        let mut calls = JoinSet::new();
        for n in 0..20 {
            let store = hosts[n % hosts.len()].clone();
            calls.spawn(async move { take(&store, conversation).await });
        }
        let taken: Vec<StoredApproval> = calls.join_all().await.into_iter().flatten().collect();
        assert_eq!(taken, [given]);
    }
}

async fn the_longer_approval_is_used_and_the_shorter_one_goes<D: Database>() {
    use Lifetime::{Always, Once, Session};
    let database = D::fresh();
    let store = database.open();
    let (one, two) = (ConversationId::new(), ConversationId::new());
    for (conversation, lifetime) in [(one, Once), (two, Once), (one, Session)] {
        approved(&store, conversation, lifetime).await;
    }
    let listed = store.list_approvals(NOW_MS).await.unwrap();
    let lifetimes: Vec<_> = listed
        .iter()
        .map(|a| (a.lifetime, a.conversation))
        .collect();
    assert_eq!(lifetimes.len(), 2, "{lifetimes:?}");
    assert!(lifetimes.contains(&(Session, Some(one))) && lifetimes.contains(&(Once, Some(two))));
    approved(&store, two, Always).await;
    let listed = store.list_approvals(NOW_MS).await.unwrap();
    assert_eq!(listed.len(), 1);
    assert_eq!((listed[0].lifetime, listed[0].conversation), (Always, None));
}

async fn looking_uses_nothing_up_and_a_call_begins_with_it_once<D: Database>() {
    let database = D::fresh();
    let store = database.open();
    let conversation = ConversationId::new();
    let given = approved(&store, conversation, Lifetime::Once).await;
    for _ in 0..2 {
        let found = store.find_approval(&call(), conversation, NOW_MS).await;
        assert_eq!(found.unwrap(), Some(given.clone()));
    }
    assert!(hold(&store, &given).await);
    assert!(!hold(&store, &given).await, "it is used up");
    assert_eq!(take(&store, conversation).await, None);

    let session = approved(&store, conversation, Lifetime::Session).await;
    assert!(store.revoke_approval(session.id).await.unwrap());
    assert!(!store.revoke_approval(session.id).await.unwrap());
    assert_eq!(take(&store, conversation).await, None);
}

async fn a_person_who_is_asked_at_once_needs_no_request<D: Database>() {
    let database = D::fresh();
    let store = database.open();
    let conversation = ConversationId::new();
    ask(&store, conversation).await;
    let approved = store.approve_call(call(), Lifetime::Session, agreement(), conversation, NOW_MS);
    let approved = approved.await.unwrap();
    assert_eq!(n_waiting(&store).await, 0);
    assert_eq!(take(&store, conversation).await, Some(approved));
}

on_every_database! {
    any: [
        rules_hold_for_one_tool_in_one_place,
        the_same_call_waits_once,
        long_arguments_are_kept_in_part_and_bound_as_a_whole,
        an_approval_counts_for_its_call_and_its_conversation,
        only_what_waits_can_be_approved,
        the_longer_approval_is_used_and_the_shorter_one_goes,
        looking_uses_nothing_up_and_a_call_begins_with_it_once,
        a_person_who_is_asked_at_once_needs_no_request,
        leave_for_single_objects_is_another_approval_than_that_of_the_call,
    ],
    lasting: [
        a_request_comes_back_as_it_was_asked,
        of_many_calls_at_once_one_gets_the_approval_for_once,
    ],
}
