//! Which tool a rule means, however it and the call are spelled.

use std::sync::Arc;

use serde_json::json;

use super::lab::{call, decide, permissions, rule, rules};
use crate::call::ResolvedCall;
use crate::id::{PluginId, ToolName};
use crate::policy::{
    AllowRule, Constraint, Effect, NamedTool, Policy, PolicyRuleText, Scoped, unknown_tools,
};
use crate::tool::{Backend, Tool};

/// A call of a tool of `plugin` that is offered as `offered`.
fn of_plugin(plugin: &str, offered: &str) -> ResolvedCall {
    let mut call = call("x", json!({"path": "/w/a"}), &["/w/a"]);
    let tool = Arc::make_mut(&mut call.tool);
    tool.name = ToolName::new(offered).unwrap();
    tool.backend = Backend::Wasm(PluginId(plugin.to_owned()));
    call
}

#[test]
fn a_rule_holds_however_the_tool_is_spelled() {
    for offered in ["greet", "alpha__greet"] {
        let call = || of_plugin("alpha", offered);
        for name in ["alpha__greet", "Alpha__Greet"] {
            let flag = Policy {
                allow: vec![AllowRule::parse(name, "/w").unwrap()],
                ..Policy::default()
            };
            assert_eq!(decide(&flag, call()), "allow", "--allow {name} {offered}");
            let listed = |action: &str| Policy {
                permissions: permissions(name, &[&format!("{action} *")]),
                ..Policy::default()
            };
            assert_eq!(
                decide(&listed("allow"), call()),
                "allow",
                "{name} {offered}"
            );
            assert_eq!(decide(&listed("deny"), call()), "deny", "{name} {offered}");
            assert!(listed("deny").hides(&call().tool));
            let policy = Policy {
                rules: rules(&[rule(Effect::Deny, name, None)], Effect::Allow),
                ..Policy::default()
            };
            assert_eq!(decide(&policy, call()), "deny", "{name} {offered}");
            let scoped = Policy {
                scoped: Some(Scoped::new(None, vec![name.to_owned()], Vec::new())),
                ..Policy::default()
            };
            assert_eq!(decide(&scoped, call()), "deny", "{name} {offered}");
        }
    }
}

#[test]
fn lists_of_the_scope_take_globs() {
    let table = [
        ("alpha__*", true),
        ("*greet", true),
        ("gr?et", true),
        ("*", true),
        ("beta__*", false),
        ("greet_*", false),
        ("[", false),
    ];
    for (glob, expect) in table {
        let call = || of_plugin("alpha", "greet");
        let policy = |scoped| Policy {
            allow: vec![AllowRule::parse("*", "/w").unwrap()],
            scoped: Some(scoped),
            ..Policy::default()
        };
        let denied = policy(Scoped::new(None, vec![glob.to_owned()], Vec::new()));
        assert_eq!(decide(&denied, call()) == "deny", expect, "{glob}");
        assert_eq!(denied.hides(&call().tool), expect, "{glob}");
        let only = policy(Scoped::new(
            Some(vec![glob.to_owned()]),
            Vec::new(),
            Vec::new(),
        ));
        assert_eq!(decide(&only, call()) == "allow", expect, "{glob}");
        let constraint = Constraint::new(&[], vec!["/elsewhere".into()]).unwrap();
        let constraints = vec![(glob.to_owned(), constraint)];
        let constrained = policy(Scoped::new(None, Vec::new(), constraints));
        assert_eq!(decide(&constrained, call()) == "deny", expect, "{glob}");
        let tool = call().tool;
        let notes = denied.idle_rules([&*tool], &|_| false);
        assert_eq!(notes.is_empty(), expect, "{glob} {notes:?}");
    }
}

#[test]
fn a_list_without_patterns_says_so() {
    let named = NamedTool {
        key: "tools.governance.always_available".to_owned(),
        tool: "mcp_github_*".to_owned(),
    };
    assert_eq!(
        unknown_tools(&[named], [], &|_| true),
        [
            "`tools.governance.always_available`: no tool is named `mcp_github_*`; names here are not patterns"
        ]
    );
}

#[test]
fn a_rule_for_one_plugin_is_for_no_other() {
    let flag = |name: &str| Policy {
        allow: vec![AllowRule::parse(name, "/w").unwrap()],
        ..Policy::default()
    };
    assert_eq!(decide(&flag("greet"), of_plugin("alpha", "greet")), "allow");
    assert_eq!(
        decide(&flag("greet"), of_plugin("beta", "beta__greet")),
        "ask"
    );
    assert_eq!(
        decide(&flag("alpha__greet"), of_plugin("beta", "beta__greet")),
        "ask"
    );
    assert_eq!(
        decide(&flag("alpha__greet"), of_plugin("beta", "greet")),
        "ask"
    );
}

