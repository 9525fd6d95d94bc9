//! Programs that a plugin runs (`zeph:plugin/process`): which, with which arguments, in which jail, and for how long.

use std::fs;

use serde_json::{Value, json};

use crate::plugin_cli::wanting;
use crate::product::{Product, Ran};
use crate::running::{Running, until};

const WANTS: &str = r#"
[[directory]]
path = "."
rights = ["read", "write", "create", "delete"]
reason = "r"

[[program]]
name = "sh"
args = ["-c *", "one.sh **"]
reason = "It runs scripts."

[[program]]
name = "cat"
args = ["*"]
reason = "It shows files."
"#;

/// A workspace with a plugin that wants to run programs; `grants` are words for `plugin grant`.
fn product(grants: &[&str]) -> Product {
    let product = Product::new();
    product.file("in.txt", "inside\n");
    product.drop_in("runner", &wanting(WANTS));
    let mut words = vec!["grant", "runner", "--dir", "."];
    words.extend(grants);
    if !grants.is_empty() {
        granted(&product, &words);
    }
    product
}

fn granted(product: &Product, words: &[&str]) {
    let ran = product.plugin(words);
    assert_eq!(ran.code, Some(0), "{ran:?}");
    assert!(!ran.stderr.contains("recorded only"), "{ran:?}");
}

fn run(product: &Product, tool: &str, params: Value) -> Value {
    product.call(tool, params)
}

/// What `line` of a read-only tool comes to.
fn ran(product: &Product, line: &[&str]) -> Value {
    let answer = run(product, "program", json!({ "line": line }));
    assert_eq!(answer["status"], "ok", "{answer}");
    answer["structured"].clone()
}

fn sh(product: &Product, script: &str) -> Value {
    ran(product, &["sh", "-c", script])
}

fn refusal(answer: &Value) -> &str {
    assert_eq!(answer["error"]["category"], "policy_blocked", "{answer}");
    answer["error"]["message"].as_str().unwrap()
}

#[test]
fn a_program_runs_only_with_the_arguments_that_were_granted() {
    let product = product(&[]);
    granted(&product, &["grant", "runner", "--dir", "."]);
    let params = json!({"line": ["cat", "in.txt"]});
    let answer = run(&product, "program", params.clone());
    let command = "`zeph-host plugin grant runner --program 'cat *'`";
    assert!(refusal(&answer).contains(command), "{answer}");

    granted(&product, &["grant", "runner", "--program", "cat"]);
    assert_eq!(ran(&product, &["cat", "in.txt"])["stdout"], "inside\n");
    for line in [
        &["cat", "--number", "in.txt"][..],
        &["cat"],
        &["cat", "in.txt", "in.txt"],
        &["/bin/cat", "in.txt"],
        &["../bin/cat", "in.txt"],
        &["CAT", "in.txt"],
        &["sh", "in.txt"],
        &["", "in.txt"],
    ] {
        let answer = run(&product, "program", json!({ "line": line }));
        assert_eq!(answer["status"], "refused", "{line:?}: {answer}");
    }
    let revoked = product.plugin(&["revoke", "runner", "--program", "cat"]);
    assert_eq!(revoked.code, Some(0), "{revoked:?}");
    refusal(&run(&product, "program", params));
}

#[test]
fn only_what_the_manifest_asks_for_can_be_granted() {
    let product = product(&[]);
    for pattern in ["git", "cat **", "cat --number *", "sh -x *"] {
        product.refuses(
            &["grant", "runner", "--program", pattern],
            2,
            &["does not request"],
        );
    }
    product.refuses(
        &["grant", "runner", "--program", "/bin/cat"],
        2,
        &["bare name"],
    );
    granted(
        &product,
        &["grant", "runner", "--dir", ".", "--program", "sh -c true"],
    );
    assert_eq!(ran(&product, &["sh", "-c", "true"])["end"], "exited 0");
    refusal(&run(
        &product,
        "program",
        json!({"line": ["sh", "-c", "false"]}),
    ));
}

