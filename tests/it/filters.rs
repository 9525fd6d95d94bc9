//! Output filters through the program: what a model, a person and another agent see of a long output.

mod person;

use std::fs;
use std::io::Write as _;
use std::os::unix::fs::PermissionsExt as _;
use std::process::Stdio;
use std::time::{Duration, Instant};

use serde_json::{Value, json};

use crate::product::{Product, Ran};
use crate::running::Running;

const CONVERSATION: &str = "0192f3c0-0000-7000-8000-00000000f117";

/// What `cargo test` prints when two of many tests fail.
fn log() -> String {
    let mut log = String::from("   Compiling demo v0.1.0 (/demo)\n\nrunning 300 tests\n");
    for n in 0..298 {
        log.push_str(&format!("test tests::good_number_{n} ... ok\n"));
    }
    log.push_str("test tests::adds ... FAILED\ntest tests::divides ... FAILED\n\nfailures:\n\n");
    log.push_str(
        "---- tests::adds stdout ----\nthread 'tests::adds' panicked at src/lib.rs:12:9:\n",
    );
    log.push_str("assertion `left == right` failed\n  left: 4\n right: 5\n\n");
    log.push_str(
        "---- tests::divides stdout ----\nthread 'tests::divides' panicked at src/lib.rs:31:5:\n",
    );
    log.push_str(
        "attempt to divide by zero\n\n\nfailures:\n    tests::adds\n    tests::divides\n\n",
    );
    log.push_str("test result: FAILED. 298 passed; 2 failed; 0 ignored; 0 measured; 0 filtered out; finished in 0.11s\n\n");
    log.push_str("error: test failed, to rerun pass `--lib`\n");
    log
}

/// Everything that is needed to mend the failures.
const FACTS: [&str; 9] = [
    "tests::adds",
    "tests::divides",
    "src/lib.rs:12:9",
    "src/lib.rs:31:5",
    "left: 4",
    "right: 5",
    "attempt to divide by zero",
    "298 passed; 2 failed",
    "error: test failed",
];

/// A workspace in which `./cargo` prints that and fails.
fn product() -> Product {
    let product = Product::new();
    product
        .file("log.txt", log())
        .file("cargo", "#!/bin/sh\ncat log.txt\nexit 101\n");
    let mode = fs::Permissions::from_mode(0o755);
    fs::set_permissions(product.work.join("cargo"), mode).unwrap();
    product
}

fn bash(product: &Product, args: &[&str], command: &str) -> Value {
    let line = json!({"id": 1, "tool": "bash", "params": {"command": command}});
    let mut all = vec!["--allow", "*", "--conversation", CONVERSATION];
    all.extend(args);
    let mut answers = product.answers(&all, line.to_string() + "\n");
    assert_eq!(answers.len(), 1, "{answers:?}");
    answers.remove(0)
}

fn text(answer: &Value) -> &str {
    answer["text"].as_str().unwrap()
}

fn check_facts(text: &str) {
    for fact in FACTS {
        assert!(text.contains(fact), "`{fact}` is lost: {text}");
    }
}

#[test]
fn a_failing_run_is_told_in_a_fraction_with_every_failure() {
    let product = product();
    let answer = bash(&product, &[], "./cargo test 2>&1");
    let shown = text(&answer);
    check_facts(shown);
    assert!(!shown.contains("good_number_7"), "{shown}");
    assert!(shown.len() < log().len() / 5, "{} bytes", shown.len());
    assert!(shown.contains("\n[exit code 101]"), "{shown}");
    assert!(
        shown.contains("[shell] 3") && shown.contains("% filtered"),
        "{shown}"
    );
    let envelope = &answer["structured"];
    assert_eq!(envelope["stdout"], log(), "the envelope is raw");
    assert_eq!(envelope["exit_code"], 101);

    let handle = answer["overflow"].as_str().unwrap();
    assert!(shown.contains(handle), "{shown}");
    let line = json!({"id": 2, "tool": "read_overflow", "params": {"id": handle}});
    let read = product.answers(&["--conversation", CONVERSATION], line.to_string() + "\n");
    assert_eq!(text(&read[0]).trim_end(), log().trim_end());

    let stats = product.run(&["stats", "--json"]);
    let stats: Value = serde_json::from_str(&stats.stdout).unwrap();
    assert_eq!(stats["all"]["n_shortened"], 1, "{stats}");
    assert_eq!(stats["all"]["n_read_back"], 1, "{stats}");
    let rules = stats["rules"].as_array().unwrap();
    assert!(
        rules.iter().any(|rule| rule["rule"] == "cargo-test"),
        "{stats}"
    );
}

