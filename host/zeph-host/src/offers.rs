//! What can be called at this moment, as far as stages ask: the plugins in force, the servers that run, and the catalog of all their tools.

use std::collections::BTreeSet;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use tokio::sync::watch;
use zeph_core::catalog::{Catalog, DuplicateTool};
use zeph_core::id::Digest;
use zeph_core::policy::tool_key;
use zeph_core::tool::{Backend, Tool};
use zeph_engine::Cancel;
use zeph_plugins::set::{InForce, PluginSet};

use crate::servers::{ServerSet, Servers};

/// Everything that can be called at one moment. Never altered: a call keeps the one it began with.
#[derive(Debug, Default)]
pub(crate) struct Offer {
    /// The plugins.
    pub(crate) plugins: Arc<PluginSet>,
    /// The MCP servers.
    pub(crate) servers: Arc<ServerSet>,
    /// Every tool, of all sources.
    pub(crate) catalog: Arc<Catalog>,
}

impl Offer {
    /// Puts both together. A name that the operator chose for a tool of a server, and that a plugin has, is the plugin's.
    fn of(plugins: Arc<PluginSet>, servers: Arc<ServerSet>) -> Self {
        let catalog = match servers.tools().next() {
            None => Arc::clone(&plugins.catalog),
            Some(_) => Arc::new(union(&plugins, &servers).unwrap_or_else(|error| {
                // Every name was looked at.
                tracing::error!(%error, "the tools of servers cannot be put together");
                Catalog::clone(&plugins.catalog)
            })),
        };
        Self {
            plugins,
            servers,
            catalog,
        }
    }

    /// What a grant or an approval is bound to besides the name: the component of an installed plugin, the definitions of a server; none for
    /// a part of the program.
    pub(crate) fn owner(&self, backend: &Backend) -> Option<Digest> {
        match backend {
            Backend::Mcp(_) => self.servers.of_backend(backend)?.digest,
            Backend::Wasm(_) | Backend::Builtin | Backend::Shell => {
                self.plugins.plugin(backend).and_then(InForce::owner)
            }
        }
    }

    /// Every tool that rules may name: those that are offered, and those of plugins that are off.
    pub(crate) fn known_tools(&self) -> impl Iterator<Item = &Tool> {
        let servers = self.servers.tools().map(|offered| &offered.tool);
        self.plugins.known_tools().chain(servers)
    }
}

fn union(plugins: &PluginSet, servers: &ServerSet) -> Result<Catalog, DuplicateTool> {
    let mut tools: Vec<Tool> = plugins.catalog.tools().cloned().collect();
    let names = |tool: &Tool| {
        [
            tool_key(tool.name.as_str()),
            tool_key(&tool.qualified_name()),
        ]
    };
    let mut taken: BTreeSet<String> = tools.iter().flat_map(names).collect();
    for offered in servers.tools() {
        let tool = &offered.tool;
        let own = names(tool);
        if own.iter().any(|name| taken.contains(name)) {
            tracing::warn!(tool = %tool.name, "a tool of an MCP server is not offered: another tool has its name");
            continue;
        }
        taken.extend(own);
        tools.push(tool.clone());
    }
    Catalog::new(tools)
}

/// Tells when there are other tools than before, for doors whose clients keep a list of them.
#[derive(Debug, Clone)]
pub struct CatalogWatch {
    plugins: watch::Receiver<Arc<PluginSet>>,
    servers: watch::Receiver<Arc<ServerSet>>,
}

impl CatalogWatch {
    /// The number of the catalog of this moment. It grows with each change, and never otherwise.
    pub fn generation(&self) -> u64 {
        self.plugins.borrow().generation + self.servers.borrow().generation
    }

    /// Waits for a change that was not told yet. Returns the number of the catalog then; `None` when there will be no more changes.
    pub async fn changed(&mut self) -> Option<u64> {
        tokio::select! {
            Ok(()) = self.plugins.changed() => {}
            Ok(()) = self.servers.changed() => {}
            else => return None,
        }
        self.plugins.mark_unchanged();
        self.servers.mark_unchanged();
        Some(self.generation())
    }
}

