//! What is asked of models and of people beside the answers of the model that talks: it is counted.

use serde_json::{Value, json};

use super::script::{Script, calls, says};
use super::{events, of_type, product, results};
use crate::product::Product;

const EMBEDDING: [&str; 4] = [
    "--set",
    "agent.embedding.provider=scripted",
    "--set",
    "agent.embedding.model=vectors-1",
];

const RUN: [&str; 7] = [
    "--set",
    "agent.goal_text=authentication",
    "run",
    "--json",
    "--allow",
    "bash",
    "go on",
];

/// Prints six paragraphs of 20 lines, and one that means the goal in other words.
const COMMAND: &str = "for p in 1 2 3 4 5 6; do for n in $(seq 20); do \
    echo \"step $n of part $p of the build went as it should\"; done; echo; \
    [ $p = 3 ] && echo 'login credentials' && echo; done; true";

fn prints() -> Value {
    calls(&[("bash", json!({"command": COMMAND}))])
}

fn meanings() -> Value {
    json!({ "dimensions": 512, "meanings": [["authentication", "login", "credentials"]] })
}

fn run(product: &Product, settings: &[&str]) -> (Vec<Value>, Value) {
    events(&product.run(&[settings, &RUN].concat()))
}

#[test]
fn an_output_is_compared_by_its_meaning_once_and_that_counts() {
    let script = Script::with_vectors([prints(), prints(), says("done")], meanings());
    let (events, result) = run(&product(&script), &EMBEDDING);
    assert_eq!(result["status"], "done", "{result}");
    let shown = results(&script.requests()[2]);
    for shown in &shown {
        assert!(shown.contains("login credentials"), "{shown}");
        assert!(!shown.contains("step 7 of part 5"), "{shown}");
    }
    let embedded = script.embedded();
    assert_eq!(embedded.len(), 1, "{embedded:?}");
    assert!(embedded[0].contains(&"authentication".to_owned()));
    // The requests of the loop are told one by one; the session has the 8 tokens of the vectors, too.
    let told = of_type(&events, "usage").into_iter();
    let told: u64 = told
        .filter_map(|event| event["input_tokens"].as_u64())
        .sum();
    assert_eq!(result["usage"]["input_tokens"], told + 8, "{result}");
}

#[test]
fn without_its_model_or_its_leave_an_output_is_compared_by_words() {
    let mut broken = meanings();
    broken["faults"] = json!([{ "status": 401 }]);
    let script = Script::with_vectors([prints(), says("done")], broken);
    let (_, result) = run(&product(&script), &EMBEDDING);
    assert_eq!(result["status"], "done", "{result}");
    let shown = &results(&script.requests()[1])[0];
    assert!(!shown.contains("login credentials"), "{shown}");
    assert!(shown.contains("[output filtered: "), "{shown}");

    let script = Script::with_vectors([prints(), says("done")], meanings());
    let off = ["--set", "tools.compression.embeddings=false"];
    let (_, result) = run(&product(&script), &[&EMBEDDING[..], &off].concat());
    assert_eq!(result["status"], "done", "{result}");
    assert!(script.embedded().is_empty());
}

#[test]
fn vectors_for_the_choice_of_tools_count_in_the_budget() {
    let filter = ["--set", "tools.schema_filter.enabled=true"];
    for (bound, n_requests) in [
        ("agent.max_total_tokens=8", 0),
        ("agent.max_cost_usd=0.000016", 0),
        ("agent.max_total_tokens=9", 1),
    ] {
        let script = Script::with_vectors([says("done")], meanings());
        let bound = ["--set", bound, "--set", "agent.embedding.price_input=2"];
        let args = [&EMBEDDING[..], &filter, &bound, &["run", "--json", "hello"]].concat();
        let (_, result) = events(&product(&script).run(&args));
        assert_eq!(script.embedded().len(), 1);
        assert_eq!(script.requests().len(), n_requests, "{bound:?}: {result}");
        let is_budget = result["status"] == "budget";
        assert_eq!(is_budget, n_requests == 0, "{bound:?}: {result}");
    }
}

#[test]
fn stats_say_how_many_calls_needed_a_person_in_all_sessions() {
    let write = || calls(&[("write", json!({"path": "a", "content": "x"}))]);
    let read = || calls(&[("read", json!({"path": "b"}))]);
    let script = Script::new([read(), write(), says("one"), read(), write(), says("two")]);
    let product = product(&script);
    product.file("b", "text\n");
    let asked = product.run(&["run", "look"]);
    assert_eq!(asked.code, Some(5), "{}", asked.stderr);
    let allowed = product.run(&["run", "--allow", "write", "look"]);
    assert_eq!(allowed.code, Some(0), "{}", allowed.stderr);
    // What a person types is no question to a person.
    product.run(&["call", "read", "path=b"]);
    let stats = product.run(&["stats", "--json"]);
    let stats: Value = serde_json::from_str(&stats.stdout).unwrap();
    assert_eq!(
        stats["approvals"],
        json!({"calls": 4, "asked": 1, "unanswered": 1, "per_100_calls": 25})
    );
    let shown = product.run(&["stats"]).stdout;
    let line = "1 of 4 calls needed approval (25 per 100 calls), 1 of them unanswered";
    assert!(shown.contains(line), "{shown}");
}

#[test]
fn the_calls_of_one_answer_count_once() {
    let reads = |paths: &[&str]| {
        let reads = paths.iter().map(|path| ("read", json!({"path": path})));
        calls(&reads.collect::<Vec<_>>())
    };
    let script = Script::new([reads(&["a", "b", "c"]), reads(&["a", "b"]), says("enough")]);
    let product = product(&script);
    for name in ["a", "b", "c"] {
        product.file(name, format!("content of {name}\n"));
    }
    let limit = "tools.max_tool_calls_per_session=1";
    let ran = product.run(&["--set", limit, "run", "look"]);
    assert_eq!(ran.code, Some(0), "{}", ran.stderr);
    let told = results(&script.requests()[2]);
    assert_eq!(told.len(), 5, "{told:#?}");
    for (result, name) in told.iter().zip(["a", "b", "c"]) {
        assert!(result.contains(&format!("content of {name}")), "{result}");
    }
    for result in &told[3..] {
        assert!(result.contains("max_tool_calls_per_session"), "{result}");
    }
}
