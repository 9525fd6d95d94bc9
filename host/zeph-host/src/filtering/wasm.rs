//! Filter strategies in components: the nine of the program and those of plugins, warm for one session.
//!
//! The nine run in a component like any stranger's: they read what anybody may have printed. Where their component cannot be had,
//! or the output is longer than what it takes, the same code runs here. What an answer may do to an output is decided by `zeph-filter`.

use std::fmt;
use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError};

use zeph_core::id::PluginId;
use zeph_engine::{
    Engine, FilterAnswer, FilterConfidence, FilterFailure, FilterInput, FilterPiece, FilterSession,
    Plugin, StrategyDefinition,
};
use zeph_filter::{Confidence, Foreign, Input, Piece, STRATEGIES, Selection, push_line};
use zeph_plugins::set::{PluginSet, PluginStrategy};

use super::Strategies;
use super::absent::absent;

/// Where strategies in components run. Clones are handles to one.
#[derive(Clone)]
pub(crate) struct Components(Arc<ComponentsState>);

struct ComponentsState {
    /// None where the nine run in the host.
    engine: Option<Engine>,
    /// How this program is called here, for the commands that messages name.
    program: String,
    /// The nine; not there before the first output is filtered.
    standard: OnceLock<Option<Plugin>>,
}

/// The instances of one session: nobody else's output gets into them. Clones are handles to one.
#[derive(Clone)]
pub(crate) struct SessionStrategies {
    /// Held while one strategy works on one output; outputs of one session wait for each other. None where there is no engine.
    instances: Option<Arc<Mutex<FilterSession>>>,
}

impl Components {
    /// On this engine. Loads nothing.
    ///
    /// Shape: `program` is how this program is called here, for the commands that messages name.
    pub(crate) fn new(engine: &Engine, program: &str) -> Self {
        Self::on(Some(engine.clone()), program)
    }

    /// Without an engine: the nine run in the host, and there are no others.
    pub(crate) fn native(program: &str) -> Self {
        Self::on(None, program)
    }

    fn on(engine: Option<Engine>, program: &str) -> Self {
        Self(Arc::new(ComponentsState {
            engine,
            program: program.to_owned(),
            standard: OnceLock::new(),
        }))
    }

    /// Loads the component of the nine, which takes a second when it was never compiled before. For servers, before the first
    /// output.
    pub(crate) async fn warm(&self) {
        if let Some(standard) = self.standard()
            && let Err(error) = standard.warm().await
        {
            tracing::warn!(
                error = &error as &dyn std::error::Error,
                "the strategies run in the host"
            );
        }
    }

    /// A new session.
    pub(crate) fn session(&self) -> SessionStrategies {
        SessionStrategies {
            instances: self
                .0
                .engine
                .as_ref()
                .map(|engine| Arc::new(Mutex::new(FilterSession::new(engine)))),
        }
    }

    /// The nine and the strategies of `set`, with the instances of one session. They block: only for [`on_thread`](Self::on_thread).
    pub(crate) fn strategies(
        &self,
        session: &SessionStrategies,
        set: Arc<PluginSet>,
    ) -> Strategies {
        Arc::new(self.warm_of(session, set))
    }

    /// The same, to be asked more than strategies are.
    pub(crate) fn warm_of(&self, session: &SessionStrategies, set: Arc<PluginSet>) -> Warm {
        Warm {
            components: self.clone(),
            set,
            session: session.clone(),
        }
    }

    /// Runs `work`, which filters, on a thread that may block, once one of the guest threads is free.
    ///
    /// None when it panicked.
    pub(crate) async fn on_thread<T: Send + 'static>(
        &self,
        work: impl FnOnce() -> T + Send + 'static,
    ) -> Option<T> {
        match &self.0.engine {
            Some(engine) => engine.on_guest_thread(work).await,
            None => tokio::task::spawn_blocking(work).await.ok(),
        }
    }

    /// The component of the nine.
    fn standard(&self) -> Option<&Plugin> {
        let load = || {
            let embedded = zeph_bundle::FILTERS.first()?;
            let id = PluginId(embedded.name.to_owned());
            let engine = self.0.engine.as_ref()?;
            let digest = embedded.digest.parse().ok()?;
            Some(Plugin::embedded_filter(
                engine,
                id,
                digest,
                embedded.bytes,
                definitions(),
            ))
        };
        self.0.standard.get_or_init(load).as_ref()
    }
}

