use jiff::tz::TimeZone;
use zeph_config::MissedRuns;
use zeph_core::id::{ConversationId, Digest};
use zeph_mcp::door::OpenDoor;
use zeph_store::{
    HostProcess, Location, NewSchedule, Owner, RunFence, RunFinish, RunState, Schedule,
    ScheduleBounds, ScheduleOwner, Store, StoreError, StoreOptions, TokenRecord,
};

use super::{BegunRun, Moment, Movement};
use crate::process;
use crate::scheduler::places::{RUNS_MAX, RUNS_OF_CALLER_MAX, RunPlaces};
use crate::scheduler::task::Task;
use crate::scheduler::times::Times;

const HERE: &str = "/work";

/// Looks that are measured.
const LOOKS: u32 = 100;

/// An hour in milliseconds, and a morning of 2026.
const HOUR: i64 = 3_600_000;
const MORNING: i64 = 1_777_629_600_000;

const BOUNDS: ScheduleBounds = ScheduleBounds {
    of_caller: 20_000,
    in_all: 20_000,
};

fn store() -> Store {
    let options = StoreOptions {
        at_ms: MORNING,
        busy_timeout: std::time::Duration::from_secs(5),
    };
    Store::open(Location::Memory, options).unwrap().store
}

fn movement(store: &Store, missed: MissedRuns) -> Movement {
    Movement {
        store: store.clone(),
        door: std::sync::Arc::default(),
        directory: HERE.to_owned(),
        missed,
        own: process::own(),
        lease: super::HELD,
        kept_ms: i64::MIN,
        looked_ms: i64::MIN,
        since_ms: i64::MIN,
    }
}

/// As many runs as may go on, of several callers.
fn full() -> RunPlaces {
    let callers: Vec<Owner> = (0..RUNS_MAX)
        .map(|n| Owner::named(Some(&format!("caller-{}", n % 4))))
        .collect();
    RunPlaces::taken(callers.iter())
}

fn hourly() -> Times {
    Times::periodic("0 * * * *", None, &TimeZone::UTC, MORNING).unwrap()
}

async fn put(store: &Store, name: &str, times: &Times, tool: &str) {
    let task = Task::Call {
        tool: tool.to_owned(),
        arguments: serde_json::Map::new(),
        named: None,
    };
    let schedule = NewSchedule {
        owner: ScheduleOwner {
            directory: HERE.to_owned(),
            caller: Owner::default(),
        },
        name: name.to_owned(),
        conversation: ConversationId::new(),
        is_model: false,
        work: serde_json::to_string(&task).unwrap(),
        times: serde_json::to_string(times).unwrap(),
        next_ms: times.next(MORNING),
    };
    store.put_schedule(schedule, BOUNDS, MORNING).await.unwrap();
}

async fn begun(movement: &mut Movement, now_ms: i64) -> Vec<BegunRun> {
    begun_beside(movement, &[], now_ms).await
}

/// Like [`begun`], with the runs in `going_on` still in progress.
async fn begun_beside(
    movement: &mut Movement,
    going_on: &[RunFence],
    now_ms: i64,
) -> Vec<BegunRun> {
    let moment = movement
        .moment(now_ms, (going_on, RunPlaces::default()), &|tool| {
            Some(tool == "read")
        })
        .await;
    moment.unwrap().begun
}

/// A process of another machine, which nobody here can look at.
fn far() -> HostProcess {
    HostProcess {
        pid: 1,
        start: "another-machine/boot/pid:[1]/7".to_owned(),
    }
}

async fn ended(store: &Store, run: &BegunRun, now_ms: i64) {
    let finish = RunFinish {
        fence: run.fence,
        only_over: false,
        state: RunState::Done,
        note: String::new(),
        next_ms: None,
        at_ms: now_ms,
    };
    assert!(store.finish_run(finish).await.unwrap());
}

async fn one(store: &Store) -> Schedule {
    store.schedules(None, 1).await.unwrap().remove(0)
}

