//! Two corpora, one table per part of the answer, and properties for hostile texts.

use proptest::prelude::*;
use zeph_core::command::{CommandLine, Wraps};

use super::analyse;

mod corpus;
mod generated;
mod known;
mod nested;
mod options;
mod oracle;
mod quotes;
mod shapes;
mod ways;

fn texts(line: &CommandLine) -> Vec<String> {
    line.commands.iter().map(|command| command.text()).collect()
}

#[test]
fn everyday_commands_are_known() {
    let cases = corpus::everyday(include_str!("everyday.txt"));
    assert!(cases.len() >= 200, "{} cases", cases.len());
    let mut problems = Vec::new();
    for (text, expected) in cases {
        let line = analyse(&text);
        let found: Vec<String> = texts(&line)
            .iter()
            .map(|text| text.replace('\n', "\\n"))
            .collect();
        if found != expected || !line.unknown.is_empty() {
            problems.push((text, found, line.unknown));
        }
    }
    assert!(problems.is_empty(), "{problems:#?}");
}

#[test]
fn hidden_commands_are_found() {
    let cases = corpus::bypasses(include_str!("bypasses.txt"));
    assert!(cases.len() >= 300, "{} cases", cases.len());
    for (text, expected) in cases {
        let line = analyse(&text);
        let is_found = is_seen(&line, &expected);
        assert!(is_found, "{expected} is not seen in {text}: {line:#?}");
    }
}

/// Whether a line shows that something is unknown (`?`), a program (`~name`), or a whole command.
fn is_seen(line: &CommandLine, expected: &str) -> bool {
    let mut commands = line.commands.iter();
    match expected.strip_prefix('~') {
        _ if expected == "?" => !line.unknown.is_empty(),
        Some(name) => commands.any(|command| command.base_name() == name),
        None => commands.any(|command| command.text() == expected),
    }
}

#[test]
fn wrappers_have_their_kind() {
    let check = |text: &str, expected: &[Wraps]| {
        let line = analyse(text);
        let found: Vec<Wraps> = line.commands.iter().map(|command| command.wraps).collect();
        assert_eq!(found, expected, "{text}");
    };
    use Wraps::{Nothing, Transparently, WithEffect};
    check("ls", &[Nothing]);
    check("env A=1 ls", &[Transparently, Nothing]);
    check("env", &[Nothing]);
    check("time ls", &[Transparently, Nothing]);
    check("/usr/bin/time -f %e ls", &[Transparently, Nothing]);
    check("/usr/bin/time -ao x ls", &[WithEffect, Nothing]);
    check("env time --out=x ls", &[Transparently, WithEffect, Nothing]);
    check("command -v ls", &[Nothing]);
    check("bash -c 'a; b'", &[Transparently, Nothing, Nothing]);
    check("bash script.sh", &[Nothing]);
    check("sudo ls", &[WithEffect, Nothing]);
    check("sudo timeout 3 ls", &[WithEffect, Transparently, Nothing]);
    check("find .", &[Nothing]);
    check("find . -exec ls {} +", &[WithEffect, Nothing]);
    check("xargs", &[Nothing]);
    check("xargs ls", &[WithEffect, Nothing]);
}

