//! `zeph-host serve` over standard input, in both eras of the protocol.

use serde_json::{Value, json};

use crate::guest::HOSTILE;
use crate::mcp_client::{McpClient, result, text};
use crate::product::Product;

fn names(tools: &[Value]) -> Vec<&str> {
    tools
        .iter()
        .map(|tool| tool["name"].as_str().unwrap())
        .collect()
}

#[test]
fn a_client_of_each_era_is_served() {
    let product = Product::new();
    product.file("notes.txt", "one\ntwo\n");
    for mut client in McpClient::each(&product, &[]) {
        let tools = client.tools();
        let listed = names(&tools);
        for name in ["bash", "read", "read_overflow", "write"] {
            assert!(listed.contains(&name), "{listed:?}");
        }
        let read = tools.iter().find(|tool| tool["name"] == "read").unwrap();
        assert_eq!(read["annotations"]["readOnlyHint"], true, "{read}");
        assert!(read["title"].is_string(), "{read}");
        assert_eq!(read["inputSchema"]["required"], json!(["path"]), "{read}");

        let done = client.call("read", json!({"path": "notes.txt"}));
        assert_eq!(done["isError"], false, "{done}");
        assert!(text(&done).contains("two"), "{done}");
        let qualified = client.call("file__read", json!({"path": "notes.txt"}));
        assert!(text(&qualified).contains("two"), "{qualified}");
        let conversation = &done["_meta"]["zeph.host/conversation"];
        assert!(conversation.is_string(), "{done}");
        assert_eq!(conversation, &qualified["_meta"]["zeph.host/conversation"]);
        client.close();
        let (status, rest) = client.ended();
        assert_eq!(status.code(), Some(0));
        assert_eq!(rest, Vec::<Value>::new());
    }
}

#[test]
fn the_new_era_is_discovered_and_says_what_kind_of_result_it_is() {
    let product = Product::new();
    let mut client = McpClient::modern(&product, &[], &json!({}));
    let found = result(client.request("server/discover", json!({})));
    let versions = found["supportedVersions"].as_array().unwrap();
    assert!(versions.contains(&json!("2026-07-28")), "{found}");
    assert_eq!(found["capabilities"]["tools"]["listChanged"], true);
    assert!(found["capabilities"]["prompts"].is_null(), "{found}");
    let listed = result(client.request("tools/list", json!({})));
    assert_eq!(listed["resultType"], "complete", "{listed}");
    assert!(listed["ttlMs"].is_number(), "{listed}");
    let done = client.call("list_directory", json!({"path": "."}));
    assert_eq!(done["resultType"], "complete", "{done}");
}

#[test]
fn the_list_is_the_same_at_every_start_and_after_every_call() {
    let product = Product::new();
    let mut first = McpClient::legacy(&product, &[], &json!({}));
    let before = first.tools();
    let mut sorted = names(&before);
    sorted.sort_unstable();
    assert_eq!(names(&before), sorted);
    first.call("list_directory", json!({"path": "."}));
    first.call("bash", json!({"command": "true"}));
    assert_eq!(first.tools(), before);
    let mut second = McpClient::modern(&product, &[], &json!({}));
    assert_eq!(second.tools(), before);
}

#[test]
fn what_a_rule_hides_is_not_offered() {
    let product = Product::new();
    let args = [
        "--set",
        "tools.scoped.enabled=true",
        "--set",
        "tools.scoped.denied_tools=bash",
    ];
    let mut client = McpClient::legacy(&product, &args, &json!({}));
    let tools = client.tools();
    assert!(!names(&tools).contains(&"bash"), "{:?}", names(&tools));
    assert!(names(&tools).contains(&"read"));
}

#[test]
fn a_call_of_what_a_rule_hides_is_refused_recorded_and_counted() {
    for rules in [
        "[tools.scoped]\nenabled = true\ndenied_tools = [\"bash\"]\n",
        "[[tools.permissions.bash]]\npattern = \"*\"\naction = \"deny\"\n",
    ] {
        let product = Product::new();
        product.user_config(rules);
        let quota = ["--set", "tools.max_tool_calls_per_session=2"];
        let mut client = McpClient::legacy(&product, &quota, &json!({}));
        for _ in 0..2 {
            let refused = client.call("bash", json!({"command": "true"}));
            let error = &refused["structuredContent"]["error"];
            assert_eq!(error["category"], "policy_blocked", "{refused}");
        }
        let over = client.call("list_directory", json!({"path": "."}));
        assert_eq!(over["isError"], true, "the quota is used up: {over}");
        drop(client);
        let records = product.run(&["audit", "query", "--json"]).json_lines();
        let of_bash = records.iter().filter(|record| record["tool"] == "bash");
        assert_eq!(of_bash.count(), 2, "{records:?}");
    }
}

