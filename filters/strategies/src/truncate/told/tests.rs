use super::{BESIDE_MAX, Telling};
use crate::Lines;
use crate::truncate::rows::{NotableRows, RowBudget};

/// What is told of the middle of a text, whose first and last lines are no part of it.
fn told(text: &str, is_failure: bool) -> Vec<&str> {
    let lines = Lines::of(text);
    let rows = NotableRows::default();
    let n_lines = lines.len();
    let telling = Telling::of(&lines, (0..n_lines, 1..n_lines - 1), is_failure);
    let told = telling.told((&rows, &mut RowBudget::of(&rows)));
    told.within(0..n_lines)
        .map(|line_idx| lines.at(line_idx))
        .collect()
}

/// Each line has a sign: `+` is told, `-` is not. The steps of a build stand around them.
fn check(name: &str, marked: &str) {
    let step = |n: u32| format!("cc -c m{n}.c\n");
    let text: String = (marked.lines())
        .map(|line| line[1..].to_owned() + "\n")
        .collect();
    let text = [step(1), step(2), text, step(3), "done\n".to_owned()].concat();
    let expect: Vec<&str> = marked
        .lines()
        .filter_map(|line| line.strip_prefix('+'))
        .collect();
    assert_eq!(told(&text, true), expect, "{name}");
}

#[test]
fn what_stands_beside_an_error_is_told() {
    check(
        "a traceback of Python",
        "+Traceback (most recent call last):\n+  File \"gen.py\", line 40, in <module>\n+    main()\n+  File \"emit.py\", line 17, in emit\n+    write()\n+KeyError: 'speed'\n-next",
    );
    check(
        "a panic of Rust",
        "+thread 'main' panicked at src/main.rs:3:15:\n+index out of bounds: the len is 3\n-note: run with `RUST_BACKTRACE=1`",
    );
    check(
        "a panic of Go",
        "+panic: runtime error: index out of range\n+\n+goroutine 1 [running]:\n+main.lookup(...)\n+\t/w/main.go:12\n+main.main()\n+\t/w/main.go:5 +0x1d\n-\n-rest",
    );
    check(
        "a sanitizer",
        "+==1==ERROR: AddressSanitizer: heap-use-after-free\n+READ of size 4 at 0x602 thread T0\n+    #0 0x4f in parse /src/parse.c:55:9\n+    #1 0x50 in main /src/main.c:5:9\n-\n-rest",
    );
    check(
        "CMake",
        "+CMake Error at CMakeLists.txt:5 (message):\n+  Could not find Foo.\n+\n+  Set FOO_DIR.\n-\n-\n-rest",
    );
    check(
        "a linker",
        "+ld.lld: error: undefined symbol: total\n+>>> referenced by cart.c:31 (src/cart.c:31)\n+>>>               cart.o:(sum)\n-rest",
    );
    check(
        "a linker of macOS",
        "+Undefined symbols for architecture arm64:\n+  \"_total\", referenced from:\n+      _main in main.o\n+ld: symbol(s) not found for architecture arm64\n-rest",
    );
    check(
        "a compiler, whose lines of source are not",
        "+a.c:3:5: error: 'x' undeclared\n-    3 |   x();\n-      |   ^\n-a.c:3:5: note: each undeclared identifier is reported once\n-rest",
    );
    check(
        "a compiler, of templates",
        "+In file included from a.cpp:1:\n-In file included from /usr/include/c++/12/map:60:\n+/usr/include/c++/12/f.h:4:2: error: no <\n-    4 | a < b\n-      |   ^\n-/usr/include/c++/12/m.h:5:2: note: in instantiation of member function 'less' requested here\n+/w/a.cpp:6:27: note: in instantiation of member function 'map' requested here\n-/w/a.h:6:27: note: candidate\n-rest",
    );
    check(
        "rustc",
        "+error[E0308]: mismatched types\n+  --> src/a.rs:14:6\n-   |\n+14 |     \"abc\"\n+   |     ^^^^^ expected `i32`\n-...\n+   = note: it is so\n+help: do this\n-   |\n+14 |     7\n-\n-rest",
    );
    check(
        "a failure that is ignored",
        "+make: [Makefile:5: lint] Error 1 (ignored)\n-rest",
    );
    check("a place", "+vet: ./a.go:2:23: undeclared name: x\n-rest");
    check("a place", "+a.proto:3:1: \"X\" is not defined.\n-rest");
}

#[test]
fn what_a_recipe_said_is_told_where_nothing_in_it_is_known() {
    let text = [
        "cc -c a.c",
        "nothing matches the pattern",
        "make: *** [Makefile:3: gen] Error 1",
        "cc -c b.c",
        "a.c:1:1: error: x",
        "make: *** [Makefile:4: b.o] Error 1",
        "cc -c c.c",
        "done",
    ];
    let expect = [text[1], text[2], text[4], text[5]];
    assert_eq!(told(&text.join("\n"), true), expect);
}

#[test]
fn a_target_of_ninja_is_told_with_what_it_printed() {
    check(
        "unknown words",
        "+FAILED: gen.h\n+python3 gen.py\n+no such table\n-[2/9] CC b.o\n+FAILED: c.o\n-cc -c c.c\n+c.c:1:1: error: x\n-[3/9] CC d.o",
    );
}

/// What failed may be among the last lines, which are shown, and its cause not.
#[test]
fn what_belongs_to_an_error_at_the_end_is_told() {
    let text = "a\nb\nnothing matches\nmake: *** [Makefile:3: gen] Error 1\n";
    assert_eq!(told(text, true), ["b", "nothing matches"]);
}

#[test]
fn lines_beside_errors_have_a_budget() {
    let failure = |n: u32| format!("{}make: *** [m{n}] Error 1\n", "quiet\n".repeat(30));
    let text: String = (0..40).map(failure).collect();
    let text = format!("first\n{text}last\n");
    let n_quiet = told(&text, true)
        .iter()
        .filter(|line| **line == "quiet")
        .count();
    assert_eq!(n_quiet, BESIDE_MAX);
}
