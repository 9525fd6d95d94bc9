//! Tells a client when it is offered other tools than before.

use std::sync::Arc;

use tokio_util::sync::CancellationToken;
use zeph_mcp::subset::ToolSubset;

use super::listed::Listed;
use super::{Shared, exposed};

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
        if !looks_the_same(shared, (&before, &now), subset) && !tell().await {
            return;
        }
        before = now;
    }
}

/// Whether a client of `subset` sees no difference.
fn looks_the_same(
    shared: &Shared,
    (before, now): (&Arc<Listed>, &Arc<Listed>),
    subset: &ToolSubset,
) -> bool {
    // Of a catalog that is searched, its client lists the same tools whatever is in it.
    let look =
        |listed: &Arc<Listed>| listed.look(subset, || exposed::tools(shared, listed, subset));
    Arc::ptr_eq(before, now) || look(before) == look(now)
}