#[tokio::test]
async fn what_is_due_runs_once_whoever_looks() {
    let store = store();
    put(&store, "a", &hourly(), "read").await;
    let (mut first, mut second) = (
        movement(&store, MissedRuns::RunOnce),
        movement(&store, MissedRuns::RunOnce),
    );
    second.own = far();
    assert!(begun(&mut first, MORNING).await.is_empty());
    let at = hourly().next(MORNING).unwrap();
    assert!(begun(&mut first, at - 1).await.is_empty());
    let runs = begun(&mut first, at).await;
    assert_eq!(runs.len(), 1);
    let going_on = [runs[0].fence];
    assert!(begun(&mut second, at).await.is_empty());
    assert!(begun_beside(&mut first, &going_on, at + 1).await.is_empty());
    ended(&store, &runs[0], at + 2).await;
    assert!(begun(&mut second, at + 3).await.is_empty());
    assert_eq!(begun(&mut second, at + HOUR).await.len(), 1);
}

#[tokio::test]
async fn a_clock_that_jumps_runs_nothing_twice() {
    let store = store();
    put(&store, "a", &hourly(), "read").await;
    let mut movement = movement(&store, MissedRuns::RunOnce);
    let at = hourly().next(MORNING).unwrap();
    let runs = begun(&mut movement, at).await;
    ended(&store, &runs[0], at).await;
    // Back by a day, and through the same hour again.
    for back in [at - 24 * HOUR, at - 1, at, at + 1] {
        assert!(begun(&mut movement, back).await.is_empty());
    }
    // Ahead by a week: one run makes up for all of it.
    let ahead = at + 7 * 24 * HOUR + 90_000;
    let runs = begun(&mut movement, ahead).await;
    assert_eq!(runs.len(), 1);
    ended(&store, &runs[0], ahead).await;
    assert!(begun(&mut movement, ahead + 1).await.is_empty());
}

#[tokio::test]
async fn a_run_that_goes_on_refuses_the_next_and_says_so() {
    let store = store();
    put(&store, "a", &hourly(), "bash").await;
    let mut movement = movement(&store, MissedRuns::RunAll);
    let at = hourly().next(MORNING).unwrap();
    let runs = begun(&mut movement, at).await;
    let going_on = [runs[0].fence];
    let refused = begun_beside(&mut movement, &going_on, at + HOUR).await;
    assert!(refused.is_empty());
    assert_eq!(one(&store).await.last.unwrap().state, RunState::Overlapped);
    ended(&store, &runs[0], at + HOUR + 1).await;
    assert_eq!(begun(&mut movement, at + 2 * HOUR).await.len(), 1);
}

/// A run of a process that has ended.
async fn lost(store: &Store, tool: &str) -> (Movement, i64) {
    put(store, "a", &hourly(), tool).await;
    let mut dead = movement(store, MissedRuns::RunOnce);
    let own = process::own();
    dead.own = HostProcess {
        pid: own.pid,
        start: format!("{}1", own.start),
    };
    let at = hourly().next(MORNING).unwrap();
    assert_eq!(begun(&mut dead, at).await.len(), 1);
    (movement(store, MissedRuns::RunOnce), at)
}

#[tokio::test]
async fn a_run_of_unknown_end_is_recorded_and_not_repeated() {
    let store = store();
    let (mut movement, at) = lost(&store, "bash").await;
    assert!(begun(&mut movement, at + 1).await.is_empty());
    let last = one(&store).await.last.unwrap();
    assert_eq!(last.state, RunState::Unknown);
    assert!(last.note.contains("not made again"), "{}", last.note);
    assert!(begun(&mut movement, at + 2).await.is_empty());
    assert_eq!(begun(&mut movement, at + HOUR).await.len(), 1);
}

