//! Several hosts on one server: each has a chain of its own, and none does what another does.

use std::collections::BTreeSet;
use std::time::{Duration, Instant};

use tempfile::TempDir;
use tokio::task::JoinSet;
use zeph_core::id::ConversationId;
use zeph_store::{
    AuditFilter, AuditKeyFolder, AuditKeySource, AuditProblemKind, ChainReport, HostProcess,
    Location, Retention, ServerUrl, Store, StoreOptions,
};

use crate::database::{Database as _, Postgres};
use crate::setup::{NOW_MS, begin, n_rows, success};
use crate::suite::chain::calls;

const DAY_MS: i64 = 86_400_000;

/// A machine: a name for its host, and its keys.
struct Machine {
    url: ServerUrl,
    dir: TempDir,
}

fn options() -> StoreOptions {
    StoreOptions {
        at_ms: NOW_MS,
        busy_timeout: Duration::from_secs(5),
    }
}

impl Machine {
    fn new(database: &Postgres, host: &str) -> Self {
        let url: ServerUrl = database.schema.url().parse().unwrap();
        Self {
            url: url.of_host(host.to_owned()),
            dir: tempfile::tempdir().unwrap(),
        }
    }

    fn location(&self) -> Location {
        Location::Server(Box::new(self.url.clone()))
    }

    fn folder(&self) -> AuditKeyFolder {
        AuditKeyFolder::new(self.dir.path().join("secrets"))
    }

    /// A process of the host.
    async fn start(&self) -> Store {
        self.begin().await.0
    }

    /// A process of the host, and what its operator is told.
    async fn begin(&self) -> (Store, Vec<String>) {
        let store = Store::open(self.location(), options()).unwrap().store;
        let source = AuditKeySource::Folder(self.folder());
        let begun = store.begin_chain(&source, NOW_MS).await.unwrap();
        (store, begun.notices)
    }

    /// The same keys as on another machine.
    fn share_keys(&self, other: &Self) {
        let folder = self.folder();
        folder.read_or_make(NOW_MS).unwrap();
        other.folder().read_or_make(NOW_MS).unwrap();
        std::fs::copy(other.folder().file(), folder.file()).unwrap();
    }

    /// What this machine finds of all hosts.
    fn reports(&self) -> Vec<ChainReport> {
        let keys = self.folder().read().unwrap();
        let none = BTreeSet::new();
        Store::verify_audit(&self.location(), &options(), keys.as_ref(), &none).unwrap()
    }

    /// What this machine finds of its own host.
    fn own(&self, host: &str) -> ChainReport {
        let mut reports = self.reports().into_iter();
        let is_own = |report: &ChainReport| report.host.as_deref() == Some(host);
        reports.find(is_own).unwrap()
    }
}

fn database() -> Option<Postgres> {
    Postgres::is_there().then(Postgres::fresh)
}

