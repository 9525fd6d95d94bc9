//! Every call leaves a record, however it ends.

use std::fs;
use std::io::Write as _;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use serde_json::{Value, json};

use crate::product::Product;
use crate::site::Site;

#[test]
fn each_call_has_a_begin_and_a_finish() {
    let product = Product::new();
    product.file("a.txt", "a");
    let lines = [
        json!({"id": 1, "tool": "read", "params": {"path": "a.txt"}}),
        json!({"id": 2, "tool": "nonsense", "params": {}}),
        json!({"id": 3, "tool": "write", "params": {"path": "b.txt", "content": "x".repeat(5_000)}}),
        json!({"id": 4, "tool": "read", "params": {"path": "missing"}}),
        json!({"id": 5, "tool": "grep", "params": {}}),
    ];
    let input: String = lines.iter().map(|line| line.to_string() + "\n").collect();
    product.answers(&["--jobs", "1"], input);

    let records = product.run(&["audit", "query", "--json"]).json_lines();
    let by_tool = |tool: &str, kind: &str| {
        let found = records
            .iter()
            .find(|record| record["tool"] == tool && record["result"]["type"] == kind);
        found.unwrap_or_else(|| panic!("{tool} {kind}: {records:#?}"))
    };
    let read = by_tool("read", "success");
    assert_eq!(read["claim_source"], "file_system");
    assert!(read["policy_match"].as_str().unwrap().contains("read-only"));
    assert!(read["duration_ms"].is_number() && read["timestamp"].is_string());
    let unknown = by_tool("nonsense", "error");
    assert_eq!(unknown["error_category"], "tool_not_found");
    assert!(unknown["trust"].is_null(), "{unknown}");
    assert_eq!(read["trust"], "verified");
    assert_eq!(by_tool("grep", "error")["trust"], "verified");
    assert_eq!(
        by_tool("read", "error")["error_category"],
        "permanent_failure"
    );
    let write = by_tool("write", "blocked");
    assert_eq!(write["error_category"], "confirmation_required");
    assert!(
        write["command"].as_str().unwrap().len() < 1_000,
        "contents are not kept twice"
    );

    let file = fs::read_to_string(product.home.join(".local/state/zeph-host/audit.jsonl")).unwrap();
    let events: Vec<Value> = file
        .lines()
        .map(|line| serde_json::from_str(line).unwrap())
        .collect();
    assert_eq!(
        events.len(),
        11,
        "the log itself begins with a line of its own"
    );
    for begin in events.iter().filter(|event| event["event"] == "begin") {
        let finish = events
            .iter()
            .find(|event| event["event"] == "finish" && event["call_id"] == begin["call_id"]);
        assert!(finish.is_some(), "{begin}");
    }
}

#[test]
fn a_person_and_a_program_are_told_apart() {
    let product = Product::new();
    let ran = product.run(&["call", "write", "path=b.txt", "content=hello"]);
    assert_eq!(ran.code, Some(0), "{}", ran.stderr);
    assert_eq!(product.read("b.txt"), "hello");
    let records = product.run(&["audit", "query", "--json"]).json_lines();
    assert!(
        records[0]["policy_match"]
            .as_str()
            .unwrap()
            .contains("terminal"),
        "{records:#?}"
    );
}

/// A call without an end is running as long as its host is, and not a moment longer.
#[test]
fn a_call_whose_host_died_is_told_from_one_that_runs() {
    let product = Product::new();
    let mut child = product.start(&["--allow", "*"]);
    let line = json!({"id": 1, "tool": "bash", "params": {"command": "sleep 300"}});
    writeln!(child.stdin.as_mut().unwrap(), "{line}").unwrap();
    let unfinished = || {
        let found = product.run(&["audit", "query", "--unfinished", "--json"]);
        found.json_lines().into_iter().next()
    };
    let running = (0..2_000).find_map(|_| unfinished()).unwrap();
    assert_eq!(running["state"], "running", "{running}");
    assert_eq!(running["host"]["pid"], child.id(), "{running}");
    let table = product.run(&["audit", "query", "--unfinished"]).stdout;
    assert!(
        table.contains("running") && table.contains(&child.id().to_string()),
        "{table}"
    );
    child.kill().unwrap();
    child.wait().unwrap();
    let died = unfinished().unwrap();
    assert_eq!(died["state"], "died", "{died}");
    let table = product.run(&["audit", "query", "--unfinished"]).stdout;
    assert!(
        table.contains("died") && !table.contains("running"),
        "{table}"
    );
}