#[tokio::test]
async fn a_tool_that_may_be_called_again_is_and_once_only() {
    let store = store();
    let (mut movement, at) = lost(&store, "read").await;
    let runs = begun(&mut movement, at + 1).await;
    assert_eq!(runs.len(), 1);
    assert!(one(&store).await.last.unwrap().note.starts_with("again: "));
    // The host of that one is killed, too.
    movement.own.start.push('1');
    movement.kept_ms = i64::MIN;
    ended(&store, &runs[0], at + 2).await;
    assert!(begun(&mut movement, at + 3).await.is_empty());
}

#[tokio::test]
async fn a_lost_run_whose_tool_is_not_there_yet_waits_for_it() {
    let store = store();
    let (mut movement, at) = lost(&store, "mcp_slow_look").await;
    let looks = [(1, None), (1 + super::KEPT_MS, Some(true))];
    for (after_ms, may_repeat) in looks {
        let may_repeat_then = |_: &str| may_repeat;
        let going_on = (&[][..], RunPlaces::default());
        let looked = movement.moment(at + after_ms, going_on, &may_repeat_then);
        let n_begun = looked.await.unwrap().begun.len();
        assert_eq!(n_begun, usize::from(may_repeat.is_some()));
    }
    assert!(one(&store).await.last.unwrap().note.starts_with("again: "));
}

/// Two machines may have the same name, and say so to one store.
#[tokio::test]
async fn a_run_of_another_machine_of_this_name_goes_on_until_its_time_is_over() {
    let store = store();
    put(&store, "a", &hourly(), "bash").await;
    let mut other = movement(&store, MissedRuns::RunOnce);
    other.own.start = format!("{}/another-boot/pid:[1]/7", process::machine());
    let at = hourly().next(MORNING).unwrap();
    let fence = begun(&mut other, at).await.remove(0).fence;
    let mut here = movement(&store, MissedRuns::RunOnce);
    for (n_looks, state) in [(1, RunState::Running), (2, RunState::Unknown)] {
        let now_ms = at + n_looks * super::KEPT_MS;
        assert!(begun(&mut here, now_ms).await.is_empty());
        assert_eq!(one(&store).await.last.unwrap().state, state);
        let over = store.keep_runs(vec![fence], std::time::Duration::ZERO);
        over.await.unwrap();
    }
}

#[tokio::test]
async fn a_run_whose_end_was_not_written_blocks_no_other() {
    for (tool, n_repeated) in [("bash", 0), ("read", 1)] {
        let store = store();
        put(&store, "a", &hourly(), tool).await;
        let mut movement = movement(&store, MissedRuns::RunOnce);
        let at = hourly().next(MORNING).unwrap();
        let runs = begun(&mut movement, at).await;
        let going_on = [runs[0].fence];
        let later = at + super::KEPT_MS;
        assert!(
            begun_beside(&mut movement, &going_on, later)
                .await
                .is_empty()
        );
        assert_eq!(one(&store).await.last.unwrap().state, RunState::Running);
        drop(runs);
        // It goes on no more, and this process is still there.
        let again = begun(&mut movement, later + super::KEPT_MS).await;
        assert_eq!(again.len(), n_repeated, "{tool}");
        let held = one(&store).await.held.map(|held| held.fence);
        assert_eq!(held, again.first().map(|run| run.fence), "{tool}");
        if let Some(again) = again.first() {
            assert!(again.is_again);
            ended(&store, again, later + super::KEPT_MS).await;
        }
        assert_eq!(begun(&mut movement, at + HOUR).await.len(), 1, "{tool}");
    }
}

#[tokio::test]
async fn a_run_of_another_clockwork_of_this_process_goes_on() {
    let store = store();
    put(&store, "a", &hourly(), "read").await;
    let mut leaving = movement(&store, MissedRuns::RunOnce);
    let at = hourly().next(MORNING).unwrap();
    let runs = begun(&mut leaving, at).await;
    let mut next = movement(&store, MissedRuns::RunOnce);
    assert!(begun(&mut next, at + 1).await.is_empty());
    assert_eq!(one(&store).await.last.unwrap().state, RunState::Running);
    // Its time comes again: the one before still counts.
    assert!(begun(&mut next, at + HOUR).await.is_empty());
    assert_eq!(one(&store).await.last.unwrap().state, RunState::Overlapped);
    ended(&store, &runs[0], at + HOUR).await;
    assert_eq!(begun(&mut next, at + 2 * HOUR).await.len(), 1);
}

