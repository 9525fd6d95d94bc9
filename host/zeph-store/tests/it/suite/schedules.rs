//! Schedules: a name is one caller's, a run begins once, and its end is recorded once.

use std::collections::BTreeSet;
use std::time::Duration;

use tokio::task::JoinSet;
use uuid::Uuid;
use zeph_core::id::{ConversationId, Digest};
use zeph_store::{
    CallBegin, HostProcess, NewSchedule, Owner, PutSchedule, RunBegin, RunFence, RunFinish,
    RunState, Schedule, ScheduleBounds, ScheduleClaim, ScheduleOwner, SingleUseRights, Store,
    WorkHold,
};

use crate::database::{Database, on_every_database};
use crate::setup::{NOW_MS, begin as begin_of};

const BOUNDS: ScheduleBounds = ScheduleBounds {
    of_caller: 3,
    in_all: 5,
};

/// Longer than any test takes.
const LEASE: Duration = Duration::from_secs(600);

fn owner(caller: Option<&str>) -> ScheduleOwner {
    ScheduleOwner {
        directory: "/work".to_owned(),
        caller: Owner::named(caller),
    }
}

fn new(caller: Option<&str>, name: &str, next_ms: i64) -> NewSchedule {
    NewSchedule {
        owner: owner(caller),
        name: name.to_owned(),
        conversation: ConversationId::new(),
        is_model: true,
        work: "{}".to_owned(),
        times: "{}".to_owned(),
        next_ms: Some(next_ms),
    }
}

async fn put(store: &Store, schedule: NewSchedule) -> PutSchedule {
    store.put_schedule(schedule, BOUNDS, NOW_MS).await.unwrap()
}

fn host(pid: u32) -> HostProcess {
    HostProcess {
        pid,
        start: "here".to_owned(),
    }
}

fn begin(schedule: &Schedule, next_ms: Option<i64>, pid: u32) -> RunBegin {
    RunBegin {
        run: Uuid::now_v7(),
        schedule: schedule.id,
        fence: schedule.fence,
        due_ms: schedule.what.next_ms.unwrap(),
        next_ms,
        at_ms: NOW_MS,
        hold: Some((host(pid), LEASE)),
        state: RunState::Running,
        note: String::new(),
    }
}

fn fence_of(begin: &RunBegin) -> RunFence {
    RunFence {
        run: begin.run,
        fence: begin.fence,
    }
}

fn finish(fence: RunFence, state: RunState) -> RunFinish {
    RunFinish {
        fence,
        only_over: false,
        state,
        note: "so".to_owned(),
        next_ms: None,
        at_ms: NOW_MS + 5,
    }
}

async fn due(store: &Store) -> Vec<Schedule> {
    claimed(store, LEASE).await
}

async fn claimed(store: &Store, lease: Duration) -> Vec<Schedule> {
    let claim = ScheduleClaim {
        directory: "/work".to_owned(),
        of_anybody: true,
        busy: Vec::new(),
        now_ms: NOW_MS,
        waiting_ms: None,
        lease,
        limit: 10,
    };
    store.claim_schedules(claim).await.unwrap()
}

