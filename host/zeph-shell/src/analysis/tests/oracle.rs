//! The reader against bash: lines are run with stub programs on the search path, which log how they were called, and every program that ran must be
//! in the analysis, with arguments that the analysis names, or the analysis asks.
//!
//! Nothing real runs but wrappers (`env`, `xargs`, `find` and their like), shells, and what they are given: stubs. Many lines share a bash.
//! The normal suite runs some hundred generated lines; with `ZEPH_SLOW_TESTS=1` it is fifty thousand.

#![expect(
    clippy::disallowed_methods,
    reason = "a shell is what the reader is held against, and a variable switches the slow tests on"
)]

use std::path::Path;
use std::process::{Command, Stdio};

use regex::Regex;
use tempfile::TempDir;
use zeph_core::command::{Becomes, CommandLine, SimpleCommand};

use super::super::analyse;
use super::generated::{Dice, numbers};

/// Lines that share a bash.
const BATCH: usize = 500;

/// Separates the words of a call in a log, and the calls.
const WORD_END: char = '\u{1f}';
const CALL_END: char = '\u{1e}';

/// Programs that are what they are, and log it.
const REAL: &[&str] = &[
    "bash", "cat", "env", "find", "nice", "nohup", "setsid", "sh", "stdbuf", "timeout", "xargs",
];

/// What comes from outside: read as a number, it runs a program.
const TRAP: &str = "a[$(deploy hidden)]";

/// Programs that log, and print a number.
const COUNTERS: &[&str] = &["date", "grep", "id", "nproc", "seq", "stat", "wc"];

/// Programs that log, and print what does harm as a number.
const STUBS: &[&str] = &[
    "awk", "basename", "cargo", "cmake", "cp", "curl", "cut", "deploy", "diff", "dirname",
    "docker", "git", "go", "gzip", "head", "jq", "kubectl", "ln", "ls", "make", "mkdir", "mktemp",
    "mv", "node", "npm", "pip", "pytest", "python3", "rg", "rm", "rsync", "sed", "sleep", "sort",
    "ssh", "sudo", "tail", "tar", "tee", "tool", "touch", "tr", "uname", "uniq", "which", "yarn",
];

/// What the lines of one bash are run by. What is not found is logged too.
const DRIVER: &str = r#"
command_not_found_handle() {
    local call=$1 word; shift
    for word; do call+=$'\x1f'$word; done
    printf '%s\x1e' "$call" >> "$ORACLE_LOG"
    return 127
}
export -f command_not_found_handle
export x='-rf y' y='a b' z=a.txt e= w='a[$(deploy hidden)]'
for _oracle_line in "$ORACLE/lines/"*; do
    export ORACLE_LOG="$ORACLE/logs/${_oracle_line##*/}"
    (
        cd "$ORACLE/work" || exit
        eval "$(<"$_oracle_line")"
        wait
    ) < /dev/null > /dev/null 2>&1
done
"#;

struct Oracle {
    folder: TempDir,
}

impl Oracle {
    fn new() -> Self {
        let folder = tempfile::tempdir().unwrap();
        let this = Self { folder };
        for name in ["bin", "lines", "logs", "work", "work/src"] {
            std::fs::create_dir(this.path().join(name)).unwrap();
        }
        for file in ["a.txt", "b.txt", "c d.o", "-rf", "src/x.rs"] {
            std::fs::write(this.path().join("work").join(file), format!("{TRAP}\n")).unwrap();
        }
        // They succeed even when nobody reads what they print: loops wait for that.
        for name in COUNTERS {
            this.program(name, "trap '' PIPE\necho 1 2> /dev/null\nexit 0");
        }
        let prints = format!("trap '' PIPE\necho '{TRAP}' 2> /dev/null\nexit 0");
        for name in STUBS {
            this.program(name, &prints);
        }
        for name in REAL {
            let real = ["/usr/bin", "/bin"].map(|folder| Path::new(folder).join(name));
            let real = real.iter().find(|path| path.exists()).unwrap();
            this.program(name, &format!("exec {} \"$@\"", real.display()));
        }
        this.program("no", "exit 1");
        this
    }

