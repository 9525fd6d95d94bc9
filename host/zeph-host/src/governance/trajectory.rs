//! What a conversation did and read: the words of its last calls, the labels it holds, and the order in which calls are decided.

use std::collections::{BTreeMap, HashMap, VecDeque};
use std::str::FromStr as _;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use serde_json::{Map, Value};
use tokio::sync::watch;
use tokio::time::{Instant, timeout_at};
use zeph_core::execution::ExecutionFacts;
use zeph_core::id::{CallId, OverflowId};
use zeph_core::policy::{CallWords, HeldLabels, Label, MappedCall, PrivateSource, UntrustedResult};
use zeph_engine::Cancel;
use zeph_store::ConversationPast;

use super::known::KnownSequences;
use super::labels::{kinds, private_labels, untrusted_label};

/// How long a call waits for one before it that was asked for and is not being made: its caller may have left it.
const UNBEGUN_PATIENCE: Duration = Duration::from_secs(1);

/// Most handles of one conversation whose labels are known without the store; the first go.
const HANDLES_MAX: usize = 4_096;

/// What a conversation did and read. Clones are handles to one.
#[derive(Debug, Clone, Default)]
pub(crate) struct Trajectory(Arc<TrajectoryRoom>);

#[derive(Debug, Default)]
struct TrajectoryRoom {
    /// Held for moments only.
    state: Mutex<TrajectoryState>,
    changed: watch::Sender<u64>,
}

#[derive(Debug, Default)]
struct TrajectoryState {
    /// Whether an earlier process may have made calls in this conversation that were not looked up yet.
    has_past: bool,
    n_asked: u64,
    /// Calls that were asked for and are not decided yet, in that order, and whether each has begun.
    pending: BTreeMap<u64, (CallId, bool)>,
    /// The calls that count, oldest first.
    calls: VecDeque<EnteredCall>,
    /// Calls that were entered and have not ended.
    running: HashMap<CallId, RunningCall>,
    held: Arc<HeldLabels>,
    handles: HashMap<OverflowId, Vec<Label>>,
    /// The handles, oldest first.
    handle_order: VecDeque<OverflowId>,
}

#[derive(Debug)]
struct EnteredCall {
    id: CallId,
    words: Arc<CallWords>,
    mapped: Arc<MappedCall>,
    /// The set of sequences it was mapped for.
    version: u64,
}

#[derive(Debug)]
struct RunningCall {
    is_shell: bool,
    reads_handles: bool,
    source: ResultSource,
    passed: Vec<Label>,
    destination: Option<String>,
    /// Its words after those of the call before it.
    pattern: Vec<String>,
}

/// A call as it is entered.
#[derive(Debug)]
pub(super) struct RememberedCall {
    pub(super) id: CallId,
    pub(super) words: Arc<CallWords>,
    pub(super) mapped: Arc<MappedCall>,
    pub(super) version: u64,
    pub(super) is_shell: bool,
    /// Whether its result is what stands behind the handles that it names.
    pub(super) reads_handles: bool,
    pub(super) source: ResultSource,
}

/// What the result of a call is made of, as far as that is known before it runs.
#[derive(Debug, Clone, Default)]
pub(super) struct ResultSource {
    /// The private files that it names.
    pub(super) private: Vec<PrivateSource>,
    pub(super) untrusted: UntrustedResult,
    /// Whether it may tell what stands in files of which it is not known whether they were opened.
    pub(super) may_show_files: bool,
    /// Whether it may leave what it read in a file, whatever its result shows.
    pub(super) may_keep: bool,
}

/// A call that was asked for; what is known of it while it runs is dropped with this.
#[derive(Debug)]
pub(crate) struct AskedStep {
    trajectory: Trajectory,
    id: CallId,
}

impl Drop for AskedStep {
    fn drop(&mut self) {
        let mut state = self.trajectory.lock();
        state.pending.retain(|_, (id, _)| *id != self.id);
        state.running.remove(&self.id);
        drop(state);
        self.trajectory.tell();
    }
}