async fn names_belong_to_one_caller_and_are_bounded<D: Database>() {
    let database = D::fresh();
    let store = database.open();
    assert_eq!(put(&store, new(None, "a", 1)).await, PutSchedule::Created);
    assert_eq!(
        put(&store, new(Some(""), "a", 2)).await,
        PutSchedule::Created
    );
    assert_eq!(
        put(&store, new(Some("x"), "a", 3)).await,
        PutSchedule::Created
    );
    assert_eq!(put(&store, new(None, "a", 4)).await, PutSchedule::Replaced);
    let own = |caller| store.schedules(Some(owner(caller)), 10);
    let nobody = own(None).await.unwrap();
    assert_eq!(nobody.len(), 1);
    assert_eq!((nobody[0].revision, nobody[0].what.next_ms), (2, Some(4)));
    assert_eq!(
        own(Some("x")).await.unwrap()[0].what.owner,
        owner(Some("x"))
    );
    assert!(own(Some("y")).await.unwrap().is_empty());
    for name in ["b", "c"] {
        assert_eq!(put(&store, new(None, name, 1)).await, PutSchedule::Created);
    }
    assert_eq!(put(&store, new(None, "d", 1)).await, PutSchedule::TooMany);
    assert_eq!(put(&store, new(Some("z"), "a", 1)).await, PutSchedule::Full);
    assert_eq!(put(&store, new(None, "c", 9)).await, PutSchedule::Replaced);
    let cancel = |caller: Option<&str>| store.cancel_schedule(owner(caller), "a".to_owned());
    assert!(!cancel(Some("y")).await.unwrap());
    assert!(cancel(None).await.unwrap());
    assert!(!cancel(None).await.unwrap());
    assert_eq!(own(Some("x")).await.unwrap().len(), 1);
    // What had its end long ago makes room.
    assert_eq!(store.schedules(None, 10).await.unwrap().len(), 4);
}

async fn what_a_token_scheduled_is_none_of_another_token_of_its_name<D: Database>() {
    let database = D::fresh();
    let store = database.open();
    let of_token = |byte: u8| ScheduleOwner {
        caller: Owner {
            token: Some(Digest::new([byte; 32])),
            ..Owner::named(Some("ann"))
        },
        ..owner(None)
    };
    let owners = [of_token(1), of_token(2), owner(Some("ann"))];
    for owner in &owners {
        let schedule = NewSchedule {
            owner: owner.clone(),
            ..new(None, "a", NOW_MS)
        };
        assert_eq!(put(&store, schedule).await, PutSchedule::Created);
    }
    let cancel = |owner: &ScheduleOwner| store.cancel_schedule(owner.clone(), "a".to_owned());
    assert!(cancel(&owners[0]).await.unwrap());
    assert!(!cancel(&owners[0]).await.unwrap());
    for owner in &owners[1..] {
        let own = store.schedules(Some(owner.clone()), 10).await.unwrap();
        assert_eq!(own.len(), 1);
        assert_eq!(&own[0].what.owner, owner);
    }
}

async fn of_hosts_at_one_time_one_begins_a_run<D: Database>() {
    let database = D::fresh();
    let store = database.open();
    put(&store, new(None, "a", NOW_MS)).await;
    put(&store, new(None, "later", NOW_MS + 1)).await;
    let mut found = due(&store).await;
    assert_eq!(found.len(), 1);
    let schedule = found.remove(0);
    let next = Some(NOW_MS + 60_000);
    let mut begun = 0;
    for pid in 1..=8 {
        let ours = store.begin_run(begin(&schedule, next, pid)).await.unwrap();
        begun += u32::from(ours);
    }
    assert_eq!(begun, 1);
    assert!(due(&store).await.is_empty());
    let next = store
        .next_schedule(("/work".to_owned(), true), None)
        .await
        .unwrap();
    assert_eq!(next, Some(NOW_MS + 1));
    let elsewhere = store
        .next_schedule(("/other".to_owned(), true), None)
        .await
        .unwrap();
    assert_eq!(elsewhere, None);
    let held = store.held_schedules("/work".to_owned()).await.unwrap();
    assert_eq!(held.len(), 1);
    assert_eq!(held[0].held.as_ref().unwrap().host, host(1));
}

