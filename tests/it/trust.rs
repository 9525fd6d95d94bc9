//! Tools that keep failing are blocked for their caller until their trust is reset; rules see trust; rules and grants have modes.

use serde_json::{Value, json};

use crate::guest::HOSTILE;
use crate::product::Product;
use crate::running::Running;

/// A window of four calls, of which three may not fail.
const SMALL: [&str; 8] = [
    "--allow",
    "*",
    "--set",
    "tools.anomaly.window_size=4",
    "--set",
    "tools.anomaly.failure_threshold=0.5",
    "--set",
    "tools.retry.max_attempts=1",
];

fn product() -> Product {
    let product = Product::new();
    product.file("a.txt", "one");
    product.drop_in("hostile", HOSTILE);
    product
}

/// The only JSON value that a command prints.
fn json_of(product: &Product, args: &[&str]) -> Value {
    let ran = product.run(args);
    assert_eq!(ran.code, Some(0), "{args:?}: {}", ran.stderr);
    serde_json::from_str(&ran.stdout).unwrap()
}

fn category(answer: &Value) -> &str {
    answer["error"]["category"].as_str().unwrap_or("none")
}

#[test]
fn a_tool_that_crashes_is_blocked_until_its_trust_is_reset() {
    let product = product();
    let mut host = Running::start(&product, &SMALL);
    let panics = json!({"text": "no"});
    for _ in 0..2 {
        let answer = host.call("hostile__panics", &panics);
        assert_eq!(category(&answer), "permanent_failure", "{answer}");
        assert!(!answer.to_string().contains("blocked"), "{answer}");
    }
    let third = host.call("hostile__panics", &panics);
    let command = "zeph-host trust reset hostile__panics";
    assert!(third.to_string().contains(command), "{third}");
    host.note(&["hostile__panics", "blocked", "tools.anomaly", command]);
    let refused = host.call("hostile__panics", &panics);
    assert_eq!(category(&refused), "policy_blocked", "{refused}");
    let message = refused["error"]["message"].as_str().unwrap();
    for part in ["tools.anomaly", "3 of its last 4 calls failed", command] {
        assert!(message.contains(part), "{message}");
    }
    // Its neighbours work, and so does it for others.
    let echo = host.call("hostile__echo", &json!({"text": "here"}));
    assert_eq!(echo["status"], "ok", "{echo}");
    let typed = product.run(&["call", "hostile__panics", "text=no"]);
    assert!(!typed.stderr.contains("trust reset"), "{}", typed.stderr);

    let listed = json_of(&product, &["trust", "--json"]);
    assert_eq!(listed[0]["subject"], "hostile__panics", "{listed}");
    assert_eq!(listed[0]["caller"], "program", "{listed}");
    assert_eq!(listed[0]["is_automatic"], true, "{listed}");
    let explained = product.run(&["explain", "hostile__panics", "text=no"]);
    assert_eq!(explained.code, Some(4), "{}", explained.stdout);
    assert!(explained.stdout.contains(command), "{}", explained.stdout);
    let records = product.run(&["audit", "query", "--tool", "hostile__panics", "--json"]);
    let denied = records.json_lines().into_iter().any(|record| {
        let rule = record["policy_match"].as_str().unwrap_or_default();
        rule.contains("trust: deny by tools.anomaly")
    });
    assert!(denied, "{}", records.stdout);
    let info = json_of(&product, &["plugin", "info", "hostile", "--json"]);
    assert_eq!(info["reputation"]["failures"], 4, "{info}");
    assert_eq!(info["reputation"]["refusals"], 1, "{info}");

    // A reset holds from the next call on in the host that runs.
    let reset = product.run(&["trust", "reset", "hostile__panics"]);
    assert_eq!(reset.code, Some(0), "{}", reset.stderr);
    let answer = host.call("hostile__panics", &panics);
    assert_eq!(category(&answer), "permanent_failure", "{answer}");
    let nothing = product.run(&["trust", "reset", "hostile__panics"]);
    assert_eq!(nothing.code, Some(2), "{}", nothing.stderr);
}

