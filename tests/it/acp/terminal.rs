//! Commands: in the editor's terminal and without one.

use std::collections::HashMap;
use std::process::{Child, Stdio};

use serde_json::{Value, json};

use super::client::Client;
use super::model::{Model, calls, says};
use super::{plain, product, with_terminal};

/// The terminals of an editor: real processes.
#[derive(Default)]
struct Terminals {
    running: HashMap<String, Child>,
    /// The methods that were called, in order.
    called: Vec<String>,
    /// What the terminals showed.
    shown: String,
    /// The programs, with their arguments.
    started: Vec<Vec<String>>,
    /// Whether no program can be started but this.
    only: Option<&'static str>,
}

impl Terminals {
    fn serve(&mut self, client: &mut Client, request: &Value) {
        let method = request["method"].as_str().unwrap().to_owned();
        let params = &request["params"];
        self.called.push(method.clone());
        let result = match method.as_str() {
            "terminal/create" => {
                let Some(id) = self.create(params) else {
                    client.send(&json!({"jsonrpc": "2.0", "id": request["id"], "error": {"code": -32603, "message": "no such program"}}));
                    return;
                };
                json!({"terminalId": id})
            }
            "terminal/wait_for_exit" => self.wait(params),
            "terminal/output" => {
                json!({"output": self.shown, "truncated": false, "exitStatus": {"exitCode": 0}})
            }
            "terminal/kill" => {
                let child = self
                    .running
                    .get_mut(params["terminalId"].as_str().unwrap())
                    .unwrap();
                child.kill().unwrap();
                json!({})
            }
            "terminal/release" => {
                let mut child = self
                    .running
                    .remove(params["terminalId"].as_str().unwrap())
                    .unwrap();
                drop(child.kill());
                child.wait().unwrap();
                json!(null)
            }
            "session/request_permission" => {
                json!({"outcome": {"outcome": "selected", "optionId": "allow_once"}})
            }
            other => panic!("{other}"),
        };
        client.answer(request, &result);
    }

    #[expect(
        clippy::disallowed_methods,
        reason = "the client of the test is an editor"
    )]
    fn create(&mut self, params: &Value) -> Option<String> {
        let program = params["command"].as_str().unwrap();
        let args: Vec<String> = serde_json::from_value(params["args"].clone()).unwrap();
        self.started
            .push([vec![program.to_owned()], args.clone()].concat());
        if self.only.is_some_and(|only| only != program) {
            return None;
        }
        let child = std::process::Command::new(program)
            .args(args)
            .current_dir(params["cwd"].as_str().unwrap())
            .stdin(Stdio::null())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn()
            .unwrap();
        let id = format!("t{}", self.started.len());
        self.running.insert(id.clone(), child);
        Some(id)
    }

    fn wait(&mut self, params: &Value) -> Value {
        use std::io::Read as _;
        let child = self
            .running
            .get_mut(params["terminalId"].as_str().unwrap())
            .unwrap();
        child
            .stdout
            .take()
            .unwrap()
            .read_to_string(&mut self.shown)
            .unwrap();
        child
            .stderr
            .take()
            .unwrap()
            .read_to_string(&mut self.shown)
            .unwrap();
        json!({"exitCode": child.wait().unwrap().code()})
    }
}

fn bash(command: &str) -> super::model::Answer {
    calls("bash", json!({"command": command}))
}

#[test]
fn a_command_is_shown_in_the_terminal_and_stays_in_its_jail() {
    let command = "echo hello; cat $HOME/secret; exit 3";
    let model = Model::new([bash(command), says("done")]);
    let product = product(&model);
    std::fs::write(product.home.join("secret"), "hidden").unwrap();
    let mut client = Client::start(&product, &["--allow", "bash"], with_terminal());
    let session = client.session(&product.work);
    let mut terminals = Terminals::default();
    // A terminal that is waited for before its program has come would not be one of an editor that works.
    let mut waits = Vec::new();
    let stop = client.prompt(&session, "run", |client, request| {
        match request["method"].as_str() {
            Some("terminal/wait_for_exit") if waits.is_empty() => waits.push(request.clone()),
            _ => terminals.serve(client, request),
        }
    });
    assert_eq!(stop, "end_turn");
    assert_eq!(
        terminals.called,
        [
            "terminal/create",
            "terminal/wait_for_exit",
            "terminal/release"
        ]
    );
    let started = &terminals.started[0];
    assert_eq!(
        (started[1].as_str(), started.last().unwrap().as_str()),
        ("jail", command)
    );
    assert!(terminals.shown.contains("hello"), "{}", terminals.shown);
    assert!(!terminals.shown.contains("hidden"), "{}", terminals.shown);
    assert!(terminals.running.is_empty());
    let updates = client.of_kind("tool_call_update");
    assert_eq!(
        updates[0]["content"],
        json!([{"type": "terminal", "terminalId": "t1"}])
    );
    let (begun, ended) = client.ended_call();
    assert_eq!(
        (&begun["kind"], &ended["status"]),
        (&json!("execute"), &json!("failed"))
    );
    assert_eq!(ended["content"][0]["type"], "terminal");
    assert_eq!(ended["rawOutput"]["exit_code"], 3);
    let text = ended["content"][1]["content"]["text"].as_str().unwrap();
    assert!(text.contains("hello") && !text.contains("hidden"), "{text}");
}

