//! Command lines: everyday ones, and ways around the rules.

use super::lab::{bash, call, decide, lists, permissions, plain};
use crate::call::ResolvedCall;
use crate::policy::{
    Action, AllowRule, CommandPattern, Constraint, Decision, PermissionRule, PermissionSource,
    Permissions, Policy, Scoped, SessionFacts, ShellLists, authorise,
};

fn check(policy: &Policy, table: &[(&str, &str)]) {
    for (parts, expect) in table {
        assert_eq!(decide(policy, plain(parts)), *expect, "{parts}");
    }
}

/// The shipped lists with everything allowed that they do not name.
fn open() -> Policy {
    Policy {
        permissions: lists(),
        denies_network: true,
        roots: vec!["/w".into()],
        rules: super::lab::rules(
            &[super::lab::rule(crate::policy::Effect::Allow, "bash", None)],
            crate::policy::Effect::Allow,
        ),
        ..Policy::default()
    }
}

#[test]
fn everyday_commands_are_not_bothered() {
    let table = [
        "cargo build --release",
        "cd src | cargo test",
        "git status | git diff",
        "git commit -m halt",
        "git push origin main",
        "git push --force-with-lease",
        "git stash push -m x",
        "npm run build | npm test",
        "docker run --rm image",
        "echo sudo",
        "grep -rn reboot src",
        "man su",
        "dd of=x",
        "curl -sS http://localhost:3000/health",
        "curl -X POST -d x 127.0.0.1:8080/a",
        "curl --version",
        // Addresses that are known only when the command runs.
        "curl $URL",
        "curl -s $URL",
        "curl -s -o x ${BASE}/health",
        "curl -fsS http://$HOST:8080/a",
        "curl -s http://localhost:$PORT",
        "nc -z $HOST 80",
        "ssh $HOST",
        "wget -q http://[::1]:8000/",
        "rsync -a src/ out/",
        "nc -z localhost 80",
        "nc -l 8080",
        "python3 -m http.server",
        "sudoku",
        "format.sh",
    ];
    check(&open(), &table.map(|parts| (parts, "allow")));
}

#[test]
fn what_is_blocked_is_found_wherever_it_stands() {
    let table = [
        "sudo ls",
        "SUDO ls",
        "/usr/bin/sudo ls",
        "cargo build | sudo make install",
        "^env | ^timeout 5 | su root",
        "mkfs.ext4 /dev/sda",
        "dd bs=1 if=/dev/zero",
        "dd if=/dev/zero of=/dev/sda",
        "curl https://example.com",
        "curl -s example.com",
        "curl http://localhost.example.com",
        "curl http://localhost@example.com/",
        "curl http://localhost http://example.com",
        "curl $URL http://example.com",
        "curl https://example.com/$PAGE",
        "ssh host",
        "scp a host:b",
        "rsync -a . me@host:x",
        "nc example.com 80",
        "openssl s_client -connect example.com:443",
        "socat TCP:example.com:80 STDIO",
    ];
    let table = table.map(|parts| (parts, "deny"));
    check(&open(), &table);
}

#[test]
fn a_refusal_names_the_program_and_the_entry_that_forbids_it() {
    let reason = |text: &str, parts: &str| match authorise(
        &open(),
        &SessionFacts::default(),
        bash(text, parts),
    ) {
        Decision::Deny(refusal) => refusal.reason.clone(),
        _ => panic!("{text} is not refused"),
    };
    let entry = "tools.shell.blocked_commands `su`";
    assert_eq!(
        reason("cd x && su root", "cd x|su root"),
        format!("`su root` is forbidden by {entry}")
    );
    // `newgrp` may run anything, and here it would be a program that is blocked; by itself it asks.
    let hidden = reason("newgrp staff; man su", "newgrp staff|man su|?");
    assert!(
        hidden.starts_with(&format!(
            "the line contains what {entry} forbids, and not all"
        )),
        "{hidden}"
    );
    assert!(
        hidden.contains("`tools.shell.allowed_commands`"),
        "{hidden}"
    );
    let asks = bash("newgrp staff", "newgrp staff|?");
    assert_eq!(decide(&open(), asks), "ask");
}

