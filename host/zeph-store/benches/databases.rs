//! The same operations on SQLite and on PostgreSQL, over loopback: one at a time, many at once, and over many stored outputs.
//!
//! `cargo bench -p zeph-store --bench databases`, with `-- FOLDER` to measure another disk than the one of temporary files. The server
//! writes to its disk before it answers, as it does unless it is told otherwise; SQLite does not.

#![expect(clippy::unwrap_used, reason = "a bench fails by panicking")]

#[path = "../tests/it/server.rs"]
#[expect(
    dead_code,
    clippy::disallowed_methods,
    reason = "the tests use the rest of it, and what is measured has to be started"
)]
mod server;

use std::io::{self, Write};
use std::path::Path;
use std::time::{Duration, Instant};

use tokio::task::JoinSet;
use zeph_core::id::{CallId, ConversationId, OverflowId};
use zeph_store::{
    AuditKeySource, AuditResult, BeginFacts, BeginRecord, Ending, Finish, Location, Store,
    StoreError, StoreOptions,
};

use self::server::{Server, USER, programs};

const N_ROUNDS: usize = 2_000;
const N_PARALLEL: usize = 16;
const N_CONVERSATIONS: usize = 100;
const N_OUTPUTS: usize = 100_000;
const N_QUERIES: usize = 500;
const AT_MS: i64 = 1_700_000_000_000;

/// A figure: what was measured, and how long it took half of the time.
type Figure = (&'static str, Duration);

fn main() -> io::Result<()> {
    let folder = std::env::args()
        .skip(1)
        .find(|argument| !argument.starts_with("--"));
    let dir = match &folder {
        Some(folder) => tempfile::tempdir_in(folder)?,
        None => tempfile::tempdir()?,
    };
    let runtime = tokio::runtime::Runtime::new()?;
    let sqlite = Location::File(dir.path().join("zeph.db"));
    let of_sqlite = runtime.block_on(measure(&sqlite)).unwrap();
    if programs().is_none() {
        return Ok(());
    }
    let server = Server::of_test(
        &server_folder(dir.path()),
        "fsync = on\nfull_page_writes = on\n",
    );
    let url = format!("postgres://{USER}@127.0.0.1:{}/postgres", server.port);
    let postgres = Location::Server(Box::new(url.parse().unwrap()));
    let of_postgres = runtime.block_on(measure(&postgres)).unwrap();
    for ((what, sqlite), (_, postgres)) in of_sqlite.into_iter().zip(of_postgres) {
        let ratio = postgres.as_secs_f64() / sqlite.as_secs_f64();
        writeln!(
            io::stdout(),
            "| {what} | PostgreSQL {postgres:.1?} against {sqlite:.1?} | – | {ratio:.1} × SQLite |"
        )?;
    }
    Ok(())
}

/// A folder that the user of the server can reach.
#[expect(
    clippy::disallowed_methods,
    reason = "a bench starts the server it needs"
)]
fn server_folder(dir: &Path) -> std::path::PathBuf {
    server::run(std::process::Command::new("chmod").arg("755").arg(dir));
    dir.join("server")
}

async fn measure(location: &Location) -> Result<Vec<Figure>, StoreError> {
    let options = StoreOptions {
        at_ms: AT_MS,
        busy_timeout: Duration::from_secs(5),
    };
    let store = Store::open(location.clone(), options)?.store;
    let mut figures = Vec::new();
    one_at_a_time(&store, &mut figures).await?;
    calls(&store, &mut figures).await?;
    many_at_once(&store, &mut figures).await?;
    many_outputs(&store, &mut figures).await?;
    store.close().await?;
    Ok(figures)
}

async fn one_at_a_time(store: &Store, figures: &mut Vec<Figure>) -> Result<(), StoreError> {
    let conversation = ConversationId::new();
    let (mut reads, mut writes, mut outputs) = (Vec::new(), Vec::new(), Vec::new());
    for _ in 0..N_ROUNDS {
        reads.push(timed(store.overflow(conversation, OverflowId::new())).await?);
        writes.push(timed(store.begin_conversation(conversation, AT_MS)).await?);
        let content = vec![b'x'; 1 << 12];
        outputs.push(timed(store.put_overflow(conversation, content, AT_MS)).await?);
    }
    figures.push(("look for an absent output", median(reads)));
    figures.push(("note the use of a conversation", median(writes)));
    figures.push(("store an output of 4 KiB", median(outputs)));
    Ok(())
}