#[test]
fn what_is_not_the_tools_fault_blocks_nothing() {
    let product = product();
    let mut host = Running::start(&product, &SMALL);
    for n in 0..6 {
        let bad = host.call("hostile__echo", &json!({"text": n}));
        assert_eq!(category(&bad), "type_mismatch", "{bad}");
        // It reports a failure of its own, but for tools of the program that is an answer.
        let missing = host.call("read", &json!({"path": format!("missing-{n}")}));
        assert_eq!(category(&missing), "permanent_failure", "{missing}");
        let failing = host.call("bash", &json!({"command": "exit 3"}));
        assert_eq!(category(&failing), "permanent_failure", "{failing}");
        let unknown = host.call("hostile__nothing", &json!({}));
        assert_eq!(category(&unknown), "tool_not_found", "{unknown}");
    }
    for (tool, params) in [
        ("hostile__echo", json!({"text": "here"})),
        ("read", json!({"path": "a.txt"})),
        ("bash", json!({"command": "true"})),
    ] {
        let answer = host.call(tool, &params);
        assert_eq!(answer["status"], "ok", "{answer}");
    }
    assert_eq!(json_of(&product, &["trust", "--json"]), json!([]));
}

#[test]
fn a_tool_that_only_reports_failures_is_blocked_when_it_never_works() {
    let product = product();
    let mut host = Running::start(&product, &SMALL);
    let forges = json!({"text": "the service is gone"});
    for _ in 0..4 {
        let answer = host.call("hostile__forges", &forges);
        assert_eq!(category(&answer), "permanent_failure", "{answer}");
    }
    let answer = host.call("hostile__forges", &forges);
    assert_eq!(category(&answer), "policy_blocked", "{answer}");
}

#[test]
fn trust_is_set_for_owners_and_holds_in_every_host() {
    let product = product();
    let mut host = Running::start(&product, &["--allow", "*"]);
    let echo = json!({"text": "here"});
    let call = |host: &mut Running| host.call("hostile__echo", &echo);
    assert_eq!(call(&mut host)["status"], "ok");
    for subject in ["hostile__echo", "plugin:hostile"] {
        let set = product.run(&["trust", "set", subject, "blocked"]);
        assert_eq!(set.code, Some(0), "{}", set.stderr);
        let refused = call(&mut host);
        assert_eq!(category(&refused), "policy_blocked", "{refused}");
        let command = format!("zeph-host trust reset {subject}");
        assert!(refused.to_string().contains(&command), "{refused}");
        let typed = product.run(&["call", "hostile__echo", "text=here"]);
        assert_eq!(
            typed.code,
            Some(4),
            "it is blocked for everybody: {}",
            typed.stderr
        );
        assert_eq!(product.run(&["trust", "reset", subject]).code, Some(0));
        assert_eq!(call(&mut host)["status"], "ok");
    }
    for nonsense in ["plugin:nothing", "hostile__nothing", "server:none", ""] {
        let set = product.run(&["trust", "set", nonsense, "blocked"]);
        assert_eq!(set.code, Some(2), "{nonsense}: {}", set.stderr);
    }
}

#[test]
fn rules_see_the_trust_in_caller_and_tool() {
    let product = product();
    let rule = |level: &str| {
        format!("tools.policy.rules=[{{effect=\"allow\",tool=\"*\",trust_level=\"{level}\"}}]")
    };
    let decided = |tool: &[&str], level: &str, as_person: bool| {
        let rule = rule(level);
        let mut args = vec!["explain"];
        args.extend(tool);
        args.extend([
            "--json",
            "--set",
            "tools.policy.enabled=true",
            "--set",
            &rule,
        ]);
        args.extend(as_person.then_some("--as-person"));
        let ran = product.run(&args);
        let explained: Value = serde_json::from_str(&ran.stdout).unwrap();
        explained["decision"].as_str().unwrap().to_owned()
    };
    let read = ["read", "path=a.txt"];
    let echo = ["hostile__echo", "text=x"];
    assert_eq!(decided(&read, "trusted", true), "allow");
    assert_eq!(
        decided(&read, "trusted", false),
        "deny",
        "a program is verified"
    );
    assert_eq!(decided(&read, "verified", false), "allow");
    assert_eq!(
        decided(&echo, "trusted", true),
        "deny",
        "a plugin is verified"
    );
    assert_eq!(decided(&echo, "verified", false), "allow");
    for args in [
        ["trust", "set", "hostile__echo", "trusted"],
        ["trust", "set", "read", "quarantined"],
    ] {
        assert_eq!(product.run(&args).code, Some(0));
    }
    assert_eq!(decided(&echo, "trusted", true), "allow");
    assert_eq!(decided(&read, "verified", false), "deny");
    let listed = json_of(&product, &["trust", "list", "--json"]);
    assert_eq!(
        listed[0]["subject"], "file__read",
        "kept for the owner: {listed}"
    );
}

