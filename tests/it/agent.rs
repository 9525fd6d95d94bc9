//! The agent: a scripted model, real tools and a real jail.

mod chat;
mod code_search;
mod events;
mod goals;
mod judge;
mod providers;
mod schedules;
mod script;
mod shaping;
mod spending;

use std::fs;
use std::process::Stdio;

use serde_json::{Value, json};

use self::script::{Script, calls, says};
use crate::egress;
use crate::product::{Product, Ran};
use crate::running::until;
use crate::site::Site;

/// A workspace whose configuration names a scripted model.
fn product(script: &Script) -> Product {
    let product = Product::new();
    let folder = product.home.join(".config/zeph-host");
    fs::create_dir_all(&folder).unwrap();
    let config = settings(script, 6);
    fs::write(folder.join("config.toml"), config).unwrap();
    // The first start compiles the components, which takes as long as it takes.
    product.run(&["tools"]);
    product
}

/// The text of the configuration that names the model of `script`.
fn settings(script: &Script, max_tool_iterations: u32) -> String {
    format!(
        "[agent]\nmax_tool_iterations = {max_tool_iterations}\n\n[[llm.providers]]\nname = \"scripted\"\ntype = \"openai\"\n\
         model = \"script-1\"\nbase_url = \"{}\"\nretries = 0\nprice_input = 1\nprice_output = 2\n",
        script.base_url
    )
}

/// The events of a run, and its `result`, which is the last line.
fn events(ran: &Ran) -> (Vec<Value>, Value) {
    let mut events = ran.json_lines();
    let result = events.pop().unwrap_or_else(|| panic!("{}", ran.stderr));
    assert_eq!(result["type"], "result", "{result}");
    assert_eq!(result["exit_code"], json!(ran.code), "{result}");
    (events, result)
}

fn of_type<'a>(events: &'a [Value], kind: &str) -> Vec<&'a Value> {
    events
        .iter()
        .filter(|event| event["type"] == kind)
        .collect()
}

/// What a request told the model of its calls.
fn results(request: &Value) -> Vec<String> {
    let messages = request["messages"].as_array().unwrap();
    let results = messages.iter().filter(|message| message["role"] == "tool");
    results
        .map(|message| message["content"].to_string())
        .collect()
}

#[test]
fn a_task_reads_edits_and_runs_a_command() {
    let script = Script::new([
        calls(&[
            ("read", json!({"path": "sum.sh"})),
            ("read", json!({"path": "test.sh"})),
        ]),
        calls(&[(
            "edit",
            json!({"path": "sum.sh", "old_string": "$1 - $2", "new_string": "$1 + $2"}),
        )]),
        calls(&[("bash", json!({"command": "sh test.sh"}))]),
        says("The sum was a difference; the test passes now."),
    ]);
    let product = product(&script);
    product.file("sum.sh", "echo $(($1 - $2))\n");
    product.file("test.sh", "test \"$(sh sum.sh 2 3)\" = 5 && echo passed\n");
    let ran = product.run(&["run", "--allow", "edit", "--allow", "bash", "mend @sum.sh"]);
    assert_eq!(ran.code, Some(0), "{}", ran.stderr);
    assert_eq!(
        ran.stdout,
        "The sum was a difference; the test passes now.\n"
    );
    assert!(ran.stderr.contains("▸ bash sh test.sh"), "{}", ran.stderr);
    assert_eq!(product.read("sum.sh"), "echo $(($1 + $2))\n");
    let requests = script.requests();
    assert_eq!(requests.len(), 4);
    assert!(
        requests[0].to_string().contains("<file path="),
        "{}",
        requests[0]
    );
    assert_eq!(results(&requests[1]).len(), 2);
    assert!(
        results(&requests[3])[3].contains("passed"),
        "{}",
        requests[3]
    );
}

#[test]
fn a_cost_that_is_not_known_is_null() {
    let script = Script::new([says("seen")]);
    let product = product(&script);
    let prices = "price_input = 1\nprice_output = 2\n";
    product.user_config(settings(&script, 6).replace(prices, ""));
    let (events, result) = events(&product.run(&["run", "--json", "look"]));
    let of_result = result["usage"].get("cost_usd");
    assert_eq!(of_result, Some(&Value::Null), "{result}");
    for event in of_type(&events, "usage") {
        assert_eq!(event.get("cost_usd"), Some(&Value::Null), "{event}");
    }
}

