//! Rules that observe, ask or deny.

use proptest::prelude::*;
use serde_json::json;

use super::lab::{bash, call, decide, decide_with, plain, rule, word};
use crate::call::ResolvedCall;
use crate::policy::{
    Action, Constraint, Effect, GrantModes, Mode, PermissionRule, PermissionSource, Permissions,
    Policy, PolicyRule, PolicyRuleText, PolicyRules, Scoped, SessionFacts, Trial, Verdict,
    authorise,
};

/// Rules of `tools.policy`, of `tools.permissions` and a constraint, some of them on trial.
#[derive(Debug, Clone)]
struct Said {
    rules: Vec<PolicyRuleText>,
    default_effect: Effect,
    default_mode: Mode,
    permissions: Vec<(String, Action, bool)>,
    constraints: Vec<(String, Mode)>,
}

impl Said {
    /// The same without what only observes.
    fn without_observed(&self) -> Self {
        let mut this = self.clone();
        let observes = Some(Mode::Observe);
        this.rules.retain(|rule| rule.mode != observes);
        this.permissions.retain(|(_, _, observed)| !observed);
        this.constraints.retain(|(_, mode)| *mode != Mode::Observe);
        if this.default_mode == Mode::Observe {
            (this.default_effect, this.default_mode) = (Effect::Allow, Mode::Deny);
        }
        this
    }

    fn policy(&self) -> Policy {
        let rules = self.rules.iter();
        let rules = rules.map(|rule| PolicyRule::new(rule, "/w").unwrap());
        let sections = vec![("tools.policy".to_owned(), rules.collect())];
        let rules = PolicyRules::new(sections, self.default_effect).unwrap();
        let rules = rules.with_default_mode(self.default_mode);
        let permissions = |with_observed: bool| {
            let rules = self.permissions.iter();
            let rules = rules.filter(|(_, _, observes)| with_observed || !observes);
            let rules = rules.map(|(pattern, action, observes)| {
                let rule = PermissionRule::new("bash", pattern, *action, "/w").unwrap();
                if *observes { rule.observing() } else { rule }
            });
            let rules: Vec<_> = rules.collect();
            match rules.is_empty() {
                true => PermissionSource::default(),
                false => PermissionSource::Rules(Permissions::new([("bash".to_owned(), rules)])),
            }
        };
        let constraints = self.constraints.iter().map(|(pattern, mode)| {
            let constraint = Constraint::new(std::slice::from_ref(pattern), Vec::new()).unwrap();
            ("bash".to_owned(), constraint.with_mode(*mode))
        });
        let scoped = Scoped::new(None, Vec::new(), constraints.collect());
        Policy {
            scoped: Some(scoped.in_force()),
            permissions: permissions(false),
            trial: Some(
                Trial {
                    scoped: Some(scoped),
                    rules: rules.on_trial().or_else(|| Some(rules.clone())),
                    permissions: permissions(true),
                }
                .into(),
            ),
            rules: Some(rules),
            ..Policy::default()
        }
    }
}

fn mode() -> impl Strategy<Value = Mode> {
    prop_oneof![Just(Mode::Observe), Just(Mode::Ask), Just(Mode::Deny)]
}

fn pattern() -> impl Strategy<Value = String> {
    let words = prop::sample::select(vec!["make", "ls", "git", "rm", "*"]);
    (words, any::<bool>()).prop_map(|(word, open)| match (word, open) {
        ("*", _) | (_, false) => word.to_owned(),
        (word, true) => format!("{word}*"),
    })
}

fn policy_rule() -> impl Strategy<Value = PolicyRuleText> {
    let effect = prop_oneof![Just(Effect::Allow), Just(Effect::Deny)];
    let tool = prop::sample::select(vec!["bash", "*", "write"]);
    let text = prop::sample::select(vec!["make", "^ls", "git", "."]);
    (effect, tool, text, prop::option::of(mode())).prop_map(|(effect, tool, text, mode)| {
        PolicyRuleText {
            // A rule that allows either does or observes.
            mode: mode.filter(|mode| effect == Effect::Deny || *mode == Mode::Observe),
            ..rule(effect, tool, Some(text))
        }
    })
}

