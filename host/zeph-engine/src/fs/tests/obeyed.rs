//! What programs obey without asking is not changed without leave, whichever way leads there.

use std::path::Path;
use std::sync::Arc;

use zeph_core::capability::FsRights;
use zeph_core::git_config::{GitUser, HomeLink, HomeLinks};
use zeph_core::obeyed::{ANYWHERE, HOME, KEPT_BY_TOOLS, WHERE_PRESENT, name_of};

use super::{Guest, Tree};
use crate::fs::FsPolicy;
use crate::fs::obeyed::{LISTED_PARTS_MAX, name_at_end};
use crate::missing_grant::MissingGrant;

const NO: &str = "not-permitted";

fn tree() -> Tree {
    let tree = Tree::new();
    tree.file("ws/.git/config", "[core]\n")
        .file("ws/.git/hooks/pre-commit", "#!")
        .file("ws/.vscode/tasks.json", "{}")
        .file("ws/src/a.rs", "x")
        .file("ws/proj/.envrc", "x")
        .file("ws/proj/deep/a", "x");
    tree
}

#[test]
fn obeyed_files_are_not_changed_through_any_operation() {
    let tree = tree();
    for mut guest in tree.guests_with(&[("ws", FsRights::ALL)], &[], &[]) {
        guest.check(&[
            ("read .git/config", "[core]\n"),
            ("write .git/config x", NO),
            ("patch .git/hooks/pre-commit x", NO),
            ("cut .vscode/tasks.json", NO),
            ("create .git/hooks/post-commit x", NO),
            ("create .envrc x", NO),
            ("create .ENVRC x", NO),
            ("create sub.code-workspace x", NO),
            ("mkdir .husky", NO),
            ("unlink .git/config", NO),
            ("rename .git/config c", NO),
            ("rename src/a.rs .npmrc", NO),
            ("rename src .git/hooks/more", NO),
            ("rename .git git", NO),
            ("rename proj other", NO),
            ("rename src/a.rs .vscode/settings.json", NO),
            ("link src/a.rs .exrc", NO),
            ("symlink src .vscode", NO),
            ("symlink src .cargo", NO),
            ("symlink src .git", NO),
            ("mkdir fine", "ok"),
            ("rmdir fine", "ok"),
            ("mkdir .cargo", "ok"),
            ("create .cargo/config.toml x", NO),
            ("rmdir .cargo", "ok"),
            ("write src/a.rs y", "ok"),
            ("rename proj/deep other", "ok"),
            ("rename other proj/deep", "ok"),
        ]);
    }
    assert_eq!(tree.text("ws/.git/config"), "[core]\n");
}

#[test]
fn a_directory_that_becomes_an_obeyed_one_is_not_moved() {
    let tree = tree();
    tree.file("ws/fake/config.toml", "x")
        .file("ws/fake2/hooks/x", "x");
    tree.guest().check(&[
        ("rename fake .cargo", NO),
        ("rename fake2 .git2", "ok"),
        ("rename .git2 other/.git", "no-entry"),
        ("rename .git2 proj/.git", NO),
    ]);
}

#[test]
fn links_lead_to_the_object_that_is_obeyed() {
    let tree = tree();
    tree.link("ws/innocent", ".git/hooks")
        .file("ws/conf/editor/tasks.json", "{}")
        .file("ws/conf/x", "x")
        .link("ws/proj/.vscode", "../conf/editor")
        .link("ws/.idea", "conf/editor");
    tree.guest().check(&[
        ("write innocent/pre-commit x", NO),
        ("create innocent/new x", NO),
        ("write conf/editor/tasks.json x", NO),
        ("write conf/x y", "ok"),
    ]);
}

