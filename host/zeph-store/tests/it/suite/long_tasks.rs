//! Tasks: whose they are, who holds them, and that what is not held writes nothing.

use std::collections::BTreeSet;
use std::time::Duration;

use tokio::task::JoinSet;
use uuid::Uuid;
use zeph_core::id::{ConversationId, Digest};
use zeph_store::{
    CallBegin, HostProcess, LongTask, LongTaskAsker, LongTaskBounds, LongTaskClaim, LongTaskEnd,
    LongTaskHold, LongTaskOwner, LongTaskState, NewLongTask, Owner, SingleUseRights, Store,
    WorkHold,
};

use crate::database::{Database, on_every_database};
use crate::setup::{NOW_MS, begin};

const BOUNDS: LongTaskBounds = LongTaskBounds {
    of_caller: 3,
    in_all: 5,
};

/// Longer than any test takes.
const LEASE: Duration = Duration::from_secs(600);

const HERE: &str = "here";

fn host(pid: u32) -> HostProcess {
    HostProcess {
        pid,
        start: "boot/1".to_owned(),
    }
}

fn new(caller: Option<&str>) -> NewLongTask {
    NewLongTask {
        id: Uuid::new_v4(),
        owner: LongTaskOwner {
            caller: Owner::named(caller),
            conversation: ConversationId::new(),
        },
        host: host(1),
        workspace: HERE.to_owned(),
        call: Some("{}".to_owned()),
        message: "it runs".to_owned(),
        lifetime: LEASE,
    }
}

fn asker(owner: &LongTaskOwner) -> LongTaskAsker {
    LongTaskAsker {
        caller: owner.caller.clone(),
        conversation: Some(owner.conversation),
    }
}

async fn put(store: &Store, task: &NewLongTask, lease: Duration) -> LongTaskHold {
    let put = store.put_long_task(task.clone(), BOUNDS, lease).await;
    hold(&put.unwrap().unwrap())
}

fn hold(task: &LongTask) -> LongTaskHold {
    LongTaskHold {
        task: task.id,
        fence: task.fence,
    }
}

async fn claim(store: &Store, workspace: &str, elsewhere_after: Duration) -> Vec<LongTask> {
    let claim = LongTaskClaim {
        host: host(2),
        runs: |_| false,
        workspace: workspace.to_owned(),
        lease: LEASE,
        repeats: true,
        elsewhere_after,
        limit: 10,
    };
    store.claim_long_tasks(claim).await.unwrap()
}

fn end(state: LongTaskState) -> LongTaskEnd {
    LongTaskEnd {
        state,
        message: "it has ended".to_owned(),
        result: Some("[1]".to_owned()),
    }
}

async fn a_task_is_known_to_its_owner_alone<D: Database>() {
    let database = D::fresh();
    let store = database.open();
    let ann = new(Some("ann"));
    let hold = put(&store, &ann, LEASE).await;
    let own = asker(&ann.owner);
    let of_any = LongTaskAsker {
        conversation: None,
        ..own.clone()
    };
    let found = store.long_task(ann.id, of_any).await.unwrap().unwrap();
    assert_eq!((found.state, found.fence), (LongTaskState::Working, 1));
    assert_eq!(
        (found.owner, found.message),
        (ann.owner.clone(), ann.message)
    );
    assert_eq!((found.call.as_deref(), found.lifetime), (Some("{}"), LEASE));
    let nobody = LongTaskAsker {
        caller: Owner::default(),
        ..own.clone()
    };
    let elsewhere = LongTaskAsker {
        conversation: Some(ConversationId::new()),
        ..own.clone()
    };
    let bob = LongTaskAsker {
        caller: Owner::named(Some("bob")),
        conversation: None,
    };
    let of_token = LongTaskAsker {
        caller: Owner {
            token: Some(Digest::new([1; 32])),
            ..own.caller.clone()
        },
        ..own.clone()
    };
    for other in [nobody, elsewhere, bob, of_token] {
        assert_eq!(store.long_task(ann.id, other.clone()).await.unwrap(), None);
        assert!(!store.cancel_long_task(ann.id, other.clone()).await.unwrap());
        let answered = store.answer_long_task(ann.id, other, Vec::new());
        assert!(!answered.await.unwrap());
    }
    assert!(store.cancel_long_task(ann.id, own.clone()).await.unwrap());
    let news = store.keep_long_tasks(vec![hold], LEASE).await.unwrap();
    assert!(news[0].is_cancelled);
    assert!(
        store
            .end_long_task(hold, end(LongTaskState::Cancelled))
            .await
            .unwrap()
    );
    // Cancelling what has ended is no mistake and changes nothing.
    assert!(store.cancel_long_task(ann.id, own.clone()).await.unwrap());
    let found = store.long_task(ann.id, own).await.unwrap().unwrap();
    assert_eq!(found.state, LongTaskState::Cancelled);
    assert_eq!((found.call, found.result.as_deref()), (None, Some("[1]")));
}

