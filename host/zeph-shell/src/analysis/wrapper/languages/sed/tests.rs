//! Scripts that act, and the reader against the sandbox of GNU sed.

use std::process::Command;

use super::acts_in;
use crate::left_out::leave_out;

#[test]
fn a_script_acts_where_it_runs_writes_or_reads_something_of_its_own() {
    for (script, expect) in [
        ("p", false),
        ("1,5p", false),
        ("5q", false),
        ("$!N;P;D", false),
        ("/a/,/b/{=;p}", false),
        ("0~3d", false),
        ("\\,a,!d", false),
        ("s/a/b/", false),
        ("s/a/b/2gIp;s|x|y|M", false),
        ("s/w/e/;y/ew/we/", false),
        ("s/a/b/ # why", false),
        ("# why", false),
        (":a;N;$!ba;s/\\n/ /g", false),
        ("a write this; w f", false),
        ("i\\\nw f\\\nw g\np", false),
        ("s/a/b/w /dev/stdout", false),
        ("w /dev/stderr\np", false),
        ("r /dev/stdin", false),
        ("l 3;q5;z;F;v 4.2\n=", false),
        ("", false),
        ("e", true),
        ("1e rm x", true),
        ("s/a/b/e", true),
        ("s/a/b/ge", true),
        ("s/a/b/w f", true),
        ("s/a/b/gpw /dev/stdout2", true),
        ("w f", true),
        ("/a/W f", true),
        ("r f", true),
        ("R f", true),
        // They lead to what the stream is.
        ("w /dev/stdin", true),
        ("r /dev/stdout", true),
        ("p;w f", true),
        ("a text\nw f", true),
        ("i\\\ntext\nw f", true),
        ("{p}w f", true),
        ("s/[/]/}a/;1e rm x", true),
        // What no version of sed is known to have.
        ("u x", true),
        ("s/a/b/x", true),
        ("é", true),
    ] {
        assert_eq!(acts_in(script), expect, "{script:?}");
    }
}

/// Pieces of scripts, put together in twos.
const PIECES: [&str; 38] = [
    "p",
    "1,5p",
    "/a;w x/d",
    "s/a/b/",
    "s/[/]/}a/",
    "s/[]/w f]/b/",
    "s,a,b,gw f",
    "s/a/b/e",
    "y/ab/;w/",
    "a text;w f",
    "a\\\ntext",
    "a\\",
    "i\\\ntext\\",
    "c",
    ":a",
    ":a;w f",
    "ba",
    "ta;e",
    "r f",
    "R f",
    "w f",
    "W f",
    "e",
    "1e rm",
    "# w f",
    "{",
    "}",
    "s/a\\/b/w f/",
    "s/a/b\\\nc/",
    "s/a/\\",
    "\\,a;w f,p",
    "/[,/]/p",
    "$!N",
    "q5",
    "l 3",
    "s|a|b|I",
    "0~3d",
    "/a/I",
];

#[expect(
    clippy::disallowed_methods,
    reason = "a sed that runs and writes nothing is what the reader is held against"
)]
fn in_the_sandbox(script: &str) -> Option<String> {
    let sed = Command::new("/bin/sed")
        .args(["--sandbox", "-n", "-e", script, "/dev/null"])
        .env("LC_ALL", "C")
        .output();
    sed.ok()
        .map(|output| String::from_utf8_lossy(&output.stderr).into_owned())
}

#[test]
fn what_the_sandbox_of_sed_refuses_acts() {
    if in_the_sandbox("p") != Some(String::new()) {
        return leave_out("there is no sed with a sandbox");
    }
    let (mut n_refused, mut n_tame) = (0, 0);
    for (at, first) in PIECES.iter().enumerate() {
        for second in PIECES.iter().skip(at % 4).step_by(4) {
            let between = if (n_refused + n_tame) % 2 == 0 {
                ";"
            } else {
                "\n"
            };
            let script = format!("{first}{between}{second}");
            let said = in_the_sandbox(&script).unwrap();
            if said.contains("sandbox mode") {
                n_refused += 1;
                assert!(acts_in(&script), "{script:?}: {said}");
            } else if said.is_empty() && !acts_in(&script) {
                n_tame += 1;
            }
        }
    }
    assert!(n_refused > 80 && n_tame > 50, "{n_refused}, {n_tame}");
}