#[test]
fn removals_nobody_means() {
    check(
        &open(),
        &[
            ("rm -rf /", "deny"),
            ("rm -r -f /", "deny"),
            ("rm --recursive --force /", "deny"),
            ("rm --rec --fo ~", "deny"),
            ("rm -f $HOME", "deny"),
            ("rm -R ${HOME}/", "deny"),
            ("rm -rf //", "deny"),
            ("rm -rf /*", "deny"),
            ("rm -rf /./", "deny"),
            ("rm -rf -- ~/*", "deny"),
            ("/bin/rm -fr /etc", "deny"),
            ("rm -rf ~/projects", "deny"),
            ("rm -rf .git/worktrees/x", "deny"),
            ("rm -rf /w", "deny"),
            ("rm -rf /w/../etc", "deny"),
            ("rm -rf /w/target", "ask"),
            ("rm -rf /tmp/x", "ask"),
            ("rm -rf target", "ask"),
            ("rm a.txt", "ask"),
            ("rm /etc/x", "ask"),
        ],
    );
}

#[test]
fn what_asks() {
    check(
        &open(),
        &[
            ("git push -f", "ask"),
            ("git push origin main -f", "ask"),
            ("git -C x push --force", "ask"),
            ("psql -c DROP TABLE users", "ask"),
            ("mysql -e truncate users", "ask"),
            ("truncate -s 0 log", "ask"),
            ("ls | xargs | rm x", "ask"),
        ],
    );
    let heredoc = bash("psql <<E\nDrop   Table x;\nE", "psql");
    assert_eq!(decide(&open(), heredoc), "ask");
}

#[test]
fn every_part_needs_a_rule_and_any_part_can_be_refused() {
    let policy = Policy {
        permissions: permissions("bash", &["deny *sudo*", "allow cargo *", "allow cd *"]),
        ..Policy::default()
    };
    check(
        &policy,
        &[
            ("cargo build", "allow"),
            ("CARGO build", "allow"),
            ("cd x | cargo build", "allow"),
            ("^env | cargo build", "allow"),
            ("cargo build | sh", "ask"),
            ("cargo build | sudo x", "deny"),
            ("./cargo build", "ask"),
            ("/tmp/cargo build", "ask"),
            ("^env", "ask"),
            ("ls", "ask"),
            ("cargo build | ?", "ask"),
            ("", "ask"),
        ],
    );
    let hidden = bash("eval \"$(echo c3Vkbw==)\" # SUDO", "?");
    assert_eq!(decide(&policy, hidden), "deny");
    let assigned = bash("RUSTFLAGS=-g cargo build", "cargo build");
    assert_eq!(decide(&policy, assigned), "allow");
}

#[test]
fn a_rule_for_everything_is_left_to_the_parts() {
    let policy = Policy {
        permissions: permissions("bash", &["allow cargo *", "deny *"]),
        ..Policy::default()
    };
    let assigned = bash("RUSTFLAGS=-g cargo build", "cargo build");
    assert_eq!(decide(&policy, assigned), "allow");
    check(&policy, &[("cargo b | ls", "deny"), ("", "deny")]);
}

#[test]
fn folders_do_not_hide_a_refused_name() {
    let policy = Policy {
        permissions: permissions("bash", &["deny rm *", "allow *"]),
        ..Policy::default()
    };
    check(
        &policy,
        &[("rm x", "deny"), ("/bin/rm x", "deny"), ("ls", "allow")],
    );
}

#[test]
fn what_cannot_be_known_needs_the_exact_text_or_the_whole_tool() {
    let table = [
        ("bash:eval x", "allow"),
        ("bash:eval *", "ask"),
        ("bash", "allow"),
        ("BASH", "allow"),
        ("shell:*", "allow"),
        ("write", "ask"),
    ];
    for (rule, expect) in table {
        let policy = Policy {
            allow: vec![AllowRule::parse(rule, "/w").unwrap()],
            ..Policy::default()
        };
        let call = bash("eval x", "eval x | ?");
        assert_eq!(decide(&policy, call), expect, "{rule}");
    }
    let exact = |text: &str| Policy {
        permissions: permissions("bash", &[&format!("allow {text}"), "ask *"]),
        ..Policy::default()
    };
    let call = || bash("eval [x]", "eval [x] | ?");
    assert_eq!(decide(&exact(r"eval \[x\]"), call()), "allow");
    assert_eq!(decide(&exact("eval*"), call()), "ask");
}