async fn questions_are_answered_once_and_reach_who_holds_the_task<D: Database>() {
    let database = D::fresh();
    let store = database.open();
    let task = new(None);
    let hold = put(&store, &task, LEASE).await;
    let own = asker(&task.owner);
    for key in ["b", "a"] {
        let asked = store.ask_long_task(hold, key.to_owned(), format!("{key}?"));
        assert!(asked.await.unwrap());
    }
    let found = async || {
        store
            .long_task(task.id, own.clone())
            .await
            .unwrap()
            .unwrap()
    };
    let pair = |key: &str, text: &str| (key.to_owned(), text.to_owned());
    assert_eq!(found().await.questions, [pair("a", "a?"), pair("b", "b?")]);
    for answers in [
        vec![pair("a", "yes"), pair("nobody asked", "so")],
        vec![pair("a", "no")],
    ] {
        let answered = store.answer_long_task(task.id, own.clone(), answers);
        assert!(answered.await.unwrap());
    }
    assert_eq!(found().await.questions, [pair("b", "b?")]);
    let news = store.keep_long_tasks(vec![hold], LEASE).await.unwrap();
    assert_eq!(news[0].answers, [pair("a", "yes")]);
    // One that is taken back is nobody's to answer.
    for key in ["c", "c"] {
        let withdrawn = store.withdraw_long_task(hold, key.to_owned());
        assert!(withdrawn.await.unwrap());
    }
    assert!(
        store
            .withdraw_long_task(hold, "b".to_owned())
            .await
            .unwrap()
    );
    assert_eq!(found().await.questions, []);
    let lost = LongTaskHold { fence: 2, ..hold };
    assert!(
        !store
            .withdraw_long_task(lost, "a".to_owned())
            .await
            .unwrap()
    );
    assert!(
        store
            .end_long_task(hold, end(LongTaskState::Completed))
            .await
            .unwrap()
    );
    assert!(found().await.questions.is_empty());
}

async fn who_takes_a_task_over_is_the_only_one_to_write_to_it<D: Database>() {
    let database = D::fresh();
    let store = database.open();
    let task = new(Some("ann"));
    let first = put(&store, &task, LEASE).await;
    assert!(claim(&store, HERE, Duration::ZERO).await.is_empty());
    let asked = store.ask_long_task(first, "a".to_owned(), "a?".to_owned());
    assert!(asked.await.unwrap());
    store
        .keep_long_tasks(vec![first], Duration::ZERO)
        .await
        .unwrap();
    // Elsewhere it is left alone for longer.
    assert!(claim(&store, "there", LEASE).await.is_empty());
    let taken = claim(&store, HERE, LEASE).await.remove(0);
    assert_eq!((taken.fence, taken.call.as_deref()), (2, Some("{}")));
    let second = hold(&taken);
    let begin_of = async |hold| {
        let rights = SingleUseRights {
            hold: Some(WorkHold::Task(hold)),
            ..SingleUseRights::default()
        };
        let begin = begin("read", ConversationId::new(), NOW_MS);
        store.begin_call(Some(begin), rights, NOW_MS).await.unwrap()
    };
    assert_eq!(begin_of(first).await, CallBegin::HoldLost);
    assert_eq!(begin_of(second).await, CallBegin::Recorded);
    let news = store
        .keep_long_tasks(vec![first, second], LEASE)
        .await
        .unwrap();
    assert_eq!((news.len(), news[0].task), (1, task.id));
    assert!(
        !store
            .end_long_task(first, end(LongTaskState::Completed))
            .await
            .unwrap()
    );
    assert!(!store.release_long_task(first).await.unwrap());
    let asked = store.ask_long_task(first, "b".to_owned(), "b?".to_owned());
    assert!(!asked.await.unwrap());
    let found = store
        .long_task(task.id, asker(&task.owner))
        .await
        .unwrap()
        .unwrap();
    assert_eq!(found.questions, []);
    // One that is let go of is another's at once, also for those who work elsewhere.
    assert!(store.release_long_task(second).await.unwrap());
    let third = claim(&store, "there", LEASE).await.remove(0);
    assert_eq!(third.fence, 3);
    let unknown = LongTaskEnd {
        result: None,
        ..end(LongTaskState::Unknown)
    };
    assert!(store.end_long_task(hold(&third), unknown).await.unwrap());
    assert!(
        !store
            .end_long_task(hold(&third), end(LongTaskState::Failed))
            .await
            .unwrap()
    );
}