/// Not only what lies above a path leads to it.
#[test]
fn hooks_are_obeyed_where_a_repository_beside_them_was_told_to_find_them() {
    let tree = Tree::new();
    let absolute = format!("[core]\nhooksPath = {}\n", tree.at("ws/absolute").display());
    tree.file(
        "ws/sub/.git/config",
        "[core]\n\thooksPath = ../hk2\n[include]\n\tpath = ../../shared.cfg\n",
    )
    .file("ws/deep/er/.git/config", &absolute)
    .file("ws/b.git/config", "[core]\n\thooksPath = ../bare-hooks\n")
    .file("ws/b.git/HEAD", "ref: refs/heads/main")
    .file("ws/b.git/objects/x", "x")
    .file("ws/b.git/refs/x", "x")
    .file("ws/hk2/pre-commit", "#!")
    .file("ws/absolute/pre-commit", "#!")
    .file("ws/bare-hooks/post-receive", "#!")
    .file("ws/shared.cfg", "[core]\n")
    .file("ws/settings/tasks.json", "{}")
    .file("ws/hk3/pre-commit", "#!")
    .file(
        "ws/node_modules/x/.git/config",
        "[core]\n\thooksPath = ../../../hk3\n",
    )
    .dir("ws/other")
    .link("ws/other/.vscode", "../settings");
    for mut guest in tree.guests_with(&[("ws", FsRights::ALL)], &[], &[]) {
        guest.check(&[
            ("write hk2/pre-commit x", NO),
            ("create hk2/pre-push x", NO),
            ("rename hk2 hk4", NO),
            ("write absolute/pre-commit x", NO),
            ("write bare-hooks/post-receive x", NO),
            ("write shared.cfg x", NO),
            ("write settings/tasks.json x", NO),
            ("write hk3/pre-commit x", "ok"),
        ]);
    }
}

/// Another directory in the place of one above them would bring other hooks.
#[test]
fn what_lies_above_hooks_of_a_repository_beside_it_stays_in_its_place() {
    let tree = Tree::new();
    tree.file("ws/sub/.git/config", "[core]\n\thooksPath = ../tools/hk\n")
        .file("ws/tools/hk/pre-commit", "#!")
        .file("ws/settings/editor/tasks.json", "{}")
        .dir("ws/other")
        .link("ws/other/.vscode", "../settings/editor")
        .file("ws/plain/hk/a", "x");
    for mut guest in tree.guests_with(&[("ws", FsRights::ALL)], &[], &[]) {
        guest.check(&[
            ("rename tools old", NO),
            ("rename settings old", NO),
            ("rename plain old", "ok"),
            ("rename old plain", "ok"),
        ]);
    }
    std::fs::remove_dir_all(tree.at("ws/tools")).expect("remove");
    for mut guest in tree.guests_with(&[("ws", FsRights::ALL)], &[], &[]) {
        guest.check(&[("rename plain tools", NO), ("symlink plain tools", NO)]);
    }
}

/// What is made there would be obeyed under the name of the link.
#[test]
fn the_missing_target_of_an_obeyed_link_beside_it_is_not_made() {
    let tree = Tree::new();
    tree.dir("ws/sub")
        .dir("ws/shared")
        .link("ws/sub/.envrc", "../shared/envrc")
        .link("ws/sub/plain", "../shared/plain");
    for mut guest in tree.guests_with(&[("ws", FsRights::ALL)], &[], &[]) {
        guest.check(&[
            ("create shared/envrc x", NO),
            ("create shared/plain x", "ok"),
            ("unlink shared/plain", "ok"),
        ]);
    }
}

#[test]
fn hooks_are_obeyed_where_git_was_told_to_find_them() {
    let tree = tree();
    tree.file("ws/.git/config", "[core]\n\thooksPath = tools/hooks\n")
        .file("ws/tools/hooks/pre-push", "#!")
        .file("ws/scripts/check", "#!")
        .link("ws/.git/hooks/commit-msg", "../../scripts/check");
    tree.guest().check(&[
        ("write tools/hooks/pre-push x", NO),
        ("create tools/hooks/new x", NO),
        ("write scripts/check x", NO),
        ("create tools/other x", "ok"),
        ("create scripts/other x", "ok"),
    ]);
}

#[test]
fn programs_are_obeyed_that_the_configuration_of_git_names() {
    let tree = tree();
    tree.file(
        "ws/.git/config",
        "[core]\n\tfsmonitor = tools/fsm\n[merge \"m\"]\n\tdriver = sh tools/later %A\n[diff \"t\"]\n\ttextconv = cat\n",
    )
    .file("ws/tools/fsm", "#!")
    .file("ws/cat", "x");
    tree.guest().check(&[
        ("write tools/fsm x", NO),
        ("create tools/later x", NO),
        ("create tools/other x", "ok"),
        ("write cat x", "ok"),
    ]);
}