#[test]
fn failures_are_results_with_their_block_and_their_data() {
    let product = Product::new();
    for mut client in McpClient::each(&product, &[]) {
        for (tool, arguments, category) in [
            ("read", json!({"path": "nowhere.txt"}), "permanent_failure"),
            ("read", json!({}), "invalid_parameters"),
            ("read", json!({"path": 5}), "type_mismatch"),
            ("read", json!({"path": "/etc/shadow"}), "policy_blocked"),
            (
                "write",
                json!({"path": "x", "content": "y"}),
                "confirmation_required",
            ),
            (
                "bash",
                json!({"command": "touch x"}),
                "confirmation_required",
            ),
        ] {
            let failed = client.call(tool, arguments);
            assert_eq!(failed["isError"], true, "{failed}");
            let error = &failed["structuredContent"]["error"];
            assert_eq!(error["category"], category, "{failed}");
            let text = text(&failed);
            assert!(text.starts_with("[tool_error]\n"), "{text}");
            assert!(text.contains(&format!("category: {category}")), "{text}");
        }
        let refused = client.call("write", json!({"path": "x", "content": "y"}));
        assert!(text(&refused).contains("zeph-host approve"), "{refused}");
        let unknown = client.request("tools/call", json!({"name": "raed", "arguments": {}}));
        assert_eq!(unknown["error"]["code"], -32602, "{unknown}");
        let message = unknown["error"]["message"].as_str().unwrap();
        assert!(message.contains("did you mean `read`?"), "{message}");
    }
    assert!(!product.work.join("x").exists());
}

#[test]
fn a_rule_of_the_command_line_lets_calls_run() {
    let product = Product::new();
    let mut client = McpClient::legacy(&product, &["--allow", "write:out/**"], &json!({}));
    let written = client.call("write", json!({"path": "out/a", "content": "y"}));
    assert_eq!(written["isError"], false, "{written}");
    let refused = client.call("write", json!({"path": "a", "content": "y"}));
    assert_eq!(refused["isError"], true, "{refused}");
    assert_eq!(product.read("out/a"), "y");
}

#[test]
fn a_command_has_a_structured_result_that_agrees_with_its_schema() {
    let product = Product::new();
    let mut client = McpClient::legacy(&product, &["--allow", "bash"], &json!({}));
    let tools = client.tools();
    let bash = tools.iter().find(|tool| tool["name"] == "bash").unwrap();
    assert_eq!(bash["outputSchema"]["type"], "object", "{bash}");
    let done = client.call("bash", json!({"command": "echo out; echo err >&2"}));
    assert_eq!(done["structuredContent"]["stdout"], "out\n", "{done}");
    assert_eq!(done["structuredContent"]["exit_code"], 0);
    let failed = client.call("bash", json!({"command": "echo out; exit 3"}));
    assert_eq!(failed["isError"], true, "{failed}");
    assert_eq!(failed["structuredContent"]["exit_code"], 3, "{failed}");
    assert_eq!(
        failed["structuredContent"]["error"]["exit_code"], 3,
        "{failed}"
    );
    assert!(text(&failed).contains("out"), "{failed}");
}

#[test]
fn a_long_result_is_a_resource_of_its_conversation() {
    let product = Product::new();
    let lines: String = (0..20_000).map(|n| format!("line {n}\n")).collect();
    product.file("long.txt", &lines);
    for mut client in McpClient::each(&product, &["--allow", "bash"]) {
        let none = result(client.request("resources/list", json!({})));
        assert_eq!(none["resources"], json!([]), "{none}");
        let cut = client.call("bash", json!({"command": "cat long.txt"}));
        let blocks = cut["content"].as_array().unwrap();
        let link = blocks.iter().find(|block| block["type"] == "resource_link");
        let uri = link.unwrap_or_else(|| panic!("{cut}"))["uri"].clone();
        assert!(uri.as_str().unwrap().starts_with("overflow:"), "{uri}");

        let listed = result(client.request("resources/list", json!({})));
        assert_eq!(listed["resources"][0]["uri"], uri, "{listed}");
        assert_eq!(listed["resources"][0]["size"], lines.len(), "{listed}");
        let read = result(client.request("resources/read", json!({"uri": uri})));
        assert_eq!(read["contents"][0]["text"], lines.as_str());
        let page = client.call(
            "read_overflow",
            json!({"id": uri, "offset": 10_000, "limit": 1}),
        );
        assert!(text(&page).contains("line 10000"), "{page}");

        // Another conversation has no such resource.
        let mut other = McpClient::legacy(&product, &[], &json!({}));
        let foreign = other.request("resources/read", json!({"uri": uri}));
        assert_eq!(foreign["error"]["code"], -32002, "{foreign}");
        let foreign = other.call("read_overflow", json!({"id": uri}));
        assert_eq!(foreign["isError"], true, "{foreign}");
        for bad in ["overflow:x", "overflow:", "file:///etc/passwd", ""] {
            let refused = client.request("resources/read", json!({"uri": bad}));
            assert!(refused["error"]["code"].is_number(), "{refused}");
        }
    }
}

