//! How calls over the protocol end: nothing of a cancelled call is left, whether the client or the server goes away.

use std::fs;
use std::io::{BufRead as _, BufReader, Write as _};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use rustix::process::{Pid, Signal, kill_process};
use serde_json::{Value, json};

use crate::guest::HOSTILE;
use crate::left_out::leave_out;
use crate::mcp_client::{McpClient, PATIENCE, modern_meta};
use crate::product::Product;

/// A command that never ends, and that no other process is like.
pub(crate) struct Sleep(String);

impl Sleep {
    pub(crate) fn new() -> Self {
        let nanos = std::time::SystemTime::UNIX_EPOCH
            .elapsed()
            .unwrap()
            .as_nanos();
        Self(format!("9{}{}", std::process::id(), nanos % 1_000_000_000))
    }

    pub(crate) fn command(&self) -> Value {
        json!({"command": format!("sleep {}", self.0), "timeout": 300})
    }

    pub(crate) fn is_there(&self) -> bool {
        let processes = fs::read_dir("/proc").unwrap().flatten();
        processes.into_iter().any(|process| {
            let line = fs::read(process.path().join("cmdline")).unwrap_or_default();
            let mut words = line.split(|byte| *byte == 0);
            words
                .next()
                .is_some_and(|program| program.ends_with(b"sleep"))
                && words.next() == Some(self.0.as_bytes())
        })
    }

    #[track_caller]
    pub(crate) fn begins(&self) {
        waits_until("the command runs", || self.is_there());
    }

    #[track_caller]
    pub(crate) fn ends(&self) {
        waits_until("the command is gone", || !self.is_there());
    }
}

#[track_caller]
pub(crate) fn waits_until(what: &str, is_so: impl Fn() -> bool) {
    let deadline = Instant::now() + PATIENCE;
    while !is_so() {
        assert!(Instant::now() < deadline, "never: {what}");
        std::thread::sleep(Duration::from_millis(10));
    }
}

pub(crate) fn unfinished(product: &Product) -> Vec<Value> {
    let ran = product.run(&["audit", "query", "--unfinished", "--json"]);
    assert_eq!(ran.code, Some(0), "{ran:?}");
    ran.json_lines()
}

/// Waits until every call has the record of its end, which is made some milliseconds after its answer.
pub(crate) fn every_call_ends(product: &Product) {
    waits_until("every call has its end", || unfinished(product).is_empty());
}

fn last_record(product: &Product, tool: &str) -> Value {
    let records = product
        .run(&["audit", "query", "--tool", tool, "--json"])
        .json_lines();
    records
        .last()
        .unwrap_or_else(|| panic!("no call of {tool}"))
        .clone()
}

fn works(client: &mut McpClient) {
    let done = client.call("list_directory", json!({"path": "."}));
    assert_eq!(done["isError"], false, "{done}");
}

#[test]
fn a_cancelled_command_is_ended_and_gets_no_answer() {
    let product = Product::new();
    for mut client in McpClient::each(&product, &["--allow", "bash"]) {
        let sleep = Sleep::new();
        let id = client.begin_call("bash", sleep.command());
        sleep.begins();
        client.notify(
            "notifications/cancelled",
            json!({"requestId": id, "reason": "enough"}),
        );
        sleep.ends();
        works(&mut client);
        assert!(
            client.unread.iter().all(|message| message["id"] != id),
            "{:#?}",
            client.unread
        );
        every_call_ends(&product);
        let record = last_record(&product, "bash");
        assert_eq!(record["error_category"], "cancelled", "{record}");
    }
}

#[test]
fn a_cancelled_guest_is_ended_wherever_it_is() {
    let product = Product::new();
    product.drop_in("hostile", HOSTILE);
    let args = [
        "--set",
        "limits.wall_clock_secs=600",
        "--set",
        "limits.cpu_secs=600",
    ];
    let mut client = McpClient::legacy(&product, &args, &json!({}));
    for tool in ["spin", "sleeps", "flood_host"] {
        let id = client.begin_call(tool, json!({}));
        waits_until("the guest runs", || !unfinished(&product).is_empty());
        client.notify("notifications/cancelled", json!({"requestId": id}));
        every_call_ends(&product);
        let record = last_record(&product, &format!("hostile__{tool}"));
        assert_eq!(record["error_category"], "cancelled", "{record}");
        works(&mut client);
    }
}

