//! Least privilege from use: calls are recorded, the records become grants and rules, grants that nobody uses are told, and a call is made again.

use std::fs;

use serde_json::{Value, json};

use crate::plugin_cli::wanting;
use crate::product::{Product, Ran};

const WANTS: &str = r#"
[[directory]]
path = "."
rights = ["read", "write", "create", "delete"]
reason = "It works on files."

[[host]]
name = "api.example.com"
reason = "It asks for the weather."
"#;

/// A product with a plugin that may do everything its manifest requests.
fn product() -> Product {
    let product = Product::new();
    product
        .drop_in("x", &wanting(WANTS))
        .file("src/seen.txt", "seen")
        .file("src/neighbour.txt", "neighbour")
        .file("other/far.txt", "far");
    let granted = product.plugin_json(&["grant", "x", "--all", "--yes"]);
    assert_eq!(granted["granted"].as_array().unwrap().len(), 2, "{granted}");
    product
}

fn records(product: &Product) -> String {
    product
        .home
        .join("calls.jsonl")
        .to_string_lossy()
        .into_owned()
}

/// Reads a file with the plugin.
fn read(product: &Product, path: &str, more: &[&str]) -> Ran {
    let arguments = json!({"op": "read", "path": product.work.join(path)}).to_string();
    let mut args = vec!["call", "files", "--json", &arguments];
    args.extend(more);
    product.run(&args)
}

fn json_of(ran: &Ran) -> Value {
    serde_json::from_str(&ran.stdout).unwrap_or_else(|error| panic!("{error}: {ran:?}"))
}

/// Runs commands that the program printed.
fn carry_out(product: &Product, commands: &Value) {
    for command in commands.as_array().unwrap() {
        let words: Vec<&str> = command.as_str().unwrap().split(' ').collect();
        let ran = product.run(&words[1..]);
        assert_eq!(ran.code, Some(0), "{command}: {ran:?}");
    }
}

fn lines(product: &Product) -> Vec<Value> {
    let text = fs::read_to_string(records(product)).unwrap();
    text.lines()
        .map(|line| serde_json::from_str(line).unwrap())
        .collect()
}

#[test]
fn a_suggested_grant_lets_the_recorded_calls_run_again_and_no_more() {
    let product = product();
    let file = records(&product);
    assert_eq!(
        read(&product, "src/seen.txt", &["--record", &file]).code,
        Some(0)
    );
    let record = &lines(&product)[0];
    assert_eq!(record["tool"], "x__files", "{record}");
    assert!(
        !record.to_string().contains("\"seen\""),
        "no contents: {record}"
    );
    let schema = serde_json::from_str(include_str!("../../host/zeph-host/schema/record.json"));
    assert!(jsonschema::is_valid(&schema.unwrap(), record), "{record}");

    let suggested = product.plugin_json(&["suggest", "x", "--from", &file]);
    let src = product.work.join("src");
    let expect = json!([{"kind": "directory", "path": src, "rights":
        {"read": true, "write": false, "create": false, "delete": false}}]);
    assert_eq!(suggested["suggested"], expect, "{suggested}");
    assert_eq!(
        suggested["unseen"][0]["names"],
        json!(["neighbour.txt"]),
        "{suggested}"
    );
    carry_out(&product, &suggested["commands"]);
    assert_eq!(read(&product, "src/seen.txt", &[]).code, Some(0));
    assert_eq!(read(&product, "other/far.txt", &[]).code, Some(4));

    // A rule takes away what a grant of a directory gives besides.
    let rules = product.run(&["policy", "suggest", "--from", &file, "--json"]);
    let rules = json_of(&rules);
    product.user_config(rules["toml"].as_str().unwrap());
    let again = read(&product, "src/seen.txt", &[]);
    assert_eq!(again.code, Some(0), "{rules}: {again:?}");
    let neighbour = read(&product, "src/neighbour.txt", &[]);
    assert_eq!(neighbour.code, Some(4), "{rules}: {neighbour:?}");
}

#[test]
fn calls_of_the_tools_of_the_program_become_rules() {
    let product = Product::new();
    product.file("src/a.txt", "a").file("src/b.txt", "b");
    let file = records(&product);
    let calls = [
        json!({"id": 1, "tool": "read", "params": {"path": "src/a.txt"}}),
        json!({"id": 2, "tool": "write", "params": {"path": "src/new.txt", "content": "new"}}),
        json!({"id": 3, "tool": "bash", "params": {"command": "echo hello > src/out.txt"}}),
        json!({"id": 4, "tool": "list_directory", "params": {"path": "src"}}),
    ];
    let input: String = calls.iter().map(|call| format!("{call}\n")).collect();
    let answers = product.answers(&["--allow", "*", "--jobs", "1", "--record", &file], &input);
    assert!(
        answers.iter().all(|answer| answer["status"] == "ok"),
        "{answers:?}"
    );
    let recorded = lines(&product);
    assert_eq!(recorded.len(), 4);
    assert!(!fs::read_to_string(&file).unwrap().contains("\"content\""));
    let ran = product.run(&["policy", "suggest", "--from", &file, "--json"]);
    let suggested = json_of(&ran);
    let folder = product.home.join(".config/zeph-host");
    fs::create_dir_all(&folder).unwrap();
    fs::write(
        folder.join("config.toml"),
        suggested["toml"].as_str().unwrap(),
    )
    .unwrap();
    let answers = product.answers(&["--jobs", "1"], &input);
    assert!(
        answers.iter().all(|answer| answer["status"] == "ok"),
        "{}\n{answers:?}",
        suggested["toml"]
    );
    let others = [
        json!({"id": 1, "tool": "read", "params": {"path": "src/b.txt"}}),
        json!({"id": 2, "tool": "write", "params": {"path": "src/b.txt", "content": "new"}}),
        json!({"id": 3, "tool": "bash", "params": {"command": "echo other"}}),
    ];
    let input: String = others.iter().map(|call| format!("{call}\n")).collect();
    let answers = product.answers(&[], &input);
    assert!(
        answers.iter().all(|answer| answer["status"] == "refused"),
        "{answers:?}"
    );
    assert_eq!(product.read("src/b.txt"), "b");
}

