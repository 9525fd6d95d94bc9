//! Which check wins.

use proptest::prelude::*;
use serde_json::json;

use super::lab::{bash, call, decide, decide_with, lists, permissions, plain, rule, rules, word};
use crate::call::ResolvedCall;
use crate::lifetime::Lifetime;
use crate::policy::pattern::Pattern;
use crate::policy::{
    AllowRule, CallTrust, CommandPattern, Constraint, Decision, Effect, Mode, Policy, PolicyRule,
    PolicyRuleText, PolicyRules, Scoped, SessionFacts, ToolScope, TrustBlock, TrustLevel, Verdict,
    authorise,
};
use crate::principal::{Operator, Principal};

fn by_person(mut call: ResolvedCall) -> ResolvedCall {
    call.frame.principal = Principal::Operator(Operator::OF_A_TEST);
    call
}

/// What a program and a person get for `make`.
fn check(policy: &Policy, facts: &SessionFacts<'_>, program: &str, person: &str, what: &str) {
    assert_eq!(decide_with(policy, facts, plain("make")), program, "{what}");
    let typed = by_person(plain("make"));
    assert_eq!(decide_with(policy, facts, typed), person, "{what}, typed");
}

fn allow(text: &str) -> Vec<AllowRule> {
    vec![AllowRule::parse(text, "/w").unwrap()]
}

#[test]
fn matrix() {
    let facts = SessionFacts::default();
    let none = Policy::default;
    check(&none(), &facts, "ask", "allow", "no rule");
    let allowed = || Policy {
        allow: allow("bash"),
        ..none()
    };
    check(&allowed(), &facts, "allow", "allow", "--allow");
    let effects = |effect| rules(&[rule(effect, "bash", None)], Effect::Deny);
    let policy = Policy {
        rules: effects(Effect::Allow),
        ..none()
    };
    check(&policy, &facts, "allow", "allow", "policy allows");
    let policy = Policy {
        rules: effects(Effect::Deny),
        ..allowed()
    };
    check(&policy, &facts, "deny", "deny", "policy denies");
    let policy = Policy {
        rules: rules(&[], Effect::Deny),
        ..allowed()
    };
    check(&policy, &facts, "deny", "deny", "default effect");
    let policy = Policy {
        rules: rules(&[], Effect::Allow),
        ..none()
    };
    check(&policy, &facts, "ask", "allow", "a default allows nothing");
    for (action, program, person) in [
        ("allow", "allow", "allow"),
        ("ask", "ask", "allow"),
        ("deny", "deny", "deny"),
    ] {
        let policy = Policy {
            permissions: permissions("bash", &[&format!("{action} make*")]),
            rules: effects(Effect::Allow),
            ..none()
        };
        check(&policy, &facts, program, person, action);
    }
    let policy = Policy {
        permissions: permissions("bash", &["ask *"]),
        ..allowed()
    };
    check(&policy, &facts, "allow", "allow", "--allow beats ask");
    let policy = Policy {
        permissions: permissions("bash", &["deny *"]),
        ..allowed()
    };
    check(
        &policy,
        &facts,
        "deny",
        "deny",
        "--allow does not beat deny",
    );
}

