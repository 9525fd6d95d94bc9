//! What the tests share: a store in a fresh folder, and calls with nothing special about them.

use std::path::{Path, PathBuf};
use std::thread;
use std::time::Duration;

use rusqlite::Connection;
use rustix::process::{Uid, geteuid};
use rustix::thread::set_thread_res_uid;
use tempfile::TempDir;
use zeph_core::id::{CallId, ConversationId};
use zeph_store::{
    AgreedBy, Agreement, AuditFilter, AuditResult, BeginFacts, BeginRecord, Ending, Finish,
    Location, OpenedStore, Store, StoreError, StoreOptions,
};

/// The moment at which every test takes place.
pub(crate) const NOW_MS: i64 = 1_753_900_000_123;

/// A user who owns nothing.
const NOBODY: u32 = 65_534;

/// Runs `work` on a thread of an ordinary user: root may write everywhere. The credentials are the thread's own and end with it;
/// threads that it starts have them too.
pub(crate) fn as_plain_user<T: Send + 'static>(
    work: impl Future<Output = T> + Send + 'static,
) -> T {
    let run = move || {
        if geteuid().is_root() {
            let nobody = Uid::from_raw(NOBODY);
            set_thread_res_uid(nobody, nobody, nobody).unwrap();
        }
        let mut runtime = tokio::runtime::Builder::new_current_thread();
        runtime.enable_all().build().unwrap().block_on(work)
    };
    thread::spawn(run).join().unwrap()
}

/// A fresh folder and the path of a store in it that is not there yet.
pub(crate) fn fresh() -> (TempDir, PathBuf) {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("zeph.db");
    (dir, path)
}

/// Opens a store for a host that makes calls.
pub(crate) fn try_open(path: &Path) -> Result<OpenedStore, StoreError> {
    let options = StoreOptions {
        at_ms: NOW_MS,
        busy_timeout: Duration::from_secs(5),
    };
    Store::open_or_set_aside(Location::File(path.to_owned()), options)
}

/// Opens a store for who only looks.
pub(crate) fn try_look(path: &Path) -> Result<OpenedStore, StoreError> {
    let options = StoreOptions {
        at_ms: NOW_MS,
        busy_timeout: Duration::from_secs(5),
    };
    Store::open(Location::File(path.to_owned()), options)
}

/// Opens a store that must have nothing to say.
pub(crate) fn open(path: &Path) -> Store {
    let opened = try_open(path).unwrap();
    assert_eq!(opened.notices, Vec::<String>::new());
    opened.store
}

pub(crate) fn try_open_url(url: &str) -> Result<OpenedStore, StoreError> {
    let options = StoreOptions {
        at_ms: NOW_MS,
        busy_timeout: Duration::from_secs(5),
    };
    Store::open(Location::Server(Box::new(url.parse()?)), options)
}

/// Opens a store on a server that must have nothing to say.
pub(crate) fn open_url(url: &str) -> Store {
    let opened = try_open_url(url).unwrap_or_else(|error| panic!("{}", told(&error)));
    assert_eq!(opened.notices, Vec::<String>::new());
    opened.store
}

pub(crate) fn memory() -> Store {
    let options = StoreOptions {
        at_ms: NOW_MS,
        busy_timeout: Duration::from_secs(5),
    };
    Store::open(Location::Memory, options).unwrap().store
}

/// The user of this machine, at the command line.
pub(crate) fn agreement() -> Agreement {
    Agreement {
        how: AgreedBy::CommandLine,
        who: Some("ann".to_owned()),
        client: None,
    }
}

pub(crate) fn begin(tool: &str, conversation_id: ConversationId, at_ms: i64) -> BeginRecord {
    BeginRecord {
        call_id: CallId::new(),
        at_ms,
        tool: tool.to_owned(),
        plugin: None,
        plugin_digest: None,
        mcp_server_id: None,
        command: r#"{"path":"a.txt"}"#.to_owned(),
        conversation_id,
        claim_source: None,
        caller_id: None,
        turn_id: None,
        goal_id: None,
        skill_name: None,
        policy_match: None,
        agreement: None,
        adversarial_verdict: None,
        correlation_id: None,
        resolved_cwd: None,
        host: None,
        facts: BeginFacts::default(),
    }
}

pub(crate) fn success(call_id: CallId, at_ms: i64) -> Finish {
    let ending = Ending {
        result: AuditResult::Success,
        duration_ms: 7,
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
    };
    Finish {
        call_id,
        at_ms,
        ending,
    }
}

/// How many audit rows there are, up to a number no test reaches.
pub(crate) async fn n_rows(store: &Store) -> usize {
    store
        .audit_query(AuditFilter::newest(100_000))
        .await
        .unwrap()
        .len()
}

/// A second, foreign connection to the same file.
pub(crate) fn sql(path: &Path) -> Connection {
    Connection::open(path).unwrap()
}

/// The error, its causes, and the hint, as an operator sees them.
pub(crate) fn told(error: &StoreError) -> String {
    let mut text = error.to_string();
    let mut source = std::error::Error::source(error);
    while let Some(cause) = source {
        text.push_str(&format!(": {cause}"));
        source = cause.source();
    }
    match error.hint() {
        Some(hint) => format!("{text}\n\nhint: {hint}"),
        None => text,
    }
}

/// The names in a folder, sorted.
pub(crate) fn names(dir: &Path) -> Vec<String> {
    let mut names: Vec<String> = std::fs::read_dir(dir)
        .unwrap()
        .map(|entry| entry.unwrap().file_name().into_string().unwrap())
        .collect();
    names.sort();
    names
}