#[test]
fn bad_record_files_are_told() {
    let product = product();
    let file = records(&product);
    for (text, words) in [
        (None, "cannot be read"),
        (Some(""), "no call"),
        (Some("{\"version\":7}\n"), "version 7"),
        (Some("{\"version\":1,\n"), "line 1"),
    ] {
        drop(fs::remove_file(&file));
        if let Some(text) = text {
            fs::write(&file, text).unwrap();
        }
        product.refuses(&["suggest", "x", "--from", &file], 2, &[words]);
    }
}

#[test]
fn unused_grants_are_told_with_what_is_not_known() {
    let product = product();
    assert_eq!(read(&product, "src/seen.txt", &[]).code, Some(0));
    let listed = json_of(&product.run(&["grants", "--json"]));
    let of = |kind: &str| {
        let grants = listed["grants"].as_array().unwrap().iter();
        let mut of_x = grants.filter(|grant| grant["plugin"] == "x" && grant["kind"] == kind);
        of_x.next().unwrap().clone()
    };
    assert!(of("directory")["last_used"].is_string(), "{listed}");
    assert!(of("host")["last_used"].is_null(), "{listed}");
    let unused = product.run(&["grants", "--unused", "30d", "--json"]);
    let unused = json_of(&unused);
    let notes = unused["notes"].to_string();
    assert!(
        notes.contains("what was used before that is not known"),
        "{unused}"
    );
    let of_x = |grant: &&Value| grant["plugin"] == "x";
    let grants = unused["grants"].as_array().unwrap();
    assert_eq!(
        grants.iter().filter(of_x).count(),
        0,
        "granted just now: {unused}"
    );
    assert_eq!(product.run(&["grants", "--unused", "soon"]).code, Some(2));
}

#[test]
fn a_call_is_made_again_without_side_effects() {
    let product = Product::new();
    product.file("a.txt", "one");
    let file = records(&product);
    let calls = [
        json!({"id": 1, "tool": "read", "params": {"path": "a.txt"}}),
        json!({"id": 2, "tool": "write", "params": {"path": "b.txt", "content": "two"}}),
        json!({"id": 3, "tool": "bash", "params": {"command": "true"}}),
        json!({"id": 4, "tool": "write", "params": {"path": "c.txt", "content": "x".repeat(9_000)}}),
    ];
    let input: String = calls.iter().map(|call| format!("{call}\n")).collect();
    let answers = product.answers(&["--allow", "*", "--jobs", "1", "--record", &file], &input);
    let id = |n: u64| {
        let answer = answers.iter().find(|answer| answer["id"] == n).unwrap();
        answer["call_id"].as_str().unwrap().to_owned()
    };
    let replay = |n: u64| product.run(&["replay", &id(n), "--from", &file, "--json"]);

    let ran = replay(1);
    assert_eq!(
        (ran.code, &json_of(&ran)["same_result"]),
        (Some(0), &json!(true)),
        "{ran:?}"
    );
    product.file("a.txt", "changed");
    assert_eq!(replay(1).code, Some(1));

    product.file("b.txt", "kept");
    let ran = replay(2);
    assert_eq!(json_of(&ran)["on_copies"], true, "{ran:?}");
    assert_eq!(json_of(&ran)["same_result"], true, "{ran:?}");
    assert_eq!(product.read("b.txt"), "kept");

    // Arguments that are too long for the audit are kept beside it.
    product.file("c.txt", "kept");
    let ran = replay(4);
    assert_eq!(json_of(&ran)["same_result"], true, "{ran:?}");
    assert_eq!(product.read("c.txt"), "kept");

    let ran = replay(3);
    assert_eq!(ran.code, Some(2), "{ran:?}");
    assert!(ran.stderr.contains("ran a command"), "{ran:?}");
    let unknown = "01938c2e-5a51-7cc3-98f2-8c1f9a3b7e10";
    assert_eq!(
        product.run(&["replay", unknown, "--from", &file]).code,
        Some(2)
    );
}

#[test]
fn calls_after_untrusted_content_count_only_when_told() {
    let product = product();
    let file = records(&product);
    assert_eq!(
        read(&product, "src/seen.txt", &["--record", &file]).code,
        Some(0)
    );
    let mut record = lines(&product).remove(0);
    record["untrusted"] = json!(true);
    fs::write(&file, format!("{record}\n")).unwrap();
    product.refuses(
        &["suggest", "x", "--from", &file],
        2,
        &["--include-untrusted"],
    );
    let suggested = product.plugin_json(&["suggest", "x", "--from", &file, "--include-untrusted"]);
    assert_eq!(suggested["records"]["calls"], 1, "{suggested}");
}