#[test]
fn calls_are_found_by_plugin() {
    let product = Product::new();
    product.file("a.txt", "a");
    product.call("read", json!({"path": "a.txt"}));
    product.call("bash", json!({"command": "true"}));
    let of = |plugin: &str| {
        let ran = product.run(&["audit", "query", "--plugin", plugin, "--json"]);
        assert_eq!(ran.code, Some(0), "{}", ran.stderr);
        ran.json_lines()
    };
    let records = of("file");
    assert_eq!(records.len(), 1, "{records:#?}");
    assert_eq!(records[0]["tool"], "read", "{records:#?}");
    assert_eq!(of("nobodys"), Vec::<Value>::new());
}

/// Whichever tool reads a credential, the caller is warned of it.
#[test]
fn a_credential_in_any_tools_result_is_warned_of() {
    let product = Product::new();
    let token = format!("ghp_{}", "a1B2c3D4e5F6".repeat(3));
    product.file("notes.txt", format!("one\ntoken: {token}\n"));
    for (tool, params) in [
        ("read", json!({"path": "notes.txt"})),
        ("grep", json!({"pattern": "token"})),
        ("bash", json!({"command": "cat notes.txt"})),
    ] {
        let answer = product.call(tool, params);
        let notes = answer["notes"].to_string();
        assert!(notes.contains("GitHub token"), "{tool}: {answer}");
        assert!(!notes.contains(&token), "{tool}: {answer}");
    }
    let clean = product.call("list_directory", json!({"path": "."}));
    assert!(
        !clean["notes"].to_string().contains("credentials"),
        "{clean}"
    );
}

#[test]
fn whom_a_program_acts_for_is_recorded_and_gives_no_rights() {
    let product = Product::new();
    product.file("a.txt", "a");
    let read = |id: u32| json!({"id": id, "tool": "read", "params": {"path": "a.txt"}});
    let mut of_bob = read(2);
    of_bob["caller_id"] = json!("bob");
    let lines = [
        read(1),
        of_bob,
        json!({"caller_id": "ann"}),
        read(3),
        json!({"id": 4, "caller_id": "operator", "tool": "write", "params": {"path": "b", "content": "x"}}),
    ];
    let input: String = lines.iter().map(|line| line.to_string() + "\n").collect();
    let answers = product.answers(&["--jobs", "1"], input);
    assert_eq!(answers.len(), 4, "{answers:#?}");
    assert_eq!(answers[3]["error"]["category"], "confirmation_required");
    product.run(&["call", "write", "path=b", "content=x"]);
    assert_eq!(product.read("b"), "x", "a person's call runs");

    let file = fs::read_to_string(product.home.join(".local/state/zeph-host/audit.jsonl")).unwrap();
    let events = file
        .lines()
        .map(|line| serde_json::from_str::<Value>(line).unwrap());
    let begun = events.filter(|event| event["event"] == "begin");
    let callers: Vec<Value> = begun.map(|begin| begin["caller_id"].clone()).collect();
    let expect = [None, Some("bob"), Some("ann"), Some("operator"), None];
    assert_eq!(callers, expect.map(|caller| json!(caller)));
}

