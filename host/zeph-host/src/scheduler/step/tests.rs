use jiff::Timestamp;
use jiff::tz::TimeZone;
use zeph_config::MissedRuns;
use zeph_store::RunState;

use super::super::times::Times;
use super::{MADE_UP_MAX, Step, step};

fn ms(text: &str) -> i64 {
    text.parse::<Timestamp>().unwrap().as_millisecond()
}

fn hourly() -> Times {
    Times::periodic("0 * * * *", None, &TimeZone::UTC, 0).unwrap()
}

fn at(due: &str, now: &str, is_held: bool, missed: MissedRuns) -> (RunState, Option<String>) {
    let Step { state, next_ms, .. } = step(&hourly(), (ms(due), ms(now), ms(now)), is_held, missed);
    let next = next_ms.map(|at| Timestamp::from_millisecond(at).unwrap().to_string());
    (state, next)
}

#[test]
fn what_is_due_now_runs_and_comes_again() {
    for missed in [MissedRuns::RunOnce, MissedRuns::Skip, MissedRuns::RunAll] {
        let found = at(
            "2026-05-01T10:00:00Z",
            "2026-05-01T10:00:02Z",
            false,
            missed,
        );
        let next = Some("2026-05-01T11:00:00Z".to_owned());
        assert_eq!(found, (RunState::Running, next), "{missed:?}");
    }
}

#[test]
fn what_was_missed_follows_the_policy() {
    let (due, now) = ("2026-05-01T10:00:00Z", "2026-05-01T13:30:00Z");
    let next = |text: &str| Some(text.to_owned());
    assert_eq!(
        at(due, now, false, MissedRuns::RunOnce),
        (RunState::Running, next("2026-05-01T14:00:00Z"))
    );
    assert_eq!(
        at(due, now, false, MissedRuns::Skip),
        (RunState::Missed, next("2026-05-01T14:00:00Z"))
    );
    assert_eq!(
        at(due, now, false, MissedRuns::RunAll),
        (RunState::Running, next("2026-05-01T11:00:00Z"))
    );
}

#[test]
fn what_a_host_saw_come_is_not_missed_however_long_it_waited() {
    let (due, now) = (ms("2026-05-01T10:00:00Z"), ms("2026-05-01T10:40:00Z"));
    let cases = [(-3_600, false), (0, false), (60, false), (61, true)];
    for (since, is_missed) in cases {
        let times = (due, due + since * 1_000, now);
        for missed in [MissedRuns::RunOnce, MissedRuns::Skip, MissedRuns::RunAll] {
            let step = step(&hourly(), times, false, missed);
            let is_skipped = is_missed && missed == MissedRuns::Skip;
            assert_eq!(step.state == RunState::Missed, is_skipped, "{since}");
            assert_eq!(step.note.is_empty(), !is_missed, "{since}");
        }
    }
}

#[test]
fn a_run_that_goes_on_refuses_the_next() {
    for missed in [MissedRuns::RunOnce, MissedRuns::Skip, MissedRuns::RunAll] {
        let found = at("2026-05-01T10:00:00Z", "2026-05-01T10:00:02Z", true, missed);
        let next = Some("2026-05-01T11:00:00Z".to_owned());
        assert_eq!(found, (RunState::Overlapped, next), "{missed:?}");
    }
}

#[test]
fn making_up_is_bounded_and_comes_to_an_end() {
    let (mut due, now) = (ms("2020-01-01T00:00:00Z"), ms("2026-05-01T13:30:00Z"));
    let (mut n_runs, mut n_missed) = (0, 0);
    loop {
        let next = step(&hourly(), (due, now, now), false, MissedRuns::RunAll);
        match next.state {
            RunState::Running => n_runs += 1,
            RunState::Missed => n_missed += 1,
            other => panic!("{other:?}"),
        }
        assert!(next.next_ms.unwrap() > due);
        due = next.next_ms.unwrap();
        if due > now {
            break;
        }
    }
    assert_eq!((n_runs, n_missed), (MADE_UP_MAX, 1));
}

#[test]
fn what_comes_once_never_comes_again() {
    let at_ms = ms("2026-05-01T10:00:00Z");
    let once = Times::Once { at_ms };
    for missed in [MissedRuns::RunOnce, MissedRuns::Skip, MissedRuns::RunAll] {
        for now in ["2026-05-01T10:00:00Z", "2027-01-01T00:00:00Z"] {
            let step = step(&once, (at_ms, ms(now), ms(now)), false, missed);
            assert_eq!(step.next_ms, None, "{missed:?} {now}");
            let is_missed = missed == MissedRuns::Skip && now.starts_with("2027");
            assert_eq!(
                step.state == RunState::Missed,
                is_missed,
                "{missed:?} {now}"
            );
        }
    }
}
