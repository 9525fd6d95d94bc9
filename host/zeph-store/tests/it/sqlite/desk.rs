//! What callers do with the writer themselves, and what they leave to its thread.

use std::fs::File;
use std::path::Path;

use zeph_core::id::ConversationId;
use zeph_store::AuditFile;

use crate::setup::{NOW_MS, begin, fresh, n_rows, open, sql};

/// Records the begin of a call on the only thread of a runtime while another host holds something that is let go on the same thread later.
async fn check_held<L>(path: &Path, hold: impl FnOnce() -> L, let_go: impl FnOnce(L)) {
    let file = path.with_extension("jsonl");
    let store = open(path).with_audit_file(AuditFile::open(&file, 0).unwrap());
    let held = hold();
    let begin = store.audit_begin(begin("read", ConversationId::new(), NOW_MS));
    let (begun, ()) = tokio::join!(begin, async { let_go(held) });
    begun.unwrap();
    assert_eq!(n_rows(&store).await, 1);
    assert_eq!(std::fs::read_to_string(&file).unwrap().lines().count(), 1);
}

#[tokio::test]
async fn a_caller_never_waits_on_its_own_thread_for_another_host() {
    let (_dir, path) = fresh();
    let hold = || {
        let other = sql(&path);
        other.execute_batch("BEGIN IMMEDIATE").unwrap();
        other
    };
    check_held(&path, hold, |other| other.execute_batch("COMMIT").unwrap()).await;

    let (_dir, path) = fresh();
    let hold = || {
        let other = File::open(path.with_extension("jsonl")).unwrap();
        other.lock().unwrap();
        other
    };
    check_held(&path, hold, |other| other.unlock().unwrap()).await;
}