#[test]
fn what_rules_on_trial_would_have_decided_is_recorded_and_counted() {
    let product = product();
    let rules = [
        "--set",
        "tools.policy.enabled=true",
        "--set",
        "tools.policy.mode=observe",
        "--set",
        r#"tools.policy.rules=[{effect="deny",tool="read",paths=["**/a.txt"]}]"#,
    ];
    let lines = [
        json!({"id": 1, "tool": "read", "params": {"path": "a.txt"}}),
        json!({"id": 2, "tool": "read", "params": {"path": "a.txt"}}),
        json!({"id": 3, "tool": "list_directory", "params": {"path": "."}}),
    ];
    let input: String = lines.iter().map(|line| format!("{line}\n")).collect();
    let answers = product.answers(&rules, input);
    assert!(
        answers.iter().all(|answer| answer["status"] == "ok"),
        "{answers:?}"
    );
    let report = json_of(&product, &["policy", "report", "--since", "1h", "--json"]);
    let count = |rule: &str| {
        let counts = report.as_array().unwrap().iter();
        let mut counts = counts.filter(|count| count["rule"] == rule);
        let count = counts.next().unwrap_or_else(|| panic!("{report}"));
        assert_eq!(
            (&count["would"], &count["decided"]),
            (&json!("deny"), &json!("allow"))
        );
        count["calls"].as_u64().unwrap()
    };
    assert_eq!(count("tools.policy rule 1"), 2);
    assert_eq!(count("tools.policy.default_effect"), 1);
    let records = product.run(&["audit", "query", "--tool", "read", "--json"]);
    let record = records.json_lines().remove(0);
    let rule = record["policy_match"].as_str().unwrap();
    assert!(
        rule.contains("policy: observed deny by tools.policy rule 1"),
        "{rule}"
    );
    let explain = ["explain", "read", "path=a.txt"];
    let explained = product.run(&[&explain[..], &rules[..]].concat());
    assert_eq!(explained.code, Some(0), "{}", explained.stdout);
    let said = "observed: tools.policy rule 1 would have denied the call";
    assert!(explained.stdout.contains(said), "{}", explained.stdout);
    let report = json_of(&product, &["policy", "report", "--json"]);
    assert_eq!(
        report.as_array().unwrap().len(),
        2,
        "explaining counts nothing: {report}"
    );
}

#[test]
fn grants_ask_observe_and_are_withheld() {
    let product = product();
    let directory = format!("{}:read", product.work.display());
    let file = product.work.join("a.txt");
    let granted = |mode: Option<&str>| {
        let mut args = vec!["plugin", "grant", "hostile", "--dir", &directory];
        args.extend(mode.iter().flat_map(|mode| ["--mode", mode]));
        let ran = product.run(&args);
        assert_eq!(ran.code, Some(0), "{}", ran.stderr);
    };
    let read = || {
        let params = json!({"op": "read", "path": file});
        let line = json!({"id": 1, "tool": "hostile__files", "params": params});
        product.answers(&[], format!("{line}\n")).remove(0)
    };
    granted(Some("ask"));
    let asked = read();
    assert_eq!(category(&asked), "confirmation_required", "{asked}");
    assert!(asked.to_string().contains("zeph-host approve"), "{asked}");
    granted(Some("observe"));
    assert_eq!(read()["status"], "ok");
    let report = json_of(&product, &["policy", "report", "--json"]);
    let rule = report[0]["rule"].as_str().unwrap();
    assert!(rule.starts_with("grant "), "{report}");
    granted(None);
    assert_eq!(read()["status"], "ok");
    granted(Some("deny"));
    let refused = read();
    assert_ne!(refused["status"], "ok", "{refused}");
}