/// What the store does for each call: its begin, its end, sealed.
async fn calls(store: &Store, figures: &mut Vec<Figure>) -> Result<(), StoreError> {
    store.begin_chain(&AuditKeySource::Process, AT_MS).await?;
    let conversation = ConversationId::new();
    let (mut begins, mut ends, mut both) = (Vec::new(), Vec::new(), Vec::new());
    for _ in 0..N_ROUNDS {
        let begin = begin(conversation);
        let end = finish(begin.call_id);
        begins.push(timed(store.audit_begin(begin)).await?);
        ends.push(timed(store.audit_finish(end)).await?);
    }
    // As hosts do it: the end shares the transaction of what comes next.
    for _ in 0..N_ROUNDS {
        let begin = begin(conversation);
        let end = finish(begin.call_id);
        both.push(
            timed(async {
                store.audit_begin(begin).await?;
                store.finish_call_soon(Some(end), Vec::new()).await
            })
            .await?,
        );
    }
    figures.push(("record the begin of a call, sealed", median(begins)));
    figures.push(("record the end of a call, sealed", median(ends)));
    figures.push(("begin and end of a call after another", median(both)));
    Ok(())
}

async fn many_at_once(store: &Store, figures: &mut Vec<Figure>) -> Result<(), StoreError> {
    let mut tasks = JoinSet::new();
    let started = Instant::now();
    for _ in 0..N_PARALLEL {
        let store = store.clone();
        tasks.spawn(async move {
            for _ in 0..N_ROUNDS / N_PARALLEL {
                store.audit_begin(begin(ConversationId::new())).await?;
            }
            Ok::<(), StoreError>(())
        });
    }
    for result in tasks.join_all().await {
        result?;
    }
    let each = started.elapsed() / u32::try_from(N_ROUNDS).unwrap();
    figures.push(("begin of a call, 16 at a time, time per call", each));
    Ok(())
}

async fn many_outputs(store: &Store, figures: &mut Vec<Figure>) -> Result<(), StoreError> {
    let owners: Vec<_> = (0..N_CONVERSATIONS)
        .map(|_| ConversationId::new())
        .collect();
    let mut tasks = JoinSet::new();
    for part in owners.chunks(N_CONVERSATIONS / N_PARALLEL + 1) {
        let (store, part) = (store.clone(), part.to_vec());
        tasks.spawn(async move {
            let mut ids = Vec::new();
            for n in 0..N_OUTPUTS / N_CONVERSATIONS {
                for owner in &part {
                    let at_ms = AT_MS + i64::try_from(n).unwrap();
                    let id = store.put_overflow(*owner, vec![b'x'; 200], at_ms).await?;
                    ids.push((*owner, id));
                }
            }
            Ok::<_, StoreError>(ids)
        });
    }
    let mut stored = Vec::new();
    for ids in tasks.join_all().await {
        stored.extend(ids?);
    }
    let (mut reads, mut lists, mut conversations) = (Vec::new(), Vec::new(), Vec::new());
    for n in 0..N_QUERIES {
        let (owner, id) = stored[n * 7919 % stored.len()];
        reads.push(timed(store.overflow(owner, id)).await?);
        lists.push(timed(store.outputs(owner, 50)).await?);
    }
    for _ in 0..20 {
        conversations.push(timed(store.list_conversations(50)).await?);
    }
    figures.push(("read one of 100,000 outputs", median(reads)));
    figures.push(("list 50 of 1,000 outputs of a conversation", median(lists)));
    figures.push((
        "list 50 conversations with their bytes",
        median(conversations),
    ));
    Ok(())
}

async fn timed<T>(
    work: impl Future<Output = Result<T, StoreError>>,
) -> Result<Duration, StoreError> {
    let started = Instant::now();
    work.await?;
    Ok(started.elapsed())
}

fn median(mut times: Vec<Duration>) -> Duration {
    times.sort_unstable();
    times[times.len() / 2]
}

fn begin(conversation_id: ConversationId) -> BeginRecord {
    BeginRecord {
        call_id: CallId::new(),
        at_ms: AT_MS,
        tool: "read".to_owned(),
        plugin: None,
        plugin_digest: None,
        mcp_server_id: None,
        command: r#"{"path":"src/main.rs","offset":1,"limit":200}"#.to_owned(),
        conversation_id,
        claim_source: None,
        caller_id: None,
        turn_id: None,
        goal_id: None,
        skill_name: None,
        policy_match: Some("default: allow".to_owned()),
        agreement: None,
        adversarial_verdict: None,
        correlation_id: None,
        resolved_cwd: Some("/home/someone/project".to_owned()),
        host: None,
        facts: BeginFacts::default(),
    }
}

fn finish(call_id: CallId) -> Finish {
    Finish {
        call_id,
        at_ms: AT_MS + 1,
        ending: Ending {
            result: AuditResult::Success,
            duration_ms: 1,
            failed: None,
            truncated: false,
            overflow_id: None,
            exit_code: None,
            execution_env: None,
            hosts: Vec::new(),
            attempts: None,
            cache_age_ms: None,
            cache_bytes: None,
            labels: Vec::new(),
        },
    }
}