/// However the configuration spells it, and whichever file does.
#[test]
fn hooks_are_obeyed_wherever_git_finds_them() {
    let tree = Tree::new();
    let configs = [
        ("one", "[include] path = ../../shared.cfg\n"),
        ("two", "[core] hooksPath = ../hk2\n"),
        ("three", "[core]\n\tHOOKSPATH = ~/ws/hk3\n"),
        ("four", "[core]\n\thooksPath = \"../hk4\" ; comment\n"),
        ("five", "[core]\n\thooksPath = .\n"),
    ];
    for (name, config) in configs {
        tree.file(&format!("ws/{name}/.git/config"), config);
    }
    tree.file("ws/shared.cfg", "[include]\n\tpath = deep/er.cfg\n")
        .file("ws/deep/er.cfg", "[core]\n\thooksPath = ../hk1\n")
        .file("home/.gitconfig", "[core]\n\thooksPath = own/hooks\n")
        .file(
            "home/.config/git/config",
            "[core]\n\thooksPath = ~/ws/hk5\n[include]\n\tpath = ~/ws/user.cfg\n",
        );
    std::os::unix::fs::symlink(tree.at("ws"), tree.at("home/ws")).expect("link");
    let user = GitUser {
        home: Some(tree.at("home")),
        ..GitUser::default()
    };
    let policy = FsPolicy::new(&tree.grant(&[("ws", FsRights::ALL)], &[], &[]));
    let mut guest = Guest::new(policy.expect("policy").with_git_of(user));
    for hooks in ["hk1", "hk2", "hk3", "hk4", "hk5"] {
        guest.check(&[(&format!("mkdir {hooks}"), NO)]);
        tree.file(&format!("ws/{hooks}/pre-commit"), "#!");
        guest.check(&[(&format!("write {hooks}/pre-commit x"), NO)]);
    }
    guest.check(&[
        ("write shared.cfg x", NO),
        ("write deep/er.cfg x", NO),
        ("create user.cfg x", NO),
        ("create five/pre-commit x", NO),
        ("create five/x x", "ok"),
        ("mkdir two/own", "ok"),
        ("mkdir two/own/hooks", NO),
        ("mkdir own", "ok"),
        ("mkdir own/hooks", "ok"),
        ("create deep/x x", "ok"),
    ]);
}

/// A repository of dotfiles: links in the home lead into it.
#[test]
fn what_links_of_the_home_lead_to_is_obeyed() {
    let tree = Tree::new();
    tree.file("ws/bash/rc", "x")
        .file("ws/nvim/init.lua", "x")
        .file("ws/notes", "x")
        .dir("home/.config")
        .link("home/.bashrc", "../ws/bash/rc")
        .link("home/.config/nvim", "../../ws/nvim")
        .link("home/.profile", "../ws/profile");
    let links = [
        (".bashrc", ".bashrc"),
        (".config/nvim", ".config/nvim"),
        (".profile", ".profile"),
    ];
    let links = links.map(|(path, name)| HomeLink {
        path: tree.at(&format!("home/{path}")),
        name,
    });
    let user = GitUser {
        home: Some(tree.at("home")),
        links: HomeLinks::new(move || links.into()),
        ..GitUser::default()
    };
    let policy = FsPolicy::new(&tree.grant(&[("ws", FsRights::ALL)], &[], &[]));
    let mut guest = Guest::new(policy.expect("policy").with_git_of(user));
    guest.check(&[
        ("read bash/rc", "x"),
        ("write bash/rc y", NO),
        ("rename bash zsh", NO),
        ("rename notes bash/rc", NO),
        ("create nvim/plugin.lua y", NO),
        ("create profile y", NO),
        ("write notes y", "ok"),
        ("create bash/other y", "ok"),
    ]);
}

/// A repository that a root lies in, and one in another root.
#[test]
fn hooks_are_obeyed_whichever_repository_names_them() {
    let tree = Tree::new();
    let other = format!("[core]\nhooksPath = {}\n", tree.at("ws/of-other").display());
    tree.file(".git/config", "[core]\n\thooksPath = ws/of-above\n")
        .dir(".git/hooks")
        .link(".git/hooks/pre-push", "../../ws/scripts/check")
        .file("other/sub/.git/config", &other)
        .link("other/sub/.envrc", "../../ws/settings/envrc")
        .dir("ws/settings")
        .file("ws/scripts/check", "#!");
    for hooks in ["of-above", "of-other"] {
        tree.file(&format!("ws/{hooks}/pre-commit"), "#!");
    }
    let roots = [("ws", FsRights::ALL), ("other", FsRights::READ)];
    for mut guest in tree.guests_with(&roots, &[], &[]) {
        guest.check(&[
            ("write of-above/pre-commit x", NO),
            ("rename of-above x", NO),
            ("write of-other/pre-commit x", NO),
            ("rename of-other x", NO),
            ("write scripts/check x", NO),
            ("create settings/envrc x", NO),
            ("create scripts/other x", "ok"),
            ("unlink scripts/other", "ok"),
        ]);
    }
}