#[test]
fn a_function_is_its_body() {
    let check = |text: &str, expected: &[(&str, Wraps)]| {
        let line = analyse(text);
        let commands = line.commands.iter();
        let found: Vec<(String, Wraps)> = commands.map(|c| (c.text(), c.wraps)).collect();
        let expected: Vec<(String, Wraps)> = expected
            .iter()
            .map(|(text, wraps)| ((*text).to_owned(), *wraps))
            .collect();
        assert_eq!(found, expected, "{text}");
    };
    use Wraps::{Nothing, Transparently, Within};
    check("f() { a; }; f x", &[("a", Nothing), ("f x", Within)]);
    check(
        "f() { a; }\nx && f | b",
        &[
            ("a", Nothing),
            ("x", Nothing),
            ("f", Within),
            ("b", Nothing),
        ],
    );
    check(
        "function f { a; }; echo $(f)",
        &[("a", Nothing), ("echo $(f)", Nothing), ("f", Within)],
    );
    check(
        "f() { a; }; g() { f; }; g",
        &[("a", Nothing), ("f", Within), ("g", Within)],
    );
    // A program of the name may run instead.
    for text in [
        "f; f() { a; }",
        "x && f() { a; }; f",
        "x || f() { a; }; f",
        "f() { a; } & f",
        "f() { a; } && b & f",
        "(f() { a; }); f",
        "if x; then f() { a; }; fi; f",
        "f() { a; } | b; f",
        "f() { a; }; unset -f f; f",
        "f() { a; }; f; un\\set f",
        "f() { a; }; env f",
        "f() { a; }; command f",
        "f() { a; }; xargs f",
        "f() { a; }; bash -c f",
    ] {
        let line = analyse(text);
        let calls = line.commands.iter().filter(|c| c.base_name() == "f");
        assert!(
            calls.clone().count() > 0 || !line.unknown.is_empty(),
            "{text}"
        );
        assert!(
            calls.clone().all(|c| c.wraps != Within),
            "{text}: {line:#?}"
        );
    }
    check(
        "f() { a; }; time f",
        &[("a", Nothing), ("time f", Transparently), ("f", Within)],
    );
}

#[test]
fn holes_are_what_is_not_known() {
    use zeph_core::command::Becomes::{Names, Operand, Text, Words};
    let check = |text: &str, expected: &[(usize, &str, zeph_core::command::Becomes)]| {
        let line = analyse(text);
        let command = line.commands.last().cloned();
        let command = command.into_iter().next();
        let holes: Vec<(usize, String, zeph_core::command::Becomes)> = command
            .iter()
            .flat_map(|c| c.holes.iter().map(move |h| (c, h)))
            .map(|(c, h)| {
                let word = c
                    .arguments
                    .get(h.argument)
                    .map_or("", |word| &word[h.start..h.end]);
                (h.argument, word.to_owned(), h.becomes)
            })
            .collect();
        let expected: Vec<(usize, String, zeph_core::command::Becomes)> = expected
            .iter()
            .map(|(at, text, b)| (*at, (*text).to_owned(), *b))
            .collect();
        assert_eq!(holes, expected, "{text}");
    };
    check("rm a 'b' \"c\"", &[]);
    check("rm a $x b\"$y\"c", &[(1, "$x", Words), (2, "$y", Text)]);
    check("rm src/*.o ~/x", &[(0, "*", Names), (1, "~", Operand)]);
    check("rm x[ab]c", &[(0, "x[ab]c", Names)]);
    check("rm \"$@\"", &[(0, "$@", Words)]);
    check("xargs rm -f", &[(1, "", Words)]);
    check("xargs -I% rm a%b", &[(0, "%", Text)]);
    check("find . -exec rm {} +", &[(0, "{}", Operand)]);
    check("rm {a,$x}", &[(1, "$x", Words)]);
    // Found by the oracle: braces are expanded before variables are read, and not by every shell.
    check("rm {a,$x}y", &[(0, "{a,$x}y", Words)]);
    check("rm {$,a}x", &[(0, "{$,a}x", Words)]);
    check("rm {a,${x}}y", &[(1, "${x}", Words)]);
    check("sh -c 'rm {a,b}'", &[(0, "{a,b}", Words)]);
}

#[test]
fn literal_is_what_a_command_gets() {
    let check = |text: &str, expected: bool| {
        let line = analyse(text);
        assert_eq!(
            line.commands.first().map(|command| command.is_literal),
            Some(expected),
            "{text}"
        );
    };
    check("rm 'a b' \"c\" d\\ e", true);
    check("[ -f x ]", true);
    check("echo '*' \"~\" '{a,b}'", true);
    check("find . -exec ls {} +", true);
    check("rm $x", false);
    check("rm \"$x\"", false);
    check("rm *.o", false);
    check("rm a?", false);
    check("rm [ab]", false);
    check("rm ~", false);
    check("rm {a,b}", true);
    check("rm {a,$x}", false);
    check("rm {a,*}", false);
    check("rm `ls`", false);
    check("~/bin/tool", false);
}

