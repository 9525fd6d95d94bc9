use super::{FactKind, facts};

/// The facts of an output as `kind text`, in their own order.
fn check(command: &str, raw: &str, expect: &[(FactKind, &str)]) {
    let facts = facts(command, raw.as_bytes());
    let found: Vec<_> = facts
        .iter()
        .map(|fact| (fact.kind, fact.spellings[0].as_str()))
        .collect();
    assert_eq!(found, expect, "{command}");
}

#[test]
fn a_panic_has_a_name_a_place_and_a_message() {
    let raw = "test a::b ... FAILED\ntest a::c ... ok\n---- a::b stdout ----\nthread 'a::b' (7) panicked at src/lib.rs:3:5:\nit broke\n  at /rustc/x/core/src/panic.rs:1:2\n";
    let expect = [
        (FactKind::Name, "a::b"),
        (FactKind::Place, "src/lib.rs:3"),
        (FactKind::Message, "it broke"),
        (FactKind::Message, "thread 'a::b' (7)"),
    ];
    check("cargo test", raw, &expect);
}

#[test]
fn a_coloured_failure_of_pytest_is_read() {
    let raw = "____ test_a ____\n\u{1b}[1m\u{1b}[31mE   assert 0\u{1b}[0m\n\u{1b}[31mt.py\u{1b}[0m:3: AssertionError\nFAILED t.py::T::test_a[x] - assert 0\n== 1 failed in 0.1s ==\n";
    let expect = [
        (FactKind::Name, "t.py::T::test_a[x]"),
        (FactKind::Place, "t.py:3"),
        (FactKind::Message, "E   assert 0"),
        (FactKind::Total, "1 failed in 0.1s"),
    ];
    check("python -m pytest", raw, &expect);
}

#[test]
fn logs_of_passed_tests_are_no_facts() {
    let raw = "=== RUN   TestA\n    a_test.go:3: fine\n--- PASS: TestA (0.00s)\n=== RUN   TestB\n    a_test.go:7: bad\n--- FAIL: TestB (0.00s)\nFAIL\tx\t0.1s\n";
    let expect = [
        (FactKind::Name, "TestB"),
        (FactKind::Place, "a_test.go:7"),
        (FactKind::Total, "FAIL\tx\t0.1s"),
    ];
    check("go test -v", raw, &expect);
}

#[test]
fn addresses_are_no_places() {
    check(
        "make",
        "error: http://127.0.0.1:80 and 12:30:05",
        &[(FactKind::Message, "error: http://127.0.0.1:80 and 12:30:05")],
    );
}