fn of_days(days: u64) -> Retention {
    Retention {
        audit: Duration::from_hours(24 * days),
        ..Retention::default()
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn the_default_isolation_of_the_server_is_no_matter() {
    let Some(database) = database() else { return };
    for isolation in ["repeatable%20read", "serializable"] {
        let isolation = isolation.replace("%20", "%5C%20");
        let settings = format!("%20-cdefault_transaction_isolation%3D{isolation}");
        let url = database.schema.url();
        let url = url.replace("&application_name", &format!("{settings}&application_name"));
        let url: ServerUrl = url.parse().unwrap();
        let machine = Machine {
            url: url.of_host(isolation.clone()),
            dir: tempfile::tempdir().unwrap(),
        };
        // Two processes, which number their records together.
        let (one, two) = (machine.start().await, machine.start().await);
        tokio::join!(calls(&one, 100, NOW_MS), calls(&two, 100, NOW_MS));
        let report = machine.own(&isolation);
        assert_eq!((&report.problems, report.n_calls), (&Vec::new(), 200));
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn each_host_has_a_chain_of_its_own() {
    let Some(database) = database() else { return };
    let (one, two) = (
        Machine::new(&database, "one"),
        Machine::new(&database, "two"),
    );
    let (of_one, of_two) = (one.start().await, two.start().await);
    let made = tokio::join!(calls(&of_one, 40, NOW_MS), calls(&of_two, 30, NOW_MS));
    let reports = one.reports();
    assert_eq!(reports.len(), 2);
    assert_eq!(
        (&reports[0].problems, reports[0].n_calls),
        (&Vec::new(), 40)
    );
    let of_other: Vec<_> = reports[1]
        .problems
        .iter()
        .map(|problem| problem.kind)
        .collect();
    assert_eq!(
        of_other,
        [AuditProblemKind::KeyMissing],
        "its key is on the other machine"
    );
    assert_eq!(two.own("two").n_calls, 30);
    // Reading is of all hosts.
    assert_eq!(n_rows(&of_one).await, 70);
    // Tampering shows where it was done.
    let sql = format!(
        "UPDATE audit SET command = 'x' WHERE call_id = '{}'",
        made.1[3]
    );
    database.schema.sql(&sql);
    assert_eq!(one.own("one").problems, []);
    let problems = two.own("two").problems;
    assert_eq!(problems.len(), 1, "{problems:#?}");
    assert!(
        problems[0]
            .to_string()
            .starts_with("store, host two, record"),
        "{}",
        problems[0]
    );
    // A row that passes for one of another host is missed here and found there.
    let sql = format!(
        "UPDATE audit SET host = 'one' WHERE call_id = '{}'",
        made.1[5]
    );
    database.schema.sql(&sql);
    let kinds = |report: ChainReport| -> Vec<AuditProblemKind> {
        report
            .problems
            .into_iter()
            .map(|problem| problem.kind)
            .collect()
    };
    assert!(kinds(two.own("two")).contains(&AuditProblemKind::Removed));
    let inserted = AuditProblemKind::Inserted;
    assert_eq!(
        kinds(one.own("one")),
        [inserted; 2],
        "its begin and its end"
    );
}

#[tokio::test(flavor = "multi_thread")]
async fn processes_of_one_host_and_those_after_them_go_on_with_its_chain() {
    let Some(database) = database() else { return };
    let machine = Machine::new(&database, "one");
    let mut running = JoinSet::new();
    let processes: [Store; 3] = [
        machine.start().await,
        machine.start().await,
        machine.start().await,
    ];
    for process in processes.clone() {
        running.spawn(async move { calls(&process, 40, NOW_MS).await });
    }
    running.join_all().await;
    let before = machine.own("one");
    assert_eq!((&before.problems, before.n_calls), (&Vec::new(), 120));
    drop(processes);
    // A copy of the machine, keys and all, is the same host.
    let copy = Machine::new(&database, "one");
    copy.share_keys(&machine);
    let (again, copied) = (machine.start().await, copy.start().await);
    tokio::join!(calls(&again, 10, NOW_MS), calls(&copied, 10, NOW_MS));
    let after = machine.own("one");
    assert_eq!((&after.problems, after.n_calls), (&Vec::new(), 140));
    assert_eq!(after.origin, before.origin);
    assert_eq!(copy.own("one"), after);
}

#[tokio::test(flavor = "multi_thread")]
async fn hosts_that_sweep_at_once_remove_each_row_once() {
    let Some(database) = database() else { return };
    let names = ["one", "two", "three"];
    let machines = names.map(|name| Machine::new(&database, name));
    let mut hosts = Vec::new();
    for machine in &machines {
        let host = machine.start().await;
        calls(&host, 60, NOW_MS - 10 * DAY_MS).await;
        calls(&host, 5, NOW_MS).await;
        hosts.push(host);
    }
    for (number, host) in hosts.iter().enumerate() {
        let pid = u32::try_from(number).unwrap();
        host.keep_process(process(pid)).await.unwrap();
    }
    let mut sweeps = JoinSet::new();
    for host in hosts.iter().chain(&hosts) {
        let host = host.clone();
        sweeps.spawn(async move { host.sweep(of_days(3), NOW_MS).await.unwrap() });
    }
    let swept = sweeps.join_all().await;
    let n_audit: usize = swept.iter().map(|swept| swept.n_audit).sum();
    assert_eq!(n_audit, 180);
    assert_eq!(n_rows(&hosts[0]).await, 15);
    for (machine, name) in machines.iter().zip(names) {
        let report = machine.own(name);
        assert_eq!(report.problems, [], "{name}");
        assert_eq!((report.n_calls, report.n_removed_calls), (5, 60));
    }
}

fn process(pid: u32) -> HostProcess {
    HostProcess {
        pid,
        start: "elsewhere/boot/namespace/1".to_owned(),
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn what_a_host_that_is_gone_left_goes_when_its_newest_record_may() {
    let Some(database) = database() else { return };
    let (gone, here) = (
        Machine::new(&database, "gone"),
        Machine::new(&database, "here"),
    );
    let left = gone.start().await;
    calls(&left, 30, NOW_MS - 10 * DAY_MS).await;
    left.keep_process(process(7)).await.unwrap();
    drop(left);
    let host = here.start().await;
    calls(&host, 5, NOW_MS).await;
    // It ran a moment ago.
    assert!(host.sweep(of_days(3), NOW_MS).await.unwrap().is_nothing());
    database
        .schema
        .sql("UPDATE host_processes SET until_ms = until_ms - 90000000");
    // Its newest record is kept.
    assert!(host.sweep(of_days(30), NOW_MS).await.unwrap().is_nothing());
    let origin = gone.own("gone").origin;
    assert!(host.sweep(of_days(3), NOW_MS).await.unwrap().n_audit >= 30);
    assert_eq!(n_rows(&host).await, 5);
    let reports = here.reports();
    assert_eq!(reports.len(), 1, "{reports:#?}");
    assert_eq!((&reports[0].problems, reports[0].n_calls), (&Vec::new(), 5));
    let said = database
        .schema
        .sql("SELECT body FROM audit_chain WHERE body LIKE '%forgotten%'");
    assert!(said.contains(&origin), "{said}");
    // It comes back, with another chain. What was said of the other one is verified where the key of the other host is.
    let (back, notices) = gone.begin().await;
    calls(&back, 4, NOW_MS).await;
    let report = gone.own("gone");
    assert_eq!(report.n_calls, 4);
    assert_ne!(report.origin, origin);
    let [problem] = &report.problems[..] else {
        panic!("{report:#?}");
    };
    assert_eq!(problem.kind, AuditProblemKind::KeyMissing);
    for told in [&problem.message, &notices[0]] {
        for part in ["`here`", "audit rekey", &origin] {
            assert!(told.contains(part), "{told}");
        }
    }
    // Its operator accepts it, once.
    let keys = gone.folder().add(NOW_MS).unwrap();
    back.rekey_chain(keys, NOW_MS).await.unwrap();
    assert_eq!(gone.own("gone").problems, []);
    assert!(gone.begin().await.1.is_empty());
}

/// A host that was away comes back to one whose word it can verify: nothing is to be done, then and whatever becomes of that host.
#[tokio::test(flavor = "multi_thread")]
async fn a_chain_that_was_removed_in_its_time_is_not_missed() {
    let Some(database) = database() else { return };
    let (gone, here) = (
        Machine::new(&database, "gone"),
        Machine::new(&database, "here"),
    );
    here.share_keys(&gone);
    let left = gone.start().await;
    calls(&left, 3, NOW_MS - 10 * DAY_MS).await;
    let origin = gone.own("gone").origin;
    drop(left);
    let host = here.start().await;
    calls(&host, 2, NOW_MS).await;
    assert!(host.sweep(of_days(3), NOW_MS).await.unwrap().n_audit >= 3);
    let n_left = "SELECT count(*) FROM audit_chain WHERE host = 'gone'";
    assert_eq!(database.schema.sql(n_left).trim(), "0");
    let removed = |report: &ChainReport| {
        assert_eq!(report.problems, []);
        let earlier = report.earlier.clone().unwrap();
        assert_eq!(earlier.origin.unwrap().to_string(), origin);
        let removal = earlier.removal.unwrap();
        assert_eq!((removal.host.as_str(), removal.is_verified), ("here", true));
    };
    removed(&gone.own("gone"));
    for removal in ["", "DELETE FROM audit_chain WHERE host = 'here'"] {
        database.schema.sql(&format!("SELECT 1; {removal}"));
        let (back, notices) = gone.begin().await;
        assert!(notices.is_empty(), "{notices:?}");
        calls(&back, 1, NOW_MS).await;
        removed(&gone.own("gone"));
    }
}

/// How far a removal came: what stops it, and what of. The 200 calls of the host that is gone make some 400 events.
const HALF_DONE: [(&str, &str); 3] = [
    ("audit", "OLD.seq > 150"),
    ("audit_chain", "OLD.n > 0"),
    ("audit_chain", "OLD.n > 300"),
];

/// Has `host` remove the log of one that is gone, up to where it is stopped.
async fn half_removed(database: &Postgres, host: &Store, (table, when): (&str, &str)) {
    database.schema.sql(&format!(
        "CREATE FUNCTION stop() RETURNS trigger LANGUAGE plpgsql AS 'BEGIN RAISE EXCEPTION ''so far''; END';
        CREATE TRIGGER stop BEFORE DELETE ON {table} FOR EACH ROW WHEN ({when}) EXECUTE FUNCTION stop()"
    ));
    assert!(host.sweep(of_days(3), NOW_MS).await.is_err());
    let undo = format!("DROP TRIGGER stop ON {table}; DROP FUNCTION stop");
    database.schema.sql(&undo);
}

/// A process of a host with a log that says something of itself in the middle, all of it long ago.
async fn of_long_ago(machine: &Machine) -> Store {
    let store = machine.start().await;
    calls(&store, 10, NOW_MS - 20 * DAY_MS).await;
    calls(&store, 90, NOW_MS - 10 * DAY_MS).await;
    store.sweep(of_days(15), NOW_MS).await.unwrap();
    calls(&store, 100, NOW_MS - 10 * DAY_MS).await;
    store
}

/// Waits until the server can be reached again.
async fn reached(store: &Store) {
    let deadline = Instant::now() + Duration::from_secs(60);
    let newest = AuditFilter::newest(1);
    while store.audit_query(newest.clone()).await.is_err()
        || store
            .begin_conversation(ConversationId::new(), NOW_MS)
            .await
            .is_err()
    {
        assert!(Instant::now() < deadline, "nothing can be read again");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_host_that_comes_back_goes_on_after_what_another_removed() {
    if !Postgres::is_there() {
        return;
    }
    // One that was started anew, and one that slept.
    let cases = HALF_DONE
        .iter()
        .flat_map(|half| [(half, false), (half, true)]);
    for (half, slept) in cases {
        let database = Postgres::fresh();
        let (gone, here) = (
            Machine::new(&database, "gone"),
            Machine::new(&database, "here"),
        );
        here.share_keys(&gone);
        let mut back = of_long_ago(&gone).await;
        let host = here.start().await;
        calls(&host, 5, NOW_MS).await;
        half_removed(&database, &host, *half).await;
        let sound = |n_calls: u64| {
            for machine in [&gone, &here] {
                let report = machine.own("gone");
                let told = format!("{half:?} {slept}");
                assert_eq!(
                    (report.problems, report.n_calls),
                    (vec![], n_calls),
                    "{told}"
                );
            }
        };
        sound(0);
        if slept {
            database.schema.end_connections();
            reached(&back).await;
        } else {
            let (anew, notices) = gone.begin().await;
            assert!(notices.is_empty(), "{notices:?}");
            back = anew;
        }
        calls(&back, 4, NOW_MS).await;
        sound(4);
        // What is left goes, and nothing else.
        back.sweep(of_days(3), NOW_MS).await.unwrap();
        sound(4);
        assert_eq!(n_rows(&back).await, 9, "{half:?} {slept}");
        let left = "SELECT count(*) FROM audit_chain WHERE host = 'gone' AND n < 300";
        assert_eq!(database.schema.sql(left).trim(), "0");
        let sql = "UPDATE audit SET chain_n = 3 WHERE host = 'gone'";
        database.schema.sql(sql);
        assert_ne!(gone.own("gone").problems, [], "{half:?} {slept}");
    }
}

/// Without the key of the other host, a person says that it may be so.
#[tokio::test(flavor = "multi_thread")]
async fn a_removal_that_nobody_can_verify_is_told_until_it_is_accepted() {
    if !Postgres::is_there() {
        return;
    }
    for half in HALF_DONE {
        let database = Postgres::fresh();
        let (gone, here) = (
            Machine::new(&database, "gone"),
            Machine::new(&database, "here"),
        );
        drop(of_long_ago(&gone).await);
        let host = here.start().await;
        calls(&host, 5, NOW_MS).await;
        half_removed(&database, &host, half).await;
        let told = || {
            let report = gone.own("gone");
            let [problem] = &report.problems[..] else {
                panic!("{half:?} {report:#?}");
            };
            assert_eq!(problem.kind, AuditProblemKind::KeyMissing);
            for part in ["`here`", "audit rekey"] {
                assert!(problem.message.contains(part), "{problem}");
            }
        };
        told();
        let back = gone.start().await;
        calls(&back, 4, NOW_MS).await;
        told();
        let keys = gone.folder().add(NOW_MS).unwrap();
        back.rekey_chain(keys, NOW_MS).await.unwrap();
        for _ in 0..2 {
            let report = gone.own("gone");
            assert_eq!((report.problems, report.n_calls), (vec![], 4), "{half:?}");
            back.sweep(of_days(3), NOW_MS).await.unwrap();
        }
        assert_eq!(n_rows(&back).await, 9, "{half:?}");
    }
}

/// What a host said of the chains that it removed outlives its own chain, too.
#[tokio::test(flavor = "multi_thread")]
async fn what_a_host_said_that_is_gone_is_said_on() {
    let Some(database) = database() else { return };
    let [first, second, third] =
        ["first", "second", "third"].map(|host| Machine::new(&database, host));
    second.share_keys(&first);
    third.share_keys(&first);
    calls(&first.start().await, 3, NOW_MS - 20 * DAY_MS).await;
    let origin = first.own("first").origin;
    let host = second.start().await;
    calls(&host, 3, NOW_MS - 10 * DAY_MS).await;
    host.sweep(of_days(15), NOW_MS).await.unwrap();
    drop(host);
    let host = third.start().await;
    calls(&host, 1, NOW_MS).await;
    host.sweep(of_days(3), NOW_MS).await.unwrap();
    let left = database.schema.sql("SELECT DISTINCT host FROM audit_chain");
    assert_eq!(left.trim(), "third");
    let (back, notices) = first.begin().await;
    assert!(notices.is_empty(), "{notices:?}");
    calls(&back, 1, NOW_MS).await;
    let report = first.own("first");
    assert_eq!(report.problems, []);
    let earlier = report.earlier.unwrap();
    assert_eq!(earlier.origin.unwrap().to_string(), origin);
    assert_eq!(earlier.removal.unwrap().host, "third");
}

/// Whoever can write to the server can make a host say anything, but seal nothing.
#[tokio::test(flavor = "multi_thread")]
async fn no_word_that_cannot_be_verified_excuses_a_removed_chain() {
    use AuditProblemKind::{KeyMissing, Removed};
    const NOBODYS: &str = "0000000000000000";
    let Some(database) = database() else { return };
    let one = Machine::new(&database, "one");
    calls(&one.start().await, 2, NOW_MS).await;
    let kinds = || -> Vec<AuditProblemKind> {
        let problems = one.own("one").problems.into_iter();
        problems.map(|problem| problem.kind).collect()
    };
    for (key, of_host, kind) in [
        (Some(NOBODYS), "one", KeyMissing),
        // As if it were sealed with the key that is here.
        (None, "one", Removed),
        (Some(NOBODYS), "two", Removed),
    ] {
        let origin = one.own("one").origin;
        let sql = "SELECT body FROM audit_chain WHERE host = 'one' AND n = 1";
        let mut mark: serde_json::Value = serde_json::from_str(&database.schema.sql(sql)).unwrap();
        if let Some(key) = key {
            mark["key"] = key.into();
        }
        mark["forgotten"] = serde_json::json!([{
            "host": of_host, "origin": origin, "upto": 9, "upto_code": "0".repeat(64),
            "upto_key": NOBODYS, "at_ms": 1,
        }]);
        let zeros = "00".repeat(32);
        database.schema.sql(&format!(
            "DELETE FROM audit; DELETE FROM audit_chain;
             INSERT INTO audit_chain (host, n, kind, body, code) VALUES ('x', 1, 5, '{mark}', '\\x{zeros}')"
        ));
        assert_eq!(kinds(), [kind], "nothing is there: {key:?} {of_host}");
        let (store, notices) = one.begin().await;
        calls(&store, 2, NOW_MS).await;
        assert_eq!(kinds(), [kind], "it began anew: {key:?} {of_host}");
        assert!(notices[0].contains(&origin), "{key:?} {of_host}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_process_runs_as_long_as_it_says_so() {
    let Some(database) = database() else { return };
    let (one, two) = (
        Machine::new(&database, "one"),
        Machine::new(&database, "two"),
    );
    let (of_one, of_two) = (one.start().await, two.start().await);
    assert_eq!(of_two.running_processes().await.unwrap(), Some(Vec::new()));
    of_one.keep_process(process(1)).await.unwrap();
    of_one.keep_process(process(2)).await.unwrap();
    of_one.keep_process(process(2)).await.unwrap();
    let both = Some(vec![process(1), process(2)]);
    assert_eq!(of_two.running_processes().await.unwrap(), both);
    // Of one nothing is heard any more.
    database
        .schema
        .sql("UPDATE host_processes SET until_ms = until_ms - 30001 WHERE pid = 2");
    assert_eq!(
        of_two.running_processes().await.unwrap(),
        Some(vec![process(1)])
    );
}

#[tokio::test(flavor = "multi_thread")]
async fn two_hosts_that_are_one_replica_are_seen() {
    let Some(database) = database() else { return };
    let (one, two) = (
        Machine::new(&database, "one"),
        Machine::new(&database, "two"),
    );
    let (of_one, of_two) = (one.start().await, two.start().await);
    for (store, pid) in [(&of_one, 1), (&of_one, 2), (&of_two, 3)] {
        store.keep_process(process(pid)).await.unwrap();
    }
    let is_double = async |store: &Store, pid, name: &str| {
        let kept = store.keep_replica(process(pid), name.to_owned());
        kept.await.unwrap()
    };
    // Processes of one host have the same name.
    assert!(!is_double(&of_one, 1, "a").await);
    assert!(!is_double(&of_one, 2, "a").await);
    assert!(!is_double(&of_two, 3, "b").await);
    assert!(is_double(&of_two, 3, "a").await);
    assert!(is_double(&of_one, 1, "a").await);
    database
        .schema
        .sql("UPDATE host_processes SET until_ms = until_ms - 30001 WHERE host = 'one'");
    assert!(!is_double(&of_two, 3, "a").await, "it ended");
}

#[tokio::test(flavor = "multi_thread")]
async fn calls_of_all_hosts_are_read_together_and_end_where_they_began() {
    let Some(database) = database() else { return };
    let (one, two) = (
        Machine::new(&database, "one"),
        Machine::new(&database, "two"),
    );
    let (of_one, of_two) = (one.start().await, two.start().await);
    let begun = begin("read\0me", ConversationId::new(), NOW_MS);
    of_one.audit_begin(begun.clone()).await.unwrap();
    // The same call cannot begin on another host.
    assert!(of_two.audit_begin(begun.clone()).await.is_err());
    let unfinished = AuditFilter {
        unfinished_only: true,
        ..AuditFilter::newest(10)
    };
    let found = of_two.audit_query(unfinished.clone()).await.unwrap();
    assert_eq!(found.len(), 1);
    assert_eq!(
        found[0].begin.tool, "read\u{1a}me",
        "no text of the server holds a zero byte"
    );
    of_one
        .audit_finish(success(begun.call_id, NOW_MS))
        .await
        .unwrap();
    assert_eq!(of_two.audit_query(unfinished).await.unwrap(), []);
    assert_eq!(
        one.own("one").problems,
        [],
        "tags are made over what is kept"
    );
}