#[test]
fn redirections_are_listed() {
    let check = |text: &str, expected: &[(&str, Option<&str>)]| {
        let line = analyse(text);
        let found = line
            .redirections
            .iter()
            .filter(|redirection| redirection.writes);
        let found: Vec<_> = found
            .map(|redirection| (redirection.operator.as_str(), redirection.target.as_deref()))
            .collect();
        assert_eq!(found, expected, "{text}");
    };
    check("ls", &[]);
    check(
        "ls > a 2>> 'b c'",
        &[(">", Some("a")), ("2>>", Some("b c"))],
    );
    check("ls >| a", &[(">|", Some("a"))]);
    check(
        "ls &> a; ls &>> b",
        &[("&>", Some("a")), ("&>>", Some("b"))],
    );
    check("ls >& a", &[(">&", Some("a"))]);
    check("ls <> a", &[("<>", Some("a"))]);
    check("ls {fd}> a", &[("{fd}>", Some("a"))]);
    check("exec 3> a", &[("3>", Some("a"))]);
    check("> a", &[(">", Some("a"))]);
    check("ls > \"$x\"", &[(">", None)]);
    check("ls >& \"$x\"", &[(">&", None)]);
    check("ls > ~/x", &[(">", Some("~/x"))]);
    check("ls > '~/x'", &[(">", Some("./~/x"))]);
    check("ls > *", &[(">", None)]);
    check("ls 2>&1 >/dev/null 3>&- 4>&1-", &[(">", Some("/dev/null"))]);
    check("cat < a <<< b", &[]);
    check(
        "(ls; { pwd > a; }) > b",
        &[(">", Some("a")), (">", Some("b"))],
    );
    check("f() { ls; } > a", &[(">", Some("a"))]);
    check("for i in 1; do ls; done > a", &[(">", Some("a"))]);
    check("if ls; then pwd; fi > a", &[(">", Some("a"))]);
    check("[[ -f x ]] > a", &[(">", Some("a"))]);
    check("echo $(ls > a)", &[(">", Some("a"))]);
    check(
        "cat <(ls > a) > >(tee b > c)",
        &[(">", Some("a")), (">", Some("c"))],
    );
    check(
        "cat <<E > a\n$(ls > b)\nE",
        &[(">", Some("b")), (">", Some("a"))],
    );
    check("bash -c 'ls > a'", &[(">", Some("a"))]);
    check(
        "env -C sub bash -c 'ls > a; ls > /b'",
        &[(">", None), (">", Some("/b"))],
    );
    check("find . -execdir bash -c 'ls > a' \\;", &[(">", None)]);
}

#[test]
fn the_commands_of_a_redirection_are_told() {
    let check = |text: &str, expected: &[&str]| {
        let line = analyse(text);
        let redirection = &line.redirections[0];
        let commands = &line.commands[redirection.commands.clone()];
        let found: Vec<String> = commands.iter().map(|command| command.text()).collect();
        assert_eq!(found, expected, "{text}");
    };
    check("a; ls -l > x; b", &["ls -l"]);
    check("ls $(pwd) > x", &["ls $(pwd)"]);
    check("timeout 3 ls > x", &["timeout 3 ls", "ls"]);
    check("{ a; b; } > x", &["a", "b"]);
    check("> x", &[]);
}

#[test]
fn changes_of_directory_are_listed() {
    let check = |text: &str, expected: &[Option<&str>]| {
        let line = analyse(text);
        let found: Vec<_> = line.moves.iter().map(Option::as_deref).collect();
        assert_eq!(found, expected, "{text}");
    };
    check("ls", &[]);
    check(
        "cd a && cd -P b; cd -- c",
        &[Some("a"), Some("b"), Some("c")],
    );
    check("cd", &[Some("~")]);
    check("cd ~/a", &[Some("~/a")]);
    check("cd -", &[None]);
    check("cd $x", &[None]);
    check("cd \"$x\"", &[None]);
    check("pushd a; pushd +1; pushd; popd", &[Some("a")]);
    check("command cd a; (cd b)", &[Some("a"), Some("b")]);
    check("for i in 1 2; do cd ..; done", &[None]);
    check("f() { cd a; }; f; f", &[None]);
    check("while a; do cd /b; done", &[Some("/b")]);
}

