//! Repositories: commits work, and nothing that git runs can be changed.

use zeph_core::git_config::{HomeLink, HomeLinks};

use super::super::Jail;
use super::harness::{End, Room};

const SETUP: &str = "git init -q -b main . && git config user.name n && git config user.email e@x && echo a > a && \
                     git add a && git commit -q -m one";

fn repository() -> Room {
    let room = Room::new();
    room.host(SETUP);
    room
}

/// Runs it, and expects the hooks and the configuration on the host to be as before.
#[track_caller]
fn attack(room: &Room, script: &str) -> End {
    let look = "find -L . -path '*hooks/*' ! -name '*.sample' ! -path '*held-back*' | sort; cat .git/config; ls -d .git";
    let before = room.host(look);
    let end = room.run(script);
    assert_eq!(room.host(look), before, "{script}: {end:#?}");
    end
}

#[test]
fn commits_work() {
    let room = repository();
    room.check(
        "echo b > b && git add b && git commit -q -m two && git checkout -q -b side && echo c >> a && git commit -qam three && \
         git checkout -q main && git merge -q side && git tag t && git stash list && git log --oneline | wc -l && git status -s",
        "3\n",
    );
    assert_eq!(room.host("git log -1 --format=%s"), "three\n");
}

#[test]
fn commits_work_in_a_linked_worktree_whose_repository_lies_outside() {
    let mut room = repository();
    let tree = room.outside.join("tree");
    room.host("git worktree add -q ../outside/tree -b side");
    room.policy.roots = vec![tree.clone()];
    let end = super::harness::run(
        &room.jail(),
        &tree,
        "echo b > b && git add b && git commit -q -m two && git log --oneline | wc -l",
    );
    assert_eq!(
        (end.code, end.stdout.as_str()),
        (Some(0), "2\n"),
        "{end:#?}"
    );
    let hook = format!("echo evil > {}/.git/hooks/post-commit", room.work.display());
    let config = format!(
        "git config core.pager evil; echo x >> {}/.git/config",
        room.work.display()
    );
    for script in [hook, config] {
        let end = super::harness::run(&room.jail(), &tree, &script);
        assert_ne!(end.code, Some(0), "{end:#?}");
    }
    assert!(!room.host("ls .git/hooks; cat .git/config").contains("evil"));
}

#[test]
fn commits_work_in_a_submodule() {
    let room = repository();
    room.host("cp -r . ../outside/sub && git -c protocol.file.allow=always submodule --quiet add ../outside/sub sub && git commit -qm sub");
    room.check("cd sub && echo z > z && git add z && git -c user.name=n -c user.email=e commit -qm z && git log --oneline | wc -l", "2\n");
    attack(&room, "echo evil > .git/modules/sub/hooks/post-commit");
    attack(&room, "git -C sub config core.pager evil");
    attack(
        &room,
        "mv .git/modules .git/m; mkdir -p .git/modules/sub/hooks; echo evil > .git/modules/sub/hooks/x",
    );
}

#[test]
fn new_repositories_can_be_made() {
    let room = Room::new();
    room.check("git init -q -b main new && cd new && git -c user.name=n -c user.email=e commit -q --allow-empty -m one && git log --oneline | wc -l", "1\n");
    room.check(
        "git clone -q new copy && ls copy/.git/HEAD && git init -q . && ls -d .git",
        "copy/.git/HEAD\n.git\n",
    );
    assert!(room.work.join("copy/.git/hooks").is_dir());
}

#[test]
fn hooks_and_configuration_stay() {
    let room = repository();
    room.host("mkdir -p deep/er && cp -r .git deep/er/.git");
    for script in [
        "echo evil > .git/hooks/post-commit",
        "mv .git/hooks .git/old; mkdir .git/hooks; echo evil > .git/hooks/post-commit",
        "mv .git x; mkdir -p .git/hooks; echo evil > .git/hooks/post-commit",
        "rm -rf .git; mkdir -p .git/hooks; echo evil > .git/hooks/post-commit",
        "git config core.pager evil",
        "git config core.hooksPath .",
        "cp .git/config c; echo evil >> c; mv c .git/config",
        "ln -sf /tmp/x .git/config; rm .git/config; echo evil > .git/config",
        "mv deep d2; mkdir -p deep/er/.git/hooks; echo evil > deep/er/.git/hooks/post-commit",
        "mv deep/er d2; mkdir -p deep/er/.git/hooks; echo evil > deep/er/.git/hooks/post-commit",
        "echo evil > deep/er/.git/hooks/post-commit",
        "umount .git/hooks; mount -o remount,rw .git/hooks; echo evil > .git/hooks/post-commit",
        "chmod -R 777 .git/hooks",
    ] {
        attack(&room, script);
    }
}