#[test]
fn a_request_can_raise_the_threshold_and_never_lower_it() {
    let product = Product::new();
    product.file("long.txt", "x".repeat(119).as_str());
    let args = ["--allow", "bash", "--set", "tools.overflow.threshold=1000"];
    let mut client = McpClient::legacy(&product, &args, &json!({}));
    let mut n_chars = |command: &str, wanted: Value| {
        let params = json!({
            "name": "bash",
            "arguments": {"command": command},
            "_meta": {"zeph/maxResultSizeChars": wanted},
        });
        let done = result(client.request("tools/call", params));
        (text(&done).len(), done["content"].as_array().unwrap().len())
    };
    let command = "head -c 5000 /dev/zero | tr '\\0' x";
    let (short, n_blocks) = n_chars(command, json!(null));
    assert!(short < 1_500 && n_blocks == 2, "{short}");
    assert_eq!(n_chars(command, json!(10_000)), (5_000, 1));
    let (lower, _) = n_chars("head -c 900 /dev/zero | tr '\\0' x", json!(10));
    assert_eq!(lower, 900);
    let (malformed, _) = n_chars(command, json!("many"));
    assert_eq!(malformed, short);
    let (clamped, n_blocks) = n_chars("head -c 200000 /dev/zero | tr '\\0' x", json!(1_000_000));
    assert!(clamped < 132_000 && n_blocks == 2, "{clamped}");
}

#[test]
fn progress_of_a_command_and_of_a_guest_is_told_before_the_answer() {
    let product = Product::new();
    let mut client = McpClient::legacy(&product, &["--allow", "bash"], &json!({}));
    let params = json!({
        "name": "bash",
        "arguments": {"command": "for n in 1 2 3; do echo step $n; sleep 0.2; done"},
        "_meta": {"progressToken": "p"},
    });
    let id = client.begin("tools/call", params);
    let answer = client.answer(id);
    assert_eq!(answer["result"]["isError"], false, "{answer}");
    let told = std::mem::take(&mut client.unread);
    let messages: Vec<_> = told
        .iter()
        .filter(|message| message["method"] == "notifications/progress")
        .collect();
    assert_eq!(messages.len(), 3, "{told:#?}");
    let mut last = 0.0;
    for (n, message) in messages.iter().enumerate() {
        let params = &message["params"];
        assert_eq!(params["progressToken"], "p");
        assert_eq!(params["message"], format!("step {}", n + 1));
        let progress = params["progress"].as_f64().unwrap();
        assert!(progress > last, "{told:#?}");
        last = progress;
    }
    // A guest tells too.
    for n in 0..50 {
        product.file(&format!("many/{n}.txt"), "text");
    }
    let params = json!({
        "name": "grep",
        "arguments": {"pattern": "nowhere", "path": "many"},
        "_meta": {"progressToken": 7},
    });
    let id = client.begin("tools/call", params);
    let answer = client.answer(id);
    assert_eq!(answer["result"]["isError"], false, "{answer}");
    let told = std::mem::take(&mut client.unread);
    assert_eq!(told[0]["params"]["progressToken"], 7, "{told:#?}");
    assert!(
        told[0]["params"]["progress"].as_f64().unwrap() > 0.0,
        "{told:#?}"
    );
    // Without a token nobody is told.
    client.call("bash", json!({"command": "echo once"}));
    assert!(client.unread.is_empty(), "{:#?}", client.unread);
}

