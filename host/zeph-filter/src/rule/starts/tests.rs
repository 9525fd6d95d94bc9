use super::starts;
use crate::BUILTIN;
use crate::rule::Matcher;

fn check(pattern: &str, expect: &[&str]) {
    let expect = (!expect.is_empty()).then(|| expect.iter().map(|s| (*s).to_owned()).collect());
    assert_eq!(starts(pattern), expect, "{pattern}");
}

#[test]
fn programs_are_told() {
    check(r"^git\s+diff\b", &["git"]);
    check(r"^(?:ls|tree)(?:\s|$)", &["ls", "tree"]);
    check(r"^docker\s+(?:a|b)|^podman\s", &["docker", "podman"]);
    check(r"^(?:pip3?(?:\.\d+)?|uv\s+pip)\s", &["pip", "uv"]);
    check(r"^(?:tail\s+(?:.*\s)?-[fF]|py\.test)", &["tail", "py"]);
    check(r"^yarn$", &["yarn"]);
}

#[test]
fn what_is_not_plain_is_not_told() {
    check("git", &[]);
    check("^(?:g|b)?make", &[]);
    check(r"^(?:\./)?gradle", &[]);
    check("^g?", &[]);
    check("(?i)^git", &[]);
    check("^git|make", &[]);
    check("^(git|make)", &[]);
    check("^[|]x", &[]);
    check("^", &[]);
    check("", &[]);
}

#[test]
fn no_command_is_passed_over() {
    let mut n_told = 0;
    for (name, text) in BUILTIN {
        let file = crate::rule::read(name, text, &crate::Origin::Builtin);
        for rule in &file.rules {
            let Matcher::Regex(pattern) = &rule.matcher else {
                continue;
            };
            let Some(starts) = starts(&pattern.text) else {
                continue;
            };
            n_told += 1;
            let regex = regex::Regex::new(&pattern.text).expect("an expression");
            for case in &file.cases {
                let command = case.command.as_str();
                let is_told = starts.iter().any(|start| command.starts_with(start));
                assert!(is_told || !regex.is_match(command), "{command}");
            }
        }
    }
    assert!(n_told > 20, "{n_told}");
}
