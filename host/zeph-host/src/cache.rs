//! Between stages 3 and 4 of the line: results of calls that only read, kept to answer the same call again.
//!
//! A result is kept when the call can be told apart by what is known of it: a tool that promises to change nothing and to do
//! the same each time, that is granted no variable, program or secret, and of which the engine saw that it learned nothing but what the
//! guard of files told it, and servers that say how long their answers are good. It answers the same call of the same conversation
//! for as long as the guard would tell the same, and until anything in this host changes files: a tool that can, or a command. Deciding, recording,
//! shortening and redacting go on as ever.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};
use std::time::{Duration, Instant};

use moka::sync::Cache;
use zeph_config::ResultCacheConfig;
use zeph_core::capability::Capability;
use zeph_core::execution::{CachedFacts, Execution, ExecutionFacts, HostUse, PrivateFile};
use zeph_core::id::{ConversationId, Digest, ToolName};
use zeph_core::output::{Content, RawOutput, ResourceBody};
use zeph_core::policy::AuthorizedCall;
use zeph_engine::CallGrant;
use zeph_engine::fs::Touched;
use zeph_plugins::rights::Rights;
use zeph_plugins::set::PluginOrigin;
use zeph_store::{GrantRecord, canonical};

use crate::filtering::KnownWarnings;
use crate::session::Session;
use crate::work::Work;

/// Longest arguments of a call whose result is kept, in bytes. Calls that only read have short ones.
const ARGUMENTS_BYTES_MAX: usize = 64 * 1024;

/// Bytes that a result takes besides its texts and questions.
const ENTRY_BYTES: usize = 512;

/// How the note begins that says how old a result is.
pub(crate) const KEPT: &str = "cached ";

/// The results that are kept.
#[derive(Debug)]
pub(crate) struct ResultCache {
    /// None when results are not used again.
    results: Option<Cache<CallKey, Arc<KeptResult>>>,
    /// The largest result that is kept: a part of the room, so that one does not push out all others.
    result_bytes_max: u64,
    changes: Changes,
}

/// Changes of files by calls of this host.
#[derive(Debug, Default)]
struct Changes {
    n_made: AtomicU64,
    n_running: AtomicUsize,
}

/// A call that can change files; it counts as one until this is dropped.
#[derive(Debug)]
pub(crate) struct ChangeMark<'a>(Option<&'a ResultCache>);

/// What two calls have in common that have the same result.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
struct CallKey {
    plugin: Digest,
    tool: ToolName,
    /// As canonical JSON.
    arguments: String,
    conversation: ConversationId,
    caller: Option<String>,
    /// Of a plugin of others: it is told its turn, and may repeat it.
    turn: Option<String>,
}

/// Where the result of a call is kept.
#[derive(Debug)]
pub(crate) struct Slot {
    key: CallKey,
    terms: Terms,
}

/// What a result depends on besides what it was told: a change of it ends the result.
#[derive(Debug)]
struct Terms {
    grant: CallGrant,
    /// The numbers of the grants it leans on.
    granted: Vec<i64>,
    /// How many changes had been made.
    n_changes: u64,
}

#[derive(Debug)]
struct KeptResult {
    output: RawOutput,
    /// Of what looks like a credential in it.
    warnings: KnownWarnings,
    /// What its labels are made of.
    hosts: Vec<HostUse>,
    private_files: Vec<PrivateFile>,
    bytes: usize,
    terms: Terms,
    touched: Touched,
    made: Instant,
}

impl ResultCache {
    /// An empty one; without `config` it stays empty.
    pub(crate) fn new(config: Option<ResultCacheConfig>) -> Self {
        let results = config.map(|config| {
            let results = Cache::builder()
                .max_capacity(config.bytes_max)
                .weigher(|key: &CallKey, kept: &Arc<KeptResult>| kept.weight(key));
            match config.ttl {
                Some(ttl) => results.time_to_live(ttl).build(),
                None => results.build(),
            }
        });
        Self {
            results,
            result_bytes_max: config.map_or(0, |config| config.bytes_max / 4),
            changes: Changes::default(),
        }
    }

