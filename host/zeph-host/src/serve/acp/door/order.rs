//! The order of the requests that begin, close and delete one session: each waits for the end of those that came before it.
//!
//! A close takes as long as the turn that it ends. Until then the session is neither deleted, which the end of the turn would undo, nor
//! read from the store, which lacks that end. Prompts do not wait: a session that is closed takes none.

use std::collections::HashMap;

use serde_json::Value;
use tokio_util::sync::{CancellationToken, DropGuard};
use zeph_core::id::ConversationId;

/// The last request about each session. Those that are over leave with the next one that comes.
#[derive(Debug, Default)]
pub(super) struct SessionOrder(HashMap<ConversationId, CancellationToken>);

/// The place of a request in the order. The next one comes when it is dropped.
#[derive(Debug)]
pub(super) struct OrderPlace {
    before: Option<CancellationToken>,
    _over: DropGuard,
}

impl SessionOrder {
    /// The place of a request that comes now; none for one that names no session.
    pub(super) fn enter(&mut self, params: &Value) -> Option<OrderPlace> {
        let id = params.get("sessionId")?.as_str()?.parse().ok()?;
        self.0.retain(|_, over| !over.is_cancelled());
        let over = CancellationToken::new();
        Some(OrderPlace {
            before: self.0.insert(id, over.clone()),
            _over: over.drop_guard(),
        })
    }
}

impl OrderPlace {
    /// Waits until the requests before are over.
    pub(super) async fn come(&self) {
        if let Some(before) = &self.before {
            before.cancelled().await;
        }
    }
}

#[cfg(test)]
mod tests {
    use std::future::poll_fn;
    use std::pin::pin;
    use std::task::Poll;

    use serde_json::json;
    use zeph_core::id::ConversationId;

    use super::{OrderPlace, SessionOrder};

    async fn is_next(place: &OrderPlace) -> bool {
        let mut come = pin!(place.come());
        poll_fn(|context| Poll::Ready(come.as_mut().poll(context).is_ready())).await
    }

    #[tokio::test]
    async fn requests_about_one_session_wait_for_each_other() {
        let mut order = SessionOrder::default();
        let ids = [(); 2].map(|()| json!({"sessionId": ConversationId::new()}));
        let mut enter = |idx: usize| order.enter(&ids[idx]).unwrap();
        let (first, second, third, other) = (enter(0), enter(0), enter(0), enter(1));
        for place in [&first, &other] {
            assert!(is_next(place).await);
        }
        for place in [&second, &third] {
            assert!(!is_next(place).await);
        }
        drop(first);
        assert!(is_next(&second).await && !is_next(&third).await);
        drop(second);
        assert!(is_next(&third).await);
        drop((third, other));
        assert!(is_next(&enter(0)).await);
        assert_eq!(order.0.len(), 1, "what is over is forgotten");
        for params in [json!({}), json!({"sessionId": "x"}), json!(null)] {
            assert!(order.enter(&params).is_none(), "{params}");
        }
    }
}
