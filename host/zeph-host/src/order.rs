//! Calls that change the same objects, one after the other.
//!
//! A call takes its turn for all the paths it names at once, so two can never wait for each other. Paths that lie one in the other
//! are the same object. What a call changes besides, and what other programs change, the guard of files finds out: it replaces
//! nothing that is not what the call read.

use std::path::PathBuf;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use tokio::sync::Notify;
use zeph_core::category::{ErrorCategory, ErrorPhase};
use zeph_core::failure::ToolFailure;
use zeph_engine::Cancel;

/// The calls that run or wait.
#[derive(Debug, Default)]
pub(crate) struct Order(Arc<OrderState>);

#[derive(Debug, Default)]
struct OrderState {
    /// In the order they came; held for moments only.
    calls: Mutex<CallQueue>,
    ended: Notify,
}

#[derive(Debug, Default)]
struct CallQueue {
    next: u64,
    all: Vec<(u64, Vec<PathBuf>)>,
}

/// The turn of a call, or its place in the queue; given back when dropped.
#[derive(Debug)]
pub(crate) struct OrderTurn {
    shared: Arc<OrderState>,
    number: u64,
}

impl Order {
    /// Waits for the turn of a call that changes `paths`; for one that changes none at once, and without a turn.
    ///
    /// Errors: it is cancelled, or others take longer than `patience`.
    pub(crate) async fn wait(
        &self,
        paths: Vec<PathBuf>,
        patience: Duration,
        cancel: &Cancel,
    ) -> Result<Option<OrderTurn>, ToolFailure> {
        if paths.is_empty() {
            return Ok(None);
        }
        let (category, message) = tokio::select! {
            turn = self.turn(paths) => return Ok(Some(turn)),
            () = cancel.cancelled() => (ErrorCategory::Cancelled, "the call was cancelled while it waited for its turn"),
            () = tokio::time::sleep(patience) => {
                (ErrorCategory::RateLimited, "earlier calls that change the same files took too long")
            }
        };
        Err(ToolFailure::new(category, ErrorPhase::Setup, message))
    }

    /// Waits until no earlier call that changes one of `paths` is left.
    ///
    /// Shape: absolute, resolved. Without any the turn is at once. Dropping the future leaves the queue.
    pub(crate) async fn turn(&self, paths: Vec<PathBuf>) -> OrderTurn {
        let turn = self.join(paths);
        loop {
            let ended = self.0.ended.notified();
            tokio::pin!(ended);
            // Before the look: a call that ends right after it is not missed.
            ended.as_mut().enable();
            if !turn.has_to_wait() {
                return turn;
            }
            ended.await;
        }
    }

    fn join(&self, paths: Vec<PathBuf>) -> OrderTurn {
        let mut calls = self.0.calls.lock().unwrap_or_else(PoisonError::into_inner);
        let number = calls.next;
        calls.next += 1;
        calls.all.push((number, paths));
        OrderTurn {
            shared: Arc::clone(&self.0),
            number,
        }
    }
}

impl OrderTurn {
    fn has_to_wait(&self) -> bool {
        let calls = self.shared.calls.lock();
        let calls = calls.unwrap_or_else(PoisonError::into_inner);
        let own = calls.all.iter().find(|(number, _)| *number == self.number);
        let Some((_, own)) = own else { return false };
        let mut earlier = calls
            .all
            .iter()
            .take_while(|(number, _)| *number < self.number);
        earlier.any(|(_, paths)| meet(paths, own))
    }
}

impl Drop for OrderTurn {
    fn drop(&mut self) {
        let calls = self.shared.calls.lock();
        let mut calls = calls.unwrap_or_else(PoisonError::into_inner);
        calls.all.retain(|(number, _)| *number != self.number);
        drop(calls);
        self.shared.ended.notify_waiters();
    }
}

/// Whether one of `these` is one of `those`, or lies in it, or holds it.
fn meet(these: &[PathBuf], those: &[PathBuf]) -> bool {
    let meets = |this: &PathBuf, that: &PathBuf| this.starts_with(that) || that.starts_with(this);
    these
        .iter()
        .any(|this| those.iter().any(|that| meets(this, that)))
}

#[cfg(test)]
mod tests {
    use std::path::PathBuf;
    use std::pin::pin;

    use futures_lite_poll::is_ready;

    use super::Order;

    /// Asks a future once.
    mod futures_lite_poll {
        use std::pin::Pin;
        use std::task::{Context, Poll, Waker};

        pub(super) fn is_ready<F: Future>(future: Pin<&mut F>) -> Option<F::Output> {
            match future.poll(&mut Context::from_waker(Waker::noop())) {
                Poll::Ready(output) => Some(output),
                Poll::Pending => None,
            }
        }
    }

    fn paths(names: &[&str]) -> Vec<PathBuf> {
        names.iter().map(PathBuf::from).collect()
    }

    #[test]
    fn calls_on_one_object_take_turns_and_others_do_not_wait() {
        let order = Order::default();
        let mut first = pin!(order.turn(paths(&["/w/a"])));
        let first = is_ready(first.as_mut()).expect("nobody is there");
        for names in [&["/w/a"][..], &["/w"], &["/w/a/b"], &["/x", "/w/a"]] {
            let mut later = pin!(order.turn(paths(names)));
            assert!(is_ready(later.as_mut()).is_none(), "{names:?}");
        }
        let mut other = pin!(order.turn(paths(&["/w/ab"])));
        let other = is_ready(other.as_mut()).expect("another object");
        let mut second = pin!(order.turn(paths(&["/w/a"])));
        let mut third = pin!(order.turn(paths(&["/w/a"])));
        assert!(is_ready(second.as_mut()).is_none());
        assert!(is_ready(third.as_mut()).is_none());
        drop((first, other));
        assert!(is_ready(third.as_mut()).is_none(), "it came later");
        let turn = is_ready(second.as_mut()).expect("its turn");
        drop(turn);
        assert!(is_ready(third.as_mut()).is_some());
    }
}