    /// Where the result of `call` is kept; none when it must run.
    pub(crate) fn slot(
        &self,
        session: &Session,
        call: &AuthorizedCall<Work>,
        (rights, origin): (&Rights, PluginOrigin),
    ) -> Option<Slot> {
        self.results.as_ref()?;
        let Work::Guest(work) = call.work() else {
            return None;
        };
        let promises = call.tool().annotations;
        let only_reads = promises.read_only && promises.idempotent;
        let is_plain = work.resumption().is_none() && rights.once().is_empty();
        let is_quiet = !session.shell().commands().has_background();
        let is_kept =
            only_reads && !rights.can_change && is_plain && is_quiet && holds_known(rights);
        if !(is_kept && work.grant().can_be_watched()) {
            return None;
        }
        let frame = call.frame();
        let turn = frame.turn.as_ref().map(|turn| turn.turn_id.clone());
        let key = CallKey {
            plugin: work.digest(),
            tool: call.tool().name.clone(),
            arguments: canonical(call.arguments()),
            conversation: frame.conversation,
            caller: frame.principal.caller_id().map(str::to_owned),
            turn: turn.filter(|_| origin == PluginOrigin::Folder),
        };
        let terms = Terms {
            grant: CallGrant {
                http: None,
                ..work.grant().clone()
            },
            granted: rights.granted.iter().map(|grant| grant.id).collect(),
            n_changes: self.changes.n_made.load(Ordering::SeqCst),
        };
        (key.arguments.len() <= ARGUMENTS_BYTES_MAX).then_some(Slot { key, terms })
    }

    /// The result of an earlier call, when it would be the same now, with what is known of its warnings.
    pub(crate) async fn find(&self, slot: &Slot) -> Option<(Execution, KnownWarnings)> {
        let results = self.results.as_ref()?;
        let kept = results.get(&slot.key)?;
        let is_good = self.is_unchanged(&slot.terms) && kept.terms.are_those_of(&slot.terms);
        if !(is_good && kept.would_be_told_again().await) {
            results.invalidate(&slot.key);
            return None;
        }
        // What changed while it was looked at may have been overlooked.
        let is_unchanged = self.is_unchanged(&slot.terms);
        is_unchanged.then(|| (kept.again(), kept.warnings.clone()))
    }

    /// Keeps what a call gave that was told `touched`.
    pub(crate) fn keep(&self, slot: Slot, execution: &Execution, touched: Option<Touched>) {
        let (Some(results), Ok(output), Some(touched)) =
            (&self.results, &execution.result, touched)
        else {
            return;
        };
        let is_whole = execution.notes.is_empty() && execution.facts.attempts.is_none();
        if !is_whole || !self.is_unchanged(&slot.terms) {
            return;
        }
        let Slot { key, terms } = slot;
        let bytes = bytes(output);
        if (bytes + touched.bytes()) as u64 > self.result_bytes_max {
            return;
        }
        let kept = KeptResult {
            output: output.clone(),
            warnings: KnownWarnings::default(),
            hosts: execution.facts.hosts.clone(),
            private_files: execution.facts.private_files.clone(),
            bytes,
            terms,
            touched,
            made: Instant::now(),
        };
        results.insert(key, Arc::new(kept));
        // What has no room any more would go later.
        results.run_pending_tasks();
    }

    /// Marks a call that can change files, when `is_change`: from now on no earlier result counts, and none that is made meanwhile.
    pub(crate) fn changing(&self, is_change: bool) -> ChangeMark<'_> {
        if !is_change {
            return ChangeMark(None);
        }
        self.changes.n_running.fetch_add(1, Ordering::SeqCst);
        self.forget();
        ChangeMark(Some(self))
    }

    /// Nothing changes, and nothing did since the call of `terms` was decided.
    fn is_unchanged(&self, terms: &Terms) -> bool {
        self.changes.n_running.load(Ordering::SeqCst) == 0
            && self.changes.n_made.load(Ordering::SeqCst) == terms.n_changes
    }

    fn forget(&self) {
        self.changes.n_made.fetch_add(1, Ordering::SeqCst);
        if let Some(results) = &self.results {
            results.invalidate_all();
        }
    }
}

