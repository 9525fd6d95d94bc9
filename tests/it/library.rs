//! The library from outside: its examples, run as they stand; the same from Python, over JSON lines.

#[path = "../../host/zeph-host/examples/backend.rs"]
mod backend;
#[path = "../../host/zeph-host/examples/test_double.rs"]
mod test_double;

use std::process::{Command, Stdio};

use serde_json::{Value, json};
use zeph_host::{CallReport, Caller, Host, HostBuilder, ScopedExecutor, ToolExecutor as _};

use self::test_double::{TestDouble, agent};
use crate::product::{Product, agrees_with_schema, cache_dir};

/// A host over the files of `product`.
fn builder(product: &Product) -> HostBuilder {
    Host::builder()
        .directory(&product.work)
        .set("engine.cache_dir", cache_dir().display())
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_agent_of_the_examples_does_its_task() {
    let product = Product::new();
    product
        .file("docs/doors.md", "# Doors\n")
        .file("a.txt", "# no document\n");
    let host = builder(&product).build().await.unwrap();
    let tools = host.session(Caller::model()).await.unwrap();
    let answer = agent::work(&tools, "What are the documents about?").await;
    assert!(answer.contains("docs/doors.md:1: # Doors"), "{answer}");
    // The same agent with fewer tools is told so, and ends all the same.
    let none = ScopedExecutor::without(tools, ["grep"]);
    let answer = agent::work(&none, "What are the documents about?").await;
    assert!(answer.contains("tool_not_found"), "{answer}");
}

#[tokio::test]
async fn the_double_of_the_examples_stands_in_for_a_host() {
    let double = TestDouble::new(
        Vec::new(),
        ["a.md", "a.md:1: # Doors"].map(CallReport::text),
    );
    let answer = agent::work(&double, "What are the documents about?").await;
    assert!(answer.ends_with("a.md:1: # Doors"), "{answer}");
    let calls = double.calls();
    assert_eq!(calls.len(), 2);
    assert!(calls[0].starts_with("find_path {"), "{calls:?}");
    assert!(double.definitions().is_empty());
}

#[tokio::test]
async fn the_backend_of_the_examples_takes_the_whole_line() {
    let product = Product::new();
    let texts = backend::run(builder(&product).without_components()).await;
    let texts = texts.unwrap();
    assert_eq!(texts[0], "The door squeaks.");
    assert!(texts[1].contains("confirmation_required"), "{}", texts[1]);
    assert_eq!(texts[2], "Closed: The door squeaks.");
}

/// With a component of the program, whose tools have names of their own.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_backend_may_not_have_the_name_of_a_tool_of_the_program() {
    let product = Product::new();
    let definition = zeph_host::ToolDefinition::new("read", "Read.", json!({"type": "object"}));
    let double = TestDouble::new(vec![definition], []);
    let error = builder(&product).backend(double).build().await.unwrap_err();
    let why = format!("{error:?}");
    assert!(why.contains("the host has a tool of this name"), "{why}");
    // Out of scope is out of reach, however the tool is called.
    let host = builder(&product).build().await.unwrap();
    let tools = host.session(Caller::program()).await.unwrap();
    assert_eq!(tools.known_as("file__read").as_deref(), Some("read"));
    let scoped = ScopedExecutor::without(tools, ["read"]);
    assert_eq!(scoped.known_as("file__read"), None);
}

/// The client in Python, which is given this program and prints what it was answered.
const SCRIPT: &str = r#"
import concurrent.futures, json, sys, time
sys.path.insert(0, sys.argv[1])
from client import Host
messages = []
with Host("--allow", "bash", program=sys.argv[2], on_message=messages.append) as host:
    with concurrent.futures.ThreadPoolExecutor(8) as pool:
        reads = list(pool.map(lambda n: host.call("read", path=f"{n}.txt"), range(8)))
    answers = {
        "reads": reads,
        "refused": host.call("delete_path", path="1.txt"),
        "cancelled": host.call("bash", timeout=0.2, command="sleep 60"),
        "background": host.call("bash", command="echo behind", background=True),
    }
    end = time.monotonic() + 30
    while not messages and time.monotonic() < end:
        host.call("read", path="1.txt")
answers["messages"] = messages
try:
    with Host(program="false") as dead:
        dead.call("read", path="1.txt")
except ConnectionError as error:
    answers["dead"] = type(error).__name__
print(json.dumps(answers))
"#;

