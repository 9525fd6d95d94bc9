//! Stages 5 to 7 of the line: what a model is shown of an execution.

use zeph_core::call::TurnContext;
use zeph_core::execution::Execution;
use zeph_core::output::ToolOutput;
use zeph_core::redact::Redactor;

use crate::compression::CompressionSubject;
use crate::filtering::{self, KnownWarnings, OutputSubject};
use crate::host::Rooms;
use crate::session::Session;
use crate::{overflow, redact};

/// What stages 5 to 7 know of an output besides itself.
pub(super) struct OutputContext {
    /// What its caller would take at once, in characters.
    pub(super) wanted_chars: Option<usize>,
    /// What filters take it for.
    pub(super) subject: OutputSubject,
    /// The warnings of the same output, when it was kept.
    pub(super) warnings: KnownWarnings,
    pub(super) exit_code: Option<i32>,
    /// What it is compared with the goal as; none when it is not.
    pub(super) beside: Option<CompressionSubject>,
    /// The turn whose state it adds to.
    pub(super) turn: Option<TurnContext>,
}

/// Stages 5 to 7: what a model is shown of an execution.
pub(super) async fn show(
    host: &Rooms,
    session: &Session,
    (about, redactor): (OutputContext, &Redactor),
    execution: Execution,
) -> ToolOutput {
    let Execution {
        result,
        partial,
        mut notes,
        ..
    } = redact::execution(execution, redactor).await;
    let (raw, failure) = match result {
        Ok(raw) => (raw, None),
        Err(failure) => {
            let Some(partial) = partial else {
                notes.extend(host.filter.filtering.warning(&failure.message));
                return ToolOutput::failed_with(failure, notes);
            };
            // A command says nothing here that its output does not.
            notes.extend(host.filter.filtering.warning(&failure.message));
            (partial, Some(failure))
        }
    };
    session.take_output(about.turn.as_ref(), &raw);
    // 5 filter
    let (strategies, exit_code) = (session.strategies(), about.exit_code);
    let warnings = match redactor.is_empty() {
        true => about.warnings,
        // What is shown of it depends on the secrets of this moment.
        false => KnownWarnings::default(),
    };
    let subject = (about.subject, warnings);
    let shown = filtering::stage(&host.filter, strategies, subject, exit_code, raw).await;
    let shown = (host.compression)
        .stage(about.beside, failure.is_some(), shown)
        .await;
    // 6 redact: what the tool gave was redacted before filters saw it; here, what they made of it
    let shown = redact::stage(shown, redactor);
    // 7 overflow
    let asked = (session.conversation, about.wanted_chars);
    let output = overflow::fit(&host.overflow, asked, shown, notes).await;
    match failure {
        Some(failure) => output.failed_by(failure),
        None => output,
    }
}
