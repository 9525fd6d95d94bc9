//! Calls that outlive their request, at several replicas: any of them answers, and takes over what another died over.

use std::fs;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::{Duration, Instant};

use rustix::process::Signal;
use serde_json::{Value, json};

use super::{Place, SHARED};
use crate::mcp_client::{MODERN, McpClient, PATIENCE, modern_meta};
use crate::mcp_ends::Sleep;
use crate::mcp_http_client::{HttpServer, Reply, message, modern_call};
use crate::mcp_tasks;
use crate::site::Site;

fn capable() -> Value {
    modern_meta(&json!({"extensions": {"io.modelcontextprotocol/tasks": {}}}))
}

/// A question about a task.
pub(super) fn ask(server: &HttpServer, method: &str, task: &Value) -> Value {
    let id = task.as_str().unwrap();
    let headers =
        format!("mcp-protocol-version: {MODERN}\r\nmcp-method: {method}\r\nmcp-name: {id}\r\n");
    let body = message(method, &json!({"taskId": id, "_meta": capable()}));
    let reply = server.request("POST /mcp", &headers, &body);
    reply.result()
}

pub(super) fn ended(server: &HttpServer, task: &Value, patience: Duration) -> Value {
    let deadline = Instant::now() + patience;
    loop {
        let state = ask(server, "tasks/get", task);
        if state["status"] != "working" {
            return state;
        }
        assert!(Instant::now() < deadline, "{state}");
        thread::sleep(Duration::from_millis(100));
    }
}

/// Begins calls at once; each becomes a task after ten seconds.
pub(super) fn begun<const N: usize>(server: &HttpServer, calls: [(&str, Value); N]) -> [Value; N] {
    let streams = calls.map(|(tool, arguments)| {
        let (headers, body) = modern_call(tool, &arguments, &capable());
        server.begin("POST /mcp", &headers, &body)
    });
    streams.map(|stream| {
        let begun = Reply::read(stream).result();
        assert_eq!(begun["resultType"], "task", "{begun}");
        begun["taskId"].clone()
    })
}

/// A site whose first page comes only once it may, and its other ones at once.
pub(super) fn slow_site(may_answer: &Arc<AtomicBool>) -> Site {
    let (may_answer, is_first) = (Arc::clone(may_answer), AtomicBool::new(true));
    Site::start(move |_| {
        if is_first.swap(false, Ordering::Relaxed) {
            while !may_answer.load(Ordering::Relaxed) {
                thread::sleep(Duration::from_millis(20));
            }
        }
        let head = "200 -\r\ncontent-type: text/html".to_owned();
        (head, b"<p>the page".to_vec())
    })
}

pub(super) fn configure(place: &Place, site: &Site) {
    let folder = place.product.home.join(".config/zeph-host");
    fs::create_dir_all(&folder).unwrap();
    let file = place.product.home.join("site.pem");
    fs::write(&file, &site.certificate).unwrap();
    let before = fs::read_to_string(folder.join("config.toml")).unwrap_or_default();
    let text = format!(
        "{before}\n[tools.egress]\nca_file = \"{}\"\n[[tools.egress.private]]\nhost = \"localhost\"\nports = [{}]\n\
         [tools.scrape]\ntimeout = 60\n",
        file.display(),
        site.port
    );
    fs::write(folder.join("config.toml"), text).unwrap();
    let host = format!("localhost:{}", site.port);
    let granted = place
        .product
        .run(&["plugin", "grant", "scrape", "--host", &host]);
    assert_eq!(granted.code, Some(0), "{}", granted.stderr);
}

/// It takes the ten seconds after which a call becomes a task, and the twenty for which a dead replica holds its own.
fn another_replica_answers_and_takes_over(place: &Place) {
    let may_answer = Arc::new(AtomicBool::new(false));
    let site = slow_site(&may_answer);
    configure(place, &site);
    let args = [&SHARED[..], &["--allow", "bash", "--allow", "fetch"]].concat();
    let (one, two) = (place.replica("one", &args), place.replica("two", &args));
    let (killed, cancelled) = (Sleep::new(), Sleep::new());
    let fetch = json!({"url": site.url("/"), "whole": true});
    let tasks = begun(
        &one,
        [
            ("fetch", fetch),
            ("bash", killed.command()),
            ("bash", cancelled.command()),
        ],
    );
    for task in &tasks {
        assert_eq!(ask(&two, "tasks/get", task)["status"], "working");
    }
    let [fetched, unknown, ending] = tasks;
    ask(&two, "tasks/cancel", &ending);
    assert_eq!(ended(&two, &ending, PATIENCE)["status"], "cancelled");
    cancelled.ends();
    one.signal(Signal::KILL);
    assert!(!one.ended().success());
    let patience = PATIENCE + Duration::from_secs(60);
    let done = ended(&two, &fetched, patience);
    assert_eq!(done["status"], "completed", "{done}");
    assert_eq!(done["result"]["isError"], false, "{done}");
    assert!(done["result"].to_string().contains("the page"), "{done}");
    let lost = ended(&two, &unknown, patience);
    assert_eq!(lost["status"], "failed", "{lost}");
    let told = lost["error"]["message"].as_str().unwrap();
    assert!(told.contains("nobody knows how far it came"), "{lost}");
    may_answer.store(true, Ordering::Relaxed);
    killed.ends();
    // What was made again is in the record twice, and the command once.
    let calls = |tool| {
        let args = ["audit", "query", "--tool", tool, "--json"];
        place.product.run(&args).json_lines().len()
    };
    assert_eq!((calls("fetch"), calls("bash")), (2, 2));
}

/// Both stores at once: nearly all of it is waiting.
#[test]
fn over_a_file_and_over_a_server() {
    thread::scope(|scope| {
        scope.spawn(|| another_replica_answers_and_takes_over(&Place::new()));
        if let Some(place) = Place::on_server() {
            another_replica_answers_and_takes_over(&place);
        }
    });
}

/// It takes the ten seconds after which a call becomes a task, and the twenty for which a dead server holds its own.
#[test]
fn a_server_over_stdio_ends_tasks_and_makes_none_again() {
    let place = Place::new();
    let may_answer = Arc::new(AtomicBool::new(false));
    let site = slow_site(&may_answer);
    configure(&place, &site);
    let replica = [&SHARED[..], &["--allow", "fetch"]].concat();
    let one = place.replica("one", &replica);
    let fetch = json!({"url": site.url("/"), "whole": true});
    let [fetched] = begun(&one, [("fetch", fetch)]);
    one.signal(Signal::KILL);
    assert!(!one.ended().success());
    may_answer.store(true, Ordering::Relaxed);

    // A server over stdio is killed behind it; what the next one ends comes free last.
    let keys = place.keys();
    let conversation = "--conversation=01900000-0000-7000-8000-000000000001";
    let name = "mcp.serve.replica=\"beside\"";
    let args = [
        "--allow",
        "bash",
        conversation,
        "--set",
        &keys,
        "--set",
        name,
    ];
    let mut client = McpClient::modern(&place.product, &args, &mcp_tasks::capable());
    let command = json!({"command": "sleep 1000", "background": true});
    let own = client.call("bash", command)["taskId"].clone();
    client.kill();
    let mut client = McpClient::modern(&place.product, &args, &mcp_tasks::capable());
    let lost = mcp_tasks::ended(&mut client, &own);
    assert_eq!(lost["status"], "failed", "{lost}");

    let two = place.replica("two", &replica);
    let done = ended(&two, &fetched, PATIENCE);
    assert_eq!(done["status"], "completed", "{done}");
    assert!(done["result"].to_string().contains("the page"), "{done}");
}
