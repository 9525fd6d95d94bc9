//! All of them dropped into one folder of the program: it starts, says what it does not use and why, and serves the others.

use std::collections::HashMap;
use std::fs;

use serde_json::{Value, json};
use zeph_selftest::guests::GUESTS;

use super::listing;
use crate::product::{Product, Ran, answer};

/// Little time, so that what never ends costs little of it.
const SHORT: [&str; 4] = [
    "--set",
    "limits.wall_clock_secs=1",
    "--set",
    "limits.cpu_secs=1",
];

/// A program with every guest in its folder.
fn infested() -> Product {
    let product = Product::new();
    let folder = product.home.join(".config/zeph-host/plugins");
    fs::create_dir_all(&folder).unwrap();
    for (name, bytes) in GUESTS {
        fs::write(folder.join(name).with_extension("wasm"), bytes).unwrap();
    }
    product
}

fn json(ran: &Ran) -> Value {
    assert_eq!(ran.code, Some(0), "{}", ran.stderr);
    serde_json::from_str(&ran.stdout).unwrap()
}

#[test]
fn a_folder_full_of_them_is_served_all_the_same() {
    let product = infested();
    let command = |words: &[&str]| product.run(&[&SHORT[..], words].concat());

    let listed = json(&command(&["plugin", "list", "--json", "--all"]));
    let (own, listed): (Vec<&Value>, Vec<_>) = listed
        .as_array()
        .unwrap()
        .iter()
        .partition(|plugin| plugin["origin"] == "program");
    let own: Vec<&Value> = own.iter().map(|plugin| &plugin["name"]).collect();
    assert_eq!(own, ["diagnostics", "file", "scrape", "search"]);
    assert_eq!(listed.len(), GUESTS.len());
    for plugin in listed {
        let name = plugin["name"].as_str().unwrap();
        let expect = if listing::is_tried(name) {
            "quarantined"
        } else {
            "active"
        };
        assert_eq!(plugin["status"], expect, "{plugin}");
    }

    let tools = json(&command(&["tools", "list", "--json"]));
    let of_plugin: HashMap<&str, &str> = tools
        .as_array()
        .unwrap()
        .iter()
        .filter_map(|tool| Some((tool["backend"]["wasm"].as_str()?, tool["name"].as_str()?)))
        .collect();
    let call = |id: String, plugin: &str, say: &str| {
        json!({"id": id, "tool": of_plugin[plugin], "params": {"n": say}}).to_string() + "\n"
    };
    let mut requests = String::new();
    for (idx, (name, _)) in GUESTS
        .iter()
        .enumerate()
        .filter(|(_, (name, _))| !listing::is_tried(name))
    {
        // The flood of standard output with a mark that must not arrive there.
        let say = if *name == "flood" { "i" } else { "a" };
        requests += &call((*name).to_owned(), name, say);
        requests += &call(format!("good {idx}"), "good", &format!("call {idx}"));
    }
    let ran = product.feed(&[&SHORT[..], &["--allow", "*"]].concat(), &requests);
    assert_eq!(ran.code, Some(0), "{}", ran.stderr);
    assert!(!ran.stdout.contains("MARK-OF-THE-GUEST"), "{}", ran.stdout);
    let answers = ran.json_lines();
    assert_eq!(answers.len(), requests.lines().count());
    for (idx, (name, _)) in GUESTS
        .iter()
        .enumerate()
        .filter(|(_, (name, _))| !listing::is_tried(name))
    {
        let good = answer(&answers, format!("good {idx}"));
        let text = json!({"n": format!("call {idx}")}).to_string();
        assert_eq!(good["text"], text, "beside {name}: {good}");
    }
    for (name, category) in [
        ("spin", "timeout"),
        ("wait", "timeout"),
        ("memory", "permanent_failure"),
        ("recurse", "permanent_failure"),
        ("trap", "permanent_failure"),
    ] {
        let answer = answer(&answers, name);
        assert_eq!(answer["error"]["category"], category, "{answer}");
    }
}
