//! `diagnostics` on real projects in the jail: cargo, and with `ZEPH_SLOW_TESTS=1` the checkers of other languages.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::sync::OnceLock;

use serde_json::{Value, json};

use crate::left_out::leave_out;
use crate::product::{Product, Ran};
use crate::toolchain::{run_line, slow_tests};

/// A package without dependencies, ready to be checked.
const PACKAGE: &str = "[package]\nname = \"checked\"\nversion = \"0.1.0\"\nedition = \"2021\"\n";
const LOCK: &str = "version = 3\n\n[[package]]\nname = \"checked\"\nversion = \"0.1.0\"\n";

/// A mismatch in line 2 and an unused variable in line 5.
const WRONG: &str =
    "pub fn wrong() -> u32 {\n    \"text\"\n}\npub fn f() {\n    let unused = 1;\n}\n";

/// The compiler of these tests, as a part of what the jail shows of toolchains.
#[expect(clippy::disallowed_methods, reason = "the compiler says where it lies")]
fn sysroot() -> &'static Path {
    static SYSROOT: OnceLock<PathBuf> = OnceLock::new();
    SYSROOT.get_or_init(|| {
        let output = Command::new("rustc").args(["--print", "sysroot"]).output();
        let path = String::from_utf8(output.unwrap().stdout).unwrap();
        PathBuf::from(path.trim())
    })
}

fn package(lib: &str) -> Product {
    let product = Product::new();
    product.file("Cargo.toml", PACKAGE);
    product.file("Cargo.lock", LOCK);
    product.file("src/lib.rs", lib);
    product
}

/// One call of `diagnostics` with `path` before the ordinary search path.
fn call_with(product: &Product, path: &Path, args: &[&str], params: &Value) -> Value {
    let mut words = vec!["run"];
    words.extend(args);
    let mut command = product.command(&words);
    let search = format!("{}:/usr/local/bin:/usr/bin:/bin", path.display());
    command.env("PATH", search).env("RUSTUP_HOME", sysroot());
    command
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped());
    let mut child = command.spawn().unwrap();
    let line = json!({"id": 1, "tool": "diagnostics", "params": params});
    let mut stdin = child.stdin.take().unwrap();
    std::io::Write::write_all(&mut stdin, format!("{line}\n").as_bytes()).unwrap();
    drop(stdin);
    let ran = Ran::from(child.wait_with_output().unwrap());
    assert_eq!(ran.code, Some(0), "{}", ran.stderr);
    ran.json_lines().remove(0)
}

/// Without asking anybody: the tool only reads.
fn call(product: &Product, params: Value) -> Value {
    call_with(product, &sysroot().join("bin"), &[], &params)
}

fn text(answer: &Value) -> &str {
    assert_eq!(answer["status"], "ok", "{answer}");
    answer["text"].as_str().unwrap()
}

fn message(answer: &Value) -> &str {
    assert_eq!(answer["status"], "failed", "{answer}");
    answer["error"]["message"].as_str().unwrap()
}

#[test]
fn errors_and_warnings_of_a_crate() {
    let product = package(WRONG);
    let answer = call(&product, json!({}));
    let expect = "src/lib.rs:2:5: error[E0308]: mismatched types\n\
                  src/lib.rs:5:9: warning[unused_variables]: unused variable: `unused`";
    assert_eq!(text(&answer), expect, "{answer}");
    let found = &answer["structured"];
    assert_eq!(found["total"], 2, "{found}");
    assert_eq!(found["errors"], 1);
    assert_eq!(found["complete"], true);
    let first = &found["diagnostics"][0];
    assert_eq!(first["severity"], "error", "{first}");
    assert_eq!([&first["line"], &first["col"]], [2, 5]);
    assert_eq!(first["code"], "E0308");
    assert!(
        first["rendered"]
            .as_str()
            .unwrap()
            .contains("expected `u32`, found `&str`")
    );

    let bounded = call(&product, json!({"max_diagnostics": 1}));
    assert!(
        text(&bounded).ends_with("... and 1 more (showing first 1 of 2)"),
        "{bounded}"
    );
    assert_eq!(bounded["structured"]["total"], 2);

    // Nothing was made in the project, and what was compiled is kept elsewhere.
    let mut names: Vec<_> = fs::read_dir(&product.work)
        .unwrap()
        .map(|entry| entry.unwrap().file_name())
        .collect();
    names.sort();
    assert_eq!(names, ["Cargo.lock", "Cargo.toml", "src"]);
    product.file("src/lib.rs", "pub fn f() {}\n");
    let answer = call(&product, json!({}));
    assert_eq!(text(&answer), "No diagnostics");
}

#[test]
fn the_number_shown_can_be_set() {
    let product = package(WRONG);
    let set = ["--set", "tools.diagnostics.max_diagnostics=1"];
    let answer = call_with(&product, &sysroot().join("bin"), &set, &json!({}));
    assert_eq!(
        answer["structured"]["diagnostics"]
            .as_array()
            .unwrap()
            .len(),
        1,
        "{answer}"
    );
    assert_eq!(answer["structured"]["total"], 2);
}