#[test]
fn scope_trust_and_quota_hold_for_everybody() {
    let allowed = || Policy {
        allow: allow("*"),
        ..Policy::default()
    };
    let facts = SessionFacts::default();
    let scoped = |only: Option<&[&str]>, but: &[&str]| {
        let texts = |names: &[&str]| names.iter().map(|name| (*name).to_owned()).collect();
        Policy {
            scoped: Some(Scoped::new(only.map(texts), texts(but), Vec::new())),
            ..allowed()
        }
    };
    check(
        &scoped(None, &["Shell"]),
        &facts,
        "deny",
        "deny",
        "denied tool",
    );
    check(
        &scoped(None, &["read"]),
        &facts,
        "allow",
        "allow",
        "other tool",
    );
    check(
        &scoped(Some(&["read"]), &[]),
        &facts,
        "deny",
        "deny",
        "not allowed",
    );
    check(
        &scoped(Some(&["sh"]), &["bash"]),
        &facts,
        "allow",
        "allow",
        "list of allowed wins",
    );
    let run_as = Policy {
        scope: Some(ToolScope {
            run_as_user: Some("zeph".to_owned()),
            ..ToolScope::default()
        }),
        ..allowed()
    };
    check(&run_as, &facts, "deny", "deny", "another user");
    let same = SessionFacts {
        user: Some("zeph"),
        ..facts
    };
    check(&run_as, &same, "allow", "allow", "runs as `zeph`");
    let root = SessionFacts {
        is_root: true,
        ..facts
    };
    check(
        &run_as,
        &root,
        "deny",
        "deny",
        "root, which is another user",
    );
    let blocked = CallTrust {
        block: Some(TrustBlock {
            rule: "tools.anomaly".to_owned(),
            subject: "bash".to_owned(),
            reason: "15 of its last 20 calls failed".to_owned(),
            reset: "zeph-host trust reset bash".to_owned(),
        }),
        ..CallTrust::FULL
    };
    let distrusted = SessionFacts {
        trust: &blocked,
        ..facts
    };
    check(&allowed(), &distrusted, "deny", "deny", "blocked tool");
    let Decision::Deny(refusal) = authorise(&allowed(), &distrusted, plain("make")) else {
        panic!("a blocked tool is refused");
    };
    assert_eq!(refusal.rule, "tools.anomaly");
    assert!(
        refusal
            .failure
            .message
            .contains("`zeph-host trust reset bash`")
    );
    let distrusted = CallTrust {
        caller: TrustLevel::Blocked,
        ..CallTrust::FULL
    };
    let session = SessionFacts {
        trust: &distrusted,
        ..facts
    };
    check(&allowed(), &session, "deny", "deny", "blocked session");
    let limited = Policy {
        calls_max: Some(3),
        ..allowed()
    };
    for (calls_made, expect) in [(0, "allow"), (2, "allow"), (3, "deny"), (u32::MAX, "deny")] {
        let facts = SessionFacts {
            calls_made,
            ..facts
        };
        check(&limited, &facts, expect, expect, "quota");
    }
    let full = SessionFacts {
        calls_made: 3,
        ..facts
    };
    let Decision::Deny(refusal) = authorise(&limited, &full, plain("make")) else {
        panic!("the quota must refuse");
    };
    assert_eq!(refusal.rule, "quota");
    let expect = "Tool call quota exceeded (session limit: 3 calls, `tools.max_tool_calls_per_session`). No further tool calls are allowed this session.";
    assert_eq!(refusal.failure.message, expect);
}

#[test]
fn nothing_runs_by_default_where_a_capability_is_required() {
    let read = || call("read", json!({"path": "a"}), &["/w/a"]);
    let mut policy = Policy {
        scope: Some(ToolScope {
            require_capability: true,
            ..ToolScope::default()
        }),
        ..Policy::default()
    };
    assert_eq!(decide(&Policy::default(), read()), "allow");
    assert_eq!(decide(&policy, read()), "ask");
    policy.allow = allow("read:*");
    assert_eq!(decide(&policy, read()), "allow");
}

#[test]
fn approvals_answer_questions_and_lift_constraints_only() {
    let approved = SessionFacts {
        approval: Some(Lifetime::Once),
        ..SessionFacts::default()
    };
    let Decision::Allow(call) = authorise(&Policy::default(), &approved, plain("make")) else {
        panic!("an approved call runs");
    };
    assert_eq!(
        (call.rule(), call.approval()),
        ("approved once", Some(Lifetime::Once))
    );
    let free = Policy {
        allow: allow("bash"),
        ..Policy::default()
    };
    let Decision::Allow(call) = authorise(&free, &approved, plain("make")) else {
        panic!("an allowed call runs");
    };
    assert_eq!(
        call.approval(),
        None,
        "an approval that is not needed is kept"
    );
    let denied = Policy {
        permissions: lists(),
        ..Policy::default()
    };
    assert_eq!(decide_with(&denied, &approved, plain("sudo x")), "deny");
    let constraint = Constraint::new(&["make".to_owned()], Vec::new()).unwrap();
    let constrained = Policy {
        scoped: Some(Scoped::new(
            None,
            Vec::new(),
            vec![("bash".to_owned(), constraint)],
        )),
        ..free
    };
    let Decision::Deny(refusal) = authorise(&constrained, &SessionFacts::default(), plain("make"))
    else {
        panic!("a constraint refuses");
    };
    assert!(refusal.can_be_approved);
    let Decision::Allow(call) = authorise(&constrained, &approved, by_person(plain("make"))) else {
        panic!("an approval lifts a constraint");
    };
    assert_eq!(call.approval(), Some(Lifetime::Once));
}

