//! The door for editors: a client of the Agent Client Protocol, a scripted model, real tools and a real jail.

mod client;
mod conversations;
mod doors;
mod files;
mod model;
mod permissions;
mod programs;
mod protocol;
mod schedules;
mod servers;
mod terminal;

use std::fs;

use serde_json::{Value, json};

use self::model::Model;
use crate::product::Product;

/// A workspace whose configuration names a scripted model.
fn product(model: &Model) -> Product {
    with_config(model, "")
}

/// The same, with more configuration.
fn with_config(model: &Model, more: &str) -> Product {
    let product = Product::new();
    let folder = product.home.join(".config/zeph-host");
    fs::create_dir_all(&folder).unwrap();
    let provider = |name: &str| {
        format!(
            "[[llm.providers]]\nname = \"{name}\"\ntype = \"openai\"\nmodel = \"script-1\"\n\
             base_url = \"http://127.0.0.1:{}/v1\"\nretries = 0\nprice_input = 1\nprice_output = 2\n",
            model.port
        )
    };
    let config = format!(
        "[agent]\nprovider = \"scripted\"\nmax_tool_iterations = 3\n{more}\n{}{}",
        provider("scripted"),
        provider("other")
    );
    fs::write(folder.join("config.toml"), config).unwrap();
    // The first start compiles the components, which takes as long as it takes.
    product.run(&["tools"]);
    product
}

#[test]
fn every_test_of_the_table_of_methods_is_there() {
    let table = include_str!("../../host/zeph-acp/README.md");
    let sources = [
        include_str!("acp/conversations.rs"),
        include_str!("acp/files.rs"),
        include_str!("acp/permissions.rs"),
        include_str!("acp/programs.rs"),
        include_str!("acp/protocol.rs"),
        include_str!("acp/servers.rs"),
        include_str!("acp/terminal.rs"),
    ]
    .concat();
    let rows = table.lines().filter(|line| line.starts_with("| `"));
    let tests = rows.filter_map(|row| row.split('|').nth(3));
    let names = tests.flat_map(|cell| cell.split('`').skip(1).step_by(2));
    let names: Vec<&str> = names.collect();
    assert!(names.len() > 25, "{names:?}");
    for name in names {
        assert!(sources.contains(&format!("fn {name}()")), "{name}");
    }
    // And every method that the program knows stands in the table.
    let code = [
        include_str!("../../host/zeph-host/src/serve/acp/door.rs"),
        include_str!("../../host/zeph-acp/src/client.rs"),
    ]
    .concat();
    let methods = code.split('"').skip(1).step_by(2);
    let is_method = |word: &&str| {
        let areas = ["session/", "terminal/", "fs/", "elicitation/", "$/"];
        areas.iter().any(|area| word.starts_with(area))
            || ["initialize", "authenticate"].contains(word)
    };
    let methods: Vec<&str> = methods.filter(is_method).collect();
    assert!(methods.len() > 18, "{methods:?}");
    for method in methods {
        assert!(table.contains(&format!("`{method}`")), "{method}");
    }
}

/// What a client without files and terminals can do.
fn plain() -> Value {
    json!({})
}

/// A client with terminals.
fn with_terminal() -> Value {
    json!({"terminal": true})
}
