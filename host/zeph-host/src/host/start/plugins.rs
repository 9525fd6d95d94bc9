//! What a start offers: the tools of the host, the plugins of the program and those of the folders.

use std::sync::Arc;

use tokio::sync::watch;
use tokio::task::JoinSet;
use zeph_config::Config;
use zeph_core::id::PluginId;
use zeph_core::tool::Tool;
use zeph_engine::{CompileEvent, CompileListener, Engine, EngineOptions, Plugin, SharedArtifacts};
use zeph_plugins::component::Component;
use zeph_plugins::event::compile_listener;
use zeph_plugins::keeper::{self, Keeper};
use zeph_plugins::set::{PluginSet, ProgramParts, VettedPlugin};
use zeph_store::SealKeyFile;

use super::{SHARED_CACHE_KEYS, unread};
use crate::clock::now_ms;
use crate::filtering::wasm::Components;
use crate::host::{StartError, StartOptions};
use crate::shell::Native;
use crate::signatures::Signatures;
use crate::{builtin, heap, scheduler};

/// The host's own tools, and nothing else.
pub(crate) fn own_tools(
    config: &Config,
    options: &StartOptions,
) -> Result<watch::Receiver<Arc<PluginSet>>, StartError> {
    let fixed = ProgramParts {
        plugins: Vec::new(),
        builtin: builtin_tools(config, options),
    };
    let mut set = PluginSet::without_folders(&fixed).map_err(StartError::Catalog)?;
    // To a request for a tool of a plugin, this must not look like all there is.
    set.is_settled = options.native.is_some();
    Ok(watch::channel(Arc::new(set)).1)
}

/// Starts the engine, and to keep the plugins of the program and of the folders.
pub(crate) async fn keep_plugins(
    config: &Config,
    options: &StartOptions,
    (tasks, hints): (&mut JoinSet<()>, watch::Receiver<i64>),
) -> Result<(Components, watch::Receiver<Arc<PluginSet>>), StartError> {
    let engine = engine(config, options)?;
    let components = Components::new(&engine, &options.program);
    let plugins = own_plugins(&engine, config, &options.components).await?;
    beside(options, &plugins)?;
    let fixed = ProgramParts {
        plugins,
        builtin: builtin_tools(config, options),
    };
    // Beside the rest of the start; a call that comes before it is over waits for it.
    let is_needed = |own: &&Arc<VettedPlugin>| options.is_server || offers_expected(own, options);
    let needed = fixed.plugins.iter().filter(is_needed).cloned();
    tasks.spawn(warm(needed.collect()));
    let kept = Keeper::start(keeper::KeeperOptions {
        engine,
        limits: config.limits,
        clock: now_ms,
        folders: match config.tools_enabled {
            true => config.plugins.folders.clone(),
            false => Vec::new(),
        },
        n_typed: config.plugins.n_typed,
        cache_dir: config.engine.cache_dir.clone(),
        fixed,
        gives_names: config.tools_enabled,
        watch: options.is_server && config.plugins.watch,
        hints: Some(hints),
        signatures: Signatures::of(config),
        tell: options.tell.clone(),
    });
    // A conflict between the host's own tools is a defect of the program: it must not start.
    let (keeper, plugins) = kept.map_err(StartError::Catalog)?;
    tasks.spawn(keeper.run());
    Ok((components, plugins))
}

fn engine(config: &Config, options: &StartOptions) -> Result<Engine, StartError> {
    let shared = shared_artifacts(config, options)?;
    let options = EngineOptions {
        guest_threads: u32::try_from(config.engine.guest_threads.get()).unwrap_or(u32::MAX),
        pooled: options.is_server,
        cache_dir: config.engine.cache_dir.clone(),
        on_compile: Some(on_compile(options)),
    };
    Engine::sharing(&options, shared).map_err(StartError::Engine)
}