/// However the configuration spells it, and whichever file does.
#[test]
fn hooks_stay_wherever_git_finds_them() {
    let mut room = Room::new();
    room.host(
        "mkdir -p ../home/.config/git deep links hk1 hk2 hk3 hk4 hk5 hk6; ln -s ../work ../home/ws; ln -s ../hk6 links/6
        for name in one two three four five six; do git init -q $name; done
        printf '[include] path = ../../shared.cfg\n' >> one/.git/config
        printf '[include]\npath = deep/er.cfg\n' > shared.cfg
        printf '[core]\nhooksPath = ../hk1\n' > deep/er.cfg
        printf '[core] hooksPath = ../hk2\n' >> two/.git/config
        printf '[core]\nhooksPath = ~/ws/hk3\n' >> three/.git/config
        printf '[core]\nhooksPath = \"../hk4\" ; comment\n' >> four/.git/config
        printf '[core]\nhooksPath = ../links/6\n' >> six/.git/config
        printf '[core]\nhooksPath = ~/ws/hk5\n[include]\npath = ~/ws/user.cfg\n' > ../home/.config/git/config
        for n in 1 2 3 4 5 6; do echo fine > hk$n/pre-commit; done; echo > user.cfg; echo > free",
    );
    room.policy.home = Some(room.work.with_file_name("home"));
    room.policy.git_user.home = room.policy.home.clone();
    let files = "hk1/pre-commit hk2/pre-commit hk3/pre-commit hk4/pre-commit hk5/pre-commit hk6/pre-commit \
                 shared.cfg deep/er.cfg user.cfg";
    room.check(
        &format!("for file in {files} free; do (echo evil >> $file) 2> /dev/null && echo $file; done; true"),
        "free\n",
    );
    assert_eq!(room.host(&format!("cat {files} | grep evil; true")), "");
    let end = room.run("mv hk1 old; mkdir hk1; echo evil > hk1/pre-commit; true");
    assert_eq!(room.host("cat hk1/pre-commit"), "fine\n", "{end:#?}");
}

/// A repository of dotfiles: links in the user's home lead into it.
#[test]
fn what_links_of_the_home_lead_to_stays() {
    let mut room = Room::new();
    room.host(
        "mkdir -p ../home/.config bash nvim; ln -s ../work/bash/rc ../home/.bashrc; ln -s ../../work/nvim ../home/.config/nvim
        ln -s ../work/profile ../home/.profile; echo fine > bash/rc; echo fine > nvim/init.lua; echo > free",
    );
    let home = room.work.with_file_name("home");
    room.policy.home = Some(home.clone());
    room.policy.git_user.home = Some(home.clone());
    let links = [".bashrc", ".config/nvim", ".profile"].map(|name| HomeLink {
        path: home.join(name),
        name,
    });
    room.policy.git_user.links = HomeLinks::new(move || links.into());
    let files = "bash/rc nvim/init.lua";
    let end = room.run(&format!(
        "for file in {files} free; do (echo evil >> $file) 2> /dev/null && echo $file; done; \
         echo evil > nvim/plugin.lua; mv bash bash2; echo evil > profile; true"
    ));
    assert_eq!(end.stdout, "free\n", "{end:#?}");
    assert_eq!(
        room.host("cat bash/rc nvim/*; ls -d profile*"),
        "fine\nfine\nprofile.held-back\n",
        "{end:#?}"
    );
}

/// A repository that a root lies in, and one in another root.
#[test]
fn hooks_stay_whichever_repository_names_them() {
    let mut room = Room::new();
    room.host(
        "git init -q ..; git -C .. config core.hooksPath work/above; ln -s ../../work/script ../.git/hooks/pre-push
        git init -q ../outside/other; git -C ../outside/other config core.hooksPath ../../work/other
        mkdir above other; echo fine > above/pre-commit; echo fine > other/pre-commit; echo fine > script; echo > free",
    );
    let files = "above/pre-commit other/pre-commit script";
    let script = format!(
        "for file in {files} free; do (echo evil >> $file) 2> /dev/null && echo $file; done; true"
    );
    room.policy.roots.push(room.outside.join("other"));
    room.check(&script, "free\n");
    room.policy.allow_write = Some(vec![room.work.clone()]);
    room.check(&script, "free\n");
    assert_eq!(room.host(&format!("cat {files} | grep evil; true")), "");
}