#[test]
fn constraints_over_paths() {
    let constraint = Constraint::new(&["re:secret".to_owned()], vec!["/w/out".into()]).unwrap();
    let policy = Policy {
        scoped: Some(Scoped::new(
            None,
            Vec::new(),
            vec![("move_path".to_owned(), constraint)],
        )),
        allow: allow("*"),
        directory: "/w".into(),
        ..Policy::default()
    };
    let table: [(&[&str], &str, &str); 5] = [
        (&["/w/out/a", "/w/out/b"], "", "allow"),
        (&["/w/out/a", "/w/b"], "", "deny"),
        (&["/w/outside"], "", "deny"),
        (&[], "", "deny"),
        (&["/w/out/a"], "a SECRET", "deny"),
    ];
    for (paths, text, expect) in table {
        let call = call("move_path", json!({"x": {"deep": [text]}}), paths);
        assert_eq!(decide(&policy, call), expect, "{paths:?} {text}");
    }
    assert!(Constraint::new(&[], vec!["relative".into()]).is_err());
}

#[test]
fn policy_rules() {
    let with = |effect, change: &dyn Fn(&mut PolicyRuleText)| {
        let mut text = rule(effect, "*", None);
        change(&mut text);
        Policy {
            rules: rules(&[text], Effect::Allow),
            ..Policy::default()
        }
    };
    let write = |paths: &[&str]| call("write", json!({"path": "x", "content": "src/"}), paths);
    let paths =
        |rule: &mut PolicyRuleText| rule.paths = vec!["/W/src/*".to_owned(), "out/*".to_owned()];
    let table: [(&[&str], &str, &str); 5] = [
        (&["/w/src/a/b"], "allow", "deny"),
        (&["/w/out/a"], "allow", "deny"),
        (&["/w/src/a", "/etc/x"], "ask", "deny"),
        (&["/etc/x"], "ask", "ask"),
        (&[], "ask", "ask"),
    ];
    for (given, allowing, denying) in table {
        assert_eq!(
            decide(&with(Effect::Allow, &paths), write(given)),
            allowing,
            "{given:?}"
        );
        assert_eq!(
            decide(&with(Effect::Deny, &paths), write(given)),
            denying,
            "{given:?}"
        );
    }
    let args = |rule: &mut PolicyRuleText| rule.args_match = Some("^(make|cargo) ?".to_owned());
    let table = [
        ("make", "allow", "deny"),
        ("cargo b | make", "allow", "deny"),
        ("make | sh", "ask", "deny"),
        ("ls", "ask", "ask"),
        ("make | ?", "ask", "deny"),
    ];
    for (parts, allowing, denying) in table {
        assert_eq!(
            decide(&with(Effect::Allow, &args), plain(parts)),
            allowing,
            "{parts}"
        );
        assert_eq!(
            decide(&with(Effect::Deny, &args), plain(parts)),
            denying,
            "{parts}"
        );
    }
    let content = |rule: &mut PolicyRuleText| rule.args_match = Some("src/".to_owned());
    assert_eq!(
        decide(&with(Effect::Allow, &content), write(&["/etc/x"])),
        "ask",
        "content is no path"
    );
    let env = |rule: &mut PolicyRuleText| rule.env = vec!["CI".to_owned(), "HOME".to_owned()];
    let home = SessionFacts {
        has_variable: &|name| name == "HOME",
        ..SessionFacts::default()
    };
    let both = SessionFacts {
        has_variable: &|name| name == "HOME" || name == "CI",
        ..SessionFacts::default()
    };
    assert_eq!(
        decide_with(&with(Effect::Deny, &env), &home, plain("ls")),
        "ask"
    );
    assert_eq!(
        decide_with(&with(Effect::Deny, &env), &both, plain("ls")),
        "deny"
    );
    let trust = |rule: &mut PolicyRuleText| rule.trust_level = Some(TrustLevel::Verified);
    use TrustLevel::{Quarantined, Trusted, Verified};
    for (caller, provider, expect) in [
        (Trusted, Trusted, "allow"),
        (Verified, Trusted, "allow"),
        (Trusted, Verified, "allow"),
        (Quarantined, Trusted, "ask"),
        (Trusted, Quarantined, "ask"),
    ] {
        let level = CallTrust {
            caller,
            provider,
            block: None,
        };
        let facts = SessionFacts {
            trust: &level,
            ..SessionFacts::default()
        };
        assert_eq!(
            decide_with(&with(Effect::Allow, &trust), &facts, plain("ls")),
            expect
        );
    }
}