impl fmt::Debug for Components {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Components(…)")
    }
}

impl SessionStrategies {
    /// Forgets what the instances hold, for a session that begins anew.
    pub(crate) fn clear(&self) {
        if let Some(mut instances) = self.lock() {
            instances.clear();
        }
    }

    /// A thread that panicked left whole instances or none.
    fn lock(&self) -> Option<MutexGuard<'_, FilterSession>> {
        let instances = self.instances.as_ref()?;
        Some(instances.lock().unwrap_or_else(PoisonError::into_inner))
    }
}

impl fmt::Debug for SessionStrategies {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("SessionStrategies(…)")
    }
}

/// What the nine are, as their component would list them: it holds the same code.
fn definitions() -> Vec<StrategyDefinition> {
    let definitions = STRATEGIES.iter().map(|definition| StrategyDefinition {
        name: definition.name.to_owned(),
        description: definition.description.to_owned(),
        options: (definition.schema)(),
    });
    definitions.collect()
}

/// The strategies of one moment with the instances of one session.
pub(crate) struct Warm {
    components: Components,
    set: Arc<PluginSet>,
    session: SessionStrategies,
}

impl Warm {
    fn select(
        &self,
        plugin: &Plugin,
        name: &str,
        options: &str,
        input: &Input<'_>,
    ) -> Result<Selection, FilterFailure> {
        let text = input.lines.to_text();
        let input = FilterInput {
            command: input.command,
            exit_code: input.exit_code,
            text: &text,
        };
        let Some(mut instances) = self.session.lock() else {
            let reason = "there is no engine".to_owned();
            return Err(FilterFailure::NotLoaded(reason));
        };
        instances
            .apply(plugin, name, options, &input)
            .map(selection)
    }
}

impl Warm {
    fn strategy(&self, name: &str) -> Result<&PluginStrategy, String> {
        let strategy = self.set.strategy(name);
        strategy.ok_or_else(|| absent(&self.set, name, &self.components.0.program))
    }
}

impl Foreign for Warm {
    fn problem(&self, name: &str, options: &str) -> Option<String> {
        let strategy = match self.strategy(name) {
            Ok(strategy) => strategy,
            Err(why) => return Some(why),
        };
        let (plugin, own_name) = (&strategy.plugin, &strategy.own_name);
        // Without an engine there is no strategy to get here with.
        let prepared = self.session.lock()?.prepare(plugin, own_name, options);
        let failure = prepared.err()?;
        Some(format!("strategy `{name}`: {failure}"))
    }

    fn apply(&self, name: &str, options: &str, input: &Input<'_>) -> Result<Selection, String> {
        let strategy = self.strategy(name)?;
        let selected = self.select(&strategy.plugin, &strategy.own_name, options, input);
        selected.map_err(|failure| format!("strategy `{name}`: {failure}"))
    }

    fn standard(
        &self,
        name: &str,
        options: &str,
        input: &Input<'_>,
    ) -> Option<Result<Selection, String>> {
        let plugin = self.components.standard()?;
        if !plugin.is_at_hand() {
            // No output waits for the compiler: the same code is here.
            return None;
        }
        match self.select(plugin, name, options, input) {
            Ok(selection) => Some(Ok(selection)),
            Err(FilterFailure::TooLong { .. }) => None,
            Err(FilterFailure::NotLoaded(reason)) => {
                tracing::warn!(reason, "the strategies run in the host");
                None
            }
            Err(failure) => Some(Err(format!("strategy `{name}`: {failure}"))),
        }
    }
}

fn selection(answer: FilterAnswer) -> Selection {
    let pieces = answer.pieces.into_iter().map(|piece| match piece {
        FilterPiece::Keep(range) => Piece::Keep(range),
        FilterPiece::Note(note) => Piece::Note(note),
    });
    let mut told = Vec::new();
    for line_idx in answer.told {
        push_line(&mut told, line_idx);
    }
    Selection {
        pieces: pieces.collect(),
        confidence: match answer.confidence {
            FilterConfidence::Full => Confidence::Full,
            FilterConfidence::Partial => Confidence::Partial,
            FilterConfidence::Fallback => Confidence::Fallback,
        },
        told,
    }
}

#[cfg(test)]
mod tests;
