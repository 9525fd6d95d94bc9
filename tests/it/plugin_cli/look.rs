//! `plugin list` and `plugin info`, and names that are nobody's.

use std::fs;

use serde_json::{Value, json};

use super::{WANTS, wanting, with_section};
use crate::product::Product;

#[test]
fn an_empty_list_says_where_plugins_go() {
    let product = Product::new();
    let ran = product.plugin(&[]);
    assert_eq!(ran.code, Some(0), "{ran:?}");
    for folder in [
        product.home.join(".config/zeph-host/plugins"),
        product.plugins(),
    ] {
        assert!(ran.stdout.contains(folder.to_str().unwrap()), "{ran:?}");
    }
    assert_eq!(product.plugin_json(&["list"]), json!([]));
    let off = product.plugin(&["list", "--set", "plugins.enabled=false"]);
    assert_eq!(off.code, Some(0), "{off:?}");
    assert!(off.stderr.contains("`plugins.enabled`"), "{off:?}");
    product.refuses(
        &["info", "x", "--set", "plugins.enabled=false"],
        1,
        &["`plugins.enabled`"],
    );
}

#[test]
fn everything_in_the_folders_is_listed() {
    let product = Product::new();
    let versioned = with_section(&wanting(WANTS), "version", b"1.2.3");
    product
        .drop_in("good", &versioned)
        .drop_in("bad", b"junk")
        .drop_in("Not A Name", b"");
    let beside = product.home.join(".config/zeph-host/plugins");
    fs::create_dir_all(&beside).unwrap();
    fs::write(beside.join("good.wasm"), wanting(WANTS)).unwrap();

    let list = product.plugin_json(&["list"]);
    let found: Vec<_> = list
        .as_array()
        .unwrap()
        .iter()
        .map(|plugin| {
            (
                plugin["name"].as_str().unwrap(),
                plugin["status"].as_str().unwrap(),
            )
        })
        .collect();
    assert_eq!(
        found,
        [
            ("Not A Name", "quarantined"),
            ("bad", "quarantined"),
            ("good", "active"),
            ("good", "quarantined")
        ],
        "{list}"
    );
    assert_eq!(list[2]["folder"], beside.to_str().unwrap(), "{list}");
    assert_eq!(
        (&list[2]["granted"], &list[2]["wanted"]),
        (&json!(0), &json!(3)),
        "{list}"
    );
    assert_eq!(list[3]["version"], "1.2.3", "{list}");
    for plugin in list.as_array().unwrap() {
        assert_eq!(
            plugin["reason"].is_string(),
            plugin["status"] == "quarantined",
            "{list}"
        );
    }
    let text = product.plugin(&["list"]).stdout;
    assert!(text.contains("0/3"), "{text}");
    assert!(text.contains("not used: "), "{text}");
    assert_eq!(
        text,
        product.plugin(&["list"]).stdout,
        "the order is the same each time"
    );
}

#[test]
fn info_says_what_it_wants_and_what_it_has() {
    let product = Product::new();
    let mut bytes = wanting(WANTS);
    let facts = [
        ("version", "1.2.3"),
        ("description", "Tells \u{202e}the weather."),
        ("authors", "The weather office"),
        ("licenses", "MIT"),
        ("homepage", "https://example.com"),
    ];
    for (name, content) in facts {
        bytes = with_section(&bytes, name, content.as_bytes());
    }
    product.drop_in("x", &bytes).file("src/a.txt", "a");
    product.plugin_json(&["grant", "x", "--dir", "src", "--host", "api.example.com"]);
    let info = product.plugin_json(&["info", "x"]);
    let src = product.work.join("src");
    assert_eq!(info["status"], "active", "{info}");
    assert_eq!(info["accepted"]["wasm"], info["pin"]["wasm"], "{info}");
    assert_eq!(info["version"], "1.2.3", "{info}");
    assert_eq!(info["description"], "Tells the weather.", "{info}");
    let directory = &info["wants"][0];
    assert_eq!(
        directory["reason"], "It reads what it is told to.",
        "{info}"
    );
    assert_eq!(
        directory["here"][0]["path"],
        product.work.to_str().unwrap(),
        "{info}"
    );
    assert_eq!(
        directory["effective"][0]["path"],
        src.to_str().unwrap(),
        "{info}"
    );
    assert_eq!(directory["is_granted"], false, "only a part of it");
    let host = &info["wants"][1];
    assert_eq!(host["is_granted"], true, "{info}");
    assert_eq!(host["grants"][0]["lifetime"], "always", "{info}");
    let command = info["grant_command"].as_str().unwrap();
    assert!(command.ends_with("--limit wall_clock_secs=60"), "{command}");
    assert!(!command.contains("--host"), "{command}");
    let echo = &info["tools"][0];
    assert_eq!(echo["own_name"], "echo", "{info}");
    assert_eq!(echo["parameters"]["type"], "object", "{info}");

    let text = product.plugin(&["info", "x"]).stdout;
    for words in [
        "x · active",
        "Tells the weather.",
        "The weather office",
        "it says: It reads what it is told to.",
        command,
        "{text: string}",
    ] {
        assert!(text.contains(words), "no {words:?} in {text}");
    }
    assert!(!text.contains('\u{202e}'));
}

#[test]
fn a_tool_is_listed_with_its_plugin() {
    let product = Product::new();
    product.drop_in("x", &wanting(WANTS));
    let ran = product.run(&["tools", "show", "echo"]);
    assert!(ran.stdout.contains("plugin x"), "{ran:?}");
    let ran = product.run(&["tools", "--json"]);
    let tools = ran.json();
    let echo = tools
        .as_array()
        .unwrap()
        .iter()
        .find(|tool| tool["name"] == "echo");
    assert_eq!(echo.unwrap()["backend"], json!({"wasm": "x"}));
}

#[test]
fn a_name_that_is_nobodys_gets_the_nearest() {
    let product = Product::new();
    product.drop_in("weather", &wanting(WANTS));
    for verb in [
        "info", "remove", "revoke", "grant", "approve", "disable", "enable",
    ] {
        let mut typed = vec![verb, "waether"];
        typed.extend(match verb {
            "grant" | "revoke" => &["--host", "api.example.com"][..],
            _ => &[],
        });
        product.refuses(
            &typed,
            2,
            &["no plugin is named `waether`; did you mean `weather`?"],
        );
        typed[1] = "file";
        match verb {
            "info" => {
                let info: Value = product.plugin_json(&["info", "file"]);
                assert_eq!(info["kind"], "part of the host", "{info}");
            }
            // It holds files by default, and wants nothing else.
            "grant" | "revoke" => product.refuses(&typed, 2, &["`file`"]),
            _ => product.refuses(&typed, 2, &["`file` is part of the host"]),
        }
    }
}
