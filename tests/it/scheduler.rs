//! Work for later: what was scheduled runs in a host of its own, once, with the authority it had.

use std::collections::BTreeMap;
use std::fs;
use std::process::{Child, Stdio};
use std::time::{Duration, Instant};

use serde_json::{Value, json};

use crate::egress;
use crate::mcp_client::modern_meta;
use crate::mcp_http_client::{HttpServer, add_token, modern_call};
use crate::product::{Product, answer};
use crate::site::Site;

/// The tools are there, commands may run, and scheduling needs no approval.
pub(crate) const OPEN: &str = "[tools.scheduler]\nenabled = true\n\
    [[tools.permissions.bash]]\npattern = \"*\"\naction = \"allow\"\n\
    [[tools.permissions.schedule_deferred]]\npattern = \"*\"\naction = \"allow\"\n\
    [[tools.permissions.schedule_periodic]]\npattern = \"*\"\naction = \"allow\"\n";

/// The same, but no rule speaks of commands.
const ASKING: &str = "[tools.scheduler]\nenabled = true\n";

pub(crate) fn product(config: &str) -> Product {
    let product = Product::new();
    product.user_config(config);
    product
}

pub(crate) fn line(id: u32, tool: &str, params: &Value) -> String {
    json!({"id": id, "tool": tool, "params": params}).to_string() + "\n"
}

pub(crate) fn deferred(name: &str, at: &str, command: &str) -> Value {
    json!({"name": name, "at": at, "tool": "bash", "arguments": {"command": command}})
}

/// `zeph-host scheduler`, ended with the test.
pub(crate) struct SchedulerHost(Child);

impl SchedulerHost {
    pub(crate) fn start(product: &Product) -> Self {
        let mut command = product.command(&["scheduler"]);
        command.stdin(Stdio::null()).stdout(Stdio::null());
        Self(command.stderr(Stdio::null()).spawn().unwrap())
    }
}

impl Drop for SchedulerHost {
    fn drop(&mut self) {
        drop(self.0.kill());
        drop(self.0.wait());
    }
}

pub(crate) fn tasks(product: &Product) -> BTreeMap<String, Value> {
    let ran = product.run(&["scheduler", "list", "--json"]);
    assert_eq!(ran.code, Some(0), "{}", ran.stderr);
    let tasks: Vec<Value> = serde_json::from_str(&ran.stdout).unwrap();
    let named = |task: Value| (task["name"].as_str().unwrap().to_owned(), task);
    tasks.into_iter().map(named).collect()
}

/// The task, once its last run has ended.
pub(crate) fn ended(product: &Product, name: &str) -> Value {
    let begun = Instant::now();
    loop {
        let task = tasks(product).remove(name).unwrap();
        let state = task["last_run"]["state"].as_str().unwrap_or("none");
        if !["none", "running"].contains(&state) {
            return task;
        }
        assert!(begun.elapsed() < Duration::from_secs(60), "{task}");
    }
}

#[test]
fn a_deferred_call_runs_once_and_the_audit_says_who_made_it() {
    let product = product(OPEN);
    let task = deferred("note", "+1s", "echo done >> note.txt");
    let answers = product.answers(&[], line(1, "schedule_deferred", &task));
    let said = answer(&answers, 1);
    assert_eq!(said["status"], "ok", "{said}");
    let text = said["text"].as_str().unwrap();
    assert!(text.starts_with("Created deferred task 'note'"), "{text}");
    let _host = SchedulerHost::start(&product);
    let _other = SchedulerHost::start(&product);
    let task = ended(&product, "note");
    assert_eq!(task["last_run"]["state"], "done", "{task}");
    assert_eq!(task["next_run"], Value::Null, "{task}");
    assert_eq!(product.read("note.txt"), "done\n");
    let records = product.run(&["audit", "query", "--json"]).json_lines();
    let made = records.iter().find(|record| record["tool"] == "bash");
    let label = made.unwrap()["correlation_id"].as_str().unwrap();
    let run = task["last_run"]["run"].as_str().unwrap();
    assert_eq!(label, format!("schedule:note:{run}"));
    let listed = product.answers(&[], line(1, "list_tasks", &json!({})));
    let text = answer(&listed, 1)["text"].as_str().unwrap();
    assert!(text.starts_with("Scheduled tasks (1):\nNAME "), "{text:?}");
    assert!(!text.contains('\x1b'), "{text:?}");
    assert_eq!(product.run(&["scheduler", "cancel", "note"]).code, Some(0));
    assert_ne!(product.run(&["scheduler", "cancel", "note"]).code, Some(0));
    assert!(tasks(&product).is_empty());
}