#[test]
fn of_two_rules_for_one_tool_the_stricter_counts() {
    let policy = |short: &str, long: &str| {
        let rules = |action: &str| {
            crate::policy::PermissionRule::new(
                "greet",
                "*",
                match action {
                    "allow" => crate::policy::Action::Allow,
                    "ask" => crate::policy::Action::Ask,
                    _ => crate::policy::Action::Deny,
                },
                "/w",
            )
            .unwrap()
        };
        let tools = [("greet", short), ("alpha__greet", long)];
        let tools = tools.map(|(tool, action)| (tool.to_owned(), vec![rules(action)]));
        Policy {
            permissions: crate::policy::PermissionSource::Rules(crate::policy::Permissions::new(
                tools,
            )),
            ..Policy::default()
        }
    };
    let table = [
        ("allow", "deny", "deny"),
        ("deny", "allow", "deny"),
        ("ask", "allow", "ask"),
        ("allow", "allow", "allow"),
    ];
    for (short, long, expect) in table {
        assert_eq!(
            decide(&policy(short, long), of_plugin("alpha", "greet")),
            expect,
            "{short} {long}"
        );
    }
}

fn tools() -> Vec<Tool> {
    let mut read = call("read", json!({}), &[]).tool;
    Arc::make_mut(&mut read).parameters = crate::argument::Parameters::new(
        json!({"type": "object", "properties": {"path": {"type": "string"}}}),
    )
    .unwrap();
    let bash = super::lab::plain("ls").tool;
    let runs = call("list_runs", json!({}), &[]).tool;
    let greet = of_plugin("alpha", "greet").tool;
    [read, bash, runs, greet].map(Arc::unwrap_or_clone).into()
}

#[test]
fn rules_that_name_no_tool_are_told() {
    let over = |effect, tool: &str| PolicyRuleText {
        paths: vec!["/w/**".to_owned()],
        ..rule(effect, tool, None)
    };
    let policy = Policy {
        allow: [
            "raed",
            "read:/x",
            "alpha__*",
            "sh:ls",
            "beta__greet",
            "later",
        ]
        .map(|text| AllowRule::parse(text, "/w").unwrap())
        .to_vec(),
        permissions: permissions("Shel", &["allow *"]),
        scoped: Some(Scoped::new(
            None,
            vec!["raed".to_owned(), "greet".to_owned()],
            Vec::new(),
        )),
        rules: rules(
            &[
                rule(Effect::Deny, "*", None),
                rule(Effect::Deny, "nothing_*", None),
                over(Effect::Deny, "list_runs"),
                over(Effect::Allow, "greet"),
                over(Effect::Deny, "greet"),
                over(Effect::Allow, "bash"),
            ],
            Effect::Allow,
        ),
        ..Policy::default()
    };
    let told = policy.idle_rules(&tools(), &|name| name == "later");
    let expected = [
        "`--allow raed`: no tool is named `raed`; did you mean `read`?",
        "`--allow beta__greet`: no tool is named `beta__greet`; did you mean `alpha__greet`?",
        "`tools.permissions.shel`: no tool is named `shel`",
        "`tools.scoped.denied_tools`: no tool is named `raed`; did you mean `read`?",
        "tools.policy rule 2: no tool is named `nothing_*`",
        "tools.policy rule 3 has `paths` but no call of `list_runs` names a path, so the rule never matches",
        "tools.policy rule 4 has `paths` but no call of `greet` names a path, so the rule never matches",
    ];
    assert_eq!(told, expected);
}

#[test]
fn settings_that_name_no_tool_are_told() {
    let named = |tool: &str| NamedTool {
        key: "list".to_owned(),
        tool: tool.to_owned(),
    };
    let known = ["read", " READ ", "Shell", "alpha__greet", "greet", "later"];
    let unknown = ["raed", "alpha__*", "nothing\n"];
    let named: Vec<NamedTool> = known.into_iter().chain(unknown).map(named).collect();
    let told = unknown_tools(&named, &tools(), &|name| name == "later");
    let expected = [
        "`list`: no tool is named `raed`; did you mean `read`?",
        "`list`: no tool is named `alpha__*`; names here are not patterns",
        "`list`: no tool is named `nothing`",
    ];
    assert_eq!(told, expected);
}