async fn a_run_ends_once_and_what_was_replaced_meanwhile_stays<D: Database>() {
    let database = D::fresh();
    let store = database.open();
    put(&store, new(None, "a", NOW_MS)).await;
    let schedule = due(&store).await.remove(0);
    let run = begin(&schedule, Some(NOW_MS + 10), 1);
    assert!(store.begin_run(run.clone()).await.unwrap());
    // While it goes on, its schedule can be replaced, and does not begin again.
    put(&store, new(None, "a", NOW_MS)).await;
    let again = due(&store).await.remove(0);
    assert!(again.held.is_some());
    assert!(!store.begin_run(begin(&again, None, 2)).await.unwrap());
    let own = fence_of(&run);
    let is_over = async || {
        let held = store.held_schedules("/work".to_owned()).await.unwrap();
        held[0].held.as_ref().unwrap().is_over
    };
    assert!(!is_over().await);
    let older = RunFence {
        fence: own.fence - 1,
        ..own
    };
    let kept = store.keep_runs(vec![own, older], Duration::ZERO).await;
    assert_eq!(kept.unwrap(), [run.run]);
    assert!(is_over().await);
    let overlapped = RunBegin {
        hold: None,
        state: RunState::Overlapped,
        ..begin(&again, Some(NOW_MS + 20), 2)
    };
    assert!(store.begin_run(overlapped).await.unwrap());
    assert!(store.finish_run(finish(own, RunState::Done)).await.unwrap());
    let late = finish(own, RunState::Unknown);
    assert!(!store.finish_run(late).await.unwrap());
    let runs = store.schedule_runs(schedule.id).await.unwrap();
    let states: Vec<RunState> = runs.iter().map(|run| run.state).collect();
    assert_eq!(states, [RunState::Overlapped, RunState::Done]);
    let listed = store.schedules(None, 10).await.unwrap();
    assert!(listed[0].held.is_none());
    assert_eq!(listed[0].what.next_ms, Some(NOW_MS + 20));
}

async fn only_the_last_runs_are_kept<D: Database>() {
    let database = D::fresh();
    let store = database.open();
    put(&store, new(None, "a", NOW_MS)).await;
    for n in 0..30 {
        let schedule = due(&store).await.remove(0);
        let run = begin(&schedule, Some(NOW_MS - n), 1);
        assert!(store.begin_run(run.clone()).await.unwrap());
        store
            .finish_run(finish(fence_of(&run), RunState::Done))
            .await
            .unwrap();
    }
    let schedule = due(&store).await.remove(0);
    let runs = store.schedule_runs(schedule.id).await.unwrap();
    assert_eq!(runs.len(), 20);
    assert!(runs.windows(2).all(|two| two[0].id > two[1].id));
}

async fn a_claim_is_one_hosts_and_ends_by_itself<D: Database>() {
    let database = D::fresh();
    let store = database.open();
    put(&store, new(None, "a", NOW_MS)).await;
    let first = claimed(&store, Duration::ZERO).await.remove(0);
    let next = || store.next_schedule(("/work".to_owned(), true), None);
    assert_eq!(next().await.unwrap(), Some(NOW_MS));
    let second = claimed(&store, LEASE).await.remove(0);
    assert!(second.fence > first.fence);
    assert_eq!(next().await.unwrap(), None);
    assert!(due(&store).await.is_empty());
    // What claimed it first comes too late, and what claimed it last begins it.
    assert!(!store.begin_run(begin(&first, None, 1)).await.unwrap());
    assert!(store.begin_run(begin(&second, None, 2)).await.unwrap());
    // What is replaced is nobody's claim any more.
    put(&store, new(None, "b", NOW_MS)).await;
    let claimed = due(&store).await.remove(0);
    put(&store, new(None, "b", NOW_MS)).await;
    assert!(!store.begin_run(begin(&claimed, None, 1)).await.unwrap());
    assert_eq!(due(&store).await.len(), 1);
}