#[test]
fn events_follow_the_schema_and_end_with_a_result() {
    let script = Script::new([calls(&[("read", json!({"path": "a"}))]), says("seen")]);
    let product = product(&script);
    product.file("a", "content\n");
    let ran = product.run(&["run", "--json", "look"]);
    let (events, result) = events(&ran);
    assert_eq!(
        (result["status"].as_str(), result["text"].as_str()),
        (Some("done"), Some("seen"))
    );
    assert!(
        result["usage"]["cost_usd"].as_f64().unwrap() > 0.0,
        "{result}"
    );
    assert_eq!(result["calls"], 1, "{result}");
    assert_eq!(result["approvals"], json!({"asked": 0, "per_100_calls": 0}));
    let schema: Value =
        serde_json::from_str(&product.run(&["run", "--json-schema"]).stdout).unwrap();
    let schema = jsonschema::validator_for(&schema).unwrap();
    for event in events.iter().chain([&result]) {
        assert!(schema.is_valid(event), "{event}");
    }
    let (call, ended) = (
        of_type(&events, "tool_call"),
        of_type(&events, "tool_result"),
    );
    assert_eq!(call[0]["call_id"], ended[0]["call_id"]);
    assert_eq!(ended[0]["status"], "ok");
    assert_eq!(of_type(&events, "session").len(), 1);
    assert_eq!(of_type(&events, "usage").len(), 2);
}

#[test]
fn an_approval_nobody_gives_is_told_and_has_its_exit_code() {
    let script = Script::new([
        calls(&[("write", json!({"path": "a", "content": "b"}))]),
        says("I may not write."),
    ]);
    let product = product(&script);
    let ran = product.run(&["run", "--json", "write it"]);
    let (events, result) = events(&ran);
    assert_eq!(
        (ran.code, result["status"].as_str()),
        (Some(5), Some("approval_needed"))
    );
    assert_eq!(of_type(&events, "approval").len(), 1);
    assert!(!product.work.join("a").exists());
    assert!(results(&script.requests()[1])[0].contains("approv"));
}

#[test]
fn a_model_that_repeats_itself_is_stopped() {
    let script = Script::endless([calls(&[("read", json!({"path": "missing"}))])]);
    let ran = product(&script).run(&["run", "--json", "look"]);
    let (_, result) = events(&ran);
    assert_eq!(
        (ran.code, result["status"].as_str()),
        (Some(1), Some("doom_loop"))
    );
    assert_eq!(script.requests().len(), 3);
}

#[test]
fn a_model_that_reads_the_same_again_and_again_is_stopped() {
    let long = json!({"command": "seq 1 20000"});
    for call in [("read", json!({"path": "seen"})), ("bash", long)] {
        let script = Script::endless([calls(&[call])]);
        let product = product(&script);
        product.file("seen", "by now\n");
        let ran = product.run(&["run", "--json", "--allow", "bash", "look"]);
        let (_, result) = events(&ran);
        assert_eq!(result["status"], "doom_loop", "{result}");
        assert_eq!(script.requests().len(), 3);
    }
}

#[test]
fn a_task_hears_of_the_commands_it_started_in_the_background() {
    let begin = calls(&[("bash", json!({"command": "echo BUILT", "background": true}))]);
    let look = |n| calls(&[("bash", json!({"command": format!("sleep 0.5; echo {n}")}))]);
    let script = Script::new([begin, look(1), look(2), look(3), says("It is built.")]);
    let ran = product(&script).run(&["run", "--json", "--allow", "bash", "build"]);
    assert_eq!(ran.code, Some(0), "{}", ran.stderr);
    let last = script.requests().pop().unwrap().to_string();
    assert!(
        last.contains("[background complete]") && last.contains("BUILT"),
        "{last}"
    );
}

#[test]
fn rounds_are_bounded() {
    let script =
        Script::new((0..9).map(|n| calls(&[("bash", json!({"command": format!("echo {n}")}))])));
    let ran = product(&script).run(&["run", "--json", "--allow", "bash", "count"]);
    let (_, result) = events(&ran);
    assert_eq!(
        (ran.code, result["status"].as_str()),
        (Some(1), Some("iteration_limit"))
    );
}