#[test]
fn a_run_in_the_background_is_told_in_a_fraction_too() {
    let product = product();
    let args = ["--allow", "*", "--conversation", CONVERSATION];
    let mut host = Running::start(&product, &args);
    let params = json!({"command": "./cargo test 2>&1", "background": true});
    let started = host.call("bash", &params);
    let id = started["structured"]["run_id"].as_str().unwrap();
    let deadline = Instant::now() + Duration::from_secs(60);
    while host.told.is_empty() && Instant::now() < deadline {
        host.call("list_runs", &json!({}));
    }
    let told = host.told.join("\n");
    let header = format!("[background complete] run_id={id} exit_code=101\n");
    assert!(told.starts_with(&header), "{told}");
    check_facts(&told);
    assert!(!told.contains("good_number_7"), "{told}");
    assert!(told.len() < log().len() / 5, "{} bytes", told.len());
    assert!(told.contains("\n[exit code 101]"), "{told}");
    assert!(told.contains("% filtered"), "{told}");
    let handle = told.split("ID: ").nth(1).unwrap();
    let handle = handle.split(' ').next().unwrap();
    let read = host.call("read_overflow", &json!({"id": handle}));
    assert_eq!(text(&read).trim_end(), log().trim_end());
    drop(host);
    let stats = product.run(&["stats", "--json"]);
    let stats: Value = serde_json::from_str(&stats.stdout).unwrap();
    assert_eq!(stats["all"]["n_shortened"], 1, "{stats}");
}

#[test]
fn nothing_is_left_out_that_cannot_be_kept() {
    let product = product();
    let small = ["--set", "tools.overflow.max_overflow_bytes=1000"];
    let answer = bash(&product, &small, "./cargo test");
    assert!(text(&answer).contains(&log()), "{answer}");
    assert_eq!(answer["overflow"], Value::Null);
    let off = ["--set", "tools.filters.enabled=false"];
    let answer = bash(&product, &off, "./cargo test");
    assert!(text(&answer).contains(&log()), "{answer}");
}

#[test]
fn a_secret_in_an_output_is_warned_of() {
    let product = Product::new();
    let secret = format!("ghp_{}", "a1B2c3D4e5F6".repeat(3));
    product.file("env.txt", format!("one\nTOKEN={secret}\n"));
    let answer = bash(&product, &[], "cat env.txt");
    let notes = answer["notes"].as_array().unwrap();
    assert_eq!(notes.len(), 1, "{answer}");
    assert!(!notes[0].as_str().unwrap().contains(&secret), "{answer}");
    let off = ["--set", "tools.filters.security.enabled=false"];
    let answer = bash(&product, &off, "cat env.txt");
    assert_eq!(answer["notes"], Value::Null, "{answer}");
}

#[test]
fn the_operators_rules_come_first_and_bad_ones_are_told() {
    let product = product();
    let rules = "[[rules]]\nname = 'mine'\nmatch = { prefix = './cargo' }\n\
        strategy = { type = 'strip_noise', patterns = ['good_number_[0-9]+ '] }\n\
        [[rules]]\nname = 'bad'\nmatch = { regex = '(' }\nstrategy = { type = 'dedup' }\n\
        [[tests]]\nname = 'no such line'\ncommand = './cargo test'\ninput = 'x'\ncontains = ['y']\n";
    product.file("filters.toml", rules).file("zeph.toml", "");
    let ran = product.feed(
        &["--config", "zeph.toml", "--allow", "*"],
        json!({"id": 1, "tool": "bash", "params": {"command": "./cargo test"}}).to_string() + "\n",
    );
    assert!(
        ran.stderr.contains("rule `bad` is not used"),
        "{}",
        ran.stderr
    );
    check_facts(text(&ran.json_lines()[0]));
    let why = product.run(&[
        "--config",
        "zeph.toml",
        "filters",
        "why",
        "--json",
        "--",
        "./cargo test",
    ]);
    let why: Value = serde_json::from_str(&why.stdout).unwrap();
    assert_eq!(why["acting"], json!(["mine"]), "{why}");
    let verified = product.run(&["--config", "zeph.toml", "filters", "verify"]);
    assert_eq!(verified.code, Some(1), "{}", verified.stdout);
    assert!(
        verified.stdout.contains("FAILED  no such line"),
        "{}",
        verified.stdout
    );
    assert!(
        verified.stdout.contains("rule `bad`"),
        "{}",
        verified.stdout
    );
}