#[test]
fn what_prints_last_is_found() {
    let check = |text: &str, expected: Option<(&str, &[&str], bool)>| {
        let line = analyse(text);
        let found = line.last.as_ref().map(|last| {
            let pipes: Vec<&str> = last.pipes.iter().map(String::as_str).collect();
            (last.command.text(), pipes, last.is_one_of_several)
        });
        let expected =
            expected.map(|(text, pipes, several)| (text.to_owned(), pipes.to_vec(), several));
        assert_eq!(found, expected, "{text}");
    };
    check("cargo test", Some(("cargo test", &[], false)));
    check(
        "cd x && A=1 env B=2 timeout 9 cargo test 2>&1 | tail -5",
        Some(("cargo test", &["tail"], false)),
    );
    check(
        "export A=1; source venv/bin/activate; set -e; cargo test",
        Some(("cargo test", &[], false)),
    );
    check("a; b", Some(("b", &[], true)));
    check("a && b | c | d", Some(("b", &["c", "d"], true)));
    check("a > log", None);
    check("cd x", None);
    check("x=$(a)", None);
    check("", None);
    check("(cd x; a)", Some(("a", &[], false)));
    check("(a; b)", Some(("b", &[], true)));
    check("bash -c 'cd x; a' | head", Some(("a", &["head"], false)));
    check("for i in 1 2; do a; done", None);
    check("for i in 1 2; do a; done; b", Some(("b", &[], true)));
    check("a; while x; do y; done", None);
    check("a -q; echo \"exit: $?\"", Some(("a -q", &[], true)));
    check(
        "a 2>&1 | tail -5; printf '%s\\n' ${PIPESTATUS[0]}",
        Some(("a", &["tail"], true)),
    );
    check("a; b; echo; echo done $?", Some(("b", &[], true)));
    check("echo done $?", Some(("echo done $?", &[], false)));
    check("a; echo \"$x\"", Some(("echo $x", &[], true)));
    check("a; echo $(b)", Some(("echo $(b)", &[], true)));
    check("a; echo *", Some(("echo *", &[], true)));
    check("a; echo $? | b", Some(("echo $?", &["b"], true)));
    check("while x; do y; done; echo $?", None);
    check("f() { a; }; b", Some(("b", &[], false)));
    check("[[ -f x ]] && a", Some(("a", &[], false)));
    check("sudo a", Some(("sudo a", &[], false)));
    check("$x", None);
    check("a | while read l; do b; done", None);
}

/// Whether others than the last command may have printed.
#[test]
fn what_else_is_seen_is_known() {
    let check = |text: &str, is_one_of_several: bool| {
        let last = analyse(text).last;
        let found = last.map(|last| (last.command.text(), last.is_one_of_several));
        assert_eq!(found, Some(("a".to_owned(), is_one_of_several)), "{text}");
    };
    for text in [
        "b > log; a",
        "a; b > log",
        "a; bash x.sh 2>&1 > log",
        "{ b; c; } >> log; a",
        "a; bash -c 'b > log'",
        "source x.sh; a",
        ". ./x.sh; a",
        "trap 'echo over' EXIT; a",
        "set; a",
        "export -p; a",
        "declare -f; a",
        "alias; a",
        "ulimit -a; a",
        "shopt; a",
        "b > /dev/stderr; a",
        "b >&2; a",
        "b <> log; a",
        "b >&-; a",
    ] {
        check(text, true);
    }
    for text in [
        "b > log 2>&1; a",
        "b &> log; a",
        "b >& log; a",
        "b &>> log; a",
        "b 2> log >&2; a",
        "b > log 2> /dev/null; a",
        "{ b; c; } > log 2>&1; a",
        "cat <<E > x\nb\nE\na",
        "echo x > log; a",
        "x=1 > log; a",
        ". .venv/bin/activate && a",
        "set -euo pipefail; set -o pipefail; a",
        "trap - EXIT; a",
        "export A=1; declare -a x=(1); umask 022; ulimit -n 99; shopt -s nullglob; alias x=y; a",
    ] {
        check(text, false);
    }
    assert_eq!(analyse("a; source x.sh").last, None);
    assert_eq!(analyse("a & b; wait").last, None);
}

