//! Asks the person at the terminal whether a plugin may have what its call was refused for. A model never gets here: only a call
//! that a person typed is asked about. Whether a program's call may run is asked in `terminal`.

pub(crate) mod terminal;

use std::borrow::Cow;
use std::io;
use std::sync::Arc;

use reedline::{Prompt, PromptEditMode, PromptHistorySearch, Signal};
use zeph_core::capability::Capability;
use zeph_core::category::ErrorCategory;
use zeph_core::lifetime::GrantLifetime;
use zeph_core::output::Outcome;
use zeph_plugins::refusal::GrantRequest;

use super::line_input::LineInput;
use super::render::{BOLD, DIM, escape};
use super::repl::say;
use crate::approval::ApprovalAnswer;
use crate::calls::CallReport;
use crate::host::Host;
use crate::session::Session;

/// What there is to ask about after a call, if anything.
pub(crate) fn about(report: &CallReport) -> Option<&GrantRequest> {
    match &report.output.outcome {
        Outcome::Failed(failure) if failure.category == ErrorCategory::PolicyBlocked => {
            report.request.as_ref()
        }
        _ => None,
    }
}

/// The question, with the reasons the plugin gives.
pub(crate) fn question(host: &Host, request: &GrantRequest) -> String {
    let plugin = &request.plugin;
    let plugins = host.plugins();
    let standing = plugins.standing(&plugin.0);
    let wants = standing
        .and_then(|standing| standing.good.as_ref())
        .map(|good| good.manifest.wants.as_slice())
        .unwrap_or_default();
    let mut text = format!("{BOLD}Plugin `{plugin}` asks for:{BOLD:#}\n");
    for capability in &request.capabilities {
        text.push_str(&format!("  {}\n", escape(&capability.to_string())));
        let same_kind = |want: &&zeph_core::manifest::Want| {
            std::mem::discriminant(&want.capability) == std::mem::discriminant(capability)
        };
        for want in wants.iter().filter(same_kind) {
            let of = match &want.capability {
                Capability::Directory { path, .. } => format!(" of `{}`", escape(path)),
                _ => String::new(),
            };
            let reason = escape(&want.reason);
            text.push_str(&format!("    {DIM}it says{of}: {reason}{DIM:#}\n"));
        }
    }
    text
}

/// Waits for the answer to a question about a grant; `None` is no. Blocks.
///
/// Errors: when the terminal cannot be used.
pub(crate) fn answer(session: &Session) -> io::Result<Option<GrantLifetime>> {
    Ok(match choice(GRANT)? {
        ApprovalAnswer::Approved(lifetime) => {
            Some(GrantLifetime::of(lifetime, session.conversation))
        }
        ApprovalAnswer::Denied => None,
    })
}

/// Waits for the answer to a question about a call. Blocks.
///
/// Errors: when the terminal cannot be used.
pub(crate) fn about_call() -> io::Result<ApprovalAnswer> {
    choice(CALL)
}

const GRANT: ApprovalLabel =
    ApprovalLabel("Grant it [o]nce, for this [s]ession, [a]lways, or [N]o");

const CALL: ApprovalLabel = ApprovalLabel("Let it run [o]nce, in its [s]ession, [a]lways, or [N]o");

fn choice(question: ApprovalLabel) -> io::Result<ApprovalAnswer> {
    let mut input = LineInput::of_answers(Arc::default())?;
    input.discard()?;
    loop {
        let Signal::Success(line) = input.read(&question)? else {
            return Ok(ApprovalAnswer::Denied);
        };
        if let Some(answer) = terminal::understood(&line) {
            return Ok(answer);
        }
        say("answer `o`, `s`, `a` or `n`\n");
    }
}

/// The prompt of a question.
struct ApprovalLabel(&'static str);

impl Prompt for ApprovalLabel {
    fn render_prompt_left(&self) -> Cow<'_, str> {
        Cow::Borrowed(self.0)
    }

    fn render_prompt_right(&self) -> Cow<'_, str> {
        Cow::Borrowed("")
    }

    fn render_prompt_indicator(&self, _mode: PromptEditMode) -> Cow<'_, str> {
        Cow::Borrowed("? ")
    }

    fn render_prompt_multiline_indicator(&self) -> Cow<'_, str> {
        Cow::Borrowed("")
    }

    fn render_prompt_history_search_indicator(&self, _search: PromptHistorySearch) -> Cow<'_, str> {
        Cow::Borrowed("")
    }
}