    fn path(&self) -> &Path {
        self.folder.path()
    }

    /// A program that logs its call in one write, and then does `rest`.
    fn program(&self, name: &str, rest: &str) {
        use std::os::unix::fs::PermissionsExt;
        let script = format!(
            "#!/bin/sh\ncall=\"${{0##*/}}\"\nfor word; do call=\"$call{WORD_END}$word\"; done\nprintf '%s{CALL_END}' \"$call\" >> \"$ORACLE_LOG\"\n{rest}\n"
        );
        let path = self.path().join("bin").join(name);
        std::fs::write(&path, script).unwrap();
        std::fs::set_permissions(&path, std::fs::Permissions::from_mode(0o755)).unwrap();
    }

    /// The calls each line makes.
    fn run(&self, lines: &[String]) -> Vec<Vec<Vec<String>>> {
        for folder in ["lines", "logs"] {
            std::fs::remove_dir_all(self.path().join(folder)).unwrap();
            std::fs::create_dir(self.path().join(folder)).unwrap();
        }
        let file = |folder: &str, at: usize| self.path().join(folder).join(format!("{at:06}"));
        for (at, line) in lines.iter().enumerate() {
            std::fs::write(file("lines", at), line).unwrap();
        }
        let status = Command::new("timeout")
            .args([
                "--kill-after=5",
                "600",
                "/bin/bash",
                "--norc",
                "--noprofile",
                "-c",
                DRIVER,
            ])
            .env_clear()
            .env("PATH", self.path().join("bin"))
            .env("HOME", self.path().join("work/src"))
            .env("ORACLE", self.path())
            .stdin(Stdio::null())
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            .status()
            .unwrap();
        assert!(
            status.code().is_some_and(|code| code != 124),
            "a batch takes too long"
        );
        let calls = |at: usize| {
            let log = std::fs::read(file("logs", at)).unwrap_or_default();
            let log = String::from_utf8_lossy(&log).into_owned();
            let calls = log.split_terminator(CALL_END);
            let words = |call: &str| call.split(WORD_END).map(str::to_owned).collect();
            calls.map(words).collect()
        };
        (0..lines.len()).map(calls).collect()
    }
}

/// Whether the analysis says that this may be called.
fn is_named(line: &CommandLine, call: &[String]) -> bool {
    let separator = WORD_END.to_string();
    let text = call.join(&separator);
    line.commands
        .iter()
        .any(|command| pattern(command).is_match(&text))
}

/// The calls that a simple command may become, as an expression.
fn pattern(command: &SimpleCommand) -> Regex {
    let mut expression = format!("(?s)^{}", regex::escape(command.base_name()));
    let n_words = command
        .holes
        .iter()
        .map(|hole| hole.argument + 1)
        .max()
        .unwrap_or(0);
    for at in 0..n_words.max(command.arguments.len()) {
        let empty = String::new();
        let word = command.arguments.get(at).unwrap_or(&empty);
        let holes: Vec<_> = command
            .holes
            .iter()
            .filter(|hole| hole.argument == at)
            .collect();
        let mut inside = String::new();
        let mut done = 0;
        for hole in &holes {
            inside.push_str(&regex::escape(&word[done..hole.start]));
            inside.push_str(match hole.becomes {
                Becomes::Words => ".*",
                Becomes::Operand if hole.start == 0 => {
                    "(?:[^\u{1f}-][^\u{1f}]*(?:\u{1f}[^\u{1f}-][^\u{1f}]*)*)?"
                }
                Becomes::Text | Becomes::Names | Becomes::Operand => "[^\u{1f}]*",
            });
            done = hole.end;
        }
        inside.push_str(&regex::escape(&word[done..]));
        let has = |becomes: Becomes| holes.iter().any(|hole| hole.becomes == becomes);
        expression.push_str(&match (has(Becomes::Words), has(Becomes::Names)) {
            (true, _) => format!("(?:\u{1f}{inside})?"),
            (_, true) => format!("(?:\u{1f}{inside})+"),
            _ => format!("\u{1f}{inside}"),
        });
    }
    expression.push('$');
    Regex::new(&expression).unwrap()
}

