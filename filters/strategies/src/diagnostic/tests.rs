use proptest::prelude::*;
use proptest::string::string_regex;

use std::sync::LazyLock;

use super::{PROOFS, SIGNS, Severity, error_lines, expression, head, is_location, severity};
use crate::{Automaton, Case, Lines};

#[test]
fn errors_of_many_tools_are_seen() {
    for line in [
        "error: cannot find value `x` in this scope",
        "error[E0425]: cannot find value",
        "  error: indented",
        "ERROR: No matching distribution found for nonexistent",
        "gcc: fatal error: no input files",
        "main.c:3:5: error: 'x' undeclared (first use in this function)",
        "src/a.ts(3,5): error TS2304: Cannot find name 'x'.",
        "  12:5  error  'x' is not defined  no-undef",
        "make: *** [Makefile:3: all] Error 2",
        "make[1]: *** [all] Error 1",
        "npm ERR! code E404",
        "npm error code E404",
        "Traceback (most recent call last):",
        "ValueError: bad value",
        "java.lang.NullPointerException: x",
        "Exception in thread \"main\" java.lang.Error",
        "thread 'main' panicked at src/main.rs:3:5:",
        "panic: runtime error: index out of range",
        "--- FAIL: TestX (0.00s)",
        "FAIL\tgithub.com/x/y\t0.003s",
        "test a ... FAILED",
        "FAILED tests/test_a.py::test_x - assert 1 == 2",
        "E       assert 1 == 2",
        "Segmentation fault (core dumped)",
        "/usr/bin/ld: main.o: undefined reference to `foo'",
        "bash: foo: command not found",
        "cat: x: No such file or directory",
        "2024-01-02T03:04:05Z ERROR something broke",
        "{\"level\":\"error\",\"msg\":\"x\"}",
        "ts=1 level=error msg=x",
        "  process didn't exit successfully: `x` (signal: 6, SIGABRT: process abort signal)",
        "Fehler: Datei nicht gefunden",
        "main.c:3:5: Fehler: »x« nicht deklariert",
        "错误：找不到文件",
        "  ✕ adds numbers (3 ms)",
        "3 failed, 2 passed in 0.1s",
        " ! [rejected]        main -> main (fetch first)",
        "Error: Cannot find module 'x'",
        "fatal: not a git repository",
        "E: Unable to locate package x",
        "open /etc/shop/config.yaml: no such file or directory",
        "dial tcp 127.0.0.1:5432: connect: connection refused",
        "go: example.org/x@v1: reading x: 404 Not Found",
        "mkdir: cannot create directory ‘Makefile’: File exists",
        "cp: cannot stat 'a/b': Not a directory",
        "curl: (6) Could not resolve host: example.org",
        "df: /mnt/nfs: Stale file handle",
        "Failed to start nginx.service: Unit not found.",
        "curl: failed to send",
        "could not connect to server",
        "2024/05/01 10:00:00 [emerg] 7#7: host not found in upstream",
        "[Wed May 01 10:00:00 2024] [core:error] [pid 7] x",
        "[FAIL] login",
        "[ERR] a",
        "E0501 10:00:00.000000       1 controller.go:114] sync: quota",
        "PHP Fatal error:  Uncaught Exception",
        "PHP Parse error: unexpected '}' in a.php on line 3",
        "Makefile:3: *** missing separator.  Stop.",
        "patch: **** malformed patch at line 3",
        "a.rb:3:in `x': undefined method `y' for nil (NoMethodError)",
        "e: file:///a.kt:3:5 Unresolved reference: x",
        "FAILED: obj/cart.o",
        "not ok 3 - login",
        "    not ok 3 - login # time=1.2ms",
        "#9 1.23 E: Unable to locate package foo",
        "#9 1.23 error: x",
        "Undefined symbols for architecture arm64:",
        "ld: symbol(s) not found for architecture arm64",
    ] {
        assert_eq!(severity(line), Some(Severity::Error), "{line}");
        let text = format!("one\n{line}\ntwo\n");
        let found: Vec<_> = error_lines(&text).map(|range| &text[range]).collect();
        assert_eq!(found, [line]);
        assert_eq!(error_lines(line).count(), 1, "{line}");
    }
}

