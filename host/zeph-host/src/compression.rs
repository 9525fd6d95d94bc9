//! After stage 5 of the line: while a conversation has a goal, outputs lose what has little to do with it. What stays and why is the
//! filter room's; here it meets the goal, the configuration and the stored original.
//!
//! It costs an output nothing but its length when something goes wrong here: the output is shown as it is. What a person calls for is never
//! compressed, nor is what the host's own tools give.

use std::sync::{Arc, OnceLock};
use std::time::Duration;

use moka::sync::Cache;
use sha2::{Digest as _, Sha256};
use zeph_agent::budget::CallMeter;
use zeph_agent::embedding::cosine;
use zeph_config::{CompressionSettings, CompressionStrategy};
use zeph_core::id::OverflowId;
use zeph_core::output::{Content, RawOutput};
use zeph_core::policy::AuthorizedCall;
use zeph_core::principal::Principal;
use zeph_core::tool::{Backend, ToolKind};
use zeph_filter::compression::{CompressedText, CompressionRules, compress, sections};
use zeph_store::Store;

use crate::filtering::{BLOCKING_BYTES_MIN, FilteredResult, Shorter};
use crate::goal::{self, SessionGoal};
use crate::governance::VectorSource;
use crate::session::Session;

/// Bytes of a token, about.
const TOKEN_BYTES: usize = 4;

/// Longest output that is compressed, in bytes. A longer one is cut to its head and tail.
const TEXT_BYTES_MAX: usize = 4 * 1024 * 1024;

/// How long an output may take that is compressed on a thread of its own.
const PATIENCE: Duration = Duration::from_secs(5);

/// Bytes of the beginning of a file that stay where a tool is compressed moderately, as documented.
const FILE_HEAD_BYTES: usize = 500;

/// The same of anything else.
const HEAD_BYTES: usize = 1_000;

/// Bytes of what a call asks for that are compared with the goal.
const SAID_BYTES_MAX: usize = 2_048;

/// Bytes of all compressed outputs that are remembered.
const MEMORY_BYTES: u64 = 4 * 1024 * 1024;

/// What is known of an output besides its text: the same means the same result.
type MemoryKey = [u8; 32];

/// The stage, and the outputs it has seen. Clones share them.
#[derive(Debug, Clone)]
pub(crate) struct Compression {
    settings: Arc<CompressionSettings>,
    /// Compares outputs with the goal by their meaning; none where words have to do.
    vectors: Option<Arc<dyn VectorSource>>,
    /// Made with the first of them.
    seen: Arc<OnceLock<Memory>>,
}

type Memory = Cache<MemoryKey, Arc<Option<CompressedText>>>;

/// What an output is the output of.
#[derive(Debug, Clone)]
pub(crate) struct CompressionSubject {
    /// What is asked for: a command, or arguments.
    said: String,
    is_command: bool,
    head_bytes: usize,
    goal: Arc<SessionGoal>,
    /// Whether its meaning may be asked for, which a call pays for.
    is_of_call: bool,
    meter: Option<CallMeter>,
}

impl CompressionSubject {
    /// What comparing it takes is counted by `meter`.
    pub(crate) fn metered(self, meter: Option<&CallMeter>) -> Self {
        Self {
            meter: meter.cloned(),
            ..self
        }
    }
}

impl Compression {
    /// `vectors` are those of the model for embeddings, where there is one.
    pub(crate) fn new(
        settings: CompressionSettings,
        vectors: Option<Arc<dyn VectorSource>>,
    ) -> Self {
        Self {
            vectors: vectors.filter(|_| settings.embeddings),
            settings: Arc::new(settings),
            seen: Arc::default(),
        }
    }

    fn seen(&self) -> &Memory {
        let weight = |_: &MemoryKey, seen: &Arc<Option<CompressedText>>| {
            let bytes = seen.as_ref().as_ref().map_or(0, CompressedText::bytes);
            u32::try_from(bytes + 128).unwrap_or(u32::MAX)
        };
        let memory = || Cache::builder().max_capacity(MEMORY_BYTES).weigher(weight);
        self.seen.get_or_init(|| memory().build())
    }

    /// What the output of a call will be the output of; none when it stays as it is, whatever it says.
    pub(crate) async fn subject<W>(
        &self,
        store: &Store,
        session: &Session,
        call: &AuthorizedCall<W>,
    ) -> Option<CompressionSubject> {
        let (tool, frame) = (call.tool(), call.frame());
        let goal_id = frame.turn.as_ref()?.goal_id.as_deref()?;
        let is_wanted = self.settings.enabled
            && !matches!(frame.principal, Principal::Operator(_))
            && !matches!(tool.backend, Backend::Builtin);
        let names = [tool.name.to_string(), tool.qualified_name()];
        let strategy = names
            .iter()
            .find_map(|name| self.settings.strategies.get(name));
        let head_bytes = match strategy.filter(|_| is_wanted)? {
            CompressionStrategy::None => return None,
            CompressionStrategy::Aggressive => 0,
            CompressionStrategy::Moderate if tool.kind == ToolKind::Read => FILE_HEAD_BYTES,
            CompressionStrategy::Moderate => HEAD_BYTES,
        };
        let said = match call.command() {
            Some(line) => line.text.clone(),
            None => said(call.arguments()),
        };
        Some(CompressionSubject {
            said: said[..said.floor_char_boundary(SAID_BYTES_MAX.min(said.len()))].to_owned(),
            is_command: call.command().is_some(),
            head_bytes,
            goal: goal::of_call(store, session, goal_id).await?,
            is_of_call: true,
            meter: None,
        })
    }