impl AskedStep {
    /// Notes that the call is being made.
    pub(crate) fn begun(&self) {
        let mut state = self.trajectory.lock();
        let own = state.pending.values_mut().find(|(id, _)| *id == self.id);
        if let Some((_, has_begun)) = own {
            *has_begun = true;
        }
        drop(state);
        self.trajectory.tell();
    }
}

impl Trajectory {
    /// Of a conversation that may have begun before.
    pub(crate) fn of(is_old: bool) -> Self {
        let trajectory = Self::default();
        trajectory.lock().has_past = is_old;
        trajectory
    }

    /// Has what other processes did looked up once more.
    pub(crate) fn look_back(&self) {
        self.lock().has_past = true;
    }

    /// Notes that a call is asked for. The order of these calls is that of the caller.
    pub(crate) fn ask(&self, id: CallId) -> AskedStep {
        let mut state = self.lock();
        state.n_asked += 1;
        let number = state.n_asked;
        state.pending.insert(number, (id, false));
        AskedStep {
            trajectory: self.clone(),
            id,
        }
    }

    /// Waits until every call that was asked for before this one is decided about or has ended.
    pub(super) async fn await_turn(&self, id: CallId, cancel: &Cancel) {
        let mut changed = self.0.changed.subscribe();
        let patience = Instant::now() + UNBEGUN_PATIENCE;
        loop {
            changed.mark_unchanged();
            let Some(is_begun) = self.before(id) else {
                return;
            };
            let waits = async {
                if is_begun {
                    changed.changed().await.ok();
                } else if timeout_at(patience, changed.changed()).await.is_err() {
                    self.give_up(id);
                }
            };
            tokio::select! {
                () = waits => {}
                () = cancel.cancelled() => return,
            }
        }
    }

    /// Whether the first call before this one that is not decided has begun; none when there is no such call.
    fn before(&self, id: CallId) -> Option<bool> {
        let state = self.lock();
        let own = state.pending.iter().find(|(_, (other, _))| *other == id);
        let (number, _) = own?;
        let first = state.pending.range(..*number).next();
        first.map(|(_, (_, has_begun))| *has_begun)
    }

    /// Waits no longer for the first call before this one: it counts when it begins.
    fn give_up(&self, id: CallId) {
        let mut state = self.lock();
        let own = state.pending.iter().find(|(_, (other, _))| *other == id);
        let Some((number, _)) = own else { return };
        let first = state.pending.range(..*number).next();
        if let Some(first) = first.map(|(first, _)| *first) {
            state.pending.remove(&first);
        }
    }

    /// Enters a call. Returns the calls before it that count, and itself, in terms of the sequences that are known.
    pub(super) fn enter(
        &self,
        call: RememberedCall,
        known: Option<&Arc<KnownSequences>>,
        n_calls: usize,
    ) -> (Vec<Arc<MappedCall>>, Arc<MappedCall>) {
        let mut state = self.lock();
        state.take_out(call.id);
        state.pending.retain(|_, (id, _)| *id != call.id);
        let window = state.window(known, n_calls);
        let before = state.calls.back();
        let before = before
            .map(|before| before.words.pattern())
            .unwrap_or_default();
        let running = RunningCall {
            is_shell: call.is_shell,
            reads_handles: call.reads_handles,
            source: call.source,
            passed: Vec::new(),
            destination: None,
            pattern: [before, call.words.pattern()].concat(),
        };
        state.running.insert(call.id, running);
        let mapped = Arc::clone(&call.mapped);
        state.calls.push_back(EnteredCall {
            id: call.id,
            words: call.words,
            mapped: call.mapped,
            version: call.version,
        });
        while state.calls.len() > n_calls {
            state.calls.pop_front();
        }
        drop(state);
        self.tell();
        (window, mapped)
    }

    /// The calls that count, oldest first.
    pub(super) fn window(
        &self,
        known: Option<&Arc<KnownSequences>>,
        n_calls: usize,
    ) -> Vec<Arc<MappedCall>> {
        self.lock().window(known, n_calls)
    }

