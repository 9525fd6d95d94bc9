//! The model that judges calls (`tools.adversarial_policy`): a second scripted model beside the one that makes them.

use std::fs;

use serde_json::{Value, json};

use super::script::{Script, calls, fails, hangs, says};
use super::{events, of_type, results};
use crate::plugin_cli::wanting;
use crate::product::{Product, Ran};

const DENIED: &str = "[adversarial] Tool call denied by policy";

/// A workspace with a model and a judge, each scripted.
fn product(model: &Script, judge: &Script, more: &str) -> Product {
    let product = Product::new();
    let folder = product.home.join(".config/zeph-host");
    fs::create_dir_all(&folder).unwrap();
    let provider = |name: &str, script: &Script| {
        format!(
            "[[llm.providers]]\nname = \"{name}\"\ntype = \"openai\"\nmodel = \"script-1\"\n\
             base_url = \"{}\"\nretries = 0\nprice_input = 1\nprice_output = 2\n\n",
            script.base_url
        )
    };
    let config = format!(
        "{}{}[tools.adversarial_policy]\nprovider = \"judge\"\n{more}\n",
        provider("scripted", model),
        provider("judge", judge)
    );
    fs::write(folder.join("config.toml"), config).unwrap();
    product.run(&["tools"]);
    product
}

/// A model that reads a file and then says something.
fn reader() -> Script {
    Script::new([calls(&[("read", json!({"path": "a"}))]), says("seen")])
}

/// The audit records of calls of a tool, oldest first.
fn records(product: &Product, tool: &str) -> Vec<Value> {
    let ran = product.run(&["audit", "query", "--json", "--tool", tool]);
    ran.json_lines()
}

fn verdict(product: &Product, tool: &str) -> String {
    let records = records(product, tool);
    records.last().unwrap()["adversarial_verdict"]
        .as_str()
        .unwrap_or_default()
        .to_owned()
}

/// A run in which the judge answers so: what the model was told of its call.
fn judged(answer: Value, more: &str) -> (Product, Ran, String) {
    let (model, judge) = (reader(), Script::new([answer]));
    let product = product(&model, &judge, more);
    product.file("a", "the content\n");
    let ran = product.run(&["run", "--json", "look at a"]);
    let told = results(&model.requests()[1])[0].clone();
    (product, ran, told)
}

#[test]
fn a_call_that_is_allowed_runs_and_the_verdict_is_recorded() {
    let (model, judge) = (reader(), Script::new([says("ALLOW")]));
    let product = product(&model, &judge, "");
    product.file("a", "the content\n");
    let ran = product.run(&["run", "--json", "look at a"]);
    assert_eq!(ran.code, Some(0), "{}", ran.stderr);
    assert!(results(&model.requests()[1])[0].contains("the content"));
    assert_eq!(verdict(&product, "read"), "ALLOW");
    // What the judge was asked, and that it counts.
    let asked = judge.requests()[0]["messages"].to_string();
    assert!(
        asked.contains("look at a") && asked.contains("Policies"),
        "{asked}"
    );
    let (events, result) = events(&ran);
    let of_model: u64 = of_type(&events, "usage")
        .iter()
        .map(|event| event["input_tokens"].as_u64().unwrap())
        .sum();
    assert_eq!(
        (of_model, &result["usage"]["input_tokens"]),
        (200, &json!(300))
    );
}