/// The log as it was recorded verifies, also under new calls; a changed line and a log that was cut off do not.
#[test]
fn a_log_that_was_tampered_with_does_not_verify() {
    let product = Product::new();
    product.file("a.txt", "a");
    for _ in 0..3 {
        product.call("read", json!({"path": "a.txt"}));
    }
    let sound = product.run(&["audit", "verify", "--json"]);
    assert_eq!(sound.code, Some(0), "{}", sound.stdout);
    let found: Value = serde_json::from_str(&sound.stdout).unwrap();
    assert_eq!(found["store"]["calls"], 3, "{found}");
    assert_eq!(found["problems"], json!([]), "{found}");

    let checkpoint = product.run(&["audit", "checkpoint"]);
    assert_eq!(checkpoint.code, Some(0), "{}", checkpoint.stderr);
    let seen = product.home.join("seen.jsonl");
    fs::write(&seen, &checkpoint.stdout).unwrap();
    let against = ["audit", "verify", "--against", seen.to_str().unwrap()];
    let agreed = product.run(&against);
    assert_eq!(agreed.code, Some(0), "{}", agreed.stdout);
    assert!(agreed.stdout.contains("1 agree"), "{}", agreed.stdout);

    let path = product.home.join(".local/state/zeph-host/audit.jsonl");
    let whole = fs::read_to_string(&path).unwrap();
    let changed = whole.replacen("\"tool\":\"read\"", "\"tool\":\"rEad\"", 1);
    assert_ne!(changed, whole);
    fs::write(&path, changed).unwrap();
    let refused = product.run(&["audit", "verify"]);
    assert_eq!(refused.code, Some(1), "{}", refused.stdout);
    let call = product.run(&["audit", "query", "--json"]).json_lines()[0]["call_id"].clone();
    let named = format!("audit.jsonl:2: call {}: changed", call.as_str().unwrap());
    assert!(refused.stdout.contains(&named), "{}", refused.stdout);

    let lines: Vec<&str> = whole.lines().collect();
    fs::write(&path, lines[..5].join("\n") + "\n").unwrap();
    let at_line_end = product.run(&["audit", "verify"]);
    assert_eq!(at_line_end.code, Some(0), "{}", at_line_end.stdout);
    let truncated = product.run(&against);
    assert_eq!(truncated.code, Some(1), "{}", truncated.stdout);
    assert!(
        truncated.stdout.contains("truncated"),
        "{}",
        truncated.stdout
    );
}

#[test]
fn without_the_key_of_the_log_no_call_is_made() {
    let product = Product::new();
    product.file("a.txt", "a");
    product.call("read", json!({"path": "a.txt"}));
    let key = product
        .home
        .join(".local/share/zeph-host/secrets/audit.json");
    fs::remove_file(&key).unwrap();
    let refused = product.run(&["call", "read", "path=a.txt"]);
    assert_eq!(refused.code, Some(3), "{}", refused.stderr);
    assert!(refused.stderr.contains("audit rekey"), "{}", refused.stderr);
    let unsigned = product.run(&["audit", "checkpoint"]);
    assert_ne!(unsigned.code, Some(0), "{}", unsigned.stdout);
    assert!(
        unsigned.stderr.contains("audit rekey"),
        "{}",
        unsigned.stderr
    );
    assert!(
        !unsigned.stderr.contains("nothing was recorded"),
        "{}",
        unsigned.stderr
    );
    let rekeyed = product.run(&["audit", "rekey"]);
    assert_eq!(rekeyed.code, Some(0), "{}", rekeyed.stderr);
    let made = product.run(&["call", "read", "path=a.txt"]);
    assert_eq!(made.code, Some(0), "{}", made.stderr);
    let verified = product.run(&["audit", "verify"]);
    assert!(
        verified.stdout.contains("key was lost"),
        "{}",
        verified.stdout
    );
    // Of the audit file, too: what was said to be lost is no problem.
    assert_eq!(verified.code, Some(0), "{}", verified.stdout);
}