    /// Takes out a call that may not run.
    pub(super) fn take_out(&self, id: CallId) {
        self.lock().take_out(id);
    }

    /// Where a call that was entered can send something.
    pub(super) fn leads_to(&self, id: CallId, destination: Option<String>) {
        if let Some(running) = self.lock().running.get_mut(&id) {
            running.destination = destination;
        }
    }

    /// The labels that a call carries by the handles it names.
    pub(super) fn passes(&self, id: CallId, labels: &[Label]) {
        if let Some(running) = self.lock().running.get_mut(&id) {
            running.passed = labels.to_vec();
        }
    }

    /// The labels of the handles among arguments.
    pub(super) fn passed_by(&self, arguments: &Map<String, Value>) -> Vec<Label> {
        let state = self.lock();
        let mut labels = Vec::new();
        if state.handles.is_empty() {
            return labels;
        }
        for value in arguments.values() {
            collect(value, &state.handles, &mut labels);
        }
        labels.sort();
        labels.dedup();
        labels
    }

    /// The labels that a call which was entered carries by the handles it names.
    pub(super) fn passed(&self, id: CallId) -> Vec<Label> {
        let state = self.lock();
        let running = state.running.get(&id);
        running.map(|call| call.passed.clone()).unwrap_or_default()
    }

    /// Their kinds, for the record.
    pub(crate) fn passed_labels(&self, id: CallId) -> Vec<String> {
        kinds(&self.passed(id))
    }

    /// The words of a call that counts.
    pub(super) fn words(&self, id: CallId) -> Option<Arc<CallWords>> {
        let state = self.lock();
        let mut calls = state.calls.iter().rev();
        let entered = calls.find(|call| call.id == id)?;
        Some(Arc::clone(&entered.words))
    }

    /// The words of a call after those of the call before it.
    pub(super) fn pattern(&self, id: CallId) -> Option<Vec<String>> {
        self.lock()
            .running
            .get(&id)
            .map(|call| call.pattern.clone())
    }

    /// Whether a call that runs is a command; none when it does not run.
    pub(super) fn is_shell(&self, id: CallId) -> Option<bool> {
        self.lock().running.get(&id).map(|call| call.is_shell)
    }

    /// Releases what is held to the destination of a call. Returns both.
    pub(super) fn release(&self, id: CallId) -> Option<(String, Vec<Label>)> {
        let mut state = self.lock();
        let destination = state.running.get(&id)?.destination.clone()?;
        let held = Arc::make_mut(&mut state.held);
        held.release(&destination);
        Some((destination, held.labels().cloned().collect()))
    }

    /// The labels of the result of a call, which ran with these facts.
    pub(super) fn result_labels(&self, id: CallId, facts: &ExecutionFacts) -> Option<Vec<Label>> {
        let state = self.lock();
        let call = state.running.get(&id)?;
        let source = call.source.clone();
        let passed = call.passed.iter().filter(|_| call.reads_handles).cloned();
        let passed: Vec<Label> = passed.collect();
        drop(state);
        let private = private_labels(&source.private, facts, source.may_show_files);
        let untrusted = untrusted_label(&source.untrusted, facts);
        Some(private.into_iter().chain(untrusted).chain(passed).collect())
    }

    /// Whether a call that runs may leave what it read in a file.
    pub(super) fn may_keep(&self, id: CallId) -> bool {
        let state = self.lock();
        state
            .running
            .get(&id)
            .is_some_and(|call| call.source.may_keep)
    }

    /// What the conversation has read.
    pub(crate) fn held(&self) -> Arc<HeldLabels> {
        Arc::clone(&self.lock().held)
    }

    /// The conversation was shown content with these labels. Returns those it did not hold before.
    pub(super) fn hold(&self, labels: Vec<Label>) -> Vec<Label> {
        let mut state = self.lock();
        let held = Arc::make_mut(&mut state.held);
        let news = labels.into_iter().filter(|label| held.hold(label.clone()));
        news.collect()
    }