/// The grant of a directory inside such a place includes its contents.
#[test]
fn a_root_below_hooks_of_a_repository_around_it_is_granted() {
    let tree = Tree::new();
    tree.file(".git/config", "[core]\n\thooksPath = ws\n")
        .file("ws/in/a", "x");
    for root in ["ws", "ws/in"] {
        let mut guest = tree.guest_with(&[(root, FsRights::ALL)], &[], &[]);
        guest.check(&[("create x x", "ok")]);
    }
}

#[test]
fn a_git_directory_without_a_working_directory_is_obeyed_too() {
    let tree = tree();
    tree.file("ws/bare/HEAD", "x")
        .dir("ws/bare/objects")
        .dir("ws/bare/refs")
        .file("ws/half/config", "x")
        .dir("ws/half/objects")
        .dir("ws/half/refs")
        .file("ws/plain/config", "x");
    tree.guest().check(&[
        ("create bare/config x", NO),
        ("mkdir bare/hooks", NO),
        ("create half/HEAD x", NO),
        ("write plain/config y", "ok"),
        ("create plain/HEAD y", "ok"),
    ]);
}

#[test]
fn packages_can_be_removed_whole_and_grants_inside_are_grants() {
    let tree = tree();
    tree.file("ws/node_modules/a/.npmrc", "x");
    tree.guest().check(&[
        ("unlink node_modules/a/.npmrc", "ok"),
        ("create node_modules/a/.npmrc x", NO),
    ]);
    let mut inside = tree.guest_with(&[("ws/.vscode", FsRights::ALL)], &[], &[]);
    inside.check(&[("write tasks.json x", "ok")]);
}

#[test]
fn the_refusal_names_the_object() {
    let tree = tree();
    tree.link("ws/innocent", ".git/hooks");
    let mut guest = tree.guest();
    assert_eq!(guest.run("write innocent/pre-commit x"), NO);
    let path = tree.at("ws/.git/hooks/pre-commit");
    let path = path.to_str().expect("text").to_owned();
    let refused = guest.ctx.take_refused();
    assert_eq!(refused, [MissingGrant::Obeyed { path, name: ".git" }]);
}

#[test]
fn leave_opens_what_it_covers_and_nothing_else() {
    let tree = tree();
    let policy = FsPolicy::new(&tree.grant(&[("ws", FsRights::ALL)], &[], &[])).expect("policy");
    let rule = format!("write:{}/.vscode/*", tree.at("ws").display());
    let leave = leave(&rule);
    let mut guest = Guest::of(Arc::new(policy.leaving(&leave)));
    guest.check(&[
        ("write .vscode/tasks.json x", "ok"),
        ("create .vscode/new x", "ok"),
        ("write .git/config x", NO),
    ]);
}

const DRAFT: &str = ".zeph-0123456789abcdef.tmp";

/// Fills a directory with a temporary name, which `copy_path` does, and gives it the name `out`.
fn fill(guest: &mut Guest, what: &[&str], named: &str) {
    let check = |guest: &mut Guest, line: String, expected: &str| {
        assert_eq!(guest.run(&line), expected, "{what:?}: `{line}`");
    };
    check(guest, format!("private {DRAFT}"), "ok");
    for line in what {
        let (verb, rest) = line.split_once(' ').expect("verb and path");
        check(guest, format!("{verb} {DRAFT}/{rest}"), "ok");
    }
    check(guest, format!("rename {DRAFT} out"), named);
}