/// A link that leads nowhere is filled by what is made where it leads.
#[test]
fn the_missing_target_of_an_obeyed_link_is_held_back() {
    let room = Room::new();
    room.host(
        "mkdir sub shared; ln -s ../shared/envrc sub/.envrc; ln -s ../shared/plain sub/plain",
    );
    let end = room.run("echo evil > shared/envrc; echo x > shared/plain");
    expect_held(&room, &end, "links", &["shared/envrc"]);
    assert_eq!(room.host("cat shared/plain"), "x\n");
}

#[test]
fn what_was_not_there_is_held_back() {
    let room = repository();
    room.host("rm -r .git/hooks");
    for (script, place) in [
        (
            "mkdir .git/hooks && echo evil > .git/hooks/post-commit && chmod +x .git/hooks/post-commit",
            ".git/hooks",
        ),
        ("ln -s ../evil .git/hooks", ".git/hooks"),
        ("echo ../evil > .git/commondir", ".git/commondir"),
        ("echo evil > .git/config.worktree", ".git/config.worktree"),
        ("mkdir .vscode && echo evil > .vscode/tasks.json", ".vscode"),
        (
            "mkdir -p .cargo && echo evil > .cargo/config.toml",
            ".cargo/config.toml",
        ),
    ] {
        let end = room.run(script);
        assert_eq!(end.code, Some(0), "{script}: {end:#?}");
        let found: Vec<_> = end
            .findings
            .iter()
            .map(|finding| finding.path.clone())
            .collect();
        assert_eq!(found, [room.work.join(place)], "{script}");
        assert!(
            room.work.join(place).symlink_metadata().is_err(),
            "{script}"
        );
    }
    room.check("git status -s | head -0; echo fine", "fine\n");
}

#[test]
fn new_repositories_run_nothing_by_themselves() {
    let room = Room::new();
    for (script, place) in [
        (
            "git init -q a && echo evil > a/.git/hooks/post-commit",
            "a/.git/hooks/post-commit",
        ),
        (
            "git init -q b && git -C b config core.pager evil",
            "b/.git/config",
        ),
        (
            "git init -q c && git -C c config alias.st '!evil'",
            "c/.git/config",
        ),
        (
            "git init -q . && git config core.sshCommand evil",
            ".git/config",
        ),
    ] {
        let end = room.run(script);
        let found: Vec<_> = end
            .findings
            .iter()
            .map(|finding| finding.path.clone())
            .collect();
        assert_eq!(found, [room.work.join(place)], "{script}: {end:#?}");
        assert!(
            room.work.join(place).symlink_metadata().is_err(),
            "{script}"
        );
    }
}

const EVIL: &str = "git init -q evil && git -C evil config core.fsmonitor evil && echo evil > evil/.git/hooks/post-commit";

