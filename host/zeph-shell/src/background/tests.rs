use std::sync::{Arc, LazyLock, Mutex};
use std::time::{Duration, Instant};

use uuid::Uuid;
use zeph_core::call::TurnContext;
use zeph_core::exit::CommandExit;
use zeph_core::output::RawOutput;

use super::{Background, BackgroundEnd, EndReport, StartRefusal};
use crate::run::{Reason, RunStop};

fn turn() -> TurnContext {
    TurnContext {
        turn_id: "turn-1".to_owned(),
        goal_id: None,
        skill_name: None,
        timestamp_ms: 1,
    }
}

/// When all of them end.
static ENDED: LazyLock<Instant> = LazyLock::new(Instant::now);

fn completed(run_id: Uuid, text: &str) -> BackgroundEnd {
    BackgroundEnd {
        run_id,
        turn: Some(turn()),
        command: Some("one".to_owned()),
        exit: Some(CommandExit::Code(0)),
        exit_code: Some(0),
        failure: None,
        truncated: false,
        label: None,
        output: RawOutput::text(text),
        notes: Vec::new(),
        duration: Duration::from_secs(1),
        ended: *ENDED,
        hosts: Vec::new(),
        private_files: Vec::new(),
    }
}

/// Starts one that goes on until what comes back is told its end.
fn start(
    background: &Background,
    command: &str,
) -> Result<(Uuid, Arc<RunStop>, EndReport), StartRefusal> {
    let mut held = None;
    let run_id = background.start(command.to_owned(), turn(), |stop, _, done| {
        held = Some((stop, done));
        Ok(())
    })?;
    let (stop, done) = held.expect("it was begun");
    Ok((run_id, stop, done))
}

#[test]
fn there_are_no_more_than_there_may_be() {
    let background = Background::new(2);
    let (first, _, done) = start(&background, "one").expect("the first");
    let second = start(&background, "two").expect("the second");
    assert!(matches!(
        start(&background, "three"),
        Err(StartRefusal::TooMany)
    ));
    let listed: Vec<_> = background
        .list()
        .into_iter()
        .map(|run| run.command)
        .collect();
    assert_eq!(listed, ["one", "two"]);
    done.tell(completed(first, "out"));
    let third = start(&background, "three").expect("there is room again");
    assert_eq!(background.take_completed(), [completed(first, "out")]);
    assert_eq!(background.take_completed(), []);
    drop((second, third));
}

#[tokio::test]
async fn an_end_that_is_waited_for_is_told_to_nobody_else() {
    let background = Background::new(2);
    let (awaited, _, first) = start(&background, "one").expect("the first");
    let (other, _, second) = start(&background, "two").expect("the second");
    assert_eq!(background.ended(Uuid::nil()).await, None);
    let mut waiting = Box::pin(background.ended(awaited));
    let early = tokio::select! {
        biased;
        ended = &mut waiting => Some(ended),
        () = std::future::ready(()) => None,
    };
    assert_eq!(early, None);
    first.tell(completed(awaited, "out"));
    second.tell(completed(other, "out"));
    assert_eq!(background.take_completed(), [completed(other, "out")]);
    assert_eq!(waiting.await, Some(completed(awaited, "out")));
    assert_eq!(background.ended(awaited).await, None);

    // Who stops waiting leaves it to the others.
    let (left, _, third) = start(&background, "three").expect("the third");
    drop(background.ended(left));
    third.tell(completed(left, "out"));
    assert_eq!(background.take_completed(), [completed(left, "out")]);
}

#[test]
fn the_message_is_the_documented_one() {
    let run_id = Uuid::nil();
    assert_eq!(
        completed(run_id, "text\n").message(),
        format!("[background complete] run_id={run_id} exit_code=0\ntext\n")
    );
}

#[test]
fn one_that_cannot_be_started_never_was() {
    let background = Background::new(1);
    let refused = background.start("x".to_owned(), turn(), |_, _, _| {
        Err(std::io::Error::other("no thread"))
    });
    assert!(matches!(refused, Err(StartRefusal::System(_))));
    assert!(background.list().is_empty());
    assert_eq!(background.take_completed(), []);
}

#[test]
fn one_whose_thread_fails_counts_as_ended() {
    let background = Background::new(1);
    let (run_id, _, done) = start(&background, "x").expect("the first");
    drop(done);
    assert!(background.list().is_empty());
    let ended = background.take_completed();
    assert_eq!(
        (ended.len(), ended[0].run_id, ended[0].exit_code),
        (1, run_id, None)
    );
}

#[tokio::test]
async fn killing_waits_for_the_end() {
    let background = Arc::new(Background::new(1));
    let (run_id, stop, done) = start(&background, "x").expect("the first");
    assert!(!background.kill(Uuid::new_v4()).await);
    let killing = background.kill(run_id);
    tokio::pin!(killing);
    tokio::select! {
        biased;
        _ = &mut killing => panic!("it has not ended"),
        () = std::future::ready(()) => {}
    }
    assert_eq!(stop.reason(), Some(Reason::Killed));
    done.tell(completed(run_id, ""));
    assert!(killing.await);
}

#[tokio::test]
async fn a_session_that_ends_ends_all_and_starts_no_more() {
    let background = Background::new(3);
    let (first, stop, done) = start(&background, "x").expect("the first");
    let held = Arc::new(Mutex::new(Some(done)));
    let shutdown = background.shutdown();
    tokio::pin!(shutdown);
    tokio::select! {
        biased;
        () = &mut shutdown => panic!("one runs still"),
        () = std::future::ready(()) => {}
    }
    assert_eq!(stop.reason(), Some(Reason::Shutdown));
    assert!(matches!(start(&background, "y"), Err(StartRefusal::Closed)));
    let done = held
        .lock()
        .expect("not poisoned")
        .take()
        .expect("it is there");
    done.tell(completed(first, ""));
    shutdown.await;
    assert_eq!(background.take_completed().len(), 1);
}

#[test]
fn dropping_a_session_ends_all() {
    let background = Background::new(3);
    let (run_id, stop, done) = start(&background, "x").expect("the first");
    drop(background);
    assert_eq!(stop.reason(), Some(Reason::Shutdown));
    done.tell(completed(run_id, ""));
}

#[test]
fn what_waits_is_bounded_and_every_end_is_told() {
    let background = Background::new(1);
    let text = "x".repeat(16 * 1024 * 1024);
    for _ in 0..4 {
        let (run_id, _, done) = start(&background, "x").expect("one at a time");
        done.tell(completed(run_id, &text));
    }
    let ended = background.take_completed();
    let n_bytes: usize = ended
        .iter()
        .map(|completed| completed.output.to_text().len())
        .sum();
    assert_eq!(ended.len(), 4);
    assert!(n_bytes < 33 * 1024 * 1024);
    assert_eq!(ended[3].output.to_text(), text);
    assert!(ended[0].output.to_text().contains("dropped"));
}
