//! The reader against bash: lines are run with stub programs on the search path, which log how they were called, and every program that ran must be
//! in the analysis, with arguments that the analysis names, or the analysis asks.
//!
//! Nothing real runs but wrappers (`env`, `xargs`, `find` and their like), shells, and what they are given: stubs. The stubs are one small
//! program (`stub.c`), because starting programs is what takes the time; many lines share a bash, and every core runs some.
//! The normal suite runs some hundred generated lines; with `ZEPH_SLOW_TESTS=1` it is fifty thousand.

#![expect(
    clippy::disallowed_methods,
    reason = "a shell is what the reader is held against, and a variable switches the slow tests on"
)]

use std::path::Path;
use std::process::{Command, Stdio};
use std::sync::atomic::{AtomicUsize, Ordering};

use regex::Regex;
use tempfile::TempDir;
use zeph_core::command::{Becomes, CommandLine, SimpleCommand};

use super::super::analyse;
use super::generated::{Dice, numbers};
use super::{corpus, known, quotes};

/// Lines that share a bash.
const BATCH: usize = 250;

/// Separates the words of a call in a log, and the calls.
const WORD_END: char = '\u{1f}';
const CALL_END: char = '\u{1e}';

/// Programs that log, and become the program of this name.
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
export x='-rf y' y='a b' z=a.txt e= w='a[$(deploy hidden)]' q='-v a[$(deploy)] -o 1' c='($(deploy hidden))'
for _oracle_name in {a..z} A B count total; do
    if [[ $ORACLE_OUTSIDE == numbers || ! -v $_oracle_name ]]; then export "$_oracle_name=$w"; fi
done
# A function that calls itself twice would go on for ever.
FUNCNEST=4
for _oracle_line in "$ORACLE/lines/"*; do
    export ORACLE_LOG="$ORACLE/logs/${_oracle_line##*/}"
    (
        cd "$ORACLE/work" || exit
        IFS= read -r -d '' _oracle_text < "$_oracle_line"
        eval "$_oracle_text"
        wait
    ) < /dev/null > /dev/null 2>&1
done
"#;

/// What the variables hold that come from outside.
#[derive(Clone, Copy)]
enum Outside {
    /// Those that the generated lines use hold words, options and files among them; others what does harm as a number.
    Words,
    /// All of them hold what does harm as a number.
    Numbers,
}

