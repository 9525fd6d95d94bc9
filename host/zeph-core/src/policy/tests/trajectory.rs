//! Sequences over several calls.

use std::sync::Arc;

use serde_json::json;

use super::lab::{bash, call, decide_with, plain};
use crate::call::ResolvedCall;
use crate::command::{Becomes, Hole};
use crate::id::CallId;
use crate::policy::{
    AllowRule, CallWords, Governance, LearnedCause, MappedCall, Mode, Policy, Sequence,
    SequenceOrigin, SequenceSet, SessionFacts, TrajectoryFacts, authorise, words_of,
};
use crate::principal::{Operator, Principal};
use crate::tool::Backend;

fn sequence(words: &[&str], mode: Mode, idx: usize) -> Sequence {
    let words: Vec<String> = words.iter().map(|word| (*word).to_owned()).collect();
    Sequence::new(&words, mode, SequenceOrigin::Configured(idx)).unwrap()
}

fn learned(words: &[String], cause: LearnedCause, id: i64) -> Sequence {
    let call = CallId::new();
    Sequence::new(
        words,
        Mode::Deny,
        SequenceOrigin::Learned { id, cause, call },
    )
    .unwrap()
}

fn words(call: &ResolvedCall) -> CallWords {
    words_of(call, None)
}

/// What the last of `calls` comes to; everything else would allow it.
fn after(set: &SequenceSet, governance: Governance, calls: &[ResolvedCall]) -> &'static str {
    let known = |word: &str| set.knows(word);
    let mapped = |call| Arc::new(set.map(&words_of(call, Some(&known))));
    let window: Vec<Arc<MappedCall>> = calls.iter().map(mapped).collect();
    let (last, before) = window.split_last().unwrap();
    let policy = Policy {
        allow: vec![AllowRule::parse("bash", "/w").unwrap()],
        governance,
        ..Policy::default()
    };
    let facts = SessionFacts {
        trajectory: Some(TrajectoryFacts {
            sequences: set,
            window: before,
            call: last,
            near: None,
            has_compared: false,
        }),
        ..SessionFacts::default()
    };
    decide_with(&policy, &facts, calls.last().unwrap().clone())
}

fn one(words: &[&str], calls: &[ResolvedCall]) -> &'static str {
    let set = SequenceSet::new(vec![sequence(words, Mode::Deny, 0)]);
    after(&set, Governance::default(), calls)
}

fn read(path: &str) -> ResolvedCall {
    call("read", json!({ "path": path }), &[])
}

fn write(path: &str, content: &str) -> ResolvedCall {
    call("read", json!({ "path": path, "content": content }), &[])
}

#[test]
fn a_sequence_is_found_within_one_call() {
    let wipe = ["bash", "wipe", "-rf", "/"];
    for line in [
        "wipe -rf /",
        "wipe -fr /",
        "wipe -r -f /",
        "wipe / -rf",
        "wipe --recursive --force /",
        "wipe -rfv //",
        "/bin/wipe -rf /./",
        "wipe -rf /*",
        "WIPE -RF /",
        "echo a | wipe -rf /",
    ] {
        assert_eq!(one(&wipe, &[plain(line)]), "deny", "{line}");
    }
    for line in [
        "wipe -rf /tmp/x",
        "wipe -r /",
        "wipe -rf build | ls /",
        "echo wipe | ls -rf /",
        "ls /",
    ] {
        assert_ne!(one(&wipe, &[plain(line)]), "deny", "{line}");
    }
    let credentials = ["read", "config.toml", "password"];
    let content = "a = 1\npassword=\"x\"\n";
    assert_eq!(
        one(&credentials, &[write("/w/a/config.toml", content)]),
        "deny"
    );
    assert_eq!(
        one(&credentials, &[write("/w/config.toml", "a = 1")]),
        "allow"
    );
    assert_eq!(
        one(&credentials, &[write("/w/other.toml", content)]),
        "allow"
    );
}

#[test]
fn a_sequence_is_found_over_calls_in_their_order() {
    let leak = ["read", ".env", "curl"];
    let curl = || plain("curl https://example.org");
    assert_eq!(one(&leak, &[read("/w/.env"), read("/w/a"), curl()]), "deny");
    assert_eq!(one(&leak, &[curl(), read("/w/.env")]), "allow");
    assert_eq!(
        one(&leak, &[read("/w/a"), plain("cat .env"), curl()]),
        "allow"
    );
    // Of a sequence that is complete, further calls are not.
    assert_eq!(one(&leak, &[read("/w/.env"), curl(), plain("ls")]), "allow");
    let twice = ["bash", "make", "bash", "make"];
    assert_ne!(one(&twice, &[plain("make")]), "deny");
    assert_eq!(one(&twice, &[plain("make"), plain("make")]), "deny");
}

#[test]
fn the_mode_says_what_a_sequence_does() {
    for (mode, expect) in [
        (Mode::Observe, "allow"),
        (Mode::Ask, "ask"),
        (Mode::Deny, "deny"),
    ] {
        let set = SequenceSet::new(vec![sequence(&["read", "a"], mode, 3)]);
        assert_eq!(after(&set, Governance::default(), &[read("a")]), expect);
    }
    // What is observed is recorded as what it would have said.
    let set = SequenceSet::new(vec![sequence(&["read", "a"], Mode::Observe, 0)]);
    let mapped = set.map(&words(&read("a")));
    let facts = SessionFacts {
        trajectory: Some(TrajectoryFacts {
            sequences: &set,
            window: &[],
            call: &mapped,
            near: None,
            has_compared: false,
        }),
        ..SessionFacts::default()
    };
    let decision = authorise(&Policy::default(), &facts, read("a"));
    let would: Vec<_> = decision
        .trace()
        .iter()
        .filter_map(|step| step.would)
        .collect();
    assert_eq!(would, [crate::policy::Verdict::Deny]);
    let set = SequenceSet::new(vec![
        sequence(&["read", "a"], Mode::Observe, 0),
        sequence(&["a"], Mode::Deny, 1),
    ]);
    assert_eq!(after(&set, Governance::default(), &[read("a")]), "deny");
    let always = Governance {
        always_available: vec!["Read".to_owned()],
        ..Governance::default()
    };
    assert_eq!(after(&set, always, &[read("a")]), "allow");
}

