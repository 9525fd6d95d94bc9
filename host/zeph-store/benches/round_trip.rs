//! How long a caller waits for the store: one operation at a time, then many at once, and start and close.
//!
//! `cargo bench -p zeph-store`, with `-- FOLDER` to measure another disk than the one of temporary files.

use std::collections::BTreeSet;
use std::io::{self, Write};
use std::path::Path;
use std::time::{Duration, Instant};

use tokio::task::JoinSet;
use zeph_core::id::{CallId, ConversationId, OverflowId};
use zeph_store::{
    AuditEvent, AuditFile, AuditKeySource, AuditKeys, AuditResult, BeginFacts, BeginRecord, Ending,
    Finish, Location, Retention, Store, StoreOptions, verify_file,
};

const N_CALLS: usize = 5_000;
const N_PARALLEL: usize = 16;
const N_VERIFIED: usize = 100_000;
const N_PAUSED: usize = 200;
const N_OPENS: usize = 50;

fn main() -> io::Result<()> {
    let folder = std::env::args()
        .skip(1)
        .find(|argument| !argument.starts_with("--"));
    let dir = match &folder {
        Some(folder) => tempfile::tempdir_in(folder)?,
        None => tempfile::tempdir()?,
    };
    let runtime = tokio::runtime::Runtime::new()?;
    runtime
        .block_on(measure(dir.path()))
        .map_err(io::Error::other)
}

async fn measure(dir: &Path) -> Result<(), Box<dyn std::error::Error + Send + Sync>> {
    let path = dir.join("zeph.db");
    let store = open(&path)?;
    let conversation = ConversationId::new();

    let mut reads = Vec::with_capacity(N_CALLS);
    for _ in 0..N_CALLS {
        let started = Instant::now();
        store.overflow(conversation, OverflowId::new()).await?;
        reads.push(started.elapsed());
    }
    report("look for an absent output (no commit)", reads)?;

    let mut begins = Vec::with_capacity(N_CALLS);
    let mut finishes = Vec::with_capacity(N_CALLS);
    for _ in 0..N_CALLS {
        let begin = begin(conversation);
        let finish = finish(begin.call_id);
        let started = Instant::now();
        store.audit_begin(begin).await?;
        begins.push(started.elapsed());
        let started = Instant::now();
        store.audit_finish(finish).await?;
        finishes.push(started.elapsed());
    }
    report("audit_begin, one at a time", begins)?;
    report("audit_finish, one at a time", finishes)?;

    let at_rest = paused(&store, conversation).await?;
    report("audit_begin after a pause", at_rest)?;
    // What was recorded above is more than what is kept now: it sweeps for as long as this takes.
    let retention = Retention {
        audit_rows_max: 100,
        ..Retention::default()
    };
    store.retain(retention, || 1_700_000_000_002).await?;
    let swept = paused(&store, conversation).await?;
    report("the same while it sweeps (at most 1 ms more)", swept)?;

    sealed(dir).await?;

    let mut tasks = JoinSet::new();
    let started = Instant::now();
    for _ in 0..N_PARALLEL {
        let store = store.clone();
        tasks.spawn(async move {
            for _ in 0..N_CALLS / N_PARALLEL {
                store.audit_begin(begin(conversation)).await?;
            }
            Ok::<(), zeph_store::StoreError>(())
        });
    }
    for result in tasks.join_all().await {
        result?;
    }
    let each = started.elapsed() / u32::try_from(N_CALLS)?;
    report("audit_begin, 16 at a time, time per call", vec![each])?;

    let mut outputs = Vec::new();
    for _ in 0..100 {
        let content = vec![b'x'; 1 << 20];
        let started = Instant::now();
        store.put_overflow(conversation, content, 1).await?;
        outputs.push(started.elapsed());
    }
    report("put_overflow of 1 MiB", outputs)?;
    store.close().await?;
    opens(&path).await?;
    lines(dir, conversation)
}

