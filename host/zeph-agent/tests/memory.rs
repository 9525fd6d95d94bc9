//! What a long turn holds in memory, counted in bytes of the heap: the transcript, and nothing that grows beside it.

#![expect(clippy::unwrap_used, reason = "a failure of a test is a panic")]

use std::alloc::{GlobalAlloc, Layout, System};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};

use tokio_util::sync::CancellationToken;
use zeph_agent::agent::{Agent, AgentLimits};
use zeph_agent::budget::BudgetLimits;
use zeph_agent::event::{AgentEvent, Journal, Observer, TurnStatus};
use zeph_agent::message::{
    Arguments, AssistantTurn, Item, ItemView, Origin, StopReason, ToolCall, Turn,
};
use zeph_agent::tool_host::{CallEnd, CallEndKind, HostMessage, ToolHost};
use zeph_agent::transcript::{Transcript, TranscriptEntry, UserEntry};
use zeph_agent::{
    ModelRequest, OnEvent, Pending, Prices, Provider, ProviderError, ProviderKind, Reply,
    RequestPreview, ToolDefinition, Usage,
};

/// Rounds of calls of the turns that are measured.
const N_ROUNDS: usize = 1_000;

/// Bytes of each result.
const RESULT_BYTES: usize = 4_000;

/// Bytes of the heap that are in use.
static LIVE: AtomicUsize = AtomicUsize::new(0);

/// The counts are of the whole process.
static ALONE: Mutex<()> = Mutex::new(());

struct CountingAllocator;

#[expect(unsafe_code, reason = "only an allocator sees every allocation")]
// SAFETY: every call is handed on to the allocator of the system as it is; a counter changes besides.
unsafe impl GlobalAlloc for CountingAllocator {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        LIVE.fetch_add(layout.size(), Ordering::Relaxed);
        // SAFETY: the caller's promises are those that the system asks for.
        unsafe { System.alloc(layout) }
    }

    unsafe fn dealloc(&self, pointer: *mut u8, layout: Layout) {
        LIVE.fetch_sub(layout.size(), Ordering::Relaxed);
        // SAFETY: the caller's promises are those that the system asks for.
        unsafe { System.dealloc(pointer, layout) }
    }
}

#[global_allocator]
static ALLOCATOR: CountingAllocator = CountingAllocator;

fn live() -> usize {
    LIVE.load(Ordering::Relaxed)
}

/// Calls a tool as often as it is asked to, then has finished; notes what each request holds.
#[derive(Debug)]
struct CallingModel {
    origin: Origin,
    rounds_left: AtomicUsize,
    /// Bytes in use when the last request was begun, before its turns were made.
    before: Arc<AtomicUsize>,
    /// Bytes beyond that while it was sent, and the turns that it had.
    held: Mutex<(usize, usize)>,
}

impl CallingModel {
    fn answer(&self) -> AssistantTurn {
        let left = self.rounds_left.load(Ordering::Relaxed);
        if left == 0 {
            return self.says("done");
        }
        self.rounds_left.store(left - 1, Ordering::Relaxed);
        let call = ToolCall {
            id: format!("call-{left}"),
            name: "read".to_owned(),
            arguments: Arguments::read(&format!("{{\"n\":{left}}}")),
        };
        self.turn(ItemView::Call(call), StopReason::ToolCalls)
    }

    fn says(&self, text: &str) -> AssistantTurn {
        self.turn(ItemView::Text(text.to_owned()), StopReason::EndTurn)
    }

    fn turn(&self, view: ItemView, stop: StopReason) -> AssistantTurn {
        AssistantTurn {
            origin: self.origin.clone(),
            items: vec![Item::neutral(view)],
            stop,
        }
    }
}

impl Provider for CallingModel {
    fn origin(&self) -> &Origin {
        &self.origin
    }

    fn prices(&self) -> Prices {
        Prices::default()
    }

    fn respond<'a>(
        &'a self,
        request: ModelRequest<'a>,
        _on_event: OnEvent<'a>,
    ) -> Pending<'a, Result<Reply, ProviderError>> {
        let held = live().saturating_sub(self.before.load(Ordering::Relaxed));
        *self.held.lock().unwrap() = (held, request.turns.len());
        let bytes: usize = request.turns.iter().map(bytes_of).sum();
        let reply = Reply {
            turn: match request.options.forbids_calls {
                true => self.says("a summary"),
                false => self.answer(),
            },
            usage: Usage {
                input: bytes as u64 / 4,
                ..Usage::default()
            },
            attempts: 1,
        };
        Box::pin(async move { Ok(reply) })
    }

    fn preview(&self, _request: ModelRequest<'_>) -> RequestPreview {
        unreachable!("nothing is previewed")
    }
}

/// What a provider counts of a turn, about.
fn bytes_of(turn: &Turn<'_>) -> usize {
    match turn {
        Turn::User(user) => {
            let results = user.results.iter().map(|result| result.to_text().len());
            let texts = user.content.iter().filter_map(|block| block.as_text());
            results.sum::<usize>() + texts.map(str::len).sum::<usize>()
        }
        Turn::Assistant(answer) => answer.text().len() + 40 * answer.calls().count(),
    }
}