#[tokio::test]
async fn what_a_token_scheduled_runs_with_its_tools_and_as_long_as_it_is_there() {
    let store = store();
    put(&store, "a", &hourly(), "bash").await;
    let digest = Digest::new([1; 32]);
    let mut of_token = one(&store).await.what;
    of_token.owner.caller = Owner {
        token: Some(digest),
        ..Owner::named(Some("ann"))
    };
    of_token.name = "b".to_owned();
    store.put_schedule(of_token, BOUNDS, MORNING).await.unwrap();
    let token = TokenRecord {
        name: "ann".to_owned(),
        digest,
        tools: Some(vec!["read".to_owned()]),
        rate: None,
        created_at_ms: MORNING,
        expires_at_ms: None,
    };
    assert!(store.add_token(token.clone()).await.unwrap());
    let mut movement = movement(&store, MissedRuns::RunOnce);
    let at = hourly().next(MORNING).unwrap();
    let runs = begun(&mut movement, at).await;
    let may_call: Vec<(String, bool)> = runs
        .iter()
        .map(|run| {
            let tools = &run.admission.tools;
            (run.schedule.what.name.clone(), tools.has("bash", "bash"))
        })
        .collect();
    assert_eq!(may_call, [("a".to_owned(), true), ("b".to_owned(), false)]);
    // A token made anew under its name has none of it.
    assert!(store.revoke_token("ann".to_owned()).await.unwrap());
    let anew = TokenRecord {
        digest: Digest::new([2; 32]),
        ..token
    };
    assert!(store.add_token(anew).await.unwrap());
    let going_on: Vec<RunFence> = runs.iter().map(|run| run.fence).collect();
    let looked = movement.moment(
        at + super::KEPT_MS,
        (&going_on, RunPlaces::default()),
        &|_| Some(false),
    );
    assert_eq!(looked.await.unwrap().lost, [runs[1].fence.run]);
    for run in &runs {
        ended(&store, run, at + super::KEPT_MS).await;
    }
    let runs = begun(&mut movement, at + HOUR).await;
    assert_eq!(runs.len(), 1);
    let given_up = store.schedules(None, 2).await.unwrap();
    let given_up = given_up.iter().find(|one| one.what.name == "b").unwrap();
    assert_eq!(given_up.what.next_ms, None);
    let last = given_up.last.as_ref().unwrap();
    assert_eq!(last.state, RunState::Refused);
    assert!(last.note.contains("revoked"), "{}", last.note);
}

/// What an anonymous client scheduled, beside what the person at the terminal did under the same name.
async fn put_of_anybody(store: &Store) {
    put(store, "a", &hourly(), "read").await;
    let mut of_anybody = one(store).await.what;
    of_anybody.owner.caller = Owner::anonymous();
    store
        .put_schedule(of_anybody, BOUNDS, MORNING)
        .await
        .unwrap();
}

async fn add_expired_token(store: &Store) {
    let token = TokenRecord {
        name: "ann".to_owned(),
        digest: Digest::new([1; 32]),
        tools: None,
        rate: None,
        created_at_ms: 0,
        expires_at_ms: Some(1),
    };
    assert!(store.add_token(token).await.unwrap());
}

