//! Tells a client when it is offered other tools than before.

use std::sync::Arc;

use tokio_util::sync::CancellationToken;
use zeph_mcp::subset::ToolSubset;

use super::Shared;
use super::listed::Listed;

/// Calls `tell` after each change of the tools that `subset` lets a client see, until `stop` or until nobody listens (`tell` returns false).
pub(super) async fn follow<T>(
    shared: &Shared,
    subset: &ToolSubset,
    stop: &CancellationToken,
    tell: impl Fn() -> T,
) where
    T: Future<Output = bool>,
{
    let mut watch = shared.host.watch_catalog();
    let mut before = shared.lists.current(&shared.host);
    loop {
        let changed = tokio::select! {
            changed = watch.changed() => changed,
            () = stop.cancelled() => None,
            () = shared.closing.cancelled() => None,
        };
        if changed.is_none() {
            return;
        }
        let now = shared.lists.current(&shared.host);
        if !looks_the_same(&before, &now, subset) && !tell().await {
            return;
        }
        before = now;
    }
}

/// Whether a client of `subset` sees no difference.
fn looks_the_same(before: &Arc<Listed>, now: &Arc<Listed>, subset: &ToolSubset) -> bool {
    let of = |listed: &Arc<Listed>| {
        let tools = listed.of(subset).map(|tool| tool.described.clone());
        tools.collect::<Vec<_>>()
    };
    Arc::ptr_eq(before, now) || of(before) == of(now)
}
