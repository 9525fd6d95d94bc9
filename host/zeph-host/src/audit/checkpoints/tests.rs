//! Delivery to the journal, in its own protocol, and what becomes of a checkpoint that its target did not take.

use std::io::ErrorKind;
use std::os::unix::net::UnixDatagram;

use zeph_store::{AuditKeySource, Checkpoints, Location, StoreOptions};

use super::*;

/// A host of a store with one event, whose checkpoints go to the journal at `socket`.
async fn host(store: &Store, socket: &Path) -> Checkpointer {
    let keys = store.begin_chain(&AuditKeySource::Process, now_ms());
    Checkpointer {
        store: store.clone(),
        keys: keys.await.unwrap().keys,
        target: Target::Journal(socket.to_owned()),
        every: Some(CheckpointEvery::Records(1)),
        seen: AtomicI64::new(-1),
        has_failed: AtomicBool::new(false),
    }
}

fn store() -> Store {
    let options = StoreOptions {
        at_ms: now_ms(),
        busy_timeout: PATIENCE,
    };
    Store::open(Location::Memory, options).unwrap().store
}

/// The fields of the only entry that was sent.
fn entry(journal: &UnixDatagram) -> Vec<(String, String)> {
    let mut bytes = [0; 16 * 1024];
    let length = journal.recv(&mut bytes).unwrap();
    let text = std::str::from_utf8(&bytes[..length]).unwrap();
    let fields = text.lines().map(|line| line.split_once('=').unwrap());
    let fields = fields.map(|(name, value)| (name.to_owned(), value.to_owned()));
    let fields = fields.collect();
    assert_eq!(
        journal.recv(&mut bytes).unwrap_err().kind(),
        ErrorKind::WouldBlock
    );
    fields
}

fn journal(socket: &Path) -> UnixDatagram {
    let journal = UnixDatagram::bind(socket).unwrap();
    journal.set_nonblocking(true).unwrap();
    journal
}

#[tokio::test]
async fn the_journal_gets_a_checkpoint_that_verify_reads() {
    let folder = tempfile::tempdir().unwrap();
    let socket = folder.path().join("journal");
    let (store, journal) = (store(), journal(&socket));
    let host = host(&store, &socket).await;
    host.look(PATIENCE).await;
    // Nothing was recorded since: the second look brings nothing.
    host.look(PATIENCE).await;
    let fields = entry(&journal);
    let of = |wanted: &str| {
        let mut found = fields.iter().filter(|(name, _)| name == wanted);
        found.next().map(|(_, value)| value.as_str()).unwrap()
    };
    assert_eq!(of("SYSLOG_IDENTIFIER"), "zeph-host");
    assert_eq!(of("PRIORITY"), "5");
    // As `journalctl -o cat` and `-o json` print it.
    let printed = serde_json::json!({ "MESSAGE": of("MESSAGE"), "PRIORITY": "5" });
    for text in [of("MESSAGE"), &printed.to_string()] {
        let file = folder.path().join("seen");
        std::fs::write(&file, format!("{text}\n")).unwrap();
        let seen = Checkpoints::read(&file, &host.keys).unwrap();
        assert_eq!(seen.events().len(), 1, "{text}");
    }
}

#[tokio::test]
async fn what_a_target_did_not_take_is_due_in_every_host() {
    let folder = tempfile::tempdir().unwrap();
    let socket = folder.path().join("journal");
    let store = store();
    let (ended, next) = (host(&store, &socket).await, host(&store, &socket).await);
    let refused = ended.take().await.unwrap_err().to_string();
    assert!(refused.contains("the journal of the system"), "{refused}");
    ended.look(PATIENCE).await;
    assert!(ended.has_failed.load(Ordering::Relaxed));
    drop(ended);
    let journal = journal(&socket);
    next.look(PATIENCE).await;
    assert!(!next.has_failed.load(Ordering::Relaxed));
    assert_eq!(entry(&journal).len(), 3);
}
