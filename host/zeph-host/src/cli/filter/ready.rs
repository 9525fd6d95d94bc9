//! What shortening an output outside of calls needs: for a person's command, a log, and another agent's hook.

use std::sync::Arc;

use zeph_config::Config;
use zeph_plugins::event::PluginEvent;
use zeph_store::{Retention, Store};

use crate::cli::context::Context;
use crate::cli::error::CliError;
use crate::cli::out;
use crate::clock::now_ms;
use crate::filtering::Filtering;
use crate::filtering::on_demand::OnDemand;
use crate::filtering::standalone::{self, Original, Printed, StandaloneOutput};

/// The active rules and what they work with.
pub(in crate::cli) struct Ready {
    pub(in crate::cli) config: Config,
    pub(in crate::cli) filtering: Filtering,
    strategies: Arc<OnDemand>,
    program: String,
}

/// Where the original of what is shortened is to be.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(in crate::cli) enum Keep {
    /// In the store, to be read back.
    Stored,
    /// Where it came from.
    Elsewhere,
}

/// The strategies of the plugins in the folders; nothing is looked at yet.
pub(in crate::cli) fn strategies(context: &Context, config: &Config) -> Arc<OnDemand> {
    let quiet = context.quiet;
    let tell = Arc::new(move |event: &PluginEvent| {
        let takes_time = matches!(
            event,
            PluginEvent::Compiling { .. } | PluginEvent::Compiled { .. }
        );
        if takes_time && !quiet {
            out::note(&event.to_string());
        }
    });
    let first_party = context.first_party();
    Arc::new(OnDemand::new(config, first_party, context.program(), tell))
}

impl Ready {
    /// Reads the rules, and reports those that are not used.
    pub(in crate::cli) fn new(context: &Context, config: Config) -> Self {
        let (filtering, unused) = Filtering::new(&config);
        context.notes(&unused);
        Self {
            filtering,
            strategies: strategies(context, &config),
            program: context.program(),
            config,
        }
    }

    /// The strategies of the plugins in the folders.
    pub(in crate::cli) fn strategies(&self) -> Arc<OnDemand> {
        Arc::clone(&self.strategies)
    }

    /// What is to be shown of an output; the output itself when its original cannot be kept.
    ///
    /// Dropping the future leaves at most an unused original behind.
    pub(in crate::cli) async fn shown(
        &self,
        context: &Context,
        printed: &Arc<Printed>,
        keep: Keep,
    ) -> StandaloneOutput {
        let looked = standalone::look(&self.filtering, self.strategies(), printed).await;
        let Some(looked) = looked else {
            return StandaloneOutput::default();
        };
        if keep == Keep::Elsewhere || !looked.needs_store() {
            return looked.show(printed, Original::Elsewhere).await;
        }
        let store = match context.store(&self.config) {
            Ok(store) => store,
            Err(error) => {
                out::error(&error, true);
                return looked.whole();
            }
        };
        let original = Original::Stored {
            store: &store,
            config: &self.config,
            program: &self.program,
        };
        let shown = looked.show(printed, original).await;
        self.sweep(&store).await;
        shown
    }

    /// Deletes old outputs, because a host may never be started here.
    async fn sweep(&self, store: &Store) {
        let swept = store
            .sweep_now(
                Retention::of_outputs(self.config.overflow.retention),
                now_ms(),
            )
            .await;
        if let Err(error) = swept {
            tracing::warn!(
                error = &error as &dyn std::error::Error,
                "old outputs are not deleted"
            );
        }
    }
}

/// Prints an output, or what is to be shown of it.
///
/// Errors: standard output cannot be written.
pub(super) fn print(
    context: &Context,
    shown: &StandaloneOutput,
    raw: &[u8],
) -> Result<(), CliError> {
    match &shown.text {
        Some(text) => out::data(text)?,
        None => out::bytes(raw)?,
    }
    context.notes(&shown.remarks);
    Ok(())
}
