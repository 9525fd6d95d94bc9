//! What stays behind of a draft is looked through when its call ends, and what took the place of one is left alone.

use std::fs::{self, Permissions};
use std::os::unix::fs::{MetadataExt as _, PermissionsExt as _};
use std::sync::Arc;

use zeph_core::capability::FsRights;
use zeph_core::draft::is_in_live_draft;
use zeph_core::policy::{AllowRule, Leave, Policy};

use super::{Guest, Tree};
use crate::fs::FsPolicy;

const DRAFT: &str = ".zeph-0123456789abcdef.tmp";

/// A guest that has filled a draft so; `!` in a line stands for it.
fn filled(mut guest: Guest, lines: &[&str]) -> Guest {
    assert_eq!(guest.run(&format!("private {DRAFT}")), "ok");
    for line in lines {
        assert_eq!(guest.run(&line.replace('!', DRAFT)), "ok", "{line}");
    }
    guest
}

#[test]
fn what_programs_obey_in_a_draft_that_stays_behind_is_held_back() {
    let git: &[&str] = &[
        "mkdir !/.git",
        "mkdir !/.git/objects",
        "mkdir !/.git/refs",
        "create !/.git/config [core]",
        "create !/.git/HEAD 1111",
        "create !/f x",
    ];
    let bare: &[&str] = &[
        "mkdir !/b",
        "mkdir !/b/objects",
        "mkdir !/b/refs",
        "create !/b/config x",
        "create !/b/HEAD x",
    ];
    let nested: &[&str] = &[
        "mkdir !/.vscode",
        "create !/.vscode/.envrc x",
        "mkdir !/.cargo",
        "create !/.cargo/config.toml x",
        "mkdir !/conf",
        "symlink conf !/.mise",
    ];
    let cases: &[(&[&str], &[&str], &[&str])] = &[
        (
            git,
            &[".git"],
            &[
                ".git.held-back/HEAD.held-back",
                ".git.held-back/config",
                "f",
            ],
        ),
        (bare, &["b/HEAD"], &["b/HEAD.held-back", "b/config"]),
        (
            nested,
            &[".vscode", ".cargo/config.toml", ".mise"],
            &[
                ".vscode.held-back/.envrc.held-back",
                ".cargo/config.toml.held-back",
                "conf",
            ],
        ),
        (
            &["create !/.envrc x", "create !/.envrc.held-back y"],
            &[".envrc"],
            &[".envrc.held-back-2", ".envrc.held-back"],
        ),
        (&["create !/a x"], &[], &["a"]),
    ];
    for (lines, gone, kept) in cases {
        for is_asked in [true, false] {
            let tree = Tree::new();
            let mut guest = filled(tree.guest(), lines);
            if is_asked {
                let told = guest.ctx.end_drafts();
                assert_eq!(
                    told.len(),
                    usize::from(!gone.is_empty()),
                    "{lines:?}: {told:?}"
                );
                assert!(told.iter().all(|told| told.contains(DRAFT)), "{told:?}");
            }
            // Also when nobody asks: a host function may have panicked.
            drop(guest);
            let has = |name: &str| tree.has(&format!("ws/{DRAFT}/{name}"));
            assert!(gone.iter().all(|name| !has(name)), "{lines:?}");
            assert!(kept.iter().all(|name| has(name)), "{lines:?}");
        }
    }
}

#[test]
fn a_draft_that_got_its_name_is_not_looked_through_again() {
    let tree = Tree::new();
    let policy = FsPolicy::new(&tree.grant(&[("ws", FsRights::ALL)], &[], &[]));
    let leave = leave(&format!("write:{}/out", tree.at("ws").display()));
    let guest = Guest::of(Arc::new(policy.expect("policy").leaving(&leave)));
    let lines = ["create !/.envrc x", "rename ! out"];
    let mut guest = filled(guest, &lines);
    assert_eq!(guest.ctx.end_drafts(), Vec::<String>::new());
    assert!(tree.has("ws/out/.envrc"));
}

