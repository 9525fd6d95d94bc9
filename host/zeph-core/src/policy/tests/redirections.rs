//! A redirection that writes is a write to that path, in whatever form it is spelled.

use super::lab::{decide, permissions, redirected, rule, rules};
use crate::policy::{
    Action, AllowRule, Constraint, Decision, Effect, Mode, PermissionRule, PermissionSource,
    Permissions, Policy, PolicyRuleText, Scoped, SessionFacts, authorise,
};

fn bash(rules: &[&str]) -> Policy {
    Policy {
        permissions: permissions("bash", rules),
        directory: "/w".into(),
        ..Policy::default()
    }
}

fn flags(flags: &[&str]) -> Policy {
    let allow = flags
        .iter()
        .map(|rule| AllowRule::parse(rule, "/w").unwrap());
    Policy {
        allow: allow.collect(),
        directory: "/w".into(),
        ..Policy::default()
    }
}

/// Rules of two tools.
fn both(shell: &[&str], write: &[&str]) -> Policy {
    let rules = |tool: &str, texts: &[&str]| {
        let rules = texts.iter().map(|text| {
            let (action, pattern) = text.split_once(' ').unwrap();
            let action = match action {
                "allow" => Action::Allow,
                "ask" => Action::Ask,
                _ => Action::Deny,
            };
            PermissionRule::new(tool, pattern, action, "/w").unwrap()
        });
        rules.collect::<Vec<_>>()
    };
    Policy {
        permissions: PermissionSource::Rules(Permissions::new([
            ("bash".to_owned(), rules("bash", shell)),
            ("write".to_owned(), rules("write", write)),
        ])),
        directory: "/w".into(),
        ..Policy::default()
    }
}

#[test]
fn a_rule_for_a_command_does_not_let_it_write() {
    let policy = bash(&["allow ls*"]);
    let operators = [
        ">", ">>", ">|", "&>", "&>>", "<>", ">&", "2>", "{fd}>", "1>", "10>",
    ];
    for operator in operators {
        let call = redirected("ls", &[&format!("{operator} src/main.rs")]);
        assert_eq!(decide(&policy, call), "ask", "{operator}");
    }
    assert_eq!(
        decide(&policy, redirected("ls", &["< src/main.rs"])),
        "allow"
    );
    assert_eq!(decide(&policy, redirected("ls", &["> ?"])), "ask");
    assert_eq!(
        decide(&flags(&["bash:ls*"]), redirected("ls", &["> a"])),
        "ask"
    );
    assert_eq!(
        decide(&bash(&["allow *"]), redirected("ls", &["> a"])),
        "allow"
    );
    assert_eq!(
        decide(&flags(&["bash"]), redirected("ls", &["> ?"])),
        "allow"
    );
    assert_eq!(
        decide(&flags(&["bash:ls > a"]), redirected("ls", &["> a"])),
        "allow"
    );
}

#[test]
fn what_keeps_nothing_is_free() {
    let policy = Policy {
        roots: vec!["/w".into(), "/tmp/kept".into()],
        ..bash(&["allow ls*"])
    };
    let table = [
        ("> /dev/null", "allow"),
        ("2> /dev/null", "allow"),
        ("&> /dev/null", "allow"),
        ("> /dev/stderr", "allow"),
        ("> /dev/fd/3", "ask"),
        ("> /dev/sda", "ask"),
        ("> /dev/null/../sda", "ask"),
        ("> /tmp/a", "allow"),
        (">> /tmp/a/b", "allow"),
        ("> /var/tmp/a", "allow"),
        ("> /tmp", "ask"),
        ("> /tmp/../w/a", "ask"),
        ("> /tmp/kept/a", "ask"),
        ("> /tmpx", "ask"),
    ];
    for (redirection, expect) in table {
        assert_eq!(
            decide(&policy, redirected("ls", &[redirection])),
            expect,
            "{redirection}"
        );
    }
    let opened = redirected("ls", &["< src/main.rs", "> /dev/stdout"]);
    assert_eq!(decide(&policy, opened), "ask", "the stream may be the file");
    let mut shared = redirected("ls", &["> /tmp/a"]);
    shared.command.as_mut().unwrap().places.has_private_tmp = false;
    assert_eq!(
        decide(&policy, shared),
        "ask",
        "a /tmp that outlives the command"
    );
}

