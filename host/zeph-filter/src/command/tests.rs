use zeph_core::command::{CommandLine, Segment, SimpleCommand, Wraps};

use super::{flag, spoken};

/// A line of plain words, with the programs it is piped through.
pub(crate) fn line(command: &str, pipes: &[&str]) -> CommandLine {
    let mut words = command.split(' ').map(str::to_owned);
    let command = SimpleCommand {
        name: words.next().unwrap_or_default(),
        arguments: words.collect(),
        is_literal: true,
        holes: Vec::new(),
        wraps: Wraps::Nothing,
    };
    let pipes = pipes.iter().map(|name| (*name).to_owned()).collect();
    CommandLine {
        last: Some(Segment {
            command,
            pipes,
            is_one_of_several: false,
        }),
        ..CommandLine::default()
    }
}

#[test]
fn a_command_has_a_plain_spelling() {
    for (written, plain) in [
        ("git status", "git status"),
        (
            "/usr/bin/git -C a -c x=y --no-pager status -sb",
            "git status -sb",
        ),
        ("cargo +nightly --offline test -p x", "cargo test -p x"),
        ("python3.12 -m pytest -q", "pytest -q"),
        ("npx --yes jest a", "jest a"),
        ("uv run python -m pytest", "pytest"),
        ("uvx ruff check", "ruff check"),
        ("coverage run -m pytest -q", "pytest -q"),
        ("./node_modules/.bin/eslint .", "eslint ."),
        ("kubectl -n kube-system get pods", "kubectl get pods"),
        ("docker --context x build .", "docker build ."),
        ("make -C a -j8 all", "make all"),
        ("npx", "npx"),
        ("git", "git"),
        ("git -C", "git"),
    ] {
        let line = line(written, &[]);
        let spoken = spoken(&line).unwrap();
        assert_eq!(spoken.plain, plain, "{written}");
        assert_eq!(spoken.written, written);
    }
}

#[test]
fn a_pipe_owns_the_output_unless_it_only_shortens_it() {
    for pipes in [
        &["head"][..],
        &["tail"],
        &["tee", "/usr/bin/tail"],
        &["cat", "less"],
    ] {
        assert!(spoken(&line("cargo test", pipes)).is_ok(), "{pipes:?}");
    }
    for owner in [
        "grep", "sort", "uniq", "jq", "awk", "sed", "wc", "cut", "xargs", "anything",
    ] {
        let line = line("cargo test", &["tail", owner]);
        assert!(spoken(&line).unwrap_err().contains(owner));
    }
    assert!(spoken(&CommandLine::default()).is_err());
}

#[test]
fn flags_are_found_in_every_form() {
    for (argument, of, is_found) in [
        ("--json", "--json", true),
        ("--format=x", "--format", true),
        ("--formats", "--format", false),
        ("-o", "-o", true),
        ("-oyaml", "-o", true),
        ("-o=yaml", "-o", true),
        ("-Aoyaml", "-o", true),
        ("-no-color", "-o", false),
        ("--output", "-o", false),
        ("-", "-o", false),
    ] {
        let arguments = [argument.to_owned()];
        assert_eq!(
            flag(&arguments, &[of.to_owned()]).is_some(),
            is_found,
            "{argument} {of}"
        );
    }
}
