use super::{Severity, error_lines, is_location, severity};

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
    ] {
        assert_eq!(severity(line), Some(Severity::Error), "{line}");
        let text = format!("one\n{line}\ntwo\n");
        let found: Vec<_> = error_lines(&text).map(|range| &text[range]).collect();
        assert_eq!(found, [line]);
        assert_eq!(error_lines(line).count(), 1, "{line}");
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