/// The leave of a call is not for what others have put into its draft, unseen because it was one.
#[test]
fn what_a_call_has_leave_for_stays_unless_others_could_have_put_it_there() {
    for (is_passed_over, is_left) in [(false, true), (true, false)] {
        let tree = Tree::new();
        let policy = FsPolicy::new(&tree.grant(&[("ws", FsRights::ALL)], &[], &[]));
        let draft = tree.at("ws").join(DRAFT);
        let leave = leave(&format!("write:{}/.vscode/*", draft.display()));
        let guest = Guest::of(Arc::new(policy.expect("policy").leaving(&leave)));
        let mut guest = filled(guest, &["mkdir !/.vscode", "create !/.vscode/a x"]);
        if is_passed_over {
            let about = draft.metadata().expect("metadata");
            assert!(is_in_live_draft(&draft, |_| Some((
                about.dev(),
                about.ino()
            ))));
        }
        assert_eq!(guest.ctx.end_drafts().is_empty(), is_left);
        assert_eq!(draft.join(".vscode").exists(), is_left);
    }
}

#[test]
fn a_draft_that_is_too_large_to_be_looked_through_is_shut() {
    let tree = Tree::new();
    let mut guest = filled(tree.guest(), &["create !/.envrc x", "mkdir !/d"]);
    let draft = tree.at("ws").join(DRAFT);
    for number in 0..1_000 {
        fs::write(draft.join(format!("d/{number}")), "").expect("write");
    }
    let told = guest.ctx.end_drafts();
    let mode = draft.metadata().expect("metadata").permissions().mode();
    fs::set_permissions(&draft, Permissions::from_mode(0o700)).expect("open");
    assert_eq!(mode & 0o777, 0);
    assert!(told.len() == 1 && told[0].contains("is shut"), "{told:?}");
    assert!(!draft.join(".envrc").exists());
}

/// A command may exchange the draft for a directory of its own.
#[test]
fn what_takes_the_place_of_a_draft_is_not_filled() {
    let tree = Tree::new();
    tree.file("ws/n/a", "other").file("ws/n/sub/b", "other");
    let mut guest = filled(tree.guest(), &["create !/a x"]);
    let draft = tree.at("ws").join(DRAFT);
    fs::rename(&draft, tree.at("ws/moved")).expect("rename");
    fs::rename(tree.at("ws/n"), &draft).expect("rename");
    for (line, expected) in [
        ("private !/c", "denied"),
        ("private !/sub/c", "denied"),
        ("mkdir !/c", "not-permitted"),
        ("create !/c x", "not-permitted"),
        ("write !/a x", "not-permitted"),
        ("unlink !/a", "not-permitted"),
        ("rename ! out", "not-permitted"),
        ("lstat !", "no-entry"),
        ("lstat !/a", "no-entry"),
        ("create fine x", "ok"),
        ("create moved/c x", "ok"),
    ] {
        assert_eq!(guest.run(&line.replace('!', DRAFT)), expected, "{line}");
    }
    let told = guest.ctx.end_drafts();
    assert!(told.len() == 1 && told[0].contains("ws/moved"), "{told:?}");
    assert_eq!(tree.text(&format!("ws/{DRAFT}/a")), "other");
}

/// A link with an obeyed name that leads to nothing yet is no reason to make something there.
#[test]
fn no_draft_begins_where_an_obeyed_name_leads() {
    let tree = Tree::new();
    tree.link("ws/.githooks", format!("{DRAFT}/hooks"));
    tree.guest()
        .check(&[(&format!("private {DRAFT}"), "denied")]);
}

/// What an allow rule gives a call of `write`.
fn leave(rule: &str) -> Leave {
    let policy = Policy {
        allow: vec![AllowRule::parse(rule, "/").expect("rule")],
        ..Policy::default()
    };
    Leave::by_rules(&policy, &["write".to_owned()])
}
