//! What results are made of, and whether a conversation was shown any of it.

use std::collections::BTreeSet;
use std::path::Path;

use zeph_core::command::CommandLine;
use zeph_core::execution::ExecutionFacts;
use zeph_core::id::{CallId, OverflowId};
use zeph_core::output::ToolOutput;
use zeph_core::policy::{Label, LabelKind, Policy, private_line, untrusted_line};
use zeph_filter::compression::FILTERED;

use super::{GovernanceRoom, told};
use crate::clock::now_ms;
use crate::overflow::{OMITTED, STORED};
use crate::session::Session;

impl GovernanceRoom {
    /// Gives the labels of a result to the conversation that was shown it, and to the handle of what it was not shown.
    pub(super) async fn label(
        &self,
        session: &Session,
        id: CallId,
        output: &ToolOutput,
        facts: &ExecutionFacts,
    ) -> Vec<String> {
        let trajectory = session.trajectory();
        let Some(mut labels) = trajectory.result_labels(id, facts) else {
            return Vec::new();
        };
        let mut located = output
            .locations
            .iter()
            .map(|location| Path::new(&location.path));
        labels.extend(
            located
                .find(|path| self.private.holds(path))
                .map(private_label),
        );
        let kinds = kinds(&labels);
        self.hold(session, labels, output).await;
        kinds
    }

    /// What follows from the end of a command that ran in the background.
    pub(crate) async fn ended_in_background(
        &self,
        session: &Session,
        (policy, line): (&Policy, Option<&CommandLine>),
        output: &ToolOutput,
        facts: &ExecutionFacts,
    ) {
        let (Some(line), true) = (line, policy.governance.flow.is_some()) else {
            return;
        };
        let private = private_line(&self.private, line);
        let private = private.as_deref().map(private_label);
        let untrusted = untrusted_line(policy, line).source(&facts.hosts);
        let untrusted = untrusted.map(|host| Label::new(LabelKind::Untrusted, &host));
        let labels = private.into_iter().chain(untrusted).collect();
        self.hold(session, labels, output).await;
    }

    /// Gives `labels` to what holds `output`.
    pub(crate) async fn hold(&self, session: &Session, labels: Vec<Label>, output: &ToolOutput) {
        if labels.is_empty() {
            return;
        }
        if let Some(handle) = output.overflow {
            session.trajectory().keep_handle(handle, &labels);
            self.keep(session, Some(handle), labels.clone()).await;
        }
        if shows_content(output.produced()) {
            let news = session.trajectory().hold(labels);
            if !news.is_empty() {
                self.keep(session, None, news).await;
            }
        }
    }

    async fn keep(&self, session: &Session, handle: Option<OverflowId>, mut labels: Vec<Label>) {
        let redactor = self.secrets.redactor();
        labels
            .iter_mut()
            .for_each(|label| redactor.clean(&mut label.source));
        let kept = self
            .store
            .keep_labels(session.conversation, handle, labels, now_ms());
        told(kept.await, "labels cannot be kept");
    }
}

/// The kinds of labels, each once, as they stand in records.
pub(super) fn kinds(labels: &[Label]) -> Vec<String> {
    let kinds: BTreeSet<LabelKind> = labels.iter().map(|label| label.kind).collect();
    kinds.iter().map(|kind| kind.label().to_owned()).collect()
}

/// The label of a private file.
pub(crate) fn private_label(path: &Path) -> Label {
    Label::new(LabelKind::Private, &path.to_string_lossy())
}

/// Whether a text for a model has more than what the host says about content that it does not show.
fn shows_content(text: &str) -> bool {
    let is_notice = |line: &str| {
        line.is_empty()
            || line.starts_with(STORED)
            || line.starts_with(FILTERED)
            || line.starts_with("[note] ")
            || line.starts_with("[full output not stored")
            || line.starts_with("[… ") && line.ends_with(OMITTED)
    };
    text.lines().any(|line| !is_notice(line.trim()))
}

#[cfg(test)]
mod tests {
    use super::shows_content;

    #[test]
    fn notices_are_no_content() {
        for (text, expect) in [
            ("", false),
            ("\n\n", false),
            (
                "[output filtered: 19 lines beside the goal]\n[full output stored — ID: overflow:x — 9 bytes]",
                false,
            ),
            ("[… 900 characters omitted …]", false),
            (
                "KEY=1\n[full output stored — ID: overflow:x — 9 bytes]",
                true,
            ),
            ("KEY=1", true),
        ] {
            assert_eq!(shows_content(text), expect, "{text}");
        }
    }
}