#[test]
fn a_command_nobody_analysed_asks() {
    let mut call = plain("ls");
    call.command = None;
    let policy = Policy {
        allow: vec![AllowRule::parse("bash:ls*", "/w").unwrap()],
        ..Policy::default()
    };
    assert_eq!(decide(&policy, call), "ask");
}

#[test]
fn allow_rules_of_several_places_add_up() {
    let policy = Policy {
        allow: vec![
            AllowRule::parse("bash:npm *", "/w").unwrap(),
            AllowRule::parse("bash:rm x", "/w").unwrap(),
        ],
        permissions: permissions("bash", &["deny *sudo*", "allow cargo *", "ask rm *"]),
        ..Policy::default()
    };
    check(
        &policy,
        &[
            ("cargo x | npm y", "allow"),
            ("cargo x | rm x", "allow"),
            ("cargo x | rm y", "ask"),
            ("npm x | sudo y", "deny"),
        ],
    );
}

#[test]
fn patterns_of_constraints() {
    let fits = |pattern: &str, call: ResolvedCall| {
        let pattern = CommandPattern::new(pattern).unwrap();
        let policy = Policy::default();
        let subject = super::super::subject::RuleSubject::new(&policy, &call);
        let line = subject.line.unwrap();
        pattern.fits_whole(&line) || line.parts.iter().any(|part| pattern.fits_part(&line, part))
    };
    let table = [
        ("rm -rf", "rm -r -f x", true),
        ("rm -rf", "rm -fvR x", true),
        ("rm -rf", "rm --force x --recursive", true),
        ("rm -rf", "rm x -rf", true),
        ("rm -rf", "rm -r x", false),
        ("rm -rf", "rm -- -rf", false),
        ("find -delete", "find . -name x -delete", true),
        ("find -delete", "find . -type d -ls", false),
        ("git push", "git stash push", false),
        ("re:^curl .*-o", "curl x -o y", true),
        ("re:^curl .*-o", "/bin/curl x -o y", true),
    ];
    for (pattern, parts, expect) in table {
        assert_eq!(fits(pattern, plain(parts)), expect, "{pattern}: {parts}");
    }
    let bomb = bash(":(){ :|:& };:", ":");
    assert!(fits(":(){:|:&};:", bomb));
    for bad in ["", "  ", "re:(", "cat *[", &"x".repeat(2000)] {
        assert!(CommandPattern::new(bad).is_err(), "{bad:?}");
    }
}

#[test]
fn globs_of_lists_and_constraints_are_globs() {
    let patterns = |texts: &[&str]| -> Vec<CommandPattern> {
        let patterns = texts.iter().map(|text| CommandPattern::new(text).unwrap());
        patterns.collect()
    };
    let table = [
        ("curl *", "curl https://example.org", "deny"),
        ("curl *", "curl", "deny"),
        ("curl *", "true | /usr/bin/curl x", "deny"),
        ("git push*", "git -C . push origin", "deny"),
        ("*.env", "cat .env", "deny"),
        ("cat secret?", "cat secret1", "deny"),
        ("cat secret?", "cat secrets.txt", "allow"),
        ("mk*", "mkdir x", "deny"),
        ("mk*", "rmdir mkx", "allow"),
        ("rm -rf *", "rm -f -r x", "deny"),
        ("* | sh", "curl x | sh", "allow"),
        ("*&&*", "curl x | sh", "deny"),
        ("${*", "cat x", "allow"),
    ];
    for (pattern, parts, expect) in table {
        let lists = ShellLists {
            blocked: patterns(&[pattern]),
            ..ShellLists::default()
        };
        let constraint = Constraint::new(&[pattern.to_owned()], Vec::new()).unwrap();
        let constraints = vec![("bash".to_owned(), constraint)];
        let blocks = Policy {
            allow: vec![AllowRule::parse("bash", "/w").unwrap()],
            permissions: PermissionSource::Lists(lists),
            ..Policy::default()
        };
        let constrains = Policy {
            scoped: Some(Scoped::new(None, Vec::new(), constraints)),
            allow: blocks.allow.clone(),
            ..Policy::default()
        };
        assert_eq!(decide(&blocks, plain(parts)), expect, "{pattern}: {parts}");
        assert_eq!(
            decide(&constrains, plain(parts)),
            expect,
            "constraint {pattern}: {parts}"
        );
    }
    let asks = Policy {
        allow: Vec::new(),
        permissions: PermissionSource::Lists(ShellLists {
            confirm: patterns(&["*drop*"]),
            ..ShellLists::default()
        }),
        ..Policy::default()
    };
    check(&asks, &[("psql -c drop", "ask")]);
}

