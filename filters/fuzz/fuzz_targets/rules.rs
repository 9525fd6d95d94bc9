//! Any bytes as the output of any command a built-in rule is for.
//!
//! The first byte picks the command and whether it failed, the rest is its output, so that a recorded output is a seed as it
//! is. Every promise the filters make about one output is checked.

#![no_main]

use std::collections::HashSet;
use std::sync::LazyLock;

use libfuzzer_sys::fuzz_target;
use zeph_core::command::{CommandLine, Segment, SimpleCommand, Wraps};
use zeph_filter::{BUILTIN, Filters, Loss, MARK, NoForeign, Output, Secrets, clean};
use zeph_strategies::error_lines;

/// At least one command for each built-in rule.
const COMMANDS: [&str; 31] = [
    "cargo test",
    "cargo nextest run",
    "cargo clippy",
    "cargo build",
    "git status",
    "git diff",
    "git log",
    "git push",
    "ls",
    "docker logs x",
    "docker build .",
    "docker compose up",
    "npm install",
    "pip install x",
    "make",
    "pytest",
    "go test",
    "terraform plan",
    "kubectl get pods",
    "brew install x",
    "tsc",
    "eslint .",
    "jest",
    "ruff check",
    "apt-get install x",
    "find .",
    "rg x",
    "mvn test",
    "wget x",
    "ps aux",
    "cargo test -- --nocapture",
];

/// Shorter outputs are never filtered.
const FILTERED_BYTES_MIN: usize = 400;

static FILTERS: LazyLock<Filters> = LazyLock::new(|| Filters::load(BUILTIN, None).0);
static SECRETS: LazyLock<Secrets> = LazyLock::new(|| Secrets::new(&[]).0);

fuzz_target!(|bytes: &[u8]| {
    let Some((choice, raw)) = bytes.split_first() else {
        return;
    };
    let choice = usize::from(*choice);
    let exit_code = i32::from(choice >= 128);
    check(COMMANDS[choice % COMMANDS.len()], exit_code, raw);
    SECRETS.scan(raw);
});

fn check(command: &str, exit_code: i32, raw: &[u8]) {
    let line = line_of(command);
    let apply = |raw: &[u8]| {
        let filtered = FILTERS.apply(
            &Output {
                command: Some(&line),
                exit_code: Some(exit_code),
                raw,
            },
            &NoForeign,
        );
        assert!(filtered.notes.is_empty(), "{command}: {:?}", filtered.notes);
        (filtered.text.into_owned(), filtered.loss)
    };
    let clean = clean(raw).text.into_owned();
    let (shown, loss) = apply(raw);

    let lines: HashSet<&str> = clean.lines().collect();
    let is_known = |line: &str| lines.contains(line) || line.starts_with(MARK);
    assert!(shown.lines().all(is_known), "{command}: a line of its own");
    assert!(shown.len() <= clean.len(), "{command}: longer");
    assert_eq!(apply(raw).0, shown, "{command}: twice the same");
    assert_eq!(
        apply(shown.as_bytes()).0,
        shown,
        "{command}: filtered again"
    );
    if clean.len() < FILTERED_BYTES_MIN {
        assert_eq!(shown, clean, "{command}: too short to be filtered");
    }
    if shown != clean {
        assert_ne!(
            loss,
            Loss::None,
            "{command}: nothing is said of what is gone"
        );
        let is_told = error_lines(&shown).next().is_some() || shown.contains(" omitted");
        assert!(
            exit_code == 0 || is_told,
            "{command}: a failure without a reason"
        );
    }
}

fn line_of(text: &str) -> CommandLine {
    let mut words = text.split(' ').map(str::to_owned);
    let command = SimpleCommand {
        name: words.next().unwrap_or_default(),
        arguments: words.collect(),
        is_literal: true,
        holes: Vec::new(),
        wraps: Wraps::Nothing,
    };
    CommandLine {
        text: text.to_owned(),
        commands: vec![command.clone()],
        last: Some(Segment {
            command,
            pipes: Vec::new(),
            is_one_of_several: false,
        }),
        ..CommandLine::default()
    }
}
