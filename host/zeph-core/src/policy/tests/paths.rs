//! Rules over paths: the words of commands, and what is hidden from tools that reach it from above.

use serde_json::json;

use super::lab::{call, decide, naming, permissions, rule, rules};
use crate::policy::{
    Constraint, Decision, Effect, PathLayer, Policy, PolicyRuleText, Scoped, SessionFacts,
    authorise,
};

fn over(effect: Effect, tool: &str, paths: &[&str]) -> PolicyRuleText {
    PolicyRuleText {
        paths: paths.iter().map(|path| (*path).to_owned()).collect(),
        ..rule(effect, tool, None)
    }
}

fn policy(texts: &[PolicyRuleText]) -> Policy {
    Policy {
        rules: rules(texts, Effect::Allow),
        permissions: permissions("bash", &["allow *"]),
        ..Policy::default()
    }
}

#[test]
fn a_denied_path_is_denied_to_commands() {
    let table: [(&str, &[&str], &str); 18] = [
        ("secret/**", &["secret/key"], "deny"),
        ("secret/**", &["src", "secret/key"], "deny"),
        ("secret/**", &["SECRET/key"], "deny"),
        ("secret/**", &["secret"], "deny"),
        ("secret/*", &["secret"], "deny"),
        ("secret/**", &["secrets/key"], "allow"),
        ("secret/**", &["src/a"], "allow"),
        ("secret/**", &["?"], "ask"),
        ("secret/**", &["/w/src/…"], "allow"),
        ("secret/**", &["/w/s…"], "ask"),
        ("secret/**", &["/w/…key"], "ask"),
        ("secret/**", &["/w/secret/…"], "ask"),
        ("secret/**", &["/w/secret/…", "secret/a"], "deny"),
        ("**/.env", &["/w/…rs"], "allow"),
        ("**/.env", &["/w/…"], "ask"),
        ("**/.env", &["a/.env"], "deny"),
        ("/etc/*", &["/etc/passwd"], "deny"),
        ("/w", &[], "deny"),
    ];
    for (glob, words, expect) in table {
        let policy = policy(&[over(Effect::Deny, "*", &[glob])]);
        assert_eq!(
            decide(&policy, naming("cat", words)),
            expect,
            "{glob} {words:?}"
        );
    }
}

#[test]
fn a_doubt_is_no_stronger_than_a_refusal_and_stronger_than_a_rule() {
    let denied = over(Effect::Deny, "bash", &["secret/**"]);
    let policy = |texts: &[PolicyRuleText]| policy(texts);
    let texts = [denied.clone(), rule(Effect::Deny, "bash", Some("^cat"))];
    assert_eq!(decide(&policy(&texts), naming("cat", &["?"])), "deny");
    let texts = [denied.clone(), rule(Effect::Allow, "bash", None)];
    assert_eq!(decide(&policy(&texts), naming("cat", &["?"])), "ask");
    let texts = [rule(Effect::Allow, "bash", None), denied];
    assert_eq!(
        decide(&policy(&texts), naming("cat", &["?"])),
        "allow",
        "first match wins"
    );
    let other = over(Effect::Deny, "grep", &["secret/**"]);
    assert_eq!(
        decide(&policy(&[other]), naming("cat", &["?", "secret/a"])),
        "allow"
    );
}

#[test]
fn an_allowed_path_allows_commands_that_name_nothing_else() {
    let policy = Policy {
        rules: rules(
            &[over(Effect::Allow, "bash", &["/w", "/w/**"])],
            Effect::Allow,
        ),
        ..Policy::default()
    };
    assert_eq!(decide(&policy, naming("cat", &["src/a"])), "allow");
    assert_eq!(decide(&policy, naming("cat", &["src/a", "/etc/x"])), "ask");
    assert_eq!(decide(&policy, naming("cat", &["src/a", "?"])), "ask");
    assert_eq!(decide(&policy, naming("cat", &["/w/…"])), "ask");
}

