use crate::{Confidence, Input, Lines, Piece, create};

/// What is shown of an output, as one text; notes are lines that begin with `~`.
fn shown(text: &str) -> String {
    let lines = Lines::of(text);
    let selection = create("test_summary", "").unwrap().apply(&Input {
        command: "tool",
        exit_code: Some(1),
        lines: &lines,
    });
    assert_eq!(selection.confidence, Confidence::Full, "{text}");
    let mut shown = String::new();
    for piece in selection.pieces {
        match piece {
            Piece::Keep(range) => lines
                .range(range)
                .for_each(|line| shown.push_str(&format!("{line}\n"))),
            Piece::Note(note) => shown.push_str(&format!("~ {note}\n")),
        }
    }
    shown
}

fn check(text: &str, kept: &[&str], left_out: &[&str]) {
    let shown = shown(text);
    for line in kept {
        assert!(
            shown.lines().any(|shown| shown == *line),
            "{line:?} is lost of:\n{text}\n{shown}"
        );
    }
    for line in left_out {
        assert!(
            !shown.lines().any(|shown| shown == *line),
            "{line:?} is there of:\n{text}\n{shown}"
        );
    }
}

const RUBOCOP: &str = "\
Inspecting 24 files
....C...W...............

Offenses:

lib/cart.rb:41:5: W: Lint/UselessAssignment: Useless assignment to variable - total.
    total = items.sum(&:price)
    ^^^^^
lib/order.rb:12:7: C: Security/YAMLLoad: Prefer using YAML.safe_load over YAML.load.
      config = YAML.load(File.read(path))
                    ^^^^

24 files inspected, 3 offenses found

";

const DOCUMENTATION: &str = "\
Cart
  adds an item
  totals the items (FAILED - 1)
  when empty
    is free

Failures:

  1) Cart totals the items
     Failure/Error: expect(cart.total).to eq(12)
     # ./spec/cart_spec.rb:22:in `block (2 levels) in <top (required)>'

Finished in 0.03 seconds (files took 0.1 seconds to load)
3 examples, 1 failure
";

#[test]
fn what_another_tool_says_before_rspec_stays() {
    let offences: Vec<&str> = RUBOCOP
        .lines()
        .filter(|line| line.contains("lib/"))
        .collect();
    for heading in ["Randomized with seed 31547\n\n", ""] {
        let text = format!("{RUBOCOP}{heading}{DOCUMENTATION}");
        let gone = [
            "  adds an item",
            "    is free",
            "  totals the items (FAILED - 1)",
        ];
        check(&text, &offences, &gone);
        check(
            &text,
            &[
                "    total = items.sum(&:price)",
                "  1) Cart totals the items",
            ],
            &gone,
        );
    }
}

#[test]
fn what_examples_of_rspec_print_stays() {
    // There are more lines that look like examples than examples.
    let text = DOCUMENTATION.replace("  when empty", "  row 3 was rejected\n  when empty");
    check(&text, &["  row 3 was rejected"], &[]);
    let rows = "..F\n  row 3 was rejected\n\nRejected:\n  order 17\n\n";
    let text = DOCUMENTATION.replace(
        &DOCUMENTATION[..DOCUMENTATION.find("Failures:").unwrap()],
        rows,
    );
    check(
        &text,
        &["  row 3 was rejected", "Rejected:", "  order 17"],
        &["..F"],
    );
}

#[test]
fn a_list_of_another_tool_is_no_failure_of_rspec() {
    let rows: String = (0..80).map(|n| format!("     row {n}\n")).collect();
    let text = format!("  1) seeding\n{rows}\nRandomized with seed 1\n\n{DOCUMENTATION}");
    check(&text, &["     row 0", "     row 79"], &["  adds an item"]);
}

#[test]
fn what_a_program_prints_under_mocha_stays() {
    let text = "
> shop@1.0.0 test
> mocha

> connecting to db…
> order@2 is stale

  cart
    ✔ handles case 1
2) seeding FAILED for table orders: 3 rows rejected
    1) adds an item
  Rejected:
    1) order 17

  1 passing (20ms)
  1 failing

  1) cart
       adds an item:
     Error: no

";
    check(
        text,
        &[
            "> connecting to db…",
            "> order@2 is stale",
            "2) seeding FAILED for table orders: 3 rows rejected",
            "  Rejected:",
            "    1) order 17",
            "       adds an item:",
        ],
        &[
            "> shop@1.0.0 test",
            "> mocha",
            "    1) adds an item",
            "  cart",
        ],
    );
}