#[test]
fn globs_of_constraints_fit_arguments_and_ends_of_paths() {
    let table = [
        ("*.lock", "a.lock", "deny"),
        ("*.lock", "a.lock.txt", "allow"),
        ("secret*", "secret1", "deny"),
        ("secret*", "./k/../secret1", "deny"),
        ("k/*.pem", "./k/x.PEM", "deny"),
        ("**/*.pem", "k/x.pem", "deny"),
        ("secret*", "no-secret", "allow"),
        ("what?", "so WHAT? now", "deny"),
    ];
    for (pattern, path, expect) in table {
        let constraint = Constraint::new(&[pattern.to_owned()], Vec::new()).unwrap();
        let policy = Policy {
            scoped: Some(Scoped::new(
                None,
                Vec::new(),
                vec![("write".to_owned(), constraint)],
            )),
            allow: vec![AllowRule::parse("write", "/w").unwrap()],
            ..Policy::default()
        };
        let resolved = format!("/w/{}", path.trim_start_matches("./").replace("k/../", ""));
        let call = call("write", serde_json::json!({ "path": path }), &[&resolved]);
        assert_eq!(decide(&policy, call), expect, "{pattern}: {path}");
    }
}

#[test]
fn a_refusal_offers_what_would_allow_it() {
    let table = [
        (
            plain("cargo build --release"),
            "--allow 'bash:cargo build*'",
        ),
        (plain("ls -l"), "--allow 'bash:ls *'"),
        (plain("make"), "--allow bash:make"),
        (
            plain("cd x | make"),
            "--allow 'bash:cd x*' --allow bash:make",
        ),
        (plain("git -C x push"), "--allow 'bash:git -C x push'"),
        (plain("rm -rf build"), "--allow 'bash:rm -rf build'"),
        (plain("/bin/rm build"), "--allow 'bash:/bin/rm build'"),
        (
            bash("eval 'a*'", "eval a* | ?"),
            r"--allow 'bash:eval '\''a\*'\'''",
        ),
    ];
    for (call, expect) in table {
        let text = call.command.as_ref().unwrap().text.clone();
        let Decision::Ask(refusal) = authorise(&Policy::default(), &SessionFacts::default(), call)
        else {
            panic!("{text} must ask");
        };
        let message = &refusal.failure.message;
        assert!(message.ends_with(&format!("with `{expect}`")), "{message}");
        let rules = refusal.allow.iter();
        let allow = rules.map(|rule| AllowRule::parse(rule, "/w").unwrap());
        let policy = Policy {
            allow: allow.collect(),
            ..Policy::default()
        };
        let parts = refusal.allow.len();
        let again = match text.as_str() {
            "eval 'a*'" => bash("eval 'a*'", "eval a* | ?"),
            "cd x && make" => plain("cd x | make"),
            other => plain(other),
        };
        assert_eq!(decide(&policy, again), "allow", "{text} with {parts} rules");
    }
}

/// Wrappers and what a runner runs need no rule of their own; rules that ask about them in particular still do.
#[test]
fn what_needs_no_rule_can_be_asked_about() {
    let policy = Policy {
        permissions: permissions(
            "bash",
            &[
                "deny sudo *",
                "ask rm *",
                "ask nice *",
                "allow poetry *",
                "allow git *",
                "ask *",
            ],
        ),
        ..Policy::default()
    };
    check(
        &policy,
        &[
            ("poetry run mypy | >mypy", "allow"),
            ("^timeout 5 git log | git log", "allow"),
            ("poetry run rm x | >rm x", "ask"),
            ("poetry run sudo x | >sudo x", "deny"),
            ("^nice git log | git log", "ask"),
            ("mypy", "ask"),
        ],
    );
    check(
        &open(),
        &[
            ("poetry run rm x | >rm x", "ask"),
            ("poetry run sudo x | >sudo x", "deny"),
        ],
    );
}

