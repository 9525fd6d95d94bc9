//! What a model is shown of the tools: `tools.schema_filter`, `tools.tafc`, `tools.dependencies`.

use serde_json::{Value, json};

use super::script::{Script, calls, says};
use super::{product, results};
use crate::product::Product;

/// The names of the tools in a request.
fn tools(request: &Value) -> Vec<String> {
    let tools = request["tools"].as_array().unwrap().iter();
    let names = tools.map(|tool| tool["function"]["name"].as_str().unwrap().to_owned());
    names.collect()
}

/// A product whose configuration says more.
fn with(script: &Script, more: &str) -> Product {
    let product = product(script);
    let file = product.home.join(".config/zeph-host/config.toml");
    let config = std::fs::read_to_string(&file).unwrap();
    std::fs::write(&file, format!("{config}\n{more}\n")).unwrap();
    product
}

const FILTER: &str = "[tools.schema_filter]\nenabled = true\ntop_k = 2\nalways_on = [\"read\"]\n";
const ORDER: &str = "[tools.dependencies]\nenabled = true\n[tools.dependencies.rules.edit]\nrequires = [\"read\"]\n";

#[test]
fn a_filter_shows_what_the_conversation_is_about_and_reaches_the_rest() {
    let script = Script::new([
        calls(&[("find_tool", json!({"query": "list a directory"}))]),
        calls(&[(
            "call_tool",
            json!({"name": "list_directory", "arguments": {"path": "."}}),
        )]),
        calls(&[("grep", json!({"pattern": "content"}))]),
        calls(&[("grep", json!({"path": 7}))]),
        says("done"),
        says("and again"),
    ]);
    let product = with(&script, FILTER);
    product.file("a", "content\n");
    assert_eq!(
        product.run(&["run", "copy the file a and move it"]).code,
        Some(0)
    );
    let requests = script.requests();
    let shown = tools(&requests[0]);
    assert_eq!(shown.len(), 5, "{shown:?}");
    for name in ["read", "copy_path", "move_path", "find_tool", "call_tool"] {
        assert!(shown.iter().any(|tool| tool == name), "{name}: {shown:?}");
    }
    let told = results(&requests[4]);
    assert!(
        told[0].contains("list_directory") && told[0].contains("inputSchema"),
        "{told:#?}"
    );
    assert!(
        told[1].contains('a') && !told[1].contains("tool_error"),
        "{told:#?}"
    );
    assert!(told[2].contains("content"), "{told:#?}");
    assert!(
        told[3].contains("was not listed") && told[3].contains("<tools>"),
        "{told:#?}"
    );
    // Another prompt and another process: the same tools.
    assert_eq!(
        product
            .run(&["run", "--resume", "now fetch a page and run a command"])
            .code,
        Some(0)
    );
    let requests = script.requests();
    for pair in requests.windows(2) {
        assert_eq!(pair[0]["tools"], pair[1]["tools"]);
    }
    let preview = product.run(&["run", "--show-prompt", "copy the file a and move it"]);
    let preview: Value = serde_json::from_str(&preview.stdout).unwrap();
    assert_eq!(preview["tools"], requests[0]["tools"]);
}

const EMBEDDING: &str = "[agent.embedding]\nprovider = \"scripted\"\nmodel = \"vectors-1\"\n";

#[test]
fn a_filter_compares_by_meaning_asks_for_each_tool_once_and_falls_back_to_words() {
    let said = "reproduce relocate";
    let script = Script::with_vectors(
        [says("one"), says("two"), says("three"), says("four")],
        json!({
            "dimensions": 512,
            "meanings": [["copy", "copies", "reproduce"], ["move", "moves", "relocate"]],
            "faults": ["none", "none", { "status": 401 }],
        }),
    );
    let product = with(&script, &format!("{FILTER}{EMBEDDING}"));
    for _ in 0..3 {
        assert_eq!(product.run(&["run", said]).code, Some(0));
    }
    let requests = script.requests();
    for request in &requests[..2] {
        let shown = tools(request);
        for name in ["read", "copy_path", "move_path"] {
            assert!(shown.iter().any(|tool| tool == name), "{name}: {shown:?}");
        }
    }
    let by_words = tools(&requests[2]);
    assert!(!by_words.contains(&"copy_path".to_owned()), "{by_words:?}");
    let embedded = script.embedded();
    assert_eq!(embedded[0][0], said);
    assert!(embedded[0].len() > 10, "{:?}", embedded[0]);
    // The vectors of tools outlive the process.
    assert_eq!(embedded[1], [said]);
}

#[test]
fn a_tool_that_needs_another_is_hidden_refused_and_then_told() {
    let edit = json!({"path": "a", "old_string": "one", "new_string": "two"});
    let script = Script::new([
        calls(&[("edit", edit.clone())]),
        calls(&[("read", json!({"path": "missing"})), ("edit", edit.clone())]),
        calls(&[("read", json!({"path": "a"})), ("edit", edit)]),
        says("done"),
        says("nothing more"),
    ]);
    let product = with(&script, ORDER);
    product.file("a", "one\n");
    assert_eq!(
        product.run(&["run", "--allow", "edit", "change a"]).code,
        Some(0)
    );
    assert_eq!(product.read("a"), "two\n");
    let requests = script.requests();
    let shown = tools(&requests[0]);
    assert!(
        !shown.contains(&"edit".to_owned()) && shown.contains(&"call_tool".to_owned()),
        "{shown:?}"
    );
    assert_eq!(requests[0]["tools"], requests[3]["tools"]);
    let told = results(&requests[3]);
    for refused in [&told[0], &told[2]] {
        assert!(
            refused.contains("`edit` needs a successful call of `read` before it"),
            "{told:#?}"
        );
        assert!(refused.contains("call `read` first"), "{told:#?}");
    }
    assert!(
        told[3].contains("`edit` can be used now") && told[3].contains("old_string"),
        "{told:#?}"
    );
    assert!(!told[4].contains("tool_error"), "{told:#?}");
    // Another process of the same conversation knows what has succeeded.
    assert_eq!(product.run(&["run", "--resume", "go on"]).code, Some(0));
}

