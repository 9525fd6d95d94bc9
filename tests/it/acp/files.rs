//! Files as the editor has them.

use std::collections::BTreeMap;
use std::path::Path;

use serde_json::{Value, json};

use super::client::Client;
use super::model::{Model, calls, says};
use super::{product, with_config};

/// The buffers of an editor, by path.
#[derive(Default)]
struct Buffers {
    open: BTreeMap<String, String>,
    /// The methods that were called, with their paths.
    called: Vec<(String, String)>,
}

impl Buffers {
    fn serve(&mut self, client: &mut Client, request: &Value) {
        let method = request["method"].as_str().unwrap().to_owned();
        let params = &request["params"];
        if method == "session/request_permission" {
            let outcome = json!({"outcome": {"outcome": "selected", "optionId": "allow_once"}});
            return client.answer(request, &outcome);
        }
        let path = params["path"].as_str().unwrap().to_owned();
        self.called.push((method.clone(), path.clone()));
        let result = match method.as_str() {
            "fs/read_text_file" => {
                let saved = || std::fs::read_to_string(&path).unwrap();
                json!({"content": self.open.get(&path).cloned().unwrap_or_else(saved)})
            }
            "fs/write_text_file" => {
                let content = params["content"].as_str().unwrap();
                std::fs::write(&path, content).unwrap();
                self.open.insert(path, content.to_owned());
                json!(null)
            }
            other => panic!("{other}"),
        };
        client.answer(request, &result);
    }

    fn methods(&self) -> Vec<&str> {
        self.called
            .iter()
            .map(|(method, _)| method.as_str())
            .collect()
    }
}

fn with_files() -> Value {
    json!({"fs": {"readTextFile": true, "writeTextFile": true}})
}

fn text(path: &Path) -> String {
    path.to_str().unwrap().to_owned()
}

#[test]
fn an_editor_gives_what_is_not_saved_and_is_told_what_is_written() {
    let edit = json!({"path": "a.txt", "old_string": "typed", "new_string": "edited"});
    let model = Model::new([
        calls("read", json!({"path": "a.txt"})),
        calls("edit", edit),
        calls("write", json!({"path": "new.txt", "content": "new\n"})),
        says("done"),
    ]);
    let product = product(&model);
    product.file("a.txt", "one\nsaved\n");
    let (file, new) = (product.work.join("a.txt"), product.work.join("new.txt"));
    let mut buffers = Buffers::default();
    buffers.open.insert(text(&file), "one\ntyped\n".to_owned());
    let mut client = Client::start(&product, &[], with_files());
    let session = client.session(&product.work);
    let stop = client.prompt(&session, "go", |client, request| {
        buffers.serve(client, request);
    });
    assert_eq!(stop, "end_turn");
    let read = model.requests()[1]["messages"].to_string();
    assert!(
        read.contains("typed") && read.contains("not saved"),
        "{read}"
    );
    // The edit changed what was typed, and the editor has it.
    assert_eq!(product.read("a.txt"), "one\nedited\n");
    assert_eq!(buffers.open[&text(&file)], "one\nedited\n");
    assert_eq!(buffers.open[&text(&new)], "new\n");
    assert_eq!(
        buffers.methods(),
        [
            "fs/read_text_file",
            "fs/read_text_file",
            "fs/write_text_file",
            "fs/write_text_file",
            "fs/write_text_file"
        ]
    );
}

/// The disk has three lines. What the editor has behind them is read as it says how; beyond that there is nothing, here or there.
#[test]
fn lines_that_are_not_saved_are_read_page_by_page() {
    let read = |offset: u64| {
        calls(
            "read",
            json!({"path": "a.txt", "offset": offset, "limit": 4}),
        )
    };
    let model = Model::new([read(0), read(4), read(5), says("done")]);
    let product = product(&model);
    product.file("a.txt", "1\n2\n3\n");
    let typed = ["one", "two", "three", "four", "five", ""].join("\n");
    let mut buffers = Buffers::default();
    let file = product.work.join("a.txt");
    buffers.open.insert(text(&file), typed);
    let mut client = Client::start(&product, &[], with_files());
    let session = client.session(&product.work);
    client.prompt(&session, "go", |client, request| {
        buffers.serve(client, request);
    });
    let told = model.requests().pop().unwrap()["messages"].clone();
    let results = told.as_array().unwrap().iter();
    let results = results.filter(|message| message["role"] == "tool");
    let results: Vec<String> = results
        .map(|message| message["content"].to_string())
        .collect();
    assert!(results[0].contains("continue with offset=4"), "{results:?}");
    assert!(results[1].contains("five"), "{results:?}");
    assert!(results[2].contains("beyond the end"), "{results:?}");
}

#[test]
fn an_editor_is_not_asked_for_what_the_tool_may_not_reach() {
    let model = Model::new([
        calls("read", json!({"path": ".env"})),
        calls("read", json!({"path": "link"})),
        calls("read", json!({"path": "../home/secret"})),
        says("done"),
    ]);
    let product = with_config(&model, "[tools.file]\ndeny_read = [\"**/.env\"]");
    product.file(".env", "KEY=quite-unheard-of\n");
    std::fs::write(product.home.join("secret"), "quite-unheard-of\n").unwrap();
    std::os::unix::fs::symlink(product.home.join("secret"), product.work.join("link")).unwrap();
    let mut buffers = Buffers::default();
    let mut client = Client::start(&product, &["--allow", "read"], with_files());
    let session = client.session(&product.work);
    client.prompt(&session, "go", |client, request| {
        buffers.serve(client, request);
    });
    assert_eq!(buffers.methods(), [""; 0]);
    assert!(
        !model
            .requests()
            .iter()
            .any(|request| request.to_string().contains("quite-unheard-of"))
    );
}

/// The requests about files that an editor got and never answers.
fn is_of_files(message: &Value) -> bool {
    let method = message["method"].as_str().unwrap_or_default();
    method.starts_with("fs/")
}

#[test]
fn a_turn_is_cancelled_while_the_editor_keeps_a_file_to_itself() {
    let model = Model::new([calls("read", json!({"path": "a.txt"})), says("not said")]);
    let product = product(&model);
    product.file("a.txt", "one\n");
    let mut client = Client::start(&product, &[], with_files());
    let session = client.session(&product.work);
    let turn = client.send_prompt(&session, "go");
    client.until(is_of_files);
    client.notify("session/cancel", &json!({"sessionId": session}));
    let answer = client.wait(turn, |_, request| panic!("{request}"));
    assert_eq!(answer.unwrap()["stopReason"], "cancelled");
    // It was not waited for until its time was up.
    let (_, ended) = client.ended_call();
    assert!(!ended.to_string().contains("in time"), "{ended}");
}

#[test]
fn an_editor_that_does_not_answer_is_not_asked_again() {
    let read = |path: &str| calls("read", json!({ "path": path }));
    let model = Model::new([read("a.txt"), read("b.txt"), says("read")]);
    let product = product(&model);
    product.file("a.txt", "one\n").file("b.txt", "two\n");
    let mut client = Client::start(&product, &[], with_files());
    let session = client.session(&product.work);
    client.prompt(&session, "go", |_, request| assert!(is_of_files(request)));
    let asked = client.heard.iter().filter(|message| is_of_files(message));
    assert_eq!(asked.count(), 1);
    let told = model.requests()[1]["messages"].to_string();
    assert!(told.contains("is not asked again"), "{told}");
    let told = model.requests()[2]["messages"].to_string();
    assert!(told.contains("one") && told.contains("two"), "{told}");
}