#[test]
fn sections_are_asked_in_order() {
    let compiled = |effect| PolicyRule::new(&rule(effect, " Shell ", None), "/w").unwrap();
    for (first, second, expect) in [
        (Effect::Allow, Effect::Deny, "allow"),
        (Effect::Deny, Effect::Allow, "deny"),
    ] {
        let sections = vec![
            ("tools.policy".to_owned(), vec![compiled(first)]),
            ("tools.authorization".to_owned(), vec![compiled(second)]),
        ];
        let policy = Policy {
            rules: Some(PolicyRules::new(sections, Effect::Deny).unwrap()),
            ..Policy::default()
        };
        assert_eq!(decide(&policy, plain("ls")), expect);
    }
    let many = vec![compiled(Effect::Allow); 257];
    assert!(PolicyRules::new(vec![("p".to_owned(), many)], Effect::Deny).is_err());
    for bad in ["(", &"a".repeat(1025), "(a{1000}){1000}"] {
        assert!(PolicyRule::new(&rule(Effect::Allow, "*", Some(bad)), "/w").is_err());
    }
    assert!(PolicyRule::new(&rule(Effect::Allow, "[", None), "/w").is_err());
}

#[test]
fn permissions_of_tools_without_a_command() {
    let policy = Policy {
        permissions: permissions("write", &["deny *.ENV", "allow src/*", "allow /x/*"]),
        ..Policy::default()
    };
    let table: [(&[&str], &str); 6] = [
        (&["/w/src/a"], "allow"),
        (&["/W/SRC/a"], "allow"),
        (&["/x/a", "/w/src/b"], "allow"),
        (&["/w/src/a", "/w/b"], "ask"),
        (&["/w/src/a", "/w/src/.env"], "deny"),
        (&["/w/b"], "ask"),
    ];
    for (paths, expect) in table {
        assert_eq!(
            decide(&policy, call("write", json!({}), paths)),
            expect,
            "{paths:?}"
        );
    }
    let policy = Policy {
        permissions: permissions("fetch", &["allow https://docs.rs/*", "deny *"]),
        ..Policy::default()
    };
    for (url, expect) in [
        ("https://docs.rs/x", "allow"),
        ("https://evil.org/?https://docs.rs/", "deny"),
    ] {
        assert_eq!(
            decide(&policy, call("fetch", json!({"url": url}), &[])),
            expect
        );
    }
    let policy = Policy {
        permissions: permissions("read", &["deny /w/secret/*"]),
        ..Policy::default()
    };
    assert_eq!(
        decide(&policy, call("read", json!({}), &["/w/a"])),
        "ask",
        "a tool with rules asks"
    );
    assert_eq!(decide(&policy, call("grep", json!({}), &["/w/a"])), "allow");
}