    /// A stored output has these labels.
    pub(super) fn keep_handle(&self, handle: OverflowId, labels: &[Label]) {
        self.lock().keep_handle(handle, labels);
    }

    /// Whether what earlier processes did is to be looked up.
    pub(super) fn has_past(&self) -> bool {
        self.lock().has_past
    }

    /// Takes what other processes did, once for each time it was to be looked up. What is known already is taken once.
    pub(super) fn recall(&self, past: ConversationPast) {
        let mut state = self.lock();
        if !std::mem::take(&mut state.has_past) {
            return;
        }
        for (handle, label) in past.labels {
            match handle {
                Some(handle) => state.keep_handle(handle, &[label]),
                None => {
                    Arc::make_mut(&mut state.held).hold(label);
                }
            }
        }
        for (destination, labels) in past.releases {
            let labels = labels.into_iter().collect();
            Arc::make_mut(&mut state.held).set_released(&destination, labels);
        }
        for (id, words) in past.calls.into_iter().rev() {
            // A row that cannot be read is older than this program knows; the others count.
            let Ok(words) = serde_json::from_str(&words) else {
                continue;
            };
            if state.calls.iter().any(|known| known.id == id) {
                continue;
            }
            // Ids are in the order of time, and so are calls of several processes.
            let place = state.calls.partition_point(|known| known.id < id);
            let call = EnteredCall {
                id,
                words: Arc::new(words),
                mapped: Arc::default(),
                version: 0,
            };
            state.calls.insert(place, call);
        }
    }

    fn lock(&self) -> MutexGuard<'_, TrajectoryState> {
        self.0.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn tell(&self) {
        self.0.changed.send_modify(|version| *version += 1);
    }
}

impl TrajectoryState {
    /// A sequence extends over `n_calls` calls, the one that is decided among them.
    fn window(
        &mut self,
        known: Option<&Arc<KnownSequences>>,
        n_calls: usize,
    ) -> Vec<Arc<MappedCall>> {
        let Some(known) = known.filter(|known| !known.set.is_empty()) else {
            return Vec::new();
        };
        let n_before = self.calls.len().saturating_sub(n_calls.saturating_sub(1));
        let calls = self.calls.iter_mut().skip(n_before);
        let mapped = calls.map(|call| {
            if call.version != known.version {
                call.mapped = Arc::new(known.set.map(&call.words));
                call.version = known.version;
            }
            Arc::clone(&call.mapped)
        });
        mapped.collect()
    }

    fn take_out(&mut self, id: CallId) {
        self.calls.retain(|call| call.id != id);
        self.running.remove(&id);
    }

    fn keep_handle(&mut self, handle: OverflowId, labels: &[Label]) {
        if !self.handles.contains_key(&handle) {
            self.handle_order.push_back(handle);
        }
        let known = self.handles.entry(handle).or_default();
        for label in labels {
            if !known.contains(label) {
                known.push(label.clone());
            }
        }
        while self.handle_order.len() > HANDLES_MAX {
            if let Some(oldest) = self.handle_order.pop_front() {
                self.handles.remove(&oldest);
            }
        }
    }
}

/// The labels of every handle that a value names: `overflow:UUID` in a text, or the UUID alone.
fn collect(value: &Value, handles: &HashMap<OverflowId, Vec<Label>>, found: &mut Vec<Label>) {
    match value {
        Value::String(text) => {
            let is_around = |letter: char| !(letter.is_ascii_hexdigit() || letter == '-');
            let ids = text.split(is_around).filter(|word| word.len() == 36);
            for id in ids.filter_map(|word| OverflowId::from_str(word).ok()) {
                found.extend(handles.get(&id).into_iter().flatten().cloned());
            }
        }
        Value::Array(items) => items.iter().for_each(|item| collect(item, handles, found)),
        Value::Object(members) => members
            .values()
            .for_each(|member| collect(member, handles, found)),
        _ => {}
    }
}
