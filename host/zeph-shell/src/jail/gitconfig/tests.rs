//! What commands get of a configuration, by what git itself makes of it in a home of theirs.

use std::path::Path;

use zeph_core::git_config::GitUser;

use super::{Missing, cleaned};
use crate::jail::tests::harness::bash;

/// The home of the user with these files, and a home of commands with what is left of them.
fn homes(files: &[(&str, &str)]) -> (tempfile::TempDir, Missing) {
    let folder = tempfile::tempdir().unwrap();
    let base = folder.path().canonicalize().unwrap();
    for (name, content) in files {
        let file = base.join("home").join(name);
        std::fs::create_dir_all(file.parent().unwrap()).unwrap();
        std::fs::write(file, content).unwrap();
    }
    let user = GitUser {
        home: Some(base.join("home")),
        ..GitUser::default()
    };
    let config = cleaned(&user, &base.join("inside"), &[]);
    for (path, bytes) in config.files {
        std::fs::create_dir_all(path.parent().unwrap()).unwrap();
        std::fs::write(path, bytes).unwrap();
    }
    (folder, config.missing)
}

/// What a script prints in a new repository below the user's `work` with the home `inside`.
fn run(folder: &Path, script: &str) -> String {
    let work = folder.join("home/work/repository");
    std::fs::create_dir_all(&work).unwrap();
    let script = format!("git init -q -b main . && {script}");
    let mut command = bash(&script);
    command
        .current_dir(&work)
        .env("HOME", folder.join("inside"));
    command
        .env("GIT_CONFIG_NOSYSTEM", "1")
        .env_remove("XDG_CONFIG_HOME");
    let output = command.output().unwrap();
    assert!(output.status.success(), "{script}: {output:?}");
    String::from_utf8(output.stdout).unwrap()
}

#[test]
fn commits_are_made_as_the_user_makes_them() {
    let (folder, missing) = homes(&[
        (
            ".gitconfig",
            "[user]\n\tname=Z\n\temail=private@home\n\tsigningKey = K\n[includeIf \"gitdir:~/work/\"]\n\tpath = .gitconfig-work\n\
             [includeIf \"gitdir:~/other/\"]\n\tpath = ~/.gitconfig-other\n[core]\n\tautocrlf = input\n\texcludesFile = ~/.gi\n\
             \tpager = mine\n[safe]\n\tdirectory = ~/a\\\"b\n[alias]\n\tclean = !true\n[pull]\n\trebase = false\n[http]\n\textraHeader = token\n\
             [credential \"https://x\"]\n\thelper = store\n[commit]\n\tgpgSign\n\ttemplate = t\n[core]\n\thooksPath = ~/.githooks\n",
        ),
        (
            ".gitconfig-work",
            "[user]\n\temail = me@work\n[url \"https://token@x\"]\n\tinsteadOf = x:\n",
        ),
        (".gitconfig-other", "[user]\n\temail = me@other\n"),
        (
            ".config/git/config",
            "[pull]\n\trebase = true\n[fetch]\n\tprune = true\n",
        ),
        (".gi", "*.env\ntoken.*\n"),
    ]);
    let home = folder.path().canonicalize().unwrap().join("home");
    let expect = format!(
        "me@work\nZ\nfalse\ntrue\ninput\n{}/a\"b\n!true\nc.txt\n",
        home.display()
    );
    let script = "git config user.email; git config user.name; git config pull.rebase; git config fetch.prune; git config core.autocrlf; \
                  git config safe.directory; git config alias.clean; echo > x.env; echo > token.x; echo > c.txt; git add .; git ls-files";
    assert_eq!(run(folder.path(), script), expect);
    let all = run(
        folder.path(),
        "git config --list --show-origin; cat ~/.config/git/*",
    );
    for word in [
        "token@x",
        "extraheader",
        "credential",
        "mine",
        "signing",
        "template",
        "githooks",
    ] {
        assert!(!all.to_lowercase().contains(word), "{word}: {all}");
    }
    let expect = Missing {
        hooks: Some("~/.githooks".to_owned()),
        is_signature: true,
    };
    assert_eq!(missing, expect);
}

/// What a filter of the user's would have changed is not committed as it is, nor checked out.
#[test]
fn a_filter_that_commands_do_not_get_makes_git_refuse() {
    let (folder, _) = homes(&[(
        ".gitconfig",
        "[user]\n\tname = a\n\temail = a@b\n[filter \"age\"]\n\tclean = age -e\n\tsmudge = age -d\n[filter \"p\"]\n\tprocess = p %f\n\
         [filter \"one\"]\n\tclean = cat\n[filter \"lfs\"]\n\tclean = git-lfs clean -- %f\n\tprocess = git-lfs filter-process\n",
    )]);
    let script = "printf 'a filter=age\\np filter=p\\none filter=one\\n' > .gitattributes; echo x > a; echo x > p; echo x > one; echo x > plain; \
                  git add a 2> e || echo refused; grep -q 'does not run in the jail' e && echo told; git add p 2> e || echo refused; git add one plain && git ls-files; \
                  git config filter.lfs.process; git config filter.lfs.required";
    let expect = "refused\ntold\nrefused\none\nplain\ngit-lfs filter-process\ntrue\n";
    assert_eq!(run(folder.path(), script), expect);
}
