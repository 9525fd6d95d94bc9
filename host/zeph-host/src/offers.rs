//! What can be called at this moment, as far as stages ask: the plugins in force and the catalog of all tools.

use std::sync::Arc;
use std::time::Duration;

use tokio::sync::watch;
use zeph_engine::Cancel;

use zeph_plugins::set::PluginSet;

/// Tells when there are other tools than before, for doors whose clients keep a list of them.
#[derive(Debug, Clone)]
pub struct CatalogWatch(watch::Receiver<Arc<PluginSet>>);

impl CatalogWatch {
    /// The number of the catalog of this moment. It grows with each change, and never otherwise.
    pub fn generation(&self) -> u64 {
        self.0.borrow().generation
    }

    /// Waits for a change that was not told yet. Returns the number of the catalog then; `None` when there will be no more changes.
    pub async fn changed(&mut self) -> Option<u64> {
        self.0.changed().await.ok()?;
        Some(self.0.borrow_and_update().generation)
    }
}

/// The plugins and tools of each moment. Clones follow the same ones.
#[derive(Debug, Clone)]
pub(crate) struct Offers(watch::Receiver<Arc<PluginSet>>);

impl Offers {
    pub(crate) fn new(plugins: watch::Receiver<Arc<PluginSet>>) -> Self {
        Self(plugins)
    }

    /// Those of this moment. A call takes them once, at its beginning.
    pub(crate) fn plugins(&self) -> Arc<PluginSet> {
        Arc::clone(&self.0.borrow())
    }

    /// Waits until the plugins of the program can be called.
    pub(crate) async fn has_own_plugins(&self) {
        self.wait_for(|set| set.has_own).await;
    }

    /// Waits until every plugin that was there at start has been looked at.
    pub(crate) async fn settled(&self) {
        self.wait_for(|set| set.is_settled).await;
    }

    /// Those of the moment when there is a tool of this name. Nobody may know it yet because its plugin is still being loaded.
    ///
    /// Limits: waits for a stranger's plugin `patience` at most, and not at all once `cancel` has come.
    pub(crate) async fn with_tool(
        &self,
        name: &str,
        patience: Duration,
        cancel: &Cancel,
    ) -> Arc<PluginSet> {
        let is_there = |set: &PluginSet| set.is_settled || set.catalog.resolve(name).is_ok();
        let now = self.plugins();
        if is_there(&now) {
            return now;
        }
        // The program's own are compiled once, however long that takes; a stranger's gets the time of a call.
        tokio::select! {
            () = self.has_own_plugins() => {}
            () = cancel.cancelled() => {}
        }
        let now = self.plugins();
        if is_there(&now) {
            return now;
        }
        tokio::select! {
            () = self.settled() => {}
            () = cancel.cancelled() => {}
            () = tokio::time::sleep(patience) => {}
        }
        self.plugins()
    }

    /// Follows them from this moment on.
    pub(crate) fn watch(&self) -> CatalogWatch {
        let mut plugins = self.0.clone();
        plugins.mark_unchanged();
        CatalogWatch(plugins)
    }

    async fn wait_for(&self, is_so: impl Fn(&PluginSet) -> bool) {
        let mut plugins = self.0.clone();
        // An error means that the keeper has ended: then nothing will change any more.
        drop(plugins.wait_for(|set| is_so(set)).await);
    }
}
