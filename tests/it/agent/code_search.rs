//! `search_code` by meaning: a scripted embedder, the real index, store and grants.

use serde_json::{Value, json};

use super::product;
use super::script::Script;
use crate::product::Product;

const EMBEDDING: &str =
    "[agent.embedding]\nprovider = \"scripted\"\nmodel = \"vectors-1\"\ntimeout_ms = 500\n";

const AUTH: &str = "/// Checks the credentials of whoever logs in to the service.\npub fn verify_bearer(token: &str) -> bool {\n    let known = stored_token();\n    token == known\n}\n";
const DRAW: &str = "/// Paints a rectangle on the canvas of the window.\npub fn paint_rectangle(canvas: &mut Canvas) {\n    canvas.fill(Color::Red);\n}\n";
const SECRET: &str = "/// The private authentication of the vault, credentials included.\npub fn open_vault(key: &str) -> bool {\n    key == \"swordfish\"\n}\n";

/// A scripted embedder to which `authentication` and `credentials` mean the same, with these faults.
fn script(faults: Value) -> Script {
    let meanings = json!([
        ["authentication", "credentials"],
        ["verify", "check", "checks"]
    ]);
    let vectors = json!({ "dimensions": 512, "meanings": meanings, "faults": faults });
    Script::with_vectors([], vectors)
}

fn project(script: &Script) -> Product {
    let product = product(script);
    let file = product.home.join(".config/zeph-host/config.toml");
    let config = std::fs::read_to_string(&file).unwrap();
    std::fs::write(&file, format!("{config}\n{EMBEDDING}")).unwrap();
    product.file("src/auth.rs", AUTH);
    product.file("src/draw.rs", DRAW);
    product
}

fn grant(product: &Product, embedder: &str) {
    let ran = product.run(&["plugin", "grant", "search", "--embedder", embedder]);
    assert_eq!(ran.code, Some(0), "{}", ran.stderr);
}

fn search(product: &Product, query: &str) -> Value {
    product.call("search_code", json!({ "query": query }))
}

/// The files that a layer found, best first.
fn found(answer: &Value, layer: &str) -> Vec<String> {
    let results = answer["structured"]["results"].as_array();
    let results = results.unwrap_or_else(|| panic!("{answer:#}")).iter();
    results
        .filter(|one| one["layer"] == layer)
        .map(|one| one["file"].as_str().unwrap().to_owned())
        .collect()
}

#[test]
fn code_goes_to_the_embedder_that_a_grant_names_and_to_no_other() {
    let script = script(json!([]));
    let product = project(&script);
    let plain = search(&product, "authentication");
    assert_eq!(plain["text"], "No code matches found.");
    assert_eq!(plain["structured"]["notes"], json!([]), "no noise");
    let status = product.run(&["index", "--status"]);
    let command = "zeph-host plugin grant search --embedder scripted";
    assert!(status.stderr.contains(command), "{}", status.stderr);
    grant(&product, "another");
    let anything = product.run(&["plugin", "grant", "search", "--embedder", "*"]);
    assert_ne!(anything.code, Some(0), "a grant names one");
    assert_eq!(
        found(&search(&product, "authentication"), "semantic"),
        Vec::<String>::new()
    );
    assert_eq!(script.embedded(), Vec::<Vec<String>>::new());

    grant(&product, "scripted");
    let by_meaning = search(&product, "authentication");
    assert_eq!(
        found(&by_meaning, "semantic")[0],
        "src/auth.rs",
        "{by_meaning:#}"
    );
    let state = &by_meaning["structured"]["index"]["semantic"];
    assert_eq!(state["embedder"], "scripted/vectors-1");
    assert_eq!(
        (&state["embedded"], &state["pending"]),
        (&json!(4), &json!(0))
    );
    let sent = script.embedded();
    assert_eq!(sent.len(), 2, "{sent:?}");
    assert_eq!(sent[1], ["authentication"]);

    let records = product.run(&["audit", "--json"]).stdout;
    assert!(
        records.contains("granted to the plugin: embedder scripted"),
        "{records}"
    );
    let revoked = product.run(&["plugin", "revoke", "search", "--embedder", "scripted"]);
    assert_eq!(revoked.code, Some(0), "{}", revoked.stderr);
    assert_eq!(
        found(&search(&product, "authentication"), "semantic"),
        Vec::<String>::new()
    );
    assert_eq!(script.embedded().len(), 2);
}