#[test]
fn what_a_program_prints_under_vitest_stays() {
    let text = "
→ connecting to db
   × cart > adds 5ms
     → expected 1 to be 2
 FAIL  a.test.js > cart > adds
AssertionError: expected 1 to be 2

 Test Files  1 failed (1)
      Tests:  1 failed (1)
";
    check(
        text,
        &["→ connecting to db"],
        &["     → expected 1 to be 2"],
    );
}

#[test]
fn packages_of_go_have_tests_of_the_same_name() {
    let text = "\
=== RUN   TestStore
    store_test.go:9: opened
--- PASS: TestStore (0.00s)
PASS
ok  \texample.com/shop/a\t0.01s
=== RUN   TestStore
    store_test.go:9: no table
2026/01/02 10:00:00 the table is missing
FAIL\texample.com/shop/b\t0.01s
=== RUN   TestStore
--- PASS: TestStore (0.00s)
PASS
ok  \texample.com/shop/c\t0.01s
FAIL
";
    assert_eq!(
        shown(text),
        "\
ok  \texample.com/shop/a\t0.01s
=== RUN   TestStore
    store_test.go:9: no table
2026/01/02 10:00:00 the table is missing
FAIL\texample.com/shop/b\t0.01s
ok  \texample.com/shop/c\t0.01s
FAIL
"
    );
}

#[test]
fn messages_of_go_stand_below_the_name_of_their_test() {
    let text = "\
=== RUN   TestA
    a_test.go:3: of A
--- FAIL: TestA (0.00s)
=== RUN   TestB
=== PAUSE TestB
=== RUN   TestC
=== PAUSE TestC
=== CONT  TestB
    a_test.go:7: of B
=== CONT  TestC
printed by C
=== NAME  TestB
    a_test.go:7: again of B
--- FAIL: TestB (0.10s)
--- PASS: TestC (0.20s)
=== RUN   TestD
printed by D
--- PASS: TestD (0.00s)
=== RUN   TestE
=== RUN   TestE/one
    a_test.go:9: of one
=== RUN   TestE/two
--- FAIL: TestE (0.00s)
    --- FAIL: TestE/one (0.00s)
    --- PASS: TestE/two (0.00s)
FAIL
FAIL\texample.com/shop\t0.3s
";
    assert_eq!(
        shown(text),
        "    a_test.go:3: of A
--- FAIL: TestA (0.00s)
=== CONT  TestB
    a_test.go:7: of B
=== CONT  TestC
printed by C
=== NAME  TestB
    a_test.go:7: again of B
--- FAIL: TestB (0.10s)
printed by D
=== RUN   TestE/one
    a_test.go:9: of one
--- FAIL: TestE (0.00s)
    --- FAIL: TestE/one (0.00s)
FAIL
FAIL\texample.com/shop\t0.3s
"
    );
}

