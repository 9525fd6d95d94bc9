//! One warm instance of a component and the strategies made in it.

use tokio::runtime::Handle;
use tokio::sync::OwnedSemaphorePermit;
use wasmtime::Store;
use wasmtime::component::ResourceAny;
use zeph_core::id::Digest;

use super::bindings::FilterPlugin;
use super::bindings::exports::zeph::filter::strategies as wit;
use super::failure::FilterFailure;
use super::{FILTER_LIMITS, FilterAnswer, FilterConfidence, FilterInput, FilterPiece, state};
use crate::engine::Engine;
use crate::lazy::Compiled;
use crate::limiter::GuestStop;
use crate::log::GuestLog;
use crate::plugin::Plugin;
use crate::state::GuestState;

/// Strategies made in one instance: one for each rule that names the component. No set of rules has as many; with more the
/// instance is made anew.
const MADE_MAX: usize = 64;

/// Most bytes of memory an idle instance may hold. A memory never shrinks: what one huge output took would be held for the
/// rest of the session.
const IDLE_BYTES_MAX: u64 = 48 << 20;

/// An instance, and what was made in it.
pub(super) struct Instance {
    digest: Digest,
    engine: Engine,
    store: Store<GuestState>,
    guest: FilterPlugin,
    made: Vec<StrategyInstance>,
    log: GuestLog,
    /// Its place among the instances that may be kept; without one it serves a single output.
    place: Option<OwnedSemaphorePermit>,
}

/// A strategy made from options, or what it says about them.
struct StrategyInstance {
    name: String,
    options: String,
    strategy: Result<ResourceAny, String>,
}

impl Instance {
    /// Loads the component if need be, and makes an instance of it.
    pub(super) fn new(engine: &Engine, plugin: &Plugin) -> Result<Self, FilterFailure> {
        let compiled = Handle::current().block_on(plugin.0.compiled());
        let pre = match compiled {
            Ok(Compiled::Filter(pre)) => pre,
            Ok(Compiled::Tools(_) | Compiled::Plain(_)) => {
                let reason = "it offers no strategies".to_owned();
                return Err(FilterFailure::NotLoaded(reason));
            }
            Err(error) => return Err(FilterFailure::NotLoaded(error.to_string())),
        };
        let log = GuestLog::new(plugin.id().clone(), FILTER_LIMITS.log_bytes);
        let mut store = state::store(engine.wasm(), log.clone())
            .map_err(|error| FilterFailure::NotLoaded(error.to_string()))?;
        let making = pre.instantiate_async(&mut store);
        let guest =
            within_limits(engine, making).map_err(|error| FilterFailure::of(&error, &log))?;
        Ok(Self {
            digest: plugin.digest(),
            engine: engine.clone(),
            store,
            guest,
            made: Vec::new(),
            log,
            place: engine.place_for_filter(),
        })
    }

    pub(super) fn digest(&self) -> Digest {
        self.digest
    }

    /// Whether it may wait for the next output.
    pub(super) fn is_worth_keeping(&self) -> bool {
        let held = self.store.data().limiter.memory_bytes();
        self.place.is_some() && self.made.len() < MADE_MAX && held <= IDLE_BYTES_MAX
    }

    /// See [`super::FilterSession::apply`]. After a failure that is not of the rule the instance is not to be used again.
    pub(super) fn apply(
        &mut self,
        name: &str,
        options: &str,
        input: &FilterInput<'_>,
    ) -> Result<FilterAnswer, FilterFailure> {
        let strategy = self.strategy(name, options)?;
        self.begin();
        let guest = self.guest.zeph_filter_strategies();
        let input = wit::Input {
            command: input.command,
            exit_code: input.exit_code,
            text: input.text,
        };
        let strategies = guest.strategy();
        let applying = strategies.call_apply(&mut self.store, strategy, input);
        let filtered = within_limits(&self.engine, applying);
        answer(filtered.map_err(|error| self.failure(&error))?)
    }

    /// See [`super::FilterSession::prepare`].
    pub(super) fn prepare(&mut self, name: &str, options: &str) -> Result<(), FilterFailure> {
        self.strategy(name, options).map(drop)
    }

    /// The strategy made from these options, now or before.
    fn strategy(&mut self, name: &str, options: &str) -> Result<ResourceAny, FilterFailure> {
        let is_it = |made: &&StrategyInstance| made.name == name && made.options == options;
        let known = self
            .made
            .iter()
            .find(is_it)
            .map(|made| made.strategy.clone());
        let strategy = match known {
            Some(strategy) => strategy,
            None => self.make(name, options)?,
        };
        strategy.map_err(|words| FilterFailure::of_options(&words))
    }

    fn make(
        &mut self,
        name: &str,
        options: &str,
    ) -> Result<Result<ResourceAny, String>, FilterFailure> {
        self.begin();
        let strategies = self.guest.zeph_filter_strategies().strategy();
        let creating = strategies.call_create(&mut self.store, name, options);
        let strategy = within_limits(&self.engine, creating);
        let strategy = strategy.map_err(|error| self.failure(&error))?;
        self.made.push(StrategyInstance {
            name: name.to_owned(),
            options: options.to_owned(),
            strategy: strategy.clone(),
        });
        Ok(strategy)
    }

    /// Counting begins anew, on this thread; memory counts on.
    fn begin(&mut self) {
        let deadline = std::time::Instant::now() + FILTER_LIMITS.wall_clock;
        self.store.data_mut().limiter.restart(deadline);
        self.store.set_epoch_deadline(1);
    }

    fn failure(&self, error: &wasmtime::Error) -> FilterFailure {
        FilterFailure::of(error, &self.log)
    }
}

/// Runs a guest on this thread to its end or to the end of its time. A guest that computes is ended by the limiter of its store,
/// one that waits by dropping its future.
fn within_limits<T>(
    engine: &Engine,
    work: impl Future<Output = wasmtime::Result<T>>,
) -> wasmtime::Result<T> {
    let _running = engine.running();
    let wall_clock = FILTER_LIMITS.wall_clock;
    let ended = Handle::current().block_on(async { tokio::time::timeout(wall_clock, work).await });
    ended.unwrap_or_else(|_elapsed| Err(GuestStop::WallClock(wall_clock).into()))
}

/// Line numbers become ranges; whether there are such lines is for the reader to look at.
fn answer(filtered: wit::Filtered) -> Result<FilterAnswer, FilterFailure> {
    let wit::Filtered {
        pieces,
        confidence,
        told,
    } = filtered;
    let pieces = pieces.into_iter().map(|piece| match piece {
        wit::Piece::Keep(wit::Lines { first, count }) => {
            let end = first.checked_add(count).ok_or_else(|| {
                FilterFailure::Broken(format!("it kept {count} lines from line {first} on"))
            })?;
            Ok(FilterPiece::Keep(first as usize..end as usize))
        }
        wit::Piece::Note(note) => Ok(FilterPiece::Note(note)),
    });
    Ok(FilterAnswer {
        pieces: pieces.collect::<Result<_, _>>()?,
        confidence: match confidence {
            wit::Confidence::Full => FilterConfidence::Full,
            wit::Confidence::Partial => FilterConfidence::Partial,
            wit::Confidence::Fallback => FilterConfidence::Fallback,
        },
        told: told.into_iter().map(|line_idx| line_idx as usize).collect(),
    })
}