#[test]
fn repositories_led_elsewhere_run_nothing_by_themselves() {
    let both = ["evil/.git/config", "evil/.git/hooks/post-commit"];
    let plain = "git init -q t && cp -r t/.git g && git --git-dir g config core.pager evil";
    let cases: &[(String, &[&str])] = &[
        (format!("{EVIL}; echo 'gitdir: evil/.git' > .git"), &both),
        (format!("{EVIL}; ln -s evil/.git .git"), &both),
        (
            format!("{EVIL}; mkdir -p a/b; echo 'gitdir: ../../evil/.git' > a/b/.git"),
            &both,
        ),
        (
            format!("{plain}; echo 'gitdir: ../g' > lib/.git"),
            &["g/config"],
        ),
        (
            format!("{plain}; git init -q c; echo ../../g > c/.git/commondir"),
            &["g/config"],
        ),
        (
            format!(
                "{plain}; mkdir -p w g/worktrees/w; echo 'gitdir: ../g/worktrees/w' > w/.git; cp g/HEAD g/worktrees/w; echo ../.. > g/worktrees/w/commondir"
            ),
            &["g/config"],
        ),
        (
            "git init -q --bare lib/deep && git -C lib/deep config core.pager evil".to_owned(),
            &["lib/deep/config"],
        ),
        (
            format!("{plain}; cp t/.git/HEAD lib; echo ../g > lib/commondir"),
            &["g/config"],
        ),
        (
            "git init -q known/x && mv known/x/.git known/.git/modules/x && git --git-dir known/.git/modules/x config core.pager evil".to_owned(),
            &["known/.git/modules/x/config"],
        ),
        ("echo 'gitdir: later' > .git".to_owned(), &[".git"]),
        ("mkfifo lib/.git".to_owned(), &["lib/.git"]),
        ("ln -s ../outside/foreign/.git lib/.git".to_owned(), &["lib/.git"]),
        (
            "git init -q c && echo /var/tmp > c/.git/commondir".to_owned(),
            &["c/.git/commondir"],
        ),
        (
            "git init -q c && rm -r c/.git/hooks && ln -s ../../../outside/foreign/.git/hooks c/.git/hooks".to_owned(),
            &["c/.git/hooks"],
        ),
        (
            "git init -q c && mkfifo c/x && mv c/x c/.git/config".to_owned(),
            &["c/.git/config"],
        ),
    ];
    for (script, expect) in cases {
        let room = Room::new();
        room.host("mkdir lib; git init -q known; mkdir known/.git/modules; git init -q ../outside/foreign; echo x > ../outside/foreign/.git/hooks/post-commit");
        let before = room.host("find ../outside | sort");
        let end = room.run(script);
        expect_held(&room, &end, script, expect);
        assert_eq!(room.host("find ../outside | sort"), before, "{script}");
    }
}

#[track_caller]
fn expect_held(room: &Room, end: &End, script: &str, expect: &[&str]) {
    let found: Vec<_> = end.findings.iter().map(|one| one.path.clone()).collect();
    let expect: Vec<_> = expect.iter().map(|path| room.work.join(path)).collect();
    assert_eq!(found, expect, "{script}: {end:#?}");
    for path in expect {
        assert!(path.symlink_metadata().is_err(), "{script}: {path:?}");
    }
}

#[test]
fn ways_to_have_more_repositories_work() {
    let room = Room::new();
    let who =
        "export GIT_AUTHOR_NAME=n GIT_AUTHOR_EMAIL=e GIT_COMMITTER_NAME=n GIT_COMMITTER_EMAIL=e";
    let submodule = "git -c protocol.file.allow=always submodule --quiet add";
    for (script, expect) in [
        (
            "git init -q -b main one && cd one && git commit -q --allow-empty -m one",
            "",
        ),
        (
            "git clone -q one two && git -C two log --format=%s",
            "one\n",
        ),
        (
            "git -C one worktree add -q ../tree && git -C tree commit -q --allow-empty -m x && git -C tree log --format=%s -1",
            "x\n",
        ),
        (
            "git init -q -b main three && cd three && $SUBMODULE ../one sub && git commit -qm sub && git -C sub log --format=%s",
            "one\n",
        ),
        (
            "git -C tree commit -q --allow-empty -m y && git -C three/sub commit -q --allow-empty -m z && git -C three status -s",
            " M sub\n",
        ),
        (
            "git -C tree worktree add -q ../tree2 -b third && git -C tree2 log --format=%s -1",
            "y\n",
        ),
        (
            "git init -q -b main --bare b.git && git -C one push -q ../b.git main && git -C b.git log --format=%s main",
            "one\n",
        ),
        (
            "git -C one push -q ../b.git main:x && git clone -q b.git four && git -C four log --format=%s -1",
            "one\n",
        ),
    ] {
        let end = room.run(&format!("{who}; SUBMODULE='{submodule}'; {script}"));
        assert_eq!(
            (end.code, end.stdout.as_str()),
            (Some(0), expect),
            "{script}: {end:#?}"
        );
        assert_eq!(end.findings, [], "{script}");
    }
}