#[test]
fn only_what_changed_is_sent_again() {
    let script = script(json!([]));
    let product = project(&script);
    grant(&product, "scripted");
    let index = |args: &[&str]| product.run(&[&["index", "--json"], args].concat()).json();
    assert_eq!(index(&["--status"])["semantic"]["embedded"], 0);
    assert_eq!(index(&[])["semantic"]["embedded"], 4);
    assert_eq!(script.embedded().len(), 1);
    assert_eq!(index(&[])["semantic"]["pending"], 0);
    assert_eq!(script.embedded().len(), 1);
    product.file("src/draw.rs", DRAW.replace("Red", "Green"));
    assert_eq!(index(&[])["semantic"]["embedded"], 4);
    let sent = script.embedded();
    assert_eq!(sent.len(), 2);
    assert_eq!(sent[1].len(), 1, "{:?}", sent[1]);
    assert!(sent[1][0].contains("Green"), "{:?}", sent[1]);
    // A file that moves is the same code.
    let work = &product.work;
    std::fs::rename(work.join("src/auth.rs"), work.join("src/login.rs")).unwrap();
    assert_eq!(index(&[])["semantic"]["pending"], 0);
    assert_eq!(script.embedded().len(), 2);
    let line = product.run(&["index"]).stdout;
    assert_eq!(
        line,
        "2 files indexed; 4 parts embedded by scripted/vectors-1\n"
    );
}

#[test]
fn what_may_not_be_read_is_neither_sent_nor_found_by_its_vector() {
    let script = script(json!([]));
    let product = project(&script);
    product.file("secret/vault.rs", SECRET);
    grant(&product, "scripted");
    let ask = |deny: &str| {
        let line = json!({"id": 1, "tool": "search_code", "params": {"query": "authentication"}});
        let set = format!("tools.file.deny_read=[{deny}]");
        let args = ["--allow", "*", "--set", &set];
        product.answers(&args, line.to_string() + "\n").remove(0)
    };
    let denied = ask("'**/secret/**'");
    assert!(
        !found(&denied, "semantic").contains(&"secret/vault.rs".to_owned()),
        "{denied:#}"
    );
    let sent = script.embedded().concat().join("\n");
    assert!(
        sent.contains("verify_bearer") && !sent.contains("swordfish"),
        "{sent}"
    );
    let allowed = ask("");
    assert!(
        found(&allowed, "semantic").contains(&"secret/vault.rs".to_owned()),
        "{allowed:#}"
    );
    // Its vector is there now; the file is not.
    let denied = ask("'**/secret/**'");
    assert!(!denied.to_string().contains("vault"), "{denied:#}");
}

#[test]
fn an_embedder_that_fails_or_hangs_costs_its_layer_and_is_told_once() {
    let script = script(json!([{ "status": 500 }, "garbage", "none", "hang"]));
    let product = project(&script);
    grant(&product, "scripted");
    for why in ["failed", "failed"] {
        let answer = search(&product, "paint_rectangle");
        assert_eq!(found(&answer, "definition"), ["src/draw.rs"], "{answer:#}");
        let notes = answer["structured"]["notes"].as_array().unwrap();
        assert_eq!(notes.len(), 1, "{answer:#}");
        assert!(notes[0].as_str().unwrap().contains(why), "{answer:#}");
    }
    assert_eq!(product.run(&["index"]).code, Some(0));
    let answer = search(&product, "paint_rectangle");
    assert_eq!(found(&answer, "definition"), ["src/draw.rs"], "{answer:#}");
    assert!(
        answer["structured"]["notes"][0]
            .as_str()
            .unwrap()
            .contains("within 500 ms")
    );
}