#[test]
fn without_our_program_the_call_asks_and_says_that_the_jail_is_missing() {
    let model = Model::new([bash("echo bare"), says("done")]);
    let product = product(&model);
    let mut client = Client::start(&product, &["--allow", "bash"], with_terminal());
    let session = client.session(&product.work);
    let mut terminals = Terminals {
        only: Some("sh"),
        ..Terminals::default()
    };
    let mut asked = json!(null);
    client.prompt(&session, "run", |client, request| {
        if request["method"] == "session/request_permission" {
            asked = request["params"].clone();
        }
        terminals.serve(client, request);
    });
    let shown = asked["toolCall"].to_string();
    assert!(shown.contains("the jail is missing"), "{shown}");
    // Nothing is kept of this answer, so nothing else is offered.
    let offered = asked["options"].as_array().unwrap().iter();
    let offered: Vec<_> = offered.map(|option| option["kind"].clone()).collect();
    assert_eq!(offered, ["allow_once", "reject_once", "reject_always"]);
    assert_eq!(terminals.started[1], ["sh", "-c", "echo bare"]);
    let (_, ended) = client.ended_call();
    assert_eq!(ended["status"], "completed");
    assert_eq!(ended["rawOutput"]["sandbox"], "none (editor)");
    assert!(terminals.running.is_empty());
}

#[test]
fn an_output_that_an_editor_does_not_give_is_not_told_as_an_empty_one() {
    let model = Model::new([bash("echo bare"), says("done")]);
    let product = product(&model);
    let mut client = Client::start(&product, &["--allow", "bash"], with_terminal());
    let session = client.session(&product.work);
    let mut terminals = Terminals {
        only: Some("sh"),
        ..Terminals::default()
    };
    client.prompt(&session, "run", |client, request| {
        match request["method"] == "terminal/output" {
            true => client.answer(request, &json!({"output": null})),
            false => terminals.serve(client, request),
        }
    });
    let told = model.requests()[1].to_string();
    assert!(told.contains("did not give the output"), "{told}");
    assert!(terminals.running.is_empty());
}

/// Nobody sees which files a command opens that the editor runs itself: what may show files counts as having read private ones.
#[test]
fn what_nobody_watched_counts_as_private() {
    let model = Model::new([bash("echo none"), bash("grep -r KEY ."), says("done")]);
    let product = product(&model);
    product.file(".env", "KEY=1\n");
    let mut client = Client::start(&product, &["--allow", "bash"], with_terminal());
    let session = client.session(&product.work);
    let mut terminals = Terminals {
        only: Some("sh"),
        ..Terminals::default()
    };
    client.prompt(&session, "run", |client, request| {
        terminals.serve(client, request);
    });
    client.leave();
    let records = product.run(&["audit", "query", "--tool", "bash", "--json"]);
    let records = records.json_lines();
    let labels = |command: &str| {
        let mut records = records.iter();
        let of_command = records.find(|record| record.to_string().contains(command));
        of_command.unwrap()["result_labels"].to_string()
    };
    assert!(labels("grep -r KEY").contains("private"), "{records:?}");
    assert!(!labels("echo none").contains("private"), "{records:?}");
}