#[test]
fn a_denial_blocks_the_call_and_explain_tells_why() {
    let (product, ran, told) = judged(says("DENY: it reads what it should not"), "");
    assert_eq!(ran.code, Some(0), "{}", ran.stderr);
    assert!(told.contains(DENIED), "{told}");
    assert!(
        !told.contains("should not") && !told.contains("the content"),
        "{told}"
    );
    let (events, _) = events(&ran);
    assert_eq!(of_type(&events, "tool_result")[0]["status"], "denied");
    let record = records(&product, "read").remove(0);
    assert_eq!(
        record["adversarial_verdict"],
        "DENY: it reads what it should not"
    );
    assert_eq!(record["result"]["type"], "blocked");
    let explained = product.run(&["explain", "read", "path=a"]);
    assert!(
        explained.stdout.contains("it reads what it should not"),
        "{}",
        explained.stdout
    );
    assert!(
        explained.stdout.contains("tools.adversarial_policy"),
        "{}",
        explained.stdout
    );
    assert_eq!(explained.code, Some(4), "{}", explained.stdout);
    let other = product.run(&["explain", "read", "path=b"]);
    assert!(
        other.stdout.contains("will be asked before the call runs"),
        "{}",
        other.stdout
    );
    assert_eq!(other.code, Some(0));
}

#[test]
fn whatever_is_not_a_verdict_is_a_denial() {
    for answer in [
        says("sure, go ahead"),
        says(""),
        says("ALLOW\nbecause it only reads"),
        calls(&[("read", json!({}))]),
    ] {
        let (product, _, told) = judged(answer.clone(), "fail_open = true");
        assert!(told.contains(DENIED), "{answer}: {told}");
        assert!(verdict(&product, "read").starts_with("DENY: "), "{answer}");
    }
}

#[test]
fn a_judge_that_does_not_answer_denies_unless_configured_otherwise() {
    let (product, _, told) = judged(fails(500), "");
    assert!(told.contains(DENIED), "{told}");
    assert!(
        verdict(&product, "read").contains("500"),
        "{}",
        verdict(&product, "read")
    );
    let (product, _, told) = judged(hangs(), "timeout_ms = 500");
    assert!(told.contains(DENIED), "{told}");
    assert!(
        verdict(&product, "read").contains("no answer within"),
        "{}",
        verdict(&product, "read")
    );
    let (_, _, told) = judged(fails(500), "block_on_reject = false");
    assert!(told.contains(DENIED), "{told}");
    let (product, _, told) = judged(fails(500), "fail_open = true");
    assert!(told.contains("the content"), "{told}");
    assert!(verdict(&product, "read").starts_with("ALLOW: not judged"));
}

#[test]
fn what_is_exempt_is_not_judged_and_a_warning_blocks_nothing() {
    let (model, judge) = (reader(), Script::new([]));
    let exempt = product(&model, &judge, "exempt_tools = [\"file__read\"]");
    exempt.file("a", "the content\n");
    assert_eq!(exempt.run(&["run", "look"]).code, Some(0));
    assert!(judge.requests().is_empty());
    let (product, _, told) = judged(says("DENY: no"), "block_on_reject = false");
    assert!(
        told.contains("the content") && told.contains("rejected"),
        "{told}"
    );
    assert_eq!(verdict(&product, "read"), "DENY: no");
}

#[test]
fn every_door_is_judged_and_what_rules_refuse_is_not() {
    let (model, judge) = (Script::new([]), Script::endless([says("DENY: never")]));
    let product = product(&model, &judge, "");
    product.file("a", "the content\n");
    let answers = product.answers(
        &[],
        "{\"id\":1,\"tool\":\"read\",\"params\":{\"path\":\"a\"}}\n",
    );
    assert_eq!(answers[0]["status"], "refused", "{answers:?}");
    let called = product.run(&["call", "read", "path=a"]);
    assert!(
        called.code != Some(0) && !called.stdout.contains("the content"),
        "{}",
        called.stdout
    );
    assert_eq!(judge.requests().len(), 2);
    let refused = product.answers(
        &[],
        "{\"id\":1,\"tool\":\"write\",\"params\":{\"path\":\"b\",\"content\":\"\"}}\n",
    );
    assert!(!refused.is_empty() && !product.work.join("b").exists());
    assert_eq!(judge.requests().len(), 2);
}