#[tokio::test]
async fn what_anybody_scheduled_runs_where_anybody_is_let_in() {
    let at = hourly().next(MORNING).unwrap();
    let cases = [
        // Without an endpoint, it is left to others.
        (OpenDoor::default(), false, 1, true),
        (OpenDoor::served(false), false, 2, true),
        // An expired token shuts an endpoint, too.
        (OpenDoor::served(false), true, 1, false),
        (OpenDoor::served(true), false, 1, false),
    ];
    for (door, has_token, n_runs, is_left) in cases {
        let store = store();
        put_of_anybody(&store).await;
        if has_token {
            add_expired_token(&store).await;
        }
        let mut movement = movement(&store, MissedRuns::RunOnce);
        let told = format!("{door:?} {has_token}");
        movement.door = std::sync::Arc::new(door);
        let runs = begun(&mut movement, at).await;
        assert_eq!(runs.len(), n_runs, "{told}");
        let schedules = store.schedules(None, 2).await.unwrap();
        let left = schedules
            .iter()
            .find(|one| one.what.owner.caller.is_anonymous());
        let left = left.unwrap();
        assert_eq!(left.what.next_ms.is_some(), is_left, "{told}");
        let last = left.last.as_ref().map(|run| run.state);
        assert_eq!(last == Some(RunState::Refused), !is_left, "{told}");
    }
}

#[tokio::test]
async fn a_run_of_anybody_ends_when_a_token_shuts_the_door() {
    let store = store();
    put_of_anybody(&store).await;
    let mut movement = movement(&store, MissedRuns::RunOnce);
    movement.door = std::sync::Arc::new(OpenDoor::served(false));
    let at = hourly().next(MORNING).unwrap();
    let runs = begun(&mut movement, at).await;
    let going_on: Vec<RunFence> = runs.iter().map(|run| run.fence).collect();
    add_expired_token(&store).await;
    // To revoke the last token does not open it again.
    assert!(!movement.door.is_open_with(true));
    assert!(store.revoke_token("ann".to_owned()).await.unwrap());
    let looked = movement.moment(
        at + super::KEPT_MS,
        (&going_on, RunPlaces::default()),
        &|_| Some(false),
    );
    let of_anybody = runs
        .iter()
        .find(|run| run.schedule.what.owner.caller.is_anonymous());
    assert_eq!(looked.await.unwrap().lost, [of_anybody.unwrap().fence.run]);
}

#[tokio::test]
async fn each_missed_run_is_made_up_for_one_after_the_other() {
    let store = store();
    put(&store, "a", &hourly(), "bash").await;
    let mut movement = movement(&store, MissedRuns::RunAll);
    let at = hourly().next(MORNING).unwrap();
    let mut now = at + 3 * HOUR + HOUR / 2;
    let mut due = Vec::new();
    for _ in 0..4 {
        let runs = begun(&mut movement, now).await;
        let going_on = [runs[0].fence];
        // Long before the run ends there are others that are due.
        now += 1;
        let moment = movement
            .moment(now, (&going_on, RunPlaces::default()), &|_| Some(false))
            .await;
        let moment = moment.unwrap();
        assert!(moment.begun.is_empty());
        assert!(moment.next_ms.is_none_or(|next_ms| next_ms > now));
        due.push(one(&store).await.last.unwrap().due_ms);
        ended(&store, &runs[0], now).await;
        now += 1;
    }
    assert_eq!(due, [at, at + HOUR, at + 2 * HOUR, at + 3 * HOUR]);
    assert!(begun(&mut movement, now).await.is_empty());
}

#[tokio::test]
async fn what_took_the_place_of_a_lost_run_comes_at_its_own_time() {
    let store = store();
    let (mut movement, at) = lost(&store, "read").await;
    put(&store, "a", &hourly(), "read").await;
    let next = one(&store).await.what;
    let later = NewSchedule {
        next_ms: Some(at + HOUR),
        ..next
    };
    store.put_schedule(later, BOUNDS, at).await.unwrap();
    assert!(begun(&mut movement, at + 1).await.is_empty());
    let last = one(&store).await.last.unwrap();
    assert!(last.note.contains("not made again"), "{}", last.note);
    let runs = begun(&mut movement, at + HOUR).await;
    assert_eq!(runs.len(), 1);
    assert!(!runs[0].is_again, "nothing was made again");
    assert!(!one(&store).await.last.unwrap().note.starts_with("again: "));
}

