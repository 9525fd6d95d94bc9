//! `plugin remove`, and whose plugin is meant where a folder was typed.

use std::fs;
use std::os::unix::fs::symlink;

use super::{WANTS, WANTS_MORE, wanting};
use crate::postgres::Server;
use crate::product::Product;

/// A product whose plugin `x` was granted a host, and a typed folder with another of that name.
fn two_of_a_name() -> Product {
    let product = Product::new();
    product.drop_in("x", &wanting(WANTS));
    product.plugin_json(&["grant", "x", "--host", "api.example.com"]);
    product.file("repo/plugins/x.wasm", wanting(WANTS_MORE));
    product
}

const TYPED: [&str; 2] = ["--plugins", "repo/plugins"];

fn n_grants(product: &Product) -> usize {
    let info = product.plugin_json(&["info", "x"]);
    let wants = info["wants"].as_array().unwrap().iter();
    wants.filter(|want| want["is_granted"] == true).count()
}

#[test]
fn removing_the_plugin_of_a_typed_folder_leaves_the_grants_of_yours() {
    let product = two_of_a_name();
    let before = n_grants(&product);
    assert!(before > 0);
    let removed = product.plugin_json(&[&["remove", "x", "--yes"][..], &TYPED].concat());
    assert_eq!(removed["grants"], 0, "{removed}");
    assert!(!product.work.join("repo/plugins/x.wasm").exists());
    assert_eq!(n_grants(&product), before);
    let removed = product.plugin_json(&["remove", "x", "--yes"]);
    assert_eq!(removed["grants"], 1, "{removed}");
}

#[test]
fn every_command_means_the_plugin_of_the_folder_that_was_typed() {
    let product = two_of_a_name();
    let info = product.plugin_json(&[&["info", "x"][..], &TYPED].concat());
    assert_eq!(info["status"], "quarantined", "{info}");
    let typed = |words: &[&str], code: i32, told: &[&str]| {
        product.refuses(&[words, &TYPED].concat(), code, told);
    };
    typed(
        &["grant", "x", "--variable", "LANG"],
        1,
        &["another plugin is named `x`"],
    );
    product.file("repo/plugins/x.wasm", b"junk");
    fs::remove_file(product.work.join("repo/zeph.lock")).unwrap();
    let told = ["in `", "repo/plugins` is not pinned"];
    typed(&["disable", "x"], 1, &told);
    assert_eq!(product.plugin_json(&["info", "x"])["status"], "active");
}

#[test]
fn what_is_left_of_a_plugin_is_its_grants_and_can_be_removed() {
    let product = Product::new();
    product.drop_in("x", &wanting(WANTS));
    product.plugin_json(&["grant", "x", "--host", "api.example.com"]);
    fs::remove_file(product.plugins().join("x.wasm")).unwrap();
    fs::remove_file(product.lock()).unwrap();
    product.refuses(&["remove", "x"], 5, &["`--yes`"]);
    let removed = product.plugin_json(&["remove", "x", "--yes"]);
    assert_eq!(removed["grants"], 1, "{removed}");
    assert_eq!(removed["was_pinned"], false, "{removed}");
    product.refuses(&["remove", "x", "--yes"], 2, &["no plugin is named `x`"]);
}

/// Grants count for a component: a name is not enough to know whose they are.
#[test]
fn removing_a_plugin_leaves_the_grants_of_another_of_that_name() {
    let product = Product::new();
    product.file("repo/plugins/x.wasm", wanting(WANTS));
    let grant = ["grant", "x", "--host", "api.example.com"];
    product.plugin_json(&[&grant[..], &TYPED].concat());
    let n_granted = || {
        let info = product.plugin_json(&[&["info", "x"][..], &TYPED].concat());
        let wants = info["wants"].as_array().unwrap().iter();
        wants.filter(|want| want["is_granted"] == true).count()
    };
    let before = n_granted();
    assert!(before > 0);
    product.file("x.wasm", wanting(WANTS_MORE));
    product.plugin_json(&["add", "x.wasm"]);
    let removed = product.plugin(&["remove", "x", "--yes"]);
    assert_eq!(removed.code, Some(0), "{removed:?}");
    let told = "grants of other components named `x` remain";
    assert!(removed.stderr.contains(told), "{removed:?}");
    assert_eq!(n_granted(), before);

    // No plugin that is known here has the name.
    let told = ["no plugin is named `x`", "api.example.com", "sha256:"];
    product.refuses(&["remove", "x"], 5, &told);
    assert_eq!(n_granted(), before);
    let revoked = product.plugin(&["remove", "x", "--yes"]);
    assert!(!revoked.stdout.contains("is removed"), "{revoked:?}");
    for word in told {
        assert!(revoked.stdout.contains(word), "no {word:?} in {revoked:?}");
    }
    assert_eq!(n_granted(), before - 1);
}

