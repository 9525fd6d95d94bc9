//! Repositories: commits work, and nothing that git runs can be changed.

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
