//! How long a request takes to build from a long conversation, and from there to its whole answer, with a scripted model on loopback; how
//! long an iteration of the loop takes around it; and how long it takes to choose the tools of a conversation.
//!
//! `cargo bench -p zeph-agent`. The bound to keep for building and for an iteration is 2 ms, for choosing 1 ms; the numbers of other
//! profiles say nothing.

use std::borrow::Cow;
use std::error::Error;
use std::hint::black_box;
use std::io::{self, Write};
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use serde_json::json;
use tokio_util::sync::CancellationToken;
use zeph_agent::agent::{Agent, AgentLimits};
use zeph_agent::budget::BudgetLimits;
use zeph_agent::event::{AgentEvent, Journal, Observer};
use zeph_agent::message::{Block, CallResult, ToolCall, Turn, UserTurn};
use zeph_agent::scripted::{Scenario, ScriptedServer};
use zeph_agent::selection::{Candidate, FilterRules, select};
use zeph_agent::tool_host::{CallEnd, CallEndKind, HostMessage, ToolHost};
use zeph_agent::transcript::{AssistantEntry, ResultEntry, Transcript, TranscriptEntry, UserEntry};
use zeph_agent::{
    ModelRequest, Prices, Provider, ProviderKind, ProviderSettings, RequestOptions, SideSpending,
    Timeouts, ToolDefinition, Usage, connect,
};
use zeph_core::network::{EgressLimits, EgressSettings};
use zeph_egress::Egress;

const N_TURNS: usize = 100;
const N_TOOLS: usize = 50;
const N_ROUNDS: usize = 200;
const LONG: Duration = Duration::from_secs(60);

fn main() -> Result<(), Box<dyn Error>> {
    tokio::runtime::Runtime::new()?.block_on(measure())
}

async fn measure() -> Result<(), Box<dyn Error>> {
    let scenario = Scenario::parse(include_str!("../scenarios/endless.json"))?;
    let server = ScriptedServer::start(scenario).await?;
    let url = server.base_url(ProviderKind::Anthropic);
    let provider = connect(settings(url), &egress())?;
    let tools = tools();
    let mut turns = vec![Turn::User(UserTurn::text("go"))];
    let (mut building, mut answering) = (Vec::new(), Vec::new());
    while turns.len() < N_TURNS {
        round(provider.as_ref(), &tools, &mut turns).await?;
    }
    for _ in 0..N_ROUNDS {
        let started = Instant::now();
        black_box(provider.preview(request(&tools, &turns)));
        building.push(started.elapsed());
        let mut on_event = |_| {};
        let started = Instant::now();
        let reply = provider.respond(request(&tools, &turns), &mut on_event);
        black_box(reply.await?);
        answering.push(started.elapsed());
    }
    report("a request of 100 messages and 50 tools", building, Some(2))?;
    report("the same with its answer over loopback", answering, None)?;
    let provider: Arc<dyn Provider> = Arc::from(provider);
    let looping = looping(&provider, &tools, &turns).await;
    report(
        "an iteration of the loop at 100 messages and 50 tools, with the answer over loopback",
        looping,
        Some(2),
    )?;
    report("the choice among 50 tools", selecting(), Some(1))
}

