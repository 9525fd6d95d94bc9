//! Where a guest begins: for a moment on the thread of its caller, when nothing that it can do blocks that one.
//!
//! A guest that has to wait, that still runs at the next tick, or whose result may be large moves to a guest thread.

use std::future::poll_fn;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::pin::Pin;
use std::task::Poll;
use std::time::Duration;

/// What gave its result within this time gave little enough to be looked at at once. Source: copying into the host moves some megabytes in
/// a millisecond.
pub(super) const BRIEF: Duration = Duration::from_millis(1);

/// Polls a guest once. None: it has to continue on another thread.
///
/// The result's errors: what a host function that panicked said.
pub(super) async fn begun_here<F: Future + ?Sized>(
    guest: &mut Pin<Box<F>>,
) -> Option<Result<F::Output, String>> {
    poll_fn(|context| {
        let polled = catch_unwind(AssertUnwindSafe(|| guest.as_mut().poll(context)));
        Poll::Ready(match polled {
            Ok(Poll::Pending) => None,
            Ok(Poll::Ready(ended)) => Some(Ok(ended)),
            Err(panic) => Some(Err(words(&*panic))),
        })
    })
    .await
}

fn words(panic: &(dyn std::any::Any + Send)) -> String {
    let text = panic.downcast_ref::<String>().map(String::as_str);
    let text = text.or_else(|| panic.downcast_ref::<&str>().copied());
    text.unwrap_or("it panicked").to_owned()
}
