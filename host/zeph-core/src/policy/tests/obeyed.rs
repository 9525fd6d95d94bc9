//! What programs obey asks, whatever allows the tool, until a rule spells it or a person agrees.

use std::path::{Path, PathBuf};

use serde_json::json;

use super::lab::{call, decide, decide_with, permissions, rule, rules};
use crate::call::{FileFacts, ObeyedPath, ResolvedCall};
use crate::lifetime::Lifetime;
use crate::policy::{AllowRule, Decision, Effect, Policy, PolicyRuleText, SessionFacts, authorise};
use crate::principal::{Operator, Principal};

fn write(path: &'static str, name: &'static str) -> ResolvedCall {
    let path = PathBuf::from(path);
    let mut call = call("write", json!({"path": path}), &[path.to_str().unwrap()]);
    let inside = !path.ends_with(name);
    call.files = FileFacts {
        reach: vec![path.clone()],
        obeyed: vec![ObeyedPath { path, name, inside }],
        outside: None,
        lacking: None,
    };
    call
}

fn allowing(rules: &[&str]) -> Policy {
    let rules = rules
        .iter()
        .map(|rule| AllowRule::parse(rule, "/w").unwrap());
    Policy {
        allow: rules.collect(),
        directory: "/w".into(),
        ..Policy::default()
    }
}

#[test]
fn a_rule_for_the_tool_is_none_for_what_programs_obey() {
    for (rules, expect) in [
        (&["write"][..], "ask"),
        (&["write:*"], "ask"),
        (&["*"], "ask"),
        (&["write:/w/**"], "ask"),
        (&["write:.vs*"], "ask"),
        (&["write:.vscode/*"], "allow"),
        (&["write:.vscode/tasks.json"], "allow"),
        (&["*:**/.vscode/*"], "allow"),
        (&["edit:.vscode/*"], "ask"),
        (&["write", "write:.VSCODE/*"], "allow"),
        (&["write:src"], "ask"),
    ] {
        let policy = allowing(rules);
        let call = write("/w/.vscode/tasks.json", ".vscode");
        assert_eq!(decide(&policy, call), expect, "{rules:?}");
    }
}

#[test]
fn permissions_have_to_spell_it_too() {
    for (rules, expect) in [
        (&["allow *"][..], "ask"),
        (&["allow .git/hooks/*"], "allow"),
        (&["deny *"], "deny"),
    ] {
        let policy = Policy {
            permissions: permissions("write", rules),
            ..allowing(&[])
        };
        let call = write("/w/.git/hooks/pre-commit", ".git");
        assert_eq!(decide(&policy, call), expect, "{rules:?}");
    }
}

#[test]
fn allow_rules_of_the_policy_spell_it_too() {
    for (effect, tool, paths, args_match, expect) in [
        (Effect::Allow, "write", ".git/hooks/*", None, "allow"),
        (Effect::Allow, "*", "/w/.git/hooks/*", None, "allow"),
        (Effect::Allow, "write", "*", None, "ask"),
        (Effect::Allow, "edit", ".git/hooks/*", None, "ask"),
        (Effect::Allow, "write", ".git/hooks/*", Some("x"), "ask"),
        (Effect::Deny, "write", ".git/hooks/*", None, "deny"),
    ] {
        let text = PolicyRuleText {
            paths: vec![paths.to_owned()],
            ..rule(effect, tool, args_match)
        };
        let policy = Policy {
            rules: rules(&[text], Effect::Allow),
            ..allowing(&["write"])
        };
        let call = write("/w/.git/hooks/pre-commit", ".git");
        assert_eq!(decide(&policy, call), expect, "{effect:?} {tool} {paths}");
    }
}

#[test]
fn the_refusal_says_the_rule_that_would_allow_it() {
    let policy = allowing(&["write"]);
    let asked = authorise(
        &policy,
        &SessionFacts::default(),
        write("/w/.git/hooks/x", ".git"),
    );
    let Decision::Ask(refusal) = asked else {
        panic!("it asks");
    };
    assert_eq!(refusal.allow, ["write:.git/hooks/x"]);
    assert!(
        refusal
            .failure
            .message
            .contains("--allow write:.git/hooks/x")
    );
    let policy = allowing(&[refusal.allow[0].as_str()]);
    assert_eq!(decide(&policy, write("/w/.git/hooks/x", ".git")), "allow");
}

#[test]
fn who_agrees_agrees_to_the_named_paths_alone() {
    let policy = allowing(&[]);
    let approved = SessionFacts {
        approval: Some(Lifetime::Once),
        ..SessionFacts::default()
    };
    let call = || write("/w/.envrc", ".envrc");
    assert_eq!(decide_with(&policy, &approved, call()), "allow");
    let mut typed = call();
    typed.frame.principal = Principal::Operator(Operator::OF_A_TEST);
    for decision in [
        authorise(&policy, &approved, call()),
        authorise(&policy, &SessionFacts::default(), typed),
    ] {
        let Decision::Allow(call) = decision else {
            panic!("it runs");
        };
        assert!(call.leave().covers(Path::new("/w/.envrc"), ".envrc"));
        assert!(!call.leave().covers(Path::new("/w/.git/config"), ".git"));
    }
}

#[test]
fn a_path_outside_is_refused_by_name() {
    let mut call = write("/etc/passwd", ".git");
    call.files.obeyed.clear();
    call.files.outside = Some("`/etc/passwd` is outside".to_owned());
    assert_eq!(decide(&allowing(&["write"]), call), "deny");
}