#[test]
fn without_a_model_or_its_key_nothing_begins() {
    let product = Product::new();
    let ran = product.run(&["run", "--json", "hello"]);
    let (_, result) = events(&ran);
    assert_eq!(
        (ran.code, result["status"].as_str()),
        (Some(3), Some("error"))
    );
    assert!(
        ran.stderr.contains("no model is configured"),
        "{}",
        ran.stderr
    );
    let provider = r#"llm.providers=[{name="large",type="anthropic",model="m"}]"#;
    let ran = product.run(&["--set", provider, "run", "hello"]);
    assert_eq!(ran.code, Some(3));
    assert!(ran.stderr.contains("ANTHROPIC_API_KEY"), "{}", ran.stderr);
    let local = r#"llm.providers=[{name="local",type="ollama",model="m"}]"#;
    let ran = product.run(&[
        "--set",
        local,
        "--set",
        "agent.max_cost_usd=1",
        "run",
        "hello",
    ]);
    assert_eq!(ran.code, Some(3));
    assert!(ran.stderr.contains("price_input"), "{}", ran.stderr);
}

#[test]
fn the_demonstration_runs_through_by_itself_and_leaves_nothing() {
    let product = Product::new();
    let places = product.home.join("places");
    fs::create_dir(&places).unwrap();
    let mut command = product.command(&["run", "--demo", "--json"]);
    // Nothing that a user set is heard.
    command.env("ZEPH_AGENT_MAX_TOOL_ITERATIONS", "1");
    let ran = command.env("TMPDIR", &places).stdin(Stdio::null()).output();
    let ran = Ran::from(ran.unwrap());
    let (events, result) = events(&ran);
    assert_eq!(
        (ran.code, result["status"].as_str()),
        (Some(0), Some("done"))
    );
    let ended = of_type(&events, "tool_result").into_iter();
    let ended = ended.map(|event| (event["status"].as_str().unwrap(), event["text"].to_string()));
    let (statuses, texts): (Vec<_>, Vec<_>) = ended.unzip();
    assert_eq!(
        statuses,
        ["ok", "ok", "ok", "failed", "ok", "ok"],
        "{texts:#?}"
    );
    assert!(texts[3].contains("expected 5, found -1"), "{texts:#?}");
    assert!(texts[5].contains("test passed"), "{texts:#?}");
    assert_eq!(fs::read_dir(&places).unwrap().count(), 0);
}

#[test]
fn a_run_without_a_prompt_makes_calls_as_before() {
    let script = Script::new([]);
    let product = product(&script);
    product.file("a", "content\n");
    let answers = product.answers(
        &[],
        "{\"id\":1,\"tool\":\"read\",\"params\":{\"path\":\"a\"}}\n",
    );
    assert_eq!(answers[0]["status"], "ok");
    assert!(script.requests().is_empty());
}

#[test]
fn a_killed_run_is_resumed_and_nothing_is_done_twice() {
    let script = Script::new([
        calls(&[("bash", json!({"command": "echo once >> count; sleep 600"}))]),
        says("It was interrupted."),
    ]);
    let product = product(&script);
    let mut child = product.start(&["--json", "--allow", "bash", "count"]);
    until(|| product.work.join("count").exists());
    child.kill().unwrap();
    child.wait().unwrap();
    let ran = product.run(&[
        "run",
        "--json",
        "--allow",
        "bash",
        "--resume",
        "what happened?",
    ]);
    let (events, result) = events(&ran);
    assert_eq!(
        (ran.code, result["text"].as_str()),
        (Some(0), Some("It was interrupted."))
    );
    assert_eq!(of_type(&events, "session")[0]["resumed"], true);
    assert!(results(&script.requests()[1])[0].contains("outcome unknown"));
    assert_eq!(product.read("count"), "once\n");
}

#[test]
fn what_was_sent_before_stays_as_it_was_over_ten_turns() {
    let script =
        Script::new((0..10).flat_map(|_| [calls(&[("read", json!({"path": "a"}))]), says("next")]));
    let product = product(&script);
    product.file("a", "content\n");
    for turn in 0..10 {
        let prompt = format!("step {turn}");
        let args = match turn {
            0 => vec!["run", &prompt],
            _ => vec!["run", "--resume", &prompt],
        };
        assert_eq!(product.run(&args).code, Some(0));
    }
    let requests = script.requests();
    assert_eq!(requests.len(), 20);
    for pair in requests.windows(2) {
        assert_eq!(pair[0]["tools"], pair[1]["tools"]);
        let (before, after) = (&pair[0]["messages"], &pair[1]["messages"]);
        let before = before.as_array().unwrap();
        assert_eq!(before[..], after.as_array().unwrap()[..before.len()]);
    }
}

