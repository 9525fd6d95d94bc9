//! Rules that refuse hold whatever an argument turns out to be, and in whatever way the program's own options stand before it.

use super::lab::{decide, permissions, plain, rule, rules};
use crate::call::ResolvedCall;
use crate::command::{Becomes, Hole};
use crate::policy::{AllowRule, CommandPattern, Effect, PermissionSource, Policy, ShellLists};

/// A command line in which `"$x"` is text of one word, `$x` any text, `*` names of files, `{}` what `find` finds, and `…` what is added.
fn open(text: &str) -> ResolvedCall {
    let mut call = plain(text);
    let line = call.command.as_mut().unwrap();
    for command in &mut line.commands {
        if command.arguments.last().is_some_and(|word| word == "…") {
            command.arguments.pop();
            let argument = command.arguments.len();
            command.holes.push(hole(argument, 0, 0, Becomes::Words));
        }
        for (at, word) in command.arguments.iter().enumerate() {
            let kinds = [
                ("\"$x\"", Becomes::Text),
                ("$x", Becomes::Words),
                ("*", Becomes::Names),
                ("{}", Becomes::Operand),
            ];
            let found = kinds
                .into_iter()
                .find_map(|(mark, becomes)| Some((word.find(mark)?, mark, becomes)));
            if let Some((start, mark, becomes)) = found {
                command
                    .holes
                    .push(hole(at, start, start + mark.len(), becomes));
            }
        }
        command.holes.sort_by_key(|hole| hole.argument);
        command.is_literal = command.holes.is_empty();
    }
    call
}

fn hole(argument: usize, start: usize, end: usize, becomes: Becomes) -> Hole {
    Hole {
        argument,
        start,
        end,
        becomes,
    }
}

fn check(policy: &Policy, table: &[(&str, &str)]) {
    for (text, expect) in table {
        assert_eq!(decide(policy, open(text)), *expect, "{text}");
    }
}

#[test]
fn denials_hold_for_arguments_that_are_not_known() {
    let policy = Policy {
        permissions: permissions(
            "bash",
            &[
                "deny rm -rf *",
                "deny git push *--force*",
                "deny [cd]p -[rR]* /etc*",
                "allow *",
            ],
        ),
        ..Policy::default()
    };
    check(
        &policy,
        &[
            ("rm $x x", "ask"),
            ("rm \"$x\" x", "ask"),
            ("rm -\"$x\" x", "ask"),
            ("rm -r$x x", "ask"),
            ("rm * x", "ask"),
            ("rm …", "ask"),
            ("rm -v …", "ask"),
            ("/bin/rm $x", "ask"),
            ("git push origin $x", "ask"),
            ("git $x", "ask"),
            ("cp -R $x", "ask"),
            ("cp -r \"$x\" /etc/x", "deny"),
            ("rm -rf x", "deny"),
            // Nothing of these can be what is denied.
            ("rm *.o", "allow"),
            ("rm \"$x\"", "allow"),
            ("rm x$x", "allow"),
            ("rm ./* y", "allow"),
            ("rm {}", "allow"),
            ("rm -f x", "allow"),
            ("git commit -m $x", "allow"),
            ("git log $x", "allow"),
            ("ls $x", "allow"),
            ("echo $x", "allow"),
        ],
    );
}

#[test]
fn questions_are_asked_about_options_that_are_not_known() {
    let rules = [
        "ask sort *-o*",
        "ask git *--output*",
        "ask * deploy*",
        "allow *",
    ];
    let policy = Policy {
        permissions: permissions("bash", &rules),
        ..Policy::default()
    };
    check(
        &policy,
        &[
            ("sort $x y", "ask"),
            ("sort \"$x\" y", "ask"),
            ("git log $x", "ask"),
            ("sort -r $x", "ask"),
            ("sort *.txt", "allow"),
            ("git commit -m \"$x\"", "allow"),
            ("git add src/*.rs", "allow"),
            ("ls *", "allow"),
            ("ls src/$x", "allow"),
            ("cat \"$x\"", "allow"),
            ("git log --oneline", "allow"),
        ],
    );
}

#[test]
fn a_doubt_is_lifted_by_the_very_text_only() {
    let with = |allow: &str| Policy {
        allow: vec![AllowRule::parse(allow, "/w").unwrap()],
        permissions: permissions("bash", &["deny rm -rf *"]),
        ..Policy::default()
    };
    assert_eq!(decide(&with("bash:rm *"), open("rm $x y")), "ask");
    assert_eq!(decide(&with("bash:rm $x y"), open("rm $x y")), "allow");
    assert_eq!(decide(&with("bash:rm *"), open("rm x $x")), "allow");
}

