//! What a conversation has read, and what would leave the machine with it.
//!
//! Labels belong to results and to the handles of stored outputs. A conversation holds the labels of what it was shown: a handle that
//! nobody read labels nothing, and one that a call passes on carries its labels to that call. A person who agrees to such a call
//! releases what the conversation holds by then to that destination; what is read later is asked about again, also from a file that
//! was released and has changed since.

mod program;
mod sink;
mod source;

use std::collections::{BTreeMap, BTreeSet};
use std::fmt;
use std::path::Path;
use std::sync::Arc;

use serde::{Deserialize, Serialize};

pub use self::sink::{Destination, destination};
pub use self::source::{
    PrivateSource, UntrustedResult, may_keep_files, may_show_files, private_files_of,
    private_sources, untrusted_line, untrusted_result,
};

use super::finding::Finding;
use super::trajectory::{in_mode, is_always_available};
use super::{BadRule, Mode, Policy, SessionFacts, Verdict};
use crate::call::ResolvedCall;
use crate::failure::one_line;
use crate::globs::{self, LazyGlobs, LetterCase};

/// The check in traces.
pub const FLOW_CHECK: &str = "flow";

/// The rule.
const RULE: &str = "tools.governance.flow";

/// Most patterns that one with choices is taken apart into, before the last of them.
const SIMPLER_MAX: usize = 32;

/// Most labels of one conversation. Beyond them the newest source of a kind stands for all further ones of it.
const LABELS_MAX: usize = 256;

/// Most destinations that a conversation released something to; the first in order goes.
const RELEASED_MAX: usize = 256;

/// Most bytes of a source.
const SOURCE_BYTES_MAX: usize = 300;

/// How a conversation is governed, besides rules about single calls.
#[derive(Debug, Clone)]
pub struct Governance {
    /// Tools that sequences and the flow rule never block, by name.
    pub always_available: Vec<String>,
    /// Whether what was learned from refusals, violations and failures blocks; else it is only recorded.
    pub blocks_risky: bool,
    /// How like a learned sequence calls have to be, from 0 to 1.
    pub similarity_threshold: f64,
    /// What happens to a call that would carry what was read off the machine; `None`: nothing.
    pub flow: Option<Mode>,
    /// The files whose content is private.
    pub private: Arc<PrivatePaths>,
}

impl Governance {
    /// Whether it asks which files calls and commands name.
    pub fn looks_at_files(&self) -> bool {
        self.flow.is_some() && !self.private.is_empty()
    }

    /// The files whose content is private, where it is followed.
    pub fn followed(&self) -> Arc<PrivatePaths> {
        match self.flow {
            Some(_) => Arc::clone(&self.private),
            None => Arc::default(),
        }
    }
}

impl Default for Governance {
    /// No rule.
    fn default() -> Self {
        Self {
            always_available: Vec::new(),
            blocks_risky: false,
            similarity_threshold: 1.0,
            flow: None,
            private: Arc::default(),
        }
    }
}

/// Patterns over real paths of files whose content is private.
#[derive(Debug, Default)]
pub struct PrivatePaths {
    globs: LazyGlobs,
    /// What directories have to be called for something in them to be one of these files: `/a` and `/a/b` for `/a/b/c`.
    above: LazyGlobs,
}

impl PrivatePaths {
    /// Compiles patterns over absolute paths.
    ///
    /// Errors: [`BadRule`] for what is no pattern.
    pub fn new(patterns: &[String]) -> Result<Self, BadRule> {
        let mut globs = Vec::with_capacity(patterns.len());
        let mut above = Vec::new();
        for text in patterns {
            globs::check(text).map_err(|error| BadRule::new(text, error.kind()))?;
            let plain = simpler(text).unwrap_or_else(|| vec![text.clone()]);
            above.extend(plain.iter().flat_map(|text| directories_of(text)));
            globs.extend(plain);
        }
        Ok(Self {
            globs: LazyGlobs::new(globs, LetterCase::Counts),
            above: LazyGlobs::new(above, LetterCase::Counts),
        })
    }

