//! A host that is killed at any moment, while it makes calls, runs what was scheduled, learns and writes its audit log.

use std::collections::{BTreeMap, HashSet};
use std::fs;
use std::thread;
use std::time::{Duration, Instant};

use serde_json::{Value, json};

use crate::mcp_client::McpClient;
use crate::product::Product;
use crate::scheduler::{OPEN, SchedulerHost, deferred, line, product, tasks};
use crate::toolchain::slow_tests;

/// A command that a rule denies; three times after the same call, and it is learned.
const DENIED: &str = "[[tools.permissions.bash]]\npattern = \"denied *\"\naction = \"deny\"\n";

/// The words of calls and tasks that ran, by how often.
fn counted(text: &str) -> BTreeMap<&str, u32> {
    let mut counted = BTreeMap::new();
    for word in text.lines() {
        *counted.entry(word).or_default() += 1;
    }
    counted
}

/// The events of the audit file: the calls that were begun, and those that ended.
fn events(product: &Product) -> (Vec<Value>, Vec<Value>) {
    let path = product.home.join(".local/state/zeph-host/audit.jsonl");
    let text = fs::read_to_string(path).unwrap();
    // A kill may have left half a line, which the next host closes.
    let lines = text
        .lines()
        .filter_map(|line| serde_json::from_str(line).ok());
    let events: Vec<Value> = lines.collect();
    let of = |kind: &str| {
        let of = events.iter().filter(|event| event["event"] == kind);
        of.cloned().collect()
    };
    (of("begin"), of("finish"))
}

/// Products whose hosts are killed side by side: most of a round is waiting.
const LANES: u32 = 4;

#[test]
fn a_host_that_is_killed_leaves_nothing_half_done() {
    let rounds: u32 = match slow_tests("a host is killed 200 times instead of 12") {
        true => 200,
        false => 12,
    };
    thread::scope(|scope| {
        for lane in 0..LANES {
            scope.spawn(move || kill_often(lane, rounds / LANES));
        }
    });
}

fn kill_often(lane: u32, rounds: u32) {
    // The first rule that fits decides.
    let product = product(&OPEN.replacen("[[tools", &format!("{DENIED}[[tools"), 1));
    let schedules: String = (0..rounds * 2)
        .map(|n| {
            let at = format!("+{}s", 1 + n / 8);
            let task = deferred(&format!("t{n}"), &at, &format!("echo task-{n} >> done.txt"));
            line(n, "schedule_deferred", &task)
        })
        .collect();
    product.answers(&[], schedules);
    for round in 0..rounds {
        let mut host = McpClient::modern(&product, &[], &json!({}));
        for command in [
            format!("echo call-{round} >> done.txt"),
            "true".to_owned(),
            "denied thing".to_owned(),
            format!("echo again-{round} >> done.txt"),
        ] {
            host.begin_call("bash", json!({ "command": command }));
        }
        // Another moment each time: while it starts, makes its calls, runs tasks and waits.
        let moment = (lane * rounds + round) * 37 % 700;
        thread::sleep(Duration::from_millis(u64::from(60 + moment)));
        host.kill();
    }
    ends(&product);
    looks_whole(&product, rounds);
}

/// What was begun gets its end, if only that nobody knows it.
fn ends(product: &Product) {
    let _host = SchedulerHost::start(product);
    let begun = Instant::now();
    while tasks(product).values().any(|task| task["running"] == true) {
        assert!(begun.elapsed() < Duration::from_secs(60));
    }
}

fn looks_whole(product: &Product, rounds: u32) {
    let done = fs::read_to_string(product.work.join("done.txt")).unwrap_or_default();
    let done = counted(&done);
    assert!(done.values().all(|n| *n == 1), "{done:?}");

    let (begins, finishes) = events(product);
    let begun: HashSet<&Value> = begins.iter().map(|begin| &begin["call_id"]).collect();
    let orphan = finishes
        .iter()
        .find(|finish| !begun.contains(&finish["call_id"]));
    assert_eq!(orphan, None);
    // What was scheduled names the command, too.
    let commands = begins.iter().filter(|begin| begin["tool"] == "bash");
    let commands: Vec<String> = commands.map(|begin| begin["command"].to_string()).collect();
    for word in done.keys() {
        let word = format!("echo {word} ");
        let n = commands.iter().filter(|text| text.contains(&word)).count();
        assert_eq!(n, 1, "{word}");
    }

    let verified = product.run(&["audit", "verify", "--json"]);
    assert_eq!(verified.code, Some(0), "{}", verified.stdout);

    let learned = product.run(&["forgive", "--json"]);
    assert_eq!(learned.code, Some(0), "{}", learned.stderr);
    let learned: Vec<Value> = serde_json::from_str(&learned.stdout).unwrap();
    for sequence in &learned {
        let state = sequence["state"].as_str().unwrap();
        assert!(["learned", "candidate"].contains(&state), "{sequence}");
        assert!(
            sequence["n_bad"].as_u64().unwrap() <= u64::from(rounds) * 2,
            "{sequence}"
        );
    }
    // What was left can be learned, when it is more than the name of a program.
    let is_echo = |begin: &&Value| begin["command"].to_string().contains("echo ");
    let call = begins.iter().find(is_echo).unwrap();
    let revoked = product.run(&["revoke", call["call_id"].as_str().unwrap()]);
    assert_eq!(revoked.code, Some(0), "{}", revoked.stderr);
}
