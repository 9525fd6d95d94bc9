//! Before stage 3: whether the tools that have to come before a call have succeeded.

use zeph_core::policy::{Decision, Refusal};
use zeph_core::tool::Tool;
use zeph_store::Store;

use crate::calls::CallControl;
use crate::dependencies::{AskedCall, Dependencies};
use crate::offers::Offer;
use crate::session::Session;

/// Why a call may not run now, if it may not.
pub(super) async fn refusal(
    (dependencies, store): (&Dependencies, &Store),
    session: &Session,
    (asked, tool): (&AskedCall, &Tool),
    offer: &Offer,
    control: &CallControl,
) -> Option<Refusal> {
    if dependencies.is_empty() {
        return None;
    }
    let of = (store, session.conversation);
    dependencies
        .recall(session.progress(), of, &offer.catalog)
        .await;
    dependencies
        .refusal(asked, tool, &offer.catalog, &control.cancel)
        .await
}

/// The decision about a call that is not made, as the order of tools leaves it.
pub(super) async fn foreseen(
    (dependencies, store): (&Dependencies, &Store),
    session: &Session,
    (tool, decision): (&Tool, Decision),
    offer: &Offer,
) -> Decision {
    let of = (store, session.conversation);
    dependencies
        .recall(session.progress(), of, &offer.catalog)
        .await;
    let unmet = dependencies.unmet(session.progress(), tool, &offer.catalog);
    match dependencies.refused(tool, &unmet, &offer.catalog) {
        Some(mut refusal) => {
            let steps = decision.trace().iter().cloned();
            refusal.trace = steps.chain(refusal.trace).collect();
            Decision::Deny(refusal)
        }
        None => decision,
    }
}
