//! What is scheduled runs in the host of an editor, too, with the authority of its directory alone.

use serde_json::json;

use super::client::Client;
use super::model::Model;
use super::{plain, with_config};
use crate::scheduler::{OPEN, ended};

#[test]
fn due_tasks_of_a_directory_run_while_an_editor_works_there() {
    let model = Model::new([]);
    let product = with_config(&model, OPEN);
    let extra = product.home.join("extra");
    std::fs::create_dir_all(&extra).unwrap();
    std::fs::write(extra.join("far.txt"), "far").unwrap();
    let far = extra.join("far.txt");
    let tasks = [
        json!({"name": "note", "at": "+1s", "tool": "bash", "arguments": {"command": "echo done >> note.txt"}}),
        json!({"name": "far", "at": "+1s", "tool": "read", "arguments": {"path": far}}),
    ];
    let extra = extra.to_str().unwrap();
    let work = product.work.to_str().unwrap();
    for (id, task) in (1..).zip(&tasks) {
        let line = json!({"id": id, "tool": "schedule_deferred", "params": task});
        let answers = product.answers(&["--root", work, "--root", extra], format!("{line}\n"));
        assert_eq!(answers[0]["status"], "ok", "{answers:?}");
    }
    let mut client = Client::start(&product, &[], plain());
    let place = json!({"cwd": product.work, "mcpServers": [], "additionalDirectories": [extra]});
    client.ask("session/new", place).unwrap();
    let note = ended(&product, "note");
    assert_eq!(note["last_run"]["state"], "done", "{note}");
    assert_eq!(product.read("note.txt"), "done\n");
    // The session has the other directory; the task was given none of that.
    let refused = ended(&product, "far");
    assert_ne!(refused["last_run"]["state"], "done", "{refused}");
    assert_eq!(client.leave(), Some(0));
}