impl Drop for ChangeMark<'_> {
    fn drop(&mut self) {
        if let Some(cache) = self.0 {
            cache.forget();
            cache.changes.n_running.fetch_sub(1, Ordering::SeqCst);
        }
    }
}

impl Terms {
    fn are_those_of(&self, other: &Self) -> bool {
        let Self {
            grant,
            granted,
            n_changes,
        } = self;
        *n_changes == other.n_changes && *granted == other.granted && grant.is_same(&other.grant)
    }
}

impl KeptResult {
    async fn would_be_told_again(self: &Arc<Self>) -> bool {
        if self.touched.is_brief(&self.terms.grant.fs) {
            return self.touched.holds(&self.terms.grant.fs);
        }
        let kept = Arc::clone(self);
        let looked = tokio::task::spawn_blocking(move || kept.touched.holds(&kept.terms.grant.fs));
        looked.await.unwrap_or(false)
    }

    fn again(&self) -> Execution {
        let age = self.made.elapsed();
        let cached = CachedFacts {
            age_ms: u64::try_from(age.as_millis()).unwrap_or(u64::MAX),
            bytes: self.bytes as u64,
        };
        let facts = ExecutionFacts {
            cached: Some(cached),
            earlier_hosts: self.hosts.clone(),
            private_files: self.private_files.clone(),
            ..ExecutionFacts::default()
        };
        let why = match self.touched.is_from_afar() {
            true => "its server lets it be used for longer than that",
            false => "nothing that the call reads has changed since",
        };
        let note = format!("{KEPT}{} ago; {why}", shown(age));
        let ended = Execution::ended(Ok(self.output.clone())).with_notes([note]);
        Execution { facts, ..ended }
    }

    fn weight(&self, key: &CallKey) -> u32 {
        let bytes = self.bytes + self.touched.bytes() + key.arguments.len() + ENTRY_BYTES;
        u32::try_from(bytes).unwrap_or(u32::MAX)
    }
}

/// Whether all that was granted is of kinds whose use is seen: files are watched, and servers say for how long an answer is good.
fn holds_known(rights: &Rights) -> bool {
    let is_known = |grant: &GrantRecord| match grant.capability {
        Capability::Directory { .. } | Capability::Host(_) | Capability::Limit { .. } => true,
        Capability::Program { .. }
        | Capability::Variable { .. }
        | Capability::Secret(_)
        | Capability::Embedder { .. }
        | Capability::Tool { .. } => false,
    };
    rights.granted.iter().all(is_known)
}

fn shown(age: Duration) -> String {
    match age.as_secs() {
        0 => format!("{} ms", age.as_millis()),
        1..60 => format!("{:.1} s", age.as_secs_f64()),
        seconds => format!("{} min {} s", seconds / 60, seconds % 60),
    }
}

/// Bytes of a result.
fn bytes(output: &RawOutput) -> usize {
    let RawOutput {
        content,
        structured,
        locations,
    } = output;
    let structured = structured.as_ref().map(|value| value.to_string().len());
    let locations = locations.iter().map(|location| location.path.len());
    content.iter().map(content_bytes).sum::<usize>()
        + structured.unwrap_or(0)
        + locations.sum::<usize>()
}

fn content_bytes(content: &Content) -> usize {
    match content {
        Content::Text(text) => text.len(),
        Content::Image(blob) | Content::Audio(blob) => blob.data.len(),
        Content::Resource { uri, body, .. } => {
            uri.len()
                + match body {
                    ResourceBody::Text(text) => text.len(),
                    ResourceBody::Bytes(bytes) => bytes.len(),
                }
        }
        Content::Link {
            uri,
            name,
            description,
            ..
        } => uri.len() + name.len() + description.as_ref().map_or(0, String::len),
    }
}