fn said() -> impl Strategy<Value = Said> {
    let action = prop_oneof![Just(Action::Allow), Just(Action::Ask), Just(Action::Deny)];
    let constraint = prop::sample::select(vec!["make", "rm -rf", "git push"]);
    (
        prop::collection::vec(policy_rule(), 0..6),
        prop_oneof![Just(Effect::Allow), Just(Effect::Deny)],
        mode(),
        prop::collection::vec((pattern(), action, any::<bool>()), 0..6),
        prop::collection::vec((constraint.prop_map(str::to_owned), mode()), 0..3),
    )
        .prop_map(
            |(rules, default_effect, default_mode, permissions, constraints)| Said {
                rules,
                default_effect,
                default_mode,
                permissions,
                constraints,
            },
        )
}

fn line() -> impl Strategy<Value = ResolvedCall> {
    let part = prop::sample::select(vec![
        "make test",
        "ls -l",
        "git push",
        "rm -rf build",
        "cargo run",
        "?",
    ]);
    prop::collection::vec(part, 1..4).prop_map(|parts| {
        let parts = parts.join(" | ");
        bash(&parts.replace(" | ", " && "), &parts)
    })
}

proptest! {
    #[test]
    fn observing_decides_nothing(said in said(), call in line()) {
        let facts = SessionFacts::default();
        let observing = authorise(&said.policy(), &facts, call.clone());
        let without = authorise(&said.without_observed().policy(), &facts, call);
        prop_assert_eq!(word(&observing), word(&without), "{:?}", said);
        let deciding = |trace: &[crate::policy::TraceStep]| {
            let steps = trace.iter().filter(|step| step.would.is_none());
            steps.map(|step| (step.check, step.verdict)).collect::<Vec<_>>()
        };
        prop_assert_eq!(deciding(observing.trace()), deciding(without.trace()));
    }

    #[test]
    fn asking_is_stricter_than_allowing_and_laxer_than_denying(call in line(), text in prop::sample::select(vec!["make", "git", "."])) {
        let with = |mode| {
            let said = Said {
                rules: vec![PolicyRuleText { mode: Some(mode), ..rule(Effect::Deny, "bash", Some(text)) }],
                default_effect: Effect::Allow,
                default_mode: Mode::Deny,
                permissions: vec![("*".to_owned(), Action::Allow, false)],
                constraints: Vec::new(),
            };
            let rank = ["allow", "ask", "deny"];
            let decided = decide(&said.policy(), call.clone());
            rank.iter().position(|word| *word == decided)
        };
        prop_assert!(with(Mode::Observe) <= with(Mode::Ask));
        prop_assert!(with(Mode::Ask) <= with(Mode::Deny));
    }
}

/// What the rules on trial would have said of `make`.
fn observed(said: &Said) -> Vec<(String, Verdict)> {
    let decision = authorise(&said.policy(), &SessionFacts::default(), plain("make"));
    let steps = decision.trace().iter();
    let observed = steps.filter_map(|step| Some((step.rule.clone()?, step.would?)));
    observed.collect()
}

fn nothing() -> Said {
    Said {
        rules: Vec::new(),
        default_effect: Effect::Allow,
        default_mode: Mode::Deny,
        permissions: Vec::new(),
        constraints: Vec::new(),
    }
}