/// How long an iteration takes: from one request to the next, with its call, whose tool does nothing, and what is recorded of it.
async fn looping(
    provider: &Arc<dyn Provider>,
    tools: &[ToolDefinition],
    turns: &[Turn<'_>],
) -> Vec<Duration> {
    let entries: Vec<TranscriptEntry> = turns.iter().flat_map(entries_of).collect();
    let limits = AgentLimits {
        max_tool_iterations: 1,
        context_budget_tokens: 10_000_000,
        compaction: true,
        budget: BudgetLimits::default(),
    };
    let mut times = Vec::new();
    for _ in 0..N_ROUNDS {
        let transcript = Transcript::load(entries.iter().cloned());
        let parts = (IdleHost(tools.to_vec()), JsonJournal);
        let mut agent = Agent::new(
            Arc::clone(provider),
            parts,
            limits.clone(),
            Vec::new(),
            transcript,
        );
        let requests = Requests::default();
        let user = user("go on");
        agent.turn(user, &requests, &CancellationToken::new()).await;
        let began = requests.0.into_inner().unwrap_or_default();
        if let [first, second, ..] = began[..] {
            times.push(second - first);
        }
    }
    times
}

fn user(text: &str) -> UserEntry {
    UserEntry {
        text: text.to_owned(),
        attachments: Vec::new(),
        context: String::new(),
        is_summary: false,
        is_by_model: false,
    }
}

/// The entries that come to a turn.
fn entries_of(turn: &Turn<'_>) -> Vec<TranscriptEntry> {
    let user_turn = match turn {
        Turn::User(turn) => turn,
        Turn::Assistant(turn) => {
            return vec![TranscriptEntry::Assistant(Box::new(AssistantEntry {
                turn: turn.clone().into_owned(),
                usage: Usage::default(),
                cost: None,
            }))];
        }
    };
    let said = user_turn.content.iter().filter_map(Block::as_text);
    let said = said.map(|text| TranscriptEntry::User(Box::new(user(text))));
    let results = user_turn.results.iter().enumerate();
    let results = results.map(|(index, result)| {
        TranscriptEntry::Result(Box::new(ResultEntry {
            index,
            text: result.to_text().into_owned(),
            images: Vec::new(),
            is_error: false,
            handle: None,
            task: None,
            ended_tasks: Vec::new(),
            spent: SideSpending::default(),
        }))
    });
    results.chain(said).collect()
}

/// Tools that do nothing.
struct IdleHost(Vec<ToolDefinition>);

impl ToolHost for IdleHost {
    fn definitions(&self) -> Vec<ToolDefinition> {
        self.0.clone()
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
        CallEnd::of(CallEndKind::Done, "a line of some output\n".repeat(60))
    }

    async fn keep(&self, _text: &str) -> Option<String> {
        None
    }

    async fn standing(&self) -> Vec<String> {
        Vec::new()
    }
}

/// Writes entries as a store does, to nowhere.
struct JsonJournal;

impl Journal for JsonJournal {
    async fn append(&self, entries: &[TranscriptEntry]) -> Result<(), String> {
        let written = serde_json::to_string(entries);
        black_box(written)
            .map(drop)
            .map_err(|error| error.to_string())
    }
}

/// The moments at which requests began.
#[derive(Default)]
struct Requests(Mutex<Vec<Instant>>);

impl Observer for Requests {
    fn on(&self, event: AgentEvent<'_>) {
        if let (AgentEvent::Waiting, Ok(mut began)) = (event, self.0.lock()) {
            began.push(Instant::now());
        }
    }
}

/// How long it takes to choose tools for a prompt of a page.
fn selecting() -> Vec<Duration> {
    let of = [
        "mail", "calendar", "image", "invoice", "branch", "ticket", "metric",
    ];
    let candidates: Vec<Candidate> = (0..N_TOOLS)
        .map(|n| {
            let noun = of[n % of.len()];
            let mut tool = tools().swap_remove(n);
            tool.description =
                format!("Finds a {noun} by its number, and shows its fields and history. ")
                    .repeat(5);
            Candidate {
                tool,
                is_always_on: n < 4,
                unmet: Vec::new(),
                boost: 0.0,
            }
        })
        .collect();
    let prompt =
        "Look up the invoices of last month, and tell me which ticket each belongs to. ".repeat(30);
    let rules = FilterRules {
        top_k: Some(6),
        min_similarity: 0.05,
    };
    let rounds = (0..N_ROUNDS).map(|_| {
        let started = Instant::now();
        let candidates = black_box(&candidates);
        black_box(select::<Vec<f32>>(&prompt, candidates, Some(rules), None));
        started.elapsed()
    });
    rounds.collect()
}

/// A turn of the model, and results of its calls.
async fn round(
    provider: &dyn Provider,
    tools: &[ToolDefinition],
    turns: &mut Vec<Turn<'static>>,
) -> Result<(), Box<dyn Error>> {
    let mut on_event = |_| {};
    let reply = provider.respond(request(tools, turns), &mut on_event);
    let turn = reply.await?.turn;
    let text = "a line of some output\n".repeat(60);
    let results = turn.calls().map(|call| CallResult {
        call_id: call.id.clone().into(),
        name: call.name.clone().into(),
        content: vec![Block::Text(text.clone().into())],
        is_error: false,
    });
    let results = UserTurn {
        results: results.collect(),
        content: Vec::new(),
    };
    turns.extend([Turn::Assistant(Cow::Owned(turn)), Turn::User(results)]);
    Ok(())
}

fn request<'a>(tools: &'a [ToolDefinition], turns: &'a [Turn<'a>]) -> ModelRequest<'a> {
    ModelRequest {
        system: &[],
        tools,
        turns,
        options: RequestOptions::default(),
    }
}

fn tools() -> Vec<ToolDefinition> {
    let schema = json!({
        "type": "object", "required": ["path"],
        "properties": { "path": { "type": "string" }, "offset": { "type": "integer" }, "limit": { "type": "integer" } },
    });
    let tools = (0..N_TOOLS).map(|n| ToolDefinition {
        name: format!("tool_{n}"),
        description: "Reads a part of a text file and numbers its lines. ".repeat(5),
        schema: schema.clone(),
    });
    tools.collect()
}

fn settings(base_url: String) -> ProviderSettings {
    ProviderSettings {
        name: "bench".to_owned(),
        kind: ProviderKind::Anthropic,
        base_url: Some(base_url),
        model: "scripted-1".to_owned(),
        key: None,
        max_tokens: None,
        temperature: None,
        prices: Prices::default(),
        timeouts: Timeouts {
            headers: LONG,
            idle: LONG,
            total: LONG,
        },
        retries: 0,
        native_tools: true,
        stream: true,
        num_ctx: None,
    }
}

fn egress() -> Egress {
    Egress::new(&EgressSettings {
        private: Arc::default(),
        proxy: None,
        ca_file: None,
        limits: EgressLimits {
            connect: LONG,
            header: LONG,
            idle: LONG,
            total: LONG,
            header_bytes: 65_536,
            body_bytes: 65_536,
            redirects: 0,
            requests: 1,
            connections: 1,
        },
    })
}

fn report(
    what: &str,
    mut times: Vec<Duration>,
    bound_ms: Option<u32>,
) -> Result<(), Box<dyn Error>> {
    times.sort_unstable();
    let median = times[times.len() / 2].as_secs_f64() * 1e3;
    let (bound, ratio) = match bound_ms {
        Some(bound) => (
            format!("≤ {bound} ms"),
            format!("{:.2}", median / f64::from(bound)),
        ),
        None => Default::default(),
    };
    writeln!(
        io::stdout(),
        "| {what} | {median:.2} ms | {bound} | {ratio} |"
    )?;
    Ok(())
}
