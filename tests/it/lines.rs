//! `zeph-host run` on a pipe: JSON lines in, JSON lines out.

use std::io::{BufRead as _, BufReader, Write as _};

use serde_json::{Value, json};

use crate::product::{Product, answer};

fn request(id: impl Into<Value>, tool: &str, params: Value) -> String {
    json!({"id": id.into(), "tool": tool, "params": params}).to_string() + "\n"
}

#[test]
fn good_and_bad_calls_are_each_answered() {
    let product = Product::new();
    product
        .file("src/lib.rs", "fn main() {}\n")
        .file("notes.txt", "one\ntwo\n");
    let lines = [
        request(1, "read", json!({"path": "notes.txt"})),
        "this is not valid JSON\n".to_owned(),
        request("two", "raed", json!({"path": "notes.txt"})),
        "\n".to_owned(),
        request(3, "read", json!({"path": 5})),
        request(4, "read", json!({})),
        request(5, "read", json!({"path": "nowhere.txt"})),
        request(6, "read", json!({"path": "../outside"})),
        request(7, "write", json!({"path": "new.txt", "content": "x"})),
        request(8, "grep", json!({"pattern": "main"})),
        "[1, 2]\n".to_owned(),
        request(
            json!({"any": ["thing"]}),
            "list_directory",
            json!({"path": "."}),
        ),
    ];
    let mut bytes = lines.concat().into_bytes();
    bytes.extend(b"{\"id\": \"\xff\xfe\"}\n");
    let answers = product.answers(&[], bytes);
    assert_eq!(answers.len(), 12, "{answers:#?}");

    let expect = [
        (json!(1), "ok", "", "two"),
        (
            json!("two"),
            "failed",
            "tool_not_found",
            "did you mean `read`?",
        ),
        (json!(3), "failed", "type_mismatch", "`path` must be string"),
        (
            json!(4),
            "failed",
            "invalid_parameters",
            "missing required argument `path`",
        ),
        (json!(5), "failed", "permanent_failure", "nowhere.txt"),
        (json!(6), "refused", "policy_blocked", "outside"),
        (
            json!(7),
            "refused",
            "confirmation_required",
            "--allow write",
        ),
        (json!(8), "ok", "", "src/lib.rs:1:"),
        (json!({"any": ["thing"]}), "ok", "", "notes.txt"),
    ];
    for (id, status, category, text) in expect {
        let got = answer(&answers, id);
        assert_eq!(got["status"], status, "{got}");
        assert!(got["text"].as_str().unwrap().contains(text), "{got}");
        assert_eq!(
            got["error"]["category"].as_str().unwrap_or_default(),
            category,
            "{got}"
        );
        assert!(got["duration_ms"].is_number(), "{got}");
        if status != "ok" {
            let block: Vec<&str> = got["text"].as_str().unwrap().lines().collect();
            assert_eq!(block.len(), 5, "{got}");
            assert_eq!(block[0], "[tool_error]");
        }
    }
    let malformed: Vec<_> = answers
        .iter()
        .filter(|answer| answer["status"] == "invalid")
        .collect();
    let mut numbers: Vec<_> = malformed
        .iter()
        .map(|answer| answer["line"].as_u64().unwrap())
        .collect();
    numbers.sort_unstable();
    assert_eq!(numbers, [2, 11, 13], "{malformed:#?}");
    assert!(
        !product.work.join("new.txt").exists(),
        "a refused call does nothing"
    );
}

#[test]
fn a_rule_lets_exactly_its_calls_through() {
    let product = Product::new();
    product.file("src/a.rs", "").file("docs/b.md", "");
    let lines = [
        request(1, "write", json!({"path": "src/new.rs", "content": "x"})),
        request(2, "write", json!({"path": "docs/new.md", "content": "x"})),
        request(3, "delete_path", json!({"path": "src/a.rs"})),
        request(
            4,
            "move_path",
            json!({"source": "src/a.rs", "destination": "docs/a.rs"}),
        ),
    ];
    let answers = product.answers(
        &["--allow", "write:src/**", "--allow", "move_path:src/**"],
        lines.concat(),
    );
    let statuses: Vec<_> = (1..=4)
        .map(|id| answer(&answers, id)["status"].as_str().unwrap())
        .collect();
    assert_eq!(statuses, ["ok", "refused", "refused", "refused"]);
    assert!(product.work.join("src/new.rs").exists());
    assert!(product.work.join("src/a.rs").exists());
}

