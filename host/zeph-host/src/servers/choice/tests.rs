use std::collections::BTreeMap;
use std::path::{Component, Path, PathBuf};

use proptest::prelude::*;
use serde_json::{Map, Value, json};
use zeph_config::{ArgumentRule, ToolChoice};

use super::value::ValueRule;
use super::{ChoiceError, Choices};

fn list(items: &[&str]) -> Vec<String> {
    items.iter().map(|item| (*item).to_owned()).collect()
}

fn choice(rules: &[(&str, ArgumentRule)]) -> BTreeMap<String, ToolChoice> {
    let arguments = rules
        .iter()
        .map(|(name, rule)| ((*name).to_owned(), rule.clone()));
    let choice = ToolChoice {
        name: None,
        description: None,
        enabled: true,
        arguments: arguments.collect(),
    };
    BTreeMap::from([("read.file".to_owned(), choice)])
}

fn allow(globs: &[&str]) -> ArgumentRule {
    ArgumentRule {
        allow: list(globs),
        ..ArgumentRule::default()
    }
}

fn deny(globs: &[&str]) -> ArgumentRule {
    ArgumentRule {
        deny: list(globs),
        ..ArgumentRule::default()
    }
}

fn fixed(value: Value) -> ArgumentRule {
    ArgumentRule {
        fixed: Some(value),
        ..ArgumentRule::default()
    }
}

fn schema() -> Value {
    json!({
        "type": "object",
        "properties": {
            "path": {"type": "string"},
            "limit": {"type": "integer"},
            "token": {"type": "string"},
        },
        "required": ["token", "limit"],
        "anyOf": [{"required": ["token"]}, {"required": ["path"]}],
        "oneOf": [{"required": ["path"]}],
    })
}

fn object(value: Value) -> Map<String, Value> {
    serde_json::from_value(value).unwrap()
}

fn sent(
    tools: &BTreeMap<String, ToolChoice>,
    given: Value,
) -> Result<Map<String, Value>, ChoiceError> {
    Choices::new("files", tools).sent("read.file", &schema(), object(given))
}

#[test]
fn without_a_choice_everything_stays() {
    let tools = BTreeMap::new();
    let shown = Choices::new("files", &tools).shown("read.file", "Reads.", &schema());
    let shown = shown.unwrap();
    assert_eq!(
        (shown.description.as_str(), shown.schema),
        ("Reads.", schema())
    );
    let given = json!({"anything": [1, {"a": null}]});
    assert_eq!(sent(&tools, given.clone()), Ok(object(given)));
}

#[test]
fn a_fixed_argument_is_neither_seen_nor_set() {
    let tools = choice(&[("token", fixed(json!("t"))), ("path", allow(&["/work/**"]))]);
    let shown = Choices::new("files", &tools).shown("read.file", "Reads.", &schema());
    let expected = json!({
        "type": "object",
        "properties": {"path": {"type": "string"}, "limit": {"type": "integer"}},
        "required": ["path", "limit"],
        "oneOf": [{"required": ["path"]}],
    });
    assert_eq!(shown.unwrap().schema, expected);
    let all = json!({"path": "/work/x", "limit": 1, "token": "t"});
    let given = json!({"path": "/work/x", "limit": 1});
    assert_eq!(sent(&tools, given), Ok(object(all.clone())));
    assert_eq!(sent(&tools, all.clone()), Ok(object(all)));
    let other = sent(&tools, json!({"path": "/work/x", "token": "mine"})).unwrap_err();
    let key = "mcp.servers.files.tools.\"read.file\".arguments.token.fixed";
    assert!(other.to_string().contains(key), "{other}");
}

#[test]
fn a_refusal_names_the_key() {
    let check = |rule: ArgumentRule, given: Value, expected: &str| {
        let refused = sent(&choice(&[("path", rule)]), given)
            .unwrap_err()
            .to_string();
        assert!(refused.contains(expected), "{refused}");
    };
    let key = "mcp.servers.files.tools.\"read.file\".arguments";
    check(
        allow(&["/work/**"]),
        json!({"path": "/etc/passwd"}),
        &format!("{key}.path.allow"),
    );
    check(
        allow(&["/work/**"]),
        json!({}),
        &format!("{key}.path.allow"),
    );
    check(
        allow(&["/work/**"]),
        json!({"path": null}),
        "has to be given",
    );
    check(
        deny(&["**/.env"]),
        json!({"path": "a/.env"}),
        &format!("{key}.path.deny"),
    );
    check(
        deny(&["x"]),
        json!({"path": {"a": "b"}}),
        &format!("{key}.path.deny"),
    );
    check(
        allow(&["**"]),
        json!({"path": "a", "Path": "b"}),
        "`Path` is not an argument",
    );
}

#[test]
fn a_rule_for_an_argument_that_does_not_exist_turns_the_tool_off() {
    let tools = choice(&[("pfad", deny(&["x"]))]);
    let choices = Choices::new("files", &tools);
    let refused = choices.shown("read.file", "", &schema()).unwrap_err();
    assert!(refused.to_string().contains("arguments.pfad"), "{refused}");
    assert_eq!(
        choices.of_nothing(&["read_file"]),
        ["mcp.servers.files.tools.\"read.file\""]
    );
    assert_eq!(choices.of_nothing(&["read.file"]), [""; 0]);
}

