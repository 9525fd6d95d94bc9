//! A language server behind an MCP server, which is real and in its jail: asked, and not believed.

use std::fs;

use serde_json::{Value, json};

use super::{places, project};
use crate::product::Product;

const SERVER: &str = include_str!("lsp.py");

const REQUESTS: &str = r#"
[[tools.search.lsp.requests]]
kind = "symbols"
tool = "find.symbols"
arguments = ["query={name}"]
[[tools.search.lsp.requests]]
kind = "references"
tool = "references"
arguments = ["file_path={path}", "line={line}", "character={column}"]
"#;

/// A workspace whose configuration names a server that behaves so.
fn with_server(mode: &str, trust: &str) -> Product {
    let product = project();
    // Named nowhere in code: only a language server knows.
    product.file("src/notes.rs", "// uses it by a macro\n");
    let folder = product.home.join(".config/zeph-host");
    fs::create_dir_all(&folder).unwrap();
    fs::write(
        folder.join("config.toml"),
        configured(&product, mode, trust),
    )
    .unwrap();
    product
}

/// The configuration of a server that behaves so, which is put beside the workspace.
pub(crate) fn configured(product: &Product, mode: &str, trust: &str) -> String {
    let servers = product.home.join("servers");
    fs::create_dir_all(&servers).unwrap();
    fs::write(servers.join("lsp.py"), SERVER).unwrap();
    format!(
        "[mcp.servers.code]\ncommand = \"python3\"\nargs = [{script:?}]\nallow_read = [{servers:?}]\ntrust_level = \"{trust}\"\n\
         env = {{ MODE = {mode:?}, WORK = {work:?} }}\n[tools.search.lsp]\nserver = \"code\"\ntimeout = 5\n{REQUESTS}",
        script = servers.join("lsp.py"),
        work = product.work,
    )
}

/// Asks without any rule that allows more than the server itself may.
fn search(product: &Product, more: &[&str]) -> Value {
    let params = json!({"query": "auth_layer"});
    let line = json!({"id": 1, "tool": "search_code", "params": params}).to_string();
    product.answers(more, line + "\n").remove(0)
}

fn notes(answer: &Value) -> Vec<String> {
    serde_json::from_value(answer["structured"]["notes"].clone()).unwrap()
}

fn of_lsp(answer: &Value) -> Vec<String> {
    let mut places = places(answer);
    places.retain(|place| place.starts_with("lsp "));
    places
}

#[test]
fn a_language_server_is_asked_about_the_place_of_the_name() {
    let product = with_server("honest", "trusted");
    let answer = search(&product, &[]);
    assert_eq!(notes(&answer), Vec::<String>::new());
    let expect = [
        "lsp src/auth.rs:2",
        "lsp src/main.rs:3",
        "lsp src/notes.rs:1",
    ];
    let mut found = of_lsp(&answer);
    found.sort();
    assert_eq!(found, expect, "{answer:#}");
    assert_eq!(places(&answer)[0], "lsp src/auth.rs:2", "two layers say so");
    // Each question is a call of its own, and names the one that asked.
    let records = product.run(&["audit", "--json"]).stdout;
    let records: Vec<Value> = records
        .lines()
        .map(|line| serde_json::from_str(line).unwrap())
        .collect();
    let of = |tool: &str| {
        let mut records = records.iter();
        records
            .find(|record| record["tool"] == tool)
            .unwrap_or_else(|| panic!("{tool}: {records:#?}"))
    };
    let asked = of("search_code");
    for tool in ["mcp_code_find_symbols", "mcp_code_references"] {
        assert_eq!(of(tool)["correlation_id"], asked["call_id"], "{tool}");
    }
}

#[test]
fn places_that_a_search_may_not_show_are_not_shown() {
    let product = with_server("outside", "trusted");
    product.file("secret/keys.rs", "fn hidden_function() {}\n");
    fs::write(product.work.join("../outside.rs"), "fn outside() {}\n").unwrap();
    std::os::unix::fs::symlink("/etc/passwd", product.work.join("link.rs")).unwrap();
    let answer = search(
        &product,
        &["--set", "tools.file.deny_read=['**/secret/**']"],
    );
    assert_eq!(of_lsp(&answer), Vec::<String>::new(), "{answer:#}");
    assert!(places(&answer).contains(&"definition src/auth.rs:2".to_owned()));
}