/// What one command leads somewhere, and the next one fills.
#[test]
fn what_was_led_elsewhere_is_protected_in_the_next_run() {
    let room = Room::new();
    room.host("git init -q t && mv t/.git g && rm -r t && mkdir w w2 && echo 'gitdir: ../g' > w/.git && echo 'gitdir: ../later' > w2/.git");
    room.host("git init -q --bare bare; mkdir x bare/worktrees bare/worktrees/x; cp bare/HEAD bare/worktrees/x; echo ../.. > bare/worktrees/x/commondir; echo 'gitdir: ../bare/worktrees/x' > x/.git");
    for script in [
        "git --git-dir g config core.pager evil",
        "git -C bare config core.pager evil",
        "echo evil > bare/hooks/post-commit",
        "mv bare b2; cp -r b2 bare; git -C bare config core.pager evil",
    ] {
        let end = room.run(script);
        assert_ne!(
            (end.code, end.findings.len()),
            (Some(0), 0),
            "{script}: {end:#?}"
        );
        let look = "grep -l evil g/config bare/config bare/hooks/post-commit || true";
        assert_eq!(room.host(look), "", "{script}");
    }
    let script = "git init -q t && mv t/.git later && git --git-dir later config core.pager evil";
    let end = room.run(script);
    // As it lies there by its new name, it is looked at like any other.
    let expect = ["later", "later.held-back/config"];
    expect_held(&room, &end, script, &expect);
}

/// Tests and package managers make repositories where their products lie, and remove them with those.
#[test]
fn repositories_among_products_can_be_removed_and_run_nothing() {
    let room = Room::new();
    room.host(
        "git init -q . && git init -q target/tmp/r && git init -q node_modules/p && git init -q ../outside/lib && \
         git -C ../outside/lib -c user.name=n -c user.email=e commit -q --allow-empty -m m && \
         git -c protocol.file.allow=always submodule --quiet add ../outside/lib vendor/lib",
    );
    let end = room.run("echo x > vendor/lib/f && git -C vendor/lib status -s && rm -rf target && mv node_modules/p node_modules/q");
    assert_eq!(
        (end.stdout.as_str(), end.findings.len()),
        ("?? f\n", 0),
        "{end:#?}"
    );
    let evil = "rm vendor/lib/.git && git init -q vendor/lib && git -C vendor/lib config core.fsmonitor evil && echo evil > node_modules/q/.git/hooks/pre-commit";
    let end = room.run(evil);
    assert!(!end.findings.is_empty(), "{end:#?}");
    assert_eq!(
        room.host("test -e vendor/lib/.git/config || echo gone"),
        "gone\n"
    );
}

/// What a command made another may change and remove; it runs nothing by itself all the same.
#[test]
fn repositories_that_commands_made_are_theirs() {
    let room = repository();
    let jail = room.jail();
    let run = |script: &str| super::harness::run(&jail, &room.work, script);
    let fine = |script: &str| {
        let end = run(script);
        assert_eq!(
            (end.code, end.findings.len()),
            (Some(0), 0),
            "{script}: {end:#?}"
        );
    };
    fine(
        "git clone -q . copy && mkdir copy/.vscode.d && git init -q new && git worktree add -q tree -b other",
    );
    fine(
        "git -C copy config user.name x && git -C copy remote add o /x && git -C new config core.bare false",
    );
    fine("cd tree && echo x > x && git add x && git commit -qm x");
    fine(
        "mv copy moved && rm -rf moved new && git worktree remove tree && ! test -e tree -o -e .git/worktrees/tree",
    );
    // Nothing that was there before became theirs.
    attack(
        &room,
        "echo evil > .git/hooks/post-commit; git config core.pager evil",
    );
    for (make, evil, held) in [
        (
            "git init -q m1",
            "echo evil > m1/.git/hooks/post-commit",
            "m1/.git/hooks/post-commit",
        ),
        (
            "git init -q m2",
            "git -C m2 config core.pager evil",
            "m2/.git/config",
        ),
        (
            "git worktree add -q t2 -b t2",
            "mkdir e; cp .git/HEAD e; mkdir e/objects e/refs; echo $PWD/e > .git/worktrees/t2/commondir; printf '[core]\n pager = evil\n' > e/config",
            "e/config",
        ),
        (
            "git init -q m3 && mkdir m3/.git/modules",
            "git init -q m4 && mv m4/.git m3/.git/modules/x && git --git-dir m3/.git/modules/x config core.pager evil",
            "m3/.git/modules/x/config",
        ),
    ] {
        fine(make);
        let end = run(evil);
        let found = end
            .findings
            .iter()
            .any(|one| one.path == room.work.join(held));
        assert!(found, "{evil}: {end:#?}");
        let look = format!("cat {held} 2> /dev/null | grep evil || true");
        assert_eq!(room.host(&look), "", "{evil}");
    }
}

