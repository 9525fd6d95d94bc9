//! The README's examples: every command of its `console` blocks is run in one fresh directory, in order, and prints what the
//! README says. In the expected output `…` stands for any text, and a line of nothing else for any number of lines.

use std::os::unix::fs::symlink;
use std::process::{Command, Stdio};

use crate::product::Product;

const README: &str = include_str!("../../README.md");

/// A command line, and what it prints on both outputs.
struct Example {
    command: String,
    expected: Vec<String>,
}

#[test]
fn the_examples_of_the_readme_print_what_it_says() {
    let product = Product::new();
    let programs = product.home.join("programs");
    std::fs::create_dir(&programs).unwrap();
    let program = env!("CARGO_BIN_EXE_zeph-host-under-test");
    symlink(program, programs.join("zeph-host")).unwrap();
    // The first start compiles the components and says so.
    product.run(&["tools"]);

    let examples = examples(README);
    assert!(examples.len() >= 6, "the README has lost its examples");
    for Example { command, expected } in examples {
        let path = format!("{}:/usr/bin:/bin", programs.display());
        let printed = run(&product, &path, &command);
        let lines: Vec<&str> = printed.lines().collect();
        let wanted: Vec<&str> = expected.iter().map(String::as_str).collect();
        assert!(
            fits(&wanted, &lines),
            "$ {command}\nthe README says:\n{}\nit prints:\n{printed}",
            wanted.join("\n"),
        );
    }
}

/// The examples of a text, in its order.
fn examples(text: &str) -> Vec<Example> {
    let mut examples: Vec<Example> = Vec::new();
    let mut is_inside = false;
    for line in text.lines() {
        match line {
            "```console" => is_inside = true,
            "```" => is_inside = false,
            _ if !is_inside => {}
            _ => match (line.strip_prefix("$ "), examples.last_mut()) {
                (Some(command), _) => examples.push(Example {
                    command: command.to_owned(),
                    expected: Vec::new(),
                }),
                (None, Some(example)) => example.expected.push(line.to_owned()),
                (None, None) => panic!("a block begins with output: {line}"),
            },
        }
    }
    examples
}

/// Both outputs of a command line of the shell, together.
fn run(product: &Product, path: &str, command: &str) -> String {
    let template = product.command(&[]);
    #[expect(
        clippy::disallowed_methods,
        reason = "the README's commands are for a shell"
    )]
    let mut shell = Command::new("sh");
    shell
        .args(["-c", &format!("exec 2>&1; {command}")])
        .current_dir(&product.work)
        .env_clear()
        .envs(
            template
                .get_envs()
                .filter_map(|(name, value)| Some((name, value?))),
        )
        .env("PATH", path)
        .stdin(Stdio::null());
    String::from_utf8(shell.output().unwrap().stdout).unwrap()
}

/// Whether `lines` are what `wanted` describes.
fn fits(wanted: &[&str], lines: &[&str]) -> bool {
    match (wanted.split_first(), lines.split_first()) {
        (None, None) => true,
        (Some((&"…", rest)), _) => (0..=lines.len()).any(|skipped| fits(rest, &lines[skipped..])),
        (Some((first, wanted)), Some((line, lines))) => {
            line_fits(first, line) && fits(wanted, lines)
        }
        (None, Some(_)) | (Some(_), None) => false,
    }
}

/// Whether the parts of `wanted` between `…` stand in `line`, in order, the outer ones at its ends.
fn line_fits(wanted: &str, line: &str) -> bool {
    let mut parts = wanted.split('…');
    let Some(mut rest) = parts.next().and_then(|first| line.strip_prefix(first)) else {
        return false;
    };
    let mut parts = parts.peekable();
    if parts.peek().is_none() {
        return rest.is_empty();
    }
    while let Some(part) = parts.next() {
        if parts.peek().is_none() {
            return rest.ends_with(part);
        }
        match rest.find(part) {
            Some(at) => rest = &rest[at + part.len()..],
            None => return false,
        }
    }
    true
}

#[test]
fn a_line_with_gaps_fits_only_what_it_describes() {
    for (wanted, line, expected) in [
        ("a", "a", true),
        ("a", "ab", false),
        ("a…", "ab", true),
        ("…b", "ab", true),
        ("…b", "abc", false),
        ("a…c…e", "abcde", true),
        ("a…c…e", "abde", false),
    ] {
        assert_eq!(line_fits(wanted, line), expected, "{wanted} {line}");
    }
}
