//! What results are made of, and whether a conversation was shown any of it.

use std::collections::BTreeSet;
use std::fs::Metadata;
use std::io;
use std::os::unix::fs::MetadataExt as _;
use std::path::Path;

use zeph_core::category::ErrorPhase;
use zeph_core::command::CommandLine;
use zeph_core::execution::{ExecutionFacts, PRIVATE_FILES_MAX, PrivateFile};
use zeph_core::id::{CallId, OverflowId};
use zeph_core::output::{Outcome, ToolOutput};
use zeph_core::policy::{
    Label, LabelKind, Policy, PrivateSource, UntrustedResult, may_keep_files, may_show_files,
    private_files_of, untrusted_line,
};
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
        if self.private.is_empty() {
            labels.retain(|label| label.kind != LabelKind::Private);
        }
        let located = output
            .locations
            .iter()
            .map(|location| Path::new(&location.path));
        let located = located.filter(|path| self.private.holds(path));
        labels.extend(located.take(PRIVATE_FILES_MAX + 1).map(private_label));
        let labels = each_once(labels);
        let kinds = kinds(&labels);
        if trajectory.is_shell(id) == Some(false) && is_told_by_tool(output) {
            let told = labels.iter().filter(|label| !is_gone(label));
            self.holds(session, told.cloned().collect()).await;
        }
        self.hold(session, labels, (output, trajectory.may_keep(id)))
            .await;
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
        let Some(line) = line else { return };
        let named = private_files_of(&policy.governance.followed(), line);
        let private = private_labels(&named, facts, may_show_files(line));
        let untrusted = untrusted_label(&untrusted_line(policy, line), facts);
        let labels = each_once(private.into_iter().chain(untrusted).collect());
        self.hold(session, labels, (output, may_keep_files(line)))
            .await;
    }

    /// Gives `labels` to what holds `output`: its handle, and the conversation when it was shown any of it. `is_kept`: the call may have
    /// left what it read in a file, where it can be had under any name.
    pub(crate) async fn hold(
        &self,
        session: &Session,
        labels: Vec<Label>,
        (output, is_kept): (&ToolOutput, bool),
    ) {
        if labels.is_empty() {
            return;
        }
        if let Some(handle) = output.overflow {
            session.trajectory().keep_handle(handle, &labels);
            self.keep(session, Some(handle), labels.clone()).await;
        }
        if is_kept || shows_content(output.produced()) {
            self.holds(session, labels).await;
        }
    }

    /// Gives `labels` to a conversation, also after a restart.
    pub(crate) async fn holds(&self, session: &Session, labels: Vec<Label>) {
        let news = session.trajectory().hold(labels);
        if !news.is_empty() {
            self.keep(session, None, news).await;
        }
    }

    /// What the text of a call may be made of: what its conversation holds, and the handles it names. Without known secrets.
    pub(crate) fn carried(&self, session: &Session, id: CallId) -> Vec<Label> {
        let trajectory = session.trajectory();
        let mut labels: Vec<Label> = trajectory.held().labels().cloned().collect();
        labels.extend(trajectory.passed(id));
        let redactor = self.secrets.redactor();
        labels
            .iter_mut()
            .for_each(|label| redactor.clean(&mut label.source));
        labels
    }

    /// A person agreed to a call: what the conversation holds may go where that call goes, also after a restart.
    pub(super) async fn release(&self, session: &Session, id: CallId) {
        let Some((mut destination, mut labels)) = session.trajectory().release(id) else {
            return;
        };
        // As they are recalled: what is redacted there is asked about again.
        let redactor = self.secrets.redactor();
        redactor.clean(&mut destination);
        labels
            .iter_mut()
            .for_each(|label| redactor.clean(&mut label.source));
        let kept = self
            .store
            .keep_release(session.conversation, destination, labels, now_ms());
        told(kept.await, "a release cannot be kept");
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

/// Labels in an order of their own, none twice.
fn each_once(labels: Vec<Label>) -> Vec<Label> {
    let labels: BTreeSet<Label> = labels.into_iter().collect();
    labels.into_iter().collect()
}

/// The label of the content that a private file has now.
pub(crate) fn private_label(path: &Path) -> Label {
    let label = Label::new(LabelKind::Private, &path.to_string_lossy());
    match content_stamp(path) {
        Some(stamp) => label.stamped(&stamp),
        None => unlike_any(label),
    }
}

/// The label of content that nobody can tell from another.
fn unlike_any(label: Label) -> Label {
    label.stamped(&CallId::new().to_string())
}

/// What tells the content of a file from others that its name had or will have: it changes with every write and every new name. None for
/// a directory, and for what is gone.
fn content_stamp(path: &Path) -> Option<String> {
    let found = path.metadata().ok().filter(Metadata::is_file)?;
    let changed = (found.ctime(), found.ctime_nsec());
    Some(format!(
        "{}:{}:{}.{:09}",
        found.ino(),
        found.len(),
        changed.0,
        changed.1
    ))
}

/// The labels of the private files that a call named and of those that were opened for it, or perhaps opened when its result may show
/// them.
pub(super) fn private_labels(
    named: &[PrivateSource],
    facts: &ExecutionFacts,
    may_show_files: bool,
) -> Vec<Label> {
    let named = named.iter().map(|source| match source.is_current {
        true => private_label(&source.path),
        false => unlike_any(private_label(&source.path)),
    });
    let opened = facts.private_files.iter().enumerate();
    let opened = opened.filter_map(|(n, file)| match file {
        // It stands for others as well.
        PrivateFile::Opened(path) if n >= PRIVATE_FILES_MAX => {
            Some(unlike_any(private_label(Path::new(path))))
        }
        PrivateFile::Opened(path) => Some(private_label(Path::new(path))),
        PrivateFile::Unknown(path) => {
            let source = format!("{path} (not all of it could be watched)");
            may_show_files.then(|| Label::new(LabelKind::Private, &source))
        }
    });
    named.chain(opened).collect()
}

/// The label of a result with content of the network; of one that is kept, that which was received when it was made.
pub(super) fn untrusted_label(result: &UntrustedResult, facts: &ExecutionFacts) -> Option<Label> {
    let source = result.source(&facts.hosts);
    let source = source.or_else(|| result.source(&facts.earlier_hosts));
    source.map(|host| Label::new(LabelKind::Untrusted, &host))
}

/// Whether the output says in the words of its tool why the call failed: it may repeat there what it received or read. What a command says
/// is its output.
fn is_told_by_tool(output: &ToolOutput) -> bool {
    match &output.outcome {
        Outcome::Done => false,
        Outcome::Failed(failure) => {
            !matches!(failure.phase, ErrorPhase::Setup | ErrorPhase::ParamHandling)
        }
    }
}

/// Whether the private file of a label is not there: then nothing of it was read.
fn is_gone(label: &Label) -> bool {
    let is_missing = |error: io::Error| error.kind() == io::ErrorKind::NotFound;
    // A path that was cut names nothing.
    label.kind == LabelKind::Private
        && !label.source.ends_with('…')
        && Path::new(&label.source)
            .symlink_metadata()
            .is_err_and(is_missing)
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