#[test]
fn what_a_draft_holds_is_decided_when_it_gets_its_name() {
    let cases: &[&[&str]] = &[
        &["mkdir .vscode", "create .vscode/tasks.json x"],
        &["create .envrc x"],
        &[
            "private sub",
            "private sub/.git",
            "create sub/.git/config x",
        ],
        &[
            "create HEAD x",
            "mkdir objects",
            "mkdir refs",
            "create config x",
        ],
    ];
    for what in cases {
        let closed = tree();
        fill(&mut closed.guest(), what, NO);
        let open = tree();
        let policy = FsPolicy::new(&open.grant(&[("ws", FsRights::ALL)], &[], &[]));
        let leave = leave(&format!("write:{}/out", open.at("ws").display()));
        let policy = Arc::new(policy.expect("policy").leaving(&leave));
        fill(&mut Guest::of(policy), what, "ok");
    }
    let tree = tree();
    let mut guest = tree.guest();
    fill(&mut guest, &["create a x"], "ok");
    guest.check(&[("create out/.envrc x", NO)]);
}

#[test]
fn only_a_directory_of_the_call_is_a_draft() {
    let tree = tree();
    tree.dir(&format!("ws/{DRAFT}"));
    let mut guest = tree.guest();
    guest.check(&[
        (&format!("create {DRAFT}/.envrc x"), NO),
        ("private draft", "ok"),
        ("create draft/.envrc x", NO),
        ("mkdir .zeph-0000000000000000.tmp", "ok"),
        ("create .zeph-0000000000000000.tmp/.envrc x", NO),
        ("private .zeph-1111111111111111.tmp", "ok"),
        ("create .zeph-1111111111111111.tmp/.envrc x", "ok"),
        // A part of it is not taken out either.
        ("rename .zeph-1111111111111111.tmp/.envrc .envrc", NO),
        ("rename .zeph-1111111111111111.tmp/.envrc b", "ok"),
    ]);
}

/// A draft is the directory that the call made, under its temporary name: neither what takes its place, nor what comes in from elsewhere,
/// nor the same directory under another name.
#[test]
fn a_draft_is_an_object_and_no_path() {
    let inner = format!("t/{DRAFT}");
    let git = ["objects", "refs"].map(|name| format!("mkdir {inner}/{name}"));
    let files = ["HEAD", "config"].map(|name| format!("create {inner}/{name} x"));
    let fill: Vec<String> = ["mkdir t".to_owned(), format!("private {inner}")]
        .into_iter()
        .chain(git)
        .chain(files)
        .collect();
    let cases: &[&[(&str, &str)]] = &[
        &[("rename t u", NO)],
        &[(&format!("rename {inner} out"), NO)],
        &[(&format!("rename {inner} .zeph-0000000000000000.tmp"), NO)],
        &[
            (&format!("rename src {inner}/src"), "ok"),
            (&format!("create {inner}/src/.envrc x"), "ok"),
            (&format!("rename {inner}/src src"), NO),
            (&format!("rename {inner}/src/a.rs {inner}/.exrc"), NO),
        ],
        &[(&format!("rename repo.git {inner}/repo.git"), NO)],
        &[(&format!("symlink {inner} alias"), NO)],
        &[(&format!("symlink {} alias", inner.to_uppercase()), NO)],
        &[
            (&format!("private {DRAFT}"), "ok"),
            (&format!("rename {inner}/config {DRAFT}/config"), "ok"),
            (&format!("rename {inner} now"), "ok"),
            (&format!("rename {DRAFT}/config now/config"), NO),
            ("create now/.envrc x", NO),
        ],
    ];
    for case in cases {
        let tree = tree();
        bare_repository(&tree, "ws/repo.git");
        let mut guest = tree.guest();
        for line in &fill {
            assert_eq!(guest.run(line), "ok", "{line}");
        }
        guest.check(case);
    }
}

#[test]
fn what_another_call_drafts_is_not_moved() {
    let tree = tree();
    let mut maker = tree.guest();
    let kept = format!("{DRAFT}/sub");
    assert_eq!(maker.run(&format!("private {DRAFT}")), "ok");
    assert_eq!(maker.run(&format!("mkdir {kept}")), "ok");
    tree.guest().check(&[
        (&format!("rename {DRAFT} out"), NO),
        (&format!("rename {kept} out"), NO),
        (&format!("rename src {kept}/src"), NO),
        (&format!("create {kept}/.envrc x"), NO),
        (&format!("create {kept}/a x"), "ok"),
    ]);
    maker.check(&[
        (&format!("create {kept}/.envrc x"), "ok"),
        (&format!("unlink {kept}/.envrc"), "ok"),
        (&format!("rename {DRAFT} out"), "ok"),
        ("create out/.envrc x", NO),
    ]);
}