/// Go prints no total of them.
#[test]
fn tests_of_go_that_were_skipped_are_named_with_their_reason() {
    let skip = |name: &str, reason: &str| {
        format!("=== RUN   {name}\n    a_test.go:5: {reason}\n--- SKIP: {name} (0.00s)\n")
    };
    let text = [
        skip("TestA", "no DATABASE_URL: not run"),
        skip("TestB", "no DATABASE_URL: not run"),
        skip("TestC", "later"),
        "=== RUN   TestD\n    a_test.go:9: opened\n--- PASS: TestD (0.00s)\n".to_owned(),
        "=== RUN   TestE\n--- SKIP: TestE (0.00s)\nPASS\nok  \texample.org/gt\t0.1s\n".to_owned(),
    ];
    assert_eq!(
        shown(&text.concat()),
        "~ skipped TestA TestB: no DATABASE_URL: not run\n~ skipped TestC: later\n~ skipped TestE\nok  \texample.org/gt\t0.1s\n"
    );
    let many: String = (0..30)
        .map(|n| skip(&format!("Test{n}"), "short"))
        .collect();
    assert!(shown(&many).contains(" Test19 and 10 more: short\n"));
    let event = |action: &str, test: &str, output: &str| {
        format!(r#"{{"Time":"t","Action":"{action}","Package":"p","Test":"{test}"{output}}}"#)
            + "\n"
    };
    let text = [
        event("run", "TestA", ""),
        event("output", "TestA", r#","Output":"    a_test.go:5: later\n""#),
        event(
            "output",
            "TestA",
            r#","Output":"--- SKIP: TestA (0.00s)\n""#,
        ),
        event("skip", "TestA", r#","Elapsed":0"#),
    ];
    assert_eq!(shown(&text.concat()), "~ skipped p TestA: later\n");
    let text = text.concat().replace("later", r"a\tb");
    assert_eq!(shown(&text), "~ skipped p TestA: a\\tb\n");
}

#[test]
fn what_benchmarks_of_go_measured_stays() {
    let event = |output: &str| {
        format!(
            r#"{{"Time":"t","Action":"output","Package":"p","Test":"TestP","Output":"{output}"}}"#
        ) + "\n"
    };
    let text = [
        event(r"--- PASS: TestP (0.00s)\n"),
        event(r"BenchmarkAdd\n"),
        event(r"BenchmarkAdd-2   \t"),
        event(r"       1\t      1022 ns/op\n"),
        event(r"BenchmarkMul-2   \t 1\t  42.0 ns/op\t 8 B/op\n"),
        "{\"Time\":\"t\",\"Action\":\"pass\",\"Package\":\"p\",\"Test\":\"TestP\"}\n".to_owned(),
    ];
    assert_eq!(
        shown(&text.concat()),
        "~ p BenchmarkAdd-2 1 1022 ns/op\n~ p BenchmarkMul-2 1 42.0 ns/op 8 B/op\n"
    );
}

#[test]
fn runs_of_ctest_number_their_tests_anew() {
    let run = |verdict: &str, total: &str, list: &str| {
        format!(
            "Test project /w\ntest 1\n      Start 1: cart\n\n1: Test command: /w/cart\n1: 3 rows rejected\n1/1 Test #1: cart ....{verdict}    0.00 sec\n\n{total} tests passed, x\n\n{list}"
        )
    };
    let failed = "The following tests FAILED:\n\t  1 - cart (Failed)\nErrors while running CTest\n";
    let text = format!(
        "1: before all runs\n{}{}1 - not of the list (old)\n",
        run("***Failed", "0%", failed),
        run("   Passed", "100%", "")
    );
    let shown = shown(&text);
    assert_eq!(shown.matches("1: 3 rows rejected").count(), 1, "{shown}");
    check(
        &text,
        &[
            "1: before all runs",
            "1 - not of the list (old)",
            "Errors while running CTest",
        ],
        &["\t  1 - cart (Failed)"],
    );
}

#[test]
fn only_what_stands_below_a_rule_is_a_failure_of_unittest() {
    let rows: String = (0..80).map(|n| format!("row {n}\n")).collect();
    let rule = "=".repeat(70);
    let text = format!(
        "ERROR: cannot reach the index\n{rows}{rule}\nFAIL: test_a (t.T.test_a)\n{}\nAssertionError: no\n\nRan 1 test in 0.1s\n",
        "-".repeat(70)
    );
    check(&text, &["row 0", "row 79", "AssertionError: no"], &[&rule]);
}

/// Of a long difference what is alike is left out.
#[test]
fn what_differs_stays_of_a_long_difference() {
    let rule = |sign: &str| sign.repeat(70);
    let alike: String = (0..60)
        .map(|n| format!("   'item{n:02}': {n},\n"))
        .collect();
    let text = format!(
        "{}\nFAIL: test_a (t.T.test_a)\n{}\nAssertionError: no\n{alike}-  'item60': 60,\n?            ^^\n\n+  'item60': -1,\n\nRan 1 test in 0.1s\n",
        rule("="),
        rule("-")
    );
    check(
        &text,
        &["-  'item60': 60,", "+  'item60': -1,", "   'item00': 0,"],
        &["   'item59': 59,"],
    );
    let alike: String = (0..60).map(|n| format!("      {n},\n")).collect();
    let text = tap(&format!(
        "\n  error: |-\n    Expected values to be strictly deep-equal:\n{alike}    +   45,\n    -   -1,\n  stack: |-\n    TestContext.<anonymous> (/w/a.test.js:6:24)\n    other (/w/b.js:1:1)\n"
    ));
    check(
        &text,
        &[
            "    +   45,",
            "    -   -1,",
            "    TestContext.<anonymous> (/w/a.test.js:6:24)",
        ],
        &["      59,", "    other (/w/b.js:1:1)"],
    );
}

#[test]
fn what_stands_before_tap_stays() {
    let text =
        "ok 3 rows\n1..5 rows are stale\nTAP version 13\nok 1 - a\n1..5 rows\n1..2\nnot ok 2 - b\n";
    check(
        text,
        &[
            "ok 3 rows",
            "1..5 rows are stale",
            "1..5 rows",
            "not ok 2 - b",
        ],
        &["ok 1 - a", "1..2"],
    );
}

#[test]
fn what_a_rust_test_prints_is_no_name_of_a_binary() {
    let text = "\
     Running unittests src/lib.rs (target/debug/deps/shop-0123456789abcdef)

running 2 tests
test a ... ok
Running migration 4 of 7: 3 rows rejected
test b ... ok

test result: ok. 2 passed; 0 failed; 0 ignored
";
    check(
        text,
        &["Running migration 4 of 7: 3 rows rejected"],
        &["test a ... ok"],
    );
}

#[test]
fn a_failure_of_pytest_ends_where_its_captured_output_or_the_totals_do() {
    let rows: String = (0..80).map(|n| format!("row {n}\n")).collect();
    let text = format!(
        "=== FAILURES ===\n___ test_a ___\n    the table is missing\na.py:3: Missing\n----- Captured stdout call -----\nE  xpected\n1 failed, 2 passed in 0.10s\n{rows}"
    );
    check(&text, &["    the table is missing", "row 0", "row 79"], &[]);
}

/// A failed test of TAP with these lines in its block, which begins two blanks in. The first is the end of the line before them.
fn tap(details: &str) -> String {
    format!("TAP version 13\nnot ok 1 - total\n  ---{details}  ...\nok 2 - b\n1..2\n")
}

#[test]
fn values_that_tap_compares_stay() {
    let node = tap("
  duration_ms: 0.2
  type: 'test'
  location: '/w/a.test.js:2:1'
  error: |-
    Expected values to be loosely deep-equal:

    {
      at: '17:00',
      operator: 'plus'
    }

    should loosely deep-equal
    ...
    ok 3 rows
    {
      at: '17:00',
      operator: 'minus'
    }
  name: 'AssertionError'
  expected:
    name: 'Ada'
    type: 'guest'
    at: '17:00'
  actual:
    name: 'Eve'
    type: 'admin'
    stack: 'lamp'
    at: '17:00'
  operator: 'deepEqual'
  stack: |-
    total (/w/cart.js:5:13)
    Test.run (node:internal/test_runner/test:796:25)
    total (/w/cart.js:5:13)
");
    let shown = shown(&node);
    for twice in ["      at: '17:00',\n", "    at: '17:00'\n"] {
        assert_eq!(shown.matches(twice).count(), 2, "{twice}: {shown}");
    }
    assert_eq!(shown.matches("cart.js:5:13").count(), 1, "{shown}");
    check(
        &node,
        &[
            "    ...",
            "    ok 3 rows",
            "      operator: 'plus'",
            "      operator: 'minus'",
            "    name: 'Ada'",
            "    type: 'guest'",
            "    name: 'Eve'",
            "    type: 'admin'",
            "    stack: 'lamp'",
        ],
        &[
            "  duration_ms: 0.2",
            "  type: 'test'",
            "  name: 'AssertionError'",
            "  operator: 'deepEqual'",
            "    Test.run (node:internal/test_runner/test:796:25)",
            "  ...",
            "ok 2 - b",
        ],
    );
}

#[test]
fn texts_that_tap_compares_stay() {
    let text = tap("
    operator: deepEqual
    expected: |-
      name: Ada
      total: 12

      rows: 3
    actual: |-
      name: Eve
      total: 12
      rows: 3
    at: Test.<anonymous> (/w/test/cart.js:17:7)
");
    assert_eq!(
        shown(&text),
        "\
TAP version 13
not ok 1 - total
    expected: |-
      name: Ada
      total: 12

      rows: 3
    actual: |-
      name: Eve
      total: 12
      rows: 3
    at: Test.<anonymous> (/w/test/cart.js:17:7)
"
    );
}

#[test]
fn a_block_of_tap_ends_where_less_far_in_something_stands() {
    let text = "\
TAP version 13
ok 1 - a
  ---
  duration_ms: 1
name: is missing
not ok 2 - b
name: Eve
name: Eve
";
    let shown = shown(text);
    assert_eq!(shown.matches("name: Eve").count(), 2, "{shown}");
    check(
        text,
        &["name: is missing", "not ok 2 - b"],
        &["  duration_ms: 1"],
    );
}

#[test]
fn what_node_compares_stays() {
    let text = "\
connecting

✖ failing tests:

test at a.test.js:2:1
✖ total (0.5ms)
  AssertionError [ERR_ASSERTION]: no
      at total (/w/a.test.js:2:31) {
    generatedMessage: true,
    code: 'ERR_ASSERTION',
    actual: {
      generatedMessage: false,
      operator: 'plus'
    },
    operator: 'deepEqual'
  }
    operator: of the line
ℹ tests 1
";
    check(
        text,
        &[
            "      generatedMessage: false,",
            "      operator: 'plus'",
            "    operator: of the line",
        ],
        &["    generatedMessage: true,", "    operator: 'deepEqual'"],
    );
}

#[test]
fn a_block_of_vitest_is_found_by_the_end_of_its_title() {
    let blocks: String = (0..40)
        .map(|n| format!(" FAIL  a.test.js > cart > adds {n}\nAssertionError: no {n}\n"))
        .collect();
    let text = format!("   × adds 7 5ms\n   × adds 41 5ms\n{blocks} Test Files  1 failed (1)\n");
    check(&text, &["   × adds 41 5ms"], &["   × adds 7 5ms"]);
}

#[test]
fn what_looks_like_a_passed_test_outside_of_a_tree_stays() {
    // A table with a pointer is no source where no frame is; neither is one of which the numbers do not ascend.
    let text = "
FAIL test/table.test.js
  ● cli › prints

    Received:
    \"12 | let a
       |     ^
    13 | let b\"

    1 | one
    3 | three
      |   ^

      at Object.toBe (test/table.test.js:3:46)

PASS ready
PASS test/other.test.js (7.4 s)
  ✓ adds (5 ms)
✓ built in 3 steps

Tests:       1 failed, 1 passed, 2 total
  ✓ adds again
";
    check(
        text,
        &[
            "       |     ^",
            "    13 | let b\"",
            "    1 | one",
            "PASS ready",
            "✓ built in 3 steps",
        ],
        &[
            "PASS test/other.test.js (7.4 s)",
            "  ✓ adds (5 ms)",
            "  ✓ adds again",
        ],
    );
}

#[test]
fn a_failure_in_a_tree_of_node_ends_where_less_far_in_something_stands() {
    let text = "
▶ cart
  ✖ adds (2.7ms)
    Error: row 7
      ✓ read
    ✔ closed
  ✔ removes (0.5ms)
✔ opens (1.5ms) # SKIP
ℹ tests 3
";
    check(
        text,
        &["  ✖ adds (2.7ms)", "      ✓ read", "    ✔ closed"],
        &["▶ cart", "  ✔ removes (0.5ms)", "✔ opens (1.5ms) # SKIP"],
    );
}

#[test]
fn a_message_of_several_lines_keeps_its_first_in_the_tree_of_vitest() {
    let text = "
 × test/a.test.js > cart > adds 5ms
   → no
 × test/a.test.js > cart > packs 5ms
   → build failed:
✓ compile
 FAIL  test/a.test.js > cart > adds
Error: no
⎯⎯⎯⎯[1/2]⎯
 FAIL  test/a.test.js > cart > packs
Error: build failed:
✓ compile
⎯⎯⎯⎯[2/2]⎯
 Test Files  1 failed (1)
";
    check(
        text,
        &[
            " × test/a.test.js > cart > packs 5ms",
            "   → build failed:",
            "✓ compile",
        ],
        &[" × test/a.test.js > cart > adds 5ms", "   → no"],
    );
}

#[test]
fn what_a_test_printed_is_no_frame_of_a_library() {
    let text = "\
=================================== FAILURES ===================================
_________________________________ test_plugin __________________________________

    def test_plugin():
>       assert load(\"x\") is not None
E       AssertionError: assert None is not None

test_l.py:6: AssertionError
----------------------------- Captured stdout call -----------------------------
plugin dir /venv/lib/python3.11/site-packages/foo holds api 3, host wants 4
self = <Config prod>
_ _ _ _
=========================== short test summary info ============================
FAILED test_l.py::test_plugin - AssertionError: assert None is not None
========================= 1 failed, 5 passed in 0.02s ==========================
";
    check(
        text,
        &[
            "plugin dir /venv/lib/python3.11/site-packages/foo holds api 3, host wants 4",
            "self = <Config prod>",
            "_ _ _ _",
        ],
        &["    def test_plugin():"],
    );
    let text = "
  ● picks

    cannot pick a version
    at /w/node_modules/left-pad@1.0 wanted by shop
    at /w/node_modules/pad@2.0 wanted by admin
    at home
    at home

      at pick (node_modules/pick/index.js:3:5)
      at Object.<anonymous> (test/pick.test.js:3:46)

Tests:       1 failed, 1 total
";
    check(
        text,
        &[
            "    at /w/node_modules/left-pad@1.0 wanted by shop",
            "    at /w/node_modules/pad@2.0 wanted by admin",
            "      at Object.<anonymous> (test/pick.test.js:3:46)",
        ],
        &["      at pick (node_modules/pick/index.js:3:5)"],
    );
}
