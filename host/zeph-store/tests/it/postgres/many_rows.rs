//! Many rows: both databases answer what is asked of a large audit and of many stored outputs alike. Prints how long each took, which nothing
//! here judges: the figures are measured with a million rows on an idle machine.

use std::collections::BTreeSet;
use std::io::Write as _;
use std::time::{Duration, Instant};

use tokio::task::JoinSet;
use zeph_core::category::ErrorCategory;
use zeph_core::id::ConversationId;
use zeph_store::{AuditFilter, BeginRecord, Retention, Store};

use crate::database::{Database as _, Postgres, SqliteFile};
use crate::setup::{NOW_MS, begin, success};
use crate::suite::chain::{Log, Tampered};

/// Rows, when the variable does not say how many.
const ROWS: usize = 12_000;

/// Hosts' calls at a time.
const AT_ONCE: usize = 64;

/// The name of a measurement and what it took.
type Times = Vec<(&'static str, Duration)>;

/// What each question found: which tools were called, and when.
type Answers = Vec<(&'static str, Vec<(String, i64)>)>;

fn is_rare(n: usize) -> bool {
    n % 10_000 == 77
}

async fn fill(store: &Store, n_rows: usize) {
    let conversations: Vec<_> = (0..100).map(|_| ConversationId::new()).collect();
    let mut callers = JoinSet::new();
    for caller in 0..AT_ONCE {
        let (store, conversations) = (store.clone(), conversations.clone());
        callers.spawn(async move {
            for n in (caller..n_rows).step_by(AT_ONCE) {
                let tool = if is_rare(n) { "rare" } else { "read" };
                let age_ms = i64::try_from(n_rows - n).unwrap();
                let begin = BeginRecord {
                    command: r#"{"path":"src/main.rs","offset":1,"limit":200}"#.to_owned(),
                    policy_match: Some("default: allow".to_owned()),
                    resolved_cwd: Some("/home/ann/project".to_owned()),
                    ..begin(tool, conversations[n % 100], NOW_MS - age_ms)
                };
                let call = begin.call_id;
                store.audit_begin(begin).await.unwrap();
                let end = success(call, NOW_MS - age_ms + 1);
                store.finish_call_soon(Some(end), Vec::new()).await.unwrap();
            }
        });
    }
    callers.join_all().await;
}

/// Stores outputs of ten conversations, and asks for them.
async fn outputs(store: &Store, n_outputs: usize, times: &mut Times) {
    let conversations: Vec<_> = (0..10).map(|_| ConversationId::new()).collect();
    let mut callers = JoinSet::new();
    let started = Instant::now();
    for caller in 0..AT_ONCE {
        let (store, conversations) = (store.clone(), conversations.clone());
        callers.spawn(async move {
            let mut ids = Vec::new();
            for n in (caller..n_outputs).step_by(AT_ONCE) {
                let at_ms = NOW_MS + i64::try_from(n).unwrap();
                let (conversation, content) = (conversations[n % 10], vec![b'x'; 200]);
                let id = store.put_overflow(conversation, content, at_ms).await;
                ids.push((conversation, id.unwrap()));
            }
            ids
        });
    }
    let stored: Vec<_> = callers.join_all().await.into_iter().flatten().collect();
    times.push(("store an output for each tenth call", started.elapsed()));
    let started = Instant::now();
    for n in 0..100 {
        let (conversation, id) = stored[n * 7919 % stored.len()];
        let output = store.overflow(conversation, id).await.unwrap();
        assert_eq!(output.map(|output| output.len()), Some(200));
    }
    times.push(("read 100 outputs", started.elapsed()));
    let started = Instant::now();
    for conversation in conversations {
        assert!(!store.outputs(conversation, 50).await.unwrap().is_empty());
    }
    times.push(("list 50 outputs of 10 conversations", started.elapsed()));
}

/// Asks what people and programs ask of it.
async fn measured<D: Tampered>(n_rows: usize) -> (Times, Answers) {
    let log = Log::<D>::fresh();
    let (store, _) = log.chained().await;
    let (mut times, mut answers) = (Times::new(), Answers::new());
    let started = Instant::now();
    fill(&store, n_rows).await;
    times.push(("record all calls", started.elapsed()));
    outputs(&store, n_rows / 10, &mut times).await;
    let newest = AuditFilter::newest(100);
    let middle_ms = NOW_MS - i64::try_from(n_rows / 2).unwrap();
    let filters = [
        ("the newest 100", newest.clone()),
        (
            "500 from the middle on",
            AuditFilter {
                since_ms: Some(middle_ms),
                newest_first: false,
                ..AuditFilter::newest(500)
            },
        ),
        (
            "all of a rare tool",
            AuditFilter {
                tool: Some("rare".to_owned()),
                ..AuditFilter::newest(10_000)
            },
        ),
        (
            "of a category that never was",
            AuditFilter {
                category: Some(ErrorCategory::Timeout),
                ..newest.clone()
            },
        ),
        (
            "calls without an end",
            AuditFilter {
                unfinished_only: true,
                ..newest
            },
        ),
    ];
    for (name, filter) in filters {
        // The first time reads what is not in memory.
        store.audit_query(filter.clone()).await.unwrap();
        let started = Instant::now();
        let found = store.audit_query(filter).await.unwrap();
        times.push((name, started.elapsed()));
        let calls = found
            .into_iter()
            .map(|call| (call.begin.tool, call.begin.at_ms));
        answers.push((name, calls.collect()));
    }
    let started = Instant::now();
    let report = log.reports(&BTreeSet::new()).remove(0);
    times.push(("verify all", started.elapsed()));
    assert_eq!(report.problems, []);
    assert_eq!(report.n_calls, u64::try_from(n_rows).unwrap());
    let retention = Retention {
        audit_rows_max: u64::try_from(n_rows / 2).unwrap(),
        ..Retention::default()
    };
    let started = Instant::now();
    let swept = store.sweep(retention, NOW_MS).await.unwrap();
    times.push(("remove half of it", started.elapsed()));
    assert!(swept.n_audit * 2 >= n_rows, "{swept:?}");
    let started = Instant::now();
    assert!(store.sweep(retention, NOW_MS).await.unwrap().is_nothing());
    times.push(("find nothing to remove", started.elapsed()));
    (times, answers)
}

#[tokio::test(flavor = "multi_thread")]
#[expect(
    clippy::disallowed_methods,
    reason = "whether slow tests run is said by a variable"
)]
async fn many_rows_are_answered_alike() {
    let Some(wanted) = std::env::var_os("ZEPH_SLOW_TESTS") else {
        drop(writeln!(
            std::io::stderr(),
            "skipped: set ZEPH_SLOW_TESTS=1, or to a number of rows, to run it"
        ));
        return;
    };
    if !Postgres::is_there() {
        return;
    }
    let wanted = wanted.to_str().and_then(|rows| rows.parse().ok());
    let n_rows = wanted.filter(|rows| *rows > 1).unwrap_or(ROWS);
    let (file_times, of_file) = measured::<SqliteFile>(n_rows).await;
    let (server_times, of_server) = measured::<Postgres>(n_rows).await;
    drop(writeln!(
        std::io::stderr(),
        "{n_rows} calls                         SQLite     PostgreSQL  ratio"
    ));
    for ((name, file), (_, server)) in file_times.into_iter().zip(server_times) {
        let ratio = server.as_secs_f64() / file.as_secs_f64();
        drop(writeln!(
            std::io::stderr(),
            "{name:<36} {file:>10.1?} {server:>10.1?} {ratio:>6.1}"
        ));
    }
    assert_eq!(of_file, of_server);
    let n_found: Vec<_> = of_file.iter().map(|(_, calls)| calls.len()).collect();
    let n_rare = (0..n_rows).filter(|n| is_rare(*n)).count();
    assert_eq!(
        n_found,
        [100.min(n_rows), 500.min(n_rows / 2), n_rare, 0, 0]
    );
}
