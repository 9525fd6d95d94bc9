//! A grammar of wrappers and constructs around `rm -rf /`.

use proptest::prelude::*;

/// What may stand around a command: `@` is the command, `'@'` the command as one quoted word.
const AROUND: &[&str] = &[
    "( @ )",
    "{ @; }",
    "if @; then :; fi",
    "if a; then b; else @; fi",
    "while @; do :; done",
    "for i in 1; do @; done",
    "case x in x) @;; esac",
    "f() { @; }",
    "echo $( @ )",
    "echo \"$( @ )\"",
    "x=$( @ )",
    "echo ${x:-$( @ )}",
    "a && @",
    "a | { @; }",
    "@ & b",
    "cat <<E\n$( @ )\nE\n",
    "[[ -n $( @ ) ]]",
    "ls > $( @ )",
    "coproc { @; }",
    "a\n@\n",
    "bash -c '@'",
    "sh -ec '@'",
    "env A=1 bash -c '@'",
    "sudo -u x sh -c '@'",
    "su -c '@'",
    "trap '@' EXIT",
    "eval '@'",
    "xargs -I% sh -c '@'",
    "find . -exec sh -c '@' \\;",
    "flock f -c '@'",
    "script -qc '@'",
    "watch '@'",
    "ssh h '@'",
    "time ( @ )",
    "echo $((1 + $( @ )))",
    "! { @; }",
    "echo \"${x:-\"$( @ )\"}\"",
    "bash <<'E'\n@\nE\n",
    "x=(a $( @ ))",
];

/// Up to twelve of them: what is too deep may be unknown, and is never missed.
pub(super) fn wrapped() -> impl Strategy<Value = String> {
    prop::collection::vec(prop::sample::select(AROUND), 0..12)
        .prop_map(|around| around.iter().fold(start(), wrap))
}

/// Up to three of them, which must be seen through.
pub(super) fn wrapped_a_little() -> impl Strategy<Value = String> {
    prop::collection::vec(prop::sample::select(AROUND), 0..4)
        .prop_map(|around| around.iter().fold(start(), wrap))
        .prop_filter("a document in a document may share its end", |text| {
            text.matches("\nE\n").count() < 2
        })
        .prop_filter("bash counts brackets there, so the line asks", |text| {
            let is_counted = |part: &str| text.contains("$((") && text.contains(part);
            !["case x", "${x", "<<"].into_iter().any(is_counted)
        })
}

fn start() -> String {
    "rm -rf /".to_owned()
}

fn wrap(inner: String, around: &&str) -> String {
    // What follows a here-document begins on a line of its own.
    let quoted = format!("'{}'", inner.replace('\'', "'\\''"));
    match around.contains("'@'") {
        true => around.replace("'@'", &quoted),
        false => around.replace('@', &inner),
    }
}