/// Gives each call another result.
#[derive(Debug, Default)]
struct ReadingHost(AtomicUsize);

impl ToolHost for ReadingHost {
    fn definitions(&self) -> Vec<ToolDefinition> {
        Vec::new()
    }

    fn is_read_only(&self, _call: &ToolCall) -> bool {
        true
    }

    async fn begin_turn(&self) -> Vec<HostMessage> {
        Vec::new()
    }

    fn begin_batch(&self, _n_calls: usize) -> Result<(), String> {
        Ok(())
    }

    async fn call(&self, _call: &ToolCall, _cancel: &CancellationToken) -> CallEnd {
        let n = self.0.fetch_add(1, Ordering::Relaxed);
        CallEnd::of(CallEndKind::Done, format!("{n:0>RESULT_BYTES$}"))
    }

    async fn keep(&self, _text: &str) -> Option<String> {
        Some("overflow:1".to_owned())
    }

    async fn standing(&self) -> Vec<String> {
        Vec::new()
    }
}

/// A store is on a disk.
#[derive(Debug)]
struct OnDisk;

impl Journal for OnDisk {
    async fn append(&self, entries: &[TranscriptEntry]) -> Result<(), String> {
        drop(serde_json::to_string(entries).unwrap());
        Ok(())
    }
}

/// Notes the bytes in use when a request begins.
struct Watcher(Arc<AtomicUsize>);

impl Observer for Watcher {
    fn on(&self, event: AgentEvent<'_>) {
        if matches!(event, AgentEvent::Waiting) {
            self.0.store(live(), Ordering::Relaxed);
        }
    }
}

struct Lab {
    agent: Agent<ReadingHost, OnDisk>,
    model: Arc<CallingModel>,
    watcher: Watcher,
}

impl Lab {
    fn new(context_budget_tokens: u64) -> Self {
        let before = Arc::<AtomicUsize>::default();
        let model = Arc::new(CallingModel {
            origin: Origin {
                provider: "fake".to_owned(),
                kind: ProviderKind::Anthropic,
                model: "model".to_owned(),
            },
            rounds_left: AtomicUsize::new(0),
            before: Arc::clone(&before),
            held: Mutex::default(),
        });
        let limits = AgentLimits {
            max_tool_iterations: 100_000,
            context_budget_tokens,
            compaction: true,
            budget: BudgetLimits::default(),
        };
        let provider = Arc::clone(&model) as Arc<dyn Provider>;
        let parts = (ReadingHost::default(), OnDisk);
        Self {
            agent: Agent::new(provider, parts, limits, Vec::new(), Transcript::default()),
            model,
            watcher: Watcher(before),
        }
    }

    /// A turn of so many rounds.
    fn turn(&mut self, n_rounds: usize) {
        self.model.rounds_left.store(n_rounds, Ordering::Relaxed);
        let user = UserEntry {
            text: "go on".to_owned(),
            attachments: Vec::new(),
            context: String::new(),
            is_summary: false,
            is_by_model: false,
        };
        let runtime = tokio::runtime::Builder::new_current_thread()
            .build()
            .unwrap();
        let cancel = CancellationToken::new();
        let end = runtime.block_on(self.agent.turn(user, &self.watcher, &cancel));
        assert_eq!(end.status, TurnStatus::Done);
    }
}

#[test]
fn a_turn_of_1000_rounds_holds_its_transcript_and_nothing_besides() {
    let _alone = ALONE.lock();
    let mut lab = Lab::new(u64::MAX / 100);
    lab.turn(1);
    let before = live();
    lab.turn(N_ROUNDS);
    let grown = live() - before;
    let copy = {
        let before = live();
        let entries = lab.agent.transcript().entries().to_vec();
        let bytes = live() - before;
        drop(entries);
        bytes
    };
    assert!(copy > N_ROUNDS * RESULT_BYTES, "{copy}");
    // A list that grows has room for twice as many entries at most; nothing of their text is kept twice.
    let room = size_of_val(lab.agent.transcript().entries());
    assert!(grown < copy + room + 64 * 1024, "{grown} for {copy}");
    let (held, n_turns) = *lab.model.held.lock().unwrap();
    assert!(n_turns > 2 * N_ROUNDS, "{n_turns}");
    assert!(held < n_turns * 280, "{held} for {n_turns} turns");
    assert!(size_of::<TranscriptEntry>() <= 80);
}

#[test]
fn a_conversation_that_is_compacted_stays_as_large_as_it_is() {
    let _alone = ALONE.lock();
    let mut lab = Lab::new(20_000);
    let mut most = [0, 0];
    for most in &mut most {
        for _ in 0..N_ROUNDS / 20 {
            lab.turn(10);
            *most = live().max(*most);
        }
    }
    assert!(most[1] < most[0] + most[0] / 20, "{most:?}");
}
