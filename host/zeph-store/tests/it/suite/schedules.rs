//! Schedules: a name is one caller's, a run begins once, and its end is recorded once.

use uuid::Uuid;
use zeph_core::id::ConversationId;
use zeph_store::{
    HostProcess, NewSchedule, PutSchedule, RunBegin, RunFinish, RunState, Schedule, ScheduleBounds,
    ScheduleOwner, Store,
};

use crate::database::{Database, on_every_database};
use crate::setup::NOW_MS;

const BOUNDS: ScheduleBounds = ScheduleBounds {
    of_caller: 3,
    in_all: 5,
};

fn owner(caller: Option<&str>) -> ScheduleOwner {
    ScheduleOwner {
        directory: "/work".to_owned(),
        caller: caller.map(str::to_owned),
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
        revision: schedule.revision,
        due_ms: schedule.what.next_ms.unwrap(),
        next_ms,
        at_ms: NOW_MS,
        hold: Some((host(pid), NOW_MS + 1_000)),
        state: RunState::Running,
        note: String::new(),
    }
}

fn finish(run: Uuid, state: RunState) -> RunFinish {
    RunFinish {
        run,
        state,
        note: "so".to_owned(),
        next_ms: None,
        at_ms: NOW_MS + 5,
    }
}

async fn due(store: &Store) -> Vec<Schedule> {
    let found = store.due_schedules("/work".to_owned(), NOW_MS, 10).await;
    found.unwrap()
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
    let next = store.next_schedule("/work".to_owned()).await.unwrap();
    assert_eq!(next, Some(NOW_MS + 1));
    let elsewhere = store.next_schedule("/other".to_owned()).await.unwrap();
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
    let until = NOW_MS + 99;
    store.keep_runs(host(1), until).await.unwrap();
    let held = store.held_schedules("/work".to_owned()).await.unwrap();
    assert_eq!(held[0].held.as_ref().unwrap().until_ms, until);
    let overlapped = RunBegin {
        hold: None,
        state: RunState::Overlapped,
        ..begin(&again, Some(NOW_MS + 20), 2)
    };
    assert!(store.begin_run(overlapped).await.unwrap());
    assert!(
        store
            .finish_run(finish(run.run, RunState::Done))
            .await
            .unwrap()
    );
    let late = finish(run.run, RunState::Unknown);
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
            .finish_run(finish(run.run, RunState::Done))
            .await
            .unwrap();
    }
    let schedule = due(&store).await.remove(0);
    let runs = store.schedule_runs(schedule.id).await.unwrap();
    assert_eq!(runs.len(), 20);
    assert!(runs.windows(2).all(|two| two[0].id > two[1].id));
}

on_every_database! {
    any: [
        names_belong_to_one_caller_and_are_bounded,
        of_hosts_at_one_time_one_begins_a_run,
        a_run_ends_once_and_what_was_replaced_meanwhile_stays,
        only_the_last_runs_are_kept,
    ],
    lasting: [],
}