    /// The subject of a command that ended in the background.
    pub(crate) async fn of_command(
        &self,
        store: &Store,
        session: &Session,
        (command, goal_id): (&str, Option<&str>),
    ) -> Option<CompressionSubject> {
        let strategy = self.settings.strategies.get(zeph_shell::tools::BASH)?;
        let head_bytes = match strategy {
            CompressionStrategy::None => return None,
            CompressionStrategy::Aggressive => 0,
            CompressionStrategy::Moderate => HEAD_BYTES,
        };
        let is_wanted =
            self.settings.enabled && !matches!(session.principal(), Principal::Operator(_));
        Some(CompressionSubject {
            said: command.to_owned(),
            is_command: true,
            head_bytes,
            goal: goal::of_call(store, session, goal_id.filter(|_| is_wanted)?).await?,
            is_of_call: false,
            meter: None,
        })
    }

    /// What is to be shown of an output beside the goal. Never fails.
    pub(crate) async fn stage(
        &self,
        subject: Option<CompressionSubject>,
        has_failed: bool,
        mut shown: FilteredResult,
    ) -> FilteredResult {
        let Some(subject) = subject.filter(|subject| !has_failed || self.takes_failed(subject))
        else {
            return shown;
        };
        let Some(text) = text(&shown) else {
            return shown;
        };
        let range = self.settings.threshold_tokens * TOKEN_BYTES + 1..=TEXT_BYTES_MAX;
        if !range.contains(&text.len()) {
            return shown;
        }
        let Some(compressed) = self.compressed(subject, text).await else {
            return shown;
        };
        let handle = OverflowId::new();
        let rendered = compressed.render(text, &format!("overflow:{handle}"));
        let earlier = shown.shorter.take();
        let (line, original, rules) = match earlier {
            Some(earlier) => (earlier.line, earlier.original, earlier.rules),
            None => (None, None, Vec::new()),
        };
        let original = original.or_else(|| shown.printed().map(str::to_owned));
        shown.shorter = Some(Shorter {
            text: rendered,
            line,
            original,
            rules,
            handle: Some(handle),
        });
        shown
    }

    fn takes_failed(&self, subject: &CompressionSubject) -> bool {
        match subject.is_command {
            true => !self.settings.preserves_shell_errors,
            false => !self.settings.preserves_errors,
        }
    }

    /// What is left of a text; from memory where the same was seen before.
    async fn compressed(&self, subject: CompressionSubject, text: &str) -> Option<CompressedText> {
        let key = key(&subject, text);
        if let Some(seen) = self.seen().get(&key) {
            return seen.as_ref().clone();
        }
        let rules = CompressionRules {
            head_bytes: subject.head_bytes,
            goal_aware: self.settings.goal_aware,
            relevance_threshold: self.settings.relevance_threshold,
            preserves_errors: self.settings.preserves_errors,
            preserved_chars_max: self.settings.preserved_chars_max,
        };
        let meant = self.meant(&subject, text).await;
        let look = move |text: &str| {
            let goal = (&subject.goal.words, meant.as_slice());
            compress(text, &subject.said, goal, &rules)
        };
        let compressed = match text.len() < BLOCKING_BYTES_MIN {
            true => look(text),
            false => {
                let text = text.to_owned();
                let work = tokio::task::spawn_blocking(move || look(&text));
                let looked = tokio::time::timeout(PATIENCE, work).await;
                // A machine that is this busy has no time for it; nor is a fault here one of the call.
                looked.ok()?.ok()?
            }
        };
        self.seen().insert(key, Arc::new(compressed.clone()));
        compressed
    }

    /// How near each section of a text is to the goal by its meaning; empty where words have to do.
    async fn meant(&self, subject: &CompressionSubject, text: &str) -> Vec<f64> {
        let Some(source) = self.vectors.as_ref().filter(|_| subject.is_of_call) else {
            return Vec::new();
        };
        let Some(sections) = sections(text).filter(|sections| !sections.is_empty()) else {
            return Vec::new();
        };
        let sections = sections.into_iter().map(str::to_owned).collect();
        let goal = vec![subject.goal.goal.text.clone()];
        let vectors = source.vectors(sections, goal, subject.meter.as_ref()).await;
        let Some((sections, goal)) = vectors else {
            return Vec::new();
        };
        let Some(goal) = goal.first() else {
            return Vec::new();
        };
        sections.iter().map(|one| cosine(one, goal)).collect()
    }
}

fn key(subject: &CompressionSubject, text: &str) -> MemoryKey {
    let mut hasher = Sha256::new();
    hasher.update(subject.goal.id());
    hasher.update(subject.head_bytes.to_le_bytes());
    hasher.update(subject.said.len().to_le_bytes());
    hasher.update(&subject.said);
    hasher.update(text);
    hasher.finalize().into()
}

/// What is shown so far, when that is one text and nothing else.
fn text(shown: &FilteredResult) -> Option<&str> {
    let whole = only_text(&shown.raw)?;
    Some(match &shown.shorter {
        Some(shorter) => &shorter.text,
        None => whole,
    })
}

fn only_text(raw: &RawOutput) -> Option<&str> {
    match raw.content.as_slice() {
        [Content::Text(text)] => Some(text),
        _ => None,
    }
}

/// The texts among the arguments of a call.
fn said(arguments: &serde_json::Map<String, serde_json::Value>) -> String {
    let texts = arguments.values().filter_map(serde_json::Value::as_str);
    texts.collect::<Vec<_>>().join(" ")
}