#[test]
fn values_are_compared_as_servers_may_read_them() {
    let check = |globs: &[&str], denied: &[&str], value: Value, expected: Result<(), &str>| {
        let rule = ValueRule::new(&list(globs), &list(denied));
        assert_eq!(rule.check(&value), expected, "{globs:?} {denied:?} {value}");
    };
    let work = &["/work/**"];
    check(work, &[], json!("/work/a/b c"), Ok(()));
    check(work, &[], json!("/work/a%20b"), Ok(()));
    check(work, &[], json!("/work/../etc/passwd"), Err("allow"));
    check(work, &[], json!("/work/a/../../etc"), Err("allow"));
    check(work, &[], json!("/work/%2e%2e/etc"), Err("allow"));
    check(work, &[], json!("/work/%252e%252e/etc"), Err("allow"));
    check(work, &[], json!("/work\\..\\etc"), Err("allow"));
    check(work, &[], json!(["/work/a", "/work/b"]), Ok(()));
    check(work, &[], json!(["/work/a", "/etc"]), Err("allow"));
    check(work, &[], json!([["/work/a"]]), Err("allow"));
    check(work, &[], json!({"path": "/work/a"}), Err("allow"));
    check(&["/work/*"], &[], json!("/work/a/b"), Err("allow"));
    check(&["10", "true"], &[], json!(10), Ok(()));
    check(&["10", "true"], &[], json!(true), Ok(()));
    check(&["10"], &[], json!(100), Err("allow"));
    let site = &["https://api.example.com/v1/**"];
    check(site, &[], json!("https://api.example.com/v1/users"), Ok(()));
    check(
        site,
        &[],
        json!("https://api.example.com/v1/../admin"),
        Err("allow"),
    );
    check(
        site,
        &[],
        json!("https://api.example.com.evil.example/v1/x"),
        Err("allow"),
    );
    check(&[], &["/etc/*"], json!("/etc/ssh/key"), Err("deny"));
    check(&[], &["/etc/*"], json!("/x/..//etc/./passwd"), Err("deny"));
    check(&[], &["/etc/*"], json!(" /etc/passwd "), Err("deny"));
    check(&[], &["/etc/*"], json!("/work/etc/x"), Ok(()));
}

/// What a reader of paths makes of a text: the oracle.
fn resolved(text: &str) -> PathBuf {
    let mut path = PathBuf::from("/");
    for part in Path::new(text).components() {
        match part {
            Component::ParentDir => drop(path.pop()),
            Component::Normal(name) => path.push(name),
            Component::RootDir | Component::CurDir | Component::Prefix(_) => {}
        }
    }
    path
}

fn rule() -> impl Strategy<Value = ArgumentRule> {
    let globs = prop::sample::subsequence(vec!["/work/**", "a*", "*", "1"], 0..3);
    let fixed = prop::option::of(prop::sample::select(vec![
        json!("f"),
        json!(3),
        json!(null),
    ]));
    (fixed, globs.clone(), globs).prop_map(|(fixed, allow, deny)| ArgumentRule {
        fixed,
        allow: list(&allow),
        deny: list(&deny),
    })
}

fn values() -> impl Strategy<Value = Value> {
    let text = "[a/.1%2e]{0,8}".prop_map(Value::from);
    prop_oneof![
        text,
        Just(json!("f")),
        Just(json!(3)),
        Just(json!(null)),
        Just(json!(["a", "/x"]))
    ]
}

proptest! {
    #[test]
    fn no_allowed_path_leads_out(parts in prop::collection::vec(prop::sample::select(vec!["..", ".", "", "a", "work", "%2e%2e"]), 0..8)) {
        let text = format!("/work/{}", parts.join("/"));
        let rule = ValueRule::new(&list(&["/work/**"]), &[]);
        if rule.check(&json!(text)).is_ok() {
            prop_assert!(resolved(&text).starts_with("/work"), "{text}");
            prop_assert!(resolved(&text.replace("%2e", ".")).starts_with("/work"), "{text}");
        }
    }

    #[test]
    fn what_is_sent_keeps_every_rule(
        rules in prop::collection::btree_map(prop::sample::select(vec!["path", "limit", "token"]), rule(), 1..4),
        given in prop::collection::btree_map(prop::sample::select(vec!["path", "limit", "token", "other"]), values(), 0..4),
    ) {
        let rules: Vec<_> = rules.into_iter().collect();
        let tools = choice(&rules);
        let choices = Choices::new("files", &tools);
        let shown = choices.shown("read.file", "", &schema()).unwrap().schema;
        let given: Map<String, Value> = given.into_iter().map(|(name, value)| (name.to_owned(), value)).collect();
        for (name, rule) in &rules {
            let is_seen = shown["properties"].get(name).is_some();
            prop_assert_eq!(is_seen, rule.fixed.is_none());
        }
        if let Ok(sent) = choices.sent("read.file", &schema(), given.clone()) {
            prop_assert!(sent.keys().all(|name| name != "other"));
            for (name, rule) in &rules {
                match &rule.fixed {
                    Some(fixed) => prop_assert_eq!(sent.get(*name), Some(fixed)),
                    None => {
                        prop_assert_eq!(sent.get(*name), given.get(*name));
                        prop_assert!(rule.allow.is_empty() || sent.contains_key(*name));
                    }
                }
            }
            // What was sent once may be sent again.
            prop_assert_eq!(choices.sent("read.file", &schema(), sent.clone()), Ok(sent));
        }
    }
}