#[test]
fn without_our_program_and_without_an_agreement_nothing_runs() {
    let model = Model::new([bash("echo bare"), says("no"), bash("echo bare"), says("no")]);
    let product = product(&model);
    let mut client = Client::start(&product, &["--allow", "bash"], with_terminal());
    let session = client.session(&product.work);
    let mut terminals = Terminals {
        only: Some("nothing"),
        ..Terminals::default()
    };
    for n_created in [1, 1] {
        client.prompt(&session, "run", |client, request| {
            match request["method"] == "session/request_permission" {
                true => client.answer(
                    request,
                    &json!({"outcome": {"outcome": "selected", "optionId": "reject_once"}}),
                ),
                false => terminals.serve(client, request),
            }
        });
        // That it cannot be started is known after the first time.
        assert_eq!(terminals.started.len(), n_created);
    }
    let told = model.requests()[1]["messages"].to_string();
    assert!(told.contains("the jail is missing"), "{told}");
}

#[test]
fn a_command_that_is_cancelled_is_killed_and_its_terminal_released() {
    let model = Model::new([bash("echo began; sleep 1000"), says("no")]);
    let product = product(&model);
    let mut client = Client::start(&product, &["--allow", "bash"], with_terminal());
    let session = client.session(&product.work);
    let mut terminals = Terminals::default();
    let turn = client.send_prompt(&session, "run");
    let answer = client.wait(turn, |client, request| match request["method"].as_str() {
        Some("terminal/wait_for_exit") => {
            client.notify("session/cancel", &json!({"sessionId": session}));
        }
        _ => terminals.serve(client, request),
    });
    assert_eq!(answer.unwrap()["stopReason"], "cancelled");
    assert_eq!(
        terminals.called,
        ["terminal/create", "terminal/kill", "terminal/release"]
    );
    assert_eq!(client.ended_call().1["status"], "failed");
}

#[test]
fn a_command_that_takes_too_long_is_killed_and_its_terminal_released() {
    let model = Model::new([bash("echo began; sleep 1000"), says("too long")]);
    let product = product(&model);
    let args = ["--allow", "bash", "--set", "tools.shell.timeout=1"];
    let mut client = Client::start(&product, &args, with_terminal());
    let session = client.session(&product.work);
    let mut terminals = Terminals::default();
    let stop = client.prompt(&session, "run", |client, request| {
        // An editor that waits for the end goes on answering.
        if request["method"] != "terminal/wait_for_exit" {
            terminals.serve(client, request);
        }
    });
    assert_eq!(stop, "end_turn");
    assert_eq!(
        terminals.called,
        ["terminal/create", "terminal/kill", "terminal/release"]
    );
    assert!(terminals.running.is_empty());
    assert_eq!(client.ended_call().1["status"], "failed");
    let told = model.requests()[1]["messages"].to_string();
    assert!(told.contains("category: timeout"), "{told}");
}

#[test]
fn a_terminal_that_is_closed_cancels_its_command() {
    let model = Model::new([bash("sleep 1000"), says("closed")]);
    let product = product(&model);
    let mut client = Client::start(&product, &["--allow", "bash"], with_terminal());
    let session = client.session(&product.work);
    let mut terminals = Terminals::default();
    let stop = client.prompt(&session, "run", |client, request| {
        let is_wait = request["method"] == "terminal/wait_for_exit";
        if is_wait {
            return;
        }
        terminals.serve(client, request);
        if request["method"] == "terminal/create" {
            // The program has to be there before it can be closed: its socket is connected to once it is.
            client.until(|message| message["params"]["update"]["content"][0]["type"] == "terminal");
            for child in terminals.running.values_mut() {
                while !is_connected(child) {
                    std::thread::yield_now();
                }
                child.kill().unwrap();
            }
        }
    });
    assert_eq!(stop, "end_turn");
    let told = model.requests()[1]["messages"].to_string();
    assert!(told.contains("was closed in the editor"), "{told}");
}

/// Whether a process holds a socket.
fn is_connected(child: &Child) -> bool {
    let folder = format!("/proc/{}/fd", child.id());
    let files = std::fs::read_dir(folder).into_iter().flatten().flatten();
    let links = files.filter_map(|file| std::fs::read_link(file.path()).ok());
    links
        .into_iter()
        .any(|link| link.to_string_lossy().starts_with("socket:"))
}

#[test]
fn without_a_terminal_a_command_runs_in_the_host() {
    let model = Model::new([bash("echo hello; exit 4"), says("done")]);
    let product = product(&model);
    let mut client = Client::start(&product, &["--allow", "bash"], plain());
    let session = client.session(&product.work);
    client.prompt(&session, "run", |_, request| panic!("{request}"));
    let (_, ended) = client.ended_call();
    assert_eq!(ended["status"], "failed");
    assert_eq!(ended["rawOutput"]["exit_code"], 4);
}