#[test]
fn a_server_that_hangs_or_babbles_never_breaks_a_search() {
    let silent = "named no place for `auth_layer`, which stands in src/auth.rs:2";
    for (mode, expect) in [("hang", "gave no answer within"), ("garbage", silent)] {
        let product = with_server(mode, "trusted");
        let answer = search(&product, &[]);
        assert_eq!(places(&answer)[0], "definition src/auth.rs:2", "{answer:#}");
        assert_eq!(of_lsp(&answer), Vec::<String>::new());
        let notes = notes(&answer);
        assert_eq!(notes.len(), 1, "{notes:?}");
        assert!(notes[0].contains(expect), "{notes:?}");
    }
}

/// One that is left out would make another call than the one that was configured.
#[test]
fn an_argument_that_the_tool_does_not_declare_is_no_call() {
    let product = with_server("honest", "trusted");
    let config = product.home.join(".config/zeph-host/config.toml");
    let text = fs::read_to_string(&config).unwrap();
    fs::write(&config, text.replace("\"line={line}\"", "\"row={line}\"")).unwrap();
    let answer = search(&product, &[]);
    assert_eq!(
        of_lsp(&answer),
        ["lsp src/auth.rs:2"],
        "the first question was answered"
    );
    let notes = notes(&answer);
    assert_eq!(notes.len(), 1, "{notes:?}");
    for part in [
        "unknown argument `row`",
        "zeph-host tools show mcp_code_references",
    ] {
        assert!(notes[0].contains(part), "{notes:?}");
    }
}

/// The most used bridges answer errors and places as text.
#[test]
fn places_in_sentences_are_read() {
    let product = with_server("prose", "trusted");
    let answer = search(&product, &[]);
    assert_eq!(notes(&answer), Vec::<String>::new());
    let mut found = of_lsp(&answer);
    found.sort();
    let expect = ["lsp src/auth.rs:2", "lsp src/main.rs:3"];
    assert_eq!(found, expect, "{answer:#}");
}

#[test]
fn the_rules_for_the_tool_decide_and_nobody_is_asked() {
    let product = with_server("honest", "untrusted");
    let refused = search(&product, &[]);
    assert_eq!(of_lsp(&refused), Vec::<String>::new());
    assert_eq!(notes(&refused).len(), 1, "{refused:#}");
    let allow = "mcp_code_find_symbols";
    assert!(notes(&refused)[0].contains(allow), "{refused:#}");
    // What a person types is no agreement to what a plugin does.
    let typed = product.run(&[
        "call",
        "search_code",
        "query=auth_layer",
        "--output",
        "json",
    ]);
    assert_eq!(
        of_lsp(&typed.json()),
        Vec::<String>::new(),
        "{}",
        typed.stdout
    );
    let allowed = search(
        &product,
        &["--allow", allow, "--allow", "mcp_code_references"],
    );
    assert_eq!(of_lsp(&allowed).len(), 3, "{allowed:#}");
    let explained = || product.run(&["explain", "search_code", "query=x"]).stdout;
    let held = "`tool code/find.symbols`";
    assert!(explained().contains(held), "{}", explained());
    // The keys of the configuration are a default grant, which can be revoked.
    for args in [
        &["plugin", "revoke", "search", "--all"][..],
        &["plugin", "grant", "search", "--dir", ".:read"],
    ] {
        let ran = product.run(args);
        assert_eq!(ran.code, Some(0), "{}", ran.stderr);
    }
    assert!(!explained().contains(held), "{}", explained());
    let revoked = search(&product, &["--allow", "*"]);
    assert_eq!(of_lsp(&revoked), Vec::<String>::new(), "{revoked:#}");
    let command = "plugin grant search --tool code/find.symbols";
    assert!(
        revoked["notes"].to_string().contains(command),
        "{revoked:#}"
    );
}