#[test]
fn what_would_have_been_is_in_the_trace() {
    let deny = PolicyRuleText {
        mode: Some(Mode::Observe),
        ..rule(Effect::Deny, "bash", Some("make"))
    };
    let said = Said {
        rules: vec![rule(Effect::Allow, "write", None), deny.clone()],
        ..nothing()
    };
    let name = "tools.policy rule 2".to_owned();
    assert_eq!(observed(&said), [(name, Verdict::Deny)]);
    let earlier = Said {
        rules: vec![rule(Effect::Allow, "bash", None), deny],
        ..nothing()
    };
    assert_eq!(observed(&earlier), [], "an earlier rule decides");
    let default = Said {
        default_effect: Effect::Deny,
        default_mode: Mode::Observe,
        ..nothing()
    };
    let name = "tools.policy.default_effect".to_owned();
    assert_eq!(observed(&default), [(name, Verdict::Deny)]);
    let permission = Said {
        permissions: vec![("make*".to_owned(), Action::Deny, true)],
        ..nothing()
    };
    let name = "tools.permissions.bash `make*`".to_owned();
    assert_eq!(observed(&permission), [(name, Verdict::Deny)]);
    let constraint = Said {
        constraints: vec![("make".to_owned(), Mode::Observe)],
        ..nothing()
    };
    let name = "tools.scoped.constraints".to_owned();
    assert_eq!(observed(&constraint), [(name, Verdict::Deny)]);
    assert_eq!(observed(&nothing()), []);
}

#[test]
fn a_rule_can_ask_where_it_would_deny() {
    let asks = Said {
        rules: vec![PolicyRuleText {
            mode: Some(Mode::Ask),
            ..rule(Effect::Deny, "bash", Some("make"))
        }],
        permissions: vec![("*".to_owned(), Action::Allow, false)],
        ..nothing()
    };
    assert_eq!(decide(&asks.policy(), plain("make")), "ask");
    assert_eq!(decide(&asks.policy(), plain("ls")), "allow");
    let default = Said {
        default_effect: Effect::Deny,
        default_mode: Mode::Ask,
        ..asks
    };
    assert_eq!(decide(&default.policy(), plain("ls")), "ask");
    let constraint = Said {
        constraints: vec![("make".to_owned(), Mode::Ask)],
        permissions: vec![("*".to_owned(), Action::Allow, false)],
        ..nothing()
    };
    assert_eq!(decide(&constraint.policy(), plain("make")), "ask");
    assert_eq!(decide(&constraint.policy(), plain("ls")), "allow");
}

#[test]
fn nothing_on_trial_hides_a_path() {
    let deny = PolicyRuleText {
        paths: vec!["/w/secret/**".to_owned()],
        mode: Some(Mode::Observe),
        ..rule(Effect::Deny, "*", None)
    };
    let hides = |mode| {
        let rules = vec![PolicyRuleText {
            mode: Some(mode),
            ..deny.clone()
        }];
        let said = Said { rules, ..nothing() };
        let policy = said.policy();
        let facts = SessionFacts::default();
        let grep = call("grep", json!({"path": "/w"}), &["/w"]);
        let of_jail = policy.rules.as_ref().unwrap().hidden_from_commands();
        (
            !policy.hidden_paths(&facts, &grep).is_empty(),
            !of_jail.paths.is_empty(),
        )
    };
    assert_eq!(hides(Mode::Deny), (true, true));
    assert_eq!(hides(Mode::Ask), (false, false));
    assert_eq!(hides(Mode::Observe), (false, false));
}

#[test]
fn grants_ask_and_are_observed() {
    let modes = |mode| {
        let mut modes = GrantModes::default();
        modes.add(mode, "host example.org".to_owned());
        modes
    };
    let read = || call("read", json!({"path": "/w/a"}), &["/w/a"]);
    for (mode, expect) in [
        (Mode::Observe, "allow"),
        (Mode::Ask, "ask"),
        (Mode::Deny, "allow"),
    ] {
        let modes = modes(mode);
        let facts = SessionFacts {
            grants: &modes,
            ..SessionFacts::default()
        };
        assert_eq!(decide_with(&Policy::default(), &facts, read()), expect);
        let decision = authorise(&Policy::default(), &facts, read());
        let mut steps = decision.trace().iter();
        let is_observed = steps.any(|step| step.would == Some(Verdict::Deny));
        assert_eq!(is_observed, mode == Mode::Observe);
    }
}