#[test]
fn a_rule_that_spells_it_allows_it() {
    let table = [
        ("ls > out.txt", "ls", "> out.txt", "allow"),
        ("ls > out.txt", "ls", ">| out.txt", "allow"),
        ("ls >out.txt", "ls", "1> out.txt", "allow"),
        ("ls > out.txt", "ls", ">> out.txt", "ask"),
        ("ls >> out.txt", "ls", ">> out.txt", "allow"),
        ("ls >> out.txt", "ls", "> out.txt", "ask"),
        ("ls 2> out.txt", "ls", "2> out.txt", "allow"),
        ("ls > out.txt", "ls", "2> out.txt", "ask"),
        ("ls &> out.txt", "ls", ">& out.txt", "allow"),
        ("ls > out.txt 2>&1", "ls", "> out.txt", "allow"),
        ("ls > out.txt", "pwd", "> out.txt", "ask"),
        ("ls * > out.txt", "ls", "> out.txt", "allow"),
        ("ls * > out.txt", "ls -l", "> out.txt", "allow"),
        ("ls * > out/*", "ls", "> out/a/b", "allow"),
        ("ls * > out/*", "ls", "> src/a", "ask"),
        ("ls * > out/*", "ls", "> /w/out/a", "allow"),
        ("ls * > /w/out/*", "ls", "> out/a", "allow"),
        // Words that look like a redirection are none.
        ("ls * > out*", "ls > out", "> src/a", "ask"),
        ("> out.txt", "", "> out.txt", "allow"),
        ("ls > out.txt", "", "> out.txt", "ask"),
    ];
    for (pattern, command, redirection, expect) in table {
        let policy = bash(&[&format!("allow {pattern}")]);
        let call = redirected(command, &[redirection]);
        assert_eq!(
            decide(&policy, call),
            expect,
            "{pattern}: {command} {redirection}"
        );
        let policy = flags(&[&format!("bash:{pattern}")]);
        let call = redirected(command, &[redirection]);
        assert_eq!(
            decide(&policy, call),
            expect,
            "--allow {pattern}: {command} {redirection}"
        );
    }
    let two = redirected("ls", &["> out.txt", "2> src/main.rs"]);
    assert_eq!(decide(&bash(&["allow ls > out.txt"]), two), "ask");
    let refused = redirected("ls", &["> src/main.rs"]);
    assert_eq!(
        decide(&bash(&["deny ls > src/*", "allow *"]), refused),
        "deny"
    );
}

#[test]
fn a_rule_for_write_is_for_redirections_too() {
    let table: [(&[&str], &[&str], &str, &str); 9] = [
        (&["allow ls"], &["allow out/*"], "> out/a", "allow"),
        (&["allow ls"], &["allow out/*"], "> src/a", "ask"),
        (&["allow ls"], &["allow *"], "> src/a", "allow"),
        (&["allow ls"], &["ask src/*", "allow *"], "> src/a", "ask"),
        (&["allow ls"], &["deny src/*", "allow *"], "> src/a", "deny"),
        (&["allow *"], &["deny src/*"], "> src/a", "deny"),
        (&["allow ls > src/*"], &["deny src/*"], "> src/a", "deny"),
        (&["allow ls", "ask *"], &["allow *"], "> src/a", "allow"),
        (&["allow ls"], &["allow *"], "> ?", "ask"),
    ];
    for (shell, write, redirection, expect) in table {
        let call = redirected("ls", &[redirection]);
        assert_eq!(
            decide(&both(shell, write), call),
            expect,
            "{shell:?} {write:?} {redirection}"
        );
    }
    let call = || redirected("ls", &["> src/a"]);
    assert_eq!(decide(&flags(&["bash:ls", "write:src/*"]), call()), "allow");
    assert_eq!(
        decide(&flags(&["bash:ls", "file__write:src/*"]), call()),
        "allow"
    );
    assert_eq!(decide(&flags(&["bash:ls", "write:out/*"]), call()), "ask");
    assert_eq!(decide(&flags(&["write"]), call()), "ask");
}

#[test]
fn a_policy_sees_redirections() {
    let shell = |expression: Option<&str>| rule(Effect::Allow, "bash", expression);
    let write = |effect, path: &str| PolicyRuleText {
        paths: vec![path.to_owned()],
        ..rule(effect, "write", None)
    };
    let table = [
        (vec![shell(Some("^ls"))], "ask"),
        (vec![shell(Some("^ls > src/"))], "ask"),
        (vec![shell(Some("^ls( > src/.*)?$"))], "allow"),
        (vec![shell(None)], "allow"),
        (
            vec![shell(Some("^ls$")), write(Effect::Allow, "src/*")],
            "allow",
        ),
        (
            vec![shell(Some("^ls$")), write(Effect::Allow, "out/*")],
            "ask",
        ),
        (vec![write(Effect::Deny, "src/*"), shell(None)], "deny"),
        (vec![shell(None), write(Effect::Deny, "src/*")], "deny"),
        (vec![rule(Effect::Deny, "write", None), shell(None)], "deny"),
        (
            vec![rule(Effect::Deny, "bash", Some("> src/")), shell(None)],
            "deny",
        ),
    ];
    for (texts, expect) in table {
        let policy = Policy {
            rules: rules(&texts, Effect::Allow),
            ..Policy::default()
        };
        assert_eq!(
            decide(&policy, redirected("ls", &["> src/a"])),
            expect,
            "{texts:?}"
        );
    }
    let policy = Policy {
        rules: rules(&[write(Effect::Deny, "src/*"), shell(None)], Effect::Allow),
        ..Policy::default()
    };
    assert_eq!(decide(&policy, redirected("ls", &["> ?"])), "ask");
    let allowed = Policy {
        rules: rules(&[write(Effect::Allow, "src/*")], Effect::Allow),
        ..bash(&["allow ls"])
    };
    assert_eq!(decide(&allowed, redirected("ls", &["> src/a"])), "allow");
}

