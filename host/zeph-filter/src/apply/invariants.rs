//! What holds for every rule on every output: the recorded ones, those with an error put in anywhere, and noise.

use std::collections::HashSet;
use std::path::{Path, PathBuf};

use proptest::prelude::*;
use zeph_core::command::CommandLine;
use zeph_strategies::error_lines;

use crate::command::tests::line;
use crate::sanitize::clean;
use crate::{BUILTIN, Filters, Loss, MARK, NoForeign, Output};

/// A command for each built-in rule, in their order.
const COMMANDS: [&str; 35] = [
    "cargo clippy",
    "cargo test",
    "cargo clippy --workspace",
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
    "cmake --build build",
    "make",
    "ctest",
    "pytest",
    "python3 -m unittest",
    "rspec",
    "rubocop",
    "go test",
    "terraform plan",
    "kubectl get pods",
    "brew install x",
    "cargo build",
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
];

fn filters() -> Filters {
    Filters::load(BUILTIN, None).0
}

fn corpus() -> Vec<(PathBuf, Vec<u8>)> {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../filters/rules");
    let mut files = Vec::new();
    for entry in std::fs::read_dir(folder)
        .expect("the rules have a folder")
        .flatten()
    {
        if entry
            .path()
            .extension()
            .is_some_and(|extension| extension == "cases")
        {
            let cases = std::fs::read_dir(entry.path())
                .expect("cases are a folder")
                .flatten();
            files.extend(cases.map(|case| {
                (
                    case.path(),
                    std::fs::read(case.path()).expect("a case can be read"),
                )
            }));
        }
    }
    files.sort();
    assert!(files.len() > 40);
    files
}

/// Outputs short enough for every rule to be tried on them.
fn short_ones() -> Vec<(PathBuf, Vec<u8>)> {
    corpus()
        .into_iter()
        .filter(|(_, raw)| raw.len() < 4_000)
        .collect()
}

pub(super) fn text_of(
    filters: &Filters,
    command: &CommandLine,
    exit_code: i32,
    raw: &[u8],
) -> (String, Loss) {
    let output = Output {
        command: Some(command),
        exit_code: Some(exit_code),
        raw,
    };
    let filtered = filters.apply(&output, &NoForeign);
    assert!(filtered.notes.is_empty(), "{:?}", filtered.notes);
    (filtered.text.into_owned(), filtered.loss)
}

/// Every promise about one output.
pub(super) fn check(filters: &Filters, command: &str, exit_code: i32, raw: &[u8]) {
    let command = line(command, &[]);
    let clean = clean(raw).text.into_owned();
    let (text, loss) = text_of(filters, &command, exit_code, raw);
    let lines: HashSet<&str> = clean.lines().collect();
    for line in text.lines() {
        assert!(
            lines.contains(line) || line.starts_with(MARK),
            "a line of its own: {line:?}"
        );
    }
    assert!(text.len() <= clean.len());
    assert_eq!(
        text_of(filters, &command, exit_code, raw).0,
        text,
        "twice the same"
    );
    assert_eq!(
        text_of(filters, &command, exit_code, text.as_bytes()).0,
        text,
        "filtered again"
    );
    if clean.len() < 400 {
        assert_eq!(text, clean);
    }
    if text != clean {
        assert_ne!(loss, Loss::None);
        assert!(text.lines().any(|line| line.starts_with(MARK)));
        let is_told = error_lines(&text).next().is_some() || text.contains(" omitted");
        assert!(
            exit_code == 0 || is_told,
            "a failure without a reason: {text}"
        );
    }
}

#[test]
fn every_rule_keeps_every_promise_on_every_recorded_output() {
    let filters = filters();
    for (_, raw) in short_ones() {
        for command in COMMANDS {
            check(&filters, command, 0, &raw);
            check(&filters, command, 1, &raw);
        }
    }
}

