//! `plugin approve`, and that a running host follows.

use serde_json::{Value, json};

use super::{WANTS, WANTS_MORE, wanting};
use crate::product::Product;
use crate::running::Running;

#[test]
fn a_changed_plugin_is_off_until_it_is_approved() {
    let product = Product::new();
    product.file("a.txt", "content of a");
    let mut running = Running::start(&product, &[]);
    let path = json!({"op": "read", "path": product.work.join("a.txt")});

    product.drop_in("x", &wanting(WANTS));
    running.note(&["plugin `x`", "tools: echo"]);
    product.plugin_json(&["grant", "x", "--dir", ".", "--host", "api.example.com"]);
    assert_eq!(running.call("files", &path)["text"], "content of a");

    product.drop_in("x", &wanting(WANTS_MORE));
    running.note(&[
        "plugin `x` is not what was accepted",
        "zeph-host plugin approve x",
    ]);
    assert_eq!(
        running.call("files", &path)["error"]["category"],
        "policy_blocked"
    );
    product.refuses(
        &["grant", "x", "--all", "--yes"],
        1,
        &["can be granted nothing", "plugin approve x"],
    );

    // Without a person it only shows what is different.
    let shown = product.plugin(&["approve", "x"]);
    assert_eq!(shown.code, Some(5), "{shown:?}");
    for words in [
        "+ ",
        "LANG",
        "write",
        "carried over",
        "plugin approve x --yes",
    ] {
        let said = format!("{}{}", shown.stdout, shown.stderr);
        assert!(said.contains(words), "no {words:?} in {said}");
    }
    let ran = product.plugin(&["approve", "x", "--json"]);
    assert_eq!(ran.code, Some(5), "{ran:?}");
    let changes = ran.json();
    assert_eq!(changes["approved"], false, "{changes}");
    assert!(changes["changes"]["wants"].is_array(), "{changes}");
    assert_eq!(
        running.call("files", &path)["error"]["category"],
        "policy_blocked"
    );

    let approved = product.plugin_json(&["approve", "x", "--yes"]);
    assert_eq!(approved["approved"], true, "{approved}");
    let fates: Vec<_> = approved["grants"]
        .as_array()
        .unwrap()
        .iter()
        .map(|grant| &grant["fate"])
        .collect();
    assert_eq!(fates, ["carried over", "carried over"], "{approved}");
    running.note(&["plugin `x`", "tools: echo"]);
    assert_eq!(running.call("files", &path)["text"], "content of a");
    let write = json!({"op": "write", "path": product.work.join("a.txt")});
    assert_eq!(
        running.call("files", &write)["error"]["category"],
        "policy_blocked",
        "that is new"
    );

    product.plugin_json(&["disable", "x"]);
    running.note(&["plugin `x` is switched off"]);
    assert_eq!(
        running.call("files", &path)["error"]["category"],
        "policy_blocked"
    );
    product.plugin_json(&["enable", "x"]);
    running.note(&["plugin `x`", "tools: echo"]);
    product.plugin_json(&["remove", "x", "--yes"]);
    running.note(&["plugin `x` is gone"]);
    assert_eq!(
        running.call("files", &path)["error"]["category"],
        "tool_not_found"
    );
}

#[test]
fn grants_that_are_not_wanted_any_more_are_told() {
    let product = Product::new();
    product.drop_in("x", &wanting(WANTS_MORE));
    product.plugin_json(&["grant", "x", "--variable", "LANG"]);
    product.plugin_json(&["grant", "x", "--dir", ".:write"]);
    product.drop_in("x", &wanting(WANTS));
    let ran = product.plugin(&["approve", "x", "--json"]);
    let fates: Vec<Value> = ran.json()["grants"]
        .as_array()
        .unwrap()
        .iter()
        .map(|grant| grant["fate"].clone())
        .collect();
    assert_eq!(
        fates,
        ["it is not wanted any more", "it is not wanted any more"],
        "{ran:?}"
    );
}

#[test]
fn only_what_changed_can_be_approved() {
    let product = Product::new();
    product.drop_in("x", &wanting(WANTS));
    let same = product.plugin_json(&["approve", "x"]);
    assert_eq!(same["changed"], false, "{same}");
    let ran = product.plugin(&["approve", "x"]);
    assert!(ran.stdout.contains("nothing to approve"), "{ran:?}");
    product.drop_in("x", b"junk");
    product.refuses(&["approve", "x", "--yes"], 1, &["cannot be approved"]);
    // A plugin that is off stays off.
    product.plugin_json(&["disable", "x"]);
    product.drop_in("x", &wanting(WANTS_MORE));
    let approved = product.plugin(&["approve", "x", "--yes"]);
    assert_eq!(approved.code, Some(0), "{approved:?}");
    assert!(
        approved.stdout.contains("zeph-host plugin enable x"),
        "{approved:?}"
    );
    assert_eq!(product.plugin_json(&["list"])[0]["status"], "disabled");
}
