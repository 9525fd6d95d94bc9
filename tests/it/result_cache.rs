//! A call that only reads is answered from the result of an earlier one, for as long as that would be the same.

use std::fs;
use std::time::Duration;

use serde_json::{Value, json};

use crate::guest::HOSTILE;
use crate::product::Product;
use crate::running::Running;

fn product() -> Product {
    let product = Product::new();
    product
        .file("a.txt", "one\ntwo\n")
        .file("src/b.rs", "fn two() {}\n");
    product
}

/// What changed within a tick of the file system's clock is not kept.
fn settle() {
    std::thread::sleep(Duration::from_millis(30));
}

fn cached(answer: &Value) -> Option<&str> {
    assert_eq!(answer["status"], "ok", "{answer}");
    let notes = answer["notes"].as_array();
    let mut notes = notes.into_iter().flatten().filter_map(Value::as_str);
    notes.find(|note| note.starts_with("cached "))
}

/// Makes a call until its result is kept, at most twice; then once more. That one is answered from it.
fn warm(host: &mut Running, tool: &str, params: &Value) -> Value {
    settle();
    host.call(tool, params);
    let answer = host.call(tool, params);
    assert!(cached(&answer).is_some(), "{tool} {params}: {answer}");
    answer
}

fn reads() -> [(&'static str, Value); 4] {
    [
        ("read", json!({"path": "a.txt"})),
        ("grep", json!({"pattern": "two", "path": "."})),
        ("find_path", json!({"pattern": "**/*.rs"})),
        ("list_directory", json!({"path": "src"})),
    ]
}

#[test]
fn the_same_read_is_answered_from_memory_decided_and_recorded() {
    let product = product();
    let mut host = Running::start(&product, &["--jobs", "1"]);
    host.ready();
    for (tool, params) in reads() {
        settle();
        let first = host.call(tool, &params);
        assert_eq!(cached(&first), None, "{first}");
        let again = host.call(tool, &params);
        assert!(
            cached(&again).is_some_and(|note| note.contains(" ago")),
            "{again}"
        );
        for part in ["structured", "locations"] {
            assert_eq!(first[part], again[part], "{tool}: {part}");
        }
        let text = |answer: &Value| answer["text"].as_str().unwrap().to_owned();
        let rest = text(&again).strip_prefix(&text(&first)).map(str::to_owned);
        assert!(
            rest.is_some_and(|rest| rest.starts_with("\n[note] cached")),
            "{tool}: {again}"
        );
    }
    let records = product.run(&["audit", "query", "--json"]).json_lines();
    let hits = records
        .iter()
        .filter(|record| record["cache_age_ms"].is_u64());
    let hits: Vec<&Value> = hits.collect();
    assert_eq!(hits.len(), 4, "{records:#?}");
    for hit in hits {
        let rule = hit["policy_match"].as_str().unwrap();
        assert!(rule.contains("read-only"), "{hit}");
        assert!(hit["cache_bytes"].as_u64() > Some(0), "{hit}");
    }
    let stats = product.run(&["stats", "--json"]).json();
    assert_eq!(stats["cache"]["n_hits"], 4, "{stats}");
    assert!(stats["cache"]["bytes"].as_u64() > Some(8), "{stats}");
    let shown = product.run(&["stats"]);
    assert!(shown.stdout.contains("4 calls were answered"), "{shown:?}");
}

/// The warnings of a kept result are looked for once; what is shown of it follows the secrets of the moment.
#[test]
fn what_looks_like_a_credential_is_warned_of_each_time_a_result_is_used() {
    let product = product();
    let token = format!("ghp_{}", "a1B2c3D4e5F6".repeat(3));
    product.file("t.txt", format!("one\n{token}\n"));
    let read = json!({"path": "t.txt"});
    let mut host = Running::start(&product, &["--jobs", "1"]);
    host.ready();
    settle();
    let warning = |answer: &Value| {
        let notes = answer["notes"].as_array().into_iter().flatten();
        let mut notes = notes.filter_map(Value::as_str);
        let found = notes.find(|note| note.contains("GitHub token"));
        found.map(str::to_owned)
    };
    let first = host.call("read", &read);
    assert_eq!(cached(&first), None, "{first}");
    assert!(warning(&first).is_some(), "{first}");
    for _ in 0..3 {
        let again = host.call("read", &read);
        assert!(cached(&again).is_some(), "{again}");
        assert_eq!(warning(&again), warning(&first), "{again}");
    }
    let set = product.set_secret("T", &token);
    assert_eq!(set.code, Some(0), "{set:?}");
    let hidden = host.call("read", &read);
    assert!(cached(&hidden).is_some(), "{hidden}");
    assert!(!hidden.to_string().contains(&token), "{hidden}");
    assert_eq!(warning(&hidden), None, "{hidden}");
}

#[test]
fn whatever_changes_what_was_read_ends_a_result() {
    let product = product();
    let mut host = Running::start(&product, &["--jobs", "1", "--allow", "*"]);
    host.ready();
    let read = json!({"path": "a.txt"});
    let at = product.work.join("a.txt");
    let changes: [(&str, &dyn Fn()); 3] = [
        ("other", &|| fs::write(&at, "ONE\ntwo\n").unwrap()),
        ("ways", &|| {
            fs::write(product.work.join("new"), "WAYS\n").unwrap();
            fs::rename(product.work.join("new"), &at).unwrap();
        }),
        ("link", &|| {
            fs::remove_file(&at).unwrap();
            std::os::unix::fs::symlink("src/b.rs", &at).unwrap();
        }),
    ];
    for (name, change) in changes {
        let before = warm(&mut host, "read", &read);
        change();
        let after = host.call("read", &read);
        assert_eq!(cached(&after), None, "{name}: {after}");
        assert_ne!(before["text"], after["text"], "{name}");
    }
}

#[test]
fn a_write_and_a_command_end_every_result() {
    let product = product();
    let mut host = Running::start(&product, &["--jobs", "1", "--allow", "*"]);
    host.ready();
    let read = json!({"path": "a.txt"});
    let write = json!({"path": "elsewhere", "content": "x"});
    for (tool, params) in [("write", write), ("bash", json!({"command": "true"}))] {
        warm(&mut host, "read", &read);
        assert_eq!(host.call(tool, &params)["status"], "ok");
        let after = host.call("read", &read);
        assert_eq!(cached(&after), None, "{tool}: {after}");
    }
    // While a command runs in the background nothing is kept.
    let sleeps = json!({"command": "sleep 60", "background": true});
    assert_eq!(host.call("bash", &sleeps)["status"], "ok");
    settle();
    for _ in 0..3 {
        assert_eq!(cached(&host.call("read", &read)), None);
    }
}

#[test]
fn rules_and_grants_come_first() {
    let product = product();
    let mut host = Running::start(&product, &["--jobs", "1"]);
    host.ready();
    let read = json!({"path": "a.txt"});
    warm(&mut host, "read", &read);
    let revoked = product.run(&["plugin", "revoke", "file", "--all"]);
    assert_eq!(revoked.code, Some(0), "{}", revoked.stderr);
    let refused = host.call("read", &read);
    assert_eq!(refused["error"]["category"], "policy_blocked", "{refused}");
    let granted = product.run(&["plugin", "grant", "file", "--all"]);
    assert_eq!(granted.code, Some(0), "{}", granted.stderr);
    let after = host.call("read", &read);
    assert_eq!(cached(&after), None, "another grant: {after}");
}

#[test]
fn what_knows_more_than_files_runs_each_time() {
    let product = product();
    product.drop_in("hostile", HOSTILE);
    let directory = format!("{}:read", product.work.display());
    let granted = product.run(&["plugin", "grant", "hostile", "--dir", &directory]);
    assert_eq!(granted.code, Some(0), "{}", granted.stderr);
    let mut host = Running::start(&product, &["--jobs", "1"]);
    host.ready();
    let path = product.work.join("a.txt");
    let cases = [
        ("echo", json!({"text": "x"}), true),
        ("files", json!({"op": "read", "path": path}), true),
        ("files", json!({"op": "list", "path": product.work}), true),
        ("reads_and_dates", json!({"text": path}), false),
        ("knows", json!({}), false),
    ];
    settle();
    for (tool, params, is_kept) in cases {
        host.call(tool, &params);
        let again = host.call(tool, &params);
        assert_eq!(cached(&again).is_some(), is_kept, "{tool}: {again}");
    }
}

#[test]
fn results_are_used_again_only_where_the_operator_wants_it() {
    let product = product();
    for set in [
        "tools.result_cache.enabled=false",
        "tools.result_cache.max_bytes=65536",
    ] {
        let mut host = Running::start(&product, &["--jobs", "1", "--set", set]);
        host.ready();
        // More than fits, for the second.
        product.file("large.txt", (("x".repeat(99)) + "\n").repeat(900));
        settle();
        for _ in 0..3 {
            let answer = host.call("read", &json!({"path": "large.txt"}));
            assert_eq!(cached(&answer), None, "{set}");
        }
    }
}