#[test]
fn a_line_that_is_too_long_is_refused_and_the_rest_goes_on() {
    let product = Product::new();
    product.file("a.txt", "a");
    let huge = request(1, "grep", json!({"pattern": "x".repeat(3_000_000)}));
    let lines = [huge, request(2, "read", json!({"path": "a.txt"}))];
    let answers = product.answers(&["--set", "run.request_bytes=1000000"], lines.concat());
    assert_eq!(answers.len(), 2, "{answers:#?}");
    let refused = answers
        .iter()
        .find(|answer| answer["status"] == "invalid")
        .unwrap();
    assert_eq!(refused["line"], 1);
    assert!(
        refused["text"]
            .as_str()
            .unwrap()
            .contains("run.request_bytes"),
        "{refused}"
    );
    assert_eq!(answer(&answers, 2)["status"], "ok");
}

#[test]
fn unknown_arguments_are_noted() {
    let product = Product::new();
    product.file("a.txt", "a");
    let got = product.call("read", json!({"path": "a.txt", "encodng": "utf8"}));
    assert_eq!(got["status"], "ok");
    assert!(
        got["notes"][0].as_str().unwrap().contains("`encodng`"),
        "{got}"
    );
    assert!(
        got["text"].as_str().unwrap().contains("`encodng`"),
        "the model is told: {got}"
    );
}

#[test]
fn many_calls_at_once_are_all_right() {
    let product = Product::new();
    for n in 0..50 {
        product.file(&format!("f{n}.txt"), format!("content {n}\n"));
    }
    let lines: String = (0..400)
        .map(|n| request(n, "read", json!({"path": format!("f{}.txt", n % 50)})))
        .collect();
    let answers = product.answers(&["--jobs", "16"], lines);
    assert_eq!(answers.len(), 400);
    for n in 0..400 {
        let got = answer(&answers, n);
        assert!(
            got["text"]
                .as_str()
                .unwrap()
                .contains(&format!("content {}", n % 50)),
            "{got}"
        );
    }
}

#[test]
fn answers_come_while_the_input_is_still_open() {
    let product = Product::new();
    product.file("a.txt", "a");
    let mut child = product.start(&[]);
    let mut stdin = child.stdin.take().unwrap();
    let mut stdout = BufReader::new(child.stdout.take().unwrap());
    for id in 0..3 {
        stdin
            .write_all(request(id, "read", json!({"path": "a.txt"})).as_bytes())
            .unwrap();
        let mut line = String::new();
        stdout.read_line(&mut line).unwrap();
        let got: Value = serde_json::from_str(&line).unwrap();
        assert_eq!(got["id"], id);
    }
    drop(stdin);
    assert_eq!(child.wait().unwrap().code(), Some(0));
}

#[test]
fn a_closed_output_ends_the_program_quietly() {
    let product = Product::new();
    product.file("a.txt", "a");
    let mut child = product.start(&[]);
    let mut stdin = child.stdin.take().unwrap();
    drop(child.stdout.take());
    for id in 0..1_000 {
        if stdin
            .write_all(request(id, "read", json!({"path": "a.txt"})).as_bytes())
            .is_err()
        {
            break;
        }
    }
    drop(stdin);
    let ran = crate::product::Ran::from(child.wait_with_output().unwrap());
    assert_eq!(ran.code, Some(141), "{}", ran.stderr);
    assert!(!ran.stderr.contains("panicked"), "{}", ran.stderr);
}

