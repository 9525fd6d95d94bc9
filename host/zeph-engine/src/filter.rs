//! Filter strategies in components: warm instances of one session, each apply within its limits.
//!
//! A strategy sees one finished output and nothing else: no file, no variable, no network, a clock that stands still and the same
//! random bytes in every process, so that the same output gives the same answer. What may come of an answer is not decided here
//! but by who asked (`zeph-filter`): an answer of this crate is not trusted.

mod bindings;
mod definition;
mod failure;
mod instance;
mod state;

use std::collections::HashMap;
use std::ops::Range;
use std::time::Duration;

use zeph_core::id::Digest;
use zeph_core::limit::CallLimits;

pub(crate) use self::bindings::FilterPluginPre;
pub(crate) use self::bindings::exports::zeph::filter::strategies::StrategyDefinition as Listed;
pub use self::definition::StrategyDefinition;
pub(crate) use self::definition::strategies;
pub use self::failure::FilterFailure;
use self::instance::Instance;
use crate::engine::Engine;
use crate::plugin::Plugin;

/// What one strategy may use for one output, and again to be made.
///
/// Source: the slowest of ours takes a tenth of a second for 16 MiB; an interpreter, twenty times as much. Waiting is no work: the
/// real time is what a busy machine makes of two seconds. 256 MiB hold [`FILTER_TEXT_BYTES_MAX`] with an interpreter around it.
pub const FILTER_LIMITS: CallLimits = CallLimits {
    wall_clock: Duration::from_secs(5),
    cpu: Duration::from_secs(2),
    memory_bytes: 256 << 20,
    table_elements: 100_000,
    output_bytes: ANSWER_BYTES_MAX as u64,
    log_bytes: 4 << 10,
    host_calls: 100_000,
    handles: 64,
};

/// Most bytes of an output that is handed to a component. The largest command output that is kept has as many.
pub const FILTER_TEXT_BYTES_MAX: usize = 16 << 20;

/// Most bytes an answer may come to in the host: every second line of 16 MiB of short lines as a piece of its own.
const ANSWER_BYTES_MAX: usize = 32 << 20;

/// Failures of one strategy in one session before it is left alone. Twice may be chance.
const FAILURES_MAX: u32 = 3;

/// Maximum number of instances per session; the least recently used one is dropped.
const KEPT_MAX: usize = 8;

/// One finished command, as a strategy sees it.
#[derive(Debug, Clone, Copy)]
pub struct FilterInput<'a> {
    /// The simple command whose output this is.
    pub command: &'a str,
    /// `None` when a signal ended it.
    pub exit_code: Option<i32>,
    /// The output: `\n` line ends, no control sequences.
    pub text: &'a str,
}

/// What a strategy answered. It may name lines that are not there, or any line twice.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct FilterAnswer {
    /// What is shown.
    pub pieces: Vec<FilterPiece>,
    /// How sure it is.
    pub confidence: FilterConfidence,
    /// Lines omitted whose content is shown all the same, as the strategy says.
    pub told: Vec<usize>,
}

/// A part of what is shown.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum FilterPiece {
    /// These lines of the output, counted from 0.
    Keep(Range<usize>),
    /// A line of the strategy's own.
    Note(String),
}

/// How sure a strategy is that it understood the output.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum FilterConfidence {
    /// It handled this kind of output as designed.
    Full,
    /// A heuristic matched; something may be missing.
    Partial,
    /// The output was not what it expected.
    Fallback,
}

/// The warm instances of one session. What a component keeps between two outputs stays in the session and ends with it.
pub struct FilterSession {
    engine: Engine,
    /// The one used last is the last.
    kept: Vec<Instance>,
    /// By component and name.
    n_failures: HashMap<(Digest, String), u32>,
}

impl FilterSession {
    /// A session without instances: each is made when it is first needed.
    pub fn new(engine: &Engine) -> Self {
        Self {
            engine: engine.clone(),
            kept: Vec::new(),
            n_failures: HashMap::new(),
        }
    }

    /// Lets the strategy `name` of `plugin`, made from `options` (JSON) once and kept, select from one output.
    ///
    /// Blocks: only for the thread that [`Engine::on_guest_thread`] gives.
    /// Errors: [`FilterFailure`]. An instance that failed is gone; a strategy that failed three times is left alone for the
    /// rest of the session.
    /// Limits: [`FILTER_LIMITS`], besides loading a component that was not needed before.
    pub fn apply(
        &mut self,
        plugin: &Plugin,
        name: &str,
        options: &str,
        input: &FilterInput<'_>,
    ) -> Result<FilterAnswer, FilterFailure> {
        let n_bytes = input.text.len();
        if n_bytes > FILTER_TEXT_BYTES_MAX {
            return Err(FilterFailure::TooLong { n_bytes });
        }
        self.with(plugin, name, |instance| {
            instance.apply(name, options, input)
        })
    }

    /// Makes the strategy `name` of `plugin` from `options` (JSON), if it was not made before, for the outputs to come.
    ///
    /// Blocks as [`apply`](Self::apply) does.
    ///
    /// Errors: those of [`apply`](Self::apply).
    pub fn prepare(
        &mut self,
        plugin: &Plugin,
        name: &str,
        options: &str,
    ) -> Result<(), FilterFailure> {
        self.with(plugin, name, |instance| instance.prepare(name, options))
    }

    /// Lets an instance of `plugin` work for the strategy `name`; one that failed is gone, and counted.
    fn with<T>(
        &mut self,
        plugin: &Plugin,
        name: &str,
        work: impl FnOnce(&mut Instance) -> Result<T, FilterFailure>,
    ) -> Result<T, FilterFailure> {
        let strategy = (plugin.digest(), name.to_owned());
        let n_failures = self.n_failures.get(&strategy).copied().unwrap_or(0);
        if n_failures >= FAILURES_MAX {
            return Err(FilterFailure::Off);
        }
        let worked = self.warm(plugin).and_then(|mut instance| {
            let answer = work(&mut instance);
            let failure = answer.as_ref().err();
            if failure.is_none_or(FilterFailure::is_of_the_rule) {
                self.keep(instance);
            }
            answer
        });
        if worked
            .as_ref()
            .is_err_and(|failure| !failure.is_of_the_rule())
        {
            self.n_failures.insert(strategy, n_failures + 1);
        }
        worked
    }

    /// Forgets everything: instances and failures.
    pub fn clear(&mut self) {
        self.kept.clear();
        self.n_failures.clear();
    }

    fn warm(&mut self, plugin: &Plugin) -> Result<Instance, FilterFailure> {
        let is_of = |instance: &Instance| instance.digest() == plugin.digest();
        match self.kept.iter().position(is_of) {
            Some(idx) => Ok(self.kept.remove(idx)),
            None => Instance::new(&self.engine, plugin),
        }
    }

    fn keep(&mut self, instance: Instance) {
        if !instance.is_worth_keeping() {
            return;
        }
        if self.kept.len() == KEPT_MAX {
            self.kept.remove(0);
        }
        self.kept.push(instance);
    }
}

impl std::fmt::Debug for FilterSession {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("FilterSession")
            .field("n_kept", &self.kept.len())
            .finish_non_exhaustive()
    }
}

#[cfg(test)]
mod tests;
