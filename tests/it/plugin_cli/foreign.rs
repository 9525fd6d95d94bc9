//! Components of authors who know nothing of zeph-host, and components that lie where people drop them.

use std::fs;

use serde_json::{Value, json};

use super::{WANTS, wanting, with_section};
use crate::guest::HOSTILE;
use crate::product::Product;

/// What came of reading `words.txt` of the workspace through plugin `x`.
fn reads(product: &Product) -> Value {
    let path = product.work.join("words.txt");
    product.call("files", json!({"op": "read", "path": path}))
}

#[test]
fn a_component_without_a_manifest_gets_what_its_operator_grants() {
    let product = Product::new();
    product
        .file("words.txt", "one two three")
        .file("x.wasm", HOSTILE);
    product.plugin_json(&["add", "x.wasm"]);
    let refused = reads(&product);
    let message = refused["error"]["message"].as_str().unwrap();
    let work = product.work.to_str().unwrap();
    let command = format!("`zeph-host plugin grant x --dir {work}:read`");
    assert!(message.contains(&command), "{refused}");

    let granted = product.plugin(&["grant", "x", "--dir", "."]);
    assert_eq!(granted.code, Some(0), "{granted:?}");
    assert!(granted.stderr.contains("without a manifest"), "{granted:?}");
    assert_eq!(reads(&product)["status"], "ok");
    let info = product.plugin_json(&["info", "x"]);
    assert_eq!(info["wants"][0]["rights"]["read"], true, "{info}");
    assert_eq!(info["wants"][0]["rights"]["write"], false, "{info}");
    assert_eq!(info["status"], "active", "{info}");
    assert_eq!(info["manifest"], "operator", "{info}");

    // More is wanted when more is granted, and what was granted stays.
    product.plugin_json(&["grant", "x", "--variable", "LANG"]);
    let info = product.plugin_json(&["info", "x"]);
    assert_eq!(info["wants"].as_array().unwrap().len(), 2, "{info}");
    assert_eq!(reads(&product)["status"], "ok");

    // Its next version is looked at like any other, and keeps what its operator wrote.
    let next = with_section(HOSTILE, "version", b"2");
    product.drop_in("x", &next);
    let approved = product.plugin_json(&["approve", "x", "--yes"]);
    assert_eq!(approved["approved"], true, "{approved}");
    assert_eq!(reads(&product)["status"], "ok");

    // One whose author writes a manifest is held to it.
    product.drop_in("x", &wanting(WANTS));
    product.plugin_json(&["approve", "x", "--yes"]);
    product.refuses(
        &["grant", "x", "--variable", "LANG"],
        2,
        &["does not request"],
    );
}

#[test]
fn a_manifest_can_be_added_with_a_component() {
    let product = Product::new();
    product
        .file("words.txt", "one two three")
        .file("x.wasm", HOSTILE)
        .file("own.wasm", wanting(WANTS))
        .file("wants.toml", WANTS)
        .file("bad.toml", "[[directory]]\npath = \"..\"\n");
    for (words, said) in [
        (
            &["add", "x.wasm", "--manifest", "bad.toml"][..],
            "is no manifest",
        ),
        (
            &["add", "x.wasm", "--manifest", "gone.toml"],
            "cannot be read",
        ),
        (
            &["add", "own.wasm", "--manifest", "wants.toml"],
            "has a manifest of its own",
        ),
    ] {
        let ran = product.plugin(words);
        assert_ne!(ran.code, Some(0), "{ran:?}");
        assert!(ran.stderr.contains(said), "{ran:?}");
    }
    assert!(!product.plugins().exists(), "nothing was copied");
    let added = product.plugin_json(&["add", "x.wasm", "--manifest", "wants.toml"]);
    assert_eq!(added["status"], "active", "{added}");
    let command = added["grant_command"].as_str().unwrap();
    assert!(command.contains("--host api.example.com"), "{added}");
    product.plugin_json(&["grant", "x", "--dir", "."]);
    assert_eq!(reads(&product)["status"], "ok");
}