#[test]
fn the_budget_is_looked_at_before_the_judge_is_asked() {
    let model = Script::new([
        calls(&[("read", json!({"path": "a"}))]),
        calls(&[("read", json!({"path": "b"}))]),
        says("seen"),
    ]);
    let judge = Script::new([says("ALLOW"), says("ALLOW")]);
    let product = product(&model, &judge, "");
    product.file("a", "the content\n");
    // The model and the judge take 160 tokens each time.
    let ran = product.run(&[
        "--set",
        "agent.max_total_tokens=400",
        "run",
        "--json",
        "look",
    ]);
    let (_, result) = events(&ran);
    assert_eq!(result["status"], "budget", "{result}");
    assert_eq!((model.requests().len(), judge.requests().len()), (2, 1));
    assert!(
        verdict(&product, "read").contains("max_total_tokens"),
        "{}",
        verdict(&product, "read")
    );
}

#[test]
fn without_its_policies_its_model_or_its_key_nothing_starts() {
    let (model, judge) = (reader(), Script::new([]));
    let product = product(&model, &judge, "policy_file = \"~/policies.txt\"");
    let ran = product.run(&["call", "read", "path=a"]);
    assert_eq!(ran.code, Some(3), "{}", ran.stderr);
    assert!(
        ran.stderr.contains("tools.adversarial_policy.policy_file"),
        "{}",
        ran.stderr
    );
    assert!(
        ran.stderr.contains("policies.txt") && ran.stderr.contains("config.toml:"),
        "{}",
        ran.stderr
    );
    fs::write(product.home.join("policies.txt"), "# only a comment\n").unwrap();
    assert_eq!(product.run(&["call", "read", "path=a"]).code, Some(3));
    fs::write(
        product.home.join("policies.txt"),
        "# mine\nDeny what is written on a Monday.\n",
    )
    .unwrap();
    product.file("a", "the content\n");
    assert_eq!(product.run(&["run", "look"]).code, Some(0));
    let asked = judge.requests()[0].to_string();
    assert!(
        asked.contains("1. Deny what is written on a Monday."),
        "{asked}"
    );
    let ran = product.run(&[
        "--set",
        "tools.adversarial_policy.provider=other",
        "call",
        "read",
        "path=a",
    ]);
    assert!(
        ran.code == Some(3) && ran.stderr.contains("scripted, judge"),
        "{}",
        ran.stderr
    );
}

#[test]
fn programs_that_a_plugin_runs_are_judged_too() {
    let wants = "[[directory]]\npath = \".\"\nrights = [\"read\"]\nreason = \"r\"\n\n\
                 [[program]]\nname = \"cat\"\nargs = [\"*\"]\nreason = \"It shows files.\"\n";
    let judge = Script::new([
        says("ALLOW"),
        says("ALLOW"),
        says("ALLOW"),
        says("DENY: it shows a file"),
    ]);
    let product = product(&Script::new([]), &judge, "");
    product.file("in.txt", "inside\n");
    product.drop_in("runner", &wanting(wants));
    let grant = ["grant", "runner", "--dir", ".", "--program", "cat"];
    let granted = product.plugin(&grant);
    assert_eq!(granted.code, Some(0), "{granted:?}");
    let run = || product.call("program", json!({"line": ["cat", "in.txt"]}));
    let allowed = run();
    assert_eq!(allowed["structured"]["stdout"], "inside\n", "{allowed}");
    let asked = judge.requests()[1].to_string();
    assert!(
        asked.contains("program of") && asked.contains("in.txt"),
        "{asked}"
    );
    let refused = run();
    assert_eq!(refused["error"]["category"], "policy_blocked", "{refused}");
    let told = refused.to_string();
    assert!(
        told.contains("[adversarial]") && !told.contains("it shows a file"),
        "{told}"
    );
    let records = product.run(&["audit", "query", "--json"]).json_lines();
    let verdicts: Vec<&str> = records
        .iter()
        .filter(|record| record["correlation_id"].is_string())
        .filter_map(|record| record["adversarial_verdict"].as_str())
        .collect();
    assert!(
        verdicts.contains(&"ALLOW") && verdicts.contains(&"DENY: it shows a file"),
        "{records:#?}"
    );
}