#[test]
fn a_program_sees_its_input_and_both_its_streams_are_told_apart() {
    let product = product(&["--program", "sh", "--program", "cat"]);
    let script = "cat; echo oops >&2; exit 3";
    let params = json!({"line": ["sh", "-c", script], "input": "given"});
    let answer = run(&product, "program", params);
    let found = &answer["structured"];
    assert_eq!(found["stdout"], "given", "{answer}");
    assert_eq!(found["stderr"], "oops\n");
    assert_eq!(found["end"], "exited 3");
    assert_eq!(sh(&product, "cat; echo $#")["stdout"], "0\n");
    assert_eq!(sh(&product, "kill -9 $$")["end"], "killed 9");
    let text = "$(id) `id` ; id | id > x";
    assert_eq!(ran(&product, &["cat", text])["stdout"], "");
}

#[test]
fn output_without_bounds_is_bounded_and_said_to_be() {
    let product = product(&["--program", "sh"]);
    let found = sh(
        &product,
        "head -c 20000000 /dev/zero | tr '\\0' x; echo end",
    );
    assert_eq!(found["end"], "exited 0");
    let text = found["stdout"].as_str().unwrap();
    assert!(
        text.len() < 9_000_000 && text.ends_with("end\n"),
        "{}",
        text.len()
    );
    assert!(
        found["omitted"][0].as_u64().unwrap() > 10_000_000,
        "{}",
        found["omitted"]
    );
    assert_eq!(found["omitted"][1], 0);
}

#[test]
fn a_read_only_tool_changes_nothing_through_a_program() {
    let product = product(&["--program", "sh"]);
    let script = "echo changed > in.txt; echo new > new.txt; rm in.txt; mkdir d; \
                  echo kept > \"$HOME/.cache/kept\" && cat \"$HOME/.cache/kept\"";
    assert_eq!(sh(&product, script)["stdout"], "kept\n");
    assert_eq!(product.read("in.txt"), "inside\n");
    assert!(!product.work.join("new.txt").exists());
    assert!(!product.work.join("d").exists());
    // The private cache outlives the call, and belongs to the plugin alone.
    assert_eq!(
        sh(&product, "cat \"$HOME/.cache/kept\"")["stdout"],
        "kept\n"
    );
    let command = json!({"command": "cat ~/.cache/kept"});
    let answer = product.call("bash", command);
    assert_ne!(answer["status"], "ok", "{answer}");

    let params = json!({"line": ["sh", "-c", "echo changed > in.txt"]});
    let answer = run(&product, "program_changes", params);
    assert_eq!(answer["structured"]["end"], "exited 0", "{answer}");
    assert_eq!(product.read("in.txt"), "changed\n");
}

#[test]
fn a_program_sees_what_was_granted_and_no_more() {
    let product = product(&["--program", "sh"]);
    fs::create_dir(product.work.join("sub")).unwrap();
    let outside = product.home.join("secret.txt");
    fs::write(&outside, "secret").unwrap();
    let script = format!(
        "cat '{}' 2>/dev/null; echo $AWS_SECRET_ACCESS_KEY$ZEPH_X; pwd",
        outside.display()
    );
    let shown = sh(&product, &script);
    assert_eq!(shown["stdout"], format!("\n{}\n", product.work.display()));
    let in_sub = json!({"line": ["sh", "-c", "pwd"], "directory": product.work.join("sub")});
    let answer = run(&product, "program", in_sub);
    let expect = format!("{}\n", product.work.join("sub").display());
    assert_eq!(answer["structured"]["stdout"], expect, "{answer}");
    for place in [
        product.home.to_str().unwrap(),
        "/",
        "..",
        "sub/../..",
        "nowhere",
    ] {
        let params = json!({"line": ["sh", "-c", "pwd"], "directory": place});
        let answer = run(&product, "program", params);
        assert_ne!(answer["status"], "ok", "{place}: {answer}");
    }
    let server = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let port = server.local_addr().unwrap().port();
    let connect = format!("exec 3<>/dev/tcp/127.0.0.1/{port} && echo connected");
    let shown = sh(&product, &format!("bash -c '{connect}' 2>/dev/null"));
    assert_eq!(shown["stdout"], "");
}