#[test]
fn deny_rules_hold_wherever_options_stand() {
    check_denied(&[
        ("rm -rf*", "rm -r -f x", "deny"),
        ("rm -rf*", "rm -fr x", "deny"),
        ("rm -rf*", "rm x -rf", "deny"),
        ("*rm -rf*", "rm --recursive --force x", "deny"),
        ("rm *-rf*", "rm -fr x", "deny"),
        ("rm -rf*", "rm -r x", "allow"),
        ("git push --force*", "git push origin main --force", "deny"),
        ("git push --force*", "git push origin main -f", "deny"),
        (
            "git push --force-with*",
            "git push -u o --force-with-lease",
            "deny",
        ),
        ("git push --force*", "git push origin main", "allow"),
        ("git push --mirror *", "git push origin --mirror", "deny"),
        ("git push --mirror *", "git push origin --mirr", "ask"),
        ("git push --mirror *", "git push -- --mirror", "allow"),
        (
            "docker run --privileged *",
            "docker run -it --privileged x",
            "deny",
        ),
        (
            "docker run --privileged *",
            "docker run -v a:/b --rm x --privileged",
            "deny",
        ),
        ("docker run --privileged *", "docker run -it x", "allow"),
        (
            "docker run --network=host *",
            "docker run --rm --network host x",
            "deny",
        ),
        (
            "docker run --network host *",
            "docker run --rm --network=host x",
            "deny",
        ),
        (
            "docker run --network=ho*",
            "docker run --rm --network=host x",
            "deny",
        ),
        (
            "docker run --network=host *",
            "docker run --network=none x",
            "allow",
        ),
        ("rm -rf /etc*", "rm --verbose -rf /etc/x", "deny"),
        (
            "curl --upload-file *",
            "curl -s --upload-file a http://b",
            "deny",
        ),
        (
            "terraform apply -auto-approve*",
            "terraform apply -input=false -auto-approve",
            "deny",
        ),
        (
            "terraform apply -auto-approve*",
            "terraform apply --auto-approve x",
            "deny",
        ),
        (
            "terraform apply -auto-approve*",
            "terraform apply x",
            "allow",
        ),
        ("find -delete*", "find . -type f -delete", "deny"),
        (
            "npm publish --access*",
            "npm publish . --tag x --access public",
            "deny",
        ),
    ]);
}

#[test]
fn deny_rules_hold_however_short_options_are_written() {
    check_denied(&[
        ("rm -rf *", "rm -rf x", "deny"),
        ("rm -rf *", "rm -r -f x", "deny"),
        ("rm -rf *", "rm -fr x", "deny"),
        ("rm -rf *", "rm -vfr x", "deny"),
        ("rm -rf *", "rm x -rf", "deny"),
        ("rm -rf *", "rm -r x -f", "deny"),
        ("rm -rf *", "rm --recursive -f -- x", "deny"),
        ("rm -rf *", "/bin/rm -Rf x", "deny"),
        ("rm -rf *", "^sudo -u root|rm -f -r x", "deny"),
        ("rm -r -f *", "rm -rf x", "deny"),
        ("rm -rf *", "rm -r x", "allow"),
        ("rm -rf *", "rm -f x", "allow"),
        ("rm -rf *", "rm -- -rf", "allow"),
        ("rm -rf /etc*", "rm -r -f /etc/x", "deny"),
        ("rm -rf /etc*", "rm -r -f x", "allow"),
        ("git push -f *", "git push origin -f", "deny"),
        ("git push -f *", "git -C . push origin -uf", "deny"),
        ("git push -f *", "git push --force", "deny"),
        ("git push --force *", "git push -f", "deny"),
        ("git push -f *", "git push -u origin main", "allow"),
        ("git push -f *", "git fetch -f origin", "allow"),
        ("ssh -vv *", "ssh -v host", "allow"),
        ("ssh -vv *", "ssh -v -v host", "deny"),
        ("find * -delete*", "find . -type d -name let", "allow"),
        ("tar -xf *", "tar -x -v -f a.tar", "deny"),
        ("git commit --no-verify*", "git commit -n -m x", "deny"),
        ("git commit --no-verify*", "git commit -anm x", "deny"),
        ("git commit -n*", "git -C . commit --no-verify", "deny"),
        ("git commit --no-verify*", "git commit -m n", "allow"),
        ("git push --no-verify*", "git push -n origin", "allow"),
        ("npm install --global*", "npm install x -g", "deny"),
        // With the value in the same word.
        ("sort -o*", "sort -nosrc/main.rs a", "deny"),
        ("sort -o *", "sort -osrc/main.rs a", "deny"),
        ("sed -i*", "sed -ni.bak p a", "deny"),
        ("sed -i*", "sed -nEszuibackup p a", "deny"),
        ("docker run -v*", "docker run -itv/:/host x", "deny"),
        ("curl -o*", "curl -fsSLo/tmp/x host", "deny"),
        ("git push -f *", "git push -ofoo.bar origin", "allow"),
        ("git commit -n*", "git commit -mnew.x", "allow"),
        ("sort -o*", "sort -t: -k1,1 a", "allow"),
        ("sort -o*", "sort -- -ox.y", "allow"),
        ("date -s*", "date -dlast.sunday", "allow"),
        ("java -s*", "java -classpath.x", "allow"),
    ]);
}