/// A text is read in another way than a line: rows of linters by hand.
#[test]
fn rows_of_linters_say_what_their_expressions_say() {
    for line in [
        "  12:5  error  'x' is not defined  no-undef",
        "12:5 warning y",
        "\t1:2\twarning\tx",
        "  1:1  warning  error: x  rule",
        "  1:1  warning  there are 3 errors  rule",
        "  1:1  warning  Error in x: y",
        "  1:1  Error  x",
        "  12:5  errors  x",
        "  12:5  error",
        "  12:  error x",
        "  12:5error x",
        "  a:5  error  x",
        "  1:2  warn  x",
    ] {
        let text = format!("one\n{line}\ntwo\n");
        assert_eq!(Lines::of(&text).severity(1), severity(line), "{line}");
    }
}

#[test]
fn names_and_totals_are_no_errors() {
    for line in [
        "test parser::tests::parse_error ... ok",
        "test error::fatal ... ok",
        "tests/test_error.py::test_error PASSED [ 3%]",
        "--- PASS: TestError (0.00s)",
        "test result: ok. 5 passed; 0 failed; 0 ignored",
        "0 errors, 0 warnings",
        "   Compiling thiserror v2.0.1",
        "-rw-r--r-- 1 root root 0 error.rs",
        "Collecting exceptiongroup>=1",
        "added 12 packages, and audited 13 packages in 2s",
        "  ✓ handles failing input (2 ms)",
        "PASS src/error.test.js",
        "not ok 3 - login # TODO later",
        "not ok 3 # SKIP no database",
        "note: it failed to be a problem",
        "I0501 10:00:00.000000       1 controller.go:114] synced",
        "",
    ] {
        assert_eq!(severity(line), None, "{line}");
        assert_eq!(error_lines(line).count(), 0, "{line}");
    }
}

#[test]
fn warnings_are_seen() {
    for line in [
        "warning: unused variable: `x`",
        "a.c:3:5: warning: unused variable",
        "npm warn deprecated har-validator@5.1.5: no longer supported",
        "WARNING: Running pip as root",
        "2024-01-02 WARN slow",
        "DeprecationWarning: x",
        "3 high severity vulnerabilities",
        "time=\"2024-05-01T10:00:00Z\" level=warning msg=\"disk almost full\"",
        "{\"level\":\"warn\",\"msg\":\"x\"}",
        "2024/05/01 10:00:00 [warn] 7#7: x",
        "[Wed May 01 10:00:00 2024] [ssl:warn] [pid 7] x",
        "W0501 10:00:00.000000       1 controller.go:114] x",
        "PHP Warning:  x in a.php on line 3",
        "warning: failed to read x",
        "tool: warn: cannot read x",
        "w: file:///a.kt:3:5 Parameter never used",
    ] {
        assert_eq!(severity(line), Some(Severity::Warning), "{line}");
    }
}

#[test]
fn locations_are_seen() {
    for line in [
        "  --> src/a.rs:3:5",
        "    at Object.<anonymous> (a.test.js:3:5)",
        "  File \"a.py\", line 3, in f",
        "tests/test_a.py:12: AssertionError",
    ] {
        assert!(is_location(line), "{line}");
    }
    assert!(!is_location("nothing here"));
}

/// What is recognised by hand.
static LOCATION: LazyLock<Automaton> = LazyLock::new(|| {
    Automaton::new(
        r"^\s*(?:-->|:::) \S+:[0-9]+|^\s*at .*[:(]\S*:[0-9]+|^\s*File .+, line [0-9]+|^\s*\S+\.[A-Za-z0-9]{1,6}:[0-9]+",
    )
});

proptest! {
    #[test]
    fn locations_are_told_as_their_expression_says(line in r"[ \t]{0,2}(--> |::: |at |File |)([ .:(,/a-c1é]|, line |\.rs:|:1|\(){0,12}") {
        prop_assert_eq!(is_location(&line), LOCATION.is_match(&line), "{:?}", line);
    }
}

/// What is made fast by looking for words first.
fn plain_severity(line: &str) -> Option<Severity> {
    let line = head(line);
    let found = (0..SIGNS.len()).find(|sign_idx| expression(*sign_idx).is_match(line));
    found.map(|sign_idx| SIGNS[sign_idx].severity)
}

/// The expressions of errors over characters, not bytes: they take long to compile, and say the same.
static SLOW_ERROR: LazyLock<regex::Regex> = LazyLock::new(|| {
    let all: Vec<_> = errors().map(|error| format!("(?:{error})")).collect();
    regex::Regex::new(&all.join("|").replace(r"\b", r"(?-u:\b)")).unwrap()
});