/// A store that was removed is missed, until its operator says that it may be gone.
#[test]
fn a_log_that_begins_anew_is_reported_until_the_operator_accepts_it() {
    let product = Product::new();
    product.file("a.txt", "a");
    product.call("read", json!({"path": "a.txt"}));
    let folder = product.home.join(".local/share/zeph-host");
    for name in ["zeph.db", "zeph.db-wal", "zeph.db-shm"] {
        drop(fs::remove_file(folder.join(name)));
    }
    let made = product.run(&["call", "read", "path=a.txt"]);
    assert_eq!(made.code, Some(0), "{}", made.stderr);
    assert!(made.stderr.contains("begun anew"), "{}", made.stderr);
    let missed = product.run(&["audit", "verify"]);
    assert_eq!(missed.code, Some(1), "{}", missed.stdout);
    for part in ["begins anew", "audit rekey"] {
        assert!(missed.stdout.contains(part), "{}", missed.stdout);
    }
    let rekeyed = product.run(&["audit", "rekey"]);
    assert_eq!(rekeyed.code, Some(0), "{}", rekeyed.stderr);
    let accepted = product.run(&["audit", "verify"]);
    assert_eq!(accepted.code, Some(0), "{}", accepted.stdout);
    assert!(
        accepted.stdout.contains("the operator accepted"),
        "{}",
        accepted.stdout
    );
}

/// What is remembered of sealed logs is no key: nobody has to give up anything for it.
#[test]
fn a_damaged_memory_of_sealed_logs_stops_no_call() {
    let product = Product::new();
    product.file("a.txt", "a");
    let read = || {
        let ran = product.run(&["call", "read", "path=a.txt"]);
        assert_eq!(ran.code, Some(0), "{}", ran.stderr);
        ran.stderr
    };
    read();
    let memory = product
        .home
        .join(".local/share/zeph-host/secrets/audit-chains.json");
    fs::write(&memory, "{").unwrap();
    let told = read();
    for part in ["audit-chains.json", "delete"] {
        assert!(told.contains(part), "{told}");
    }
    let verified = product.run(&["audit", "verify"]);
    assert_eq!(verified.code, Some(1), "{}", verified.stderr);
    for part in ["audit-chains.json:0: damaged", "2 calls", "1 problem"] {
        assert!(verified.stdout.contains(part), "{}", verified.stdout);
    }
    let rekeyed = product.run(&["audit", "rekey"]);
    assert_eq!(rekeyed.code, Some(0), "{}", rekeyed.stderr);
    fs::remove_file(&memory).unwrap();
    assert!(!read().contains("audit-chains.json"));
    let verified = product.run(&["audit", "verify"]);
    assert_eq!(verified.code, Some(0), "{}", verified.stdout);
}

/// The log of a store in memory ends with its process; the audit file stays.
#[test]
fn of_a_store_in_memory_only_the_audit_file_is_verified() {
    let product = Product::new();
    product.file("a.txt", "a");
    let run = |args: &[&str]| product.run(&[&["--set", "store.path=:memory:"], args].concat());
    let nothing = run(&["audit", "verify"]);
    assert_eq!(nothing.code, Some(2), "{}", nothing.stderr);
    assert!(
        nothing.stderr.contains("nothing to verify"),
        "{}",
        nothing.stderr
    );
    for n_keys in 1..=2 {
        for _ in 0..2 {
            let made = run(&["call", "read", "path=a.txt"]);
            assert_eq!(made.code, Some(0), "{}", made.stderr);
        }
        let verified = run(&["audit", "verify"]);
        assert_eq!(verified.code, Some(0), "{n_keys} {}", verified.stdout);
        for part in ["in memory, there is nothing to verify", "audit file: "] {
            assert!(verified.stdout.contains(part), "{}", verified.stdout);
        }
        let rekeyed = run(&["audit", "rekey"]);
        assert_eq!(rekeyed.code, Some(0), "{}", rekeyed.stderr);
        assert!(
            rekeyed.stderr.contains("nothing to verify"),
            "{}",
            rekeyed.stderr
        );
    }
}

#[test]
fn checkpoints_that_cannot_be_read_are_a_slip_of_the_command_line() {
    let product = Product::new();
    product.file("a.txt", "a");
    product.call("read", json!({"path": "a.txt"}));
    let ran = product.run(&["audit", "verify", "--against", "nosuch"]);
    assert_eq!(ran.code, Some(2), "{}", ran.stderr);
    assert!(ran.stderr.contains("nosuch"), "{}", ran.stderr);
    assert!(!ran.stderr.contains("store.path"), "{}", ran.stderr);
}

