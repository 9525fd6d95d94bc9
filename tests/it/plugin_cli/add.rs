//! `plugin add`, `remove`, `disable` and `enable`.

use std::fs;

use super::{WANTS, WANTS_MORE, wanting, with_section};
use crate::guest::HOSTILE;
use crate::product::Product;

#[test]
fn a_component_is_added_and_removed_with_all_that_belongs_to_it() {
    let product = Product::new();
    product.file("My Plugin.wasm", wanting(WANTS));
    let added = product.plugin_json(&["add", "My Plugin.wasm"]);
    let file = product.plugins().join("my_plugin.wasm");
    assert_eq!(added["name"], "my_plugin", "{added}");
    assert_eq!(added["added"], "new", "{added}");
    assert_eq!(added["status"], "active", "{added}");
    assert_eq!(added["file"], file.to_str().unwrap(), "{added}");
    assert_eq!(added["tools"][0], "echo", "{added}");
    assert_eq!(added["wants"][0]["path"], ".", "{added}");
    let command = added["grant_command"].as_str().unwrap();
    let work = product.work.display();
    assert_eq!(
        command,
        format!(
            "zeph-host plugin grant my_plugin --dir {work}:read --host api.example.com --limit wall_clock_secs=60"
        )
    );
    assert_eq!(fs::read(&file).unwrap(), wanting(WANTS));
    let lock = product.home.join(".local/share/zeph-host/zeph.lock");
    assert!(fs::read_to_string(&lock).unwrap().contains("my_plugin"));
    let ran = product.run(&["call", "echo", "text=hello"]);
    assert_eq!(ran.stdout, "hello\n", "{ran:?}");

    let dir = format!("{work}:read");
    product.plugin_json(&["grant", "my_plugin", "--dir", &dir]);
    let again = product.plugin_json(&["add", "My Plugin.wasm"]);
    assert_eq!(again["added"], "already_there", "{again}");
    let command = again["grant_command"].as_str().unwrap();
    assert!(!command.contains("--dir"), "it has that: {command}");
    let removed = product.plugin_json(&["remove", "my_plugin", "--yes"]);
    assert_eq!(removed["file"], file.to_str().unwrap(), "{removed}");
    assert_eq!(removed["was_pinned"], true, "{removed}");
    assert_eq!(removed["grants"], 1, "{removed}");
    assert!(!file.exists());
    // All that is left are the names of its tools, which nobody else gets.
    let left = fs::read_to_string(&lock).unwrap();
    assert!(!left.contains("name = \"my_plugin\""), "{left}");
    product.refuses(
        &["remove", "my_plugin"],
        2,
        &["no plugin is named `my_plugin`"],
    );

    // What was granted to it is gone with it: the same file begins with nothing.
    product.plugin_json(&["add", "My Plugin.wasm"]);
    let info = product.plugin_json(&["info", "my_plugin"]);
    assert_eq!(info["wants"][0]["is_granted"], false, "{info}");
    assert_eq!(info["idle_grants"].as_array().unwrap().len(), 0, "{info}");
}

#[test]
fn what_cannot_be_used_is_not_copied() {
    let product = Product::new();
    product
        .file("module.wasm", b"\0asm\x01\0\0\0")
        .file("junk.wasm", "no component at all")
        .file("half.wasm", &HOSTILE[..HOSTILE.len() / 2])
        .file("file.wasm", HOSTILE)
        .file("empty/readme.txt", "")
        .file("two/dist/a.wasm", HOSTILE)
        .file("two/b.wasm", HOSTILE);
    for (typed, code, words) in [
        (&["add", "module.wasm"][..], 1, "cannot be used"),
        (&["add", "junk.wasm"], 1, "zeph-host plugin check"),
        (&["add", "half.wasm"], 1, "cannot be used"),
        (&["add", "nowhere.wasm"], 2, "cannot be read"),
        (&["add", "file.wasm"], 2, "a plugin of the host"),
        (&["add", "file.wasm", "--name", "No"], 2, "1 to 48 of"),
        (&["add", "file.wasm", "--name", "../../x"], 2, "1 to 48 of"),
        (&["add", "empty"], 2, "target/wasm32-wasip2/release"),
        (&["add", "two"], 2, "two/dist/a.wasm"),
    ] {
        product.refuses(typed, code, &[words]);
    }
    assert!(!product.plugins().exists(), "nothing was copied");
    let ran = product.plugin(&["add", "two/dist", "--name", "x"]);
    assert_eq!(ran.code, Some(0), "{ran:?}");
}