#[test]
fn an_interrupt_answers_what_runs_as_cancelled() {
    let product = Product::new();
    let line = "abcdefghijklmnopqrstuvwxyz ".repeat(4) + "\n";
    for n in 0..40 {
        product.file(&format!("big{n}.txt"), line.repeat(20_000));
    }
    let mut child = product.start(&["--jobs", "4"]);
    let mut stdin = child.stdin.take().unwrap();
    let mut stdout = BufReader::new(child.stdout.take().unwrap());
    // A first answer proves that the program is up; the search that follows takes seconds.
    stdin
        .write_all(request(0, "list_directory", json!({"path": "."})).as_bytes())
        .unwrap();
    let mut first = String::new();
    stdout.read_line(&mut first).unwrap();
    let slow = json!({"pattern": "(a|b|c|d|e)+z [a-z]+(m|n|o)q", "case_sensitive": false});
    for id in 1..=4 {
        stdin
            .write_all(request(id, "grep", slow.clone()).as_bytes())
            .unwrap();
    }
    stdin.write_all(b"not JSON\n").unwrap();
    // The malformed line is answered at once: by then the calls before it are running.
    let mut invalid = String::new();
    stdout.read_line(&mut invalid).unwrap();
    let pid = rustix::process::Pid::from_child(&child);
    rustix::process::kill_process(pid, rustix::process::Signal::INT).unwrap();
    let rest: Vec<Value> = stdout
        .lines()
        .map(|line| serde_json::from_str(&line.unwrap()).unwrap())
        .collect();
    assert_eq!(child.wait().unwrap().code(), Some(130));
    assert!(
        rest.iter().all(|answer| answer["id"].is_number()),
        "{rest:#?}"
    );
    let cancelled = rest
        .iter()
        .filter(|answer| answer["status"] == "cancelled")
        .count();
    assert!(cancelled > 0, "{rest:#?}");
}

#[test]
fn the_end_of_the_input_ends_and_tells_what_runs_in_the_background() {
    let product = Product::new();
    let mut host = product.start(&["--allow", "bash", "--jobs", "1"]);
    let mut input = host.stdin.take().unwrap();
    let mut lines = BufReader::new(host.stdout.take().unwrap()).lines();
    let mut call = |tool: &str, params: Value| -> Value {
        let line = json!({"id": 1, "turn": "a", "tool": tool, "params": params});
        writeln!(input, "{line}").unwrap();
        serde_json::from_str(&lines.next().unwrap().unwrap()).unwrap()
    };
    let mut begin = |command: &str| {
        let begun = call("bash", json!({"command": command, "background": true}));
        begun["structured"]["run_id"].as_str().unwrap().to_owned()
    };
    let ended = begin("echo finished; exit 3");
    let ending = begin("sleep 1000");
    // Within the turn nothing is told; the list says when it has ended.
    while call("list_runs", json!({}))["text"]
        .as_str()
        .unwrap()
        .contains(&ended)
    {}
    drop(input);
    let told: Vec<Value> = lines
        .map(|line| serde_json::from_str(&line.unwrap()).unwrap())
        .collect();
    assert!(host.wait().unwrap().success());
    assert_eq!(told.len(), 2, "{told:?}");
    for (run_id, code, words) in [
        (&ended, "3", "\nfinished\n"),
        (&ending, "null", "[terminated by shutdown]"),
    ] {
        let header = format!("[background complete] run_id={run_id} exit_code={code}\n");
        let is_it = |line: &&Value| line["text"].as_str().unwrap().starts_with(&header);
        let line = told.iter().find(is_it);
        let line = line.unwrap_or_else(|| panic!("{header} in {told:?}"));
        assert_eq!(line["role"], "user");
        assert!(line["text"].as_str().unwrap().contains(words), "{line}");
        let records = product.run(&["audit", "query", "--json"]).json_lines();
        let is_it = |record: &&Value| record["correlation_id"] == run_id.as_str();
        assert!(records.iter().any(|record| is_it(&record)), "{records:?}");
    }
}