async fn what_has_taken_a_run_over_is_the_only_one_to_write_to_it<D: Database>() {
    let database = D::fresh();
    let store = database.open();
    put(&store, new(None, "a", NOW_MS)).await;
    let schedule = due(&store).await.remove(0);
    let run = begin(&schedule, Some(NOW_MS), 1);
    assert!(store.begin_run(run.clone()).await.unwrap());
    let own = fence_of(&run);
    let call = async || {
        let rights = SingleUseRights {
            hold: Some(WorkHold::Run(own)),
            ..SingleUseRights::default()
        };
        let begin = begin_of("read", ConversationId::new(), NOW_MS);
        store.begin_call(Some(begin), rights, NOW_MS).await.unwrap()
    };
    assert_eq!(call().await, CallBegin::Recorded);
    let settle = RunFinish {
        only_over: true,
        next_ms: Some(NOW_MS - 1),
        ..finish(own, RunState::Unknown)
    };
    assert!(!store.finish_run(settle.clone()).await.unwrap());
    store.keep_runs(vec![own], Duration::ZERO).await.unwrap();
    assert!(store.finish_run(settle).await.unwrap());
    let again = begin(&due(&store).await.remove(0), None, 2);
    assert!(store.begin_run(again.clone()).await.unwrap());
    // The first host was only slow.
    assert_eq!(call().await, CallBegin::HoldLost);
    let kept = store.keep_runs(vec![own, fence_of(&again)], LEASE).await;
    assert_eq!(kept.unwrap(), [again.run]);
    assert!(!store.finish_run(finish(own, RunState::Done)).await.unwrap());
    let runs = store.schedule_runs(schedule.id).await.unwrap();
    let states: Vec<RunState> = runs.iter().map(|run| run.state).collect();
    assert_eq!(states, [RunState::Running, RunState::Unknown]);
}

async fn what_waits_for_a_run_is_not_due<D: Database>() {
    let database = D::fresh();
    let store = database.open();
    put(&store, new(None, "a", NOW_MS - 20)).await;
    let schedule = due(&store).await.remove(0);
    let run = begin(&schedule, Some(NOW_MS - 10), 1);
    assert!(store.begin_run(run.clone()).await.unwrap());
    let looked = async |waiting_ms| {
        let claim = ScheduleClaim {
            directory: "/work".to_owned(),
            of_anybody: true,
            busy: Vec::new(),
            now_ms: NOW_MS,
            waiting_ms,
            lease: Duration::ZERO,
            limit: 10,
        };
        let next = store.next_schedule(("/work".to_owned(), true), waiting_ms);
        let next = next.await.unwrap();
        (next, store.claim_schedules(claim).await.unwrap().len())
    };
    assert_eq!(looked(Some(NOW_MS - 5)).await, (None, 0));
    for waiting_ms in [None, Some(NOW_MS - 10)] {
        assert_eq!(looked(waiting_ms).await, (Some(NOW_MS - 10), 1));
    }
    // It was claimed since, so the end of the run moves nothing.
    let end = RunFinish {
        next_ms: Some(NOW_MS - 15),
        ..finish(fence_of(&run), RunState::Unknown)
    };
    assert!(store.finish_run(end).await.unwrap());
    assert_eq!(looked(Some(NOW_MS - 5)).await, (Some(NOW_MS - 10), 1));
}

/// Hosts without an endpoint leave what anonymous clients scheduled to those that have one.
async fn what_anybody_scheduled_is_found_where_it_is_looked_for<D: Database>() {
    let database = D::fresh();
    let store = database.open();
    let schedule = new(None, "a", NOW_MS);
    let owner = ScheduleOwner {
        caller: Owner::anonymous(),
        ..schedule.owner.clone()
    };
    put(&store, NewSchedule { owner, ..schedule }).await;
    for of_anybody in [false, true] {
        let next = store.next_schedule(("/work".to_owned(), of_anybody), None);
        assert_eq!(next.await.unwrap(), of_anybody.then_some(NOW_MS));
        let claim = ScheduleClaim {
            directory: "/work".to_owned(),
            of_anybody,
            busy: Vec::new(),
            now_ms: NOW_MS,
            waiting_ms: None,
            lease: LEASE,
            limit: 10,
        };
        let claimed = store.claim_schedules(claim).await.unwrap();
        assert_eq!(claimed.len(), usize::from(of_anybody));
    }
}

