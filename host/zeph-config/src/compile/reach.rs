//! What the program keeps for itself, and what its tools reach besides: nothing of the first may be in the second.

use std::num::NonZeroUsize;
use std::path::{Path, PathBuf};

use zeph_core::capability::FsGrant;

use super::super::locate;
use super::super::own::OwnFiles;
use super::super::places::RootPlace;
use super::super::raw::{RawConfig, RawMcp};
use super::super::{
    AuditConfig, EngineConfig, FilterSettings, HookSettings, PluginsConfig, RuleSettings,
    SandboxSettings, ServeSettings, ShellSettings, StoreLocation,
};
use super::{Compiling, audit, count};

/// What the program keeps for itself.
pub(super) struct Kept {
    pub(super) store: Option<StoreLocation>,
    pub(super) audit: AuditConfig,
    pub(super) engine: EngineConfig,
    pub(super) serve: ServeSettings,
    pub(super) filters: FilterSettings,
    pub(super) mcp_lock: Option<PathBuf>,
}

/// What file tools, plugins and commands reach.
pub(super) struct Reach {
    /// `None` when something was wrong with it.
    pub(super) file: Option<FsGrant>,
    pub(super) shell: ShellSettings,
    pub(super) sandbox: SandboxSettings,
    pub(super) plugins: PluginsConfig,
    pub(super) rules: RuleSettings,
    pub(super) hooks: HookSettings,
    pub(super) judge_file: Option<PathBuf>,
}

impl Compiling<'_> {
    /// Where the program keeps what, and all of it as what is hidden from tools.
    pub(super) fn kept(&mut self, raw: &RawConfig, user_file: Option<&Path>) -> (Kept, OwnFiles) {
        let store = self.store(&raw.store);
        let secrets = store.as_ref().and_then(StoreLocation::secrets);
        let audit = self.audit(&raw.tools, secrets.clone());
        let engine = self.engine(raw);
        let serve = self.serve(&raw.mcp);
        let mcp_lock = user_file.map(locate::lock_beside);
        let filters = self.filters(&raw.tools.filters, user_file);

        let mut own = OwnFiles::of_program(self.surroundings);
        own.add_tree(engine.cache_dir.as_deref());
        if let Some(shared) = &engine.shared_cache {
            own.add_tree(Some(&shared.dir));
            own.add_file(Some(&shared.keys));
        }
        own.add_file(store.as_ref().and_then(StoreLocation::path));
        own.add_tree(secrets.as_deref());
        own.add_file(audit.file.as_deref());
        own.add_file(audit::checkpoint_file(audit.checkpoint_target.as_ref()));
        own.add_file(user_file);
        own.add_file(serve.seal_keys.as_deref());
        own.add_file(mcp_lock.as_deref());
        // What a model is shown is not for tools to change.
        own.add_file(filters.rule_file.as_ref().map(|file| file.path.as_path()));
        let kept = Kept {
            store,
            audit,
            engine,
            serve,
            filters,
            mcp_lock,
        };
        (kept, own)
    }

    fn engine(&mut self, raw: &RawConfig) -> EngineConfig {
        let (raw, home) = (&raw.engine, &self.surroundings.cache_home);
        EngineConfig {
            guest_threads: count(raw.guest_threads).unwrap_or(NonZeroUsize::MIN),
            cache_dir: self.place("engine.cache_dir", &raw.cache_dir, home, ""),
            shared_cache: self.shared_cache(raw),
        }
    }

    /// What is left for tools besides `own`, and the rules over it.
    pub(super) fn reach(
        &mut self,
        raw: &RawConfig,
        user_file: Option<&Path>,
        mut own: OwnFiles,
        mcp_lock: Option<&Path>,
    ) -> Reach {
        let tools = &raw.tools;
        self.find_containers(tools);
        let shell = self.shell(&tools.shell, &tools.file.allowed_paths);
        let mut open = self.existing(&tools.file.allowed_paths);
        open.extend_from_slice(&shell.allowed_paths);
        let folders = self.plugin_folders(&raw.plugins, user_file, &open);
        folders.hide(&mut own);
        let plugins = self.plugins(&raw.plugins, (tools, &raw.mcp), &folders);
        let mut protected = locate::project_folders(self.surroundings);
        protected.extend(folders.protected(&open));
        let mut sandbox = self.sandbox(&tools.sandbox, &shell.allowed_paths, &own, &protected);
        let of_servers = self.places_of_servers(&raw.mcp);
        let rules = self.rules(tools, &shell, &sandbox, user_file, &of_servers);
        let hooks = self.hooks(&raw.hooks, shell.timeout);
        sandbox.hide.extend(rules.hidden.clone());
        // Rules and pins that a tool could change would bind nobody.
        sandbox.protect.extend(rules.policy_file.clone());
        sandbox.protect.extend(mcp_lock.map(Path::to_owned));
        own.add_file(rules.policy_file.as_deref());
        let judge_file = self.judge_file(&tools.adversarial_policy);
        sandbox.protect.extend(judge_file.clone());
        own.add_file(judge_file.as_deref());
        Reach {
            file: self.file(&tools.file, own),
            shell,
            sandbox,
            plugins,
            rules,
            hooks,
            judge_file,
        }
    }

    /// What MCP servers may use; what is wrong with it is said where they are compiled.
    fn places_of_servers(&self, raw: &RawMcp) -> Vec<PathBuf> {
        let servers = raw.servers.values();
        let texts = servers.flat_map(|server| server.allow_read.iter().chain(&server.allow_write));
        let places = texts.filter_map(|text| match self.base().places(text) {
            Ok(RootPlace::Existing(found)) => Some(found),
            Ok(RootPlace::Missing) | Err(_) => None,
        });
        places.flatten().collect()
    }
}