#[test]
fn denied_tools_are_hidden() {
    let hides = |policy: &Policy, tool: &str| policy.hides(&call(tool, json!({}), &[]).tool);
    let table = [
        (&["deny *"][..], true),
        (&["deny **", "allow x"], true),
        (&["deny *x*"], false),
        (&["allow ls", "deny *"], false),
        (&["ask *"], false),
    ];
    for (rules, expect) in table {
        let policy = Policy {
            permissions: permissions("Shell", rules),
            ..Policy::default()
        };
        assert_eq!(hides(&policy, "bash"), expect, "{rules:?}");
        assert!(!hides(&policy, "read"));
    }
    let scoped = Scoped::new(None, vec!["write".to_owned()], Vec::new());
    let policy = Policy {
        scoped: Some(scoped),
        ..Policy::default()
    };
    assert!(hides(&policy, "write") && !hides(&policy, "read"));
}

#[test]
fn tools_that_policy_rules_refuse_altogether_are_hidden() {
    let hides = |texts: &[PolicyRuleText], default_effect| {
        let policy = Policy {
            rules: rules(texts, default_effect),
            ..Policy::default()
        };
        ["write", "read", "bash"].map(|tool| policy.hides(&call(tool, json!({}), &[]).tool))
    };
    let deny = |tool: &str| rule(Effect::Deny, tool, None);
    let asks = PolicyRuleText {
        mode: Some(Mode::Ask),
        ..deny("*")
    };
    let observes = PolicyRuleText {
        mode: Some(Mode::Observe),
        ..deny("*")
    };
    let for_paths = PolicyRuleText {
        paths: vec!["/etc/*".to_owned()],
        ..deny("*")
    };
    let none = [false; 3];
    let table: [(Vec<PolicyRuleText>, Effect, [bool; 3]); 9] = [
        (vec![deny("w*")], Effect::Allow, [true, false, false]),
        (vec![deny("sh")], Effect::Allow, [false, false, true]),
        (
            vec![rule(Effect::Allow, "bash", Some("^ls")), deny("*")],
            Effect::Allow,
            [true, true, false],
        ),
        (
            vec![rule(Effect::Allow, "read", None)],
            Effect::Deny,
            [true, false, true],
        ),
        (
            vec![rule(Effect::Deny, "*", Some("x"))],
            Effect::Allow,
            none,
        ),
        (vec![for_paths], Effect::Allow, none),
        (vec![asks.clone()], Effect::Allow, none),
        (vec![asks], Effect::Deny, none),
        (vec![observes], Effect::Allow, none),
    ];
    for (texts, default_effect, expect) in table {
        assert_eq!(hides(&texts, default_effect), expect, "{texts:?}");
    }
}

#[test]
fn the_trace_has_a_line_for_every_check() {
    let decision = authorise(&Policy::default(), &SessionFacts::default(), plain("make"));
    let checks: Vec<_> = decision.trace().iter().map(|step| step.check).collect();
    let expect = [
        "scoped",
        "scope",
        "policy",
        "permissions",
        "built-in",
        "directories",
        "obeyed",
        "analysis",
        "addresses",
        "sequences",
        "flow",
        "grants",
        "trust",
        "quota",
        "default",
    ];
    assert_eq!(checks, expect);
    assert_eq!(decision.rule(), "default: tools that change something ask");
}

/// What holds where no rule allows says nothing of a call that a rule allows.
#[test]
fn the_default_is_in_the_trace_where_it_decides() {
    let allowing = || Policy {
        allow: allow("bash"),
        ..Policy::default()
    };
    for (policy, verdict, has_rule) in [
        (Policy::default(), Verdict::Ask, true),
        (allowing(), Verdict::Pass, false),
    ] {
        let decision = authorise(&policy, &SessionFacts::default(), plain("make"));
        let step = decision.trace().last().unwrap();
        assert_eq!(step.check, "default");
        assert_eq!((step.verdict, step.rule.is_some()), (verdict, has_rule));
    }
}

/// Rules and lines over few words, so that they meet often.
const PATTERNS: [&str; 8] = ["*", "a*", "b *", "*c*", "a b", "*| sh", "?", "a b && c"];
const LINES: [&str; 8] = [
    "a b",
    "a b | c",
    "^env | a b",
    "c",
    "b x",
    "a b | ?",
    "/x/a b",
    "",
];