#[test]
fn a_folder_that_is_named_is_used_by_every_command() {
    let product = Product::new();
    fs::create_dir(product.work.join("plugins")).unwrap();
    product.file("plugins/x.wasm", HOSTILE);
    let call = ["call", "echo", "text=hello"];
    let ran = product.run(&call);
    assert_eq!(ran.code, Some(2), "{ran:?}");
    let line = "`--plugins plugins`";
    assert_eq!(ran.stderr.matches(line).count(), 1, "{ran:?}");

    let named = ["--plugins", "plugins"];
    for (words, said) in [
        (&call[..], "hello"),
        (&["tools", "show", "echo"], "echo"),
        (&["plugin", "list"], "active"),
        (&["plugin", "info", "x"], "active"),
        (&["plugin", "disable", "x"], "switched off"),
        (&["plugin", "enable", "x"], "switched on"),
        (&["explain", "echo", "text=hello"], "allow"),
        (&["doctor"], "plugins holds 1"),
    ] {
        let ran = product.run(&[words, &named].concat());
        let said_all = format!("{}{}", ran.stdout, ran.stderr);
        assert!(said_all.contains(said), "{words:?}: {ran:?}");
        assert!(!ran.stderr.contains(line), "{words:?}: {ran:?}");
    }
    assert!(product.work.join("zeph.lock").exists());
    assert!(!product.plugins().exists());

    // New ones go there too, and the operator's own file can name it for good.
    product.file("y.wasm", wanting(WANTS));
    let added = product.run(&["plugin", "add", "y.wasm", "--plugins", "plugins", "--json"]);
    assert_eq!(
        added.json()["file"],
        product.work.join("plugins/y.wasm").to_str().unwrap()
    );
    let config = product.home.join(".config/zeph-host/config.toml");
    fs::create_dir_all(config.parent().unwrap()).unwrap();
    let folder = product.work.join("plugins");
    fs::write(config, format!("[plugins]\nfolders = [{folder:?}]\n")).unwrap();
    assert_eq!(product.run(&call).stdout, "hello\n");
}

/// What lies in a repository, and what its lock claims, takes no name from what its user installed.
#[test]
fn a_typed_folder_takes_no_name_from_an_installed_plugin() {
    let product = Product::new();
    product.file("plugins/evil.wasm", HOSTILE);
    let list = ["plugin", "list", "--json", "--plugins", "plugins"];
    assert_eq!(product.run(&list).code, Some(0));
    let claim = "echo = \"evil\"";
    assert!(product.read("zeph.lock").contains(claim));
    product.drop_in("x", &wanting(WANTS));
    product.file("plugins/x.wasm", HOSTILE);
    let standings = |product: &Product| {
        let listed = product.run(&list).json();
        let rows = listed.as_array().unwrap().iter();
        let row = |row: &Value| {
            let has_echo = |name: &str| row["tools"].as_array().unwrap().contains(&json!(name));
            let folder = row["folder"]
                .as_str()
                .unwrap()
                .starts_with(product.work.to_str().unwrap());
            let echo = ["echo", "evil__echo"]
                .into_iter()
                .find(|name| has_echo(name));
            (
                row["name"].clone(),
                folder,
                row["status"].clone(),
                echo.map(str::to_owned),
            )
        };
        let mut rows: Vec<_> = rows.map(row).collect();
        rows.sort_by_key(|(name, is_typed, ..)| (name.to_string(), *is_typed));
        rows
    };
    let row = |name: &str, is_typed, status: &str, echo: Option<&str>| {
        (
            json!(name),
            is_typed,
            json!(status),
            echo.map(str::to_owned),
        )
    };
    let evil = || row("evil", true, "active", Some("evil__echo"));
    let typed = || row("x", true, "quarantined", None);
    assert_eq!(
        standings(&product),
        [evil(), row("x", false, "active", Some("echo")), typed()]
    );
    product.plugin_json(&["disable", "x"]);
    assert_eq!(
        standings(&product),
        [evil(), row("x", false, "disabled", None), typed()]
    );
}