#[test]
fn a_program_ends_in_its_time_with_all_it_started() {
    let product = product(&["--program", "sh"]);
    let mark = format!("86400.{}", std::process::id());
    let script = format!("echo begun; setsid sleep {mark} & sleep {mark}");
    let params = json!({"line": ["sh", "-c", script], "timeout_ms": 3_000});
    let answer = run(&product, "program", params);
    assert_eq!(answer["structured"]["end"], "timed out", "{answer}");
    assert_eq!(answer["structured"]["stdout"], "begun\n");
    assert!(!is_running(&mark));

    // Longer than the call has: the guest still hears of it.
    let limits = ["--set", "limits.wall_clock_secs=4", "--allow", "*"];
    let line = json!({"id": 1, "tool": "program", "params": {"line": ["sh", "-c", script]}});
    let answers = product.answers(&limits, format!("{line}\n"));
    assert_eq!(answers[0]["structured"]["end"], "timed out", "{answers:?}");
    assert!(!is_running(&mark));
}

#[test]
fn a_program_does_not_outlive_its_call_or_its_host() {
    let product = product(&["--program", "sh"]);
    let mark = format!("86401.{}", std::process::id());
    let script = format!(
        "trap '' TERM INT; touch \"$HOME/.cache/begun\"; setsid sleep {mark} & sleep {mark}"
    );
    let params = json!({"line": ["sh", "-c", script]});
    let mut host = Running::start(&product, &["--allow", "*"]);
    host.ready();
    host.begin("program", &params);
    until(|| is_running(&mark));
    host.cancel();
    let answer = host.answer();
    assert_eq!(answer["error"]["category"], "cancelled", "{answer}");
    assert!(!is_running(&mark), "it is gone when the call is");

    host.begin("program", &params);
    until(|| is_running(&mark));
    drop(host);
    until(|| !is_running(&mark));
}

#[test]
fn what_rules_deny_to_bash_is_denied_to_programs() {
    let product = product(&["--program", "cat", "--program", "sh"]);
    let rules = r#"tools.permissions.bash=[{pattern="cat *.txt", action="deny"}, {pattern="*", action="allow"}]"#;
    let line = json!({"id": 1, "tool": "program", "params": {"line": ["cat", "in.txt"]}});
    let args = ["--set", rules, "--allow", "program"];
    let answers = product.answers(&args, format!("{line}\n"));
    assert!(refusal(&answers[0]).contains("cat *.txt"), "{answers:?}");
    let line = json!({"id": 1, "tool": "program", "params": {"line": ["sh", "-c", "echo fine"]}});
    let answers = product.answers(&args, format!("{line}\n"));
    assert_eq!(answers[0]["structured"]["stdout"], "fine\n", "{answers:?}");
}

#[test]
fn without_the_sandbox_no_program_of_a_plugin_runs() {
    let product = product(&["--program", "sh"]);
    let line = json!({"id": 1, "tool": "program", "params": {"line": ["sh", "-c", "true"]}});
    let args = ["--set", "tools.sandbox.disabled=true", "--allow", "*"];
    let answers = product.answers(&args, format!("{line}\n"));
    let message = answers[0]["error"]["message"].as_str().unwrap();
    assert!(message.contains("tools.sandbox.disabled"), "{answers:?}");
}

#[test]
fn every_program_is_in_the_audit_of_its_call() {
    let product = product(&["--program", "cat"]);
    ran(&product, &["cat", "in.txt"]);
    let listed: Ran = product.run(&["audit", "query", "--json"]);
    let rows = listed.json_lines();
    let program = rows.iter().find(|row| {
        row["command"]
            .as_str()
            .is_some_and(|command| command.contains("\"program\":\"cat\""))
    });
    let program = program.unwrap_or_else(|| panic!("{rows:#?}"));
    assert!(
        program["command"].as_str().unwrap().contains("in.txt"),
        "{program}"
    );
    assert_eq!(program["exit_code"], 0, "{program}");
    let call = rows
        .iter()
        .find(|row| row["call_id"] == program["correlation_id"]);
    assert_eq!(call.unwrap()["tool"], program["tool"], "{rows:#?}");
}

/// Whether a process has `mark` as one of its arguments.
pub(crate) fn is_running(mark: &str) -> bool {
    let is_it = |entry: fs::DirEntry| {
        let line = fs::read(entry.path().join("cmdline")).unwrap_or_default();
        let mut words = line.split(|byte| *byte == 0);
        words.next() == Some(b"sleep") && words.next() == Some(mark.as_bytes())
    };
    let processes = fs::read_dir("/proc").unwrap();
    processes.filter_map(Result::ok).any(is_it)
}
