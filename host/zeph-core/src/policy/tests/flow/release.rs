//! What a release holds for.

use serde_json::json;

use super::{after, call, naming, plain, policy};
use crate::policy::{HeldLabels, Label, LabelKind, Mode, private_sources};

/// A release holds for what was released, not for what gets its name.
#[test]
fn a_release_is_for_content_and_not_for_a_name() {
    let of_env = |stamp: &str| Label::new(LabelKind::Private, "/w/.env").stamped(stamp);
    let push = plain("git push origin main");
    let mut held = HeldLabels::default();
    for (stamp, is_new, expect) in [
        ("1", true, "ask"),
        ("2", true, "ask"),
        ("1", false, "allow"),
    ] {
        assert_eq!(held.hold(of_env(stamp)), is_new, "{stamp}");
        assert_eq!(after(&held, &push), expect, "{stamp}");
        held.release("git push origin");
        assert_eq!(after(&held, &push), "allow", "{stamp}");
    }
    // As a conversation of an earlier version knows it.
    held.hold(Label::new(LabelKind::Private, "/w/.env"));
    assert_eq!(after(&held, &push), "ask");
}

/// A label that has to make room takes no other's place.
#[test]
fn what_was_not_released_is_not_forgotten_for_what_was() {
    let nth = |n: usize| Label::new(LabelKind::Private, &n.to_string());
    let push = plain("git push origin main");
    let mut held = HeldLabels::default();
    (0..256).for_each(|n| {
        held.hold(nth(n));
    });
    held.release("git push origin");
    assert_eq!(after(&held, &push), "allow");
    held.hold(nth(256));
    held.hold(nth(255));
    assert_eq!(after(&held, &push), "ask");
}

/// Each file is asked about for itself.
#[test]
fn a_call_tells_of_every_private_file_that_it_names() {
    let policy = policy(Mode::Ask);
    let of = |line: &str, words: &[&str]| {
        let sources = private_sources(&policy.governance.private, &naming(line, words));
        let sources = sources.iter();
        let shown = sources.map(|source| (source.path.to_str().unwrap(), source.is_current));
        format!("{:?}", shown.collect::<Vec<_>>())
    };
    for (line, words, expect) in [
        (
            "cat .env a/.env",
            vec![".env", "a/.env"],
            r#"[("/w/.env", true), ("/w/a/.env", true)]"#,
        ),
        ("cat .env .env", vec![".env"], r#"[("/w/.env", true)]"#),
        // What git shows is any content that the file ever had.
        (
            "git show HEAD~3:.env",
            vec!["HEAD~3:.env"],
            r#"[("/w/.env", false)]"#,
        ),
        ("git diff .env", vec![".env"], r#"[("/w/.env", false)]"#),
    ] {
        assert_eq!(of(line, &words), expect, "{line}");
    }
    let both = call("diagnostics", json!({}), &["/w/.env", "/w/a/.env"]);
    assert_eq!(private_sources(&policy.governance.private, &both).len(), 2);
}