impl Outside {
    fn word(self) -> &'static str {
        match self {
            Self::Words => "words",
            Self::Numbers => "numbers",
        }
    }
}

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
        this.compile();
        for name in [REAL, COUNTERS, STUBS, &["no"]].concat() {
            let [stub, path] = ["stub", name].map(|name| this.path().join("bin").join(name));
            std::fs::hard_link(stub, path).unwrap();
        }
        this
    }

    fn path(&self) -> &Path {
        self.folder.path()
    }

    /// Makes the program behind every name, which knows from its name what to do.
    fn compile(&self) {
        let source = self.path().join("stub.c");
        std::fs::write(&source, include_str!("stub.c")).unwrap();
        let define = |name: &str, value: &str| format!("-D{name}=\"{value}\"");
        let names = |names: &[&str]| format!(" {} ", names.join(" "));
        let status = Command::new("cc")
            .args(["-static", "-nostdlib", "-ffreestanding", "-fno-builtin"])
            .args(["-fno-stack-protector", "-O1", "-o"])
            .arg(self.path().join("bin/stub"))
            .arg(define("TRAP", TRAP))
            .arg(define("REAL", &names(REAL)))
            .arg(define("COUNTERS", &names(COUNTERS)))
            .arg(source)
            .status()
            .unwrap();
        assert!(status.success(), "a C compiler is needed");
    }

    /// The calls each line makes.
    fn run(&self, lines: &[Line], outside: Outside) -> Vec<Vec<Vec<String>>> {
        let file = |folder: &str, at: usize| self.path().join(folder).join(format!("{at:06}"));
        // The files of the batch before are written anew: to remove and create them takes some file systems as long as bash.
        for (at, line) in lines.iter().enumerate() {
            std::fs::write(file("lines", at), &line.text).unwrap();
            std::fs::write(file("logs", at), "").unwrap();
        }
        let mut others = (lines.len()..).map(|at| std::fs::remove_file(file("lines", at)));
        while others.next().is_some_and(|removed| removed.is_ok()) {}
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
            .env("ORACLE_OUTSIDE", outside.word())
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

/// A line and its analysis.
struct Line {
    text: String,
    analysis: CommandLine,
}

impl Line {
    fn new(text: String) -> Self {
        let analysis = analyse(&text);
        Self { text, analysis }
    }

    /// Whether the analysis holds nothing unknown. A line that asks may run anything: it proves nothing.
    fn is_known(&self) -> bool {
        self.analysis.unknown.is_empty()
    }

    /// Whether the analysis says that this may be called.
    fn names(&self, call: &[String]) -> bool {
        let [name, arguments @ ..] = call else {
            return false;
        };
        let text = call.join(&WORD_END.to_string());
        self.analysis
            .commands
            .iter()
            .filter(|command| command.base_name() == name)
            .any(|command| match command.holes.is_empty() {
                true => command.arguments == arguments,
                false => pattern(command).is_match(&text),
            })
    }
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

/// What known lines ran.
#[derive(Default)]
struct Ran {
    /// Calls that are not in the analysis of their line.
    missed: Vec<String>,
    /// Lines that ran something.
    n_lines: usize,
}

/// Runs batches of known lines on every core. `batch` makes one from its number.
fn run(n_batches: usize, batch: impl Fn(usize) -> (Vec<Line>, Outside) + Sync) -> Ran {
    let n_threads = std::thread::available_parallelism().map_or(1, usize::from);
    let next = AtomicUsize::new(0);
    let work = || {
        let oracle = Oracle::new();
        let mut ran = Ran::default();
        loop {
            let at = next.fetch_add(1, Ordering::Relaxed);
            if at >= n_batches {
                return ran;
            }
            let (lines, outside) = batch(at);
            compare(&oracle, &lines, outside, &mut ran);
        }
    };
    let mut all = Ran::default();
    std::thread::scope(|scope| {
        let threads = (0..n_threads.min(n_batches)).map(|_| scope.spawn(work));
        let threads: Vec<_> = threads.collect();
        for thread in threads {
            let ran = thread.join().unwrap();
            all.missed.extend(ran.missed);
            all.n_lines += ran.n_lines;
        }
    });
    all
}

fn compare(oracle: &Oracle, lines: &[Line], outside: Outside, ran: &mut Ran) {
    for (line, calls) in lines.iter().zip(oracle.run(lines, outside)) {
        ran.n_lines += usize::from(!calls.is_empty());
        let hidden = calls.iter().find(|call| !line.names(call));
        let hidden = hidden.map(|call| format!("{call:?} ran in:\n{}\n", line.text));
        ran.missed.extend(hidden);
    }
}

/// Those of the texts that are known, and those that ask.
fn known_and_asked(texts: impl Iterator<Item = String>) -> (Vec<String>, Vec<String>) {
    texts.partition(|text| Line::new(text.clone()).is_known())
}

fn run_known(known: &[String]) -> Ran {
    let batches: Vec<_> = known.chunks(BATCH).collect();
    run(batches.len(), |at| {
        let lines = batches[at].iter().cloned().map(Line::new);
        (lines.collect(), Outside::Words)
    })
}

/// Generates `n_lines` lines that the analysis knows. A batch number gives the same lines in every run.
fn generated(n_lines: usize, batch: usize) -> Vec<Line> {
    let mut dice = Dice::new(seed(batch));
    let mut lines = Vec::new();
    let mut n_generated = 0;
    while lines.len() < n_lines {
        n_generated += 1;
        let line = Line::new(dice.script());
        lines.extend(line.is_known().then_some(line));
    }
    assert!(
        n_lines * 4 > n_generated,
        "only {n_lines} of {n_generated} lines are known"
    );
    lines
}

/// Pieces of texts that are not run: they leave the directory, end other processes, may never end, begin a login, or run a script that a
/// line before may have written.
const UNFIT: &[&str] = &[
    "/", "..", "kill", "while", "until", "for(", "for (", ";;)", "()", "function", "select",
    "coproc", "source", "suspend", "ulimit", "exec", "yes", "--login", "sh>",
];

/// `n_lines` lines that the analysis knows, each a random variation of a line of the corpora. A batch number gives the same lines in every run.
fn mutated(n_lines: usize, batch: usize) -> Vec<Line> {
    // Of a shell only what it is told in a word: a line before may have written a file.
    let is_told = |word: &str| word.starts_with('-') && word.contains('c') && !word.contains('l');
    let runs_other = |rest: &str| !rest.split_whitespace().next().is_some_and(is_told);
    let is_script = |text: &str| text.split("sh ").skip(1).any(runs_other);
    let is_fit = |text: &str| !UNFIT.iter().any(|piece| text.contains(piece)) && !is_script(text);
    let hidden = [include_str!("../bypasses.txt"), include_str!("ways.txt")];
    let hidden = hidden.into_iter().flat_map(corpus::bypasses);
    let everyday = corpus::everyday(include_str!("../everyday.txt"));
    let texts = hidden.map(|(text, _)| text);
    let texts = texts.chain(everyday.into_iter().map(|(text, _)| text));
    let texts: Vec<String> = texts.filter(|text| is_fit(text)).collect();
    let texts: Vec<&str> = texts.iter().map(String::as_str).collect();
    let mut dice = Dice::new(seed(batch));
    let mut lines = Vec::new();
    while lines.len() < n_lines {
        let text = dice.mutated(&texts, corpus::TOKENS);
        if is_fit(&text) {
            let line = Line::new(text);
            lines.extend(line.is_known().then_some(line));
        }
    }
    lines
}

/// The seed of a batch, which depends on the seed of the property tests.
fn seed(batch: usize) -> u64 {
    let run = std::env::var("PROPTEST_RNG_SEED").map_or(0, |seed| seed.parse().unwrap());
    let batch = u64::try_from(batch).unwrap();
    batch.wrapping_add(1_000_000_u64.wrapping_mul(run))
}

fn is_slow() -> bool {
    std::env::var("ZEPH_SLOW_TESTS").is_ok_and(|value| value == "1")
}

#[test]
fn every_program_that_generated_lines_run_is_known_or_asked_about() {
    let n: usize = if is_slow() { 50_000 } else { 300 };
    let n_batches = n.div_ceil(BATCH);
    let ran = run(n_batches, |at| {
        (generated(n / n_batches, at), Outside::Words)
    });
    let shown = ran.missed[..ran.missed.len().min(20)].join("\n");
    assert!(
        ran.missed.is_empty(),
        "{} missed:\n{shown}",
        ran.missed.len()
    );
    assert!(
        ran.n_lines * 10 > n * 9,
        "only {} of {n} lines run anything",
        ran.n_lines
    );
}

#[test]
fn every_program_that_mutated_lines_run_is_known_or_asked_about() {
    let n: usize = if is_slow() { 10_000 } else { 250 };
    let n_batches = n.div_ceil(BATCH);
    let outside = [Outside::Words, Outside::Numbers];
    let ran = run(n_batches, |at| {
        (mutated(n / n_batches, at), outside[at % outside.len()])
    });
    let shown = ran.missed[..ran.missed.len().min(20)].join("\n");
    assert!(
        ran.missed.is_empty(),
        "{} missed:\n{shown}",
        ran.missed.len()
    );
    assert!(ran.n_lines * 2 > n, "only {} of {n} run", ran.n_lines);
}

/// `n_lines` lines that the analysis knows. A batch number gives the same lines in every run.
fn known_lines(n_lines: usize, batch: usize, text: impl Fn(&mut Dice) -> String) -> Vec<Line> {
    let mut dice = Dice::new(seed(batch));
    let lines = std::iter::repeat_with(|| Line::new(text(&mut dice)));
    lines.filter(Line::is_known).take(n_lines).collect()
}

#[test]
fn every_program_that_quotes_or_brackets_hide_is_known_or_asked_about() {
    let n: usize = if is_slow() { 10_000 } else { 500 };
    let n_batches = n.div_ceil(BATCH);
    let texts = [quotes::quoted, quotes::bracketed];
    let ran = run(n_batches, |at| {
        let lines = known_lines(n / n_batches, at, texts[at % texts.len()]);
        (lines, Outside::Words)
    });
    let shown = ran.missed[..ran.missed.len().min(20)].join("\n");
    assert!(
        ran.missed.is_empty(),
        "{} missed:\n{shown}",
        ran.missed.len()
    );
    assert!(ran.n_lines * 10 > n, "only {} of {n} run", ran.n_lines);
}

#[test]
fn every_program_that_realistic_scripts_run_is_known_or_asked_about() {
    let scripts = include_str!("../scripts.txt").trim_end().split("\n%%\n");
    let (known, asked) = known_and_asked(scripts.map(str::to_owned));
    assert!(
        known.len() >= 60 && asked.len() <= 12,
        "{} ask:\n{}",
        asked.len(),
        asked.join("\n%%\n")
    );
    let Ran { missed, n_lines } = run_known(&known);
    assert!(missed.is_empty(), "{}", missed.join("\n"));
    assert!(
        n_lines * 10 > known.len() * 9,
        "only {n_lines} run anything"
    );
}

#[test]
fn no_value_from_outside_is_read_as_a_number() {
    let (known, asked) = known_and_asked(numbers().into_iter());
    assert!(
        known.len() >= 300 && asked.len() >= 300,
        "{} known",
        known.len()
    );
    let Ran { missed, .. } = run_known(&known);
    assert!(
        missed.is_empty(),
        "{} missed:\n{}",
        missed.len(),
        missed.join("\n")
    );
}

#[test]
fn a_value_that_is_put_in_is_the_one_that_bash_has() {
    let is_literal = |command: &&SimpleCommand| command.is_literal;
    let texts = known::lines();
    let step = if is_slow() { 1 } else { 23 };
    let lines = texts.into_iter().step_by(step).map(Line::new);
    let lines = lines.filter(|line| known::put_in(&line.analysis).any(|c| is_literal(&c)));
    let lines: Vec<Line> = lines.collect();
    assert!(lines.len() * step > 1_000, "only {} lines", lines.len());
    let oracle = Oracle::new();
    for batch in lines.chunks(BATCH) {
        for (line, calls) in batch.iter().zip(oracle.run(batch, Outside::Words)) {
            for command in known::put_in(&line.analysis).filter(is_literal) {
                let call = [
                    std::slice::from_ref(&command.name),
                    command.arguments.as_slice(),
                ]
                .concat();
                assert!(
                    calls.contains(&call),
                    "{call:?} did not run, but {calls:?}:\n{}",
                    line.text
                );
            }
        }
    }
}