#[test]
fn rules_below_the_working_directory_need_their_digest_unless_they_are_typed() {
    let product = product();
    product.file(
        "elsewhere/rules.toml",
        "[[rules]]\nname = 'mine'\nmatch = { prefix = './cargo' }\nstrategy = { type = 'dedup' }\n",
    );
    let typed = "tools.filters.filters_path=elsewhere/rules.toml";
    let ran = product.run(&["--set", typed, "filters", "list"]);
    assert!(ran.stdout.contains("mine"), "{}", ran.stderr);
    let config = product.home.join(".config/zeph-host/config.toml");
    fs::create_dir_all(config.parent().unwrap()).unwrap();
    fs::write(
        config,
        "tools.filters.filters_path = 'elsewhere/rules.toml'\n",
    )
    .unwrap();
    let ran = product.run(&["filters", "list"]);
    assert!(!ran.stdout.contains("mine"), "{}", ran.stdout);
    let line = ran.stderr.split("trusted_sha256 = \"").nth(1).unwrap();
    let digest = line.split('"').next().unwrap();
    let trusted = format!("tools.filters.trusted_sha256={digest}");
    let ran = product.run(&["--set", &trusted, "filters", "list"]);
    assert!(ran.stdout.contains("mine"), "{}", ran.stderr);
    product.file("elsewhere/rules.toml", "# another\n");
    let ran = product.run(&["--set", &trusted, "filters", "list"]);
    assert!(
        ran.stderr.contains("is not the one that was trusted"),
        "{}",
        ran.stderr
    );
}

/// Runs to the end with this input.
pub(crate) fn fed(product: &Product, args: &[&str], input: &str) -> Ran {
    let mut child = product
        .command(args)
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    let mut stdin = child.stdin.take().unwrap();
    stdin.write_all(input.as_bytes()).unwrap();
    drop(stdin);
    Ran::from(child.wait_with_output().unwrap())
}

#[test]
fn another_agents_hook_shortens_and_never_stops_it() {
    let product = Product::new();
    let event = json!({
        "hook_event_name": "PostToolUse",
        "tool_name": "Bash",
        "tool_input": {"command": "cargo test"},
        "tool_response": {"stdout": log(), "stderr": "", "interrupted": false},
    });
    let ran = fed(
        &product,
        &["hook", "claude", "post-tool-use"],
        &event.to_string(),
    );
    assert_eq!(ran.code, Some(0), "{}", ran.stderr);
    let answer: Value = serde_json::from_str(&ran.stdout).unwrap();
    let shown = &answer["hookSpecificOutput"]["updatedToolOutput"];
    check_facts(shown["stdout"].as_str().unwrap());
    assert_eq!(shown["interrupted"], false);
    let problems: [(&[&str], &str); 9] = [
        (&["hook", "claude", "post-tool-use"], "{"),
        (&["hook", "claude", "no-such-event"], "{}"),
        (&["hook", "no-such-agent"], "{}"),
        (&["hook", "claude"], "[1]"),
        (&["hook", "claude"], ""),
        // An agent would take the exit code of a usage error for a veto.
        (&["hook"], "{}"),
        (&["hook", "claude", "post-tool-use", "--nonsense"], "{}"),
        (&["hook", "claude", "post-tool-use", "more", "words"], "{}"),
        (
            &["--config", "missing.toml", "hook", "claude"],
            &event.to_string(),
        ),
    ];
    for (args, input) in problems {
        let ran = fed(&product, args, input);
        assert_eq!((ran.code, ran.stdout.as_str()), (Some(0), ""), "{args:?}");
        assert!(!ran.stderr.is_empty(), "{args:?}");
    }
}

/// Compiling takes many times as long as a command: a command that waited for it would find an artifact.
#[test]
fn commands_and_their_filters_never_wait_for_the_compiler() {
    let product = product();
    let cache = tempfile::tempdir().unwrap();
    let set = format!("engine.cache_dir={}", cache.path().display());
    let n_compiled = || {
        let entries = fs::read_dir(cache.path()).unwrap().flatten();
        let is_artifact =
            |entry: &fs::DirEntry| entry.path().extension().is_some_and(|end| end == "cwasm");
        entries.filter(is_artifact).count()
    };
    let call = ["--set", &set, "call", "bash", "command=./cargo test 2>&1"];
    let ran = product.run(&call);
    assert_eq!(ran.code, Some(101), "{}", ran.stderr);
    check_facts(&ran.stdout);
    assert!(ran.stdout.contains("% filtered"), "{}", ran.stdout);
    // It says how to read the whole output, and nothing of compiling.
    let notes: Vec<&str> = ran.stderr.lines().collect();
    assert_eq!((n_compiled(), notes.len()), (0, 1), "{notes:?}");
    assert!(notes[0].ends_with("reads the stored output"), "{notes:?}");

    let mut host = Running::start(&product, &["--allow", "*", "--set", &set]);
    let answer = host.call("bash", &json!({"command": "./cargo test 2>&1"}));
    assert!(text(&answer).contains("% filtered"), "{answer}");
    assert_eq!(n_compiled(), 0);
    // A tool of a plugin does wait, and is there then.
    let read = host.call("read", &json!({"path": "log.txt", "limit": 1}));
    assert_eq!(read["status"], "ok", "{read}");
    assert!(n_compiled() >= 1);
}