#[test]
fn limits_are_unknown() {
    let check = |text: &str| {
        let line = analyse(text);
        assert!(!line.unknown.is_empty(), "{} bytes", text.len());
        assert!(line.commands.len() <= 1_000);
        assert!(
            line.unknown
                .iter()
                .all(|unknown| unknown.part.chars().count() <= 200)
        );
    };
    check(&format!("echo {}", "a".repeat(128 * 1024)));
    check("echo a\0b");
    check(&"a;".repeat(1_001));
    check(&format!("{}rm", "env ".repeat(20)));
    check(&format!("{}rm", "bwrap ".repeat(5_000)));
    check(&format!("{}ls{}", "( ".repeat(20_000), " )".repeat(20_000)));
    for (open, close) in [
        ("echo $(", ")"),
        ("$((", "))"),
        ("\"${x:-", "}\""),
        ("{ ", "; }"),
        ("coproc $(", ")"),
    ] {
        check(&format!("{}ls{}", open.repeat(5_000), close.repeat(5_000)));
    }
}

#[test]
fn ordinary_depth_is_known() {
    let line = analyse(
        "if a; then for i in 1; do while b; do case x in x) (f \"$(g \"$(h)\")\") ;; esac; done; done; fi",
    );
    assert_eq!(line.unknown, Vec::new());
    assert_eq!(texts(&line).len(), 5);
}

/// Ways of writing a name that bash undoes.
fn quoted(name: &str, way: usize) -> String {
    match way {
        0 => format!("'{name}'"),
        1 => format!("\"{name}\""),
        2 => name.chars().map(|c| format!("\\{c}")).collect(),
        3 => name
            .chars()
            .map(|c| format!("$'\\x{:02x}'", u32::from(c)))
            .collect(),
        4 => name.chars().map(|c| format!("''\\{c}")).collect(),
        5 => name.chars().map(|c| format!("\"{c}\"\\\n")).collect(),
        6 => name
            .chars()
            .map(|c| format!("$'\\{:03o}'", u32::from(c)))
            .collect(),
        _ => name.to_owned(),
    }
}

proptest! {
    #[test]
    fn any_text_is_taken_apart(text in "(?s).{0,200}") {
        let line = analyse(&text);
        prop_assert!(line.commands.iter().all(|command| !command.text().is_empty()));
    }

    #[test]
    fn any_soup_of_tokens_is_taken_apart(tokens in prop::collection::vec(prop::sample::select(corpus::TOKENS), 0..60)) {
        let text: String = tokens.concat();
        let line = analyse(&text);
        prop_assert!(line.commands.iter().all(|command| !command.text().is_empty()));
    }

    #[test]
    fn quoting_changes_nothing(name in "[a-z]{1,6}", argument in "[a-z /.-]{1,8}", ways in (0usize..8, 0usize..8)) {
        prop_assume!(!corpus::TOKENS.contains(&name.as_str()));
        let text = format!("{} {}", quoted(&name, ways.0), quoted(&argument, ways.1 % 7));
        let line = analyse(&text);
        let plain = analyse(&format!("'{name}' '{argument}'"));
        prop_assert_eq!(texts(&line), texts(&plain), "{}", text);
        prop_assert_eq!(line.unknown, plain.unknown, "{}", text);
    }

    #[test]
    fn nested_wrappers_hide_nothing(text in nested::wrapped()) {
        let line = analyse(&text);
        let is_found = texts(&line).iter().any(|text| text == "rm -rf /");
        prop_assert!(is_found || !line.unknown.is_empty(), "{}", text);
    }

    #[test]
    fn a_few_wrappers_are_seen_through(text in nested::wrapped_a_little()) {
        let line = analyse(&text);
        prop_assert!(texts(&line).iter().any(|text| text == "rm -rf /"), "{}: {:#?}", text, line);
    }
}
