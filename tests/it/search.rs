//! `search_code` and `zeph-host index` in the whole product.

use std::fs;

use serde_json::{Value, json};

use crate::product::Product;

pub(crate) mod lsp;

const AUTH: &str = "/// Checks the bearer token of a request.\npub fn auth_layer(token: &str) -> bool {\n    verify(token)\n}\n\nfn verify(t: &str) -> bool { !t.is_empty() }\n";
const MAIN: &str = "mod auth;\nfn main() {\n    if auth::auth_layer(\"x\") {\n        println!(\"in\");\n    }\n}\n";

fn project() -> Product {
    let product = Product::new();
    product.file("src/auth.rs", AUTH);
    product.file("src/main.rs", MAIN);
    product
}

/// `layer file:line` of each result.
fn places(answer: &Value) -> Vec<String> {
    let results = answer["structured"]["results"].as_array();
    let results = results.unwrap_or_else(|| panic!("{answer}"));
    let place = |one: &Value| {
        let text = |key: &str| one[key].as_str().unwrap().to_owned();
        format!("{} {}:{}", text("layer"), text("file"), one["start_line"])
    };
    results.iter().map(place).collect()
}

#[test]
fn code_is_found_by_name_words_and_form() {
    let product = project();
    let search = |params| product.call("search_code", params);
    let any = search(json!({"query": "auth_layer"}));
    assert_eq!(places(&any)[0], "definition src/auth.rs:2", "{any}");
    let text = any["text"].as_str().unwrap();
    assert!(
        text.starts_with("[1] src/auth.rs:2-4\n    pub fn auth_layer("),
        "{text}"
    );
    assert!(
        text.contains("    source: definition\n    score: 1.00"),
        "{text}"
    );
    let uses = search(json!({"query": "auth_layer", "kind": "reference"}));
    assert_eq!(places(&uses), ["reference src/main.rs:3"]);
    let words = search(json!({"query": "bearer request", "kind": "text"}));
    assert_eq!(places(&words)[0], "text src/auth.rs:1");
    let form = search(json!({"query": "if $C { $$$B }", "kind": "pattern"}));
    assert_eq!(places(&form), ["pattern src/main.rs:3"]);
    let none = search(json!({"query": "nothing_of_that_name", "kind": "definition"}));
    assert_eq!(none["text"], "No code matches found.");
}

#[test]
fn a_symbol_is_found_in_files_of_a_pattern() {
    let product = project();
    product.file(
        "tools/auth.py",
        "def auth_layer(token):\n    return token\n",
    );
    let found = |params: Value| places(&product.call("search_code", params));
    let both = ["definition src/auth.rs:2", "definition tools/auth.py:1"];
    let mut symbols = found(json!({"symbol": "auth_layer"}));
    symbols.sort();
    assert_eq!(symbols, both);
    let python = found(json!({"query": "auth_layer", "file_pattern": "*.py"}));
    assert_eq!(python[0], "definition tools/auth.py:1");
    assert!(
        python.iter().all(|place| place.contains(".py:")),
        "{python:?}"
    );
    let used =
        json!({"symbol": "auth_layer", "file_pattern": "src/**/*.rs", "include_references": true});
    let used = found(used);
    assert_eq!(
        used,
        ["definition src/auth.rs:2", "reference src/main.rs:3"]
    );
    let missing = product.call("search_code", json!({"file_pattern": "*.py"}));
    assert_eq!(
        missing["error"]["category"], "invalid_parameters",
        "{missing}"
    );
}

#[test]
fn a_file_pattern_that_fits_no_file_is_told() {
    let product = project();
    let ask = |pattern: &str| {
        let params = json!({"query": "main", "file_pattern": pattern});
        product.call("search_code", params)
    };
    let none = ask("nothing/**");
    let text = none["text"].as_str().unwrap();
    assert!(text.contains("No file fits `file_pattern`."), "{text}");
    let outside = ask("../src/**");
    let category = &outside["error"]["category"];
    assert_eq!(category, "invalid_parameters", "{outside}");
}

#[test]
fn what_may_not_be_read_is_neither_found_nor_kept() {
    let product = project();
    product.file("secret/keys.rs", "fn hidden_function() {}\n");
    product.file("made/out.rs", "fn ignored_function() {}\n");
    product.file(".gitignore", "made/\n");
    fs::create_dir(product.work.join(".git")).unwrap();
    let query = json!({"query": "hidden_function ignored_function", "kind": "any"});
    let seen = product.call("search_code", json!({"query": "hidden_function"}));
    assert_eq!(places(&seen), ["definition secret/keys.rs:1"]);
    let line = json!({"id": 1, "tool": "search_code", "params": query}).to_string() + "\n";
    let denied = product.answers(&["--set", "tools.file.deny_read=['**/secret/**']"], line);
    assert_eq!(places(&denied[0]), Vec::<String>::new());
    assert_eq!(denied[0]["structured"]["index"]["files"], 2);
    let outside = product.call("search_code", json!({"query": "x", "path": "/etc"}));
    assert_eq!(outside["error"]["category"], "policy_blocked", "{outside}");
}

#[test]
fn the_answer_is_bounded_by_whole_blocks_in_one_order() {
    let product = Product::new();
    for number in 0..30 {
        let text = format!("fn walk_{number}() {{\n    // {}\n}}\n", "walk ".repeat(20));
        product.file(&format!("src/f{number}.rs"), text);
    }
    let search = |tokens: u32| {
        product.call(
            "search_code",
            json!({"query": "walk", "max_results": 30, "max_tokens": tokens}),
        )
    };
    let (few, many) = (search(300), search(20_000));
    let (few, many) = (places(&few), places(&many));
    assert!(!few.is_empty() && few.len() < many.len(), "{few:?}");
    assert_eq!(few[..], many[..few.len()]);
}

#[test]
fn the_index_is_made_from_the_command_line() {
    let product = project();
    let index = |args: &[&str]| {
        let ran = product.run(&[&["index"], args].concat());
        assert_eq!(ran.code, Some(0), "{}", ran.stderr);
        serde_json::from_str::<Value>(&ran.stdout).unwrap_or(Value::String(ran.stdout))
    };
    assert_eq!(index(&["--status", "--json"])["pending"], 2);
    assert_eq!(index(&["--json"])["updated"], 2);
    assert_eq!(index(&[]), "2 files indexed\n");
    let missing = product.run(&["index", "no-such-directory"]);
    assert_ne!(missing.code, Some(0));
    assert!(
        missing.stderr.contains("does not exist"),
        "{}",
        missing.stderr
    );
}