fn bare_repository(tree: &Tree, path: &str) {
    tree.dir(&format!("{path}/objects"))
        .dir(&format!("{path}/refs"))
        .file(&format!("{path}/HEAD"), "ref: refs/heads/main")
        .file(&format!("{path}/config"), "[core]\n\tbare = true\n")
        .file(&format!("{path}/hooks/post-receive"), "#!");
}

#[test]
fn a_directory_with_a_git_directory_in_it_is_not_moved() {
    let tree = tree();
    bare_repository(&tree, "ws/deep/down/repo");
    tree.guest().check(&[
        ("rename deep other", NO),
        ("rename deep/down/repo repo", NO),
        ("rename deep/down/repo/objects objects", "ok"),
        ("rename deep other", "ok"),
    ]);
}

#[test]
fn a_link_that_redirects_an_obeyed_name_does_not_move_with_its_directory() {
    let tree = tree();
    tree.dir("ws/d")
        .dir("ws/conf")
        .link("ws/d/.cargo", "../conf");
    tree.guest().check(&[("rename d e", NO)]);
}

#[test]
fn what_leads_to_an_obeyed_object_is_not_made_anew() {
    let tree = tree();
    tree.file("ws/.git/config", "[core]\n\thooksPath = tools/hooks\n")
        .file("ws/tools/hooks/pre-push", "#!")
        .file("ws/evil/hooks/pre-push", "#!")
        .dir("ws/real/editor")
        .link("ws/conf", "real")
        .link("ws/.idea", "conf/editor");
    tree.guest().check(&[
        ("rename tools t", NO),
        ("rename real r", NO),
        ("rename conf c", NO),
        ("rmdir real/editor", "ok"),
        ("unlink conf", "ok"),
        ("unlink tools/hooks/pre-push", "ok"),
        ("rmdir tools/hooks", "ok"),
        ("rmdir tools", "ok"),
    ]);
    // Another call, which does not know where all that led.
    tree.guest().check(&[
        ("symlink evil conf", NO),
        ("rename evil conf", NO),
        ("mkdir conf", "ok"),
        ("mkdir conf/editor", NO),
        ("symlink evil tools", NO),
        ("rename evil tools", NO),
        ("mkdir tools", "ok"),
        ("mkdir tools/hooks", NO),
    ]);
}

/// What cannot be looked at might be obeyed.
#[test]
fn a_directory_that_cannot_be_looked_through_is_not_moved() {
    use std::os::unix::fs::PermissionsExt as _;

    let tree = tree();
    tree.dir("ws/d/shut");
    let shut = tree.at("ws/d/shut");
    let mode = std::fs::Permissions::from_mode;
    std::fs::set_permissions(&shut, mode(0o300)).expect("shut");
    // The superuser may list it all the same.
    let expected = match std::fs::read_dir(&shut) {
        Ok(_) => "ok",
        Err(_) => NO,
    };
    tree.guest().check(&[("rename d e", expected)]);
    for place in [shut, tree.at("ws/e/shut")] {
        std::fs::set_permissions(place, mode(0o700)).ok();
    }
}

/// What an allow rule gives a call of `write`.
fn leave(rule: &str) -> zeph_core::policy::Leave {
    use zeph_core::policy::{AllowRule, Policy};

    let policy = Policy {
        allow: vec![AllowRule::parse(rule, "/").expect("rule")],
        ..Policy::default()
    };
    zeph_core::policy::Leave::by_rules(&policy, &["write".to_owned()])
}

/// What a deep directory holds is looked through in time that grows with its depth alone.
#[test]
fn of_a_deep_path_the_last_names_tell() {
    let names = (ANYWHERE.iter().chain(&WHERE_PRESENT))
        .chain(&KEPT_BY_TOOLS)
        .chain(&HOME);
    for name in names {
        assert!(name.split('/').count() <= LISTED_PARTS_MAX, "{name}");
        let path = Path::new(name);
        assert_eq!(name_at_end(path), name_of(path), "{name}");
        let deep = Path::new("a/b/c/d").join(name);
        assert_eq!(name_at_end(&deep), name_of(&deep), "{name}");
    }
    for path in ["a/b/c/d/e", "a/b/c/d/.git/info/exclude", "d/hooks/x"] {
        assert_eq!(
            name_at_end(Path::new(path)),
            name_of(Path::new(path)),
            "{path}"
        );
    }
}