/// A task of a caller that is to begin.
async fn begun(store: &Store, caller: Option<&str>) -> Option<LongTask> {
    let put = store.put_long_task(new(caller), BOUNDS, LEASE);
    put.await.unwrap()
}

async fn is_known(store: &Store, task: &LongTask) -> bool {
    let asked = store.long_task(task.id, asker(&task.owner));
    asked.await.unwrap().is_some()
}

async fn tasks_that_work_are_bounded<D: Database>() {
    let database = D::fresh();
    let store = database.open();
    let ann = begun(&store, Some("ann")).await.unwrap();
    for _ in 0..2 {
        assert!(begun(&store, Some("ann")).await.is_some());
    }
    assert!(begun(&store, Some("ann")).await.is_none());
    let counted = store.n_long_tasks(ann.owner.clone());
    assert_eq!(counted.await.unwrap(), (3, 3));
    // What has ended makes room.
    let ended = store.end_long_task(hold(&ann), end(LongTaskState::Completed));
    assert!(ended.await.unwrap());
    assert!(begun(&store, Some("ann")).await.is_some());
    assert!(begun(&store, Some("ann")).await.is_none());
    assert!(begun(&store, Some("")).await.is_some());
    assert!(begun(&store, Some("bob")).await.is_some());
    assert!(begun(&store, Some("eve")).await.is_none());
}

/// Servers of one user on standard streams are nobody's to the store.
async fn conversations_of_nobody_do_not_share_a_bound<D: Database>() {
    let database = D::fresh();
    let store = database.open();
    for _ in 0..BOUNDS.in_all {
        let task = begun(&store, None).await.unwrap();
        let counted = store.n_long_tasks(task.owner).await.unwrap();
        assert_eq!(counted.0, 1);
    }
    let bounds = LongTaskBounds {
        in_all: 100,
        ..BOUNDS
    };
    let one = new(None);
    for n in 0..4 {
        let task = NewLongTask {
            id: Uuid::new_v4(),
            ..one.clone()
        };
        let put = store.put_long_task(task, bounds, LEASE).await.unwrap();
        assert_eq!(put.is_some(), n < 3);
    }
}

async fn ended_tasks_go_of_who_has_most<D: Database>() {
    let database = D::fresh();
    let store = database.open();
    let done = async |caller: Option<&str>| {
        let task = begun(&store, caller).await.unwrap();
        let ended = store.end_long_task(hold(&task), end(LongTaskState::Completed));
        assert!(ended.await.unwrap());
        task
    };
    let bob = done(Some("bob")).await;
    let mut ann = Vec::new();
    for _ in 0..20 {
        ann.push(done(Some("ann")).await);
    }
    // Nobody's, in conversations of their own, are one caller's among all.
    let mut nobody = Vec::new();
    for _ in 0..20 {
        nobody.push(done(None).await);
    }
    assert!(begun(&store, Some("eve")).await.is_some());
    assert!(is_known(&store, &bob).await);
    let mut n_kept = 0;
    for task in ann.iter().chain(&nobody) {
        n_kept += u32::from(is_known(&store, task).await);
    }
    assert_eq!(n_kept, BOUNDS.in_all - 1);
}

async fn a_task_that_nobody_may_repeat_is_any_hosts_to_settle<D: Database>() {
    let database = D::fresh();
    let store = database.open();
    let once = NewLongTask {
        call: None,
        ..new(None)
    };
    let once = put(&store, &once, Duration::ZERO).await;
    let again = put(&store, &new(None), Duration::ZERO).await;
    let settles = |elsewhere_after| LongTaskClaim {
        host: host(2),
        runs: |_| false,
        workspace: HERE.to_owned(),
        lease: LEASE,
        repeats: false,
        elsewhere_after,
        limit: 10,
    };
    for (elsewhere_after, expect) in [(LEASE, once.task), (Duration::ZERO, again.task)] {
        let claimed = store.claim_long_tasks(settles(elsewhere_after)).await;
        let claimed: Vec<Uuid> = claimed.unwrap().iter().map(|task| task.id).collect();
        assert_eq!(claimed, [expect]);
    }
}