/// The plugins, servers and tools of each moment. Clones follow the same ones.
#[derive(Debug, Clone)]
pub(crate) struct Offers {
    plugins: watch::Receiver<Arc<PluginSet>>,
    servers: Servers,
    /// The last one that was put together.
    last: Arc<Mutex<Arc<Offer>>>,
}

impl Offers {
    pub(crate) fn new(plugins: watch::Receiver<Arc<PluginSet>>, servers: Servers) -> Self {
        Self {
            plugins,
            servers,
            last: Arc::default(),
        }
    }

    /// What there is at this moment. A call takes it once, at its beginning.
    pub(crate) fn now(&self) -> Arc<Offer> {
        let (plugins, servers) = (self.plugins(), self.servers.set());
        let mut last = self.last.lock().unwrap_or_else(PoisonError::into_inner);
        let is_last = Arc::ptr_eq(&last.plugins, &plugins) && Arc::ptr_eq(&last.servers, &servers);
        if !is_last {
            *last = Arc::new(Offer::of(plugins, servers));
        }
        Arc::clone(&last)
    }

    /// The plugins of this moment.
    pub(crate) fn plugins(&self) -> Arc<PluginSet> {
        Arc::clone(&self.plugins.borrow())
    }

    /// The MCP servers.
    pub(crate) fn servers(&self) -> &Servers {
        &self.servers
    }

    /// Waits until every plugin that was there at start has been looked at.
    pub(crate) async fn has_plugins(&self) {
        self.wait_for(|set| set.is_settled).await;
    }

    /// Waits until every plugin that was there at start has been looked at, and every server that was wanted.
    pub(crate) async fn settled(&self) {
        self.has_plugins().await;
        self.servers.settled().await;
    }

    /// Whether nobody knows yet if there is a tool of this name: its plugin is still being loaded, or its server being started.
    pub(crate) fn is_coming(&self, name: &str) -> bool {
        if self.now().catalog.resolve(name).is_ok() {
            return false;
        }
        self.servers.want_for(name);
        // Anew: a server that nothing had asked for is being started now.
        !self.knows(&self.now(), name)
    }

    /// What there is at the moment when there is a tool of this name. Nobody may know it yet because its plugin is still being loaded, or its
    /// server has to be started.
    ///
    /// Limits: waits for a plugin or a server `patience` at most, and not at all once `cancel` has come.
    pub(crate) async fn with_tool(
        &self,
        name: &str,
        patience: Duration,
        cancel: &Cancel,
    ) -> Arc<Offer> {
        let now = self.now();
        if now.catalog.resolve(name).is_ok() {
            return now;
        }
        self.servers.want_for(name);
        let now = self.now();
        if self.knows(&now, name) {
            return now;
        }
        let mut watch = self.watch();
        let there =
            async { while !self.knows(&self.now(), name) && watch.changed().await.is_some() {} };
        tokio::select! {
            () = there => {}
            () = cancel.cancelled() => {}
            () = tokio::time::sleep(patience) => {}
        }
        self.now()
    }

    /// Whether `offer` tells if there is a tool of this name: it has it, or nothing that may have it is still being loaded or started.
    pub(crate) fn knows(&self, offer: &Offer, name: &str) -> bool {
        let has_servers = self.servers.is_settled_for(&offer.servers, name);
        offer.plugins.is_settled && has_servers || offer.catalog.resolve(name).is_ok()
    }

    /// Follows them from this moment on.
    pub(crate) fn watch(&self) -> CatalogWatch {
        let mut plugins = self.plugins.clone();
        plugins.mark_unchanged();
        CatalogWatch {
            plugins,
            servers: self.servers.watch(),
        }
    }

    async fn wait_for(&self, is_so: impl Fn(&PluginSet) -> bool) {
        let mut plugins = self.plugins.clone();
        // An error means that the keeper has ended: then nothing will change any more.
        drop(plugins.wait_for(|set| is_so(set)).await);
    }
}
