//! Globs over names and over paths, counted and capped.

use serde_json::{Value, json};

use crate::fixture::{Fixture, args};

fn told(fixture: &Fixture, arguments: Value) -> String {
    fixture.told(super::run(&fixture.area, &args(arguments)))
}

fn fixture() -> Fixture {
    Fixture::new(&[
        ("a.rs", ""),
        ("src/b.rs", ""),
        ("src/deep/c.rs", ""),
        ("src/deep/c.toml", ""),
        (".github/ci.yml", ""),
    ])
}

#[test]
fn patterns() {
    let fixture = fixture();
    let check = |pattern: &str, expected: &[&str]| {
        let text = told(&fixture, json!({"pattern": pattern}));
        assert_eq!(text.lines().collect::<Vec<_>>(), expected, "{pattern}");
    };
    check("*.rs", &["a.rs", "src/b.rs", "src/deep/c.rs"]);
    check("./*.rs", &["a.rs"]);
    check("src/*.rs", &["src/b.rs"]);
    check("src/**/*.rs", &["src/b.rs", "src/deep/c.rs"]);
    check("**/c.{rs,toml}", &["src/deep/c.rs", "src/deep/c.toml"]);
    check("deep/", &["src/deep/"]);
    check(".github/*", &[".github/ci.yml"]);
    check(
        "*.yml",
        &["No files matching: *.yml (hidden and ignored entries only with `include_ignored`)"],
    );
}

#[test]
fn paths_may_stand_in_the_pattern() {
    let fixture = fixture();
    let root = fixture
        .at("")
        .to_str()
        .unwrap()
        .trim_end_matches('/')
        .to_owned();
    assert_eq!(
        told(&fixture, json!({"pattern": format!("{root}/src/*.rs")})),
        "src/b.rs"
    );
    assert_eq!(
        told(&fixture, json!({"pattern": "*.rs", "path": "src/deep"})),
        "src/deep/c.rs"
    );
    assert!(told(&fixture, json!({"pattern": "/etc/*"})).starts_with("blocked: `/etc` is outside"));
}

#[test]
fn results_are_capped_and_counted() {
    let text = told(&fixture(), json!({"pattern": "**/*", "max_results": 2}));
    assert_eq!(text, "a.rs\nsrc/\n... and 4 more (showing first 2 of 6)");
}

#[test]
fn mistakes_are_named() {
    let fixture = fixture();
    let check = |pattern: &str, expected: &str| {
        assert_eq!(told(&fixture, json!({"pattern": pattern})), expected);
    };
    check("", "invalid: `pattern` is empty");
    check(
        "../*",
        "invalid: `pattern` is relative to `path` and cannot contain `..`; change `path` instead",
    );
    check(
        "[a",
        "invalid: `pattern` is not a valid glob: unclosed character class; missing ']'",
    );
}