#[test]
fn a_constraint_of_commands_says_that_where_they_work_counts() {
    let refusal = |allowed: &str, words: &[&str]| {
        let constraint = Constraint::new(&[], vec![allowed.into()]).unwrap();
        let policy = Policy {
            scoped: Some(Scoped::new(
                None,
                Vec::new(),
                vec![("bash".to_owned(), constraint)],
            )),
            permissions: permissions("bash", &["allow *"]),
            ..Policy::default()
        };
        match authorise(&policy, &SessionFacts::default(), naming("cat", words)) {
            Decision::Deny(refusal) => refusal.failure.message,
            _ => String::new(),
        }
    };
    let place = "the command works in `/w`, outside the allowed paths";
    for words in [&["out/x"][..], &[]] {
        let told = refusal("/w/out", words);
        assert!(told.contains(place), "{told}");
    }
    let told = refusal("/w/out", &["out/x", "src/x"]);
    assert!(
        told.contains("`/w/src/x` is outside the allowed paths"),
        "{told}"
    );
    assert_eq!(refusal("/w", &["out/x"]), "");
}

#[test]
fn an_unresolved_line_is_in_doubt() {
    let mut call = naming("cat a", &[]);
    call.command.as_mut().unwrap().places = crate::command::LinePlaces::default();
    assert_eq!(
        decide(&policy(&[over(Effect::Deny, "*", &["secret/**"])]), call),
        "ask"
    );
    let hidden = super::lab::bash("eval x", "?");
    assert_eq!(
        decide(&policy(&[over(Effect::Deny, "*", &["secret/**"])]), hidden),
        "ask"
    );
}

fn layers(policy: &Policy, tool: &str) -> Vec<Vec<(bool, String)>> {
    let call = call(tool, json!({}), &[]);
    let lists = policy.hidden_paths(&SessionFacts::default(), &call);
    let shown = |layer: PathLayer| (layer.hides, layer.globs.join(" "));
    lists
        .into_iter()
        .map(|layers| layers.into_iter().map(shown).collect())
        .collect()
}

#[test]
fn denied_paths_are_hidden_in_the_order_of_the_rules() {
    let allow = |tool, glob| over(Effect::Allow, tool, &[glob]);
    let deny = |tool, glob| over(Effect::Deny, tool, &[glob]);
    let hidden = |texts: &[PolicyRuleText], default_effect, tool| {
        let policy = Policy {
            rules: rules(texts, default_effect),
            ..Policy::default()
        };
        layers(&policy, tool)
    };
    let (open, closed) = (Effect::Allow, Effect::Deny);
    let secret = || (true, "/w/secret/**".to_owned());
    assert_eq!(
        hidden(&[deny("*", "secret/**")], open, "grep"),
        [[secret()]]
    );
    assert!(hidden(&[deny("read", "secret/**")], open, "grep").is_empty());
    let texts = [allow("grep", "secret/open/*"), deny("*", "secret/**")];
    let exception = (false, "/w/secret/open/*".to_owned());
    assert_eq!(hidden(&texts, open, "grep"), [[exception, secret()]]);
    let texts = [deny("*", "secret/**"), allow("grep", "src/**")];
    assert_eq!(
        hidden(&texts, open, "grep"),
        [[secret()]],
        "what hides nothing is omitted"
    );
    let texts = [rule(Effect::Allow, "grep", None), deny("*", "secret/**")];
    assert!(hidden(&texts, open, "grep").is_empty(), "first match wins");
    let source = (false, "/w/src/**".to_owned());
    let rest = (true, "*".to_owned());
    assert_eq!(
        hidden(&[allow("grep", "src/**")], closed, "grep"),
        [[source, rest]]
    );
    assert!(hidden(&[allow("grep", "src/**")], open, "grep").is_empty());
}

#[test]
fn denied_paths_of_permissions_are_hidden() {
    let policy = Policy {
        permissions: permissions("grep", &["allow open/*", "deny /w/secret/*", "allow *"]),
        ..Policy::default()
    };
    let expected = [[
        (false, "/w/open/*".to_owned()),
        (true, "/w/secret/*".to_owned()),
    ]];
    assert_eq!(layers(&policy, "grep"), expected);
    assert!(layers(&policy, "read").is_empty());
}