/// The same with the chain, and how fast it is verified.
async fn sealed(dir: &Path) -> Result<(), Box<dyn std::error::Error + Send + Sync>> {
    let path = dir.join("sealed.db");
    let store = open(&path)?;
    let keys = store.begin_chain(&AuditKeySource::Process, 1).await?.keys;
    let conversation = ConversationId::new();
    let (mut begins, mut finishes) = (Vec::new(), Vec::new());
    for _ in 0..N_CALLS {
        let begin = begin(conversation);
        let finish = finish(begin.call_id);
        let started = Instant::now();
        store.audit_begin(begin).await?;
        begins.push(started.elapsed());
        let started = Instant::now();
        store.audit_finish(finish).await?;
        finishes.push(started.elapsed());
    }
    report("audit_begin, sealed", begins)?;
    report("audit_finish, sealed", finishes)?;
    for _ in 0..N_VERIFIED - N_CALLS {
        let begin = begin(conversation);
        let finish = finish(begin.call_id);
        store.audit_begin(begin).await?;
        store.finish_call_soon(Some(finish), Vec::new()).await?;
    }
    store.close().await?;
    let location = Location::File(path);
    for _ in 0..3 {
        let started = Instant::now();
        let mut found = Store::verify_audit(&location, &options(), Some(&keys), &BTreeSet::new())?;
        let found = found.remove(0);
        let took = started.elapsed().as_secs_f64();
        let (n_events, n_calls) = (found.n_events as f64, found.n_calls as f64);
        writeln!(
            io::stdout(),
            "| `audit verify`, {n_calls} calls in the store | {:.0} calls/s, {:.0} records/s, {} problems | ≥ 200,000 records/s | {} |",
            n_calls / took,
            n_events / took,
            found.problems.len(),
            if n_events / took >= 200_000.0 {
                "met"
            } else {
                "missed"
            }
        )?;
    }
    sealed_lines(dir, &keys)
}

fn sealed_lines(
    dir: &Path,
    keys: &AuditKeys,
) -> Result<(), Box<dyn std::error::Error + Send + Sync>> {
    let path = dir.join("sealed.jsonl");
    let file = AuditFile::open(&path, 0)?.chained(keys.clone());
    let mut appends = Vec::new();
    for _ in 0..N_VERIFIED {
        let begin = begin(ConversationId::new());
        let started = Instant::now();
        file.append(&AuditEvent::Begin(&begin))?;
        appends.push(started.elapsed());
    }
    report("append a sealed line to the audit file", appends)?;
    let started = Instant::now();
    let found = verify_file(&path, keys, &BTreeSet::new())?;
    let rate = found.n_lines as f64 / started.elapsed().as_secs_f64();
    writeln!(
        io::stdout(),
        "| `audit verify`, {} lines of the file | {rate:.0} lines/s | – | |",
        found.n_lines
    )?;
    Ok(())
}

/// Calls with pauses about as long as the store waits before it sweeps, so that some come while it does.
async fn paused(
    store: &Store,
    conversation: ConversationId,
) -> Result<Vec<Duration>, Box<dyn std::error::Error + Send + Sync>> {
    let mut begins = Vec::with_capacity(N_PAUSED);
    for idx in 0..N_PAUSED {
        let more = u64::try_from(idx * 37 % 4_000)?;
        tokio::time::sleep(Duration::from_micros(19_000 + more)).await;
        let begin = begin(conversation);
        let started = Instant::now();
        store.audit_begin(begin).await?;
        begins.push(started.elapsed());
    }
    Ok(begins)
}

async fn opens(path: &Path) -> Result<(), Box<dyn std::error::Error + Send + Sync>> {
    let (mut opens, mut closes) = (Vec::new(), Vec::new());
    for _ in 0..N_OPENS {
        let started = Instant::now();
        let store = open(path)?;
        opens.push(started.elapsed());
        store.audit_begin(begin(ConversationId::new())).await?;
        let started = Instant::now();
        store.close().await?;
        closes.push(started.elapsed());
    }
    report("open an existing store", opens)?;
    report("close after one call", closes)?;
    Ok(())
}

fn lines(
    dir: &Path,
    conversation: ConversationId,
) -> Result<(), Box<dyn std::error::Error + Send + Sync>> {
    let file = AuditFile::open(&dir.join("audit.jsonl"), 1 << 20)?;
    let mut appends = Vec::new();
    for _ in 0..N_CALLS {
        let begin = begin(conversation);
        let started = Instant::now();
        file.append(&AuditEvent::Begin(&begin))?;
        appends.push(started.elapsed());
    }
    report("append a line to the audit file", appends)?;
    Ok(())
}

fn open(path: &Path) -> Result<Store, zeph_store::StoreError> {
    Store::open(Location::File(path.to_owned()), options()).map(|opened| opened.store)
}

fn options() -> StoreOptions {
    StoreOptions {
        at_ms: 0,
        busy_timeout: Duration::from_secs(5),
    }
}

fn begin(conversation_id: ConversationId) -> BeginRecord {
    BeginRecord {
        call_id: CallId::new(),
        at_ms: 1_700_000_000_000,
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
        at_ms: 1_700_000_000_001,
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

fn report(what: &str, mut times: Vec<Duration>) -> io::Result<()> {
    times.sort_unstable();
    let at = |percent: usize| times[(times.len() - 1) * percent / 100];
    let (p50, p99, max) = (at(50), at(99), at(100));
    writeln!(
        io::stdout(),
        "| store: {what} | p50 {p50:.1?}, p99 {p99:.1?}, at most {max:.1?} | – | |"
    )
}
