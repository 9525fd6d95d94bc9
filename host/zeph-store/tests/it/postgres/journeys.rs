//! Journeys to the server: how often a store sends something and waits for the answer. With a server that is not on the same machine, they
//! are most of what a call takes.

use std::io::{Read as _, Write as _};
use std::net::{Shutdown, TcpListener, TcpStream};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};
use std::thread;
use std::time::Duration;

use zeph_core::id::ConversationId;
use zeph_core::policy::{TrustLevel, TrustSubject};
use zeph_store::{AuditKeyFolder, AuditKeySource, CallBegin, Retention, SingleUseRights, Store};

use crate::database::{Database as _, Postgres};
use crate::setup::{NOW_MS, begin, open_url, success};

/// A begin and an end of a call: each one to write its row behind the lock of the chain, and one to add its event and to commit.
const OF_A_CALL: usize = 4;

/// A sweep that finds nothing: what begins it is sent with the newest number, the oldest rows, what its host said of its chain, all hosts, whether
/// anything else is past its time, and the end. More rows are looked at once.
const OF_A_SWEEP: usize = 6;

/// What lies between a store and its server: it passes everything on, and counts.
struct Road {
    url: String,
    n_journeys: Arc<AtomicUsize>,
}

impl Road {
    /// To the server of `url`, whose address is a port of this machine.
    fn to(url: &str) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let (before, rest) = url.split_once("127.0.0.1:").unwrap();
        let (port, after) = rest.split_at(rest.find('/').unwrap());
        let server = format!("127.0.0.1:{port}");
        let own = listener.local_addr().unwrap();
        let n_journeys = Arc::new(AtomicUsize::new(0));
        let counted = Arc::clone(&n_journeys);
        thread::spawn(move || {
            for client in listener.incoming() {
                connect(client.unwrap(), &server, &counted);
            }
        });
        Self {
            url: format!("{before}{own}{after}"),
            n_journeys,
        }
    }

    /// How many there were since this was asked last.
    fn n_journeys(&self) -> usize {
        self.n_journeys.swap(0, Ordering::SeqCst)
    }
}

/// What was sent last on a connection: a journey begins when the client sends after the server.
#[derive(PartialEq, Eq)]
enum Sender {
    Client,
    Server,
}

fn connect(client: TcpStream, server: &str, n_journeys: &Arc<AtomicUsize>) {
    let server = TcpStream::connect(server).unwrap();
    for end in [&client, &server] {
        end.set_nodelay(true).unwrap();
    }
    let last = Arc::new(Mutex::new(Sender::Server));
    let ends = (client.try_clone().unwrap(), server.try_clone().unwrap());
    let (of_client, counted) = (Arc::clone(&last), Arc::clone(n_journeys));
    thread::spawn(move || {
        pass(ends.0, ends.1, || {
            let mut last = of_client.lock().unwrap();
            if *last == Sender::Server {
                counted.fetch_add(1, Ordering::SeqCst);
            }
            *last = Sender::Client;
        });
    });
    thread::spawn(move || pass(server, client, || *last.lock().unwrap() = Sender::Server));
}

fn pass(mut from: TcpStream, mut to: TcpStream, mut seen: impl FnMut()) {
    let mut bytes = vec![0; 1 << 18];
    while let Ok(n_bytes @ 1..) = from.read(&mut bytes) {
        seen();
        if to.write_all(&bytes[..n_bytes]).is_err() {
            break;
        }
    }
    drop(to.shutdown(Shutdown::Both));
}

/// A call that is decided on this state of trust.
async fn call(store: &Store, trust_version: Option<i64>) -> CallBegin {
    let call = begin("read", ConversationId::new(), NOW_MS);
    let call_id = call.call_id;
    let rights = SingleUseRights {
        trust_version,
        ..SingleUseRights::default()
    };
    let begun = store.begin_call(Some(call), rights, NOW_MS).await.unwrap();
    if begun == CallBegin::Recorded {
        let end = success(call_id, NOW_MS + 1);
        store.finish_call(Some(end), Vec::new()).await.unwrap();
    }
    begun
}

#[tokio::test(flavor = "multi_thread")]
async fn the_records_of_a_call_take_four_journeys() {
    if !Postgres::is_there() {
        return;
    }
    let database = Postgres::fresh();
    let road = Road::to(&database.schema.url());
    let store = open_url(&road.url);
    let folder = tempfile::tempdir().unwrap();
    let keys = AuditKeySource::Folder(AuditKeyFolder::new(folder.path().join("secrets")));
    store.begin_chain(&keys, NOW_MS).await.unwrap();
    let version = store.trust().await.unwrap().version;
    // The first one has its statements prepared.
    assert_eq!(call(&store, Some(version)).await, CallBegin::Recorded);
    road.n_journeys();
    for n_calls in 1..=3 {
        assert_eq!(call(&store, Some(version)).await, CallBegin::Recorded);
        assert_eq!(road.n_journeys(), OF_A_CALL, "call {n_calls}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_sweep_that_finds_nothing_takes_six_journeys() {
    if !Postgres::is_there() {
        return;
    }
    let database = Postgres::fresh();
    let road = Road::to(&database.schema.url());
    let store = open_url(&road.url);
    let folder = tempfile::tempdir().unwrap();
    let keys = AuditKeySource::Folder(AuditKeyFolder::new(folder.path().join("secrets")));
    store.begin_chain(&keys, NOW_MS).await.unwrap();
    let day = Duration::from_hours(24);
    let retention = Retention {
        audit: day,
        ..Retention::of_outputs(day)
    };
    assert_eq!(call(&store, None).await, CallBegin::Recorded);
    // The first one has its statements prepared.
    assert!(store.sweep(retention, NOW_MS).await.unwrap().is_nothing());
    for n_sweeps in 1..=3 {
        road.n_journeys();
        assert!(store.sweep(retention, NOW_MS).await.unwrap().is_nothing());
        assert_eq!(road.n_journeys(), OF_A_SWEEP, "sweep {n_sweeps}");
    }
    // What was looked at before is found when its time comes.
    let later_ms = NOW_MS + 2 * 86_400_000;
    let swept = store.sweep(retention, later_ms).await.unwrap();
    assert_eq!((swept.n_audit, swept.n_conversations), (1, 1));
}

#[tokio::test(flavor = "multi_thread")]
async fn a_call_that_was_decided_on_earlier_trust_is_not_recorded() {
    if !Postgres::is_there() {
        return;
    }
    let database = Postgres::fresh();
    let (store, other) = (database.open(), database.open());
    let folder = tempfile::tempdir().unwrap();
    let keys = AuditKeySource::Folder(AuditKeyFolder::new(folder.path().join("secrets")));
    store.begin_chain(&keys, NOW_MS).await.unwrap();
    let version = store.trust().await.unwrap().version;
    let subject: TrustSubject = "plugin:weather".parse().unwrap();
    other
        .set_trust(subject, TrustLevel::Blocked, NOW_MS)
        .await
        .unwrap();
    assert_eq!(call(&store, Some(version)).await, CallBegin::RightGone);
    // Among others, it is the only one that is not.
    let (old, new) = (Some(version), Some(version + 1));
    let begun = tokio::join!(call(&store, new), call(&store, old), call(&store, None));
    let recorded = CallBegin::Recorded;
    assert_eq!(begun, (recorded, CallBegin::RightGone, recorded));
    assert_eq!(database.schema.sql("SELECT count(*) FROM audit"), "2\n");
}
