//! Strategies of plugins where no host runs: in a person's command, a log, another agent's hook, and the tests of a rule file.

use std::fs;

use serde_json::{Value, json};

use super::guests::{Guest, HONEST, noise, product, with_rules};
use crate::filters::fed;
use crate::product::Product;

const SHORT: &str = "error: it broke\n[zeph] honest says: 300 lines omitted\n";

#[test]
fn a_persons_command_and_a_log_are_shortened() {
    let product = product(&[HONEST]);
    let ran = product.run(&["filter", "--", "sh", "honest.sh"]);
    assert_eq!(ran.code, Some(1), "{}", ran.stderr);
    assert!(
        ran.stdout.starts_with(SHORT),
        "{} {}",
        ran.stdout,
        ran.stderr
    );
    let id = ran.stdout.split("filter --read ").nth(1).unwrap();
    let id = id.split('`').next().unwrap();
    assert_eq!(product.run(&["filter", "--read", id]).stdout, noise());
    let args = ["filter", "--as", "sh honest.sh", "--exit-code", "1"];
    let ran = fed(&product, &args, &noise());
    assert_eq!(ran.code, Some(0), "{}", ran.stderr);
    assert!(
        ran.stdout.starts_with(SHORT),
        "{} {}",
        ran.stdout,
        ran.stderr
    );
}

#[test]
fn another_agents_hook_is_answered_with_it() {
    let product = product(&[HONEST]);
    let event = json!({
        "hook_event_name": "PostToolUse",
        "tool_name": "Bash",
        "tool_input": {"command": "sh honest.sh"},
        "tool_response": {"stdout": noise(), "stderr": "", "interrupted": false},
    });
    let ran = fed(&product, &["hook", "claude"], &event.to_string());
    assert_eq!(ran.code, Some(0), "{}", ran.stderr);
    let answer: Value = serde_json::from_str(&ran.stdout).unwrap();
    let shown = &answer["hookSpecificOutput"]["updatedToolOutput"]["stdout"];
    assert!(shown.as_str().unwrap().starts_with(SHORT), "{answer}");
}

#[test]
fn the_tests_of_a_rule_file_run_it() {
    let product = product(&[HONEST]);
    let config = product.home.join(".config/zeph-host/filters.toml");
    let rules = fs::read_to_string(&config).unwrap();
    let test = |strategy: &str| {
        let rules = rules.replace("wasm:honest", strategy);
        format!(
            "{rules}[[tests]]\nname = 'short'\ncommand = 'sh honest.sh'\nexit_code = 1\ninput = '''\n{}'''\ncontains = ['error: it broke']\n",
            noise()
        )
    };
    product.file("good.toml", test("wasm:honest") + "saved_min = 0.9\n");
    let ran = product.run(&["filters", "test", "good.toml"]);
    assert_eq!(ran.code, Some(0), "{} {}", ran.stdout, ran.stderr);
    // Without the strategy the text is whole and holds what it has to; the test fails all the same.
    product.file("lacking.toml", test("wasm:nobodys"));
    let ran = product.run(&["filters", "test", "lacking.toml"]);
    assert_eq!(ran.code, Some(1), "{}", ran.stdout);
    let words = "no active plugin offers a strategy `nobodys`; there are `wasm:honest/honest`";
    assert!(ran.stdout.contains(words), "{}", ran.stdout);
    with_rules(&product, &test("wasm:honest"));
    let ran = product.run(&["filters", "verify"]);
    assert_eq!(ran.code, Some(0), "{} {}", ran.stdout, ran.stderr);
}

/// What the program says of the strategy `honest` while it is not to be had; its output is whole then.
fn lacking(product: &Product) -> String {
    let ran = product.run(&["filter", "--", "sh", "honest.sh"]);
    assert_eq!(ran.code, Some(1), "{}", ran.stderr);
    assert_eq!(ran.stdout, noise());
    let why = product.run(&["filters", "why", "--json", "--", "sh honest.sh"]);
    let why: Value = serde_json::from_str(&why.stdout).unwrap();
    let lacking = &why["cannot_act"][0];
    assert_eq!(lacking["rule"], "rule_honest", "{why}");
    assert_eq!(why["acting"], json!([]), "{why}");
    let reason = lacking["reason"].as_str().unwrap().to_owned();
    assert!(ran.stderr.contains(&reason), "{}: {reason}", ran.stderr);
    let told = product
        .run(&["filters", "why", "--", "sh honest.sh"])
        .stdout;
    let words = format!("rule `rule_honest` cannot act: {reason}");
    assert!(told.contains(&words), "{told}");
    assert_eq!(told.matches("rule_honest").count(), 1, "{told}");
    reason
}

#[test]
fn why_it_is_not_there_is_told_with_the_command_that_helps() {
    let product = product(&[HONEST]);
    let other = Guest {
        note: b"another version",
        ..HONEST
    };
    product.plugin(&["list"]);
    let why = product.run(&["filters", "why", "--json", "--", "sh honest.sh"]);
    let why: Value = serde_json::from_str(&why.stdout).unwrap();
    assert_eq!(why["cannot_act"], json!([]), "{why}");

    product.plugin(&["disable", "honest"]);
    let reason = lacking(&product);
    assert!(
        reason.contains("`zeph-host plugin enable honest`"),
        "{reason}"
    );
    product.plugin(&["enable", "honest"]);

    product.drop_in("honest", &other.component());
    let reason = lacking(&product);
    assert!(
        reason.contains("`zeph-host plugin approve honest`"),
        "{reason}"
    );

    product.drop_in("honest", b"no component");
    let reason = lacking(&product);
    assert!(reason.contains("plugin `honest` is not used: "), "{reason}");

    fs::remove_file(product.plugins().join("honest.wasm")).unwrap();
    let reason = lacking(&product);
    assert_eq!(reason, "no active plugin offers a strategy `honest`");
}

/// Most commands need no plugin: none is looked at then, nor anything of the engine made.
#[test]
fn nothing_is_looked_at_before_a_rule_asks() {
    let product = product(&[HONEST]);
    let lock = product.plugins().parent().unwrap().join("zeph.lock");
    let short = "for n in $(seq 300); do echo \"compiling part $n\"; done";
    product.file("other.sh", short);
    product.run(&["filter", "--", "sh", "other.sh"]);
    product.run(&["filters", "why", "--", "sh other.sh"]);
    product.run(&["filters", "list"]);
    assert!(!lock.exists());
    product.run(&["filter", "--", "sh", "honest.sh"]);
    assert!(lock.exists());
}