#[tokio::test]
async fn a_clock_that_was_far_ahead_silences_nothing() {
    let store = store();
    let at = hourly().next(MORNING).unwrap();
    let year = 365 * 24 * HOUR;
    put(&store, "a", &hourly(), "bash").await;
    let mut ahead = movement(&store, MissedRuns::RunOnce);
    let runs = begun(&mut ahead, at + year).await;
    ended(&store, &runs[0], at + year).await;
    assert!(one(&store).await.what.next_ms > Some(at + year));
    // The clock is set right, and the host goes on or is started again.
    for mut movement in [ahead, movement(&store, MissedRuns::RunOnce)] {
        assert!(begun(&mut movement, at + 1).await.is_empty());
        assert_eq!(one(&store).await.what.next_ms, Some(at + HOUR));
    }
    let mut movement = movement(&store, MissedRuns::RunOnce);
    assert_eq!(begun(&mut movement, at + HOUR).await.len(), 1);
}

#[tokio::test]
async fn what_is_due_and_cannot_be_had_is_not_asked_for_at_once() {
    let store = store();
    put(&store, "a", &hourly(), "bash").await;
    let mut movement = movement(&store, MissedRuns::RunOnce);
    let at = hourly().next(MORNING).unwrap();
    let claimed = super::vain(Some(at), at + 5);
    assert_eq!(claimed, Some(at + 5 + super::REST_MS));
    assert_eq!(super::vain(Some(at + HOUR), at), Some(at + HOUR));
    assert_eq!(begun(&mut movement, at).await.len(), 1);
}

#[tokio::test]
async fn a_run_held_elsewhere_is_left_alone_until_its_time_is_over() {
    let store = store();
    put(&store, "a", &hourly(), "bash").await;
    let mut far = movement(&store, MissedRuns::RunOnce);
    far.own = self::far();
    let at = hourly().next(MORNING).unwrap();
    let fence = begun(&mut far, at).await.remove(0).fence;
    let mut near = movement(&store, MissedRuns::RunOnce);
    assert!(begun(&mut near, at + 1).await.is_empty());
    assert_eq!(one(&store).await.last.unwrap().state, RunState::Running);
    // It says so no more, and finds out that it is another's when it looks again.
    let over = store.keep_runs(vec![fence], std::time::Duration::ZERO);
    assert_eq!(over.await.unwrap(), [fence.run]);
    assert!(begun(&mut near, at + 2 * super::KEPT_MS).await.is_empty());
    assert_eq!(one(&store).await.last.unwrap().state, RunState::Unknown);
    let running = [fence];
    let moment = far.moment(at + 3 * super::KEPT_MS, (&running, full()), &|_| {
        Some(false)
    });
    assert_eq!(moment.await.unwrap().lost, [fence.run]);
}

#[test]
fn what_was_lost_is_told_when_the_rest_of_a_look_fails() {
    let failed = || Err(StoreError::Closed { operation: "look" });
    let run = uuid::Uuid::now_v7();
    let lost = Moment {
        lost: vec![run],
        next_ms: Some(MORNING),
        ..Moment::default()
    };
    let after = lost.after(failed()).unwrap();
    assert_eq!((after.lost, after.next_ms), (vec![run], None));
    assert!(Moment::default().after(failed()).is_err());
}

#[tokio::test]
async fn what_another_program_wrote_does_not_stop_the_others() {
    let store = store();
    put(&store, "a", &hourly(), "read").await;
    let broken = NewSchedule {
        times: "nonsense".to_owned(),
        next_ms: Some(MORNING + 1),
        name: "broken".to_owned(),
        ..one(&store).await.what
    };
    store.put_schedule(broken, BOUNDS, MORNING).await.unwrap();
    let mut movement = movement(&store, MissedRuns::RunOnce);
    assert!(begun(&mut movement, MORNING + 2).await.is_empty());
    let at = hourly().next(MORNING).unwrap();
    assert_eq!(begun(&mut movement, at).await.len(), 1);
}

