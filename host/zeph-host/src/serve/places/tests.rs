use std::num::NonZeroUsize;

use super::{Full, Place, Places, WAITING_MAX};

fn places(n: usize) -> Places {
    Places::new(NonZeroUsize::new(n).unwrap())
}

/// A call that waits, polled once.
async fn waiting(
    places: &Places,
    client: &'static str,
) -> tokio::task::JoinHandle<Result<Place, Full>> {
    let places = places.clone();
    #[expect(clippy::disallowed_methods, reason = "it ends with the test")]
    let task = tokio::spawn(async move { places.take(client).await });
    tokio::task::yield_now().await;
    task
}

#[tokio::test]
async fn no_more_run_than_there_are_places() {
    let places = places(2);
    let first = places.take("a").await.unwrap();
    let _second = places.take("b").await.unwrap();
    let third = waiting(&places, "a").await;
    assert!(!third.is_finished());
    drop(first);
    assert!(third.await.unwrap().is_ok());
}

#[tokio::test]
async fn a_client_that_asks_for_much_does_not_make_others_wait() {
    let places = places(2);
    let mut busy = vec![
        places.take("busy").await.unwrap(),
        places.take("busy").await.unwrap(),
    ];
    let mut queue = Vec::new();
    for _ in 0..10 {
        queue.push(waiting(&places, "busy").await);
    }
    let other = waiting(&places, "other").await;
    busy.pop();
    assert_eq!(other.await.unwrap().unwrap().client, "other");
    for task in &queue {
        task.abort();
    }
}

#[tokio::test]
async fn a_call_that_gave_up_takes_no_place() {
    let places = places(1);
    let first = places.take("a").await.unwrap();
    let given_up = waiting(&places, "a").await;
    let next = waiting(&places, "b").await;
    given_up.abort();
    drop(given_up.await);
    drop(first);
    drop(next.await.unwrap().unwrap());
    assert!(places.take("c").await.is_ok());
    assert_eq!(places.state().n_free, 1);
    assert!(places.state().clients.is_empty());
}

#[tokio::test]
async fn the_queue_of_a_client_is_bounded_and_that_of_another_is_its_own() {
    let places = places(1);
    let _held = places.take("a").await.unwrap();
    let mut queue = Vec::new();
    for _ in 0..WAITING_MAX {
        queue.push(waiting(&places, "a").await);
    }
    assert_eq!(places.take("a").await.unwrap_err(), Full);
    let other = waiting(&places, "b").await;
    assert!(!other.is_finished());
    // Those that gave up make room.
    for task in queue.drain(..) {
        task.abort();
        drop(task.await);
    }
    let again = waiting(&places, "a").await;
    assert!(!again.is_finished());
}