#[test]
fn the_order_of_tools_holds_at_every_door_and_calls_at_once_are_in_order() {
    let product = with(&Script::new([]), ORDER);
    product.file("a", "one\n");
    let edit = |id: u32, old: &str, new: &str| {
        let call = json!({"id": id, "tool": "edit", "params": {"path": "a", "old_string": old, "new_string": new}});
        format!("{call}\n")
    };
    let refused = product.answers(&["--allow", "edit"], edit(1, "one", "two"));
    assert_eq!(refused[0]["status"], "refused", "{refused:?}");
    let read = "{\"id\":1,\"tool\":\"read\",\"params\":{\"path\":\"a\"}}\n";
    let answers = product.answers(
        &["--allow", "edit", "--jobs", "4"],
        format!("{read}{}", edit(2, "one", "two")),
    );
    assert!(
        answers.iter().all(|answer| answer["status"] == "ok"),
        "{answers:?}"
    );
    let called = product.run(&[
        "call",
        "edit",
        "path=a",
        "old_string=two",
        "new_string=three",
    ]);
    assert!(called.code != Some(0), "{}", called.stdout);
    let explained = product.run(&[
        "explain",
        "edit",
        "path=a",
        "old_string=two",
        "new_string=three",
    ]);
    assert!(
        explained.stdout.contains("tools.dependencies.rules.edit"),
        "{}",
        explained.stdout
    );
}

#[test]
fn a_typed_call_is_told_what_it_needs_of_any_plugin() {
    let rule = "[tools.dependencies.rules.bash]\nrequires = [\"file__read\", \"edit\"]\n";
    let product = with(&Script::new([]), &format!("{ORDER}{rule}"));
    let ran = product.run(&["call", "bash", "command=true"]);
    assert_eq!(ran.code, Some(4), "{}", ran.stderr);
    let told = "call `read` and `edit` first";
    assert!(ran.stderr.contains(told), "{}", ran.stderr);
}

#[test]
fn lists_that_name_no_tool_are_told_at_start_and_by_config_check() {
    let product = Product::new();
    let folder = product.home.join(".config/zeph-host");
    std::fs::create_dir_all(&folder).unwrap();
    let config = "[tools.schema_filter]\nenabled = true\nalways_on = [\"raed\", \"Sh\"]\n[tools.dependencies]\nenabled = true\n\
                  [tools.dependencies.rules.edit]\nrequires = [\"grpe\"]\nprefers = [\"list_*\"]\n";
    std::fs::write(folder.join("config.toml"), config).unwrap();
    std::fs::write(product.work.join("a"), "a").unwrap();
    for command in [&["config", "check"][..], &["call", "read", "path=a"]] {
        let ran = product.run(command);
        assert_eq!(ran.code, Some(0), "{}", ran.stderr);
        for (key, name) in [
            (
                "tools.schema_filter.always_on",
                "`raed`; did you mean `read`?",
            ),
            (
                "tools.dependencies.rules.edit.requires",
                "`grpe`; did you mean `grep`?",
            ),
            ("tools.dependencies.rules.edit.prefers", "`list_*`"),
        ] {
            let told = format!("`{key}`: no tool is named {name}");
            assert_eq!(
                ran.stderr.matches(&told).count(),
                1,
                "{told} {}",
                ran.stderr
            );
        }
        assert!(!ran.stderr.contains("`Sh`"), "{}", ran.stderr);
    }
}

#[test]
fn a_cycle_stops_the_start_with_file_and_line() {
    let product = Product::new();
    let folder = product.home.join(".config/zeph-host");
    std::fs::create_dir_all(&folder).unwrap();
    let config = "[tools.dependencies.rules.edit]\nrequires = [\"read\"]\n[tools.dependencies.rules.read]\nrequires = [\"edit\"]\n";
    std::fs::write(folder.join("config.toml"), config).unwrap();
    let ran = product.run(&["call", "read", "path=a"]);
    assert_eq!(ran.code, Some(3), "{}", ran.stderr);
    assert!(
        ran.stderr.contains("config.toml:2") && ran.stderr.contains("edit needs read needs edit"),
        "{}",
        ran.stderr
    );
}

#[test]
fn thoughts_are_asked_for_and_never_leave_the_loop() {
    let script = Script::new([
        calls(&[(
            "read",
            json!({"path": "a", "thinking": "which file? the one I was told"}),
        )]),
        says("done"),
    ]);
    let product = with(
        &script,
        "[tools.tafc]\nenabled = true\ncomplexity_threshold = 0\n",
    );
    product.file("a", "content\n");
    assert_eq!(product.run(&["run", "look"]).code, Some(0));
    let requests = script.requests();
    let read = requests[0]["tools"].as_array().unwrap().iter();
    let read = read
        .clone()
        .find(|tool| tool["function"]["name"] == "read")
        .unwrap();
    assert_eq!(
        read["function"]["parameters"]["properties"]["thinking"]["type"],
        "string"
    );
    let told = results(&requests[1]);
    assert!(
        told[0].contains("content") && !told[0].contains("ignored"),
        "{told:?}"
    );
    let audit = product.run(&["audit", "query", "--json"]).stdout;
    assert!(
        audit.contains("\\\"path\\\"") && !audit.contains("which file"),
        "{audit}"
    );
}