/// A command knows the folders where something was granted, also when they are not typed with it.
#[test]
fn what_was_granted_in_a_typed_folder_stays_when_it_is_not_typed() {
    let product = Product::new();
    product.file("repo/plugins/x.wasm", wanting(WANTS));
    let grant = ["grant", "x", "--host", "api.example.com"];
    product.plugin_json(&[&grant[..], &TYPED].concat());
    let n_granted = || {
        let info = product.plugin_json(&[&["info", "x"][..], &TYPED].concat());
        let wants = info["wants"].as_array().unwrap().iter();
        wants.filter(|want| want["is_granted"] == true).count()
    };
    let before = n_granted();
    assert!(before > 0);
    product.file("x.wasm", wanting(WANTS));
    product.plugin_json(&["add", "x.wasm"]);
    let removed = product.plugin_json(&["remove", "x", "--yes"]);
    assert_eq!(removed["grants"], 0, "{removed}");
    assert_eq!(n_granted(), before);
}

#[test]
fn a_removal_that_is_refused_takes_no_grant() {
    let product = Product::new();
    product.drop_in("x", &wanting(WANTS));
    product.plugin_json(&["grant", "x", "--host", "api.example.com"]);
    let before = n_grants(&product);
    // What keeps other commands out cannot be had.
    let guard = product.lock().with_file_name(".zeph.sync.guard");
    let _none = fs::remove_file(&guard);
    symlink("nowhere", &guard).unwrap();
    product.refuses(&["remove", "x", "--yes"], 1, &[".zeph.sync.guard"]);
    assert_eq!(n_grants(&product), before);
    fs::remove_file(&guard).unwrap();
    let removed = product.plugin_json(&["remove", "x", "--yes"]);
    assert_eq!(removed["grants"], 1, "{removed}");
}

/// Two hosts of one store: each knows its own folder alone.
#[test]
fn what_other_hosts_of_a_server_may_use_stays_granted() {
    let Some(server) = Server::of_run() else {
        return;
    };
    let schema = server.schema();
    let [one, other] = [(), ()].map(|()| {
        let product = Product::new();
        product.configure(&format!("[store]\nurl = \"{}\"\n", schema.url()));
        product.file("x.wasm", wanting(WANTS));
        product.plugin_json(&["add", "x.wasm"]);
        product
    });
    let is_granted = |product: &Product| {
        let info = product.plugin_json(&["info", "x"]);
        info["wants"][1]["is_granted"] == true
    };
    other.plugin_json(&["grant", "x", "--host", "api.example.com"]);
    assert!(is_granted(&one) && is_granted(&other));

    // Another version on one of them: what was granted counts for both.
    one.file("x.wasm", wanting(WANTS_MORE));
    one.plugin_json(&["update", "x", "--yes"]);
    assert!(is_granted(&one) && is_granted(&other));

    one.file("x.wasm", wanting(WANTS));
    one.plugin_json(&["update", "x", "--yes"]);
    let removed = one.plugin(&["remove", "x", "--yes"]);
    assert_eq!(removed.code, Some(0), "{removed:?}");
    let told = [
        "what plugin `x` was granted stays",
        "api.example.com",
        "plugin revoke x --id ",
    ];
    for word in told {
        assert!(removed.stderr.contains(word), "no {word:?} in {removed:?}");
    }
    let told = ["no plugin is named `x`", "plugin revoke x --all"];
    one.refuses(&["remove", "x", "--yes"], 2, &told);
    assert!(is_granted(&other));
    one.plugin_json(&["revoke", "x", "--all"]);
    assert!(!is_granted(&other));
}