/// A client of two processes, one at each stream of the server: what they pass on ends when they are killed.
struct Doomed {
    server: Child,
    writes: Child,
    reads: Child,
}

impl Doomed {
    #[expect(clippy::disallowed_methods, reason = "a client that can be killed")]
    fn start(product: &Product) -> Self {
        let mut writes = Command::new("cat");
        let mut writes = writes
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()
            .unwrap();
        let mut server = product.command(&["serve", "--allow", "bash"]);
        let mut server = server
            .stdin(writes.stdout.take().unwrap())
            .stdout(Stdio::piped())
            .stderr(Stdio::null())
            .spawn()
            .unwrap();
        let mut reads = Command::new("cat");
        let reads = reads
            .stdin(server.stdout.take().unwrap())
            .stdout(Stdio::null())
            .spawn()
            .unwrap();
        Self {
            server,
            writes,
            reads,
        }
    }

    fn call(&mut self, id: u64, arguments: Value) {
        let params = json!({
            "name": "bash",
            "arguments": arguments,
            "_meta": modern_meta(&json!({})),
        });
        let line = json!({"jsonrpc": "2.0", "id": id, "method": "tools/call", "params": params});
        writeln!(self.writes.stdin.as_mut().unwrap(), "{line}").unwrap();
    }

    fn is_killed(&mut self) {
        for child in [&mut self.writes, &mut self.reads] {
            child.kill().unwrap();
            child.wait().unwrap();
        }
    }
}

#[test]
fn a_client_that_is_killed_in_the_middle_leaves_nothing() {
    let product = Product::new();
    let mut doomed = Doomed::start(&product);
    let (sleep, behind) = (Sleep::new(), Sleep::new());
    let mut background = behind.command();
    background["background"] = json!(true);
    doomed.call(1, background);
    behind.begins();
    doomed.call(2, sleep.command());
    sleep.begins();
    doomed.is_killed();
    let status = doomed.server.wait().unwrap();
    assert!(matches!(status.code(), Some(0 | 141)), "{status}");
    sleep.ends();
    behind.ends();
    assert_eq!(unfinished(&product), Vec::<Value>::new());
    let records = product
        .run(&["audit", "query", "--tool", "bash", "--json"])
        .json_lines();
    let is_cancelled = |record: &Value| record["error_category"] == "cancelled";
    assert!(records.iter().any(is_cancelled), "{records:#?}");
}

#[test]
fn a_client_that_only_stops_reading_ends_the_server() {
    let product = Product::new();
    let mut doomed = Doomed::start(&product);
    let sleep = Sleep::new();
    doomed.call(1, sleep.command());
    sleep.begins();
    doomed.reads.kill().unwrap();
    doomed.reads.wait().unwrap();
    let status = doomed.server.wait().unwrap();
    assert_eq!(status.code(), Some(141));
    sleep.ends();
    assert_eq!(unfinished(&product), Vec::<Value>::new());
    doomed.is_killed();
}

#[test]
fn a_server_that_is_killed_leaves_no_process() {
    let product = Product::new();
    let mut client = McpClient::legacy(&product, &["--allow", "bash"], &json!({}));
    let sleep = Sleep::new();
    client.begin_call("bash", sleep.command());
    sleep.begins();
    client.kill();
    sleep.ends();
    let died = unfinished(&product);
    assert_eq!(died[0]["state"], "died", "{died:#?}");
    // The store is in order, and the next one works.
    works(&mut McpClient::legacy(&product, &[], &json!({})));
}

#[test]
fn the_end_of_the_input_answers_what_is_quick_and_cancels_the_rest() {
    let product = Product::new();
    for mut client in McpClient::each(&product, &["--allow", "bash"]) {
        works(&mut client);
        let sleep = Sleep::new();
        let slow = client.begin_call("bash", sleep.command());
        sleep.begins();
        let quick = client.begin_call("list_runs", json!({}));
        client.close();
        let (status, rest) = client.ended();
        assert_eq!(status.code(), Some(0));
        let of = |id: u64| rest.iter().find(|message| message["id"] == id).unwrap();
        assert_eq!(of(quick)["result"]["isError"], false, "{rest:#?}");
        let cancelled = &of(slow)["result"]["structuredContent"]["error"]["category"];
        assert_eq!(cancelled, "cancelled", "{rest:#?}");
        sleep.ends();
        assert_eq!(unfinished(&product), Vec::<Value>::new());
    }
}