/// What ran in lines that hold nothing unknown, and is not in their analysis; and how many of them ran something.
fn missed(lines: &[String]) -> (Vec<String>, usize) {
    let oracle = Oracle::new();
    let mut missed = Vec::new();
    let mut n_ran = 0;
    for batch in lines.chunks(BATCH) {
        for (text, calls) in batch.iter().zip(oracle.run(batch)) {
            let line = analyse(text);
            n_ran += usize::from(!calls.is_empty());
            let hidden = calls.iter().find(|call| !is_named(&line, call));
            missed.extend(hidden.map(|call| format!("{call:?} ran in:\n{text}\n")));
        }
    }
    (missed, n_ran)
}

/// The same, on every core.
fn missed_by_many(lines: &[String]) -> (Vec<String>, usize) {
    let n_threads = std::thread::available_parallelism().map_or(1, usize::from);
    let share = lines.len().div_ceil(n_threads).max(1);
    let found: Vec<(Vec<String>, usize)> = std::thread::scope(|scope| {
        let shares: Vec<_> = lines
            .chunks(share)
            .map(|share| scope.spawn(|| missed(share)))
            .collect();
        shares
            .into_iter()
            .map(|share| share.join().unwrap())
            .collect()
    });
    let n_ran = found.iter().map(|(_, n)| n).sum();
    (
        found.into_iter().flat_map(|(missed, _)| missed).collect(),
        n_ran,
    )
}

fn is_known(line: &str) -> bool {
    analyse(line).unknown.is_empty()
}

#[test]
fn every_program_that_generated_lines_run_is_known_or_asked_about() {
    let is_slow = std::env::var("ZEPH_SLOW_TESTS").is_ok_and(|value| value == "1");
    let n = if is_slow { 50_000 } else { 300 };
    let mut dice = Dice::new(20_251_122);
    let mut lines = Vec::new();
    let mut n_generated = 0;
    // A line that asks may run anything: it proves nothing.
    while lines.len() < n {
        n_generated += 1;
        let line = dice.script();
        lines.extend(is_known(&line).then_some(line));
    }
    assert!(
        n * 4 > n_generated,
        "only {n} of {n_generated} lines are known"
    );
    let (missed, n_ran) = missed_by_many(&lines);
    let shown = missed[..missed.len().min(20)].join("\n");
    assert!(missed.is_empty(), "{} missed:\n{shown}", missed.len());
    assert!(n_ran * 10 > n * 9, "only {n_ran} of {n} lines run anything");
}

#[test]
fn every_program_that_realistic_scripts_run_is_known_or_asked_about() {
    let scripts = include_str!("../scripts.txt").trim_end().split("\n%%\n");
    let (known, asked): (Vec<String>, Vec<String>) = scripts
        .map(str::to_owned)
        .partition(|script| is_known(script));
    assert!(
        known.len() >= 60 && asked.len() <= 12,
        "{} ask:\n{}",
        asked.len(),
        asked.join("\n%%\n")
    );
    let (missed, n_ran) = missed(&known);
    assert!(missed.is_empty(), "{}", missed.join("\n"));
    assert!(n_ran * 10 > known.len() * 9, "only {n_ran} run anything");
}

#[test]
fn no_value_from_outside_is_read_as_a_number() {
    let lines = numbers();
    let (known, asked): (Vec<String>, Vec<String>) =
        lines.into_iter().partition(|line| is_known(line));
    assert!(
        known.len() >= 300 && asked.len() >= 300,
        "{} known",
        known.len()
    );
    let (missed, _) = missed_by_many(&known);
    assert!(
        missed.is_empty(),
        "{} missed:\n{}",
        missed.len(),
        missed.join("\n")
    );
}