#[test]
fn lints_come_with_clippy() {
    let product = package("pub fn f() -> u32 {\n    return 1;\n}\n");
    assert_eq!(text(&call(&product, json!({}))), "No diagnostics");
    for params in [
        json!({"kind": "clippy"}),
        json!({"level": "clippy"}),
        json!({"kind": "clippy", "level": "check"}),
    ] {
        let answer = call(&product, params);
        let lint = "src/lib.rs:2:5: warning[clippy::needless_return]: unneeded `return` statement";
        assert_eq!(text(&answer), lint, "{answer}");
    }
    let answer = call(&product, json!({"kind": "foo"}));
    assert_eq!(
        answer["error"]["category"], "invalid_parameters",
        "{answer}"
    );
}

#[test]
fn a_workspace_and_one_member_of_it() {
    let product = Product::new();
    product.file(
        "Cargo.toml",
        "[workspace]\nmembers = [\"a\", \"b\"]\nresolver = \"2\"\n",
    );
    for (name, lib) in [("a", WRONG), ("b", "pub fn g() { let other = 2; }\n")] {
        let manifest =
            format!("[package]\nname = \"{name}\"\nversion = \"0.1.0\"\nedition = \"2021\"\n");
        product.file(&format!("{name}/Cargo.toml"), manifest);
        product.file(&format!("{name}/src/lib.rs"), lib);
    }
    product.file("Cargo.lock", "version = 3\n\n[[package]]\nname = \"a\"\nversion = \"0.1.0\"\n\n[[package]]\nname = \"b\"\nversion = \"0.1.0\"\n");
    let all = call(&product, json!({}));
    let found = text(&all);
    assert!(found.contains("a/src/lib.rs:2:5: error[E0308]"), "{all}");
    assert!(found.contains("b/src/lib.rs:1:18: warning"), "{all}");
    let member = call(&product, json!({"path": "b"}));
    assert_eq!(member["structured"]["total"], 1, "{member}");
    let file = call(&product, json!({"path": "a/src/lib.rs"}));
    assert_eq!(file["structured"]["total"], 2, "{file}");
}

#[test]
fn a_huge_output_is_bounded_and_said_to_be() {
    use std::fmt::Write as _;

    let mut lib = String::new();
    for n in 0..12_000 {
        writeln!(lib, "pub fn f{n}() {{ let unused = {n}; }}").unwrap();
    }
    let product = package(&lib);
    let answer = call(&product, json!({"max_diagnostics": 5}));
    let found = &answer["structured"];
    assert_eq!(
        found["diagnostics"].as_array().unwrap().len(),
        5,
        "{answer}"
    );
    assert_eq!(found["complete"], false);
    assert!(
        found["total"].as_u64().unwrap() > 1_000,
        "{}",
        found["total"]
    );
    assert!(
        text(&answer).contains("bytes in the middle are missing"),
        "{answer}"
    );
}

#[test]
fn a_build_script_that_hangs_is_ended_and_what_was_found_is_told() {
    let product = Product::new();
    product.file(
        "Cargo.toml",
        format!("{PACKAGE}[dependencies]\ndep = {{ path = \"dep\" }}\n"),
    );
    product.file("Cargo.lock", "version = 3\n\n[[package]]\nname = \"checked\"\nversion = \"0.1.0\"\ndependencies = [\n \"dep\",\n]\n\n[[package]]\nname = \"dep\"\nversion = \"0.1.0\"\n");
    product.file("src/lib.rs", "pub fn f() {}\n");
    let mark = format!("86402.{}", std::process::id());
    let script =
        "fn main() { std::process::Command::new(\"sleep\").arg(\"MARK\").status().unwrap(); }\n";
    product.file("build.rs", script.replace("MARK", &mark));
    product.file("dep/Cargo.toml", PACKAGE.replace("checked", "dep"));
    product.file("dep/src/lib.rs", WRONG.replace("\"text\"", "1"));
    let grants = "plugins.default_grants.diagnostics=[\".:read\", \"program cargo\", \"limit wall_clock_secs=20\"]";
    let set = ["--set", grants, "--set", "limits.wall_clock_secs=10"];
    let answer = call_with(&product, &sysroot().join("bin"), &set, &json!({}));
    let found = text(&answer);
    assert!(
        found.contains("dep/src/lib.rs:5:9: warning[unused_variables]"),
        "{answer}"
    );
    assert!(found.contains("took too long"), "{answer}");
    assert_eq!(answer["structured"]["complete"], false);
    assert!(!crate::programs::is_running(&mark));
}

#[test]
fn what_keeps_cargo_from_checking_is_said_with_what_to_do() {
    let product = package("pub fn f() {}\n");
    fs::remove_file(product.work.join("Cargo.lock")).unwrap();
    let answer = call(&product, json!({}));
    assert!(
        message(&answer).contains("`cargo generate-lockfile`"),
        "{answer}"
    );

    product.file("Cargo.lock", LOCK);
    product.file(
        "Cargo.toml",
        format!("{PACKAGE}[dependencies]\nserde = \"1\"\n"),
    );
    let answer = call(&product, json!({}));
    assert!(message(&answer).contains("`cargo fetch`"), "{answer}");

    product.file("Cargo.toml", "[package\n");
    let answer = call(&product, json!({}));
    assert!(message(&answer).contains("unclosed table"), "{answer}");

    product.file("Cargo.toml", PACKAGE);
    product.file("build.rs", "fn main() { panic!(\"no luck\") }\n");
    let answer = call(&product, json!({}));
    let found = &answer["structured"]["diagnostics"][0];
    assert_eq!(found["severity"], "error", "{answer}");
    assert!(
        found["rendered"].as_str().unwrap().contains("no luck"),
        "{answer}"
    );
}