#[test]
fn a_name_that_is_taken_stays_so_until_it_is_replaced() {
    let product = Product::new();
    product
        .file("x.wasm", wanting(WANTS))
        .file("y.wasm", wanting(WANTS_MORE));
    assert_eq!(product.plugin_json(&["add", "x.wasm"])["added"], "new");
    assert_eq!(
        product.plugin_json(&["add", "x.wasm"])["added"],
        "already_there"
    );
    product.refuses(
        &["add", "y.wasm", "--name", "x"],
        1,
        &["another file", "--replace"],
    );
    let info = product.plugin_json(&["info", "x"]);
    assert_eq!(info["status"], "active", "{info}");

    let replaced = product.plugin_json(&["add", "y.wasm", "--name", "x", "--replace"]);
    assert_eq!(replaced["added"], "replaced", "{replaced}");
    assert_eq!(replaced["status"], "changed", "{replaced}");
    assert_eq!(
        replaced["grant_command"],
        serde_json::Value::Null,
        "{replaced}"
    );
    let list = product.plugin(&["list"]);
    assert!(list.stdout.contains("changed: approve"), "{list:?}");

    // The file is gone, the pin is not: another file under the name is still another.
    fs::remove_file(product.plugins().join("x.wasm")).unwrap();
    product.refuses(
        &["add", "y.wasm", "--name", "x"],
        1,
        &["was another file", "--replace"],
    );
    assert_eq!(product.plugin_json(&["add", "x.wasm"])["status"], "active");
    fs::remove_file(product.plugins().join("x.wasm")).unwrap();
    let removed = product.plugin_json(&["remove", "x", "--yes"]);
    assert_eq!(removed["file"], serde_json::Value::Null, "{removed}");
    assert_eq!(removed["was_pinned"], true, "{removed}");
}

/// What an operator requests for one component is not written for the one that is accepted.
#[test]
fn a_manifest_comes_with_what_is_accepted_at_once() {
    let product = Product::new();
    product
        .file("x.wasm", HOSTILE)
        .file("new/x.wasm", with_section(HOSTILE, "version", b"2.0.0"))
        .file("m.toml", WANTS);
    product.plugin_json(&["add", "x.wasm"]);
    let lock = product.lock_text();
    let with = ["--manifest", "m.toml"];
    let replace = ["add", "new/x.wasm", "--replace"];
    product.refuses(
        &[&replace[..], &with].concat(),
        1,
        &["wait for its approval", "leave `--manifest` out"],
    );
    assert_eq!(product.lock_text(), lock);
    product.plugin_json(&replace);
    product.plugin_json(&["approve", "x", "--yes"]);
    let added = product.plugin_json(&[&["add", "new/x.wasm"][..], &with].concat());
    assert_eq!(added["wants"].as_array().unwrap().len(), 3, "{added}");
}

/// One more would turn all of them off, and the command that undoes it needs them.
#[test]
fn a_full_folder_stays_as_it_is_and_can_be_emptied() {
    let product = Product::new();
    product.file("x.wasm", wanting(WANTS));
    product.plugin_json(&["add", "x.wasm"]);
    for n in 1..256 {
        product.drop_in(&format!("p{n}"), b"junk");
    }
    product.refuses(
        &["add", "x.wasm", "--name", "y"],
        1,
        &["holds 256 plugins", "plugin remove"],
    );
    assert_eq!(product.plugin_json(&["info", "x"])["status"], "active");
    product.drop_in("one-more", b"junk");
    product.plugin_json(&["disable", "x"]);
    product.plugin_json(&["remove", "one-more", "--yes"]);
    assert_eq!(product.plugin_json(&["info", "x"])["status"], "disabled");
}

#[test]
fn a_plugin_is_switched_off_and_on() {
    let product = Product::new();
    // Nobody has looked at it before.
    product.drop_in("x", HOSTILE);
    for (verb, disabled) in [("disable", true), ("enable", false)] {
        for changed in [true, false] {
            let switched = product.plugin_json(&[verb, "x"]);
            assert_eq!(switched["disabled"], disabled, "{switched}");
            assert_eq!(switched["changed"], changed, "{switched}");
        }
        let list = product.plugin_json(&["list"]);
        let status = if disabled { "disabled" } else { "active" };
        assert_eq!(list[0]["status"], status, "{list}");
        let ran = product.run(&["call", "echo", "text=hello"]);
        assert_eq!(ran.code, Some(if disabled { 4 } else { 0 }), "{ran:?}");
    }
    product.drop_in("bad", b"junk");
    product.refuses(&["disable", "bad"], 1, &["is not pinned"]);
}
