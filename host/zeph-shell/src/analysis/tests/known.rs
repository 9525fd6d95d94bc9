//! Values that a line gives its variables: what is put in, and that bash has the same.

use zeph_core::command::{CommandLine, SimpleCommand, Wraps};

use super::super::analyse;

/// The calls of `rm` with values put in, beside those as they are written.
pub(super) fn put_in(line: &CommandLine) -> impl Iterator<Item = &SimpleCommand> {
    let is_put_in =
        |command: &&SimpleCommand| command.wraps == Wraps::Within && command.name == "rm";
    line.commands.iter().filter(is_put_in)
}

#[test]
fn a_variable_has_the_value_that_the_line_gives_it() {
    for (text, expected) in [
        ("o=-rf; rm $o x", "rm -rf x"),
        ("o=-rf; rm \"$o\" x", "rm -rf x"),
        ("o=-rf; rm ${o} x", "rm -rf x"),
        ("o=-rf; rm ${o:-y} x", "rm -rf x"),
        ("o='-r -f'; rm $o x", "rm -r -f x"),
        ("o=rf; rm -$o x", "rm -rf x"),
        ("a=r; b=-${a}f; rm $b x", "rm -rf x"),
        ("export o=-rf; rm $o x", "rm -rf x"),
        ("declare -r o=-rf; rm $o x", "rm -rf x"),
        ("o=-rf && cd y && rm $o x", "rm -rf x"),
        ("o=-rf; if a; then rm $o x; fi", "rm -rf x"),
        ("o=-rf; for i in 1 2; do rm $o $i; done", "rm -rf $i"),
        ("o=-rf; (rm $o x)", "rm -rf x"),
        ("o=-rf; echo $(rm $o x)", "rm -rf x"),
        ("o=-rf; a | rm $o x", "rm -rf x"),
        ("o=-rf; sudo rm $o x", "rm -rf x"),
        ("o=-rf; env A=1 rm $o x", "rm -rf x"),
        ("o=-rf; ls | xargs rm $o", "rm -rf"),
        ("o=-rf; bash -c \"rm $o x\"", "rm -rf x"),
        ("export o=-rf; bash -c 'rm $o x'", "rm -rf x"),
        ("o=-rf bash -c 'rm $o x'", "rm -rf x"),
        ("o=-rf; export o; sh -c 'rm $o x'", "rm -rf x"),
        ("f() { o=-rf; rm $o x; }; f", "rm -rf x"),
        ("r=rm; $r -rf x", "rm -rf x"),
        ("c='rm -rf'; $c x", "rm -rf x"),
        ("c='rm -rf x'; eval \"$c\"", "rm -rf x"),
        ("c='rm -rf x'; bash -c \"$c\"", "rm -rf x"),
        ("bash -c 'o=-rf; rm $o x'", "rm -rf x"),
        ("o=-rf\nrm $o x", "rm -rf x"),
        ("o=a; o=-rf; rm $o x", "rm -rf x"),
        ("o=-rf; rm $o $y", "rm -rf $y"),
        ("o=-rf; IFS= read -r line; rm $o x", "rm -rf x"),
    ] {
        let line = analyse(text);
        let mut found = put_in(&line);
        let is_found = found.any(|command| command.text() == expected);
        assert!(is_found, "{expected} is not seen in {text}: {line:#?}");
    }
}

#[test]
fn the_command_as_it_is_written_stays() {
    let line = analyse("o=-rf; rm $o x");
    assert_eq!(line.commands.len(), 2, "{line:#?}");
    assert_eq!(line.commands[0].text(), "rm $o x");
    assert_eq!(line.commands[0].holes.len(), 1);
    assert_eq!(line.commands[0].wraps, Wraps::Nothing);
    let line = analyse("d=src; cd $d");
    assert_eq!(line.moves, [None]);
}