fn errors() -> impl Iterator<Item = &'static str> {
    let errors = SIGNS.iter().filter(|sign| sign.severity == Severity::Error);
    errors.map(|sign| sign.pattern)
}

fn check_all(text: &str) {
    let mut errors = Vec::new();
    let lines = Lines::of(text);
    for (line_idx, line) in text.split('\n').enumerate() {
        let expect = plain_severity(line);
        assert_eq!(is_location(line), LOCATION.is_match(head(line)), "{line:?}");
        assert_eq!(lines.severity(line_idx), expect, "{line:?}");
        assert_eq!(severity(line), expect, "{line:?}");
        let is_error = SLOW_ERROR.is_match(head(line));
        assert_eq!(expect == Some(Severity::Error), is_error, "{line:?}");
        if expect == Some(Severity::Error) {
            errors.push(line);
        }
    }
    let found: Vec<_> = error_lines(text).map(|range| &text[range]).collect();
    assert_eq!(found, errors, "{text:?}");
    let n_lines = lines.len();
    let numbers = lines.severities().errors().within(0..n_lines);
    let of_numbers: Vec<_> = numbers.map(|line_idx| lines.at(line_idx)).collect();
    assert_eq!(of_numbers, errors, "{text:?}");
}

#[test]
fn a_line_that_begins_with_a_proof_matches_whatever_follows() {
    for (sign_idx, word) in PROOFS {
        let sign = &SIGNS[sign_idx];
        assert_eq!(sign.case, Case::Exact, "{word:?}");
        assert_eq!(sign.severity, Severity::Error, "{word:?}");
        assert!(sign.words.contains(&word), "{word:?}");
        let start = word.strip_prefix('\n').unwrap();
        for rest in ["", "x", " ", ":", "\u{e9}"] {
            assert!(expression(sign_idx).is_match(&format!("{start}{rest}")));
        }
    }
}

#[test]
fn every_line_of_every_recorded_output_is_told_as_its_expressions_say() {
    let rules = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("../rules");
    let folders = std::fs::read_dir(rules).unwrap().flatten();
    let folders = folders.filter(|entry| entry.path().is_dir());
    let files = folders.flat_map(|folder| std::fs::read_dir(folder.path()).unwrap().flatten());
    let mut n_files = 0;
    for file in files {
        let raw = std::fs::read(file.path()).unwrap();
        let text = String::from_utf8_lossy(&raw).replace('\r', "\n");
        check_all(&text);
        n_files += 1;
    }
    assert!(n_files > 40);
}

#[test]
fn signs_at_the_beginning_of_lines_are_seen_wherever_the_line_is() {
    for line in ["E: x", "E   x", "× x", "  × x", "\t● x", "W: x"] {
        for text in [
            line.to_owned(),
            format!("{line}\n{line}"),
            format!("\n{line}\n\n{line}\n"),
            format!("error: a\n{line}\n"),
        ] {
            check_all(&text);
        }
        assert!(severity(line).is_some(), "{line}");
        assert_eq!(severity(&format!("a{line}")), None, "{line}");
    }
}

/// Lines that one of the expressions matches, mostly: what they say of borders is omitted.
fn lines_like_signs() -> impl Strategy<Value = String> {
    let generators = SIGNS.each_ref().map(|sign| {
        let pattern = sign.pattern;
        let pattern = pattern.replace(r"\b", "").replace("[^", "\u{1}");
        let pattern = pattern.replace(['^', '$'], "").replace('\u{1}', "[^");
        string_regex(&pattern).unwrap().boxed()
    });
    prop::sample::select(generators.to_vec())
        .prop_flat_map(|generator| generator)
        .prop_map(|line| line.chars().map(usual).collect())
}

/// Forms of letters and spaces that words do not have: `ſ` is an `s` to an expression, `ᲂ` an `о`.
fn usual(c: char) -> char {
    if c.is_whitespace() {
        return if c == '\t' { c } else { ' ' };
    }
    if c.is_ascii() {
        return c;
    }
    let upper = c.to_uppercase().next().unwrap_or(c);
    upper.to_lowercase().next().unwrap_or(c)
}

proptest! {
    #[test]
    fn lines_are_told_as_the_expressions_say(lines in prop::collection::vec((lines_like_signs(), "[a-z ]{0,3}", any::<bool>()), 0..6)) {
        let lines = lines.iter().map(|(line, other, is_first)| match is_first {
            true => format!("{line}{other}"),
            false => format!("{other}{line}"),
        });
        check_all(&lines.collect::<Vec<_>>().join("\n"));
    }
}
