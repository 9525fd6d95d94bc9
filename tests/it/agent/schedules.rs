//! A prompt that was scheduled: the agent works when its time has come, and nobody can be asked.

use std::fs;

use serde_json::json;

use super::script::{Script, calls, says};
use super::settings;
use crate::egress;
use crate::product::{Product, answer};
use crate::scheduler::{OPEN, SchedulerHost, ended};
use crate::site::Site;

/// A product with the model of `script`, where the prompt `Write the note.` is scheduled.
fn scheduled(script: &Script) -> Product {
    let product = Product::new();
    let folder = product.home.join(".config/zeph-host");
    fs::create_dir_all(&folder).unwrap();
    let config = format!("{OPEN}{}", settings(script, 6));
    fs::write(folder.join("config.toml"), config).unwrap();
    let task = json!({"name": "note", "at": "+1s", "prompt": "Write the note."});
    let line = json!({"id": 1, "tool": "schedule_deferred", "params": task});
    let answers = product.answers(&[], format!("{line}\n"));
    let said = answer(&answers, 1)["text"].as_str().unwrap().to_owned();
    assert!(said.contains("prompt: Write the note."), "{said}");
    product
}

#[test]
fn a_scheduled_prompt_is_a_turn_of_the_agent() {
    let script = Script::new([
        calls(&[("bash", json!({"command": "echo written > note.txt"}))]),
        says("The note is written."),
    ]);
    let product = scheduled(&script);
    let _host = SchedulerHost::start(&product);
    let task = ended(&product, "note");
    assert_eq!(task["last_run"]["state"], "done", "{task}");
    assert_eq!(task["last_run"]["note"], "The note is written.", "{task}");
    assert_eq!(product.read("note.txt"), "written\n");
    let asked = script.requests()[0].to_string();
    assert!(asked.contains("Write the note."), "{asked}");
    let records = product.run(&["audit", "query", "--tool", "bash", "--json"]);
    let record = records.json_lines().remove(0);
    let label = record["correlation_id"].as_str().unwrap();
    assert!(label.starts_with("schedule:note:"), "{record}");
    // Its conversation is not that of the call which scheduled it.
    assert_ne!(record["conversation_id"], task["conversation"], "{record}");
    // Nor is it the last one of a person.
    let resumed = product.run(&["run", "--resume", "go on"]);
    assert_eq!(resumed.code, Some(2), "{resumed:?}");
    assert!(resumed.stderr.contains("no session"), "{resumed:?}");
}

/// Its prompt may hold what the conversation had read that wrote it.
#[test]
fn a_scheduled_prompt_carries_the_labels_of_its_conversation() {
    for (path, expect) in [("notes.txt", "done"), (".env", "refused")] {
        let push = json!({"command": "git push nowhere"});
        let script = Script::new([calls(&[("bash", push)]), says("I tried.")]);
        let product = Product::new();
        product.file("notes.txt", "nothing\n");
        product.file(".env", "KEY=1\n");
        let folder = product.home.join(".config/zeph-host");
        fs::create_dir_all(&folder).unwrap();
        let open = format!(
            "[tools.sandbox]\nallow_network = true\n[tools.shell]\nconfirm_patterns = []\n{OPEN}"
        );
        let config = format!("{open}{}", settings(&script, 6));
        fs::write(folder.join("config.toml"), config).unwrap();
        let task = json!({"name": "push", "at": "+1s", "prompt": "Push."});
        let lines = [
            json!({"id": 1, "tool": "read", "params": {"path": path}}),
            json!({"id": 2, "tool": "schedule_deferred", "params": task}),
        ];
        let lines = lines.map(|line| format!("{line}\n")).concat();
        let answers = product.answers(&["-j", "1"], lines);
        assert_eq!(answer(&answers, 2)["status"], "ok", "{answers:?}");
        let _host = SchedulerHost::start(&product);
        let task = ended(&product, "push");
        assert_eq!(task["last_run"]["state"], expect, "{path}: {task}");
    }
}

#[test]
fn a_scheduled_prompt_that_needs_an_approval_is_refused_and_says_so() {
    let script = Script::new([
        calls(&[("write", json!({"path": "note.txt", "content": "x"}))]),
        says("I may not write it."),
    ]);
    let product = scheduled(&script);
    let _host = SchedulerHost::start(&product);
    let task = ended(&product, "note");
    assert_eq!(task["last_run"]["state"], "refused", "{task}");
    assert!(!product.work.join("note.txt").exists());
    let pending = product.run(&["approve", "--list", "--json"]);
    assert!(pending.stdout.contains("write"), "{}", pending.stdout);
}

#[test]
fn a_scheduled_prompt_without_a_model_says_what_is_missing() {
    let script = Script::new([]);
    let product = scheduled(&script);
    fs::write(product.home.join(".config/zeph-host/config.toml"), OPEN).unwrap();
    let _host = SchedulerHost::start(&product);
    let task = ended(&product, "note");
    assert_eq!(task["last_run"]["state"], "failed", "{task}");
    let note = task["last_run"]["note"].as_str().unwrap();
    assert!(note.contains("llm.providers"), "{note}");
}

/// A model that schedules a prompt names no address with it.
#[test]
fn a_prompt_that_a_model_scheduled_is_not_what_the_user_said() {
    let site = Site::start(|_| ("200 OK".to_owned(), b"hello".to_vec()));
    let url = site.url("/?secret");
    let task = json!({"name": "fetch", "at": "+1s", "prompt": format!("Visit {url}.")});
    let visit = json!({"method": "GET", "url": url, "headers": [], "body": ""});
    let script = Script::new([
        calls(&[("schedule_deferred", task)]),
        says("It is scheduled."),
        calls(&[("visit", visit)]),
        says("I tried."),
    ]);
    let product = egress::product(&site);
    egress::grant(&product, &format!("localhost:{}:GET", site.port));
    let file = product.home.join(".config/zeph-host/config.toml");
    let config = fs::read_to_string(&file).unwrap();
    let config = format!("{config}\n{OPEN}{}", settings(&script, 6));
    fs::write(&file, config).unwrap();
    let ran = product.run(&["run", "Have it done later."]);
    assert_eq!(ran.code, Some(0), "{}{}", ran.stdout, ran.stderr);
    let _host = SchedulerHost::start(&product);
    let task = ended(&product, "fetch");
    assert_eq!(task["last_run"]["state"], "refused", "{task}");
    assert!(site.requests().is_empty(), "{:?}", site.requests());
}