#[test]
fn a_prompt_can_come_from_standard_input() {
    let script = Script::new([says("heard")]);
    let product = product(&script);
    let ran = product.feed(&["-"], "what a pipe says\n");
    assert_eq!(
        (ran.code, ran.stdout.as_str()),
        (Some(0), "heard\n"),
        "{}",
        ran.stderr
    );
    assert!(
        script.requests()[0]
            .to_string()
            .contains("what a pipe says")
    );
}

#[test]
fn the_request_can_be_looked_at_without_sending_it() {
    let script = Script::new([]);
    let product = product(&script);
    let ran = product.run(&["run", "--show-prompt", "hello there"]);
    assert_eq!(ran.code, Some(0), "{}", ran.stderr);
    let request: Value = serde_json::from_str(&ran.stdout).unwrap();
    assert_eq!(request["model"], "script-1");
    assert!(request["messages"].to_string().contains("hello there"));
    assert!(request["tools"].to_string().contains("\"bash\""));
    assert!(script.requests().is_empty());
}

#[test]
fn an_interrupted_run_says_so_and_leaves_nothing_behind() {
    let script = Script::new([calls(&[(
        "bash",
        json!({"command": "echo begun > begun; sleep 600"}),
    )])]);
    let product = product(&script);
    let child = product.start(&["--json", "--allow", "bash", "wait"]);
    until(|| product.work.join("begun").exists());
    let process = rustix::process::Pid::from_child(&child);
    rustix::process::kill_process(process, rustix::process::Signal::INT).unwrap();
    let ran = Ran::from(child.wait_with_output().unwrap());
    let (_, result) = events(&ran);
    assert_eq!(
        (ran.code, result["status"].as_str()),
        (Some(130), Some("interrupted"))
    );
}

#[test]
fn an_address_that_nobody_named_asks_and_an_echo_names_nothing() {
    let site = Site::start(|_| ("200 OK".to_owned(), b"hello".to_vec()));
    let visit = |path: &str| {
        let params = json!({"method": "GET", "url": site.url(path), "headers": [], "body": ""});
        ("visit", params)
    };
    let echo = (
        "bash",
        json!({"command": format!("echo {}", site.url("/echo"))}),
    );
    let script = Script::new([
        calls(&[visit("/said")]),
        calls(&[visit("/said?secret"), ("read", json!({"path": "notes"}))]),
        calls(&[visit("/read"), echo]),
        calls(&[visit("/echo")]),
        says("done"),
        calls(&[visit("/read"), visit("/echo"), visit("/said?secret")]),
        says("done again"),
    ]);
    let product = egress::product(&site);
    product.file("notes", format!("see {}\n", site.url("/read")));
    let file = product.home.join(".config/zeph-host/config.toml");
    let of_site = fs::read_to_string(&file).unwrap();
    fs::write(&file, format!("{of_site}\n{}", settings(&script, 6))).unwrap();
    let host = format!("localhost:{}:GET", site.port);
    let granted = product.run(&["plugin", "grant", "web", "--host", &host]);
    assert_eq!(granted.code, Some(0), "{}", granted.stderr);
    let prompt = format!("Read {}, please.", site.url("/said"));
    let statuses = |args: &[&str]| {
        let (events, _) = events(&product.run(args));
        let ended = of_type(&events, "tool_result").into_iter();
        let ended = ended.filter(|event| event["tool"] == "visit");
        ended
            .map(|event| event["status"].as_str().unwrap().to_owned())
            .collect::<Vec<_>>()
    };
    let first = statuses(&["run", "--json", "--allow", "bash", &prompt]);
    assert_eq!(
        first,
        ["ok", "approval_needed", "ok", "approval_needed"],
        "{:?}",
        script.requests().last()
    );
    // What was said and read before counts in a later process, and an echo does not.
    let later = statuses(&["run", "--json", "--resume", "Go on."]);
    assert_eq!(later, ["ok", "approval_needed", "approval_needed"]);
    let paths = site.requests();
    assert_eq!(paths.len(), 3, "{paths:?}");
    assert!(paths.iter().all(|request| !request.contains("secret")));
}