/// Each a pattern that denies, beside a rule that allows everything, a command and what becomes of it.
fn check_denied(cases: &[(&str, &str, &str)]) {
    for (rule, parts, expect) in cases {
        let deny = format!("deny {rule}");
        let policy = Policy {
            permissions: permissions("bash", &[&deny, "allow *"]),
            ..Policy::default()
        };
        assert_eq!(decide(&policy, plain(parts)), *expect, "{rule}: {parts}");
    }
}

#[test]
fn allow_rules_are_for_options_as_they_are_written() {
    let policy = Policy {
        permissions: permissions("bash", &["allow rm -rf *"]),
        ..Policy::default()
    };
    assert_eq!(decide(&policy, plain("rm -rf x")), "allow");
    assert_eq!(decide(&policy, plain("rm -r -f x")), "ask");
}

/// Those of git that say how it prints, and of presets, which allow `cd`, that name a directory below.
#[test]
fn allow_rules_hold_behind_options_of_git_that_change_nothing() {
    let rules = [
        ("git push --force*", Action::Deny),
        ("git log *", Action::Allow),
        ("git push *", Action::Allow),
    ];
    let of = |is_preset: bool| {
        let rules = rules.iter().map(|(pattern, action)| {
            let rule = PermissionRule::new("bash", pattern, *action, "/w").unwrap();
            match is_preset {
                true => rule.of_preset("developer"),
                false => rule,
            }
        });
        PermissionSource::Rules(Permissions::new([("bash".to_owned(), rules.collect())]))
    };
    for (parts, of_own, of_preset) in [
        ("git --no-pager log -1", "allow", "allow"),
        ("git -P --no-optional-locks log", "allow", "allow"),
        ("git -C src log", "ask", "allow"),
        ("git -C ./a/b --no-pager log", "ask", "allow"),
        ("git -C .. log", "ask", "ask"),
        ("git -C a/../../b log", "ask", "ask"),
        ("git -C /x log", "ask", "ask"),
        ("git -C ~ log", "ask", "ask"),
        ("git -c a.b=c log", "ask", "ask"),
        ("git -p log", "ask", "ask"),
        ("git --git-dir x log", "ask", "ask"),
        ("git -C log status", "ask", "ask"),
        ("git --no-pager push --force", "deny", "deny"),
        ("git -C src push --force", "deny", "deny"),
        ("./git --no-pager log", "ask", "ask"),
    ] {
        for (is_preset, expect) in [(false, of_own), (true, of_preset)] {
            let policy = Policy {
                permissions: of(is_preset),
                ..Policy::default()
            };
            assert_eq!(decide(&policy, plain(parts)), expect, "{parts}");
        }
    }
}

#[test]
fn a_move_that_loses_files_is_refused_whatever_the_rules_allow() {
    let mut call = plain("mv a ..");
    assert_eq!(decide(&open(), call.clone()), "allow");
    call.command.as_mut().unwrap().places.lost = vec!["..".to_owned()];
    let decided = decide(&open(), call);
    assert!(decided.starts_with("deny"), "{decided}");
}