#[test]
fn a_run_has_no_more_authority_than_the_rules_give_when_it_comes() {
    let product = product(ASKING);
    let task = deferred("note", "+1s", "echo done >> note.txt");
    // What is allowed on the command line allows the scheduling, and nothing later.
    let allowed = ["--allow", "schedule_deferred", "--allow", "bash"];
    let answers = product.answers(&allowed, line(1, "schedule_deferred", &task));
    let text = answer(&answers, 1)["text"].as_str().unwrap();
    assert!(text.contains("each run waits for an approval"), "{text}");
    // So no text advises it.
    let advises_rule =
        |text: &str| text.contains("[[tools.permissions.bash]]") && !text.contains("with `--allow");
    assert!(advises_rule(text), "{text}");
    // A host with the same `--allow` runs it.
    let mut child = product.start(&allowed);
    let task = ended(&product, "note");
    drop(child.stdin.take());
    child.wait().unwrap();
    assert_eq!(task["last_run"]["state"], "refused", "{task}");
    let note = task["last_run"]["note"].as_str().unwrap();
    assert!(note.contains("zeph-host approve"), "{note}");
    assert!(advises_rule(note), "{note}");
    assert!(!product.work.join("note.txt").exists());
    let explained = product.run(&["explain", "--as-task", "bash", "command=echo x"]);
    assert!(explained.stdout.starts_with("ask:"), "{}", explained.stdout);
}

#[test]
fn a_deferred_call_has_its_time_under_either_name() {
    let product = product(OPEN);
    let task =
        |key: &str| json!({"name": key, key: "+1h", "tool": "read", "arguments": {"path": "a"}});
    for key in ["at", "run_at"] {
        let answers = product.answers(&[], line(1, "schedule_deferred", &task(key)));
        assert_eq!(answer(&answers, 1)["status"], "ok", "{answers:?}");
    }
    let mut both = task("at");
    both["run_at"] = json!("+2h");
    let answers = product.answers(&[], line(1, "schedule_deferred", &both));
    let message = answer(&answers, 1)["error"]["message"].as_str().unwrap();
    assert!(message.contains("two names of one argument"), "{message}");
    let answers = product.answers(&[], line(1, "schedule_deferred", &task("never")));
    let message = answer(&answers, 1)["error"]["message"].as_str().unwrap();
    assert!(message.contains("`at`"), "{message}");
}

#[test]
fn what_could_never_run_is_not_scheduled() {
    let product = product(OPEN);
    let params = |more: Value| {
        let mut params = json!({"name": "a", "cron": "0 3 * * *"});
        for (key, value) in more.as_object().unwrap() {
            params[key] = value.clone();
        }
        params
    };
    let cases = [
        (json!({}), "give `tool`"),
        (json!({"tool": "bash", "prompt": "x"}), "give `tool`"),
        (json!({"tool": "no_such_tool"}), "no_such_tool"),
        (
            json!({"tool": "bash", "arguments": {"nonsense": 1}}),
            "command",
        ),
        (json!({"tool": "schedule_periodic"}), "schedules no others"),
        (
            json!({"tool": "bash", "arguments": {"command": "true"}, "cron": "5/5 * * * *"}),
            "single number steps",
        ),
        (
            json!({"tool": "bash", "arguments": {"command": "true"}, "time_zone": "Mars"}),
            "no time zone",
        ),
        (
            json!({"name": "", "tool": "bash", "arguments": {"command": "true"}}),
            "`name`",
        ),
    ];
    for (more, words) in cases {
        let answers = product.answers(&[], line(1, "schedule_periodic", &params(more.clone())));
        let said = answer(&answers, 1);
        assert_ne!(said["status"], "ok", "{more}");
        assert!(said.to_string().contains(words), "{more}: {said}");
    }
    assert!(tasks(&product).is_empty());
    let off = product.run(&["--set", "tools.scheduler.enabled=false", "scheduler"]);
    assert_ne!(off.code, Some(0));
    assert!(
        off.stderr.contains("tools.scheduler.enabled"),
        "{}",
        off.stderr
    );
}

