//! Plans of a conversation, and results that the model sums up.

use serde_json::{Value, json};

use super::script::{Script, calls, says};
use super::{events, product, results};
use crate::terminal::Prompt;

fn newest(request: &Value) -> String {
    let messages = request["messages"].as_array().unwrap();
    let said = messages.iter().rfind(|message| message["role"] == "user");
    said.unwrap()["content"].to_string()
}

fn plan(first: &str, second: &str) -> Value {
    let tasks = json!([
        {"id": "1", "title": "read it", "state": first},
        {"id": "2", "title": "mend it", "state": second, "after": ["1"]},
    ]);
    calls(&[("update_plan", json!({"tasks": tasks}))])
}

#[test]
fn a_plan_is_told_with_every_message_until_it_is_completed() {
    let script = Script::new([
        plan("running", "pending"),
        says("it is planned"),
        plan("completed", "skipped"),
        says("it is finished"),
        says("something else"),
    ]);
    let product = product(&script);
    let mut chat = Prompt::start_with(&product, &["run"], "/help explains");
    chat.type_line("/plan");
    chat.until_all(&["there is no goal", "> "]);
    chat.type_line("/plan Mend the parser of dates");
    chat.until_all(&["goal ", "Mend the parser of dates", "> "]);
    chat.type_line("begin");
    chat.until_all(&["it is planned", "context", "> "]);
    chat.type_line("/plan");
    chat.until_all(&[
        "[running] 1: read it",
        "[pending] 2: mend it (after 1)",
        "> ",
    ]);
    chat.type_line("go on");
    chat.until_all(&["it is finished", "context", "> "]);
    chat.type_line("/plan done");
    chat.until_all(&["there is no goal", "> "]);
    chat.type_line("/plan list");
    chat.until_all(&["completed", "Mend the parser of dates", "> "]);
    chat.type_line("and now?");
    chat.until_all(&["something else", "context", "> "]);
    chat.type_line("/quit");
    assert_eq!(chat.wait(), Some(0));

    let requests = script.requests();
    let told = |idx: usize| newest(&requests[idx]);
    assert!(
        told(0).contains("goal: Mend the parser of dates"),
        "{}",
        told(0)
    );
    assert!(told(0).contains("none yet"), "{}", told(0));
    assert!(told(2).contains("[running] 1: read it"), "{}", told(2));
    assert!(!told(4).contains("goal:"), "{}", told(4));
    for request in &requests {
        assert_eq!(request["tools"], requests[0]["tools"]);
        assert_eq!(request["messages"][0], requests[0]["messages"][0]);
    }
    let audit = product.run(&["audit", "query", "--json"]).json_lines();
    let goals: Vec<&str> = audit
        .iter()
        .filter_map(|record| record["goal_id"].as_str())
        .collect();
    assert!(goals.len() == 2 && goals[0] == goals[1], "{audit:#?}");
}

#[test]
fn a_goal_of_the_configuration_is_the_same_in_a_conversation_that_goes_on() {
    let look = || calls(&[("bash", json!({"command": "echo goal=$ZEPH_GOAL_ID"}))]);
    let script = Script::new([look(), says("one"), look(), says("two")]);
    let product = product(&script);
    let goal = "agent.goal_text=mend the parser";
    let first = product.run(&["--set", goal, "run", "--json", "--allow", "bash", "look"]);
    let session = first.json_lines()[0]["id"].as_str().unwrap().to_owned();
    let again = [
        "--set", goal, "run", "--json", "--allow", "bash", "--resume", &session, "again",
    ];
    assert_eq!(product.run(&again).code, Some(0));
    let requests = script.requests();
    assert!(
        newest(&requests[0]).contains("goal: mend the parser"),
        "{requests:#?}"
    );
    let results = results(&requests[3]);
    assert_eq!(results.len(), 2, "{results:?}");
    assert_eq!(results[0], results[1]);
    let id = &results[0].split_once("goal=").unwrap().1[..36];
    assert_eq!(id.matches('-').count(), 4, "{results:?}");
}

const SUMMED: [&str; 8] = [
    "--set",
    "tools.summarize_output=true",
    "--set",
    "tools.overflow.threshold=1000",
    "run",
    "--json",
    "--allow",
    "bash",
];

fn counts() -> Value {
    calls(&[("bash", json!({"command": "seq 2000"}))])
}

#[test]
fn a_result_that_is_too_long_is_summed_up_and_stays_stored() {
    let script = Script::new([
        counts(),
        says("the numbers from 1 to 2000"),
        says("counted"),
    ]);
    let product = product(&script);
    let ran = product.run(&[&SUMMED[..], &["count"]].concat());
    let (_, result) = events(&ran);
    assert_eq!(result["status"], "done", "{}", ran.stdout);
    let requests = script.requests();
    assert_eq!(requests.len(), 3);
    assert!(
        requests[1]["tools"].as_array().is_none_or(Vec::is_empty),
        "{}",
        requests[1]
    );
    assert!(newest(&requests[1]).contains("1999"), "{}", requests[1]);
    let shown = &results(&requests[2])[0];
    for words in [
        "[tool output summary]",
        "the numbers from 1 to 2000",
        "ID: overflow:",
    ] {
        assert!(shown.contains(words), "{words}: {shown}");
    }
    assert!(!shown.contains("omitted"), "{shown}");
    assert_eq!(result["usage"]["input_tokens"], 300, "{result}");
}

#[test]
fn without_a_summary_the_result_is_shown_as_it_is() {
    let script = Script::new([counts(), says(""), says("counted")]);
    let product = product(&script);
    let ran = product.run(&[&SUMMED[..], &["count"]].concat());
    assert_eq!(ran.code, Some(0), "{}", ran.stdout);
    let shown = &results(&script.requests()[2])[0];
    assert!(shown.contains("characters omitted"), "{shown}");
}

#[test]
fn summaries_count_in_the_budget() {
    let script = Script::new([
        counts(),
        says("the numbers from 1 to 2000"),
        says("counted"),
    ]);
    let product = product(&script);
    let bound = ["--set", "agent.max_total_tokens=200"];
    let ran = product.run(&[&bound[..], &SUMMED[..], &["count"]].concat());
    let (_, result) = events(&ran);
    assert_eq!(result["status"], "budget", "{}", ran.stdout);
    assert_eq!(script.requests().len(), 2);
}