#[test]
fn a_variable_that_may_have_another_value_has_none() {
    for changed in [
        "o+=x",
        "read o",
        "unset o",
        "o=$(a)",
        "(o=x)",
        "a || o=x",
        "a && o=x",
        "{ o=x; }",
        "if a; then o=x; fi",
        "while a; do o=x; done",
        "o=x | b",
        "o=x &",
        "for o in a b; do :; done",
        "printf -v o x",
        "((o = 1))",
        "let o=1",
        "declare -i o",
        "declare -n o=p",
        "o[0]=x",
        "mapfile o",
        "IFS=r",
        "eval \"$z\"",
        ". ./file",
        "o=(a b)",
        "o=*.c",
        "o=~",
        "local -l o",
        "read \"$z\"",
        ": $((o = 1))",
    ] {
        let text = format!("o=-rf; {changed}; rm $o x");
        let line = analyse(&text);
        assert_eq!(put_in(&line).count(), 0, "{text}: {line:#?}");
    }
    for text in [
        "rm $o x",
        "f() { o=x; }; o=-rf; f; rm $o x",
        "o=-rf rm $o x",
        "o=-rf; bash -c 'rm $o x'",
        "o='*.c'; rm $o x",
        "o=-rf; rm ${o%f} x",
        "o=; rm ${o:-y} x",
        "o=-rf; rm '$o' x",
    ] {
        let line = analyse(text);
        assert_eq!(put_in(&line).count(), 0, "{text}: {line:#?}");
    }
}

/// Ways to give `v` a value, ways to change it or not, and commands that use it, each of which runs.
pub(super) fn lines() -> Vec<String> {
    let sets = [
        "v=-rf",
        "v='a b'",
        "v=\"a  b \"",
        "v=$'x\\ty'",
        "export v=-x",
        "a=-r; v=${a}f",
        "v=",
        "declare v=z",
        "v=é",
        "v=\"it's\"",
        "v=a; v=$v$v",
        "v='$x'",
        "v='a;b'",
        "v=~x",
        "v={a,b}",
        "v=a.txt",
    ];
    let changes = [
        "",
        "v+=z; ",
        "read -r v < a.txt; ",
        "unset v; ",
        "(v=2); ",
        "no && v=2; ",
        "tool && v=2; ",
        "tool || v=2; ",
        "{ v=2; }; ",
        "f() { v=2; }; f; ",
        "v=2 true; ",
        "printf -v v 2; ",
        ": ${v:=2}; ",
        "for v in 1; do :; done; ",
        "((v = 2)); ",
        "let v=2; ",
        "declare v=2; ",
        "declare -i v; ",
        "declare -u v=q; ",
        "IFS=-; ",
        "eval v=2; ",
        "if tool; then v=2; fi; ",
        "until tool; do v=2; done; ",
        "v=2 | cat; ",
        "v=2 & ",
        "set -- $v; ",
        "no || v=2 && tool; ",
        "export -n v; ",
        "trap 'v=2' EXIT; ",
        "f() { local v=2; }; f; ",
        "v=3 tool; ",
        "time v=2; ",
        "! v=2; ",
        "select v in a; do break; done < a.txt; ",
        "k=v; declare -n n=k; ",
    ];
    let uses = [
        "rm $v x",
        "rm \"$v\" x",
        "rm -$v",
        "env rm $v",
        "bash -c \"rm '$v'\"",
        "bash -c 'rm $v'",
        "(rm ${v} x)",
        "if tool; then rm $v; fi",
        "f() { rm $v x; }; f",
        "rm x${v:-y}",
        "echo $(rm $v)",
        "echo a | xargs rm $v",
        "v=$v bash -c 'rm $v'",
        "rm $v$v \"$v\"$v",
        "for i in 1; do rm $v; done",
        "tool && rm $v",
        "rm a$v''b",
    ];
    let mut lines = Vec::new();
    for set in sets {
        for change in changes {
            lines.extend(uses.map(|used| format!("{set}; {change}{used}")));
        }
    }
    lines
}