#[test]
fn one_call_schedules_a_tool_of_a_plugin() {
    let product = product(OPEN);
    let task = [
        "name=a",
        "cron=0 9 * * *",
        "tool=read",
        r#"arguments={"path":"a"}"#,
    ];
    let ran = product.run(&[&["call", "schedule_periodic"][..], &task].concat());
    assert_eq!(ran.code, Some(0), "{}{}", ran.stdout, ran.stderr);
    assert!(tasks(&product).contains_key("a"), "{}", ran.stdout);
}

#[test]
fn callers_do_not_see_the_tasks_of_others() {
    let product = product(OPEN);
    let by = |id: u32, caller: &str, tool: &str, params: Value| {
        json!({"id": id, "caller_id": caller, "tool": tool, "params": params}).to_string() + "\n"
    };
    let task = |command: &str| deferred("same", "+1h", command);
    let allow = ["--allow", "cancel_task"];
    let lines = [
        by(1, "ann", "schedule_deferred", task("echo ann")),
        by(2, "bob", "list_tasks", json!({})),
        by(3, "bob", "cancel_task", json!({"name": "same"})),
        by(4, "bob", "schedule_deferred", task("echo bob")),
        by(5, "ann", "list_tasks", json!({})),
        by(6, "ann", "cancel_task", json!({"name": "same"})),
        by(7, "bob", "list_tasks", json!({})),
    ];
    // One after the other.
    let mut answers = Vec::new();
    for line in lines {
        answers.extend(product.answers(&allow, line));
    }
    let text = |id: u32| answer(&answers, id).to_string();
    assert!(
        text(2).contains("No active scheduled tasks."),
        "{}",
        text(2)
    );
    assert!(text(3).contains("not found"), "{}", text(3));
    assert!(text(4).contains("Created"), "{}", text(4));
    assert!(text(5).contains("echo ann"), "{}", text(5));
    assert!(!text(5).contains("echo bob"), "{}", text(5));
    assert!(text(6).contains("Cancelled"), "{}", text(6));
    assert!(text(7).contains("echo bob"), "{}", text(7));
}

/// A call of a client with this token.
fn called(server: &HttpServer, token: &str, tool: &str, arguments: &Value) -> Value {
    let (headers, body) = modern_call(tool, arguments, &modern_meta(&json!({})));
    let reply = server.request("POST /mcp", &format!("{token}{headers}"), &body);
    reply.result()
}

#[test]
fn a_token_schedules_nothing_that_it_may_not_call() {
    let product = product(OPEN);
    let bob = add_token(&product, &["bob", "--tools", "schedule_*,list_tasks,read"]);
    let server = HttpServer::start(&product, &[]);
    let command = json!({"command": "date >> ran.txt"});
    let refused = called(&server, &bob, "bash", &command);
    assert_eq!(refused["isError"], true, "{refused}");
    let task = deferred("a", "+1s", "date >> ran.txt");
    let refused = called(&server, &bob, "schedule_deferred", &task);
    assert_eq!(refused["isError"], true, "{refused}");
    assert!(refused.to_string().contains("token allows"), "{refused}");
    let task = json!({"name": "b", "at": "+1h", "tool": "read", "arguments": {"path": "a"}});
    let done = called(&server, &bob, "schedule_deferred", &task);
    assert_eq!(done["isError"], false, "{done}");
    assert_eq!(tasks(&product).into_keys().collect::<Vec<_>>(), ["b"]);
}