#[test]
fn denials_hold_behind_the_options_of_the_program() {
    let policy = Policy {
        permissions: permissions(
            "bash",
            &[
                "deny git push --force*",
                "deny cargo publish*",
                "deny docker compose down*",
                "deny frob drop*",
                "allow *",
            ],
        ),
        ..Policy::default()
    };
    check(
        &policy,
        &[
            ("git -C . push --force", "deny"),
            ("git -c a.b=c --no-pager push --force origin", "deny"),
            ("/usr/bin/git --git-dir x push --force", "deny"),
            ("cargo +nightly --config x.toml publish", "deny"),
            ("docker compose -f x.yml down", "ask"),
            ("docker compose --file=x.yml down", "ask"),
            ("frob --weird drop", "ask"),
            ("frob --weird value drop", "ask"),
            ("frob --weird=value drop", "ask"),
            ("git -C push status", "allow"),
            ("git push origin", "allow"),
            ("git -C . push origin", "allow"),
            ("docker compose -f x.yml up", "allow"),
            ("frob list", "allow"),
        ],
    );
}

#[test]
fn denials_hold_for_shortened_options() {
    let policy = Policy {
        permissions: permissions(
            "bash",
            &["deny tar *--to-command*", "deny rm --recursive*", "allow *"],
        ),
        ..Policy::default()
    };
    check(
        &policy,
        &[
            ("tar xf a --to-com=x", "ask"),
            ("rm --rec x", "deny"),
            ("rm --recursive x", "deny"),
            ("rm --verbose x", "allow"),
            ("rm -- x", "allow"),
        ],
    );
}

#[test]
fn lists_hold_for_arguments_that_are_not_known() {
    let pattern = |text: &str| CommandPattern::new(text).unwrap();
    let policy = Policy {
        permissions: PermissionSource::Lists(ShellLists {
            blocked: vec![
                pattern("dd if="),
                pattern("git push --mirror"),
                pattern("re:^curl .*-o"),
            ],
            confirm: vec![pattern("rm -rf")],
            ..ShellLists::default()
        }),
        rules: rules(&[rule(Effect::Allow, "bash", None)], Effect::Allow),
        ..Policy::default()
    };
    check(
        &policy,
        &[
            ("dd $x of=y", "ask"),
            ("dd i\"$x\" of=y", "ask"),
            ("dd of=\"$x\"", "allow"),
            ("git push $x", "ask"),
            ("git $x --mirror", "ask"),
            ("git -C x push --mirr", "deny"),
            ("git commit $x", "allow"),
            ("curl x $x", "ask"),
            ("curl x -o y", "deny"),
            ("rm $x y", "ask"),
            ("rm y", "allow"),
        ],
    );
}

#[test]
fn expressions_that_deny_hold_for_arguments_that_are_not_known() {
    let policy = Policy {
        allow: vec![AllowRule::parse("bash:*", "/w").unwrap()],
        rules: rules(
            &[rule(
                Effect::Deny,
                "bash",
                Some(r"^rm\s+(-\w*r\w*|--recursive)"),
            )],
            Effect::Allow,
        ),
        ..Policy::default()
    };
    check(
        &policy,
        &[
            ("rm $x y", "ask"),
            ("rm -\"$x\" y", "ask"),
            ("rm -r y", "deny"),
            ("rm y", "allow"),
            ("ls $x", "allow"),
        ],
    );
}

#[test]
fn what_allows_does_not_read_the_text_of_an_expansion() {
    let policy = Policy {
        permissions: permissions(
            "bash",
            &["allow make *test*", "allow cat $HOME/*", "allow ls *"],
        ),
        ..Policy::default()
    };
    check(&policy, &[("ls $x", "allow"), ("make x test", "allow")]);
    let mut call = open("make $x");
    let command = &mut call.command.as_mut().unwrap().commands[0];
    command.arguments[0] = "$(echo install # test)".to_owned();
    command.holes = vec![hole(0, 0, 22, Becomes::Words)];
    assert_eq!(decide(&policy, call), "ask");
    let mut call = open("cat $x");
    let command = &mut call.command.as_mut().unwrap().commands[0];
    command.arguments[0] = "$HOME/x".to_owned();
    command.holes = vec![hole(0, 0, 5, Becomes::Text)];
    assert_eq!(decide(&policy, call), "allow");
}