#[test]
fn a_plugin_that_is_dropped_in_is_announced_in_both_eras() {
    let product = Product::new();
    let mut legacy = McpClient::legacy(&product, &[], &json!({}));
    let mut modern = McpClient::modern(&product, &[], &json!({}));
    assert!(!names(&legacy.tools()).contains(&"echo"));
    assert!(!names(&modern.tools()).contains(&"echo"));
    let filter = json!({"notifications": {"toolsListChanged": true}});
    let listening = modern.begin("subscriptions/listen", filter);
    modern.told("notifications/subscriptions/acknowledged");
    product.drop_in("hostile", HOSTILE);
    for client in [&mut legacy, &mut modern] {
        // While the component is compiled there may be other changes.
        while !names(&client.tools()).contains(&"echo") {
            client.told("notifications/tools/list_changed");
        }
        let echoed = client.call("echo", json!({"text": "hello"}));
        assert_eq!(text(&echoed), "hello", "{echoed}");
    }
    let removed = product.run(&["plugin", "remove", "hostile", "--yes"]);
    assert_eq!(removed.code, Some(0), "{}", removed.stderr);
    for client in [&mut legacy, &mut modern] {
        while names(&client.tools()).contains(&"echo") {
            client.told("notifications/tools/list_changed");
        }
    }
    modern.notify("notifications/cancelled", json!({"requestId": listening}));
    assert_eq!(
        modern.call("list_directory", json!({"path": "."}))["isError"],
        false
    );
}

#[test]
fn the_tool_of_a_plugin_that_is_off_is_not_merely_unknown() {
    let product = Product::new();
    product.drop_in("hostile", HOSTILE);
    let off = product.run(&["plugin", "disable", "hostile"]);
    assert_eq!(off.code, Some(0), "{off:?}");
    for mut client in McpClient::each(&product, &[]) {
        for tool in ["echo", "hostile__echo"] {
            let failed = client.call(tool, json!({"text": "hello"}));
            assert_eq!(failed["isError"], true, "{failed}");
            let text = text(&failed);
            assert!(text.contains("zeph-host plugin enable hostile"), "{text}");
        }
    }
}

#[test]
fn what_ends_in_the_background_is_told_with_the_next_call() {
    let product = Product::new();
    let mut client = McpClient::legacy(&product, &["--allow", "bash"], &json!({}));
    let begun = client.call(
        "bash",
        json!({"command": "echo from the background", "background": true}),
    );
    assert!(text(&begun).contains("run_id"), "{begun}");
    let told = (0..500).find_map(|_| {
        let looked = client.call("list_runs", json!({}));
        let first = looked["content"][0]["text"].as_str().unwrap().to_owned();
        first.contains("exit_code=").then_some(first)
    });
    let told = told.unwrap();
    assert!(
        told.contains("exit_code=0") && told.contains("from the background"),
        "{told}"
    );
}

#[test]
fn a_conversation_goes_on_where_its_process_ended() {
    let product = Product::new();
    product.file("long.txt", "line\n".repeat(20_000));
    let mut first = McpClient::legacy(&product, &["--allow", "bash"], &json!({}));
    let cut = first.call("bash", json!({"command": "cat long.txt"}));
    let conversation = cut["_meta"]["zeph.host/conversation"]
        .as_str()
        .unwrap()
        .to_owned();
    first.close();
    first.ended();
    let mut second = McpClient::legacy(&product, &["--conversation", &conversation], &json!({}));
    let listed = result(second.request("resources/list", json!({})));
    assert_eq!(listed["resources"].as_array().unwrap().len(), 1, "{listed}");
    let looked = second.call("list_directory", json!({"path": "."}));
    assert_eq!(looked["_meta"]["zeph.host/conversation"], conversation);
}

#[test]
fn a_handle_of_another_conversation_is_refused() {
    let product = Product::new();
    for mut client in McpClient::each(&product, &[]) {
        let own = client.call("list_directory", json!({"path": "."}));
        let own = own["_meta"]["zeph.host/conversation"].clone();
        let mut with = |handle: Value| {
            client.request(
                "tools/call",
                json!({
                    "name": "list_directory",
                    "arguments": {"path": "."},
                    "_meta": {"zeph.host/conversation": handle},
                }),
            )
        };
        assert_eq!(with(own)["result"]["isError"], false);
        for handle in [
            json!("0192f0c0-0000-7000-8000-000000000000"),
            json!("x"),
            json!(""),
            json!(7),
        ] {
            let refused = with(handle);
            assert_eq!(refused["error"]["code"], -32602, "{refused}");
            let message = refused["error"]["message"].as_str().unwrap();
            assert!(message.contains("zeph.host/conversation"), "{message}");
        }
    }
}