#[test]
fn an_error_put_anywhere_survives() {
    let filters = filters();
    for (path, raw) in short_ones() {
        let text = clean(&raw).text.into_owned();
        let lines: Vec<&str> = text.lines().collect();
        for step in 0..5 {
            let at = lines.len() * step / 5;
            let injected = format!("error: put in at line {at}");
            let (before, after) = lines.split_at(at);
            let raw = [before, &[injected.as_str()], after].concat().join("\n");
            for command in COMMANDS {
                let (text, _) = text_of(&filters, &line(command, &[]), 0, raw.as_bytes());
                assert!(
                    text.lines().any(|line| line == injected),
                    "{command} loses line {at} of {}",
                    path.display()
                );
            }
        }
    }
}

#[test]
fn cut_and_windows_outputs_keep_every_promise() {
    let filters = filters();
    for (path, raw) in corpus() {
        let name = path.to_string_lossy().into_owned();
        let rule_idx = BUILTIN.iter().position(|(file, _)| {
            let rule = file
                .trim_start_matches("filters/rules/")
                .trim_end_matches(".toml");
            name.contains(&format!("/{rule}.cases/"))
        });
        let command = COMMANDS[rule_idx.expect("a case belongs to a rule")];
        check(&filters, command, 1, &raw[..raw.len() * 2 / 3]);
        check(&filters, command, 1, &raw[raw.len() / 3..]);
        let windows = String::from_utf8_lossy(&raw).replace('\n', "\r\n");
        check(&filters, command, 1, windows.as_bytes());
        if raw.len() < 8_000 {
            check(&filters, command, 0, raw.repeat(5).as_slice());
        }
    }
}

/// Lines that mean something to some strategy, in any order, and any bytes between them.
fn lines_of_trouble() -> impl Strategy<Value = Vec<u8>> {
    let known = prop::sample::select(vec![
        "test a::b ... ok",
        "test a::b ... FAILED",
        "running 3 tests",
        "test result: ok. 3 passed; 0 failed",
        "failures:",
        "    a::b",
        "---- a::b stdout ----",
        "stack backtrace:",
        "   0: core::panicking::panic",
        "             at /rustc/x/library/core/src/panicking.rs:1:2",
        "     Summary [   0.1s] 3 tests run: 2 passed, 1 failed",
        "        PASS [   0.1s] x y",
        "        FAIL [   0.1s] x y",
        "  stdout ───",
        "=== RUN   TestX",
        "--- PASS: TestX (0.00s)",
        "--- FAIL: TestX (0.00s)",
        "ok  \tx\t0.1s",
        "goroutine 1 [running]:",
        "=== test session starts ===",
        "=== FAILURES ===",
        "___ test_a ___",
        ">   assert 0",
        "E   assert 0",
        "=== short test summary info ===",
        "FAILED a.py::test_a - assert 0",
        "=== 1 failed in 0.1s ===",
        "warning: unused `x`",
        "  --> src/a.rs:1:2",
        "error[E0001]: no",
        "",
        "On branch main",
        "  (use \"git add\")",
        "diff --git a/x b/x",
        "@@ -1,3 +1,3 @@",
        "@@ -1,9999999999999999999 +1 @@",
        "+a",
        "-b",
        " c",
        "\\ No newline at end of file",
        "Step 1/3 : X",
        "npm error code",
        "2026-01-02T03:04:05Z x",
        "{\"Time\":\"x\",\"Action\":\"fail\",\"Test\":\"T\"}",
        "\u{1b}[31mred",
        "10%\r20%",
        "[zeph] 3 lines omitted",
    ]);
    let line = prop_oneof![8 => known.prop_map(|line| line.as_bytes().to_vec()), 1 => prop::collection::vec(any::<u8>(), 0..40)];
    prop::collection::vec(line, 0..120).prop_map(|lines| lines.join(&b'\n'))
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(200))]

    #[test]
    fn every_rule_keeps_every_promise_on_anything(raw in lines_of_trouble(), command in prop::sample::select(COMMANDS.to_vec()), exit_code in 0..2) {
        check(&FILTERS, command, exit_code, &raw);
    }
}

pub(super) static FILTERS: std::sync::LazyLock<Filters> = std::sync::LazyLock::new(filters);