#[test]
fn commits_work_in_a_submodule_whose_superproject_lies_outside() {
    let mut room = repository();
    room.host("cp -r . ../outside/sub && git -c protocol.file.allow=always submodule --quiet add ../outside/sub sub && git commit -qm sub");
    let work = room.work.join("sub");
    room.policy.roots = vec![work.clone()];
    let commit = "echo z > z && git add z && git -c user.name=n -c user.email=e commit -qm z && git log --oneline | wc -l";
    let end = super::harness::run(&room.jail(), &work, commit);
    assert_eq!(
        (end.code, end.stdout.as_str()),
        (Some(0), "2\n"),
        "{end:#?}"
    );
    for script in [
        "git config core.pager evil",
        "echo evil > $(git rev-parse --git-dir)/hooks/post-commit",
    ] {
        let end = super::harness::run(&room.jail(), &work, script);
        assert_ne!(end.code, Some(0), "{end:#?}");
    }
    let obeyed = room.host("cat .git/modules/sub/config; ls .git/modules/sub/hooks");
    assert!(
        !obeyed.contains("evil") && !obeyed.contains("post-commit\n"),
        "{obeyed}"
    );
}

/// What a branch brings is put aside, and git takes it for deleted; what nobody tracks is nothing to git.
#[test]
fn what_git_takes_for_deleted_is_told() {
    let room = repository();
    room.host(
        "git checkout -qb topic && mkdir -p lib/.vscode && echo x > .envrc && echo x > lib/.vscode/settings.json && git add . && \
         git commit -qm topic && git checkout -q -",
    );
    let end = room.run("echo x > lib.envrc; mkdir lib2; echo x > lib2/.envrc");
    let of_git = |end: &End| {
        let texts = end.findings.iter().map(|finding| finding.text.clone());
        let mut texts = texts.filter(|text| text.contains("git takes"));
        texts.next()
    };
    assert_eq!(of_git(&end), None, "{end:#?}");
    let end = room.run("git merge -q --no-edit topic");
    assert_eq!(end.code, Some(0), "{end:#?}");
    let told = of_git(&end).expect("it is told");
    let advice = told.split('`').find(|part| part.contains("ls-files"));
    room.host(advice.expect("it says what helps"));
    let left = room.host("git status --short --untracked-files=no; echo y >> a; git commit -qam y; git show --name-only --format= HEAD");
    assert_eq!(left, "a\n", "{told}");
}

/// What a person runs who goes on with a rebase that a command left; lines that stood there before stay.
#[test]
fn a_rebase_goes_on_without_what_commands_put_into_it() {
    let room = repository();
    room.host("for i in 1 2 3; do echo $i > f; git add f; git commit -qm $i; done; mkdir sub; cp -r .git a f sub; git worktree add -q tree -b other");
    let stop = "GIT_SEQUENCE_EDITOR='sed -i s/^pick/edit/' git rebase -q -i HEAD~1 2> /dev/null";
    let todo = ".git/rebase-merge/git-rebase-todo";
    let script = format!("{stop}; printf 'exec touch evil\\nbreak\\n x touch evil\\n' >> {todo}");
    let end = room.run(&script);
    let found: Vec<_> = end.findings.iter().map(|one| one.path.clone()).collect();
    assert_eq!(found, [room.work.join(todo)], "{end:#?}");
    assert!(
        end.findings[0].text.contains("`exec touch evil`"),
        "{end:#?}"
    );
    assert_eq!(room.host(&format!("cat {todo}")), "break\n");
    room.host("git rebase --continue 2> /dev/null; git rebase --continue 2> /dev/null; ! ls evil 2> /dev/null; ls -d .git/rebase-merge || true");
    // Those of the user stay, those of a command beside them do not.
    room.host(&format!("{stop}; echo 'exec true' >> {todo}"));
    let end = room.run(&format!("echo 'exec touch evil' >> {todo}"));
    assert_eq!(end.findings.len(), 1, "{end:#?}");
    assert_eq!(room.host(&format!("grep -h exec {todo}")), "exec true\n");
    let end = room.run(&format!("echo 'label x' >> {todo}"));
    assert_eq!(end.findings, [], "{end:#?}");
    for (script, path) in [
        (
            "echo git/evil > .git/rebase-merge/strategy",
            ".git/rebase-merge/strategy",
        ),
        (
            "mkdir .git/sequencer; printf '[options]\\nstrategy = a/b\\n' > .git/sequencer/opts",
            ".git/sequencer/opts",
        ),
        (
            "mkdir sub/.git/rebase-merge; ln -s ../../evil sub/.git/rebase-merge/git-rebase-todo",
            "sub/.git/rebase-merge/git-rebase-todo",
        ),
        (
            "mkdir .git/worktrees/tree/rebase-merge; echo x touch evil > .git/worktrees/tree/rebase-merge/git-rebase-todo",
            ".git/worktrees/tree/rebase-merge/git-rebase-todo",
        ),
        (
            "git init -q new; mkdir new/.git/rebase-merge; echo x touch evil > new/.git/rebase-merge/git-rebase-todo",
            "new/.git/rebase-merge/git-rebase-todo",
        ),
        (
            "mkdir .git/remotes; echo 'URL: /evil' > .git/remotes/origin",
            ".git/remotes",
        ),
        (
            "mkdir sub/.git/branches; echo /evil > sub/.git/branches/origin",
            "sub/.git/branches",
        ),
    ] {
        room.host("rm -rf .git/branches sub/.git/branches");
        let end = room.run(script);
        let found: Vec<_> = end.findings.iter().map(|one| one.path.clone()).collect();
        assert_eq!(found, [room.work.join(path)], "{script}: {end:#?}");
        let look = format!("cat {path} 2> /dev/null | grep evil || true");
        assert_eq!(room.host(&look), "", "{script}");
    }
}