/// Whether what is started from here is ended by `SIGHUP`: not where the tests were started by nohup(1).
pub(crate) fn hears_hang_up() -> bool {
    let status = fs::read_to_string("/proc/self/status").unwrap();
    let mut lines = status.lines();
    let ignored = lines.find_map(|line| line.strip_prefix("SigIgn:")).unwrap();
    let is_heard = u64::from_str_radix(ignored.trim(), 16).unwrap() & 1 == 0;
    if !is_heard {
        leave_out("the tests ignore SIGHUP, and so does what they start");
    }
    is_heard
}

#[test]
#[expect(
    clippy::disallowed_methods,
    reason = "a shell that ignores a signal, as nohup(1) does"
)]
fn nohup_keeps_a_server_from_a_hang_up() {
    let product = Product::new();
    let served = product.command(&["serve"]);
    let environment = served.get_envs();
    let mut server = Command::new("sh")
        .args(["-c", "trap '' HUP; exec \"$@\"", "sh"])
        .arg(served.get_program())
        .args(served.get_args())
        .current_dir(&product.work)
        .env_clear()
        .envs(environment.filter_map(|(name, value)| Some((name, value?))))
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::null())
        .spawn()
        .unwrap();
    let mut input = server.stdin.take().unwrap();
    let mut answers = BufReader::new(server.stdout.take().unwrap()).lines();
    let begin = json!({"protocolVersion": "2025-11-25", "capabilities": {}, "clientInfo": {"name": "c", "version": "1"}});
    let mut ask = |id: u64, method: &str, params: &Value| {
        let line = json!({"jsonrpc": "2.0", "id": id, "method": method, "params": params});
        writeln!(input, "{line}").unwrap();
        let answer: Value = serde_json::from_str(&answers.next().unwrap().unwrap()).unwrap();
        assert_eq!(answer["id"], id, "{answer}");
    };
    ask(1, "initialize", &begin);
    kill_process(Pid::from_child(&server), Signal::HUP).unwrap();
    ask(2, "ping", &json!({}));
    drop(input);
    assert_eq!(server.wait().unwrap().code(), Some(0));
}

#[test]
fn a_signal_ends_calls_and_the_server() {
    let product = Product::new();
    let hang_up = hears_hang_up().then_some((Signal::HUP, 129));
    let signals = [(Signal::TERM, 143), (Signal::INT, 130)];
    for (signal, code) in signals.into_iter().chain(hang_up) {
        let mut client = McpClient::legacy(&product, &["--allow", "bash"], &json!({}));
        let sleep = Sleep::new();
        let id = client.begin_call("bash", sleep.command());
        sleep.begins();
        let pid = Pid::from_raw(i32::try_from(client.pid()).unwrap()).unwrap();
        kill_process(pid, signal).unwrap();
        let (status, rest) = client.ended();
        assert_eq!(status.code(), Some(code));
        let answer = rest.iter().find(|message| message["id"] == id).unwrap();
        assert_eq!(
            answer["result"]["structuredContent"]["error"]["category"], "cancelled",
            "{answer}"
        );
        sleep.ends();
        assert_eq!(unfinished(&product), Vec::<Value>::new());
    }
}

#[test]
fn a_call_that_waits_for_its_place_is_cancelled_before_it_begins() {
    let product = Product::new();
    let args = [
        "--allow",
        "bash",
        "--set",
        "mcp.serve.max_concurrent_calls=1",
    ];
    let mut client = McpClient::legacy(&product, &args, &json!({}));
    let command = "until [ -e go ]; do sleep 0.02; done";
    let first = client.begin_call("bash", json!({"command": command}));
    waits_until("the first call runs", || !unfinished(&product).is_empty());
    let second = client.begin_call("bash", json!({"command": "touch second"}));
    let third = client.begin_call("bash", json!({"command": "touch third"}));
    client.notify("notifications/cancelled", json!({"requestId": third}));
    // What is no call needs no place.
    assert!(!client.tools().is_empty());
    assert_eq!(unfinished(&product).len(), 1);
    product.file("go", "");
    for id in [first, second] {
        let answer = client.answer(id);
        assert_eq!(answer["result"]["isError"], false, "{answer}");
    }
    client.close();
    client.ended();
    assert!(product.work.join("second").exists());
    assert!(!product.work.join("third").exists());
    let records = product
        .run(&["audit", "query", "--tool", "bash", "--json"])
        .json_lines();
    assert_eq!(records.len(), 2, "{records:#?}");
}