#[test]
fn a_component_is_called_where_it_lies() {
    let product = Product::new();
    product
        .file("words.txt", "one two three")
        .file("some/x.wasm", wanting(WANTS))
        .file("module.wasm", b"\0asm\x01\0\0\0")
        .file("file.wasm", HOSTILE);
    for file in ["some/x.wasm", "./some/x.wasm", "file.wasm"] {
        let ran = product.run(&["call", file, "echo", "text=hello"]);
        assert_eq!(
            (ran.code, ran.stdout.as_str()),
            (Some(0), "hello\n"),
            "{ran:?}"
        );
    }
    let ran = product.run(&["call", "some/x.wasm", "echo", "--json", r#"{"text":"a"}"#]);
    assert_eq!(ran.stdout, "a\n", "{ran:?}");
    let path = format!("path={}", product.work.join("words.txt").display());
    let refused = product.run(&["call", "some/x.wasm", "files", "op=read", &path]);
    assert_eq!(refused.code, Some(4), "{refused:?}");
    let x = product.work.join("some/x.wasm");
    let command = format!(
        "zeph-host plugin add {} && zeph-host plugin grant x --dir",
        x.display()
    );
    assert!(refused.stderr.contains(&command), "{refused:?}");
    for (words, code, said) in [
        (&["call", "some/x.wasm"][..], 2, "it has echo"),
        (
            &["call", "some/x.wasm", "nothing"],
            2,
            "has no tool `nothing`",
        ),
        (&["call", "gone.wasm", "echo"], 2, "cannot be read"),
        (
            &["call", "module.wasm", "echo"],
            1,
            "core WebAssembly module",
        ),
        (
            &["call", "some/x.wasm", "echo", "text=a", "--json", "{}"],
            2,
            "twice",
        ),
        (
            &["call", "read", "path=words.txt", "--json", "{}"],
            2,
            "twice",
        ),
    ] {
        let ran = product.run(words);
        assert_eq!(ran.code, Some(code), "{words:?}: {ran:?}");
        assert!(ran.stderr.contains(said), "{words:?}: {ran:?}");
    }
    let off = [
        "--set",
        "plugins.enabled=false",
        "call",
        "some/x.wasm",
        "echo",
    ];
    let ran = product.run(&off);
    assert!(ran.stderr.contains("plugins are switched off"), "{ran:?}");
    // Nothing of it is installed.
    assert!(!product.plugins().exists());
    assert!(
        !product
            .home
            .join(".local/share/zeph-host/zeph.lock")
            .exists()
    );
    assert_eq!(product.plugin_json(&["list"]), json!([]));
}

/// A lock that cannot be written, as in a folder of read-only configuration.
#[test]
fn what_is_pinned_works_where_nothing_can_be_written() {
    let product = Product::new();
    product.drop_in("x", HOSTILE);
    product.plugin_json(&["list"]);
    let guard = product.home.join(".local/share/zeph-host/.zeph.lock.guard");
    fs::remove_file(&guard).unwrap();
    fs::create_dir(&guard).unwrap();
    product.drop_in("new", &wanting(WANTS));
    let ran = product.run(&["call", "echo", "text=hello"]);
    assert_eq!(ran.stdout, "hello\n", "{ran:?}");
    let list = product.plugin_json(&["list"]);
    let statuses: Vec<&Value> = list
        .as_array()
        .unwrap()
        .iter()
        .map(|row| &row["status"])
        .collect();
    assert_eq!(statuses, ["quarantined", "active"], "{list}");
    let reason = list[0]["reason"].as_str().unwrap();
    assert!(reason.contains("it is new and cannot be pinned"), "{list}");
    product.refuses(
        &["disable", "x"],
        1,
        &[".zeph.lock.guard", "make the file and its folder yours"],
    );
}

#[test]
fn a_tool_of_a_plugin_that_is_off_says_which_line_helps() {
    let product = Product::new();
    product.drop_in("x", HOSTILE);
    product.plugin_json(&["disable", "x"]);
    for tool in ["echo", "x__echo"] {
        let answer = product.call(tool, json!({"text": "hello"}));
        assert_eq!(answer["error"]["category"], "policy_blocked", "{answer}");
        let message = answer["error"]["message"].as_str().unwrap();
        assert!(message.contains("`zeph-host plugin enable x`"), "{message}");
    }
    let shown = product.run(&["tools", "show", "echo"]);
    assert!(shown.stderr.contains("plugin enable x"), "{shown:?}");
    let list = product.run(&["--set", "plugins.settings.y={ a = 1 }", "plugin", "list"]);
    assert!(list.stderr.contains("no plugin is named `y`"), "{list:?}");
    product.plugin_json(&["enable", "x"]);
    product.drop_in("x", &wanting(WANTS));
    let answer = product.call("echo", json!({"text": "hello"}));
    let message = answer["error"]["message"].as_str().unwrap();
    assert!(
        message.contains("`zeph-host plugin approve x`"),
        "{message}"
    );
    product.drop_in("x", b"no component");
    let answer = product.call("echo", json!({"text": "hello"}));
    let message = answer["error"]["message"].as_str().unwrap();
    assert!(message.contains("plugin `x`, which is off"), "{message}");
}

#[test]
fn nothing_is_removed_without_somebody_who_agrees() {
    let product = Product::new();
    product.drop_in("x", HOSTILE);
    product.refuses(&["remove", "x"], 5, &["nothing was removed", "`--yes`"]);
    assert!(product.plugins().join("x.wasm").exists());
    assert_eq!(product.plugin(&["remove", "x", "-y"]).code, Some(0));
    assert!(!product.plugins().join("x.wasm").exists());
}