/// Git runs them as it runs hooks: at every `git status`, `diff` or `merge` of a person, a prompt or an editor.
#[test]
fn programs_that_the_configuration_names_stay() {
    let room = repository();
    room.host(
        "mkdir tools lib; for n in fsm clean driver.js text; do echo fine > tools/$n; done; echo fine > lib/plain; echo fine > driver.py
        git config core.fsmonitor tools/fsm; git config filter.f.clean 'tools/clean --in=%f'; git config filter.f.smudge cat
        git config diff.t.textconv '\"$(git rev-parse --show-toplevel)/tools/text\"'; git config merge.m.driver 'node ./tools/driver.js %O %A'
        git config merge.n.driver 'python3 driver.py lib %A'; git config merge.later.driver 'sh tools/later.sh %A'
        git config alias.run '!tools/free'; echo fine > tools/free",
    );
    let files = "tools/fsm tools/clean tools/driver.js tools/text driver.py";
    room.check(
        &format!("for file in {files} tools/free lib/plain; do (echo evil >> $file) 2> /dev/null && echo $file; done; rm tools/fsm 2> /dev/null; true"),
        "tools/free\nlib/plain\n",
    );
    assert_eq!(room.host(&format!("cat {files} | grep evil; true")), "");
    let end = room.run("echo evil > tools/later.sh; echo new > tools/other");
    expect_held(
        &room,
        &end,
        "a program that was not there",
        &["tools/later.sh"],
    );
}

/// Its configuration and hooks were there before commands ran, and are what they were.
#[test]
fn a_repository_among_packages_keeps_its_hooks_and_configuration() {
    let room = Room::new();
    room.host(
        "mkdir -p vendor; git init -q -b main vendor/lib; cd vendor/lib; git config user.email me@work; git config user.name n
        git config core.pager 'less -R'; git commit -q --allow-empty -m one; git branch b; git branch --set-upstream-to=main b > /dev/null
        git branch c; git branch --set-upstream-to=main c > /dev/null
        echo mine > .git/hooks/pre-push; chmod +x .git/hooks/pre-push; echo off > .git/hooks/post-commit",
    );
    for script in [
        "chmod -R u+w vendor",
        "cd vendor/lib && git branch -q -D b",
        "cd vendor/lib && git branch -m c d && git remote add o /x",
        "cp -rp vendor/lib/.git/hooks h && cat h/pre-push > vendor/lib/.git/hooks/pre-push",
    ] {
        let end = room.run(script);
        assert_eq!(
            (end.code, end.findings.len()),
            (Some(0), 0),
            "{script}: {end:#?}"
        );
    }
    let look = "cd vendor/lib; cat .git/hooks/pre-push .git/hooks/post-commit; stat -c %A .git/hooks/post-commit; git config user.email; git config core.pager; git remote";
    let expect = "mine\noff\n-rw-r--r--\nme@work\nless -R\no\n";
    assert_eq!(room.host(look), expect);
    for (script, path) in [
        ("git -C vendor/lib config core.fsmonitor evil", "config"),
        ("git -C vendor/lib config core.pager evil", "config"),
        (
            "echo evil > vendor/lib/.git/hooks/pre-push",
            "hooks/pre-push",
        ),
        (
            "chmod +x vendor/lib/.git/hooks/post-commit",
            "hooks/post-commit",
        ),
        (
            "ln -sf /evil vendor/lib/.git/hooks/pre-push",
            "hooks/pre-push",
        ),
    ] {
        let end = room.run(script);
        let path = room.work.join("vendor/lib/.git").join(path);
        let found: Vec<_> = end.findings.iter().map(|one| one.path.clone()).collect();
        assert_eq!(found, [path], "{script}: {end:#?}");
        assert_eq!(room.host(look), expect, "{script}");
    }
}

