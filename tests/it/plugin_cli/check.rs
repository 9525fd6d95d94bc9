//! `plugin check`.

use std::fs;
use std::path::Path;

use serde_json::json;

use super::{WANTS, wanting, with_section};
use crate::guest::HOSTILE;
use crate::product::Product;

#[test]
fn a_component_is_described_before_it_is_added() {
    let product = Product::new();
    let bytes = with_section(&wanting(WANTS), "version", b"1.2.3");
    product.file("x.wasm", &bytes);
    let checked = product.plugin_json(&["check", "x.wasm"]);
    assert_eq!(checked["is_fine"], true, "{checked}");
    assert_eq!(checked["problems"], json!([]), "{checked}");
    assert_eq!(checked["bytes"], bytes.len(), "{checked}");
    assert_eq!(
        checked["kind"],
        json!({"world": "tool_plugin", "version": "0.1.0"}),
        "{checked}"
    );
    assert_eq!(checked["metadata"]["version"], "1.2.3", "{checked}");
    assert_eq!(
        checked["wants"][0]["reason"], "It reads what it is told to.",
        "{checked}"
    );
    assert_eq!(checked["was_run"], "list-tools", "{checked}");
    assert_eq!(checked["tools"][0]["name"], "echo", "{checked}");
    let imports = checked["imports"].as_array().unwrap();
    assert!(
        imports.iter().all(|import| import["is_known"] == true),
        "{checked}"
    );
    assert!(
        imports
            .iter()
            .any(|import| import["name"] == "wasi:filesystem/types"),
        "{checked}"
    );

    let ran = product.plugin(&["check", "x.wasm"]);
    assert_eq!(ran.code, Some(0), "{ran:?}");
    for words in [
        "tool plugin (zeph:plugin 0.1.0)",
        "wasi:filesystem/types@",
        "host api.example.com",
        "it says: It asks for the weather.",
        "nothing else of it was run",
        "It can be used.",
    ] {
        assert!(ran.stdout.contains(words), "no {words:?} in {ran:?}");
    }
    let ran = product.plugin(&["check", "x.wasm", "--no-run"]);
    assert!(ran.stdout.contains("nothing of it was run"), "{ran:?}");
    assert!(!ran.stdout.contains("It can be used."), "{ran:?}");
    let read = product.plugin_json(&["check", "x.wasm", "--no-run"]);
    assert_eq!(read["was_run"], "nothing", "{read}");
    assert_eq!(read["tools"], json!(null), "{read}");
    assert_eq!(read["wants"], checked["wants"], "{read}");
}

#[test]
fn a_check_needs_no_configuration_and_leaves_the_compiled_form_only() {
    let product = Product::new();
    product
        .file("project/dist/x.wasm", HOSTILE)
        .file(".zeph/config.toml", "[[[ broken");
    let config = product.home.join(".config/zeph-host/config.toml");
    fs::create_dir_all(config.parent().unwrap()).unwrap();
    fs::write(&config, "broken = ").unwrap();
    let before = files(&product.home);
    // Without the cache that the tests share, a host would put one into the home.
    let mut command = product.command(&["plugin", "check", "project"]);
    let ran = command
        .env_remove("ZEPH_ENGINE_CACHE_DIR")
        .output()
        .unwrap();
    assert_eq!(ran.status.code(), Some(0), "{ran:?}");
    let cache = product.home.join(".cache").display().to_string();
    let mut after = files(&product.home);
    after.retain(|path| !path.starts_with(&cache));
    assert_eq!(after, before);
}

#[test]
fn what_was_checked_is_not_compiled_again() {
    let product = Product::new();
    // Bytes that no other test has compiled.
    product.file(
        "x.wasm",
        with_section(HOSTILE, "mine", b"checked then added"),
    );
    for (words, compiles) in [
        (["plugin", "check", "x.wasm"], true),
        (["plugin", "check", "x.wasm"], false),
        (["plugin", "add", "x.wasm"], false),
    ] {
        let mut command = product.command(&words);
        let ran = command
            .env_remove("ZEPH_ENGINE_CACHE_DIR")
            .output()
            .unwrap();
        assert_eq!(ran.status.code(), Some(0), "{ran:?}");
        let said = String::from_utf8_lossy(&ran.stderr);
        assert_eq!(
            said.contains("compiling plugin `x`"),
            compiles,
            "{words:?}: {said}"
        );
    }
}

fn files(folder: &Path) -> Vec<String> {
    let mut found = Vec::new();
    for entry in fs::read_dir(folder).unwrap() {
        let path = entry.unwrap().path();
        found.push(path.display().to_string());
        if path.is_dir() {
            found.extend(files(&path));
        }
    }
    found.sort();
    found
}

#[test]
fn what_has_to_be_fixed_is_said_plainly() {
    let product = Product::new();
    let bad = "[[directory]]\npath = \"..\"\nrights = [\"read\"]\nreason = \"r\"\n";
    product
        .file("module.wasm", b"\0asm\x01\0\0\0")
        .file("empty.wasm", "")
        .file("page.wasm", "<!doctype html><html></html>")
        .file("native.wasm", b"\x7fELF")
        .file("half.wasm", &HOSTILE[..HOSTILE.len() / 2])
        .file("nothing.wasm", b"\0asm\x0d\0\x01\0")
        .file("manifest.wasm", wanting(bad));
    for (file, words) in [
        ("module.wasm", "wasm32-wasip2"),
        ("empty.wasm", "empty"),
        ("page.wasm", "a web page"),
        ("native.wasm", "native code"),
        ("half.wasm", "incomplete"),
        ("nothing.wasm", "zeph:plugin/tools@0.1.0"),
        ("manifest.wasm", "plugin.toml"),
    ] {
        for run in [&[][..], &["--no-run"]] {
            let mut typed = vec!["check", file];
            typed.extend(run);
            product.refuses(&typed, 1, &["TO FIX", words, "nothing of it was run"]);
        }
        let ran = product.plugin(&["check", file, "--json"]);
        assert_eq!(ran.code, Some(1), "{ran:?}");
        let checked = ran.json();
        assert_eq!(checked["is_fine"], false, "{checked}");
        assert!(
            checked["problems"][0].as_str().unwrap().contains(words),
            "{checked}"
        );
    }
    product.refuses(&["check", "nowhere.wasm"], 2, &["cannot be read"]);
}

#[test]
fn a_component_of_plain_functions_is_not_run_at_all() {
    let product = Product::new();
    let component = r#"(component
        (core module $m (func (export "double") (param i32) (result i32)
            (i32.add (local.get 0) (local.get 0))))
        (core instance $i (instantiate $m))
        (func (export "double-it") (param "n" s32) (result s32)
            (canon lift (core func $i "double"))))"#;
    product.file("x.wasm", wat::parse_str(component).unwrap());
    let checked = product.plugin_json(&["check", "x.wasm"]);
    assert_eq!(checked["kind"], json!({"world": "plain"}), "{checked}");
    assert_eq!(checked["was_run"], "nothing", "{checked}");
    assert_eq!(checked["tools"][0]["name"], "double_it", "{checked}");
    assert_eq!(checked["tools"][0]["problems"], json!([]), "{checked}");
    let ran = product.plugin(&["check", "x.wasm"]);
    assert!(ran.stdout.contains("nothing of it was run"), "{ran:?}");
    assert_eq!(product.plugin_json(&["add", "x.wasm"])["status"], "active");
    let ran = product.run(&["call", "double_it", "n=21"]);
    assert!(ran.stdout.contains("42"), "{ran:?}");
}