#[test]
fn without_the_checker_the_list_is_empty_and_says_why() {
    let product = package(WRONG);
    let answer = call_with(&product, Path::new("/nowhere"), &[], &json!({}));
    let found = text(&answer);
    assert!(
        found.starts_with("No diagnostics\n[cargo check did not run: there is no program `cargo`"),
        "{answer}"
    );
    assert_eq!(answer["structured"]["total"], 0);
    assert_eq!(answer["structured"]["complete"], false);
}

#[test]
fn no_project_is_a_plain_error() {
    let product = Product::new();
    product.file("notes.txt", "x");
    for (path, words) in [
        (".", "no project"),
        ("notes.txt", "no project"),
        ("nowhere", "cannot be read"),
    ] {
        let answer = call(&product, json!({ "path": path }));
        assert!(message(&answer).contains(words), "{path}: {answer}");
    }
}

#[test]
fn the_tool_is_offered_under_its_own_name() {
    let tools = Product::new().run(&["tools", "--json"]).json();
    let named = |tool: &&Value| tool["name"] == "diagnostics";
    let found: Vec<_> = tools.as_array().unwrap().iter().filter(named).collect();
    assert_eq!(found.len(), 1, "{tools}");
    assert_eq!(found[0]["annotations"]["read_only"], true, "{}", found[0]);
}

#[test]
fn python_projects_are_checked_with_ruff_and_mypy() {
    if !slow_tests("ruff and mypy check a project") {
        return;
    }
    let product = Product::new();
    product.file("pyproject.toml", "[tool.mypy]\nstrict = true\n");
    product.file(
        "a.py",
        "import os\n\n\ndef half(n: int) -> int:\n    return str(n / 2)\n",
    );
    run_line(&product.work, "python3 -m venv .venv");
    run_line(&product.work, ".venv/bin/pip install -q ruff mypy");
    let programs = product.work.join(".venv/bin");
    let answer = call_with(&product, &programs, &[], &json!({}));
    let found = text(&answer);
    assert!(found.contains("a.py:1:8: warning[F401]"), "{answer}");
    assert_eq!(answer["structured"]["checkers"][0], "ruff");
}

#[test]
fn typescript_projects_are_checked_with_their_own_compiler() {
    if !slow_tests("tsc checks a project") {
        return;
    }
    let product = Product::new();
    run_line(&product.work, "npm install --no-audit --no-fund typescript");
    product.file(
        "tsconfig.json",
        "{\"compilerOptions\": {\"strict\": true, \"types\": []}, \"include\": [\"src\"]}",
    );
    product.file("src/a.ts", "const n: number = \"one\";\nexport { n };\n");
    let answer = call(&product, json!({}));
    assert!(
        text(&answer).starts_with("src/a.ts:1:7: error[TS2322]"),
        "{answer}"
    );
    assert_eq!(answer["structured"]["total"], 1, "{answer}");
}

#[test]
#[expect(
    clippy::disallowed_methods,
    reason = "whether the machine has the compiler"
)]
fn go_modules_are_checked_with_vet() {
    if !slow_tests("go vet checks a module") {
        return;
    }
    if Command::new("go").arg("version").output().is_err() {
        leave_out("go vet checks a module where Go is installed");
        return;
    }
    let product = Product::new();
    product.file("go.mod", "module example.org/checked\n\ngo 1.19\n");
    product.file(
        "main.go",
        "package main\n\nimport \"fmt\"\n\nfunc main() {\n\tfmt.Printf(\"%d\\n\", \"text\")\n}\n",
    );
    let answer = call(&product, json!({}));
    assert!(
        text(&answer).contains("main.go:6:2: warning[printf]"),
        "{answer}"
    );
}

#[test]
fn what_is_withheld_of_a_directory_is_missing_to_programs_alone() {
    let product = package(
        "pub const A: &str = include_str!(\"../open/a\");\npub const B: &str = include_str!(\"../secret/b\");\n",
    );
    product.file("open/a", "one").file("secret/b", "two");
    assert_eq!(text(&call(&product, json!({}))), "No diagnostics");
    let args = [
        "plugin",
        "grant",
        "diagnostics",
        "--dir",
        "secret",
        "--mode",
        "deny",
    ];
    let ran = product.run(&args);
    assert_eq!(ran.code, Some(0), "{}", ran.stderr);
    let found = call(&product, json!({}));
    let found = text(&found);
    assert_eq!(found.lines().count(), 1, "{found}");
    assert!(
        found.contains("src/lib.rs:2:") && found.contains("secret/b"),
        "{found}"
    );
}