proptest! {
    /// Patterns that need no regular expression mean what the glob library says.
    #[test]
    fn simple_patterns_are_globs(pattern in "[ab*/ ]{0,8}", text in "[abAB/ \n]{0,12}") {
        prop_assume!(!pattern.contains("**"));
        let ours = Pattern::new(&pattern).unwrap().fits(&text.to_lowercase());
        let glob = globset::GlobBuilder::new(&pattern).case_insensitive(true).build().unwrap();
        prop_assert_eq!(ours, glob.compile_matcher().is_match(&text));
    }

    #[test]
    fn a_further_deny_never_opens(
        given in prop::collection::vec((0..3_usize, 0..8_usize), 0..5),
        allows in prop::collection::vec(0..8_usize, 0..3),
        policies in prop::collection::vec((any::<bool>(), 0..8_usize), 0..3),
        at in 0..6_usize,
        denied in 0..8_usize,
        line in 0..8_usize,
        kind in 0..3_usize,
    ) {
        let texts: Vec<String> = given.iter().map(|(action, pattern)| {
            format!("{} {}", ["allow", "ask", "deny"][*action], PATTERNS[*pattern])
        }).collect();
        let policy_rules: Vec<_> = policies.iter().map(|(deny, pattern)| {
            let effect = if *deny { Effect::Deny } else { Effect::Allow };
            rule(effect, "bash", Some(["a", "b", "c", "^a b$", ".", "x", "env", "sh"][*pattern]))
        }).collect();
        let policy = |texts: &[String], policy_rules: &[PolicyRuleText], constraint: Option<&str>, reverse| {
            let texts: Vec<&str> = texts.iter().map(String::as_str).collect();
            let mut allow: Vec<_> = allows.iter().map(|idx| {
                AllowRule::parse(&format!("bash:{}", PATTERNS[*idx]), "/w").unwrap()
            }).collect();
            if reverse { allow.reverse(); }
            let constraints = constraint.map(|text| {
                ("bash".to_owned(), Constraint::new(&[text.to_owned()], Vec::new()).unwrap())
            });
            Policy {
                allow,
                permissions: permissions("bash", &texts),
                rules: rules(policy_rules, Effect::Allow),
                scoped: Some(Scoped::new(None, Vec::new(), constraints.into_iter().collect())),
                ..Policy::default()
            }
        };
        let before = decide(&policy(&texts, &policy_rules, None, false), plain(LINES[line]));
        prop_assert_eq!(before, decide(&policy(&texts, &policy_rules, None, true), plain(LINES[line])));
        let (mut texts, mut policy_rules, mut constraint) = (texts, policy_rules, None);
        match kind {
            0 => texts.insert(at.min(texts.len()), format!("deny {}", PATTERNS[denied])),
            1 => {
                let new = rule(Effect::Deny, "bash", Some(["a", "b", "c", "^a b$", ".", "x", "env", "sh"][denied]));
                policy_rules.insert(at.min(policy_rules.len()), new);
            }
            _ => constraint = Some(["a", "b", "c", "a b", "x", "env", "| sh", "re:."][denied]),
        }
        let after = decide(&policy(&texts, &policy_rules, constraint, false), plain(LINES[line]));
        prop_assert!(before == "allow" || after != "allow", "{} became {}", before, after);
    }

    #[test]
    fn any_text_is_decided(text in "\\PC{0,60}", pattern in "\\PC{1,20}") {
        let parts = text.replace('|', " ");
        let mut policy = Policy { permissions: lists(), denies_network: true, ..Policy::default() };
        if let Ok(pattern) = CommandPattern::new(&pattern) {
            let _fits = pattern.text();
        }
        if let Ok(rule) = AllowRule::parse(&format!("bash:{pattern}"), "/w") {
            policy.allow.push(rule);
        }
        let decision = authorise(&policy, &SessionFacts::default(), bash(&text, &parts));
        prop_assert!(["allow", "ask", "deny"].contains(&word(&decision)));
    }
}
