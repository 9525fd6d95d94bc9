//! Several statements on their way to the server at once: they are run there one after the other, and their answers come with one journey.

use std::future::{Future, poll_fn};
use std::pin::Pin;
use std::task::Poll;

/// Waits for all of `futures`, which send what they send when they are polled first: in their order.
pub(super) async fn in_order<'a, T>(
    futures: impl IntoIterator<Item = Pin<Box<dyn Future<Output = T> + 'a>>>,
) -> Vec<T> {
    let mut waiting: Vec<_> = futures.into_iter().map(|future| (future, None)).collect();
    poll_fn(|cx| {
        let mut is_ready = true;
        for (future, done) in waiting.iter_mut().filter(|(_, done)| done.is_none()) {
            match future.as_mut().poll(cx) {
                Poll::Ready(answer) => *done = Some(answer),
                Poll::Pending => is_ready = false,
            }
        }
        match is_ready {
            true => Poll::Ready(()),
            false => Poll::Pending,
        }
    })
    .await;
    waiting.into_iter().filter_map(|(_, done)| done).collect()
}