/// What keeps nothing has nothing to verify.
#[test]
fn a_store_where_nothing_can_be_made_is_verified_as_a_copy() {
    let product = Product::new();
    let ran = product.run(&["--set", "store.path=/proc/zeph/zeph.db", "audit", "verify"]);
    assert_ne!(ran.code, Some(0), "{ran:?}");
    assert!(ran.stderr.contains("verify the copy"), "{ran:?}");
    assert!(!ran.stderr.contains(":memory:"), "{ran:?}");
}

#[test]
fn calls_are_exported_for_other_programs() {
    let product = Product::new();
    product.file("a.txt", "a");
    product.call("read", json!({"path": "a.txt"}));
    let export = |format: &str| {
        let ran = product.run(&["audit", "export", "--format", format]);
        assert_eq!(ran.code, Some(0), "{}", ran.stderr);
        ran.stdout
    };
    let lines: Value = serde_json::from_str(export("jsonl").trim()).unwrap();
    assert_eq!(lines["tool"], "read", "{lines}");
    let csv = export("csv");
    assert!(csv.starts_with("timestamp,call_id,"), "{csv}");
    assert!(csv.contains(",read,success,"), "{csv}");
    let otlp: Value = serde_json::from_str(export("otlp").trim()).unwrap();
    let record = &otlp["resourceLogs"][0]["scopeLogs"][0]["logRecords"][0];
    assert_eq!(record["severityText"], "INFO", "{otlp}");
    let wrong = product.run(&[
        "audit",
        "export",
        "--endpoint",
        "http://localhost:1/v1/logs",
    ]);
    assert_eq!(wrong.code, Some(2), "{}", wrong.stderr);
}

/// A checkpoint that its server does not take is told, and handed over by the next process that finds it there.
#[test]
fn checkpoints_reach_a_server_that_was_away() {
    let is_there = Arc::new(AtomicBool::new(false));
    let asked = Arc::clone(&is_there);
    let site = Site::start(move |_| match asked.load(Ordering::SeqCst) {
        true => ("204 No Content".to_owned(), Vec::new()),
        false => ("503 Service Unavailable".to_owned(), Vec::new()),
    });
    let product = Product::new();
    product.file("a.txt", "a");
    product.file("ca.pem", &site.certificate);
    let folder = product.home.join(".config/zeph-host");
    fs::create_dir_all(&folder).unwrap();
    let config = format!(
        "[tools.audit]\ncheckpoint_target = \"{}\"\ncheckpoint_every = \"2\"\n[tools.egress]\nca_file = \"{}\"\n",
        site.url("/checkpoints"),
        product.work.join("ca.pem").display()
    );
    fs::write(folder.join("config.toml"), config).unwrap();
    let read = || {
        let line = json!({"id": 1, "tool": "read", "params": {"path": "a.txt"}});
        product.feed(&[], format!("{line}\n"))
    };
    let told = read();
    assert_eq!(told.code, Some(0), "{}", told.stderr);
    for part in ["no checkpoint of the audit log", "/checkpoints", "503"] {
        assert!(told.stderr.contains(part), "{}", told.stderr);
    }
    let typed = product.run(&["audit", "checkpoint"]);
    assert_ne!(typed.code, Some(0));
    assert!(typed.stderr.contains("503"), "{}", typed.stderr);
    let n_refused = site.requests().len();
    is_there.store(true, Ordering::SeqCst);
    let silent = read();
    assert!(!silent.stderr.contains("checkpoint"), "{}", silent.stderr);
    let requests = site.requests();
    assert!(requests.len() > n_refused, "{requests:?}");
    let taken = requests.last().unwrap();
    assert!(taken.starts_with("POST /checkpoints "), "{taken}");
    let body = taken.split("\r\n\r\n").nth(1).unwrap();
    let seen = product.home.join("seen.jsonl");
    fs::write(&seen, format!("{body}\n")).unwrap();
    let against = product.run(&["audit", "verify", "--against", seen.to_str().unwrap()]);
    assert_eq!(against.code, Some(0), "{}", against.stdout);
    assert!(against.stdout.contains("1 agree"), "{}", against.stdout);
}