#[test]
fn what_is_not_known_yet_asks() {
    let mut line = plain("wipe -rf $X");
    let command = &mut line.command.as_mut().unwrap().commands[0];
    command.is_literal = false;
    command.holes.push(Hole {
        argument: 1,
        start: 0,
        end: 2,
        becomes: Becomes::Text,
    });
    assert_eq!(one(&["bash", "wipe", "-rf", "/"], &[line.clone()]), "ask");
    assert_ne!(one(&["bash", "sudo"], &[line]), "deny");
}

#[test]
fn what_was_learned_blocks_where_the_operator_wants_it_and_a_revoked_call_anywhere() {
    let deploy = plain("deploy --now production");
    let set = |cause| SequenceSet::new(vec![learned(&words(&deploy).pattern(), cause, 7)]);
    let risky = || Governance {
        blocks_risky: true,
        ..Governance::default()
    };
    for (cause, watching, blocking) in [
        (LearnedCause::Revoked, "deny", "deny"),
        (LearnedCause::Refused, "allow", "deny"),
        (LearnedCause::Violated, "allow", "deny"),
        (LearnedCause::Failed, "allow", "ask"),
    ] {
        let calls = [deploy.clone()];
        assert_eq!(
            after(&set(cause), Governance::default(), &calls),
            watching,
            "{cause:?}"
        );
        assert_eq!(after(&set(cause), risky(), &calls), blocking, "{cause:?}");
    }
    let near = |threshold| Governance {
        similarity_threshold: threshold,
        ..risky()
    };
    let like = [plain("deploy --now staging")];
    assert_eq!(after(&set(LearnedCause::Revoked), near(0.7), &like), "ask");
    assert_eq!(
        after(&set(LearnedCause::Revoked), near(0.99), &like),
        "allow"
    );
}

#[test]
fn a_sequence_of_the_operator_binds_a_person_and_one_that_was_learned_does_not() {
    let mut typed = read("secret.txt");
    typed.frame.principal = Principal::Operator(Operator::OF_A_TEST);
    let of_operator = SequenceSet::new(vec![sequence(&["read", "secret.txt"], Mode::Deny, 0)]);
    assert_eq!(
        after(&of_operator, Governance::default(), &[typed.clone()]),
        "deny"
    );
    let revoked = learned(&words(&typed).pattern(), LearnedCause::Revoked, 1);
    let revoked = SequenceSet::new(vec![revoked]);
    assert_eq!(after(&revoked, Governance::default(), &[typed]), "allow");
}

#[test]
fn a_block_names_the_sequence_its_origin_and_what_forgives_it() {
    let calls = [read("x.txt")];
    let set = SequenceSet::new(vec![learned(
        &words(&calls[0]).pattern(),
        LearnedCause::Revoked,
        42,
    )]);
    let mapped = set.map(&words(&calls[0]));
    let facts = SessionFacts {
        trajectory: Some(TrajectoryFacts {
            sequences: &set,
            window: &[],
            call: &mapped,
            near: None,
            has_compared: false,
        }),
        ..SessionFacts::default()
    };
    let crate::policy::Decision::Deny(refusal) =
        authorise(&Policy::default(), &facts, calls[0].clone())
    else {
        panic!("it is denied");
    };
    for part in [
        "`read x.txt`",
        "learned from call",
        "revoked",
        "`zeph-host forgive 42`",
    ] {
        assert!(
            refusal.failure.message.contains(part),
            "{}",
            refusal.failure.message
        );
    }
}

#[test]
fn hostile_sequences_and_calls_cost_little() {
    let many = vec!["a".to_owned(); 10_000];
    assert!(Sequence::new(&many, Mode::Deny, SequenceOrigin::Configured(0)).is_err());
    assert!(Sequence::new(&[], Mode::Deny, SequenceOrigin::Configured(0)).is_err());
    let blank = ["  ".to_owned()];
    assert!(Sequence::new(&blank, Mode::Deny, SequenceOrigin::Configured(0)).is_err());
    let full = vec!["a".to_owned(); 63];
    Sequence::new(&full, Mode::Deny, SequenceOrigin::Configured(0)).unwrap();
    // A long content keeps the words that matter.
    let content = format!(
        "{} password {}",
        "x y z ".repeat(50_000),
        "w ".repeat(50_000)
    );
    let set = SequenceSet::new(vec![sequence(&["read", "a", "password"], Mode::Deny, 0)]);
    let calls = [write("a", &content)];
    assert_eq!(after(&set, Governance::default(), &calls), "deny");
    assert!(words(&calls[0]).words().len() <= 4_096);
    let deep = (0..1_000).fold(json!("x"), |inner, _| json!([inner]));
    words(&call("read", json!({ "deep": deep }), &[]));
}

#[test]
fn words_survive_their_store() {
    let mut line = bash("cat a > b", "cat -n a");
    Arc::make_mut(&mut line.tool).backend = Backend::Shell;
    let words = words(&line);
    let text = serde_json::to_string(&words).unwrap();
    assert_eq!(serde_json::from_str::<CallWords>(&text).unwrap(), words);
}