async fn many_hosts_share_what_is_due<D: Database>() {
    let database = D::fresh();
    let store = database.open();
    let bounds = ScheduleBounds {
        of_caller: 100,
        in_all: 100,
    };
    for n in 0..40 {
        let schedule = new(None, &format!("task-{n}"), NOW_MS - n);
        store.put_schedule(schedule, bounds, NOW_MS).await.unwrap();
    }
    let mut hosts = JoinSet::new();
    for pid in 1..=4 {
        let store = database.open();
        hosts.spawn(async move {
            let mut begun = Vec::new();
            loop {
                let claim = ScheduleClaim {
                    directory: "/work".to_owned(),
                    of_anybody: true,
                    busy: Vec::new(),
                    now_ms: NOW_MS,
                    waiting_ms: None,
                    lease: LEASE,
                    limit: 3,
                };
                let claimed = store.claim_schedules(claim).await.unwrap();
                if claimed.is_empty() {
                    return begun;
                }
                for schedule in claimed {
                    assert!(store.begin_run(begin(&schedule, None, pid)).await.unwrap());
                    begun.push(schedule.what.name);
                }
            }
        });
    }
    let begun = hosts.join_all().await.concat();
    assert_eq!(begun.len(), 40);
    assert_eq!(begun.iter().collect::<BTreeSet<_>>().len(), 40);
}

async fn callers_that_have_their_share_wait<D: Database>() {
    let database = D::fresh();
    let store = database.open();
    let callers = [None, Some("ann"), Some("bob")];
    for caller in callers {
        put(&store, new(caller, "a", NOW_MS)).await;
    }
    let claim = |busy: &[Option<&str>]| ScheduleClaim {
        directory: "/work".to_owned(),
        of_anybody: true,
        busy: busy.iter().map(|caller| Owner::named(*caller)).collect(),
        now_ms: NOW_MS,
        waiting_ms: None,
        lease: LEASE,
        limit: 10,
    };
    let steps = [
        (&callers[..], vec![]),
        (&callers[..2], vec![Some("bob")]),
        (&callers[1..], vec![None]),
        (&[], vec![Some("ann")]),
    ];
    for (busy, expected) in steps {
        let claimed = store.claim_schedules(claim(busy)).await.unwrap();
        let of: Vec<_> = claimed
            .iter()
            .map(|one| one.what.owner.caller.id.as_deref())
            .collect();
        assert_eq!(of, expected, "{busy:?}");
    }
}

async fn schedules_move_to_another_directory<D: Database>() {
    let database = D::fresh();
    let store = database.open();
    let there = |caller: Option<&str>| ScheduleOwner {
        directory: "machine:old:/work".to_owned(),
        ..owner(caller)
    };
    for (caller, name) in [(None, "a"), (None, "b"), (Some("ann"), "a")] {
        let schedule = new(caller, name, NOW_MS);
        let owner = there(caller);
        put(&store, NewSchedule { owner, ..schedule }).await;
    }
    put(&store, new(None, "a", NOW_MS + 1)).await;
    let moved = || store.move_schedules("machine:old:/work".to_owned(), "/work".to_owned());
    assert_eq!(moved().await.unwrap(), 2);
    assert_eq!(moved().await.unwrap(), 0);
    let mut due: Vec<String> = due(&store)
        .await
        .into_iter()
        .map(|one| one.what.name)
        .collect();
    due.sort();
    assert_eq!(due, ["a", "b"]);
    let left = store.schedules(Some(there(None)), 10).await.unwrap();
    assert_eq!(left.len(), 1, "its caller has another of that name");
}

on_every_database! {
    any: [
        callers_that_have_their_share_wait,
        schedules_move_to_another_directory,
        names_belong_to_one_caller_and_are_bounded,
        what_a_token_scheduled_is_none_of_another_token_of_its_name,
        of_hosts_at_one_time_one_begins_a_run,
        a_run_ends_once_and_what_was_replaced_meanwhile_stays,
        only_the_last_runs_are_kept,
        a_claim_is_one_hosts_and_ends_by_itself,
        what_has_taken_a_run_over_is_the_only_one_to_write_to_it,
        what_waits_for_a_run_is_not_due,
        what_anybody_scheduled_is_found_where_it_is_looked_for,
    ],
    lasting: [many_hosts_share_what_is_due],
}