    /// Whether there is none.
    pub fn is_empty(&self) -> bool {
        self.globs.is_empty()
    }

    /// Whether this very path is one of them, whatever lies above it.
    pub fn names(&self, path: &Path) -> bool {
        self.globs.is_match(path, true)
    }

    /// Whether a file, or a directory above it, is private.
    pub fn holds(&self, path: &Path) -> bool {
        path.ancestors().any(|path| self.names(path))
    }

    /// Whether something below `path` is private by the name of `path`: when that changes, it is not any more.
    pub fn lies_below(&self, path: &Path) -> bool {
        self.above.is_match(path, true)
    }
}

/// The patterns that directories fit whose names are a part of `text`. Behind `**` any directory will do.
fn directories_of(text: &str) -> Vec<String> {
    // A choice may hold a `/`.
    let plain = text.split(['{', '[', '\\']).next().unwrap_or_default();
    let cuts = plain.match_indices('/').skip(1);
    let above = cuts.map(|(at, _)| &text[..at]);
    let above = above.filter(|above| !above.ends_with("**"));
    let above = above.filter(|above| globs::check(above).is_ok());
    above.map(str::to_owned).collect()
}

/// A pattern with `{…}` as the patterns it stands for: names and endings are compared without regular expressions, which take long to
/// compile. None where it has none, or is less plain than that.
fn simpler(text: &str) -> Option<Vec<String>> {
    if !text.contains('{') || text.contains(['\\', '[', ']']) {
        return None;
    }
    let mut texts = vec![String::new()];
    let mut rest = text;
    while let Some((before, after)) = rest.split_once('{') {
        let (choices, after) = after.split_once('}')?;
        if choices.contains('{') || before.contains('}') || texts.len() > SIMPLER_MAX {
            return None;
        }
        let longer = |text: &String| {
            // The library knows no empty choice.
            let choices = choices.split(',').filter(|choice| !choice.is_empty());
            let longer = choices.map(|choice| format!("{text}{before}{choice}"));
            longer.collect::<Vec<_>>()
        };
        texts = texts.iter().flat_map(longer).collect();
        if texts.is_empty() {
            return None;
        }
        rest = after;
    }
    let texts = texts.iter().map(|text| format!("{text}{rest}"));
    let texts = texts.map(|text| globs::check(&text).ok().map(|()| text));
    texts.collect()
}

/// What is known of the content of a result.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum LabelKind {
    /// It is from a file of `tools.governance.private_paths`.
    Private,
    /// It is from the network, and nobody vouches for it.
    Untrusted,
}

impl LabelKind {
    /// As it stands in records and in the store.
    pub fn label(self) -> &'static str {
        match self {
            Self::Private => "private",
            Self::Untrusted => "untrusted",
        }
    }

    /// The kind with this label.
    pub fn of_label(label: &str) -> Option<Self> {
        let all = [Self::Private, Self::Untrusted];
        all.into_iter().find(|kind| kind.label() == label)
    }
}

/// A label of a result.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub struct Label {
    /// What is known of the content.
    pub kind: LabelKind,
    /// Where it is from: a path, a host, a server. At most 300 bytes.
    pub source: String,
    /// What tells this content of the source from any that it had or will have; `None` where all of it counts as one. At most 300 bytes.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub stamp: Option<String>,
}

impl Label {
    /// A label; a long source is cut.
    pub fn new(kind: LabelKind, source: &str) -> Self {
        Self {
            kind,
            source: one_line(source, SOURCE_BYTES_MAX),
            stamp: None,
        }
    }

    /// The label of one content of the source.
    pub fn stamped(self, stamp: &str) -> Self {
        Self {
            stamp: Some(one_line(stamp, SOURCE_BYTES_MAX)),
            ..self
        }
    }
}

impl fmt::Display for Label {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.kind {
            LabelKind::Private => write!(f, "`{}`, which is private", self.source),
            LabelKind::Untrusted => write!(f, "untrusted content from `{}`", self.source),
        }
    }
}