/// Without them, what is ignored everywhere is committed, and under another name.
#[test]
fn commits_of_commands_are_those_of_the_user() {
    let mut room = Room::new();
    room.host(
        "git init -q -b main .; mkdir ../home; cd ../home
        printf '[user]\\n\\tname = Z\\n\\temail = private@home\\n[includeIf \"gitdir:%s/\"]\\n\\tpath = work.cfg\\n' \"$(dirname \"$OLDPWD\")\" > .gitconfig
        printf '[core]\\n\\texcludesFile = ~/ignored\\n\\thooksPath = ~/hooks\\n[commit]\\n\\tgpgSign = true\\n' >> .gitconfig
        printf '[user]\\n\\temail = me@work\\n' > work.cfg; echo '*.env' > ignored",
    );
    let home = room.work.with_file_name("home");
    room.policy.git_user.home = Some(home.clone());
    room.policy.home = Some(home);
    let commit = "echo > x.env; echo x >> c; git add -A; git commit -qm x; git log -1 --format=%ae; git ls-files";
    for jail in [room.jail(), Jail::without_namespaces(room.policy.clone())] {
        let first = super::harness::run(&jail, &room.work, commit);
        assert_eq!(first.stdout, "me@work\nc\n", "{first:#?}");
        let texts: Vec<_> = first.findings.iter().map(|one| one.text.clone()).collect();
        assert!(
            texts
                .iter()
                .any(|text| text.contains("~/hooks") && text.contains("not signed")),
            "{texts:?}"
        );
        let second = super::harness::run(&jail, &room.work, commit);
        assert_eq!(second.findings, [], "it is told once");
    }
}

/// The usual set-up, `git lfs install`, is one of the user. Nothing is told where Git LFS is not installed.
#[test]
fn files_of_git_lfs_are_committed_as_pointers() {
    if !std::path::Path::new("/usr/bin/git-lfs").exists() {
        return;
    }
    let mut room = Room::new();
    room.host(
        "mkdir ../home; export HOME=$(realpath ../home); git lfs install --skip-repo > /dev/null; git config --global user.name a
        git config --global user.email a@b; git init -q -b main .; git lfs track '*.bin' > /dev/null; printf '%1000d' 1 > a.bin; git add -A
        git commit -qm i",
    );
    let home = room.work.with_file_name("home");
    room.policy.git_user.home = Some(home.clone());
    room.policy.home = Some(home);
    let script = "printf '%2000d' 2 > b.bin; echo more >> a.bin; git add -A; git commit -qm x; git cat-file -p HEAD:b.bin | head -1; \
                  git cat-file -p HEAD:a.bin | head -1; git checkout -q HEAD~1; wc -c < a.bin; git status -s";
    let pointer = "version https://git-lfs.github.com/spec/v1\n";
    let end = room.run(script);
    assert_eq!(end.stdout, format!("{pointer}{pointer}1000\n"), "{end:#?}");
    assert_eq!(end.findings, [], "{end:#?}");
    // Git LFS may not be able to move its files there; then git adds nothing.
    let alone = Jail::without_namespaces(room.policy.clone());
    let script = "printf '%3000d' 3 > c.bin; git add -A; git cat-file -p :c.bin | head -1";
    let end = super::harness::run(&alone, &room.work, script);
    assert!(end.stdout.is_empty() || end.stdout == pointer, "{end:#?}");
}