#[test]
fn tasks_of_a_revoked_token_run_no_more_and_are_none_of_the_next() {
    let product = product(OPEN);
    let ann = add_token(&product, &["ann"]);
    let server = HttpServer::start(&product, &[]);
    let task = deferred("a", "+6s", "date >> ran.txt");
    let done = called(&server, &ann, "schedule_deferred", &task);
    assert_eq!(done["isError"], false, "{done}");
    let revoked = product.run(&["token", "revoke", "ann"]);
    assert_eq!(revoked.code, Some(0), "{}", revoked.stderr);
    let anew = add_token(&product, &["ann"]);
    let listed = called(&server, &anew, "list_tasks", &json!({}));
    assert!(listed.to_string().contains("No active"), "{listed}");
    let shown = product.run(&["scheduler", "list"]).stdout;
    assert!(shown.contains("its token is gone"), "{shown}");
    let given_up = ended(&product, "a");
    assert_eq!(given_up["token_gone"], true, "{given_up}");
    assert_eq!(given_up["last_run"]["state"], "refused", "{given_up}");
    assert!(given_up["next_run"].is_null(), "{given_up}");
    assert!(!product.work.join("ran.txt").exists());
    let cancelled = product.run(&["scheduler", "cancel", "a", "--caller", "ann"]);
    assert_eq!(cancelled.code, Some(0), "{}", cancelled.stderr);
}

/// Who comes to a server that lets everybody in is not the person at the terminal, who has no name either.
#[test]
fn what_anybody_scheduled_ends_when_the_server_is_closed() {
    let product = product(OPEN);
    let own = deferred("own", "+1h", "date");
    let arguments = ["call", "schedule_deferred", "--json", &own.to_string()];
    let done = product.run(&arguments);
    assert_eq!(done.code, Some(0), "{done:?}");
    let server = HttpServer::start(&product, &[]);
    let task = deferred("a", "+6s", "date >> ran.txt");
    let done = called(&server, "", "schedule_deferred", &task);
    assert_eq!(done["isError"], false, "{done}");
    let listed = called(&server, "", "list_tasks", &json!({})).to_string();
    assert!(!listed.contains("own"), "{listed}");
    add_token(&product, &["ci"]);
    let given_up = ended(&product, "a");
    assert_eq!(given_up["last_run"]["state"], "refused", "{given_up}");
    assert!(!product.work.join("ran.txt").exists());
}

/// Where the user is heard, what is scheduled reaches what was named there and asks about the rest.
#[test]
fn a_scheduled_call_reaches_no_address_that_nobody_named() {
    let site = Site::start(|_| ("200 OK".to_owned(), b"hello".to_vec()));
    let product = egress::product(&site);
    egress::grant(&product, &format!("localhost:{}:GET", site.port));
    let file = product.home.join(".config/zeph-host/config.toml");
    let config = fs::read_to_string(&file).unwrap();
    fs::write(&file, format!("{config}\n{OPEN}")).unwrap();
    let task = |name: &str, path: &str| {
        let arguments = json!({"method": "GET", "url": site.url(path), "headers": [], "body": ""});
        json!({"name": name, "at": "+1s", "tool": "visit", "arguments": arguments})
    };
    let said = json!({"turn": "1", "user": format!("Read {} later.", site.url("/a"))});
    let lines = format!("{said}\n")
        + &line(1, "schedule_deferred", &task("named", "/a"))
        + &line(2, "schedule_deferred", &task("made", "/a?secret"));
    let answers = product.answers(&["-j", "1"], lines);
    for id in [1, 2] {
        assert_eq!(answer(&answers, id)["status"], "ok", "{answers:?}");
    }
    let _host = SchedulerHost::start(&product);
    for (name, expect) in [("named", "done"), ("made", "refused")] {
        let task = ended(&product, name);
        assert_eq!(task["last_run"]["state"], expect, "{task}");
    }
    assert_eq!(site.requests().len(), 1, "{:?}", site.requests());
}