/// What a conversation has read, and what it released.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct HeldLabels {
    labels: Vec<Label>,
    /// By destination: what was released to it.
    released: BTreeMap<String, Arc<BTreeSet<Label>>>,
}

impl HeldLabels {
    /// The conversation was shown content with `label`. Returns false when it had been shown that content before.
    pub fn hold(&mut self, label: Label) -> bool {
        if self.labels.contains(&label) {
            return false;
        }
        if self.labels.len() >= LABELS_MAX {
            // What is private stays known whatever is read from the network afterwards.
            let of_kind = self.labels.iter().rposition(|held| held.kind == label.kind);
            self.labels.remove(of_kind.unwrap_or(LABELS_MAX - 1));
            // What was released may now stand for what was not.
            self.released.clear();
        }
        self.labels.push(label);
        true
    }

    /// A person agreed that what is held by now goes to `destination`.
    pub fn release(&mut self, destination: &str) {
        let held = self.labels.iter().cloned().collect();
        self.set_released(destination, held);
    }

    /// What has these labels was released to `destination`, whether it is held or not.
    pub fn set_released(&mut self, destination: &str, labels: BTreeSet<Label>) {
        if self.released.len() >= RELEASED_MAX && !self.released.contains_key(destination) {
            self.released.pop_first();
        }
        self.released
            .insert(destination.to_owned(), Arc::new(labels));
    }

    /// Whether nothing was read that has a label.
    pub fn is_empty(&self) -> bool {
        self.labels.is_empty()
    }

    /// Whether content of the network was read.
    pub fn has_untrusted(&self) -> bool {
        self.labels()
            .any(|label| label.kind == LabelKind::Untrusted)
    }

    /// What is held, oldest first.
    pub fn labels(&self) -> impl Iterator<Item = &Label> {
        self.labels.iter()
    }

    /// What is held and not released to `destination`.
    fn kept_from(&self, destination: &str) -> impl Iterator<Item = &Label> {
        let released = self.released.get(destination);
        let is_released =
            move |label: &Label| released.is_some_and(|released| released.contains(label));
        self.labels().filter(move |label| !is_released(label))
    }
}

/// What the flow rule looks at.
#[derive(Debug, Clone, Copy)]
pub struct FlowFacts<'a> {
    /// What the conversation has read.
    pub held: &'a HeldLabels,
    /// The labels of the handles that the call passes on.
    pub passed: &'a [Label],
    /// Whether what runs the tool can reach the network.
    pub reaches_network: bool,
}

/// Asks before a call carries off the machine what is private, or what untrusted content may have asked for.
pub(super) fn check(policy: &Policy, facts: &SessionFacts<'_>, call: &ResolvedCall) -> Finding {
    let (Some(mode), Some(flow)) = (policy.governance.flow, &facts.flow) else {
        return Finding::pass("not enabled");
    };
    if flow.held.is_empty() && flow.passed.is_empty() {
        return Finding::pass("nothing private or untrusted was read");
    }
    if is_always_available(policy, call) {
        return Finding::pass("the tool is always available");
    }
    let Some(destination) = destination(policy, facts, call) else {
        return Finding::pass("nothing leaves this machine");
    };
    let held = flow.held.kept_from(&destination.key);
    let carried = flow.passed.iter().chain(held);
    let carried: Vec<&Label> = carried
        .filter(|label| destination.minds(label.kind))
        .collect();
    let worst = carried.iter().min_by_key(|label| label.kind);
    let Some(worst) = worst else {
        return Finding::pass("nothing private or untrusted was read that was not released");
    };
    let sources: BTreeSet<_> = carried.iter().map(|label| &label.source).collect();
    let others = match sources.len() - 1 {
        0 => String::new(),
        1 => " and one more source".to_owned(),
        n => format!(" and {n} more sources"),
    };
    let reason = format!(
        "this conversation has read {worst}{others}, and `{}` can send data off this machine (`{RULE}`)",
        one_line(&destination.shown, 120)
    );
    in_mode(mode, Verdict::Ask, (RULE.to_owned(), reason))
}