/// Tells how compiling gets on. A server, which stays, then gives back the memory that held the artifact.
fn on_compile(options: &StartOptions) -> CompileListener {
    let (told, is_server) = (
        options.tell.clone().map(compile_listener),
        options.is_server,
    );
    CompileListener::new(move |event| {
        let is_over = matches!(
            event,
            CompileEvent::Finished { .. } | CompileEvent::Failed { .. }
        );
        if let Some(told) = &told {
            told.tell(event);
        }
        if is_server && is_over {
            heap::give_back();
        }
    })
}

/// The compiled components that servers share (`engine.shared_cache_dir`). Commands have none: they start too often to read the keys.
fn shared_artifacts(
    config: &Config,
    options: &StartOptions,
) -> Result<Option<SharedArtifacts>, StartError> {
    let shared = config.engine.shared_cache.as_ref();
    let Some(shared) = shared.filter(|_| options.is_server) else {
        return Ok(None);
    };
    let keys = SealKeyFile::new(&shared.keys, SHARED_CACHE_KEYS).read();
    let keys = keys.map_err(|error| unread(&error))?;
    Ok(Some(SharedArtifacts::new(&shared.dir, keys)))
}

/// Whether the one call that will be made is of this plugin.
fn offers_expected(own: &VettedPlugin, options: &StartOptions) -> bool {
    let Some(expected) = options.expected_tool.as_deref() else {
        return false;
    };
    let mut tools = own.plugin.tools().iter();
    tools.any(|tool| tool.name.as_str() == expected || tool.qualified_name() == expected)
}

/// Loads plugins of the program one after the other: a call of one of them waits for one other at most.
async fn warm(plugins: Vec<Arc<VettedPlugin>>) {
    for own in plugins {
        if let Err(error) = own.plugin.warm().await {
            tracing::error!(
                error = &error as &dyn std::error::Error,
                plugin = %own.plugin.id(),
                "a plugin of the host cannot be loaded"
            );
        }
    }
}

/// The plugins that are part of the program. Those that were made with it need not be compiled to be known.
async fn own_plugins(
    engine: &Engine,
    config: &Config,
    components: &[Component],
) -> Result<Vec<Arc<VettedPlugin>>, StartError> {
    let mut plugins = Vec::new();
    for component in components.iter().filter(|_| config.tools_enabled) {
        let (id, bytes) = (PluginId(component.name.to_owned()), component.bytes);
        let plugin = match component.tools() {
            Some(tools) => Plugin::embedded(engine, id, component.digest(), bytes, tools),
            None => Plugin::load(engine, id, bytes(), config.limits)
                .await
                .map_err(StartError::Plugin)?,
        };
        plugins.push(component.with(plugin).map_err(StartError::Manifest)?);
    }
    Ok(plugins)
}

/// Compares the names of the program's executors with those of all others.
fn beside(options: &StartOptions, plugins: &[Arc<VettedPlugin>]) -> Result<(), StartError> {
    if options.backends.tools().is_empty() {
        return Ok(());
    }
    let own: Vec<Tool> = builtin::tools()
        .into_iter()
        .chain(scheduler::tools::tools())
        .chain(Native::tools())
        .collect();
    let of_plugins = plugins.iter().flat_map(|own| own.plugin.tools());
    let beside = options.backends.beside(of_plugins.chain(&own));
    beside.map_err(StartError::Backend)
}

/// The tools that are part of the program.
pub(crate) fn fixed(config: &Config, components: &[Component]) -> Vec<Tool> {
    let components = components.iter().filter(|_| config.tools_enabled);
    let of_plugins = components.filter_map(Component::tools).flatten();
    of_plugins
        .chain(builtin_tools(config, &StartOptions::default()))
        .collect()
}

/// The tools that no plugin offers.
fn builtin_tools(config: &Config, options: &StartOptions) -> Vec<Tool> {
    let scheduling = match config.scheduler {
        Some(_) => scheduler::tools::tools(),
        None => Vec::new(),
    };
    let own = builtin::tools().into_iter().chain(scheduling);
    let own = own.chain(Native::tools());
    let all = own.chain(options.backends.tools().iter().cloned());
    all.filter(|_| config.tools_enabled).collect()
}
