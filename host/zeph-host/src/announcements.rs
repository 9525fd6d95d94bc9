//! What hosts on the same store tell each other: that the folders of plugins may have changed, which no system reports of another machine.

use std::time::Duration;

use tokio::sync::watch;
use zeph_store::{Change, Store, StoreError};

/// What is announced.
const PLUGINS: &str = "plugins";

/// How often the store is asked where nothing is heard.
const LOOK_EVERY: Duration = Duration::from_secs(5);

/// Tells every host on the store that plugins were added, removed or switched.
///
/// Errors: what the store says; the change itself is made.
pub(crate) async fn plugins_changed(store: &Store) -> Result<(), StoreError> {
    store.note_offer_change().await?;
    store.announce(PLUGINS).await
}

/// Passes such changes on, for as long as they are wanted. A store that is away is asked again later.
pub(crate) async fn follow(store: Store, hints: watch::Sender<i64>) {
    let Ok(mut changes) = store.changes(LOOK_EVERY).await else {
        return;
    };
    let mut known = store.offer_version().await.ok();
    while !hints.is_closed() {
        match changes.next().await {
            Change::Announced(topic) if &*topic != PLUGINS => continue,
            Change::Announced(_) | Change::Look => {}
        }
        let Ok(version) = store.offer_version().await else {
            continue;
        };
        if known.replace(version) != Some(version) {
            hints.send_replace(version);
        }
    }
}