#[tokio::test]
async fn what_waited_for_a_place_is_not_missed() {
    let store = store();
    put(&store, "a", &hourly(), "bash").await;
    let mut here = movement(&store, MissedRuns::Skip);
    let at = hourly().next(MORNING).unwrap();
    let mut now_ms = at - 10_000;
    while now_ms < at + 200_000 {
        let looked = here.moment(now_ms, (&[], full()), &|_| Some(false));
        assert!(looked.await.unwrap().begun.is_empty());
        now_ms += 5_000;
    }
    // Who comes only now did not see it.
    let runs = begun(&mut here, now_ms).await;
    assert_eq!(runs.len(), 1);
    assert_eq!(one(&store).await.last.unwrap().note, "");
    ended(&store, &runs[0], now_ms).await;
    let mut late = movement(&store, MissedRuns::Skip);
    assert!(begun(&mut late, at + HOUR + 90_000).await.is_empty());
    assert_eq!(one(&store).await.last.unwrap().state, RunState::Missed);
}

#[tokio::test]
async fn no_caller_has_more_than_its_share_of_the_runs() {
    let store = store();
    for n in 0..10 {
        put(&store, &format!("task-{n}"), &hourly(), "read").await;
    }
    let mut of_other = one(&store).await.what;
    of_other.owner.caller = Owner::named(Some("ann"));
    // The last to come.
    of_other.next_ms = of_other.next_ms.map(|at| at + 1);
    store.put_schedule(of_other, BOUNDS, MORNING).await.unwrap();
    let mut movement = movement(&store, MissedRuns::RunOnce);
    let at = hourly().next(MORNING).unwrap() + 1;
    let runs = begun(&mut movement, at).await;
    let callers: Vec<Owner> = runs
        .iter()
        .map(|run| run.schedule.what.owner.caller.clone())
        .collect();
    let n_own = callers.iter().filter(|one| one.id.is_none()).count();
    assert_eq!((n_own, runs.len()), (RUNS_OF_CALLER_MAX, 5));
    let fences: Vec<RunFence> = runs.iter().map(|run| run.fence).collect();
    let places = RunPlaces::taken(callers.iter());
    let moment = movement.moment(at + 1, (&fences, places), &|_| Some(false));
    let moment = moment.await.unwrap();
    assert!(moment.begun.is_empty());
    assert_eq!(moment.next_ms, Some(at + 1 + super::REST_MS));
}

#[tokio::test]
async fn ten_thousand_schedules_that_wait_cost_one_look_through_an_index() {
    let store = store();
    // Many at once share a transaction.
    let (times, mut putting) = (hourly(), tokio::task::JoinSet::new());
    for n in 0..10_000 {
        let (store, times) = (store.clone(), times.clone());
        putting.spawn(async move { put(&store, &format!("task-{n}"), &times, "read").await });
    }
    while let Some(put) = putting.join_next().await {
        put.unwrap();
    }
    let mut movement = movement(&store, MissedRuns::RunOnce);
    movement
        .moment(MORNING, (&[], RunPlaces::default()), &|_| Some(false))
        .await
        .unwrap();
    let began = std::time::Instant::now();
    for _ in 0..LOOKS {
        let moment = movement
            .moment(MORNING, (&[], RunPlaces::default()), &|_| Some(false))
            .await
            .unwrap();
        assert!(moment.begun.is_empty());
    }
    let one_look = began.elapsed() / LOOKS;
    println!("one look at 10,000 schedules: {one_look:?}");
    // Once in five seconds: a hundredth of a core would be fifty milliseconds.
    assert!(one_look < super::PERIOD / 100, "{one_look:?}");
}