#[test]
fn a_constraint_of_paths_sees_redirections() {
    for tool in ["bash", "write"] {
        let constraint = Constraint::new(&[], vec!["/w/out".into(), "/w/src".into()]).unwrap();
        let policy = Policy {
            scoped: Some(Scoped::new(
                None,
                Vec::new(),
                vec![(tool.to_owned(), constraint)],
            )),
            ..bash(&["allow *"])
        };
        let in_out = |redirection: &str| {
            let mut call = redirected("ls", &[redirection]);
            let line = call.command.as_mut().unwrap();
            line.places.directories = Some(vec!["/w/out".into()]);
            decide(&policy, call)
        };
        assert_eq!(in_out("> src/a"), "allow", "{tool}");
        assert_eq!(in_out("> a"), "deny", "{tool}");
        assert_eq!(in_out("> ?"), "deny", "{tool}");
        assert_eq!(in_out("> /dev/null"), "allow", "{tool}");
    }
}

#[test]
fn the_denied_patterns_of_write_see_redirections() {
    let decided = |mode, pattern: &str, redirection: &str| {
        let constraint = Constraint::new(&[pattern.to_owned()], Vec::new()).unwrap();
        let constraints = vec![("write".to_owned(), constraint.with_mode(mode))];
        let policy = Policy {
            scoped: Some(Scoped::new(None, Vec::new(), constraints)),
            ..bash(&["allow *"])
        };
        decide(&policy, redirected("ls", &[redirection]))
    };
    for (pattern, redirection, expect) in [
        ("*.env", "> prod.env", "deny"),
        ("*.env", "2>> src/PROD.env", "deny"),
        ("secrets/*", "> secrets/x", "deny"),
        ("/w/secrets", "&> secrets/x", "deny"),
        ("re:secret|key$", "> my.key", "deny"),
        ("*.env", "> out.txt", "allow"),
        ("*.env", "< prod.env", "allow"),
        ("*.env", "> /dev/null", "allow"),
        // It is known only when it runs.
        ("*.env", "> ?", "ask"),
    ] {
        let said = decided(Mode::Deny, pattern, redirection);
        assert_eq!(said, expect, "{pattern} {redirection}");
    }
    assert_eq!(decided(Mode::Ask, "*.env", "> a.env"), "ask");
    assert_eq!(decided(Mode::Ask, "*.env", "> ?"), "ask");
}

#[test]
fn a_refusal_names_the_rule_for_the_file() {
    let refused = |call| match authorise(&bash(&["allow ls"]), &SessionFacts::default(), call) {
        Decision::Ask(refusal) => refusal,
        other => panic!("{other:?}"),
    };
    let refusal = refused(redirected("ls", &["> src/a b"]));
    assert_eq!(refusal.allow, ["write:src/a b"]);
    assert!(
        refusal.failure.message.contains("--allow 'write:src/a b'"),
        "{}",
        refusal.failure.message
    );
    assert_eq!(
        refused(redirected("pwd", &["> /etc/x"])).allow,
        ["bash:pwd", "write:/etc/x"]
    );
    let unknown = refused(redirected("ls", &["> ?"]));
    assert!(
        unknown.reason.contains("the file it writes to"),
        "{}",
        unknown.reason
    );
}

#[test]
fn a_bare_command_fits_the_rule_for_its_arguments() {
    let policy = bash(&["deny rm *", "allow cat *", "allow sort -n *", "allow *"]);
    let rule = |parts: &str| {
        let decision = authorise(&policy, &SessionFacts::default(), redirected(parts, &[]));
        decision.rule().to_owned()
    };
    assert!(rule("cat").contains("`cat *`"));
    assert!(rule("cat x").contains("`cat *`"));
    assert!(rule("sort -n").contains("`sort -n *`"));
    assert!(rule("/bin/rm").contains("`rm *`"));
    assert!(rule("catx").contains("`*`"));
    assert_eq!(
        decide(&flags(&["bash:head *"]), redirected("head", &[])),
        "allow"
    );
}