#[test]
fn the_client_in_python_calls_tools() {
    let product = Product::new();
    for n in 0..8 {
        product.file(&format!("{n}.txt"), format!("this is {n}\n"));
    }
    let template = product.command(&[]);
    let environment = template.get_envs();
    #[expect(
        clippy::disallowed_methods,
        reason = "the client is a program in Python"
    )]
    let mut python = Command::new("python3");
    python
        .args(["-B", "-c", SCRIPT])
        .arg(concat!(
            env!("CARGO_MANIFEST_DIR"),
            "/../host/zeph-host/examples"
        ))
        .arg(env!("CARGO_BIN_EXE_zeph-host-under-test"))
        .current_dir(&product.work)
        .env_clear()
        .envs(environment.filter_map(|(name, value)| Some((name, value?))))
        .env("PATH", "/usr/local/bin:/usr/bin:/bin")
        .stdin(Stdio::null());
    let output = python.output().unwrap();
    let stderr = String::from_utf8_lossy(&output.stderr);
    let answers: Value =
        serde_json::from_slice(&output.stdout).unwrap_or_else(|error| panic!("{error}: {stderr}"));
    for (n, read) in answers["reads"].as_array().unwrap().iter().enumerate() {
        assert_eq!(read["status"], "ok", "{read}");
        assert!(
            read["text"]
                .as_str()
                .unwrap()
                .contains(&format!("this is {n}")),
            "{read}"
        );
    }
    assert_eq!(answers["refused"]["status"], "refused", "{answers}");
    assert_eq!(answers["cancelled"]["status"], "cancelled", "{answers}");
    assert_eq!(answers["background"]["status"], "ok", "{answers}");
    let message = answers["messages"][0].as_str().unwrap();
    assert!(message.contains("behind"), "{message}");
    assert!(["ConnectionError", "BrokenPipeError"].contains(&answers["dead"].as_str().unwrap()));
    assert!(product.work.join("1.txt").exists());
}

#[test]
fn the_client_is_short_and_needs_no_package() {
    let client = include_str!("../../host/zeph-host/examples/client.py");
    assert!(client.lines().count() <= 60);
    let imports: Vec<&str> = client
        .lines()
        .filter(|line| line.starts_with("import") || line.starts_with("from"))
        .collect();
    assert_eq!(
        imports,
        ["import itertools, json, queue, subprocess, sys, threading"]
    );
    let agent = include_str!("../../host/zeph-host/examples/agent.rs");
    let is_code = |line: &&str| {
        let is_remark = line.starts_with("//") || line.starts_with("#!");
        !(is_remark || line.is_empty())
    };
    let code = agent.lines().map(str::trim).filter(is_code);
    assert!(code.count() <= 40);
}

/// Lines of every kind, both ways.
#[test]
fn real_streams_agree_with_the_schema() {
    let product = Product::new();
    product.file("a.txt", "one\n");
    let requests = [
        json!({"turn": "1", "goal_id": "g", "caller_id": "ann"}),
        json!({"user": "look at a.txt"}),
        json!({"id": 1, "tool": "read", "params": {"path": "a.txt"}}),
        json!({"id": {"any": [1]}, "tool": "grep", "arguments": {"pattern": "one"}}),
        json!({"tool": "list_directory", "params": {"path": "."}, "turn": "1"}),
        json!({"id": 2, "tool": "raed", "params": {}}),
        json!({"id": 3, "tool": "write", "params": {"path": "b", "content": "x"}}),
        json!({"id": 4, "tool": "bash", "params": {"command": "echo out; exit 3"}}),
        json!({"id": 5, "tool": "bash", "params": {"command": "kill -9 $$"}}),
        json!({"id": 6, "tool": "bash", "params": {"command": "seq 100000"}}),
        json!({"id": 7, "tool": "bash", "params": {"command": "echo x", "background": true}}),
        json!({"cancel": 99}),
    ];
    for request in &requests {
        agrees_with_schema("request", request);
    }
    let lines: Vec<String> = requests
        .iter()
        .map(|request| format!("{request}\n"))
        .collect();
    // `answers` holds each line of the other direction against its schema.
    let answers = product.answers(
        &["--allow", "bash", "--jobs", "1"],
        lines.concat() + "no JSON\n",
    );
    assert_eq!(
        answers
            .iter()
            .filter(|answer| answer["role"].is_null())
            .count(),
        10,
        "{answers:#?}"
    );
    let statuses: Vec<&str> = answers
        .iter()
        .filter_map(|answer| answer["status"].as_str())
        .collect();
    for status in ["ok", "failed", "refused", "invalid"] {
        assert!(statuses.contains(&status), "{statuses:?}");
    }
}

#[test]
fn the_program_prints_the_schemas_of_its_lines() {
    let ran = Product::new().run(&["run", "--jsonl-schema"]);
    let printed: Value = serde_json::from_str(&ran.stdout).unwrap();
    for (key, kept) in [
        (
            "requests",
            include_str!("../../host/zeph-host/schema/request.json"),
        ),
        (
            "answers",
            include_str!("../../host/zeph-host/schema/answer.json"),
        ),
    ] {
        let kept: Value = serde_json::from_str(kept).unwrap();
        assert_eq!(printed[key], kept, "{key}");
    }
}