/// A machine that slept says nothing for longer than any lease.
async fn a_task_of_a_process_that_runs_is_left_to_it<D: Database>() {
    let database = D::fresh();
    let store = database.open();
    let stopped = put(&store, &new(Some("ann")), Duration::ZERO).await;
    let ended = NewLongTask {
        host: host(3),
        ..new(Some("ann"))
    };
    let ended = put(&store, &ended, Duration::ZERO).await;
    let claimed = async |pid| {
        let claim = LongTaskClaim {
            host: host(pid),
            runs: |host| host.pid == 1,
            workspace: HERE.to_owned(),
            lease: Duration::ZERO,
            repeats: true,
            elsewhere_after: LEASE,
            limit: 1,
        };
        let claimed = store.claim_long_tasks(claim).await.unwrap();
        let claimed = claimed.iter().map(|task| (task.id, task.fence));
        claimed.collect::<Vec<_>>()
    };
    assert_eq!(claimed(2).await, [(ended.task, 2)]);
    // The other one runs, however long it says nothing.
    let held = LongTaskHold { fence: 2, ..ended };
    let end = store.end_long_task(held, end(LongTaskState::Unknown));
    assert!(end.await.unwrap());
    assert_eq!(claimed(2).await, []);
    // What it lost sight of it may take itself, and what it lets go of is others' at once.
    assert_eq!(claimed(1).await, [(stopped.task, 2)]);
    assert_eq!(claimed(2).await, []);
    let held = LongTaskHold {
        fence: 2,
        ..stopped
    };
    assert!(store.release_long_task(held).await.unwrap());
    assert_eq!(claimed(2).await, [(stopped.task, 3)]);
}

async fn tasks_are_forgotten<D: Database>() {
    let database = D::fresh();
    let store = database.open();
    let brief = NewLongTask {
        lifetime: Duration::ZERO,
        ..new(Some("ann"))
    };
    let hold = put(&store, &brief, LEASE).await;
    // Its time is over, and so is what was kept of it.
    assert!(
        store
            .end_long_task(hold, end(LongTaskState::Completed))
            .await
            .unwrap()
    );
    assert!(begun(&store, Some("ann")).await.is_some());
    let gone = store
        .long_task(brief.id, asker(&brief.owner))
        .await
        .unwrap();
    assert_eq!(gone, None);
}

async fn a_task_goes_with_its_conversation<D: Database>() {
    let database = D::fresh();
    let store = database.open();
    let task = new(Some("ann"));
    let hold = put(&store, &task, LEASE).await;
    assert!(
        store
            .delete_conversation(task.owner.conversation)
            .await
            .unwrap()
    );
    assert_eq!(store.keep_long_tasks(vec![hold], LEASE).await.unwrap(), []);
}

async fn many_hosts_take_each_task_once<D: Database>() {
    let database = D::fresh();
    let store = database.open();
    let bounds = LongTaskBounds {
        of_caller: 100,
        in_all: 100,
    };
    for _ in 0..40 {
        let put = store.put_long_task(new(None), bounds, Duration::ZERO).await;
        assert!(put.unwrap().is_some());
    }
    let mut hosts = JoinSet::new();
    for _ in 0..4 {
        let store = database.open();
        hosts.spawn(async move {
            let mut taken = Vec::new();
            loop {
                let claimed = claim(&store, HERE, Duration::ZERO).await;
                if claimed.is_empty() {
                    return taken;
                }
                taken.extend(claimed.into_iter().map(|task| task.id));
            }
        });
    }
    let taken = hosts.join_all().await.concat();
    assert_eq!(taken.len(), 40);
    assert_eq!(taken.iter().collect::<BTreeSet<_>>().len(), 40);
}

on_every_database! {
    any: [
        a_task_is_known_to_its_owner_alone,
        questions_are_answered_once_and_reach_who_holds_the_task,
        who_takes_a_task_over_is_the_only_one_to_write_to_it,
        tasks_that_work_are_bounded,
        conversations_of_nobody_do_not_share_a_bound,
        ended_tasks_go_of_who_has_most,
        a_task_that_nobody_may_repeat_is_any_hosts_to_settle,
        a_task_of_a_process_that_runs_is_left_to_it,
        tasks_are_forgotten,
        a_task_goes_with_its_conversation,
    ],
    lasting: [many_hosts_take_each_task_once],
}
